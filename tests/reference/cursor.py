"""The one checked reader: it knows where it is in its message, and every error it finds says so.

An error is *hard* when what follows cannot be found any more: :class:`Broken` is raised. It is *soft* when reading can
go on: it is noted in ``errors``. The byte of an error is where the field that failed begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from letterhead._formatting import count_noun
from letterhead.errors import ErrorDetail
from letterhead.limits import (
    DECOMPRESSED_BYTES,
    HEADERS,
    MESSAGE_BYTES,
    OUTPUT_BYTES,
    RECORDS,
    REPORTS,
    Limits,
    how_to_raise,
)
from tests.reference import codecs, varint
from tests.reference.keys import Key, spell


class DecodeOptions(NamedTuple):
    """What a reader may be told.

    Attributes
    ----------
    lenient : bool
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool
        Refuse type codes that have no name where the format lets them pass.
    text_keys : bool
        Refuse keys that are no text where the format has typed ones.
    max_message_bytes, max_headers, max_decompressed_bytes, max_records, max_output_bytes, max_reports : int
        The most to read and to report, as :class:`letterhead.Limits` has it.
    decompressed : list of int
        Bytes that each compressed part of the value became so far.
    """

    lenient: bool = False
    strict_types: bool = False
    text_keys: bool = False
    max_message_bytes: int = MESSAGE_BYTES
    max_headers: int = HEADERS
    max_decompressed_bytes: int = DECOMPRESSED_BYTES
    max_records: int = RECORDS
    max_output_bytes: int = OUTPUT_BYTES
    max_reports: int = REPORTS
    decompressed: list[int] | None = None

    def within(self, limits: Limits | None) -> DecodeOptions:
        """Return the same options with these limits; environment variables are not read here."""
        output = (
            {}
            if limits is None
            else {f"max_{name}": most for name, most in limits._asdict().items() if most is not None}
        )
        return self._replace(**output)

    def decompress(self, codec: int, data: bytes, *, legacy: bool = False) -> bytes:
        """Decompress a part of a value. All parts count together; after the first that is too large nothing is read."""
        parts = [] if self.decompressed is None else self.decompressed
        try:
            content = codecs.decompress(codec, data, legacy=legacy, limit=self.max_decompressed_bytes - sum(parts))
        except codecs.Undecodable as error:
            if error.code == "decompressed_too_large":
                parts.append(self.max_decompressed_bytes - sum(parts))
                raise codecs.too_large(self.max_decompressed_bytes) from None
            raise
        parts.append(len(content))
        return content


class Broken(Exception):
    """A hard error ended the reading."""

    def __init__(self, detail: ErrorDetail) -> None:
        super().__init__(detail)
        self.detail = detail


class Cursor:
    """A position in serialized bytes, and the end of the readable range.

    Parameters
    ----------
    message : bytes
        The whole message; places are counted from its first byte.
    at, end : int, optional
        The part that may be read.
    options : DecodeOptions, optional
        What the reader was told.
    place : int, optional
        Where every error is said to be, for bytes that were decompressed.
    errors : list of ErrorDetail, optional
        Where soft errors are noted.
    """

    def __init__(
        self,
        data: bytes,
        at: int = 0,
        end: int | None = None,
        *,
        options: DecodeOptions | None = None,
        place: int | None = None,
        details: list[ErrorDetail] | None = None,
    ) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end
        self.options = DecodeOptions() if options is None else options
        self.place = place
        self.details: list[ErrorDetail] = [] if details is None else details
        self.header: int | None = None
        self.key: str | None = None

    @property
    def left(self) -> int:
        """How many bytes may still be read."""
        return self.end - self.at

    def enter_header(self, index: int | None) -> None:
        """Set the header that errors belong to from here on."""
        self.header = index
        self.key = None

    def name_header(self, key: Key) -> None:
        """Set the key of that header."""
        self.key = spell(key)

    def hard(self, code: str, message: str, byte: int) -> Broken:
        """Make the exception that ends the reading."""
        return Broken(self._detail(code, message, byte))

    def soft(self, code: str, message: str, byte: int) -> None:
        """Record an error that leaves the rest readable."""
        self.details.append(self._detail(code, message, byte))

    def _detail(self, code: str, message: str, byte: int) -> ErrorDetail:
        return ErrorDetail(code, message, byte if self.place is None else self.place, self.header, self.key)

    @contextmanager
    def softly(self) -> Iterator[None]:
        """Record a hard error instead of raising it: what was read before stays, and the rest goes unread."""
        try:
            yield
        except Broken as end:
            self.details.append(end.detail)

    def check_size(self) -> None:
        """Refuse a message for its size."""
        most = self.options.max_message_bytes
        if len(self.data) > most:
            message = f"the input has {count_noun(len(self.data), 'byte')}, over the limit of {most}: {how_to_raise('message_bytes')}"
            raise self.hard("limit_exceeded", message, most)

    def check_count(self, count: int, start: int) -> None:
        """Refuse a number of headers that is announced."""
        most = self.options.max_headers
        if count > most:
            message = f"{count_noun(count, 'header')} declared, over the limit of {most}: {how_to_raise('headers')}"
            raise self.hard("limit_exceeded", message, start)

    def check_header(self, index: int) -> None:
        """Refuse the header of this number, where a block does not announce how many it has."""
        most = self.options.max_headers
        if index >= most:
            message = f"more headers than the limit of {most}: {how_to_raise('headers')}"
            raise self.hard("limit_exceeded", message, self.at)

    def peek(self, ahead: int) -> int | None:
        """Return a byte further on, and stay."""
        return self.data[self.at + ahead] if ahead < self.left else None

    def take(self, size: int, field: str) -> bytes:
        """Read bytes; fewer are an error at the place where they should begin."""
        if size > self.left:
            raise self.hard("truncated", too_short(field, size, self.left), self.at)
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def take_rest(self) -> bytes:
        """Read all bytes that are left."""
        return self.take(self.left, "rest")

    def split(self, size: int, field: str) -> Cursor:
        """Make a cursor over the next bytes, and step over them."""
        start = self.at
        self.take(size, field)
        return Cursor(self.data, start, self.at, options=self.options, place=self.place, details=self.details)

    def nothing_after(self, field: str) -> None:
        """Record bytes that are left where none should be."""
        if self.left:
            self.soft("trailing_bytes", f"{count_noun(self.left, 'byte')} left after the {field}", self.at)

    def text_key(self, size: int) -> str | None:
        """Read a key that is text, and name the header by it; one that is not UTF-8 is noted and left out."""
        start = self.at
        try:
            key = self.take(size, "key").decode()
        except UnicodeDecodeError as error:
            self.soft("key_not_utf8", "the key is not UTF-8", start + error.start)
            return None
        self.name_header(key)
        return key

    def big(self, field: str, width: int) -> int:
        """Read a signed number, most significant byte first, as Kafka writes them."""
        return int.from_bytes(self.take(width, field), "big", signed=True)

    def little(self, field: str, width: int) -> int:
        """Read an unsigned number, least significant byte first, as Iggy writes them."""
        return int.from_bytes(self.take(width, field), "little")

    def length32(self, field: str) -> int:
        """Read from four bytes how many follow."""
        start = self.at
        length = self.big(field, 4)
        if length < 0:
            raise self.hard("negative_length", f"{field} {length} is negative", start)
        return length

    def nullable_length32(self, field: str) -> int | None:
        """Read from four bytes how many follow, or -1 for null."""
        start = self.at
        length = self.big(field, 4)
        if length < -1:
            raise self.hard("negative_length", f"{field} {length} is negative", start)
        return None if length == -1 else length

    def varint(self, field: str, width: int = 32) -> int:
        """Read a zig-zag varint of 32 or 64 bits."""
        try:
            read = varint.read_unsigned(self.data[self.at : min(self.end, self.at + varint.MAX_LEN)], width)
        except varint.Truncated:
            raise self.hard("truncated", f"the bytes end inside the {field}", self.at) from None
        except varint.TooLong:
            last = "fifth" if width == 32 else "tenth"
            message = f"the varint of the {field} goes on after its {last} byte"
            raise self.hard("varint_too_long", message, self.at) from None
        if read.lost and not self.options.lenient:
            message = f"the varint of the {field} has bits that {width} bits cannot hold"
            raise self.hard("varint_lost_bits", message, self.at)
        self.at += read.size
        return varint.unzigzag(read.bits)

    def varint_length(self, field: str) -> int:
        """Read from a varint how many bytes follow."""
        start = self.at
        length = self.varint(field)
        if length < 0:
            raise self.hard("negative_length", f"{field} {length} is negative", start)
        return length

    def nullable_varint_length(self, field: str) -> int | None:
        """Read from a varint how many bytes follow, or -1 for null."""
        start = self.at
        length = self.varint(field)
        if length < -1:
            raise self.hard("negative_length", f"{field} {length} is negative", start)
        return None if length == -1 else length


def too_short(field: str, needed: int, left: int) -> str:
    """Return the error of a field that takes more bytes than are left."""
    return f"{field} takes {count_noun(needed, 'byte')} and {left} {'is' if left == 1 else 'are'} left"
