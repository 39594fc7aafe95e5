"""Rows by key and session, in RocksDB."""

from __future__ import annotations

from letterhead.errors import UnsupportedOperationError
from letterhead.state.base import ValueFormat, check_time
from letterhead.state.interfaces import StoreIterator
from letterhead.state.reads import Scan, SessionReads
from letterhead.state.rocksdb.segmented import SegmentedStore
from letterhead.storage.database import RocksDBOptions
from letterhead.storage.keys import SessionKey, SessionKeys, session_key, session_parts
from letterhead.storage.layouts import PLAIN, SESSION_HEADERS

__all__ = ["RocksDBSessionStore"]


class RocksDBSessionStore(SegmentedStore[SessionKey], SessionReads[bytes, bytes]):
    """A session store in RocksDB.

    Parameters
    ----------
    name : str
        Name of the store.
    retention : int
        How many milliseconds of the time of its records the store keeps.
    segment_interval : int, optional
        Length of a segment in milliseconds.
    format : str, default "headers"
        What values have beside the payload: ``plain`` or ``headers``. Plain rows are converted when they are read.
    options : RocksDBOptions, optional
        How to open the databases.
    """

    _key_of = staticmethod(session_parts)

    def __init__(
        self,
        name: str,
        retention: int,
        segment_interval: int | None = None,
        *,
        format: ValueFormat = "headers",
        options: RocksDBOptions | None = None,
    ) -> None:
        if format == "timestamped":
            raise ValueError("a session store is plain or has headers: a session's times are in its key")
        layout = SESSION_HEADERS if format == "headers" else PLAIN
        super().__init__(name, retention, segment_interval, format, layout, SessionKeys, options)
        self.timestamped = False

    def put(self, key: SessionKey, value: bytes | None) -> None:
        """Write a row; ``None`` removes it. One that is too old is dropped."""
        check_time(key.start)
        self._put_stored(session_key(key.key, key.start, key.end), value)

    def remove(self, key: SessionKey) -> None:
        """Remove a row."""
        self._remove_stored(session_key(key.key, key.start, key.end))

    def fetch_session(self, key: bytes, start: int, end: int) -> bytes | None:
        """Read a row."""
        return self._get_stored(session_key(key, start, end))

    def scan(self, asked: Scan) -> StoreIterator[SessionKey, bytes]:
        """Return the rows of a scan.

        Raises
        ------
        UnsupportedOperationError
            If sessions are looked for by their end alone: stores in memory and time-ordered ones find them so.
        """
        if asked.by_time:
            raise UnsupportedOperationError("This API is not supported by this implementation of SessionStore.")
        return super().scan(asked)
