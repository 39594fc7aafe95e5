"""The topic of an Iggy server that `letterhead dump` reads, named by iggy://user:password@host:port/stream/topic."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import letterhead as lh
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.source import reason
from letterhead.errors import OffsetsGone, ProtocolError

if TYPE_CHECKING:
    from letterhead.cli.column import Rows
    from letterhead.limits import Limits
    from letterhead.read.reader import Reader
    from letterhead.read.segments_reader import Bounds
    from letterhead.where import Condition

SCHEMES = ("iggy://", "iggy+tcp://")
ON_SCREEN = ("offset", "timestamp", "headers", "payload")
TIMEOUT_MS = 15_000


def open_topic(url: str, bounds: Bounds, where: str | None, rows: Rows, limits: Limits) -> tuple[Reader, int]:
    """Return a reader of a topic, and the number of its partitions."""
    from letterhead.read.iggy_client import Client, Topic
    from letterhead.read.iggy_connection import Address
    from letterhead.read.iggy_rows import COLUMNS

    names = [unquote(part) for part in urlsplit(url).path.split("/")[1:]]
    if len(names) != 2 or not all(names):
        raise Failure("the address does not name a topic: iggy://user:password@host:port/stream/topic")
    stream, topic = names
    with server_errors():
        with Client(Address.parse(url), TIMEOUT_MS) as client:
            count = len(client.partitions(Topic(stream, topic)))
        columns = (*(() if count == 1 else ("partition",)), *ON_SCREEN) if rows.on_screen else COLUMNS
        reader = lh.read.iggy(
            url, stream=stream, topic=topic, columns=columns, errors=rows.options["errors"],
            where=_condition(bounds, where), limits=limits, timeout_ms=TIMEOUT_MS,
        )  # fmt: skip
    return reader, count


@contextmanager
def server_errors() -> Iterator[None]:
    """Report what the server refuses, and that it does not answer or sends invalid replies, as a failure."""
    from letterhead.read.iggy_connection import Refused

    try:
        with usage_errors():
            yield
    except (OffsetsGone, ProtocolError, Refused) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(reason(error)) from error


def _condition(bounds: Bounds, where: str | None) -> Condition | None:
    """Return all bounds as one condition; those of offset and timestamp limit what is polled."""
    from letterhead.read.segments_reader import Bounds

    parts = [] if where is None else [lh.where.parse(where)]
    offset, timestamp, none = lh.col("offset"), lh.col("timestamp"), Bounds()
    if bounds.start != none.start:
        parts.append(offset >= bounds.start)
    if bounds.end != none.end:
        parts.append(offset < bounds.end)
    if bounds.since is not None:
        parts.append(timestamp >= 1000 * bounds.since)
    if bounds.until is not None:
        parts.append(timestamp < 1000 * bounds.until)
    return functools.reduce(lambda one, other: one & other, parts) if parts else None
