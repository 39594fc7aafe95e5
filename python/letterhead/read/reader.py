"""The Arrow stream that all readers return."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from letterhead._context_managers import Closing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Reader"]


class Reader(Closing):
    """A stream of record batches that is read once.

    Any Arrow library accepts it (``__arrow_c_stream__``). Files and connections are opened when the first batch is read,
    and closed after the last batch, by :meth:`close`, or at the end of a ``with`` block. Threads that share a reader get
    each batch once.

    Parameters
    ----------
    schema : pyarrow.Schema
        The schema of every batch.
    batches : callable
        Returns a new generator of the batches. Closing the generator closes its files and connections.
    """

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self.schema = schema
        self._open = batches
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._closed = False
        self._pid = os.getpid()
        # A generator cannot be advanced, or closed, while another thread is in it.
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        # A thread that did not survive a fork may have held the lock.
        if self._closed:
            raise ValueError("the reader is closed")
        if os.getpid() != self._pid:
            raise RuntimeError("the reader was opened before a fork: open one in the new process")
        with self._lock:
            if self._closed:
                raise ValueError("the reader is closed")
            if self._batches is None:
                self._batches = self._open()
            return next(self._batches)

    def read_all(self) -> pa.Table:
        """Read the remaining batches.

        Returns
        -------
        pyarrow.Table
            One chunk for every batch.
        """
        import pyarrow as pa

        return pa.Table.from_batches(list(self), self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, iter(self)).__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Close the files or connections. A closed reader returns no batches."""
        # A forked child must not close what its parent has open.
        if os.getpid() != self._pid:
            self._closed = True
            return
        with self._lock:
            self._closed = True
            close = getattr(self._batches, "close", None)
            if close is not None:
                close()
