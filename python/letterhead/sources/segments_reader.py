"""``letterhead.read.segments``: read a broker's log segments without the broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from letterhead._optional_dependencies import install_hint

with install_hint("reading segments", "letterhead[arrow]"):
    import pyarrow  # noqa: F401

from letterhead._names import check_name
from letterhead._row_request import row_request
from letterhead.sources.base import check_options
from letterhead.sources.segments import IggySegmentsSource, KafkaSegmentsSource

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.kafka.log_directory import Paths
    from letterhead.offsets.segments import SegmentsReader
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.where.conditions import Where

__all__ = ["segments"]


def segments(
    path: Paths,
    *,
    format: Literal["record-batch", "iggy-batch"] = "record-batch",
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    **options: Unpack[ReadOptions],
) -> SegmentsReader:
    """Read log segments of Kafka or Iggy from their files.

    Use it for backups, tiered storage or a broker that does not start: no broker is needed. Files are read a few MiB
    at a time, and checksums are verified.

    Parameters
    ----------
    path : path or sequence of paths
        The directory of a partition (``orders-0``), a broker's directory of such directories, a ``.log`` file, or files,
        such as those of tiered storage. Partitions are read one after the other.
    format : {"record-batch", "iggy-batch"}, default "record-batch"
        The format of the files: Kafka's, or the format of a server of Iggy 0.9 or later. The path is then the directory
        of a partition, or contains such directories; the columns are as in :func:`letterhead.read.iggy`, and times are
        the times at which messages were stored. Stream and topic are the numbers in the path. A server writes the last
        messages to its files when it stops.
    columns : sequence of str, optional
        Columns to return, in order; by default all: ``topic``, ``partition``, ``offset``, ``timestamp``,
        ``timestamp_type``, ``key``, ``value``, ``headers``, ``producer_id``, ``producer_epoch``, ``sequence``,
        ``transactional``, without ``headers`` if the argument ``headers`` is given. Topic and partition come from the
        directory's name, and are null if the name has another form. Records of ``__consumer_offsets`` and
        ``__transaction_state`` are decoded: the columns are ``topic``, ``partition``, ``offset``, ``timestamp``, and
        the decoded fields, such as ``group`` and ``committed_offset``; name ``key`` and ``value`` to get the stored
        bytes.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    where : Condition or str, optional
        Condition that selects the records: on headers, on ``topic`` and ``partition``, and on fields of a record, as in
        :mod:`letterhead.arrow`. Batches with excluded offsets or timestamps are neither read nor verified.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        Where to start and where to stop, as in :func:`letterhead.read.topic`.
        A record without a timestamp is older than all others.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
        An invalid batch is one such row, whose error names the missing offsets. An incomplete batch at the end of a
        partition has no row.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    SegmentsReader
        A stream of record batches. If the last segment of a partition ends in an incomplete batch, or in zeros, the
        records before them are read, a :class:`~letterhead.errors.TruncatedTailWarning` is emitted, and ``truncated``
        describes the position. ``damaged`` lists damaged batches and the offsets that are missing.

    Raises
    ------
    FileNotFoundError
        If no segment exists.
    OSError
        If a segment is a pipe or a device.
    DecodeError
        While reading, if ``errors="raise"`` and a file is not a log segment, or a batch is damaged, or truncated in a
        segment that is not the last of its partition. It names the file, topic, partition and offset, and the byte in
        the file.
    ValueError
        If an option is invalid, or two columns would have the same name.

    Examples
    --------
    >>> import letterhead as lh
    >>> with lh.read.segments("tests/samples/orders-0", columns=["offset"], headers={"tenant": "string"}) as reader:
    ...     table = reader.read_all()
    >>> table.num_rows, table.column_names, reader.truncated
    (10000, ['offset', 'tenant'], [])
    """
    check_name("format", format, ("record-batch", "iggy-batch"))
    source = IggySegmentsSource(path) if format == "iggy-batch" else KafkaSegmentsSource(path)
    request = row_request(options, columns=columns, headers=headers, where=where, start=start, end=end, errors=errors)
    check_options([source], request)
    reader: Any = source.reader(request)
    return reader  # type: ignore[no-any-return]
