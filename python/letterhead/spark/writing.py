r"""Write a value as bytes of a type, in Spark SQL expressions: :func:`writer`, the inverse of `expressions.parser`.

Numbers are written by the digits of ``hex``::

    int32     258    hex = '102'   padded to '00000102'   unhex = 00 00 01 02
    float64   -1.5   = -(1 + fraction) * 2 ** exponent    the three are put side by side as the bits of a long

Text is checked by the parser of the same type, which rejects text that could not be read back. A value that
its type cannot represent exactly is an error; with ``truncate``, excess digits of times and decimals are cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from pyspark.sql import types as T

from letterhead.spark.checks import Check, Checked, check
from letterhead.spark.expressions import (
    FLOATS,
    RANGES,
    WIDE,
    WIDTHS,
    complement,
    guid_digits,
    hex_digits,
    java_charset,
    parser,
)
from letterhead.spark.sql_text import F, Sql
from letterhead.spark.text_forms import UNITS, form_parser, in_years
from letterhead.types import CHARSETS, base_type, split_type

__all__ = ["GIVE_ZONE", "accepted_types", "writer", "written_from"]

GIVE_ZONE = "cast it to timestamp, which reads it in the time zone of the session"
"""Remedy for a column of times without a zone."""

Writer: TypeAlias = Callable[[Sql], Checked]


def writer(type: str, *, scale: int = 0, truncate: bool = False) -> Writer:
    """Return the function that writes a column as a type, or as the first of several types; the types must be valid.

    The column has one of the types that :func:`written_from` accepts; ``scale`` applies to columns of decimals.

    Examples
    --------
    >>> from letterhead.spark.sql_text import F
    >>> written = writer("int16:le")(F.lit(258))
    >>> [check.code for check in written.checks]
    ['out_of_range']
    >>> spark.range(1).select(F.hex(written.value).column.alias("bytes")).first().bytes
    '0201'
    """
    type = type.partition(" | ")[0]
    name, order, base = split_type(type)
    if base:
        write = writer(type.removesuffix(f":{base}"), scale=scale, truncate=truncate)

        def write_text(value: Sql) -> Checked:
            checks, data = write(value)
            return Checked(checks, _BASES[base](data))

        return write_text
    if name == "timestamp":
        return lambda value: _from_time(type, order, value, truncate)
    if form_parser(type) is not None and name.startswith("decimal"):
        return lambda value: _from_decimal(name, value, scale, truncate)
    if name == "date":
        return _from_date
    if name == "binary":
        return lambda value: Checked([], value)
    if order in CHARSETS:
        return lambda value: _in_charset(order, value)
    if name in ("string", "uuid", "char"):
        return lambda value: _from_text(name, order, value)
    if name == "timestamp_ms":
        return lambda value: _from_number(name, order, *_in_unit(name, "ms", value, truncate))
    return lambda value: _from_number(name, order, value)


def written_from(type: str, column_type: T.DataType) -> str | None:
    """Return ``None`` if a type can be written from a Spark column type, otherwise the column types that fit.

    Examples
    --------
    >>> from pyspark.sql import types as T
    >>> written_from("int64", T.ShortType()), written_from("int64", T.StringType())
    (None, 'tinyint, smallint, int, bigint or a decimal without places')
    """
    name = base_type(type.partition(" | ")[0])
    if name.startswith("decimal"):
        return None if isinstance(column_type, T.DecimalType) else "decimal"
    types, names = _FITS.get(name, _INTEGERS)
    has_decimals = isinstance(column_type, T.DecimalType) and column_type.scale != 0
    return None if isinstance(column_type, types) and not has_decimals else names


def accepted_types(name: str) -> list[str]:
    """Return the column types, except decimals, that can be written as a non-decimal type.

    Examples
    --------
    >>> accepted_types("float64"), accepted_types("uuid")
    (['float', 'double'], ['string'])
    """
    types, _ = _FITS.get(name, _INTEGERS)
    return [type().simpleString() for type in types if type is not T.DecimalType]


# Numbers --------------------------------------------------------------------------------------------------------------


def _from_number(name: str, order: str, value: Sql, *checked: Check) -> Checked:
    checks = [*checked]
    if name in RANGES:
        low, high = RANGES[name]
        outside = (value < F.lit(Decimal(low))) | (value > F.lit(Decimal(high)))
        checks.append(Check(outside, "out_of_range", F.lit(f"the number does not fit {name}")))
    if order == "text":
        return Checked(checks, value.cast("string").cast("binary"))
    digits = _float if name in FLOATS else _wide if name in WIDE else _narrow
    return Checked(checks, _in_byte_order(name, order, F.unhex(digits(name, value))))


def _in_byte_order(name: str, order: str, data: Sql) -> Sql:
    return F.unhex(hex_digits(data, WIDTHS[name], True)) if order == "le" else data


def _narrow(name: str, number: Sql) -> Sql:
    """Return the digits of up to eight bytes."""
    if name == "bool":
        return F.when(number, "01").when(~number, "00")
    if name == "uint64":
        return F.lpad(F.conv(number.cast("string"), 10, 16), 16, "0")
    # A negative number has all 16 digits; excess leading digits are dropped.
    length = 2 * WIDTHS[name]
    return F.substring(F.lpad(F.hex(number.cast("bigint")), 16, "0"), 17 - length, length)


def _wide(name: str, number: Sql) -> Sql:
    """Return the digits of 16 bytes; for a negative number n, the complement of the digits of -1 - n."""
    number = number.cast("decimal(38,0)")
    size = F.when(number < 0, F.lit(Decimal(-1)) - number).otherwise(number).cast("decimal(38,0)")
    half = F.lit(Decimal(1 << 64))
    # The upper half of 38 digits has at most 63 bits.
    high = F.lpad(F.hex(size.div(half)), 16, "0")
    low = F.lpad(F.conv((size % half).cast("string"), 10, 16), 16, "0")
    digits = F.concat(high, low)
    return F.when(number < 0, complement(digits)).otherwise(digits)


def _float(name: str, number: Sql) -> Sql:
    """Return the digits of an IEEE 754 number: sign, exponent and fraction side by side."""
    width, (mantissa_bits, bias) = WIDTHS[name], FLOATS[name]
    number = number.cast("double")
    size = F.abs(number)
    # The logarithm is off by at most one step; dividing by a power of two is exact.
    guess = F.greatest(F.least(F.floor(F.log2(size)), F.lit(bias)), F.lit(1 - bias))
    rest = size / F.pow(F.lit(2.0), guess.cast("double"))
    step = F.when(rest >= 2, 1).when(rest < 1, -1).otherwise(0)
    mantissa = F.when(rest >= 2, rest / 2).when(rest < 1, rest * 2).otherwise(rest)
    # A subnormal number is scaled in two steps, because a single factor would be too large for a double.
    whole = bias + mantissa_bits - 1
    subnormal = size < F.lit(2.0 ** (1 - bias))
    scaled = size * F.lit(2.0 ** (whole // 2)) * F.lit(2.0 ** (whole - whole // 2))
    fraction = F.when(subnormal, scaled).otherwise((mantissa - 1) * F.lit(2.0**mantissa_bits))
    exponent = F.when(subnormal, 0).otherwise(guess + step + F.lit(bias))
    special = F.isnan(number) | (size == F.lit(float("inf")))
    quiet = F.lit(1 << (mantissa_bits - 1))
    # Negative zero can be distinguished from zero only as text.
    negative = ((number < 0) | ((number == 0) & number.cast("string").startswith("-"))) & ~F.isnan(number)
    sign = F.when(negative, 2 * bias + 2).otherwise(0)
    head = F.when(special, 2 * bias + 1).otherwise(exponent) + sign
    tail = F.when(F.isnan(number), quiet).when(special, F.lit(0)).otherwise(fraction)
    bits = F.shiftleft(head.cast("bigint"), mantissa_bits).bits_or(tail.cast("bigint"))
    return F.substring(F.lpad(F.hex(bits), 16, "0"), 17 - 2 * width, 2 * width)


# Text -----------------------------------------------------------------------------------------------------------------


def _from_text(name: str, order: str, value: Sql) -> Checked:
    checks, text = parser(name if name == "string" else f"{name}:text")(value.cast("binary"))
    if name == "string" or order == "text":
        return Checked(checks, text.cast("binary"))
    digits = F.translate(text, "-", "") if name == "uuid" else F.lpad(F.hex(F.ascii(text)), 4, "0")
    if order == "guid":
        digits = guid_digits(F.unhex(digits))
    return Checked(checks, _in_byte_order(name, "le" if order == "reversed" else order, F.unhex(digits)))


def _in_charset(charset: str, text: Sql) -> Checked:
    lacking = "[\u0100-\U0010ffff]" if charset == "latin-1" else "\ufffe"
    lacks = check(text.rlike(lacking), "out_of_range", f"the text has a character that {charset} lacks")
    checks, _ = parser("string")(text.cast("binary"))
    return Checked([*checks, lacks], F.encode(text, java_charset(charset)))


# Text with a form of its own ------------------------------------------------------------------------------------------

_MICROS_OF_DAY = 86_400 * 1_000_000


def _in_unit(type: str, unit: str, time: Sql, truncate: bool) -> tuple[Sql, Check] | tuple[Sql]:
    """Return a time as a number of units since 1970, and the check that no digits are lost."""
    micros, size = F.unix_micros(time), F.lit(1_000_000 // UNITS[unit])
    rest = F.pmod(micros, size)
    number = (micros - rest).div(size)
    message = f'the time has more decimals than {type}: pass "timestamp:iso", or truncate=True to cut them off'
    return (number,) if truncate else (number, check(rest != 0, "out_of_range", message))


def _from_time(type: str, unit: str, time: Sql, truncate: bool) -> Checked:
    micros = F.unix_micros(time)
    within = in_years(micros, 1_000_000)
    if unit == "iso":
        return Checked([within], _iso(micros).cast("binary"))
    if unit == "ns":
        # Nanoseconds of most years do not fit a long.
        return Checked(
            [within], F.when(micros == 0, "0").otherwise(F.concat(micros.cast("string"), F.lit("000"))).cast("binary")
        )
    number, *checks = _in_unit(type, unit, time, truncate)
    return Checked([within, *checks], number.cast("string").cast("binary"))


def _iso(micros: Sql) -> Sql:
    """Return RFC 3339 in UTC, regardless of the session's zone, with no, three or six decimals, as needed."""
    of_day = F.pmod(micros, F.lit(_MICROS_OF_DAY))
    days = (micros - of_day).div(F.lit(_MICROS_OF_DAY)).cast("int")

    def part(divisor: int, modulo: int, width: int) -> Sql:
        number = F.pmod(of_day.div(F.lit(divisor)), F.lit(modulo))
        return F.lpad(number.cast("string"), width, "0")

    hours, minutes, seconds = part(3_600_000_000, 24, 2), part(60_000_000, 60, 2), part(1_000_000, 60, 2)
    fraction = part(1, 1_000_000, 6)
    decimals = (
        F.when(fraction == "000000", "")
        .when(fraction.endswith("000"), F.concat(F.lit("."), F.substring(fraction, 1, 3)))
        .otherwise(F.concat(F.lit("."), fraction))
    )
    date = F.date_add(F.lit("1970-01-01").cast("date"), days).cast("string")
    colon = F.lit(":")
    return F.concat(date, F.lit("T"), hours, colon, minutes, colon, seconds, decimals, F.lit("Z"))


