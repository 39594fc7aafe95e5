"""What the bytes of a value mean when they are read as a type, and how a typed value is written without its type.

::

    type         name[:be|le|text|json|varlen|amqp|utf-16le|utf-16be|latin-1][:base64|hex]
    int32        ┌──┬──┬──┬──┐  most significant byte first (be, the default) or last (le)
                 └──┴──┴──┴──┘
    int32:text   "-42"          ASCII, no spaces
    int32:json   -42, "-42"     JSON as Spring Kafka writes it
    int32:varlen d6, ff d6      a two's complement of any length, most significant byte first
    int32:amqp   54 d6          an AMQP 1.0 primitive, as :mod:`tests.reference.amqp` reads it

    bool            true | True | TRUE | false | False | FALSE
    integers        -?[0-9]+      (timestamp_ms too)
    floats          [+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)? | NaN | Infinity | -Infinity
    uuid            8-4-4-4-12 hexadecimal digits of either case
    char            one character up to U+FFFF
"""

from __future__ import annotations

import json
import math
import re
import struct
import uuid
from datetime import date
from decimal import ROUND_DOWN, Decimal, localcontext

from letterhead._formatting import count_noun
from letterhead._names import unknown_name
from tests.reference import amqp, text_forms

Scalar = bool | int | float | str | bytes
"""A value of a type that formats or columns have; text with a form of its own is read by :mod:`tests.reference.text_forms`."""

INTEGERS: dict[str, tuple[int, bool]] = {
    "int8": (1, True),
    "int16": (2, True),
    "int32": (4, True),
    "int64": (8, True),
    "int128": (16, True),
    "uint8": (1, False),
    "uint16": (2, False),
    "uint32": (4, False),
    "uint64": (8, False),
    "uint128": (16, False),
    "timestamp_ms": (8, True),
}
"""Width and sign of what is read as an integer."""

_ELEMENT = rb"[ \t\r\n]*(?:0|-?[1-9][0-9]{0,9})[ \t\r\n]*"

JSON_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

WIDTHS: dict[str, int] = {
    "bool": 1,
    "char": 2,
    "float32": 4,
    "float64": 8,
    "uuid": 16,
    **{name: width for name, (width, _) in INTEGERS.items()},
}
"""Bytes of a value, where that is fixed."""

TYPES: tuple[str, ...] = ("string", "binary", *WIDTHS)
SUFFIXES: tuple[str, ...] = ("be", "le", "text")
UUID_ORDERS: tuple[str, ...] = ("guid", "reversed")
CHARSET_TYPES: tuple[str, ...] = ("string:utf-16le", "string:utf-16be", "string:latin-1")
CHARSETS = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be", "latin-1": "latin-1"}
"""Character sets, and Python's names of them."""

DIALECTS: tuple[str, ...] = ("arrow", "spark")

DECIMAL_LIMIT = 10**38
"""Columns of 128-bit integers are decimals of 38 digits."""

READ_ONLY = ("json", "varlen", "amqp")
"""Suffixes of encodings that are read and not written."""

_HALFWAY_TO_INFINITY = 2.0**128 - 2.0**103
"""From here on the nearest number of 32 bits would be 2**128, which there is not."""

