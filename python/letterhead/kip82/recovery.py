"""Check the end of a log on opening, and truncate only an append that a crash interrupted."""

from __future__ import annotations

import contextlib
import os

from letterhead._durable_files import replace_file
from letterhead._warnings import warn
from letterhead.errors import Damage, DamagedLogError, MessageLogError, TruncatedTailWarning
from letterhead.kip82.segment import FRAME, MAGIC_AT, SegmentFile, StoredMessages
from letterhead.one_message import validate

__all__ = ["check_kafka_segment", "open_tail"]


def open_tail(segment: SegmentFile, *, readonly: bool, move_damaged: bool) -> tuple[int, Damage | None]:
    """Return the next offset of a log's last file, and the interrupted append at its end, or None.

    Unless the log is read-only, the interrupted append is truncated. Other damage at the end raises an error, or is moved
    to a separate file with ``move_damaged``.
    """
    last = _last(segment, frames_only=True)
    if isinstance(last, Damage) or (last is not None and not segment.fits(last)):
        # Decode the messages: only their content shows where the damage begins.
        last = _last(segment, frames_only=False)
    if last is None:
        return segment.base, None
    if isinstance(last, StoredMessages):
        return last.offset + 1, None
    _reject_record_batches(segment, last.position)
    truncated = segment.is_truncated(last)
    if readonly:
        # Ignore an interrupted append; reading reports other damage, as anywhere in the log.
        return (last.offset, last) if truncated else (last.offset + 1, None)
    if not truncated:
        hint = "no crash leaves a file like that: readonly=True reads the rest"
        if segment.has_whole_message(last):
            raise DamagedLogError(last, f"{hint}; nothing is cut, as it contains a message with a valid checksum")
        if not move_damaged:
            raise DamagedLogError(last, f"{hint}, errors='move' moves it to a file beside it")
        with segment.path.open("rb") as file:
            file.seek(last.position)
            replace_file(segment.path.with_name(f"{segment.path.name}.damaged-{last.position}"), file.read())
    segment.drop_kafka_indexes()
    with segment.path.open("r+b") as file:
        file.truncate(last.position)
        os.fsync(file.fileno())
    warn(f"cut off at the end: {last}", TruncatedTailWarning)
    return last.offset, last


def check_kafka_segment(segment: SegmentFile) -> None:
    """Raise if the first file of a directory without properties contains no message: it may not be a log."""
    for entry in segment.read(frames_only=True):
        if isinstance(entry, StoredMessages) and segment.fits(entry):
            return
        _reject_record_batches(segment, entry.position)
    if segment.size():
        raise MessageLogError(f"{segment.path.parent} is not a message log: {segment.path.name} has no message in it")


def _reject_record_batches(segment: SegmentFile, position: int) -> None:
    """Raise if a file continues with record batches of Kafka 0.11 or later: valid data in another format."""
    with segment.path.open("rb") as file:
        file.seek(position)
        frame = file.read(FRAME.size)
        size = int.from_bytes(frame[8:], "big")
        data = frame + file.read(size) if size <= segment.size() - file.tell() else b""
    if data[MAGIC_AT : MAGIC_AT + 1] == b"\2" and not validate(data, "record-batch"):
        raise MessageLogError(
            f"{segment.path} has record batches of Kafka 0.11 or later from byte {position} on, and a message log has "
            "none: read it with letterhead.read.segments"
        )


def _last(segment: SegmentFile, *, frames_only: bool) -> StoredMessages | Damage | None:
    last = None
    with contextlib.suppress(FileNotFoundError):  # a read-only log may have no file yet
        for entry in segment.read(frames_only=frames_only):
            last = entry
    return last
