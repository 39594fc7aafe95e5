"""`letterhead state get`: show the row of a key."""

from __future__ import annotations

from collections.abc import Iterator

from letterhead.cli.exits import BAD_DATA, OK, Failure
from letterhead.cli.render import print_json
from letterhead.cli.screen import console
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.formatting import row_json, show_row
from letterhead.cli.state.options import Selection
from letterhead.cli.state.rows import open_selected, parse_stored_key, parse_stored_time
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.state.reading.directory import find_one_store
from letterhead.state.reading.rows import StoreReader, StoreRow
from letterhead.state.reading.store_types import TIME_ORDERED_KEYS
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.keys import MAX_SEQUENCE, MAX_TIME, session_key, window_key
from letterhead.state.versioned import VersionedStore

REQUIRED_TIMES = {"key-value": (), "window": ("--start",), "session": ("--start", "--end"), "versioned": ()}
ALLOWED_TIMES = {**REQUIRED_TIMES, "versioned": ("--as-of",)}


def run_get(
    selection: Selection,
    key: str,
    *,
    start: str | None,
    end: str | None,
    as_of: str | None,
    json: bool,
    everything: bool,
    epoch_ms: bool,
) -> int:
    """Print the row of a key, or all rows of the key in a window store with duplicates."""
    raw_key = parse_stored_key(key)
    options = {"--start": start, "--end": end, "--as-of": as_of}
    times = {option: parse_stored_time(option, text) for option, text in options.items()}
    count = 0
    with reading_errors():
        for files in find_one_store(selection.directory, selection.name):
            store = open_selected(files, selection)
            _check_times(store, times)
            for row in _rows(store, raw_key, times):
                if json:
                    print_json(row_json(files, store.type, row, epoch_ms=epoch_ms))
                else:
                    show_row(console(), files, store.type, row, everything=everything)
                count += 1
    if not count:
        time_options = "".join(f" {option} {time}" for option, time in times.items() if time is not None)
        raise Failure(f"there is no row of key {key!r}{time_options} in {selection.directory}", BAD_DATA)
    return OK


def _check_times(store: StoreReader, times: dict[str, int | None]) -> None:
    """Raise for times that the store type does not have, and for missing times that it requires."""
    key_type = store.type.key_format
    for option, time in times.items():
        if time is None and option in REQUIRED_TIMES[key_type]:
            needed = " and ".join(REQUIRED_TIMES[key_type])
            raise Failure(
                f"store {store.files.label} is a {key_type} store: give {needed} too; `letterhead read --from-key KEY "
                "--to-key KEY` shows all rows of a key"
            )
        if time is not None and option not in ALLOWED_TIMES[key_type]:
            raise Failure(f"store {store.files.label} is a {key_type} store: it has no {option}")


def _rows(store: StoreReader, key: bytes, times: dict[str, int | None]) -> Iterator[StoreRow]:
    if store.type.key_format == "versioned":
        yield from _version(store, key, times["--as-of"])
        return
    first, last = _parse_stored_keys(store, key, times)
    for segment, families in store.databases():
        if segment.start is not None and segment.start > max(time or 0 for time in times.values()):
            break
        for stored in store.encoded_rows(families, first, last):
            # Between windows of a key with different sequence numbers, there may be windows of longer keys.
            if len(stored.key) == len(first):
                yield from store.parse_row(segment, stored)


def _parse_stored_keys(store: StoreReader, key: bytes, times: dict[str, int | None]) -> tuple[bytes, bytes]:
    start, end = times["--start"] or 0, times["--end"] or 0
    first = last = key
    if store.type.key_format == "window":
        first, last = window_key(key, start), window_key(key, start, MAX_SEQUENCE)
    elif store.type.key_format == "session":
        first = last = session_key(key, start, end)
    if not store.type.time_ordered:
        return first, last
    row_key = TIME_ORDERED_KEYS[store.type.name].row
    return row_key(first), row_key(last)


def _version(store: StoreReader, key: bytes, as_of: int | None) -> Iterator[StoreRow]:
    for segment, families in store.databases():
        versions = _StoredVersions(store, families)
        version = versions.get(key) if as_of is None else versions.get_as_of(key, as_of)
        if version is None:
            continue
        try:
            _, headers, payload = store.value_parts(version.value)
        except DecodeError as error:
            raise DamagedRowError(segment.directory.name, key, error) from error
        yield StoreRow(key, {"valid_from": version.timestamp, "valid_to": version.valid_to}, payload, None, headers)


class _StoredVersions(VersionedStore):
    """Versioned store over a read-only database.

    The files do not contain the segment interval, and a lookup does not need it: one interval covers all segments.
    """

    persistent = True

    def __init__(self, store: StoreReader, families: StoredFamilies) -> None:
        super().__init__(store.files.name, MAX_TIME, MAX_TIME, headers=store.type.value_format == "headers")
        self._store = store
        self._families = families
        self._find_segments()
        self._opened(None)

    def _read(self, key: bytes) -> bytes | None:
        return self._store.get(self._families, key)

    def _key_from(self, key: bytes) -> bytes | None:
        row = next(self._store.encoded_rows(self._families, key), None)
        return None if row is None else row.key
