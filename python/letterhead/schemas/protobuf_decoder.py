"""Decode Protobuf values into columns, by the schemas of a registry: :class:`ProtobufDecoder`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from letterhead._optional_dependencies import install_hint
from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.row_decoders import ReadRow, RowDecoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ProtobufDecoder"]


class ProtobufDecoder(RowDecoder):
    """Decodes values of Protobuf by the schemas of a registry; a decoder for :func:`letterhead.arrow.decode_by_schema`.

    The path in the header, or before the value, determines the message type of a value. The columns are the fields of
    this type: messages are structs, enums text, ``uint32`` is ``int64``, ``uint64`` ``decimal(20, 0)``, and a wrapper
    such as ``StringValue`` is its value. Timestamps are structs of seconds and nanoseconds, because microseconds cannot
    hold all timestamps. A field that a value lacks is null if it has presence, or its type has no such field; otherwise
    it has its default. A value of another message type than the columns is an error. Registries return a schema as
    text, which is compiled, or as a serialized descriptor.

    Parameters
    ----------
    registry, schema, subject
        As in :class:`letterhead.schemas.AvroDecoder`.

    Raises
    ------
    ValueError
        If ``schema`` and ``subject`` are both passed, or the schema is invalid; when columns are needed, if the subject
        does not exist.
    ImportError
        If protobuf, or grpcio-tools, which compiles schemas, is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha, schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> decoder = schemas.ProtobufDecoder(registry, 'syntax = "proto3"; message Order { int64 id = 1; }')
    >>> lha.decode_by_schema(pa.array([None], pa.binary()), decoder).to_pylist()
    [{'id': None}]
    """

    _schema_type = "PROTOBUF"
    _format = "protobuf"

    def _columns(self, schema: RegisteredSchema) -> pa.Schema:
        """Return the columns of the first message type of a schema."""
        with install_hint("letterhead.schemas.ProtobufDecoder", "letterhead[protobuf]"):
            import grpc_tools  # noqa: F401
            import pyarrow as pa

            from letterhead.schemas.protobuf_schemas import FIRST, message_columns, message_type

        return pa.schema(message_columns(message_type(schema, FIRST)))

    def _open_reader(
        self, schema: RegisteredSchema, message_indexes: list[int] | None
    ) -> Callable[[pa.Schema], ReadRow]:
        """Return a function that opens a reader of values for columns."""
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        from letterhead.schemas.protobuf_schemas import FIRST, converter, message_type, parse_indexes

        expected = message_type(self._target or schema, FIRST).full_name

        def make(columns: pa.Schema) -> ReadRow:
            types: dict[tuple[int, ...], Any] = {}

            def open_type(indexes: list[int]) -> Any:
                key = tuple(indexes)
                if key not in types:
                    try:
                        found = message_type(schema, indexes)
                        types[key] = GetMessageClass(found), converter(found, list(columns))
                    except ValueError as error:
                        types[key] = RefusedValue("wrong_type", str(error))
                    else:
                        if found.full_name != expected:
                            message = f"the value is a {found.full_name}, and the columns are those of {expected}"
                            types[key] = RefusedValue("unknown_type", message)
                return types[key]

            def read(value: bytes) -> dict[str, Any]:
                indexes, start = (message_indexes, 0) if message_indexes else parse_indexes(value)
                opened = open_type(indexes)
                if isinstance(opened, RefusedValue):
                    raise opened
                message, convert = opened
                try:
                    return convert(message.FromString(value[start:]))  # type: ignore[no-any-return]
                except DecodeError:
                    raise RefusedValue("wrong_type", "the value is not a message of its type") from None

            return read

        return make
