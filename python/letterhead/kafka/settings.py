"""Connection settings: names of kafka-python and of Kafka's Java client become settings of kafka-python.

Settings contain passwords, so neither ``repr`` nor error messages show their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from letterhead.errors import unknown_name

__all__ = ["FETCH_BYTES", "JAVA_NAMES", "PYTHON_NAMES", "Settings", "java_settings", "python_settings"]

FETCH_BYTES = 4 << 20
TIMEOUT_MS = 60_000

PYTHON_NAMES: tuple[str, ...] = (
    "client_dns_lookup", "client_id", "connections_max_idle_ms", "metadata_max_age_ms", "proxy_url",
    "receive_message_max_bytes", "reconnect_backoff_max_ms", "reconnect_backoff_ms", "request_timeout_ms",
    "sasl_kerberos_domain_name", "sasl_kerberos_name", "sasl_kerberos_service_name", "sasl_mechanism",
    "sasl_oauth_token_provider", "sasl_plain_password", "sasl_plain_username", "security_protocol",
    "socket_connection_setup_timeout_max_ms", "socket_connection_setup_timeout_ms", "socket_options", "ssl_cafile",
    "ssl_certfile", "ssl_check_hostname", "ssl_context", "ssl_crlfile", "ssl_keyfile", "ssl_password",
)  # fmt: skip
"""Connection settings of kafka-python that are passed on unchanged."""

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGINS = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}


@dataclass(repr=False)
class Settings:
    """How to connect to brokers."""

    servers: str  # host:port of brokers, separated by commas
    transport: dict[str, Any]  # settings of kafka-python; PEM text is under ssl_ca_pem and ssl_cert_pem
    timeout_ms: int = TIMEOUT_MS  # how long to retry
    fetch_bytes: int = FETCH_BYTES
    isolation_level: str | None = None

    def __post_init__(self) -> None:
        protocol = self.transport.get("security_protocol", "PLAINTEXT")
        if protocol not in PROTOCOLS:
            raise unknown_name("security protocol", protocol, PROTOCOLS)
        if protocol.startswith("SASL") and not self.transport.get("sasl_mechanism"):
            raise ValueError(f"{protocol} needs a mechanism: set sasl_mechanism (kafka.sasl.mechanism in Spark)")

    def __repr__(self) -> str:
        return f"<settings of a client of {self.servers}>"


def python_settings(
    servers: str | Iterable[str], settings: Mapping[str, Any], *, timeout_ms: int, fetch_bytes: int
) -> Settings:
    """Return settings given by :data:`PYTHON_NAMES`; an unknown name raises TypeError, an invalid value ValueError."""
    for name in settings:
        if name not in PYTHON_NAMES:
            raise TypeError(str(unknown_name("setting", name, PYTHON_NAMES)))
    joined = ",".join([servers] if isinstance(servers, str) else servers)
    transport = {name: value for name, value in settings.items() if value is not None}
    return Settings(joined, {"bootstrap_servers": joined.split(","), **transport}, timeout_ms, fetch_bytes)


def java_settings(options: Mapping[str, str]) -> Settings:
    """Return settings given by the names of Kafka's Java client, without the prefix ``kafka.`` that Spark demands.

    Names are case-insensitive, as Spark's options are. A setting that is unknown, set by the reader itself, or has an
    unsupported value raises ValueError.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name in _SET_BY_READER:
            raise ValueError(f"kafka.{name} cannot be set: {_SET_BY_READER[name]}")
        if name not in JAVA_NAMES:
            raise unknown_name("option", f"kafka.{name}", [f"kafka.{known}" for known in JAVA_NAMES])
    if not given.get("bootstrap.servers"):
        raise ValueError("no brokers are named: set the option kafka.bootstrap.servers to host:port")
    servers = given["bootstrap.servers"]
    transport: dict[str, Any] = {"bootstrap_servers": [server.strip() for server in servers.split(",")]}
    transport |= {name.replace(".", "_"): _converted(given, name, _ALIKE[name]) for name in _ALIKE if name in given}
    if "ssl.endpoint.identification.algorithm" in given:
        transport["ssl_check_hostname"] = bool(given["ssl.endpoint.identification.algorithm"])
    _add_login(given, transport)
    _add_certificates(given, transport)
    return Settings(
        servers,
        transport,
        _converted(given, "default.api.timeout.ms", int, TIMEOUT_MS),
        # A size tuned for the Java consumer is small for whole fetches, so it can only enlarge them.
        max(_converted(given, "max.partition.fetch.bytes", int, FETCH_BYTES), FETCH_BYTES),
        given.get("isolation.level"),
    )


_ALIKE: dict[str, Callable[[str], Any]] = {
    "client.dns.lookup": str,
    "client.id": str,
    "connections.max.idle.ms": int,
    "metadata.max.age.ms": int,
    "reconnect.backoff.max.ms": int,
    "reconnect.backoff.ms": int,
    "request.timeout.ms": int,
    "sasl.kerberos.service.name": str,
    "sasl.mechanism": str,
    "security.protocol": str.upper,
    "socket.connection.setup.timeout.max.ms": int,
    "socket.connection.setup.timeout.ms": int,
}
"""Java settings that kafka-python names alike, with underscores instead of dots."""

