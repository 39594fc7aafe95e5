"""Scan a column in pieces of bounded size (:func:`scan_column`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from letterhead._arrow_types import as_header_lists, import_column
from letterhead._formats import format_table
from letterhead._names import check_name
from letterhead._table_batches import with_header_types
from letterhead.errors import DecodeError, ErrorDetail, as_error
from letterhead.operations import Decode, DecodeOptions, ExplodeBatches, Validate
from letterhead.scan.report import Scan
from letterhead.scan.statistics import Statistics

_BYTES = 16 << 20
"""Maximum size of a piece in bytes; decoded, it is about ten times as large."""

_ROWS = 1 << 16
"""Maximum number of rows in a piece. It is large, because each key in a piece has a fixed cost."""


def scan_column(
    column: Any, format: str, *, errors: Literal["raise", "null"], max_keys: int, options: DecodeOptions
) -> Scan:
    """Scan a column; see :func:`letterhead.arrow.scan` for the parameters."""
    check_name("errors", errors, ("raise", "null"))
    formats = format_table()
    check_name("format", format, formats)
    if max_keys < 1:
        raise ValueError(f"max_keys is {max_keys}: pass at least 1")
    statistics = Statistics(max_keys=max_keys)
    rows = 0
    for piece in _pieces(column):
        headers, row_errors, where = _read(piece, format, formats[format].is_ == "batch", options)
        if errors == "raise":
            _raise_first(row_errors, where, format, rows)
        statistics.add(headers)
        wrong = row_errors.drop_null()
        codes = Counter(error["code"] for error in wrong.flatten().to_pylist())
        statistics.add_errors(dict(codes), len(wrong))
        rows += len(piece)
    return Scan(format, statistics)


def _pieces(column: Any) -> Iterator[Any]:
    """Yield the rows of a column in large pieces, because each key in a piece has a fixed cost."""
    waiting: list[Any] = []
    free = (_ROWS, _BYTES)
    for array in _arrays(column):
        if pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type):
            array = as_header_lists(array, drops_fields=True)
        # Memory that the array keeps allocated, including bytes outside of a slice.
        size = array.get_total_buffer_size()
        if waiting and (len(array) > free[0] or size > free[1] or array.type != waiting[0].type):
            yield _join_arrays(waiting)
            free = (_ROWS, _BYTES)
        if len(array) <= _ROWS and size <= _BYTES:
            waiting.append(array)
            free = (free[0] - len(array), free[1] - size)
        else:
            rows = min(_ROWS, max(1, len(array) * _BYTES // max(array.nbytes, 1)))
            for row in range(0, len(array), rows):
                yield array.slice(row, rows)
        # Free the memory before the next array is read.
        del array
    if waiting:
        yield _join_arrays(waiting)


def _join_arrays(parts: list[Any]) -> Any:
    """Concatenate arrays, and clear the list to release their memory."""
    joined = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    parts.clear()
    return joined


def _arrays(column: Any) -> Iterable[Any]:
    """Return the arrays of a column; an iterator advances only after the previous array has been processed."""
    if isinstance(column, Iterator) and not hasattr(column, "__arrow_c_array__"):
        return chain.from_iterable(map(_arrays, column))
    whole = import_column(with_header_types(column))
    return [whole] if isinstance(whole, pa.Array) else whole.chunks or [pa.array([], whole.type)]


def _read(piece: Any, format: str, is_batch: bool, options: DecodeOptions) -> tuple[Any, Any, Any]:
    """Return the headers, the errors (null if none) and the row of each message."""
    rows = pa.array(range(len(piece)))
    if pa.types.is_nested(piece.type):
        return piece, Validate(format, options)(piece), rows
    operation = ExplodeBatches(format, ("row", "headers"), options=options) if is_batch else Decode(format, options)
    messages = operation(piece)
    # flatten() applies the struct's own nulls to its fields.
    fields = dict(zip((field.name for field in messages.type), messages.flatten(), strict=True))
    return fields["headers"], fields["error"], fields.get("row", rows)


def _raise_first(errors: Any, rows: Any, format: str, before: int) -> None:
    for row, wrong in zip(rows.to_pylist(), errors.to_pylist(), strict=True):
        if wrong:
            raise as_error(ErrorDetail(**wrong[0]), DecodeError, format, row=before + row)
