"""How faults are raised here, and which error of Iggy's own library each of them is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from letterhead.errors import DecodeError, EncodeError, HeaderError, counted
from letterhead.iggy.formats import Format, check_format

__all__ = ["iggy_code", "need_bytes", "need_unsigned", "placed", "refuse_bytes", "refuse_value", "too_short"]

# Where a code alone does not tell the errors of Iggy apart, the first words of the message do. First match wins.
_IGGY_ERRORS: tuple[tuple[str, str, int, int], ...] = (
    # our code, first words, number in the releases of "iggy-2023", number in those of "iggy"
    ("empty_key", "", 4018, 4019),
    ("empty_value", "the request", 4009, 4009),
    ("empty_value", "the payload", 4024, 4025),
    ("empty_value", "the name", 6, 6),
    ("empty_value", "the messages key", 3, 3),
    ("empty_value", "", 4019, 4019),
    ("too_long", "key", 4018, 4019),
    ("too_long", "name", 6, 6),
    ("too_long", "messages key", 3, 3),
    ("too_long", "", 4019, 4019),
    ("too_large", "the payload", 4022, 4022),
    ("too_large", "", 4017, 4017),
    ("key_not_utf8", "", 4018, 81),
    ("value_not_utf8", "", 81, 81),
    ("wrong_type", "", 4019, 4019),
    ("wrong_size", "key", 4018, 4018),
    ("wrong_size", "", 4019, 4019),
    ("bad_bool", "", 4019, 4019),
    ("unknown_type", "a kind of this name", 209, 209),
    ("unknown_type", "partitioning", 3, 3),
    ("unknown_type", "consumer", 3, 3),
    ("unknown_type", "polling", 3, 3),
    ("unknown_type", "identifier", 6, 6),
    ("unknown_type", "", 3, 4040),
    ("bad_text", "the text does not spell bool", 83, 83),
    ("bad_text", "the text does not spell", 84, 84),
    ("out_of_range", "the identifier", 6, 6),
    ("out_of_range", "the number does not fit", 84, 84),
)
_WHICH_MESSAGE = re.compile(r"^message \d+: ")


def iggy_code(error: HeaderError, format: Format = "iggy-2023") -> int | None:
    """Give the number that Iggy's own library has for an error.

    Parameters
    ----------
    error : HeaderError
        An error that something in :mod:`letterhead.iggy`, or a verb on one of Iggy's formats, raised.
    format : {"iggy-2023", "iggy"}, default "iggy-2023"
        Of which releases.

    Returns
    -------
    int or None
        The code of the ``IggyError``; ``None`` where Iggy has no number for it, panics, or sees no error.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.iggy import HeaderKey, iggy_code
    >>> try:
    ...     HeaderKey("")
    ... except lh.EncodeError as error:
    ...     iggy_code(error), iggy_code(error, "iggy")
    (4018, 4019)
    """
    check_format(format)
    message = _WHICH_MESSAGE.sub("", error.message)
    for code, words, in_2023, in_tlv in _IGGY_ERRORS:
        if error.code == code and message.startswith(words):
            return in_2023 if format == "iggy-2023" else in_tlv
    return None


def refuse_value(code: str, message: str) -> NoReturn:
    """Raise for something given that cannot be written."""
    raise EncodeError(message, format=None, code=code)


def refuse_bytes(code: str, message: str, format: str | None, byte: int | None = None) -> NoReturn:
    """Raise for something read."""
    raise DecodeError(message, format=format, code=code, byte_offset=byte)


def too_short(field: str, size: int, left: int) -> str:
    """Say that a field goes on after the end."""
    return f"{field} takes {counted(size, 'byte')} and {left} {'is' if left == 1 else 'are'} left"


def need_bytes(given: Any, what: str) -> bytes:
    """Take bytes; a number is none, although ``bytes`` would take it for a length."""
    if not isinstance(given, bytes | bytearray | memoryview):
        raise TypeError(f"{what} must be bytes, not {type(given).__name__}")
    return bytes(given)


def need_unsigned(given: Any, bits: int, what: str) -> int:
    """Return a number that is not negative and fits the bits of its field; 63 bits are those of an int64."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{what} must be int, not {type(given).__name__}")
    if not 0 <= given < 1 << bits:
        refuse_value("out_of_range", f"{what} does not fit {'int64' if bits == 63 else f'uint{bits}'}")
    return given


@contextmanager
def placed(start: int, what: str = "") -> Iterator[None]:
    """Count the bytes of an error from further left, and name the message it is in."""
    try:
        yield
    except HeaderError as error:
        raise type(error)(
            what + error.message,
            format=error.format,
            code=error.code,
            byte_offset=None if error.byte_offset is None else start + error.byte_offset,
            row=error.row,
            header=error.header,
            key=error.key,
            column=error.column,
        ) from None