def _from_date(date: Sql) -> Checked:
    outside = check(~F.year(date).between(1, 9999), "out_of_range", "the date is not in the years 1 to 9999")
    return Checked([outside], date.cast("string").cast("binary"))


def _from_decimal(name: str, number: Sql, scale: int, truncate: bool) -> Checked:
    """Write a decimal with as many decimals as its type has, by digits, because arithmetic could round it."""
    precision, places = map(int, name[len("decimal(") : -1].split(","))
    # `format_number` is the only function that never writes a decimal with an exponent, whatever the configuration.
    text = F.translate(F.format_number(number, scale), ",", "")
    digits = F.translate(text, "-", "")
    whole = F.substring_index(digits, ".", 1)
    fraction = F.rpad(F.substring_index(digits, ".", -1) if scale else F.lit(""), max(scale, places), "0")
    kept, rest = F.substring(fraction, 1, places), F.substring(fraction, places + 1, max(scale, places) - places)
    written = F.concat(whole, F.lit("."), kept) if places else whole
    is_zero = F.translate(written, "0.", "") == ""
    signed = F.concat(F.when((number < 0) & ~is_zero, "-").otherwise(""), written)
    has_rest = F.translate(rest, "0", "") != "" if scale > places else F.lit(False)
    significant = F.when(whole == "0", 0).otherwise(F.length(whole))
    checks = [check(significant > precision - places, "out_of_range", f"the number does not fit {name}")]
    if not truncate:
        message = f"the number has more decimals than {name}: pass more, or truncate=True to cut them off"
        checks.insert(0, check(has_rest, "out_of_range", message))
    return Checked(checks, signed.cast("binary"))


_BASES: dict[str, Callable[[Sql], Sql]] = {
    # Some versions of Spark break lines after 76 characters.
    "base64": lambda data: F.translate(F.base64(data), "\r\n", "").cast("binary"),
    "hex": lambda data: F.lower(F.hex(data)).cast("binary"),
}


# Tables ---------------------------------------------------------------------------------------------------------------

_INTEGERS = (
    (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType),
    "tinyint, smallint, int, bigint or a decimal without places",
)

_FITS: dict[str, tuple[tuple[type[T.DataType], ...], str]] = {
    "string": ((T.StringType,), "string"),
    "binary": ((T.BinaryType,), "binary"),
    "bool": ((T.BooleanType,), "boolean"),
    "char": ((T.StringType,), "string"),
    "uuid": ((T.StringType,), "string"),
    "float32": ((T.FloatType,), "float"),
    "float64": ((T.FloatType, T.DoubleType), "float or double"),
    "timestamp_ms": ((T.TimestampType,), "timestamp"),
    "timestamp": ((T.TimestampType,), "timestamp"),
    "date": ((T.DateType,), "date"),
}
