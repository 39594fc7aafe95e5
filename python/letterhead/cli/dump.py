"""`letterhead dump`: show the records of log segments, or the messages of an Iggy topic."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from letterhead._optional_dependencies import how_to_install
from letterhead.cli.column import RowCounts, RowOptions, deliver
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.iggy_topic import SCHEMES, TopicDump, server_errors
from letterhead.cli.options import Errors, Json, OnErrors, Where, flag, grouped, limits, option
from letterhead.cli.render import counted, progress, warn
from letterhead.cli.source import reason
from letterhead.cli.where import unseen_headers, warn_of_unseen
from letterhead.errors import TornTailWarning
from letterhead.limits import Limits
from letterhead.offsets.specs import OffsetBounds

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.kafka.segments_reader import SegmentsReader
    from letterhead.reader import Reader
    from letterhead.where import Condition

# Further damaged batches are only counted; --errors column has a row for each.
MAX_DAMAGED_LINES = 20

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
    start: Annotated[
        str, option("--start", "The first record: an offset, a time (UTC), or -N for N before the end.", "POINT")
    ] = "earliest",
    end: Annotated[str, option("--end", "The record to stop before, as for --start.", "POINT")] = "latest",
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

    A POINT is an offset, a date such as 2026-01-01T08:30:00Z, @ and milliseconds
    since 1970, `earliest`, `latest`, or a negative number of offsets before the
    end. A time stands for the first record that is not older.

    \b
    Examples:
      letterhead dump /var/lib/kafka/data/orders-0
      letterhead dump orders-0 --start 5000 --limit 5 --all
      letterhead dump orders-0 --where "tenant = 'acme' and offset >= 5000"
      letterhead dump orders-0 --start 2026-01-01T08:30:00Z --json
      letterhead dump orders-0 --start -10
      letterhead dump /var/lib/kafka/data --committed -o everything.parquet
      letterhead dump iggy://me:secret@host/shop/orders --where "retry::int > 2"
    """
    rows = RowOptions(errors.value, "error", limit, parquet, json, everything)
    limit = limit if everything else rows.checked().limit
    try:
        from letterhead.kafka.log_directory import partitions
        from letterhead.kafka.record_sets import WHERE_FIELDS
        from letterhead.kafka.segments_reader import COLUMNS, SegmentRowReader, SegmentsReader
    except ImportError as error:
        raise Failure(how_to_install("a dump", error.name, "'letterhead[arrow]'")) from error
    with usage_errors():
        bounds = OffsetBounds.parse(start, end, ("--start", "--end"))
    if any(path.lower().startswith(SCHEMES) for path in paths):
        if len(paths) > 1 or committed:
            raise Failure("an Iggy topic is dumped by itself, and without --committed: Iggy has no transactions")
        topic = TopicDump(paths[0], start, end, rows.error_options["errors"], limits)
        return _dump_topic(topic, where, limit, rows)
    files = [Path(path) for path in paths]
    try:
        segments = partitions(files[0] if len(files) == 1 else files)
        names = (*(() if len(segments) == 1 else ("topic", "partition")), *ON_SCREEN) if rows.on_screen else COLUMNS
        row_reader = SegmentRowReader(names, None, rows.error_options["errors"], limits=limits, where=where)
        reader = SegmentsReader(segments, row_reader, bounds, committed=committed)
    except (OSError, ValueError, ImportError) as error:
        raise Failure(reason(error) if isinstance(error, OSError) and error.strerror else str(error)) from error
    tally = RowCounts("record", "partition")

    def matching(condition: Condition) -> SegmentsReader:
        offsets = SegmentRowReader(["offset"], None, rows.error_options["errors"], limits=limits, where=condition)
        return SegmentsReader(segments, offsets, bounds, committed=committed)

    # A torn end is reported below, as one line.
    with warnings.catch_warnings(action="ignore", category=TornTailWarning):
        records = _records(reader, tally, limit, rows, reader.total, lambda: reader.done)
        deliver(records, tally, files[0], len(segments), rows)
        if row_reader.where is not None and not tally.more:
            warn_of_unseen(unseen_headers(row_reader.where.headers, matching), WHERE_FIELDS)
    return max(tally.report("decode"), _report(reader))


def _dump_topic(topic: TopicDump, where: str | None, limit: int | None, rows: RowOptions) -> int:
    from letterhead.iggy.rows import WHERE_FIELDS
    from letterhead.where.program import resolve

    reader, partitions = topic.open(where, on_screen=rows.on_screen)
    tally = RowCounts("message", "partition")
    messages = _records(reader, tally, limit, rows, None, lambda: tally.rows)
    with server_errors():
        deliver(messages, tally, None, partitions, rows)
        resolved = resolve(where, WHERE_FIELDS)
        if resolved is not None and not tally.more:
            unseen = unseen_headers(resolved.headers, lambda condition: topic.reader(["offset"], condition))
            warn_of_unseen(unseen, WHERE_FIELDS)
    return tally.report("decode")


def _records(
    reader: Reader, tally: RowCounts, limit: int | None, rows: RowOptions, total: int | None, done: Callable[[], int]
) -> Iterator[pa.RecordBatch]:
    """Read and count records, and show how much of the total is done."""
    import pyarrow as pa

    # An empty result has columns, too.
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


def _printable(batch: pa.RecordBatch, rows: RowOptions) -> pa.RecordBatch:
    return batch.drop_columns(["error"]) if rows.errors == "null" else batch


def _report(reader: SegmentsReader) -> int:
    """Print open transactions, damaged batches and torn ends to stderr, and return the exit code."""
    for topic, partition, producer_id, first_offset in reader.open_transactions:
        prefix = "" if topic is None else f"{topic}-{partition}: "
        warn(f"{prefix}read up to offset {first_offset}, where a transaction of producer {producer_id} is open")
    for damaged in reader.damaged[:MAX_DAMAGED_LINES]:
        warn(str(damaged))
    if len(reader.damaged) > MAX_DAMAGED_LINES:
        warn(f"{counted(len(reader.damaged) - MAX_DAMAGED_LINES, 'more damaged range')}")
    for torn in reader.torn:
        warn(str(torn))
    return BAD_DATA if reader.torn else OK
