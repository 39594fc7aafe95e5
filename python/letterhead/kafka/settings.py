"""Parse connection settings under Kafka's names, as in Java, Spark, librdkafka and ``client.properties``.

:func:`reader_settings`, :func:`writer_settings` and :func:`spark_settings` return :class:`Settings`. Settings contain
passwords, so ``repr`` and error messages do not show values.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from letterhead._names import unknown_name
from letterhead._row_request import TIMEOUT_MS
from letterhead._warnings import warn
from letterhead.kafka.batch_attributes import CODECS
from letterhead.kafka.iam import IamIdentity, IamSettings
from letterhead.kafka.jaas import parse_jaas
from letterhead.kafka.kerberos import KerberosSettings
from letterhead.kafka.oauth import OAuthSettings, TokenProvider
from letterhead.kafka.properties import expand, read_properties
from letterhead.kafka.setting_names import ALIASES, HANDLERS, IGNORED_IN_FILES, OPTIONS, READER_NAMES, REJECTED, TLS
from letterhead.kafka.tls import TlsSettings

if TYPE_CHECKING:
    from letterhead._row_request import RowRequest

__all__ = [
    "FETCH_BYTES",
    "Authentication",
    "Settings",
    "SettingsLike",
    "check_names",
    "reader_file",
    "reader_settings",
    "reader_values",
    "spark_settings",
    "unknown_setting",
    "writer_settings",
]

FETCH_BYTES = 4 << 20

SettingsLike: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]
"""Settings by name, or the path of a property file."""

FileReader: TypeAlias = Callable[["str | os.PathLike[str]"], dict[str, str]]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ACKS = ("all", "-1", "1")
PARTITIONERS = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a", "random")
MECHANISMS = (*_WITH_PASSWORD, "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
_MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
    "software.amazon.msk.auth.iam.IAMLoginModule": ("AWS_MSK_IAM",),
    "com.sun.security.auth.module.Krb5LoginModule": ("GSSAPI",),
}


@dataclass(frozen=True, repr=False)
class Authentication:
    """SASL authentication."""

    mechanism: str
    username: str | None = None
    password: str | None = None
    oauth: OAuthSettings | None = None
    iam: IamIdentity | None = None
    kerberos: KerberosSettings | None = None

    def __repr__(self) -> str:
        return f"<authentication by {self.mechanism}>"


@dataclass(frozen=True)
class ProducerSettings:
    """Limits of record batches, and conditions of a successful write."""

    codec: str = "none"
    level: int | None = None
    batch_bytes: int = 1_000_000
    batch_rows: int = 10_000
    record_bytes: int = 1_000_000
    partitioner: str = "murmur2_random"
    is_idempotent: bool = True
    acks: int = -1
    is_gapless: bool = False  # whether sending stops at the first record that fails


@dataclass(repr=False)
class Settings:
    """Connection settings of a cluster."""

    servers: str  # comma-separated host:port of brokers
    protocol: str = "PLAINTEXT"
    authentication: Authentication | None = None
    tls: TlsSettings = field(default_factory=TlsSettings)
    options: dict[str, Any] = field(default_factory=dict)  # other connection settings, by Kafka's names
    producer: ProducerSettings = field(default_factory=lambda: ProducerSettings())
    timeout_ms: int = TIMEOUT_MS  # time limit of retries
    fetch_bytes: int = FETCH_BYTES
    isolation_level: str | None = None
    rack: str = ""  # rack of preferred replicas, if brokers have racks

    def __repr__(self) -> str:
        return f"<settings of a client of {self.servers}>"


def nearest_settings(name: str) -> list[str]:
    """Return the known settings whose names resemble an unknown one."""
    import difflib  # only needed for errors, and this package should be fast to import

    return difflib.get_close_matches(name.lower(), READER_NAMES, n=3)


def unknown_setting(name: str, prefix: str = "") -> ValueError:
    """Return the error for an unknown setting, with the nearest names."""
    near = [prefix + known for known in nearest_settings(name)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "names are those of Kafka's own clients"
    return ValueError(f"unknown {'option' if prefix else 'setting'} {prefix + name!r}: {hint}")


def check_names(names: Iterable[str], prefix: str = "") -> None:
    """Raise ValueError for an unknown setting."""
    known = {*READER_NAMES, *REJECTED}
    for name in names:
        if name not in known:
            raise unknown_setting(name, prefix)


def reader_file(path: str | os.PathLike[str], read: FileReader = read_properties) -> tuple[dict[str, str], list[str]]:
    """Return a file's settings for a reader, and its unknown names, which other clients may use.

    Settings of other clients' consumers are dropped. Unknown names that resemble a known name raise an error later.
    """
    values = {name: value for name, value in read(path).items() if name not in IGNORED_IN_FILES}
    known = {*READER_NAMES, *REJECTED}
    others = sorted(name for name in values if name not in known and not nearest_settings(name))
    return {name: value for name, value in values.items() if name not in others}, others


def reader_values(settings: SettingsLike | None) -> Mapping[str, Any] | None:
    """Return settings by name, read from a property file if given as a path; warn of unknown names in the file."""
    if not isinstance(settings, str | os.PathLike):
        return settings
    values, others = reader_file(settings)
    if others:
        warn(f"{os.fspath(settings)}: unknown settings are ignored: {', '.join(others)}")
    return values


def reader_settings(
    servers: str | Iterable[str] | None,
    settings: SettingsLike | None = None,
    *,
    token_provider: TokenProvider | None = None,
    timeout_ms: int | None = None,
    fetch_bytes: int | None = None,
) -> Settings:
    """Return the settings of a reader. Arguments take precedence over settings of the same meaning."""
    return _Values(reader_values(settings), servers).reader(token_provider, timeout_ms, fetch_bytes)


def request_settings(
    servers: str | Iterable[str] | None, settings: SettingsLike | None, request: RowRequest
) -> Settings:
    """Return the settings of a reader with the connection options of a request."""
    return reader_settings(
        servers,
        settings,
        token_provider=request.token_provider,
        timeout_ms=request.timeout_ms,
        fetch_bytes=request.fetch_bytes,
    )


def spark_settings(options: Mapping[str, str]) -> Settings:
    """Return the settings of a reader from Spark's options, without their prefix ``kafka.``; case is ignored."""
    return _Values({name.lower(): value for name, value in options.items()}, None, prefix="kafka.").reader()


