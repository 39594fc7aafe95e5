"""Fetch spans of partitions, one after the other, as Arrow record batches. :func:`rows_of` is the entry point."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead.errors import DecodeError, HeaderError, LogTruncated, OffsetsGone, ProtocolError, replaced
from letterhead.kafka.client import EARLIEST, LATEST, Client, Fetched, Isolation, Place
from letterhead.kafka.record_sets import Batch, Rows, aborted_batches, batches_of, leader_epoch, next_pieces
from letterhead.where.program import Filter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Span", "rows_of", "selected_spans"]

_log = logging.getLogger(__name__)


class Span(NamedTuple):
    """Offsets of a partition: the first one, and the one to stop before."""

    place: Place
    start: int
    end: int


def rows_of(
    client: Client, spans: Iterable[Span], rows: Rows, *, isolation: Isolation, batch_bytes: int, loss: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read spans in order; the next fetch runs while the current one is decoded.

    Each batch of rows is made of record batches with ``batch_bytes`` stored bytes, at least of one; of more while a
    condition selects few records. Records that were deleted before they were read raise OffsetsGone, and those that an
    election removed afterwards LogTruncated, unless ``loss`` is true.
    """
    pieces = 1
    for span, fetched, batches in _fetches(client, spans, isolation, loss):
        skipped = set(aborted_batches(batches, fetched.aborted))
        while batches:
            group, batches = _split(batches, pieces * batch_bytes)
            constants = span.place._asdict()
            try:
                made = rows(
                    fetched.records, group, start=span.start, end=span.end, skipped=skipped, constants=constants
                )
            except HeaderError as error:
                located = rows.located(error, fetched.records, group, constants=constants)
                # The number of a record in its batch says nothing that the offset does not.
                message = re.sub(r"^message \d+: ", "", located.message)
                raise replaced(located, message, row=None) from None
            if rows.where is not None:
                pieces = next_pieces(pieces, group, 0 if made is None else len(made))
            if made is not None:
                yield made


def selected_spans(client: Client, spans: Iterable[Span], where: Filter | None) -> list[Span]:
    """Narrow spans to the offsets of records that a condition can select."""
    spans = list(spans)
    if where is None:
        return spans
    since, _ = where.between("timestamp")
    firsts: Any = {}
    if since is not None:
        # -1: all records are older. "read_uncommitted" also finds records of open transactions.
        firsts = client.offsets({span.place: max(since, 0) for span in spans}, "read_uncommitted")
    narrowed = []
    for span in spans:
        low, high = where.between("offset")
        first = firsts.get(span.place, 0)
        start = max(span.start, low or 0, span.end if first < 0 else first)
        end = span.end if high is None else min(span.end, high + 1)
        if where.bind(span.place._asdict()).known is not False:
            narrowed.append(span._replace(start=min(start, span.end), end=max(end, span.start)))
    return narrowed


def _fetches(
    client: Client, spans: Iterable[Span], isolation: Isolation, loss: bool
) -> Iterator[tuple[Span, Fetched, list[Batch]]]:
    """Yield each response, with its span from the offset that was requested, once the next fetch has begun."""
    left = deque(span for span in spans if span.start < span.end)
    position = left[0].start if left else 0
    ends: dict[int, int] = {}  # the offset after the last one that was read of each leader epoch
    begun: Any = client.fetch(left[0].place, position, isolation) if left else None
    empty_since: float | None = None
    while left:
        span = left[0]
        fetched = client.fetched(begun)
        requested = position
        batches, position = _read_headers(client, span, fetched, position)
        ends |= {leader_epoch(fetched.records, batch): batch.last_offset + 1 for batch in batches}
        if fetched.diverging is not None:
            removed = LogTruncated(span.place, position, _first_removed(client, span, fetched, ends, isolation))
            if not loss:
                raise removed
            _log.warning("%s; continuing at %d", removed, position)
            ends = {}
        elif not batches:
            empty_since = empty_since or time.monotonic()
            position = _after_empty(client, span, fetched, position, empty_since, loss)
        if batches or position >= span.end:
            empty_since = None
        if position >= span.end:
            left.popleft()
            position = left[0].start if left else 0
            ends = {}
        if left:
            begun = client.fetch(left[0].place, position, isolation, last_epoch=max(ends, default=-1))
        if batches:
            # Earlier records of the first batch were read before, or deleted.
            yield span._replace(start=requested), fetched, batches


def _first_removed(client: Client, span: Span, fetched: Fetched, ends: Mapping[int, int], isolation: Isolation) -> int:
    """Find the first offset that was read and whose record the log of the leader does not contain."""
    first = span.start
    while fetched.diverging is not None:
        epoch, end = fetched.diverging
        shared = {known: min(read, end) for known, read in ends.items() if known <= epoch}
        if not shared:
            return span.start
        if shared == ends:  # the broker repeats itself
            break
        # The logs can differ in earlier epochs, too.
        ends, first = shared, max(shared.values())
        fetched = client.fetched(client.fetch(span.place, first, isolation, last_epoch=max(ends), wait_ms=0))
    return max(first, span.start)


def _read_headers(client: Client, span: Span, fetched: Fetched, position: int) -> tuple[list[Batch], int]:
    """Return the batches of a response and the offset after them."""
    batches, whole = batches_of(fetched.records)
    if any(
        batch.last_offset < batch.base_offset or batch.base_offset <= before.last_offset
        for before, batch in zip([Batch(0, 0, -1, -1, 2, 0, 0, 0, 0), *batches], batches, strict=False)
    ):
        raise ProtocolError(
            f"{client.servers} sent record batches of {span.place} from offset {position} on that are not in order"
        )
    if batches and batches[-1].last_offset < position:
        raise ProtocolError(
            f"{client.servers} sent records of {span.place} before offset {position}, the requested one"
        )
    if batches and 0 <= fetched.end <= batches[0].base_offset:
        # More can be appended while a broker reads, but all records up to that end would have to be gone.
        raise ProtocolError(
            f"{client.servers} sent records of {span.place} from offset {batches[0].base_offset} on, and says that they "
            f"end at {fetched.end}"
        )
    if fetched.records and not batches:
        # A broker sends at least one whole batch. Bytes that are none must not be skipped.
        place = {**span.place._asdict(), "offset": position, "byte_offset": whole}
        raise DecodeError("the response has no whole record batch", format="record-batch", code="truncated", **place)
    return batches, batches[-1].last_offset + 1 if batches else position


def _after_empty(client: Client, span: Span, fetched: Fetched, position: int, since: float, loss: bool) -> int:
    """Return the offset to continue at after a response without batches."""
    if fetched.end >= span.end:
        return span.end  # compaction removed the rest
    if fetched.end >= 0 and time.monotonic() - since < client.timeout:
        return position  # a new leader learns the high watermark with a delay
    first = client.offsets({span.place: EARLIEST}, "read_uncommitted")[span.place]
    end = client.offsets({span.place: LATEST}, "read_committed")[span.place]
    if position < first:
        gone = OffsetsGone(span.place, position, f"it was deleted, and the first one is {first}")
        position = min(first, span.end)
    else:
        gone = OffsetsGone(span.place, position, f"the partition ends at {end}")
        position = span.end
    if not loss:
        raise gone
    _log.warning("%s; continuing at %d", gone, position)
    return position


def _split(batches: list[Batch], size: int) -> tuple[list[Batch], list[Batch]]:
    """Return the first batches of this many bytes, but at least one, and those after them."""
    limit = batches[0].position + size
    count = next((at for at, batch in enumerate(batches) if at and batch.end > limit), len(batches))
    return batches[:count], batches[count:]
