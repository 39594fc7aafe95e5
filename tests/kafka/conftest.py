"""A broker, and a Spark session that can reach it: one of each in a process, which share the files of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from tests.helpers.spark_session import local_session
from tests.kafka import broker as kafka
from tests.kafka import identity, registry, secured

GROUPS = {
    **dict.fromkeys(
        [
            "test_copy_in_spark",
            "test_group_offsets",
            "test_kafka_source",
            "test_authentication_matrix",
            "test_pipeline",
            "test_registry",
        ],
        "spark",
    ),
    **dict.fromkeys(
        ["test_connect_page", "test_iam", "test_authentication", "test_registry_authentication", "test_topic"],
        "authentication",
    ),
}
"""Files that run in the same process because they start the same: Spark, or a broker with authentication."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share files and groups of files between processes; pytest-xdist 3.8 finds no groups with pytest 9.2."""
    from xdist.scheduler import LoadFileScheduling

    class GroupScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return GROUPS.get(Path(file).stem, file)

    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def running_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    """A broker."""
    running = kafka.Broker(tmp_path_factory.mktemp("broker"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def broker(running_broker: kafka.Broker) -> str:
    """The address of the broker."""
    return running_broker.address


@pytest.fixture(scope="session")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[secured.Secured]:
    """A broker that wants passwords, certificates or signatures, with a topic ``orders``."""
    own = kafka.Broker(tmp_path_factory.mktemp("safe"))
    where = secured.start(own)
    create_orders(where.plain)
    yield where
    own.stop()


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[identity.Identity]:
    """An identity provider."""
    running = identity.Identity(tmp_path_factory.mktemp("identity"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def oauth_broker(tmp_path_factory: pytest.TempPathFactory, provider: identity.Identity) -> Iterator[str]:
    """The address of a broker that wants OAUTHBEARER over TLS, with a topic ``orders``."""
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/jwks"
    own = kafka.Broker(tmp_path_factory.mktemp("oauth"), options=[allowed])
    plain, address = identity.start_broker(own, provider)
    create_orders(plain)
    yield address
    own.stop()


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[registry.Apicurio]:
    """A schema registry."""
    running = registry.Apicurio(tmp_path_factory.mktemp("registry"))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def guarded_apicurio(
    tmp_path_factory: pytest.TempPathFactory, provider: identity.Identity
) -> Iterator[registry.Apicurio]:
    """A schema registry that wants the tokens of a provider."""
    running = registry.Apicurio(tmp_path_factory.mktemp("guarded"), provider=provider)
    yield running
    running.stop()


def create_orders(address: str) -> None:
    """Create the topic ``orders`` with a record."""
    from tests.kafka.written import create_with

    create_with(address, "orders", 1)
    lh.write.topic(pa.table({"key": ["k"], "value": [b"v"]}), "orders", bootstrap_servers=address)


@pytest.fixture(scope="session")
def written(broker: str) -> Iterator[str]:
    """What the names of the topics of :mod:`written` begin with, which are there while this is."""
    from tests.kafka.written import write_all

    keeps_open = write_all(broker, "written-", 100)
    yield "written-"
    keeps_open.clear()


AWS_PROFILE = "letterhead-tests"


@pytest.fixture(scope="session")
def aws_profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A profile with a key that :func:`safe` knows; workers of Spark have the environment at the start of the session."""
    directory = tmp_path_factory.mktemp("aws")
    names = {"AWS_CONFIG_FILE": directory / "config", "AWS_SHARED_CREDENTIALS_FILE": directory / "credentials"}
    names["AWS_CONFIG_FILE"].write_text(f"[profile {AWS_PROFILE}]\nregion={secured.REGION}\n")
    names["AWS_SHARED_CREDENTIALS_FILE"].write_text(
        f"[{AWS_PROFILE}]\naws_access_key_id={secured.ACCESS_KEY}\naws_secret_access_key={secured.SECRET_KEY}\n"
    )
    with pytest.MonkeyPatch.context() as environment:
        for name, path in names.items():
            environment.setenv(name, str(path))
        yield


@pytest.fixture(scope="session")
def spark(aws_profile):
    from pyspark import SparkContext

    # The connector is loaded when the JVM starts, and a process has one.
    if SparkContext._active_spark_context is not None:
        raise RuntimeError("tests/kafka needs a Spark session with the connector: run it in a process of its own")
    session = local_session(
        "letterhead tests with Kafka",
        {"spark.jars": kafka.connector(), "spark.driver.extraJavaOptions": kafka.QUICK_JVM},
    )
    yield session
    session.stop()
