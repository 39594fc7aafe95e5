"""Values that are text with a form of its own: times, dates and decimals; and bytes that are written as text.

::

    timestamp:iso          2026-01-31T09:30:00.5+01:00   RFC 3339, also without seconds
    timestamp:s ms us ns   -?[0-9]+                      since 1970
    date:text              2026-01-31
    decimal(p,s):text      [+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?
    <type>:base64          either alphabet, padded or not; bits after the last byte are 0
    <type>:hex             ([0-9a-fA-F]{2})*
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

TEXT_FORMS = (
    "timestamp:iso", "timestamp:s", "timestamp:ms", "timestamp:us", "timestamp:ns", "date:text", "decimal(9,2):text",
    "decimal(38,0):text", "decimal(38,38):text",
    "binary:base64", "binary:hex", "int32:base64", "int64:le:base64", "string:base64", "uuid:hex", "uuid:guid:base64",
    "timestamp:iso:base64", "int16:text:hex", "bool:base64", "decimal(9,2):text:base64", "string:utf-16le:base64",
)  # fmt: skip

_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = rb"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_HOUR = rb"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_ISO = re.compile(rb"(%s)[Tt ](%s)(?::([0-5][0-9]|60)(?:\.([0-9]+))?)?([Zz]|([+-])(%s))?" % (_DATE, _HOUR, _HOUR))
_DECIMAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE]([+-]?[0-9]+))?")
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}")


class Unfit(Exception):
    """Text that is no value of a form: the code and the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def is_form(type: str) -> bool:
    """Return whether a type is text with a form of its own."""
    name, _, suffix = type.partition(":")
    return (suffix in ("iso", *_UNITS)) or (suffix == "text" and name.startswith(("date", "decimal")))


def read(type: str, data: bytes) -> int | Decimal | date:
    """Read text: a time as microseconds since 1970."""
    name, _, suffix = type.partition(":")
    if suffix == "iso":
        return _read_iso(data)
    if name == "timestamp":
        if not re.fullmatch(rb"-?[0-9]+", data):
            raise Unfit("bad_text", f"the text does not spell {type}")
        digits = data.lstrip(b"-").lstrip(b"0")[:40] or b"0"
        return _micros(int(digits) * (-1 if data.startswith(b"-") else 1) * _UNITS[suffix])
    if name == "date":
        if not re.fullmatch(_DATE, data):
            raise Unfit("bad_text", "the text is not a date, such as 2026-01-31")
        return _date(data)
    return _read_decimal(name, data)


def split_base(type: str) -> tuple[str, str]:
    """Return the type of the bytes, and how they are written as text, which is empty if they are not."""
    inner, _, base = type.rpartition(":")
    return (inner, base) if base in ("base64", "hex") else (type, "")


def read_base(base: str, data: bytes) -> bytes:
    """Return the bytes of text."""
    if base == "hex":
        if not re.fullmatch(rb"(?:[0-9a-fA-F]{2})*", data):
            raise Unfit("bad_text", "the text is not pairs of hex digits")
        return bytes.fromhex(data.decode())
    digits = data.rstrip(b"=")
    if _BASE64.fullmatch(data) and len(digits) % 4 != 1 and (digits == data or len(data) % 4 == 0):
        padded = digits.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(digits) % 4)
        decoded = base64.b64decode(padded)
        if base64.b64encode(decoded) == padded:
            return decoded
    raise Unfit("bad_text", "the text is not Base64")


def _read_iso(data: bytes) -> int:
    match = _ISO.fullmatch(data)
    if not match:
        raise Unfit("bad_text", "the text is not a time with an offset, such as 2026-01-31T09:00:00Z")
    day, clock, second, fraction, zone, sign, offset = match.groups()
    if not zone:
        raise Unfit("bad_text", "the time has no offset, such as Z or +01:00: read it as string")
    minutes = (_date(day) - date(1970, 1, 1)).days * 86_400 + _seconds(clock)
    if sign:
        minutes -= _seconds(offset) * (-1 if sign == b"-" else 1)
    if second == b"60" and minutes % 86_400 != 86_340:
        raise Unfit("bad_text", "a leap second is at 23:59:60 in UTC")
    if second == b"60" and (fraction or b"").strip(b"0"):
        raise Unfit("out_of_range", "a fraction of a leap second has no number of its own")
    seconds = minutes + int(second or b"0")
    return _micros(seconds * 10**9 + int((fraction or b"0")[:9].ljust(9, b"0")))


def _seconds(clock: bytes) -> int:
    return sum(int(number) * unit for number, unit in zip(clock.split(b":"), (3600, 60, 1), strict=False))


def _date(data: bytes) -> date:
    year, month, day = map(int, data.split(b"-"))
    try:
        date(year or 400, month, day)
    except ValueError:
        raise Unfit("bad_text", "the date does not exist") from None
    if not year:
        raise Unfit("out_of_range", "the date is not in the years 1 to 9999")
    return date(year, month, day)


def _micros(nanos: int) -> int:
    micros = nanos // 1000
    first, end = (
        datetime(1, 1, 1, tzinfo=UTC) - _EPOCH,
        datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH + timedelta(days=1),
    )
    if not first // timedelta(microseconds=1) <= micros < end // timedelta(microseconds=1):
        raise Unfit("out_of_range", "the time is not in the years 1 to 9999")
    return micros


def _read_decimal(name: str, data: bytes) -> Decimal:
    match = _DECIMAL.fullmatch(data)
    if not match:
        raise Unfit("bad_text", f"the text does not spell {name}")
    precision, scale = map(int, name[len("decimal(") : -1].split(","))
    if not match[1].strip(b"0."):
        return Decimal(0).scaleb(-scale)
    if len((match[4] or b"0").lstrip(b"+-0")) > 9:
        raise Unfit("out_of_range", f"the number does not fit {name}")
    with localcontext(prec=10_000, Emax=MAX_EMAX, Emin=MIN_EMIN):
        number = Decimal(data.decode())
        # The digits without zeros at the end, and where the last one is.
        _, digits, exponent = number.normalize().as_tuple()
        assert isinstance(exponent, int)
        if exponent < -scale or len(digits) + exponent > precision - scale:
            raise Unfit("out_of_range", f"the number does not fit {name}")
        return number.quantize(Decimal(1).scaleb(-scale))
