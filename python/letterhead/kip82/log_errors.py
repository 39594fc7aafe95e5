"""What can go wrong with a log on disk."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Damage", "DamagedLogError", "LogClosedError", "LogLockedError", "MessageLogError"]


class MessageLogError(RuntimeError):
    """Something that a log could not do. Catch this to catch them all."""


class LogClosedError(MessageLogError):
    """A log was used after it was closed, after a write failed, or in another process than it was opened in."""


class LogLockedError(MessageLogError):
    """The files of a log are being written by another process, or by another object of this one."""


class Damage(NamedTuple):
    """Bytes of a segment that are no message.

    Attributes
    ----------
    file : str
        Path of the segment.
    position : int
        First of the bytes, counted from 0.
    end : int
        The byte after the last: where the next message begins, or the file ends.
    offset : int
        The offset that the message there would have, as the first of those that are missing.
    reason : str
        What is wrong, in words.
    code : str
        One of :data:`letterhead.errors.CODES`.
    """

    file: str
    position: int
    end: int
    offset: int
    reason: str
    code: str

    def __str__(self) -> str:
        where = f"bytes {self.position} to {self.end}" if self.end > self.position else f"byte {self.position}"
        return f"{self.file}: {where}: offset {self.offset}: {self.reason}"


class DamagedLogError(MessageLogError):
    """A segment holds bytes that are no message.

    Parameters
    ----------
    damage : Damage
        Which, and what is wrong with them.
    hint : str, optional
        What can be done.

    Attributes
    ----------
    damage : Damage
        As given.

    Examples
    --------
    >>> reason = "the checksum is ddb85f03 and the bytes give 3a007204"
    >>> str(DamagedLogError(Damage("orders-0/00000000000000000000.log", 68, 136, 1, reason, "bad_crc")))
    'orders-0/00000000000000000000.log: bytes 68 to 136: offset 1: the checksum is ddb85f03 and the bytes give 3a007204'
    """

    def __init__(self, damage: Damage, hint: str = "") -> None:
        super().__init__(f"{damage}: {hint}" if hint else str(damage))
        self.damage = damage
        self._hint = hint

    def __reduce__(self) -> tuple[type[DamagedLogError], tuple[Damage, str]]:
        return type(self), (self.damage, self._hint)
