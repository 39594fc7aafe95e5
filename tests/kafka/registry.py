"""A schema registry of its own: Apicurio on loopback, on free ports, with its schemas in memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.kafka import secured
from tests.kafka.broker import QUICK_JVM, START_LIMIT
from tests.ports import free_ports
from tests.versions import ROOT, check_built

BUILT = ROOT / "target" / "registry"


class Apicurio:
    """A registry that ends when this process stops it.

    Parameters
    ----------
    directory : Path
        Where its certificate, its log and its pid are.
    port : int, optional
        Where it listens without TLS; by default where nobody does.
    attached : bool, default True
        Whether an interrupt of the shell ends it, too.

    Attributes
    ----------
    url, tls_url, own_url : str
        Where it has the API of Confluent's registry, without and with TLS, and its own.
    authority : Path
        PEM: the authority that signed its certificate.
    """

    def __init__(self, directory: Path, port: int | None = None, *, attached: bool = True) -> None:
        check_built(BUILT)
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = directory / "authority.pem"
        own = directory / "own.pem"
        key, certificate = secured.authority(self.authority)
        secured.signed(own, key, certificate)
        free, tls_port = free_ports(2)
        port = port or free
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        self.own_url = f"http://127.0.0.1:{port}/apis/registry/v2"
        self.tls_url = f"https://127.0.0.1:{tls_port}/apis/ccompat/v7"
        [program] = BUILT.glob("*-runner.jar")
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(shutil.which("java") or "java", QUICK_JVM, "-Xmx512m", "-XX:+UseSerialGC"),
                    *("-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"),
                    *(f"-Dquarkus.http.ssl-port={tls_port}", f"-Dquarkus.http.ssl.certificate.files={own}"),
                    f"-Dquarkus.http.ssl.certificate.key-files={own}",
                    *("-jar", str(program)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=not attached,
            )
        self._wait(directory / "log")
        (directory / "pid").write_text(str(self._process.pid))
        (directory / "url").write_text(self.url)

    def register(
        self, subject: str, schema: Any, *, kind: str = "AVRO", references: dict[str, str] | None = None
    ) -> int:
        """Register a schema, without the code under test; ``references`` are names of schemas by their subject."""
        body = {
            "schema": schema if isinstance(schema, str) else json.dumps(schema),
            "schemaType": kind,
            "references": [
                {"name": name, "subject": where, "version": 1} for where, name in (references or {}).items()
            ],
        }
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            number: int = json.load(response)["id"]
            return number

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _wait(self, log: Path) -> None:
        until = time.monotonic() + START_LIMIT
        while time.monotonic() < until and self._process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/subjects", timeout=5).close()
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the registry does not answer:\n{log.read_text(errors='replace')[-4000:]}")
