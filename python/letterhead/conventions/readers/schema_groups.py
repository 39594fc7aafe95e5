"""Group and decode values by schema, for :mod:`letterhead.conventions.schemas`.

A value, or its header, begins with an id in the layout of :mod:`letterhead.conventions.readers.schema_id`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from letterhead._arrow_types import import_column, to_pyarrow
from letterhead._formatting import count_noun, printable
from letterhead._invariants import require
from letterhead.conventions.readers.column import ERRORS
from letterhead.conventions.readers.schema_id import END, ID_WIDTHS, LONG_ID_WIDTHS, SchemaIdReader, has_id, wrong_id
from letterhead.conventions.schema_group import ColumnsDecoder, DecodedGroup, SchemaDecoder, SchemaGroup
from letterhead.errors import DecodeError, ErrorDetail, as_error
from letterhead.fields import Field, check_distinct
from letterhead.operations import DecodeOptions, Select

__all__ = ["IdSource", "as_binary", "decode_groups", "group_by_schema"]

_READER = SchemaIdReader()

_LONG_KEY_LEN = 1 + LONG_ID_WIDTHS[0]

Errors = dict[int, ErrorDetail]
"""Errors by row."""


def as_binary(column: Any) -> pa.BinaryArray:
    """Return a column of any Arrow library as one array."""
    values = import_column(column)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.type not in (pa.binary(), pa.large_binary(), pa.binary_view()):
        raise TypeError(f"values are {printable(str(values.type))}, and serialized values are binary")
    try:
        return values.cast(pa.binary())
    except pa.ArrowInvalid:
        raise ValueError("the values have more than 2 GiB: pass fewer at a time") from None


class IdSource(NamedTuple):
    """Source of schema ids: a header of messages of a format, or the first bytes of the values."""

    format: str
    header: str
    id_bytes: int | None

    @property
    def is_long_in_header(self) -> bool:
        """Whether the header contains an id of 8 bytes without a magic byte, as Apicurio writes it."""
        return self.header.startswith("apicurio.")

    @property
    def widths(self) -> Mapping[int, int]:
        """Size of the id before a value, by magic byte."""
        is_long = self.is_long_in_header if self.id_bytes is None else self.id_bytes == LONG_ID_WIDTHS[0]
        return LONG_ID_WIDTHS if is_long else ID_WIDTHS

    def check(self, *, has_headers: bool) -> None:
        """Raise ValueError for an invalid id size, or one that makes the layout of the header ambiguous."""
        if self.id_bytes not in (None, 4, 8):
            raise ValueError(f"id_bytes must be 4 or 8, not {self.id_bytes!r}")
        if has_headers and self.id_bytes == LONG_ID_WIDTHS[0] and not self.is_long_in_header:
            raise ValueError(
                f"id_bytes=8 is for ids of Apicurio, and header {self.header!r} has one of Confluent: name a header such as "
                "'apicurio.value.globalId', or leave out headers="
            )


def group_by_schema(
    values: pa.BinaryArray, headers: Any, source: IdSource, errors: str, limits: Any
) -> tuple[list[SchemaGroup], Errors]:
    """Return the groups, and the errors of rows that are in no group; with ``errors="raise"``, raise the first error."""
    source.check(has_headers=headers is not None)
    ids, damaged = _ids(values, headers, source, limits)
    in_header = pc.is_valid(ids)
    undamaged = pc.and_(values.is_valid(), pa.array(~_mask(damaged, len(values))))
    keys, bodies = _split(values, source.widths)
    bad = pc.and_(pc.and_(undamaged, pc.invert(in_header)), pc.is_null(keys))
    if pc.any(in_header).as_py():
        is_long = source.is_long_in_header
        broken = pc.invert(_is_long_id(ids)) if is_long else pa.array(_READER.read(ids)[1])
        bad = pc.or_(bad, pc.and_(undamaged, pc.and_(in_header, broken.fill_null(False))))
        keys, bodies = pc.if_else(in_header, ids, keys), pc.if_else(in_header, values, bodies)
    row_errors = {row: error for row, error in damaged.items() if values[row].is_valid}
    for row in np.flatnonzero(bad.to_numpy(zero_copy_only=False)).tolist():
        row_errors[row] = _error(values[row].as_py(), ids[row].as_py(), source, has_headers=headers is not None)
    if errors == "raise" and row_errors:
        row = min(row_errors)
        raise as_error(row_errors[row], DecodeError, _READER.name, row=row)
    kept = pc.and_(undamaged, pc.invert(bad))
    has_long = source.is_long_in_header or source.widths is LONG_ID_WIDTHS
    return list(_groups(pc.if_else(kept, keys, pa.scalar(None, pa.binary())), bodies, has_long=has_long)), row_errors


def decode_groups(
    values: Any,
    headers: Any,
    decode: SchemaDecoder | ColumnsDecoder,
    schema: pa.Schema | None,
    source: IdSource,
    options: DecodeOptions,
) -> pa.StructArray:
    """Decode a column group by group, and restore the order of its rows."""
    column, errors = as_binary(values), options.errors
    groups, row_errors = group_by_schema(column, headers, source, errors, options.limits)
    if isinstance(decode, ColumnsDecoder):
        own, decode = decode.bind([group.schema_id for group in groups])
        schema = own if schema is None else schema
        check_distinct(schema.names, errors, options.error_column)
    schema = require(schema, "the columns of a decoder")
    type = pa.struct(list(schema))
    parts: list[pa.Array] = []
    indexes = np.full(len(column), -1, np.int64)
    count = 0
    for group in groups:
        for rows, array in _decode_group(group, decode, type, errors, row_errors):
            indexes[rows] = np.arange(count, count + len(rows))
            count += len(rows)
            parts.append(array)
    array = parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else pa.array([], type)
    if not np.array_equal(indexes, np.arange(count)):
        array = array.take(pa.array(indexes, mask=indexes < 0))
    columns, fields = array.flatten(), [field.with_nullable(True) for field in schema]
    if errors == "column":
        columns.append(_error_column(row_errors, len(column)))
        fields.append(pa.field(options.error_column, ERRORS))
    return pa.StructArray.from_arrays(columns, fields=fields)


def _ids(values: pa.BinaryArray, headers: Any, source: IdSource, limits: Any) -> tuple[pa.BinaryArray, Errors]:
    """Return the id in each row's header after a magic byte, or null, and the errors of damaged headers."""
    if headers is None:
        return pa.nulls(len(values), pa.binary()), {}
    select = Select(
        source.format, {"id": Field("binary", key=source.header)}, DecodeOptions(errors="column", limits=limits)
    )
    selected = to_pyarrow(select.apply(headers))
    if isinstance(selected, pa.ChunkedArray):
        selected = selected.combine_chunks()
    if len(selected) != len(values):
        raise ValueError(f"{count_noun(len(values), 'value')} and {count_noun(len(selected), 'message')} in headers=")
    error = selected.field("error")
    rows = np.flatnonzero(error.is_valid().to_numpy(zero_copy_only=False)).tolist()
    ids = selected.field("id")
    if source.is_long_in_header:
        ids = pc.binary_join_element_wise(b"\0", ids, b"")
    return ids, {row: ErrorDetail(**error[row].as_py()[0]) for row in rows}


