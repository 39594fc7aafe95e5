"""Poll spans of partitions of Apache Iggy, one after the other, as Arrow record batches: :func:`rows_of`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from letterhead.errors import HeaderError, OffsetsGone
from letterhead.iggy.client import MOST_BYTES, Client, Messages, Place, Poll
from letterhead.iggy.connection import TooLarge
from letterhead.iggy.kafka_rows import KafkaRows
from letterhead.iggy.rows import IggyRows

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.where.program import Filter

__all__ = ["FETCH_BYTES", "Span", "rows_of"]

FETCH_BYTES = 4 << 20

_FIRST_COUNT = 256
_MOST_COUNT = 1 << 20
_MOST_GROWTH = 8
"""The server takes a number of messages, not of bytes: it follows the size of those read before."""

_log = logging.getLogger(__name__)


class Span(NamedTuple):
    """Offsets of a partition: the first one, and the one to stop before."""

    place: Place
    start: int
    end: int


def rows_of(
    client: Client,
    spans: Iterable[Span],
    rows: IggyRows | KafkaRows,
    *,
    fetch_bytes: int = FETCH_BYTES,
    loss: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read spans in order; the next poll runs while the current one is decoded.

    Messages that were deleted before they were read raise OffsetsGone, unless ``loss`` is true.
    """
    for span in spans:
        if rows.where is not None:
            span = _selected(client, span, rows.where)
        for start, polled in _polls(client, span, fetch_bytes, loss):
            constants = span.place._asdict()
            try:
                made = rows(polled.data, start=start, end=span.end, constants=constants)
            except HeaderError as error:
                raise rows.located(error, polled.data, constants=constants) from None
            if made is not None:
                yield made


def _selected(client: Client, span: Span, where: Filter) -> Span:
    """Narrow a span to the offsets of messages that a condition can select."""
    low, high = where.between("offset")
    since, _ = where.between("timestamp")
    first = 0 if since is None else client.offset_since(span.place, max(since, 0))
    start = min(max(span.start, low or 0, first), span.end)
    return span._replace(start=start, end=span.end if high is None else max(min(span.end, high + 1), start))


def _polls(client: Client, span: Span, fetch_bytes: int, loss: bool) -> Iterator[tuple[int, Messages]]:
    """Yield each reply with messages, and the offset it was requested from, once the next poll has begun."""
    position, count = span.start, _FIRST_COUNT
    begun: Poll | None = None
    empty_since: float | None = None
    while position < span.end:
        count = max(1, min(count, span.end - position, _MOST_COUNT))
        begun = begun or client.begin_poll(span.place, position, count)
        try:
            polled = client.end_poll(begun, MOST_BYTES if count == 1 else max(4 * fetch_bytes, 1 << 16))
        except TooLarge:
            if count == 1:
                raise
            begun, count = None, max(1, count // 16)
            continue
        begun, requested = None, position
        if not polled.number or polled.first > position:
            empty_since = empty_since or time.monotonic()
            position = _after_gap(client, span, polled, position, empty_since, loss)
            continue
        empty_since = None
        position = max(polled.end, position + 1)
        fits = polled.number * fetch_bytes // len(polled.data)
        count = max(1, min(fits, _MOST_GROWTH * polled.number))
        if position < span.end:
            count = min(count, span.end - position, _MOST_COUNT)
            begun = client.begin_poll(span.place, position, count)
        yield requested, polled


def _after_gap(client: Client, span: Span, polled: Messages, position: int, since: float, loss: bool) -> int:
    """Return the offset to continue at after a reply that does not begin at the requested offset."""
    first = polled.first if polled.number else client.first_offset(span.place)
    end = client.end_offset(span.place)
    if position >= first and end >= span.end and time.monotonic() - since < client.timeout:
        time.sleep(0.05)
        return position
    if position < first:
        gone = OffsetsGone(span.place, position, f"it was deleted, and the first one is {first}")
        after = min(first, span.end)
    else:
        gone = OffsetsGone(span.place, position, f"the partition ends at {end}")
        after = span.end
    if not loss:
        raise gone
    _log.warning("%s; continuing at %d", gone, after)
    return after
