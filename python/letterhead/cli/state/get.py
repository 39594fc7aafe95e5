"""`letterhead state get`: the row of a key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.render import console, json_text
from letterhead.cli.state.arguments import read_key, read_time
from letterhead.cli.state.rows import failures, one_name, opened
from letterhead.cli.state.shown import row_json, show_row
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.limits import Limits
from letterhead.read.state_directory import Segment, find_stores
from letterhead.read.state_rows import Row, Store
from letterhead.state.interfaces import VersionedBytes
from letterhead.state.versioned import VersionedStore
from letterhead.storage.database import StoredFamilies
from letterhead.storage.keys import (
    MAX_SEQUENCE,
    MAX_TIME,
    TimeOrderedSessionKeys,
    TimeOrderedWindowKeys,
    session_key,
    window_key,
)


def run_get(
    given: Path,
    key: str,
    *,
    name: str | None,
    said: str | None,
    values: str | None,
    limits: Limits,
    start: str | None,
    end: str | None,
    as_of: str | None,
    json: bool,
    everything: bool,
) -> int:
    """Print the row of a key; of a window store that keeps duplicates, all of them."""
    wanted = read_key(key)
    times = {
        "--start": read_time(start, "--start"),
        "--end": read_time(end, "--end"),
        "--as-of": read_time(as_of, "--as-of"),
    }
    count = 0
    with failures():
        for found in one_name(find_stores(given, name), given):
            store = opened(found, said, values, limits)
            _check(store, times)
            for row in _rows(store, wanted, times):
                if json:
                    print(json_text(row_json(found, store.type, row), indent=2))
                else:
                    show_row(console(), found, store.type, row, everything=everything)
                count += 1
    if not count:
        at = "".join(f" {option} {time}" for option, time in times.items() if time is not None)
        raise Failure(f"there is no row of key {key!r}{at} in {given}", FAULTS)
    return OK


NEEDED = {"key-value": (), "window": ("--start",), "session": ("--start", "--end"), "versioned": ()}
ALLOWED = {**NEEDED, "versioned": ("--as-of",)}


def _check(store: Store, times: dict[str, int | None]) -> None:
    """Refuse times that a store's kind does not have, and the lack of those that it has."""
    kind = store.type.keys
    for option, time in times.items():
        if time is None and option in NEEDED[kind]:
            needed = " and ".join(NEEDED[kind])
            raise Failure(
                f"store {store.found.label} is a {kind} store: give {needed} too; `scan --from KEY --to KEY` shows all "
                "rows of a key"
            )
        if time is not None and option not in ALLOWED[kind]:
            raise Failure(f"store {store.found.label} is a {kind} store: it has no {option}")


def _rows(store: Store, key: bytes, times: dict[str, int | None]) -> Iterator[Row]:
    if store.type.keys == "versioned":
        yield from _version(store, key, times["--as-of"])
        return
    first, last = _stored_keys(store, key, times)
    for segment, families in store.databases():
        if segment.start is not None and segment.start > max(time or 0 for time in times.values()):
            break
        for stored in store.stored(families, first, last):
            # Between two windows of a key that differ in their numbers only, there may be those of longer keys.
            if len(stored.key) == len(first):
                yield from store.take_apart(segment, stored)


def _stored_keys(store: Store, key: bytes, times: dict[str, int | None]) -> tuple[bytes, bytes]:
    start, end = times["--start"] or 0, times["--end"] or 0
    by_time = store.type.time_ordered
    if store.type.keys == "window":
        first, last = window_key(key, start), window_key(key, start, MAX_SEQUENCE)
        return (TimeOrderedWindowKeys.row(first), TimeOrderedWindowKeys.row(last)) if by_time else (first, last)
    if store.type.keys == "session":
        first = session_key(key, start, end)
        return (TimeOrderedSessionKeys.row(first),) * 2 if by_time else (first, first)
    return key, key


def _version(store: Store, key: bytes, as_of: int | None) -> Iterator[Row]:
    for segment, families in store.databases():
        versions = _Versions(store, families)
        found = versions.get(key) if as_of is None else versions.get_as_of(key, as_of)
        if found is not None:
            yield _version_row(store, segment, key, found)


def _version_row(store: Store, segment: Segment, key: bytes, found: VersionedBytes) -> Row:
    try:
        _, headers, payload = store.value_parts(found.value)
    except DecodeError as error:
        raise DamagedRowError(segment.directory.name, key, error) from error
    return Row(key, {"valid_from": found.timestamp, "valid_to": found.valid_to}, payload, None, headers)


class _Versions(VersionedStore):
    """A versioned store over a database that is only looked at.

    How long its segments are is not in the files. It is not needed: all of them are one interval, and all are asked.
    """

    persistent = True

    def __init__(self, store: Store, families: StoredFamilies) -> None:
        super().__init__(store.found.name, MAX_TIME, MAX_TIME, headers=store.type.values == "headers")
        self._store = store
        self._families = families
        self._find_segments()
        self._opened(None)

    def _read(self, key: bytes) -> bytes | None:
        return self._store.get(self._families, key)

    def _key_from(self, key: bytes) -> bytes | None:
        row = next(self._store.stored(self._families, key), None)
        return None if row is None else row.key
