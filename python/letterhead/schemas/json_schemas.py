"""Columns of a JSON Schema, and their values: :func:`open_schema`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from letterhead._optional_dependencies import install_hint
from letterhead._strict_json import JsonError, parse_json
from letterhead.schemas.refused_values import RefusedValue, distinct_entries
from letterhead.schemas.registered import RegisteredSchema

__all__ = ["converter", "document_maker", "keeps_json", "open_schema", "parse_document", "validate"]

BASE = "json-schema:///schema"
"""Base address of a schema, to which its references are relative."""

_MAX_DEPTH = 64
_INT64 = 1 << 63
_TEXT = pa.string()
_JSON = {b"letterhead.json": b"true"}
"""Field metadata of a column of JSON text."""

_REQUIRED = {b"letterhead.required": b"true"}
"""Field metadata of a property that its object requires."""


class JsonColumn(NamedTuple):
    """Type of a column, and the metadata of its field."""

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
    """Column of a schema, and the validator of its values."""

    column: JsonColumn
    validator: Any

    @property
    def is_object(self) -> bool:
        """Whether each property is a column."""
        return bool(pa.types.is_struct(self.column.type))


def open_schema(schema: RegisteredSchema) -> OpenSchema:
    """Parse a schema; raise ValueError if it is unusable."""
    with install_hint("letterhead.schemas with JSON Schema", "letterhead[json-schema]"):
        import jsonschema_rs

    try:
        document, documents = parse_json(schema.text), references(schema)
    except JsonError as error:
        raise ValueError(f"the JSON schema cannot be used: it is not JSON: {error}") from None
    own = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    address = own if isinstance(own, str) and ":" in own else BASE
    try:
        # Schemas come from the registry only: remote references are not fetched.
        resources = jsonschema_rs.Registry([*documents, (address, document)], retriever=_refuse_address)
        validator = jsonschema_rs.validator_for(document, registry=resources, base_uri=address, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = str(getattr(error, "message", error)).partition("\n")[0]
        raise ValueError(f"the JSON schema cannot be used: {reason}") from None
    return OpenSchema(column_of(document, resources.resolver(address)), validator)


def _refuse_address(address: str) -> Any:
    raise ValueError("the registry does not have it")


def parse_document(value: bytes | str, *, exact: bool = False) -> Any:
    """Parse a value as JSON; raise RefusedValue if it is invalid, or if ``exact`` and a double rounds a number."""
    try:
        return parse_json(value, numbers="exact double" if exact else "double")
    except JsonError as error:
        raise RefusedValue(error.code, f"the value cannot be read as JSON: {error}", error.byte) from None


def validate(validator: Any, document: Any) -> None:
    """Raise RefusedValue if a schema does not allow a document."""
    import jsonschema_rs

    try:
        validator.validate(document)
    except jsonschema_rs.ValidationError as error:
        # The instance path and the message of the error may contain data.
        rule = "/".join(map(str, error.schema_path))
        raise RefusedValue("wrong_type", f"the schema does not allow the value, by {rule}") from None
    except ValueError:
        raise RefusedValue("bad_text", "the value has text or a number that cannot be validated") from None


def references(schema: RegisteredSchema) -> list[tuple[str, Any]]:
    """Return the documents that a schema refers to, directly and indirectly, by address."""
    found: list[tuple[str, Any]] = []
    for name, reference in schema.references.items():
        found += [*references(reference), (name, parse_json(reference.text))]
    return found


def column_of(schema: Any, resolver: Any, above: tuple[Any, ...] = ()) -> JsonColumn:
    """Return the column of a schema. Parts without a definite type and recursive parts are JSON text."""
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
    # Schemas of the same name in two documents may differ.
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
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        fields = [column_of(each, resolver, above).field(name) for name, each in properties.items()]
        return JsonColumn(pa.struct([_require(field) if field.name in required else field for field in fields]))
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping) and others:
        return JsonColumn(pa.map_(pa.string(), column_of(others, resolver, above).field("value")))
    return _ANY


def _require(field: pa.Field) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), **_REQUIRED})


Convert = Callable[[Any], Any]
"""Function that converts a JSON value for a column; raises :class:`RefusedValue`."""


def converter(field: pa.Field, path: str) -> Convert:
    """Return the function that converts values for a column; ``path`` is its name in errors."""
    type = field.type
    if _is_marked(field, _JSON):
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


def keeps_json(type: pa.DataType) -> bool:
    """Return whether a part of a column is JSON text."""
    fields = [type.field(index) for index in range(type.num_fields)]
    return any(_is_marked(field, _JSON) or keeps_json(field.type) for field in fields)


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


def document_maker(field: pa.Field, path: str) -> Convert:
    """Return the function that converts non-null values of a column to JSON."""
    type = field.type
    if _is_marked(field, _JSON):
        return lambda value: _parse_text(value, path)
    if pa.types.is_struct(type):
        prefix = f"{path}." if path else ""
        members = [
            (each.name, _is_marked(each, _REQUIRED), document_maker(each, f"{prefix}{each.name}")) for each in type
        ]
        return lambda value: dict(_present_members(value, members, prefix))
    if pa.types.is_map(type):
        item = _optional(document_maker(type.item_field, f"{path}[]"))
        return lambda value: distinct_entries([(key, item(each)) for key, each in value], path)
    if pa.types.is_list(type):
        item = _optional(document_maker(type.value_field, f"{path}[]"))
        return lambda value: [*map(item, value)]
    if pa.types.is_floating(type):
        return lambda value: _finite(value, path)
    return lambda value: value


def _is_marked(field: pa.Field, mark: Mapping[bytes, bytes]) -> bool:
    return bool(field.metadata) and mark.items() <= field.metadata.items()


def _parse_text(text: str, path: str) -> Any:
    try:
        return parse_document(text, exact=True)
    except RefusedValue as refused:
        raise RefusedValue(refused.detail.code, f"field {path}: {refused}") from None


def _present_members(
    row: Mapping[str, Any], members: Sequence[tuple[str, bool, Convert]], prefix: str
) -> Iterator[tuple[str, Any]]:
    for name, is_required, make in members:
        value = row.get(name)
        if is_required and name not in row:
            raise RefusedValue("wrong_type", f"field {prefix}{name} is missing, and the schema requires it")
        if is_required or value is not None:
            yield name, None if value is None else make(value)


def _finite(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise RefusedValue("out_of_range", f"field {path} is not a number of JSON")
    return value
