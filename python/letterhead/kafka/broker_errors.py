"""Classify kafka-python's errors by whether a retry can help, and translate them to Python exceptions for users."""

from __future__ import annotations

import ssl

from kafka import errors as kafka_errors

from letterhead.kafka.remedies import authentication_remedy, demands_certificate, tls_error
from letterhead.kafka.settings import Settings

__all__ = ["has_reason", "is_final", "time_limit_reason", "translate_error"]

_WITHOUT_REASON = (kafka_errors.NodeNotReadyError, kafka_errors.KafkaTimeoutError)

_REJECTED = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)


def is_final(error: Exception) -> bool:
    """Return whether a retry would fail with the same error."""
    if isinstance(error, kafka_errors.UnknownBrokerIdError):  # the metadata does not list a new leader yet
        return False
    return not getattr(error, "retriable", False) or _is_untrusted(error) or demands_certificate(str(error))


def has_reason(error: Exception) -> bool:
    """Return whether an error explains the failure; otherwise an earlier error is reported."""
    return not isinstance(error, _WITHOUT_REASON)


def time_limit_reason(error: Exception) -> str:
    """Return the reason why a call did not succeed within its time limit."""
    if isinstance(error, kafka_errors.RequestTimedOutError):
        return "a request timed out"
    return str(error.args[0] if isinstance(error, kafka_errors.KafkaTimeoutError) else error)


def translate_error(error: Exception, settings: Settings) -> Exception:
    """Return the exception to raise, which explains the failure and the remedy without values of settings."""
    # Broker of a failed connection or authentication, added by the method that connects.
    servers = getattr(error, "broker", settings.servers)
    mechanism = settings.authentication.mechanism if settings.authentication is not None else None
    reason = str(error.args[0]) if error.args else type(error).__name__
    if isinstance(error, kafka_errors.IllegalSaslStateError):
        protocol = settings.protocol.removeprefix("SASL_")
        return ConnectionError(
            f"{servers} accepts no authentication: set security.protocol to {protocol}, or connect to a port that has SASL"
        )
    if isinstance(error, _REJECTED):
        how = f" by {mechanism}" if mechanism else ""
        if isinstance(error, kafka_errors.UnsupportedSaslMechanismError):
            reason = f"{mechanism} is not among the enabled mechanisms"
        reason = reason.removeprefix("SaslAuthenticationFailedError: ")
        return PermissionError(
            f"{servers} rejected the authentication{how}: {reason}; {authentication_remedy(mechanism, reason)}"
        )
    if isinstance(error, kafka_errors.AuthorizationError):
        return PermissionError(f"{servers} does not allow it: {reason}; the user needs an ACL for it")
    if _is_untrusted(error) or demands_certificate(reason):
        return tls_error(servers, reason)
    if isinstance(error, kafka_errors.InvalidReceiveError):
        return ConnectionError(
            f"{servers} does not speak Kafka's protocol over {settings.protocol}: set security.protocol to the protocol of "
            f"the port ({reason})"
        )
    if isinstance(error, kafka_errors.KafkaTimeoutError):
        seconds = settings.timeout_ms / 1000
        return TimeoutError(
            f"no answer from {servers} in {seconds:g} s: {reason} (security protocol {settings.protocol})"
        )
    return RuntimeError(f"{servers}: {reason}")


def _is_untrusted(error: BaseException) -> bool:
    # kafka-python keeps the TLS error as text only.
    return isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError) or (
        "CERTIFICATE_VERIFY_FAILED" in str(error)
    )
