r"""What bytes a value becomes when it is written as a type, as expressions of Spark SQL: the way back of `expressions`.

One function a type takes a column and gives a :class:`Writing`: the bytes, and before them everything that can be wrong
with the value, in order. Numbers are written by the digits of ``hex``::

    int32     258    hex = '102'   padded to '00000102'   unhex = 00 00 01 02
    float64   -1.5   = -(1 + fraction) * 2 ** exponent    the three are put side by side as the bits of a long

A value is written only where no fault held. What text may be is asked of the reader of the same type, so that nothing is
written that it would refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from letterhead.spark.expressions import _FLOATS, _RANGES, _WIDE, _WIDTHS, Fault, _digits, reading

__all__ = ["Writing", "written_from", "writing"]


class Writing(NamedTuple):
    """Bytes written from a value.

    Attributes
    ----------
    faults : sequence of Fault
        What can be wrong with the value, the first that holds being the one to report.
    value : Column
        The bytes, defined where no fault holds; null for null.
    """

    faults: Sequence[Fault]
    value: Column


Writer: TypeAlias = Callable[[Column], Writing]


def writing(type: str) -> Writer:
    """Look up how a type is written.

    Parameters
    ----------
    type : str
        ``name[:be|le|text]``, already checked.

    Returns
    -------
    callable of Column to Writing
        What writes a column of one of the types that :func:`written_from` accepts.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> write = writing("int16:le")(F.lit(258))
    >>> [fault.code for fault in write.faults]
    ['out_of_range']
    >>> spark.range(1).select(F.hex(write.value).alias("bytes")).first().bytes
    '0201'
    """
    name, _, order = type.partition(":")
    if name == "binary":
        return lambda value: Writing([], value)
    if name in ("string", "uuid", "char"):
        return lambda value: _from_text(name, order, value)
    as_bytes = _spelled if order == "text" else _numbers(name, order == "le")
    return lambda value: as_bytes(_checked(name, value))


def written_from(type: str, given: T.DataType) -> str | None:
    """Say what a type is written from, where a column is not that.

    Parameters
    ----------
    type : str
        ``name[:be|le|text]``, already checked.
    given : DataType
        The type of the column.

    Returns
    -------
    str or None
        The types that fit, in words, or ``None`` if the given one does.

    Examples
    --------
    >>> from pyspark.sql import types as T
    >>> written_from("int64", T.ShortType()), written_from("int64", T.StringType())
    (None, 'tinyint, smallint, int, bigint or a decimal without places')
    """
    name = type.partition(":")[0]
    types, words = _FITS.get(name, _INTEGERS)
    fits = isinstance(given, types) and not (isinstance(given, T.DecimalType) and given.scale != 0)
    return None if fits else words


# Numbers --------------------------------------------------------------------------------------------------------------


def _checked(name: str, value: Column) -> Writing:
    """Give the number that is written, and whether it can be."""
    if name == "timestamp_ms":
        return Writing([], F.unix_millis(value))
    if name not in _RANGES:
        return Writing([], value)
    low, high = _RANGES[name]
    outside = (value < F.lit(Decimal(low))) | (value > F.lit(Decimal(high)))
    return Writing([Fault(outside, "out_of_range", F.lit(f"the number does not fit {name}"))], value)


def _spelled(number: Writing) -> Writing:
    return Writing(number.faults, number.value.cast("string").cast("binary"))


def _numbers(name: str, little: bool) -> Callable[[Writing], Writing]:
    width = _WIDTHS[name]
    digits = _float if name in _FLOATS else _wide if name in _WIDE else _narrow

    def as_bytes(number: Writing) -> Writing:
        bytes = F.unhex(digits(name, number.value))
        return Writing(number.faults, F.unhex(_digits(bytes, width, little)) if little else bytes)

    return as_bytes


def _narrow(name: str, number: Column) -> Column:
    """Give the digits of up to eight bytes."""
    if name == "bool":
        return F.when(number, "01").when(~number, "00")
    if name == "uint64":
        return F.lpad(F.conv(number.cast("string"), 10, 16), 16, "0")
    # A negative number has all 16 digits, and the first ones are left out.
    places = 2 * _WIDTHS[name]
    return F.substring(F.lpad(F.hex(number.cast("bigint")), 16, "0"), 17 - places, places)


def _wide(name: str, number: Column) -> Column:
    """Give the digits of 16 bytes; those of a negative number are the complement of what it lacks to minus one."""
    number = number.cast("decimal(38,0)")
    size = F.when(number < 0, F.lit(Decimal(-1)) - number).otherwise(number).cast("decimal(38,0)")
    half = F.lit(Decimal(1 << 64))
    # Of 38 digits the upper half has 63 bits at most.
    high = F.lpad(F.hex(F.call_function("div", size, half)), 16, "0")
    low = F.lpad(F.conv((size % half).cast("string"), 10, 16), 16, "0")
    digits = F.concat(high, low)
    return F.when(number < 0, F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210")).otherwise(digits)


def _float(name: str, number: Column) -> Column:
    """Give the digits of an IEEE 754 number: sign, exponent and fraction are put side by side."""
    width, mantissa_bits, _, bias = _FLOATS[name]
    number = number.cast("double")
    size = F.abs(number)
    # The logarithm is near enough that one step mends it; dividing by a power of two is exact.
    guess = F.greatest(F.least(F.floor(F.log2(size)), F.lit(bias)), F.lit(1 - bias))
    rest = size / F.pow(F.lit(2.0), guess.cast("double"))
    step = F.when(rest >= 2, 1).when(rest < 1, -1).otherwise(0)
    mantissa = F.when(rest >= 2, rest / 2).when(rest < 1, rest * 2).otherwise(rest)
    # One step would be too large for a double where the number is subnormal.
    whole = bias + mantissa_bits - 1
    subnormal = size < F.lit(2.0 ** (1 - bias))
    scaled = size * F.lit(2.0 ** (whole // 2)) * F.lit(2.0 ** (whole - whole // 2))
    fraction = F.when(subnormal, scaled).otherwise((mantissa - 1) * F.lit(2.0**mantissa_bits))
    exponent = F.when(subnormal, 0).otherwise(guess + step + F.lit(bias))
    special = F.isnan(number) | (size == F.lit(float("inf")))
    quiet = F.lit(1 << (mantissa_bits - 1))
    # Only its text tells negative zero from zero.
    negative = ((number < 0) | ((number == 0) & number.cast("string").startswith("-"))) & ~F.isnan(number)
    sign = F.when(negative, 2 * bias + 2).otherwise(0)
    head = F.when(special, 2 * bias + 1).otherwise(exponent) + sign
    tail = F.when(F.isnan(number), quiet).when(special, F.lit(0)).otherwise(fraction)
    bits = F.shiftleft(head.cast("bigint"), mantissa_bits).bitwiseOR(tail.cast("bigint"))
    return F.substring(F.lpad(F.hex(bits), 16, "0"), 17 - 2 * width, 2 * width)


# Text -----------------------------------------------------------------------------------------------------------------


def _from_text(name: str, order: str, value: Column) -> Writing:
    bytes = value.cast("binary")
    faults, text = reading(name if name == "string" else f"{name}:text")(bytes)
    if name == "string" or order == "text":
        return Writing(faults, text.cast("binary"))
    digits = F.translate(text, "-", "") if name == "uuid" else F.lpad(F.hex(F.ascii(text)), 4, "0")
    written = F.unhex(digits)
    return Writing(faults, F.unhex(_digits(written, _WIDTHS[name], True)) if order == "le" else written)


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
