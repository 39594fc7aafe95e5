"""`letterhead state upgrade`: what a newer store does row by row when rows are touched, for all rows at once."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from letterhead._formatting import printable
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.progress import progress
from letterhead.cli.render import console, counted, json_text, table
from letterhead.cli.state.rows import failures, opened, warn
from letterhead.cli.state.shown import folded
from letterhead.errors import StateStoreError
from letterhead.read.state_directory import Segment, find_stores
from letterhead.read.state_rows import Store
from letterhead.read.store_types import LAYOUTS, VALUES, StoreType
from letterhead.storage.database import Database, RocksDBOptions
from letterhead.storage.layouts import Layout, mixed_formats
from letterhead.storage.upgrade import UpgradingRows


@dataclass
class Plan:
    """What is to be moved of a store.

    Attributes
    ----------
    store : Store
        The store.
    target : StoreType
        What it is to become.
    families : list of str
        Where the older rows are.
    rows : list of int
        How many there are in each segment.
    moved : int
        How many were moved.
    """

    store: Store
    target: StoreType
    families: list[str]
    rows: list[int]
    moved: int = 0

    @property
    def layout(self) -> Layout:
        """The families that the store will have."""
        return self.target.layout


def run_upgrade(
    given: Path,
    *,
    name: str | None,
    said: str | None,
    values: str | None,
    to: str,
    yes: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Move the older rows of all stores of a directory."""
    with failures():
        found = find_stores(given, name)
        if said is not None and len({store.name for store in found}) > 1:
            raise Failure("--store-type is said of one store: say which with --store")
        plans = [_plan(opened(store, said, values), to) for store in found]
        work = [plan for plan in plans if sum(plan.rows)]
        if work and not dry_run:
            _check_free(work)
            _ask(work, yes, json)
            _move(work)
    if json:
        print(json_text([_document(plan) for plan in plans], indent=2))
    else:
        _show(plans, dry_run)
    return OK


def _plan(store: Store, to: str) -> Plan:
    kind, label = store.type, store.found.label
    layout = LAYOUTS.get((kind.name, to))
    if layout is None:
        values = " or ".join(values for name, values in LAYOUTS if name == kind.name)
        raise Failure(f"store {label} is a {kind.keys} store: --to is {values}")
    if VALUES.index(to) < VALUES.index(kind.values):
        raise Failure(
            f"store {label} is {kind}: it does not become {to} again. Delete {store.found.directory}, and a store of the "
            "older type restores itself from the changelog"
        )
    target = StoreType(kind.name, to)
    families, rows = _older_rows(store, layout)
    if sum(rows) and (kind.name, kind.values, to) == ("time-ordered-window", "plain", "headers"):
        raise Failure(f"store {label}: plain rows of time-ordered windows have no timestamps: there is no upgrade")
    if sum(rows) and kind.assumed:
        raise Failure(
            f"store {label}: {kind.assumed}: nothing is changed on an assumption. If it is {kind}, say "
            f"--store-type {kind.name}{f' --values {kind.values}' if kind.name == 'time-ordered-window' else ''}"
        )
    return Plan(store, target, families, rows)


def _older_rows(store: Store, layout: Layout) -> tuple[list[str], list[int]]:
    """Count the rows that are to be moved: all of those of a database are in one family."""
    where: dict[str, None] = {}
    counts = []
    for segment, families in store.databases():
        rows = {
            legacy.family: sum(1 for _ in families.rows(legacy.family))
            for legacy in layout.legacy
            if legacy.family in families.names
        }
        filled = [family for family, count in rows.items() if count]
        if len(filled) > 1:
            raise mixed_formats(segment.directory.name)
        where |= dict.fromkeys(filled)
        counts.append(sum(rows.values()))
    return list(where), counts


def _check_free(work: list[Plan]) -> None:
    for plan in work:
        store = plan.store
        if store.process is not None:
            raise Failure(
                f"store {store.found.label} is open in process {store.process}: stop it first. Nothing was changed"
            )


def _ask(work: list[Plan], yes: bool, json: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty() or json:
        raise Failure("rows that were moved do not move back: say --yes, or --dry-run to see what would be done")
    console(sys.stderr).print(_table(work, dry_run=True))
    if any(plan.store.type.keys == "versioned" for plan in work):
        warn("Kafka Streams has no versioned store with headers: it will not open such a directory again")
    if not typer.confirm("Move these rows? There is no way back but the changelog", err=True):
        raise Failure("nothing was changed", FAULTS)


def _move(work: list[Plan]) -> None:
    total = sum(sum(plan.rows) for plan in work)
    with progress(total, "moving rows") as advance:
        for plan in work:
            for segment, rows in zip(plan.store.found.segments, plan.rows, strict=True):
                if rows:
                    try:
                        _move_segment(plan, segment, advance)
                    except StateStoreError as error:
                        raise Failure(_stopped(plan, error), FAULTS) from error


def _move_segment(plan: Plan, segment: Segment, advance: Any) -> None:
    # With the log, what was moved stays moved if the process dies.
    database = Database(segment.directory.name, segment.directory, plan.layout, RocksDBOptions(write_ahead_log=True))
    # A store that was not closed cleanly is one that Kafka Streams may restore: it has to find it as it was.
    clean = not database.dirty
    try:
        if isinstance(database.rows, UpgradingRows):
            for moved in database.rows.move():
                plan.moved += moved
                advance(moved)
    except BaseException:
        with suppress(StateStoreError):
            database.close(clean=clean)
        raise
    database.close(clean=clean)


def _stopped(plan: Plan, error: StateStoreError) -> str:
    total = sum(plan.rows)
    return (
        f"{error}. Of store {plan.store.found.label} {plan.moved:,} of {counted(total, 'row')} were moved, the others are "
        "where they were, and none is lost: run it again, and it goes on from there"
    )


def _show(plans: list[Plan], dry_run: bool) -> None:
    screen = console()
    if any(sum(plan.rows) for plan in plans):
        screen.print(_table([plan for plan in plans if sum(plan.rows)], dry_run=dry_run))
    for plan in plans:
        if not sum(plan.rows):
            screen.print(printable(f"{plan.store.found.label}: {plan.target}: nothing to move"))


def _table(plans: list[Plan], *, dry_run: bool) -> Table:
    view = table("store", "type", "from", "to", "to move" if dry_run else "moved", right=("to move", "moved"))
    for plan in plans:
        view.add_row(
            printable(plan.store.found.label),
            plan.target.name,
            ", ".join(plan.families),
            plan.layout.family,
            f"{sum(plan.rows) if dry_run else plan.moved:,}",
        )
    return folded(view)


def _document(plan: Plan) -> dict[str, Any]:
    found = plan.store.found
    return {
        "store": found.name,
        "task": found.task or None,
        "directory": str(found.directory),
        "store_type": plan.target.name,
        "from": plan.families,
        "to": plan.layout.family,
        "older_rows": sum(plan.rows),
        "moved": plan.moved,
    }
