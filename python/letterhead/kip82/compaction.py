"""What compaction keeps: the rule, and nothing of files.

A log that is compacted keeps, for every key, the message with the highest offset. A *delete* (tombstone) goes too, once it
has been there for its retention: before that, a reader who is behind would never learn of it. In the typed and the integer
layout a delete is a null value, which may have headers. In the wrapper layout a value that carries headers is never null,
so attribute bit 4 says that a message is a delete; a null value without a wrapper still is one.

The same rule as expressions of Spark is :func:`letterhead.spark.compact`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from letterhead.errors import check_name
from letterhead.message import Message

__all__ = ["DELETE_RETENTION_MS", "Keyless", "delete_horizon", "is_delete", "latest_offsets", "should_retain"]

Keyless: TypeAlias = Literal["keep", "drop"]

DELETE_RETENTION_MS = 86_400_000
"""A day, as ``delete.retention.ms`` of Kafka is when nothing else is said."""


def is_delete(message: Message) -> bool:
    """Say whether a message deletes its key.

    Parameters
    ----------
    message : Message
        A message as ``kip82-message*`` has it.

    Returns
    -------
    bool
        Whether its value is null; in the wrapper layout whether bit 4 is set or it has no wrapper at all.

    Examples
    --------
    >>> import letterhead as lh
    >>> delete = lh.Message(key=b"k", headers={5: b"audit"}, value=b"why", tombstone=True)
    >>> is_delete(lh.decode(lh.encode(delete, "kip82-message-wrapper"), "kip82-message-wrapper"))
    True
    """
    return bool(message.tombstone) or (message.value is None and message.headers is None)


def latest_offsets(messages: Iterable[Message]) -> dict[bytes, int]:
    """Give the highest offset of every key.

    Parameters
    ----------
    messages : iterable of Message
        Messages of one partition, in any order.

    Returns
    -------
    dict of bytes to int
        An entry for each key that is not null.

    Examples
    --------
    >>> import letterhead as lh
    >>> latest_offsets([lh.Message(key=b"a", offset=0), lh.Message(key=None, offset=1), lh.Message(key=b"a", offset=2)])
    {b'a': 2}
    """
    latest: dict[bytes, int] = {}
    for message in messages:
        if message.key is not None and message.offset >= latest.get(message.key, message.offset):
            latest[message.key] = message.offset
    return latest


def delete_horizon(now: int | None = None, delete_retention_ms: int = DELETE_RETENTION_MS) -> int:
    """Give the time up to which deletes have been there long enough.

    Parameters
    ----------
    now : int, optional
        Milliseconds since 1970; by default the time it is.
    delete_retention_ms : int, default 86,400,000
        How long a delete is kept.

    Returns
    -------
    int
        Milliseconds since 1970.

    Raises
    ------
    ValueError
        If the retention is negative.
    """
    if delete_retention_ms < 0:
        raise ValueError(f"delete_retention_ms is {delete_retention_ms}: a delete is kept for no time, 0, or for some")
    return (time.time_ns() // 1_000_000 if now is None else now) - delete_retention_ms


def should_retain(message: Message, latest: Mapping[bytes, int], horizon: int, *, keyless: Keyless = "keep") -> bool:
    """Say whether compaction keeps a message.

    Parameters
    ----------
    message : Message
        A message as ``kip82-message*`` has it.
    latest : mapping of bytes to int
        The highest offset of every key, as :func:`latest_offsets` gives it.
    horizon : int
        Deletes of this time or an earlier one go, as :func:`delete_horizon` gives it. A delete without a time (null, or
        -1) stays: how old it is cannot be known.
    keyless : {"keep", "drop"}, default "keep"
        What becomes of messages without a key, which nothing ever replaces. Kafka's own cleaner drops them.

    Returns
    -------
    bool
        Whether it stays.

    Notes
    -----
    ``shouldRetainMessage`` of Kafka 0.10's ``LogCleaner``, with bit 4 as the draft asks for. There a delete's time is that
    of its segment file; here it is its own.

    Examples
    --------
    >>> import letterhead as lh
    >>> gone = lh.Message(key=b"a", offset=7, timestamp=1000, value=None, headers={"why": b"gdpr"}, tombstone=True)
    >>> [should_retain(gone, latest, horizon) for latest, horizon in [({b"a": 7}, 999), ({b"a": 7}, 1000), ({b"a": 8}, 0)]]
    [True, False, False]
    """
    check_name("keyless value", keyless, ("keep", "drop"))
    if message.key is None:
        return keyless == "keep"
    if message.offset < latest.get(message.key, message.offset):
        return False
    expired = message.timestamp is not None and 0 <= message.timestamp <= horizon
    return not (expired and is_delete(message))
