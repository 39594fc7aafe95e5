"""Functions that raise errors, and the error numbers of Iggy's own library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from letterhead.errors import DecodeError, EncodeError, HeaderError, copy_error, without_message_number
from letterhead.iggy.formats import Format, check_format

__all__ = ["iggy_code", "need_unsigned", "shift_errors", "refuse_bytes", "refuse_value"]

# Iggy's error numbers by code of this package. If a code has several rows, the first row applies with words that match
# the start of the message.
_IGGY_ERRORS: tuple[tuple[str, str, int, int], ...] = (
    # code, first words of the message, number in releases with "iggy-2023", number in releases with "iggy"
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
    ("bad_text", "the text is not of kind bool", 83, 83),
    ("bad_text", "the text is not of kind", 84, 84),
    ("out_of_range", "the identifier", 6, 6),
    ("out_of_range", "the number does not fit", 84, 84),
)


def iggy_code(error: HeaderError, format: Format = "iggy-2023") -> int | None:
    """Return the error number of Iggy's own library.

    Parameters
    ----------
    error : HeaderError
        An error raised by :mod:`letterhead.iggy`, or by a function of this package for one of Iggy's formats.
    format : {"iggy-2023", "iggy"}, default "iggy-2023"
        The format: error numbers differ between the releases of each format.

    Returns
    -------
    int or None
        The code of the ``IggyError``; ``None`` if Iggy has no number for the error, panics, or accepts the data.

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
    message = without_message_number(error.message)
    for code, words, number_2023, number in _IGGY_ERRORS:
        if error.code == code and message.startswith(words):
            return number_2023 if format == "iggy-2023" else number
    return None


def refuse_value(code: str, message: str) -> NoReturn:
    """Raise EncodeError for an invalid value."""
    raise EncodeError(message, format=None, code=code)


def refuse_bytes(code: str, message: str, format: str | None, byte: int | None = None) -> NoReturn:
    """Raise DecodeError for invalid bytes or text."""
    raise DecodeError(message, format=format, code=code, byte_offset=byte)


def need_unsigned(number: Any, bits: int, field: str) -> int:
    """Return the number; raise if it is negative or needs more than ``bits`` bits (63 for int64)."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{field} must be int, not {type(number).__name__}")
    if not 0 <= number < 1 << bits:
        refuse_value("out_of_range", f"{field} does not fit {'int64' if bits == 63 else f'uint{bits}'}")
    return number


@contextmanager
def shift_errors(start: int, prefix: str = "") -> Iterator[None]:
    """Convert errors in a part of the data: add ``start`` to their byte offset, and a prefix to the message."""
    try:
        yield
    except HeaderError as error:
        at = None if error.byte_offset is None else start + error.byte_offset
        raise copy_error(error, prefix + error.message, byte_offset=at) from None
