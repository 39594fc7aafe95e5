"""`letterhead read`: print the rows of topics, log segments, state directories and tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from letterhead._arrow_types import UNUSED_NAME
from letterhead._error_policies import counting_policy
from letterhead._row_request import RowRequest, columns_asked
from letterhead.cli.counts import Counts
from letterhead.cli.edits import EditOption
from letterhead.cli.exits import Failure, usage_errors
from letterhead.cli.options import EpochMs, ErrorColumn, flag, group_options, limits, option
from letterhead.cli.printed_rows import ReadErrors
from letterhead.cli.render import ROWS_ON_SCREEN
from letterhead.cli.row_format import STANDARD_OUTPUT, Form, RowFormat, form_of
from letterhead.cli.row_options import ERROR_COLUMN
from letterhead.cli.row_reading import RowReading
from letterhead.cli.sources.opening import open_sources
from letterhead.cli.sources.options import KeyRangeOptions, header_columns, key_range, selection, with_keys
from letterhead.cli.sources.values import serialized_values
from letterhead.conventions.profiles import PROFILES
from letterhead.limits import Limits
from letterhead.sources.kafka import SCHEME


class Output(NamedTuple):
    """Format, destination and number of rows."""

    format: RowFormat
    limit: int | None

    @property
    def form(self) -> Form:
        """Form of the output, explicit or implied by the file extension."""
        return form_of(self.format)


def output(
    json: Annotated[bool, flag("--json", "Print JSON, a line for each row.")] = False,
    csv: Annotated[bool, flag("--csv", "Print CSV.")] = False,
    out: Annotated[
        Path | None,
        option("--out -o", "Write a file: .parquet, .arrow, .jsonl or .csv; - is standard output, as Arrow.", "FILE"),
    ] = None,
    epoch_ms: EpochMs = False,
    limit: Annotated[
        int | None, option("--limit -n", "Show only the first N rows (20 on a terminal).", "N", min=0)
    ] = None,
    everything: Annotated[bool, flag("--all", "Show every row, and do not shorten long values.")] = False,
) -> Output:
    """Return the options for writing rows."""
    if json and csv:
        raise Failure("--json and --csv exclude each other: give one of them")
    form = Form.JSON if json else Form.CSV if csv else None
    if form is not None and out not in (None, STANDARD_OUTPUT):
        raise Failure(f"--{form} and --out exclude each other: the ending of FILE says what --out writes")
    return Output(RowFormat(form, out, epoch_ms, everything), limit)


@group_options(request=selection, keys=key_range, serialized=serialized_values, output=output, limits=limits)
def read_command(
    *,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="kafka://host:port/topic (without a topic: the list of topics), iggy://host:port/stream/topic, log segments or their directories, a state "
            "directory, a table (Parquet, Arrow, JSON lines), a directory of Parquet files, both also as s3://bucket/path, or - for standard input.",
        ),
    ] = None,
    output: Output,
    headers: Annotated[
        str | None,
        option(
            "--headers", "Headers as typed columns, as in tenant,retry:int32 or id=header-id:uuid.", "NAME:TYPE,..."
        ),
    ] = None,
    profile: Annotated[
        str | None, option("--profile", f"The headers of a convention as typed columns: {', '.join(PROFILES)}.", "NAME")
    ] = None,
    columns: Annotated[str | None, option("--columns", "Only these columns, in this order.", "NAME,...")] = None,
    count_by: Annotated[
        str | None, option("--count-by", "Count the rows by the values of columns or headers.", "NAME,...")
    ] = None,
    batches: Annotated[bool, flag("--batches", "Show the batches of a Kafka log instead of their records.")] = False,
    control: Annotated[bool, flag("--control", "Also show control records, and mark aborted ones.")] = False,
    edit: EditOption = None,
    follow: Annotated[bool, flag("--follow -F", "Wait for new records of a topic, until Ctrl-C.")] = False,
    commit_group: Annotated[
        str | None,
        option("--commit-group", "Kafka: commit the offsets of the printed records to this consumer group.", "NAME"),
    ] = None,
    errors: Annotated[
        ReadErrors | None,
        option(
            "--errors",
            "Rows that cannot be read: stop (by default), make them null, add a column of errors, skip them, or print only them.",
        ),
    ] = None,
    error_column: ErrorColumn = ERROR_COLUMN,
    ignore_crc: Annotated[
        bool,
        flag(
            "--ignore-crc",
            "Kafka segments: with --errors column or only, also show records of batches with a wrong checksum.",
        ),
    ] = False,
    request: RowRequest,
    keys: KeyRangeOptions,
    serialized: Any,
    limits: Limits,
) -> int:
    """Read topics, log segments, state directories and tables.

    A topic is read up to its end at the start of the command; offsets are
    committed only with --commit-group. Checksums are verified: a damaged batch
    ends the command, is skipped, or becomes a row, depending on --errors. Offsets
    lost by damage are printed at the end. The rows of a store are in its order: by
    segment, then by key.

    A POINT is an offset, a time such as 2026-01-01T08:30 in the zone of --tz, or
    2026-01-01T08:30Z, a time before now such as -1h or -2d12h, @ and milliseconds
    since 1970, `earliest`, `latest`, or a negative number of offsets before the
    end. A time means the first record at that time or later. --start group:NAME
    begins at the offsets that a consumer group committed.

    Put passwords into the file of --config or LETTERHEAD_CONFIG, and those of
    Iggy into IGGY_USERNAME and IGGY_PASSWORD. Missing passwords are prompted
    for.

    \b
    Examples:
      letterhead read kafka://broker:9092/orders --last 10
      letterhead read kafka://broker:9092/orders --follow --json | jq .key
      letterhead read kafka://broker:9092/orders --json --start group:etl \\
                 --commit-group etl >> orders.jsonl
      letterhead read kafka://broker:9092/orders --where "tenant = 'acme'" \\
                 --start 2026-01-01T08:30:00Z -o acme.parquet
      letterhead read -b broker:9092 orders --profile cloudevents -n 5
      letterhead read -b broker:9092
      letterhead read iggy://host/shop/orders --headers tenant,retry:int32
      letterhead read /var/lib/kafka/data/orders-0 --start -10 --all
      letterhead read orders-0 orders-1 --count-by tenant --csv
      letterhead read app/0_0 --store hourly --prefix customer --json
      letterhead read orders.parquet --headers amount_cents:int64 -n 5
      letterhead read orders-0 --edit "replace tenant=hash" -o masked.parquet
    """
    request = with_keys(request, keys)
    typed = header_columns(headers, profile)
    if batches and (
        control or typed or count_by or request.where is not None or errors not in (None, ReadErrors.raise_)
    ):
        raise Failure("--batches excludes --control, --headers, --count-by, --where and --errors")
    if edit and (batches or typed or count_by):
        raise Failure("--edit changes the column headers, and excludes --headers, --count-by and --batches")
    if ignore_crc and errors not in (None, ReadErrors.column, ReadErrors.only):
        raise Failure(f"--ignore-crc shows records with an error, and --errors {errors} does not: give column or only")
    if serialized is not None and (batches or control or count_by):
        raise Failure("--value and --key exclude --batches, --control and --count-by")
    errors = errors or (ReadErrors.column if ignore_crc else ReadErrors.raise_)
    if control and request.committed:
        raise Failure("--control shows aborted transactions, and --committed leaves them out: give one of them")
    if error_column != ERROR_COLUMN and errors not in (ReadErrors.column, ReadErrors.only):
        raise Failure("--error-column needs --errors column or only: it names the column of errors")
    on_screen = output.form is Form.TABLE and count_by is None
    request = replace(
        request,
        headers=typed,
        columns=None if columns is None else tuple(filter(None, map(str.strip, columns.split(",")))),
        follow=follow,
        commit_group=commit_group,
        ignore_crc=ignore_crc,
        limits=limits,
        errors=counting_policy(errors),
        error_column=UNUSED_NAME if errors in (ReadErrors.null, ReadErrors.skip) else error_column,
        view="batches" if batches else "control" if control else "records",
        serialized=serialized,
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
    with usage_errors():
        columns_asked(request.columns, typed)
    if repeated := [name for name in request.columns or () if name in (typed or {})]:
        raise Failure(f"--columns: {', '.join(repeated)} of --headers follows the columns by itself: leave it out")
    if error_column in (request.columns or ()) and errors in (ReadErrors.column, ReadErrors.only):
        raise Failure(f"--columns: {error_column} of --errors follows the columns by itself: leave it out")
    if follow and len(sources or ()) > 1:
        raise Failure("--follow reads one topic")
    if not sources and request.servers is None:
        raise Failure("Missing argument 'SOURCE...' (see letterhead read --help)")
    opened = open_sources(sources or [SCHEME], request)
    if count_by is not None:
        if follow or columns is not None:
            raise Failure("--count-by excludes --follow and --columns")
        counts = Counts(count_by, request, opened, has_errors=errors in (ReadErrors.column, ReadErrors.only))
        return RowReading(opened, counts.request, errors, None).count(counts, output.format, output.limit)
    limit = output.limit
    if limit is None and on_screen and not (follow or output.format.everything or request.last is not None):
        limit = ROWS_ON_SCREEN
    return RowReading(opened, request, errors, limit, edit or ()).write(output.format)