_INTEGER = re.compile(rb"-?[0-9]+")
_FLOAT = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|-?Infinity")
_WORDS = (b"true", b"True", b"TRUE", b"false", b"False", b"FALSE")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Misfit(Exception):
    """Bytes that are no value of a type: the code, the reason, the byte within the value."""

    def __init__(self, code: str, message: str, within: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.within = within


def parse(text: str) -> tuple[str, str]:
    """Split ``name[:be|le|text|json|varlen|amqp]`` into the name and how its bytes spell it."""
    text, _ = text_forms.split_base(text)
    name, colon, suffix = text.partition(":")
    if text_forms.is_form(text):
        return name, suffix
    if suffix in CHARSETS:
        if name != "string":
            raise ValueError(f"type '{text}': only string has the suffix ':{suffix}'")
        return name, suffix
    if name not in TYPES:
        raise unknown_name("type", name, TYPES)
    if suffix == "amqp" and name not in amqp.READ_AS:
        raise ValueError(f"type '{text}': AMQP has no {name}")
    if suffix == "varlen" and name not in INTEGERS:
        raise ValueError(f"type '{text}': only integers and times have a variable length")
    if suffix in READ_ONLY:
        return name, suffix
    if suffix in UUID_ORDERS and name != "uuid":
        raise ValueError(f"type '{text}': only uuid has the suffix ':{suffix}'")
    if name == "uuid" and suffix == "le":
        raise ValueError(f"type '{text}' does not say which order: pass 'uuid:guid' or 'uuid:reversed'")
    if colon and suffix not in (*SUFFIXES, *UUID_ORDERS):
        raise unknown_name("suffix", suffix, (*SUFFIXES, *UUID_ORDERS, *READ_ONLY))
    if colon and name in ("string", "binary"):
        raise ValueError(f"type '{text}': {name} has neither byte order nor digits: leave out ':{suffix}'")
    return name, suffix or "be"


def read(type: str, data: bytes, *, dialect: str = "arrow") -> Scalar | Decimal | date | None:
    """Read the bytes of a value as a type; ``None`` is a null of AMQP or JSON.

    An integer is an int, a ``timestamp_ms`` the int that a column of the dialect holds: milliseconds for Arrow,
    microseconds for Spark.
    """
    name, spelling = parse(type)
    bytes_type, base = text_forms.split_base(type)
    if base:
        try:
            return read(bytes_type, text_forms.read_base(base, data), dialect=dialect)
        except text_forms.Unfit as unfit:
            raise Misfit(unfit.code, unfit.message) from None
        except Misfit as misfit:
            raise Misfit(misfit.code, misfit.message) from None
    if spelling in CHARSETS:
        return _read_charset(spelling, data)
    if text_forms.is_form(type):
        try:
            return text_forms.read(type, data)
        except text_forms.Unfit as unfit:
            raise Misfit(unfit.code, unfit.message) from None
    if spelling == "amqp":
        return _read_amqp(name, data, dialect)
    if spelling == "json":
        value = _read_json(name, data)
        if value is None:
            return None
    elif spelling == "varlen":
        value = _read_varlen(name, data)
    else:
        value = _read_text(name, data) if spelling == "text" else _read_bytes(name, spelling, data)
    if name in ("int128", "uint128") and not -DECIMAL_LIMIT < int(value) < DECIMAL_LIMIT:
        raise Misfit("out_of_range", "the number has more than 38 digits")
    return _ticks(int(value), dialect) if name == "timestamp_ms" else value


def is_text(type: str) -> bool:
    """Return whether every value of a type is text, which formats with types store as a string."""
    bytes_type, base = text_forms.split_base(type)
    return bool(base) or text_forms.is_form(bytes_type)


def accepts(type: str, carried: str) -> bool:
    """Return whether a value that carries a type may be read as a type."""
    name, spelling = parse(type)
    if is_text(type):
        return carried in ("string", "binary")
    return (
        carried == name
        or (name, carried) in (("uuid", "binary"), ("timestamp_ms", "int64"))
        or (spelling in (*READ_ONLY, *CHARSETS) and carried == "binary")
    )


def is_wider(type: str, carried: str) -> bool:
    """Return whether values that carry a type may fit a type: integers in integers and floats, text in bytes."""
    name, _ = parse(type)
    if is_text(type):
        return False
    integers = ("int", "uint", "timestamp")
    if carried.startswith(integers):
        return name.startswith((*integers, "float"))
    return (name, carried) in (("float64", "float32"), ("binary", "string"), ("string", "char"))


def read_wider(type: str, carried: str, bits: bytes, *, dialect: str = "arrow") -> Scalar | None:
    """Read a value that carries another type; one that does not fit is a misfit."""
    name, _ = parse(type)
    if name == "binary":
        return bits
    value = _read_bytes(carried, "be", bits)
    if name.startswith("float") and carried != "float32":
        assert isinstance(value, int)
        if abs(value) > (1 << 24 if name == "float32" else 1 << 53):
            raise Misfit("out_of_range", f"the number has no exact {name}")
        return float(value)
    if isinstance(value, int):
        signed = not name.startswith("uint")
        width = 8 * WIDTHS[name]
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        if not low <= value <= high:
            raise Misfit("out_of_range", f"the number does not fit {name}")
        if name in ("int128", "uint128") and not -DECIMAL_LIMIT < value < DECIMAL_LIMIT:
            raise Misfit("out_of_range", "the number has more than 38 digits")
        return _ticks(value, dialect) if name == "timestamp_ms" else value
    return value


def untyped(type: str, bits: bytes, spelling: str) -> bytes:
    """Write the bits of a typed value for a format without types, as ``be``, ``le`` or ``text``."""
    if type not in WIDTHS:  # strings, bytes, and types without a name: nothing to order or to spell
        return bits
    _check_width(type, bits)
    if spelling == "text":
        return _spell(type, bits)
    return bits if spelling == "be" else bits[::-1]


def typed(type: str, data: bytes, spelling: str) -> bytes:
    """Return the bits of a value that was written without its type: what ``untyped`` undoes."""
    if spelling == "text":
        return _bits(type, _read_text(type, data))
    check("value", type, data)
    return data[::-1] if spelling == "le" and type in WIDTHS else data


def text_of(type: str, bits: bytes) -> str | None:
    """Return the text of a value that has one; bytes, types without a name and bits that are no value have none."""
    if type != "string" and type not in WIDTHS:
        return None
    try:
        return bits.decode() if type == "string" else _spell(type, bits).decode()
    except (Misfit, UnicodeDecodeError):
        return None


def check(closely: str, type: str, data: bytes) -> None:
    """Look at a value as closely as the reader of a format does, whatever the order of its bytes.

    ``"nothing"`` takes any bytes. ``"size"`` wants as many as the type has. ``"value"`` wants a boolean to be 0 or 1
    and a string to be UTF-8 as well. A char may be half of a surrogate pair, and types without a name are anything.
    """
    if closely != "nothing" and type in WIDTHS:
        _check_width(type, data)
    if closely == "value" and type in ("bool", "string"):
        _read_bytes(type, "be", data)


def is_other_nan(type: str, bits: bytes) -> bool:
    """Return whether bits are a NaN that its text does not give back."""
    code = {"float32": ">f", "float64": ">d"}.get(type)
    if code is None:
        return False
    (number,) = struct.unpack(code, bits)
    return bool(number != number) and bits != struct.pack(code, float("nan"))


def _bits(name: str, value: Scalar) -> bytes:
    if name in INTEGERS:
        width, signed = INTEGERS[name]
        return int(value).to_bytes(width, "big", signed=signed)
    if name == "char":
        return str(value).encode("utf-16-be")
    return struct.pack({"bool": ">?", "float32": ">f", "float64": ">d"}[name], value)


def _check_width(name: str, data: bytes) -> None:
    width = WIDTHS[name]
    if len(data) != width:
        raise Misfit("wrong_size", f"{count_noun(len(data), 'byte')} where {name} takes {width}")


def _read_bytes(name: str, order: str, data: bytes) -> Scalar:
    if name == "string":
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Misfit("value_not_utf8", "the value is not UTF-8", error.start) from None
    if name == "binary":
        return data
    _check_width(name, data)
    if order in ("le", "reversed"):
        data = data[::-1]
    if order == "guid":
        return str(uuid.UUID(bytes_le=data))
    if name in INTEGERS:
        return int.from_bytes(data, "big", signed=INTEGERS[name][1])
    if name == "bool":
        if data not in (b"\0", b"\1"):
            raise Misfit("bad_bool", "the byte is not a boolean: 0 or 1")
        return data == b"\1"
    if name == "char":
        unit = int.from_bytes(data, "big")
        if 0xD800 <= unit <= 0xDFFF:
            raise Misfit("out_of_range", "half of a surrogate pair is no character")
        return chr(unit)
    if name == "uuid":
        digits = data.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return float(struct.unpack(">f" if name == "float32" else ">d", data)[0])


def _read_amqp(name: str, data: bytes, dialect: str) -> Scalar | None:
    detail = amqp.find_error(data, name)
    if detail is not None:
        assert detail.byte_offset is not None
        raise Misfit(detail.code, detail.message, detail.byte_offset)
    value = amqp.decode(data).value
    if value is None or name != "timestamp_ms":
        return value
    return _ticks(int(value), dialect, within=1)


def _read_json(name: str, data: bytes) -> Scalar | None:
    """Read JSON, in which text may lack its quotes and numbers may have them; ``None`` is null."""
    blank = b" \t\n\f\r"
    if name == "binary":
        return _read_json_bytes(data.strip(blank))
    quoted = _json_string(data.rstrip(blank) if name == "string" else data.strip(blank))
    if name == "string":
        text = _read_bytes(name, "be", data)
        return text if quoted is None else quoted
    if quoted is None:
        plain = data.strip(blank)
        if plain == b"null":
            return None
        if (name in INTEGERS or name.startswith("float")) and not JSON_NUMBER.fullmatch(plain):
            raise Misfit("bad_text", f"the text does not spell {name}")
        return _read_text(name, plain)
    if name != "char":
        quoted = quoted.strip(blank.decode())
    if quoted in ("", "null"):
        return None
    words = {"INF": "Infinity", "-INF": "-Infinity"} if name.startswith("float") else {}
    return _read_text(name, words.get(quoted, quoted).encode())


def _read_json_bytes(data: bytes) -> bytes | None:
    """Read a list of numbers, all signed or all unsigned, or Base64 in quotes."""
    if data == b"null":
        return None
    try:
        quoted = _json_string(data)
        if quoted is not None:
            return text_forms.read_base("base64", quoted.encode())
        if re.fullmatch(rb"\[[ \t\r\n]*(?:%s(?:,%s)*)?\]" % (_ELEMENT, _ELEMENT), data):
            numbers = json.loads(data)
            return bytes(numbers) if min(numbers, default=0) >= 0 else struct.pack(f"{len(numbers)}b", *numbers)
    except (ValueError, struct.error, text_forms.Unfit):
        pass
    raise Misfit("bad_text", "the text is not a JSON list of bytes, or Base64 in quotes")


def _json_string(data: bytes) -> str | None:
    """Return the text of a JSON string, ``None`` for anything else."""
    try:
        if not data.startswith(b'"'):
            return None
        text: str = json.loads(data.decode())
        text.encode()  # fails for half of a surrogate pair, which json accepts
    except ValueError:
        return None
    return text


def _read_charset(charset: str, data: bytes) -> str:
    try:
        text = data.decode(CHARSETS[charset])
    except UnicodeDecodeError:
        text = "\ufffe"
    if "\ufffe" in text:
        raise Misfit("bad_text", f"the value is not {charset}")
    return text


def _read_varlen(name: str, data: bytes) -> int:
    if not data:
        raise Misfit("wrong_size", f"no bytes where {name} has at least one")
    number = int.from_bytes(data, "big", signed=True)
    width, signed = INTEGERS[name]
    low, high = (-(1 << 8 * width - 1), (1 << 8 * width - 1) - 1) if signed else (0, (1 << min(8 * width, 127)) - 1)
    if not low <= number <= high:
        raise Misfit("out_of_range", f"the number does not fit {name}")
    return number


def _ticks(millis: int, dialect: str, *, within: int = 0) -> int:
    """Return a time as a column of the dialect counts it."""
    if dialect != "spark":
        return millis
    if not -(1 << 63) <= millis * 1000 < 1 << 63:
        raise Misfit("out_of_range", "the time does not fit 64 bits of microseconds", within)
    return millis * 1000


def _read_text(name: str, data: bytes) -> Scalar:
    if name == "bool":
        if data not in _WORDS:
            raise Misfit("bad_text", "the text does not spell bool: true, True, TRUE, false, False or FALSE")
        return data.lower() == b"true"
    if name in INTEGERS and _INTEGER.fullmatch(data):
        return _integer(name, data)
    if name in ("float32", "float64") and _FLOAT.fullmatch(data):
        number = nearest_float32(data.decode()) if name == "float32" else float(data)
        if math.isinf(number) and not data.endswith(b"Infinity"):
            raise Misfit("out_of_range", f"the number does not fit {name}")
        return number
    if name == "uuid" and _UUID.fullmatch(data):
        return data.decode().lower()
    if name == "char":
        text = data.decode(errors="ignore")
        if len(text) == 1 and text <= "\uffff" and text.encode() == data:
            return text
    raise Misfit("bad_text", f"the text does not spell {name}")


def _integer(name: str, data: bytes) -> int:
    width, signed = INTEGERS[name]
    digits = data.lstrip(b"-").lstrip(b"0")
    # Python refuses to read thousands of digits; forty are out of every range already.
    number = int(digits[:40] or b"0") * (-1 if data.startswith(b"-") else 1)
    low, high = (-1 << 8 * width - 1, 1 << 8 * width - 1) if signed else (0, 1 << 8 * width)
    if not low <= number < high:
        raise Misfit("out_of_range", f"the number does not fit {name}")
    return number


def nearest_float32(text: str) -> float:
    """Round a decimal to the nearest number of 32 bits, in one step.

    Rounding to 64 bits first is a second rounding. It can change the result only where the first one lands exactly
    between two numbers of 32 bits; there the decimal itself decides.
    """
    double = float(text)
    try:
        single = _as_float32(double)
    except OverflowError:
        if abs(double) == _HALFWAY_TO_INFINITY and Decimal(text).copy_abs() < Decimal(_HALFWAY_TO_INFINITY):
            return _as_float32(math.nextafter(double, 0.0))
        return math.copysign(math.inf, double)
    if double == single or math.isnan(double):
        return single
    other = _neighbour(single, up=double > single)
    exact = Decimal(text)
    if abs(double - single) != abs(other - double) or exact == Decimal(double):
        return single
    return max(single, other) if exact > Decimal(double) else min(single, other)


def _as_float32(number: float) -> float:
    return float(struct.unpack(">f", struct.pack(">f", number))[0])


def _neighbour(single: float, *, up: bool) -> float:
    """Return the next number of 32 bits above or below."""
    if single == 0.0:
        return 2.0**-149 if up else -(2.0**-149)
    bits = struct.unpack(">i", struct.pack(">f", single))[0]
    away = up == (single > 0)
    return float(struct.unpack(">f", struct.pack(">i", bits + (1 if away else -1)))[0])


def _spell(type: str, bits: bytes) -> bytes:
    value = _read_bytes(type, "be", bits)  # bits that are no value of their type have no spelling
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        return _spell_float(value, single=type == "float32").encode()
    return str(value).encode()


def _spell_float(number: float, *, single: bool) -> str:
    """Return the fewest digits that read back as the same number, without an exponent."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    plain = format(_shortest(abs(number), single=single), "f")
    return sign + (plain.rstrip("0").rstrip(".") if "." in plain else plain)


def _shortest(number: float, *, single: bool) -> Decimal:
    """Return the number of fewest digits that reads back as the same; of two, the nearer; of two as near, the larger."""
    if number == 0.0:
        return Decimal(0)
    reads = nearest_float32 if single else float
    # An exact decimal of 64 bits has up to 767 digits.
    with localcontext(prec=1100):
        exact = Decimal(number)
        for digits in range(17):
            unit = Decimal(1).scaleb(exact.adjusted() - digits)
            low = exact.quantize(unit, ROUND_DOWN)
            for candidate in sorted((low, low + unit), key=lambda near: (abs(near - exact), -near)):
                if reads(str(candidate)) == number:
                    return candidate
    raise AssertionError("seventeen digits are enough for every number of 64 bits")
