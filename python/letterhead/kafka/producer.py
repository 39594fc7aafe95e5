"""The producer of librdkafka for :class:`letterhead.kafka.settings.Settings`: :func:`open_producer`."""

from __future__ import annotations

import re
from typing import Any

from confluent_kafka import KafkaException, Producer

from letterhead.kafka.oauth import Tokens
from letterhead.kafka.settings import Settings, unknown_setting
from letterhead.kafka.tls import librdkafka_certificates

__all__ = ["open_producer"]

_UNSUPPORTED = ("proxy.url", "sasl.kerberos.domain.name", "sasl.kerberos.name")
_WITHOUT_EFFECT = ("socket.connection.setup.timeout.max.ms",)


def open_producer(settings: Settings, **callbacks: Any) -> Producer:
    """Return an idempotent producer; raise ValueError for a setting that librdkafka rejects."""
    options: dict[str, Any] = {
        "bootstrap.servers": settings.servers,
        "security.protocol": settings.protocol.lower(),
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        "delivery.timeout.ms": settings.timeout_ms,
        "log_level": 3,
    }
    for name, value in settings.options.items():
        if name in _UNSUPPORTED:
            raise ValueError(f"{name} is not supported for writing")
        if name not in _WITHOUT_EFFECT:
            options[name] = value
    if settings.protocol.endswith("SSL"):
        if settings.tls.context is not None:
            raise ValueError("ssl.context is not supported for writing: set ssl.truststore.location")
        options |= librdkafka_certificates(settings.tls)
    options |= _login(settings) | settings.tuning | callbacks
    try:
        return Producer(options)
    except KafkaException as error:
        raise _rejected(error.args[0].str()) from None


def _login(settings: Settings) -> dict[str, Any]:
    login = settings.login
    if login is None:
        return {}
    if login.mechanism == "AWS_MSK_IAM":
        raise ValueError("sasl.mechanism AWS_MSK_IAM is not supported for writing")
    options: dict[str, Any] = {"sasl.mechanism": login.mechanism}
    if login.oauth is None:
        credentials = {"sasl.username": login.username, "sasl.password": login.password}
        return options | {name: value for name, value in credentials.items() if value is not None}
    tokens = Tokens(login.oauth)
    tokens.current(settings.timeout_ms / 1000)  # an error here is clearer than one of librdkafka

    def token(_: str) -> tuple[str, float, str, dict[str, str]]:
        text, expires = tokens.current()
        return text, expires, "", tokens.extensions

    return options | {"oauth_cb": token}


def _rejected(reason: str) -> ValueError:
    unknown = re.search('No such configuration property: "(.*)"', reason)
    if unknown is not None:
        return unknown_setting(unknown[1])
    invalid = re.match('Invalid value for configuration property "[^"]*"', reason)
    # librdkafka quotes some values.
    return ValueError(invalid[0] if invalid is not None else reason)
