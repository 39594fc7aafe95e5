"""Parse times in ISO 8601 with and without a zone, relative to now, or as numbers whose unit is checked."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Literal

__all__ = [
    "TIME_FORMS", "check_unit", "epoch_milliseconds", "is_compact_date", "is_relative", "local_zone", "read_iso_time", "read_time", "zone_named",
]  # fmt: skip

TIME_FORMS = "'2026-01-01T08:30:00Z', or '-1h' for an hour ago"
"""Examples of times, for errors."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RELATIVE = re.compile(r"-(?:\d{1,9}(?:ms|[smhdw]))+")
_SPAN = re.compile(r"(\d+)(ms|[smhdw])")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

_SECONDS = range(10**9, 10**10)
"""Plausible seconds since 1970, from 2001 to 2286. Read as milliseconds, they would be in 1970."""

_LAST_YEAR = 9999


def read_time(text: str, zone: tzinfo = UTC) -> datetime:
    """Parse an ISO 8601 time (in ``zone`` if it names none), ``now``, or a time before now such as ``-1h30m``.

    Raises ValueError for other text.
    """
    if text == "now":
        return _now()
    if is_relative(text):
        spans: dict[str, int] = {}
        for count, unit in _SPAN.findall(text):
            spans[_UNITS[unit]] = spans.get(_UNITS[unit], 0) + int(count)
        try:
            return _now() - timedelta(**spans)
        except OverflowError:
            raise ValueError(f"{text} is before the year 1") from None
    return read_iso_time(text, zone)


def _now() -> datetime:
    """Return the current time, truncated to milliseconds."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def is_relative(text: str) -> bool:
    """Return whether text is ``now``, or a time before now such as ``-1h``."""
    return text == "now" or _RELATIVE.fullmatch(text) is not None


def read_iso_time(text: str, zone: tzinfo = UTC) -> datetime:
    """Parse an ISO 8601 time, in ``zone`` if it names none; raise ValueError for other text."""
    time = datetime.fromisoformat(text.removesuffix(" UTC"))
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC if text.endswith(" UTC") else zone)
    return time


def epoch_milliseconds(time: datetime) -> int:
    """Return milliseconds since 1970, rounded up."""
    return -((_EPOCH - time) // timedelta(milliseconds=1))


def check_unit(
    name: str, number: int, unit: Literal["milliseconds", "microseconds"] = "milliseconds", mark: str = ""
) -> None:
    """Raise ValueError for a time that is in 1970 or after the year 9999, which suggests a number in another unit.

    ``mark`` precedes a number in the message.
    """
    factor = 1 if unit == "milliseconds" else 1000
    millis = number // factor
    if number in _SECONDS or millis in _SECONDS:
        written = "seconds" if number in _SECONDS else "milliseconds"
        right = number * (1000 * factor if written == "seconds" else 1000)
        date = (_EPOCH + timedelta(milliseconds=millis)).date()
        raise ValueError(
            f"{name}: {number} {unit} since 1970 are a time on {date}: write {mark}{right} if {number} are {written}, or the date "
            "if you mean that day"
        )
    try:
        _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        raise ValueError(
            f"{name}: {number} {unit} since 1970 are after the year {_LAST_YEAR}: check the unit"
        ) from None


def is_compact_date(text: str) -> bool:
    """Return whether text looks like a date without separators, such as 20260101."""
    if len(text) != 8 or not (text.isascii() and text.isdecimal()):
        return False
    try:
        return 1970 <= datetime.strptime(text, "%Y%m%d").year < 2200
    except ValueError:
        return False


def zone_named(name: str) -> tzinfo:
    """Return a time zone by IANA name, ``UTC``, ``local``, or an offset such as ``+02:00``."""
    from zoneinfo import ZoneInfo

    if name.lower() == "local":
        return local_zone()
    if name.upper() in ("UTC", "Z"):
        return UTC
    if re.fullmatch(r"[+-]\d{2}:\d{2}", name):
        offset = datetime.fromisoformat(f"2000-01-01T00:00:00{name}").utcoffset()
        return timezone(offset or timedelta())
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is not a time zone: pass a name such as Europe/Berlin, an offset such as +02:00, or local"
        ) from None


def local_zone() -> tzinfo:
    """Return the time zone of this machine: from TZ, from /etc/localtime, or the current offset from UTC."""
    from zoneinfo import ZoneInfo

    names = [os.environ.get("TZ", "").lstrip(":")]
    link = Path("/etc/localtime")
    if link.is_symlink():
        names.append(os.readlink(link).rpartition("zoneinfo/")[2])
    for name in filter(None, names):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            continue
    offset = datetime.now().astimezone().utcoffset()
    return timezone(offset) if offset else UTC
