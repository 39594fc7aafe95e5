"""Options that decode values by the schemas of a registry: :func:`serialized_values`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from letterhead.cli.brokers import option_setting
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.options import option

__all__ = ["ValueFormat", "serialized_values"]

ValueFormat = StrEnum("ValueFormat", ["avro", "json", "protobuf"])

_PANEL = "Values by schema"


def serialized_values(
    value: Annotated[
        ValueFormat | None,
        option(
            "--value",
            "Decode the values by the schemas of --registry, whose ids are in headers or before values.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    key: Annotated[
        ValueFormat | None, option("--key", "Kafka: also decode the keys, or only them.", rich_help_panel=_PANEL)
    ] = None,
    registry: Annotated[
        str | None,
        option(
            "--registry",
            "Address of a schema registry; of Apicurio with /apis/ccompat/v7, or /apis/registry/v2 for ids of its own serializers.",
            "URL",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    registry_settings: Annotated[
        list[str] | None,
        option(
            "--registry-settings",
            "A setting of the registry, as in basic.auth.user.info=user:${env:PASSWORD}, or a property file of them; repeat it for others.",
            "NAME=VALUE|FILE",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    value_subject: Annotated[
        str | None,
        option(
            "--value-subject",
            "The subject whose latest schema defines the columns; by default TOPIC-value.",
            "NAME",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    key_subject: Annotated[
        str | None,
        option("--key-subject", "The subject of the keys; by default TOPIC-key.", "NAME", rich_help_panel=_PANEL),
    ] = None,
    value_schema: Annotated[
        Path | None,
        option(
            "--value-schema",
            "A file with the schema of the columns, instead of a subject.",
            "FILE",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> Any:
    """Return the ``SerializedValues`` of values and of keys, or None; their package is slow to import."""
    if value is None and (value_subject or value_schema):
        raise Failure("--value-subject and --value-schema need --value, as in --value avro")
    if key is None and key_subject:
        raise Failure("--key-subject needs --key, as in --key avro")
    if value is None and key is None:
        if registry or registry_settings:
            raise Failure("--registry and --registry-settings need --value or --key, as in --value avro")
        return None
    if registry is None:
        raise Failure(f"{f'--key {key}' if value is None else f'--value {value}'} needs --registry URL")
    if value_subject is not None and value_schema is not None:
        raise Failure("--value-subject and --value-schema exclude each other: give one of them")
    from letterhead.schemas.registry import Registry
    from letterhead.schemas.serialized import SerializedValues

    with usage_errors():
        settings = _settings(registry_settings or [])
        schema = None if value_schema is None else value_schema.read_text(encoding="utf-8")
        source = Registry(registry, settings)
        parts = []
        if value is not None:
            parts.append(SerializedValues(value.value, source, value_subject, schema))
        if key is not None:
            parts.append(SerializedValues(key.value, source, key_subject, part="key"))
        return tuple(parts)


def _settings(texts: list[str]) -> dict[str, str]:
    """Return settings from options and property files; later values override earlier ones."""
    from letterhead.kafka.properties import read_properties

    settings: dict[str, str] = {}
    for text in texts:
        if "=" in text:
            settings |= option_setting("--registry-settings", text, "a property file")
        else:
            settings |= read_properties(text)
    return settings
