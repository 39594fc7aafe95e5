"""TCP connection to an Apache Iggy server: framing and authentication.

::

    request  ┌──────────┬──────────┬──────────┬──────┬──────────┬──────────┬─────────────┬────────────┬─────────────┐
             │ 48 zeros │ u32 size │ 8 zeros  │ u8 5 │ 67 zeros │ u128     │ 24 zeros    │ u64        │ u8          │
             │          │          │          │      │          │ client   │             │ request    │ operation   │
             ├──────────┴──┬───────┴─────┬────┴──────┴───┬──────┴──────────┴─┬───────────┴────────────┴─────────────┘
         177 │ 7 zeros     │ u64 session │ 4 zeros       │ u32 command       │ 56 zeros, then the body
             └─────────────┴─────────────┴───────────────┴───────────────────┘
    reply    ┌──────────┬──────────┬──────────┬──────┬───────────┬──────────────┬────────────┬──────────┐
             │ 48 zeros │ u32 size │ 8 bytes  │ u8 8 │ 139 bytes │ u64 request, │ 7 zeros    │ u32      │ 36 zeros,
             │          │          │          │      │           │ u8 operation │            │ status   │ then the body
             └──────────┴──────────┴──────────┴──────┴───────────┴──────────────┴────────────┴──────────┘
    eviction   the same up to byte 60, which is 13; the reason is the last byte; at 144 the versions that are accepted

Little-endian. The header has 256 bytes, which are included in the size. The client is a random number. Authentication
is operation 1 and registers the client; its reply contains the session for later requests. Read-only commands are
operation 2, with the code of the command at byte 196; messages are sent by operation 160. A reply repeats operation and
request.

These are the frames of protocol version 0.11, verified against server 0.9.0-edge.5. A server checks the minor version of
the protocol during authentication, and rejects other clients with the list of versions that it accepts.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time

from letterhead._host_addresses import addresses_of
from letterhead.errors import LetterheadError, ProtocolError
from letterhead.iggy.address import Address

__all__ = ["READ", "SEND", "SHORT_REPLY", "Connection", "ServerError", "TooLarge", "length_prefixed"]

REGISTER, READ, SEND = 1, 2, 160
"""Operations: authentication, read-only commands, and messages to append."""

SHORT_REPLY = 4096
"""Size limit of short replies. It also limits what a server can send before authentication."""

_WAIT = 0.5
"""Seconds of one wait for bytes. It is short, because Python may handle a signal only after the wait."""

_HEADER_LEN = 256
_PIECE_LEN = 64 << 10
_REQUEST, _REPLY, _EVICTION = 5, 8, 13
_LOGIN, _LOGIN_WITH_TOKEN = 40, 45
_FRAME_VERSIONS = (11 << 10,)
"""Protocol versions supported by this client, with ten bits per number; patch versions do not change frames."""

_TRANSIENT = (57, 58)
_NOT_ALLOWED = {
    40: "the login was refused",
    41: "the user has no permission for this",
    42: "the user name or the password is wrong",
    43: "the user name is invalid",
    44: "the password is invalid",
    47: "the user is not active",
    53: "the personal access token is wrong",
    54: "the personal access token has expired",
}
_EVICTED = {9: 42, 10: 53, 11: 47}
"""Status of each eviction reason that is an authentication error."""

_INCOMPATIBLE, _MALFORMED_LOGIN = 14, 15


class ServerError(LetterheadError, RuntimeError):
    """Error returned by a server; ``status`` is its number in Iggy's own library."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Incompatible(ServerError):
    """Error for a rejected protocol version; the server accepts versions from ``oldest`` to ``newest``."""

    def __init__(self, message: str, status: int, oldest: int, newest: int) -> None:
        super().__init__(message, status)
        self.oldest = oldest
        self.newest = newest


class TooLarge(ProtocolError):
    """Error for a reply above the size limit; the reply was not read."""


