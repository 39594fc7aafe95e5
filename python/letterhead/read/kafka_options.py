"""How to reach brokers: kafka-python's names and Java's, as settings of kafka-python's connections.

Settings hold passwords. They are shown by nothing here: not by ``repr``, and in no message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from letterhead.errors import unknown_name

__all__ = ["FETCH_BYTES", "JAVA_NAMES", "PYTHON_NAMES", "Settings", "java_settings", "python_settings"]

FETCH_BYTES = 4 << 20
TIMEOUT_MS = 60_000

PYTHON_NAMES: tuple[str, ...] = (
    "client_dns_lookup",
    "client_id",
    "connections_max_idle_ms",
    "metadata_max_age_ms",
    "proxy_url",
    "receive_message_max_bytes",
    "reconnect_backoff_max_ms",
    "reconnect_backoff_ms",
    "request_timeout_ms",
    "sasl_kerberos_domain_name",
    "sasl_kerberos_name",
    "sasl_kerberos_service_name",
    "sasl_mechanism",
    "sasl_oauth_token_provider",
    "sasl_plain_password",
    "sasl_plain_username",
    "security_protocol",
    "socket_connection_setup_timeout_max_ms",
    "socket_connection_setup_timeout_ms",
    "socket_options",
    "ssl_cafile",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_context",
    "ssl_crlfile",
    "ssl_keyfile",
    "ssl_password",
)
"""Settings of kafka-python's connections, which mean what they mean there."""

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LOGINS = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}


class Settings:
    """How to reach brokers.

    Attributes
    ----------
    servers : str
        Where they are, ``host:port`` and the next after a comma.
    transport : dict
        Settings of kafka-python's connections. PEM that was given as text is under ``ssl_ca_pem`` and ``ssl_cert_pem``.
    timeout_ms : int
        How long to go on trying.
    fetch_bytes : int
        How much a fetch should bring.
    isolation_level : str or None
        What may be read, where it was said.
    """

    def __init__(
        self,
        servers: str,
        transport: Mapping[str, Any],
        *,
        timeout_ms: int = TIMEOUT_MS,
        fetch_bytes: int = FETCH_BYTES,
        isolation_level: str | None = None,
    ) -> None:
        protocol = transport.get("security_protocol", "PLAINTEXT")
        if protocol not in PROTOCOLS:
            raise unknown_name("security protocol", protocol, PROTOCOLS)
        if protocol.startswith("SASL") and not transport.get("sasl_mechanism"):
            raise ValueError(
                f"{protocol} needs a mechanism: say which in sasl_mechanism (kafka.sasl.mechanism in Spark)"
            )
        self.servers = servers
        self.transport = dict(transport)
        self.timeout_ms = timeout_ms
        self.fetch_bytes = fetch_bytes
        self.isolation_level = isolation_level

    def __repr__(self) -> str:
        return f"<settings of a client of {self.servers}>"


def python_settings(
    servers: str | Iterable[str], settings: Mapping[str, Any], *, timeout_ms: int, fetch_bytes: int
) -> Settings:
    """Take settings by kafka-python's names.

    Parameters
    ----------
    servers : str or iterable of str
        ``host:port`` of one broker or more.
    settings : mapping of str to object
        By :data:`PYTHON_NAMES`.
    timeout_ms, fetch_bytes : int
        As in :class:`Settings`.

    Returns
    -------
    Settings
        The settings.

    Raises
    ------
    TypeError
        If there is no such setting.
    ValueError
        If they do not fit.
    """
    for name in settings:
        if name not in PYTHON_NAMES:
            raise TypeError(str(unknown_name("setting", name, PYTHON_NAMES)))
    named = ",".join([servers] if isinstance(servers, str) else servers)
    transport = {name: value for name, value in settings.items() if value is not None}
    return Settings(
        named, {"bootstrap_servers": named.split(","), **transport}, timeout_ms=timeout_ms, fetch_bytes=fetch_bytes
    )


