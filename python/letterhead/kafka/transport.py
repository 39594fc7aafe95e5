"""Replacements for kafka-python's sockets, response parser and token providers."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Iterable
from typing import Any, ClassVar

from kafka import errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.sasl import SaslMechanismGSSAPI, get_sasl_mechanism, register_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.oauth import AbstractTokenProvider

from letterhead._host_addresses import AddressInfo
from letterhead.kafka.iam import IamIdentity
from letterhead.kafka.kerberos import KerberosSettings
from letterhead.kafka.oauth import Tokens

__all__ = [
    "DirectSockets",
    "IamMechanism",
    "KeytabMechanism",
    "LargeReads",
    "LargeTlsReads",
    "SuppliedTokens",
    "OwnMechanism",
    "ResponseFrames",
]

_MAX_AUTHENTICATION_FRAME_LEN = 1 << 20
"""Size limit of a response before authentication."""

_READ_BYTES = 64 << 10
"""Bytes per read of a socket. kafka-python reads 4096 bytes, with which reading a whole topic takes 25 % longer."""


class _WithoutResponses(logging.Filter):
    """Filters log records of kafka-python about responses that cannot be decoded, because they contain users' data.

    The subsequent error describes the problem. Responses of other connections are logged as before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.decoding = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop a record about a response to letterhead, and keep all others."""
        return not (getattr(self.decoding, "is_ours", False) and "Unable to decode" in str(record.msg))


_without_responses = _WithoutResponses()


class _EndAfterData:
    """Reports the end of a connection in a separate read.

    kafka-python reads until nothing is left, and drops the data if the connection was closed meanwhile. A broker closes
    the connection right after it sent the reason for rejecting credentials.
    """

    _has_data = False

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive up to 64 KiB, even if the caller requests less."""
        data: bytes = super().recv(max(size, _READ_BYTES), flags)  # type: ignore[misc]
        if not data and self._has_data:
            self._has_data = False
            raise BlockingIOError
        self._has_data = bool(data)
        return data


class LargeReads(_EndAfterData, socket.socket):
    """A socket without TLS."""


class LargeTlsReads(_EndAfterData, ssl.SSLSocket):  # type: ignore[misc]
    """A socket with TLS."""


class DirectSockets(KafkaNetSocket):  # type: ignore[misc]
    """Connections without a proxy; kafka-python selects this class by the scheme of ``proxy_url``."""

    SCHEMES = ("letterhead",)
    addresses: ClassVar[dict[tuple[str, int], list[AddressInfo]]] = {}
    """Addresses of hosts, looked up in advance because kafka-python's own lookup blocks its thread."""

    def dns_lookup(self, host: str, port: int, raise_error: bool = False) -> list[AddressInfo]:
        """Return the addresses that were looked up in advance."""
        return self.addresses.get((host, port), [])

    def socket(self, family: int, sock_type: int, proto: int) -> socket.socket:
        """Return a new socket."""
        return LargeReads(family, sock_type, proto)


class SuppliedTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Supplies kafka-python with a token for each authentication."""

    def __init__(self, tokens: Tokens) -> None:
        super().__init__()
        self._tokens = tokens

    def token(self) -> str:
        """Return a currently valid token."""
        return self._tokens.current().text

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions of the authentication."""
        return self._tokens.extensions


class IamMechanism(SaslMechanism):  # type: ignore[misc]
    """Authentication by ``AWS_MSK_IAM``; kafka-python's version lacks roles, and reads the region only from the environment."""

    def __init__(self, identity: IamIdentity, host: str) -> None:
        self._identity, self._host = identity, host
        self._is_done = False
        self._is_authenticated = False

    @classmethod
    def of_config(cls, **config: Any) -> SaslMechanism:
        """Return the exchange for a connection."""
        identity: IamIdentity = config["sasl_oauth_token_provider"]
        return cls(identity, config["host"])

    def auth_bytes(self) -> bytes:
        """Return the signed request."""
        return self._identity.payload(self._host)

    def receive(self, auth_bytes: bytes) -> None:
        """Note whether the broker accepted: a successful response contains the request id."""
        self._is_done, self._is_authenticated = True, bool(auth_bytes)

    def is_done(self) -> bool:
        """Return whether the broker has answered."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Return whether the broker has accepted the request."""
        return self._is_authenticated