class Connection:
    """Authenticated connection, unusable after any error except :class:`ServerError` and PermissionError.

    Parameters
    ----------
    address : Address
        Address of the server.
    until : float
        Deadline in seconds of ``time.monotonic``.
    """

    def __init__(self, address: Address, deadline: float) -> None:
        self._address = address
        self._client = os.urandom(15) + b"\1"  # not zero
        self._session = 0
        self._operation = REGISTER
        self._buffer = bytearray()
        self._version = _FRAME_VERSIONS[0] if address.protocol_version is None else address.protocol_version
        try:
            self._open(deadline)
        except _Incompatible as error:
            accepted = _choose_version(error.oldest, error.newest)
            if address.protocol_version is not None or accepted in (None, self._version):
                raise
            self._version = accepted
            self._open(deadline)

    def _open(self, deadline: float) -> None:
        """Connect, and authenticate with the protocol version."""
        address = self._address
        self._socket = _connect(address, deadline)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls:
                context = ssl.create_default_context(cafile=address.tls_ca_file)
                context.minimum_version = ssl.TLSVersion.TLSv1_2
                self._socket.settimeout(_seconds_left(deadline))
                self._socket = context.wrap_socket(self._socket, server_hostname=address.tls_domain or address.host)
            self._login(deadline)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, operation: int, command: int, body: bytes, deadline: float) -> None:
        """Send a request."""
        size = _HEADER_LEN + len(body)
        header = bytearray(_HEADER_LEN)
        struct.pack_into("<I8xB", header, 48, size, _REQUEST)
        header[128:144] = self._client
        request = _request_number(operation)
        struct.pack_into("<QB7xQ4xI", header, 168, request, operation, self._session, command * (operation == READ))
        self._operation = operation
        self._send(header, deadline)
        self._send(body, deadline)

    def receive(self, deadline: float, max_bytes: int) -> memoryview:
        """Receive the body of a reply, of at most ``max_bytes``; the next reply overwrites it.

        Raises
        ------
        ServerError, PermissionError
            If the server responds with an error.
        ConnectionError, TimeoutError
            If the connection or the session ends; the request can be repeated on another connection.
        TooLarge
            If the body exceeds ``max_bytes``.
        ProtocolError
            If the server sends anything other than the reply to the last request.
        """
        header = self._receive(_HEADER_LEN, deadline)
        size, command = struct.unpack_from("<I8xB", header, 48)
        if command == _EVICTION:
            raise self._evicted(header)
        if command != _REPLY or size < _HEADER_LEN:
            raise ProtocolError(f"{self._address} does not answer as a server of Iggy 0.9 or later does")
        (status,) = struct.unpack_from("<I", header, 216)
        if struct.unpack_from("<QB", header, 200) != (_request_number(self._operation), self._operation):
            raise ProtocolError(f"{self._address} sent the reply to another request")
        if size - _HEADER_LEN > max_bytes:
            raise TooLarge(
                f"{self._address} announces a reply of {size - _HEADER_LEN} bytes, where at most {max_bytes} are expected"
            )
        body = self._receive(size - _HEADER_LEN, deadline)
        if self._operation == REGISTER and len(body) >= 12:  # the body of an authentication reply contains the status
            status = 0 if body[:4] == bytes(4) else struct.unpack_from("<I", body, 8)[0]
        if status:
            raise self._error(status)
        return body

    def _send(self, data: bytes | bytearray, deadline: float) -> None:
        # Over TLS, a socket timeout does not limit a call of `sendall` as a whole.
        left = memoryview(data)
        while left:
            self._socket.settimeout(_seconds_left(deadline))
            left = left[self._socket.send(left) :]

    def _receive(self, size: int, deadline: float) -> memoryview:
        done = 0
        while done < size:
            if done == len(self._buffer):
                # The buffer grows with the received bytes, not with the announced size.
                larger = bytearray(min(size, max(2 * done, _PIECE_LEN)))
                larger[:done] = self._buffer
                self._buffer = larger
            self._socket.settimeout(min(_seconds_left(deadline), _WAIT))
            try:
                count = self._socket.recv_into(memoryview(self._buffer)[done:size])
            except TimeoutError:
                continue
            if not count:
                raise ConnectionError(f"{self._address} closed the connection")
            done += count
        return memoryview(self._buffer)[:size]

    def _login(self, deadline: float) -> None:
        version = struct.pack("<I", self._version) + length_prefixed("letterhead") + length_prefixed("1")
        user, password = self._address.user, self._address.password
        credentials = length_prefixed(user) + (b"" if password is None else length_prefixed(password))
        command = _LOGIN_WITH_TOKEN if password is None else _LOGIN
        self.send(REGISTER, command, version + credentials + bytes(4), deadline)
        body = self.receive(deadline, SHORT_REPLY)
        if not body:
            raise self._error(40)
        if len(body) < 16:
            raise ProtocolError(f"{self._address} sent a reply to the login that ends too early")
        (self._session,) = struct.unpack_from("<Q", body, 8)

    def _evicted(self, header: memoryview) -> Exception:
        reason = header[-1]
        if reason in _EVICTED:
            return self._error(_EVICTED[reason])
        if reason == _MALFORMED_LOGIN:
            return ServerError(
                f"{self._address} cannot read the login of protocol {_version_text(self._version)}", reason
            )
        if reason == _INCOMPATIBLE:
            newest, oldest = struct.unpack_from("<II", header, 144)
            written = ", ".join(_version_text(version).rpartition(".")[0] for version in _FRAME_VERSIONS)
            return _Incompatible(
                f"{self._address} accepts the protocol from {_version_text(oldest)} to {_version_text(newest)}, and the "
                f"login has {_version_text(self._version)}: this version of letterhead writes frames of {written}; update "
                f"it, or if these frames are the same, add ?protocol_version={_version_text(oldest)} to the address",
                reason, oldest, newest,
            )  # fmt: skip
        return ConnectionError(f"{self._address} ended the session (reason {reason})")

    def _error(self, status: int) -> Exception:
        if status in _TRANSIENT:
            return ConnectionError(f"{self._address} does not accept requests at the moment (error {status})")
        if status in _NOT_ALLOWED:
            return PermissionError(f"{self._address}: {_NOT_ALLOWED[status]}")
        return ServerError(f"{self._address} refuses the request with error {status}", status)


