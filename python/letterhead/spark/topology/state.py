"""What a group has in Spark's state, and how it is laid out there.

Where a group is a key, everything is in one value, which is read once and written once in a micro-batch::

    state       stream_time, punctuations, stores: map of store → observed, rows: array of (segment, key, value)

Where a group is a partition, rows are in pages, by their keys::

    progress    stream_time, punctuations, stores: map of store → observed, segments
    directory   (store, segment)        → pages: array of first keys
    pages       (store, segment, page)  → rows: array of (key, value)

``key`` and ``value`` are the very bytes that a persistent store has in RocksDB. ``segment`` is the number of the segment
of a window or session store, and 0 otherwise. ``observed`` is the latest time that a store has seen, -1 at first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from letterhead.spark.topology.rows import Page, PagedRows, SomeRows
from letterhead.state.task import Progress
from letterhead.storage.errors import ProcessorStateError

__all__ = ["GroupState", "KeyState", "PartitionState", "StorePart"]


class StorePart(Protocol):
    """What a group has of one store."""

    observed: int

    def segments(self) -> list[int]:
        """Give the numbers of the segments that are there."""

    def rows(self, segment: int = 0) -> Any:
        """Give the rows of a segment, which is made if it is not there."""

    def drop(self, segment: int) -> None:
        """Remove a segment with its rows."""


class GroupState(Protocol):
    """What a group has."""

    def begin(self) -> Progress | None:
        """Read how far the group has got; ``None`` if there was nothing of it yet."""

    def part(self, store: str) -> StorePart:
        """Give what the group has of a store."""

    def save(self, progress: Progress, *, forget: bool = False) -> None:
        """Write what has changed; ``forget`` removes a group that has no rows."""


# One key. ---------------------------------------------------------------------------------------------------------------

_KEY_STATE = (
    "stream_time bigint, punctuations array<bigint>, stores map<string, struct<"
    "observed: bigint, rows: array<struct<segment: bigint, key: binary, value: binary>>>>"
)


class KeyState:
    """What a key has: one value of Spark's state.

    Parameters
    ----------
    handle : pyspark.sql.streaming.StatefulProcessorHandle
        Where the state is.
    """

    def __init__(self, handle: Any) -> None:
        self._value = handle.getValueState("state", _KEY_STATE)
        self._parts: dict[str, _KeyPart] = {}
        self._before: Progress | None = None

    def begin(self) -> Progress | None:
        """Read everything that the key has."""
        found = self._value.get()
        self._parts, self._before = {}, None
        if found is not None:
            stream_time, punctuations, stores = found
            self._parts = {name: _KeyPart(observed, rows) for name, (observed, rows) in stores.items()}
            self._before = Progress(stream_time, tuple(punctuations))
        return self._before

    def part(self, store: str) -> StorePart:
        """Give what the key has of a store."""
        part = self._parts.get(store)
        if part is None:
            part = self._parts[store] = _KeyPart()
        return part

    def save(self, progress: Progress, *, forget: bool = False) -> None:
        """Write everything that the key has, if anything has changed."""
        stores = {name: stored for name, part in self._parts.items() if (stored := part.stored())[1] or stored[0] >= 0}
        if forget and not stores:
            if self._before is not None:
                self._value.clear()
        elif progress != self._before or any(part.changed() for part in self._parts.values()):
            self._value.update((progress.stream_time, list(progress.punctuations), stores))


class _KeyPart:
    def __init__(self, observed: int = -1, rows: Iterable[tuple[int, bytes, bytes]] = ()) -> None:
        self.observed = self._observed = observed
        of: dict[int, Page] = {}
        for segment, key, value in rows:
            of.setdefault(segment, []).append((bytes(key), bytes(value)))
        self._segments = {segment: SomeRows(found) for segment, found in of.items()}
        self._dropped = False

    def segments(self) -> list[int]:
        return sorted(self._segments)

    def rows(self, segment: int = 0) -> SomeRows:
        rows = self._segments.get(segment)
        if rows is None:
            rows = self._segments[segment] = SomeRows()
        return rows

    def drop(self, segment: int) -> None:
        self._dropped |= len(self._segments.pop(segment)) > 0

    def changed(self) -> bool:
        return self._dropped or self.observed != self._observed or any(rows.changed for rows in self._segments.values())

    def stored(self) -> tuple[int, list[tuple[int, bytes, bytes]]]:
        return self.observed, [
            (segment, key, value) for segment in self.segments() for key, value in self._segments[segment].scan()
        ]


# One partition. ---------------------------------------------------------------------------------------------------------

_PROGRESS = "stream_time bigint, punctuations array<bigint>, stores map<string, struct<observed: bigint, segments: array<bigint>>>"


class PartitionState:
    """What a partition has: pages of rows, and a directory of them.

    Parameters
    ----------
    handle : pyspark.sql.streaming.StatefulProcessorHandle
        Where the state is.
    """

    def __init__(self, handle: Any) -> None:
        self._progress = handle.getValueState("progress", _PROGRESS)
        self._directory = handle.getMapState("directory", "store string, segment bigint", "pages array<binary>")
        self._pages = handle.getMapState(
            "pages", "store string, segment bigint, page binary", "rows array<struct<key: binary, value: binary>>"
        )
        self._parts: dict[str, _PartitionPart] = {}
        self._before: Any = None

    def begin(self) -> Progress | None:
        """Read how far the partition has got, and nothing else."""
        self._parts, self._before = {}, self._progress.get()
        if self._before is None:
            return None
        stream_time, punctuations, stores = self._before
        self._parts = {
            name: _PartitionPart(self._directory, self._pages, name, observed, segments)
            for name, (observed, segments) in stores.items()
        }
        return Progress(stream_time, tuple(punctuations))

    def part(self, store: str) -> StorePart:
        """Give what the partition has of a store."""
        part = self._parts.get(store)
        if part is None:
            part = self._parts[store] = _PartitionPart(self._directory, self._pages, store)
        return part

    def save(self, progress: Progress, *, forget: bool = False) -> None:
        """Write the pages that have changed, and how far the partition has got. It is never forgotten."""
        stores = {name: part.save() for name, part in self._parts.items()}
        self._progress.update((progress.stream_time, list(progress.punctuations), stores))


class _PartitionPart:
    def __init__(
        self, directory: Any, pages: Any, store: str, observed: int = -1, segments: Iterable[int] = ()
    ) -> None:
        self.observed = observed
        self._directory, self._pages, self._store = directory, pages, store
        self._numbers = set(segments)
        self._open: dict[int, tuple[list[bytes], PagedRows]] = {}
        self._dropped: dict[int, list[bytes]] = {}

    def segments(self) -> list[int]:
        return sorted(self._numbers)

    def rows(self, segment: int = 0) -> PagedRows:
        if segment not in self._open:
            self._numbers.add(segment)
            firsts = self._firsts(segment)

            def read(first: bytes) -> Page:
                found = self._pages.getValue((self._store, segment, first))
                if found is None:
                    raise ProcessorStateError(
                        f"store {self._store}: the page that begins with the key {first.hex()} is in the directory of "
                        "Spark's state and not there: the checkpoint is damaged"
                    )
                return [(bytes(key), bytes(value)) for key, value in found[0]]

            self._open[segment] = firsts, PagedRows(list(firsts), read)
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
        return self.observed, [segment for segment in self.segments() if self._kept(segment)]

    def _kept(self, segment: int) -> bool:
        return segment not in self._open or bool(self._open[segment][1].firsts)

    def _firsts(self, segment: int) -> list[bytes]:
        if segment in self._dropped or segment not in self._numbers:
            return []
        found = self._directory.getValue((self._store, segment))
        return [] if found is None else [bytes(first) for first in found[0]]
