"""Run a topology in a test: pipe records in, read records out, inspect stores, and control time."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

from letterhead._clock import now_ms
from letterhead._context_managers import Closing
from letterhead.errors import TopologyError
from letterhead.headers import Headers
from letterhead.state.context import ChangelogList, StoreContext, changelog_topic
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.cache import RecordCache
from letterhead.state.layers.conversion import KeyValueFacade, SessionFacade, WindowFacade
from letterhead.state.layers.typed import (
    KeyValueStore,
    ReadOnlySessionStoreWithHeaders,
    SessionStore,
    SessionStoreWithHeaders,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    VersionedKeyValueStore,
    VersionedKeyValueStoreWithHeaders,
    WindowStore,
)
from letterhead.state.processor import Record, RecordContext
from letterhead.state.serdes import Serde, serialize
from letterhead.state.storage.temporary import TemporaryDirectory
from letterhead.state.task import Task
from letterhead.state.topology import Topology, source_of

__all__ = ["InputTopic", "OutputTopic", "TopologyTestDriver"]

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")


class TopologyTestDriver(Closing):
    """Test driver that runs a topology on one partition, without a cluster.

    Each record is processed by the whole topology, followed by a commit. Changelogs can be read as output topics named
    ``<application>-<store>-changelog``.

    The methods ``get_..._store`` return a store by name, or ``None`` if it has another type. They raise
    :class:`TopologyError` if no store has the name. Writes to a returned store are logged with timestamp 0, without a topic
    and headers.

    Parameters
    ----------
    topology : Topology
        The topology.
    application_id : str, default "test"
        Name of the application.
    state_directory : path, optional
        Parent directory for store files, ``<state_directory>/<application>/0_0``; by default a temporary directory.
    wall_clock_time : int, optional
        The initial wall-clock time in milliseconds since 1970; by default the current time. It advances only on request.
    cache_max_bytes : int, default 10 MiB
        Maximum size of the cache.
    consistency_vectors : bool, default False
        Whether to add the position of the store to every record of a changelog.
    key_serde, value_serde : Serde, optional
        Default serdes; :class:`BytesSerde` if not given.

    Examples
    --------
    >>> from letterhead.state import Processor, Stores, StringSerde, Topology, TopologyTestDriver, ValueTimestampHeaders
    >>> class Latest(Processor):
    ...     def init(self, context):
    ...         super().init(context)
    ...         self.latest = context.get_state_store("latest")
    ...
    ...     def process(self, record):
    ...         before = ValueTimestampHeaders.get_value_or_null(self.latest.get(record.key))
    ...         self.latest.put(record.key, ValueTimestampHeaders.make(record.value, record.timestamp, record.headers))
    ...         self.context.forward(record.with_value(f"{before} -> {record.value}"))
    >>> text = StringSerde()
    >>> builder = Stores.timestamped_key_value_store_with_headers_builder(
    ...     Stores.in_memory_key_value_store("latest"), text, text
    ... )
    >>> topology = Topology().add_source("source", "in").add_processor("latest", Latest, "source")
    >>> topology = topology.add_state_store(builder, "latest").add_sink("sink", "out", "latest")
    >>> with TopologyTestDriver(topology, key_serde=text, value_serde=text) as driver:
    ...     driver.create_input_topic("in").pipe_input("k", "a", 5, {"tenant": b"acme"})
    ...     driver.create_input_topic("in").pipe_input("k", "b", 6)
    ...     driver.create_output_topic("out").read_values(), driver.create_output_topic("out").is_empty()
    ...     driver.get_timestamped_key_value_store_with_headers("latest").get("k")
    (['None -> a', 'a -> b'], True)
    ValueTimestampHeaders(value='b', timestamp=6, headers=Headers([]))
    """

    def __init__(
        self,
        topology: Topology,
        *,
        application_id: str = "test",
        state_directory: str | Path | None = None,
        wall_clock_time: int | None = None,
        cache_max_bytes: int = 10 << 20,
        consistency_vectors: bool = False,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> None:
        self.topology = topology
        self.application_id = application_id
        self._temporary = TemporaryDirectory("driver") if state_directory is None else None
        self.state_directory = Path(state_directory or (self._temporary.path if self._temporary else ""))
        self.task_directory = self.state_directory / application_id / "0_0"
        self.produced = ChangelogList()
        self._time = now_ms() if wall_clock_time is None else wall_clock_time
        self._offsets: dict[str, int] = {}
        self._waiting: deque[tuple[str, ChangelogRecord]] = deque()
        self._context = StoreContext(
            application_id,
            "0_0",
            changelog=self.produced,
            cache=RecordCache(cache_max_bytes),
            consistency_vectors=consistency_vectors,
            key_serde=key_serde,
            value_serde=value_serde,
        )
        self._task = Task(
            topology, self._context, directory=self.task_directory, emit=self._emit, now=lambda: self._time
        )
        try:
            self._task.open()
        except BaseException:
            self._remove_temporary()
            raise
        self._open = True

    # Records.

    def create_input_topic(
        self,
        topic: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        start_timestamp: int | None = None,
        auto_advance_ms: int = 0,
    ) -> InputTopic[Any, Any]:
        """Create an object that pipes records into a topic.

        Parameters
        ----------
        topic : str
            The topic, which must have a source.
        key_serde, value_serde : Serde, optional
            Serdes of keys and values; by default the serdes of the driver.
        start_timestamp : int, optional
            Timestamp of the first record piped without a timestamp; by default the driver's wall-clock time.
        auto_advance_ms : int, default 0
            Milliseconds by which this timestamp advances with each record.
        """
        if source_of(self.topology, topic) is None:
            known = ", ".join(self.topology.source_topics()) or "none"
            raise TopologyError(f"topic {topic!r} has no source (topics: {known})")
        start = self._time if start_timestamp is None else start_timestamp
        return InputTopic(self, topic, self._serdes(key_serde, value_serde), start, auto_advance_ms)

    def create_output_topic(
        self, topic: str, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> OutputTopic[Any, Any]:
        """Create an object that reads the records written to a topic or changelog; serdes are as for input topics."""
        return OutputTopic(self, topic, self._serdes(key_serde, value_serde))

    def produced_topic_names(self) -> list[str]:
        """Return the names of topics with written records, including changelogs."""
        return self.produced.topics()

    def pipe(self, topic: str, record: ChangelogRecord) -> None:
        """Process a serialized record from a topic, and commit."""
        self._waiting.append((topic, record))
        self._process_waiting()

    def restore(self, store: str, records: Iterable[ChangelogRecord]) -> None:
        """Restore a store by name from all records of its changelog, as after a move to another machine."""
        self._store(store)
        self._task.restore(store, records)

    def take_changelog(self, store: str) -> list[ChangelogRecord]:
        """Return the changelog records of a store since the last call."""
        records = self.produced.records(changelog_topic(self.application_id, store))
        taken = list(records)
        records.clear()
        return taken

    # Time.

    @property
    def wall_clock_time(self) -> int:
        """The wall-clock time, in milliseconds since 1970."""
        return self._time

    def advance_wall_clock_time(self, ms: int) -> None:
        """Advance the wall-clock time by ``ms`` milliseconds, call the due punctuations, and commit."""
        self._time += ms
        self._task.punctuate_wall_clock()
        self._task.commit()
        self._process_waiting()

    # Stores.

    def get_timestamped_key_value_store_with_headers(
        self, name: str
    ) -> TimestampedKeyValueStoreWithHeaders[Any, Any] | None:
        """Return a key-value store with headers."""
        return self._store_of_class(name, TimestampedKeyValueStoreWithHeaders)

    def get_versioned_key_value_store_with_headers(
        self, name: str
    ) -> VersionedKeyValueStoreWithHeaders[Any, Any] | None:
        """Return a versioned store with headers."""
        return self._store_of_class(name, VersionedKeyValueStoreWithHeaders)

    def get_timestamped_window_store_with_headers(
        self, name: str
    ) -> TimestampedWindowStoreWithHeaders[Any, Any] | None:
        """Return a window store with headers."""
        return self._store_of_class(name, TimestampedWindowStoreWithHeaders)

    def get_session_store_with_headers(self, name: str) -> SessionStoreWithHeaders[Any, Any] | None:
        """Return a session store with headers."""
        return self._store_of_class(name, SessionStoreWithHeaders)

    def get_read_only_session_store_with_headers(self, name: str) -> ReadOnlySessionStoreWithHeaders[Any, Any] | None:
        """Return a read-only view of a session store with headers, for tests that must not change it."""
        store = self.get_session_store_with_headers(name)
        return None if store is None else ReadOnlySessionStoreWithHeaders(store)

    def get_key_value_store(self, name: str) -> KeyValueStore[Any, Any] | KeyValueFacade | None:
        """Return a key-value store of any format, with plain values."""
        store = self._store_of_class(name, KeyValueStore)
        return store if store is None or store._value_type is None else KeyValueFacade(store, timestamps=False)

    def get_timestamped_key_value_store(self, name: str) -> TimestampedKeyValueStore[Any, Any] | KeyValueFacade | None:
        """Return a key-value store with timestamps and with or without headers."""
        store = self._store(name)
        if isinstance(store, TimestampedKeyValueStoreWithHeaders):
            return KeyValueFacade(store, timestamps=True)
        return store if isinstance(store, TimestampedKeyValueStore) else None

    def get_versioned_key_value_store(self, name: str) -> VersionedKeyValueStore[Any, Any] | None:
        """Return a versioned store without headers."""
        return self._store_of_class(name, VersionedKeyValueStore)

    def get_window_store(self, name: str) -> WindowStore[Any, Any] | WindowFacade | None:
        """Return a window store of any format, with plain values."""
        store = self._store_of_class(name, WindowStore)
        return store if store is None or store._value_type is None else WindowFacade(store, timestamps=False)

    def get_timestamped_window_store(self, name: str) -> TimestampedWindowStore[Any, Any] | WindowFacade | None:
        """Return a window store with timestamps and with or without headers."""
        store = self._store(name)
        if isinstance(store, TimestampedWindowStoreWithHeaders):
            return WindowFacade(store, timestamps=True)
        return store if isinstance(store, TimestampedWindowStore) else None

    def get_session_store(self, name: str) -> SessionStore[Any, Any] | SessionFacade | None:
        """Return a session store of any format, with plain aggregations."""
        store = self._store_of_class(name, SessionStore)
        return SessionFacade(store) if isinstance(store, SessionStoreWithHeaders) else store

    def get_state_store(self, name: str) -> Any:
        """Return a store of a class defined by the application.

        Raises
        ------
        ValueError
            If the class belongs to this package; the message contains the method to use instead.
        """
        store = self._store(name)
        for store_class, description, accessor in _ACCESSORS:
            if isinstance(store, store_class):
                raise ValueError(f"Store {name} is a {description} and should be accessed via `{accessor}()`")
        return store

    def get_all_state_stores(self) -> dict[str, Any]:
        """Return all stores by name."""
        return dict(self._task.stores)

    def close(self, *, keep_state: bool = False) -> None:
        """Commit, close the task, and delete the files unless ``keep_state``. Closing twice has no effect."""
        if not self._open:
            return
        self._open = False
        try:
            self._task.close()
        finally:
            if not keep_state:
                shutil.rmtree(self.task_directory, ignore_errors=True)
                self._remove_temporary()

    def _store(self, name: str) -> Any:
        store = self._task.stores.get(name)
        if store is None:
            raise TopologyError(f"there is no store {name!r} (stores: {', '.join(self._task.stores) or 'none'})")
        self._context.record = RecordContext()
        return store

    def _serdes(self, key: Serde[Any] | None, value: Serde[Any] | None) -> tuple[Serde[Any], Serde[Any]]:
        return key or self._context.key_serde, value or self._context.value_serde

    def _store_of_class(self, name: str, type: type[S]) -> S | None:
        store = self._store(name)
        return store if isinstance(store, type) else None

    def _process_waiting(self) -> None:
        while self._waiting:
            topic, record = self._waiting.popleft()
            offset = self._offsets[topic] = self._offsets.get(topic, -1) + 1
            self._task.process(topic, 0, offset, record)
            self._task.commit()

    def _emit(self, topic: str, record: ChangelogRecord) -> None:
        self.produced.send(topic, 0, record)
        if source_of(self.topology, topic) is not None:
            self._waiting.append((topic, record))

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.close()


class InputTopic(Generic[K, V]):
    """Input topic of a test, like Kafka's `TestInputTopic`, created by :meth:`TopologyTestDriver.create_input_topic`."""

    def __init__(
        self,
        driver: TopologyTestDriver,
        topic: str,
        serdes: tuple[Serde[K], Serde[V]],
        start_timestamp: int,
        auto_advance_ms: int,
    ) -> None:
        self.topic = topic
        self._driver = driver
        self._serdes = serdes
        self._timestamp = start_timestamp
        self._advance = auto_advance_ms

    def pipe_input(self, key: K | None, value: V | None, timestamp: int | None = None, headers: Any = ()) -> None:
        """Process a record with copied headers.

        The timestamp is in milliseconds since 1970; by default, the next timestamp of this object is used.
        """
        if timestamp is None:
            timestamp = self._timestamp
            self._timestamp += self._advance
        headers = Headers(headers)
        raw_key = serialize(self._serdes[0], self.topic, headers, key, "key")
        raw_value = serialize(self._serdes[1], self.topic, headers, value, "value")
        self._driver.pipe(self.topic, ChangelogRecord(raw_key, raw_value, timestamp, headers))  # type: ignore[arg-type]

    def pipe_record(self, record: Record[Any, Any]) -> None:
        """Process a record."""
        self.pipe_input(record.key, record.value, record.timestamp, record.headers)

    def advance_time(self, ms: int) -> None:
        """Advance the default timestamp of records by ``ms`` milliseconds."""
        self._timestamp += ms


