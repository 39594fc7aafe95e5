"""The options that name brokers and their settings, as Kafka's own tools have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.options import grouped, option
from letterhead.cli.render import warn

__all__ = ["BrokerSettings", "brokers", "connection_settings", "file_settings"]

BrokerSettings: TypeAlias = dict[str, str]
"""Settings of :func:`letterhead.read.topic`, with ``bootstrap.servers``."""


def connection_settings(
    config: Annotated[
        Path | None,
        option(
            "--config", "A property file with Kafka's settings of a connection.", "FILE", rich_help_panel="Connection"
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "-X",
            "A setting, as in security.protocol=SSL; ${env:NAME} and ${file:PATH} stand for secrets.",
            "NAME=VALUE",
            rich_help_panel="Connection",
        ),
    ] = None,
) -> BrokerSettings:
    """Return the settings from the file that --config names and from -X, which overrides the file."""
    values: BrokerSettings = {}
    if config is not None:
        values |= file_settings(config)
        if not values:
            raise Failure(f"{config} has no settings")
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise Failure("-X needs NAME=VALUE, as in security.protocol=SSL")  # the text may be a secret
        values[name.strip()] = value
        if _is_secret(name) and "${" not in value:
            warn(
                f"the secret in -X {name.strip()} is visible to other users: write ${{env:NAME}} or ${{file:PATH}}, or use "
                "--config"
            )
    return values


def file_settings(path: str | Path, *, is_of_kcat: bool = False) -> BrokerSettings:
    """Return the settings of a property file, or of a configuration file of kcat; warn of names that are ignored."""
    from letterhead.kafka.properties import read_client_config, read_properties
    from letterhead.kafka.settings import reader_file

    with usage_errors():
        values, others = reader_file(path, read_client_config if is_of_kcat else read_properties)
    if others:
        warn(f"{path}: unknown settings are ignored: {', '.join(others)}")
    return values


@grouped(values=connection_settings)
def brokers(
    *,
    bootstrap_server: Annotated[
        str | None, option("--bootstrap-server", "Brokers that have the changelog as a topic.", "HOST:PORT")
    ] = None,
    values: BrokerSettings,
) -> BrokerSettings | None:
    """Return the settings of the brokers, None without any of the options."""
    if bootstrap_server is not None:
        values.pop("metadata.broker.list", None)
        values["bootstrap.servers"] = bootstrap_server
    elif values and not values.keys() & {"bootstrap.servers", "metadata.broker.list"}:
        raise Failure("no brokers are named: pass --bootstrap-server, or set bootstrap.servers")
    return values or None


def _is_secret(name: str) -> bool:
    name = name.strip().lower()
    return name.endswith(("password", "jaas.config", "secret", "ssl.keystore.key", "ssl.key.pem"))
