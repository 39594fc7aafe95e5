"""Obtain tokens for OAUTHBEARER and renew them before they expire: :class:`Tokens`.

A token comes from a function, a setting, a file, or an identity provider with the client credentials of OAuth 2.0
(RFC 6749, section 4.4). Error messages contain neither tokens nor secrets.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from letterhead._warnings import warn
from letterhead.kafka.http_connections import Deadline, failure_reason, is_temporary, open_with
from letterhead.kafka.tls import TlsSettings, ssl_context

__all__ = ["CredentialSource", "OAuthSettings", "Token", "TokenProvider", "Tokens"]

TokenProvider: TypeAlias = Callable[[], str]
"""Function that returns an unexpired token."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAX_BYTES = 1 << 20
_TRIES = 3
_REQUEST_SECONDS = 10.0
_WITHOUT_EXPIRY_SECONDS = 300.0
"""Lifetime assumed for a token without an expiry."""

_MOST_SECONDS = 365 * 86_400.0
"""Upper limit of a token's lifetime; tokens are renewed earlier anyway."""

_RENEWED_AFTER = 0.8
"""Fraction of a token's lifetime after which it is renewed, as in Kafka's Java client."""

_PAUSE_SECONDS = 5.0
"""Pause between attempts to renew a token that is still valid."""


@dataclass(frozen=True, repr=False)
class OAuthSettings:
    """Source of tokens; raises ValueError unless the settings name exactly one."""

    provider: TokenProvider | None = None
    token: str | None = None
    endpoint: str | None = None  # https:, http:, or file: with the path of a token file
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    url_encodes: bool = False  # whether id and secret are URL-encoded in the header, as RFC 6749 requires
    extensions: Mapping[str, str] = field(default_factory=dict)
    tls: TlsSettings = field(default_factory=TlsSettings)  # for connections to the endpoint
    prefix: str = ""

    def __repr__(self) -> str:
        return "<settings of OAUTHBEARER>"

    def __post_init__(self) -> None:
        names = f"{self.prefix}sasl.oauthbearer"
        sources = [source for source in (self.provider, self.token, self.endpoint) if source is not None]
        if len(sources) != 1:
            provider = "" if self.prefix else "token_provider=, "
            raise ValueError(
                f"OAUTHBEARER needs {'one source' if sources else 'a source'} of tokens: pass {provider}"
                f"{names}.token.endpoint.url, or {names}.token"
            )
        if self.endpoint is None:
            return
        scheme = urllib.parse.urlsplit(self.endpoint).scheme
        if scheme not in ("https", "http", "file"):
            raise ValueError(f"{names}.token.endpoint.url must begin with https:, http: or file:")
        if scheme == "http" and urllib.parse.urlsplit(self.endpoint).hostname not in _LOOPBACK:
            warn(
                f"{names}.token.endpoint.url begins with http:, so client id and secret are sent in clear text: use https:"
            )
        if scheme != "file" and not (self.client_id and self.client_secret):
            raise ValueError(
                f"{names}.token.endpoint.url needs {names}.client.credentials.client.id and "
                f"{names}.client.credentials.client.secret, or clientId and clientSecret in {self.prefix}sasl.jaas.config"
            )


class Token(NamedTuple):
    """Token with its expiry in seconds since 1970."""

    text: str
    expires: float

    def __repr__(self) -> str:
        return "<token of OAUTHBEARER>"


class CredentialSource(Protocol):
    """Obtains credentials, and renews them before they expire."""

    @property
    def is_due(self) -> bool:
        """Whether credentials must be obtained or renewed before the next authentication, which can take seconds."""

    def current(self, seconds: float = ...) -> object:
        """Return valid credentials; if they are due, obtain them within about ``seconds``."""


