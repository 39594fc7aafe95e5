"""`letterhead state upgrade`: move all older rows to the newer column family at once."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import typer
from rich.table import Table

from letterhead._formatting import printable
from letterhead.cli.exits import BAD_DATA, OK, Failure
from letterhead.cli.progress import progress
from letterhead.cli.render import count_text, print_json, warn
from letterhead.cli.screen import console, table
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.formatting import store_json
from letterhead.cli.state.options import Selection
from letterhead.cli.state.rows import open_selected
from letterhead.errors import StateStoreError
from letterhead.state.base import FORMATS
from letterhead.state.reading.directory import StoreSegment, find_stores
from letterhead.state.reading.rows import StoreReader
from letterhead.state.reading.store_types import DetectedType
from letterhead.state.storage.database import Database, RocksDBOptions
from letterhead.state.storage.layouts import LAYOUTS, Layout, mixed_formats_error
from letterhead.state.storage.upgrade import UpgradingRows


@dataclass
class UpgradePlan:
    """Upgrade of a store: its target, families of older rows, their number per segment, and number of moved rows."""

    store: StoreReader
    target: DetectedType
    families: list[str]
    rows: list[int]
    moved: int = 0


def run_upgrade(selection: Selection, *, to: str, yes: bool, dry_run: bool, json: bool) -> int:
    """Move the older rows of all stores of a directory."""
    with reading_errors():
        stores = find_stores(selection.directory, selection.name)
        if selection.store_type is not None and len({store.name for store in stores}) > 1:
            raise Failure("--store-type applies to one store: choose it with --store")
        plans = [_plan(open_selected(store, selection), to) for store in stores]
        pending = [plan for plan in plans if sum(plan.rows)]
        if pending and not dry_run:
            _ask(pending, yes, json)
            _move(pending)
    if json:
        print_json([_document(plan) for plan in plans])
        return OK
    if pending:
        console().print(_table(pending, dry_run=dry_run))
    for plan in plans:
        if not sum(plan.rows):
            console().print(printable(f"{plan.store.files.label}: {plan.target}: nothing to move"))
    return OK


def upgrade_all_rows(store: StoreReader, to: str) -> int:
    """Move the older rows of one store without prompting; return their number."""
    plan = _plan(store, to)
    _move([plan])
    return plan.moved


def _plan(store: StoreReader, to: str) -> UpgradePlan:
    store_type, label = store.type, store.files.label
    layout = LAYOUTS.get((store_type.name, to))
    if layout is None:
        values = " or ".join(values for name, values in LAYOUTS if name == store_type.name)
        raise Failure(f"store {label} is a {store_type.key_format} store: --to is {values}")
    if FORMATS.index(to) < FORMATS.index(store_type.layout_name):
        raise Failure(
            f"store {label} is {store_type}: it cannot become {to} again. To restore a store of the older type from the "
            f"changelog, delete {store.files.directory}"
        )
    target = DetectedType(store_type.name, to)
    families, rows = _older_rows(store, layout)
    if sum(rows) and (store_type.name, store_type.value_format, to) == ("time-ordered-window", "plain", "headers"):
        raise Failure(f"store {label}: plain rows of time-ordered windows have no timestamps: there is no upgrade")
    if sum(rows) and store_type.assumed:
        values = f" --values {store_type.value_format}" if store_type.name == "time-ordered-window" else ""
        raise Failure(
            f"store {label}: {store_type.assumed}: the type must not be assumed here. If it is {store_type}, pass "
            f"--store-type {store_type.name}{values}"
        )
    return UpgradePlan(store, target, families, rows)


def _older_rows(store: StoreReader, layout: Layout) -> tuple[list[str], list[int]]:
    """Count the rows to move; all older rows of a database are in one family."""
    older_families: dict[str, None] = {}
    counts = []
    for segment, families in store.databases():
        rows = {
            legacy.family: sum(1 for _ in families.rows(legacy.family))
            for legacy in layout.legacy
            if legacy.family in families.names
        }
        filled = [family for family, count in rows.items() if count]
        if len(filled) > 1:
            raise mixed_formats_error(segment.directory.name)
        older_families |= dict.fromkeys(filled)
        counts.append(sum(rows.values()))
    return list(older_families), counts


def _ask(pending: list[UpgradePlan], yes: bool, json: bool) -> None:
    in_use = next((plan.store for plan in pending if plan.store.process is not None), None)
    if in_use is not None:
        raise Failure(
            f"store {in_use.files.label} is open in process {in_use.process}: stop it first. Nothing was changed"
        )
    if yes:
        return
    if not sys.stdin.isatty() or json:
        raise Failure("moved rows do not move back: pass --yes, or --dry-run to see what would be done")
    console(sys.stderr).print(_table(pending, dry_run=True))
    if any(plan.store.type.key_format == "versioned" for plan in pending):
        warn("Kafka Streams has no versioned store with headers, and will not open the directory afterwards")
    if not typer.confirm("Move these rows? Only the changelog restores the older store", err=True):
        raise Failure("nothing was changed", BAD_DATA)


def _move(pending: list[UpgradePlan]) -> None:
    total = sum(sum(plan.rows) for plan in pending)
    with progress(total, "moving rows", prints=False) as advance:
        for plan in pending:
            for segment, rows in zip(plan.store.files.segments, plan.rows, strict=True):
                if rows:
                    try:
                        _move_segment(plan, segment, advance)
                    except StateStoreError as error:
                        raise Failure(
                            f"{error}. Of store {plan.store.files.label} {plan.moved:,} of "
                            f"{count_text(sum(plan.rows), 'row')} were moved, the others are unchanged, and none is lost: "
                            "run it again to continue",
                            BAD_DATA,
                        ) from error


def _move_segment(plan: UpgradePlan, segment: StoreSegment, advance: Any) -> None:
    # With the write-ahead log, rows that were moved before the process dies are not lost.
    database = Database(
        segment.directory.name, segment.directory, plan.target.layout, RocksDBOptions(write_ahead_log=True)
    )
    # The mark of an unclean close is kept, because Kafka Streams may restore such a store.
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


def _table(plans: list[UpgradePlan], *, dry_run: bool) -> Table:
    view = table(
        "store", "type", "from", "to", "to move" if dry_run else "moved", right=("to move", "moved"), fold=True
    )
    for plan in plans:
        view.add_row(
            printable(plan.store.files.label),
            plan.target.name,
            ", ".join(plan.families),
            plan.target.layout.family,
            f"{sum(plan.rows) if dry_run else plan.moved:,}",
        )
    return view


def _document(plan: UpgradePlan) -> dict[str, Any]:
    return store_json(plan.store.files) | {
        "store_type": plan.target.name,
        "from": plan.families,
        "to": plan.target.layout.family,
        "older_rows": sum(plan.rows),
        "moved": plan.moved,
    }
