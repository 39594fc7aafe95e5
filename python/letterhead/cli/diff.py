"""`letterhead diff`: compare the records of two topics, logs or tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead._header_text import split_columns
from letterhead._row_request import RowRequest
from letterhead._table_writers import split_batch
from letterhead.cli.difference_text import excerpt_text, header_difference_text, header_differences
from letterhead.cli.document import headers_of
from letterhead.cli.exits import BAD_DATA, OK, usage_errors
from letterhead.cli.headers import SUMMARY_LIMIT
from letterhead.cli.options import EpochMs, flag, group_options, limits, option
from letterhead.cli.progress import progress
from letterhead.cli.render import ROWS_IN_TABLE, ROWS_ON_SCREEN, SETTINGS, count_text, note, style
from letterhead.cli.row_format import Form, RowFormat, form_of
from letterhead.cli.row_table import ColumnFormatter
from letterhead.cli.row_text import time_texts
from letterhead.cli.row_writers import open_writer
from letterhead.cli.screen import console, short, table
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import check_request, open_reader, open_sources, print_remarks, report_findings
from letterhead.cli.sources.options import selection
from letterhead.limits import Limits
from letterhead.sources.base import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.sources.comparison import Comparison

Order = StrEnum("Order", ["offset", "position"])


@group_options(request=selection, limits=limits)
def diff_command(
    *,
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A topic, log segments or a table, as for `read`.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="The topic, log segments or table to compare.")],
    columns: Annotated[
        str | None,
        option(
            "--columns",
            "Compare only these columns; by default all common ones except partition, offset and the like.",
            "NAME,...",
        ),
    ] = None,
    by: Annotated[
        Order | None,
        option("--by", "How records of a partition are matched; by default by offset if both sources have it."),
    ] = None,
    limit: Annotated[
        int | None, option("--limit -n", "Show only the first N differences (20 on a terminal).", "N", min=0)
    ] = None,
    everything: Annotated[bool, flag("--all", "Show all differences, and do not shorten long values.")] = False,
    json: Annotated[bool, flag("--json", "Print JSON, a line for each difference.")] = False,
    out: Annotated[
        Path | None, option("--out -o", "Write the differences to a file: .parquet, .arrow or .jsonl.", "FILE")
    ] = None,
    epoch_ms: EpochMs = False,
    request: RowRequest,
    limits: Limits,
) -> int:
    """Compare the records of two topics, logs or tables.

    Records are matched by partition and offset, or with --by position by their
    position in the partition, as for a copied topic. Differences are shown header
    by header, with order and repeats. Neither side has to fit in memory. If any
    record differs, the exit code is 1.

    \b
    Examples:
      letterhead diff kafka://broker/orders orders.parquet
      letterhead diff kafka://broker/orders kafka://backup/orders --by position
      letterhead diff before.jsonl after.jsonl --columns key,headers --json
      letterhead diff kafka://broker/orders /backup/orders-0 -p 0 --end 5000
    """
    from letterhead.sources.comparison import compare, comparison_requests

    row_format = RowFormat(Form.JSON if json else None, out, epoch_ms, everything)
    request = replace(request, limits=limits)
    sources = open_sources([first, second], request)
    check_request(sources, request)
    names = None if columns is None else split_columns(columns)
    with print_remarks():
        requests = comparison_requests(sources, request, names)
    readers = [open_reader(source, own) for source, own in zip(sources, requests, strict=True)]
    order: Any = None if by is None else by.value
    with usage_errors():
        comparison, schema, batches = compare(*readers, columns=names, order=order)
    return print_comparison(comparison, schema, batches, row_format, sources, limit)


def print_comparison(
    comparison: Comparison,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    row_format: RowFormat,
    sources: Sequence[Source],
    limit: int | None,
) -> int:
    """Print the first differences and the counts; return the exit code."""
    form = form_of(row_format)
    if limit is None and form is Form.TABLE and not row_format.everything:
        limit = ROWS_ON_SCREEN
    printed = _limit_rows(_report_progress(batches, sources, comparison), limit)
    if form is Form.TABLE:
        _print_tables(
            printed, schema, limit=None if row_format.everything else SUMMARY_LIMIT, epoch_ms=row_format.epoch_ms
        )
    else:
        with open_writer(schema, row_format) as writer:
            for batch in printed:
                writer.write(batch)
    _print_counts(comparison, limit, sys.stdout if form is Form.TABLE else sys.stderr)
    return max(BAD_DATA if comparison.differences else OK, *map(report_findings, sources))


def _report_progress(
    batches: Iterator[pa.RecordBatch], sources: Sequence[Source], comparison: Comparison
) -> Iterator[pa.RecordBatch]:
    """Yield the differences, with a progress bar for the first source."""
    done = 0
    names = " and ".join(source.name for source in sources)
    with progress(None, f"comparing {names}", prints=True, source=sources[0]) as advance, reading_errors():
        for batch in batches:
            advance(comparison.rows[0] - done)
            done = comparison.rows[0]
            yield batch


def _limit_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first rows, and count the rest."""
    for batch in batches:
        if limit is None:
            yield batch
        elif limit:
            yield batch.slice(0, limit)
            limit = max(0, limit - len(batch))


