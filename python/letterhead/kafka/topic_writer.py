"""``letterhead.write.topic``: write a table to a Kafka topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from letterhead._optional_dependencies import install_hint
from letterhead._shared_parameters import documented

with install_hint("writing to a topic", "'letterhead[arrow,produce]'"):
    import pyarrow as pa
    import pyarrow.compute as pc
    from confluent_kafka import KafkaException

    from letterhead.kafka.producer import ConnectionErrors, close_producer, open_producer

from letterhead import arrow as lha
from letterhead._arrow_types import read_table
from letterhead._binary_columns import binary_column, exact_column
from letterhead._names import unknown_name
from letterhead._signals import DeferredSignals
from letterhead.errors import EncodeError, HeaderError, after_rows
from letterhead.kafka.settings import SettingsLike, writer_settings
from letterhead.written import Appended, DeliveryError, Written

if TYPE_CHECKING:
    from letterhead.kafka.oauth import TokenProvider
    from letterhead.results import Types

__all__ = ["topic"]

COLUMNS = ("key", "value", "headers", "timestamp")

_OF_BROKER = (
    "stream", "topic", "partition", "offset", "timestamp_type", "producer_id", "producer_epoch", "sequence",
    "transactional",
)  # fmt: skip
"""Columns that a reader returns and a broker sets: they are not written."""

_POLL = 0.1


@documented
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

    Records are sent by confluent-kafka with ``enable.idempotence``, so that a broker stores each once although a request
    is repeated. Rows of one partition keep their order. A program that is killed and writes its table again repeats rows.

    Parameters
    ----------
    data : Arrow table, record batch or stream
        ``key`` and ``value`` (binary or string, null for none), ``headers`` and ``timestamp``, each optional. Headers are a
        list of structs as :func:`letterhead.read.topic` returns them, or as :func:`letterhead.arrow.encode` accepts them.
        Columns that a broker sets (``topic partition offset timestamp_type`` and so on) are ignored.
    topic : str
        Name of the topic, which must exist unless the brokers create topics.
    {bootstrap_servers} {settings}
        Settings of a producer, such as ``{"compression.type": "zstd"}``, are applied.
    {token_provider}
    partition : int or str, optional
        The partition to append to, or the name of a column with the partition of each row. By default the key chooses it,
        as in Kafka's Java producer.
    {types}
    timeout_ms : int, optional
        How long to retry a record before it is an error; by default ``delivery.timeout.ms`` of the settings, or 60 000.

    Returns
    -------
    Written
        The number of rows, and partition and offsets of the records.

    Raises
    ------
    DeliveryError
        If brokers did not acknowledge records; ``errors`` has the reason for each row. The other rows are written.
    EncodeError, ConversionError
        If a row cannot be written; it names the row. Rows before its chunk of a stream are written.
    TypeError, ValueError
        If a column is unknown or has another type, or a setting is invalid.
    PermissionError, ConnectionError, TimeoutError
        If no row was written, because the brokers reject the login or a certificate, no broker can be reached, or an
        identity provider sends no token.
    ImportError
        If confluent-kafka is not installed.

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
    connection_errors = ConnectionErrors(connection)
    producer = open_producer(connection, error_cb=connection_errors)
    sender = _Sender(producer, topic, partition, types, connection_errors)
    try:
        for batch in source:
            sender.send(batch)
        sender.flush()
    except Exception as error:
        # Rows sent before the error are still delivered.
        with DeferredSignals() as signals:
            while len(producer):  # every record is acknowledged or times out
                sender.poll(_POLL)
                signals.check()
        if sender.errors:
            error.add_note(str(sender.delivery_error()))
        raise
    finally:
        close_producer(producer)
    if sender.errors:
        raise sender.delivery_error()
    return Written(sender.rows, sender.batches())


class _Sender:
    """Sends rows to a topic, and keeps the answers of brokers: the partition and offset of each row, or its error."""

    def __init__(
        self,
        producer: Any,
        topic: str,
        partition: int | str | None,
        types: Types | None,
        connection_errors: ConnectionErrors,
    ) -> None:
        self.rows = 0
        self.errors: dict[int, str] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._types = types
        self._connection_errors = connection_errors

    def send(self, batch: pa.RecordBatch) -> None:
        """Send the rows of a batch; the answers come later."""
        names = batch.schema.names
        nothing = [None] * len(batch)
        keys, values = (binary_column(batch, name).to_pylist() if name in names else nothing for name in COLUMNS[:2])
        if isinstance(self._partition, str):
            partitions = exact_column(batch, self._partition, pa.int32(), self.rows, "kafka").to_pylist()
        else:
            partitions = [self._partition] * len(batch)
        parts = (keys, values, _headers(batch, self._types, self.rows), _times(batch, self.rows), partitions)
        with DeferredSignals() as signals:
            for row, (key, value, headers, time, partition) in enumerate(zip(*parts, strict=True), self.rows):
                options: dict[str, Any] = {"key": key, "value": value, "on_delivery": self._callback(row)}
                if headers:
                    options["headers"] = [(header["key"], header["value"]) for header in headers]
                if time is not None:
                    options["timestamp"] = time
                if partition is not None:
                    options["partition"] = partition
                self._produce(row, options, signals)
        self.rows += len(batch)

    def flush(self) -> None:
        """Wait for the answers to all rows."""
        with DeferredSignals() as signals:
            # `flush` of a producer that has failed raises SystemError.
            while len(self._producer):
                self.poll(_POLL)
                signals.check()
                self._check()

    def poll(self, seconds: float) -> None:
        """Wait for an answer. A producer that has failed raises its error first, and then answers for each row."""
        try:
            self._producer.poll(seconds)
        except KafkaException as error:
            if not error.args[0].fatal():
                raise

    def delivery_error(self) -> DeliveryError:
        """Return the error for the rows that were not written."""
        return DeliveryError(self._topic, dict(sorted(self.errors.items())))

    def batches(self) -> list[Appended]:
        """Return runs of offsets that follow one another."""
        runs: list[Appended] = []
        for partition, offset in sorted(self._places.values()):
            last = runs[-1] if runs else Appended(-1, 0, 0)
            following = last.offset + last.rows if last.offset >= 0 else -1
            if (last.partition, following) == (partition, offset):
                runs[-1] = last._replace(rows=last.rows + 1)
            else:
                runs.append(Appended(partition, offset, 1))
        return runs

    def _produce(self, row: int, options: dict[str, Any], signals: DeferredSignals) -> None:
        while True:
            signals.check()
            try:
                self._producer.produce(self._topic, **options)
                break
            except BufferError:  # the queue is full
                self.poll(_POLL)
                self._check()
            except KafkaException as error:
                self.errors[row] = error.args[0].str()
                break
        self.poll(0)

    def _check(self) -> None:
        self._connection_errors.check(self._producer, delivered=bool(self._places))

    def _callback(self, row: int) -> Callable[[Any, Any], None]:
        """Return the function that is called with the answer for a row."""

        def answered(error: Any, message: Any) -> None:
            if error is not None:
                self.errors[row] = error.str()
            else:
                offset = message.offset()
                self._places[row] = (message.partition(), -1 if offset is None else max(offset, -1))

        return answered


def _headers(batch: pa.RecordBatch, types: Types | None, before: int) -> Sequence[Any]:
    if "headers" not in batch.schema.names:
        return [None] * len(batch)
    try:
        written = lha.encode(batch.column("headers"), "kafka", types=types)
    except HeaderError as error:
        raise after_rows(error, before) from None
    return lha.decode(written, "kafka").to_pylist()  # type: ignore[no-any-return]


def _times(batch: pa.RecordBatch, before: int) -> Sequence[int | None]:
    if "timestamp" not in batch.schema.names:
        return [None] * len(batch)
    times = exact_column(batch, "timestamp", pa.timestamp("ms", "UTC"), before, "kafka").cast(pa.int64())
    row = pc.index(pc.fill_null(pc.less_equal(times, 0), False), pa.scalar(True)).as_py()
    if row >= 0:
        raise EncodeError(
            "the timestamp is not after 1970-01-01, which librdkafka cannot send: set it to null for the current time",
            format="kafka", code="out_of_range", row=before + row,
        )  # fmt: skip
    return times.to_pylist()  # type: ignore[no-any-return]
