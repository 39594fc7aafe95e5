"""State of a group in Spark's state store, and its layout: :class:`KeyState` and :class:`PartitionState`.

If a group is a key, one value contains all of its state; a micro-batch reads and writes the value once::

    state       stream_time, punctuations, stores: map of store → observed, rows: array of (segment, key, value)

If a group is a partition, rows are stored in pages, by their keys::

    progress    stream_time, punctuations, stores: map of store → observed, segments
    directory   (store, segment)        → pages: array of first keys
    pages       (store, segment, page)  → rows: array of (key, value)

``key`` and ``value`` are the bytes that a persistent store has in RocksDB. ``segment`` is the number of the segment of a
window or session store, and 0 otherwise. ``observed`` is the latest time that a store has observed, initially -1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from letterhead.errors import ProcessorStateError
from letterhead.spark.topology.rows import Page, PagedRows, SomeRows
from letterhead.state.task import TaskProgress

__all__ = ["GroupState", "KeyState", "PartitionState", "StorePart"]


class StorePart(ABC):
    """Rows of a group in one store, by segment."""

    observed: int

    @abstractmethod
    def segments(self) -> list[int]:
        """Return the numbers of the existing segments, in order."""

    @abstractmethod
    def rows(self, segment: int) -> Any:
        """Return the rows of a segment, which is created if it does not exist."""

    @abstractmethod
    def drop(self, segment: int) -> None:
        """Remove a segment with its rows."""


class GroupState(ABC):
    """State of a group: a value in Spark's state with its progress and its stores."""

    def __init__(self, handle: Any, name: str, schema: str) -> None:
        self._value = handle.getValueState(name, schema)
        self._parts: dict[str, Any] = {}
        self._before: TaskProgress | None = None

    def begin(self) -> TaskProgress | None:
        """Read the value of the group, and return its progress; ``None`` if the group is new."""
        value = self._value.get()
        self._parts, self._before = {}, None
        if value is not None:
            stream_time, punctuations, stores = value
            self._parts = {name: self._part(name, *stored) for name, stored in stores.items()}
            self._before = TaskProgress(stream_time, tuple(punctuations))
        return self._before

    def part(self, store: str) -> StorePart:
        """Return the group's rows of a store."""
        if store not in self._parts:
            self._parts[store] = self._part(store)
        part: StorePart = self._parts[store]
        return part

    @abstractmethod
    def save(self, progress: TaskProgress, *, forget: bool = False) -> None:
        """Write the changes; ``forget`` removes a key without rows."""

    @abstractmethod
    def _part(self, store: str, observed: int = -1, stored: Iterable[Any] = ()) -> StorePart: ...

    def _update(self, progress: TaskProgress, stores: dict[str, Any]) -> None:
        self._value.update((progress.stream_time, list(progress.punctuations), stores))


# State of a key -------------------------------------------------------------------------------------------------------

_KEY_STATE = (
    "stream_time bigint, punctuations array<bigint>, stores map<string, struct<"
    "observed: bigint, rows: array<struct<segment: bigint, key: binary, value: binary>>>>"
)


