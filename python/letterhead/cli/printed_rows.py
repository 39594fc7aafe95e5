"""Rows that --errors prints, and the last rows among them: :func:`mask_printed` and :func:`open_last_printed`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from letterhead._row_request import RowRequest
from letterhead.cli.sources.opening import open_rows
from letterhead.sources.base import LogSource, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.reader import Reader

__all__ = ["ReadErrors", "leaves_out", "open_last_printed", "mask_printed"]

ReadErrors = StrEnum(
    "ReadErrors", {"raise_": "raise", "null": "null", "column": "column", "skip": "skip", "only": "only"}
)

Mask: TypeAlias = Callable[["pa.RecordBatch"], "pa.BooleanArray"]

_GROWTH = 8
"""Growth factor of the range while it contains fewer printed rows than requested."""


def leaves_out(errors: ReadErrors, request: RowRequest) -> bool:
    """Return whether some rows are not printed: rows with errors, or rows without errors."""
    return errors in (ReadErrors.skip, ReadErrors.only) or (errors is ReadErrors.null and request.where is not None)


def mask_printed(errors: ReadErrors, column: pa.Array) -> pa.BooleanArray:
    """Return a mask of the rows to print, from their error column."""
    match errors:
        case ReadErrors.only:
            return column.is_valid()
        case ReadErrors.skip:
            return column.is_null()
    return _is_decided(column)


def _is_decided(errors: pa.Array) -> pa.BooleanArray:
    """Return a mask of the rows whose errors do not affect the condition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pc.list_parent_indices(errors).filter(pc.equal(errors.flatten().field("column"), "where"))
    return pc.invert(pc.is_in(pa.array(range(len(errors)), rows.type), rows.unique()))


def open_last_printed(source: Source, request: RowRequest, count: int, mask: Mask) -> Reader:
    """Return a stream that begins ``count`` printed rows before the end of each partition of a log, or of another source."""
    from letterhead.reader import Reader

    if not isinstance(source, LogSource):
        rows = open_rows(source, replace(request, last=None))
        return Reader(rows.schema, lambda: iter(_last_printed(rows, count, mask)))
    first = open_rows(source, replace(request, last=count))

    def batches() -> Iterator[pa.RecordBatch]:
        reader, requested = first, count
        while True:
            with reader:
                partitions = _split_by_partition(reader)
            if all(_is_complete(part, requested, count, mask) for part in partitions):
                break
            requested *= _GROWTH
            reader = source.read_rows(replace(request, last=requested))
        for part in partitions:
            yield from _last_printed(part, count, mask)

    return Reader(first.schema, batches, first._progress)


def _split_by_partition(batches: Iterable[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
    partitions: dict[object, list[pa.RecordBatch]] = {}
    for batch in batches:
        names = [name for name in ("topic", "partition") if name in batch.schema.names]
        partitions.setdefault(tuple(batch.column(name)[0].as_py() for name in names), []).append(batch)
    return [*partitions.values()]


def _is_complete(batches: list[pa.RecordBatch], requested: int, count: int, mask: Mask) -> bool:
    """Return whether enough rows are printed, or the partition has no further rows."""
    return sum(map(len, batches)) < requested or sum(mask(batch).true_count for batch in batches) >= count


def _last_printed(batches: Iterable[pa.RecordBatch], count: int, mask: Mask) -> list[pa.RecordBatch]:
    """Return the rows from the ``count``-th last printed row on, or all rows if fewer are printed."""
    import pyarrow.compute as pc

    kept: deque[tuple[pa.RecordBatch, pa.Array]] = deque()
    printed = 0
    for batch in batches:
        kept.append((batch, pc.indices_nonzero(mask(batch))))
        printed += len(kept[-1][1])
        while printed - len(kept[0][1]) >= count and len(kept) > 1:
            printed -= len(kept.popleft()[1])
    if count == 0 or not kept:
        return []
    if printed >= count:
        batch, indices = kept[0]
        kept[0] = (batch.slice(indices[printed - count].as_py()), indices)
    return [batch for batch, _ in kept]
