"""In-memory key-value stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.state.base import KeyValueWrites, ValueFormat
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import KeyValueReads, StoreScan
from letterhead.state.storage.keys import increment

__all__ = ["InMemoryKeyValueStore"]


class InMemoryKeyValueStore(InMemoryStore, KeyValueReads[bytes, bytes], KeyValueWrites):
    """In-memory key-value store.

    An iterator visits the keys that existed when it was created, and skips rows that have been deleted in the meantime.

    Parameters
    ----------
    name : str
        Name of the store.
    format : {"plain", "timestamped", "headers"}, default "headers"
        Format of the values.

    Examples
    --------
    >>> store = InMemoryKeyValueStore("latest")
    >>> store.open()
    >>> store.put(b"k", b"\\0" + bytes(8) + b"v")
    >>> store.get(b"k"), store.get(b"other")
    (b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00v', None)
    """

    def __init__(self, name: str, *, format: ValueFormat = "headers") -> None:
        super().__init__(name, format)
        self._rows: SortedMap[bytes, bytes] = SortedMap()

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it."""
        self._check_open()
        self._rows.put(key, value)
        self._update_position()

    def delete(self, key: bytes) -> bytes | None:
        """Delete a row, and return its value. As in Kafka Streams, the position is not updated."""
        self._check_open()
        return self._rows.remove(key)

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""
        self._check_open()
        return self._rows.get(key)

    def scan(self, query: StoreScan) -> StoreIterator[bytes, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        PrefixError
            If a prefix has no upper bound, because it is empty or all ``ff``.
        """
        first, last = query.key_from, query.key_to
        if query.prefix is not None:
            first, last = query.prefix, increment(query.prefix)
        self._check_open()
        keys = self._rows.between(first, last)
        if query.prefix is not None and keys and keys[-1] == last:
            keys.pop()
        if query.backward:
            keys.reverse()
        return self._iterate(self._read(keys))

    def approximate_num_entries(self) -> int:
        """Return the number of rows."""
        self._check_open()
        return len(self._rows)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write the records of a changelog."""
        self._check_open()
        for record in records:
            self._rows.put(record.key, record.value)

    def _read(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for key in keys:
            value = self._rows.get(key)
            if value is not None:
                yield key, value

    def _clear(self) -> None:
        self._rows.clear()
