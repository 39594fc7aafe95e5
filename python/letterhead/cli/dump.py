"""`letterhead dump`: show the records of log segments, or the messages of an Iggy topic."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from letterhead._optional_dependencies import how_to_install
from letterhead.cli.column import Rows, Tally, deliver
from letterhead.cli.document import to_json
from letterhead.cli.exits import BAD_DATA, OK, Failure
from letterhead.cli.iggy_topic import SCHEMES, open_reader, open_topic, server_errors
from letterhead.cli.options import Errors, Json, OnErrors, Where, flag, grouped, limits, option
from letterhead.cli.render import counted, moment, progress, warn
from letterhead.cli.source import reason
from letterhead.cli.spelling import read_time
from letterhead.cli.where import unseen_headers, warn_of_unseen
from letterhead.errors import TornTailWarning
from letterhead.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.kafka.segments_reader import Bounds, SegmentsReader
    from letterhead.reader import Reader
    from letterhead.where import Condition

# Lines about damaged batches; --errors column has a row for each.
MOST_DAMAGED = 20

ON_SCREEN = ("offset", "timestamp", "key", "headers", "value")


@grouped(limits=limits)
def dump_command(
    *,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="A partition's folder, a broker's data folder, .log files, or one topic of an Iggy server: "
            "iggy://user:password@host:port/stream/topic.",
        ),
    ],
    json: Json = False,
    parquet: Annotated[Path | None, option("--parquet -o", "Write the records as Parquet.", "FILE")] = None,
    start: Annotated[int | None, option("--start", "The first offset.", "OFFSET")] = None,
    end: Annotated[int | None, option("--end", "The offset to stop before.", "OFFSET")] = None,
    since: Annotated[
        str | None, option("--since", "No earlier records: milliseconds since 1970, or a date (UTC).", "TIME")
    ] = None,
    until: Annotated[str | None, option("--until", "Only records before this time.", "TIME")] = None,
    committed: Annotated[
        bool, flag("--committed", "Leave out aborted transactions, and stop where one is open.")
    ] = False,
    where: Where = None,
    errors: OnErrors = Errors.raise_,
    limit: Annotated[int | None, option("--limit -n", "The first records only (on screen: 20).", "N", min=0)] = None,
    everything: Annotated[bool, flag("--all", "Show every record, and do not shorten long values.")] = False,
    limits: Limits,
) -> int:
    """Show the records in a broker's log segments, without asking the broker.

    The messages of an Iggy topic are read from its server, up to the last ones
    at the start. Checksums are verified: a damaged batch ends the command; with
    --errors column it becomes a row with the error, and reading goes on. The
    offsets that are missing are printed at the end. A log whose end is torn is
    read up to there; the exit code is then 1.

    \b
    Examples:
      letterhead dump /var/lib/kafka/data/orders-0
      letterhead dump orders-0 --start 5000 --limit 5 --all
      letterhead dump orders-0 --where "tenant = 'acme' and offset >= 5000"
      letterhead dump orders-0 --since 2026-01-01T08:30:00Z --json
      letterhead dump /var/lib/kafka/data --committed -o everything.parquet
      letterhead dump iggy://me:secret@host/shop/orders --where "retry::int > 2"
    """
    rows = Rows(errors.value, "error", limit, parquet, json, everything)
    limit = limit if everything else rows.checked().limit
    try:
        from letterhead.kafka.log_directory import partitions
        from letterhead.kafka.record_sets import WHERE_FIELDS
        from letterhead.kafka.segments_reader import COLUMNS, Bounds, SegmentRows, SegmentsReader
    except ImportError as error:
        raise Failure(how_to_install("a dump", error.name, "'letterhead[arrow]'")) from error
    bounds = Bounds.of(start, end, read_time("--since", since), read_time("--until", until))
    if any(path.lower().startswith(SCHEMES) for path in paths):
        if len(paths) > 1 or committed:
            raise Failure("an Iggy topic is dumped by itself, and without --committed: Iggy has no transactions")
        return _dump_topic(paths[0], bounds, where, limit, rows, limits)
    files = [Path(path) for path in paths]
    try:
        found = partitions(files[0] if len(files) == 1 else files)
        names = (*(() if len(found) == 1 else ("topic", "partition")), *ON_SCREEN) if rows.on_screen else COLUMNS
        wanted = SegmentRows(names, None, bounds, rows.options["errors"], limits=limits, where=where)
        reader = SegmentsReader(found, wanted, bounds, committed=committed)
    except (OSError, ValueError, ImportError) as error:
        raise Failure(reason(error) if isinstance(error, OSError) and error.strerror else str(error)) from error
    tally = Tally("record", "partition")
    document = functools.partial(to_json, format="record-batch")

    def matching(condition: Condition) -> SegmentsReader:
        only = SegmentRows(["offset"], None, bounds, rows.options["errors"], limits=limits, where=condition)
        return SegmentsReader(found, only, bounds, committed=committed)

    # A torn end is reported below, as one line.
    with warnings.catch_warnings(action="ignore", category=TornTailWarning):
        records = _records(reader, tally, limit, rows, reader.total, lambda: reader.done)
        deliver(records, tally, files[0], len(found), rows, document)
        if wanted.where is not None and not tally.more:
            warn_of_unseen(unseen_headers(wanted.where.headers, matching), WHERE_FIELDS)
    return max(tally.report("decode"), _report(reader))


def _dump_topic(url: str, bounds: Bounds, where: str | None, limit: int | None, rows: Rows, limits: Limits) -> int:
    from letterhead.iggy.rows import WHERE_FIELDS
    from letterhead.where.program import resolve

    reader, partitions = open_topic(url, bounds, where, rows, limits)
    tally = Tally("message", "partition")
    messages = _records(reader, tally, limit, rows, None, lambda: tally.rows)
    with server_errors():
        deliver(messages, tally, None, partitions, rows, functools.partial(to_json, format="iggy-batch"))
        resolved = resolve(where, WHERE_FIELDS)
        if resolved is not None and not tally.more:
            specs = resolved.headers
            unseen = unseen_headers(
                specs, lambda condition: open_reader(url, bounds, condition, ["offset"], rows, limits)
            )
            warn_of_unseen(unseen, WHERE_FIELDS)
    return tally.report("decode")


def _records(
    reader: Reader, tally: Tally, limit: int | None, rows: Rows, total: int | None, done: Callable[[], int]
) -> Iterator[pa.RecordBatch]:
    """Read and count records, and show how much of the total is done."""
    import pyarrow as pa

    # Without records there are columns all the same.
    yield _printable(pa.RecordBatch.from_pylist([], schema=reader.schema), rows)
    shown = 0
    with progress(total, "reading", prints=rows.out is None) as advance, reader:
        try:
            for batch in reader:
                if limit is not None and tally.rows + len(batch) > limit:
                    batch, tally.more = batch.slice(0, limit - tally.rows), True
                tally.add(len(batch), batch.column("error") if "error" in batch.schema.names else None)
                yield _printable(batch, rows)
                advance(done() - shown)
                shown = done()
                if tally.more:
                    return
        except OSError as error:
            raise Failure(reason(error)) from error


def _printable(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    """Return timestamps as numbers in JSON, as Python's own times end in the year 9999, and as dates on a screen."""
    import pyarrow as pa

    if rows.errors == "null":
        batch = batch.drop_columns(["error"])
    if rows.out is not None:
        return batch
    for at, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            times, name = batch.column(at).cast(pa.int64()), field.name
            if rows.on_screen:
                dates = [_date(time, field.type.unit) for time in times.to_pylist()]
                times = pa.array(dates, pa.string())
            batch = batch.set_column(at, name, times)
    return batch


def _date(time: int | None, unit: str) -> str | None:
    return None if time is None else moment(time, microseconds=unit == "us").replace(" UTC", "Z") or str(time)


def _report(reader: SegmentsReader) -> int:
    """Print open transactions, damaged batches and torn ends to stderr, and return the exit code."""
    for one in reader.open_transactions:
        place = f"{one.topic}-{one.partition}: " if one.topic is not None else ""
        warn(f"{place}read up to offset {one.first_offset}, where a transaction of producer {one.producer_id} is open")
    for damaged in reader.damaged[:MOST_DAMAGED]:
        warn(str(damaged))
    if len(reader.damaged) > MOST_DAMAGED:
        warn(f"{counted(len(reader.damaged) - MOST_DAMAGED, 'more damaged range')}")
    for torn in reader.torn:
        warn(str(torn))
    return BAD_DATA if reader.torn else OK
