"""What goes between a layout and a verb: headers that were read, and headers about to be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from letterhead.reference.cursor import Cursor

Fields = dict[str, Any]
"""Fields of an envelope by name, the headers left out."""


class Entry(NamedTuple):
    """A header that was read: which one it is, and the byte where its value begins."""

    header: int
    key: str
    kind: str | None
    value: bytes | None
    at: int | None


class Outgoing(NamedTuple):
    """A header about to be written: its key as text and as bytes, and its value."""

    text: str
    key: bytes
    value: bytes | None


class Refused(Exception):
    """Something that cannot be written."""

    def __init__(self, code: str, message: str, header: int | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.header = header
        self.key = key


class Block(Protocol):
    """The bytes of all headers of one message."""

    def walk(self, cursor: Cursor) -> Iterator[Entry]:
        """Give every header up to the cursor's end."""
        ...

    def write(self, headers: list[Outgoing]) -> bytes:
        """Give the bytes of these headers."""
        ...


class Envelope(Protocol):
    """The bytes of one message: a block and the fields around it."""

    def unseal(self, cursor: Cursor) -> tuple[Fields, Cursor]:
        """Read the fields, and find the block."""
        ...

    def is_absent(self, fields: Fields) -> bool:
        """Say whether a message with these fields has no cell at all."""
        ...

    def seal(self, fields: Fields, block: bytes) -> bytes:
        """Write fields around a block."""
        ...