def writer_settings(
    servers: str | Iterable[str] | None,
    settings: SettingsLike | None = None,
    *,
    token_provider: TokenProvider | None = None,
    timeout_ms: int | None = None,
) -> Settings:
    """Return the settings of a writer. Arguments take precedence over settings of the same meaning."""
    values = _Values(reader_values(settings), servers)
    values.check_settable()
    check_names(values)
    result = values.connection(token_provider)
    limit = values.number("delivery.timeout.ms") or values.number("message.timeout.ms") or TIMEOUT_MS
    result.timeout_ms = limit if timeout_ms is None else timeout_ms
    result.producer = values.producer()
    return result


def _check_server(server: str, number: int) -> None:
    """Raise ValueError if the port of a broker is not a port number."""
    _, colon, port = server.rpartition(":")
    # The last group of an IPv6 address without brackets is not a port; the client rejects such an address.
    if colon and not port.endswith("]") and not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError(f"bootstrap.servers: the port of broker {number} is not a number from 1 to 65535")


def _wrong_value(name: str, value: str, choices: Sequence[str]) -> ValueError:
    """Return the error for a value that is not allowed, without quoting it: it may be a misplaced secret."""
    import difflib  # only needed for errors, and this package should be fast to import

    near = difflib.get_close_matches(value[:100], choices, n=1)
    return ValueError(f"{name} must be one of {', '.join(choices)}{f': did you mean {near[0]}?' if near else ''}")


