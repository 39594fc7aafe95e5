"""Versioned stores in RocksDB, in the directory ``rocksdb/<store>``."""

from __future__ import annotations

from pathlib import Path

from letterhead.state.rocksdb.store import OneDatabaseStore
from letterhead.state.storage.database import RocksDBOptions
from letterhead.state.storage.layouts import LAYOUTS, Layout
from letterhead.state.storage.position import Position
from letterhead.state.versioned import VersionedStore

__all__ = ["RocksDBVersionedStore"]


class RocksDBVersionedStore(OneDatabaseStore, VersionedStore):
    """A versioned store in RocksDB.

    All segments are in one database. Existing segments are found when the store is opened, so old versions can be read
    immediately; in Kafka Streams, they can be read only after the first write.

    Parameters
    ----------
    name, history_retention, segment_interval
        As in :class:`~letterhead.state.versioned.VersionedStore`.
    headers : bool, default True
        Whether values have headers. Rows without headers are converted when they are read. When they are read by key or
        written, they are also moved to the new format, which cannot be undone.
    options : RocksDBOptions, optional
        Options of the database.
    """

    def __init__(
        self,
        name: str,
        history_retention: int,
        segment_interval: int | None = None,
        *,
        headers: bool = True,
        options: RocksDBOptions | None = None,
    ) -> None:
        VersionedStore.__init__(self, name, history_retention, segment_interval, headers=headers)
        self._options = options or RocksDBOptions()

    def _read(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def _write(self, rows: list[tuple[bytes, bytes | None]]) -> None:
        self._rows.write(rows)

    def _drop(self, first: bytes, end: bytes) -> None:
        self._rows.delete_range(first, end)

    def _key_from(self, key: bytes) -> bytes | None:
        return self._rows.key_from(key)

    def _kept_position(self) -> Position:
        return Position()  # Kafka Streams stores no position for versioned stores

    def _open_files(self, directory: Path) -> None:
        super()._open_files(directory)
        self._find_segments()

    def _layout(self) -> Layout:
        return LAYOUTS["versioned", self.format]
