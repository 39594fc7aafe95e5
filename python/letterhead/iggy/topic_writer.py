"""``letterhead.write.iggy``: write a table to a topic of Apache Iggy."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from letterhead._context_managers import Closing
from letterhead._optional_dependencies import install_hint

with install_hint("writing to a topic of Iggy", "letterhead[arrow]"):
    import pyarrow as pa
    import pyarrow.compute as pc

from letterhead import arrow as lha
from letterhead._arrow_types import read_table
from letterhead._binary_columns import binary_column, exact_column
from letterhead._names import check_name, unknown_name
from letterhead.errors import EncodeError, HeaderError, after_rows
from letterhead.iggy.address import Address
from letterhead.iggy.batches import BATCH_BYTES, BATCH_ROWS, MessageFields
from letterhead.iggy.client import TIMEOUT_MS, IggyClient, IggyTopic
from letterhead.iggy.formats import MAX_PAYLOAD_BYTES
from letterhead.iggy.kafka_gateway import MAPPINGS
from letterhead.iggy.kafka_mapping import COLUMNS as RECORD_COLUMNS
from letterhead.iggy.kafka_mapping import map_rows
from letterhead.iggy.partitioning import partition_of
from letterhead.iggy.writer import IggyWriter
from letterhead.offsets.partition_log import TopicPartition
from letterhead.written import Appended, Written

if TYPE_CHECKING:
    from letterhead.results import Types

__all__ = ["IggySink", "iggy"]

COLUMNS = ("payload", "headers", "id", "origin_timestamp")
"""Columns to write; only the payload is required."""

_SERVER_COLUMNS = ("stream", "topic", "partition", "offset", "timestamp", "checksum")
"""Columns returned by readers that are not written, because the server sets them."""

_BROKER_COLUMNS = (
    "stream", "topic", "partition", "offset", "timestamp_type", "timestampType", "producer_id", "producer_epoch",
    "sequence", "transactional",
)  # fmt: skip
"""Columns of Kafka records that are not written, with the names used by readers and by Spark."""

_MAPPED_TYPES = (pa.binary(), pa.binary(), pa.int64())
"""Types of payload, headers and time of mapped records."""


def iggy(
    data: Any,
    address: str,
    *,
    stream: str | int,
    topic: str | int,
    partition: int | str | None = None,
    partition_key: str | None = None,
    mapping: Literal["kafka-gateway", "kafka-gateway-lossless"] | None = None,
    types: Types | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> Written:
    """Append the rows of a table to a topic of Apache Iggy, as messages with typed headers.

    Messages are sent in batches of at most 1000 rows or about 1 MiB, and the server acknowledges each batch. If a
    connection ends before the acknowledgement, the partition is searched for the batch, which is sent again only if it is
    missing. Rows of one partition keep their order. A program that is killed and writes its table again repeats rows;
    readers can recognize repeated rows by their ids.

    Parameters
    ----------
    data : Arrow table, record batch or stream
        ``payload`` (binary or string), and optionally ``headers``, ``id`` and ``origin_timestamp``. Headers are a list of
        structs as :func:`letterhead.read.iggy` returns them, or as :func:`letterhead.arrow.encode` accepts them. An id has
        16 bytes, and a null id is replaced by a random one. ``origin_timestamp`` is a timestamp, by default the current
        time. Columns set by the server (``stream topic partition offset timestamp checksum``) are ignored.
    address : str
        Address of the server, with credentials, as in :func:`letterhead.read.iggy`.
    stream, topic : str or int
        Name or number of the stream, and of the topic in the stream.
    partition : int or str, optional
        The partition to append to, or the name of a column with the partition of each row. By default, batches are
        distributed to the partitions in turn.
    partition_key : str, optional
        Name of a binary or string column of keys: the server chooses the partition of each key. Rows with a null key go
        to partitions in turn.
    mapping : {"kafka-gateway", "kafka-gateway-lossless"}, optional
        Write Kafka records, as returned by :func:`letterhead.read.topic`, with the columns ``key``, ``value``, ``headers``
        and ``timestamp``. :func:`letterhead.read.iggy` with the same mapping reads them. The first mapping is version 1 of
        the proposal of Iggy's Kafka gateway; the second also preserves repeated headers and their order.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        Types of header values, as in :func:`letterhead.encode`.
    timeout_ms : int, default 60000
        Time limit for each batch, including name lookup, connection, authentication and retries.

    Returns
    -------
    Written
        Number of rows, and the partition and offset of each batch.

    Raises
    ------
    EncodeError, ConversionError
        If a row cannot be written; the message contains the row number. Earlier chunks of a stream are already written.
    TypeError, ValueError
        If a column is missing, unknown or of another type, or the stream, the topic or a partition does not exist.
    PermissionError
        If the server rejects the credentials, or the user may not write to the topic.
    ConnectionError, TimeoutError
        If a certificate is not trusted, or the server does not respond in time.
    ProtocolError, RuntimeError
        If a reply is invalid, or the server responds with another error. After TimeoutError and ProtocolError, the last
        batch may have been appended.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> table = pa.table({"payload": [b"a", b"b"]})
    >>> lh.write.iggy(table, "iggy://iggy:iggy@127.0.0.1:8090", stream="shop", topic="orders")  # doctest: +SKIP
    Written(rows=2, batches=[Appended(partition=0, offset=0, rows=2)])
    """
    source = read_table(data)
    with IggySink(
        address, source.schema, stream=stream, topic=topic, partition=partition, partition_key=partition_key,
        mapping=mapping, types=types, timeout_ms=timeout_ms,
    ) as sink:  # fmt: skip
        batches = [appended for batch in source for appended in sink.write(batch)]
        return Written(sink.rows, batches)


class IggySink(Closing):
    """Writer of record batches with one schema to a topic; it has the arguments of :func:`iggy`."""

    def __init__(
        self,
        address: str | Address,
        schema: pa.Schema,
        *,
        stream: str | int,
        topic: str | int,
        partition: int | str | None = None,
        partition_key: str | None = None,
        mapping: Literal["kafka-gateway", "kafka-gateway-lossless"] | None = None,
        types: Types | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        server = address if isinstance(address, Address) else Address.parse(address)
        if partition is not None and partition_key is not None:
            raise ValueError("partition and partition_key exclude each other")
        if mapping is not None:
            check_name("mapping", mapping, MAPPINGS)
        column = partition if isinstance(partition, str) else partition_key
        written, ignored = (COLUMNS, _SERVER_COLUMNS) if mapping is None else (RECORD_COLUMNS, _BROKER_COLUMNS)
        for name in schema.names:
            if name not in (*written, *ignored, column):
                raise unknown_name("column", name, written)
        for name in ("payload" if mapping is None else "value", *([column] if column else [])):
            if name not in schema.names:
                raise ValueError(f"the table has no column {name!r}")
        self._partition, self._key, self._types, self._mapping = partition, partition_key, types, mapping
        self._topic = IggyTopic(stream, topic)
        client = IggyClient(server, timeout_ms)
        self._writer = IggyWriter(client)
        try:
            self._partitions = client.partitions(self._topic)
        except BaseException:
            client.close()
            raise
        self._next_partitions = itertools.cycle(self._partitions)
        self.rows = 0

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    def interrupt(self) -> None:
        """Interrupt a write that waits in another thread; its rows may have been appended."""
        self._writer.interrupt()

    def write(self, batch: pa.RecordBatch) -> list[Appended]:
        """Append the rows of a record batch, and return their positions once the server has acknowledged them."""
        messages = self._messages(batch)
        appended: list[Appended] = []
        for partition, rows in self._by_partition(batch, messages):
            for piece in _yield_messages(rows):
                appended += self._writer.append(partition, piece)
        self.rows += len(batch)
        return appended

    def _messages(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the fields of :class:`MessageFields` as columns; null ids are replaced by random ids."""
        if self._mapping is None:
            payloads, headers, times = binary_column(batch, "payload"), self._headers(batch), self._times(batch)
        else:
            payloads, headers, times = self._mapped(batch)
        size = pc.fill_null(pc.binary_length(payloads), 0)
        self._refuse(pc.equal(size, 0), "the payload is null or empty", "empty_value")
        limit = MAX_PAYLOAD_BYTES["iggy"]
        self._refuse(pc.greater(size, limit), f"the payload has more than {limit} bytes", "too_large")
        return pa.record_batch([self._ids(batch), times, headers, payloads], MessageFields._fields)

    def _mapped(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of payloads, headers and times for Kafka records."""
        parts = []
        for first in range(0, len(batch), BATCH_ROWS):  # in slices, to limit the number of Python objects
            rows = batch.slice(first, BATCH_ROWS)
            records = map_rows(rows, lossless=self._mapping == "kafka-gateway-lossless", before=self.rows + first)
            columns = [
                [record.payload for record in records],
                [record.headers for record in records],
                [record.origin_timestamp for record in records],
            ]
            parts.append([pa.array(values, type) for values, type in zip(columns, _MAPPED_TYPES, strict=True)])
        if not parts:
            return [pa.array([], type) for type in _MAPPED_TYPES]
        return [pa.concat_arrays(column) for column in zip(*parts, strict=True)]

    def _ids(self, batch: pa.RecordBatch) -> pa.Array:
        if "id" not in batch.schema.names:
            return pa.nulls(len(batch), pa.binary())
        ids = binary_column(batch, "id")
        wrong = pc.fill_null(pc.not_equal(pc.binary_length(ids), 16), False)
        self._refuse(wrong, "the id does not have 16 bytes", "wrong_size")
        return ids

    def _headers(self, batch: pa.RecordBatch) -> pa.Array:
        if "headers" not in batch.schema.names:
            return pa.repeat(pa.scalar(b"", pa.binary()), len(batch))
        try:
            return lha.encode(batch.column("headers"), "iggy", types=self._types)
        except HeaderError as error:
            raise after_rows(error, self.rows) from None

    def _times(self, batch: pa.RecordBatch) -> pa.Array:
        now = time.time_ns() // 1000
        if "origin_timestamp" not in batch.schema.names:
            return pa.repeat(pa.scalar(now, pa.int64()), len(batch))
        times = self._exact(batch, "origin_timestamp", pa.timestamp("us", "UTC")).cast(pa.int64())
        self._refuse(pc.fill_null(pc.less(times, 0), False), "the origin timestamp is before 1970", "out_of_range")
        return pc.fill_null(times, now)

    def _exact(self, batch: pa.RecordBatch, name: str, type: pa.DataType) -> pa.Array:
        return exact_column(batch, name, type, self.rows, "iggy-batch")

    def _refuse(self, wrong: pa.BooleanArray, message: str, code: str) -> None:
        """Raise EncodeError for the first row where ``wrong`` is true."""
        row = pc.index(wrong, pa.scalar(True)).as_py()
        if row >= 0:
            raise EncodeError(message, format="iggy-batch", code=code, row=self.rows + row)

    def _by_partition(
        self, batch: pa.RecordBatch, messages: pa.RecordBatch
    ) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
        """Divide messages among partitions, preserving the order within each."""
        if self._partition is None and self._key is None:
            for first in range(0, len(messages), BATCH_ROWS):
                yield next(self._next_partitions), messages.slice(first, BATCH_ROWS)
            return
        known = {partition.partition: partition for partition in self._partitions}
        if isinstance(self._partition, int):
            numbers, used = None, [self._partition]
        else:
            if self._partition is not None:
                numbers = self._exact(batch, self._partition, pa.int64())
            else:
                numbers = self._partitions_of_keys(binary_column(batch, str(self._key)))
            used = pc.unique(numbers).to_pylist()
        for number in used:
            if number not in known:
                raise ValueError(f"topic {self._topic} has no partition {number}: it has {len(known)}, counted from 0")
        for number in sorted(used):
            rows = messages if numbers is None else messages.filter(pc.equal(numbers, number))
            yield known[number], rows

    def _partitions_of_keys(self, keys: pa.Array) -> pa.Array:
        encoded = keys.dictionary_encode()
        chosen = [
            self._partitions[partition_of(key, len(self._partitions))].partition
            for key in encoded.dictionary.to_pylist()
        ]
        numbers = pa.array(chosen, pa.int64()).take(encoded.indices)
        turns = [next(self._next_partitions).partition for _ in range(numbers.null_count)]
        return pc.replace_with_mask(numbers, pc.is_null(numbers), pa.array(turns, pa.int64()))


def _yield_messages(messages: pa.RecordBatch) -> Iterator[list[MessageFields]]:
    """Yield messages as Python objects, in groups of about the size of a batch."""
    bytes_of_row = messages.nbytes // max(len(messages), 1) + 1
    step = max(1, min(BATCH_ROWS, BATCH_BYTES // bytes_of_row))
    for first in range(0, len(messages), step):
        columns = [column.to_pylist() for column in messages.slice(first, step).columns]
        columns[0] = [os.urandom(16) if id is None else id for id in columns[0]]
        yield list(map(MessageFields, *columns))
