"""Read the partitions of a topic of Apache Iggy: :func:`read_topic`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from letterhead._optional_dependencies import install_hint

with install_hint("reading a topic of Iggy", "letterhead[arrow]"):
    import pyarrow  # noqa: F401

from letterhead._names import check_name
from letterhead._row_request import RowRequest
from letterhead.iggy.address import Address
from letterhead.iggy.client import IggyClient, IggyTopic
from letterhead.iggy.kafka_gateway import MAPPINGS
from letterhead.iggy.kafka_rows import MappedRowReader
from letterhead.iggy.partitions import FETCH_BYTES, IggyPartitions
from letterhead.iggy.rows import IggyRowReader
from letterhead.offsets.ranges import choose_partitions, resolve_ranges
from letterhead.offsets.reading import OffsetProgress, read_partitions
from letterhead.offsets.specs import OffsetBounds, check_follow
from letterhead.reader import Reader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_topic"]


def read_topic(server: Address, topic: IggyTopic, request: RowRequest) -> Reader:
    """Return a reader that streams the requested messages."""
    topic.check()
    bounds = OffsetBounds.parse(request.start, request.end)
    check_follow(bounds, follow=request.follow)
    fetch_bytes = FETCH_BYTES if request.fetch_bytes is None else request.fetch_bytes
    rows: IggyRowReader | MappedRowReader
    if request.mapping is None:
        rows = IggyRowReader(request)
    else:
        check_name("mapping", request.mapping, MAPPINGS)
        rows = MappedRowReader(request)
    progress = OffsetProgress()

    def batches() -> Iterator[pa.RecordBatch]:
        client = IggyClient(server, request.timeout_ms)
        with IggyPartitions(client, rows, fetch_bytes) as log:
            chosen = choose_partitions(log.client.partitions(topic), topic, request.partitions, bounds)
            ranges = resolve_ranges(log, chosen, bounds)
            progress.note_deleted(ranges, bounds)
            yield from read_partitions(
                log, ranges, rows.where, last=request.last, follow=request.follow, progress=progress
            )

    return Reader(rows.schema, batches, progress)