_READ_HERE = (
    "bootstrap.servers", "default.api.timeout.ms", "isolation.level", "max.partition.fetch.bytes", "sasl.jaas.config",
    "ssl.endpoint.identification.algorithm", "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates",
    "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
)  # fmt: skip

_IGNORED = (
    "check.crcs", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id", "heartbeat.interval.ms",
    "max.poll.interval.ms", "max.poll.records", "receive.buffer.bytes", "retry.backoff.max.ms", "retry.backoff.ms",
    "send.buffer.bytes", "session.timeout.ms", "ssl.enabled.protocols", "ssl.protocol",
)  # fmt: skip
"""Accepted, so that a job moves over unchanged: they tune the Java consumer, or set what is always set here."""

_SET_BY_READER = {
    "auto.offset.reset": "set startingOffsets instead",
    "key.deserializer": "keys are bytes; cast them in the query",
    "value.deserializer": "values are bytes; cast them in the query",
    "enable.auto.commit": "nothing is committed; Spark's checkpoint has the offsets",
    "interceptor.classes": "there is no Java consumer to intercept",
    "sasl.client.callback.handler.class": "no Java class is loaded; PLAIN and SCRAM take kafka.sasl.jaas.config",
    "sasl.login.callback.handler.class": "no Java class is loaded; PLAIN and SCRAM take kafka.sasl.jaas.config",
    "security.providers": "no Java class is loaded",
    "ssl.engine.factory.class": "no Java class is loaded; use kafka.ssl.truststore.type=PEM",
}

JAVA_NAMES: tuple[str, ...] = tuple(sorted([*_ALIKE, *_READ_HERE, *_IGNORED]))
"""Settings of Kafka's Java client that are accepted."""


def _converted(given: Mapping[str, str], name: str, convert: Callable[[str], Any], default: Any = None) -> Any:
    try:
        return convert(given[name]) if name in given else default
    except ValueError:
        # The value is not quoted: it may be a secret in the wrong place.
        raise ValueError(f"kafka.{name} must be a whole number") from None


def _add_login(given: Mapping[str, str], transport: dict[str, Any]) -> None:
    if "sasl.jaas.config" not in given:
        return
    mechanism = transport.get("sasl_mechanism")
    found = re.fullmatch(
        r'\s*(\S+)\s+\w+((?:\s+\w+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s";]+))*)\s*;\s*', given["sasl.jaas.config"]
    )
    if found is None:
        raise ValueError(
            'kafka.sasl.jaas.config cannot be read: it should be \'<login module> required username="..." password="...";\''
        )
    module, options = found.groups()
    # Spark distributions relocate the classes to packages of their own.
    known = next((name for name in _LOGINS if module == name or module.endswith("." + name)), None)
    if known is None:
        raise ValueError(
            f"kafka.sasl.jaas.config: {module} is not supported: use PlainLoginModule or ScramLoginModule, or "
            "letterhead.read.topic, which takes kafka-python's sasl_mechanism for others"
        )
    if mechanism not in _LOGINS[known]:
        raise ValueError(
            f"kafka.sasl.mechanism must be {' or '.join(_LOGINS[known])} with {known.rpartition('.')[2]}, not {mechanism}"
        )
    login = {
        name: re.sub(r"\\(.)", r"\1", quoted[1:-1]) if quoted else plain
        for name, quoted, plain in re.findall(r'(\w+)\s*=\s*(?:("(?:[^"\\]|\\.)*")|([^\s";]+))', options)
    }
    for name in ("username", "password"):
        if name not in login:
            raise ValueError(f"kafka.sasl.jaas.config names no {name}")
        transport[f"sasl_plain_{name}"] = login[name]


def _add_certificates(given: Mapping[str, str], transport: dict[str, Any]) -> None:
    for store in ("truststore", "keystore"):
        type = given.get(f"ssl.{store}.type", "JKS")
        if type.upper() != "PEM" and any(name.startswith(f"ssl.{store}.") for name in given):
            raise ValueError(
                f"a {store} of type {type} is not supported: export it as PEM, and set kafka.ssl.{store}.type=PEM and "
                f"kafka.ssl.{store}.location"
            )
    names = {
        "ssl.truststore.location": "ssl_cafile",
        "ssl.truststore.certificates": "ssl_ca_pem",
        "ssl.keystore.location": "ssl_certfile",
        "ssl.key.password": "ssl_password",
    }
    transport.update({python: given[name] for name, python in names.items() if name in given})
    if "ssl.keystore.key" in given or "ssl.keystore.certificate.chain" in given:
        pem = [given.get(f"ssl.keystore.{part}") for part in ("key", "certificate.chain")]
        if None in pem:
            raise ValueError("kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain go together: set both")
        transport["ssl_cert_pem"] = "\n".join(filter(None, pem))
