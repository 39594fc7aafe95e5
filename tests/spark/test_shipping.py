"""Executors whose Python has no letterhead get it as `docs/how-to/run-on-a-cluster.md` shows, and give the same answers."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import environments, pages
from tests.ports import free_ports
from tests.spark import shipped

SCRIPT = Path(shipped.__file__)
READ = {"k": 7, "é": "x"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of the workers: it has all that this one has, and no letterhead."""
    return environments.environment(tmp_path_factory.mktemp("workers") / "bare", lambda name: True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environments.wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The Python of the driver, in which the wheel is installed."""
    directory = tmp_path_factory.mktemp("driver") / "with"
    python = environments.environment(directory, lambda name: True)
    environments.install(wheel, directory)
    return python


@pytest.fixture
def place(tmp_path: Path, wheel: Path) -> Path:
    """A directory with the wheel, to submit from."""
    shutil.copy(wheel, tmp_path)
    return tmp_path


def variables(place: Path, driver: Path, python: Path, master: str) -> dict[str, str]:
    """Return the environment of a driver: which cluster it is, it is told from outside."""
    conf = place / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        f"spark.master {master}\nspark.ui.enabled false\nspark.ui.showConsoleProgress false\n"
        "spark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n"
        "spark.sql.shuffle.partitions 2\nspark.sql.session.timeZone UTC\n"
    )
    return environments.clean(
        SPARK_CONF_DIR=str(conf),
        SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_PYTHON=str(python),
        PYSPARK_DRIVER_PYTHON=str(driver),
        PYTHONPATH=str(SCRIPT.parents[2]),
    )


def answers(command: list[str], place: Path, environment: dict[str, str]) -> dict:
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=540, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(message: dict, executors: str) -> None:
    """Check what executors say that have letterhead: in a place of their own, and the same code."""
    assert message == {
        "ok": True,
        "places": ["driver", executors],
        "wrong": [],
        "of the driver": [True, False],
        "read": READ,
    }


def check_missing(message: dict, executors: str, python: Path) -> None:
    assert message["read"].endswith("ModuleNotFoundError: No module named 'letterhead'")
    assert message["wrong"] == [[executors, f"letterhead is not installed ({python} has none)"]]
    assert (message["ok"], message["places"]) == (False, ["driver", executors])


def test_worker_python_has_no_letterhead(python: Path) -> None:
    program = "import pyarrow, letterhead"
    done = subprocess.run(
        [python, "-c", program], env=environments.clean(), capture_output=True, text=True, timeout=300
    )
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'letterhead'"


def test_spark_connect_session_receives_package(driver: Path, python: Path, place: Path, samples: Path) -> None:
    environment = variables(place, driver, python, "local[2]")
    output = answers([str(driver), str(SCRIPT), "connect", str(samples)], place, environment)
    check_missing(output["before"], "1 executor", python)
    check(output["after"], "1 executor")


@pytest.mark.full
def test_existing_session_receives_package(driver: Path, python: Path, place: Path, samples: Path) -> None:
    with environments.swept():
        environment = variables(place, driver, python, "local-cluster[2,1,1024]")
        output = answers([str(driver), str(SCRIPT), "classic", str(samples)], place, environment)
    check_missing(output["before"], "2 executors", python)
    check(output["after"], "2 executors")


@pytest.mark.full
def test_job_is_submitted_with_wheel(driver: Path, python: Path, place: Path, samples: Path) -> None:
    (command,) = pages.blocks(shipped.PAGE, "shell")
    (place / "job.py").write_text(
        f"from pathlib import Path\nfrom tests.spark import shipped\nshipped.run('job', Path({str(samples)!r}))\n"
    )
    environment = variables(place, driver, python, "local-cluster[2,1,1024]")
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"  # where spark-submit is
    with environments.swept():
        output = answers(["bash", "-euc", command], place, environment)
    check(output["after"], "2 executors")


@pytest.mark.full
def test_standalone_cluster_receives_wheel(driver: Path, python: Path, place: Path, samples: Path) -> None:
    with standalone(place, workers=2) as master:
        environment = variables(place, driver, python, master)
        output = answers([str(driver), str(SCRIPT), "settings", str(samples)], place, environment)
    check(output["after"], "2 executors")


@contextlib.contextmanager
def standalone(place: Path, workers: int) -> Iterator[str]:
    """Start a master and workers, processes of their own on the loopback interface; return the address of the master."""
    import pyspark

    start = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, web = free_ports(2)
    processes: list[subprocess.Popen] = []

    def run(type: str, *arguments: str) -> None:
        log = (place / f"{len(processes)}.log").open("w")
        command = [str(start), f"org.apache.spark.deploy.{type}", *arguments, "--host", "127.0.0.1"]
        environment = environments.clean(SPARK_LOCAL_IP="127.0.0.1")
        processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=place))

    try:
        run("master.Master", "--port", str(port), "--webui-port", str(web))
        for number in range(workers):
            work = place / f"work-{number}"
            run(
                "worker.Worker",
                f"spark://127.0.0.1:{port}",
                "-c",
                "1",
                "-m",
                "1g",
                "-d",
                str(work),
                "--webui-port",
                "0",
            )
        wait_for(web, workers, place)
        yield f"spark://127.0.0.1:{port}"
    finally:
        # The script ends by becoming Java, so that these are the pids of the JVMs.
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(120)
        for number in range(workers):
            shutil.rmtree(place / f"work-{number}", ignore_errors=True)


def wait_for(web: int, workers: int, place: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as page:
            if json.load(page)["aliveworkers"] == workers:
                return
        time.sleep(0.5)
    logs = "".join(log.read_text()[-2000:] for log in sorted(place.glob("*.log")))
    raise AssertionError(f"the workers did not come: {logs}")
