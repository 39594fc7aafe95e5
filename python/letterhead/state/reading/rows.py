"""Read and parse the rows of a store in a directory without modifying it.

During an upgrade, the rows of a store are in two column families. Both are read as one, in the order of the store: by
segment, then by stored key.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import letterhead as lh
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.limits import Limits
from letterhead.state.reading.directory import StoreFiles, StoreSegment, holder
from letterhead.state.reading.key_bounds import KeyBounds
from letterhead.state.reading.store_types import TIME_ORDERED_KEYS, DetectedType, store_type_of
from letterhead.state.storage.database import StoredFamilies, list_families
from letterhead.state.storage.keys import AFTER_INDEX, INDEX, SessionKeys, WindowKeys, session_parts, window_parts
from letterhead.state.storage.layouts import Legacy
from letterhead.state.storage.raw import headers_end, shift_error
from letterhead.state.storage.rows import row_error
from letterhead.state.storage.versioned_rows import LATEST, Latest, SegmentRow, bounds, segment_number

__all__ = [
    "SUFFIXES",
    "EncodedRow",
    "KeyParts",
    "StoreReader",
    "StoreRow",
    "StoredVersion",
    "latest_offsets",
    "open_store",
]


class EncodedRow(NamedTuple):
    """Stored key and value of a row."""

    key: bytes
    value: bytes
    family: str
    legacy: Legacy | None  # converts an older value to the newer form

    def newer(self) -> bytes:
        """Return the value in the newer form."""
        return self.value if self.legacy is None else self.legacy.convert(self.key, self.value)

    @property
    def added(self) -> int:
        """Number of bytes that the newer form adds before the value."""
        return len(self.newer()) - len(self.value)


class StoredVersion(NamedTuple):
    """Version from a row of a versioned store."""

    valid_from: int
    valid_to: int | None  # None for the latest version
    value: bytes | None  # None if the key is deleted
    at: int  # position of the value in the row


class StoreRow(NamedTuple):
    """Parsed row, or one version of a row."""

    key: bytes  # without times
    times: dict[str, int | None]  # times of a window, a session or a version, by column
    value: bytes | None  # None for a version that deletes the key
    timestamp: int | None  # None if the store's values have no timestamp
    headers: lh.Headers | None  # None if the store keeps no headers
    sequence: int | None = None  # number of a row in a window store with duplicates


class KeyParts(NamedTuple):
    """Parts of a stored key: the key, its times by column, and in window stores the sequence number."""

    key: bytes
    times: dict[str, int | None]
    sequence: int | None = None


@dataclass(frozen=True)
class StoreReader:
    """Reader of a store with a known type."""

    files: StoreFiles
    type: DetectedType
    families_of_databases: list[list[str]]  # names of the column families of each database
    process: int | None = None  # process that has the store open
    limits: Limits | None = None  # limits for reading values with headers

    @property
    def assumption(self) -> str:
        """Warning that the type of the store is assumed."""
        return f"store {self.files.label}: read as {self.type}: {self.type.assumed}"

    @property
    def unwritten(self) -> str:
        """Warning that a process has the store open."""
        return (
            f"store {self.files.label} is open in process {self.process}: rows that it has not written to files yet are "
            "missing"
        )

    def databases(self, *, backward: bool = False) -> Iterator[tuple[StoreSegment, StoredFamilies]]:
        """Open the databases one after the other, and yield each."""
        for segment in self.files.segments[::-1] if backward else self.files.segments:
            with StoredFamilies(segment.directory) as families:
                yield segment, families

    def changelog_offsets(self) -> dict[str, int]:
        """Read the offsets of the store's last changelog records, by ``topic-partition``."""
        return latest_offsets(families.offsets() for _, families in self.databases())

    def row_families(self, families: StoredFamilies) -> list[tuple[str, Legacy | None]]:
        """Return the column families that contain rows of the store, newest first."""
        layout = self.type.layout
        all_families: list[tuple[str, Legacy | None]] = [(layout.family, None)]
        all_families += [(legacy.family, legacy) for legacy in layout.legacy]
        return [(family, legacy) for family, legacy in all_families if family in families.names]

    def encoded_rows(
        self, families: StoredFamilies, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[EncodedRow]:
        """Read the rows of all families, in order of key; if two rows have the same key, only the newer row."""
        scans = [
            _tag_rows(families.rows(family, first, last, backward=backward), family, legacy)
            for family, legacy in self.row_families(families)
        ]
        before = None
        # If both families have a key, the row of the newer family comes first.
        for row in heapq.merge(*scans, key=itemgetter(0), reverse=backward):
            if row.key != before:
                yield row
            before = row.key

    def rows(self, families: StoredFamilies) -> Iterator[tuple[bytes, bytes]]:
        """Read the keys and values of a database, without index entries; values are in the newer form."""
        older = [family for family, legacy in self.row_families(families) if legacy is not None]
        family = self.type.layout.family
        rows: Iterator[tuple[bytes, bytes]] = iter(())
        if any(next(families.rows(legacy_family), None) for legacy_family in older):
            rows = ((row.key, _newer_or_damaged(row)) for row in self.encoded_rows(families))
        elif family in families.names:
            rows = families.rows(family)
        return ((key, value) for key, value in rows if key[:1] != INDEX) if self.type.time_ordered else rows

    def rows_between(
        self, families: StoredFamilies, keys: KeyBounds, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read the rows in a range of keys like :meth:`rows`, including rows with damaged keys."""
        for row in self.encoded_rows(families, *keys.stored(self.type), backward=backward):
            try:
                is_selected = self.key_parts(row.key)[0] in keys
            except DecodeError:
                is_selected = True
            if is_selected and not self.is_index(row.key):
                yield row.key, _newer_or_damaged(row)

    def get(self, families: StoredFamilies, key: bytes) -> bytes | None:
        """Read the value of a stored key, in the newer form."""
        row = self.find(families, key)
        return None if row is None else row.newer()

    def find(self, families: StoredFamilies, key: bytes) -> EncodedRow | None:
        """Read the row of a stored key."""
        for family, legacy in self.row_families(families):
            value = families.get(family, key)
            if value is not None:
                return EncodedRow(key, value, family, legacy)
        return None

    def parse_row(self, segment: StoreSegment, row: EncodedRow) -> list[StoreRow]:
        """Parse a stored row: return its versions, one row, or an empty list for an index entry.

        Raises DamagedRowError if the row is damaged.
        """
        try:
            key, times, sequence = self.key_parts(row.key)
            if self.is_index(row.key):
                return []
            value = row.newer()
            if self.type.key_format == "versioned":
                return [self._version(key, version) for version in self.versions(row.key, value)]
            try:
                timestamp, headers, payload = self.value_parts(value)
            except DecodeError as error:
                raise shift_error(error, -row.added) from error
            return [StoreRow(key, times, payload, timestamp, headers, sequence)]
        except DecodeError as error:
            raise DamagedRowError(segment.directory.name, row.key, error) from error

    def is_index(self, stored_key: bytes) -> bool:
        """Return whether a stored key belongs to an index entry of a time-ordered store."""
        return self.type.time_ordered and stored_key[:1] == INDEX

    def has_index(self, families: StoredFamilies) -> bool:
        """Return whether a time-ordered database has an index; Kafka Streams omits an index that is not used."""
        scans = (families.rows(family, INDEX, AFTER_INDEX) for family, _ in self.row_families(families))
        return self.type.time_ordered and any(
            key[:1] == INDEX for rows in scans for key, _ in itertools.islice(rows, 1)
        )

    def plain_key(self, stored_key: bytes) -> bytes:
        """Convert a stored key to the form used in stores that are not time-ordered."""
        if not self.type.time_ordered:
            return stored_key
        if stored_key[:1] not in (b"\0", INDEX):
            raise row_error("out_of_range", "the key begins with neither 00 nor 01")
        return (
            stored_key[1:] if self.is_index(stored_key) else TIME_ORDERED_KEYS[self.type.name].changelog_key(stored_key)
        )

    def row_key(self, index: bytes) -> bytes:
        """Return the stored key of the row to which an index entry refers."""
        return TIME_ORDERED_KEYS[self.type.name].row(index[1:])

    def key_parts(self, stored_key: bytes) -> KeyParts:
        """Parse a stored key; raise DecodeError if it is invalid."""
        keys = self.type.key_format
        min_key_len = SUFFIXES[keys] + self.type.time_ordered
        if len(stored_key) < min_key_len:
            raise row_error(
                "truncated", f"a stored key of {len(stored_key)} bytes is too short: {min_key_len} of it are the time"
            )
        stored_key = self.plain_key(stored_key)
        if keys == "window":
            key, start, sequence = window_parts(stored_key)
            return KeyParts(key, {"window_start": start}, sequence)
        if keys == "session":
            session = session_parts(stored_key)
            return KeyParts(session.key, {"session_start": session.start, "session_end": session.end})
        return KeyParts(stored_key[8:] if keys == "versioned" else stored_key, {})

    def value_parts(self, value: bytes) -> tuple[int | None, lh.Headers | None, bytes]:
        """Parse a value into timestamp, headers and payload; raise DecodeError if it is invalid."""
        if self.type.value_format == "plain":
            return None, None, value
        if self.type.value_format == "timestamped":
            if len(value) < 8:
                raise row_error("truncated", f"timestamp takes 8 bytes and {len(value)} are left", 0)
            return _INT64.unpack_from(value)[0], None, value[8:]
        message: Any = lh.decode(value, self.message_format, limits=self.limits)
        return getattr(message, "timestamp", None), message.headers, message.payload

    def versions(self, stored_key: bytes, value: bytes) -> list[StoredVersion]:
        """Parse a row of a versioned store, newest version first; raise DecodeError if it is invalid."""
        if stored_key.startswith(LATEST):
            latest = Latest.read(value)
            return [StoredVersion(latest.timestamp, None, latest.value, 8)]
        row, end, versions = SegmentRow.read(value), len(value), []
        for index, version in enumerate(row.versions):
            end -= len(version.value or b"")
            versions.append(StoredVersion(version.valid_from, row.valid_to(index), version.value, end))
        return versions

    def row_times(self, stored_key: bytes, value: bytes) -> list[int]:
        """Return the times of a row, or the earliest and latest times of its versions; raise DecodeError if it is invalid."""
        if self.type.key_format == "versioned":
            if segment_number(stored_key) < 0:
                return [Latest.read(value).timestamp]
            return sorted(bounds(value))
        return [time for time in self.key_parts(stored_key).times.values() if time is not None]

    @property
    def message_format(self) -> str:
        """Format of values with headers."""
        return "streams" if self.type.key_format in ("session", "versioned") else "streams-timestamped"

    def header_bytes(self, stored_key: bytes, value: bytes) -> int:
        """Return the size of the headers in a row in the newer form; raise DecodeError if the row is invalid."""
        if self.type.value_format != "headers" or self.is_index(stored_key):
            return 0
        if self.type.key_format != "versioned":
            return headers_end(value)
        return sum(
            headers_end(version.value) for version in self.versions(stored_key, value) if version.value is not None
        )

    def _version(self, key: bytes, version: StoredVersion) -> StoreRow:
        times = {"valid_from": version.valid_from, "valid_to": version.valid_to}
        if version.value is None:
            return StoreRow(key, times, None, None, None)
        try:
            _, headers, payload = self.value_parts(version.value)
        except DecodeError as error:
            raise shift_error(error, version.at) from error
        return StoreRow(key, times, payload, None, headers)


SUFFIXES = {"key-value": 0, "window": WindowKeys.suffix, "session": SessionKeys.suffix, "versioned": 8}
"""Number of bytes after the key in a stored key, excluding the first byte of time-ordered stores."""


def open_store(
    files: StoreFiles, store_type: str | None = None, value_format: str | None = None, limits: Limits | None = None
) -> StoreReader:
    """Return a reader for a store, with its type from :func:`store_type_of` and the process that has it open."""
    names = [list_families(segment.directory.name, segment.directory) for segment in files.segments]
    type = store_type_of(files, names, store_type, value_format)
    if type.layout.version is not None:
        for segment in files.segments:
            with StoredFamilies(segment.directory) as families:
                type.layout.check_version(files.label, families.version())
    processes = (holder(segment.directory) for segment in files.segments)
    return StoreReader(
        files, type, names, next((process for process in processes if process is not None), None), limits
    )


def latest_offsets(offsets_of_databases: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the largest offset of each ``topic-partition``; after a crash, some databases may be behind others."""
    latest: dict[str, int] = {}
    for offsets in offsets_of_databases:
        for topic_partition, offset in offsets.items():
            latest[topic_partition] = max(offset, latest.get(topic_partition, offset))
    return latest


def _newer_or_damaged(row: EncodedRow) -> bytes:
    """Return a value in the newer form, or unchanged if it is damaged."""
    try:
        return row.newer()
    except DecodeError:
        return row.value


def _tag_rows(rows: Iterator[tuple[bytes, bytes]], family: str, legacy: Legacy | None) -> Iterator[EncodedRow]:
    for key, value in rows:
        yield EncodedRow(key, value, family, legacy)


_INT64 = struct.Struct(">q")
