"""``letterhead.write.topic``: write a table to a Kafka topic."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._optional_dependencies import install_hint

with install_hint("writing to a topic", "letterhead[arrow,kafka]"):
    import pyarrow as pa
    import pyarrow.compute as pc

from letterhead import _native
from letterhead import arrow as lha
from letterhead._arrow_types import read_table
from letterhead._binary_columns import binary_column, exact_column
from letterhead._context_managers import Closing
from letterhead._names import unknown_name
from letterhead._table_batches import split_batches
from letterhead.errors import EncodeError, HeaderError, after_rows
from letterhead.kafka.producer import KafkaProducer, OutgoingBatch, Rejection
from letterhead.kafka.settings import Settings, SettingsLike, writer_settings
from letterhead.kafka.topic_names import check_topic_name
from letterhead.written import Appended, DeliveryError, Written

if TYPE_CHECKING:
    from letterhead.kafka.oauth import TokenProvider
    from letterhead.results import Types

__all__ = ["TopicWriter", "topic"]

COLUMNS = ("key", "value", "headers", "timestamp")

_OF_BROKER = (
    "stream", "topic", "partition", "offset", "timestamp_type", "producer_id", "producer_epoch", "sequence",
    "transactional",
)  # fmt: skip
"""Columns that readers return but a writer ignores, because brokers set them."""

_TIME = pa.timestamp("ms", "UTC")

_CHUNK_ROWS = 65_536
"""Number of rows converted to batches at a time."""

_REQUEST_BYTES = 16 << 20
"""Approximate size in bytes of a request with batches of several partitions."""


def topic(
    data: Any,
    topic: str,
    bootstrap_servers: str | Sequence[str] | None = None,
    *,
    settings: SettingsLike | None = None,
    token_provider: TokenProvider | None = None,
    partition: int | str | None = None,
    types: Types | None = None,
    timeout_ms: int | None = None,
) -> Written:
    """Append the rows of a table to a Kafka topic, as records with headers.

    Records are sent as by Java's idempotent producer: a broker stores each once, even if a request is repeated. Rows of
    one partition keep their order. If a program is killed and writes its table again, rows are repeated.

    Parameters
    ----------
    data : Arrow table, record batch or stream
        ``key`` and ``value`` (binary or string, null for none), ``headers`` and ``timestamp``, each optional. Headers are a
        list of structs as :func:`letterhead.read.topic` returns them, or as :func:`letterhead.arrow.encode` accepts them.
        Columns that a broker sets (``topic partition offset timestamp_type`` and so on) are ignored.
    topic : str
        Name of the topic, which must exist unless the brokers create topics.
    bootstrap_servers : str or sequence of str, optional
        ``host:port`` of brokers; by default ``bootstrap.servers`` of the settings.
    settings : mapping or path, optional
        Connection settings, as in :func:`letterhead.read.topic`.
        Settings of a producer, such as ``{"compression.type": "zstd"}``, are applied.
    token_provider : callable, optional
        For ``sasl.mechanism=OAUTHBEARER``: a function without arguments that returns a token. It is called in another
        thread before a token expires; a token that is not a JSON web token is renewed every four minutes.
    partition : int or str, optional
        The partition to append to, or the name of a column with the partition of each row. By default it depends on the
        key, as in Kafka's Java producer.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        Types of the written values, as in :func:`letterhead.encode`.
    timeout_ms : int, optional
        Time limit for retries of a batch; by default ``delivery.timeout.ms`` of the settings, or
        60 000.

    Returns
    -------
    Written
        The number of rows, and partition and offsets of the records.

    Raises
    ------
    DeliveryError
        If brokers did not acknowledge records; ``errors`` has the reason for each row. The other rows are written.
        ``errors`` also contains rows that may have been written, but were not acknowledged in time.
    EncodeError, ConversionError
        If a row cannot be written; the error names the row. Rows before the chunk that contains it are written.
    TypeError, ValueError
        If a column is unknown or has another type, or a setting is invalid.
    TopicNotFoundError
        If the topic does not exist. No row is written.
    PermissionError, ConnectionError, TimeoutError
        If no row is written, because the brokers reject the credentials, a certificate or a producer, no broker can be
        reached, or a broker or an identity provider does not respond in time.
    ImportError
        If kafka-python is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> table = pa.table({"key": ["k1"], "value": [b"v"], "headers": [[{"key": "tenant", "value": b"acme"}]]})
    >>> lh.write.topic(table, "orders", bootstrap_servers="127.0.0.1:9092")  # doctest: +SKIP
    Written(rows=1, batches=[Appended(partition=0, offset=0, rows=1)])
    """
    source = read_table(data)
    column = partition if isinstance(partition, str) else None
    for name in source.schema.names:
        if name not in (*COLUMNS, *_OF_BROKER, column):
            raise unknown_name("column", name, COLUMNS)
    if column is not None and column not in source.schema.names:
        raise ValueError(f"the table has no column {column!r}")
    connection = writer_settings(bootstrap_servers, settings, token_provider=token_provider, timeout_ms=timeout_ms)
    with TopicWriter(topic, connection, partition=partition if column is None else column, types=types) as writer:
        try:
            for batch in source:
                writer.add(batch)
                if not isinstance(data, pa.Table):  # the next batch of a stream may come late
                    writer.send()
        except Exception as error:
            writer.wait()  # rows before the error are still delivered
            if writer.errors:
                error.add_note(str(writer.delivery_error()))
            raise
        return Written(writer.rows, writer.flush())


class _Queued(NamedTuple):
    """Batch of one partition, and its source rows."""

    partition: int
    data: bytes | None  # None if its only row cannot be written
    rows: Sequence[int]  # source row of each record
    before: int  # number of rows before the records
    records: pa.RecordBatch
    limit: int = 0  # size limit of the batch in bytes
    reason: str = ""  # reason why the row cannot be written

    def numbers(self) -> Iterator[int]:
        """Yield the row indices in the whole table."""
        return (self.before + row for row in self.rows)


class TopicWriter(Closing):
    """Sends rows to a topic, and stores the responses of the brokers: partition and offset of each row, or its error.

    A partition has one unanswered batch at a time. While a round of batches, one for each partition, is sent in the
    background, the next rows are read.

    Parameters
    ----------
    topic : str
        Name of the topic.
    settings : Settings
        Settings of a writer.
    partition : int or str, optional
        Partition, or name of the column with the partition of each row; by default it depends on the key.
    types : Types, optional
        Types of header values, as :func:`letterhead.arrow.encode` accepts them.
    """

    def __init__(
        self, topic: str, settings: Settings, *, partition: int | str | None = None, types: Types | None = None
    ) -> None:
        check_topic_name(topic)
        self.rows = 0
        self.errors: dict[int, str] = {}
        self._unsent: set[int] = set()
        self._topic = topic
        self._partition = partition
        self._types = types
        self._settings = settings.producer
        self._batch_bytes = self._settings.batch_bytes
        self._held: list[pa.RecordBatch] = []
        self._queues: dict[int, deque[_Queued]] = {}
        self._round: list[tuple[_Queued, OutgoingBatch]] = []
        self._pending: Any = None
        self._stopped: dict[int | None, str] = {}  # by partition (None for all): the reason why nothing more is sent
        self._appended: list[Appended] = []
        self._producer = KafkaProducer(settings, topic)
        try:
            self._partitions = self._producer.open()
        except BaseException:
            self._producer.close()
            raise
        self._keyless = random.randrange(max(self._partitions, 1))

    def close(self) -> None:
        """Close the connections. Unacknowledged rows may or may not be written."""
        self._producer.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, and send the buffered rows if there are many."""
        for rows in _chunks(batch):
            self._held.append(_records(rows, self._partition, self._types, self.rows))
            self.rows += len(rows)
            if sum(map(len, self._held)) >= _CHUNK_ROWS:
                self.send()

    def send(self) -> None:
        """Send the buffered rows, without waiting for the last answers."""
        if self._held:
            records = pa.Table.from_batches(self._held).combine_chunks().to_batches()[0]
            self._held = []
            for batch in self._batches(records, self.rows - len(records)):
                self._queues.setdefault(batch.partition, deque()).append(batch)
        while self._queues:
            self._end_round()
            self._begin_round()

    def wait(self) -> None:
        """Send the buffered rows, and wait for all answers."""
        self.send()
        while self._round or self._queues:
            self._end_round()
            self._begin_round()

    def flush(self) -> list[Appended]:
        """Wait, and return the ranges appended since the last call; raise DeliveryError for rejected rows."""
        self.wait()
        if self.errors:
            raise self.delivery_error()
        appended = _joined(self._appended)
        self._appended = []
        return appended

    def delivery_error(self) -> DeliveryError:
        """Return the error for the rows that were not written; rows that were sent come first."""
        errors = sorted(self.errors.items(), key=lambda error: (error[0] in self._unsent, error[0]))
        return DeliveryError(self._topic, dict(errors))

    def _batches(
        self, records: pa.RecordBatch, before: int, *, limit: int | None = None, most_rows: int | None = None
    ) -> list[_Queued]:
        settings = self._settings
        limit = self._batch_bytes if limit is None else limit
        batches = _native.partition_batches(
            records,
            self._partitions,
            partitioner=settings.partitioner,
            keyless=self._keyless,
            codec=settings.codec,
            level=settings.level,
            batch_bytes=limit,
            batch_rows=settings.batch_rows if most_rows is None else most_rows,
            record_bytes=settings.record_bytes,
        )
        self._keyless = (self._keyless + 1) % max(self._partitions, 1)
        return [
            _Queued(
                number, data, memoryview(rows).cast("i"), before, records, limit, "" if data else self._reason(number)
            )
            for number, rows, data in batches
        ]

    def _reason(self, partition: int) -> str:
        """Return the reason why a record of a partition cannot be sent."""
        if 0 <= partition < self._partitions:
            return f"the record has more bytes than max.request.size, {self._settings.record_bytes:,}"
        return f"unknown partition: the topic has {self._partitions}"

    def _begin_round(self) -> None:
        """Send the next batch of each partition, in several rounds if there are many."""
        size = 0
        for partition in [*self._queues]:
            queue = self._queues.pop(partition)
            while queue and not self._is_sendable(queue[0]):
                queue.popleft()
            if queue and size < _REQUEST_BYTES:
                batch = queue.popleft()
                size += len(batch.data or b"")
                self._round.append((batch, OutgoingBatch(partition, batch.data or b"", len(batch.rows))))
            if queue:  # move the partition to the end of the queue
                self._queues[partition] = queue
        if self._round:
            self._pending = self._producer.begin_append([outgoing for _, outgoing in self._round])

    def _is_sendable(self, batch: _Queued) -> bool:
        """Return whether a batch can be sent; note the errors of its rows otherwise."""
        reason = self._stopped.get(None, self._stopped.get(batch.partition))
        if reason is not None:
            self.errors.update(dict.fromkeys(batch.numbers(), reason))
            self._unsent.update(batch.numbers())
        elif batch.data is None:
            self._fail(batch, batch.reason)
        return reason is None and batch.data is not None

    def _fail(self, batch: _Queued, reason: str) -> None:
        """Note that rows were not written."""
        numbers = [*batch.numbers()]
        self.errors.update(dict.fromkeys(numbers, reason))
        if self._settings.is_gapless:
            self._stopped.setdefault(None, f"not sent, because row {numbers[0]} was not written")

    def _end_round(self) -> None:
        """Wait for the answers to the batches that were sent, and note them."""
        if not self._round:
            return
        reason = ""
        try:
            self._producer.wait(self._pending)
        except Exception as error:
            reason = str(error)
        batches, self._round = self._round, []
        for batch, outgoing in batches:
            if outgoing.offset is not None:
                self._appended.append(Appended(batch.partition, outgoing.offset, len(batch.rows)))
            elif outgoing.rejection is not None:
                self._note_rejection(batch, outgoing.rejection)
            else:
                known = "; whether the record is written is not known" if outgoing.may_be_written else ""
                self._stopped[batch.partition] = reason
                self._fail(batch, reason + known)

    def _note_rejection(self, batch: _Queued, rejection: Rejection) -> None:
        """Note the errors of records, and queue the remaining records of the batch again."""
        if not rejection.of_records:
            self._stopped[batch.partition] = rejection.reason
        if not rejection.of_records or len(batch.rows) == 1:
            self._fail(batch, rejection.reason)
            return
        if rejection.too_large:  # the limit of records also applies to batches
            self._batch_bytes = max(1, min(self._batch_bytes, batch.limit // 2))
        # Bisect the batch to find rejected records that the broker does not name.
        parts: list[_Queued] = []
        for reason, group in groupby(enumerate(batch.rows), lambda pair: rejection.records.get(pair[0])):
            rows = [row for _, row in group]
            if reason is None:
                parts += self._again(batch, rows, halved=not rejection.records)
            else:
                parts += [batch._replace(data=None, rows=[row], reason=reason) for row in rows]
        self._queues.setdefault(batch.partition, deque()).extendleft(reversed(parts))

    def _again(self, batch: _Queued, rows: list[int], *, halved: bool) -> list[_Queued]:
        """Rebuild some rows of a batch as new batches to send again, in halves if ``halved``."""
        records = batch.records.take(pa.array(rows, pa.int32()))
        partitions = pa.repeat(pa.scalar(batch.partition, pa.int32()), len(rows))
        columns = {name: records.column(name) for name in records.schema.names} | {"partition": partitions}
        most_rows = (len(rows) + 1) // 2 if halved else len(rows)
        parts = self._batches(pa.RecordBatch.from_pydict(columns), batch.before, limit=batch.limit, most_rows=most_rows)
        return [part._replace(rows=[rows[row] for row in part.rows], records=batch.records) for part in parts]


def _joined(batches: Iterable[Appended]) -> list[Appended]:
    """Merge consecutive ranges of offsets."""
    runs: list[Appended] = []
    for appended in sorted(batches):
        last = runs[-1] if runs else Appended(-1, 0, 0)
        following = last.offset + last.rows if last.offset >= 0 else -1
        if last.partition == appended.partition and following == appended.offset:
            runs[-1] = last._replace(rows=last.rows + appended.rows)
        else:
            runs.append(appended)
    return runs


def _chunks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(batch), _CHUNK_ROWS):
        yield from split_batches(batch.slice(start, _CHUNK_ROWS), None)


def _records(batch: pa.RecordBatch, partition: int | str | None, types: Types | None, before: int) -> pa.RecordBatch:
    """Convert the columns of records to the types that the core writes."""
    names = batch.schema.names
    columns = {name: binary_column(batch, name) for name in COLUMNS[:2] if name in names}
    if "headers" in names:
        columns["headers"] = _headers(batch, types, before)
    columns["timestamp"] = _times(batch, before)
    if isinstance(partition, str):
        columns["partition"] = exact_column(batch, partition, pa.int32(), before, "kafka")
    elif partition is not None:
        columns["partition"] = pa.repeat(pa.scalar(partition, pa.int32()), len(batch))
    return pa.RecordBatch.from_pydict(columns)


def _headers(batch: pa.RecordBatch, types: Types | None, before: int) -> pa.Array:
    try:
        return lha.encode(batch.column("headers"), "kafka", types=types)
    except HeaderError as error:
        raise after_rows(error, before) from None


def _times(batch: pa.RecordBatch, before: int) -> pa.Array:
    now = pa.scalar(time.time_ns() // 1_000_000, pa.int64()).cast(_TIME)
    if "timestamp" not in batch.schema.names:
        return pa.repeat(now, len(batch))
    times = exact_column(batch, "timestamp", _TIME, before, "kafka")
    row = pc.index(pc.fill_null(pc.less(times.cast(pa.int64()), 0), False), pa.scalar(True)).as_py()
    if row >= 0:
        raise EncodeError(
            "the timestamp is before 1970-01-01, which producers of Kafka do not write: set it to null for the current time",
            format="kafka", code="out_of_range", row=before + row,
        )  # fmt: skip
    return pc.fill_null(times, now)
