"""The settings of docs/how-to/connect.md, each with a broker here that has the mechanism of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.kafka.properties import read_properties
from tests.helpers.pages import ROOT, fences
from tests.kafka import secured
from tests.kafka.conftest import AWS_PROFILE
from tests.kafka.secured import Secured

pytestmark = pytest.mark.broker

BLOCKS = {
    mark.partition(" ")[2]: code
    for mark, code in fences((ROOT / "docs/how-to/connect.md").read_text(encoding="utf-8"))
    if mark.startswith("text ")
}


def with_password(safe: Secured, directory: Path) -> dict[str, str]:
    return {"bootstrap.servers": safe.secure, "ssl.truststore.location": str(safe.authority)}


def iam(safe: Secured, directory: Path) -> dict[str, str]:
    # The name of the broker here has no region, so that of the profile is used.
    return {"bootstrap.servers": safe.iam, "ssl.truststore.location": str(safe.authority)}


def aiven(safe: Secured, directory: Path) -> dict[str, str]:
    key, begin, chain = safe.client.read_text().partition("-----BEGIN CERT")
    (directory / "service.key").write_text(key)
    (directory / "service.cert").write_text(begin + chain)
    (directory / "ca.pem").write_bytes(safe.authority.read_bytes())
    return {"bootstrap.servers": safe.mutual}


def strimzi(safe: Secured, directory: Path) -> dict[str, str]:
    (directory / "ca.crt").write_bytes(safe.authority.read_bytes())
    (directory / "user.p12").write_bytes(secured.pkcs12(safe.client, "store-password"))
    (directory / "user.password").write_text("store-password")
    return {"bootstrap.servers": safe.mutual}


STAND_INS: dict[str, Callable[[Secured, Path], dict[str, str]]] = {
    "confluent_cloud": with_password,
    "msk_iam": iam,
    "msk_scram": with_password,
    "event_hubs": with_password,
    "aiven": aiven,
    "redpanda": with_password,
    "strimzi": strimzi,
}
"""What differs here: addresses, authorities and secrets."""

SECRETS = {
    "API_KEY": secured.PLAIN_USER,
    "API_SECRET": secured.PLAIN_PASSWORD,
    "KAFKA_USER": secured.USER,
    "KAFKA_PASSWORD": secured.PASSWORD,
    "EVENT_HUBS_CONNECTION": secured.CONNECTION,
    "AWS_PROFILE": AWS_PROFILE,
}


def test_page_code_blocks_run():
    assert BLOCKS.keys() == STAND_INS.keys() | {"kerberos"}  # which test_kerberos.py runs


@pytest.mark.parametrize("cluster", STAND_INS)
def test_cluster_settings_open_topic(safe, aws_profile, tmp_path, monkeypatch, cluster):
    monkeypatch.chdir(tmp_path)
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    changed = STAND_INS[cluster](safe, tmp_path)
    Path("client.properties").write_text(BLOCKS[cluster])
    settings = read_properties("client.properties") | changed
    with lh.read.topic("orders", settings=settings, timeout_ms=30_000) as reader:
        assert len(reader.read_all()) > 0
    assert lh.write.topic(pa.table({"key": ["k"], "value": [b"v"]}), "orders", settings=settings).rows == 1
