"""Options for brokers and their settings, as in Kafka's own tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from letterhead.cli.exits import Failure
from letterhead.cli.options import group_options, option
from letterhead.cli.render import warn
from letterhead.cli.settings_files import file_settings

__all__ = ["BrokerSettings", "brokers", "connection_settings", "option_setting"]

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
    """Return the settings of the file in --config, overridden by those of -X."""
    values: BrokerSettings = {}
    if config is not None:
        values |= file_settings(config)
        if not values:
            raise Failure(f"{config} has no settings")
    for setting in settings or ():
        if "=" not in setting:
            raise Failure("-X needs NAME=VALUE, as in security.protocol=SSL")  # the text may be a secret
        values |= option_setting("-X", setting, "--config")
    return values


def option_setting(option: str, text: str, alternative: str) -> dict[str, str]:
    """Parse NAME=VALUE, and warn of a secret on the command line."""
    name, _, value = text.partition("=")
    if _is_secret(name) and "${" not in value:
        warn(
            f"the secret in {option} {name.strip()} is visible to other users: write ${{env:NAME}} or ${{file:PATH}}, or use "
            f"{alternative}"
        )
    return {name.strip(): value}


@group_options(values=connection_settings)
def brokers(
    *,
    bootstrap_server: Annotated[
        str | None, option("--bootstrap-server -b", "Brokers that have the changelog as a topic.", "HOST:PORT")
    ] = None,
    values: BrokerSettings,
) -> BrokerSettings | None:
    """Return the settings of the brokers, or None without any of the options."""
    if bootstrap_server is not None:
        values.pop("metadata.broker.list", None)
        values["bootstrap.servers"] = bootstrap_server
    return values or None


def _is_secret(name: str) -> bool:
    name = name.strip().lower()
    return name.endswith(
        ("password", "jaas.config", "secret", "ssl.keystore.key", "ssl.key.pem", "auth.user.info", "auth.token")
    )
