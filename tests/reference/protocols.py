"""What goes between a layout and an operation: headers and messages that were read, and those about to be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from letterhead.errors import ErrorDetail
from letterhead.results import Loss
from tests.reference.cursor import Cursor
from tests.reference.keys import Key

Fields = dict[str, Any]
"""Fields of a message by name, the headers left out."""


class Entry(NamedTuple):
    """A header that was read: which one it is, and the byte where its value begins.

    A value that has a type is its bits, most significant byte first; null has no type.
    """

    header: int
    key: Key
    type: str | None
    value: bytes | None
    at: int | None


class Outgoing(NamedTuple):
    """A header about to be written.

    Attributes
    ----------
    header : int
        Which one it was where it comes from.
    text : str
        Its key in words, for errors.
    key : bytes, int or (type, bits)
        Its key as the format has keys; text is its UTF-8.
    type : str or None
        The type of the value, where the format has types and the value is not null.
    value : bytes or None
        The bits of the value, most significant byte first, or the bytes of one without a type.
    """

    header: int
    text: str
    key: Any
    type: str | None
    value: bytes | None


class Written(NamedTuple):
    """A block that was written, how many headers are in it, and whether the message has a headers field."""

    header_count: int
    block: bytes
    has_headers_field: bool = True


class Opened(NamedTuple):
    """A message of a batch.

    Attributes
    ----------
    fields : dict
        What could be read, the headers left out.
    block : Cursor or None
        Where its headers are; ``None`` when it has no such field.
    errors : list of ErrorDetail
        What is wrong with its frame, in the order found; the errors of its block are noted behind them.
    broken : bool
        It could not be read, and has neither fields nor headers.
    """

    fields: Fields
    block: Cursor | None
    details: list[ErrorDetail]
    broken: bool = False


Lose = Callable[[Loss], None]
"""Where a loss is noted."""


class Refused(Exception):
    """Something that cannot be written."""

    def __init__(self, code: str, message: str, header: int | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.header = header
        self.key = key


class HeadersFormat(Protocol):
    """The bytes of all headers of one message."""

    def read(self, cursor: Cursor) -> Iterator[Entry]:
        """Return every header up to the cursor's end; note soft errors, raise the hard one."""
        ...

    def write(self, headers: list[Outgoing]) -> bytes:
        """Return the bytes of these headers."""
        ...


class MessageFormat(Protocol):
    """The bytes of one message: a block and the fields around it."""

    def read(self, cursor: Cursor) -> tuple[Fields, Cursor | None]:
        """Read the fields, and find the block; there is none where the message has no headers field."""
        ...

    def write(self, fields: Fields, written: Written, lose: Lose) -> bytes | None:
        """Write fields around a block; ``None`` where a message with these fields has no bytes."""
        ...


class BatchFormat(Protocol):
    """The bytes of many messages."""

    def messages(self, cursor: Cursor) -> Iterator[Opened]:
        """Return every message up to the cursor's end; one that hides where the next begins is the last."""
        ...
