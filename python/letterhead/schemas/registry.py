"""A client of schema registries with the API of Confluent: :class:`Registry`."""

from __future__ import annotations

import base64
import errno
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from letterhead._names import check_name
from letterhead.kafka.http_connections import Deadline, failure_reason, is_temporary, open_with
from letterhead.kafka.properties import expand
from letterhead.kafka.remedies import demands_certificate
from letterhead.kafka.tls import TlsSettings, ssl_context
from letterhead.schemas.registered import RegisteredSchema, SchemaVersion

__all__ = ["Registry"]

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_MAX_BYTES = 16 << 20
_TRIES = 4
_PAUSE_SECONDS = 0.2
"""Pause before the second attempt; it doubles for each later one."""

_DEFAULT_TIMEOUT_MS = 15_000
_MAX_DEPTH = 32
"""Maximum length of a chain of references between schemas."""

_USE_ID = "apicurio.registry.use-id"
_IDS = {"globalId": "globalIds", "contentId": "contentIds"}
"""Ids that Apicurio's serializers write, with the API's resources for them."""

_APICURIO = "/apis/registry/v2"
"""End of the address of Apicurio's own API."""

_SETTINGS = (
    _USE_ID,
    "basic.auth.user.info",
    "bearer.auth.token",
    "request.timeout.ms",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)

Path: TypeAlias = tuple[str, ...]
"""Unquoted parts of a path below the address of a registry."""


