"""Rows by key and window, in RocksDB."""

from __future__ import annotations

from letterhead.state.base import ValueFormat
from letterhead.state.reads import WindowReads
from letterhead.state.rocksdb.key_value import LAYOUTS
from letterhead.state.rocksdb.segmented import SegmentedStore
from letterhead.storage.database import RocksDBOptions
from letterhead.storage.keys import MAX_SEQUENCE, WindowedKey, WindowKeys, window_key, window_parts, windowed
from letterhead.storage.layouts import Layout

__all__ = ["RocksDBWindowStore"]


class RocksDBWindowStore(SegmentedStore[WindowedKey], WindowReads[bytes, bytes]):
    """A window store in RocksDB.

    Parameters
    ----------
    name : str
        Name of the store.
    retention : int
        How many milliseconds of the time of its records the store keeps.
    window_size : int
        Length of a window in milliseconds.
    retain_duplicates : bool, default False
        Keep every row of a key and window. ``fetch`` then finds the one that was written last.
    segment_interval : int, optional
        Length of a segment in milliseconds.
    format : str, default "headers"
        What values have beside the payload. Rows of an older format are converted when they are read.
    options : RocksDBOptions, optional
        How to open the databases.
    """

    def __init__(
        self,
        name: str,
        retention: int,
        window_size: int,
        retain_duplicates: bool = False,
        segment_interval: int | None = None,
        *,
        format: ValueFormat = "headers",
        options: RocksDBOptions | None = None,
    ) -> None:
        super().__init__(name, retention, segment_interval, format, self._layout_of(format), WindowKeys, options)
        self.window_size = window_size
        self.retain_duplicates = retain_duplicates
        self._sequence = 0

    def put(self, key: bytes, value: bytes | None, start: int) -> None:
        """Write a row; ``None`` removes it. One that is too old is dropped."""
        if self.retain_duplicates:
            if value is None:
                self._check_open()
                return  # which of the rows would it remove?
            self._sequence = (self._sequence + 1) & MAX_SEQUENCE
        self._put_stored(window_key(key, start, self._sequence), value)

    def fetch(self, key: bytes, start: int) -> bytes | None:
        """Read a row."""
        return self._get_stored(window_key(key, start, self._sequence))

    def _key_of(self, stored: bytes) -> WindowedKey:
        key, start, _ = window_parts(stored)
        return windowed(key, start, self.window_size)

    def _layout_of(self, format: ValueFormat) -> Layout:
        return LAYOUTS.get(format, LAYOUTS["plain"])
