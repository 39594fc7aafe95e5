"""Find the aborted and the open transactions of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from letterhead import arrow as lha
from letterhead.kafka.batch_attributes import ControlType, control_type
from letterhead.kafka.log_directory import LogSegment
from letterhead.kafka.record_sets import AbortedTransaction, BatchHeader
from letterhead.kafka.segment_file import KafkaSegmentFile
from letterhead.offsets.damage import BatchError, DamagedRange

__all__ = ["Aborted", "OpenTransaction", "Transactions", "read_transactions"]


class Aborted(NamedTuple):
    """Aborted transaction: its producer, first record and control record."""

    producer_id: int
    first_offset: int
    last_offset: int


class OpenTransaction(NamedTuple):
    """Transaction without an end in the log: readers of committed records stop at its first offset."""

    topic: str | None
    partition: int | None
    producer_id: int
    first_offset: int


class Transactions(NamedTuple):
    """Transactions that readers of committed records omit or stop at."""

    aborted: list[Aborted]
    open: list[OpenTransaction]

    def aborted_among(self, batches: Sequence[BatchHeader]) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap the batches."""
        first, last = batches[0].base_offset, batches[-1].last_offset
        return [AbortedTransaction(aborted.producer_id, aborted.first_offset) for aborted in self.aborted
                if aborted.last_offset >= first and aborted.first_offset <= last]  # fmt: skip


def read_transactions(segments: Sequence[LogSegment], start: int = 0, *, strict: bool = True) -> Transactions:
    """Read the control records of one partition, from an offset to the end of the log.

    The result has the transactions with records from ``start`` on that end in the log, and those open at its end.
    Damaged bytes from ``start`` on that may be a control record, or begin a transaction, raise DecodeError if
    ``strict``; otherwise transactions that may have ended there count as open.
    """
    aborted: list[Aborted] = []
    earlier = _open_before(segments, start)
    unfinished: dict[int, tuple[LogSegment, BatchHeader]] = {}
    maybe_ended: list[tuple[LogSegment, BatchHeader]] = []  # transactions whose control records may be in damaged bytes
    for segment in segments:
        if segment.next_offset is not None and segment.next_offset <= start:
            continue
        with KafkaSegmentFile(segment) as file:
            for batch in _transactional(file, start, strict=strict):
                if batch is None:
                    maybe_ended += unfinished.values()
                    unfinished.clear()
                    continue
                if not batch.control:
                    unfinished.setdefault(batch.producer_id, (segment, batch))
                    continue
                earlier.pop(batch.producer_id, None)
                if batch.producer_id in unfinished:
                    first = unfinished.pop(batch.producer_id)[1].base_offset
                    if _is_abort(file, batch):
                        aborted.append(Aborted(batch.producer_id, first, batch.base_offset))
    # A damaged header can look like the start of a transaction, but such a transaction would never end.
    for segment, batch in unfinished.values():
        with KafkaSegmentFile(segment) as file:
            _check_checksums(file, [batch])
    return Transactions(aborted, [
        OpenTransaction(segment.topic, segment.partition, batch.producer_id, batch.base_offset)
        for segment, batch in (*maybe_ended, *(unfinished | earlier).values())
    ])  # fmt: skip


def _open_before(segments: Sequence[LogSegment], start: int) -> dict[int, tuple[LogSegment, BatchHeader]]:
    """Return, by producer, the first batch of each transaction that is open at an offset.

    Damaged bytes can hide the end of a transaction; the next end of a transaction of its producer also ends it.
    """
    unfinished: dict[int, tuple[LogSegment, BatchHeader]] = {}
    for segment in segments:
        if segment.base_offset >= start:
            break
        with KafkaSegmentFile(segment) as file:
            for batch in _transactional(file, 0, strict=False):
                if batch is None:
                    continue
                if batch.base_offset >= start:
                    break
                if batch.control:
                    unfinished.pop(batch.producer_id, None)
                else:
                    unfinished.setdefault(batch.producer_id, (segment, batch))
    return unfinished


def _transactional(file: KafkaSegmentFile, start: int, *, strict: bool) -> Iterator[BatchHeader | None]:
    """Yield the batches of transactions, and ``None`` for damage that may contain one."""
    for batches, invalid in file.walk(start):
        transactional = [batch for batch in batches if batch.transactional and batch.last_offset >= start]
        if strict:
            # Only control records are read here; damage of other records is found later.
            _check_checksums(file, [batch for batch in transactional if batch.control])
            yield from transactional
        else:
            damaged = _find_damaged_batches(file, transactional)
            yield from (None if batch in damaged else batch for batch in transactional)
        if invalid is not None and not invalid[1].truncated:
            if strict:
                raise file.error(*invalid)
            yield None


def _is_abort(file: KafkaSegmentFile, batch: BatchHeader) -> bool:
    messages = pa.array([file.peek(batch.position, batch.end)], pa.binary())
    [record] = lha.messages(messages, "record-batch", columns=["key"]).to_pylist()
    # A control record without a type does not commit the transaction.
    return control_type(record["key"]) in (None, ControlType.ABORT)


def _check_checksums(file: KafkaSegmentFile, batches: Sequence[BatchHeader]) -> None:
    """Raise DecodeError if the checksum of a batch is wrong."""
    for batch, error in _find_damaged_batches(file, batches).items():
        raise file.error(error, DamagedRange(batch.position, batch.end, False, batch.base_offset, batch.last_offset))


def _find_damaged_batches(file: KafkaSegmentFile, batches: Sequence[BatchHeader]) -> dict[BatchHeader, BatchError]:
    """Return the batches with a wrong checksum, whose headers cannot be trusted."""
    return {batch: error for batch, error in zip(batches, file.batch_errors(batches), strict=True) if error is not None}
