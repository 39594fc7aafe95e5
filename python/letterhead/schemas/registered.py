"""Schemas as stored by a registry: :class:`RegisteredSchema`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["VALUE", "RegisteredSchema", "SchemaVersion"]

VALUE = "value"
"""Name of the column for schemas that are not records or objects."""


class RegisteredSchema(NamedTuple):
    """Schema of a registry, with the schemas that it refers to.

    Attributes
    ----------
    type : str
        ``AVRO``, ``JSON`` or ``PROTOBUF``.
    text : str
        The schema as it was registered.
    references : dict of str to RegisteredSchema
        Schemas by the names under which the text refers to them: a full name in Avro, a URL in JSON Schema, an import
        in Protobuf.
    """

    type: str
    text: str
    references: dict[str, RegisteredSchema]


class SchemaVersion(NamedTuple):
    """Schema of a subject, with the ids by which values refer to it.

    Attributes
    ----------
    schema : RegisteredSchema
        The schema.
    id : int
        Id of the schema in the registry.
    guid : str or None
        GUID of the schema, if the registry has one.
    """

    schema: RegisteredSchema
    id: int
    guid: str | None
