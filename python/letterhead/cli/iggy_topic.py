"""The topic of an Iggy server that `letterhead dump` reads, named by iggy://user:password@host:port/stream/topic."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

import letterhead as lh
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.source import reason
from letterhead.errors import OffsetsGone, ProtocolError

if TYPE_CHECKING:
    from letterhead.cli.column import Rows
    from letterhead.iggy.connection import Address
    from letterhead.kafka.segments_reader import Bounds
    from letterhead.limits import Limits
    from letterhead.reader import Reader
    from letterhead.where import Condition

SCHEMES = ("iggy://", "iggy+tcp://")
ON_SCREEN = ("offset", "timestamp", "headers", "payload")
TIMEOUT_MS = 15_000


def open_topic(url: str, bounds: Bounds, where: str | None, rows: Rows, limits: Limits) -> tuple[Reader, int]:
    """Return a reader of a topic, and the number of its partitions."""
    from letterhead.iggy.client import Client, Topic
    from letterhead.iggy.rows import COLUMNS

    with server_errors():
        server, stream, topic = _parts(url)
        with Client(server, TIMEOUT_MS) as client:
            count = len(client.partitions(Topic(stream, topic)))
        columns = (*(() if count == 1 else ("partition",)), *ON_SCREEN) if rows.on_screen else COLUMNS
        condition = None if where is None else lh.where.parse(where)
        return open_reader(url, bounds, condition, columns, rows, limits), count


def open_reader(
    url: str, bounds: Bounds, where: Condition | None, columns: Sequence[str], rows: Rows, limits: Limits
) -> Reader:
    """Return a reader of a topic."""
    _, stream, topic = _parts(url)
    return lh.read.iggy(
        urlunsplit(urlsplit(url)._replace(path="")), stream=stream, topic=topic, columns=columns,
        errors=rows.options["errors"], where=_condition(bounds, where), limits=limits, timeout_ms=TIMEOUT_MS,
    )  # fmt: skip


def _parts(url: str) -> tuple[Address, str, str]:
    """Return the server, the stream and the topic of an address."""
    from letterhead.iggy.connection import Address

    server, path = Address.parse_with_path(url)
    names = [unquote(part) for part in path.split("/")[1:]]
    if len(names) != 2 or not all(names):
        raise Failure("the address does not name a topic: iggy://user:password@host:port/stream/topic")
    return server, names[0], names[1]


@contextmanager
def server_errors() -> Iterator[None]:
    """Report what the server refuses, and that it does not answer or sends invalid replies, as a failure."""
    from letterhead.iggy.connection import Refused

    try:
        with usage_errors():
            yield
    except (OffsetsGone, ProtocolError, Refused) as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(reason(error)) from error


def _condition(bounds: Bounds, where: Condition | None) -> Condition | None:
    """Return all bounds as one condition; those of offset and timestamp limit what is polled."""
    from letterhead.kafka.segments_reader import Bounds

    parts = [] if where is None else [where]
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
