"""Rule that decides which messages compaction keeps; :mod:`letterhead.kip82.log_files` applies it to files.

A compacted log keeps the message with the highest offset of every key. A *delete* (tombstone) is removed as well, after
a retention time in which slow readers can read it. In the header formats ``typed`` and ``int``, a message with a null
value is a delete, and may have headers. In the header format ``wrapper``, a value with headers is never null, so
attribute bit 4 marks a delete; a null value without a wrapper also counts as a delete.

:func:`letterhead.spark.compact` applies the same rule in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from letterhead._clock import now_ms
from letterhead._names import check_name
from letterhead.message import Message

__all__ = ["DELETE_RETENTION_MS", "Keyless", "delete_horizon", "is_delete", "latest_offsets", "should_retain"]

Keyless: TypeAlias = Literal["keep", "drop"]

DELETE_RETENTION_MS = 86_400_000
"""Kafka's default of ``delete.retention.ms``: one day."""


def is_delete(message: Message) -> bool:
    """Return whether a message with the fields of ``kip82-message*`` deletes its key.

    A null value is a delete. In the header format ``wrapper``, bit 4 or a missing wrapper marks a delete.

    Examples
    --------
    >>> import letterhead as lh
    >>> delete = lh.Message(key=b"k", headers={5: b"audit"}, value=b"why", tombstone=True)
    >>> is_delete(lh.decode(lh.encode(delete, "kip82-message-wrapper"), "kip82-message-wrapper"))
    True
    """
    return bool(message.tombstone) or (message.value is None and message.headers is None)


def latest_offsets(messages: Iterable[Message]) -> dict[bytes, int]:
    """Return the highest offset of every key that is not null, for messages of one partition in any order.

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
    """Return the timestamp up to which deletes are past their retention time, for :func:`should_retain`.

    Parameters
    ----------
    now : int, optional
        Milliseconds since 1970; by default the current time.
    delete_retention_ms : int, default 86400000
        Milliseconds for which a delete is retained.

    Returns
    -------
    int
        Milliseconds since 1970.

    Raises
    ------
    ValueError
        If the retention is negative.

    Examples
    --------
    >>> from letterhead.kip82.compaction import delete_horizon
    >>> delete_horizon(now=1_767_225_600_000, delete_retention_ms=60_000)
    1767225540000
    """
    if delete_retention_ms < 0:
        raise ValueError(f"delete_retention_ms is {delete_retention_ms}: it must be 0 or more")
    return (now_ms() if now is None else now) - delete_retention_ms


def should_retain(message: Message, latest: Mapping[bytes, int], horizon: int, *, keyless: Keyless = "keep") -> bool:
    """Return whether compaction keeps a message.

    Parameters
    ----------
    message : Message
        A message with the fields of ``kip82-message*``.
    latest : mapping of bytes to int
        The highest offset of every key, from :func:`latest_offsets`.
    horizon : int
        Deletes with this timestamp or an earlier one are removed, see :func:`delete_horizon`. A delete without a
        timestamp (null, or -1) is kept, because its age is unknown.
    keyless : {"keep", "drop"}, default "keep"
        What to do with messages without a key, which no later message replaces. Kafka's cleaner drops them.

    Notes
    -----
    The rule is ``shouldRetainMessage`` of ``LogCleaner`` in Kafka 0.10, plus bit 4 of the draft. Kafka measures the age
    of a delete by the time of its segment file; this function uses the timestamp of the message.

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
