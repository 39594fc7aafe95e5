"""Load certificates for TLS: PEM and PKCS12 stores become an :class:`ssl.SSLContext`, or PEM for librdkafka."""

from __future__ import annotations

import errno
import secrets
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from letterhead._optional_dependencies import install_hint
from letterhead.kafka.key_rounds import check_rounds

__all__ = ["TlsSettings", "ssl_context"]

_PEM_MARKER = b"-----BEGIN "
_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PKCS12 = b"\x30"  # tag of a sequence in DER


@dataclass(frozen=True, repr=False)
class TlsSettings:
    """Trusted certificates and the client's certificate. Stores are recognized by their content.

    Attributes
    ----------
    trusted_location, trusted_pem : str, optional
        Certificates of authorities; by default the certificates that the system trusts.
    own_location, own_key_location : str, optional
        Certificate of the client, with or without its key.
    own_certificates_pem, own_key_pem : str, optional
        The same as PEM text.
    revoked_location : str, optional
        List of revoked certificates, PEM.
    context : ssl.SSLContext, optional
        Context to use instead of all other settings.
    """

    trusted_location: str | None = None
    trusted_pem: str | None = None
    trusted_password: str | None = None
    own_location: str | None = None
    own_password: str | None = None
    own_key_location: str | None = None
    own_certificates_pem: str | None = None
    own_key_pem: str | None = None
    key_password: str | None = None
    revoked_location: str | None = None
    check_hostname: bool = True
    context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return "<settings of TLS>"


class _PemCertificates(NamedTuple):
    certificates: str
    key: str = ""
    key_password: str | None = None

    def __repr__(self) -> str:
        return "<certificates>"


def ssl_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return a context with the certificates of the settings; raise ValueError if one cannot be read."""
    if tls.context is not None:
        return tls.context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_hostname
    try:
        _load_certificates(context, tls)
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(tls, error) from None
    return context


def _check_files(tls: TlsSettings) -> None:
    """Raise OSError for a pipe or a device, which block OpenSSL; ValueError for a key that takes hours to decrypt."""
    for location in (tls.trusted_location, tls.own_location, tls.own_key_location, tls.revoked_location):
        if location is None or Path(location).is_dir():
            continue
        if not Path(location).is_file() and Path(location).exists():
            raise OSError(errno.EINVAL, "not a regular file", location)
        if location in (tls.own_location, tls.own_key_location):
            check_rounds(Path(location).read_bytes(), location)
    if tls.own_key_pem is not None:
        check_rounds(tls.own_key_pem.encode(), "ssl.keystore.key")


def _load_certificates(context: ssl.SSLContext, tls: TlsSettings) -> None:
    _check_files(tls)
    trusted, own = _load_trust_store(tls), _own_store(tls)
    if trusted is not None:
        context.load_verify_locations(cadata=trusted.certificates)
    elif tls.trusted_location is not None and Path(tls.trusted_location).is_dir():
        context.load_verify_locations(capath=tls.trusted_location)
    elif tls.trusted_location is not None or tls.trusted_pem is not None:
        context.load_verify_locations(cafile=tls.trusted_location, cadata=tls.trusted_pem)
    else:
        context.load_default_certs()
    if tls.revoked_location is not None:
        context.load_verify_locations(tls.revoked_location)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    # Without a password, OpenSSL would prompt on the terminal.
    password = tls.key_password or ""
    if own is None and tls.own_certificates_pem is not None:
        own = _PemCertificates(tls.own_certificates_pem, tls.own_key_pem or "", password)
    if own is not None:
        # OpenSSL loads keys only from files: use a temporary file that only the owner can read.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(f"{own.key}\n{own.certificates}")
            pem.flush()
            context.load_cert_chain(pem.name, password=own.key_password)
    elif tls.own_location is not None:
        context.load_cert_chain(tls.own_location, tls.own_key_location, password)


def _unreadable(tls: TlsSettings, error: OSError) -> ValueError:
    files = (tls.trusted_location, tls.own_location, tls.own_key_location, tls.revoked_location)
    names = ", ".join(file for file in files if file is not None)
    return ValueError(f"a certificate or its key cannot be read ({names or 'from text'}): {error}")


def _load_trust_store(tls: TlsSettings) -> _PemCertificates | None:
    """Return the trusted certificates of a PKCS12 store; None if there is no store, or it is PEM."""
    if tls.trusted_location is None or Path(tls.trusted_location).is_dir():
        return None
    data = Path(tls.trusted_location).read_bytes()
    if not _is_pkcs12(data, tls.trusted_location):
        return None
    store = _load_pkcs12(data, tls.trusted_password, tls.trusted_location)
    certificates = [store.cert, *store.additional_certs]
    pem = "".join(_to_pem(certificate.certificate) for certificate in certificates if certificate is not None)
    if not pem:
        raise ValueError(f"{tls.trusted_location} has no certificate")
    return _PemCertificates(pem)


def _own_store(tls: TlsSettings) -> _PemCertificates | None:
    """Return certificate and key of a PKCS12 store; None if there is no store, or it is PEM."""
    if tls.own_location is None:
        return None
    data = Path(tls.own_location).read_bytes()
    if not _is_pkcs12(data, tls.own_location):
        return None
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    store = _load_pkcs12(data, tls.own_password or tls.key_password, tls.own_location)
    if store.key is None or store.cert is None:
        raise ValueError(f"{tls.own_location} has no key with a certificate")
    password = secrets.token_hex()  # protects the key in the temporary file
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    chain = [store.cert, *store.additional_certs]
    return _PemCertificates("".join(_to_pem(certificate.certificate) for certificate in chain), key.decode(), password)


def _is_pkcs12(data: bytes, location: str) -> bool:
    if data.startswith(_JKS):
        raise ValueError(
            f"{location} is a Java key store (JKS), which is not supported: convert it with `keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {Path(location).stem}.p12 -deststoretype PKCS12`, and name the new file"
        )
    return _PEM_MARKER not in data and data.startswith(_PKCS12)


def _load_pkcs12(data: bytes, password: str | None, location: str) -> Any:
    check_rounds(data, location)
    with install_hint("a PKCS12 store", "letterhead[pkcs12]"):
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        # The original message might quote file content.
        raise ValueError(
            f"{location} cannot be read as a PKCS12 store: its password is wrong, or the file is damaged"
        ) from None


def _to_pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    text: str = certificate.public_bytes(Encoding.PEM).decode()
    return text
