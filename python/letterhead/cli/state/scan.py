"""`letterhead state scan`: show the rows of a store, or the rows of some keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import letterhead as lh
from letterhead.cli.exits import BAD_DATA, OK, Failure
from letterhead.cli.render import ROWS_IN_TABLE, console, counted, json_text, warn
from letterhead.cli.state.options import Selection
from letterhead.cli.state.rows import failures, open_selected, read_key, stores_of
from letterhead.cli.state.shown import row_json, rows_table
from letterhead.cli.where import warn_of_unseen
from letterhead.errors import DamagedRowError, DecodeError, ProcessorStateError
from letterhead.row_filter import RowFilter
from letterhead.state.reading.key_bounds import KeyBounds
from letterhead.state.reading.rows import StoreReader, StoreRow


class DamagedRows:
    """Reports rows that cannot be read, or raises at the first, and counts them."""

    def __init__(self, raises: bool) -> None:
        self._raises = raises
        self.count = 0

    def add(self, error: ProcessorStateError | DamagedRowError) -> None:
        """Report a damaged row."""
        if self._raises:
            raise error
        self.count += 1
        warn(str(error) if isinstance(error, DamagedRowError) else f"{error}: the rows after it are not read")


def run_scan(
    selection: Selection,
    *,
    bounds: tuple[str | None, str | None, str | None],
    limit: int | None,
    backward: bool,
    keys_only: bool,
    raises: bool,
    json: bool,
    everything: bool,
    where: str | None = None,
) -> int:
    """Print rows in the order of the store; `bounds` are the first key, the last key, and a prefix."""
    first, last, prefix = (None if text is None else read_key(text) for text in bounds)
    if prefix is not None and (first is not None or last is not None):
        raise Failure("--prefix and --from, --to exclude each other: give one of them")
    keys = KeyBounds(first, last, prefix or b"")
    damage = DamagedRows(raises)
    with failures():
        stores = [open_selected(files, selection) for files in stores_of(selection)]
        filters = {store.type.name: _filter(where, store) for store in stores}
        rows = (
            (store, row)
            for store in (stores[::-1] if backward else stores)
            for row in _scanned(
                store, keys, damage, backward=backward, keys_only=keys_only, where=filters[store.type.name]
            )
        )
        chosen = itertools.islice(rows, limit)
        count = 0
        if json:
            for store, row in chosen:
                print(json_text(row_json(store.files, store.type, row, keys_only=keys_only)))
                count += 1
        else:
            count = _show(chosen, keys_only=keys_only, everything=everything)
        row_filter = filters[stores[0].type.name]
        if row_filter is not None and (limit is None or count < limit):
            warn_of_unseen(row_filter.unseen_headers, _fields(stores[0]))
    if damage.count:
        warn(f"{counted(damage.count, 'damaged row')} left out")
    return BAD_DATA if damage.count else OK


def _filter(where: str | None, store: StoreReader) -> RowFilter | None:
    if where is None:
        return None
    try:
        row_filter = RowFilter(where, _fields(store), None, "kafka")
    except (ValueError, TypeError, ImportError) as error:
        raise Failure(str(error)) from error
    if row_filter.has_headers and store.type.values != "headers":
        raise Failure(f"store {store.files.name} is {store.type}: it has no headers for --where")
    return row_filter


def _fields(store: StoreReader) -> list[str]:
    fields = ["task", "store", "key", "value", *_times(store)]
    if store.type.has_timestamps:
        fields.append("timestamp")
    return fields


def _times(store: StoreReader) -> dict[str, str]:
    """Return the times of a row by their names in a condition: the names that are shown, and the columns of ``read.state``."""
    return {
        "window": {"start": "start", "window_start": "start"},
        "session": {"start": "start", "end": "end", "session_start": "start", "session_end": "end"},
        "versioned": {"valid_from": "valid_from", "valid_to": "valid_to"},
    }.get(store.type.keys, {})


def _is_selected(where: RowFilter, store: StoreReader, row: StoreRow) -> bool:
    fields = {"task": store.files.task or None, "store": store.files.name, **row._asdict()}
    fields |= {name: row.times.get(time) for name, time in _times(store).items()}
    return where.selects(fields, None if row.headers is None else lh.encode(row.headers, "kafka"))


def _scanned(
    store: StoreReader,
    keys: KeyBounds,
    damage: DamagedRows,
    *,
    backward: bool,
    keys_only: bool,
    where: RowFilter | None,
) -> Iterator[StoreRow]:
    first, last = keys.stored(store.type)
    for segment, families in store.databases(backward=backward):
        try:
            for stored in store.stored(families, first, last, backward=backward):
                try:
                    key, times = store.key_parts(stored.key)
                    if key not in keys or store.is_index(stored.key):
                        continue
                    if keys_only and where is None and store.type.keys != "versioned":
                        yield StoreRow(key, times, None, None, None)
                        continue
                    rows = store.parse_row(segment, stored)
                    if where is not None:
                        rows = [row for row in rows if _is_selected(where, store, row)]
                except DecodeError as error:
                    damage.add(DamagedRowError(segment.directory.name, stored.key, error))
                except DamagedRowError as error:
                    damage.add(error)
                else:
                    yield from rows[::-1] if not backward else rows
        except ProcessorStateError as error:
            damage.add(error)


def _show(rows: Iterator[tuple[StoreReader, StoreRow]], *, keys_only: bool, everything: bool) -> int:
    screen = console()
    count = 0
    for _, of_store in itertools.groupby(rows, key=lambda row: id(row[0])):
        while part := list(itertools.islice(of_store, ROWS_IN_TABLE)):
            store = part[0][0]
            store_rows = [row for _, row in part]
            screen.print(rows_table(store.files, store.type, store_rows, keys_only=keys_only, everything=everything))
            count += len(part)
    screen.print(counted(count, "row"), style="dim")
    return count
