"""``letterhead.read.topic``: read a Kafka topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from letterhead._optional_dependencies import install_hint

with install_hint("reading a topic", "letterhead[arrow,kafka]"):
    import pyarrow  # noqa: F401

import letterhead.kafka.topic_reader  # noqa: F401 - names a missing package at once
from letterhead._row_request import row_request
from letterhead.kafka.settings import SettingsLike, request_settings
from letterhead.kafka.topic_names import check_topic_name
from letterhead.sources.base import check_options
from letterhead.sources.kafka import KafkaTopicSource

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader
    from letterhead.where.conditions import Where

__all__ = ["topic"]


def topic(
    topic: str,
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    settings: SettingsLike | None = None,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    **options: Unpack[ReadOptions],
) -> Reader:
    """Read a Kafka topic into Arrow, without a Python object per record.

    Rows come partition by partition, in the order of their offsets, up to the last offsets at the time of the first
    batch. No group is joined, and offsets are committed only with ``commit_group``. The next fetch runs while
    the current one is decoded, so about three times ``fetch_bytes`` and one batch of rows are in memory.

    Parameters
    ----------
    topic : str
        Name of the topic.
    bootstrap_servers : str or sequence of str, optional
        ``host:port`` of brokers; by default ``bootstrap.servers`` of the settings.
    settings : mapping or path, optional
        Connection settings by Kafka's property names, such as ``{"security.protocol": "SSL"}``, or the path of a
        property file. librdkafka's names are also accepted, and settings that tune other clients are ignored.
        ``${env:NAME}`` and ``${file:PATH}`` in a value refer to a secret that is stored elsewhere.
    columns : sequence of str, optional
        Columns to return, in order, of ``topic partition offset timestamp timestamp_type key value headers producer_id
        producer_epoch sequence transactional``. Other columns are not built. By default all, without ``headers`` if the
        argument ``headers`` is given. Records of ``__consumer_offsets`` and ``__transaction_state`` are decoded, as in
        :func:`segments`.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    where : Condition or str, optional
        Condition that selects the records: on headers, on ``topic`` and ``partition``, and on fields of a record, as in
        :mod:`letterhead.arrow`. Batches with excluded offsets or timestamps are not fetched, if brokers can identify
        them.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        Where to start and where to stop; ``end`` is exclusive. An offset, ``"earliest"``, ``"latest"``, a negative
        number (``-10`` is ten offsets before the end), or a time: a datetime with a time zone, ISO 8601 text (in UTC
        without a zone), or ``"@"`` followed by milliseconds since 1970. A time means the first row at that time or
        later. The value applies to all partitions, within their range. A mapping from partitions to values sets each
        partition separately; its offsets must exist.
        ``start="group:NAME"`` begins at the committed offsets of a consumer group, and at the first offset of a partition
        that has none.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    Reader
        An Arrow stream and a context manager. It connects when the first batch is read.

    Raises
    ------
    ImportError
        If kafka-python is not installed.
    TypeError, ValueError
        If an option or a setting is invalid, or two columns would have the same name. While reading, if the topic, a
        partition, an offset or the group of ``start`` does not exist, or consumers are active in ``commit_group``.
    OffsetsGone
        While reading, if records were deleted before they were read.
    LogTruncated
        While reading, if an unclean leader election removed records after they were read.
    PermissionError
        While reading, if the brokers reject the user.
    ConnectionError, TimeoutError
        While reading, if a certificate is not trusted, no broker can be reached, or none responds in time.
    ProtocolError
        While reading, if a response of a broker is invalid, or is of another topic or partition.
    RuntimeError
        While reading, if a broker responds with another error.
    DecodeError
        While reading, if a record is invalid and ``errors="raise"``.

    Examples
    --------
    >>> with lh.read.topic(
    ...     "orders", bootstrap_servers="127.0.0.1:9092", columns=["offset"], headers={"tenant": "string"}
    ... ) as reader:  # doctest: +SKIP
    ...     table = reader.read_all()

    A cluster with a password, with the settings in code or in a property file:

    >>> settings = {
    ...     "security.protocol": "SASL_SSL",
    ...     "sasl.mechanism": "SCRAM-SHA-512",
    ...     "sasl.username": "alice",
    ...     "sasl.password": "${env:KAFKA_PASSWORD}",
    ... }
    >>> reader = lh.read.topic("orders", bootstrap_servers="broker:9094", settings=settings)  # doctest: +SKIP
    >>> reader = lh.read.topic("orders", settings="client.properties")  # doctest: +SKIP

    Read what is new since the last run:

    >>> import letterhead as lh
    >>> reader = lh.read.topic("orders", start="group:etl", commit_group="etl", settings="client.properties")  # doctest: +SKIP
    """
    check_topic_name(topic)
    source = KafkaTopicSource(
        f"topic {topic}", topic, None, lambda request: request_settings(bootstrap_servers, settings, request)
    )
    request = row_request(options, columns=columns, headers=headers, where=where, start=start, end=end, errors=errors)
    check_options([source], request)
    return source.reader(request)
