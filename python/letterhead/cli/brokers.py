"""The options that name brokers and their settings, as Kafka's own tools have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.options import option

__all__ = ["BrokerSettings", "brokers"]

BrokerSettings: TypeAlias = dict[str, str]
"""Settings of :func:`letterhead.read.topic`, with ``bootstrap.servers``."""


def brokers(
    bootstrap_server: Annotated[
        str | None, option("--bootstrap-server", "Brokers that have the changelog as a topic.", "HOST:PORT")
    ] = None,
    config: Annotated[
        Path | None, option("--config", "A property file with Kafka's settings of a connection.", "FILE")
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "-X",
            "A setting, as in security.protocol=SSL; ${env:NAME} and ${file:PATH} stand for secrets.",
            "NAME=VALUE",
        ),
    ] = None,
) -> BrokerSettings | None:
    """Return the settings of the brokers, None without any of the options."""
    if bootstrap_server is None and config is None and not settings:
        return None
    values: BrokerSettings = {}
    if config is not None:
        from letterhead.kafka.properties import read_properties

        with usage_errors():
            values |= read_properties(config)
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise Failure("-X needs NAME=VALUE, as in security.protocol=SSL")  # the text may be a secret
        values[name.strip()] = value
    if bootstrap_server is not None:
        values.pop("metadata.broker.list", None)
        values["bootstrap.servers"] = bootstrap_server
    elif not values.keys() & {"bootstrap.servers", "metadata.broker.list"}:
        raise Failure("no brokers are named: pass --bootstrap-server, or set bootstrap.servers")
    return values
