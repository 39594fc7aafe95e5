"""Files of a log: segments, the active segment, and the writer's lock.

This module handles the bytes and the offsets of messages. :mod:`letterhead.kip82.log` handles their content.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from letterhead._durable_files import make_directory, sync_directory
from letterhead._invariants import require
from letterhead.errors import Damage, DamagedLogError, LogClosedError, MessageLogError
from letterhead.kip82.lock import Lock
from letterhead.kip82.properties import ANYWHERE, Properties, RequestedProperties
from letterhead.kip82.recovery import check_kafka_segment, open_tail
from letterhead.kip82.segment import SegmentFile, StoredMessages, segment_name
from letterhead.kip82.versions import pack, write_message
from letterhead.message import Message

__all__ = ["Compacted", "LogFiles"]

CLEANED = ".cleaned"
"""Suffix of files of an unfinished compaction."""


class Compacted(NamedTuple):
    """Result of a compaction: numbers of messages, and the total size of the files in bytes."""

    kept: int
    removed: int
    bytes_before: int
    bytes_after: int


class LogFiles:
    """Files of a log, opened with the requested properties and the new message format version.

    A new file begins before a file would exceed ``segment_bytes``. With ``sync``, :meth:`write` flushes to disk; with
    ``move_damaged``, a damaged end is moved to a separate file. Writes hold ``guard``, and append to the last of
    ``segments``.
    """

    def __init__(
        self,
        path: Path,
        properties: RequestedProperties,
        *,
        readonly: bool,
        segment_bytes: int,
        sync: bool,
        move_damaged: bool,
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
        self._is_synced = False  # an earlier process may have been killed before flushing
        if not readonly:
            make_directory(path)
        self._lock = None if readonly else Lock(path / ".lock")
        try:
            self.properties = Properties.open(path, properties, readonly=readonly)
            self.segments = self._open_segments()
            if self.properties.compacted_to == ANYWHERE:
                check_kafka_segment(self.segments[0])
            last = self.segments[-1]
            self.next_offset, self.truncated_tail = open_tail(last, readonly=readonly, move_damaged=move_damaged)
            if self.properties.compacted_to == ANYWHERE:
                self.properties = replace(self.properties, compacted_to=self.next_offset)
            self._saved = Properties.read(path)
            self._has_kafka_indexes = not readonly
            if not readonly:
                if self._saved != self.properties:
                    self.properties.save(path)
                self._descriptor = os.open(last.path, os.O_WRONLY | os.O_APPEND)
                self._size = last.size()
        except BaseException:
            self.release()
            raise

    def state(self) -> str:
        """Return a short summary for the representation of the log."""
        state = self._unusable or ("read only" if self.readonly else "open")
        return f"{len(self.segments)} segments, {state}"

    def write(self, frames: list[bytes]) -> range:
        """Append messages or compressed sets, all or none, and return their offsets."""
        data = b"".join(frames)
        if not data:
            return range(self.next_offset, self.next_offset)
        if self._size and self._size + len(data) > self._segment_bytes:
            self._roll()
        descriptor = require(self._descriptor, "the open file")
        if os.fstat(descriptor).st_size != self._size:
            # Remove the bytes of a failed append.
            os.ftruncate(descriptor, self._size)
        if self._has_kafka_indexes:
            self.segments[-1].drop_kafka_indexes()
            self._has_kafka_indexes = False
        self._is_synced = False
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError as error:
            # Remove the partial append, so that later messages do not follow it.
            try:
                os.ftruncate(descriptor, self._size)
            except OSError:
                self._close_after_error(f"closed after a failed append ({error})")
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
        """Flush the current file to disk, and begin a new file."""
        self.flush()
        new = SegmentFile(self.path, self.next_offset, self.properties.header_format, None, gaps=False)
        descriptor = os.open(new.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        sync_directory(self.path)
        os.close(require(self._descriptor, "the open file"))
        self._descriptor, self._size = descriptor, 0
        self.segments[-1].limit = self.next_offset
        self.segments.append(new)

    def flush(self) -> None:
        """Flush everything to disk; close the log if that fails."""
        if self._is_synced:
            return
        try:
            os.fsync(require(self._descriptor, "the open file"))
        except OSError as error:
            self._close_after_error(f"closed after a failed sync ({error})")
            raise
        self._is_synced = True

    def read(self, start: int, on_error: Callable[[Damage], object] | None) -> Iterator[StoredMessages]:
        """Read all files from an offset on, up to the current end of the log."""
        with self.guard:
            self.check_open()
            end = self.next_offset
            segments = [segment for segment in self.segments if segment.limit is None or segment.limit > start]
        for segment in segments:
            expected, damaged_to = max(start, segment.base), -1
            for entry in self._read(segment, expected):
                if isinstance(entry, Damage):
                    if entry.offset >= end:
                        return  # a concurrent append, or the interrupted append at the end of the file
                    self._report(entry, on_error)
                    damaged_to = entry.end
                    continue
                if entry.offset >= end:
                    return
                expected = entry.offset + 1
                yield entry
            if segment.limit is None or segment.gaps or expected >= segment.limit:
                continue
            size = segment.size()
            if damaged_to < size:
                reason = f"the file ends, and the next one begins with offset {segment.limit}"
                self._report(Damage(str(segment.path), size, size, expected, reason, "truncated"), on_error)

    def _read(self, segment: SegmentFile, start: int) -> Iterator[StoredMessages | Damage]:
        try:
            yield from segment.read(start)
        except FileNotFoundError:
            if segment in self.segments:
                raise
            # Compaction has deleted the file during the read.

    def _report(self, damage: Damage, on_error: Callable[[Damage], object] | None) -> None:
        if self.readonly and Properties.read(self.path) != self._saved:
            raise MessageLogError(f"{self.path} was compacted since it was opened: open it again")
        if on_error is None:
            raise DamagedLogError(damage, "pass on_error= to scan to read on after it")
        on_error(damage)

    def keep(self, retain: Callable[[Message], bool]) -> Compacted:
        """Remove the messages for which ``retain`` returns false; the others keep their offsets.

        If writing fails, each file has either its old or its new content.
        """
        with self.guard:
            if self._size:
                self._roll()
            before = self._total_bytes()
            # Save the limit before removing messages, so that gaps in these files do not count as damage.
            self.properties = replace(self.properties, compacted_to=self.next_offset)
            self.properties.save(self.path)
            kept = removed = 0
            for segment in self.segments[:-1]:
                segment.gaps = True
                kept_here, removed_here = self._clean(segment, retain)
                kept, removed = kept + kept_here, removed + removed_here
            return Compacted(kept, removed, before, self._total_bytes())

    def _clean(self, segment: SegmentFile, retain: Callable[[Message], bool]) -> tuple[int, int]:
        """Rewrite a file with the retained messages, or delete it if there are none."""
        kept = removed = 0
        cleaned = segment.path.with_name(segment.path.name + CLEANED)
        with cleaned.open("wb") as file:
            for entry in segment.read():
                if isinstance(entry, Damage):
                    raise DamagedLogError(entry)
                retained = [message for message in entry.messages if retain(message)]
                kept, removed = kept + len(retained), removed + len(entry.messages) - len(retained)
                if len(retained) == len(entry.messages):
                    file.write(entry.data)
                elif retained:
                    # Compress the remaining messages of a compressed set again, as Kafka's cleaner does.
                    header_format = self.properties.header_format
                    data = b"".join(write_message(message._replace(crc=None), header_format) for message in retained)
                    file.write(pack(data, header_format, entry.attributes))
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

    def _total_bytes(self) -> int:
        return sum(segment.size() for segment in self.segments)

    def close(self) -> None:
        """Flush to disk, and release all files."""
        with self.guard:
            if self._unusable is None and not self.readonly and self._process == os.getpid():
                self.flush()
            self.release()
            self._unusable = self._unusable or "closed"

    def check_open(self, *, writing: bool = False) -> None:
        """Raise if the log is closed or was opened in another process, or if ``writing`` to a read-only log."""
        if self._process != os.getpid():
            raise LogClosedError(f"{self.path} was opened in another process: open it in this one")
        if self._unusable is not None:
            raise LogClosedError(f"{self.path} is {self._unusable}: open it again")
        if writing and self.readonly:
            raise LogClosedError(f"{self.path} is read only: open it with readonly=False to write")

    def _open_segments(self) -> list[SegmentFile]:
        if not self.readonly:
            for unfinished in self.path.glob(f"*.log{CLEANED}"):
                unfinished.unlink()  # left by an interrupted compaction; the original file still exists
        swap = next(self.path.glob("*.log.swap"), None)
        if swap is not None:
            raise MessageLogError(
                f"Kafka was stopped while it replaced a file by {swap}: start and stop it there again"
            )
        bases = sorted(int(path.stem) for path in self.path.glob("*.log") if path.stem.isdecimal())
        compacted_to = self.properties.compacted_to
        if bases and bases[0] > compacted_to:
            reason = f"the file is missing, and the next one begins with offset {bases[0]}"
            damage = Damage(str(self.path / segment_name(0)), 0, 0, 0, reason, "truncated")
            raise DamagedLogError(damage, "put it back, or read the other files with lh.messages")
        if not bases:
            if self.readonly:
                return [SegmentFile(self.path, 0, self.properties.header_format, None, gaps=False)]
            (self.path / segment_name(compacted_to)).touch()
            sync_directory(self.path)
            bases = [compacted_to]
        return [
            SegmentFile(self.path, base, self.properties.header_format, limit, gaps=base < compacted_to)
            for base, limit in zip_longest(bases, bases[1:])
        ]

    def _close_after_error(self, why: str) -> None:
        self._unusable = why
        self.release()

    def release(self) -> None:
        """Release all files and the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._lock is not None:
            self._lock.release()