class KeyState(GroupState):
    """State of a key: one value, with the rows of all stores."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle, "state", _KEY_STATE)

    def save(self, progress: TaskProgress, *, forget: bool = False) -> None:
        """Write the value, if it has changed."""
        stores = {name: stored for name, part in self._parts.items() if (stored := part.stored())[1] or stored[0] >= 0}
        if forget and not stores:
            if self._before is not None:
                self._value.clear()
        elif progress != self._before or any(part.changed() for part in self._parts.values()):
            self._update(progress, stores)

    def _part(self, store: str, observed: int = -1, stored: Iterable[Any] = ()) -> StorePart:
        return _KeyPart(observed, stored)


class _KeyPart(StorePart):
    def __init__(self, observed: int, rows: Iterable[tuple[int, bytes, bytes]]) -> None:
        self.observed = self._observed = observed
        pages: dict[int, Page] = {}
        for segment, key, value in rows:
            pages.setdefault(segment, []).append((bytes(key), bytes(value)))
        self._segments = {segment: SomeRows(page) for segment, page in pages.items()}
        self._dropped = False

    def segments(self) -> list[int]:
        return sorted(self._segments)

    def rows(self, segment: int) -> SomeRows:
        if segment not in self._segments:
            self._segments[segment] = SomeRows()
        return self._segments[segment]

    def drop(self, segment: int) -> None:
        self._dropped |= len(self._segments.pop(segment)) > 0

    def changed(self) -> bool:
        return self._dropped or self.observed != self._observed or any(rows.changed for rows in self._segments.values())

    def stored(self) -> tuple[int, list[tuple[int, bytes, bytes]]]:
        return self.observed, [
            (segment, key, value) for segment in self.segments() for key, value in self._segments[segment].scan()
        ]


# State of a partition -------------------------------------------------------------------------------------------------

_PROGRESS = "stream_time bigint, punctuations array<bigint>, stores map<string, struct<observed: bigint, segments: array<bigint>>>"


class PartitionState(GroupState):
    """State of a partition: pages of rows, and a directory of them. The state is never removed."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle, "progress", _PROGRESS)
        self._directory = handle.getMapState("directory", "store string, segment bigint", "pages array<binary>")
        self._pages = handle.getMapState(
            "pages", "store string, segment bigint, page binary", "rows array<struct<key: binary, value: binary>>"
        )

    def save(self, progress: TaskProgress, *, forget: bool = False) -> None:
        """Write the changed pages and the progress."""
        self._update(progress, {name: part.save() for name, part in self._parts.items()})

    def _part(self, store: str, observed: int = -1, stored: Iterable[Any] = ()) -> StorePart:
        return _PartitionPart(self._directory, self._pages, store, observed, stored)


class _PartitionPart(StorePart):
    def __init__(self, directory: Any, pages: Any, store: str, observed: int, segments: Iterable[int]) -> None:
        self.observed = observed
        self._directory, self._pages, self._store = directory, pages, store
        self._numbers = set(segments)
        self._open: dict[int, tuple[list[bytes], PagedRows]] = {}
        self._dropped: dict[int, list[bytes]] = {}

    def segments(self) -> list[int]:
        return sorted(self._numbers)

    def rows(self, segment: int) -> PagedRows:
        if segment not in self._open:
            self._numbers.add(segment)
            firsts = self._firsts(segment)

            def read_page(first: bytes) -> Page:
                page = self._pages.getValue((self._store, segment, first))
                if page is None:
                    raise ProcessorStateError(
                        f"store {self._store}: a page of rows is listed in Spark's state, but missing: the checkpoint is "
                        "damaged"
                    )
                return [(bytes(key), bytes(value)) for key, value in page[0]]

            self._open[segment] = firsts, PagedRows(list(firsts), read_page)
        return self._open[segment][1]

    def drop(self, segment: int) -> None:
        firsts, _ = self._open.pop(segment, None) or (self._firsts(segment), None)
        self._dropped[segment] = firsts
        self._numbers.discard(segment)

    def save(self) -> tuple[int, list[int]]:
        for segment, firsts in self._dropped.items():
            for first in firsts:
                self._pages.removeKey((self._store, segment, first))
            if firsts:
                self._directory.removeKey((self._store, segment))
        for segment, (before, rows) in self._open.items():
            for first, page in rows.changes():
                if page is not None:
                    self._pages.updateValue((self._store, segment, first), (page,))
                elif first in before:
                    self._pages.removeKey((self._store, segment, first))
            if rows.firsts != before:
                if rows.firsts:
                    self._directory.updateValue((self._store, segment), (rows.firsts,))
                else:
                    self._directory.removeKey((self._store, segment))
        kept = [segment for segment in self.segments() if segment not in self._open or self._open[segment][1].firsts]
        return self.observed, kept

    def _firsts(self, segment: int) -> list[bytes]:
        if segment in self._dropped or segment not in self._numbers:
            return []
        pages = self._directory.getValue((self._store, segment))
        return [] if pages is None else [bytes(first) for first in pages[0]]
