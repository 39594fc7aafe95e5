"""Run a task of a topology on a worker, one group of records at a time: :class:`TopologyProcessor`."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

from letterhead._clock import now_ms
from letterhead._optional_dependencies import how_to_install
from letterhead.errors import TopologyError
from letterhead.headers import Headers
from letterhead.one_message import encode
from letterhead.spark.topology.state import GroupState, KeyState, PartitionState
from letterhead.spark.topology.stores import OneKey, SparkStore, spark_store
from letterhead.state.context import StoreContext
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.base import chain
from letterhead.state.serdes import Serde
from letterhead.state.stores import Builder
from letterhead.state.task import Task
from letterhead.state.topology import Topology
from letterhead.state.values import LazyHeaders

if TYPE_CHECKING:
    from letterhead.spark.topology.plan import TopologyPlan

__all__ = ["OUTPUT", "GroupTask", "TopologyProcessor", "check_protobuf", "sort_records"]

OUTPUT = "topic string, partition int, key binary, value binary, headers binary, timestamp bigint, changelog boolean"
"""Result columns of a worker: headers are in the format ``kafka``, timestamps in milliseconds."""

_OutputRow = Row("topic", "partition", "key", "value", "headers", "timestamp", "changelog")

# Positions of the input columns.
TOPIC, PARTITION, OFFSET, TIMESTAMP, KEY, VALUE, HEADERS = range(7)


class GroupTask:
    """Task that processes one group of records at a time, by key or by partition, with the stores of that group."""

    def __init__(
        self,
        topology: Topology,
        application_id: str,
        scope: Literal["key", "partition"],
        state: GroupState,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
    ) -> None:
        self._state = state
        self._written: list[Row] | None = None
        self._context = StoreContext(application_id, changelog=self, key_serde=key_serde, value_serde=value_serde)
        self._task = Task(
            topology,
            self._context,
            directory=None,
            emit=self._write_to_sink,
            now=now_ms,
            build=partial(_build_store, scope),
            resumed=True,
        )
        self._task.open()
        stores = [chain(store) for store in self._task.stores.values()]
        self._stores: list[SparkStore] = [layers[-1] for layers in stores]
        self._one_key = [layer for layers in stores for layer in layers if isinstance(layer, OneKey)]
        # The stream time of a key is removed with its last row, unless punctuations depend on it.
        self._forgets_empty_keys = scope == "key" and not self._task.progress().punctuations

    def run(self, key: Any, records: Iterable[tuple[Any, ...]]) -> list[Row]:
        """Process the records of a group, whose key or partition is ``key``; return the records to write, in order."""
        task, context, state = self._task, self._context, self._state
        written: list[Row] = []
        self._written = written
        task.resume(state.begin())
        for store in self._stores:
            store.attach(state.part(store.name))
        for layer in self._one_key:
            layer.key = key
        try:
            for record in sort_records(records):
                self._set_partition(record[PARTITION])
                encoded = record[HEADERS]
                headers = LazyHeaders(encoded, 0, len(encoded)) if encoded else Headers()
                try:
                    task.process(
                        record[TOPIC],
                        record[PARTITION],
                        record[OFFSET],
                        ChangelogRecord(record[KEY], record[VALUE], record[TIMESTAMP], headers),
                    )
                except Exception as error:
                    error.add_note(f"at offset {record[OFFSET]} of {record[TOPIC]}-{record[PARTITION]}")
                    raise
        finally:
            context.record = None
            self._written = None
            for store in self._stores:
                store.detach()
        state.save(task.progress(), forget=self._forgets_empty_keys)
        return written

    def close(self) -> None:
        """Close the processors."""
        self._task.close()

    def send(self, topic: str, partition: int, record: ChangelogRecord) -> None:
        """Write a record of a changelog."""
        self._write(topic, partition, record, True)

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return no offsets, because brokers assign them when records are written to a topic."""
        return {}

    def _write_to_sink(self, topic: str, record: ChangelogRecord) -> None:
        # The partition is chosen by the key when the record is written to a topic.
        self._write(topic, None, record, False)

    def _write(self, topic: str, partition: int | None, record: ChangelogRecord, changelog: bool) -> None:
        if self._written is None:
            raise TopologyError(
                f"a record for topic {topic!r} was written outside of processing: on Spark processors write while a record "
                "is processed or a punctuation called, not in init or close"
            )
        key, value, timestamp, headers = record
        self._written.append(_OutputRow(topic, partition, key, value, _encode(headers), timestamp, changelog))

    def _set_partition(self, partition: int) -> None:
        context = self._context
        if context.partition != partition or not context.task_id.endswith(f"_{partition}"):
            context.partition, context.task_id = partition, f"0_{partition}"


class TopologyProcessor(StatefulProcessor):  # type: ignore[misc]
    """Stateful processor of Spark that runs a topology."""

    def __init__(self, plan: TopologyPlan) -> None:
        self._plan = plan
        self._task: GroupTask | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        # This is checked first on a worker, because Spark would fail later without naming the missing package.
        check_protobuf()
        self.__dict__.update(state)

    def init(self, handle: Any) -> None:
        """Declare the state; processors are initialised with the first records."""
        self._state = (KeyState if self._plan.scope == "key" else PartitionState)(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Run the records of a group."""
        if self._task is None:
            plan = self._plan
            self._task = GroupTask(
                plan.topology, plan.application_id, plan.scope, self._state, plan.key_serde, plan.value_serde
            )
        return iter(self._task.run(key[0], rows))

    def close(self) -> None:
        """Close the processors."""
        if self._task is not None:
            self._task.close()


def check_protobuf() -> None:
    """Raise ``ModuleNotFoundError`` unless protobuf is installed, which Spark's workers need to access state."""
    try:
        import_module("google.protobuf.descriptor")
    except ImportError as error:
        missing = "protobuf, on the driver and on every worker"
        raise ModuleNotFoundError(how_to_install("Spark's transformWithState", missing, "letterhead[spark]")) from error


def sort_records(records: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Return records in processing order, as tuples that begin with topic, partition, offset and timestamp.

    The records of a topic's partition are in the order of their offsets. Among several partitions, the next record with
    the smallest timestamp comes first, as in Kafka Streams; equal timestamps are ordered by topic and partition.

    Examples
    --------
    >>> list(sort_records([("b", 0, 0, 5), ("a", 0, 8, 7), ("a", 0, 7, 9)]))
    [('b', 0, 0, 5), ('a', 0, 7, 9), ('a', 0, 8, 7)]
    """
    queues: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for record in records:
        queues.setdefault((record[TOPIC], record[PARTITION]), []).append(record)
    by_offset = (sorted(queues[partition], key=itemgetter(OFFSET)) for partition in sorted(queues))
    # Timestamps need not be sorted: `merge` compares only the next record of each partition.
    return heapq.merge(*by_offset, key=itemgetter(TIMESTAMP))


def _build_store(scope: str, builder: Builder) -> Any:
    def bottom(supplier: Any, format: Any) -> Any:
        store = spark_store(supplier, format)
        return OneKey(store) if scope == "key" else store

    return builder.build(bottom)


def _encode(headers: Headers) -> bytes:
    unread = headers.unread() if isinstance(headers, LazyHeaders) else None
    return (encode(headers, "kafka") or b"") if unread is None else unread
