"""``letterhead.read.iggy``: read a topic of Apache Iggy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from letterhead._optional_dependencies import install_hint
from letterhead._shared_parameters import documented

with install_hint("reading a topic of Iggy", "letterhead[arrow]"):
    import pyarrow  # noqa: F401

from letterhead._names import check_name
from letterhead._row_request import IGGY_TOPIC_OPTIONS, RowRequest, check_supported, row_request
from letterhead.iggy.address import Address
from letterhead.iggy.client import IggyClient, IggyTopic
from letterhead.iggy.kafka_gateway import MAPPINGS
from letterhead.iggy.kafka_rows import MappedRowReader
from letterhead.iggy.partitions import FETCH_BYTES, IggyPartitions
from letterhead.iggy.rows import IggyRowReader
from letterhead.offsets.ranges import choose_partitions, resolve_ranges
from letterhead.offsets.reading import OffsetProgress, read_partitions
from letterhead.offsets.specs import OffsetBounds, OffsetSpec, check_follow
from letterhead.reader import Reader

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.where.conditions import Where

__all__ = ["iggy", "read_topic"]


@documented
def iggy(
    address: str,
    *,
    stream: str | int,
    topic: str | int,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    **options: Unpack[ReadOptions],
) -> Reader:
    """Read a topic of Apache Iggy into Arrow, without a Python object per message.

    Rows come partition by partition, in the order of their offsets, up to the last offsets at the time of the first
    batch. The server stores no consumer offset. The next poll runs while the current one is decoded. Memory is about
    eight times ``fetch_bytes``, however many messages there are. A connection that ends is opened again.

    Parameters
    ----------
    {iggy_address} {iggy_topic}
    columns : sequence of str, optional
        Columns to return, in order, of ``stream topic partition offset timestamp origin_timestamp id headers payload
        checksum``. Other columns are not built. By default all but the checksum, without ``headers`` if the argument
        ``headers`` is given. Timestamps are in microseconds: when the server stored the message, and when it was created.
    {headers_as_columns}
    where : Condition or str, optional
        Condition that selects the messages: on headers and on ``stream topic
        partition offset timestamp origin_timestamp id payload checksum``. Bounds of the offset and the timestamp
        limit what is polled.
    {offsets} {errors}
    {read_options}

    Returns
    -------
    Reader
        An Arrow stream and a context manager. It connects when the first batch is read.

    Raises
    ------
    TypeError, ValueError
        If an option is invalid, or two columns would have the same name. While reading, if the stream, the topic, a
        partition or an offset does not exist.
    OffsetsGone
        While reading, if messages were deleted before they were read.
    PermissionError
        While reading, if the server rejects the user, or the user must not read the topic.
    ConnectionError, TimeoutError
        While reading, if a certificate is not trusted, or the server does not respond in time.
    ProtocolError
        While reading, if a reply of the server is invalid, or is of another topic or partition.
    RuntimeError
        While reading, if the server responds with another error.
    DecodeError
        While reading, if a message is invalid and ``errors="raise"``.

    Examples
    --------
    >>> with lh.read.iggy(
    ...     "iggy://iggy:iggy@127.0.0.1:8090", stream="shop", topic="orders", headers={"tenant": "string"}
    ... ) as reader:  # doctest: +SKIP
    ...     table = reader.read_all()
    """
    request = row_request(options, columns=columns, headers=headers, where=where, start=start, end=end, errors=errors)
    check_supported(f"topic {topic} of stream {stream}", IGGY_TOPIC_OPTIONS, request)
    return read_topic(Address.parse(address), IggyTopic(stream, topic), request)


def read_topic(server: Address, topic: IggyTopic, request: RowRequest) -> Reader:
    """Return a stream of the requested messages."""
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
