"""What every operation that reads begins with: a row becomes fields, headers and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from letterhead.errors import DecodeError, ErrorDetail, HeaderError, as_error
from letterhead.limits import how_to_raise
from tests.reference import keys
from tests.reference.cursor import Broken, Cursor, DecodeOptions
from tests.reference.formats import Format
from tests.reference.keys import Key
from tests.reference.protocols import Entry, Fields, Opened
from tests.reference.value_types import is_type

ERRORS = ("raise", "null", "column")
"""What may become of a message that cannot be read."""

R = TypeVar("R")

Row = bytes | Sequence[Any] | None

Triple = tuple[Key, str | None, bytes | None]


class Reading(NamedTuple):
    """What could be read of one message."""

    fields: Fields
    entries: list[Entry]
    """Headers up to the first hard error, those that could not be read left out."""
    absent: bool
    """The message has no headers field."""
    broken: bool
    """A hard error, of the frame or the block, ended the reading."""
    damaged: bool
    """Not every header could be read."""
    details: list[ErrorDetail]
    frame_damaged: bool = False
    """What is around the headers has an error, such as a wrong checksum."""
    place: int | None = None
    """Where everything of the message stands, if its bytes are in the message in another form."""

    @property
    def headers(self) -> list[Triple] | None:
        """The headers, if there are any to speak of and all could be read."""
        if self.absent or self.broken or self.damaged:
            return None
        return [(entry.key, entry.type, entry.value) for entry in self.entries]


def read_message(data: bytes, row: Format, options: DecodeOptions) -> Reading:
    """Read the bytes of one message."""
    cursor = Cursor(data, options=options)
    try:
        cursor.check_size()
        fields, block = ({}, cursor) if row.message is None else row.message.read(cursor)
    except Broken as end:
        return Reading({}, [], False, True, True, [*cursor.details, end.detail])
    return _read_block(row, fields, block, cursor.details, broken=False)


def read_batch(data: bytes, row: Format, options: DecodeOptions) -> Iterator[Reading]:
    """Read the bytes of many messages; errors say which message they are in."""
    assert row.batch is not None, "only batches come here"
    cursor = Cursor(data, options=options._replace(decompressed=[]))
    try:
        cursor.check_size()
    except Broken as end:
        yield _read_block(row, {}, None, [in_message(0, end.detail)], broken=True)
        return
    output = 0
    for number, opened in enumerate(row.batch.messages(cursor)):
        output += _output_bytes(opened)
        message = _over_limit(number + 1, output, options)
        if message is not None:
            details = [
                in_message(number, detail) for detail in (*opened.details, ErrorDetail("limit_exceeded", message))
            ]
            yield Reading({}, [], False, True, True, details)
            return
        reading = _read_block(row, opened.fields, opened.block, opened.details, broken=opened.broken)
        place = None if opened.block is None else opened.block.place
        yield reading._replace(details=[in_message(number, detail) for detail in reading.details], place=place)


def _output_bytes(opened: Opened) -> int:
    """Return the bytes of a message's keys, values, ids and headers."""
    fields = sum(len(value) for value in opened.fields.values() if isinstance(value, bytes))
    return fields + (0 if opened.block is None else opened.block.left)


def _over_limit(records: int, output: int, options: DecodeOptions) -> str | None:
    """Return which limit the records of a value exceed."""
    if records > options.max_records:
        return f"the value has more records than the limit of {options.max_records}: {how_to_raise('records')}"
    if output > options.max_output_bytes:
        most = options.max_output_bytes
        return f"the records of the value take more bytes than the limit of {most}: {how_to_raise('output_bytes')}"
    return None


def in_message(number: int, detail: ErrorDetail) -> ErrorDetail:
    """Prefix an error with its message in the batch."""
    return detail._replace(message=f"message {number}: {detail.message}")


def without_message(number: int, detail: ErrorDetail) -> ErrorDetail:
    """Remove what :func:`in_message` added."""
    return detail._replace(message=detail.message.removeprefix(f"message {number}: "))


