"""The producer of librdkafka for :class:`letterhead.kafka.settings.Settings`: :func:`open_producer`.

librdkafka retries a login or a connection that fails until the records time out. :class:`ConnectionErrors` raises errors
that a retry cannot fix at once, as long as no record has been delivered.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from letterhead._signals import DeferredSignals
from letterhead.kafka.oauth import OAuthSettings, Tokens
from letterhead.kafka.remedies import demands_certificate, login_remedy, tls_error
from letterhead.kafka.settings import Settings, unknown_setting
from letterhead.kafka.tls import TlsSettings, librdkafka_certificates, ssl_context

__all__ = ["ConnectionErrors", "client_options", "close_producer", "open_producer"]

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # errors are raised, and librdkafka would print them

_UNSUPPORTED = ("proxy.url", "sasl.kerberos.domain.name", "sasl.kerberos.name")
_IGNORED_OPTIONS = ("socket.connection.setup.timeout.max.ms",)

_UNKNOWN_TOPIC_MS = 5_000
"""How long a topic may be unknown before its records fail."""

_PROBE_SECONDS = 5.0
"""How long a broker may take to show its certificate again, after librdkafka has rejected it."""

_DOWN_SECONDS = 3.0
"""How long all brokers may be unreachable before the first record was delivered."""


class ConnectionErrors:
    """The errors of a producer's connections, as its ``error_cb``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._error: Exception | None = None
        self._reason = ""
        self._down_since: float | None = None

    def __call__(self, error: KafkaError) -> None:
        """Note an error; librdkafka calls this while the producer is polled."""
        code, reason = error.code(), error.str()
        # The text begins with the URL of the broker: "sasl_ssl://host:port/bootstrap: ..."
        match = re.match(r"(?:\w+://)?([^/\s]+:\d+)/\w+: (.*?)(?: \(after [^()]*\))?$", reason, re.DOTALL)
        broker, reason = match.groups() if match is not None else (self._settings.servers, reason)
        if code == KafkaError._AUTHENTICATION:
            mechanism = self._settings.login.mechanism if self._settings.login is not None else ""
            self._error = PermissionError(
                f"{broker} rejected the login by {mechanism}: {reason}; {login_remedy(mechanism, reason)}"
            )
        elif code == KafkaError._SSL:
            self._error = tls_error(broker, _verification_reason(broker, self._settings.tls) or reason)
        elif code in (KafkaError._RESOLVE, KafkaError._TRANSPORT):
            # A broker without TLS ends the connection before or after librdkafka has read its answer, which it then explains.
            closed = "SSL connection closed by peer" in reason
            self._reason = f"{broker}: {reason}{', so security.protocol may not be that of its port' if closed else ''}"
            if demands_certificate(reason):
                self._error = tls_error(broker, reason)
        elif code == KafkaError._ALL_BROKERS_DOWN and self._down_since is None:
            self._down_since = time.monotonic()

    def check(self, producer: Producer, *, delivered: bool) -> None:
        """Raise the error that keeps all records from being delivered, and remove them from the queue."""
        if delivered:
            return
        error = self._error
        if error is None and self._down_since is not None and time.monotonic() - self._down_since >= _DOWN_SECONDS:
            # librdkafka has no reason if a broker ends the connection without an answer.
            error = ConnectionError(
                f"no broker can be reached ({self._reason}): check bootstrap.servers, and whether the brokers run"
                if self._reason
                else f"{self._settings.servers} does not answer over {self._settings.protocol}: set security.protocol to the "
                "protocol of the port, and check whether the brokers run"
            )
        if error is not None:
            producer.purge()
            raise error


def open_producer(settings: Settings, **callbacks: Any) -> Producer:
    """Return an idempotent producer; raise ValueError for a setting that librdkafka rejects."""
    options: dict[str, Any] = {
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        "delivery.timeout.ms": settings.timeout_ms,
        # A topic that the brokers create on demand is known to all of them within seconds.
        "topic.metadata.propagation.max.ms": min(_UNKNOWN_TOPIC_MS, settings.timeout_ms),
    }
    try:
        return Producer(options | client_options(settings) | settings.tuning | callbacks, logger=_log)
    except KafkaException as error:
        raise _setting_error(error.args[0].str()) from None


def client_options(settings: Settings) -> dict[str, Any]:
    """Return how a client of librdkafka connects and logs in; raise ValueError for a setting that it does not support."""
    options: dict[str, Any] = {
        "bootstrap.servers": settings.servers,
        "security.protocol": settings.protocol.lower(),
        "log_level": 2,  # errors are raised
    }
    for name, value in settings.options.items():
        if name in _UNSUPPORTED:
            raise ValueError(f"{name} is not supported for writing")
        if name not in _IGNORED_OPTIONS:
            options[name] = value
    if settings.protocol.endswith("SSL"):
        if settings.tls.context is not None:
            raise ValueError("ssl.context is not supported for writing: set ssl.truststore.location")
        options |= librdkafka_certificates(settings.tls)
    return options | _login(settings)


def close_producer(producer: Producer) -> None:
    """Close a producer; records that were neither delivered nor rejected, after an interrupt, are dropped.

    Otherwise the garbage collector might close it in a thread of librdkafka, which calls ``oauth_cb``; librdkafka aborts the
    process if a producer is closed by its own thread.
    """
    with DeferredSignals():
        producer.purge()
        if hasattr(producer, "close"):  # older versions have none
            producer.close()


def _login(settings: Settings) -> dict[str, Any]:
    login = settings.login
    if login is None:
        return {}
    # librdkafka lacks AWS_MSK_IAM, but MSK accepts the same signature as a token.
    oauth = login.oauth if login.iam is None else OAuthSettings(provider=login.iam.oauth_token)
    options: dict[str, Any] = {"sasl.mechanism": login.mechanism if login.iam is None else "OAUTHBEARER"}
    if oauth is None:
        credentials = {"sasl.username": login.username, "sasl.password": login.password}
        if login.kerberos is not None:
            credentials = {
                "sasl.kerberos.keytab": login.kerberos.keytab, "sasl.kerberos.principal": login.kerberos.principal,
            }  # fmt: skip
        return options | {name: value for name, value in credentials.items() if value is not None}
    tokens = Tokens(oauth)
    tokens.current(settings.timeout_ms / 1000)  # an error here is clearer than one of librdkafka

    def token(_: str) -> tuple[str, float, str, dict[str, str]]:
        text, expires = tokens.current()
        return text, expires, "", tokens.extensions

    return options | {"oauth_cb": token}


def _verification_reason(broker: str, tls: TlsSettings) -> str | None:
    """Connect to the broker and return OpenSSL's reason for rejecting its certificate, which librdkafka does not report.

    None if it is accepted or the broker is unreachable.
    """
    host, _, port = broker.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS) as connection:
            ssl_context(tls).wrap_socket(connection, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        return f"certificate verify failed: {error.verify_message}"
    except (OSError, ValueError):
        return None
    return None


def _setting_error(reason: str) -> ValueError:
    unknown = re.search('No such configuration property: "(.*)"', reason)
    if unknown is not None:
        return unknown_setting(unknown[1])
    if "No provider for SASL mechanism GSSAPI" in reason:
        return ValueError(
            "confluent-kafka was built without GSSAPI: build it with `pip install --no-binary confluent-kafka confluent-kafka`, "
            "for a librdkafka with libsasl2"
        )
    invalid = re.match('Invalid value (".*" )?for configuration property ("[^"]*")', reason, re.DOTALL)
    # librdkafka quotes some values.
    return ValueError(reason if invalid is None else f"Invalid value for configuration property {invalid[2]}")
