"""``letterhead.read.iggy``: read a topic of Apache Iggy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from letterhead._optional_dependencies import needed

with needed("reading a topic of Iggy", "'letterhead[arrow]'"):
    import pyarrow  # noqa: F401

from letterhead.errors import OffsetsGone, check_name
from letterhead.iggy import kafka_rows as iggy_kafka_rows
from letterhead.iggy.client import Client, Place, Topic
from letterhead.iggy.connection import Address
from letterhead.iggy.kafka_gateway import MAPPINGS
from letterhead.iggy.kafka_rows import KafkaRows
from letterhead.iggy.partitions import FETCH_BYTES, Span, rows_of
from letterhead.iggy.rows import COLUMNS, IggyRows
from letterhead.offsets.specs import Points, check_points, time_of
from letterhead.reader import Reader

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["iggy"]


def iggy(
    address: str,
    *,
    stream: str | int,
    topic: str | int,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    start: Points = "earliest",
    end: Points = "latest",
    partitions: Iterable[int] | None = None,
    errors: OnError = "raise",
    error_column: str = "error",
    where: Where | None = None,
    mapping: Literal["kafka-gateway", "kafka-gateway-lossless"] | None = None,
    fetch_bytes: int = FETCH_BYTES,
    timeout_ms: int = 60_000,
    limits: Limits | None = None,
) -> Reader:
    """Read a topic of Apache Iggy into Arrow, without a Python object per message.

    Rows come partition by partition, in the order of their offsets, up to the last offsets at the time of the first
    batch. The server stores no consumer offset. The next poll runs while the current one is decoded. Reading takes about
    eight times ``fetch_bytes`` of memory, however many messages there are. A connection that ends is opened again.

    Parameters
    ----------
    address : str
        ``iggy://user:password@host:port``, or ``iggy://token@host:port`` with a personal access token. Special characters
        are percent-encoded; the port is 8090 by default. ``?tls=true`` encrypts the connection; ``tls_ca_file`` is a file
        of trusted certificates, and ``tls_domain`` the name in the server's certificate, if it is not the host.
    stream, topic : str or int
        Name or number of the stream, and of the topic in it.
    columns : sequence of str, optional
        Columns to return, in order, of ``stream topic partition offset timestamp origin_timestamp id headers payload
        checksum``. Other columns are not built. By default all but the checksum, without ``headers`` if the argument
        ``headers`` is given. Timestamps are in microseconds: when the server stored the message, and when it was made.
    headers : mapping of str to str or Field, optional
        Headers as typed columns after the others, as in :func:`letterhead.arrow.select`.
    start, end : str, datetime, int or mapping, default "earliest" and "latest"
        Where to begin, and where to stop: ``"earliest"``, ``"latest"``, or a time (a datetime with its time zone, or
        milliseconds since 1970), which stands for the first message that was not stored earlier. The message at ``end``
        is not read. A mapping of partition to offset, or to one of these, sets every partition separately.
    partitions : iterable of int, optional
        The partitions to read; all by default. The first one is 0.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with an invalid message, as in :func:`letterhead.arrow.messages`.
    error_column : str, default "error"
        Name of the column that ``errors="column"`` adds.
    where : Condition, str, pyarrow.compute.Expression or polars.Expr, optional
        Which messages to return, as in :func:`letterhead.read.topic`: a condition on headers and on ``stream topic
        partition offset timestamp origin_timestamp id payload checksum``. Bounds of the offset and the timestamp
        limit what is polled. With ``mapping``, it tests the fields and headers of the records, and limits nothing.
    mapping : {"kafka-gateway", "kafka-gateway-lossless"}, optional
        Read messages as the Kafka records they were made of, by Iggy's Kafka gateway or by
        :func:`letterhead.write.iggy`. The columns are ``stream topic partition offset timestamp key value headers``, the
        timestamp in milliseconds. Both names read the same messages, by version 1 of the gateway's proposal. A message
        that no mapping made is a record without a key.
    fetch_bytes : int, default 4 MiB
        Approximate size of a poll, and of the batch of rows made of it, in bytes; at least one message.
    timeout_ms : int, default 60 000
        How long a request may take, with name lookup, connection, login and retries.
    limits : Limits, optional
        Limits on what is read; unset ones use the process-wide defaults, see :class:`letterhead.Limits`.

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
        While reading, if a certificate is not trusted, or the server does not answer in time.
    ProtocolError
        While reading, if a reply of the server is invalid, or is of another topic or partition.
    RuntimeError
        While reading, if the server answers with another error.
    DecodeError
        While reading, if a message is invalid and ``errors="raise"``.

    Examples
    --------
    >>> with lh.read.iggy(
    ...     "iggy://iggy:iggy@127.0.0.1:8090", stream="shop", topic="orders", headers={"tenant": "string"}
    ... ) as reader:  # doctest: +SKIP
    ...     table = reader.read_all()
    """
    server = Address.parse(address)
    which = Topic(stream, topic)
    which.check()
    check_points(start, end)
    if fetch_bytes < 1:
        raise ValueError(f"fetch_bytes must be at least 1, not {fetch_bytes}")
    if columns is None:
        known = COLUMNS if mapping is None else iggy_kafka_rows.COLUMNS
        columns = [name for name in known if not (headers and name == "headers")]
    rows: IggyRows | KafkaRows
    if mapping is None:
        rows = IggyRows(columns, headers, errors=errors, error_column=error_column, limits=limits, where=where)
    else:
        check_name("mapping", mapping, MAPPINGS)
        if errors != "raise":
            raise ValueError("mapping needs errors='raise'")
        rows = KafkaRows(columns, headers, limits, where=where)
    wanted = None if partitions is None else sorted(set(partitions))

    def batches() -> Iterator[pa.RecordBatch]:
        with Client(server, timeout_ms) as client:
            spans = _spans(client, _places(client, which, wanted), start, end)
            yield from rows_of(client, spans, rows, fetch_bytes=fetch_bytes)

    return Reader(rows.schema, batches)


def _places(client: Client, topic: Topic, wanted: Sequence[int] | None) -> list[Place]:
    places = client.partitions(topic)
    if wanted is None:
        return places
    missing = [number for number in wanted if Place(*topic, number) not in places]
    if missing:
        raise ValueError(f"topic {topic} has no partition {missing[0]}: it has {len(places)}, counted from 0")
    return [Place(*topic, number) for number in wanted]


def _spans(client: Client, places: Sequence[Place], start: Points, end: Points) -> list[Span]:
    """Resolve ``start`` and ``end`` to offsets, and check that these can be read."""
    spans = []
    for place in places:
        last = client.end_offset(place)
        span = Span(place, _offset(client, "start", place, start, last), _offset(client, "end", place, end, last))
        for name, offset in (("start", span.start), ("end", span.end)):
            if offset > last:
                raise ValueError(f"{place}: {name} is offset {offset}, but the partition ends at {last}")
        if isinstance(start, Mapping) and span.start < min(last, first := client.first_offset(place)):
            raise OffsetsGone(place, span.start, f"it was deleted, and the first one is {first}")
        spans.append(span)
    return spans


def _offset(client: Client, name: str, place: Place, points: Points, last: int) -> int:
    point = points
    if isinstance(points, Mapping):
        if place.partition not in points:
            raise ValueError(
                f"{name} has no entry for partition {place.partition}: add one, or leave it out of partitions"
            )
        point = points[place.partition]
    if point == "earliest":
        return client.first_offset(place)
    if point == "latest":
        return last
    if isinstance(point, int) and isinstance(points, Mapping):
        return point
    return min(client.offset_since(place, 1000 * time_of(name, point)), last)
