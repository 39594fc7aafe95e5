"""Parse the address of an Apache Iggy server, with credentials and options: :class:`Address`."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["Address"]

_OPTIONS = ("tls", "tls_ca_file", "tls_domain", "protocol_version")
_PORT = 8090


class Address(NamedTuple):
    """Address of a server, with user and password or a token.

    Authentication announces ``protocol_version``, which may differ from the version of the frames that this client writes;
    the default is the version of the frames.
    """

    host: str
    port: int
    user: str
    password: str | None
    tls: bool
    tls_ca_file: str | None
    tls_domain: str | None
    protocol_version: int | None = None

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse ``iggy://user:password@host:port`` or ``iggy://token@host:port``; errors do not show the password."""
        address, path = cls.parse_with_path(url)
        if path not in ("", "/"):
            raise ValueError(
                "the address of an Iggy server ends after the port: pass the names of stream and topic apart"
            )
        return address

    @classmethod
    def parse_with_path(cls, url: str) -> tuple[Address, str]:
        """Parse an address that may be followed by a path, and return both."""
        if not isinstance(url, str):
            raise TypeError(f"the address of a server is a str, not {type(url).__name__}")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:  # not chained: its message may contain a part of the password
            host = None
        # urlsplit removes line ends and tabs, and a fragment begins where a # is not percent-encoded.
        valid = bool(host) and url.isprintable() and " " not in url and "#" not in url
        if not valid or not parts.username or parts.scheme not in ("iggy", "iggy+tcp"):
            raise ValueError(
                "the address of an Iggy server is iggy://user:password@host:port or iggy://token@host:port, with special "
                "characters of user, password and token percent-encoded (urllib.parse.quote(text, safe=''))"
            )
        options: dict[str, str] = {}
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name not in _OPTIONS:  # not named in the error: it may be a part of a password
                raise ValueError(f"an option of the address is unknown: the options are {', '.join(_OPTIONS)}")
            if name in options:
                raise ValueError(f"the option {name} of the address is repeated: give it once")
            options[name] = value
        tls = options.get("tls", "false").lower()
        if tls not in ("true", "false"):
            raise ValueError("the option tls of the address must be true or false")
        password = None if parts.password is None else unquote(parts.password)
        for part, value in (("user name or token", unquote(parts.username)), ("password", password or "")):
            if len(value.encode()) > 255:
                raise ValueError(f"the {part} of the address is longer than 255 bytes")
        address = cls(
            host or "", port or _PORT, unquote(parts.username), password, tls == "true", options.get("tls_ca_file"),
            options.get("tls_domain"), _parse_version(options.get("protocol_version")),
        )  # fmt: skip
        return address, parts.path

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


def _parse_version(text: str | None) -> int | None:
    if text is None:
        return None
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and int(part) < 1024 for part in parts):
        raise ValueError("the option protocol_version of the address is three numbers below 1024, such as 0.11.0")
    major, minor, patch = map(int, parts)
    return major << 20 | minor << 10 | patch
