"""`letterhead scan`: what headers the messages of a Parquet file carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.column import BATCH, column_format
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.formats import Reading, row_of
from letterhead.cli.progress import progress
from letterhead.cli.render import console, counted, json_text, short, table
from letterhead.cli.source import open_headers, reason

# From this width on, a table has room for the bytes in total and for values.
WIDE = 110
EXAMPLE_LIMIT = 24
STYLES = {"stated": "green", "strong": "green", "likely": "", "weak": "yellow", "tie": "yellow"}


def run_scan(
    path: Path,
    column: str,
    format: str,
    *,
    json: bool,
    html: Path | None,
    sample: int | None,
    max_keys: int,
    everything: bool,
    options: Reading,
) -> int:
    """Scan a column of a Parquet file, and show what was found."""
    parquet, of_bytes = open_headers(path, column)
    format = column_format(format, parquet, column, of_bytes)
    row_of(format)
    found = _scanned(parquet, column, format, sample=sample, max_keys=max_keys, options=options)
    if html is not None:
        try:
            _write(html, found.html(title=f"Headers of {path.name}"))
        except ModuleNotFoundError as error:
            raise Failure(str(error)) from error
    if json:
        print(json_text(found.to_dict(), indent=2))
    else:
        _show(found, sample, parquet.metadata.num_rows, everything=everything)
        if html is not None:
            console().print(Text(f"page written to {printable(str(html))}", style="dim"))
    return FAULTS if found.statistics.bad_rows else OK


def _scanned(parquet: Any, column: str, format: str, *, sample: int | None, max_keys: int, options: Reading) -> Any:
    try:
        from letterhead import arrow as lha
        from letterhead.scan import Scan
    except ImportError as error:
        raise Failure(str(error)) from error
    rows = parquet.metadata.num_rows
    with progress(rows, f"scanning {column}") as advance:
        cells = _cells(parquet, column, rows, sample, advance)
        try:
            found = lha.scan(cells, format, max_keys=max_keys, **options)
        except (TypeError, ValueError) as error:
            raise Failure(str(error)) from error
    return Scan(format, found.statistics, column)


def _cells(parquet: Any, column: str, rows: int, sample: int | None, advance: Callable[[int], None]) -> Iterator[Any]:
    """Give the cells to scan batch by batch: all of them, or so many, evenly spaced over the file."""
    import pyarrow as pa

    before = 0
    for batch in parquet.iter_batches(batch_size=BATCH, columns=[column]):
        cells, here = batch.column(0), len(batch)
        if sample is not None and sample < rows:
            chosen = [
                row - before
                for row in range(before, before + here)
                if row * sample // rows != (row - 1) * sample // rows
            ]
            cells = cells.take(pa.array(chosen, pa.int64()))
        yield cells
        advance(here)
        before += here


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {path}: {reason(error)}") from error


def _show(found: Any, sample: int | None, in_file: int, *, everything: bool) -> None:
    screen = console()
    screen.print(Text(printable(found.headline()), style="bold"))
    if sample is not None and sample < in_file:
        screen.print(Text(f"a sample of {counted(in_file, 'row')}, evenly spaced", style="dim"))
    for remark in found.remarks():
        screen.print(Text(printable(remark), style="yellow" if "damaged" in remark or "more keys" in remark else "dim"))
    if not found.keys:
        return
    screen.print()
    screen.print(_keys(found, screen))
    screen.print()
    screen.print(_guesses(found, everything))
    screen.print()
    # On lines as long as they are: they are there to be copied.
    screen.print(Text("\n".join(map(printable, found.code().splitlines()))), soft_wrap=True)


def _keys(found: Any, screen: Console) -> Any:
    from letterhead.scan.table import spread, summary

    wide = screen.width >= WIDE
    right = ("rows", "null", "repeated", "bytes", "in total", "position")
    names = ["key", "rows", "null", "repeated", "bytes", *(["in total"] if wide else []), "position", "may be"]
    view = table(*names, *(["values"] if wide else []), right=right)
    view.columns[0].overflow = "fold"
    for key in found.keys:
        cells, statistics = summary(key), key.statistics
        sizes = statistics.sizes
        bytes = cells["bytes"] if sizes.low == sizes.high else f"{sizes.low:,}/{sizes.median():,}/{sizes.high:,}"
        row: list[Any] = [printable(cells["key"]), cells["rows"], cells["null"], cells["repeated"], bytes]
        row += [f"{sizes.total:,}"] if wide else []
        row += [
            spread(statistics.positions, most=True),
            Text(cells["type"], style=STYLES.get(key.guesses[0].confidence, "")),
        ]
        if wide:
            shown = [_value(key, value) for value in key.examples[:2]]
            row.append(Text(", ").join(shown))
        view.add_row(*row)
    return view


def _value(key: Any, value: Any) -> Text:
    """Show a value as the first guess reads it, where that is more than its text or bytes."""
    spelt = key.read(value)
    return short(value.head, EXAMPLE_LIMIT) if spelt is None else Text(printable(spelt))


def _guesses(found: Any, everything: bool) -> Any:
    view = table("key", "may be", "", "evidence")
    view.columns[0].overflow = "fold"
    for key in found.keys:
        name = printable(key.name)
        for place, guess in enumerate(key.guesses):
            if place and guess.confidence == "unlikely" and not everything:
                continue
            style = STYLES.get(guess.confidence, "dim")
            view.add_row(
                "" if place else name,
                Text(guess.type, style=style),
                Text(guess.confidence, style=style),
                guess.evidence,
            )
    return view