def _is_long_id(ids: pa.BinaryArray) -> pa.BooleanArray:
    return pc.and_(has_id(ids, 0, LONG_ID_WIDTHS[0]), pc.equal(pc.binary_length(ids), _LONG_KEY_LEN))


def _split(values: pa.BinaryArray, widths: Mapping[int, int]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Split values into the magic byte with the id, null if invalid, and the rest."""
    keys = bodies = pa.nulls(len(values), pa.binary())
    for magic, width in widths.items():
        is_known = has_id(values, magic, width)
        if pc.any(is_known).as_py():
            keys = pc.if_else(is_known, pc.binary_slice(values, 0, 1 + width), keys)
            bodies = pc.if_else(is_known, pc.binary_slice(values, 1 + width, END), bodies)
    return keys, bodies


def _groups(keys: pa.BinaryArray, bodies: pa.BinaryArray, *, has_long: bool) -> Iterator[SchemaGroup]:
    """Yield the rows of each distinct key, which are contiguous after a stable sort."""
    encoded = keys.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(-1, len(encoded.dictionary)), side="right")
    ids = _ids_of(encoded.dictionary, has_long=has_long)
    for id, begin, end in zip(ids, ends[:-1], ends[1:], strict=True):
        rows = pa.array(order[begin:end], pa.int64())
        # A whole column of one schema is not copied.
        values = bodies if len(rows) == len(bodies) else bodies.take(rows)
        yield SchemaGroup(*id, rows, values)


def _ids_of(keys: pa.BinaryArray, *, has_long: bool) -> list[tuple[int | str, list[int] | None]]:
    """Return the id or GUID in each valid key, and the message indexes after it."""
    is_long = pc.equal(pc.binary_length(keys), _LONG_KEY_LEN) if has_long else pa.scalar(False)
    short = _READER.read(pc.if_else(is_long, pa.scalar(None, pa.binary()), keys))[0].to_pylist()
    return [
        (int.from_bytes(key[1:], "big"), None)
        if id is None
        else (id["guid"] if id["id"] is None else id["id"], id["message_indexes"])
        for key, id in zip(keys.to_pylist(), short, strict=True)
    ]


def _decode_group(
    group: SchemaGroup, decode: Callable[[SchemaGroup], Any], type: pa.DataType, errors: str, row_errors: Errors
) -> Iterator[tuple[npt.NDArray[np.int64], pa.Array]]:
    """Yield decoded rows and their indexes; add the errors of rows that cannot be decoded to ``row_errors``."""
    waiting = [group]
    while waiting:
        part = waiting.pop()
        rows = part.rows.to_numpy()
        try:
            returned = decode(part)
            if isinstance(returned, DecodedGroup):
                arrays, failed = [_as_array(array, type) for array in returned.arrays], returned.errors
            else:
                arrays, failed = [] if returned is None else [_as_array(returned, type)], {}
        except Exception as error:
            # These errors are not caused by values: the registry is unreachable, or a package is missing.
            if errors == "raise" or isinstance(error, OSError | ImportError | MemoryError):
                first = f"the first of them in row {rows[0]}"
                error.add_note(f"schema {part.schema_id}: {count_noun(len(rows), 'value')}, {first}")
                raise
            if len(rows) == 1:
                message = f"the decoder cannot read the value by schema {part.schema_id} ({error.__class__.__name__})"
                row_errors[int(rows[0])] = ErrorDetail("wrong_type", message)
            else:
                half = len(rows) // 2
                waiting += (
                    part._replace(rows=part.rows[some], values=part.values[some])
                    for some in (slice(half, None), slice(half))
                )
            continue
        if returned is None:
            unknown = ErrorDetail("unknown_type", f"the decoder does not know schema {part.schema_id}")
            if errors == "raise":
                raise as_error(unknown, DecodeError, _READER.name, row=int(rows[0]))
            row_errors.update(dict.fromkeys(rows.tolist(), unknown))
            continue
        if errors == "raise" and failed:
            index = min(failed)
            raise as_error(failed[index], DecodeError, returned.format, row=int(rows[index]))
        row_errors.update({int(rows[index]): error for index, error in failed.items()})
        rows = np.delete(rows, list(failed))
        count = sum(map(len, arrays))
        if count != len(rows):
            counts = f"{count_noun(count, 'row')} for {count_noun(len(rows), 'value')}"
            raise ValueError(f"the decoder returned {counts} of schema {part.schema_id}")
        for array in arrays:
            yield rows[: len(array)], array
            rows = rows[len(array) :]


def _as_array(returned: Any, type: pa.DataType) -> pa.Array:
    """Return the result of a decoder as an array of the declared type."""
    if isinstance(returned, pa.RecordBatch | pa.Table):
        returned = returned.to_struct_array()
    if isinstance(returned, pa.ChunkedArray):
        returned = returned.combine_chunks()
    try:
        return returned.cast(type) if isinstance(returned, pa.Array) else pa.array(returned, type)
    except (pa.ArrowException, OverflowError) as error:
        # pyarrow's messages quote values.
        raise type_error(returned, type, error) from None


def type_error(returned: Any, type: pa.DataType, error: Exception) -> TypeError:
    """Return the error for a decoder's rows that do not fit the declared columns; it names the first."""
    for field in type:
        try:
            if isinstance(returned, pa.StructArray):
                returned.field(field.name).cast(field.type)
            else:
                pa.array([row[field.name] for row in returned if row is not None and field.name in row], field.type)
        except (pa.ArrowException, OverflowError):
            return TypeError(f"the decoder returned values of column {field.name!r} that are not {field.type}")
        except (KeyError, TypeError):
            break
    return TypeError(f"the decoder returned rows that are not {type} ({error.__class__.__name__})")


def _error(value: bytes, id: bytes | None, source: IdSource, *, has_headers: bool) -> ErrorDetail:
    """Return the error of a row whose header or value has no valid id."""
    if id is not None and source.is_long_in_header:
        has = f"the id has {count_noun(len(id) - 1, 'byte')}, and one of Apicurio has {LONG_ID_WIDTHS[0]}"
        is_whole = len(id) == _LONG_KEY_LEN
        error = wrong_id(id) if is_whole else ErrorDetail("wrong_size", has, byte_offset=0)
        return require(error, "the error of an id")._replace(key=source.header, byte_offset=0)
    if id is not None:
        return require(_READER.find_error(id), "the error of an id")._replace(key=source.header)
    where = f"no header {source.header}, and the value" if has_headers else "the value"
    if not value:
        return ErrorDetail("truncated", f"{where} is empty", byte_offset=0)
    if value[0] not in source.widths:
        known = "not 0" if source.widths is LONG_ID_WIDTHS else "neither 0 (an id) nor 1 (a guid)"
        return ErrorDetail("bad_magic", f"{where} begins with {value[0]}, {known}", byte_offset=0)
    end = 1 + source.widths[value[0]]
    if len(value) < end:
        has = f"{where} has {count_noun(len(value), 'byte')}, and a schema id needs {end}"
        return ErrorDetail("truncated", has, byte_offset=1)
    return require(wrong_id(value[:end]), "the error of an id")


def _error_column(row_errors: Errors, length: int) -> pa.Array:
    if not row_errors:
        return pa.nulls(length, ERRORS)
    rows = np.array(sorted(row_errors), np.int64)
    indexes = np.full(length, -1, np.int64)
    indexes[rows] = np.arange(len(rows))
    return pa.array([[row_errors[int(row)]._asdict()] for row in rows], ERRORS).take(
        pa.array(indexes, mask=indexes < 0)
    )


def _mask(rows: Errors, length: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(length, np.bool_)
    mask[list(rows)] = True
    return mask
