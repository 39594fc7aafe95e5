"""`letterhead state scan`: show the rows of a store, or those of some keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from letterhead.cli.exits import BAD_DATA, OK, Failure
from letterhead.cli.render import console, counted, json_text, warn
from letterhead.cli.state.options import Selection
from letterhead.cli.state.rows import Range, failures, opened, read_key, stores_of
from letterhead.cli.state.shown import row_json, rows_table
from letterhead.errors import DamagedRowError, DecodeError, ProcessorStateError
from letterhead.read.state_rows import Row, Store

# Rows in one table: all rows of a store may not fit in memory.
ROWS_IN_TABLE = 1000


class Damage:
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
) -> int:
    """Print rows in the order of the store; `bounds` are the first key, the last key, and a prefix."""
    first, last, prefix = (None if text is None else read_key(text) for text in bounds)
    if prefix is not None and (first is not None or last is not None):
        raise Failure("--prefix and --from, --to exclude each other: give one of them")
    keys = Range(first, last, prefix or b"")
    damage = Damage(raises)
    with failures():
        stores = [opened(found, selection) for found in stores_of(selection)]
        rows = (
            (store, row)
            for store in (stores[::-1] if backward else stores)
            for row in _scanned(store, keys, damage, backward=backward, keys_only=keys_only)
        )
        chosen = itertools.islice(rows, limit)
        if json:
            for store, row in chosen:
                print(json_text(row_json(store.found, store.type, row, keys_only=keys_only)))
        else:
            _show(chosen, keys_only=keys_only, everything=everything)
    if damage.count:
        warn(f"{counted(damage.count, 'damaged row')} left out")
    return BAD_DATA if damage.count else OK


def _scanned(store: Store, keys: Range, damage: Damage, *, backward: bool, keys_only: bool) -> Iterator[Row]:
    first, last = keys.stored(store.type)
    for segment, families in store.databases(backward=backward):
        try:
            for stored in store.stored(families, first, last, backward=backward):
                try:
                    key, times = store.key_parts(stored.key)
                    if key not in keys or store.is_index(stored.key):
                        continue
                    if keys_only and store.type.keys != "versioned":
                        yield Row(key, times, None, None, None)
                        continue
                    rows = store.take_apart(segment, stored)
                except DecodeError as error:
                    damage.add(DamagedRowError(segment.directory.name, stored.key, error))
                except DamagedRowError as error:
                    damage.add(error)
                else:
                    yield from rows[::-1] if not backward else rows
        except ProcessorStateError as error:
            damage.add(error)


def _show(rows: Iterator[tuple[Store, Row]], *, keys_only: bool, everything: bool) -> None:
    screen = console()
    count = 0
    for _, of_store in itertools.groupby(rows, key=lambda row: id(row[0])):
        while part := list(itertools.islice(of_store, ROWS_IN_TABLE)):
            store = part[0][0]
            shown = [row for _, row in part]
            screen.print(rows_table(store.found, store.type, shown, keys_only=keys_only, everything=everything))
            count += len(part)
    screen.print(counted(count, "row"), style="dim")
