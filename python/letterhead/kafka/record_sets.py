"""Convert record sets, the content of segment files and of fetch responses, to Arrow record batches.

A *record set* is a buffer of consecutive record batches, of which the last may be truncated. The headers of the batches
are read first and determine which batches are skipped; one call of the compiled core converts the others to columns.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from letterhead import _native
from letterhead.errors import HeaderError, copy_error
from letterhead.kafka.batch_attributes import CODEC_BITS, CONTROL_BIT, TRANSACTIONAL_BIT
from letterhead.offsets.output_columns import (
    TIME_DETAIL,
    TIMES,
    Dialect,
    as_times,
    time_error,
    times_outside,
    with_errors,
)
from letterhead.offsets.partition_log import LAST_OFFSET
from letterhead.offsets.rows import RowReader
from letterhead.offsets.stored_batches import StoredBatches, batch_column
from letterhead.where.program import Filter, fields_of_format

__all__ = [
    "COLUMNS", "FIELDS", "PARTITION_COLUMNS", "WHERE_FIELDS", "AbortedTransaction", "BatchHeader", "KafkaRowReader",
    "find_aborted_batches", "find_batches", "leader_epoch",
]  # fmt: skip

FIELDS: tuple[str, ...] = (
    "offset", "timestamp", "timestamp_type", "key", "value", "headers", "producer_id", "producer_epoch", "sequence",
    "transactional",
)  # fmt: skip
"""Columns of a record. There is no field ``control``, because control records are not returned."""

PARTITION_COLUMNS: dict[str, pa.DataType] = {"topic": pa.string(), "partition": pa.int32()}
"""Columns with a constant value in a record set, and their types."""

COLUMNS: tuple[str, ...] = (*PARTITION_COLUMNS, *FIELDS)
"""Default columns of topics and segments; ``headers`` is omitted if the request has typed headers."""

WHERE_FIELDS: dict[str, str] = {
    "topic": "string",
    "partition": "int64",
    **{name: field for name, field in fields_of_format("record-batch").items() if name != "control"},
}
"""Fields of a record that a condition can name."""

_NO_TIME = -(1 << 63)

_EPOCH_POSITION = 12


class BatchHeader(NamedTuple):
    """The header of a record batch."""

    position: int  # index of the first byte in the record set
    size: int  # in bytes
    base_offset: int
    last_offset: int  # compaction may leave gaps in the range
    magic: int
    attributes: int
    max_timestamp: int  # milliseconds since 1970, or -1
    producer_id: int  # -1 for none
    records: int  # number of records

    @property
    def end(self) -> int:
        """The first byte after the batch."""
        return self.position + self.size

    @property
    def codec(self) -> int:
        """Number of the compression codec; 0 is uncompressed."""
        return self.attributes & CODEC_BITS

    @property
    def control(self) -> bool:
        """Whether the batch marks the end of a transaction."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)


class AbortedTransaction(NamedTuple):
    """An aborted transaction, as listed in the response to a fetch. A control record in the log marks its end."""

    producer_id: int
    first_offset: int


