"""Names of Kafka client settings, grouped by how :mod:`letterhead.kafka.settings` treats them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "ALIASES", "HANDLERS", "IGNORED_IN_FILES", "NAMES_BY_USE", "OPTIONS", "READER_NAMES", "REJECTED", "TLS",
]  # fmt: skip

OPTIONS: dict[str, Callable[[str], Any]] = {
    "client.dns.lookup": str,
    "client.id": str,
    "connections.max.idle.ms": int,
    "metadata.max.age.ms": int,
    "proxy.url": str,
    "reconnect.backoff.max.ms": int,
    "reconnect.backoff.ms": int,
    "request.timeout.ms": int,
    "sasl.kerberos.domain.name": str,
    "sasl.kerberos.name": str,
    "sasl.kerberos.service.name": str,
    "socket.connection.setup.timeout.max.ms": int,
    "socket.connection.setup.timeout.ms": int,
}
"""Settings that are passed to a client unchanged. kafka-python uses the same names with underscores."""

ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
"""librdkafka's names of Java settings."""

AUTHENTICATION = (
    "sasl.client.callback.handler.class", "sasl.jaas.config", "sasl.kerberos.keytab", "sasl.kerberos.principal",
    "sasl.login.callback.handler.class", "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.extensions", "sasl.oauthbearer.header.urlencode", "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.method", "sasl.oauthbearer.scope", "sasl.oauthbearer.token",
    "sasl.oauthbearer.token.endpoint.url", "https.ca.location", "sasl.password", "sasl.username", "security.protocol",
)  # fmt: skip

TLS = {
    "ssl.truststore.location": "trusted_location",
    "ssl.truststore.certificates": "trusted_pem",
    "ssl.truststore.password": "trusted_password",
    "ssl.keystore.location": "own_location",
    "ssl.keystore.password": "own_password",
    "ssl.keystore.certificate.chain": "own_certificates_pem",
    "ssl.keystore.key": "own_key_pem",
    "ssl.key.location": "own_key_location",
    "ssl.key.password": "key_password",
    "ssl.crl.location": "revoked_location",
}
"""TLS settings, with the attributes of :class:`letterhead.kafka.tls.TlsSettings`."""

CONNECTION = (
    "bootstrap.servers", *ALIASES, *AUTHENTICATION, *OPTIONS, *TLS, "ssl.context", "ssl.endpoint.identification.algorithm",
    "ssl.keystore.type", "ssl.truststore.type",
)  # fmt: skip

READING = ("client.rack", "default.api.timeout.ms", "isolation.level", "max.partition.fetch.bytes")

CONSUMER = (
    "allow.auto.create.topics", "auto.commit.interval.ms", "check.crcs", "enable.auto.commit",
    "enable.auto.offset.store", "enable.partition.eof", "exclude.internal.topics", "fetch.error.backoff.ms",
    "fetch.max.bytes", "fetch.max.wait.ms", "fetch.message.max.bytes", "fetch.min.bytes", "fetch.wait.max.ms",
    "group.id", "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms",
    "max.poll.interval.ms", "max.poll.records", "partition.assignment.strategy", "queued.max.messages.kbytes",
    "queued.min.messages", "session.timeout.ms",
)  # fmt: skip
"""Settings of consumers in groups, which readers ignore."""

PRODUCER = (
    "acks", "batch.num.messages", "batch.size", "compression.codec", "compression.level", "compression.type",
    "delivery.timeout.ms", "enable.gapless.guarantee", "enable.idempotence", "max.request.size", "message.max.bytes",
    "message.timeout.ms", "partitioner", "request.required.acks",
)  # fmt: skip
"""Settings of producers, which readers ignore."""

QUEUES = (
    "linger.ms", "max.in.flight", "max.in.flight.requests.per.connection", "message.send.max.retries",
    "queue.buffering.max.kbytes", "queue.buffering.max.messages", "queue.buffering.max.ms", "retries",
    "sticky.partitioning.linger.ms",
)  # fmt: skip
"""Settings of producer queues, which a writer of tables does not use."""

