"""State stores with headers (KIP-1271), byte-compatible with Kafka Streams, and processors that use them.

:class:`Stores` creates stores, :class:`Topology` connects them to processors, and :class:`TopologyTestDriver` runs them.
:func:`restore` rebuilds the directory of a store from its changelog. The errors of stores are in :mod:`letterhead.errors`.
``rocksdict`` is imported only when a persistent store is opened.

Examples
--------
>>> from letterhead.state import Stores, ValueTimestampHeaders
>>> supplier = Stores.in_memory_key_value_store("latest")
>>> Stores.timestamped_key_value_store_with_headers_builder(supplier).build().layers()
['TimestampedKeyValueStoreWithHeaders', 'ChangeLoggingKeyValueStore', 'InMemoryKeyValueStore']
"""

from __future__ import annotations

from letterhead.state.base import HeadersBytesStore
from letterhead.state.interfaces import PUT_NOT_VALID, VALID_TO_UNDEFINED, ChangelogRecord, StoreIterator
from letterhead.state.layers.metered import Change
from letterhead.state.layers.typed import (
    KeyValueStore,
    ReadOnlySessionStore,
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
from letterhead.state.processor import Cancellable, Processor, ProcessorContext, Record, RecordContext
from letterhead.state.restoring.diff import RowDifference, StoredRow, diff
from letterhead.state.restoring.restore import Restored, restore
from letterhead.state.serdes import (
    AggregationWithHeadersSerde,
    BoolSerde,
    BytesSerde,
    Float32Serde,
    Float64Serde,
    Int16Serde,
    Int32Serde,
    Int64Serde,
    Serde,
    StateSerdes,
    StringSerde,
    UuidSerde,
    ValueAndTimestampSerde,
    ValueTimestampHeadersSerde,
)
from letterhead.state.storage.database import RocksDBOptions
from letterhead.state.storage.keys import SessionKey, WindowedKey
from letterhead.state.stores import Builder, Stores
from letterhead.state.suppliers import Supplier
from letterhead.state.test_driver import InputTopic, OutputTopic, TopologyTestDriver
from letterhead.state.topology import Topology
from letterhead.state.values import (
    AggregationWithHeaders,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    VersionedRecord,
    VersionedRecordWithHeaders,
)

__all__ = [
    "PUT_NOT_VALID",
    "VALID_TO_UNDEFINED",
    "AggregationWithHeaders",
    "AggregationWithHeadersSerde",
    "BoolSerde",
    "Builder",
    "BytesSerde",
    "Cancellable",
    "Change",
    "ChangelogRecord",
    "Float32Serde",
    "Float64Serde",
    "HeadersBytesStore",
    "Int16Serde",
    "Int32Serde",
    "Int64Serde",
    "KeyValueStore",
    "Processor",
    "ProcessorContext",
    "ReadOnlySessionStore",
    "ReadOnlySessionStoreWithHeaders",
    "Record",
    "RecordContext",
    "Restored",
    "RocksDBOptions",
    "RowDifference",
    "Serde",
    "SessionKey",
    "SessionStore",
    "SessionStoreWithHeaders",
    "StateSerdes",
    "StoreIterator",
    "StoredRow",
    "Stores",
    "StringSerde",
    "Supplier",
    "InputTopic",
    "OutputTopic",
    "TimestampedKeyValueStore",
    "TimestampedKeyValueStoreWithHeaders",
    "TimestampedWindowStore",
    "TimestampedWindowStoreWithHeaders",
    "Topology",
    "TopologyTestDriver",
    "UuidSerde",
    "ValueAndTimestamp",
    "ValueAndTimestampSerde",
    "ValueTimestampHeaders",
    "ValueTimestampHeadersSerde",
    "VersionedKeyValueStore",
    "VersionedKeyValueStoreWithHeaders",
    "VersionedRecord",
    "VersionedRecordWithHeaders",
    "WindowStore",
    "WindowedKey",
    "diff",
    "restore",
]


def __dir__() -> list[str]:
    return __all__