class KafkaRowReader(RowReader):
    """Converts record sets to record batches."""

    format = "record-batch"
    columns = COLUMNS
    fields = FIELDS
    partition_columns = PARTITION_COLUMNS
    where_fields = WHERE_FIELDS
    left_out_attributes: ClassVar[int] = CONTROL_BIT
    """Attribute bits of batches without rows."""

    def time_types(self, dialect: Dialect) -> Mapping[str, pa.DataType]:
        """Return the type of the column timestamp."""
        return {"timestamp": TIMES[dialect]}

    def as_times(self, column: pa.Array) -> pa.Array:
        """Return a column of milliseconds as timestamps."""
        return as_times(column, self._dialect)

    def __call__(
        self,
        stored: StoredBatches[BatchHeader],
        *,
        start: int = 0,
        end: int = LAST_OFFSET,
        skipped: Collection[int] = (),
        partition_values: Mapping[str, Any],
    ) -> pa.RecordBatch | None:
        """Read the records of consecutive batches with offsets in [``start``, ``end``); return None if there are none.

        The bytes are read in place. ``skipped`` are base offsets of batches to skip, see :func:`find_aborted_batches`;
        control batches have no rows. ``partition_values`` are the values of :data:`PARTITION_COLUMNS`. If a record is
        invalid and ``errors="raise"``, a DecodeError is raised, whose row is the index of its batch; see :meth:`located`.
        """
        where = self.where and self.where.bind(partition_values)
        low, high, first_time = _bounds(where)
        low, high = max(start, low), min(end - 1, high)
        kept = [
            not batch.attributes & self.left_out_attributes and batch.base_offset not in skipped and last_offset >= low
            and batch.base_offset <= high and batch.max_timestamp >= first_time for batch, last_offset in zip(stored.batches, stored.last_offsets, strict=True)
        ]  # fmt: skip
        if not any(kept) or (where is not None and where.constant is False):
            return None
        batches = [batch for batch, is_kept in zip(stored.batches, kept, strict=True) if is_kept]
        # Most batches lie within the range, and need no offset condition.
        start = start if any(batch.base_offset < start for batch in batches) else 0
        end = end if any(batch.last_offset >= end for batch in batches) else LAST_OFFSET
        rows = self._rows(batch_column(stored, kept), where, start, end)
        if rows is None:
            return None
        if "timestamp" in self._columns:
            rows = self._check_times(rows, stored.batches)
        return self._in_schema(rows, partition_values)

    def located(
        self,
        error: HeaderError,
        stored: StoredBatches[BatchHeader],
        *,
        start: int = 0,
        end: int = LAST_OFFSET,
        partition_values: Mapping[str, Any],
    ) -> HeaderError:
        """Return an error raised for these arguments, with the topic, partition and offset of its record added."""
        if error.row is None:
            return copy_error(error, **partition_values)
        offset = error.offset
        if offset is None:
            batch = stored.batches[error.row]
            column = batch_column(stored._replace(batches=[batch]), [True])
            offset = self._offset_in_error(column, partition_values, batch.base_offset, start, end)
        return copy_error(error, **partition_values, offset=offset)

    def _check_times(self, rows: pa.RecordBatch, batches: Sequence[BatchHeader]) -> pa.RecordBatch:
        """Report timestamps beyond the range of the column type, by the policy of ``errors``."""
        outside = times_outside(rows.column("timestamp"), self._dialect)
        if outside is None or self.errors == "null":
            return rows
        if self.errors == "raise":
            offset = rows.column("offset").filter(outside)[0].as_py()
            inside = (index for index, batch in enumerate(batches) if batch.base_offset <= offset <= batch.last_offset)
            raise time_error("record-batch", row=next(inside, 0), offset=offset)
        index = rows.schema.get_field_index(self._error_column)
        errors = with_errors(rows.column(index), outside, TIME_DETAIL)
        return rows.set_column(index, self._error_column, errors)


def find_batches(
    record_set: Any, start: int = 0, max_bytes: int | None = None, beyond: int = 0, *, origin: int = 0
) -> tuple[list[BatchHeader], int]:
    """Read the headers of the complete batches in a record set, from byte ``start`` on.

    Reading stops after ``max_bytes`` bytes, but not before the first batch. The second result is the first byte after
    the batches. For a part of a record set, ``origin`` is its first byte in the whole, and ``beyond`` bytes follow it;
    positions refer to the whole.
    """
    heads, end = _native.record_batches(record_set, start, max_bytes, beyond)
    if not origin:
        return [*map(BatchHeader._make, heads)], end
    return [BatchHeader(position + origin, *fields) for position, *fields in heads], end + origin


def leader_epoch(record_set: Any, batch: BatchHeader) -> int:
    """Return the epoch of the leader that wrote a batch; -1 if unknown, as in formats before 2."""
    if batch.magic < 2:
        return -1
    [epoch] = struct.unpack_from(">i", record_set, batch.position + _EPOCH_POSITION)
    return int(epoch)


def find_aborted_batches(batches: Iterable[BatchHeader], aborted: Iterable[AbortedTransaction]) -> Iterator[int]:
    """Yield the base offsets of batches of aborted transactions.

    ``batches`` are in the order of their offsets; ``aborted`` are the transactions that overlap them.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    producers: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.producer_id not in producers or not batch.transactional:
            continue
        if batch.control:  # the transaction ends here; the producer's next transaction is separate
            producers.discard(batch.producer_id)
        else:
            yield batch.base_offset


def _bounds(where: Filter | None) -> tuple[int, int, int]:
    """Return the first and last offset that selected records can have, and the first timestamp."""
    if where is None:
        return 0, LAST_OFFSET, _NO_TIME
    low, high = where.bounds("offset")
    since, _ = where.bounds("timestamp")
    return low or 0, LAST_OFFSET if high is None else high, _NO_TIME if since is None else since
