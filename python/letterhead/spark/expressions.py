r"""What the bytes of one value mean when they are read as a type, as expressions of Spark SQL.

The same rules as the native ``select``, which the tests compare with these. One function a type takes the bytes (a
column, never null where it counts) and gives a :class:`Reading`: the value, and before it everything that can be wrong
with the bytes, in order. Numbers are read from the digits of ``hex``::

    int32     v = 00 00 01 02   hex(v) = '00000102'   conv(…, 16, 10) = 258
    float64   v = bf f8 …       sign, exponent and mantissa are bits of that number; mantissa * 2 ** exponent is exact

Notes for the next reader:

* A value is evaluated only where no fault held: casts that ANSI mode would let fail stand behind their checks.
* Patterns end in ``\z``: in Java ``$`` also matches before a last newline.
* Everything is an operator that Spark has had since 3.5 and that keeps within double, long and decimal(38, 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from letterhead.values import VALUE_TYPES

__all__ = ["Fault", "Reading", "header_reading", "is_type", "reading"]


class Fault(NamedTuple):
    """Something that can be wrong with a value.

    Attributes
    ----------
    when : Column
        Whether it is.
    code : str
        One of :data:`letterhead.errors.CODES`.
    message : Column
        The words of the native module for it.
    """

    when: Column
    code: str
    message: Column


class Reading(NamedTuple):
    """A value read from bytes.

    Attributes
    ----------
    faults : sequence of Fault
        What can be wrong, the first that holds being the one to report.
    value : Column
        The value, defined where no fault holds.
    """

    faults: Sequence[Fault]
    value: Column


def reading(type: str) -> Callable[[Column], Reading]:
    """Look up how a type is read.

    Parameters
    ----------
    type : str
        ``name[:be|le|text]``, already checked.

    Returns
    -------
    callable of Column to Reading
        What reads a binary column. Null bytes give a null value and no fault.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> read = reading("int64:text")(F.lit(b"one"))
    >>> [fault.code for fault in read.faults]
    ['bad_text', 'out_of_range']
    """
    name, _, suffix = type.partition(":")
    if suffix == "text":
        return partial(_TEXT.get(name, _integer_text), name)
    return partial(_BYTES.get(name, _integer), name, suffix == "le")


def header_reading(type: str, has_types: bool) -> Callable[[Column], Reading]:
    """Look up how the value of a header is read as a type.

    Parameters
    ----------
    type : str
        ``name[:be|le|text]``, already checked.
    has_types : bool
        Whether headers have a ``type``. It decides: of another one than the type needs, the value is not read. The
        bits of a value with a type lie most significant byte first, and the suffix is for values without.

    Returns
    -------
    callable of Column to Reading
        What reads a column of headers, structs with ``value`` and ``type``.
    """
    plain = reading(type)
    if not has_types:
        return lambda header: plain(header["value"])
    name = type.partition(":")[0]
    needed = _NEEDED.get(name, name)
    of_type = plain if VALUE_TYPES[needed] is None else reading(name)

    def read(header: Column) -> Reading:
        bytes, carried = header["value"], header["type"]
        message = F.concat(F.lit("the value is "), carried, F.lit(f" and {name} was asked for"))
        wrong = Fault(bytes.isNotNull() & (carried != needed), "wrong_type", message)
        found = plain(bytes) if of_type is plain else _either(carried.isNull(), plain(bytes), of_type(bytes))
        return Reading([wrong, *found.faults], found.value)

    return read


def is_type(name: Column) -> Column:
    """Tell names of types from other text.

    Parameters
    ----------
    name : Column
        A string.

    Returns
    -------
    Column
        Whether it is one of :data:`letterhead.values.VALUE_TYPES`, or ``type-16`` to ``type-255``.
    """
    return name.isin(*VALUE_TYPES) | name.rlike(r"\Akind-(?:1[6-9]|[2-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\z")


# Bytes ------------------------------------------------------------------------------------------------------------


def _string(name: str, little: bool, bytes: Column) -> Reading:
    return Reading([_fault(~_is_utf8(bytes), "value_not_utf8", "the value is not UTF-8")], bytes.cast("string"))


def _binary(name: str, little: bool, bytes: Column) -> Reading:
    return Reading([], bytes)


def _bool(name: str, little: bool, bytes: Column) -> Reading:
    byte = _unsigned(F.hex(bytes))
    message = F.concat(byte.cast("string"), F.lit(" is not a boolean: 0 or 1"))
    return Reading([_wrong_size(name, bytes), Fault(byte > 1, "bad_bool", message)], byte == 1)


def _char(name: str, little: bool, bytes: Column) -> Reading:
    digits = _digits(bytes, 2, little)
    # Unicode's U+FFFE is refused by Java's own UTF-16 decoder, so the character is spelled in UTF-8 here.
    unit = _unsigned(digits)
    surrogate = unit.between(0xD800, 0xDFFF)
    fault = _fault(surrogate, "out_of_range", "half of a surrogate pair is no character")
    return Reading([_wrong_size(name, bytes), fault], _utf8_of(unit))


def _integer(name: str, little: bool, bytes: Column) -> Reading:
    digits = _digits(bytes, _WIDTHS[name], little)
    faults = [_wrong_size(name, bytes)]
    if name in _WIDE:
        faults.append(_fault(_past_38_digits(name, digits), "out_of_range", "the number has more than 38 digits"))
        return Reading(faults, _wide(name, digits))
    return Reading(faults, _number(name, digits).cast(_SPARK_TYPES[name]))


def _timestamp_ms(name: str, little: bool, bytes: Column) -> Reading:
    millis = _number("int64", _digits(bytes, 8, little))
    return Reading([_wrong_size(name, bytes), _too_far(millis)], _timestamp(millis))


def _float(name: str, little: bool, bytes: Column) -> Reading:
    width, mantissa_bits, exponent_bits, bias = _FLOATS[name]
    digits = _digits(bytes, width, little)
    bits = _word(digits) if width == 8 else _unsigned(digits)
    top = (1 << exponent_bits) - 1
    exponent = F.shiftright(bits, mantissa_bits).bitwiseAND(F.lit(top))
    fraction = bits.bitwiseAND(F.lit((1 << mantissa_bits) - 1))
    # Both factors are exact doubles and so is their product: it has the bits that were written.
    subnormal = exponent == 0
    mantissa = F.when(subnormal, fraction).otherwise(fraction + F.lit(1 << mantissa_bits)).cast("double")
    power = F.when(subnormal, F.lit(1)).otherwise(exponent) - F.lit(bias + mantissa_bits)
    special = F.when(fraction == 0, F.lit(float("inf"))).otherwise(F.lit(float("nan")))
    size = F.when(exponent == top, special).otherwise(mantissa * F.pow(F.lit(2.0), power.cast("double")))
    negative = F.shiftright(bits, 8 * width - 1).bitwiseAND(F.lit(1)) == 1
    value = F.when(negative, -size).otherwise(size)
    return Reading([_wrong_size(name, bytes)], value.cast(_SPARK_TYPES[name]))


def _uuid(name: str, little: bool, bytes: Column) -> Reading:
    digits = F.lower(_digits(bytes, 16, little))
    groups = [F.substring(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    dash = F.lit("-")
    # Not `concat_ws`, which makes text of null.
    spelled = F.concat(*[part for group in groups for part in (group, dash)][:-1])
    return Reading([_wrong_size(name, bytes)], spelled)


# Text -------------------------------------------------------------------------------------------------------------


def _bool_text(name: str, bytes: Column) -> Reading:
    text = bytes.cast("string")
    return Reading([_bad_text(name, ~text.isin("true", "false"))], text == "true")


def _char_text(name: str, bytes: Column) -> Reading:
    text = bytes.cast("string")
    # Four bytes of UTF-8 are a character outside the Basic Multilingual Plane.
    one = _is_utf8(bytes) & (F.length(text) == 1) & (F.length(bytes) <= 3)
    return Reading([_bad_text(name, ~one)], text)


def _integer_text(name: str, bytes: Column) -> Reading:
    text = bytes.cast("string")
    # Bytes that are not UTF-8 match no pattern of ASCII characters.
    spelled = text.rlike(r"\A-?[0-9]+\z")
    digits = F.regexp_extract(text, r"\A-?0*([0-9]*)\z", 1)
    size = F.concat(F.lit("0"), digits).cast("decimal(38,0)")
    # Not `-size`: negation rounds to 34 digits (Spark 3.5 to 4.2).
    number = F.when(text.startswith("-"), F.lit(Decimal(0)) - size).otherwise(size)
    low, high = _RANGES[name]
    too_long = F.length(digits) > _DECIMAL_DIGITS
    outside = too_long | (number < F.lit(Decimal(low))) | (number > F.lit(Decimal(high)))
    message = F.lit(f"the number does not fit {name}")
    if name in _WIDE:
        message = F.when(too_long, "the number has more than 38 digits").otherwise(message)
    faults = [_bad_text(name, ~spelled), Fault(outside, "out_of_range", message)]
    return Reading(faults, number.cast(_SPARK_TYPES[name]))


def _timestamp_ms_text(name: str, bytes: Column) -> Reading:
    faults, millis = _integer_text("int64", bytes)
    spelled, outside = faults
    return Reading(
        [
            _bad_text(name, spelled.when),
            _fault(outside.when, outside.code, f"the number does not fit {name}"),
            _too_far(millis),
        ],
        _timestamp(millis),
    )


def _float_text(name: str, bytes: Column) -> Reading:
    text = bytes.cast("string")
    number = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    spelled = text.rlike(rf"\A(?:{number}|NaN|-?Infinity)\z")
    return Reading([_bad_text(name, ~spelled)], text.cast(_SPARK_TYPES[name]))


def _uuid_text(name: str, bytes: Column) -> Reading:
    text = bytes.cast("string")
    digit = "[0-9a-fA-F]"
    spelled = text.rlike(rf"\A{digit}{{8}}-{digit}{{4}}-{digit}{{4}}-{digit}{{4}}-{digit}{{12}}\z")
    return Reading([_bad_text(name, ~spelled)], F.lower(text))


# Tables -----------------------------------------------------------------------------------------------------------

_WIDTHS = {
    "bool": 1, "char": 2, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "int128": 16, "uint8": 1, "uint16": 2,
    "uint32": 4, "uint64": 8, "uint128": 16, "float32": 4, "float64": 8, "uuid": 16, "timestamp_ms": 8,
}  # fmt: skip

_NEEDED = {"uuid": "binary", "timestamp_ms": "int64"}
"""The type of what is read as a type that is none itself."""

_WIDE = ("int128", "uint128")

_DECIMAL_DIGITS = 38

_LARGEST_DECIMAL = 10**_DECIMAL_DIGITS - 1

_SPARK_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "int128": "decimal(38,0)",
    "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)", "uint128": "decimal(38,0)",
    "float32": "float", "float64": "double",
}  # fmt: skip

_RANGES = {
    f"{sign}int{bits}": (
        max(0 if sign else -(1 << (bits - 1)), -_LARGEST_DECIMAL),
        min((1 << (bits if sign else bits - 1)) - 1, _LARGEST_DECIMAL),
    )
    for sign in ("", "u")
    for bits in (8, 16, 32, 64, 128)
}

# Width, bits of the mantissa, bits of the exponent, bias.
_FLOATS = {"float32": (4, 23, 8, 127), "float64": (8, 52, 11, 1023)}

_BYTES: dict[str, Callable[[str, bool, Column], Reading]] = {
    "string": _string,
    "binary": _binary,
    "bool": _bool,
    "char": _char,
    "float32": _float,
    "float64": _float,
    "uuid": _uuid,
    "timestamp_ms": _timestamp_ms,
}

_TEXT: dict[str, Callable[[str, Column], Reading]] = {
    "bool": _bool_text,
    "char": _char_text,
    "float32": _float_text,
    "float64": _float_text,
    "uuid": _uuid_text,
    "timestamp_ms": _timestamp_ms_text,
}


# Digits and numbers -----------------------------------------------------------------------------------------------


def _digits(bytes: Column, width: int, little: bool) -> Column:
    """Give two hexadecimal digits a byte, the most significant byte first."""
    digits = F.hex(bytes)
    if not little or width == 1:
        return digits
    return F.concat(*[F.substring(digits, 2 * byte + 1, 2) for byte in reversed(range(width))])


def _unsigned(digits: Column) -> Column:
    """Give up to seven bytes as a long."""
    return F.conv(digits, 16, 10).cast("bigint")


def _word(digits: Column) -> Column:
    """Give eight bytes as the 64 bits of a long."""
    high, low = F.substring(digits, 1, 8), F.substring(digits, 9, 8)
    return F.shiftleft(_unsigned(high), 32).bitwiseOR(_unsigned(low))


def _number(name: str, digits: Column) -> Column:
    """Give an integer of up to eight bytes: a long, or a decimal for uint64."""
    if name == "uint64":
        return F.conv(digits, 16, 10).cast("decimal(20,0)")
    if name == "int64":
        return _word(digits)
    if name.startswith("u"):
        return _unsigned(digits)
    unused = 64 - 8 * _WIDTHS[name]
    return F.shiftright(F.shiftleft(_unsigned(digits), unused), unused)


def _past_38_digits(name: str, digits: Column) -> Column:
    """Say whether 16 bytes are more than decimal(38, 0) holds; digits of equal length compare as their numbers do."""
    highest = f"{_LARGEST_DECIMAL:032X}"
    if name == "uint128":
        return digits > highest
    lowest = f"{(1 << 128) - _LARGEST_DECIMAL:032X}"
    return (digits > highest) & (digits < lowest)


def _wide(name: str, digits: Column) -> Column:
    """Give 16 bytes as decimal(38, 0)."""

    def size(digits: Column) -> Column:
        high, low = (F.conv(F.substring(digits, start, 16), 16, 10).cast("decimal(20,0)") for start in (1, 17))
        return (high * F.lit(Decimal(1 << 64)) + low).cast("decimal(38,0)")

    if name == "uint128":
        return size(digits)
    # The complement of a negative number is its size less one; no step of it leaves 38 digits.
    complement = size(F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210"))
    negative = (F.lit(Decimal(-1)) - complement).cast("decimal(38,0)")
    return F.when(digits < "8", size(digits)).otherwise(negative)


def _timestamp(millis: Column) -> Column:
    return F.timestamp_millis(millis)


def _too_far(millis: Column) -> Fault:
    furthest = ((1 << 63) - 1) // 1000
    message = "the time does not fit 64 bits of microseconds"
    return _fault(~millis.between(-furthest, furthest), "out_of_range", message)


def _is_utf8(bytes: Column) -> Column:
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(bytes.cast("string"))
    # Spark 3.5: what Java replaces does not come back.
    return F.encode(F.decode(bytes, "UTF-8"), "UTF-8") == bytes


def _utf8_of(unit: Column) -> Column:
    """Give the character of a code point below 65536, which is no surrogate."""

    def tail(shift: int) -> Column:
        return F.shiftright(unit, shift).bitwiseAND(F.lit(0x3F)) + F.lit(0x80)

    one = F.lpad(F.hex(unit), 2, "0")
    two = F.concat(F.hex(F.shiftright(unit, 6) + F.lit(0xC0)), F.hex(tail(0)))
    three = F.concat(F.hex(F.shiftright(unit, 12) + F.lit(0xE0)), F.hex(tail(6)), F.hex(tail(0)))
    return F.unhex(F.when(unit < 0x80, one).when(unit < 0x800, two).otherwise(three)).cast("string")


# Faults -----------------------------------------------------------------------------------------------------------


def _either(when: Column, one: Reading, other: Reading) -> Reading:
    """Read in one way or another. `&` would not do: Spark may evaluate both sides of it."""
    no = F.lit(False)
    return Reading(
        [
            *(fault._replace(when=F.when(when, fault.when).otherwise(no)) for fault in one.faults),
            *(fault._replace(when=F.when(when, no).otherwise(fault.when)) for fault in other.faults),
        ],
        F.when(when, one.value).otherwise(other.value),
    )


def _fault(when: Column, code: str, message: str) -> Fault:
    return Fault(when, code, F.lit(message))


def _bad_text(name: str, when: Column) -> Fault:
    return _fault(when, "bad_text", f"the text does not spell {name}")


def _wrong_size(name: str, bytes: Column) -> Fault:
    width = _WIDTHS[name]
    length = F.length(bytes)
    counted = F.concat(length.cast("string"), F.when(length == 1, " byte").otherwise(" bytes"))
    return Fault(length != width, "wrong_size", F.concat(counted, F.lit(f" where {name} takes {width}")))
