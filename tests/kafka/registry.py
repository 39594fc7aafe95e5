"""A schema registry of its own: Apicurio on loopback, on free ports, with its schemas in memory."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.kafka import secured
from tests.kafka.broker import QUICK_JVM, START_LIMIT
from tests.kafka.identity import AUDIENCE, Identity
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
    provider : Identity, optional
        Issuer of the tokens that it wants. It gets one itself for a user and a password.

    Attributes
    ----------
    url, tls_url, own_url : str
        Where it has the API of Confluent's registry, without and with TLS, and its own.
    authority, client : Path
        PEM: the authority that signed its certificate; key and certificate of a client.
    """

    def __init__(
        self, directory: Path, port: int | None = None, *, attached: bool = True, provider: Identity | None = None
    ) -> None:
        check_built(BUILT)
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = directory / "authority.pem"
        own, self.client = directory / "own.pem", directory / "client.pem"
        self.own = own
        key, certificate = secured.authority(self.authority)
        for path in (own, self.client):
            secured.signed(path, key, certificate)
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
                    *_login_options(directory, provider),
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
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the registry does not answer:\n{log.read_text(errors='replace')[-4000:]}")


def _login_options(directory: Path, provider: Identity | None) -> list[str]:
    if provider is None:
        return []
    store, password = directory / "provider.p12", "store-password"
    options = [
        "-importcert",
        "-noprompt",
        "-file",
        str(provider.authority),
        "-keystore",
        str(store),
        "-storepass",
        password,
    ]
    subprocess.run([shutil.which("keytool") or "keytool", *options], check=True, capture_output=True)
    return [
        *("-Dregistry.auth.enabled=true", "-Dregistry.auth.role-based-authorization=true"),
        *(f"-Dquarkus.oidc.auth-server-url={provider.url}", f"-Dquarkus.oidc.token.audience={AUDIENCE}"),
        "-Dregistry.auth.basic-auth-client-credentials.enabled=true",
        # Apicurio appends a slash to the address, which the provider does not know.
        f"-Dregistry.auth.token.endpoint={provider.endpoint}?",
        *(f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={password}"),
    ]


class CertificateGate:
    """Accepts connections over TLS from clients with a certificate only, and passes them to a registry."""

    def __init__(self, registry: Apicurio) -> None:
        self._target = urllib.parse.urlsplit(registry.url)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=registry.authority)
        context.load_cert_chain(registry.own)
        context.verify_mode = ssl.CERT_REQUIRED
        self._context, self._listener = context, socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}{self._target.path}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _serve(self) -> None:
        while self._listener.fileno() >= 0:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._connect, args=(plain,), daemon=True).start()

    def _connect(self, plain: socket.socket) -> None:
        client = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        try:
            client.do_handshake()
        except OSError:
            # The client reads why before the connection ends.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(client, socket.SHUT_WR)
                while socket.socket.recv(client, 1 << 16):
                    pass
            client.close()
            return
        server = socket.create_connection((self._target.hostname, self._target.port))
        threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()
        _pass_on(client, server)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        sink.close()
