"""Arrow stream returned by all readers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Protocol, Self

from letterhead._context_managers import Closing
from letterhead._invariants import require
from letterhead._read_once import ENDED, FAILED, ReadOnce, read_again_error

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Reader"]

_CLOSED = "is closed"
_EXPORTED = "was exported, and another library reads it"


class Progress(Protocol):
    """Progress of a reader; ``total`` is None if it is unknown."""

    @property
    def total(self) -> int | None: ...

    @property
    def done(self) -> int: ...


class RowObserver(Protocol):
    """Receiver of each batch of a reader, and of its end."""

    def note(self, batch: pa.RecordBatch, /) -> None: ...

    def end(self) -> None: ...


class Reader(Closing):
    """A stream of record batches that is read once.

    Any Arrow library accepts it (``__arrow_c_stream__``). A batch is within the limit ``arrow_batch_bytes``, unless one
    row has more. Files and connections are opened when the first batch is read, and closed after the last batch, by
    :meth:`close`, or at the end of a ``with`` block. Make another reader to read again: a second ``for``,
    :meth:`read_all` or export raises ``ValueError`` after the last batch, after an error, after :meth:`close`, and once
    another library has the stream. An iteration that was left early continues where it stopped.

    Threads that share a reader call ``next(reader, None)`` until it returns None; each batch is returned once.

    Parameters
    ----------
    schema : pyarrow.Schema
        The schema of every batch.
    batches : callable
        Returns a new generator of the batches. Closing the generator closes its files and connections.
    progress : object with total and done, optional
        Amount read, for the command line.
    """

    def __init__(
        self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], progress: Progress | None = None
    ) -> None:
        self.schema = schema
        self._progress = progress
        self._close: Callable[[], None] = lambda: None  # closes what was opened before the first batch
        self._open: Callable[[], Iterator[pa.RecordBatch]] | None = batches
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._observer: RowObserver | None = None
        self._unreadable: str | None = None  # reason why a new iteration or export raises
        self._pid = os.getpid()
        # A generator cannot be advanced, or closed, while another thread runs it.
        self._lock = threading.RLock()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._check_readable()
        return self

    def __next__(self) -> pa.RecordBatch:
        # The end is repeated, as in every iterator, so that threads can share a reader.
        self._check_readable(accepted=ENDED)
        return self._advance()

    def read_all(self) -> pa.Table:
        """Read the remaining batches.

        Returns
        -------
        pyarrow.Table
            One chunk for every batch.

        Raises
        ------
        ValueError
            If the reader was read already, failed, is closed, or was exported to another library.
        """
        import pyarrow as pa

        return pa.Table.from_batches(list(self), self.schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        # Check before and after taking the lock: in a forked process, a thread that no longer exists may hold it.
        self._check_readable()
        with self._lock:
            self._check_readable()
            batches = ReadOnce(self._exported(), "the reader")
            stream: object = pa.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(
                requested_schema
            )
            self._unreadable = _EXPORTED
        return stream

    def close(self) -> None:
        """Close the files or connections. Reading a closed reader raises ``ValueError``; closing twice has no effect."""
        # A forked child must not close its parent's files and connections.
        if os.getpid() != self._pid:
            self._unreadable = _CLOSED
            return
        with self._lock:
            self._unreadable = _CLOSED
            close = getattr(self._batches, "close", None)
            if close is not None:
                close()
            self._close()
            self._open = None  # releases the files that it refers to

    def _converted(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]) -> Self:
        """Return a reader of converted rows that shares this reader's progress and reports."""
        reader = copy(self)
        Reader.__init__(reader, schema, batches, self._progress)
        reader._close = self.close
        return reader

    def _check_readable(self, accepted: str | None = None) -> None:
        reason = self._unreadable  # read once, because another thread may change it
        if reason not in (None, accepted):
            raise read_again_error("the reader", reason)
        self._check_process()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("the reader was opened before a fork: open one in the new process")

    def _exported(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches for the library that consumes the stream."""
        while True:
            try:
                batch = self._advance()
            except StopIteration:
                return
            yield batch

    def _advance(self) -> pa.RecordBatch:
        # Checked before taking the lock, because a thread that no longer exists after a fork may hold it.
        self._check_process()
        with self._lock:
            if self._unreadable in (_CLOSED, FAILED):
                raise read_again_error("the reader", self._unreadable)
            if self._batches is None:
                self._batches = require(self._open, "the batches of an open reader")()
            try:
                batch = next(self._batches)
            except StopIteration:
                self._unreadable = self._unreadable or ENDED
                self._close()
                observer, self._observer = self._observer, None
                if observer is not None:
                    observer.end()
                raise
            except BaseException:
                self._unreadable = FAILED
                self._close()
                raise
            if self._observer is not None:
                self._observer.note(batch)
            return batch
