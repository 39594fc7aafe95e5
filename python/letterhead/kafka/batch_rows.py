"""Read one row per batch of a log, instead of its records: :class:`BatchRowReader`, :class:`SegmentBatchReader`."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from letterhead import arrow as lha
from letterhead._names import check_name
from letterhead._row_request import RowRequest
from letterhead._table_batches import empty_batch
from letterhead.errors import HeaderError
from letterhead.kafka.batch_attributes import codec_name
from letterhead.kafka.record_sets import BatchHeader, leader_epoch
from letterhead.kafka.segment_file import KafkaSegmentFile
from letterhead.limits import Limits
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange
from letterhead.offsets.stored_batches import StoredBatches

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.kafka.transactions import Transactions
    from letterhead.offsets.damage import BatchError, DamagedRange, Invalid
    from letterhead.where.program import Filter

__all__ = ["BATCH_COLUMNS", "DATA", "BatchRowReader", "SegmentBatchReader"]

BATCH_COLUMNS: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "base_offset": pa.int64(),
    "last_offset": pa.int64(),
    "records": pa.int32(),
    "bytes": pa.int64(),
    "magic": pa.int8(),
    "codec": pa.string(),
    "base_timestamp": pa.timestamp("ms", "UTC"),
    "max_timestamp": pa.timestamp("ms", "UTC"),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "base_sequence": pa.int32(),
    "leader_epoch": pa.int32(),
    "transactional": pa.bool_(),
    "control": pa.bool_(),
    "checksum": pa.string(),
}
"""Default columns and their types. A field that formats before magic 2 lack is null."""

DATA = "data"
"""Name of the column with the bytes of batches, which is returned only on request."""

# Fields after the last offset: first and largest timestamp, producer, its epoch and the first sequence number.
_HEADER = struct.Struct(">27xqqqhi")


class BatchRowReader:
    """Converts the headers of record batches to rows, without the records.

    The column ``checksum`` is ``ok``, or the error code of an invalid batch.
    """

    where: Filter | None = None
    errors: OnError = "column"

    def __init__(self, request: RowRequest) -> None:
        names, limits = request.chosen_columns(BATCH_COLUMNS), request.limits
        types = {**BATCH_COLUMNS, DATA: pa.binary()}
        for name in names:
            check_name("column", name, types)
        self.schema = pa.schema([(name, types[name]) for name in names])
        self.limits = limits
        self.message_bytes: int = (limits or Limits()).filled().message_bytes  # type: ignore[assignment]

    def __call__(
        self,
        stored: StoredBatches[BatchHeader],
        *,
        start: int = 0,
        end: int = LAST_OFFSET,
        skipped: Collection[int] = (),
        partition_values: Mapping[str, Any],
    ) -> pa.RecordBatch | None:
        """Return one row for each batch with offsets in [``start``, ``end``); None if there are none."""
        chosen = [batch for batch in stored.batches if batch.last_offset >= start and batch.base_offset < end]
        if not chosen:
            return None
        view = memoryview(stored.data)
        data = [bytes(view[batch.position - stored.origin : batch.end - stored.origin]) for batch in chosen]
        rows = [{**_row(batch, batch_data), DATA: batch_data} for batch, batch_data in zip(chosen, data, strict=True)]
        names = {*self.schema.names}
        if "checksum" in names:
            validity = lha.validate(pa.array(data, pa.binary()), "record-batch", limits=self.limits).to_pylist()
            for row, errors in zip(rows, validity, strict=True):
                row["checksum"] = errors[0]["code"] if errors else "ok"
        return pa.RecordBatch.from_pylist(
            [{name: value for name, value in {**row, **partition_values}.items() if name in names} for row in rows],
            schema=self.schema,
        )

    def located(self, error: HeaderError, *arguments: Any, **options: Any) -> HeaderError:
        """Return the error unchanged, because its row index already identifies a batch."""
        return error


class SegmentBatchReader(BatchRowReader):
    """Converts batches of segment files to one row each, instead of their records."""

    def rows(
        self, file: KafkaSegmentFile, batches: Sequence[BatchHeader], bounds: OffsetRange, transactions: Transactions
    ) -> Iterator[pa.RecordBatch | Invalid]:
        """Yield the rows of batches."""
        if batches:
            partition_values = {"topic": file.segment.topic, "partition": file.segment.partition}
            rows = self(file.stored(batches), start=bounds.start, end=bounds.end, partition_values=partition_values)
            if rows is not None:
                yield rows

    def keeps_error_rows(self, file: KafkaSegmentFile) -> bool:
        """Return False, because the boundaries of batches in damaged bytes are unknown."""
        return False

    def error_row(self, file: KafkaSegmentFile, error: BatchError, damage: DamagedRange) -> pa.RecordBatch:
        """Return an empty batch, because damaged bytes have no rows."""
        return empty_batch(self.schema)


def _row(batch: BatchHeader, data: bytes) -> dict[str, Any]:
    row: dict[str, Any] = {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.records,
        "bytes": batch.size,
        "magic": batch.magic,
        "codec": codec_name(batch.codec),
        "max_timestamp": None if batch.max_timestamp < 0 else batch.max_timestamp,
        "transactional": batch.transactional,
        "control": batch.control,
    }
    if batch.magic >= 2:
        base_time, _, producer, producer_epoch, sequence = _HEADER.unpack_from(data)
        epoch = leader_epoch(data, batch._replace(position=0))
        row["base_timestamp"] = None if base_time < 0 else base_time
        row["leader_epoch"] = None if epoch < 0 else epoch
        if producer >= 0:
            row |= {"producer_id": producer, "producer_epoch": producer_epoch}
            row["base_sequence"] = None if sequence < 0 else sequence
    return row
