"""Parse JSON strictly: no repeated names, no numbers that round to infinity, no NaN: :func:`parse_json`."""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NoReturn

__all__ = ["STRING", "JsonError", "parse_json"]

STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""String, or the rest of the text if the string is not closed. Without the possessive ``++``, backtracking takes 100
bytes for each byte of a string."""

# Limit of decimal exponents: a larger number would have as many digits when converted to an integer.
_MOST_DIGITS = 400


class JsonError(ValueError):
    """Error for invalid JSON, or for a value in it that is not accepted. The message does not quote the document.

    ``code`` is the error code of a value with this text; ``line`` and ``column`` count from 1, ``byte`` from 0.
    """

    def __init__(
        self,
        reason: str,
        code: str = "bad_text",
        line: int | None = None,
        column: int | None = None,
        byte: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.code, self.line, self.column, self.byte = code, line, column, byte


def _distinct_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise JsonError("an object has a name twice")
    return members


def parse_json(
    text: bytes | bytearray | str,
    *,
    numbers: Literal["decimal", "double", "exact double"] = "double",
    members: Callable[[list[tuple[str, Any]]], Any] = _distinct_members,
) -> Any:
    """Parse one JSON document.

    Parameters
    ----------
    text : bytes or str
        The document, UTF-8.
    numbers : str
        The result for numbers with a point or an exponent: Decimal, the nearest float, or a float that has all digits.
    members : callable, optional
        Function that creates an object from names and values; by default a dict, if no name is repeated.

    Raises
    ------
    JsonError
        If text is not JSON, an object has a name twice, or a number is too large or not exact.
    """
    try:
        return _decoder(numbers, members).decode(text if isinstance(text, str) else str(text, "utf-8"))
    except UnicodeDecodeError as error:
        raise JsonError("the input is not UTF-8", "value_not_utf8", byte=error.start) from error
    except json.JSONDecodeError as error:
        byte = len(error.doc[: error.pos].encode(errors="surrogatepass"))
        raise JsonError(error.msg.lower(), line=error.lineno, column=error.colno, byte=byte) from error
    except RecursionError as error:
        raise JsonError("the nesting is too deep") from error
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError("a number is too long") from error


@functools.cache
def _decoder(numbers: str, members: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=_NUMBERS[numbers], parse_constant=_refuse_constant, object_pairs_hook=members)


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("Infinity")
    if abs(number.adjusted()) > _MOST_DIGITS or not number.is_finite():
        raise JsonError("a number is too large or too small", "out_of_range")
    return number


def _double(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError("a number is too large for a double", "out_of_range")
    return number


def _exact_double(text: str) -> float:
    number = _double(text)
    # A double preserves any 15 digits, except near zero.
    if (len(text) > 16 or abs(number) < sys.float_info.min) and Decimal(text) != Decimal(repr(number)):
        raise JsonError("a number has more digits than a double", "out_of_range")
    return number


_NUMBERS = {"decimal": _decimal, "double": _double, "exact double": _exact_double}


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f'{name} is not a JSON number, only the string "{name}" is JSON')
