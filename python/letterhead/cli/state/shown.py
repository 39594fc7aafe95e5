"""How rows of stores are put on a screen, and into JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.document import headers_json, value_json
from letterhead.cli.headers import SUMMARY_LIMIT, headers_summary, headers_table
from letterhead.cli.render import counted, moment, short, table, value_text
from letterhead.read.state_directory import Found
from letterhead.read.state_rows import Row
from letterhead.read.store_types import StoreType

VALUE_LIMIT = 60
NAMES = {"valid_from": "valid from", "valid_to": "valid to"}


def row_json(found: Found, kind: StoreType, row: Row, *, keys_only: bool = False) -> dict[str, Any]:
    """Spell a row for JSON."""
    document: dict[str, Any] = {"store": found.name}
    if found.task:
        document["task"] = found.task
    document |= {"key": value_json(row.key), **row.times}
    if keys_only:
        return document
    if _has_timestamp(kind):
        document["timestamp"] = row.timestamp
    if kind.values == "headers":
        document["headers"] = None if row.headers is None else headers_json(row.headers, "text")
    return document | {"value": value_json(row.value)}


def show_row(screen: Console, found: Found, kind: StoreType, row: Row, *, everything: bool) -> None:
    """Show one row, with all that it has."""
    limit = None if everything else VALUE_LIMIT
    screen.print(Text(f"{printable(found.label)}: {kind}", style="bold"))
    screen.print(Text.assemble("key: ", value_text(row.key)))
    for name, time in row.times.items():
        text = value_text(None) if time is None else _date(time)
        screen.print(Text.assemble(f"{NAMES.get(name, name)}: ", text))
    if row.timestamp is not None:
        screen.print(Text.assemble("timestamp: ", _date(row.timestamp)))
    size = "" if row.value is None else f"  ({counted(len(row.value), 'byte')})"
    screen.print(Text.assemble("value: ", value_text(row.value, limit=limit), (size, "dim")))
    if row.headers is not None:
        if row.headers:
            screen.print(headers_table(row.headers, limit=limit))
        else:
            screen.print(Text("no headers", style="dim"))


def rows_table(found: Found, kind: StoreType, rows: list[Row], *, keys_only: bool, everything: bool) -> Table:
    """Make a table of rows of one store."""
    times = tuple(
        {"window": ("start",), "session": ("start", "end"), "versioned": ("valid from", "valid to")}.get(kind.keys, ())
    )
    fields: tuple[str, ...] = ()
    if not keys_only:
        fields = (
            *(("timestamp",) if _has_timestamp(kind) else ()),
            "value",
            *(("headers",) if kind.values == "headers" else ()),
        )
    view = table("key", *times, *fields, right=(*times, "timestamp"))
    view.title = printable(found.label) if found.task else None
    view.title_justify = "left"
    limit = None if everything else SUMMARY_LIMIT
    for row in rows:
        cells: list[Text | str] = [
            _short(row.key, limit),
            *("" if time is None else str(time) for time in row.times.values()),
        ]
        if "timestamp" in fields:
            cells.append("" if row.timestamp is None else str(row.timestamp))
        if "value" in fields:
            cells.append(_short(row.value, limit))
        if "headers" in fields:
            cells.append(Text() if row.headers is None else headers_summary(row.headers, everything=everything))
        view.add_row(*cells)
    return view


def folded(view: Table) -> Table:
    """Let the names in a table go on in the next line, and not end in dots."""
    for column in view.columns:
        column.overflow = "fold"
    return view


def _has_timestamp(kind: StoreType) -> bool:
    return kind.values != "plain" and kind.keys in ("key-value", "window")


def _short(value: bytes | None, limit: int | None) -> Text:
    return value_text(value) if limit is None else short(value, limit)


def _date(time: int) -> Text:
    date = moment(time)
    return Text.assemble(str(time), (f"  ({date})" if date else "", "dim"))
