"""Iterators that raise if they are read a second time: :class:`ReadOnce`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Self, TypeVar

__all__ = ["ENDED", "FAILED", "ReadOnce", "read_again_error"]

T = TypeVar("T")

ENDED = "was read to its end"
FAILED = "failed, so that rows after the error are missing"


def read_again_error(stream: str, why: str) -> ValueError:
    """Return the error for reading an exhausted stream."""
    return ValueError(f"{stream} {why}: make another one to read again")


class ReadOnce(Iterator[T], Generic[T]):
    """Iterator that raises ``ValueError`` where an exhausted generator would silently return nothing.

    A new iteration after the end raises an error; after an error every call raises, because rows are missing.

    Parameters
    ----------
    items : iterator
        The items to return.
    stream : str
        Name of the stream in errors: ``the iterator of messages``.
    """

    __slots__ = ("_items", "_stream", "_why")

    def __init__(self, items: Iterator[T], stream: str) -> None:
        self._items = items
        self._stream = stream
        self._why: str | None = None

    def __iter__(self) -> Self:
        if self._why is not None:
            raise read_again_error(self._stream, self._why)
        return self

    def __next__(self) -> T:
        if self._why is FAILED:
            raise read_again_error(self._stream, FAILED)
        try:
            return next(self._items)
        except StopIteration:
            self._why = ENDED
            raise
        except BaseException:
            self._why = FAILED
            raise

    def close(self) -> None:
        """Release the resources of the iterator; later reads raise an error."""
        self._why = self._why or "is closed"
        close = getattr(self._items, "close", None)
        if close is not None:
            close()
