"""The transactions in a log: which were aborted, and which are not at their end yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from letterhead import arrow as lha
from letterhead.read.indexes import Aborted, aborted, position_before
from letterhead.read.log_directory import Segment
from letterhead.read.record_sets import Batch
from letterhead.read.segment_file import SegmentFile

__all__ = ["OpenTransaction", "Transactions", "transactions"]

_ABORT = 0
"""The type of a mark, behind its version in the key of the record."""


class OpenTransaction(NamedTuple):
    """A transaction whose end is not in the log.

    Attributes
    ----------
    topic, partition : str or None, int or None
        Where it is.
    producer_id, first_offset : int
        Its producer, and where it begins: whoever reads what is committed reads no further.
    """

    topic: str | None
    partition: int | None
    producer_id: int
    first_offset: int


class Transactions(NamedTuple):
    """What a reader of committed records has to know of a partition."""

    aborted: list[Aborted]
    open: list[OpenTransaction]

    def aborted_among(self, batches: Sequence[Batch]) -> list[tuple[int, int]]:
        """Give those that lie among some batches, or reach into them."""
        first, last = batches[0].base_offset, batches[-1].last_offset
        return [(one.producer_id, one.first_offset) for one in self.aborted
                if one.last_offset >= first and one.first_offset <= last]  # fmt: skip


def transactions(segments: Sequence[Segment], start: int = 0, *, strict: bool = True) -> Transactions:
    """Read the marks of transactions, from an offset to the end of the log.

    Parameters
    ----------
    segments : sequence of Segment
        Those of one partition.
    start : int, default 0
        Only transactions that have records from here on are found.
    strict : bool, default True
        Refuse damage; else a transaction whose mark may have been there is open.

    Returns
    -------
    Transactions
        What was aborted by its mark, or by the ``.txnindex`` file where the mark is gone; and what is open.

    Raises
    ------
    DecodeError
        If something in the middle of the log is damaged that may be a mark, or begin a transaction.
    """
    found: list[Aborted] = []
    begun: dict[int, tuple[SegmentFile, Batch]] = {}
    endless: list[tuple[SegmentFile, Batch]] = []
    for segment in segments:
        if segment.next_offset is not None and segment.next_offset <= start:
            continue
        found += aborted(segment)
        file = SegmentFile(segment)
        for batch in _transactional(file, start, strict=strict):
            if batch is None:
                endless += begun.values()
                begun.clear()
            elif not batch.control:
                begun.setdefault(batch.producer_id, (file, batch))
            elif batch.producer_id in begun:
                first = begun.pop(batch.producer_id)[1].base_offset
                if _is_abort(file, batch):
                    found.append(Aborted(batch.producer_id, first, batch.base_offset))
    for file, batch in begun.values():
        _check(file, [batch])
    return Transactions(found, [
        OpenTransaction(file.segment.topic, file.segment.partition, batch.producer_id, batch.base_offset)
        for file, batch in (*endless, *begun.values())
    ])  # fmt: skip


def _transactional(file: SegmentFile, start: int, *, strict: bool) -> Iterator[Batch | None]:
    """Give the batches of transactions, and ``None`` where one may have been."""
    position, least = position_before(file.segment, start), file.segment.base_offset
    while position < len(file.data):
        batches, flaw = file.batches(position, least)
        among = [batch for batch in batches if batch.transactional and batch.last_offset >= start]
        # Whoever reads the records meets what is wrong with them, and stops there if that is refused.
        checked = [batch for batch in among if batch.control] if strict else among
        bad = _check(file, checked, strict=strict)
        yield from (None if batch in bad else batch for batch in among)
        if batches:
            position, least = batches[-1].position + batches[-1].size, batches[-1].last_offset + 1
        if flaw is not None:
            damage = file.damage(position, least, flaw)
            if damage.torn:
                return
            if strict:
                raise file.error(position, least, flaw)
            yield None
            position = damage.end


def _is_abort(file: SegmentFile, batch: Batch) -> bool:
    cell = pa.array([file.data[batch.position : batch.position + batch.size]], pa.binary())
    [mark] = lha.messages(cell, "record-batch", columns=["key"]).to_pylist()
    return int.from_bytes(mark["key"][2:4], "big") == _ABORT


def _check(file: SegmentFile, batches: Sequence[Batch], *, strict: bool = True) -> set[Batch]:
    """Give the batches whose checksum does not hold: their headers say nothing."""
    bad = {batch: flaw for batch, flaw in zip(batches, file.flaws(batches), strict=True) if flaw is not None}
    if bad and strict:
        batch, flaw = next(iter(bad.items()))
        raise file.error(batch.position, batch.base_offset, flaw)
    return {*bad}