class OutputTopic(Generic[K, V]):
    """Output topic of a test, like Kafka's `TestOutputTopic`, created by :meth:`TopologyTestDriver.create_output_topic`."""

    def __init__(self, driver: TopologyTestDriver, topic: str, serdes: tuple[Serde[K], Serde[V]]) -> None:
        self.topic = topic
        self._records = driver.produced.records(topic)
        self._serdes = serdes

    def is_empty(self) -> bool:
        """Return whether all records have been read."""
        return not self._records

    def __len__(self) -> int:
        return len(self._records)

    def read_record(self) -> Record[K | None, V | None]:
        """Remove and return the next record; raise ``LookupError`` if there is none."""
        if not self._records:
            raise LookupError(f"topic {self.topic!r} has no other record")
        record = self._records.popleft()
        key = self._serdes[0].deserialize(self.topic, record.headers, record.key)
        value = self._serdes[1].deserialize(self.topic, record.headers, record.value)
        return Record(key, value, record.timestamp, record.headers)

    def read_value(self) -> V | None:
        """Remove the next record, and return its value."""
        return self.read_record().value

    def read_records(self) -> list[Record[K | None, V | None]]:
        """Remove and return all records."""
        return [self.read_record() for _ in range(len(self._records))]

    def read_values(self) -> list[V | None]:
        """Remove all records, and return their values."""
        return [record.value for record in self.read_records()]

    def read_key_values(self) -> dict[K | None, V | None]:
        """Remove all records, and return the last value of each key."""
        return {record.key: record.value for record in self.read_records()}


_ACCESSORS: tuple[tuple[type, str, str], ...] = (
    (TimestampedKeyValueStore, "timestamped key-value store", "get_timestamped_key_value_store"),
    (KeyValueStore, "key-value store", "get_key_value_store"),
    (VersionedKeyValueStoreWithHeaders, "versioned key-value store", "get_versioned_key_value_store_with_headers"),
    (VersionedKeyValueStore, "versioned key-value store", "get_versioned_key_value_store"),
    (TimestampedWindowStore, "timestamped window store", "get_timestamped_window_store"),
    (WindowStore, "window store", "get_window_store"),
    (SessionStore, "session store", "get_session_store"),
)
