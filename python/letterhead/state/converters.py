"""Convert changelog records to stored values and back.

The value of a changelog record is the payload; its timestamp and headers are separate fields. Tombstones are preserved.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

from letterhead._native import join_value, split_value
from letterhead.headers import Headers
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.processor import RecordContext
from letterhead.state.values import LazyHeaders

__all__ = [
    "ChangelogFields",
    "RecordConverter",
    "Split",
    "converter_for",
    "identity",
    "raw_value_to_headers_value",
    "raw_value_to_session_headers_value",
    "raw_value_to_timestamped_value",
    "split_for",
]

RecordConverter: TypeAlias = Callable[[ChangelogRecord], ChangelogRecord]

ChangelogFields: TypeAlias = tuple[bytes | None, int, Headers]
"""Value, timestamp and headers of a changelog record."""

Split: TypeAlias = Callable[[bytes, RecordContext], ChangelogFields]
"""Function that splits a stored value into the fields of its changelog record."""


def converter_for(store_type: str, format: str) -> RecordConverter:
    """Return the function that converts changelog records to the values of a store with a type and format."""
    if format == "headers":
        return raw_value_to_session_headers_value if store_type in _WITHOUT_TIMESTAMP else raw_value_to_headers_value
    return raw_value_to_timestamped_value if format == "timestamped" and store_type != "versioned" else identity


def split_for(store_type: str, format: str) -> Split:
    """Return the function that splits the values of a store with a type and format."""
    if format == "headers":
        return _split_aggregation if store_type in _WITHOUT_TIMESTAMP else _split_headers
    return _split_timestamped if format == "timestamped" else _split_plain


_WITHOUT_TIMESTAMP = ("session", "versioned")
"""Types of stores whose values have headers but no timestamp."""


def identity(record: ChangelogRecord) -> ChangelogRecord:
    """Return the record unchanged, for stores of plain values."""
    return record


def raw_value_to_timestamped_value(record: ChangelogRecord) -> ChangelogRecord:
    """Put the record's timestamp before its value."""
    if record.value is None:
        return record
    return record._replace(value=struct.pack(">q", record.timestamp) + record.value)


def raw_value_to_headers_value(record: ChangelogRecord) -> ChangelogRecord:
    """Put the record's headers and timestamp before its value, for key-value and window stores.

    Examples
    --------
    >>> import letterhead as lh
    >>> raw_value_to_headers_value(ChangelogRecord(b"k", b"v", 5, lh.Headers())).value.hex()
    '00000000000000000576'
    """
    if record.value is None:
        return record
    return record._replace(value=join_value(record.headers._list(), record.timestamp, record.value))


def raw_value_to_session_headers_value(record: ChangelogRecord) -> ChangelogRecord:
    """Put the record's headers before its value, for session and versioned stores."""
    if record.value is None:
        return record
    return record._replace(value=join_value(record.headers._list(), None, record.value))


def _split_plain(value: bytes, context: RecordContext) -> ChangelogFields:
    return value, context.timestamp, Headers()


def _split_timestamped(value: bytes, context: RecordContext) -> ChangelogFields:
    return value[8:], int.from_bytes(value[:8], "big", signed=True), Headers()


def _split_headers(value: bytes, context: RecordContext) -> ChangelogFields:
    payload, timestamp, start, end = split_value(value, True)
    headers = _new(LazyHeaders)  # skip __init__, because this runs at every write
    headers._encoded = value, start, end, None, None
    return payload, timestamp, headers


def _split_aggregation(value: bytes, context: RecordContext) -> ChangelogFields:
    payload, _, start, end = split_value(value, False)
    return payload, context.timestamp, LazyHeaders(value, start, end)


_new = object.__new__
