"""Iterators over iterators: rows turned into other rows, and the rows of a cache among those of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from letterhead.state.interfaces import StoreIterator
from letterhead.storage.errors import DamagedRowError

__all__ = ["mapped", "merged"]

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


def mapped(rows: StoreIterator[K, V], store: str, function: Callable[[V], W]) -> StoreIterator[K, W]:
    """Turn each value of an iterator into another.

    Parameters
    ----------
    rows : StoreIterator
        The rows; closed with the result.
    store : str
        Name of the store.
    function : callable
        Makes the other value.
    """

    def each() -> Iterator[tuple[K, W] | DamagedRowError]:
        for row in _with_errors(rows):
            yield row if isinstance(row, DamagedRowError) else (row[0], function(row[1]))

    return StoreIterator(each(), store, on_close=rows.close)


def merged(
    cached: Sequence[tuple[Any, K, bytes | None]],
    stored: Iterator[tuple[K, bytes]],
    order: Callable[[K], Any],
    reverse: bool,
) -> Iterator[tuple[K, bytes] | DamagedRowError]:
    """Put the rows of a cache among those of a store.

    Parameters
    ----------
    cached : sequence of (order, key, value)
        What the cache has, in the order asked for; a value of ``None`` hides the store's row.
    stored : iterator of (key, value)
        What the store has, in the same order.
    order : callable
        Gives what a key is ordered by.
    reverse : bool
        Whether the order is from last to first.

    Yields
    ------
    tuple of key and value, or DamagedRowError
        Where both have a key, the cache's row; the error in the place of a row that the store cannot read.
    """
    place, count = 0, len(cached)
    for row in _with_errors(stored):
        if isinstance(row, DamagedRowError):
            yield row
            continue
        at = order(row[0])
        while place < count and (cached[place][0] > at if reverse else cached[place][0] < at):
            if cached[place][2] is not None:
                yield cached[place][1:]  # type: ignore[misc]
            place += 1
        if place < count and cached[place][0] == at:
            continue  # the cache's row stands for this one, and comes next
        yield row
    for _, key, value_or_none in cached[place:]:
        if value_or_none is not None:
            yield key, value_or_none


def _with_errors(rows: Iterator[tuple[K, V]]) -> Iterator[tuple[K, V] | DamagedRowError]:
    """Give the error in the place of a row for which the iterator raises it."""
    while True:
        try:
            yield from rows
            return
        except DamagedRowError as error:
            damaged = error
        yield damaged
