"""`letterhead state diff`: compare stores with those of another directory, or with a changelog."""

from __future__ import annotations

import itertools
from typing import Any

from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.document import headers_json, value_json
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.headers import SUMMARY_LIMIT, headers_summary
from letterhead.cli.render import console, counted, json_text, short, table
from letterhead.cli.state.options import Changelog, Selection
from letterhead.cli.state.restore import opened
from letterhead.cli.state.rows import failures
from letterhead.state.diffing import RowDifference, StoredRow, diff

ON_SCREEN = 20


def run_diff(selection: Selection, source: Changelog, *, limit: int | None, everything: bool, json: bool) -> int:
    """Print the rows that differ."""
    if limit is None and not everything and not json:
        limit = ON_SCREEN
    with failures(), usage_errors():
        try:
            found = diff(
                selection.directory,
                opened(source),
                store=selection.name,
                store_type=selection.store_type,
                retention=source.retention,
                segment_interval=source.segment_interval,
                limits=selection.limits,
            )
            shown = itertools.islice(found, limit)
            if json:
                count = sum(1 for _ in map(_print_line, shown))
            else:
                rows = list(shown)
                count = len(rows)
                if rows:
                    console().print(_table(rows, everything=everything))
            more = sum(1 for _ in found)
        except FileNotFoundError as error:
            raise Failure(str(error)) from error
    if not json:
        total = counted(count + more, "row differs", "rows differ") if count + more else "no row differs"
        console().print(f"{total}{f' ({more:,} not shown: --all)' if more else ''}", style="dim")
    return BAD_DATA if count + more else OK


def _table(rows: list[RowDifference], *, everything: bool) -> Table:
    view = table("store", "key", "times", "differs", "first", "second", fold=True)
    for row in rows:
        times = ", ".join(f"{name} {time}" for name, time in row.times.items() if time is not None)
        sides = (_side(side, row.differs, everything=everything) for side in (row.first, row.second))
        key = short(row.key, None if everything else SUMMARY_LIMIT)
        view.add_row(printable(row.store), key, times, ", ".join(row.differs), *sides)
    return view


def _side(row: StoredRow | None, differs: tuple[str, ...], *, everything: bool) -> Text:
    """Return what differs of a row; its value if the other side has no row."""
    if row is None:
        return Text("no row", style="dim")
    parts: list[Text] = []
    if "timestamp" in differs:
        parts.append(Text(str(row.timestamp)))
    if "headers" in differs and row.headers is not None:
        parts.append(headers_summary(row.headers, everything=everything))
    if "value" in differs or "row" in differs:
        parts.append(short(row.value, None if everything else SUMMARY_LIMIT))
    return Text("\n").join(parts)


def _print_line(difference: RowDifference) -> None:
    print(json_text(_document(difference)))


def _document(difference: RowDifference) -> dict[str, Any]:
    return {
        "store": difference.store,
        "key": value_json(difference.key),
        **difference.times,
        "differs": list(difference.differs),
        "first": _row(difference.first),
        "second": _row(difference.second),
    }


def _row(row: StoredRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    document: dict[str, Any] = {} if row.timestamp is None else {"timestamp": row.timestamp}
    if row.headers is not None:
        document["headers"] = headers_json(row.headers, "text")
    return document | {"value": value_json(row.value)}
