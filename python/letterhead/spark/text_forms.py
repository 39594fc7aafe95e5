r"""Parse text forms in expressions of Spark SQL: times, dates, decimals, Base64 and hex digits.

:func:`form_parser` returns the parser of a type such as ``timestamp:iso``, and :func:`base_parser` a parser of encoded
bytes, with the rules of the core. Parts of text that do not match are null, so that no cast fails. Patterns that repeat
a character class do not recurse.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

from letterhead.spark.checks import Check, Checked, check
from letterhead.spark.sql_text import F, Sql, bound

__all__ = ["UNITS", "base_parser", "form_parser", "in_years", "signed_digits", "significant_digits"]

_DATE = r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR = r"([01][0-9]|2[0-3]):([0-5][0-9])"
_ISO = rf"{_DATE}[Tt ]{_HOUR}(?::([0-5][0-9]|60)(?:\.([0-9]+))?)?(?:([Zz])|([+-]){_HOUR})?"
_DECIMAL = r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)0*([0-9]+))?"

_BASE64 = "|".join(
    rf"\A(?:{digit}{{4}})*(?:{digit}[AQgw](?:==)?|{digit}{{2}}[AEIMQUYcgkosw048]=?)?\z"
    for digit in ("[A-Za-z0-9+/]", "[A-Za-z0-9_-]")
)
"""Base64 in either alphabet, padded or not, with unused bits 0. Java repeats a group of fixed length in a loop."""

UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units of time, with the number of units in a second."""

_FIRST, _END = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999 in seconds since 1970."""


def form_parser(type: str) -> Callable[[Sql], Checked] | None:
    """Return the function that parses a binary column as text of a type; None if the type has no text form.

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
    """Return the function that decodes a binary column from a base encoding, and parses the bytes with ``parse``."""

    def parse_text(text: Sql) -> Checked:
        is_valid, data = (_base64 if base == "base64" else _hex)(text.cast("string"))
        valid = bound(is_valid)
        message = "the text is not Base64" if base == "base64" else "the text is not pairs of hex digits"
        checks, value = parse(bound(F.when(valid, data)))
        return Checked([check(~valid, "bad_text", message), *checks], value)

    return parse_text


def _iso(data: Sql) -> Checked:
    text = bound(_match(data, _ISO))
    first, day = F.substring(text, 1, 7), F.substring(text, 9, 2).cast("bigint")
    minutes = F.concat(first, "-01T", F.substring(text, 12, 5), ":00Z").cast("timestamp_ltz")
    sign = F.substring(text, -6, 1)
    has_sign = sign.isin("+", "-")
    hour, minute = (F.concat(sign, F.substring(text, start, 2)).cast("bigint") for start in (-5, -2))
    offset = F.when(has_sign, hour * 3600 + minute * 60).otherwise(0)
    second = F.when(F.substring(text, 17, 1) == ":", F.substring(text, 18, 2).cast("bigint")).otherwise(0)
    time = bound(F.when(text != "", F.unix_seconds(minutes) + (day - 1) * 86_400 + second - offset))
    fraction = F.regexp_extract(text, r"\.([0-9]+)", 1)
    no_offset = ~(has_sign | F.substring(text, -1, 1).isin("Z", "z"))
    is_leap = F.substring(text, 17, 3) == ":60"
    checks = [
        check(text == "", "bad_text", "the text is not a time with an offset, such as 2026-01-31T09:00:00Z"),
        check(no_offset, "bad_text", "the time has no offset, such as Z or +01:00: read it as string"),
        *_of_date(text),
        check(is_leap & (F.pmod(time, F.lit(86_400)) != 0), "bad_text", "a leap second is at 23:59:60 in UTC"),
        check(
            is_leap & (F.translate(fraction, "0", "") != ""),
            "out_of_range",
            "a fraction of a leap second has no number of its own",
        ),
        in_years(time, 1),
    ]
    micros = time * 1_000_000 + F.rpad(F.substring(fraction, 1, 6), 6, "0").cast("bigint")
    return Checked(checks, F.timestamp_micros(micros))


