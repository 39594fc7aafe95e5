"""Rows by key, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.state.base import ValueFormat
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.memory.sorted_map import SortedMap
from letterhead.state.memory.store import InMemoryStore
from letterhead.state.reads import KeyValueReads, Scan
from letterhead.storage.keys import increment

__all__ = ["InMemoryKeyValueStore"]


class InMemoryKeyValueStore(InMemoryStore, KeyValueReads[bytes, bytes]):
    """A key-value store in memory.

    An iterator has the keys that were there when it was made, and reads a row when it comes to it: one that was removed
    meanwhile is left out.

    Parameters
    ----------
    name : str
        Name of the store.
    format : str, default "headers"
        What values have beside the payload.

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
        """Write a row; ``None`` removes it."""
        self._check_open()
        self._put(key, value)
        self._update_position()

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Write a row if there is none, and give the one that is there."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows."""
        for key, value in rows:
            self.put(key, value)

    def delete(self, key: bytes) -> bytes | None:
        """Remove a row, and give what it held. The position stays where it is, as in Kafka Streams."""
        self._check_open()
        return self._rows.remove(key)

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""
        self._check_open()
        return self._rows.get(key)

    def scan(self, asked: Scan) -> StoreIterator[bytes, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        PrefixError
            If a prefix is empty or all ``ff``, which has no end that could be looked for.
        """
        first, last = asked.key_from, asked.key_to
        if asked.prefix is not None:
            first, last = asked.prefix, increment(asked.prefix)
        self._check_open()
        keys = self._rows.between(first, last)
        if asked.prefix is not None and keys and keys[-1] == last:
            keys.pop()
        if asked.backward:
            keys.reverse()
        return self._iterate(self._read(keys))

    def approximate_num_entries(self) -> int:
        """Say how many rows there are."""
        self._check_open()
        return len(self._rows)

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Put back what a changelog holds."""
        self._check_open()
        for record in records:
            self._put(record.key, record.value)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._rows.remove(key)
        else:
            self._rows[key] = value

    def _read(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        for key in keys:
            value = self._rows.get(key)
            if value is not None:
                yield key, value

    def _clear(self) -> None:
        self._rows.clear()
