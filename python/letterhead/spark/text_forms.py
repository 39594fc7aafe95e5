r"""Parse text with a form of its own, in expressions of Spark SQL: times, dates, decimals, Base64 and hex digits.

:func:`form_parser` returns the parser of a type such as ``timestamp:iso``, and :func:`base_parser` that of bytes which are
written as text, with the rules of the native module. Parts
of text that does not match are null, so that no cast fails. Patterns that repeat a class of characters do not recurse.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial

from letterhead.spark.checks import Check, Checked, check
from letterhead.spark.sql_text import F, Sql, bound

__all__ = ["UNITS", "base_parser", "form_parser", "in_years"]

_DATE = r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR = r"([01][0-9]|2[0-3]):([0-5][0-9])"
_ISO = rf"{_DATE}[Tt ]{_HOUR}(?::([0-5][0-9]|60)(?:\.([0-9]+))?)?(?:([Zz])|([+-]){_HOUR})?"
_DECIMAL = r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)0*([0-9]+))?"

_BASE64 = "|".join(
    rf"\A(?:{digit}{{4}})*(?:{digit}[AQgw](?:==)?|{digit}{{2}}[AEIMQUYcgkosw048]=?)?\z"
    for digit in ("[A-Za-z0-9+/]", "[A-Za-z0-9_-]")
)
"""Base64 in either alphabet, padded or not; bits after the last byte are 0. Java repeats a group of one length in a loop."""

UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units of time, and how many of each are a second."""

