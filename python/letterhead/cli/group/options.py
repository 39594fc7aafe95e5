"""Options for the brokers of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from letterhead.cli.brokers import connection_settings
from letterhead.cli.options import group_options, option
from letterhead.cli.sources.options import Timeout, as_milliseconds

__all__ = ["Cluster", "cluster"]


class Cluster(NamedTuple):
    """Brokers of the groups, and connection options."""

    servers: str | None
    settings: Mapping[str, str]
    timeout_ms: int | None


@group_options(settings=connection_settings)
def cluster(
    *,
    bootstrap_server: Annotated[
        str | None, option("--bootstrap-server -b", "Brokers of Kafka.", "HOST:PORT", rich_help_panel="Connection")
    ] = None,
    timeout: Timeout = None,
    settings: Mapping[str, str],
) -> Cluster:
    """Return the brokers."""
    return Cluster(bootstrap_server, settings, as_milliseconds(timeout))
