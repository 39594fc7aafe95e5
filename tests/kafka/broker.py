"""A Kafka broker of its own: on loopback, on free ports, with its files in one directory, stopped by its pid."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.ports import free_ports
from tests.versions import built, check_built

ROOT = Path(__file__).resolve().parents[2]
BUILT = built("kafka")
QUICK_JVM = "-XX:TieredStopAtLevel=1"
"""For what is over in seconds: compile little, and at once."""
START_LIMIT = 300.0
STOP_LIMIT = 120.0
"""Seconds until a broker that does not start or stop is ended, and its threads are shown."""

CLUSTER = "bGV0dGVyaGVhZCB0ZXN0cw"
"""A cluster's name is sixteen bytes in base64. One is enough: no broker here knows of another."""

# What is bundled is older than the time after which a broker deletes, so nothing is deleted here by its age. There is
# one broker, so one copy of everything; and no topic appears because its name was misspelled.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
log.retention.ms=-1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
transaction.max.timeout.ms=21600000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.cleaner.backoff.ms=200
log.initial.task.delay.ms=200
"""


class Broker:
    """A broker whose files are in a directory; there may be one running there already.

    Parameters
    ----------
    directory : Path
        Where its data, its properties, its log and its pid are.
    heap : str, default "512m"
        How much memory its objects may take, as Java writes it.
    options : sequence of str, optional
        More options of Java, such as system properties.
    """

    def __init__(self, directory: Path, heap: str = "512m", options: Sequence[str] = ()) -> None:
        self.directory = directory.resolve()
        self._heap = heap
        self._options = options
        self._properties = self.directory / "server.properties"
        self._pid = self.directory / "pid"
        self._log = self.directory / "log"

    @property
    def process(self) -> psutil.Process | None:
        """The process that runs here. A pid that went to another program meanwhile is not taken for it."""
        try:
            process = psutil.Process(int(self._pid.read_text()))
            return process if str(self._properties) in process.cmdline() else None
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None

    @property
    def address(self) -> str:
        """Where clients reach it, as ``host:port``."""
        *_, listeners = [line for line in self._properties.read_text().splitlines() if line.startswith("advertised.")]
        return listeners.partition("//")[2].partition(",")[0]

    def start(
        self, port: int | None = None, *, attached: bool = True, more: str = "", format: Sequence[str] = ()
    ) -> None:
        """Start an empty broker and wait until it answers.

        Parameters
        ----------
        port : int, optional
            Where it listens; by default where nobody does.
        attached : bool, default True
            Whether it stops when this process ends, however that ends. If not, it runs until it is stopped.
        more : str, default ""
            Lines of properties; one that is there already is overridden.
        format : sequence of str, optional
            More arguments of the tool that formats its directory.
        """
        self.format(port, more=more, arguments=format)
        self.start_again(attached=attached)

    def format(self, port: int | None = None, *, more: str = "", arguments: Sequence[str] = ()) -> None:
        """Make its directory and its properties anew, and do not start it; the parameters are those of :meth:`start`."""
        self._check_stopped()
        data = self.directory / "data"
        shutil.rmtree(data, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        free, controller = free_ports(2)
        self._properties.write_text(PROPERTIES.format(port=port or free, controller=controller, data=data) + more)
        tool = ("kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER, "--config", str(self._properties))
        java(*tool, *arguments)

    def start_again(self, *, attached: bool = True) -> None:
        """Start a broker that was stopped, with what is on it, where it was."""
        self.launch(attached=attached)
        self.wait_until_it_answers()

    def launch(self, *, attached: bool = True) -> None:
        """Start a broker that was stopped, and do not wait until it answers."""
        self._check_stopped()
        with self._log.open("wb") as log:
            started = subprocess.Popen(
                [
                    *_java(
                        "letterhead.testing.broker.Attached" if attached else "kafka.Kafka", self._heap, self._options
                    ),
                    str(self._properties),
                ],
                stdin=subprocess.PIPE if attached else subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=not attached,  # an interrupt of the shell is not meant for it
            )
        self._started = started  # with its input, which lasts as long as this object, and not longer than this process
        self._pid.write_text(str(started.pid))

    def kill(self) -> None:
        """End it at once, as if its machine had failed: nothing is written any more, nobody is told."""
        process = self.process
        if process is None:
            raise RuntimeError(f"no broker runs in {self.directory}")
        process.kill()
        process.wait(STOP_LIMIT)
        self._pid.unlink()

    def stop(self) -> None:
        """Stop it, if it runs."""
        process = self.process
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_LIMIT)
            except psutil.TimeoutExpired:
                where = stacks(process.pid)
                process.kill()
                process.wait(5)
                raise RuntimeError(f"the broker did not stop in {STOP_LIMIT} s; its threads:\n{where}") from None
        self._pid.unlink(missing_ok=True)

    def _check_stopped(self) -> None:
        if self.process is not None:
            raise RuntimeError(f"a broker runs in {self.directory} already, at {self.address}")

    def wait_until_it_answers(self, limit: float = START_LIMIT) -> None:
        """Wait for a broker that was launched; raise RuntimeError if it ends, or does not answer in ``limit`` seconds."""
        started = self._started
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if started.poll() is not None:
                self._pid.unlink()
                raise RuntimeError(f"the broker ended with {started.returncode}:\n{self._log_end()}")
            if self._answers():
                return
            time.sleep(0.1)
        where = stacks(started.pid)
        started.kill()
        started.wait()
        self._pid.unlink()
        raise RuntimeError(f"no answer after {limit} s:\n{self._log_end()}\nits threads:\n{where}")

    def _answers(self) -> bool:
        # It listens some seconds before it knows that it is the broker of its cluster.
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        host, port = self.address.split(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
            return bool(AdminClient({"bootstrap.servers": self.address, "log_level": 3}).list_topics(timeout=5).brokers)
        except (OSError, KafkaException):
            return False

    def _log_end(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def java(program: str, *arguments: str, limit: float = 300.0) -> str:
    """Run a Java program of the broker's, or of the tests', to its end; give what it prints."""
    command = [*_java(program), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            where = stacks(process.pid)
            process.kill()
            raise RuntimeError(f"{program} took more than {limit} s; its threads:\n{where}") from None
    if process.returncode:
        raise RuntimeError(f"{program} ended with {process.returncode}:\n{err.decode(errors='replace')[-4000:]}")
    return out.decode()


def stacks(pid: int) -> str:
    """What every thread of a Java process is doing."""
    try:
        return subprocess.run(["jstack", str(pid)], check=False, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return repr(error)


def connector() -> str:
    """The jars that Spark needs to reach a broker, as ``spark.jars`` wants them."""
    check_built(BUILT)
    return ",".join(map(str, sorted((BUILT / "connector").glob("*.jar"))))


def _java(program: str, heap: str = "512m", options: Sequence[str] = ()) -> list[str]:
    check_built(BUILT)
    return [
        shutil.which("java") or "java",
        *(f"-Xmx{heap}", "-XX:+UseSerialGC", QUICK_JVM),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *options,
        *("-cp", f"{BUILT / 'classes'}:{BUILT / 'broker'}/*", program),
    ]
