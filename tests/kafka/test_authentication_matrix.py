"""Every mechanism of a login with everything that logs in: readers, writers, Spark and the command line.

The settings are those of Java's clients, as a property file or as options of Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import spark as lhs
from letterhead.cli import main
from tests.kafka import secured
from tests.kafka.conftest import AWS_PROFILE
from tests.kafka.identity import Identity
from tests.kafka.test_kafka_source import OURS, collected, same

pytestmark = pytest.mark.broker

SECURITY = "org.apache.kafka.common.security"


def password(safe: secured.Secured, mechanism: str) -> dict[str, str]:
    is_plain = mechanism == "PLAIN"
    user, secret = (secured.PLAIN_USER, secured.PLAIN_PASSWORD) if is_plain else (secured.USER, secured.PASSWORD)
    module = "plain.PlainLoginModule" if is_plain else "scram.ScramLoginModule"
    return {
        "bootstrap.servers": safe.secure,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SECURITY}.{module} required username="{user}" password="{secret}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(safe.authority),
    }


def certificate(safe: secured.Secured) -> dict[str, str]:
    return {
        "bootstrap.servers": safe.mutual,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(safe.authority),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(safe.client),
    }


def signature(safe: secured.Secured) -> dict[str, str]:
    return {
        "bootstrap.servers": safe.iam,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": f'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="{AWS_PROFILE}";',
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(safe.authority),
    }


def token(address: str, provider: Identity) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": provider.endpoint,
        "sasl.jaas.config": f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required clientId="letters" '
        f'clientSecret="any" scope="kafka" ssl.truststore.type="PEM" ssl.truststore.location="{provider.authority}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(provider.authority),
    }


MECHANISMS: dict[str, Callable[[pytest.FixtureRequest], dict[str, str]]] = {
    "PLAIN": lambda request: password(request.getfixturevalue("safe"), "PLAIN"),
    "SCRAM-SHA-256": lambda request: password(request.getfixturevalue("safe"), "SCRAM-SHA-256"),
    "SCRAM-SHA-512": lambda request: password(request.getfixturevalue("safe"), "SCRAM-SHA-512"),
    "certificate": lambda request: certificate(request.getfixturevalue("safe")),
    "AWS_MSK_IAM": lambda request: signature(request.getfixturevalue("safe")),
    "OAUTHBEARER": lambda request: token(
        request.getfixturevalue("oauth_broker"), request.getfixturevalue("provider")
    ),
}  # fmt: skip


@pytest.fixture(params=MECHANISMS, scope="module")
def mechanism(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def settings(request, mechanism, aws_profile) -> dict[str, str]:
    return MECHANISMS[mechanism](request)


@pytest.fixture
def property_file(settings, tmp_path) -> Path:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def count(property_file: Path) -> int:
    with lh.read.topic("orders", settings=property_file, timeout_ms=30_000) as reader:
        return len(reader.read_all())


def test_python_reads(property_file):
    assert count(property_file) > 0


def test_python_writes(property_file):
    before = count(property_file)
    assert lh.write.topic(pa.table({"key": ["k"], "value": [b"v"]}), "orders", settings=property_file).rows == 1
    assert count(property_file) == before + 1


def test_spark_reads(spark, mechanism, settings, property_file):
    lhs.register(spark)
    options = {f"kafka.{name}": value for name, value in settings.items()} | {"subscribe": "orders"}
    # AWS's library is not there for Spark's own source.
    rows = collected(spark, OURS, **options) if mechanism == "AWS_MSK_IAM" else same(spark, **options)
    assert len(rows) == count(property_file)


def test_command_line_reads(property_file, tmp_path, capsys):
    restore = ["state", "restore", "orders", str(tmp_path / "app" / "0_0"), "-s", "orders", "--force", "--json"]
    assert main([*restore, "--config", str(property_file)]) == 0
    assert capsys.readouterr().out