def java_settings(options: Mapping[str, str]) -> Settings:
    """Take settings by the names of Kafka's Java client, as Spark does after ``kafka.``.

    Parameters
    ----------
    options : mapping of str to str
        The settings, without ``kafka.`` before their names. Case does not matter: Spark's options have none.

    Returns
    -------
    Settings
        The settings.

    Raises
    ------
    ValueError
        If there is no such setting, it is one that the reader sets itself, or it is of a kind that is not read.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name in _SET_BY_READER:
            raise ValueError(f"kafka.{name} cannot be set: {_SET_BY_READER[name]}")
        if name not in JAVA_NAMES:
            error = unknown_name("option", f"kafka.{name}", [f"kafka.{known}" for known in JAVA_NAMES])
            raise ValueError(str(error))
    if not given.get("bootstrap.servers"):
        raise ValueError("no brokers are named: say host:port in the option kafka.bootstrap.servers")
    servers = given["bootstrap.servers"]
    transport: dict[str, Any] = {"bootstrap_servers": [server.strip() for server in servers.split(",")]}
    for name, (python, converted) in _ALIKE.items():
        if name in given:
            transport[python] = _converted(name, given[name], converted)
    _add_login(given, transport)
    _add_trust(given, transport)
    fetch_bytes = _converted("max.partition.fetch.bytes", given.get("max.partition.fetch.bytes", FETCH_BYTES), int)
    timeout_ms = _converted("default.api.timeout.ms", given.get("default.api.timeout.ms", TIMEOUT_MS), int)
    return Settings(
        servers,
        transport,
        timeout_ms=timeout_ms,
        # What is tuned for Java's consumer is small for this one, so it only makes fetches larger.
        fetch_bytes=max(fetch_bytes, FETCH_BYTES),
        isolation_level=given.get("isolation.level"),
    )


_ALIKE: dict[str, tuple[str, Callable[[str], Any]]] = {
    "client.dns.lookup": ("client_dns_lookup", str),
    "client.id": ("client_id", str),
    "connections.max.idle.ms": ("connections_max_idle_ms", int),
    "metadata.max.age.ms": ("metadata_max_age_ms", int),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", int),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", int),
    "request.timeout.ms": ("request_timeout_ms", int),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
    "sasl.mechanism": ("sasl_mechanism", str),
    "security.protocol": ("security_protocol", str.upper),
    "socket.connection.setup.timeout.max.ms": ("socket_connection_setup_timeout_max_ms", int),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", int),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", bool),  # "" is off
}

_READ_HERE = (
    "bootstrap.servers",
    "default.api.timeout.ms",
    "isolation.level",
    "max.partition.fetch.bytes",
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)

_WITHOUT_MEANING = (
    "check.crcs",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "receive.buffer.bytes",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "ssl.enabled.protocols",
    "ssl.protocol",
)
"""Taken, so that a job moves over as it is, and left alone: they tune Java's consumer, or are always as they should be."""

_SET_BY_READER = {
    "auto.offset.reset": "say where to begin in startingOffsets",
    "key.deserializer": "keys are bytes; cast them in the query",
    "value.deserializer": "values are bytes; cast them in the query",
    "enable.auto.commit": "nothing is committed; a checkpoint of Spark's holds the offsets",
    "interceptor.classes": "there is no Java consumer to intercept",
    "sasl.client.callback.handler.class": "no Java class is loaded; PLAIN and SCRAM take kafka.sasl.jaas.config",
    "sasl.login.callback.handler.class": "no Java class is loaded; PLAIN and SCRAM take kafka.sasl.jaas.config",
    "security.providers": "no Java class is loaded",
    "ssl.engine.factory.class": "no Java class is loaded; use kafka.ssl.truststore.type=PEM",
}

JAVA_NAMES: tuple[str, ...] = tuple(sorted([*_ALIKE, *_READ_HERE, *_WITHOUT_MEANING]))
"""Settings of Kafka's Java client that are taken."""


def _converted(name: str, value: Any, converted: Callable[[str], Any]) -> Any:
    try:
        return converted(value)
    except ValueError:
        # What was given is not quoted: it may be a secret in the wrong place.
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
    module, words = found.groups()
    # Spark's distributions put the classes into packages of their own.
    known = next((name for name in _LOGINS if module == name or module.endswith("." + name)), None)
    if known is None:
        raise ValueError(
            f"kafka.sasl.jaas.config: {module} is not read: use PlainLoginModule or ScramLoginModule, or "
            "letterhead.read.topic, which takes kafka-python's sasl_mechanism for others"
        )
    if mechanism not in _LOGINS[known]:
        raise ValueError(
            f"kafka.sasl.mechanism must be {' or '.join(_LOGINS[known])} with {known.rpartition('.')[2]}, not {mechanism}"
        )
    login = {
        name: re.sub(r"\\(.)", r"\1", quoted[1:-1]) if quoted else plain
        for name, quoted, plain in re.findall(r'(\w+)\s*=\s*(?:("(?:[^"\\]|\\.)*")|([^\s";]+))', words)
    }
    for name in ("username", "password"):
        if name not in login:
            raise ValueError(f"kafka.sasl.jaas.config names no {name}")
        transport[f"sasl_plain_{name}"] = login[name]


def _add_trust(given: Mapping[str, str], transport: dict[str, Any]) -> None:
    for store in ("truststore", "keystore"):
        kind = given.get(f"ssl.{store}.type", "JKS")
        if kind.upper() != "PEM" and any(name.startswith(f"ssl.{store}.") for name in given):
            raise ValueError(
                f"a {store} of type {kind} is not read: export it as PEM, and say kafka.ssl.{store}.type=PEM with "
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
        parts = [given.get(f"ssl.keystore.{part}") for part in ("key", "certificate.chain")]
        if None in parts:
            raise ValueError("kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain go together")
        transport["ssl_cert_pem"] = "\n".join(filter(None, parts))