def _version_text(version: int) -> str:
    return ".".join(str(version >> bits & 1023) for bits in (20, 10, 0))


def _choose_version(oldest: int, newest: int) -> int | None:
    """Return a protocol version that both the server and this client support, or None."""
    for version in _FRAME_VERSIONS:
        accepted = max(version, oldest)
        if accepted >> 10 == version >> 10 <= newest >> 10:
            return accepted
    return None


def length_prefixed(text: str) -> bytes:
    """Return text of at most 255 bytes, preceded by its length in one byte."""
    data = text.encode()
    return bytes((len(data),)) + data


def _request_number(operation: int) -> int:
    """Return the number of a request: a constant, because a connection sends one request at a time."""
    return 0 if operation == REGISTER else 1


def _connect(address: Address, deadline: float) -> socket.socket:
    """Connect to the first reachable address of a host; all attempts share the remaining time."""
    addresses = addresses_of(address.host, address.port, _seconds_left(deadline))
    failure: OSError = ConnectionError(f"{address.host} has no address")
    for index, (family, kind, protocol, _, endpoint) in enumerate(addresses):
        client = socket.socket(family, kind, protocol)
        try:
            client.settimeout(_seconds_left(deadline) / (len(addresses) - index))
            client.connect(endpoint)
        except OSError as error:
            client.close()
            failure = error
        except BaseException:
            client.close()
            raise
        else:
            return client
    raise failure


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no time is left")
    return left