class KeytabMechanism(SaslMechanismGSSAPI):  # type: ignore[misc]
    """SASL exchange of ``GSSAPI`` with a keytab. kafka-python's own only uses the ticket of ``kinit``."""

    def __init__(self, settings: KerberosSettings, **config: Any) -> None:
        import gssapi

        self._is_done = False
        self._is_authenticated = False
        host = config.get("sasl_kerberos_domain_name") or config["host"]
        self.auth_id = config.get("sasl_kerberos_name") or f"{config['sasl_kerberos_service_name']}@{host}"
        service = gssapi.Name(self.auth_id, gssapi.NameType.hostbased_service).canonicalize(gssapi.MechType.kerberos)
        # The ticket cache is in memory, because the cache of kinit may belong to another user.
        store = {"client_keytab": settings.keytab, "ccache": f"MEMORY:letterhead-{id(self)}"}
        user = None if settings.principal is None else gssapi.Name(settings.principal, gssapi.NameType.user)
        credentials = gssapi.Credentials(name=user, usage="initiate", store=store)
        self._client_ctx = gssapi.SecurityContext(name=service, creds=credentials, usage="initiate")
        self._next_token = self._client_ctx.step(None)

    @classmethod
    def of_config(cls, **config: Any) -> SaslMechanism:
        """Return the exchange for a connection; without a keytab, kafka-python's own."""
        settings: KerberosSettings | None = config["sasl_oauth_token_provider"]
        if settings is None or settings.keytab is None:
            return get_sasl_mechanism("GSSAPI")(**config)
        return cls(settings, **config)


class OwnMechanism(str):
    """Registered name of a mechanism that replaces kafka-python's own; requests contain the plain name."""

    def __hash__(self) -> int:
        return hash((OwnMechanism, str(self)))

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True

    @classmethod
    def named(cls, name: str) -> str:
        """Return the name under which letterhead registered a mechanism; unchanged if it uses kafka-python's."""
        return _OWN_MECHANISMS.get(name, name)


_OWN_MECHANISMS = {name: OwnMechanism(name) for name in ("AWS_MSK_IAM", "GSSAPI")}
register_sasl_mechanism(_OWN_MECHANISMS["AWS_MSK_IAM"], IamMechanism.of_config)
register_sasl_mechanism(_OWN_MECHANISMS["GSSAPI"], KeytabMechanism.of_config)


class ResponseFrames:
    """Passes complete responses to a connection.

    kafka-python allocates the announced size of a response at once, and silently stops reading a connection after most
    errors in a response.
    """

    def __init__(self, connection: Any, max_bytes: int) -> None:
        logging.getLogger("kafka.protocol.parser").addFilter(_without_responses)
        self._connection = connection
        self._receive = connection.data_received
        self._max_bytes = max_bytes
        self._size = b""  # bytes received so far of the next response's size field
        self._pieces: list[Any] = []
        self._missing: int  # bytes still to come of the current response

    def __call__(self, data: bytes) -> None:
        """Process received bytes."""
        left = memoryview(data)
        while left:
            if not self._pieces:
                count = 4 - len(self._size)
                self._size, left = self._size + bytes(left[:count]), left[count:]
                if len(self._size) < 4:
                    return
                self._pieces, self._missing, self._size = [self._size], self._checked(self._size), b""
            piece, left = left[: self._missing], left[self._missing :]
            self._pieces.append(piece)
            self._missing -= len(piece)
            if not self._missing:
                pieces, self._pieces = self._pieces, []
                self._pass_on(pieces)

    def _checked(self, size: bytes) -> int:
        announced = int.from_bytes(size, "big", signed=True)
        max_bytes = _MAX_AUTHENTICATION_FRAME_LEN if self._connection.initializing else self._max_bytes
        if not 0 <= announced <= max_bytes:
            raise kafka_errors.InvalidReceiveError(
                f"a response of {announced} bytes, where at most {max_bytes} are expected"
            )
        return announced

    def _pass_on(self, pieces: Iterable[Any]) -> None:
        _without_responses.decoding.is_ours = True
        try:
            for piece in pieces:
                self._receive(piece)
        except kafka_errors.KafkaProtocolError:
            raise
        except Exception as error:
            raise kafka_errors.KafkaProtocolError(f"it cannot be decoded ({type(error).__name__})") from error
        finally:
            _without_responses.decoding.is_ours = False
