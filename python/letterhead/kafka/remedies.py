"""Remedies for errors of authentication and of TLS, shared by readers and writers."""

from __future__ import annotations

__all__ = ["demands_certificate", "authentication_remedy", "tls_error"]

_PASSWORD = "check user name and password in sasl.jaas.config, or sasl.username and sasl.password"
_REMEDIES = {
    "PLAIN": _PASSWORD,
    "SCRAM-SHA-256": _PASSWORD,
    "SCRAM-SHA-512": _PASSWORD,
    "OAUTHBEARER": "check audience, scope and expiry of the token",
    "AWS_MSK_IAM": "check the AWS credentials, and that their policy allows kafka-cluster:Connect",
    "GSSAPI": "check the ticket (klist) or keytab, and sasl.kerberos.service.name",
}
_ALERTS = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA")


def authentication_remedy(mechanism: str | None, reason: str) -> str:
    """Return the remedy for rejected credentials."""
    if "enabled mechanisms" in reason or "Unsupported SASL mechanism" in reason:
        return "set sasl.mechanism to one that is enabled"
    return _REMEDIES.get(mechanism or "", "check security.protocol and sasl.mechanism")


def demands_certificate(reason: str) -> bool:
    """Return whether a broker closed a connection because the client's certificate is missing or rejected."""
    plain = reason.upper().replace(" ", "_")
    return any(f"ALERT_{alert}" in plain for alert in _ALERTS)


def tls_error(broker: str, reason: str) -> ConnectionError:
    """Return the error for a connection that fails in TLS."""
    if demands_certificate(reason):
        return ConnectionError(
            f"{broker} rejected the client's certificate, or needs one: {reason}; set ssl.keystore.location to a "
            "certificate, with its key, that the brokers trust"
        )
    if "mismatch" in reason:
        return ConnectionError(
            f"the certificate of {broker} is for another host: {reason}; connect by a name that the certificate has"
        )
    if "expired" in reason:
        return ConnectionError(f"the certificate of {broker}, or of an authority, has expired: {reason}")
    if "verif" in reason.lower():
        return ConnectionError(
            f"the certificate of {broker} is not trusted: {reason}; name the file of the authority that signed it in "
            "ssl.truststore.location"
        )
    return ConnectionError(f"no connection to {broker} over TLS: {reason}; check security.protocol and the port")
