"""Connection settings from a property file, or from a configuration file of kcat: :func:`file_settings`."""

from __future__ import annotations

from pathlib import Path

from letterhead.cli.exits import usage_errors
from letterhead.cli.render import warn

__all__ = ["file_settings"]


def file_settings(path: str | Path, *, is_of_kcat: bool = False) -> dict[str, str]:
    """Return the settings of a property file, or of a kcat configuration file; warn of ignored names."""
    from letterhead.kafka.properties import read_client_config, read_properties
    from letterhead.kafka.settings import reader_file

    with usage_errors():
        values, others = reader_file(path, read_client_config if is_of_kcat else read_properties)
    if others:
        warn(f"{path}: unknown settings are ignored: {', '.join(others)}")
    return values