CLIENT = (
    "api.version.request", "broker.address.family", "broker.address.ttl", "debug", "log_level",
    "receive.message.max.bytes", "retry.backoff.max.ms", "retry.backoff.ms",
    "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin", "socket.keepalive.enable",
    "socket.max.fails", "socket.nagle.disable", "socket.receive.buffer.bytes", "socket.send.buffer.bytes",
    "socket.timeout.ms", "statistics.interval.ms", "topic.metadata.refresh.interval.ms",
)  # fmt: skip
"""Tuning settings of all librdkafka clients."""

JAVA = (
    "auto.include.jmx.reporter", "buffer.memory", "compression.gzip.level", "compression.lz4.level",
    "compression.zstd.level", "enable.metrics.push", "max.block.ms", "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "metric.reporters", "metrics.num.samples",
    "metrics.recording.level", "metrics.sample.window.ms", "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms", "partitioner.ignore.keys", "receive.buffer.bytes",
    "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor", "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms",
    "send.buffer.bytes", "ssl.enabled.protocols", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.provider",
    "ssl.secure.random.implementation", "ssl.trustmanager.algorithm", "transaction.timeout.ms",
)  # fmt: skip
"""Settings that only tune Java's clients, or that support only the default value."""

NAMES_BY_USE: dict[str, tuple[str, ...]] = {
    "Connection and authentication": tuple(name for name in CONNECTION if name not in ALIASES),
    "Reading": READING,
    "Writing; readers ignore them": PRODUCER,
    "Ignored, because they tune the queues of producers": QUEUES,
    "Ignored, because they tune clients of librdkafka": CLIENT,
    "Ignored, because they tune consumers in groups": CONSUMER,
    "Ignored, because they tune Java's clients": JAVA,
}
"""Settings that readers accept, except aliases. Settings of other clients are accepted without effect, because several
clients may share a property file."""

READER_NAMES: tuple[str, ...] = tuple(sorted({*ALIASES, *(name for names in NAMES_BY_USE.values() for name in names)}))
"""Settings that readers accept."""

REJECTED = {
    "auto.offset.reset": "set {start} instead",
    "key.deserializer": "keys are bytes: leave it out, and cast them in the query",
    "value.deserializer": "values are bytes: leave it out, and cast them in the query",
    "key.serializer": "keys are bytes, or UTF-8 of text: leave it out",
    "value.serializer": "values are bytes, or UTF-8 of text: leave it out",
    "interceptor.classes": "no Java class is loaded",
    "partitioner.class": "no Java class is loaded: set partition=, or partitioner for one of librdkafka's",
    "sasl.login.class": "no Java class is loaded",
    "security.providers": "no Java class is loaded",
    "ssl.engine.factory.class": "no Java class is loaded: set ssl.truststore.location to a file of certificates",
    "transactional.id": "records are written without transactions",
    "enable.ssl.certificate.verification": "certificates are verified: set ssl.truststore.location to trust an authority",
}

IGNORED_IN_FILES = (
    "auto.offset.reset", "enable.auto.commit", "interceptor.classes", "key.deserializer", "key.serializer",
    "value.deserializer", "value.serializer",
)  # fmt: skip
"""Settings of other clients, allowed in property files. In code, they raise an error, because they have no effect."""

HANDLERS = {
    "sasl.client.callback.handler.class": ("OAuthBearerSaslClientCallbackHandler", "IAMClientCallbackHandler"),
    "sasl.login.callback.handler.class": ("OAuthBearerLoginCallbackHandler", "IAMOAuthBearerLoginCallbackHandler"),
    "sasl.oauthbearer.jwt.retriever.class": (
        "ClientCredentialsJwtRetriever",
        "DefaultJwtRetriever",
        "FileJwtRetriever",
    ),
}
"""Java classes whose function letterhead implements itself."""
