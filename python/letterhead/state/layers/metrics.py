"""What a store counts and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Operation", "StoreMetrics"]


class Operation:
    """How often something was done, and how long it took.

    Attributes
    ----------
    count : int
        How often.
    total_ns, max_ns : int
        Nanoseconds, altogether and at most.
    """

    __slots__ = ("count", "max_ns", "total_ns")

    def __init__(self) -> None:
        self.count = self.total_ns = self.max_ns = 0

    def add(self, ns: int) -> None:
        """Count one that took so many nanoseconds."""
        self.count += 1
        self.total_ns += ns
        if ns > self.max_ns:
            self.max_ns = ns

    @property
    def average_ns(self) -> float:
        """Nanoseconds on average; 0.0 if there was none."""
        return self.total_ns / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return f"Operation(count={self.count}, average_ns={self.average_ns:.0f}, max_ns={self.max_ns})"


class StoreMetrics:
    """The counters of one store.

    Parameters
    ----------
    store : str
        Name of the store.
    operations : tuple of str
        What is counted and timed.
    expired : callable, optional
        Gives the number of expired records, which the store at the bottom counts.

    Attributes
    ----------
    open_iterators : int
        Iterators that are not closed yet.
    damaged_rows : int
        Rows that could not be read.

    Examples
    --------
    >>> from letterhead.state.layers.metrics import StoreMetrics
    >>> metrics = StoreMetrics("latest", ("get", "put"))
    >>> metrics["put"].add(700)
    >>> metrics["put"], metrics.as_dict()["get"]["count"]
    (Operation(count=1, average_ns=700, max_ns=700), 0)
    """

    def __init__(self, store: str, operations: tuple[str, ...], expired: Callable[[], int] = int) -> None:
        self.store = store
        self._expired = expired
        self.open_iterators = 0
        self.damaged_rows = 0
        self._operations = {name: Operation() for name in (*operations, "iterator", "flush", "restore")}

    @property
    def expired_records(self) -> int:
        """Records that came too late for what the store keeps, and were dropped."""
        return self._expired()

    def __getitem__(self, operation: str) -> Operation:
        return self._operations[operation]

    def __iter__(self) -> Iterator[str]:
        return iter(self._operations)

    def as_dict(self) -> dict[str, Any]:
        """Give everything as plain numbers."""
        shown: dict[str, Any] = {
            name: {"count": of.count, "total_ns": of.total_ns, "average_ns": of.average_ns, "max_ns": of.max_ns}
            for name, of in self._operations.items()
        }
        return shown | {
            "open_iterators": self.open_iterators,
            "damaged_rows": self.damaged_rows,
            "expired_records": self.expired_records,
        }

    def __repr__(self) -> str:
        done = ", ".join(f"{name}={of.count}" for name, of in self._operations.items() if of.count)
        return f"StoreMetrics({self.store!r}{', ' if done else ''}{done})"
