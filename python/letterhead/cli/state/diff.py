"""`letterhead state diff`: compare the stores of two directories, or a store with its changelog."""

from __future__ import annotations

import itertools
from typing import Any

from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.difference_text import excerpt_text, header_difference_text, header_differences
from letterhead.cli.document import headers_json, value_json
from letterhead.cli.exits import BAD_DATA, OK
from letterhead.cli.headers import SUMMARY_LIMIT
from letterhead.cli.render import ROWS_IN_TABLE, ROWS_ON_SCREEN, count_text, json_text, warn
from letterhead.cli.screen import console, short, table
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.formatting import time_field, times_json
from letterhead.cli.state.options import ChangelogSource, Selection
from letterhead.cli.state.restore import open_changelog
from letterhead.cli.state.rows import DamagedRows
from letterhead.state.restoring.diff import RowDifference, StoredRow, diff


def run_diff(
    selection: Selection, source: ChangelogSource, *, limit: int | None, everything: bool, json: bool, epoch_ms: bool
) -> int:
    """Print the rows that differ."""
    if limit is None and not everything and not json:
        limit = ROWS_ON_SCREEN
    damage = DamagedRows(raises=False)
    with reading_errors():
        differences = diff(
            selection.directory,
            open_changelog(source),
            store=selection.name,
            store_type=selection.store_type,
            retention=source.retention,
            segment_interval=source.segment_interval,
            on_error=damage.add,
            limits=selection.limits,
        )
        printed = itertools.islice(differences, limit)
        if json:
            count = sum(_print_line(row, epoch_ms) for row in printed)
        else:
            count = 0
            while rows := list(itertools.islice(printed, ROWS_IN_TABLE)):
                console().print(_table(rows, everything=everything, epoch_ms=epoch_ms))
                count += len(rows)
        more = sum(1 for _ in differences)
    if not json:
        total = count_text(count + more, "row differs", "rows differ") if count + more else "no row differs"
        console().print(f"{total}{f' ({more:,} not shown: --all)' if more else ''}", style="dim")
    if damage.count:
        warn(f"{count_text(damage.count, 'damaged row')} not compared")
    return BAD_DATA if count + more + damage.count else OK


def _table(rows: list[RowDifference], *, everything: bool, epoch_ms: bool) -> Table:
    view = table("store", "key", "times", "differs", "first", "second", fold=True)
    for row in rows:
        times = ", ".join(
            f"{name} {time_field(time, epoch_ms=epoch_ms)}" for name, time in row.times.items() if time is not None
        )
        sides = _sides(row, SUMMARY_LIMIT if not everything else None, epoch_ms)
        key = short(row.key, None if everything else SUMMARY_LIMIT)
        view.add_row(printable(row.store), key, times, ", ".join(row.differs), *sides)
    return view


def _sides(row: RowDifference, limit: int | None, epoch_ms: bool) -> tuple[Text, Text]:
    """Return the differing parts of each side, or the whole row if the other side lacks it."""
    if row.first is None or row.second is None:
        return _whole(row.first, limit), _whole(row.second, limit)
    first, second = row.first, row.second
    first_lines: list[Text] = []
    second_lines: list[Text] = []
    if "timestamp" in row.differs:
        first_lines.append(Text(time_field(first.timestamp, epoch_ms=epoch_ms)))
        second_lines.append(Text(time_field(second.timestamp, epoch_ms=epoch_ms)))
    if "headers" in row.differs:
        for first_headers, second_headers in header_differences(list(first.headers or ()), list(second.headers or ())):
            for headers, other_values, lines in (
                (first_headers, dict(second_headers), first_lines),
                (second_headers, dict(first_headers), second_lines),
            ):
                lines += [header_difference_text(key, value, other_values.get(key), limit) for key, value in headers]
                lines += [Text("no header", style="dim")] * (not headers)
    if "value" in row.differs:
        first_lines.append(excerpt_text(first.value, second.value, limit))
        second_lines.append(excerpt_text(second.value, first.value, limit))
    return Text("\n").join(first_lines), Text("\n").join(second_lines)


def _whole(row: StoredRow | None, limit: int | None) -> Text:
    return Text("no row", style="dim") if row is None else short(row.value, limit)


def _print_line(difference: RowDifference, epoch_ms: bool) -> int:
    print(json_text(_document(difference, epoch_ms)))
    return 1


def _document(difference: RowDifference, epoch_ms: bool) -> dict[str, Any]:
    return {
        "store": difference.store,
        "key": value_json(difference.key),
        **times_json(difference.times, epoch_ms=epoch_ms),
        "differs": list(difference.differs),
        "first": _row(difference.first, epoch_ms),
        "second": _row(difference.second, epoch_ms),
    }


def _row(row: StoredRow | None, epoch_ms: bool) -> dict[str, Any] | None:
    if row is None:
        return None
    document: dict[str, Any] = (
        {} if row.timestamp is None else times_json({"timestamp": row.timestamp}, epoch_ms=epoch_ms)
    )
    document["value"] = value_json(row.value)
    return document if row.headers is None else document | {"headers": headers_json(row.headers)}
