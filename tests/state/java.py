"""Kafka Streams' own stores, in a Java process that does what it is told: `tests/jvm` is the other side."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.versions import KAFKA, built, check_built

SERVER = "letterhead.testing.streams.StoreServer"
LIMIT = 300.0
"""Seconds that one command may take."""


class JavaError(Exception):
    """What a command raised in Java."""

    def __init__(self, exception: str, message: str | None, trace: str) -> None:
        super().__init__(f"{exception}: {message}\n{trace}")
        self.exception = exception
        self.message = message


class JavaServer:
    """A process that runs stores; its files, and what it prints, are in a directory of its own."""

    def __init__(self, directory: Path, version: str = KAFKA) -> None:
        java = shutil.which("java")
        if java is None:
            raise RuntimeError("these tests need Java: install JDK 17, so that `java` is on the PATH")
        programs = built("jvm-tests", version)
        check_built(programs)
        directory.mkdir(parents=True, exist_ok=True)
        self._printed = directory / "stderr"
        with self._printed.open("wb") as printed:
            self.process = subprocess.Popen(
                [
                    java,
                    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                    f"-Djava.io.tmpdir={directory}",
                    *("-cp", f"{programs / 'classes'}:{programs / 'lib'}/*", SERVER),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
            )
        self._stacks: str | None = None

    def ask(self, command: dict[str, Any], limit: float = LIMIT) -> Any:
        """Return the answer to a command; what takes too long ends the process, and says where its threads were."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        watch = threading.Timer(limit, self._too_late)
        watch.start()
        try:
            with suppress(BrokenPipeError):  # there will be no answer either
                self.process.stdin.write(json.dumps(command).encode() + b"\n")
                self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            watch.cancel()
        if not line.endswith(b"\n"):
            printed = self._printed.read_text(errors="replace")[-4000:]
            late = "" if self._stacks is None else f" after {limit} s; its threads:\n{self._stacks}"
            raise RuntimeError(f"Java gave no answer to {command['do']}{late}\nit ended with {self._end()}\n{printed}")
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(**answer["error"])
        return answer

    def kill(self) -> None:
        """End the process at once, as SIGKILL does."""
        self.process.kill()
        self.stop()

    def stop(self) -> None:
        """End the process by ending its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self._end()
        self.process.stdout.close()

    def _end(self) -> int:
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _too_late(self) -> None:
        try:
            self._stacks = subprocess.run(
                ["jstack", str(self.process.pid)], check=False, capture_output=True, text=True, timeout=10
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            self._stacks = repr(error)
        finally:
            self.process.kill()


class JavaStore:
    """One opening of a store in Java; `config` is what `traces.builder_of` takes, with the format said."""

    def __init__(self, server: JavaServer, task: Path, config: dict[str, Any]) -> None:
        self._server = server
        self._store = server.ask({"do": "open", "directory": str(task), "config": config})["store"]

    def step(self, record: dict[str, Any], ops: list[dict[str, Any]]) -> tuple[list[Any], list[dict[str, Any]]]:
        """What operations give while one record is handled, and what they log."""
        answer = self._server.ask({"do": "step", "store": self._store, "record": record, "ops": ops})
        return answer["results"], answer["changelog"]

    def close(self) -> list[dict[str, Any]]:
        """Close the store, and give what that logs."""
        return self._server.ask({"do": "close", "store": self._store})["changelog"]
