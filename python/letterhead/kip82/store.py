"""The files of a log: the one that is written, those before it, and who may.

Of messages this knows their bytes and their offsets. Whatever stands between two offsets, and for whom, is the log's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from letterhead.errors import Damage, DamagedLogError, LogClosedError, MessageLogError
from letterhead.kip82.files import Lock, sync_directory
from letterhead.kip82.layouts import Layout
from letterhead.kip82.properties import ANYWHERE, Properties
from letterhead.kip82.recovery import check_kafka_segment, open_tail
from letterhead.kip82.segment import Segment, Stored, name_of
from letterhead.kip82.versions import pack, write_message
from letterhead.message import Message

__all__ = ["Compacted", "Store"]

CLEANED = ".cleaned"
"""Ends the name of a file that compaction has not finished."""


class Compacted(NamedTuple):
    """What a compaction did.

    Attributes
    ----------
    kept, removed : int
        Messages.
    bytes_before, bytes_after : int
        Size of all files.
    """

    kept: int
    removed: int
    bytes_before: int
    bytes_after: int


class Store:
    """The files of a log.

    Parameters
    ----------
    path : Path
        The directory.
    asked : tuple of str, str, int and int, or None for each
        The layout, topic and partition that it must have, and the message format version that it gets.
    readonly : bool
        Whether it is only read.
    segment_bytes : int
        A file that would become larger is left.
    sync : bool
        Whether the disk is made to have what is written before :meth:`write` returns.
    cut_damaged : bool
        Whether a damaged end is moved away.

    Attributes
    ----------
    properties : Properties
        What the log is.
    segments : list of Segment
        Its files; the last one is written.
    next_offset : int
        The offset that the next message gets.
    torn_tail : Damage or None
        What was cut off at the end.
    guard : RLock
        Held by who writes.
    """

    def __init__(
        self,
        path: Path,
        asked: tuple[Layout | None, str | None, int | None, int | None],
        *,
        readonly: bool,
        segment_bytes: int,
        sync: bool,
        cut_damaged: bool,
    ) -> None:
        self.path = path
        self.readonly = readonly
        self._segment_bytes = segment_bytes
        self._sync = sync
        self.guard = threading.RLock()
        self._process = os.getpid()
        self._unusable: str | None = None
        self._descriptor: int | None = None
        self._size = 0
        self._is_synced = False  # who wrote before may have been killed first
        if not readonly:
            path.mkdir(parents=True, exist_ok=True)
        self._lock = None if readonly else Lock(path / ".lock")
        try:
            self.properties = Properties.open(path, *asked, readonly=readonly)
            self.segments = self._open_segments()
            if self.properties.compacted_to == ANYWHERE:
                check_kafka_segment(self.segments[0])
            tail = open_tail(self.segments[-1], readonly=readonly, cut_damaged=cut_damaged)
            self.next_offset, self.torn_tail = tail
            if self.properties.compacted_to == ANYWHERE:
                self.properties = replace(self.properties, compacted_to=self.next_offset)
            self._saved = Properties.saved(path)
            if not readonly and self._saved != self.properties:
                self.properties.save(path)
            self._has_kafka_indexes = not readonly
            if not readonly:
                self._descriptor = os.open(self.segments[-1].path, os.O_WRONLY | os.O_APPEND)
                self._size = self.segments[-1].size()
        except BaseException:
            self.release()
            raise

    def state(self) -> str:
        """Say in short how it is."""
        state = self._unusable or ("read only" if self.readonly else "open")
        return f"{len(self.segments)} segments, {state}"

    def write(self, frames: list[bytes]) -> range:
        """Append messages or compressed sets, all or none, and return their offsets."""
        data = b"".join(frames)
        if not data:
            return range(self.next_offset, self.next_offset)
        if self._size and self._size + len(data) > self._segment_bytes:
            self._roll()
        assert self._descriptor is not None
        if os.fstat(self._descriptor).st_size != self._size:
            # Of an append that was interrupted, and never returned.
            os.ftruncate(self._descriptor, self._size)
        if self._has_kafka_indexes:
            self.segments[-1].drop_kafka_indexes()
            self._has_kafka_indexes = False
        self._is_synced = False
        try:
            _write_all(self._descriptor, data)
        except OSError as error:
            # What was written of it would be a torn tail, with more messages after it.
            try:
                os.ftruncate(self._descriptor, self._size)
            except OSError:
                self._give_up(f"closed after a failed append ({error})")
            raise
        position, first = self._size, self.next_offset
        for frame in frames:
            self.segments[-1].note(self.next_offset, position)
            position += len(frame)
            self.next_offset = int.from_bytes(frame[:8], "big") + 1
        self._size = position
        if self._sync:
            self.flush()
        return range(first, self.next_offset)

    def _roll(self) -> None:
        """Leave the last file, and begin a new one. The old one is on disk before the new one is there."""
        self.flush()
        new = Segment(self.path, self.next_offset, self.properties.layout, None, gaps=False)
        descriptor = os.open(new.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        sync_directory(self.path)
        assert self._descriptor is not None
        os.close(self._descriptor)
        self._descriptor, self._size = descriptor, 0
        self.segments[-1].limit = self.next_offset
        self.segments.append(new)

    def flush(self) -> None:
        """Flush everything to the disk; the log is closed if that fails."""
        if self._is_synced:
            return
        assert self._descriptor is not None
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._give_up(f"closed after a failed sync ({error})")
            raise
        self._is_synced = True

    def read(self, start: int, on_damage: Callable[[Damage], object] | None) -> Iterator[Stored]:
        """Go through all files, from an offset on, to where the log ends now."""
        with self.guard:
            self.check_open()
            end = self.next_offset
            segments = [segment for segment in self.segments if segment.limit is None or segment.limit > start]
        for segment in segments:
            expected, damaged_to = max(start, segment.base), -1
            for found in self._read(segment, expected):
                if isinstance(found, Damage):
                    if found.offset >= end:
                        return  # what is appended while this reads, or the tail that was torn when this was opened
                    self._tell(found, on_damage)
                    damaged_to = found.end
                    continue
                if found.offset >= end:
                    return
                expected = found.offset + 1
                yield found
            if segment.limit is None or segment.gaps or expected >= segment.limit:
                continue
            size = segment.size()
            if damaged_to < size:
                reason = f"the file ends, and the next one begins with offset {segment.limit}"
                self._tell(Damage(str(segment.path), size, size, expected, reason, "truncated"), on_damage)

    def _read(self, segment: Segment, start: int) -> Iterator[Stored | Damage]:
        try:
            yield from segment.read(start)
        except FileNotFoundError:
            if segment in self.segments:
                raise
            # Compaction found nothing to keep in it, between two steps of who reads.

    def _tell(self, damage: Damage, on_damage: Callable[[Damage], object] | None) -> None:
        if self.readonly and Properties.saved(self.path) != self._saved:
            raise MessageLogError(f"{self.path} was compacted since it was opened: open it again")
        if on_damage is None:
            raise DamagedLogError(damage, "on_damage= of scan reads on behind it")
        on_damage(damage)

    def keep(self, retain: Callable[[Message], bool]) -> Compacted:
        """Remove the messages that are not to be retained; the others keep their offsets.

        If the disk fails, each file is the old one or the new one.
        """
        with self.guard:
            if self._size:
                self._roll()
            before = self._bytes()
            # Said before a message goes: a gap in these files is then no damage.
            self.properties = replace(self.properties, compacted_to=self.next_offset)
            self.properties.save(self.path)
            kept = removed = 0
            for segment in self.segments[:-1]:
                segment.gaps = True
                stayed, went = self._clean(segment, retain)
                kept, removed = kept + stayed, removed + went
            return Compacted(kept, removed, before, self._bytes())

    def _clean(self, segment: Segment, retain: Callable[[Message], bool]) -> tuple[int, int]:
        """Replace a file by one with what is to stay; where nothing is, it goes."""
        kept = removed = 0
        cleaned = segment.path.with_name(segment.path.name + CLEANED)
        with cleaned.open("wb") as file:
            for found in segment.read():
                if isinstance(found, Damage):
                    raise DamagedLogError(found)
                stay = [message for message in found.messages if retain(message)]
                kept, removed = kept + len(stay), removed + len(found.messages) - len(stay)
                if len(stay) == len(found.messages):
                    file.write(found.data)
                elif stay:
                    # As Kafka's cleaner does: what is left of a compressed set is compressed again.
                    layout = self.properties.layout
                    data = b"".join(write_message(message._replace(crc=None), layout) for message in stay)
                    file.write(pack(data, layout, found.attributes))
            file.flush()
            os.fsync(file.fileno())
        if not removed:
            cleaned.unlink()
        elif kept:
            segment.replace(cleaned)
        else:
            segment.drop_kafka_indexes()
            segment.path.unlink()
            cleaned.unlink()
            self.segments.remove(segment)
        sync_directory(self.path)
        return kept, removed

    def _bytes(self) -> int:
        return sum(segment.size() for segment in self.segments)

    def close(self) -> None:
        """Sync what was written, and let go of all files."""
        with self.guard:
            if self._unusable is None and not self.readonly and self._process == os.getpid():
                self.flush()
            self.release()
            self._unusable = self._unusable or "closed"

    def check_open(self, *, writing: bool = False) -> None:
        """Raise if the log is closed, belongs to another process, or is to be written and read only."""
        if self._process != os.getpid():
            raise LogClosedError(f"{self.path} was opened in another process: open it in this one")
        if self._unusable is not None:
            raise LogClosedError(f"{self.path} is {self._unusable}: open it again")
        if writing and self.readonly:
            raise LogClosedError(f"{self.path} was opened to be read only")

    def _open_segments(self) -> list[Segment]:
        if not self.readonly:
            for left in self.path.glob(f"*.log{CLEANED}"):
                left.unlink()  # of a compaction that a crash ended; the file that it was to replace is there
        for left in self.path.glob("*.log.swap"):
            raise MessageLogError(
                f"Kafka was stopped while it replaced a file by {left}: start and stop it there again"
            )
        bases = sorted(int(path.stem) for path in self.path.glob("*.log") if path.stem.isdecimal())
        compacted_to = self.properties.compacted_to
        if bases and bases[0] > compacted_to:
            reason = f"the file is missing, and the next one begins with offset {bases[0]}"
            damage = Damage(str(self.path / name_of(0)), 0, 0, 0, reason, "truncated")
            raise DamagedLogError(damage, "put it back, or read the others where they are with lh.messages")
        if not bases:
            if self.readonly:
                return [Segment(self.path, 0, self.properties.layout, None, gaps=False)]
            (self.path / name_of(compacted_to)).touch()
            sync_directory(self.path)
            bases = [compacted_to]
        limits = [*bases[1:], None]
        return [
            Segment(self.path, base, self.properties.layout, limit, gaps=base < compacted_to)
            for base, limit in zip(bases, limits, strict=True)
        ]

    def _give_up(self, why: str) -> None:
        self._unusable = why
        self.release()

    def release(self) -> None:
        """Let go of all files, and of the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._lock is not None:
            self._lock.release()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
