"""``letterhead doctor`` in environments that lack something, which are real."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path

import pyarrow
import pytest

from letterhead import _doctor as doctor
from letterhead import _native
from tests.helpers import environments
from tests.helpers.command import Result
from tests.helpers.extras import spelled_out


def installed(tmp_path: Path, *without: str, **wheel: str) -> Path:
    """Install a wheel in an environment that has no package of these names; give its directory."""
    directory = tmp_path / "environment"
    environments.environment(directory, lambda name: not name.startswith(without))
    environments.install(environments.packed(tmp_path, **wheel), directory)
    return directory


def asked(directory: Path, **more: str) -> tuple[int, dict]:
    """Run the command with an environment's Python."""
    program = "import sys; from letterhead.cli import main; sys.exit(main(['doctor', '--json']))"
    done = subprocess.run(
        [directory / "bin" / "python", "-c", program],
        env=environments.clean(**more), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def wrong(report: dict) -> list[str]:
    assert report["ok"] is not any(finding["level"] == "wrong" for finding in report["findings"])
    return [finding["problem"] for finding in report["findings"] if finding["level"] == "wrong"]


def package(directory: Path) -> Path:
    (location,) = directory.glob("lib/*/site-packages/letterhead")
    return location


def test_report_lists_installed_components(run) -> None:
    result: Result = run("doctor")
    assert result.code == 0
    rows = {line.split(maxsplit=1)[0]: line.split()[1:] for line in result.lines if line.strip()}
    assert rows["python"][0] == platform.python_version()
    assert rows["letterhead"][0] == _native.__version__
    assert rows["decode"] == ["right"]
    assert rows["location"] == [str(environments.PACKAGE)]


def test_json_report_has_same_content(run) -> None:
    result = run("doctor", "--json")
    read = json.loads(result.out)
    assert (result.code, read["ok"], read["settings"]) == (0, True, {})
    assert read["places"] == {"driver": doctor.examine()}


def test_report_without_spark_and_arrow_has_no_errors(tmp_path: Path) -> None:
    directory = installed(tmp_path, "pyspark", "pyarrow", "pandas", "protobuf", "google")
    code, report = asked(directory)
    assert (code, report["findings"]) == (0, [])
    facts = report["places"]["driver"]
    assert facts["decode"] == "right"
    assert {facts["packages"][name] for name in ("pyspark", "pyarrow", "pandas", "protobuf")} == {None}
    assert facts["letterhead"]["location"] == str(package(directory))


def test_spark_needs_pyarrow_and_pandas(tmp_path: Path) -> None:
    code, report = asked(installed(tmp_path, "pyarrow", "pandas"))
    assert code == 1
    assert wrong(report) == [
        "pyarrow is not installed, and Spark needs it",
        "pandas is not installed, and Spark needs it",
    ]
    assert {finding["remedy"] for finding in report["findings"] if finding["level"] == "wrong"} == {
        spelled_out("pip install 'letterhead[spark]'")
    }


def test_failing_import_is_not_reported_as_absent(tmp_path: Path) -> None:
    directory = installed(tmp_path, "pyspark", "pandas")
    link = package(directory).parent / "pyarrow"
    link.unlink()
    link.mkdir()
    (link / "__init__.py").write_text("raise ImportError('libarrow.so.2600: cannot open shared object file')")
    code, report = asked(directory)
    output = "ImportError: libarrow.so.2600: cannot open shared object file"
    assert code == 1
    assert wrong(report) == [f"pyarrow cannot be imported: {output}"]


def test_packages_of_this_process_are_present_absent_or_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('cannot open shared object file')")
    (tmp_path / "unversioned.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "PACKAGES", dict.fromkeys(["pyarrow", "absent", "broken", "unversioned"], "arrow"))
    assert doctor.examine()["packages"] == {
        "pyarrow": pyarrow.__version__,
        "absent": None,
        "broken": "cannot be imported: OSError: cannot open shared object file",
        "unversioned": "installed",
    }


def test_report_has_column_per_process_and_row_per_component() -> None:
    driver = doctor.examine()
    executor = driver | {"python": "3.99.0", "packages": driver["packages"] | {"pyarrow": None}}
    lines = [line.split() for line in str(doctor.Report({"driver": driver, "executor": executor})).splitlines()]
    assert lines[0] == ["driver", "executor"]
    rows = {words[0]: words[1:] for words in lines[1:] if words}
    assert rows["python"] == [driver["python"], "3.99.0"]
    assert rows["pyarrow"][:3] == [pyarrow.__version__, "not", "installed:"]
    assert {"letterhead", "location", "executable", "system", "decode", "java", *doctor.PACKAGES} <= {*rows}


def test_package_older_than_required_is_error() -> None:
    facts = doctor.examine()
    facts["letterhead"]["requires"] = ["pyarrow>=17 ; extra == 'arrow'", "pandas>=2.2,<3 ; extra == 'spark'"]
    facts["packages"] |= {"pyarrow": "16.1.0", "pandas": "2.2.0"}
    problems = [finding for finding in doctor.findings(facts, "driver") if finding.level == "wrong"]
    assert [(finding.problem, finding.remedy) for finding in problems] == [
        ("pyarrow 16.1.0 is older than 17", "pip install 'pyarrow>=17'")
    ]


@pytest.mark.parametrize(
    ("pyspark", "pyarrow", "expected"),
    [
        ("4.2.0", "17.0.0", ["pyspark 4.2.0 needs pyarrow 18, and pyarrow is 17.0.0"]),
        ("4.3.0", "18.0.0", []),
        ("4.1.4", "17.0.0", []),
        (None, "17.0.0", []),
    ],
)
def test_pyarrow_rejected_by_spark_is_error(pyspark: str | None, pyarrow: str, expected: list[str]) -> None:
    facts = doctor.examine()
    facts["packages"] |= {"pyspark": pyspark, "pyarrow": pyarrow}
    assert [finding.problem for finding in doctor.findings(facts, "driver") if "pyarrow" in finding.problem] == expected


@pytest.mark.parametrize(("pyspark", "count"), [("4.2.0", 0), ("4.3.0", 1), (None, 0)])
def test_pyspark_rejected_by_sail_is_note(pyspark: str | None, count: int) -> None:
    facts = doctor.examine()
    facts["packages"] |= {"pysail": "0.7.2", "pyspark": pyspark}
    problems = [finding.problem for finding in doctor.findings(facts, "driver") if "pysail" in finding.problem]
    assert problems == ["pysail 0.7.2 refuses pyspark 4.3.0: its sessions are not running"] * count


def test_wheel_for_another_system_is_error(tmp_path: Path) -> None:
    directory = installed(tmp_path, "pyspark")
    for library in package(directory).glob("_native*.so"):
        library.write_bytes(b"\x7fELF")
    code, report = asked(directory)
    assert code == 1
    assert wrong(report)[0].startswith(f"letterhead cannot be imported on {platform.system()} {platform.machine()} ")


def test_wheel_on_path_as_zip_file_is_error(tmp_path: Path) -> None:
    directory = tmp_path / "bare"
    environments.environment(directory, lambda name: not name.startswith("pyspark"))
    archive = environments.packed(tmp_path).rename(tmp_path / "letterhead.zip")
    code, report = asked(directory, PYTHONPATH=str(archive))
    assert code == 1
    assert report["places"]["driver"]["letterhead"]["location"] == f"{archive}/letterhead"
    assert len(wrong(report)) == 1
    assert "spark.archives=letterhead.zip#letterhead" in report["findings"][0]["remedy"]


def test_missing_native_code_is_reported(tmp_path: Path) -> None:
    directory = installed(tmp_path, "pyspark", tag="cp311-abi3-linux_x86_64")
    for library in package(directory).glob("_native*.so"):
        library.unlink()
    code, report = asked(directory)
    assert code == 1
    (problem,) = wrong(report)
    assert problem.endswith("ModuleNotFoundError: No module named 'letterhead._native'")
    program = "import sys; from letterhead.cli import main; sys.exit(main(['decode', '--help']))"
    done = subprocess.run(
        [directory / "bin" / "python", "-c", program],
        env=environments.clean(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("letterhead: the compiled core does not load: ")
    assert done.stderr.endswith(" (see letterhead doctor)\n")


def test_workers_with_another_python_are_noted(tmp_path: Path) -> None:
    directory = installed(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(shutil.which("python3"))
    code, report = asked(directory, PATH=str(tmp_path / "bin"), JAVA_HOME=str(tmp_path))
    assert (code, wrong(report)) == (0, [])
    python = f"{directory}/bin/python"
    assert [finding["problem"] for finding in report["findings"]] == [
        f"PYSPARK_PYTHON is not this Python: workers run {tmp_path}/bin/python3, and this is {python}",
        "java is not installed: only Spark Connect works",
    ]
    code, report = asked(directory, PYSPARK_PYTHON=python)
    assert (code, [finding for finding in report["findings"] if "java" not in finding["problem"]]) == (0, [])
