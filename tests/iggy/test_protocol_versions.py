"""The login at a server that admits some versions of the protocol, as `core/binary_protocol/src/version.rs` of Iggy specifies."""

from __future__ import annotations

import contextlib
import socket
import struct

import pytest

from letterhead.iggy.address import Address
from letterhead.iggy.connection import ServerError
from tests.iggy.lying_server import HEADER_LEN, LyingServer, frame_of, read, request_key, write


def packed(version: str) -> int:
    major, minor, patch = map(int, version.split("."))
    return major << 20 | minor << 10 | patch


class GatedServer(LyingServer):
    """Admits versions from ``oldest`` to the minor version of ``newest``, and rejects others before it reads who logs in."""

    def __init__(self, oldest: str, newest: str) -> None:
        self._oldest, self._newest = packed(oldest), packed(newest)
        self.logins: list[int] = []
        super().__init__()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while True:
                request = frame_of(client)
                if request[176] == 1:
                    (version,) = struct.unpack_from("<I", request, HEADER_LEN)
                    self.logins.append(version)
                    if version < self._oldest or version >> 10 > self._newest >> 10:
                        client.sendall(self._eviction(request))
                        return
                client.sendall(self._replies[request_key(request)])

    def _eviction(self, request: bytes) -> bytes:
        header = bytearray(HEADER_LEN)
        struct.pack_into("<I8xB", header, 48, HEADER_LEN, 13)
        header[128:144] = request[128:144]
        struct.pack_into("<II", header, 144, self._newest, self._oldest)
        header[255] = 14
        return bytes(header)


@pytest.mark.parametrize(
    ("oldest", "newest", "logins"),
    [
        ("0.11.0", "0.11.4", ["0.11.0"]),
        ("0.10.0", "0.12.3", ["0.11.0"]),
        # Patches do not change frames.
        ("0.11.2", "0.12.0", ["0.11.0", "0.11.2"]),
    ],
)
def test_authentication_sends_version_that_server_accepts(oldest: str, newest: str, logins: list[str]) -> None:
    with GatedServer(oldest, newest) as server:
        assert read(server.address).num_rows == 6
        assert server.logins == [packed(version) for version in logins]


@pytest.mark.parametrize(("oldest", "newest"), [("0.12.0", "0.12.0"), ("0.9.0", "0.10.7"), ("1.11.0", "1.11.0")])
def test_unknown_server_version_error_names_all_versions(oldest: str, newest: str) -> None:
    message = rf"accepts the protocol from {oldest} to {newest}, and the login has 0\.11\.0: this version of letterhead writes"
    for use in (read, write):
        with GatedServer(oldest, newest) as server:
            with pytest.raises(ServerError, match=message) as raised:
                use(server.address)
            assert server.logins == [packed("0.11.0")]
        assert f"?protocol_version={oldest}" in str(raised.value)
        assert raised.value.status == 14


def test_version_in_address_is_sent_for_authentication() -> None:
    with GatedServer("0.12.0", "0.12.0") as server:
        assert read(f"{server.address}?protocol_version=0.12.0").num_rows == 6
        with pytest.raises(ServerError, match=r"the login has 0\.13\.1"):
            read(f"{server.address}?protocol_version=0.13.1")
        assert server.logins == [packed("0.12.0"), packed("0.13.1")]


@pytest.mark.parametrize("version", ["", "0.12", "0.12.1024", "0.12.x", "0.12.0.0", "-1.0.0"])
def test_malformed_version_is_rejected(version: str) -> None:
    with pytest.raises(ValueError, match=r"the option protocol_version of the address is three numbers below 1024"):
        Address.parse(f"iggy://u:p@h?protocol_version={version}")
