"""Connect to the brokers of groups: :func:`connect`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from letterhead.cli.group.options import Cluster
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import AskedLogins

if TYPE_CHECKING:
    from letterhead.kafka.client import KafkaClient

__all__ = ["connect"]


@contextmanager
def connect(cluster: Cluster) -> Iterator[KafkaClient]:
    """Yield a client, and report its errors as failures of the command."""
    with reading_errors():
        from letterhead.kafka.client import KafkaClient
        from letterhead.kafka.settings import reader_settings

        settings = AskedLogins("pass -b host:port").kafka_settings(
            cluster.settings, has_servers=cluster.servers is not None
        )
        with KafkaClient(reader_settings(cluster.servers, settings, timeout_ms=cluster.timeout_ms)) as client:
            yield client