class Tokens:
    """Current token of a client, shared by threads."""

    def __init__(self, settings: OAuthSettings) -> None:
        self.extensions = dict(settings.extensions)
        self._settings = settings
        self._token: Token | None = None
        self._due = 0.0
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether the token must be obtained or renewed."""
        return time.time() >= self._due

    def current(self, seconds: float = _REQUEST_SECONDS) -> Token:
        """Return a valid token; if it is due, obtain one within ``seconds``.

        Raises
        ------
        PermissionError
            If the identity provider rejects the client.
        ConnectionError, TimeoutError
            If the identity provider cannot be reached, is not trusted, or sends no token.
        ValueError
            If a token is malformed.
        """
        with self._lock:
            now = time.time()
            if self._token is not None and now < self._due:
                return self._token
            try:
                token = self._obtain(time.monotonic() + seconds)
            except Exception:
                if self._token is None or now >= self._token.expires:
                    raise
                self._due = min(now + _PAUSE_SECONDS, self._token.expires)
                return self._token
            self._due = now + _RENEWED_AFTER * (token.expires - now)
            self._token = token
            return token

    def _obtain(self, until: float) -> Token:
        settings = self._settings
        if settings.provider is not None:
            return _check_token(settings.provider(), "token_provider")
        if settings.token is not None:
            return _check_token(settings.token, "sasl.oauthbearer.token")
        endpoint = settings.endpoint or ""
        if endpoint.startswith("file:"):
            path = urllib.request.url2pathname(urllib.parse.urlsplit(endpoint).path)
            try:
                text = Path(path).read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ValueError(
                    f"the token cannot be read from {path}: {getattr(error, 'strerror', 'it is not ASCII')}"
                ) from None
            return _check_token(text, path)
        return _request_token(settings, until)


def _check_token(text: object, source: str, expires: float | None = None) -> Token:
    if not isinstance(text, str):
        raise TypeError(f"{source} must return the token as str, not {type(text).__name__}")
    # Characters of a bearer token, RFC 6750. Other characters could end the authentication message early.
    if not text or not text.isascii() or not all(33 <= ord(character) < 127 for character in text):
        raise ValueError(f"the token of {source} is empty, or has blanks or characters other than ASCII")
    now = time.time()
    if expires is None:
        expires = _expiry(text)
    if expires is None:
        return Token(text, now + _WITHOUT_EXPIRY_SECONDS)
    if expires <= now:
        raise PermissionError(f"the token of {source} has expired")
    return Token(text, expires)


def _expiry(text: str) -> float | None:
    """Return the expiry of a JSON web token, or None without one. Only the broker verifies the token."""
    try:
        _, claims, _ = text.split(".")
        expires = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    # JSON integers are unbounded, and NaN, which is unordered, is treated as 0.
    return float(max(0, min(expires, time.time() + _MOST_SECONDS))) if isinstance(expires, int | float) else None


def _request_token(settings: OAuthSettings, until: float) -> Token:
    endpoint = settings.endpoint or ""
    server = _without_credentials(endpoint)
    deadline = Deadline(until)
    tls = ssl_context(settings.tls) if endpoint.startswith("https:") else None
    opener = open_with(deadline, tls)
    reason = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(min(0.2 * 2**attempt, max(0.0, until - time.monotonic())))
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no token from {server} in time{reason and ': '}{reason}")
        try:
            with deadline:
                status, body = _post(opener, settings, min(left, _REQUEST_SECONDS))
        except (OSError, ValueError, http.client.HTTPException) as error:
            remedy = "https.ca.location, or in ssl.truststore.location of sasl.jaas.config"
            reason = failure_reason(error, server, remedy)
            continue
        if 200 <= status < 300:
            if time.monotonic() < until:  # otherwise the deadline ended the response
                return _token_of(body, server)
            continue
        reason = _error_code(status, body)
        if status in (400, 401, 403):
            raise PermissionError(
                f"{server} rejected the client ({reason}): check client id, client secret and scope of OAUTHBEARER"
            )
        if not is_temporary(status):
            break
    raise ConnectionError(f"no token from {server}: {reason}; check sasl.oauthbearer.token.endpoint.url")


def _post(opener: urllib.request.OpenerDirector, settings: OAuthSettings, timeout: float) -> tuple[int, bytes]:
    """Request a token; return status and body of the response. The body of an error is empty if it cannot be read."""
    try:
        with opener.open(_request(settings), timeout=timeout) as response:
            return response.status, response.read(_MAX_BYTES)
    except urllib.error.HTTPError as error:
        with error, contextlib.suppress(OSError, http.client.HTTPException):
            return error.code, error.read(_MAX_BYTES)
        return error.code, b""


def _request(settings: OAuthSettings) -> urllib.request.Request:
    quote = urllib.parse.quote_plus if settings.url_encodes else str
    credentials = f"{quote(settings.client_id or '')}:{quote(settings.client_secret or '')}".encode()
    form = {"grant_type": "client_credentials"} | ({"scope": settings.scope} if settings.scope else {})
    return urllib.request.Request(
        settings.endpoint or "",
        data=urllib.parse.urlencode(form).encode(),
        headers={
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(credentials).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        method="POST",
    )


def _token_of(body: bytes, server: str) -> Token:
    try:
        document = json.loads(body)
        text = document["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConnectionError(f"{server} sent no access_token") from None
    lifetime = document.get("expires_in")
    is_known = isinstance(lifetime, int | float) and lifetime > 0
    expires = time.time() + min(lifetime, _MOST_SECONDS) if is_known else None
    try:
        return _check_token(text, server, expires)
    except (ValueError, TypeError, PermissionError) as error:
        raise ConnectionError(str(error)) from None


def _error_code(status: int, body: bytes) -> str:
    """Return the status, with the error code of RFC 6749 if the response has one."""
    known = (
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope",
    )  # fmt: skip
    try:
        code = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        code = None
    return f"HTTP {status}, {code}" if code in known else f"HTTP {status}"


def _without_credentials(url: str) -> str:
    """Return scheme, host and path of a URL."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
