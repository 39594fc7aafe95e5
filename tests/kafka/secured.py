"""A broker that is reached over TLS with a password, a certificate, or AWS's signatures, and the certificates for it."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import NamedTuple

from tests.kafka.broker import Broker
from tests.ports import free_ports

USER, PASSWORD = "alice", "pass; word = with all"
PLAIN_USER, PLAIN_PASSWORD = "bob", "another-secret-word"
CONNECTION = "Endpoint=sb://orders.test/;SharedAccessKeyName=read;SharedAccessKey=never+to/be/seen="
"""The password of the user ``$ConnectionString``, as in Event Hubs."""

REGION = "eu-central-1"
ACCESS_KEY, SECRET_KEY = "AKIALETTERHEAD", "never-to-be-seen/1"
ROLE_ACCESS_KEY, ROLE_SECRET_KEY, ROLE_TOKEN = "ASIALETTERHEAD", "never-to-be-seen/2", "session/token+of=a role"
"""What the broker knows instead of AWS: an access key, and a temporary one; as in Iam.java."""

# Topics and groups without an ACL are open to everyone.
_MORE = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},SECURE://127.0.0.1:{secure},MUTUAL://127.0.0.1:{mutual},EXPIRED://127.0.0.1:{expired},IAM://127.0.0.1:{iam},OPEN://127.0.0.1:{open}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},MUTUAL://127.0.0.1:{mutual},EXPIRED://127.0.0.1:{expired},IAM://127.0.0.1:{iam},OPEN://127.0.0.1:{open}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL,EXPIRED:SSL,IAM:SASL_SSL,OPEN:SASL_PLAINTEXT
inter.broker.listener.name=PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={own}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
listener.name.mutual.ssl.client.auth=required
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{plain_user}="{plain_password}" user_$ConnectionString="{connection}";
listener.name.open.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN
listener.name.open.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.open.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.open.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{plain_user}="{plain_password}";
listener.name.expired.ssl.keystore.type=PEM
listener.name.expired.ssl.keystore.location={own_expired}
security.providers=letterhead.testing.broker.Iam
listener.name.iam.sasl.enabled.mechanisms=AWS_MSK_IAM,OAUTHBEARER
listener.name.iam.aws_msk_iam.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required;
listener.name.iam.oauthbearer.sasl.server.callback.handler.class=letterhead.testing.broker.Iam$Tokens
listener.name.iam.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule \
required unsecuredLoginStringClaim_sub="broker";
"""


class Secured(NamedTuple):
    """Where a broker is reached, and whom to trust.

    Attributes
    ----------
    plain, secure, mutual, expired, iam, open : str
        Addresses: without anything; with TLS and a password; with TLS and a certificate; with a certificate of the broker
        that has expired; with AWS's signatures; with a password and without TLS.
    authority, stranger, client : Path
        PEM: of the authority that signed its certificate; of another one; key and certificate of a client.
    none_revoked, revoked : Path
        PEM: lists of revoked certificates, of which the second has that of the broker.
    """

    plain: str
    secure: str
    mutual: str
    expired: str
    iam: str
    open: str
    authority: Path
    stranger: Path
    client: Path
    none_revoked: Path
    revoked: Path


def start(broker: Broker) -> Secured:
    """Start it."""
    directory = broker.directory
    directory.mkdir(parents=True, exist_ok=True)
    trusted, stranger, own, client = (directory / f"{name}.pem" for name in ("authority", "stranger", "own", "client"))
    key, certificate = authority(trusted)
    authority(stranger)
    serials = [signed(path, key, certificate) for path in (own, client)]
    own_expired = directory / "own-expired.pem"
    signed(own_expired, key, certificate, days=-1)
    none_revoked, revoked = (directory / f"{name}.crl.pem" for name in ("none", "own"))
    _revoke(none_revoked, key, certificate, serials[1:])
    _revoke(revoked, key, certificate, serials)
    port, controller, secure, mutual, expired, iam, without_tls = free_ports(7)
    more = _MORE.format(
        port=port, controller=controller, secure=secure, mutual=mutual, expired=expired, iam=iam, open=without_tls, own=own,
        own_expired=own_expired, authority=trusted,
        plain_user=PLAIN_USER, plain_password=PLAIN_PASSWORD, connection=CONNECTION,
    )  # fmt: skip
    users = [f'SCRAM-SHA-{bits}=[name="{USER}",password="{PASSWORD}"]' for bits in (256, 512)]
    broker.start(port, more=more, format=[part for user in users for part in ("--add-scram", user)])
    return Secured(
        f"127.0.0.1:{port}",
        f"127.0.0.1:{secure}",
        f"127.0.0.1:{mutual}",
        f"127.0.0.1:{expired}",
        f"127.0.0.1:{iam}",
        f"127.0.0.1:{without_tls}",
        trusted,
        stranger,
        client,
        none_revoked,
        revoked,
    )


def authority(path: Path):
    """Write the certificate of a new authority; return its key and its certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _key()
    builder = _certificate(path.stem, path.stem, key).add_extension(x509.BasicConstraints(True, None), critical=True)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    path.write_bytes(_pem(certificate))
    return key, certificate


def signed(path: Path, authority_key, authority, days: int = 1) -> int:
    """Write key and certificate of 127.0.0.1, signed by an authority for some days; return the serial number."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = _key()
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = _certificate(path.stem, "authority", key, days).add_extension(names, critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = builder.add_extension(identifier, critical=False).sign(authority_key, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + _pem(certificate) + _pem(authority))
    return certificate.serial_number


def _revoke(path: Path, authority_key, authority, serials: list[int]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
    builder = builder.last_update(now - day).next_update(now + day)
    for serial in serials:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - day).build()
        builder = builder.add_revoked_certificate(entry)
    path.write_bytes(_pem(builder.sign(authority_key, hashes.SHA256())))


def _key():
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(65537, 2048)


def _certificate(common_name: str, by: str, key, days: int = 1):
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (common_name, by))
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def pkcs12(path: Path, password: str) -> bytes:
    """Return the key and the certificates of a PEM file as a PKCS12 store."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

    data = path.read_bytes()
    certificate, *others = x509.load_pem_x509_certificates(data)
    return serialize_key_and_certificates(
        b"own",
        serialization.load_pem_private_key(data, None),
        certificate,
        others,
        serialization.BestAvailableEncryption(password.encode()),
    )


def trusting(authority: Path) -> ssl.SSLContext:
    """Return a context that trusts an authority."""
    return ssl.create_default_context(cafile=str(authority))


def _pem(certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)
