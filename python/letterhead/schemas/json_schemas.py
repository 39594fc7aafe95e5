"""Columns of a JSON Schema, and their values: :func:`columns_of`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from letterhead._optional_dependencies import install_hint
from letterhead.schemas.registered import VALUE, RegisteredSchema
from letterhead.schemas.row_decoders import RefusedValue

__all__ = ["columns_of", "converter", "open_schema", "parse_value", "validate"]

BASE = "json-schema:///schema"
"""Address of a schema, to which those of its references are relative."""

_MAX_DEPTH = 64
_INT64 = 1 << 63
_TEXT = pa.string()
_JSON = {b"letterhead.json": b"true"}
"""Mark of a column of JSON text."""


class JsonColumn(NamedTuple):
    """The type of a column, and the metadata of its field."""

    type: pa.DataType
    metadata: dict[bytes, bytes] | None = None

    def field(self, name: str) -> pa.Field:
        """Return a nullable field of this type."""
        return pa.field(name, self.type, metadata=self.metadata)


_ANY = JsonColumn(_TEXT, _JSON)
_PLAIN = {
    "string": JsonColumn(_TEXT),
    "integer": JsonColumn(pa.int64()),
    "number": JsonColumn(pa.float64()),
    "boolean": JsonColumn(pa.bool_()),
}


class OpenSchema(NamedTuple):
    """A schema and what it refers to, as its validator reads them."""

    document: Any
    resources: Any
    address: str
    validator: Any


def open_schema(schema: RegisteredSchema) -> OpenSchema:
    """Read a schema; raise ValueError if it cannot be used."""
    with install_hint("letterhead.schemas with JSON Schema", "letterhead[json-schema]"):
        import jsonschema_rs

    try:
        document, documents = parse_json(schema.text), references(schema)
    except ValueError:
        raise ValueError("the JSON schema cannot be used: it is not JSON") from None
    own = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    address = own if isinstance(own, str) and ":" in own else BASE
    try:
        # Schemas come from the registry alone: an address in one is not fetched.
        resources = jsonschema_rs.Registry([*documents, (address, document)], retriever=_refuse_address)
        validator = jsonschema_rs.validator_for(document, registry=resources, base_uri=address, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = str(getattr(error, "message", error)).partition("\n")[0]
        raise ValueError(f"the JSON schema cannot be used: {reason}") from None
    return OpenSchema(document, resources, address, validator)


def columns_of(schema: RegisteredSchema) -> pa.Schema:
    """Return the columns of a schema: its properties, or ``value`` if it is not an object."""
    opened = open_schema(schema)
    column = column_of(opened.document, opened.resources.resolver(opened.address))
    return pa.schema(list(column.type) if pa.types.is_struct(column.type) else [column.field(VALUE)])


def _refuse_address(address: str) -> Any:
    raise ValueError("the registry does not have it")


def parse_value(value: bytes | str) -> Any:
    """Return the document of a value; raise RefusedValue if it is none."""
    try:
        document = parse_json(value)
    except UnicodeDecodeError as error:
        raise RefusedValue("value_not_utf8", "the value is not UTF-8", error.start) from None
    except json.JSONDecodeError as error:
        raise RefusedValue("bad_text", "the value is not JSON", len(error.doc[: error.pos].encode())) from None
    except ValueError:
        raise RefusedValue("bad_text", "the value is not JSON with distinct members and finite numbers") from None
    return document


def validate(validator: Any, document: Any) -> None:
    """Raise RefusedValue if a schema does not allow a document."""
    import jsonschema_rs

    try:
        validator.validate(document)
    except jsonschema_rs.ValidationError as error:
        # Paths and messages of the instance may contain data.
        place = "/".join(map(str, error.schema_path))
        raise RefusedValue("wrong_type", f"the schema does not allow the value, by {place}") from None
    except ValueError:
        raise RefusedValue("bad_text", "the value has text or a number that cannot be validated") from None


def parse_json(data: bytes | str) -> Any:
    """Return a JSON document; raise ValueError if it is none, or names a member twice."""
    text = data if isinstance(data, str) else data.decode("utf-8")
    try:
        return json.loads(text, object_pairs_hook=_members, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is too deep") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names a member twice")
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def references(schema: RegisteredSchema) -> list[tuple[str, Any]]:
    """Return the documents that a schema refers to, by address, and those that they refer to."""
    found: list[tuple[str, Any]] = []
    for name, reference in schema.references.items():
        found += [*references(reference), (name, parse_json(reference.text))]
    return found


def column_of(schema: Any, resolver: Any, above: tuple[Any, ...] = ()) -> JsonColumn:
    """Return the column of a schema. Its open and recursive parts are JSON text."""
    if not isinstance(schema, Mapping) or len(above) > _MAX_DEPTH:
        return _ANY
    if "$ref" in schema:
        return _reference(schema["$ref"], resolver, above)
    above = (*above, None)
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema and (keyword == "allOf" or "properties" not in schema):
            rest = [{name: each for name, each in schema.items() if name != keyword}] if "properties" in schema else []
            return _choice([*schema[keyword], *rest], resolver, above, merged=keyword == "allOf")
    types = schema.get("type", _type_of_values(schema))
    types = [each for each in (types if isinstance(types, list) else [types]) if each != "null"] or ["null"]
    if sorted(map(str, types)) == ["integer", "number"]:
        types = ["number"]
    if len(types) != 1:
        return _ANY
    if types[0] == "object":
        return _object(schema, resolver, above)
    if types[0] == "array" and isinstance(schema.get("items"), Mapping) and "prefixItems" not in schema:
        return JsonColumn(pa.list_(column_of(schema["items"], resolver, above).field("item")))
    return _PLAIN.get(types[0], _ANY) if isinstance(types[0], str) else _ANY


def _type_of_values(schema: Mapping[str, Any]) -> Any:
    if "properties" in schema:
        return "object"
    values = [schema["const"]] if "const" in schema else schema.get("enum", [0])
    return "string" if isinstance(values, list) and all(isinstance(each, str | None) for each in values) else "any"


def _reference(target: Any, resolver: Any, above: tuple[Any, ...]) -> JsonColumn:
    import jsonschema_rs

    try:
        resolved = resolver.lookup(target)
    except (jsonschema_rs.ReferencingError, ValueError, TypeError):
        raise ValueError(f"the JSON schema refers to {target}, which the registry does not have") from None
    # Two documents may have different schemas of one name.
    key = resolved.resolver.base_uri, target
    return _ANY if key in above else column_of(resolved.contents, resolved.resolver, (*above, key))


def _choice(schemas: Any, resolver: Any, above: tuple[Any, ...], *, merged: bool) -> JsonColumn:
    """Return the common column of several schemas."""
    parts = [column_of(each, resolver, above) for each in schemas if each != {"type": "null"}]
    if not parts:
        return _ANY
    if merged and all(pa.types.is_struct(part.type) for part in parts):
        fields = {field.name: field for part in parts for field in part.type}
        return JsonColumn(pa.struct(list(fields.values())))
    return parts[0] if all(part == parts[0] for part in parts) else _ANY


def _object(schema: Mapping[str, Any], resolver: Any, above: tuple[Any, ...]) -> JsonColumn:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        return JsonColumn(
            pa.struct([column_of(each, resolver, above).field(name) for name, each in properties.items()])
        )
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping) and others:
        return JsonColumn(pa.map_(pa.string(), column_of(others, resolver, above).field("value")))
    return _ANY


Convert = Callable[[Any], Any]
"""Returns a value of JSON for a column; raises :class:`RefusedValue`."""


def converter(field: pa.Field, path: str) -> Convert:
    """Return the function that makes values of a column; ``path`` is its name in errors."""
    type = field.type
    if field.metadata and b"letterhead.json" in field.metadata:
        return _optional(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    if pa.types.is_struct(type):
        members = [(each.name, converter(each, f"{path}.{each.name}")) for each in type]
        return _of(dict, "an object", path, lambda value: {name: make(value.get(name)) for name, make in members})
    if pa.types.is_map(type):
        item = converter(type.item_field, f"{path}[]")
        return _of(dict, "an object", path, lambda value: [(key, item(each)) for key, each in value.items()])
    if pa.types.is_list(type):
        item = converter(type.value_field, f"{path}[]")
        return _of(list, "an array", path, lambda value: [*map(item, value)])
    if pa.types.is_integer(type):
        return _optional(lambda value: _integer(value, path))
    if pa.types.is_floating(type):
        return _optional(lambda value: _number(value, path))
    if pa.types.is_boolean(type):
        return _of(bool, "a boolean", path, lambda value: value)
    return _of(str, "a string", path, lambda value: _text(value, path))


def _text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RefusedValue("value_not_utf8", f"{path} has half of a character of UTF-16") from None
    return value


def _optional(make: Convert) -> Convert:
    return lambda value: None if value is None else make(value)


def _of(expected: type, name: str, path: str, make: Convert) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not expected:
            raise RefusedValue("wrong_type", f"{path} is not {name}, which its column needs")
        return make(value)

    return convert


def _integer(value: Any, path: str) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise RefusedValue("wrong_type", f"{path} is not an integer, which its column needs")
    if not -_INT64 <= value < _INT64:
        raise RefusedValue("out_of_range", f"{path} is an integer of more than 64 bits")
    return value


def _number(value: Any, path: str) -> float:
    if type(value) not in (int, float):
        raise RefusedValue("wrong_type", f"{path} is not a number, which its column needs")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) or number != value:
        raise RefusedValue("out_of_range", f"{path} is a number that a double cannot hold")
    return number
