"""Avro schemas as one text without references: :func:`written_schema` for one, :func:`common_schema` for several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from letterhead.schemas.registered import RegisteredSchema

__all__ = ["common_schema", "parsed", "written_schema"]

Json: TypeAlias = Any

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED = ("record", "error", "enum", "fixed")
_NUMBERS = ("int", "long", "float", "double")

VALUE = "value"
"""The column of a schema that is not a record."""


def parsed(schema: str | Mapping[str, Any]) -> Json:
    """Return the JSON of a schema; the name of a primitive type is a schema, too."""
    if not isinstance(schema, str):
        return schema
    if schema in _PRIMITIVES:
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError):
        raise ValueError("the Avro schema cannot be used: it is not JSON") from None


def written_schema(schema: RegisteredSchema, *, aliases: bool = False) -> dict[str, Any]:
    """Return a schema as a record, with the definitions that it refers to; of another type a record of one field.

    Both are written as the same bytes. Aliases of a schema matter where it is read by, not where it was written by.
    """
    try:
        whole = _Definitions(_referenced(schema), aliases=aliases).inline(parsed(schema.text), "")
    except RecursionError:
        raise ValueError("the Avro schema cannot be used: it is too deep") from None
    if isinstance(whole, dict) and whole.get("type") in ("record", "error"):
        return whole
    return {"type": "record", "name": "Value", "fields": [{"name": VALUE, "type": whole}]}


def common_schema(schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a record with the fields of all records, in the order in which they first occur.

    A field that one of them lacks may be null. Numbers become the wider type.

    Raises
    ------
    ValueError
        If a field has types that no type can hold.
    """
    if all(schema == schemas[0] for schema in schemas):
        return schemas[0]
    fields: dict[str, list[Json]] = {}
    for schema in schemas:
        for field in schema["fields"]:
            fields.setdefault(field["name"], []).append(field["type"])
    merged = [_common_field(name, types, len(schemas)) for name, types in fields.items()]
    record: dict[str, Any] = {
        **{key: schemas[0][key] for key in ("type", "name", "namespace") if key in schemas[0]},
        "fields": merged,
    }
    return _Definitions({}).inline(record, "")  # type: ignore[no-any-return]


def _common_field(name: str, types: list[Json], count: int) -> dict[str, Any]:
    branches = [_branches(each) for each in types]
    distinct: list[Json] = []
    for each in branches:
        some = [branch for branch in each if branch != "null"]
        if some not in distinct:
            distinct.append(some)
    if len(distinct) > 1 and all(len(some) == 1 for some in distinct):
        plain = [some[0] for some in distinct]
        if all(isinstance(each, str) and each in _NUMBERS for each in plain):
            distinct = [[max(plain, key=_NUMBERS.index)]]
        elif sorted(plain, key=str) == ["bytes", "string"]:
            distinct = [["bytes"]]
    if len(distinct) > 1:
        raise ValueError(
            f"the schemas have types of field {name!r} that no column can hold: pass a schema to read them by, or a subject"
        )
    if len(types) == count and not any("null" in each for each in branches):
        return {"name": name, "type": distinct[0][0] if len(distinct[0]) == 1 else distinct[0]}
    return {"name": name, "type": ["null", *distinct[0]], "default": None}


def _branches(type: Json) -> list[Json]:
    return type if isinstance(type, list) else [type]


def _referenced(schema: RegisteredSchema) -> dict[str, Json]:
    """Return the schemas that a schema refers to, and those that they refer to, by full name."""
    found: dict[str, Json] = {}
    for name, each in schema.references.items():
        found |= _referenced(each)
        found[name] = parsed(each.text)
    return found


class _Definitions:
    """Writes definitions where their names are used first, and names afterwards."""

    def __init__(self, referenced: dict[str, Json], *, aliases: bool = False) -> None:
        self._referenced = referenced
        self._dropped = () if aliases else ("aliases",)
        self._defined: dict[str, Json] = {}

    def inline(self, schema: Json, namespace: str) -> Json:
        if isinstance(schema, list):
            return [self.inline(each, namespace) for each in schema]
        if isinstance(schema, str):
            return self._name(schema, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise ValueError("the Avro schema cannot be used: a type is neither a name, a union nor an object")
        kind = schema["type"]
        if kind in _NAMED:
            return self._definition(schema, namespace)
        result = dict(schema)
        for key in ("items", "values"):
            if key in schema:
                result[key] = self.inline(schema[key], namespace)
        if kind in ("array", "map"):
            return result
        result["type"] = self.inline(kind, namespace)
        return result

    def _name(self, name: str, namespace: str) -> Json:
        if name in _PRIMITIVES:
            return name
        full = _full_name(name, namespace)
        for each in (full, name):
            if each in self._defined:
                return each
            if each in self._referenced:
                # A definition without a namespace of its own is in none, not in the one around it.
                return self.inline(self._referenced[each], "")
        return name

    def _definition(self, schema: dict[str, Any], namespace: str) -> Json:
        name = schema.get("name")
        if not isinstance(name, str):
            raise ValueError("the Avro schema cannot be used: a record, enum or fixed has no name")
        full = _full_name(name, schema.get("namespace", namespace))
        inner, _, own = full.rpartition(".")
        if full in self._defined:
            if self._defined[full] == schema:
                return full
            raise ValueError(f"the Avro schema cannot be used: it defines {full} twice")
        self._defined[full] = schema
        result = self._without_aliases({**schema, "name": own, "namespace": inner})
        if "fields" in schema:
            result["fields"] = [
                self._without_aliases({**field, "type": self.inline(field["type"], inner)})
                for field in schema["fields"]
            ]
        return result

    def _without_aliases(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in schema.items() if key not in self._dropped}


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
