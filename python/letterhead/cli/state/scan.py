"""`letterhead state scan`: all rows of a store, or those of some keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.render import console, counted, json_text
from letterhead.cli.state.arguments import read_key
from letterhead.cli.state.rows import Range, failures, one_name, opened, warn
from letterhead.cli.state.shown import row_json, rows_table
from letterhead.errors import DamagedRowError, DecodeError, ProcessorStateError
from letterhead.limits import Limits
from letterhead.read.state_directory import Found, find_stores
from letterhead.read.state_rows import Row, Store

# Rows that stand in a table together. All rows of a store could be more than there is memory for.
ROWS_IN_TABLE = 1000


class Damage:
    """What to do with rows that cannot be read, and how many there were."""

    def __init__(self, raises: bool) -> None:
        self._raises = raises
        self.count = 0

    def add(self, error: ProcessorStateError | DamagedRowError) -> None:
        """Say what is wrong with a row, or end the command with it."""
        if self._raises:
            raise error
        self.count += 1
        warn(str(error) if isinstance(error, DamagedRowError) else f"{error}: what comes after it is not read")


def run_scan(
    given: Path,
    *,
    name: str | None,
    said: str | None,
    values: str | None,
    limits: Limits,
    first: str | None,
    last: str | None,
    prefix: str | None,
    limit: int | None,
    backward: bool,
    keys_only: bool,
    damaged: str,
    json: bool,
    everything: bool,
) -> int:
    """Print rows in the order of the store."""
    if prefix is not None and (first is not None or last is not None):
        raise Failure("--prefix and --from, --to exclude each other: give one of them")
    keys = Range(
        None if first is None else read_key(first),
        None if last is None else read_key(last),
        b"" if prefix is None else read_key(prefix),
    )
    damage = Damage(damaged == "raise")
    with failures():
        stores = [opened(found, said, values, limits) for found in one_name(find_stores(given, name), given)]
        rows = (
            (store, row)
            for store in (stores[::-1] if backward else stores)
            for row in scanned(store, keys, damage, backward=backward, keys_only=keys_only)
        )
        chosen = itertools.islice(rows, limit)
        if json:
            for store, row in chosen:
                print(json_text(row_json(store.found, store.type, row, keys_only=keys_only)))
        else:
            _show(chosen, keys_only=keys_only, everything=everything)
    if damage.count:
        warn(f"{counted(damage.count, 'damaged row')} left out")
    return FAULTS if damage.count else OK


def scanned(
    store: Store, keys: Range, damage: Damage, *, backward: bool = False, keys_only: bool = False
) -> Iterator[Row]:
    """Read the rows of some keys of a store."""
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
            store: Store = part[0][0]
            found: Found = store.found
            screen.print(
                rows_table(found, store.type, [row for _, row in part], keys_only=keys_only, everything=everything)
            )
            count += len(part)
    screen.print(counted(count, "row"), style="dim")
