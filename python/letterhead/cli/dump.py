"""`letterhead dump`: the records of log segments."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from letterhead._formatting import printable
from letterhead._optional_dependencies import how_to_install
from letterhead.cli.column import ErrorPolicy, Tally, deliver, policy, rows_wanted
from letterhead.cli.document import to_json
from letterhead.cli.exits import FAULTS, Failure
from letterhead.cli.progress import progress
from letterhead.cli.render import counted, moment
from letterhead.cli.source import reason
from letterhead.errors import TornTailWarning

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.limits import Limits
    from letterhead.read.segments_reader import SegmentsReader

FORMAT = "record-batch"
ON_SCREEN = ("offset", "timestamp", "key", "headers", "value")


def run_dump(
    paths: list[Path],
    *,
    start: int | None,
    end: int | None,
    since: str | None,
    until: str | None,
    committed: bool,
    errors: ErrorPolicy,
    limit: int | None,
    json: bool,
    parquet: Path | None,
    everything: bool,
    limits: Limits,
) -> int:
    """Give the records of segments as a table, as JSON lines or as a Parquet file; say on stderr what was wrong."""
    if not everything:
        limit = rows_wanted(limit, json=json, out=parquet)
    on_screen = not json and parquet is None
    try:
        from letterhead.read.log_directory import partitions
        from letterhead.read.segments_reader import COLUMNS, Bounds, SegmentRows, SegmentsReader
    except ImportError as error:
        raise Failure(how_to_install("a dump", error.name, "'letterhead[arrow]'")) from error
    bounds = Bounds.of(start, end, _time("--since", since), _time("--until", until))
    try:
        found = partitions(paths[0] if len(paths) == 1 else paths)
        names = (*(() if len(found) == 1 else ("topic", "partition")), *ON_SCREEN) if on_screen else COLUMNS
        wanted = SegmentRows(names, None, bounds, policy(errors), limits=limits)
        reader = SegmentsReader(found, wanted, bounds, committed=committed)
    except (OSError, ValueError) as error:
        raise Failure(reason(error) if isinstance(error, OSError) and error.strerror else str(error)) from error
    tally = _Records()
    records = _records(reader, tally, limit, errors, on_screen=on_screen, numbers=parquet is None)
    document = functools.partial(to_json, format=FORMAT) if json else None
    # It is printed below, as the command prints everything else.
    with warnings.catch_warnings(action="ignore", category=TornTailWarning):
        deliver(records, tally, paths[0], len(found), out=parquet, document=document, everything=everything)
    return max(tally.report("decode"), _told(reader))


class _Records(Tally):
    """Records, of some partitions."""

    def __init__(self) -> None:
        super().__init__("record")
        self.more = False

    def of(self, in_file: int) -> str:
        """Say how many there were."""
        more = ", and there are more" if self.more else ""
        return f"{counted(self.rows, 'record')} of {counted(in_file, 'partition')}{more}"


def _records(
    reader: SegmentsReader, tally: _Records, limit: int | None, errors: ErrorPolicy, *, on_screen: bool, numbers: bool
) -> Iterator[pa.RecordBatch]:
    """Give what was read, counted; on a screen times are dates."""
    import pyarrow as pa

    dropped = ["error"] if errors == "null" else []
    # Where there are no records, there are columns all the same.
    none = _in_milliseconds(pa.RecordBatch.from_pylist([], schema=reader.schema), numbers)
    yield (_with_dates(none) if on_screen else none).drop_columns(dropped)
    done = 0
    with progress(reader.total, "reading") as advance, reader:
        try:
            for rows in reader:
                rows = _in_milliseconds(rows, numbers)
                if limit is not None and tally.rows + len(rows) > limit:
                    rows, tally.more = rows.slice(0, limit - tally.rows), True
                tally.add(len(rows), rows.column("error") if "error" in rows.schema.names else None)
                yield (_with_dates(rows) if on_screen else rows).drop_columns(dropped)
                advance(reader.done - done)
                done = reader.done
                if tally.more:
                    return
        except OSError as error:
            raise Failure(reason(error)) from error


def _in_milliseconds(rows: pa.RecordBatch, numbers: bool) -> pa.RecordBatch:
    """Return the timestamps of rows as numbers where they are printed: Python's own times end in the year 9999."""
    import pyarrow as pa

    if not numbers:
        return rows
    at = rows.schema.get_field_index("timestamp")
    return rows.set_column(at, "timestamp", rows.column(at).cast(pa.int64()))


def _with_dates(rows: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    times = rows.column("timestamp").to_pylist()
    dates = [None if time is None else moment(time) or str(time) for time in times]
    return rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", pa.array(dates, pa.string()))


def _told(reader: SegmentsReader) -> int:
    """Say on stderr what was found beside the records, and give the exit code."""
    for one in reader.open_transactions:
        place = f"{one.topic}-{one.partition}: " if one.topic is not None else ""
        _say(f"{place}read up to offset {one.first_offset}, where a transaction of producer {one.producer_id} is open")
    for torn in reader.torn:
        _say(str(torn))
    return FAULTS if reader.torn else 0


def _say(line: str) -> None:
    print(f"letterhead: {printable(line)}", file=sys.stderr)


def _time(option: str, text: str | None) -> int | None:
    """Read milliseconds since 1970, or a date; one that names no zone is UTC."""
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"{option} {text}: neither milliseconds since 1970 nor a time such as 2026-01-01T08:30:00Z"
        ) from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