class _Values:
    """Settings by name, with secrets resolved when they are used.

    Parameters
    ----------
    settings : SettingsLike or None
        Settings, or the path of a property file.
    servers : str or iterable of str, optional
        Brokers that take precedence over ``bootstrap.servers``.
    prefix : str, default ""
        Prefix of names in error messages.
    """

    def __init__(self, settings: SettingsLike | None, servers: str | Iterable[str] | None, prefix: str = "") -> None:
        self.prefix = prefix
        if settings is None or isinstance(settings, Mapping):
            values = dict(settings or {})
        elif isinstance(settings, str | os.PathLike):
            values = {name: value for name, value in read_properties(settings).items() if name not in IGNORED_IN_FILES}
        else:
            raise TypeError(f"settings must be a mapping or the path of a property file, not {type(settings).__name__}")
        context = values.get("ssl.context")
        if context is not None and not isinstance(context, ssl.SSLContext):
            raise TypeError(f"ssl.context must be an SSLContext, not {type(context).__name__}")
        self._context = context
        self._values = {name: self._as_text(name, value) for name, value in values.items() if value is not None}
        for alias, name in ALIASES.items():
            if alias in self._values:
                if name in self._values:
                    raise ValueError(f"{prefix}{alias} and {prefix}{name} are the same setting: set one of them")
                self._values[name] = self._values.pop(alias)
        if servers is not None:
            self._values["bootstrap.servers"] = servers if isinstance(servers, str) else ",".join(servers)

    def __iter__(self) -> Any:
        return iter(self._values)

    def _as_text(self, name: str, value: object) -> str:
        if not isinstance(name, str):
            raise TypeError(f"names of settings must be str, not {type(name).__name__}")
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float) or name == "ssl.context":
            return str(value)
        raise TypeError(f"setting {self.prefix}{name} must be text or a number, not {type(value).__name__}")

    def reader(
        self, token_provider: TokenProvider | None = None, timeout_ms: int | None = None, fetch_bytes: int | None = None
    ) -> Settings:
        """Return the settings of a reader; raise ValueError for names that are unknown or reserved."""
        self.check_settable()
        check_names(self._values, self.prefix)
        result = self.connection(token_provider)
        result.timeout_ms = self.number("default.api.timeout.ms") or TIMEOUT_MS if timeout_ms is None else timeout_ms
        # A size tuned for Java's consumer is small for whole fetches, so it is used only if larger than the default.
        tuned = max(self.number("max.partition.fetch.bytes") or 0, FETCH_BYTES)
        result.fetch_bytes = tuned if fetch_bytes is None else fetch_bytes
        result.isolation_level = self.one_of("isolation.level", ("read_uncommitted", "read_committed"))
        result.rack = self.text("client.rack") or ""
        return result

    def producer(self) -> ProducerSettings:
        """Return the settings of a producer."""
        default = ProducerSettings()
        codec = self.one_of("compression.type", CODECS) or self.one_of("compression.codec", CODECS) or default.codec
        acks = self.one_of("acks", ACKS) or self.one_of("request.required.acks", ACKS) or "all"
        is_idempotent = self._flag("enable.idempotence", default=True)
        if is_idempotent and acks == "1":
            raise ValueError(f"{self.prefix}acks must be all, unless enable.idempotence is false")
        level = self.number("compression.level")

        def size(*names: str, default: int) -> int:
            given = next((number for number in map(self.number, names) if number is not None), default)
            if given < 1:
                raise ValueError(f"{self.prefix}{names[0]} must be at least 1")
            return given

        return ProducerSettings(
            codec=codec,
            level=None if level == -1 else level,
            batch_bytes=size("batch.size", default=default.batch_bytes),
            batch_rows=size("batch.num.messages", default=default.batch_rows),
            record_bytes=size("max.request.size", "message.max.bytes", default=default.record_bytes),
            partitioner=self.one_of("partitioner", PARTITIONERS) or default.partitioner,
            is_idempotent=is_idempotent,
            acks=1 if acks == "1" else -1,
            is_gapless=self._flag("enable.gapless.guarantee", default=False),
        )

    def _flag(self, name: str, *, default: bool) -> bool:
        value = self.one_of(name, ("true", "false"))
        return default if value is None else value == "true"

    def check_settable(self) -> None:
        """Raise ValueError for a reserved name."""
        start = "startingOffsets" if self.prefix else "start="
        for name in self._values:
            if name in REJECTED:
                raise ValueError(f"{self.prefix}{name} cannot be set: {REJECTED[name].format(start=start)}")
        if (self.text("enable.auto.commit") or "false").lower() != "false":
            option = "the option commitGroup" if self.prefix else "commit_group="
            raise ValueError(
                f"{self.prefix}enable.auto.commit cannot be set: {option} names a group to commit offsets to"
            )

    def text(self, name: str) -> str | None:
        """Return a value with its references resolved."""
        return expand(self.prefix + name, self._values[name]) if name in self._values else None

    def one_of(self, name: str, choices: Sequence[str]) -> str | None:
        """Return a value that must be one of the choices."""
        value = self.text(name)
        if value is not None and value not in choices:
            raise _wrong_value(self.prefix + name, value, choices)
        return value

    def number(self, name: str) -> int | None:
        """Return a whole number."""
        value = self.text(name)
        try:
            return None if value is None else int(value)
        except ValueError:
            # The value is not quoted, because it may be a misplaced secret.
            raise ValueError(f"{self.prefix}{name} must be a whole number") from None

    def connection(self, token_provider: TokenProvider | None) -> Settings:
        """Return the settings of a connection."""
        servers = self.text("bootstrap.servers")
        if not servers or not servers.strip(" ,"):
            how = (
                "set the option kafka.bootstrap.servers"
                if self.prefix
                else "pass bootstrap_servers=, or set bootstrap.servers"
            )
            raise ValueError(f"no brokers are named: {how} to host:port")
        protocol = (self.text("security.protocol") or "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            raise _wrong_value(f"{self.prefix}security.protocol", protocol, PROTOCOLS)
        if protocol.startswith("SASL") and token_provider is None and "sasl.mechanism" not in self._values:
            raise ValueError(
                f"{protocol} needs a mechanism: set {self.prefix}sasl.mechanism to {', '.join(MECHANISMS)}"
            )
        if token_provider is not None and not protocol.startswith("SASL"):
            raise ValueError("token_provider= needs security.protocol=SASL_SSL (or SASL_PLAINTEXT)")
        self.one_of("client.dns.lookup", ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"))
        brokers = [server.strip() for server in servers.split(",") if server.strip()]
        for number, server in enumerate(brokers, 1):
            _check_server(server, number)
        names = ",".join(brokers)
        authentication = self._authentication(token_provider, names) if protocol.startswith("SASL") else None
        if authentication is not None and authentication.mechanism == "AWS_MSK_IAM" and protocol != "SASL_SSL":
            raise ValueError(f"AWS_MSK_IAM needs {self.prefix}security.protocol=SASL_SSL")
        options = {
            name: self.number(name) if convert is int else self.text(name)
            for name, convert in OPTIONS.items()
            if name in self._values
        }
        kerberos = None if authentication is None else authentication.kerberos
        if kerberos is not None and kerberos.service is not None:
            options.setdefault("sasl.kerberos.service.name", kerberos.service)
        return Settings(names, protocol, authentication, self._tls(), options)

    def _tls(self) -> TlsSettings:
        for store in ("truststore", "keystore"):
            type = self.text(f"ssl.{store}.type")
            if type is not None and type.upper() not in ("PEM", "PKCS12", "JKS"):
                raise _wrong_value(f"{self.prefix}ssl.{store}.type", type.upper(), ("PEM", "PKCS12", "JKS"))
        algorithm = self.text("ssl.endpoint.identification.algorithm")
        if (algorithm or "").lower() not in ("", "none", "https"):
            raise ValueError(f"{self.prefix}ssl.endpoint.identification.algorithm must be https, or empty for no check")
        tls: dict[str, Any] = {attribute: self.text(name) for name, attribute in TLS.items() if name in self._values}
        if (tls.get("own_key_pem") is None) != (tls.get("own_certificates_pem") is None):
            raise ValueError(
                f"{self.prefix}ssl.keystore.key and {self.prefix}ssl.keystore.certificate.chain go together: set both"
            )
        return TlsSettings(
            **tls, check_hostname=algorithm is None or algorithm.lower() == "https", context=self._context
        )

    def _authentication(self, token_provider: TokenProvider | None, servers: str) -> Authentication:
        mechanism = self.text("sasl.mechanism") or "OAUTHBEARER"
        if mechanism not in MECHANISMS:
            raise _wrong_value(f"{self.prefix}sasl.mechanism", mechanism.upper(), MECHANISMS)
        for name, classes in HANDLERS.items():
            if name in self._values and (self.text(name) or "").rpartition(".")[2] not in classes:
                raise ValueError(
                    f"{self.prefix}{name} cannot be set: no Java class is loaded, but {' and '.join(classes)} "
                    "have a counterpart"
                )
        jaas = self._jaas(mechanism)
        handler = self.text("sasl.login.callback.handler.class") or ""
        if mechanism == "AWS_MSK_IAM" or handler.endswith("IAMOAuthBearerLoginCallbackHandler"):
            if token_provider is not None:
                raise ValueError(
                    "token_provider= and authentication with IAM exclude each other: leave out one of them"
                )
            identity = IamIdentity(IamSettings.from_jaas(jaas or {}, f"{self.prefix}sasl.jaas.config"), servers)
            if mechanism == "AWS_MSK_IAM":
                return Authentication(mechanism, iam=identity)
            return Authentication(mechanism, oauth=OAuthSettings(provider=identity.oauth_token, prefix=self.prefix))
        if mechanism == "OAUTHBEARER":
            return Authentication(mechanism, oauth=self._oauth(jaas, token_provider))
        if token_provider is not None:
            raise ValueError(f"token_provider= is for sasl.mechanism=OAUTHBEARER, not {mechanism}")
        if mechanism == "GSSAPI":
            return Authentication(mechanism, kerberos=self._kerberos(jaas))
        if jaas is not None and ("sasl.username" in self._values or "sasl.password" in self._values):
            raise ValueError(
                f"{self.prefix}sasl.jaas.config has user name and password: leave out {self.prefix}sasl.username and "
                f"{self.prefix}sasl.password"
            )
        credentials = {name: self.text(f"sasl.{name}") for name in ("username", "password")} if jaas is None else jaas
        for name in ("username", "password"):
            if credentials.get(name) is None:
                message = f"{self.prefix}sasl.jaas.config names no {name}"
                raise ValueError(
                    message
                    if jaas is not None
                    else f"{mechanism} needs user name and password: set {self.prefix}sasl.jaas.config"
                )
        return Authentication(mechanism, credentials["username"], credentials["password"])

    def _jaas(self, mechanism: str) -> dict[str, str] | None:
        """Return the options of the login module."""
        if "sasl.jaas.config" not in self._values:
            return None
        name = f"{self.prefix}sasl.jaas.config"
        config = self._values["sasl.jaas.config"]
        # References are resolved in each option, where a secret can contain quotes; otherwise the whole text is a
        # reference.
        parsed = parse_jaas(config) or parse_jaas(expand(name, config))
        if parsed is None:
            raise ValueError(
                f'{name} cannot be read: it should be \'<login module> required username="..." password="...";\''
            )
        module, options = parsed
        # Spark distributions relocate the classes to other packages.
        known = next((known for known in _MODULES if module == known or module.endswith("." + known)), None)
        if known is None:
            names = ", ".join(module.rpartition(".")[2] for module in _MODULES)
            raise ValueError(f"{name}: this login module is not supported: use one of {names}, with its package")
        if mechanism not in _MODULES[known]:
            raise ValueError(
                f"{self.prefix}sasl.mechanism must be {' or '.join(_MODULES[known])} with {known.rpartition('.')[2]}, "
                f"not {mechanism}"
            )
        return {option: expand(name, value) for option, value in options.items()}

    def _kerberos(self, jaas: Mapping[str, str] | None) -> KerberosSettings:
        keytab, principal = self.text("sasl.kerberos.keytab"), self.text("sasl.kerberos.principal")
        if jaas is None:
            return KerberosSettings(keytab, principal)
        if keytab is not None or principal is not None:
            raise ValueError(
                f"{self.prefix}sasl.jaas.config names the keytab: leave out {self.prefix}sasl.kerberos.keytab and "
                f"{self.prefix}sasl.kerberos.principal"
            )
        return KerberosSettings.from_jaas(jaas, f"{self.prefix}sasl.jaas.config")

    def _oauth(self, jaas: Mapping[str, str] | None, token_provider: TokenProvider | None) -> OAuthSettings:
        jaas = dict(jaas or {})
        settings = {name: self.text(f"sasl.oauthbearer.{name}") for name in _OAUTH_NAMES}
        extensions = _extensions(settings["extensions"], f"{self.prefix}sasl.oauthbearer.extensions")
        extensions |= {
            name.removeprefix("extension_"): value for name, value in jaas.items() if name.startswith("extension_")
        }
        method = (settings["method"] or "oidc").lower()
        if method not in ("oidc", "default"):
            raise _wrong_value(f"{self.prefix}sasl.oauthbearer.method", method, ("oidc", "default"))
        tls: dict[str, Any] = {attribute: jaas[name] for name, attribute in TLS.items() if name in jaas}
        if "trusted_location" not in tls and "https.ca.location" in self._values:
            tls["trusted_location"] = self.text("https.ca.location") or ""
        known = {"clientId", "clientSecret", "scope", "ssl.truststore.type", "ssl.keystore.type", *TLS}
        for name in jaas:
            if name not in known and not name.startswith("extension_"):
                raise unknown_name(f"option of {self.prefix}sasl.jaas.config", name, sorted(known))
        return OAuthSettings(
            provider=token_provider,
            token=settings["token"],
            endpoint=settings["token.endpoint.url"],
            client_id=settings["client.credentials.client.id"] or jaas.get("clientId"),
            client_secret=settings["client.credentials.client.secret"] or jaas.get("clientSecret"),
            scope=settings["scope"] or jaas.get("scope"),
            url_encodes=(settings["header.urlencode"] or "false").lower() == "true",
            extensions=extensions,
            tls=TlsSettings(**tls),
            prefix=self.prefix,
        )


_OAUTH_NAMES = (
    "token", "token.endpoint.url", "client.credentials.client.id", "client.credentials.client.secret", "scope",
    "header.urlencode", "extensions", "method",
)  # fmt: skip


def _extensions(text: str | None, name: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in (text or "").split(",") if pair.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError(f"{name} must be name=value, separated by commas")
    return {key.strip(): value.strip() for key, _, value in pairs}
