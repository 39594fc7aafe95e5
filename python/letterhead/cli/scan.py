"""`letterhead scan`: find out what headers the messages of a Parquet file carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable, quote_if_needed
from letterhead._row_request import RowRequest
from letterhead.cli.column import column_format
from letterhead.cli.completion import complete_formats
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.formats import COMMON, ReadArguments, row_of
from letterhead.cli.options import Json, flag, group_options, option, reading
from letterhead.cli.progress import progress
from letterhead.cli.render import count_text, print_json, warn, without_secrets
from letterhead.cli.row_counts import RowCounts
from letterhead.cli.screen import console, short, table
from letterhead.cli.sinks import write_bytes
from letterhead.cli.sources.columns import SourceColumn, open_column
from letterhead.cli.sources.options import selection

if TYPE_CHECKING:
    from letterhead.scan import KeyScan, Scan
    from letterhead.scan.sketch import Sampled

WIDE = 96
STYLES = {"stated": "green", "mixed": "yellow", "strong": "green", "weak": "yellow", "tie": "yellow"}

Surface = StrEnum("Surface", {"python": "python", "arrow": "arrow", "spark": "spark"})


@group_options(request=selection, options=reading)
def scan_command(
    *,
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A topic, log segments, a state directory or a table, as for `read`."),
    ],
    column: Annotated[
        str, option("--column -c", "A column of bytes, or of headers as Spark reads them.", "NAME")
    ] = "headers",
    format: Annotated[
        str,
        option(
            "--format -f",
            f"{', '.join(COMMON)}, … (`letterhead formats` lists all); auto for bytes: the format that fits.",
            "FORMAT",
            autocompletion=complete_formats,
        ),
    ] = "kafka",
    explain: Annotated[bool, flag("--explain", "Print the evidence for each suggested type.")] = False,
    code: Annotated[
        Surface | None,
        option("--code", "Print code that selects the headers: with lh.select, lha.select or lhs.select_headers."),
    ] = None,
    json: Json = False,
    html: Annotated[Path | None, option("--html", "Also write a page with plots, for a browser.", "FILE")] = None,
    sample: Annotated[
        int | None, option("--sample -n", "Scan only N rows, evenly spaced over the file.", "N", min=1)
    ] = None,
    max_keys: Annotated[int, option("--max-keys", "Show at most N keys; others are counted.", "N", min=1)] = 1000,
    everything: Annotated[bool, flag("--all", "With --explain: also print unlikely types.")] = False,
    request: RowRequest,
    options: ReadArguments,
) -> int:
    """Find out which headers the messages of a source have, and suggest types.

    The table has one row for each key. A ? after a type means that other types
    fit as well: --explain prints the evidence. Suggestions are never applied;
    --code prints the code to paste and check. If rows are damaged, they are
    counted, and the exit code is 1.

    \b
    Examples:
      letterhead scan orders.parquet
      letterhead scan orders.parquet --explain
      letterhead scan orders.parquet --code spark > select_headers.py
      letterhead scan orders.parquet --sample 100000 --html orders.html
      letterhead scan kafka://broker:9092/orders --last 10000
      letterhead scan store.parquet -c value -f streams-timestamped --json
    """
    if explain + json + (code is not None) > 1:
        raise Failure("--explain, --code and --json exclude each other: give one of them")
    opened = open_column(source, column, replace(request, limits=options["limits"]), errors="column", alone=True)
    format = column_format(format, opened)
    row_of(format)
    if sample is not None and opened.rows is None:
        raise Failure("--sample needs to know the number of rows: use --last or --where, or write a Parquet file")
    tally = RowCounts("row")
    report = _scan(opened, format, tally, sample=sample, max_keys=max_keys, options=options)
    if html is not None:
        try:
            write_bytes(report.html(title=f"Headers of {without_secrets(Path(source).name)}").encode(), html)
        except ModuleNotFoundError as error:
            raise Failure(str(error)) from error
        warn(f"page written to {html}")
    if json:
        print_json(report.to_dict())
    elif code is not None:
        print("\n".join(map(printable, report.code(code.value).splitlines())))
    else:
        _show(report, sample, opened.rows, explain=explain, everything=everything)
    return max(BAD_DATA if report.statistics.bad_rows else OK, tally.report("decode"), opened.finish())


def _scan(
    column: SourceColumn, format: str, tally: RowCounts, *, sample: int | None, max_keys: int, options: ReadArguments
) -> Scan:
    try:
        from letterhead import arrow as lha
        from letterhead.scan import Scan
    except ImportError as error:
        raise Failure(str(error)) from error
    with progress(column.rows, f"scanning {column.name}", prints=False, source=column.source) as advance:
        values = _values(column, tally, sample, advance)
        with usage_errors():
            report = lha.scan(values, format, max_keys=max_keys, **options)
    return Scan(format, report.statistics, column.name)


def _values(
    column: SourceColumn, tally: RowCounts, sample: int | None, advance: Callable[[int], None]
) -> Iterator[Any]:
    """Read the column batch by batch: all rows, or `sample` evenly spaced rows.

    Rows that cannot be read, or for which the condition is undecided, are counted.
    """
    import pyarrow as pa

    before, rows = 0, column.rows
    for batch, errors in column.batches():
        values, size = batch.column(0), len(batch)
        tally.add(size, errors)
        if errors is not None:
            values = values.filter(errors.is_null())
        if sample is not None and rows is not None and sample < rows:
            chosen = [
                row - before
                for row in range(before, before + size)
                if row * sample // rows != (row - 1) * sample // rows
            ]
            values = values.take(pa.array(chosen, pa.int64()))
        yield values
        advance(size)
        before += size


def _show(report: Scan, sample: int | None, in_file: int | None, *, explain: bool, everything: bool) -> None:
    from letterhead.scan.report import headline, remarks

    screen = console()
    screen.print(Text(printable(headline(report)), style="bold"))
    if sample is not None and in_file is not None and sample < in_file:
        screen.print(Text(f"a sample of {count_text(in_file, 'row')}, evenly spaced", style="dim"))
    for remark in remarks(report):
        screen.print(Text(printable(remark), style="yellow" if "damaged" in remark or "more keys" in remark else "dim"))
    if explain:
        for key in report.keys:
            screen.print()
            screen.print(Text(f"{quote_if_needed(key.name)}: {_describe_key(key)}", style="bold"))
            screen.print(Padding(_evidence(key, everything), (0, 0, 0, 2)))
    elif report.keys:
        screen.print()
        screen.print(_keys(report, screen))
        if any(_uncertain(key) for key in report.keys):
            screen.print(Text("? other types fit as well: --explain prints the evidence", style="dim"))


def _keys(report: Scan, screen: Console) -> Table:
    from letterhead.scan.key import select_type

    view = table("key", "count", "null", "distinct", "suggested type", "example", right=("count", "null", "distinct"))
    view.columns[0].overflow = "fold"
    view.columns[4].no_wrap = view.columns[5].no_wrap = True
    for key in report.keys:
        count = key.statistics
        distinct = f"{'' if count.sample.is_all else '~'}{count.distinct:,}"
        type = Text(
            select_type(key) + ("?" if _uncertain(key) else ""), style=STYLES.get(key.guesses[0].confidence, "")
        )
        example = _example(key, key.examples[0], 24 if screen.width >= WIDE else 13) if key.examples else Text()
        name = quote_if_needed(key.name) + ("" if count.exact else "+")
        view.add_row(name, f"{count.headers:,}", f"{count.nulls:,}", distinct, type, example)
    return view


def _uncertain(key: KeyScan) -> bool:
    return key.guesses[0].confidence in ("weak", "tie")


def _describe_key(key: KeyScan) -> str:
    """Return the counts of a key for --explain."""
    from letterhead.scan.key import summary

    fields = summary(key)
    null = f", {fields['null']} null" if key.statistics.nulls else ""
    repeated = f", repeated in {fields['repeated']}" if key.statistics.repeated else ""
    unit = "byte" if fields["bytes"] == "1" else "bytes"
    size = f"{fields['bytes']} {unit} ({key.statistics.sizes.total:,} in total)"
    return f"in {fields['rows']} of rows{repeated}{null}, {size}, position {fields['position']}"


def _example(key: KeyScan, value: Sampled, limit: int) -> Text:
    """Return a value as parsed by the suggested type, otherwise as text or hex."""
    from letterhead.scan.key import read_as_guessed

    text = read_as_guessed(key, value)
    example = short(value.head, limit) if text is None else Text(printable(text))
    example.truncate(limit + 3, overflow="ellipsis")  # quotes and the ellipsis take three columns
    return example


def _evidence(key: KeyScan, everything: bool) -> Table:
    view = Table.grid(padding=(0, 2))
    view.add_column(min_width=17)
    view.add_column(min_width=8)
    view.add_column()
    for rank, guess in enumerate(key.guesses):
        if not rank or everything or guess.confidence != "unlikely":
            style = STYLES.get(guess.confidence, "dim")
            view.add_row(Text(guess.type, style=style), Text(guess.confidence, style=style), guess.evidence)
    return view
