"""Read the partitions of a Kafka topic: :func:`read_topic`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from letterhead._optional_dependencies import install_hint

with install_hint("reading a topic", "letterhead[arrow,kafka]"):
    import pyarrow as pa

from letterhead._names import check_name
from letterhead._row_request import RowRequest
from letterhead.errors import HeaderError
from letterhead.kafka.batch_rows import BatchRowReader
from letterhead.kafka.client import KafkaClient
from letterhead.kafka.control_rows import ControlRowReader
from letterhead.kafka.groups import GroupOffsets, OffsetCommits
from letterhead.kafka.partitions import BATCH_BYTES, KafkaPartitions
from letterhead.kafka.record_sets import KafkaRowReader
from letterhead.kafka.responses import Isolation
from letterhead.kafka.settings import Settings
from letterhead.kafka.topic_names import check_topic_name
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.ranges import choose_partitions, narrow_ranges, resolve_ranges
from letterhead.offsets.reading import OffsetProgress, last_of_range, read_partitions, read_ranges
from letterhead.offsets.rows import POSITION
from letterhead.offsets.specs import LATEST, OffsetBounds, check_follow, check_group, group_of
from letterhead.reader import Progress, Reader

__all__ = ["CommittingReader", "read_topic", "topic_ranges"]


def read_topic(topic: str, settings: Callable[[], Settings], request: RowRequest) -> Reader:
    """Return a stream of records, batches, or records with control records, depending on the view of the request.

    ``settings`` is called after the request is validated, because it may prompt for a password.
    """
    check_topic_name(topic)
    start_group, commit_group = group_of("start", request.start), request.commit_group
    if request.view != "records" and (commit_group is not None or start_group is not None):
        raise ValueError(f"commit_group= and start= with a group exclude {request.view}=")
    if request.view != "records" and request.follow:
        raise ValueError(f"follow= excludes {request.view}=")
    bounds = OffsetBounds.parse("earliest" if start_group is not None else request.start, request.end)
    check_group("commit_group", commit_group)
    check_follow(bounds, follow=request.follow)
    rows = _row_reader(request)
    connection = settings()
    isolation = _isolation(connection, request)
    batch_bytes = BATCH_BYTES if request.batch_bytes is None else request.batch_bytes
    progress = OffsetProgress()

    def batches() -> Iterator[pa.RecordBatch]:
        with KafkaPartitions(KafkaClient(connection), rows, isolation, batch_bytes) as log:
            chosen = choose_partitions(log.client.partitions([topic]), topic, request.partitions, bounds)
            resolved = bounds
            if start_group is not None:
                group = GroupOffsets(log.client, start_group)
                points = group.start_points(chosen, "start", can_be_new=start_group == commit_group)
                resolved = bounds._replace(start={partition.partition: point for partition, point in points.items()})
            ranges = resolve_ranges(log, chosen, resolved)
            progress.note_deleted(ranges, bounds)
            if isolation == "read_committed" and not request.follow:
                to_end = [part for part in ranges if bounds.of_partition(part.partition.partition)[1] == LATEST]
                progress.note_open(to_end, log.all_ends([part.partition for part in to_end]))
            extent: Any = {"last": request.last, "follow": request.follow, "progress": progress}
            if request.view == "control":
                yield from _with_marks(log, rows, ranges, request.last)
            elif commit_group is None:
                yield from read_partitions(log, ranges, rows.where, **extent)
            else:
                commits = OffsetCommits(GroupOffsets(log.client, commit_group), ranges)
                read = read_partitions(log, ranges, rows.where, note_read=commits.note_read, **extent)
                yield from reader.committed(read, commits, topic)

    if commit_group is None:
        return Reader(rows.schema, batches, progress)
    reader = CommittingReader(rows.schema, batches, progress)
    return reader


def topic_ranges(topic: str, connection: Settings, request: RowRequest) -> list[OffsetRange]:
    """Return the offset ranges of a request, in reading order."""
    bounds = OffsetBounds.parse(request.start, request.end)
    with KafkaPartitions(KafkaClient(connection), _row_reader(request), _isolation(connection, request)) as log:
        return resolve_ranges(
            log, choose_partitions(log.client.partitions([topic]), topic, request.partitions, bounds), bounds
        )


def _isolation(connection: Settings, request: RowRequest) -> Isolation:
    if request.committed is not None:
        return "read_committed" if request.committed else "read_uncommitted"
    isolation: Any = connection.isolation_level or "read_uncommitted"
    check_name("isolation_level", isolation, ("read_uncommitted", "read_committed"))
    return isolation  # type: ignore[no-any-return]


def _row_reader(request: RowRequest) -> Any:
    if request.view == "batches":
        return BatchRowReader(request)
    if request.view == "control":
        return ControlRowReader(request)
    return KafkaRowReader(request, has_positions=request.commit_group is not None)


def _with_marks(
    log: KafkaPartitions, rows: Any, requested: Sequence[OffsetRange], last: int | None
) -> Iterator[pa.RecordBatch]:
    """Read records and control records, and mark the records of aborted transactions.

    Brokers list aborted transactions only up to the first open one. Later records are also read, but not marked.
    """
    committed = KafkaPartitions(log.client, rows, "read_committed")
    stable = committed.end_offsets([part.partition for part in requested])

    def read(part: OffsetRange) -> Iterator[pa.RecordBatch]:
        ends = stable[part.partition]
        yield from read_ranges(committed, [part._replace(end=min(part.end, ends))])
        yield from read_ranges(log, [part._replace(start=max(part.start, ends))])

    for narrowed in narrow_ranges(log, requested, rows.where):
        yield from read(narrowed) if last is None else last_of_range(read, narrowed, last)


class CommittingReader(Reader):
    """Stream of records whose offsets are committed to a consumer group.

    A batch counts as used once the next one is requested. Closing the stream early commits the offsets of used batches;
    :meth:`close_after` also commits the offsets of the first rows of the last batch.
    """

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], progress: Progress) -> None:
        self._names = schema.names[: -len(POSITION)]
        super().__init__(pa.schema([schema.field(name) for name in self._names]), batches, progress)
        self._unused: pa.RecordBatch | None = None
        self._used: dict[int, int] = {}

    def close_after(self, rows: int) -> None:
        """Commit the offsets of the first rows of the last batch, and close the connections.

        Raises
        ------
        ConnectionError, TimeoutError, RuntimeError
            If the offsets cannot be committed.
        """
        self.note_used(rows)
        self.close()

    def committed(self, read: Iterable[pa.RecordBatch], commits: OffsetCommits, topic: str) -> Iterator[pa.RecordBatch]:
        """Yield batches to the caller, and commit the offsets of used batches."""
        try:
            for batch in read:
                yield self._without_positions(batch)
                self.note_used()
        except BaseException as end:
            # The caller has stopped, a signal has arrived, or a record cannot be read.
            if isinstance(end, HeaderError) or not isinstance(end, Exception):
                commits.finish_at({TopicPartition(topic, number): offset for number, offset in self._used.items()})
            raise
        commits.finish()

    def _without_positions(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Remove the position columns that the caller did not request, but store their values."""
        self._unused = batch.select(POSITION)
        return batch.select(self._names)

    def note_used(self, rows: int | None = None) -> None:
        """Note that the caller used the last batch, or its first ``rows`` rows."""
        if self._unused is not None:
            partitions, offsets = self._unused.slice(0, rows).columns
            known = offsets.drop_null()  # rows that report unreadable batches have no offset
            if len(known):
                self._used[partitions[0].as_py()] = known[-1].as_py() + 1
