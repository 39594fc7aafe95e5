"""Format values of Arrow columns as text: JSON, and fields of CSV."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from letterhead import _native
from letterhead._arrow_types import is_binary
from letterhead._table_writers import as_json_types
from letterhead.cli.document import bytes_json
from letterhead.cli.exits import Failure

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["csv_column", "json_column", "json_types", "time_texts", "zone_name"]


def json_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast columns to types that the core writes as JSON; raise for a column without a text form."""
    for field in batch.schema:
        if _has_no_text(field.type):
            raise Failure(
                f"column {field.name!r} is {field.type}, which has no text form: write .arrow, or leave the column out by --columns"
            )
    return as_json_types(batch)


def _has_no_text(type: pa.DataType) -> bool:
    """Return whether the core cannot write a type, or a type inside it, as JSON."""
    import pyarrow as pa

    types = pa.types
    if types.is_union(type) or types.is_interval(type):
        return True
    if types.is_nested(type):
        # pyarrow cannot cast UUIDs inside lists.
        children = [type.field(index).type for index in range(type.num_fields)]
        return any(isinstance(child, pa.UuidType) or _has_no_text(child) for child in children)
    return types.is_dictionary(type) and _has_no_text(type.value_type)


def json_column(column: pa.Array, *, epoch_ms: bool = False) -> pa.Array:
    """Return the values of a column as JSON text; null where a value is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = _native.json_lines(pa.RecordBatch.from_arrays([column], names=[""]), epoch_ms=epoch_ms)
    [values] = pc.split_pattern(pa.array([lines.removesuffix(b"\n")], pa.large_binary()), b"\n")
    text = pc.binary_slice(values.values.cast(pa.binary()), len(b'{"":'), -1).cast(pa.string())[: len(column)]
    return pc.if_else(column.is_null(), None, text)


def time_texts(column: pa.Array, *, epoch_ms: bool = False, zone: tzinfo = UTC) -> pa.Array:
    """Return times as text in a zone, or as milliseconds since 1970."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if epoch_ms or zone is UTC:
        return pc.utf8_trim(json_column(column, epoch_ms=epoch_ms), '"')
    # Python's own times end in the year 9999.
    zoned = column.cast(pa.timestamp(column.type.unit, zone_name(zone)))
    return pc.strftime(zoned, format="%Y-%m-%dT%H:%M:%S%Ez")


def zone_name(zone: tzinfo) -> str:
    """Return Arrow's name of a zone."""
    return str(zone).removeprefix("UTC") or "UTC"


def csv_column(column: pa.Array, *, epoch_ms: bool) -> pa.Array:
    """Return a column as numbers, booleans or text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    type = column.type
    if pa.types.is_nested(type):
        return json_column(column, epoch_ms=epoch_ms)
    if pa.types.is_timestamp(type) or pa.types.is_decimal(type):
        text = json_column(column, epoch_ms=epoch_ms)
        return pc.utf8_trim(text, '"')
    if is_binary(type):
        return pa.array(map(csv_bytes, column.to_pylist()), pa.large_string())
    return column.cast(pa.string()) if pa.types.is_null(type) else column


def csv_bytes(data: bytes | None) -> str | None:
    """Return bytes as text, or as a JSON object if they are not UTF-8."""
    value = None if data is None else bytes_json(data)
    return value if value is None or isinstance(value, str) else f'{{"base64":"{value["base64"]}"}}'
