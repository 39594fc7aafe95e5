"""Rows out of record sets: what a segment file holds and what a fetch brings, as Arrow record batches.

A *record set* is record batches after one another in a buffer, the last one perhaps torn. The headers of the batches are
read first; by them batches are left out whole, and what is left becomes columns in one call of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import _native
from letterhead import arrow as lha
from letterhead.errors import HeaderError, unknown_name
from letterhead.read.times import TIMES, as_times

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["FIELDS", "LAST_OFFSET", "SAME", "Batch", "Rows", "aborted_batches", "batches_of"]

FIELDS: tuple[str, ...] = (
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "producer_id",
    "producer_epoch",
    "sequence",
    "transactional",
)
"""Columns that a record has. (``control`` is none: what marks the end of a transaction is no record of anybody's.)"""

SAME: dict[str, pa.DataType] = {"topic": pa.string(), "partition": pa.int32()}
"""Columns that are the same in all rows of a record set, and their types."""

LAST_OFFSET = (1 << 63) - 1

_TRANSACTIONAL = 0x10
_CONTROL = 0x20


class Batch(NamedTuple):
    """What the header of a record batch says.

    Attributes
    ----------
    position, size : int
        Bytes: where it begins in its record set, and how long it is.
    base_offset, last_offset : int
        Offsets of its records, both of them in it; compaction leaves gaps between.
    magic, attributes : int
        As on the wire.
    max_timestamp : int
        Milliseconds since 1970, -1 where there is none.
    producer_id : int
        -1 where there is none.
    records : int
        How many.
    """

    position: int
    size: int
    base_offset: int
    last_offset: int
    magic: int
    attributes: int
    max_timestamp: int
    producer_id: int
    records: int

    @property
    def control(self) -> bool:
        """Whether it marks the end of a transaction."""
        return bool(self.attributes & _CONTROL)

    @property
    def transactional(self) -> bool:
        """Whether it is in a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)


class Rows:
    """What becomes of record sets: the columns asked for, with what is the same in every row of one.

    Parameters
    ----------
    columns : sequence of str
        Names of :data:`FIELDS` and of :data:`SAME`, in the order of the result.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`letterhead.arrow.select`; they come after the columns.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a record that is not whole, as in :func:`letterhead.arrow.messages`.
    dialect : {"arrow", "spark"}, default "arrow"
        Types of the columns that ``headers`` asks for.
    limits : Limits, optional
        The most to read of a batch.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every record batch.

    Raises
    ------
    ValueError
        If a name is misspelt or stands twice.
    """

    def __init__(
        self,
        columns: Sequence[str],
        headers: Columns | None = None,
        *,
        errors: OnError = "raise",
        dialect: Any = "arrow",
        limits: Limits | None = None,
    ) -> None:
        if isinstance(columns, str):
            raise TypeError("columns must be a list of column names, not str")
        named = [*columns, *(headers or {}), *(["error"] if errors == "column" else [])]
        for name in columns:
            if name not in FIELDS and name not in SAME:
                raise unknown_name("column", name, (*SAME, *FIELDS))
        for name in named:
            if named.count(name) > 1:
                raise ValueError(f"two columns would be named {name!r}: name one of them differently")
        # The offset is read in any case: by it the rows before the first offset and after the last one are left out.
        read = ["offset", *(name for name in columns if name in FIELDS and name != "offset")]
        self._options: dict[str, Any] = {
            "columns": read, "headers": headers, "errors": errors, "_dialect": dialect, "limits": limits
        }  # fmt: skip
        self._names = named
        self._time = TIMES[dialect]
        self._strict = errors == "raise"
        made = pa.schema(list(self._messages(pa.array([], pa.binary())).type))
        self.schema = pa.schema([self._field(name, made) for name in named])

    def __call__(
        self,
        record_set: Any,
        batches: Iterable[Batch],
        *,
        start: int = 0,
        end: int = LAST_OFFSET,
        left_out: Iterable[int] = (),
        same: Mapping[str, Any],
    ) -> pa.RecordBatch | None:
        """Make the rows of some batches.

        Parameters
        ----------
        record_set : buffer
            The bytes; they are read in place.
        batches : iterable of Batch
            Those of it to read, which lie after one another. Batches that mark the end of a transaction give no rows.
        start, end : int
            First offset, and the first one that is no more wanted.
        left_out : iterable of int
            Base offsets of batches that give no rows, see :func:`aborted_batches`.
        same : mapping of str to object
            Values of :data:`SAME`.

        Returns
        -------
        pyarrow.RecordBatch or None
            ``None`` where there are no rows.

        Raises
        ------
        DecodeError
            If a record is not whole and ``errors="raise"``. A note on it names the batch.
        """
        without = set(left_out)
        whole = [*batches]
        kept = np.array([
            not batch.control and batch.base_offset not in without and batch.last_offset >= start
            and batch.base_offset < end for batch in whole
        ], np.bool_)  # fmt: skip
        if not kept.any():
            return None
        try:
            made = self._messages(_cells(record_set, whole, kept))
        except HeaderError as error:
            if error.row is not None:
                error.add_note(f"the record batch begins at offset {whole[error.row].base_offset}")
            raise
        rows = pa.RecordBatch.from_struct_array(made)
        first, *_, last = [batch for batch, keep in zip(whole, kept, strict=True) if keep] * 2
        if first.base_offset < start or last.last_offset >= end:
            rows = _between(rows, start, end)
        return self._arranged(rows, same) if len(rows) else None

    def _messages(self, cells: pa.Array) -> pa.StructArray:
        return lha.messages(cells, "record-batch", **self._options)

    def _field(self, name: str, made: pa.Schema) -> pa.Field:
        type = SAME.get(name) or (self._time if name == "timestamp" else made.field(name).type)
        return pa.field(name, type)

    def _arranged(self, rows: pa.RecordBatch, same: Mapping[str, Any]) -> pa.RecordBatch:
        columns = [self._column(rows, field, same) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, rows: pa.RecordBatch, field: pa.Field, same: Mapping[str, Any]) -> pa.Array:
        if field.name in SAME:
            return pa.repeat(pa.scalar(same[field.name], field.type), len(rows))
        column = rows.column(field.name)
        return as_times(column, field.type, strict=self._strict) if field.name == "timestamp" else column


def batches_of(record_set: Any, start: int = 0, most: int | None = None) -> tuple[list[Batch], int]:
    """Read the headers of the batches in a record set.

    Parameters
    ----------
    record_set : buffer
        The bytes.
    start : int, default 0
        Where the first batch begins.
    most : int, optional
        Stop once so many bytes are covered: at least one batch is given where there is a whole one.

    Returns
    -------
    batches : list of Batch
        The whole ones.
    end : int
        The first byte that is in none of them.
    """
    found, end = _native.record_batches(record_set, start, most)
    return [Batch(*batch) for batch in found], end


def aborted_batches(batches: Iterable[Batch], aborted: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Find the batches whose transaction was aborted.

    Parameters
    ----------
    batches : iterable of Batch
        In the order of their offsets.
    aborted : iterable of (producer_id, first_offset)
        The transactions that were aborted, and lie in the range of the batches or reach into it.

    Yields
    ------
    int
        Base offset of a batch to leave out.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    open_ones: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1][1] <= batch.last_offset:
            open_ones.add(waiting.pop()[0])
        if batch.producer_id not in open_ones or not batch.transactional:
            continue
        if batch.control:  # the end of that transaction; the producer's next one is another
            open_ones.discard(batch.producer_id)
        else:
            yield batch.base_offset


def _cells(record_set: Any, batches: Sequence[Batch], kept: Any) -> pa.BinaryArray:
    """Lay a column over the bytes, a batch a cell: null where the batch is left out. Nothing is copied."""
    begin = batches[0].position
    bounds = np.array([batch.position - begin for batch in batches] + [0], np.int64)
    bounds[-1] = bounds[-2] + batches[-1].size
    if bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("more than 2 GiB of batches at a time")
    present = None if kept.all() else pa.py_buffer(np.packbits(kept, bitorder="little"))
    data = pa.py_buffer(record_set).slice(begin, int(bounds[-1]))
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(batches), [present, pa.py_buffer(bounds.astype(np.int32)), data]
    )


def _between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Leave out rows whose offset is outside; one that has none, because it could not be read, stays."""
    offsets = rows.column("offset")
    inside = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
    return rows.filter(pc.fill_null(inside, True))
