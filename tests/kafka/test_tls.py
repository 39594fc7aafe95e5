"""Settings of TLS as contexts, in handshakes without a network; and a server whose certificate is not trusted."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

import letterhead as lh
from letterhead.kafka.tls import TlsSettings, ssl_context
from tests.kafka import secured


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an authority, and with a key and a certificate that it signed."""
    directory = tmp_path_factory.mktemp("tls")
    key, certificate = secured.authority(directory / "authority.pem")
    secured.signed(directory / "own.pem", key, certificate)
    return directory


def server_context(store: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(store / "own.pem")
    return context


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLObject:
    """Connect two contexts in memory; return the server's side."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(down, up, server_hostname="127.0.0.1"), server.wrap_bio(up, down, server_side=True)]
    for _ in range(4):
        for side in sides:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert sides[0].version() is not None
    return sides[1]


def test_system_authorities_are_trusted_by_default(store: Path) -> None:
    context = ssl_context(TlsSettings())
    assert context.cert_store_stats() == ssl.create_default_context().cert_store_stats()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, server_context(store))


def test_authorities_are_read_from_file_directory_or_text(store: Path, tmp_path: Path) -> None:
    authority = store / "authority.pem"
    (tmp_path / "authority.pem").write_bytes(authority.read_bytes())
    subprocess.run(["openssl", "rehash", tmp_path], check=True)
    for settings in (
        TlsSettings(trusted_location=str(authority)),
        TlsSettings(trusted_location=str(tmp_path)),
        TlsSettings(trusted_pem=authority.read_text()),
    ):
        handshake(ssl_context(settings), server_context(store))


@pytest.mark.parametrize("as_text", [False, True])
def test_encrypted_key_is_read_with_password(store: Path, tmp_path: Path, as_text: bool) -> None:
    key = serialization.load_pem_private_key((store / "own.pem").read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"key-password"),
    )
    (tmp_path / "key.pem").write_bytes(encrypted)
    trusted = {"trusted_location": str(store / "authority.pem")}
    own = (
        {"own_certificates_pem": (store / "own.pem").read_text(), "own_key_pem": encrypted.decode()}
        if as_text
        else {"own_location": str(store / "own.pem"), "own_key_location": str(tmp_path / "key.pem")}
    )
    server = server_context(store)
    server.load_verify_locations(store / "authority.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl_context(TlsSettings(**trusted, **own, key_password="key-password"))
    assert handshake(client, server).getpeercert() is not None
    for wrong in ("another", None):
        with pytest.raises(ValueError, match="a certificate or its key cannot be read"):
            ssl_context(TlsSettings(**trusted, **own, key_password=wrong))


def test_server_with_untrusted_certificate_is_tried_once(store: Path) -> None:
    connections = []
    context = server_context(store)

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                connections.append(client)
                with contextlib.suppress(OSError), context.wrap_socket(client, server_side=True):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        settings = {"bootstrap.servers": address, "security.protocol": "SSL"}
        with pytest.raises(ConnectionError, match=f"the certificate of {address} is not trusted"):
            lh.read.topic("orders", settings=settings, timeout_ms=20_000).read_all()
        listener.shutdown(socket.SHUT_RDWR)
    assert len(connections) == 1


MANY_ROUNDS = (1 << 31) - 1


def der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    assert len(content) < 128
    return bytes([tag, len(content)]) + content


def indefinite(tag: int, *contents: bytes) -> bytes:
    return bytes([tag, 0x80]) + b"".join(contents) + bytes(2)


def encrypted_key(rounds: int, salt: bytes = der(4, bytes(8)), der: Callable[..., bytes] = der) -> bytes:
    """Return an encrypted key whose derivation states its rounds; its content is not a key."""
    pbkdf2, pbes2, aes = (
        bytes.fromhex(text) for text in ("2a864886f70d01050c", "2a864886f70d01050d", "60864801650304012a")
    )
    number = rounds.to_bytes(5, "big")
    derivation = der(0x30, der(6, pbkdf2), der(0x30, salt, der(2, number)))
    cipher = der(0x30, der(6, aes), der(4, bytes(16)))
    return der(0x30, der(0x30, der(6, pbes2), der(0x30, derivation, cipher)), der(4, bytes(32)))


def as_pem(data: bytes) -> str:
    return f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{base64.encodebytes(data).decode()}-----END ENCRYPTED PRIVATE KEY-----\n"


def test_key_that_takes_hours_to_decrypt_is_rejected(tmp_path):
    path = tmp_path / "key.pem"
    for rounds in (10_000_001, MANY_ROUNDS):
        path.write_text(as_pem(encrypted_key(rounds)))
        (tmp_path / "key.p12").write_bytes(encrypted_key(rounds))
        for settings in (
            TlsSettings(own_location=str(path), key_password="x"),
            TlsSettings(own_location=str(tmp_path / "key.p12"), own_password="x"),
            TlsSettings(own_key_pem=path.read_text(), own_certificates_pem="x", key_password="x"),
        ):
            with pytest.raises(ValueError, match="takes more than 10,000,000 rounds: encrypt it again with fewer"):
                ssl_context(settings)
    path.write_text(as_pem(encrypted_key(1000)))
    with pytest.raises(ValueError, match="cannot be read"):  # it is no key, but that takes no time
        ssl_context(TlsSettings(own_location=str(path), key_password="x"))


def long_tag(tag: int, *contents: bytes) -> bytes:
    return bytes([tag | 31, 0x80, tag & 31]) + longer_length(tag, *contents)[1:]


def longer_length(tag: int, *contents: bytes) -> bytes:
    return bytes([tag, 0x84]) + len(b"".join(contents)).to_bytes(4, "big") + b"".join(contents)


def mixed(tag: int, *contents: bytes) -> bytes:
    return indefinite(tag, *contents) if tag == 0x30 else der(tag, *contents)


@pytest.mark.parametrize(
    "text",
    [
        as_pem(encrypted_key(MANY_ROUNDS) + b"\0"),
        as_pem(encrypted_key(MANY_ROUNDS, der=mixed) + b"\x30\5"),
        as_pem(encrypted_key(MANY_ROUNDS, salt=der(0x24, der(4, bytes(8))))),
        as_pem(encrypted_key(MANY_ROUNDS, salt=indefinite(0x24, der(4, bytes(8))))),
        as_pem(encrypted_key(MANY_ROUNDS, der=long_tag)),
        as_pem(encrypted_key(MANY_ROUNDS, der=longer_length)),
        as_pem(encrypted_key(MANY_ROUNDS)).replace("\n-----END", "-\n-----END"),
    ],
)
def test_key_iterations_are_found_like_openssl_does(text):
    with pytest.raises(ValueError, match="takes more than 10,000,000 rounds"):
        ssl_context(TlsSettings(own_key_pem=text, own_certificates_pem="x", key_password="x"))


@pytest.mark.parametrize("data", [b"\x30\x80" * 100_000, b"\x30\x82\1\0" * 50_000, b"\x1f" * 100_000, b"\x30\xff", b""])
def test_malformed_key_fails_fast(data):
    start = time.monotonic()
    for text in (as_pem(data), as_pem(data).replace("\n-----END", "A\n-----END")):
        with pytest.raises(ValueError, match="cannot be read"):
            ssl_context(TlsSettings(own_key_pem=text, own_certificates_pem="x", key_password="x"))
    assert time.monotonic() - start < 5


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["trusted_location", "own_location", "own_key_location", "revoked_location"])
def test_pipe_is_rejected_as_key_store(name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"cannot be read .*: .*not a regular file"):
        ssl_context(TlsSettings(**{name: str(tmp_path / "pipe")}))