class Registry:
    """A schema registry with Confluent's API; each schema is fetched once per process.

    Nothing is sent before the first schema is needed. Instances can be pickled; references to secrets are resolved in
    the process that sends a request.

    Parameters
    ----------
    url : str
        Address such as ``http://registry:8081``. Apicurio has Confluent's API under ``/apis/ccompat/v7``, and its own, with
        the ids of its own serializers, under ``/apis/registry/v2``. Several addresses of the same registry are separated by commas.
    settings : mapping of str to str, optional
        Settings by the names of Confluent's clients: ``basic.auth.user.info`` (``user:password``) or ``bearer.auth.token``;
        ``ssl.ca.location``, ``ssl.certificate.location``, ``ssl.key.location`` and ``ssl.key.password`` for PEM files;
        ``request.timeout.ms``, 15,000 by default, for each request. With Apicurio's own API,
        ``apicurio.registry.use-id`` is ``globalId``, by default, or ``contentId``: the type of the ids in headers or
        prefixes. ``${env:NAME}`` and ``${file:PATH}`` in a value refer to a secret that is stored elsewhere.

    Raises
    ------
    ValueError
        If an address is not an HTTP URL or contains credentials, or a setting is unknown.

    Examples
    --------
    >>> from letterhead import schemas
    >>> schemas.Registry("https://registry:8081", {"basic.auth.user.info": "reader:${env:PASSWORD}"})
    Registry('https://registry:8081')
    """

    def __init__(self, url: str, settings: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._settings = dict(settings or {})
        self._urls = [_check_url(part) for part in url.split(",")]
        for name, value in self._settings.items():
            check_name("registry setting", name, _SETTINGS)
            if not isinstance(value, str):
                raise TypeError(f"{name} must be str, not {type(value).__name__}")
        if {"basic.auth.user.info", "bearer.auth.token"} <= self._settings.keys():
            raise ValueError("basic.auth.user.info and bearer.auth.token exclude each other")
        timeout = self._settings.get("request.timeout.ms", str(_DEFAULT_TIMEOUT_MS))
        if not timeout.isascii() or not timeout.isdigit() or not 0 < int(timeout) <= 600_000:
            raise ValueError(f"request.timeout.ms must be 1 to 600000, not {timeout!r}")
        self._timeout = int(timeout) / 1000
        is_apicurio = {address.endswith(_APICURIO) for address in self._urls}
        if len(is_apicurio) > 1:
            raise ValueError("the addresses of a registry have different APIs")
        self._is_apicurio = is_apicurio == {True}
        if _USE_ID in self._settings:
            check_name(f"value of {_USE_ID}", self._settings[_USE_ID], _IDS)
            if not self._is_apicurio:
                raise ValueError(f"{_USE_ID} is for an address that ends with {_APICURIO}")
        self._known = _known_schemas(self._key)

    def __repr__(self) -> str:
        return f"Registry({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Registry, (self.url, self._settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Registry) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.url, *sorted(self._settings.items())

    def id_header(self, part: Literal["value", "key"]) -> str:
        """Return the header in which serializers for this registry's API write the id of values or keys."""
        return (
            f"apicurio.{part}.{self._settings.get(_USE_ID, 'globalId')}" if self._is_apicurio else f"__{part}_schema_id"
        )

    def schema(self, schema_id: int | str) -> RegisteredSchema | None:
        """Return the schema of an id or a GUID; None if the registry does not have it.

        Raises
        ------
        ConnectionError
            If the registry does not respond, after retries.
        PermissionError
            If it rejects the credentials.
        """
        if self._is_apicurio:
            own_id = self._settings.get(_USE_ID, "globalId")
            return self._known.get(schema_id, lambda: self._fetch_from_apicurio(own_id, schema_id))
        path = ("schemas", "ids", str(schema_id)) if isinstance(schema_id, int) else ("schemas", "guids", schema_id)
        return self._known.get(schema_id, lambda: self._fetch(path, ()))

    def latest(self, subject: str) -> RegisteredSchema | None:
        """Return the latest schema of a subject; None if there is no such subject. Each call fetches it again.

        Raises
        ------
        ConnectionError
            If the registry does not respond, after retries.
        PermissionError
            If it rejects the credentials.
        """
        if self._is_apicurio:
            found = self._request(("groups", "default", "artifacts", subject, "meta"))
            return (
                None
                if found is None
                else self._fetch_from_apicurio("globalId", _require_entry(self.url, found, "globalId"))
            )
        return self._fetch(("subjects", subject, "versions", "latest"), ())

    def find_version(
        self, subject: str, schema: str | None = None, *, schema_type: str = "AVRO", register: bool = False
    ) -> SchemaVersion | None:
        """Return a subject's latest schema, or its schema with a given text, with the ids; None if there is none.

        Parameters
        ----------
        subject : str
            The subject.
        schema : str, optional
            Text of the schema.
        schema_type : str, default "AVRO"
            Type of the schema.
        register : bool, default False
            Register the schema if the subject does not have it.

        Raises
        ------
        ValueError
            If the registry rejects the schema, or does not have Confluent's API.
        ConnectionError
            If the registry does not respond, after retries.
        PermissionError
            If it rejects the credentials.
        """
        if self._is_apicurio:
            raise ValueError("versions of schemas are found by Confluent's API: the address ends with /apis/ccompat/v7")
        if schema is None:
            path: Path = ("subjects", subject, "versions", "latest")
            reply = self._request(path)
            if reply is None:
                return None
            found = self._parse(reply, path, ())
        else:
            body = json.dumps({"schema": schema, "schemaType": schema_type}).encode()
            path = ("subjects", subject, "versions") if register else ("subjects", subject)
            reply = self._request(path, body=body)
            if reply is None:
                return None
            found = RegisteredSchema(schema_type, schema, {})
        number, guid = _require_entry(self.url, reply, "id"), reply.get("guid")
        if not isinstance(number, int) or not 0 < number < 1 << 31 or not isinstance(guid, str | None):
            raise ConnectionError(f"{self.url} returned no id of a schema: is it a registry?")
        return SchemaVersion(found, number, guid)

    def _fetch_from_apicurio(self, own_id: str, number: Any) -> RegisteredSchema | None:
        """Fetch a schema with its references inlined by the registry."""
        text = self._reply(("ids", _IDS[own_id], str(number)), "?dereference=true")
        found = None if text is None else self._request(("search", "artifacts"), f"?{own_id}={quote(str(number))}")
        artifacts = None if found is None else _require_entry(self.url, found, "artifacts")
        if text is None or not artifacts:
            return None
        try:
            return RegisteredSchema(str(_require_entry(self.url, artifacts[0], "type")).upper(), text.decode(), {})
        except UnicodeDecodeError:
            raise ConnectionError(f"{self.url} returned a schema that is not UTF-8") from None

    def _fetch(self, path: Path, above: tuple[Path, ...]) -> RegisteredSchema | None:
        """Fetch a schema and its references; ``above`` is the chain of schemas that refer to it."""
        reply = self._request(path)
        return None if reply is None else self._parse(reply, path, above)

    def _parse(self, reply: Any, path: Path, above: tuple[Path, ...]) -> RegisteredSchema:
        """Return the schema in a reply, after fetching its references."""
        try:
            text, schema_type = reply["schema"], reply.get("schemaType") or "AVRO"
            paths = {
                str(reference["name"]): ("subjects", str(reference["subject"]), "versions", str(reference["version"]))
                for reference in reply.get("references") or []
            }
            if not isinstance(text, str) or not isinstance(schema_type, str):
                raise TypeError
        except (KeyError, TypeError, AttributeError):
            raise ConnectionError(f"{self.url} returned no schema for {'/'.join(path)}: is it a registry?") from None
        references = {name: self._fetch_reference(name, below, (*above, path)) for name, below in paths.items()}
        return RegisteredSchema(schema_type.upper(), text, references)

    def _fetch_reference(self, name: str, path: Path, above: tuple[Path, ...]) -> RegisteredSchema:
        if path in above or len(above) >= _MAX_DEPTH:
            raise ValueError(f"schema {'/'.join(above[0])} refers to itself, or to more than {_MAX_DEPTH} in a row")
        found = self._known.get(path, lambda: self._fetch(path, above))
        if found is None:
            raise ValueError(f"schema {'/'.join(above[-1])} refers to {name}, which the registry does not have")
        return found

    def _request(self, path: Path, query: str = "", body: bytes | None = None) -> Any:
        """Return the JSON of a reply, or None if the registry has no such resource."""
        reply = self._reply(path, query, body)
        try:
            return None if reply is None else json.loads(reply)
        except (ValueError, RecursionError):
            raise ConnectionError(f"{self.url} did not return JSON: is it a registry?") from None

    def _reply(self, path: Path, query: str = "", body: bytes | None = None) -> bytes | None:
        """Return a reply, or None if the registry has no such resource."""
        resource = "/".join(quote(part, safe="") for part in path) + query
        try:
            headers, tls = self._connection_options()
        except ValueError as error:
            # An unreadable setting is not an error of a single value, so errors= does not apply.
            raise ConnectionError(f"{self.url} cannot be reached: {error}") from None
        reason = ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            url = self._urls[attempt % len(self._urls)]
            try:
                status, reply = self._send(f"{url}/{resource}", headers, tls, body)
            except (OSError, http.client.HTTPException) as error:
                reason = failure_reason(error, url, "ssl.ca.location")
                if demands_certificate(reason):
                    raise ConnectionError(
                        f"{url} rejected the client's certificate, or needs one: {reason}; set ssl.certificate.location to "
                        "one that the registry trusts"
                    ) from None
                continue
            if status == 200:
                return reply
            if status == 404:
                return None
            reason = f"HTTP status {status}"
            if status in (401, 403):
                raise PermissionError(
                    f"{url} rejected the request ({reason}): check basic.auth.user.info or bearer.auth.token"
                )
            if body is not None and status in (409, 422):
                refused = "incompatible with earlier versions" if status == 409 else "invalid"
                raise ValueError(
                    f"{url} refuses the schema of {'/'.join(path)}: it is {refused} (HTTP status {status})"
                )
            if not is_temporary(status):
                break
        raise ConnectionError(f"no schema from {self.url}: {reason}")

    def _connection_options(self) -> tuple[dict[str, str], ssl.SSLContext | None]:
        """Return the headers of requests, and the certificates; raise ValueError if a setting is unreadable."""
        settings = {name: expand(name, value) for name, value in self._settings.items()}
        headers = {"Accept": f"{_MEDIA_TYPE}, */*;q=0.5", **_authorization(settings)}
        if not any(url.startswith("https:") for url in self._urls):
            return headers, None
        certificates = TlsSettings(
            trusted_location=settings.get("ssl.ca.location"),
            own_location=settings.get("ssl.certificate.location"),
            own_key_location=settings.get("ssl.key.location"),
            key_password=settings.get("ssl.key.password"),
        )
        return headers, ssl_context(certificates)

    def _send(
        self, url: str, headers: dict[str, str], tls: ssl.SSLContext | None, data: bytes | None
    ) -> tuple[int, bytes]:
        until = time.monotonic() + self._timeout
        deadline = Deadline(until)
        opener = open_with(deadline, tls if url.startswith("https:") else None)
        types = {} if data is None else {"Content-Type": _MEDIA_TYPE}
        request = urllib.request.Request(url, data, {**headers, **types})
        with deadline:
            try:
                with opener.open(request, timeout=self._timeout) as response:
                    body = response.read(_MAX_BYTES + 1)
                    if time.monotonic() >= until:
                        raise TimeoutError("timed out")
                    if len(body) > _MAX_BYTES:
                        raise ConnectionError(errno.EFBIG, f"more than {_MAX_BYTES >> 20} MiB")
                    return response.status, body
            except urllib.error.HTTPError as error:
                error.close()
                return error.code, b""


def _require_entry(url: str, reply: Any, name: str) -> Any:
    try:
        return reply[name]
    except (KeyError, TypeError):
        raise ConnectionError(f"{url} returned no {name}: is it a registry?") from None


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("the address of a registry must be like http://registry:8081 or https://registry:8081")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "the address of a registry contains credentials: pass them as the setting basic.auth.user.info"
        )
    return url.rstrip("/")


