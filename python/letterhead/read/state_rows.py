"""The rows of a store in a directory: read as the store would read them, and nothing moved or changed.

While a store is upgraded its rows are in two families. Here they come as one, in the order of the store: by segment, and
in a segment by stored key.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import letterhead as lh
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.limits import Limits
from letterhead.read.state_directory import Found, Segment, holder
from letterhead.read.state_kinds import Kind, kind_of
from letterhead.storage.database import StoredFamilies, list_families
from letterhead.storage.keys import (
    SessionKeys,
    TimeOrderedSessionKeys,
    TimeOrderedWindowKeys,
    WindowKeys,
    session_parts,
    window_parts,
)
from letterhead.storage.layouts import Legacy
from letterhead.storage.raw import headers_end, shifted
from letterhead.storage.versioned_rows import LATEST, Latest, SegmentRow

__all__ = ["INDEX", "SUFFIXES", "Row", "Store", "Stored", "StoredVersion", "open_store"]

INDEX = b"\1"


class Stored(NamedTuple):
    """A row as it is stored.

    Attributes
    ----------
    key, value : bytes
        The row.
    family : str
        The column family that it is in.
    older : Legacy or None
        How it becomes a newer row, if it is an older one.
    """

    key: bytes
    value: bytes
    family: str
    older: Legacy | None

    def newer(self) -> bytes:
        """Give the value in the newer form."""
        return self.value if self.older is None else self.older.convert(self.key, self.value)

    @property
    def added(self) -> int:
        """How many bytes the newer form puts before the value."""
        return 0 if self.older is None else len(self.newer()) - len(self.value)


class StoredVersion(NamedTuple):
    """A version as it is stored.

    Attributes
    ----------
    valid_from : int
        When it begins to be valid.
    valid_to : int or None
        When it ends to be; None for the latest.
    value : bytes or None
        Its value; None where there is none from then on.
    at : int
        The byte of its row that the value begins with.
    """

    valid_from: int
    valid_to: int | None
    value: bytes | None
    at: int


class Row(NamedTuple):
    """A row, or a version of one, taken apart.

    Attributes
    ----------
    key : bytes
        The key without times.
    times : dict of str to int or None
        What the store's kind has: start of a window; start and end of a session; from and to of a version.
    value : bytes or None
        The payload; None where a version says that there is none.
    timestamp : int or None
        The timestamp, if the store's kind has one in its values.
    headers : Headers or None
        The headers; None if the store has none.
    """

    key: bytes
    times: dict[str, int | None]
    value: bytes | None
    timestamp: int | None
    headers: lh.Headers | None


@dataclass(frozen=True)
class Store:
    """A store of which it is known what it is.

    Attributes
    ----------
    found : Found
        Where it is.
    kind : Kind
        What it is.
    names : list of list of str
        Names of the column families of each of its databases.
    process : int or None
        The process that has it open, if one has.
    limits : Limits or None
        The most to read of a value with headers; what is not said is as the process has it.
    """

    found: Found
    kind: Kind
    names: list[list[str]]
    process: int | None = None
    limits: Limits | None = None

    @property
    def assumption(self) -> str:
        """What to say where the kind may be another."""
        return f"store {self.found.label}: read as {self.kind}: {self.kind.assumed}"

    @property
    def unwritten(self) -> str:
        """What to say where a process has it open."""
        return (
            f"store {self.found.label} is open in process {self.process}: rows that it has not written to files yet are "
            "not here"
        )

    def databases(self, *, backward: bool = False) -> Iterator[tuple[Segment, StoredFamilies]]:
        """Open its databases, one after the other, to look at them."""
        for segment in self.found.segments[::-1] if backward else self.found.segments:
            with StoredFamilies(segment.directory) as families:
                yield segment, families

    def sources(self, families: StoredFamilies) -> list[tuple[str, Legacy | None]]:
        """Give the families of a database in which there are rows: the newer ones first."""
        layout = self.kind.layout
        sources: list[tuple[str, Legacy | None]] = [(layout.family, None)]
        sources += [(older.family, older) for older in layout.legacy]
        return [(family, older) for family, older in sources if family in families.names]

    def stored(
        self, families: StoredFamilies, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[Stored]:
        """Read the rows of a database, those of all its families in one order; of two of a key, the newer one."""
        scans = [
            _tagged(families.rows(family, first, last, backward=backward), family, older)
            for family, older in self.sources(families)
        ]
        before = None
        # What is equal comes in the order of the scans.
        for row in heapq.merge(*scans, key=itemgetter(0), reverse=backward):
            if row.key != before:
                yield row
            before = row.key

    def rows(self, families: StoredFamilies) -> Iterator[tuple[bytes, bytes]]:
        """Read all rows of a database in the newer form, entries of an index left out."""
        older = [family for family, legacy in self.sources(families) if legacy is not None]
        family = self.kind.layout.family
        rows: Iterator[tuple[bytes, bytes]] = iter(())
        if any(next(families.rows(each), None) for each in older):
            rows = ((row.key, _newer_or_damaged(row)) for row in self.stored(families))
        elif family in families.names:
            rows = families.rows(family)
        return ((key, value) for key, value in rows if key[:1] != INDEX) if self.kind.time_ordered else rows

    def get(self, families: StoredFamilies, key: bytes) -> bytes | None:
        """Read a row by its stored key, as a newer one."""
        row = self.find(families, key)
        return None if row is None else row.newer()

    def find(self, families: StoredFamilies, key: bytes) -> Stored | None:
        """Read a row by its stored key."""
        for family, older in self.sources(families):
            value = families.get(family, key)
            if value is not None:
                return Stored(key, value, family, older)
        return None

    def take_apart(self, segment: Segment, row: Stored) -> list[Row]:
        """Take a stored row apart; a row of versions is several, an entry of an index none.

        Raises
        ------
        DamagedRowError
            If it is not what the store's kind says.
        """
        try:
            key, times = self.key_parts(row.key)
            if self.is_index(row.key):
                return []
            value = row.newer()
            if self.kind.keys == "versioned":
                return [self._version(key, version) for version in self.versions(row.key, value)]
            try:
                timestamp, headers, payload = self.value_parts(value)
            except DecodeError as error:
                raise shifted(error, -row.added) from error
            return [Row(key, times, payload, timestamp, headers)]
        except DecodeError as error:
            raise DamagedRowError(segment.directory.name, row.key, error) from error

    def is_index(self, stored: bytes) -> bool:
        """Say whether a stored key is an entry of the index of a time-ordered store."""
        return self.kind.time_ordered and stored[:1] == INDEX

    def plain_key(self, stored: bytes) -> bytes:
        """Give a stored key in the form of the store that is not time-ordered."""
        if not self.kind.time_ordered:
            return stored
        if stored[:1] not in (b"\0", INDEX):
            raise _damaged("the key begins with neither 00 nor 01", code="out_of_range")
        return stored[1:] if self.is_index(stored) else self._by_time.of_row(stored)

    def row_key(self, index: bytes) -> bytes:
        """Give the key of the row that an entry of an index stands for."""
        return self._by_time.row(index[1:])

    def key_parts(self, stored: bytes) -> tuple[bytes, dict[str, int | None]]:
        """Take a stored key apart: the key, and its times.

        Raises
        ------
        DecodeError
            If it is too short, or of no row.
        """
        keys = self.kind.keys
        least = SUFFIXES[keys] + self.kind.time_ordered
        if len(stored) < least:
            raise _damaged(f"a stored key of {len(stored)} bytes is too short: {least} of it say the time")
        stored = self.plain_key(stored)
        if keys == "window":
            key, start, _ = window_parts(stored)
            return key, {"start": start}
        if keys == "session":
            session = session_parts(stored)
            return session.key, {"start": session.start, "end": session.end}
        return (stored[8:], {}) if keys == "versioned" else (stored, {})

    def value_parts(self, value: bytes) -> tuple[int | None, lh.Headers | None, bytes]:
        """Take a value apart: timestamp, headers, payload.

        Raises
        ------
        DecodeError
            If it is damaged.
        """
        if self.kind.values == "plain":
            return None, None, value
        if self.kind.values == "timestamped":
            if len(value) < 8:
                raise _damaged(f"timestamp takes 8 bytes and {len(value)} are left", 0)
            return _INT64.unpack_from(value)[0], None, value[8:]
        message: Any = lh.decode(value, self.value_format, limits=self.limits)
        return getattr(message, "timestamp", None), message.headers, message.payload

    def versions(self, stored: bytes, value: bytes) -> list[StoredVersion]:
        """Take a row of a versioned store, in the newer form, apart: the newest version first.

        Raises
        ------
        DecodeError
            If it is damaged.
        """
        if stored.startswith(LATEST):
            latest = Latest.read(value)
            return [StoredVersion(latest.timestamp, None, latest.value, 8)]
        row, end, made = SegmentRow.read(value), len(value), []
        for index, version in enumerate(row.versions):
            end -= len(version.value or b"")
            made.append(StoredVersion(version.valid_from, row.valid_to(index), version.value, end))
        return made

    @property
    def _by_time(self) -> type[TimeOrderedWindowKeys] | type[TimeOrderedSessionKeys]:
        return TimeOrderedWindowKeys if self.kind.keys == "window" else TimeOrderedSessionKeys

    @property
    def value_format(self) -> str:
        """The format of values with headers."""
        return "streams-timestamped" if self.kind.keys in ("key-value", "window") else "streams"

    def header_bytes(self, stored: bytes, value: bytes) -> int:
        """Count the bytes before the timestamp or payload of a row in the newer form.

        Raises
        ------
        DecodeError
            If it is damaged.
        """
        if self.kind.values != "headers" or self.is_index(stored):
            return 0
        if self.kind.keys != "versioned":
            return headers_end(value)
        if stored.startswith(LATEST):
            return headers_end(Latest.read(value).value)
        return sum(headers_end(each.value) for each in SegmentRow.read(value).versions if each.value is not None)

    def _version(self, key: bytes, version: StoredVersion) -> Row:
        times = {"valid_from": version.valid_from, "valid_to": version.valid_to}
        if version.value is None:
            return Row(key, times, None, None, None)
        try:
            _, headers, payload = self.value_parts(version.value)
        except DecodeError as error:
            raise shifted(error, version.at) from error
        return Row(key, times, payload, None, headers)


SUFFIXES = {"key-value": 0, "window": WindowKeys.suffix, "session": SessionKeys.suffix, "versioned": 8}
"""Bytes of a stored key that are not the key, the first one of time-ordered stores left out."""


def open_store(found: Found, said: str | None = None, values: str | None = None, limits: Limits | None = None) -> Store:
    """Tell what a store is, and who has it open.

    Parameters
    ----------
    found : Found
        Where it is.
    said, values : str, optional
        Its kind and what its values have, if the user says it.
    limits : Limits, optional
        The most to read of a value with headers; what is not said is as the process has it.

    Raises
    ------
    UnexpectedColumnFamilyError
        If it is none.
    StoreChoiceError
        If the user says what cannot be.
    """
    names = [list_families(segment.directory.name, segment.directory) for segment in found.segments]
    kind = kind_of(found, names, said, values)
    process = next((held for each in found.segments if (held := holder(each.directory)) is not None), None)
    return Store(found, kind, names, process, limits)


def _newer_or_damaged(row: Stored) -> bytes:
    """Give a value in the newer form; one that cannot be brought there is what it is, damaged."""
    try:
        return row.newer()
    except DecodeError:
        return row.value


def _tagged(rows: Iterator[tuple[bytes, bytes]], family: str, older: Legacy | None) -> Iterator[Stored]:
    for key, value in rows:
        yield Stored(key, value, family, older)


def _damaged(message: str, offset: int | None = None, code: str = "truncated") -> DecodeError:
    return DecodeError(message, format=None, code=code, byte_offset=offset)


_INT64 = struct.Struct(">q")
