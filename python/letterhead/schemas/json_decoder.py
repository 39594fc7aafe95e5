"""Values of JSON as columns, by the JSON Schemas of a registry: :class:`JsonDecoder`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._optional_dependencies import install_hint
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry
from letterhead.schemas.row_decoders import ReadRow, RefusedValue, RowDecoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonDecoder"]

VALUE = "value"
"""The column of a schema that is not an object."""


class JsonDecoder(RowDecoder):
    """Decodes values of JSON by the JSON Schemas of a registry; a decoder for :func:`letterhead.arrow.decode_by_schema`.

    Each value is validated by the schema that it was written with. Its properties are columns: integers are ``int64``,
    numbers ``double``, objects structs, or maps if they have no properties, arrays lists, and text of any ``format`` is
    text. What a schema leaves open, such as one of several types, is JSON text. A property that a value lacks is null, and one
    that the schema of the columns does not name has no column.

    Parameters
    ----------
    registry : Registry
        The registry of the schemas.
    schema : str or mapping, optional
        Schema of the columns, as JSON.
    subject : str, optional
        Subject whose latest schema has the columns. It is fetched once, when the columns are needed. Without
        ``schema`` and ``subject``, the columns are those of all schemas that occur.

    Raises
    ------
    ValueError
        If both are passed, or the schema is invalid; when columns are needed, if the subject does not exist.
    ImportError
        If jsonschema-rs is not installed, which validates.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha, schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> decoder = schemas.JsonDecoder(registry, {"type": "object", "properties": {"id": {"type": "integer"}}})
    >>> lha.decode_by_schema(pa.array([None], pa.binary()), decoder).to_pylist()
    [{'id': None}]
    """

    _schema_type = "JSON"
    _format = "json"

    def __init__(
        self, registry: Registry, schema: str | Mapping[str, Any] | None = None, *, subject: str | None = None
    ) -> None:
        text = schema if schema is None or isinstance(schema, str) else json.dumps(schema)
        super().__init__(registry, None if text is None else RegisteredSchema("JSON", text, {}), subject)
        if self._target is not None:
            self._columns(self._target)

    def _columns(self, schema: RegisteredSchema) -> pa.Schema:
        """Return the columns of a schema."""
        import pyarrow as pa

        from letterhead.schemas.json_schemas import column_of

        opened = _open_schema(schema)
        column = column_of(opened.document, opened.resources.resolver(opened.address))
        return pa.schema(list(column.type) if pa.types.is_struct(column.type) else [column.field(VALUE)])

    def _open_reader(
        self, schema: RegisteredSchema, message_indexes: list[int] | None
    ) -> Callable[[pa.Schema], ReadRow]:
        """Return what makes a reader of values for columns."""
        from letterhead.schemas.json_schemas import converter

        validator, is_object = _open_schema(schema).validator, self._columns(schema).names != [VALUE]

        def make(columns: pa.Schema) -> ReadRow:
            members = [(field.name, converter(field, field.name)) for field in columns]

            def read(value: bytes) -> dict[str, Any]:
                document = _parse(value)
                _validate(validator, document)
                if not is_object:
                    document = {VALUE: document}
                elif not isinstance(document, dict):
                    raise RefusedValue("wrong_type", "the value is not an object, which its columns need")
                return {name: convert(document.get(name)) for name, convert in members}

            return read

        return make


class _Schema(NamedTuple):
    """A schema and what it refers to, as its validator reads them."""

    document: Any
    resources: Any
    address: str
    validator: Any


def _open_schema(schema: RegisteredSchema) -> _Schema:
    """Read a schema; raise ValueError if it cannot be used."""
    with install_hint("letterhead.schemas.JsonDecoder", "letterhead[json-schema]"):
        import jsonschema_rs
    from letterhead.schemas.json_schemas import BASE, parse_json, references

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
    return _Schema(document, resources, address, validator)


def _refuse_address(address: str) -> Any:
    raise ValueError("the registry does not have it")


def _parse(value: bytes) -> Any:
    from letterhead.schemas.json_schemas import parse_json

    try:
        document = parse_json(value)
    except UnicodeDecodeError as error:
        raise RefusedValue("value_not_utf8", "the value is not UTF-8", error.start) from None
    except json.JSONDecodeError as error:
        raise RefusedValue("bad_text", "the value is not JSON", len(error.doc[: error.pos].encode())) from None
    except ValueError:
        raise RefusedValue("bad_text", "the value is not JSON with distinct members and finite numbers") from None
    return document


def _validate(validator: Any, document: Any) -> None:
    import jsonschema_rs

    try:
        validator.validate(document)
    except jsonschema_rs.ValidationError as error:
        # Paths and messages of the instance may contain data.
        place = "/".join(map(str, error.schema_path))
        raise RefusedValue("wrong_type", f"the schema does not allow the value, by {place}") from None
    except ValueError:
        raise RefusedValue("bad_text", "the value has text or a number that cannot be validated") from None
