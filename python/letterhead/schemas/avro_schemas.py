"""Avro schemas: :func:`inline_references` resolves references, :func:`common_schema` merges several schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from letterhead.schemas.registered import VALUE, RegisteredSchema

__all__ = ["common_schema", "inline_references", "is_record", "parse_schema"]

Json: TypeAlias = Any

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED = ("record", "error", "enum", "fixed")
_NUMBERS = ("int", "long", "float", "double")


def parse_schema(schema: str | Mapping[str, Any]) -> Json:
    """Return the JSON of a schema; the name of a primitive type is also a schema."""
    if not isinstance(schema, str):
        return schema
    if schema in _PRIMITIVES:
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError):
        raise _unusable("it is not JSON") from None


def inline_references(schema: RegisteredSchema, *, aliases: bool = False) -> dict[str, Any]:
    """Return a schema as a record with the definitions that it refers to; other types become a record of one field.

    A value and a record of one field are encoded as the same bytes. Aliases matter in a reader's schema, but not in a
    writer's.
    """
    try:
        whole = _Definitions(_collect_references(schema), aliases=aliases).inline(parse_schema(schema.text), "")
    except RecursionError:
        raise _unusable("it is too deep") from None
    if is_record(whole):
        return whole  # type: ignore[no-any-return]
    return {"type": "record", "name": "Value", "fields": [{"name": VALUE, "type": whole}]}


def is_record(schema: Json) -> bool:
    """Return whether a schema is a record, whose fields are columns."""
    return isinstance(schema, dict) and schema.get("type") in ("record", "error")


def common_schema(schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a record with the fields of all records, in the order in which they first occur.

    A field that some records lack may be null. Numbers become the wider type.

    Raises
    ------
    ValueError
        If no type can hold all values of a field.
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
    unions = list(map(_branches, types))
    distinct: list[Json] = []
    for union in unions:
        branches = [branch for branch in union if branch != "null"]
        if branches not in distinct:
            distinct.append(branches)
    if len(distinct) > 1 and all(len(branches) == 1 for branches in distinct):
        single = [branches[0] for branches in distinct]
        if all(isinstance(type, str) and type in _NUMBERS for type in single):
            distinct = [[max(single, key=_NUMBERS.index)]]
        elif sorted(single, key=str) == ["bytes", "string"]:
            distinct = [["bytes"]]
    if len(distinct) > 1:
        raise ValueError(
            f"the schemas have types of field {name!r} that no column can hold: pass a schema to read them by, or a subject"
        )
    if len(types) == count and not any("null" in union for union in unions):
        return {"name": name, "type": distinct[0][0] if len(distinct[0]) == 1 else distinct[0]}
    return {"name": name, "type": ["null", *distinct[0]], "default": None}


def _unusable(reason: str) -> ValueError:
    return ValueError(f"the Avro schema cannot be used: {reason}")


def _branches(type: Json) -> list[Json]:
    return type if isinstance(type, list) else [type]


def _collect_references(schema: RegisteredSchema) -> dict[str, Json]:
    """Return the schemas that a schema refers to, directly and indirectly, by full name."""
    found: dict[str, Json] = {}
    for name, reference in schema.references.items():
        found |= _collect_references(reference)
        found[name] = parse_schema(reference.text)
    return found


class _Definitions:
    """Inlines definitions at the first use of their names; later uses keep the name."""

    def __init__(self, referenced: dict[str, Json], *, aliases: bool = False) -> None:
        self._referenced = referenced
        self._dropped = () if aliases else ("aliases",)
        self._defined: dict[str, Json] = {}

    def inline(self, schema: Json, namespace: str) -> Json:
        if isinstance(schema, list):
            return [self.inline(branch, namespace) for branch in schema]
        if isinstance(schema, str):
            return self._name(schema, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise _unusable("a type is neither a name, a union nor an object")
        type = schema["type"]
        if type in _NAMED:
            return self._definition(schema, namespace)
        result = dict(schema)
        for key in ("items", "values"):
            if key in schema:
                result[key] = self.inline(schema[key], namespace)
        if type in ("array", "map"):
            return result
        result["type"] = self.inline(type, namespace)
        return result

    def _name(self, name: str, namespace: str) -> Json:
        if name in _PRIMITIVES:
            return name
        full = _full_name(name, namespace)
        for known in (full, name):
            if known in self._defined:
                return known
            if known in self._referenced:
                # A definition does not inherit the namespace of the schema that refers to it.
                return self.inline(self._referenced[known], "")
        return name

    def _definition(self, schema: dict[str, Any], namespace: str) -> Json:
        name = schema.get("name")
        if not isinstance(name, str):
            raise _unusable("a record, enum or fixed has no name")
        full = _full_name(name, schema.get("namespace", namespace))
        inner, _, own = full.rpartition(".")
        if full in self._defined:
            if self._defined[full] == schema:
                return full
            raise _unusable(f"it defines {full} twice")
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
