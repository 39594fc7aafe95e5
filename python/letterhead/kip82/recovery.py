"""The end of the last file of a log, when it is opened: what a crash left there is cut, and nothing else."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import NamedTuple

from letterhead.errors import Damage, DamagedLogError, MessageLogError, TornTailWarning
from letterhead.kip82.files import replace_file
from letterhead.kip82.segment import FRAME, MAGIC_AT, Segment, Stored
from letterhead.operations import validate

__all__ = ["Tail", "check_kafka_segment", "open_tail"]


class Tail(NamedTuple):
    """How a file ends.

    Attributes
    ----------
    next_offset : int
        The offset that comes next.
    torn : Damage or None
        What a crash left of an append.
    """

    next_offset: int
    torn: Damage | None


def open_tail(segment: Segment, *, readonly: bool, cut_damaged: bool) -> Tail:
    """Find where the last file of a log ends, and cut what a crash left there, unless the log is read only.

    Damage that no crash leaves raises; with ``cut_damaged`` it is moved to a file of its own.
    """
    last = _last(segment, frames_only=True)
    if isinstance(last, Damage) or (last is not None and not segment.fits(last)):
        # Only the messages themselves say where the damage begins.
        last = _last(segment, frames_only=False)
    if last is None:
        return Tail(segment.base, None)
    if isinstance(last, Stored):
        return Tail(last.offset + 1, None)
    _refuse_record_batches(segment, last.position)
    torn = segment.torn(last)
    if readonly:
        # What is torn was never there; damage is told by reading, as damage anywhere is.
        return Tail(last.offset, last) if torn else Tail(last.offset + 1, None)
    if not torn:
        hint = "no crash leaves a file like that: readonly=True reads the rest"
        if segment.has_whole_message(last):
            raise DamagedLogError(last, f"{hint}; nothing is cut, as there is a message whose checksum holds")
        if not cut_damaged:
            raise DamagedLogError(last, f"{hint}, damaged_tail='cut' moves it away")
        with segment.path.open("rb") as file:
            file.seek(last.position)
            replace_file(segment.path.with_name(f"{segment.path.name}.damaged-{last.position}"), file.read())
    segment.drop_kafka_indexes()
    with segment.path.open("r+b") as file:
        file.truncate(last.position)
        os.fsync(file.fileno())
    warnings.warn(f"cut off at the end: {last}", TornTailWarning, stacklevel=4)
    return Tail(last.offset, last)


def check_kafka_segment(segment: Segment) -> None:
    """Refuse the first file of a directory without properties if it holds no message, so that nothing in it is cut."""
    for found in segment.read(frames_only=True):
        if isinstance(found, Stored) and segment.fits(found):
            return
        _refuse_record_batches(segment, found.position)
    if segment.size():
        raise MessageLogError(f"{segment.path.parent} is no message log: {segment.path.name} has no message in it")


def _refuse_record_batches(segment: Segment, position: int) -> None:
    """Refuse a file that Kafka 0.11 or a later release went on with: its batches are valid, but not of these formats."""
    with segment.path.open("rb") as file:
        file.seek(position)
        frame = file.read(FRAME.size)
        size = int.from_bytes(frame[8:], "big")
        data = frame + file.read(size) if size <= segment.size() - file.tell() else b""
    if data[MAGIC_AT : MAGIC_AT + 1] == b"\2" and not validate(data, "record-batch"):
        raise MessageLogError(
            f"{segment.path} holds record batches of Kafka 0.11 or later from byte {position} on, and no messages of "
            "the formats of this log: read it with letterhead.read.segments"
        )


def _last(segment: Segment, *, frames_only: bool) -> Stored | Damage | None:
    last = None
    with contextlib.suppress(FileNotFoundError):  # reading only, there may be none yet
        for found in segment.read(frames_only=frames_only):
            last = found
    return last
