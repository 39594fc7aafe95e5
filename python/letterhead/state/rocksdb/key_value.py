"""Rows by key, in RocksDB: ``rocksdb/<store>``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letterhead.errors import PrefixError
from letterhead.state.base import ValueFormat
from letterhead.state.interfaces import ChangelogRecord, StoreIterator
from letterhead.state.reads import KeyValueReads, Scan
from letterhead.state.rocksdb.store import OneDatabaseStore
from letterhead.storage.database import RocksDBOptions
from letterhead.storage.keys import increment
from letterhead.storage.layouts import HEADERS, PLAIN, TIMESTAMPED, Layout

__all__ = ["RocksDBKeyValueStore"]

LAYOUTS = {"plain": PLAIN, "timestamped": TIMESTAMPED, "headers": HEADERS}


class RocksDBKeyValueStore(OneDatabaseStore, KeyValueReads[bytes, bytes]):
    """A key-value store in RocksDB.

    Parameters
    ----------
    name : str
        Name of the store.
    format : str, default "headers"
        What values have beside the payload. Rows of an older format are converted when they are read, and moved when
        they are read by their key or written; there is no way back.
    options : RocksDBOptions, optional
        How to open the database.
    """

    def __init__(self, name: str, *, format: ValueFormat = "headers", options: RocksDBOptions | None = None) -> None:
        super().__init__(name, format, options)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` removes it."""
        if not self.is_open:
            self._check_open()
        self._rows.put(key, value)
        self._update_position()

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Write a row if there is none, and give the one that is there."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows, all of them or none."""
        self._check_open()
        self._rows.write(rows)
        self._update_position()

    def delete(self, key: bytes) -> bytes | None:
        """Remove a row, and give what it held."""
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

    def scan(self, asked: Scan) -> StoreIterator[bytes, bytes]:
        """Return the rows of a scan."""
        self._check_open()
        if asked.prefix is not None:
            try:
                end: bytes | None = increment(asked.prefix)
            except PrefixError:
                end = None
            return self._iterate(_before(self._rows.scan(asked.prefix, end), end))
        if asked.is_reversed:
            return self._iterate(iter(()))
        return self._iterate(self._rows.scan(asked.key_from, asked.key_to, backward=asked.backward))

    def approximate_num_entries(self) -> int:
        """Estimate how many rows there are."""
        self._check_open()
        return self._rows.estimate()

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Put back what a changelog holds, in one batch."""
        self._check_open()
        self._rows.write((record.key, record.value) for record in records)

    def _layout(self) -> Layout:
        return LAYOUTS[self.format]


def _before(rows: Iterator[tuple[bytes, bytes]], end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    for row in rows:
        if row[0] == end:
            return
        yield row