_FIRST, _END = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999 in seconds since 1970."""


def form_parser(type: str) -> Callable[[Sql], Checked] | None:
    """Return the function that parses a binary column as text of a type; None if the type has no form of its own.

    Examples
    --------
    >>> from letterhead.spark.sql_text import F
    >>> spark.range(1).select(form_parser("timestamp:s")(F.lit(b"5")).value.cast("double").column.alias("time")).first().time
    5.0
    """
    name, _, suffix = type.partition(":")
    if name == "timestamp":
        return _iso if suffix == "iso" else partial(_epoch, suffix)
    if suffix == "text" and name == "date":
        return _date
    return partial(_decimal, name) if suffix == "text" and name.startswith("decimal") else None


def base_parser(base: str, parse: Callable[[Sql], Checked]) -> Callable[[Sql], Checked]:
    """Return the function that parses a binary column as text in a base encoding, and the bytes of the text by ``parse``."""

    def parse_text(text: Sql) -> Checked:
        is_valid, data = (_base64 if base == "base64" else _hex)(bound(text.cast("string")))
        valid = bound(is_valid)
        message = "the text is not Base64" if base == "base64" else "the text is not pairs of hex digits"
        checks, value = parse(bound(F.when(valid, data)))
        return Checked([check(~valid, "bad_text", message), *checks], value)

    return parse_text


def _iso(data: Sql) -> Checked:
    part, spelled = _parts(data.cast("string"), _ISO)
    checks, days = _days(part, spelled, "the text is not a time with an offset, such as 2026-01-31T09:00:00Z")

    def seconds(hours: int, minutes: int) -> Sql:
        return F.coalesce(_number(part(hours)), F.lit(0)) * 3600 + F.coalesce(_number(part(minutes)), F.lit(0)) * 60

    offset = F.when(part(9) == "-", -seconds(10, 11)).otherwise(seconds(10, 11))
    minutes = bound(days.cast("bigint") * 86_400 + seconds(4, 5) - offset)
    time = bound(minutes + F.coalesce(_number(part(6)), F.lit(0)))
    micros = time * 1_000_000 + F.rpad(F.substring(part(7), 1, 6), 6, "0").cast("bigint")
    spells, *exists = checks
    no_offset = (part(8) == "") & (part(9) == "")
    is_leap = part(6) == "60"
    checks = [
        spells,
        check(no_offset, "bad_text", "the time has no offset, such as Z or +01:00: read it as string"),
        *exists,
        check(is_leap & (F.pmod(minutes, F.lit(86_400)) != 86_340), "bad_text", "a leap second is at 23:59:60 in UTC"),
        check(
            is_leap & (F.translate(part(7), "0", "") != ""),
            "out_of_range",
            "a fraction of a leap second has no number of its own",
        ),
        in_years(time, 1),
    ]
    return Checked(checks, F.timestamp_micros(micros))


def _epoch(unit: str, data: Sql) -> Checked:
    text = bound(data.cast("string"))
    spelled = text.rlike(r"\A-?[0-9]+\z")
    digits = bound(F.regexp_extract(text, r"\A-?0*([0-9]*)\z", 1))
    # The year 9999 has 21 digits of nanoseconds.
    too_long = bound(F.length(digits) > 27)
    size = bound(F.concat(F.lit("0"), F.when(~too_long, digits)).cast("decimal(38,0)"))
    number = bound(F.when(text.startswith("-"), F.lit(Decimal(0)) - size).otherwise(size))
    per_second = UNITS[unit]
    if unit == "ns":
        # A quotient of decimals is rounded, to a number of places that depends on the configuration.
        size = F.when(text.startswith("-"), size + F.lit(Decimal(999))).otherwise(size)
        whole = size.div(F.lit(Decimal(1000)))
        micros = F.when(text.startswith("-"), -whole).otherwise(whole)
    else:
        micros = number * F.lit(Decimal(1_000_000 // per_second))
    within = in_years(number, per_second)
    bad_text = check(~spelled, "bad_text", f"the text does not spell timestamp:{unit}")
    return Checked([bad_text, within._replace(when=too_long | within.when)], F.timestamp_micros(micros.cast("bigint")))


def _date(data: Sql) -> Checked:
    part, spelled = _parts(data.cast("string"), _DATE)
    checks, days = _days(part, spelled, "the text is not a date, such as 2026-01-31")
    return Checked(checks, F.date_add(F.lit("1970-01-01").cast("date"), days))


def _decimal(name: str, data: Sql) -> Checked:
    precision, scale = map(int, name[len("decimal(") : -1].split(","))
    part, spelled = _parts(data.cast("string"), _DECIMAL)
    fraction = F.concat(part(3), part(4))
    digits = bound(F.concat(part(2), fraction))
    significant = bound(F.regexp_extract(digits, r"\A0*([0-9]*?)0*\z", 1))
    zeros = F.length(F.regexp_extract(digits, r"\A(0*)", 1))
    exponent_size = bound(F.when(F.length(part(6)) <= 9, F.concat(F.lit("0"), part(6))).cast("bigint"))
    exponent = F.when(part(5) == "-", -exponent_size).otherwise(exponent_size)
    # The places of the first and the last digit that is not 0; the first one before the point has the place 0.
    first = bound(F.length(part(2)) + exponent - 1 - zeros)
    last = bound(first - F.length(significant) + 1)
    fits = F.coalesce((first < precision - scale) & (last >= -scale), F.lit(False))
    is_zero = bound(significant == "")
    outside = ~(is_zero | fits)  # null for a null value
    padding = F.least(F.length(significant) + last + scale, F.lit(precision)).cast("int")
    unscaled = F.when(is_zero, F.lit("0")).otherwise(_padded(significant, padding))
    number = bound(F.lpad(unscaled, precision + 1, "0"))
    whole, decimals = F.substring(number, 1, precision + 1 - scale), F.substring(number, precision + 2 - scale, scale)
    text = F.concat(F.when(part(1) == "-", "-").otherwise(""), whole, F.lit("."), decimals)
    checks = [
        check(~spelled, "bad_text", f"the text does not spell {name}"),
        check(outside, "out_of_range", f"the number does not fit {name}"),
    ]
    return Checked(checks, text.cast(name))


def _padded(digits: Sql, length: Sql) -> Sql:
    """Return digits with zeros behind them, up to a length of at most 38."""
    return F.substring(F.concat(digits, F.lit("0" * 38)), F.lit(1), length)


def _base64(text: Sql) -> tuple[Sql, Sql]:
    """Return whether text is Base64, and its bytes. Text is used few times, as the parser of the bytes repeats both."""
    padded = F.rpad(F.translate(text, "-_", "+/"), (F.length(text) + 3).bits_and(-4), "=")
    return text.rlike(_BASE64), F.unbase64(padded)


def _hex(text: Sql) -> tuple[Sql, Sql]:
    """Return whether text is pairs of hex digits, and its bytes."""
    return text.rlike(r"\A[0-9a-fA-F]*\z") & (F.length(text) % 2 == 0), F.unhex(text)


def _parts(text: Sql, pattern: str) -> tuple[Callable[[int], Sql], Sql]:
    """Return the groups of a pattern, null where it does not match the text as a whole, and whether it matches."""
    whole, text = rf"\A{pattern}\z", bound(text)
    spelled = bound(text.rlike(whole))
    return cache(lambda group: bound(F.when(spelled, F.regexp_extract(text, whole, group)))), spelled


def _number(digits: Sql) -> Sql:
    """Return digits as a number; null if there are none."""
    return F.when(digits != "", digits).cast("bigint")


def _days(part: Callable[[int], Sql], spelled: Sql, message: str) -> tuple[list[Check], Sql]:
    """Return the days since 1970 of the first three groups, and the checks that they are a date."""
    year, month, day = (bound(_number(part(group)).cast("int")) for group in (1, 2, 3))
    # The calendar repeats after 400 years, and there is no year 0.
    known_year = bound(F.when(year == 0, 400).otherwise(year))
    last = bound(F.dayofmonth(F.last_day(F.make_date(known_year, month, F.lit(1)))))
    date = F.make_date(known_year, month, F.least(day, last))
    checks = [
        check(~spelled, "bad_text", message),
        check(day > last, "bad_text", "the date does not exist"),
        check(year == 0, "out_of_range", "the date is not in the years 1 to 9999"),
    ]
    return checks, F.datediff(date, F.lit("1970-01-01").cast("date"))


def in_years(number: Sql, per_second: int) -> Check:
    """Return the check that a number of units since 1970 is in the years 1 to 9999."""
    outside = (number < F.lit(Decimal(_FIRST * per_second))) | (number >= F.lit(Decimal(_END * per_second)))
    return check(outside, "out_of_range", "the time is not in the years 1 to 9999")
