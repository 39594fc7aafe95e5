r"""Parse the bytes of one value as a type, in expressions of Spark SQL: :func:`parser` and :func:`header_parser`.

The native ``select`` has the same rules; tests compare the two. A parser takes a binary column and returns a
:class:`Checked`: the value, and before it every condition that makes the bytes invalid, in order. Numbers are read from
the digits of ``hex``::

    int32     v = 00 00 01 02   hex(v) = '00000102'   conv(…, 16, 10) = 258
    float64   v = bf f8 …       sign, exponent and mantissa are bits of that number; mantissa * 2 ** exponent is exact

Notes for the next reader:

* A value is evaluated only if no check fails: casts that would fail in ANSI mode come after their checks.
* Patterns end in ``\z``: in Java ``$`` also matches before a last newline.
* Every operator exists since Spark 3.5, and stays within double, long and decimal(38, 0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TypeAlias

from letterhead import _native
from letterhead.spark.checks import Check, Checked, case_when, check, either, first_valid
from letterhead.spark.sql_text import F, Sql, bound
from letterhead.spark.text_forms import base_parser, form_parser, signed_digits, significant_digits
from letterhead.types import CHARSETS, split_type
from letterhead.values import VALUE_TYPES

__all__ = ["Fields", "guid_digits", "header_parser", "is_type", "is_utf8", "java_charset", "parser"]


Fields: TypeAlias = Sql | Mapping[str, Sql]
"""Struct, or its fields by name."""


def parser(type: str, *, in_millis: bool = False) -> Callable[[Sql], Checked]:
    """Return the function that parses a binary column as a type, such as ``int32:le`` or ``timestamp:iso:base64``.

    With ``in_millis``, values of ``timestamp_ms`` are numbers, because as microseconds they may exceed 64 bits.

    Examples
    --------
    >>> from letterhead.spark.sql_text import F
    >>> parse = parser("int64:text")
    >>> [check.code for check in parse(F.lit(b"one")).checks]
    ['bad_text', 'out_of_range']
    """
    name, suffix, base = split_type(type)
    if base:
        return base_parser(base, parser(type.removesuffix(f":{base}"), in_millis=in_millis))
    form = form_parser(type)
    if form is not None:
        return form
    if suffix in CHARSETS:
        return partial(_charset, suffix)
    if in_millis and name == "timestamp_ms":
        return _millis_text if suffix == "text" else partial(_millis, suffix == "le")
    if suffix == "text":
        return partial(_TEXT.get(name, _integer_text), name)
    if suffix == "guid":
        return lambda data: _uuid(name, False, F.unhex(guid_digits(data)))
    return partial(_BYTES.get(name, _integer), name, suffix in ("le", "reversed"))


def header_parser(type: str, has_types: bool, *, in_millis: bool = False) -> Callable[[Fields], Checked]:
    """Return the function that parses the value of a header, a struct with ``value`` and possibly ``type``.

    If headers have types, the stored type decides: a value of another type is invalid, and bytes are big-endian. The
    suffix of ``type`` applies to untyped values. Among alternatives, the first that parses the value applies.
    """
    alternatives = type.split(" | ")
    parsers = [_type_parser(alternative, has_types, in_millis) for alternative in alternatives]
    if len(parsers) == 1:
        return parsers[0]
    column_type = "bigint" if in_millis else _native.check_type(type)[1]

    def parse(header: Fields) -> Checked:
        checks, value = first_valid([parse(header) for parse in parsers])
        return Checked(checks, value.cast(column_type))

    return parse


def _type_parser(type: str, has_types: bool, in_millis: bool) -> Callable[[Fields], Checked]:
    plain = parser(type, in_millis=in_millis)
    if not has_types:
        return lambda header: plain(header["value"])
    name, suffix, base = split_type(type)
    if base or form_parser(type) is not None:
        has_form = form_parser(type.removesuffix(f":{base}")) is not None
        return lambda header: _text_header(type if has_form else f"{name}:{base}", plain, header)
    stored_type = _STORED_AS.get(name, name)
    big_endian = plain if VALUE_TYPES[stored_type] is None else parser(name)

    fitting = _fitting_types(name, stored_type)
    accepted = [stored_type, *fitting]
    if suffix in CHARSETS:
        # Text in typed headers is UTF-8; untyped bytes are in the requested character set.
        big_endian = parser(name)
        accepted.append("binary")

    def parse(header: Fields) -> Checked:
        data, header_type = header["value"], header["type"]
        message = F.concat(F.lit("the value is "), header_type, F.lit(f" and {name} was requested"))
        wrong = Check(data.is_not_null() & ~header_type.isin(*accepted), "wrong_type", message)
        is_plain = header_type.is_null()
        if suffix in CHARSETS:
            is_plain = is_plain | F.coalesce(header_type == "binary", F.lit(False))
        parsed = plain(data) if big_endian is plain else either(is_plain, plain(data), big_endian(data))
        if fitting:
            is_other = F.coalesce(header_type.isin(*fitting), F.lit(False))
            parsed = either(is_other, _parse_as_fitting_type(name, fitting, header_type, data), parsed)
        return Checked([wrong, *parsed.checks], parsed.value)

    return parse


def _text_header(type: str, plain: Callable[[Sql], Checked], header: Fields) -> Checked:
    """Parse a type with a text form, which is stored as text or bytes."""
    message = F.concat(F.lit("the value is "), header["type"], F.lit(f" and {type} was requested"))
    wrong = Check(header["value"].is_not_null() & ~header["type"].isin("string", "binary"), "wrong_type", message)
    checks, value = plain(header["value"])
    return Checked([wrong, *checks], value)


def _fitting_types(name: str, stored_type: str) -> list[str]:
    """Return the other types whose values may fit a type: integers fit integers and floats, and text fits bytes."""
    others = {"binary": ["string"], "string": ["char"]}.get(name, [])
    if name in RANGES or name in FLOATS or name == "timestamp_ms":
        others = [*RANGES, *(["float32"] if name == "float64" else [])]
    return [type for type in others if type != stored_type]


def _parse_as_fitting_type(name: str, types: Sequence[str], type: Sql, data: Sql) -> Checked:
    """Parse bytes as one of several types, and convert the value to another type; a check fails if no type fits."""
    checks: list[Check] = []
    values: list[tuple[Sql, Sql]] = []
    for stored in types:
        parsed = _widen(name, stored, data)
        is_stored = type == stored
        checks += [
            check._replace(when=F.when(is_stored, check.when).otherwise(F.lit(False))) for check in parsed.checks
        ]
        values.append((is_stored, parsed.value))
    return Checked(checks, case_when(values, F.lit(None)))


def _widen(name: str, stored: str, data: Sql) -> Checked:
    """Parse bytes as a type, and convert the value to another type."""
    if stored not in RANGES:
        checks, value = parser(stored)(data) if stored != "string" else Checked([], data)
        return Checked(checks, value.cast("double") if name == "float64" else value)
    digits, checks = F.hex(data), [_wrong_size(stored, data)]
    unfit = f"the number has no exact {name}" if name in FLOATS else f"the number does not fit {name}"
    if stored in WIDE:
        if name in WIDE:
            if stored == "int128":
                checks.append(check(digits >= "8", "out_of_range", unfit))
            unfit = "the number has more than 38 digits"
        checks.append(check(_past_38_digits(stored, digits), "out_of_range", unfit))
        number = _wide(stored, digits)
    else:
        number = _number(stored, digits).cast("decimal(38,0)")
    if name in FLOATS:
        limit = 1 << (FLOATS[name][0] + 1)
        low, high = -limit, limit
    else:
        low, high = RANGES["int64" if name == "timestamp_ms" else name]
    outside = (number < F.lit(Decimal(low))) | (number > F.lit(Decimal(high)))
    checks.append(check(outside, "out_of_range", unfit))
    if name == "timestamp_ms":
        millis = number.cast("bigint")
        return Checked([*checks, _too_far(millis)], F.timestamp_millis(millis))
    return Checked(checks, number.cast(_SPARK_TYPES[name]))


def is_type(name: Sql) -> Sql:
    """Return whether a string is in :data:`letterhead.values.VALUE_TYPES`, or ``type-16`` to ``type-255``."""
    return name.isin(*VALUE_TYPES) | name.rlike(r"\Atype-(?:1[6-9]|[2-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\z")


# Bytes ------------------------------------------------------------------------------------------------------------


def _string(name: str, little: bool, data: Sql) -> Checked:
    return Checked([check(~is_utf8(data), "value_not_utf8", "the value is not UTF-8")], data.cast("string"))


def _binary(name: str, little: bool, data: Sql) -> Checked:
    return Checked([], data)


def _bool(name: str, little: bool, data: Sql) -> Checked:
    byte = bound(_parse_unsigned(F.substring(F.hex(data), 1, 2)))
    not_bool = check(byte > 1, "bad_bool", "the byte is not a boolean: 0 or 1")
    return Checked([_wrong_size(name, data), not_bool], byte == 1)


def _char(name: str, little: bool, data: Sql) -> Checked:
    # Java's own UTF-16 decoder rejects U+FFFE, so the character is encoded in UTF-8 here.
    unit = bound(_parse_unsigned(F.substring(hex_digits(data, 2, little), 1, 4)))
    surrogate = unit.between(0xD800, 0xDFFF)
    is_half = check(surrogate, "out_of_range", "half of a surrogate pair is no character")
    return Checked([_wrong_size(name, data), is_half], _utf8_of(unit))


def _integer(name: str, little: bool, data: Sql) -> Checked:
    digits = bound(hex_digits(data, WIDTHS[name], little))
    checks = [_wrong_size(name, data)]
    if name in WIDE:
        checks.append(check(_past_38_digits(name, digits), "out_of_range", "the number has more than 38 digits"))
        return Checked(checks, _wide(name, digits))
    return Checked(checks, _number(name, digits).cast(_SPARK_TYPES[name]))


def _millis(little: bool, data: Sql) -> Checked:
    number = bound(_number("int64", F.substring(hex_digits(data, 8, little), 1, 16)))
    return Checked([_wrong_size("timestamp_ms", data)], number)


def _timestamp_ms(name: str, little: bool, data: Sql) -> Checked:
    checks, millis = _millis(little, data)
    return Checked([*checks, _too_far(millis)], F.timestamp_millis(millis))


def _float(name: str, little: bool, data: Sql) -> Checked:
    width, (mantissa_bits, bias) = WIDTHS[name], FLOATS[name]
    bits = bound(_parse_signed(F.substring(hex_digits(data, width, little), 1, 2 * width)))
    top = 2 * bias + 1
    exponent = F.shiftright(bits, mantissa_bits).bits_and(F.lit(top))
    fraction = bits.bits_and(F.lit((1 << mantissa_bits) - 1))
    # Both factors and their product are exact doubles.
    subnormal = exponent == 0
    mantissa = F.when(subnormal, fraction).otherwise(fraction + F.lit(1 << mantissa_bits)).cast("double")
    power = F.when(subnormal, F.lit(1)).otherwise(exponent) - F.lit(bias + mantissa_bits)
    special = F.when(fraction == 0, F.lit(float("inf"))).otherwise(F.lit(float("nan")))
    size = F.when(exponent == top, special).otherwise(mantissa * F.pow(F.lit(2.0), power.cast("double")))
    negative = F.shiftright(bits, 8 * width - 1).bits_and(F.lit(1)) == 1
    value = size * F.when(negative, F.lit(-1.0)).otherwise(1.0)
    return Checked([_wrong_size(name, data)], value.cast(_SPARK_TYPES[name]))


def _uuid(name: str, little: bool, data: Sql) -> Checked:
    digits = bound(F.lower(hex_digits(data, 16, little)))
    groups = [F.substring(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    dash = F.lit("-")
    # `concat_ws` is not used, because it skips nulls.
    spelled = F.concat(*[part for group in groups for part in (group, dash)][:-1])
    return Checked([_wrong_size(name, data)], spelled)


_UNIT = {"utf-16le": " $2$1", "utf-16be": " $1$2"}
"""Replacements that put the hex digits of a UTF-16 unit in big-endian order."""


def java_charset(charset: str) -> str:
    """Return the name of a character set in Java."""
    return {"latin-1": "ISO-8859-1"}.get(charset, charset.upper())


def _charset(charset: str, data: Sql) -> Checked:
    """Parse text in another character set. Its hex digits are validated first: decoding invalid text may fail the query."""
    text = F.decode(data, java_charset(charset))
    if charset not in _UNIT:
        return Checked([], text)
    units = F.regexp_replace(F.hex(data), "([0-9A-F]{2})([0-9A-F]{2})", _UNIT[charset])
    halves = F.regexp_replace(units, " D[89AB][0-9A-F]{2} D[C-F][0-9A-F]{2}", "")
    is_bad = (F.length(data) % 2 == 1) | halves.rlike(" D[89A-F]| FFFE")
    return Checked([check(is_bad, "bad_text", f"the value is not {charset}")], text)


# Text -------------------------------------------------------------------------------------------------------------


def _bool_text(name: str, data: Sql) -> Checked:
    text = data.cast("string")
    words = ("true", "True", "TRUE", "false", "False", "FALSE")
    message = "the text does not spell bool: true, True, TRUE, false, False or FALSE"
    return Checked([check(~text.isin(*words), "bad_text", message)], text.isin(*words[:3]))


def _char_text(name: str, data: Sql) -> Checked:
    text = data.cast("string")
    # Four bytes of UTF-8 encode a character outside the Basic Multilingual Plane.
    is_char = is_utf8(data) & (F.length(text) == 1) & (F.length(data) <= 3)
    return Checked([_bad_text(name, ~is_char)], text)


def _integer_text(name: str, data: Sql) -> Checked:
    spelled, too_long, number = signed_digits(data, _DECIMAL_DIGITS)
    low, high = RANGES[name]
    outside = too_long | (number < F.lit(Decimal(low))) | (number > F.lit(Decimal(high)))
    message = F.lit(f"the number does not fit {name}")
    if name in WIDE:
        is_read = too_long & ~_exceeds_128_bits(name, data)
        message = F.when(is_read, "the number has more than 38 digits").otherwise(message)
    checks = [_bad_text(name, ~spelled), Check(outside, "out_of_range", message)]
    return Checked(checks, number.cast(_SPARK_TYPES[name]))


def _exceeds_128_bits(name: str, data: Sql) -> Sql:
    """Return whether text of more than 38 digits is not a signed 128-bit number, the largest that the core parses."""
    text = data.cast("string")
    digits = significant_digits(text)
    least = str(1 << 127) if name == "int128" else "0"
    most = F.when(text.startswith("-"), least).otherwise(str((1 << 127) - 1))
    return (F.length(digits) > 39) | (digits > most)


def _millis_text(data: Sql) -> Checked:
    checks, millis = _integer_text("int64", data)
    spelled, outside = checks
    outside = check(outside.when, outside.code, "the number does not fit timestamp_ms")
    return Checked([_bad_text("timestamp_ms", spelled.when), outside], millis)


def _timestamp_ms_text(name: str, data: Sql) -> Checked:
    checks, millis = _millis_text(data)
    return Checked([*checks, _too_far(millis)], F.timestamp_millis(millis))


def _float_text(name: str, data: Sql) -> Checked:
    number = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    text = bound(F.regexp_extract(data.cast("string"), rf"\A(?:{number}|NaN|-?Infinity)\z", 0))
    value = bound(F.when(text != "", text).cast(_SPARK_TYPES[name]))
    # Infinity must be written as a word: digits that round to infinity are out of range.
    outside = (F.abs(value) == F.lit(float("inf"))) & ~text.endswith("Infinity")
    return Checked(
        [_bad_text(name, text == ""), check(outside, "out_of_range", f"the number does not fit {name}")], value
    )


def _uuid_text(name: str, data: Sql) -> Checked:
    text = data.cast("string")
    digit = "[0-9a-fA-F]"
    spelled = text.rlike(rf"\A{digit}{{8}}-{digit}{{4}}-{digit}{{4}}-{digit}{{4}}-{digit}{{12}}\z")
    return Checked([_bad_text(name, ~spelled)], F.lower(text))


# Tables -----------------------------------------------------------------------------------------------------------

WIDTHS = {name: width for name, width in VALUE_TYPES.items() if width is not None} | {"uuid": 16, "timestamp_ms": 8}
"""Widths of values in bytes."""

_STORED_AS = {"uuid": "binary", "timestamp_ms": "int64"}
"""Types that formats store as another type."""

WIDE = ("int128", "uint128")

_DECIMAL_DIGITS = 38

_LARGEST_DECIMAL = 10**_DECIMAL_DIGITS - 1

_SPARK_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "int128": "decimal(38,0)",
    "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)", "uint128": "decimal(38,0)",
    "float32": "float", "float64": "double",
}  # fmt: skip

RANGES = {
    f"{sign}int{bits}": (
        max(0 if sign else -(1 << (bits - 1)), -_LARGEST_DECIMAL),
        min((1 << (bits if sign else bits - 1)) - 1, _LARGEST_DECIMAL),
    )
    for sign in ("", "u")
    for bits in (8, 16, 32, 64, 128)
}

FLOATS = {"float32": (23, 127), "float64": (52, 1023)}
"""Number of mantissa bits and exponent bias of each type."""

_BYTES: dict[str, Callable[[str, bool, Sql], Checked]] = {
    "string": _string,
    "binary": _binary,
    "bool": _bool,
    "char": _char,
    "float32": _float,
    "float64": _float,
    "uuid": _uuid,
    "timestamp_ms": _timestamp_ms,
}

_TEXT: dict[str, Callable[[str, Sql], Checked]] = {
    "bool": _bool_text,
    "char": _char_text,
    "float32": _float_text,
    "float64": _float_text,
    "uuid": _uuid_text,
    "timestamp_ms": _timestamp_ms_text,
}


# Digits and numbers -----------------------------------------------------------------------------------------------


def hex_digits(data: Sql, width: int, little: bool) -> Sql:
    """Return two hexadecimal digits per byte, the most significant byte first."""
    digits = bound(F.hex(data))
    if not little or width == 1:
        return digits
    return F.concat(*[F.substring(digits, 2 * byte + 1, 2) for byte in reversed(range(width))])


def guid_digits(data: Sql) -> Sql:
    """Reverse the bytes of the first three groups in the digits of a UUID, which little-endian systems store reversed.

    Bytes of another length keep their number of digits.
    """
    digits = bound(F.hex(data))
    swapped = [F.substring(digits, 2 * byte + 1, 2) for byte in (3, 2, 1, 0, 5, 4, 7, 6)]
    return F.when(F.length(data) == 16, F.concat(*swapped, F.substring(digits, 17, 16))).otherwise(digits)


def complement(digits: Sql) -> Sql:
    """Invert the bits of hexadecimal digits."""
    return F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210")


def _parse_unsigned(digits: Sql) -> Sql:
    """Return up to seven bytes as a long."""
    return F.conv(digits, 16, 10).cast("bigint")


def _parse_signed(digits: Sql) -> Sql:
    """Return up to eight bytes as a signed long; eight bytes fill its 64 bits."""
    return F.conv(digits, 16, -10).cast("bigint")


def _number(name: str, digits: Sql) -> Sql:
    """Return an integer of up to eight bytes: a long, or a decimal for uint64."""
    if name == "uint64":
        return F.conv(digits, 16, 10).cast("decimal(20,0)")
    if name == "int64":
        return _parse_signed(digits)
    if name.startswith("u"):
        return _parse_unsigned(digits)
    unused = 64 - 8 * WIDTHS[name]
    return F.shiftright(F.shiftleft(_parse_unsigned(digits), unused), unused)


def _past_38_digits(name: str, digits: Sql) -> Sql:
    """Return whether a 16-byte integer exceeds decimal(38, 0); digits of equal length compare as numbers."""
    highest = f"{_LARGEST_DECIMAL:032X}"
    if name == "uint128":
        return digits > highest
    lowest = f"{(1 << 128) - _LARGEST_DECIMAL:032X}"
    return (digits > highest) & (digits < lowest)


def _wide(name: str, digits: Sql) -> Sql:
    """Return 16 bytes as decimal(38, 0)."""

    def size(digits: Sql) -> Sql:
        high, low = (F.conv(F.substring(digits, start, 16), 16, 10).cast("decimal(20,0)") for start in (1, 17))
        return (high * F.lit(Decimal(1 << 64)) + low).cast("decimal(38,0)")

    if name == "uint128":
        return size(digits)
    # The complement of a negative number is its absolute value minus 1; no step exceeds 38 digits.
    negative = (F.lit(Decimal(-1)) - size(complement(digits))).cast("decimal(38,0)")
    return F.when(digits < "8", size(digits)).otherwise(negative)


def _too_far(millis: Sql) -> Check:
    furthest = ((1 << 63) - 1) // 1000
    message = "the time does not fit 64 bits of microseconds"
    return check(~millis.between(-furthest, furthest), "out_of_range", message)


def is_utf8(data: Sql) -> Sql:
    """Return whether bytes are UTF-8."""
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(data.cast("string"))
    # Spark 3.5 replaces invalid bytes when decoding, so encoding does not restore them.
    return F.encode(F.decode(data, "UTF-8"), "UTF-8") == data


def _utf8_of(unit: Sql) -> Sql:
    """Return the character of a code point below 65,536 other than a surrogate."""

    def tail(shift: int) -> Sql:
        return F.shiftright(unit, shift).bits_and(F.lit(0x3F)) + F.lit(0x80)

    one_byte = F.lpad(F.hex(unit), 2, "0")
    two_bytes = F.concat(F.hex(F.shiftright(unit, 6) + F.lit(0xC0)), F.hex(tail(0)))
    three_bytes = F.concat(F.hex(F.shiftright(unit, 12) + F.lit(0xE0)), F.hex(tail(6)), F.hex(tail(0)))
    return F.unhex(F.when(unit < 0x80, one_byte).when(unit < 0x800, two_bytes).otherwise(three_bytes)).cast("string")


# Checks -----------------------------------------------------------------------------------------------------------


def _bad_text(name: str, when: Sql) -> Check:
    return check(when, "bad_text", f"the text does not spell {name}")


def _wrong_size(name: str, data: Sql) -> Check:
    width = WIDTHS[name]
    length = F.length(data)
    counted = F.concat(length.cast("string"), F.when(length == 1, " byte").otherwise(" bytes"))
    return Check(length != width, "wrong_size", F.concat(counted, F.lit(f" where {name} takes {width}")))
