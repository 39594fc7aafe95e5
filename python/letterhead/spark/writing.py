r"""Write a value as the bytes of a type, in expressions of Spark SQL: :func:`writer`, the inverse of `expressions.parser`.

Numbers are written by the digits of ``hex``::

    int32     258    hex = '102'   padded to '00000102'   unhex = 00 00 01 02
    float64   -1.5   = -(1 + fraction) * 2 ** exponent    the three are put side by side as the bits of a long

Text is checked by the parser of the same type, so that nothing is written that the parser would reject.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from letterhead.spark.checks import Check, Checked
from letterhead.spark.expressions import FLOATS, RANGES, WIDE, WIDTHS, complement, hex_digits, parser

__all__ = ["writer", "written_from"]

Writer: TypeAlias = Callable[[Column], Checked]


def writer(type: str) -> Writer:
    """Return the function that writes a column as a type ``name[:be|le|text]``, which must be valid.

    The column has one of the types that :func:`written_from` accepts.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> written = writer("int16:le")(F.lit(258))
    >>> [check.code for check in written.checks]
    ['out_of_range']
    >>> spark.range(1).select(F.hex(written.value).alias("bytes")).first().bytes
    '0201'
    """
    name, _, order = type.partition(":")
    if name == "binary":
        return lambda value: Checked([], value)
    if name in ("string", "uuid", "char"):
        return lambda value: _from_text(name, order, value)
    return lambda value: _from_number(name, order, value)


def written_from(type: str, column_type: T.DataType) -> str | None:
    """Return ``None`` if a type can be written from a column of a type of Spark, and otherwise the types that fit.

    Examples
    --------
    >>> from pyspark.sql import types as T
    >>> written_from("int64", T.ShortType()), written_from("int64", T.StringType())
    (None, 'tinyint, smallint, int, bigint or a decimal without places')
    """
    types, names = _FITS.get(type.partition(":")[0], _INTEGERS)
    has_decimals = isinstance(column_type, T.DecimalType) and column_type.scale != 0
    return None if isinstance(column_type, types) and not has_decimals else names


# Numbers --------------------------------------------------------------------------------------------------------------


def _from_number(name: str, order: str, value: Column) -> Checked:
    checks = []
    if name == "timestamp_ms":
        value = F.unix_millis(value)
    elif name in RANGES:
        low, high = RANGES[name]
        outside = (value < F.lit(Decimal(low))) | (value > F.lit(Decimal(high)))
        checks.append(Check(outside, "out_of_range", F.lit(f"the number does not fit {name}")))
    if order == "text":
        return Checked(checks, value.cast("string").cast("binary"))
    digits = _float if name in FLOATS else _wide if name in WIDE else _narrow
    return Checked(checks, _in_order(name, order, F.unhex(digits(name, value))))


def _in_order(name: str, order: str, bytes: Column) -> Column:
    return F.unhex(hex_digits(bytes, WIDTHS[name], True)) if order == "le" else bytes


def _narrow(name: str, number: Column) -> Column:
    """Return the digits of up to eight bytes."""
    if name == "bool":
        return F.when(number, "01").when(~number, "00")
    if name == "uint64":
        return F.lpad(F.conv(number.cast("string"), 10, 16), 16, "0")
    # A negative number has all 16 digits, and the first ones are dropped.
    places = 2 * WIDTHS[name]
    return F.substring(F.lpad(F.hex(number.cast("bigint")), 16, "0"), 17 - places, places)


def _wide(name: str, number: Column) -> Column:
    """Return the digits of 16 bytes; for a negative number n, the complement of the digits of -1 - n."""
    number = number.cast("decimal(38,0)")
    size = F.when(number < 0, F.lit(Decimal(-1)) - number).otherwise(number).cast("decimal(38,0)")
    half = F.lit(Decimal(1 << 64))
    # The upper half of 38 digits has 63 bits at most.
    high = F.lpad(F.hex(F.call_function("div", size, half)), 16, "0")
    low = F.lpad(F.conv((size % half).cast("string"), 10, 16), 16, "0")
    digits = F.concat(high, low)
    return F.when(number < 0, complement(digits)).otherwise(digits)


def _float(name: str, number: Column) -> Column:
    """Return the digits of an IEEE 754 number: sign, exponent and fraction side by side."""
    width, (mantissa_bits, bias) = WIDTHS[name], FLOATS[name]
    number = number.cast("double")
    size = F.abs(number)
    # The logarithm is off by one step at most; dividing by a power of two is exact.
    guess = F.greatest(F.least(F.floor(F.log2(size)), F.lit(bias)), F.lit(1 - bias))
    rest = size / F.pow(F.lit(2.0), guess.cast("double"))
    step = F.when(rest >= 2, 1).when(rest < 1, -1).otherwise(0)
    mantissa = F.when(rest >= 2, rest / 2).when(rest < 1, rest * 2).otherwise(rest)
    # For a subnormal number one factor would be too large for a double.
    whole = bias + mantissa_bits - 1
    subnormal = size < F.lit(2.0 ** (1 - bias))
    scaled = size * F.lit(2.0 ** (whole // 2)) * F.lit(2.0 ** (whole - whole // 2))
    fraction = F.when(subnormal, scaled).otherwise((mantissa - 1) * F.lit(2.0**mantissa_bits))
    exponent = F.when(subnormal, 0).otherwise(guess + step + F.lit(bias))
    special = F.isnan(number) | (size == F.lit(float("inf")))
    quiet = F.lit(1 << (mantissa_bits - 1))
    # Only as text does negative zero differ from zero.
    negative = ((number < 0) | ((number == 0) & number.cast("string").startswith("-"))) & ~F.isnan(number)
    sign = F.when(negative, 2 * bias + 2).otherwise(0)
    head = F.when(special, 2 * bias + 1).otherwise(exponent) + sign
    tail = F.when(F.isnan(number), quiet).when(special, F.lit(0)).otherwise(fraction)
    bits = F.shiftleft(head.cast("bigint"), mantissa_bits).bitwiseOR(tail.cast("bigint"))
    return F.substring(F.lpad(F.hex(bits), 16, "0"), 17 - 2 * width, 2 * width)


# Text -----------------------------------------------------------------------------------------------------------------


def _from_text(name: str, order: str, value: Column) -> Checked:
    checks, text = parser(name if name == "string" else f"{name}:text")(value.cast("binary"))
    if name == "string" or order == "text":
        return Checked(checks, text.cast("binary"))
    digits = F.translate(text, "-", "") if name == "uuid" else F.lpad(F.hex(F.ascii(text)), 4, "0")
    return Checked(checks, _in_order(name, order, F.unhex(digits)))


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
}
