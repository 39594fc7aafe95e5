"""Key-value stores in RocksDB, in the directory ``rocksdb/<store>``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.errors import PrefixError
from letterhead.state.base import KeyValueWrites, ValueFormat
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.reads import KeyValueReads, StoreScan
from letterhead.state.rocksdb.store import OneDatabaseStore
from letterhead.state.storage.database import RocksDBOptions
from letterhead.state.storage.keys import increment
from letterhead.state.storage.layouts import LAYOUTS, Layout

__all__ = ["RocksDBKeyValueStore"]


class RocksDBKeyValueStore(OneDatabaseStore, KeyValueReads[bytes, bytes], KeyValueWrites):
    """A key-value store in RocksDB.

    Parameters
    ----------
    name : str
        Name of the store.
    format : {"plain", "timestamped", "headers"}, default "headers"
        Format of the values. Rows of an older format are converted when they are read. When they are read by key or
        written, they are also moved to the new format, which cannot be undone.
    options : RocksDBOptions, optional
        Options of the database.
    """

    def __init__(self, name: str, *, format: ValueFormat = "headers", options: RocksDBOptions | None = None) -> None:
        super().__init__(name, format, options)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it."""
        if not self.is_open:
            self._check_open()
        self._rows.put(key, value)
        self._update_position()

    def put_all(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows atomically."""
        self._check_open()
        self._rows.write(rows)
        self._update_position()

    def delete(self, key: bytes) -> bytes | None:
        """Delete a row, and return its value."""
        self._check_open()
        old = self._rows.peek(key)
        self._rows.put(key, None)
        self._update_position()
        return old

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""
        if not self.is_open:
            self._check_open()
        return self._rows.get(key)

    def scan(self, query: StoreScan) -> StoreIterator[bytes, bytes]:
        """Return the rows of a scan."""
        self._check_open()
        if query.prefix is not None:
            try:
                end: bytes | None = increment(query.prefix)
            except PrefixError:
                end = None
            return self._iterate(_before(self._rows.scan(query.prefix, end), end))
        if query.is_reversed:
            return self._iterate(iter(()))
        return self._iterate(self._rows.scan(query.key_from, query.key_to, backward=query.backward))

    def approximate_num_entries(self) -> int:
        """Return the estimated number of rows."""
        self._check_open()
        return self._rows.estimate()

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Write the records of a changelog, in one batch."""
        self._check_open()
        self._rows.write((record.key, record.value) for record in records)

    def _layout(self) -> Layout:
        return LAYOUTS["key-value", self.format]


def _before(rows: Iterator[tuple[bytes, bytes]], end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    for row in rows:
        if row[0] == end:
            return
        yield row
