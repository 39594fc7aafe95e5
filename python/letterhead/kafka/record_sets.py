"""Convert record sets, the content of segment files and of fetch responses, to Arrow record batches.

A *record set* is a buffer of consecutive record batches, of which the last may be truncated. The headers of the batches
are read first and decide which batches are skipped; the others become columns in one call of the compiled core.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import _native
from letterhead import arrow as lha
from letterhead.errors import HeaderError, replaced
from letterhead.output_columns import (
    TIME_DETAIL,
    TIMES,
    UNUSED_NAME,
    Dialect,
    as_times,
    check_columns,
    first_offset_in_error,
    time_error,
    times_outside,
    with_errors,
)
from letterhead.where.program import Filter, RecordField, fields_of_format, resolve

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = [
    "CONSTANTS", "FIELDS", "LAST_OFFSET", "Batch", "Rows", "aborted_batches", "batches_of", "leader_epoch", "next_pieces",
]  # fmt: skip

FIELDS: tuple[str, ...] = (
    "offset", "timestamp", "timestamp_type", "key", "value", "headers", "producer_id", "producer_epoch", "sequence",
    "transactional",
)  # fmt: skip
"""Columns of a record. There is no ``control``: control records are not returned."""

CONSTANTS: dict[str, pa.DataType] = {"topic": pa.string(), "partition": pa.int32()}
"""Columns with the same value in all rows of a record set, and their types."""

WHERE_FIELDS: dict[str, RecordField] = {
    "topic": RecordField("text"),
    "partition": RecordField("int"),
    **{name: field for name, field in fields_of_format("record-batch").items() if name != "control"},
}
"""Fields of a record in a condition."""

LAST_OFFSET = (1 << 63) - 1

_NO_TIME = -(1 << 63)

_FEW = 16
"""A condition that selects at most one record in so many selects few."""

_MOST_PIECES = 8

_EPOCH_POSITION = 12
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


class Batch(NamedTuple):
    """The header of a record batch."""

    position: int  # first byte in the record set
    size: int  # in bytes
    base_offset: int
    last_offset: int  # compaction leaves gaps between the two
    magic: int
    attributes: int
    max_timestamp: int  # milliseconds since 1970, or -1
    producer_id: int  # -1 for none
    records: int  # how many

    @property
    def end(self) -> int:
        """The first byte after the batch."""
        return self.position + self.size

    @property
    def control(self) -> bool:
        """Whether it marks the end of a transaction."""
        return bool(self.attributes & _CONTROL)

    @property
    def transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)


class Rows:
    """Converts record sets to record batches of :attr:`schema`.

    Parameters
    ----------
    columns : sequence of str
        Names of :data:`FIELDS` and :data:`CONSTANTS`, in the order of the result.
    headers, errors, error_column, limits
        As in :func:`letterhead.arrow.messages`; the columns of ``headers`` come last but for the column of errors.
    dialect : {"arrow", "spark"}, default "arrow"
        Types of timestamps and of the columns of ``headers``.
    where : Where, optional
        Which records to return.
    timed : bool, default False
        Whether calls bound the times of records.
    """

    def __init__(
        self,
        columns: Sequence[str],
        headers: Columns | None = None,
        *,
        errors: OnError = "raise",
        error_column: str = "error",
        dialect: Dialect = "arrow",
        limits: Limits | None = None,
        where: Where | Filter | None = None,
        timed: bool = False,
    ) -> None:
        check_columns(columns, (*CONSTANTS, *FIELDS), headers, errors, error_column)
        self.where = where if isinstance(where, Filter) else resolve(where, WHERE_FIELDS, headers)
        # The offset is always read, because rows outside of the requested offsets are removed by it.
        read = [*dict.fromkeys(["offset", *["timestamp"] * timed, *(name for name in columns if name in FIELDS)])]
        self._options: dict[str, Any] = {
            "columns": read, "headers": headers, "errors": errors, "error_column": error_column, "_dialect": dialect,
            "limits": limits,
        }  # fmt: skip
        self._columns = frozenset(columns)
        self._dialect = dialect
        self._errors = errors
        self._error_column = error_column
        empty = self._messages(pa.array([], pa.binary()), self.where and self.where.bind(dict.fromkeys(CONSTANTS)))
        types = {field.name: field.type for field in empty.type}
        # A column of headers can have the name of a column that was not asked for.
        types |= {name: type for name, type in {**CONSTANTS, "timestamp": TIMES[dialect]}.items() if name in columns}
        names = [*columns, *(headers or ()), *([error_column] if errors == "column" else [])]
        self.schema = pa.schema([(name, types[name]) for name in names])

    def __call__(
        self,
        record_set: Any,
        batches: Iterable[Batch],
        *,
        origin: int = 0,
        start: int = 0,
        end: int = LAST_OFFSET,
        since: int | None = None,
        until: int | None = None,
        skipped: Collection[int] = (),
        constants: Mapping[str, Any],
    ) -> pa.RecordBatch | None:
        """Read the records of consecutive batches from ``start`` to before ``end``; return None if there are none.

        The bytes are read in place; they begin at byte ``origin`` of the record set. ``since`` and ``until`` bound the
        times of records, in milliseconds since 1970. ``skipped`` are base offsets of batches to leave out, see
        :func:`aborted_batches`; control batches have no rows. ``constants`` are the values of :data:`CONSTANTS`. If a
        record is invalid and ``errors="raise"``, a DecodeError is raised, whose row is the index of its batch; see
        :meth:`located`.
        """
        all_batches = [*batches]
        where = self.where and self.where.bind(constants)
        low, high, first_time = self._bounds(where)
        low, high = max(start, low), min(end - 1, high)
        first_time = first_time if since is None else max(first_time, since)
        kept = np.array([
            not batch.attributes & _CONTROL and batch.base_offset not in skipped and batch.last_offset >= low
            and batch.base_offset <= high and batch.max_timestamp >= first_time for batch in all_batches
        ], np.bool_)  # fmt: skip
        if not kept.any() or (where is not None and where.known is False):
            return None
        messages = self._messages(_binary_column(record_set, all_batches, kept, origin), where)
        rows = pa.RecordBatch.from_struct_array(messages)
        places = np.flatnonzero(kept)
        if all_batches[places[0]].base_offset < start or all_batches[places[-1]].last_offset >= end:
            rows = _between(rows, start, end)
        if since is not None or until is not None:
            rows = _in_time(rows, since, until)
        if not len(rows):
            return None
        if "timestamp" in self._columns:
            rows = self._check_times(rows, all_batches)
        columns = [self._column(rows, field, constants) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def located(
        self,
        error: HeaderError,
        record_set: Any,
        batches: Sequence[Batch],
        *,
        origin: int = 0,
        constants: Mapping[str, Any],
    ) -> HeaderError:
        """Return an error that a call for these batches raised, with topic, partition and offset of its record."""
        if error.row is None:
            return replaced(error, **constants)
        offset = error.offset
        if offset is None:
            batch = batches[error.row]
            where = self.where and self.where.bind(constants)
            column = _binary_column(record_set, [batch], np.array([True]), origin)
            rows = self._messages(column, where, columns=["offset"], errors="column", error_column=UNUSED_NAME)
            offset = first_offset_in_error(rows.field("offset"), rows.field(UNUSED_NAME), batch.base_offset)
        return replaced(error, **constants, offset=offset)

    def _messages(self, batches: pa.Array, where: Filter | None, **options: Any) -> pa.StructArray:
        if where is not None and where.known:
            where = None
        return lha.messages(batches, "record-batch", where=where, **self._options | options)

    def _check_times(self, rows: pa.RecordBatch, batches: Sequence[Batch]) -> pa.RecordBatch:
        """Report timestamps that the type of the column cannot hold, as ``errors`` says."""
        outside = times_outside(rows.column("timestamp"), self._dialect)
        if outside is None or self._errors == "null":
            return rows
        if self._errors == "raise":
            offset = rows.column("offset").filter(outside)[0].as_py()
            inside = (at for at, batch in enumerate(batches) if batch.base_offset <= offset <= batch.last_offset)
            row = next(inside, 0)
            raise time_error("record-batch", row=row, offset=offset)
        at = rows.schema.get_field_index(self._error_column)
        errors = with_errors(rows.column(at), outside, TIME_DETAIL)
        return rows.set_column(at, self._error_column, errors)

    def _bounds(self, where: Filter | None) -> tuple[int, int, int]:
        """Return the first and the last offset that a selected record can have, and the first timestamp."""
        if where is None:
            return 0, LAST_OFFSET, _NO_TIME
        low, high = where.between("offset")
        since, _ = where.between("timestamp")
        return low or 0, LAST_OFFSET if high is None else high, _NO_TIME if since is None else since

    def _column(self, rows: pa.RecordBatch, field: pa.Field, constants: Mapping[str, Any]) -> pa.Array:
        wanted = field.name in self._columns
        if wanted and field.name in CONSTANTS:
            return pa.repeat(pa.scalar(constants[field.name], field.type), len(rows))
        column = rows.column(field.name)
        return as_times(column, self._dialect) if wanted and field.name == "timestamp" else column


def batches_of(
    record_set: Any, start: int = 0, most: int | None = None, beyond: int = 0, *, origin: int = 0
) -> tuple[list[Batch], int]:
    """Read the headers of the whole batches in a record set, from byte ``start`` on.

    Reading stops when ``most`` bytes are covered, but not before the first batch. Also returns the first byte after the
    batches. If ``record_set`` is a part of one, it begins at byte ``origin`` of it, and ``beyond`` bytes follow;
    positions are then those in the whole.
    """
    heads, end = _native.record_batches(record_set, start, most, beyond)
    if not origin:
        return [*map(Batch._make, heads)], end
    return [Batch(position + origin, *fields) for position, *fields in heads], end + origin


def next_pieces(pieces: int, batches: Iterable[Batch], rows: int) -> int:
    """Return how many pieces to read together, after as many of which a condition has selected ``rows`` records.

    While it selects few, there are more: each call of the compiled core costs as much as many records.
    """
    few = rows <= sum(batch.records for batch in batches) // _FEW
    return min(2 * pieces, _MOST_PIECES) if few else 1


def leader_epoch(record_set: Any, batch: Batch) -> int:
    """Return the epoch of the leader that wrote a batch; -1 if it is unknown, as in formats before 2."""
    if batch.magic < 2:
        return -1
    [epoch] = struct.unpack_from(">i", record_set, batch.position + _EPOCH_POSITION)
    return int(epoch)


def aborted_batches(batches: Iterable[Batch], aborted: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the base offsets of batches whose transaction was aborted.

    ``batches`` are in the order of their offsets; ``aborted`` are the transactions that overlap them.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    producers: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1][1] <= batch.last_offset:
            producers.add(waiting.pop()[0])
        if batch.producer_id not in producers or not batch.transactional:
            continue
        if batch.control:  # the transaction ends here; the producer's next one is another
            producers.discard(batch.producer_id)
        else:
            yield batch.base_offset


def _binary_column(record_set: Any, batches: Sequence[Batch], kept: Any, origin: int) -> pa.BinaryArray:
    """Return a column of one batch a row over the same bytes, null for batches that are not kept."""
    first = batches[0].position
    begin = first - origin
    bounds = np.array([batch.position - first for batch in batches] + [batches[-1].end - first], np.int64)
    if bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("more than 2 GiB of batches at a time")
    present = None if kept.all() else pa.py_buffer(np.packbits(kept, bitorder="little"))
    data = pa.py_buffer(record_set).slice(begin, int(bounds[-1]))
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(batches), [present, pa.py_buffer(bounds.astype(np.int32)), data]
    )


def _between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Remove rows with an offset outside of the bounds; rows whose offset could not be read stay."""
    offsets = rows.column("offset")
    inside = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
    return rows.filter(pc.fill_null(inside, True))


def _in_time(rows: pa.RecordBatch, since: int | None, until: int | None) -> pa.RecordBatch:
    """Remove rows with a time outside of the bounds; no time is before every other."""
    times = pc.fill_null(rows.column("timestamp"), -1)
    inside = pc.is_null(rows.column("offset"))  # it could not be read
    bounds = pa.scalar(True)
    if since is not None:
        bounds = pc.and_(bounds, pc.greater_equal(times, since))
    if until is not None:
        bounds = pc.and_(bounds, pc.less(times, until))
    return rows.filter(pc.or_(inside, bounds))
