"""What can be wrong with headers: a closed list of codes, faults, and the exceptions that show them.

A *fault* says what is wrong with one cell; an *exception* is a fault that was raised, with its format and row. The
text of an exception says what, then where::

    kafka: column amount_cents: header 9: 4 bytes where int64 takes 8 (byte 57, row 7)

No message ever shows a user's bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

__all__ = ["CODES", "ConversionError", "DecodeError", "EncodeError", "Fault", "HeaderError", "TornTailWarning"]

CODES: dict[str, str] = {
    "truncated": "the bytes end inside a field",
    "varint_too_long": "a varint goes on after its fifth byte",
    "varint_lost_bits": "the fifth byte of a varint carries bits that a 32-bit number cannot hold",
    "negative_length": "a length is negative and does not mean null",
    "negative_count": "the number of headers is negative",
    "count_too_large": "more headers are announced than the bytes could hold",
    "trailing_bytes": "bytes are left after the last header",
    "key_not_utf8": "a key is not UTF-8",
    "value_not_utf8": "a value read as a string is not UTF-8",
    "null_key": "a header has no key",
    "empty_key": "a key has no bytes where the format wants at least one",
    "empty_value": "a value has no bytes where the format wants at least one",
    "too_long": "a key or value is longer than the format allows",
    "too_large": "the headers of a message, or a column, are larger than the format or Arrow can carry",
    "unknown_kind": "a kind code that the format does not define",
    "wrong_kind": "a value is of another kind than the one asked for",
    "wrong_size": "a value has another number of bytes than its type",
    "bad_bool": "a boolean is neither 0 nor 1",
    "bad_text": "a value does not spell what its type needs",
    "out_of_range": "a value does not fit the type it is read as",
    "bad_magic": "an unknown magic byte",
    "bad_crc": "a checksum does not hold",
    "bad_attributes": "attribute bits that the format does not define",
    "unknown_codec": "a compression codec that the format does not define",
    "bad_compression": "compressed data cannot be read",
    "decompressed_too_large": "decompressed data would pass the limit",
    "repeated_key": "a key stands more than once where one was asked for",
    "kind_not_carried": "the target carries no kinds, and how to write the value was not said",
    "null_not_carried": "the target has no way to write this null",
    "limit_exceeded": "a limit that can be set is passed",
    "not_in_order": "keys or offsets that should be in order are not",
    "bad_signature": "a signature does not hold",
    "missing_key": "a required header is absent",
    "null_field": "a field of the envelope is null and the format has no null for it",
    "key_not_carried": "the target's keys are of another kind",
    "field_not_carried": "the target has no place for a field",
}
"""Every code an error can have, and what it means. The list is closed."""


class HeaderError(ValueError):
    """Headers that could not be read, written or converted.

    Catch this to catch them all. Misspelt names are plain ``ValueError`` and wrong Python types ``TypeError``: those
    are mistakes in the program, not in the data.

    Parameters
    ----------
    message : str
        What went wrong, without the place; lower case, no full stop.
    format : str or None
        Name of the format; ``None`` for a value that is not in a format yet.
    code : str
        One of :data:`CODES`.
    offset : int, optional
        Byte in the cell, counted from 0.
    row : int, optional
        Row in the column, counted from 0.
    header : int, optional
        Header in the message, counted from 0.
    key : str, optional
        Key of that header, where it could be read.
    column : str, optional
        Output column that could not be filled.

    Attributes
    ----------
    message, format, code, offset, row, header, key, column
        As given; ``None`` when not known.

    Examples
    --------
    >>> from letterhead.errors import DecodeError
    >>> error = DecodeError("key length -1 is negative", format="kafka", code="negative_length", header=3, offset=41)
    >>> str(error), error.code, error.header
    ('kafka: header 3: key length -1 is negative (byte 41)', 'negative_length', 3)
    """

    message: str
    format: str | None
    code: str
    offset: int | None
    row: int | None
    header: int | None
    key: str | None
    column: str | None

    def __init__(
        self,
        message: str,
        *,
        format: str | None,
        code: str,
        offset: int | None = None,
        row: int | None = None,
        header: int | None = None,
        key: str | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(_text(message, format, offset, row, header, column))
        self.message = message
        self.format = format
        self.code = code
        self.offset = offset
        self.row = row
        self.header = header
        self.key = key
        self.column = column

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with `args`, which is the text alone; Spark moves exceptions between processes.
        return _rebuild, (type(self), self.message, {name: getattr(self, name) for name in _PLACE}), self.__dict__


class DecodeError(HeaderError):
    """Bytes that are not what their format or their type says."""


class EncodeError(HeaderError):
    """Headers or values that cannot be written."""


class ConversionError(HeaderError):
    """Something the target format cannot carry, where losses are raised."""


class TornTailWarning(UserWarning):
    """Warn that a log ends in bytes that are not a whole batch or message.

    A broker or a :class:`~letterhead.kip82.MessageLog` leaves them when it stops while it writes. Everything before them
    was read. :func:`letterhead.read.segments` leaves the file as it is; a ``MessageLog`` opened for writing cuts them off.

    Examples
    --------
    >>> import warnings
    >>> from letterhead.errors import TornTailWarning
    >>> with warnings.catch_warnings(action="error", category=TornTailWarning):
    ...     pass  # read here: a torn tail is now an error
    """


_Error = TypeVar("_Error", bound=HeaderError)


class Fault(NamedTuple):
    """One thing wrong with one cell; the names are those of the ``error`` column in Arrow and Spark.

    Attributes
    ----------
    code : str
        One of :data:`CODES`.
    message : str
        What went wrong, without the place.
    byte : int or None
        Byte in the cell, counted from 0.
    header : int or None
        Header in the message, counted from 0.
    key : str or None
        Key of that header, where it could be read.
    column : str or None
        Output column that could not be filled.
    """

    code: str
    message: str
    byte: int | None = None
    header: int | None = None
    key: str | None = None
    column: str | None = None

    def as_error(self, error: type[_Error], format: str, *, row: int | None = None) -> _Error:
        """Make the exception that shows this fault.

        Parameters
        ----------
        error : type of HeaderError
            Class of the exception.
        format : str
            Name of the format.
        row : int, optional
            Row in the column, counted from 0.

        Returns
        -------
        HeaderError
            The exception, not raised.

        Examples
        --------
        >>> from letterhead.errors import DecodeError, Fault
        >>> str(Fault("truncated", "the bytes end inside the count", byte=0).as_error(DecodeError, "kafka"))
        'kafka: the bytes end inside the count (byte 0)'
        """
        return error(
            self.message,
            format=format,
            code=self.code,
            offset=self.byte,
            row=row,
            header=self.header,
            key=self.key,
            column=self.column,
        )


def replaced(error: _Error, message: str | None = None, **place: Any) -> _Error:
    """Make an error again that was met in a part of something larger.

    Parameters
    ----------
    error : HeaderError
        The error.
    message : str, optional
        What went wrong, in other words.
    **place
        What is different, by the names of the attributes: ``row``, ``offset`` and the like.

    Returns
    -------
    HeaderError
        The exception, not raised.

    Examples
    --------
    >>> error = DecodeError("key length -1 is negative", format="kafka", code="negative_length", offset=1, row=2)
    >>> str(replaced(error, row=10002))
    'kafka: key length -1 is negative (byte 1, row 10002)'
    """
    what = error.message if message is None else message
    return type(error)(what, **{name: getattr(error, name) for name in _PLACE} | place)


def unknown_name(what: str, wrong: object, names: Iterable[str]) -> ValueError:
    """Make the error for a misspelt name: the nearest one if any is near, and the list.

    Parameters
    ----------
    what : str
        What the name is of, in the singular.
    wrong : object
        What was given.
    names : iterable of str
        What could have been given.

    Returns
    -------
    ValueError
        The exception, not raised.

    Examples
    --------
    >>> str(unknown_name("format", "kafak", ["kafka", "streams"]))
    "unknown format 'kafak': did you mean 'kafka'? (formats: kafka, streams)"
    """
    import difflib  # only a mistake needs it, and an import of this package should be fast

    names = list(names)
    # Capitals are no distance: a name in them is meant as it is without.
    plain = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wrong.lower(), plain, n=1, cutoff=0.6) if isinstance(wrong, str) else []
    hint = f": did you mean '{plain[near[0]]}'?" if near else ""
    return ValueError(f"unknown {what} {wrong!r}{hint} ({what}{'' if what.endswith('s') else 's'}: {', '.join(names)})")


def counted(count: int, what: str) -> str:
    """Give ``1 byte``, ``2 bytes``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def check_name(what: str, given: object, names: Iterable[str]) -> None:
    """Raise what fits for a name that is not in the list.

    Parameters
    ----------
    what : str
        What the name is of, in the singular.
    given : object
        What was given.
    names : iterable of str
        What can be given.

    Raises
    ------
    TypeError
        If it is not a string.
    ValueError
        If it is not in the list.
    """
    if not isinstance(given, str):
        raise TypeError(f"{what} must be str, not {type(given).__name__}")
    names = list(names)
    if given not in names:
        raise unknown_name(what, given, names)


def _text(
    message: str, format: str | None, offset: int | None, row: int | None, header: int | None, column: str | None
) -> str:
    what = [] if format is None else [format]
    if column is not None:
        what.append(f"column {column}")
    if header is not None:
        what.append(f"header {header}")
    what.append(message)
    where = [f"{name} {place}" for name, place in (("byte", offset), ("row", row)) if place is not None]
    return ": ".join(what) + (f" ({', '.join(where)})" if where else "")


_PLACE = ("format", "code", "offset", "row", "header", "key", "column")


def _rebuild(cls: type[HeaderError], message: str, place: dict[str, Any]) -> HeaderError:
    return cls(message, **place)
