"""Spans of partitions, fetched one after the other, as Arrow record batches."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from letterhead.errors import DecodeError, HeaderError, OffsetsGone
from letterhead.read.kafka_client import EARLIEST, LATEST, Client, Fetched, Isolation, Place
from letterhead.read.record_sets import Batch, Rows, aborted_batches, batches_of

if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa

__all__ = ["Span", "rows_of"]

_log = logging.getLogger(__name__)


class Span(NamedTuple):
    """A part of a partition.

    Attributes
    ----------
    place : Place
        The partition.
    start, end : int
        Its first offset, and the first one that is no more in it.
    """

    place: Place
    start: int
    end: int


def rows_of(
    client: Client, spans: Iterable[Span], rows: Rows, *, isolation: Isolation, batch_bytes: int, loss: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read spans, one after the other: while one fetch becomes rows, the next one is under way.

    Parameters
    ----------
    client : Client
        Who asks for them.
    spans : iterable of Span
        What to read.
    rows : Rows
        What it becomes.
    isolation : {"read_uncommitted", "read_committed"}
        What may be read.
    batch_bytes : int
        Bytes of record batches, as they are stored, that become one batch of rows: at least one of them.
    loss : bool, default False
        Whether to go on where records were deleted before they were read.

    Yields
    ------
    pyarrow.RecordBatch
        Rows of one partition, in the order of their offsets.

    Raises
    ------
    OffsetsGone
        If records were deleted before they were read.
    DecodeError
        If a record is not whole, and the rows should raise that.
    """
    for span, fetched, batches in _fetches(client, spans, isolation, loss):
        left_out = set(aborted_batches(batches, fetched.aborted))
        same = span.place._asdict()
        for part in _parts(batches, batch_bytes):
            try:
                made = rows(fetched.records, part, start=span.start, end=span.end, left_out=left_out, same=same)
            except HeaderError as error:
                error.add_note(f"the topic is {span.place.topic}, the partition {span.place.partition}")
                raise
            if made is not None:
                yield made


def _fetches(
    client: Client, spans: Iterable[Span], isolation: Isolation, loss: bool
) -> Iterator[tuple[Span, Fetched, list[Batch]]]:
    """Give what every fetch brings, with the span from where it was asked for, when the next one has begun."""
    left = deque(span for span in spans if span.start < span.end)
    position = left[0].start if left else 0
    begun: Any = client.fetch(left[0].place, position, isolation) if left else None
    empty_since: float | None = None
    while left:
        span = left[0]
        fetched = client.fetched(begun)
        asked_for = position
        batches, position = _read_headers(span, fetched, position)
        if not batches:
            empty_since = empty_since or time.monotonic()
            position = _after_nothing(client, span, fetched, position, empty_since, loss)
        if batches or position >= span.end:
            empty_since = None
        if position >= span.end:
            left.popleft()
            position = left[0].start if left else 0
        if left:
            begun = client.fetch(left[0].place, position, isolation)
        if batches:
            # What lies in the first batch before it was read already, or was deleted.
            yield span._replace(start=asked_for), fetched, batches


def _read_headers(span: Span, fetched: Fetched, position: int) -> tuple[list[Batch], int]:
    """Give the batches that a fetch brought, and the offset after them; past the span where that is at its end."""
    batches, whole = batches_of(fetched.records)
    if fetched.records and (not batches or batches[-1].last_offset < position):
        # A broker sends at least one batch whole. One that cannot be told from the next is not skipped.
        error = DecodeError("no whole record batch", format="record-batch", code="truncated", byte_offset=whole)
        error.add_note(f"it was fetched from offset {position} of {span.place}")
        raise error
    return batches, batches[-1].last_offset + 1 if batches else position


def _after_nothing(client: Client, span: Span, fetched: Fetched, position: int, since: float, loss: bool) -> int:
    """Decide where to go on after a fetch that brought nothing."""
    if fetched.end >= span.end:
        return span.end  # compaction took the rest
    if fetched.end >= 0 and time.monotonic() - since < client.timeout:
        return position  # a new leader knows only after a while how far it may be read
    first = client.offsets({span.place: EARLIEST}, "read_uncommitted")[span.place]
    end = client.offsets({span.place: LATEST}, "read_committed")[span.place]
    if position < first:
        gone = OffsetsGone(span.place, position, f"it was deleted, and the first one is {first}")
        go_on = min(first, span.end)
    else:
        gone = OffsetsGone(span.place, position, f"the partition ends at {end}")
        go_on = span.end
    if not loss:
        raise gone
    _log.warning("%s; going on at %d", gone, go_on)
    return go_on


def _parts(batches: Sequence[Batch], most: int) -> Iterator[list[Batch]]:
    part: list[Batch] = []
    size = 0
    for batch in batches:
        if part and size + batch.size > most:
            yield part
            part, size = [], 0
        part.append(batch)
        size += batch.size
    if part:
        yield part
