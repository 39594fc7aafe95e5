"""Scan a column in pieces of bounded size (:func:`scan_column`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from letterhead._formats import format_table
from letterhead._names import check_name
from letterhead.errors import DecodeError, ErrorDetail, as_error
from letterhead.operations import Decode, ExplodeBatches, ReadOptions, Validate
from letterhead.scan.report import Scan
from letterhead.scan.statistics import Statistics

_BYTES = 16 << 20
"""Bytes of a piece: its decoded form takes about ten times as many."""

_ROWS = 1 << 16
"""Rows of a piece: every key of a piece has a fixed cost."""


def scan_column(
    column: Any, format: str, *, errors: Literal["count", "raise"], max_keys: int, options: ReadOptions
) -> Scan:
    """Scan a column; see :func:`letterhead.arrow.scan` for the parameters."""
    check_name("errors", errors, ("count", "raise"))
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
    """Return the rows of a column in large pieces: small arrays are joined."""
    joined: list[Any] = []
    for array in _arrays(column):
        if joined and not (
            array.type == joined[0].type
            and sum(map(len, joined)) + len(array) <= _ROWS
            and _size([*joined, array]) <= _BYTES
        ):
            yield pa.concat_arrays(joined)
            joined = []
        if len(array) <= _ROWS and _size([array]) <= _BYTES:
            joined.append(array)
            continue
        rows = min(_ROWS, max(1, len(array) * _BYTES // array.nbytes))
        for row in range(0, len(array), rows):
            yield array.slice(row, rows)
    if joined:
        yield pa.concat_arrays(joined)


def _size(arrays: Iterable[Any]) -> int:
    """Return the bytes that arrays keep in memory, also beyond a slice."""
    return sum(array.get_total_buffer_size() for array in arrays)


def _arrays(column: Any) -> Iterable[Any]:
    """Return the arrays of a column; an iterator advances only when the array before has been scanned."""
    if hasattr(column, "__arrow_c_array__"):
        return [pa.array(column)]
    if isinstance(column, Iterator):
        return chain.from_iterable(map(_arrays, column))
    if not hasattr(column, "__arrow_c_stream__"):
        raise TypeError(f"a column is an Arrow array or stream, or an iterator of them, not {type(column).__name__}")
    whole = pa.chunked_array(column)
    return whole.chunks or [pa.array([], whole.type)]


def _read(piece: Any, format: str, is_batch: bool, options: ReadOptions) -> tuple[Any, Any, Any]:
    """Return the headers of messages, their errors (null if there are none), and the row that each is in."""
    rows = pa.array(range(len(piece)))
    if pa.types.is_nested(piece.type):
        return piece, Validate(format, options).run(piece), rows
    operation = ExplodeBatches(format, ("row", "headers"), options=options) if is_batch else Decode(format, options)
    messages = operation.run(piece)
    # flatten() applies the struct's own nulls to its fields.
    fields = dict(zip((field.name for field in messages.type), messages.flatten(), strict=True))
    return fields["headers"], fields["error"], fields.get("row", rows)


def _raise_first(errors: Any, rows: Any, format: str, before: int) -> None:
    for row, wrong in zip(rows.to_pylist(), errors.to_pylist(), strict=True):
        if wrong:
            raise as_error(ErrorDetail(**wrong[0]), DecodeError, format, row=before + row)