def _read_block(
    row: Format, fields: Fields, block: Cursor | None, details: list[ErrorDetail], *, broken: bool
) -> Reading:
    """Walk the headers of a message whose frame was read; the errors of the frame come first."""
    entries: list[Entry] = []
    frame_details = len(details)
    text_keys = block is not None and block.options.text_keys and row.traits.keys == "typed"
    try:
        for entry in () if block is None else row.block.read(block):
            if text_keys and not isinstance(entry.key, str):
                # The list is refused; what is asked for by its typed key is still found.
                details.append(_no_text(entry))
            entries.append(entry)
    except Broken as end:
        details.append(end.detail)
        broken = True
    absent = block is None and not broken
    return Reading(fields, entries, absent, broken, len(details) > frame_details, details, frame_details > 0)


def _no_text(entry: Entry) -> ErrorDetail:
    """Return why a typed key is not text."""
    type, _ = keys.typed(entry.key)
    code, message = "wrong_type", f"the key is {type} and text keys were requested"
    if type == "string":
        code, message = "key_not_utf8", "the key is not UTF-8"
    return ErrorDetail(code, message, None, entry.header, keys.spell(entry.key))


def read_list(headers: Sequence[Any] | None) -> Reading:
    """Read headers that are a list already."""
    entries: list[Entry] = []
    details: list[ErrorDetail] = []
    for index, header in enumerate(headers or ()):
        key, type, value = header_of(header)
        unknown = unknown_type(key, type)
        if key is None:
            details.append(ErrorDetail("null_key", "the key is null", None, index))
        elif unknown is not None:
            text = None if isinstance(key, tuple) and unknown == key[0] else keys.spell(key)
            details.append(ErrorDetail("unknown_type", "the name of the type is unknown", None, index, text))
        else:
            entries.append(Entry(index, key, type, value, None))
    return Reading({}, entries, headers is None, False, bool(details), details)


def read_row(data: Row, row: Format, options: DecodeOptions) -> Reading:
    """Read bytes, or take a list."""
    if isinstance(data, bytes | bytearray | memoryview):
        return read_message(bytes(data), row, options)
    return read_list(data)


def header_of(header: Any) -> tuple[Key | None, str | None, bytes | None]:
    """Return key, type and value of a header as rows have it: two or three parts, or the fields of a struct."""
    if header is None:
        return None, None, None
    if isinstance(header, Mapping):
        key, type, value = header["key"], header.get("type"), header["value"]
        if "key_type" in header and key is not None:
            key = None if header["key_type"] is None else (header["key_type"], key)
    else:
        key, type, value = header if len(header) == 3 else (header[0], None, header[1])
    return None if key is None else keys.as_key(key), type, value


def unknown_type(key: Key | None, type: str | None) -> str | None:
    """Return the first of the types of a header that there is not."""
    for name in (key[0] if isinstance(key, tuple) else None, type):
        if name is not None and not is_type(name):
            return name
    return None


ROW_REPORTS = 64
"""Errors, or losses, that every row of a column keeps."""


class Reports(Generic[R]):
    """The errors, or the losses, that the rows of one call list.

    Parameters
    ----------
    limit : int
        The most of them, beside the first :data:`ROW_REPORTS` of each row.
    left_out : callable
        Makes the last one of a list that was cut, from what it says.
    what : str
        What is reported.
    """

    def __init__(self, limit: int, left_out: Callable[[str, str], R], things: str) -> None:
        self.limit = limit
        self.further = 0
        self.last = left_out(
            "limit_exceeded", f"there are more {things} than the limit of {limit}: {how_to_raise('reports')}"
        )

    def keep(self, reports: Sequence[R]) -> list[R]:
        """Return those of the next row, cut if there are too many."""
        most = max(self.limit - self.further, min(self.limit, ROW_REPORTS), 2)
        kept = [*reports] if len(reports) <= most else [*reports[: most - 1], self.last]
        self.further += max(len(kept) - ROW_REPORTS, 0)
        return kept


def error_reports(options: DecodeOptions) -> Reports[ErrorDetail]:
    """Make the limit of the errors of one call."""
    return Reports(options.max_reports, ErrorDetail, "errors")


def raise_first(
    details: list[ErrorDetail], row: Format, number: int | None = None, error: type[HeaderError] = DecodeError
) -> None:
    """Raise the first error, if there is one."""
    if details:
        raise as_error(details[0], error, row.name, row=number)
