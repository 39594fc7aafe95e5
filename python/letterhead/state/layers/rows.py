"""Convert the values of an iterator, and merge cached rows with stored rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from letterhead.errors import DamagedRowError
from letterhead.state.interfaces import StoreIterator

__all__ = ["map_values", "merge_rows"]

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


def map_values(rows: StoreIterator[K, V], store: str, function: Callable[[V], W]) -> StoreIterator[K, W]:
    """Convert each value of an iterator over a store; closing the result closes the iterator."""

    def converted() -> Iterator[tuple[K, W] | DamagedRowError]:
        for row in _with_errors(rows):
            yield row if isinstance(row, DamagedRowError) else (row[0], function(row[1]))

    return StoreIterator(converted(), store, on_close=rows.close)


def merge_rows(
    cached: Sequence[tuple[Any, K, bytes | None]],
    stored: Iterator[tuple[K, bytes]],
    order: Callable[[K], Any],
    reverse: bool,
) -> Iterator[tuple[K, bytes] | DamagedRowError]:
    """Merge cached rows (sort key, key, value) with stored rows; both are in the requested order.

    ``order`` returns the sort key of a stored key. For a key in both, yield the cached row, or nothing if its value is
    ``None``. For a row that the store cannot read, yield the error.
    """
    index, count = 0, len(cached)
    for row in _with_errors(stored):
        if isinstance(row, DamagedRowError):
            yield row
            continue
        position = order(row[0])
        while index < count and (cached[index][0] > position if reverse else cached[index][0] < position):
            if cached[index][2] is not None:
                yield cached[index][1:]  # type: ignore[misc]
            index += 1
        if index < count and cached[index][0] == position:
            continue  # skip the stored row: the cached row with the same key comes next
        yield row
    for _, key, value_or_none in cached[index:]:
        if value_or_none is not None:
            yield key, value_or_none


def _with_errors(rows: Iterator[tuple[K, V]]) -> Iterator[tuple[K, V] | DamagedRowError]:
    """Yield the rows, and the error for each row that the iterator cannot read."""
    while True:
        try:
            yield from rows
            return
        except DamagedRowError as error:
            damaged = error
        yield damaged
