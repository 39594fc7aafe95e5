"""`letterhead read`: the rows of topics, log segments, state directories and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from letterhead._formatting import printable, quoted
from letterhead.cli.column import RowCounts
from letterhead.cli.counts import Counts
from letterhead.cli.edits import EditOption, edit_rows, parse_edits
from letterhead.cli.exits import BAD_DATA, Failure
from letterhead.cli.options import EpochMs, flag, grouped, limits, option
from letterhead.cli.render import ROWS_ON_SCREEN, console, counted, note, progress, warn
from letterhead.cli.row_format import STANDARD_OUTPUT, Form, RowFormat, RowWriter, form_of
from letterhead.cli.row_writers import open_writer
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import open_reader, open_sources, report_findings
from letterhead.cli.sources.options import KeyRangeOptions, key_range, selection, typed_headers, with_keys
from letterhead.fields import columns_of
from letterhead.limits import Limits
from letterhead.sources.base import RowRequest, Source, check_store_options

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.offsets.specs import OffsetSpec
    from letterhead.operations import Edit
    from letterhead.reader import Reader

ReadErrors = StrEnum(
    "ReadErrors", {"raise_": "raise", "null": "null", "column": "column", "skip": "skip", "only": "only"}
)
WITHOUT_COLUMN = (ReadErrors.null, ReadErrors.skip)
ERROR_COLUMN = "error"
# The checksum of a valid batch.
VALID = "ok"
# Further errors of rows that are left out are only counted.
MAX_ERROR_LINES = 20
# Columns that tell where a row is.
PLACES = ("topic", "partition", "offset", "task", "key")


class Output(NamedTuple):
    """How and where rows are written, and how many."""

    format: RowFormat
    limit: int | None

    @property
    def form(self) -> Form:
        """The form of the output, explicit or by the ending of the file."""
        return form_of(self.format)


def output(
    json: Annotated[bool, flag("--json", "Print JSON, a line for each row.")] = False,
    csv: Annotated[bool, flag("--csv", "Print CSV.")] = False,
    out: Annotated[
        Path | None,
        option("--out -o", "Write a file: .parquet, .arrow, .jsonl or .csv; - is standard output, as Arrow.", "FILE"),
    ] = None,
    epoch_ms: EpochMs = False,
    limit: Annotated[int | None, option("--limit -n", "The first rows only (on screen: 20).", "N", min=0)] = None,
    everything: Annotated[bool, flag("--all", "Show every row, and do not shorten long values.")] = False,
) -> Output:
    """Return how rows are written."""
    if json and csv:
        raise Failure("--json and --csv exclude each other: give one of them")
    form = Form.JSON if json else Form.CSV if csv else None
    if form is not None and out not in (None, STANDARD_OUTPUT):
        raise Failure(f"--{form} and --out exclude each other: the ending of FILE says what --out writes")
    return Output(RowFormat(form, out, epoch_ms, everything), limit)


@grouped(request=selection, keys=key_range, output=output, limits=limits)
def read_command(
    *,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="kafka://host:port/topic, iggy://host:port/stream/topic, log segments or their directories, a state "
            "directory, a table (Parquet, Arrow, JSON lines), a directory of Parquet files, or - for standard input.",
        ),
    ],
    output: Output,
    headers: Annotated[
        str | None, option("--headers", "Headers as typed columns, as in tenant,retry:int32.", "NAME:TYPE,...")
    ] = None,
    columns: Annotated[str | None, option("--columns", "Only these columns, in this order.", "NAME,...")] = None,
    count_by: Annotated[
        str | None, option("--count-by", "Count the rows by the values of columns or headers.", "NAME,...")
    ] = None,
    batches: Annotated[bool, flag("--batches", "Show the batches of a log of Kafka, not their records.")] = False,
    control: Annotated[bool, flag("--control", "Also show control records, and mark aborted ones.")] = False,
    edit: EditOption = None,
    follow: Annotated[bool, flag("--follow -F", "Of a topic: wait for new records, until Ctrl-C.")] = False,
    commit_group: Annotated[
        str | None,
        option("--commit-group", "Of Kafka: commit the offsets of the printed records to this consumer group.", "NAME"),
    ] = None,
    errors: Annotated[
        ReadErrors,
        option(
            "--errors",
            "Rows that cannot be read: stop, make them null, add a column of errors, leave them out, or print them only.",
        ),
    ] = ReadErrors.raise_,
    request: RowRequest,
    keys: KeyRangeOptions,
    limits: Limits,
) -> int:
    """Read topics, log segments, state directories and tables.

    Of a topic, the records up to the last ones at the start are read; offsets
    are committed only with --commit-group. Checksums are verified: a damaged
    batch ends the command, or is skipped or a row as --errors says. Missing
    offsets are printed at the end. The rows of a store are in its order: by
    segment, then by key.

    A POINT is an offset, a date such as 2026-01-01T08:30:00Z, @ and milliseconds
    since 1970, `earliest`, `latest`, or a negative number of offsets before the
    end. A time stands for the first record that is not older. --start
    group:NAME begins at the offsets that a consumer group committed.

    Passwords are best in the file of --config, which LETTERHEAD_CONFIG names,
    too; of Iggy in IGGY_USERNAME and IGGY_PASSWORD. Without, you are asked.

    \b
    Examples:
      letterhead read kafka://broker:9092/orders --last 10
      letterhead read kafka://broker:9092/orders --follow --json | jq .key
      letterhead read kafka://broker:9092/orders --json --start group:etl \\
                 --commit-group etl >> orders.jsonl
      letterhead read kafka://broker:9092/orders --where "tenant = 'acme'" \\
                 --start 2026-01-01T08:30:00Z -o acme.parquet
      letterhead read iggy://host/shop/orders --headers tenant,retry:int32
      letterhead read /var/lib/kafka/data/orders-0 --start -10 --all
      letterhead read orders-0 orders-1 --count-by tenant --csv
      letterhead read app/0_0 --store hourly --prefix customer --json
      letterhead read orders.parquet --headers amount_cents:int64 -n 5
      letterhead read orders-0 --edit "replace tenant=hash" -o masked.parquet
    """
    request = with_keys(request, keys)
    if batches and (control or headers or count_by or request.where is not None or errors is not ReadErrors.raise_):
        raise Failure("--batches excludes --control, --headers, --count-by, --where and --errors")
    if edit and (batches or headers or count_by):
        raise Failure("--edit changes the column headers, and excludes --headers, --count-by and --batches")
    if control and request.committed:
        raise Failure("--control shows aborted transactions, and --committed leaves them out: give one of them")
    on_screen = output.form is Form.TABLE and count_by is None
    typed = typed_headers(headers)
    request = replace(
        request,
        headers=typed,
        columns=None if columns is None else tuple(filter(None, map(str.strip, columns.split(",")))),
        follow=follow,
        commit_group=commit_group,
        limits=limits,
        errors="raise" if errors is ReadErrors.raise_ else "column",
        view="batches" if batches else "control" if control else "records",
        on_screen=on_screen and not (batches and output.format.everything),
    )
    if request.commit_group is not None and (
        count_by is not None or output.format.target not in (None, STANDARD_OUTPUT)
    ):
        raise Failure(
            "--commit-group needs rows on standard output: of a file, offsets would be committed before it is complete"
        )
    if request.columns == ():
        raise Failure("--columns needs names of columns")
    if repeated := [name for name in request.columns or () if name in (typed or {})]:
        raise Failure(f"--columns: {', '.join(repeated)} of --headers follows the columns by itself: leave it out")
    if follow and len(sources) > 1:
        raise Failure("--follow reads one topic")
    opened = open_sources(sources)
    if count_by is not None:
        if follow or columns is not None:
            raise Failure("--count-by excludes --follow and --columns")
        counts = Counts(count_by, request, opened, locates=errors is ReadErrors.skip)
        return ReadCommand(opened, counts.request, errors, None).count(counts, output.format, output.limit)
    limit = output.limit
    if limit is None and on_screen and not (follow or output.format.everything or request.last is not None):
        limit = ROWS_ON_SCREEN
    return ReadCommand(opened, request, errors, limit, edit or ()).write(output.format)


class ReadCommand:
    """Reads the rows of sources, one source after the other, up to a limit, and reports errors."""

    def __init__(
        self,
        sources: Sequence[Source],
        request: RowRequest,
        errors: ReadErrors,
        limit: int | None,
        edits: Sequence[str] = (),
    ) -> None:
        self._sources = sources
        self._request = request
        self._errors = errors
        self._limit = limit
        noun = sources[0].noun if len({source.noun for source in sources}) == 1 else "row"
        self._tally = RowCounts("batch" if request.view == "batches" else noun)
        self._printed = 0
        self._unseen = set(columns_of(request.headers)) if request.headers else set()
        with reading_errors():
            check_store_options(sources, request)
        self._readers = [open_reader(source, request) for source in sources]
        with reading_errors():
            self._edits = [_edit_of(reader.schema, edits) for reader in self._readers] if edits else []

    def write(self, format: RowFormat) -> int:
        """Write the rows, and return the exit code."""
        form = form_of(format)
        schemas = [self._schema(reader) for reader in self._readers]
        prints = format.target in (None, STANDARD_OUTPUT)
        self._check_target(format.target)
        repeatable = prints and form in (Form.TABLE, Form.JSON)
        if not repeatable:
            for source, schema in zip(self._sources, schemas, strict=True):
                if not schema.equals(schemas[0]):
                    raise Failure(
                        f"{source.name} has other columns than {self._sources[0].name}: name common ones by --columns"
                    )
        with ExitStack() as stack:
            writer: RowWriter | None = None
            for number, (source, schema) in enumerate(zip(self._sources, schemas, strict=True)):
                if writer is None or not schema.equals(schemas[number - 1]):
                    stack.close()
                    writer = stack.enter_context(open_writer(schema, format))
                self._write_source(number, source, writer, prints=prints)
                if self._tally.more:
                    break
        tally = self._tally
        if form is Form.TABLE:
            console().print(tally.summary(None), style="dim")
        elif not prints:
            note(f"{tally.counted} written to {format.target}")
        return self._finish()

    def _check_target(self, target: Path | None) -> None:
        """Raise Failure if --out names a file that is also a source."""
        for source in self._sources:
            if target is not None and target.is_file() and Path(source.name).is_file() and target.samefile(source.name):
                raise Failure("--out is the file that is read: give another name")

    def count(self, counts: Counts, format: RowFormat, limit: int | None) -> int:
        """Write counts of the rows, and return the exit code."""
        for number, source in enumerate(self._sources):
            for batch in self._batches(number, source, prints=False):
                counts.add(batch)
        batch = counts.result(limit)
        self._check_target(format.target)
        with open_writer(batch.schema, format) as writer:
            writer.write(batch)
        if form_of(format) is Form.TABLE:
            console().print(counts.summary(self._tally.noun), style="dim")
        return self._finish()

    def _write_source(self, number: int, source: Source, writer: RowWriter, *, prints: bool) -> None:
        try:
            for batch in self._batches(number, source, prints=prints):
                writer.write(batch)
                if self._request.follow or self._request.commit_group is not None:
                    writer.flush()  # before the next batch, which commits the offsets of this one
        except KeyboardInterrupt:
            if not self._request.follow:
                raise
            # Ctrl-C is the normal end of --follow: keep the rows written so far.

    def _batches(self, number: int, source: Source, *, prints: bool) -> Iterator[pa.RecordBatch]:
        """Read one source, count its rows, and show how much of it is done."""
        tally, reader, limit = self._tally, self._readers[number], self._limit
        noun, total = tally.noun, None if limit is None else limit - tally.rows
        with progress(total, f"reading {source.name}", prints=prints, noun=noun, source=source) as advance, reader:
            while True:
                with reading_errors():
                    batch = next(reader, None)
                if batch is None:
                    break
                self._unseen -= {name for name in self._unseen if batch.column(name).null_count < len(batch)}
                if self._edits:
                    with reading_errors():
                        batch = edit_rows(batch, self._edits[number])
                batch = self._selected(self._within_limit(batch))
                self._count_invalid(batch)
                tally.rows += len(batch)
                if len(batch):
                    yield batch
                advance(len(batch))
                if tally.more:
                    return
                if self._limit is not None and self._request.follow and tally.rows >= self._limit:
                    return
        self._warn_of_unseen(source)

    def _schema(self, reader: Reader) -> pa.Schema:
        schema = reader.schema
        if self._errors in WITHOUT_COLUMN:
            schema = schema.remove(schema.get_field_index(ERROR_COLUMN))
        return schema

    def _within_limit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch up to the last one that is printed."""
        if self._limit is None:
            return batch
        import pyarrow.compute as pc

        left, end = self._limit - self._tally.rows, len(batch)
        if self._errors in (ReadErrors.skip, ReadErrors.only):
            printed = pc.indices_nonzero(self._is_printed(batch))
            end, count = printed[left].as_py() if left < len(printed) else end, len(printed)
        else:
            end, count = min(left, end), end
        self._tally.more |= count > left
        return batch.slice(0, end)

    def _is_printed(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return which rows --errors skip or --errors only prints."""
        errors = batch.column(ERROR_COLUMN)
        return errors.is_valid() if self._errors is ReadErrors.only else errors.is_null()

    def _selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count the errors, and return the rows and columns that --errors prints; print errors of rows that it skips."""
        if self._errors is ReadErrors.raise_:
            return batch
        import pyarrow.compute as pc

        tally, errors = self._tally, batch.column(ERROR_COLUMN)
        tally.add_errors(errors)
        if self._errors is ReadErrors.skip:
            for row in pc.indices_nonzero(errors.is_valid()).to_pylist()[: MAX_ERROR_LINES - self._printed]:
                warn(_described_error(batch, row))
                self._printed += 1
        if self._errors in (ReadErrors.skip, ReadErrors.only):
            before, batch = len(batch), batch.filter(self._is_printed(batch))
            tally.left_out += before - len(batch)
        return batch.drop_columns([ERROR_COLUMN]) if self._errors in WITHOUT_COLUMN else batch

    def _count_invalid(self, batch: pa.RecordBatch) -> None:
        """Count the batches of a log whose checksum, or content, is invalid."""
        if self._request.view == "batches" and "checksum" in batch.schema.names:
            codes = [code for code in batch.column("checksum").to_pylist() if code != VALID]
            self._tally.bad += len(codes)
            self._tally.codes.update(codes)

    def _warn_of_unseen(self, source: Source) -> None:
        """Warn of a header in --where that no row of a source has: its name is probably misspelt."""
        request = self._request
        if request.where is not None and not request.follow and request.commit_group is None:
            with reading_errors():
                keys = source.unseen(request)
            for key in keys:
                name = quoted(key) if isinstance(key, str) else printable(str(key))
                warn(f"--where: no record had a header {name}; names of fields are {', '.join(source.fields)}")

    def _note_empty_range(self) -> None:
        """Note that --start and --end exclude all rows: they may be wrong."""
        request = self._request
        is_bounded = request.start != "earliest" or request.end != "latest"
        if is_bounded and not self._tally.rows and request.where is None and self._limit != 0 and not request.follow:
            note(
                f"no {self._tally.noun}s from --start {_point_text(request.start)} to --end {_point_text(request.end)}"
            )

    def _warn_of_empty_columns(self) -> None:
        """Warn of typed headers that have no value in any row, if all rows were read: their names may be wrong."""
        tally = self._tally
        if tally.rows and not (tally.more or tally.bad or self._request.follow or self._request.last is not None):
            for name in sorted(self._unseen):
                warn(f"none of these {tally.noun}s has a value of the header {quoted(name)}")

    def _finish(self) -> int:
        self._note_empty_range()
        self._warn_of_empty_columns()
        left_out = self._tally.left_out
        if left_out and self._errors is ReadErrors.skip:
            warn(f"{counted(left_out, self._tally.noun)} left out, as {'it' if left_out == 1 else 'they'} "
                 "could not be read")  # fmt: skip
            code = BAD_DATA
        else:
            code = self._tally.report("decode")
        return max([code, *map(report_findings, self._sources)])


def _point_text(spec: OffsetSpec) -> str:
    """Return the text of a point, as --start and --end take it."""
    if isinstance(spec, Mapping):
        return ",".join(f"{partition}={point}" for partition, point in spec.items())
    return str(spec)


def _edit_of(schema: pa.Schema, edits: Sequence[str]) -> Edit:
    """Return the edit of the column of headers that a source has."""
    from letterhead.operations import Edit
    from letterhead.sources.tables import format_of_headers

    format = format_of_headers(schema, "--edit")
    return Edit(format, parse_edits(edits, format))


def _described_error(batch: pa.RecordBatch, row: int) -> str:
    """Return the first error of a row, and where the row is, as far as columns tell."""
    error = batch.column(ERROR_COLUMN)[row].as_py()[0]
    places = {name: batch.column(name)[row].as_py() for name in PLACES if batch.schema.names.count(name) == 1}
    if places.get("offset") is None and places.get("key") is None:
        return str(error["message"])
    if places.get("offset") is not None:
        places.pop("key", None)
    named = ", ".join(
        f"{name} {value.hex() if isinstance(value, bytes) else value}"
        for name, value in places.items()
        if value is not None
    )
    byte = "" if error["byte_offset"] is None else f", byte {error['byte_offset']}"
    return f"{named}: {error['message']} ({error['code']}{byte})"
