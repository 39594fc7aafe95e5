"""A server of Apache Iggy: on loopback, on free ports, with its files in one directory, stopped by its pid."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ports import free_ports

START_LIMIT = 300.0
STOP_LIMIT = 120.0
"""Seconds until a server that does not start or stop is ended."""

USER, PASSWORD = "iggy", "p@ss/word"
DURABLE = {"enforce_fsync": "true", "messages_required_to_save": "1", "size_of_messages_required_to_save": "512 B"}
"""Options of a topic that is written to disk before a batch is acknowledged."""


def program() -> str | None:
    """The server to start: the one that IGGY_SERVER names, or that of the PATH."""
    return os.environ.get("IGGY_SERVER") or shutil.which("iggy-server")


class Server:
    """A server whose files are in a directory.

    Parameters
    ----------
    directory : Path
        Where its data and its log are.
    environment : dict of str to str, optional
        More of its settings.
    """

    def __init__(self, directory: Path, environment: dict[str, str] | None = None) -> None:
        self.directory = directory.resolve()
        self.port, self.http = free_ports(2)
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"iggy://{USER}:p%40ss%2Fword@127.0.0.1:{self.port}"

    @property
    def partitions(self) -> Path:
        """The directory of its streams."""
        return self.directory / "local_data" / "streams"

    def start(self) -> None:
        """Start it, with the data that are there, and wait until it answers."""
        executable = program()
        assert executable is not None
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "IGGY_ROOT_USERNAME": USER, "IGGY_ROOT_PASSWORD": PASSWORD, "IGGY_TCP_ADDRESS": f"127.0.0.1:{self.port}",
            "IGGY_HTTP_ADDRESS": f"127.0.0.1:{self.http}", "IGGY_QUIC_ENABLED": "false",
            "IGGY_WEBSOCKET_ENABLED": "false", **self._environment,
        }  # fmt: skip
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [executable],
                cwd=self.directory,
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + START_LIMIT
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended with {self._process.returncode}:\n{self.log()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                self._token = self.call("POST", "/users/login", {"username": USER, "password": PASSWORD})[
                    "access_token"
                ]["token"]
                return
            except OSError:
                time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"the server does not answer after {START_LIMIT} s:\n{self.log()}")

    def stop(self) -> None:
        """Stop it by SIGTERM, so that it writes what it has in memory."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Stop it by SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
            raise RuntimeError(f"the server did not stop in {STOP_LIMIT} s:\n{self.log()}") from None

    def log(self) -> str:
        """The end of its log."""
        return (self.directory / "log").read_text(errors="replace")[-5000:]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call its HTTP interface."""
        headers = {"content-type": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None
        return json.loads(text) if text else None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the process for some time; the system still accepts connections."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def create(
        self, stream: str, topic: str, partitions: int = 1, options: dict[str, str] | None = None, expiry: int = 0
    ) -> None:
        """Create a topic, and its stream if that does not exist; messages expire after some microseconds, or never."""
        if stream not in {stream_info["name"] for stream_info in self.call("GET", "/streams")}:
            self.call("POST", "/streams", {"name": stream})
        body = {
            "name": topic, "partitions_count": partitions, "compression_algorithm": "none", "message_expiry": expiry,
            "max_topic_size": 0, "options": options or {},
        }  # fmt: skip
        self.call("POST", f"/streams/{stream}/topics", body)