def _authorization(settings: Mapping[str, str]) -> dict[str, str]:
    if "basic.auth.user.info" in settings:
        credentials = base64.b64encode(settings["basic.auth.user.info"].encode()).decode()
        return {"Authorization": f"Basic {credentials}"}
    token = settings.get("bearer.auth.token")
    if token is None:
        return {}
    # Characters of a bearer token, RFC 6750. Other characters could begin another HTTP header.
    if not token or not all(33 <= ord(character) < 127 for character in token):
        raise ValueError("bearer.auth.token is empty, or has blanks or characters other than ASCII")
    return {"Authorization": f"Bearer {token}"}


class _KnownSchemas:
    """Cache of schemas by id, GUID, or path of a version. A missing schema is requested again."""

    def __init__(self) -> None:
        self._found: dict[Any, RegisteredSchema] = {}

    def get(self, key: Any, fetch: Callable[[], RegisteredSchema | None]) -> RegisteredSchema | None:
        if key not in self._found:
            # Threads that need the same schema may fetch it twice, because a lock would make all wait for one slow
            # reply.
            fetched = fetch()
            if fetched is None:
                return None
            self._found[key] = fetched
        return self._found[key]


_PROCESS: dict[tuple[Any, ...], _KnownSchemas] = {}


def _known_schemas(key: tuple[Any, ...]) -> _KnownSchemas:
    return _PROCESS.setdefault(key, _KnownSchemas())
