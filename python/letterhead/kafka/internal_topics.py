"""Decode the records of ``__consumer_offsets`` and ``__transaction_state`` to columns: :func:`internal_topic`.

If the type of a record has no columns, or its bytes are invalid, its value is in ``undecoded``.

Source: the schemas of coordinator records, in ``group-coordinator`` and ``transaction-coordinator`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from letterhead.kafka.message_fields import FieldReader, read_assignment, read_subscription

__all__ = ["InternalTopic", "internal_topic"]

Row = dict[str, Any]

_TIME = pa.timestamp("ms", "UTC")
_MEMBERS = pa.list_(
    pa.struct([
        ("member", pa.string()), ("instance", pa.string()), ("client", pa.string()), ("host", pa.string()),
        ("topics", pa.list_(pa.string())), ("partitions", pa.list_(pa.string())),
    ])
)  # fmt: skip
_OFFSETS = pa.schema([
    ("record", pa.string()), ("group", pa.string()), ("member", pa.string()),
    ("committed_topic", pa.string()), ("committed_partition", pa.int32()), ("committed_offset", pa.int64()),
    ("committed_at", _TIME), ("expires_at", _TIME), ("leader_epoch", pa.int32()), ("metadata", pa.string()),
    ("protocol_type", pa.string()), ("generation", pa.int32()), ("protocol", pa.string()), ("leader", pa.string()),
    ("state_since", _TIME), ("members", _MEMBERS), ("deleted", pa.bool_()), ("undecoded", pa.binary()),
])  # fmt: skip
_TRANSACTIONS = pa.schema([
    ("transactional_id", pa.string()), ("assigned_producer_id", pa.int64()), ("assigned_producer_epoch", pa.int16()),
    ("timeout_ms", pa.int32()), ("state", pa.string()), ("partitions", pa.list_(pa.string())), ("updated_at", _TIME),
    ("started_at", _TIME), ("deleted", pa.bool_()), ("undecoded", pa.binary()),
])  # fmt: skip

_RECORDS = {
    0: "offset-commit", 1: "offset-commit", 2: "group-metadata", 3: "consumer-group-metadata",
    4: "consumer-group-partition-metadata", 5: "consumer-group-member-metadata",
    6: "consumer-group-target-assignment-metadata", 7: "consumer-group-target-assignment-member",
    8: "consumer-group-current-member-assignment", 10: "share-group-member-metadata", 11: "share-group-metadata",
    12: "share-group-target-assignment-metadata", 13: "share-group-target-assignment-member",
    14: "share-group-current-member-assignment", 15: "share-group-state-partition-metadata",
    16: "consumer-group-regular-expression", 17: "streams-group-metadata", 19: "streams-group-member-metadata",
    20: "streams-group-target-assignment-metadata", 21: "streams-group-target-assignment-member",
    22: "streams-group-current-member-assignment", 23: "streams-group-topology",
}  # fmt: skip
"""Record types of ``__consumer_offsets``, by the number at the start of a key."""

_OF_MEMBERS = (5, 7, 8, 10, 13, 14, 19, 21, 22)
"""Record types whose keys also name a member."""

_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip


class InternalTopic(NamedTuple):
    """Columns of an internal topic, default columns for a terminal, and the function that decodes a key and a value."""

    schema: pa.Schema
    screen_columns: tuple[str, ...]
    read: Callable[[bytes | None, bytes | None], Row]

    def columns_of(self, keys: pa.Array, values: pa.Array) -> pa.StructArray:
        """Decode a column of keys and a column of values into columns."""
        rows = [
            self._row(key, value) for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)
        ]  # fmt: skip
        return pa.array(rows, pa.struct(self.schema))

    def _row(self, key: bytes | None, value: bytes | None) -> Row:
        try:
            row = self.read(key, value)
        except (ValueError, OverflowError):
            row = {"undecoded": value}
        return {"deleted": value is None, **row}


def internal_topic(name: str | None) -> InternalTopic | None:
    """Return the decoder of an internal topic; None for other topics."""
    return {
        "__consumer_offsets": InternalTopic(
            _OFFSETS, ("record", "group", "committed_topic", "committed_partition", "committed_offset"), _offset_row
        ),
        "__transaction_state": InternalTopic(
            _TRANSACTIONS,
            ("transactional_id", "assigned_producer_id", "assigned_producer_epoch", "state", "partitions"),
            _transaction_row,
        ),
    }.get(name or "")


def _offset_row(key: bytes | None, value: bytes | None) -> Row:
    fields = FieldReader(key or b"")
    number = fields.int16()
    row: Row = {"record": _RECORDS.get(number, f"type-{number}")}
    if number not in _RECORDS:
        return row | {"undecoded": value}
    row["group"] = fields.string()
    if number in _OF_MEMBERS:
        row["member"] = fields.string()
    if number in (0, 1):
        row |= {"committed_topic": fields.string(), "committed_partition": fields.int32()}
    if value is None:
        return row
    read = {0: _commit, 1: _commit, 2: _group, 5: _member}.get(number)
    try:
        return row | (read(value, row) if read is not None else {"undecoded": value})
    except ValueError:
        return row | {"undecoded": value}


def _commit(value: bytes, _: Row) -> Row:
    version, fields = _read_version(value, 4, flexible=4)
    row: Row = {"committed_offset": fields.int64()}
    if version >= 3:
        row["leader_epoch"] = _none_if_unknown(fields.int32())
    row |= {"metadata": fields.string(), "committed_at": _none_if_unknown(fields.int64())}
    if version == 1:
        row["expires_at"] = _none_if_unknown(fields.int64())
    return row


def _group(value: bytes, _: Row) -> Row:
    version, fields = _read_version(value, 4, flexible=4)
    row = {
        "protocol_type": fields.string(),
        "generation": fields.int32(),
        "protocol": fields.nullable_string(),
        "leader": fields.nullable_string(),
    }

    def member() -> Row:
        found: Row = {"member": fields.string()}
        found["instance"] = fields.nullable_string() if version >= 3 else None
        found |= {"client": fields.string(), "host": fields.string()}
        for _ in range(2 if version >= 1 else 1):
            fields.int32()  # time limits of a rebalance and of a session
        subscription, assignment = fields.data(), fields.data()
        fields.tags()
        if row["protocol_type"] == "consumer":
            found["topics"] = read_subscription(subscription)
            found["partitions"] = [f"{topic}-{partition}" for topic, partition in read_assignment(assignment)]
        return found

    if version >= 2:
        row["state_since"] = _none_if_unknown(fields.int64())
    return row | {"members": fields.array(member)}


def _member(value: bytes, row: Row) -> Row:
    _, fields = _read_version(value, 0, flexible=0)
    instance, _rack = fields.nullable_string(), fields.nullable_string()
    client, host, topics = fields.string(), fields.string(), fields.array(fields.string)
    member = {"member": row["member"], "instance": instance, "client": client, "host": host, "topics": topics}
    return {"members": [member]}


def _transaction_row(key: bytes | None, value: bytes | None) -> Row:
    fields = FieldReader(key or b"")
    if version := fields.int16():
        raise ValueError(f"version {version} of a key")
    row: Row = {"transactional_id": fields.string()}
    if value is None:
        return row
    try:
        return row | _transaction(value)
    except ValueError:
        return row | {"undecoded": value}


def _transaction(value: bytes) -> Row:
    _, fields = _read_version(value, 1, flexible=1)
    row: Row = {
        "assigned_producer_id": fields.int64(),
        "assigned_producer_epoch": fields.int16(),
        "timeout_ms": fields.int32(),
    }
    state = fields.int8()
    row["state"] = _STATES[state] if 0 <= state < len(_STATES) else f"state-{state}"

    def partitions() -> list[str]:
        topic, numbers = fields.string(), fields.array(fields.int32)
        fields.tags()
        return [f"{topic}-{number}" for number in numbers]

    row["partitions"] = [name for names in fields.array(partitions) for name in names]
    return row | {"updated_at": _none_if_unknown(fields.int64()), "started_at": _none_if_unknown(fields.int64())}


def _read_version(value: bytes, newest: int, *, flexible: int) -> tuple[int, FieldReader]:
    """Return the version and the fields of a message; raise ValueError for an unknown version."""
    version = FieldReader(value).int16()
    if not 0 <= version <= newest:
        raise ValueError(f"version {version} of a value")
    fields = FieldReader(value, flexible=version >= flexible)
    fields.int16()
    return version, fields


def _none_if_unknown(number: int) -> int | None:
    """Return a number, or None for -1, which means unknown."""
    return None if number == -1 else number
