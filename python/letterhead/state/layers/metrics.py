"""Counters and latencies of a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Operation", "StoreMetrics"]


class Operation:
    """Number of calls of an operation, and their total and maximum latency in nanoseconds."""

    __slots__ = ("count", "max_ns", "total_ns")

    def __init__(self) -> None:
        self.count = self.total_ns = self.max_ns = 0

    def add(self, ns: int) -> None:
        """Add a call with its latency in nanoseconds."""
        self.count += 1
        self.total_ns += ns
        if ns > self.max_ns:
            self.max_ns = ns

    @property
    def average_ns(self) -> float:
        """Average latency in nanoseconds; 0.0 before the first call."""
        return self.total_ns / self.count if self.count else 0.0

    def __repr__(self) -> str:
        return f"Operation(count={self.count}, average_ns={self.average_ns:.0f}, max_ns={self.max_ns})"


class StoreMetrics(dict[str, Operation]):
    """Counters of a store by operation, with the numbers of open iterators and of unreadable rows.

    Parameters
    ----------
    store : str
        Name of the store.
    operations : tuple of str
        Names of the store's operations; ``iterator``, ``flush`` and ``restore`` are added.
    expired : callable, optional
        Returns the number of expired records, counted by the byte store.

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
        super().__init__({name: Operation() for name in (*operations, "iterator", "flush", "restore")})

    @property
    def expired_records(self) -> int:
        """Number of records dropped because they were older than the retention."""
        return self._expired()

    def as_dict(self) -> dict[str, Any]:
        """Return all counters as plain numbers."""
        counters: dict[str, Any] = {
            name: {
                "count": operation.count,
                "total_ns": operation.total_ns,
                "average_ns": operation.average_ns,
                "max_ns": operation.max_ns,
            }
            for name, operation in self.items()
        }
        return counters | {
            "open_iterators": self.open_iterators,
            "damaged_rows": self.damaged_rows,
            "expired_records": self.expired_records,
        }

    def __repr__(self) -> str:
        calls = ", ".join(f"{name}={operation.count}" for name, operation in self.items() if operation.count)
        return f"StoreMetrics({self.store!r}{', ' if calls else ''}{calls})"
