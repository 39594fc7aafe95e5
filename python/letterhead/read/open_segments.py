"""Read log segments: the files of a broker, without the broker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from letterhead._optional_dependencies import needed

with needed("reading segments", "'letterhead[arrow]'"):
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401

from letterhead.errors import check_name
from letterhead.read.log_directory import Paths, partitions
from letterhead.read.segments_reader import COLUMNS, Bounds, SegmentsReader, Wanted

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["segments"]


def segments(
    path: Paths,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    start: int | None = None,
    end: int | None = None,
    since: int | datetime | None = None,
    until: int | datetime | None = None,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    errors: OnError = "raise",
    limits: Limits | None = None,
) -> SegmentsReader:
    """Read log segments of Kafka as a stream of record batches.

    Files are mapped and read in place, a few MiB at a time; checksums are held to. No broker is asked, and none needs to
    be there.

    Parameters
    ----------
    path : path or sequence of paths
        The folder of a partition (``orders-0``), a broker's folder of such folders, a ``.log`` file, or files, as those
        of tiered storage. Partitions come one after the other.
    columns : sequence of str, optional
        Names of :data:`~letterhead.read.segments_reader.COLUMNS`, in the order of the result; by default all of them. ``topic`` and ``partition`` are by
        the name of the folder, and null where that says nothing.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`letterhead.arrow.select`; they come after the columns.
    start, end : int, optional
        First offset, and the first one that is no more wanted, of every partition.
    since, until : int or datetime, optional
        Earliest timestamp, and the earliest one that is no more wanted: milliseconds since 1970, or a time with a zone.
        A record without a timestamp is before them all.
    isolation_level : {"read_uncommitted", "read_committed"}, default "read_uncommitted"
        ``"read_committed"`` leaves out the records of aborted transactions, and reads a partition up to where the first
        transaction begins that is not at its end: ``open_transactions`` of the reader tells of it.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a record that is not whole, as in :func:`letterhead.arrow.messages`. A batch that is not whole
        becomes one such row, unless it ends the last segment of its partition.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    SegmentsReader
        A stream of record batches. If the last segment of a partition ends in bytes that are not a whole batch, the
        records before them are read, a :class:`~letterhead.errors.TornTailWarning` is emitted, and ``torn`` has the place.

    Raises
    ------
    FileNotFoundError
        If there is no segment.
    DecodeError
        While reading, if ``errors="raise"``: if a file is not a log segment, or a batch is damaged, or truncated in a
        segment that is not the last of its partition. It names the file, the offset and the byte in the file.
    ValueError
        If a name is misspelt.

    Examples
    --------
    >>> import letterhead as lh
    >>> with lh.read.segments("tests/samples/orders-0", columns=["offset"], headers={"tenant": "string"}) as reader:
    ...     table = reader.read_all()
    >>> table.num_rows, table.column_names, reader.torn
    (10000, ['offset', 'tenant'], [])
    """
    check_name("isolation_level", isolation_level, ("read_uncommitted", "read_committed"))
    bounds = Bounds.of(start, end, _millis(since), _millis(until))
    wanted = Wanted(COLUMNS if columns is None else columns, headers, bounds, errors, limits=limits)
    return SegmentsReader(partitions(path), wanted, bounds, committed=isolation_level == "read_committed")


def _millis(time: int | datetime | None) -> int | None:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{time} has no zone, and so is no point in time: say datetime(..., tzinfo=UTC)")
    return round(time.timestamp() * 1000)
