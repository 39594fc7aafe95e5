"""Values of one schema, as :mod:`letterhead.conventions.schemas` passes them to a decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from letterhead.errors import ErrorDetail

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BoundDecoder", "ColumnsDecoder", "DecodedGroup", "SchemaDecoder", "SchemaGroup", "known_columns"]


class SchemaGroup(NamedTuple):
    """Values of a column with the same schema.

    Attributes
    ----------
    schema_id : int or str
        Id of the schema in the registry, or its GUID as text.
    message_indexes : list of int or None
        Path to the type of the message, if the header contains it. If Protobuf's path precedes a value, it remains there.
    rows : pyarrow.Int64Array
        Row of each value in the column, ascending.
    values : pyarrow.BinaryArray
        The values, without the id.
    """

    schema_id: int | str
    message_indexes: list[int] | None
    rows: pa.Int64Array
    values: pa.BinaryArray


SchemaDecoder: TypeAlias = Callable[[SchemaGroup], Any]
"""Function from the values of one schema to a row for each: a record batch, table, struct array or list of dicts."""


class DecodedGroup(NamedTuple):
    """Decoded values of a group in order, and the errors of all other values by index in the group."""

    format: str
    arrays: list[pa.StructArray]
    errors: dict[int, ErrorDetail]


class BoundDecoder(NamedTuple):
    """Columns for values with given schemas, and a decoder for these values."""

    schema: pa.Schema
    decode: SchemaDecoder


@runtime_checkable
class ColumnsDecoder(Protocol):
    """Decoder that determines its columns itself."""

    def bind(self, schema_ids: Sequence[int | str]) -> BoundDecoder:
        """Return the columns of values with these schemas, and a decoder for them."""
        ...


def known_columns(decoder: ColumnsDecoder) -> pa.Schema:
    """Return the columns of a decoder before reading values; raise ValueError if they depend on the values."""
    columns = decoder.bind([]).schema
    if not columns.names:
        raise ValueError(
            "the columns are not known before the values are read: pass a schema or a subject to the decoder"
        )
    return columns
