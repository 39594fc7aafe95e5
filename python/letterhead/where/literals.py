"""Convert literals of conditions to the types of their operands: :func:`literals_of`."""

from __future__ import annotations

import math
import struct
import uuid
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal, localcontext
from typing import Any

from letterhead import _native
from letterhead._times import TIME_FORMS, check_unit, is_relative, read_time
from letterhead.types import base_type
from letterhead.values import Value
from letterhead.where.conditions import Predicate, literal_text

__all__ = ["ZonedText", "literals_of", "type_of_literal"]


class ZonedText(str):
    """Text literal in SQL, with the time zone to use for times that have none."""

    zone: tzinfo


_TEXTS = ("string", "char", "binary")

_UNITS = {"timestamp_ms": timedelta(milliseconds=1), "timestamp": timedelta(microseconds=1)}

_EXPECTED = {"string": "str", "char": "str", "binary": "bytes", "bool": "True or False", "uuid": "a UUID"}


def type_of_literal(literal: Any, format_has_types: bool) -> str | None:
    """Return the type for a header without a declared type that is compared with a literal, or None."""
    if isinstance(literal, Value):
        return literal.type
    if format_has_types and isinstance(literal, bool | int | float):
        # Use the widest type, which can read values of all narrower types.
        return "bool" if isinstance(literal, bool) else "int128" if isinstance(literal, int) else "float64"
    return "string" if isinstance(literal, str) else "binary" if isinstance(literal, bytes) else None


def literals_of(condition: Predicate, type: str) -> tuple[Any, ...]:
    """Convert the literals of a test to a type; raise ValueError for a literal that no value of the type can equal."""
    try:
        return tuple(_literal(literal, type, condition.name) for literal in condition.literals)
    except ValueError as error:
        raise ValueError(f"where: {condition!r}: {error}") from None


def _literal(literal: Any, type: str, test: str) -> Any:
    """Convert a literal to a type, as int, float, bool, str or bytes."""
    base = base_type(type)
    if isinstance(literal, Value):
        literal = literal.value
    if test in ("starts_with", "contains", "matches") and base not in _TEXTS:
        raise ValueError(f"{test} is for text and bytes, not {base}")
    if test == "matches":
        _native.check_pattern(literal)
    if base in ("string", "char") and isinstance(literal, str):
        return str(literal)
    if base == "binary" and isinstance(literal, str | bytes):
        # Encode text, because SQL has no common literal for bytes, and the keys of most records are text.
        return literal.encode() if isinstance(literal, str) else literal
    if base == "bool" and isinstance(literal, bool):
        return literal
    if base == "uuid" and isinstance(literal, str | uuid.UUID):
        return str(uuid.UUID(str(literal)))
    if base in _UNITS:
        return _time(literal, _UNITS[base])
    if base == "date":
        return _days(literal)
    if base.startswith("decimal"):
        return _unscale(literal, int(base[:-1].partition(",")[2]))
    if not isinstance(literal, bool) and isinstance(literal, int | float):
        if base.startswith("float"):
            return _float(literal, base, test)
        if base.startswith(("int", "uint")):
            if isinstance(literal, float) and not literal.is_integer():
                raise ValueError(f"{literal} is not a whole number, and the type is {base}")
            if not -(1 << 127) <= literal < 1 << 127:
                raise ValueError(f"{literal_text(literal)} does not fit 128 bits")
            return int(literal)
    raise ValueError(f"{base} is not compared with {_kind_of(literal)}: pass {_EXPECTED.get(base, 'a number')}")


def _kind_of(literal: Any) -> str:
    """Return the name of a literal's type for errors; text with a time zone is also called text."""
    return "text" if isinstance(literal, str) else literal.__class__.__name__


def _days(literal: Any) -> int:
    if isinstance(literal, str):
        try:
            literal = date.fromisoformat(literal)
        except ValueError:
            raise ValueError(f"{literal!r} is not a date such as '2026-01-31'") from None
    if not isinstance(literal, date) or isinstance(literal, datetime):
        raise ValueError(f"date is not compared with {_kind_of(literal)}: pass a date")
    return (literal - date(1970, 1, 1)).days


def _unscale(literal: Any, scale: int) -> int:
    """Return a literal as an integer in units of the last decimal place."""
    if isinstance(literal, bool) or not isinstance(literal, int | float | Decimal):
        raise ValueError(f"a decimal is not compared with {_kind_of(literal)}: pass a Decimal or a number")
    # Convert a float through its text, which has the decimal digits that the user wrote.
    number = Decimal(str(literal))
    with localcontext(prec=len(number.as_tuple().digits) + 1):
        number = number.scaleb(scale)
    if not number.is_finite() or number != number.to_integral_value() or abs(number) >= 1 << 127:
        raise ValueError(f"{literal} does not have at most {scale} decimals, as the type has")
    return int(number)


def _float(literal: float, base: str, test: str) -> float:
    """Convert a literal to a double; in tests for equality, reject a literal that no stored value can equal."""
    try:
        number = float(literal)
    except OverflowError:
        number = math.inf
    if number != literal and literal == literal:
        raise ValueError(f"{literal_text(literal)} has no exact {base}")
    # Order comparisons of 32-bit values accept any double, so only equality is checked.
    if base == "float32" and test in ("==", "!=", "in") and math.isfinite(number):
        near = _nearest_float32(number)
        if near != number:
            nearest = f": the nearest is {near!r}" if math.isfinite(near) else ""
            raise ValueError(f"{literal} has no exact float32{nearest}")
    return number


def _nearest_float32(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _time(literal: Any, unit: timedelta) -> int:
    if isinstance(literal, str):
        literal = _read_time(literal)
        if literal.tzinfo is None:
            raise ValueError(f"the time has no zone: write '{literal.isoformat()}Z', or another one than UTC")
    if isinstance(literal, int) and not isinstance(literal, bool):
        check_unit("a time", literal, "milliseconds" if unit == _UNITS["timestamp_ms"] else "microseconds")
        return literal
    if not isinstance(literal, datetime):
        raise ValueError(f"a time is not compared with {_kind_of(literal)}: pass a datetime or an int")
    if literal.tzinfo is None:
        raise ValueError(f"{literal} has no time zone: pass datetime(..., tzinfo=UTC)")
    count, rest = divmod(literal - datetime(1970, 1, 1, tzinfo=UTC), unit)
    if rest:
        raise ValueError(f"{literal} is between two of the times that are stored: round it to milliseconds")
    return count


def _read_time(text: str) -> datetime:
    """Parse a time; a time without a zone is in the time zone of the literal."""
    try:
        if is_relative(text):
            return read_time(text)
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=text.zone) if time.tzinfo is None and isinstance(text, ZonedText) else time
    except ValueError:
        raise ValueError(f"{str(text)!r} is not a time such as {TIME_FORMS}") from None