def _print_counts(comparison: Comparison, limit: int | None, stream: TextIO) -> None:
    counts = {
        count_text(comparison.changed, "record differs", "records differ"): comparison.changed,
        f"{comparison.missing[1]:,} only in the first source": comparison.missing[1],
        f"{comparison.missing[0]:,} only in the second": comparison.missing[0],
    }
    texts = [text for text, count in counts.items() if count] or ["no record differs"]
    hidden = 0 if limit is None else max(0, comparison.differences - limit)
    more = f" ({hidden:,} not shown: --all)" if hidden else ""
    print(style(f"{', '.join(texts)}{more}; {comparison.equal:,} equal", "dim", stream), file=stream)
    for which, names in (("first", comparison.only_first), ("second", comparison.only_second)):
        if names:
            note(f"not compared, as only the {which} source has them: {', '.join(names)}")


def _print_tables(batches: Iterator[pa.RecordBatch], schema: pa.Schema, *, limit: int | None, epoch_ms: bool) -> None:
    """Print tables of many rows each, sorted by partition and offset."""
    import pyarrow as pa

    formatter = _Formatter(schema, limit, epoch_ms)
    held: list[pa.RecordBatch] = []

    def flush() -> None:
        if held:
            rows = pa.Table.from_batches(held).sort_by([(name, "ascending") for name in formatter.names])
            held.clear()
            for part in rows.combine_chunks().to_batches():
                console().print(formatter.table(part))

    for batch in batches:
        for part in split_batch(batch):
            if len(part):
                held.append(part)
            if sum(map(len, held)) >= ROWS_IN_TABLE:
                flush()
    flush()


class _Formatter:
    """Formats differences as rows of a table."""

    def __init__(self, schema: pa.Schema, limit: int | None, epoch_ms: bool) -> None:
        self.names = [name for name in schema.names if name not in ("differs", "first", "second")]
        record = schema.field("first").type
        self._columns = {field.name: ColumnFormatter(field.type, everything=limit is None) for field in record}
        self._limit = limit
        self._epoch_ms = epoch_ms

    def table(self, batch: pa.RecordBatch) -> Table:
        """Return a table of the rows of a batch."""
        view = table(*self.names, "differs", "first", "second", right=tuple(self.names), fold=True)
        records = [self._records(batch.column(name)) for name in ("first", "second")]
        keys = zip(*(batch.column(name).to_pylist() for name in self.names), strict=True)
        for numbers, differs, first, second in zip(keys, batch.column("differs").to_pylist(), *records, strict=True):
            key = [str(number) for number in numbers]
            if first is None or second is None:
                view.add_row(*key, "record", *(self._whole(record) for record in (first, second)))
                continue
            for number, name in enumerate(differs):
                texts = self._texts(name, first[name], second[name])
                view.add_row(*(key if number == 0 else [""] * len(key)), printable(name), *texts)
        return view

    def _records(self, records: pa.StructArray) -> list[dict[str, Any] | None]:
        import pyarrow as pa

        columns = {}
        for index, field in enumerate(records.type):
            column = records.field(index)
            is_time = pa.types.is_timestamp(field.type)
            texts = time_texts(column, epoch_ms=self._epoch_ms, zone=SETTINGS.zone) if is_time else column
            columns[field.name] = texts.to_pylist()
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        return [row if present else None for row, present in zip(rows, records.is_valid().to_pylist(), strict=True)]

    def _whole(self, record: dict[str, Any] | None) -> Text:
        if record is None:
            return Text("no record", style="dim")
        lines = [
            Text.assemble((f"{printable(name)} ", "dim"), text)
            for name, value in record.items()
            for text in self._lines(name, value)
        ]
        return Text("\n").join(lines)

    def _texts(self, name: str, first: Any, second: Any) -> tuple[Text, Text]:
        """Return the differing parts of two values of a column."""
        if isinstance(first, bytes) and isinstance(second, bytes):
            return excerpt_text(first, second, self._limit), excerpt_text(second, first, self._limit)
        if name != "headers" or not (isinstance(first, list) and isinstance(second, list)):
            return self._joined(name, first), self._joined(name, second)
        sides: tuple[list[Text], list[Text]] = ([], [])
        for parts in header_differences(list(headers_of(first)), list(headers_of(second))):
            for own, other, lines in ((*parts, sides[0]), (*parts[::-1], sides[1])):
                others = dict(other)
                lines += [header_difference_text(key, value, others.get(key), self._limit) for key, value in own]
                lines += [Text("no header", style="dim")] * (not own)
        return Text("\n").join(sides[0]), Text("\n").join(sides[1])

    def _joined(self, name: str, value: Any) -> Text:
        return Text("\n").join(self._lines(name, value))

    def _lines(self, name: str, value: Any) -> list[Text]:
        if isinstance(value, bytes):
            return [short(value, self._limit)]
        if isinstance(value, str):
            return [Text(printable(value))]
        return [Text(line) for line in self._columns[name].lines(value)]
