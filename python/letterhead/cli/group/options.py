"""The options that name the brokers of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from letterhead.cli.brokers import connection_settings
from letterhead.cli.options import grouped, option
from letterhead.cli.sources.options import Timeout
from letterhead.sources.base import TIMEOUT_MS

__all__ = ["Cluster", "cluster"]


class Cluster(NamedTuple):
    """The brokers that have the groups, and how to connect to them."""

    servers: str | None
    settings: Mapping[str, str]
    timeout_ms: int


@grouped(settings=connection_settings)
def cluster(
    *,
    bootstrap_server: Annotated[
        str | None, option("--bootstrap-server -b", "Brokers of Kafka.", "HOST:PORT", rich_help_panel="Connection")
    ] = None,
    timeout: Timeout = TIMEOUT_MS / 1000,
    settings: Mapping[str, str],
) -> Cluster:
    """Return the brokers."""
    return Cluster(bootstrap_server, settings, round(timeout * 1000))
