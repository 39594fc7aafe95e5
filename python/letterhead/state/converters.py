"""Records of a changelog as values of the store that is restored from it.

A changelog holds the payload as the record's value, and timestamp and headers beside it. Each function gives the same
record with another value; a value that is null, a tombstone, stays null.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

from letterhead._native import join_value
from letterhead.state.interfaces import ChangelogRecord

__all__ = [
    "RecordConverter",
    "converter_for",
    "identity",
    "raw_value_to_headers_value",
    "raw_value_to_session_headers_value",
    "raw_value_to_timestamped_value",
]

RecordConverter: TypeAlias = Callable[[ChangelogRecord], ChangelogRecord]


def identity(record: ChangelogRecord) -> ChangelogRecord:
    """Leave a record as it is: for stores of plain values."""
    return record


def raw_value_to_timestamped_value(record: ChangelogRecord) -> ChangelogRecord:
    """Put the record's timestamp before its value."""
    if record.value is None:
        return record
    return record._replace(value=struct.pack(">q", record.timestamp) + record.value)


def raw_value_to_headers_value(record: ChangelogRecord) -> ChangelogRecord:
    """Put the record's headers and timestamp before its value: for key-value and window stores.

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
    """Put the record's headers before its value: for session stores, and for versioned ones."""
    if record.value is None:
        return record
    return record._replace(value=join_value(record.headers._list(), None, record.value))


def converter_for(
    *, headers: bool = False, timestamped: bool = False, session: bool = False, versioned: bool = False
) -> RecordConverter:
    """Choose the converter for a store.

    Parameters
    ----------
    headers : bool, default False
        Whether the store's values have headers.
    timestamped : bool, default False
        Whether they have a timestamp.
    session, versioned : bool, default False
        Whether the store is of sessions, or of versions.

    Returns
    -------
    callable
        One of the four functions above.
    """
    if headers:
        return raw_value_to_session_headers_value if session or versioned else raw_value_to_headers_value
    return raw_value_to_timestamped_value if timestamped and not versioned else identity