def _epoch(unit: str, data: Sql) -> Checked:
    spelled, too_long, number = signed_digits(data, 27)  # the year 9999 has 21 digits of nanoseconds
    per_second = UNITS[unit]
    if unit == "ns":
        # A quotient of decimals is rounded to a number of digits that depends on the configuration.
        micros = F.when(number < 0, number - F.lit(Decimal(999))).otherwise(number).div(F.lit(Decimal(1000)))
    else:
        micros = number * F.lit(Decimal(1_000_000 // per_second))
    within = in_years(number, per_second)
    bad_text = check(~spelled, "bad_text", f"the text does not spell timestamp:{unit}")
    return Checked([bad_text, within._replace(when=too_long | within.when)], F.timestamp_micros(micros.cast("bigint")))


def significant_digits(text: Sql) -> Sql:
    """Return the digits of a whole number without sign and leading zeros."""
    return F.regexp_extract(text, r"\A-?0*([0-9]*)\z", 1)


def signed_digits(data: Sql, length: int) -> tuple[Sql, Sql, Sql]:
    """Return whether text is a whole number, whether it has more than ``length`` digits, and its value."""
    text = data.cast("string")
    # Bytes that are not UTF-8 never match a pattern of ASCII characters.
    spelled = text.rlike(r"\A-?[0-9]+\z")
    digits = bound(significant_digits(text))
    too_long = F.length(digits) > length
    # The sign is added as text, because negation rounds to 34 digits (Spark 3.5 to 4.2).
    sign = F.when(text.startswith("-"), "-0").otherwise("0")
    return spelled, too_long, bound(F.concat(sign, F.when(~too_long, digits)).cast("decimal(38,0)"))


def _date(data: Sql) -> Checked:
    text = bound(_match(data, _DATE))
    spelled = check(text == "", "bad_text", "the text is not a date, such as 2026-01-31")
    return Checked([spelled, *_of_date(text)], text.cast("date"))


def _decimal(name: str, data: Sql) -> Checked:
    precision, scale = map(int, name[len("decimal(") : -1].split(","))
    text = bound(_match(data, _DECIMAL))
    mantissa = bound(F.regexp_extract(text, r"[0-9.]+", 0))
    digits = F.replace(mantissa, ".", "")
    significant = bound(F.btrim(digits, F.lit("0")))
    # A double accepts any number of digits, and is exact where the number may fit.
    exponent = F.regexp_extract(text, "[eE]([+-]?[0-9]+)", 1).cast("double")
    point = bound(F.length(F.substring_index(mantissa, ".", 1)) + F.when(text.rlike("[eE]"), exponent).otherwise(0))
    # Positions of the first and the last nonzero digit, as powers of ten.
    first = point - F.instr(digits, significant)
    last = first - F.length(significant) + 1
    fits = F.coalesce((first < precision - scale) & (last >= -scale), F.lit(False))
    is_zero = significant == ""
    outside = ~(is_zero | fits)  # null for a null value
    padding = F.least(first + 1 + scale, F.lit(precision)).cast("int")
    unscaled = F.when(is_zero, F.lit("0")).otherwise(_pad(significant, padding))
    number = F.overlay(F.lpad(unscaled, precision + 1, "0"), F.lit("."), precision + 2 - scale, 0)
    checks = [
        check(text == "", "bad_text", f"the text does not spell {name}"),
        check(outside, "out_of_range", f"the number does not fit {name}"),
    ]
    return Checked(checks, F.concat(F.when(text.startswith("-"), "-").otherwise(""), number).cast(name))


def _pad(digits: Sql, length: Sql) -> Sql:
    """Pad digits with trailing zeros, up to a length of at most 38."""
    return F.substring(F.concat(digits, F.lit("0" * 38)), F.lit(1), length)


def _base64(text: Sql) -> tuple[Sql, Sql]:
    """Return whether text is Base64, and its bytes. Parsers repeat both expressions, so each uses the text only a few times."""
    padded = F.rpad(F.translate(text, "-_", "+/"), (F.length(text) + 3).bits_and(-4), "=")
    return text.rlike(_BASE64), F.unbase64(padded)


def _hex(text: Sql) -> tuple[Sql, Sql]:
    """Return whether text is pairs of hex digits, and its bytes."""
    return text.rlike(r"\A[0-9a-fA-F]*\z") & (F.length(text) % 2 == 0), F.unhex(text)


def _match(data: Sql, pattern: str) -> Sql:
    """Return text if a pattern matches it completely, and empty text if not."""
    return F.regexp_extract(data.cast("string"), rf"\A{pattern}\z", 0)


def _of_date(text: Sql) -> list[Check]:
    """Return checks that the date at the start of text is valid."""
    last = F.dayofmonth(F.last_day(F.concat(F.substring(text, 1, 7), "-01").cast("date")))
    return [
        check(F.substring(text, 9, 2).cast("int") > last, "bad_text", "the date does not exist"),
        check(text.startswith("0000"), "out_of_range", "the date is not in the years 1 to 9999"),
    ]


def in_years(number: Sql, per_second: int) -> Check:
    """Return the check that a number of units since 1970 is in the years 1 to 9999."""
    outside = (number < F.lit(Decimal(_FIRST * per_second))) | (number >= F.lit(Decimal(_END * per_second)))
    return check(outside, "out_of_range", "the time is not in the years 1 to 9999")
