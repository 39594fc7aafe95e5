"""How keys and times are spelt on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

from letterhead.cli.exits import Failure
from letterhead.cli.source import parse_base64, parse_hex
from letterhead.cli.spelling import read_value
from letterhead.storage.keys import MAX_TIME
from letterhead.values import Value


def read_key(text: str) -> bytes:
    """Read a key: text, bytes after `hex:` or `base64:`, or a value with its kind, big-endian as Kafka's serializers.

    Raises
    ------
    Failure
        If it is none of them.
    """
    spelling, colon, rest = text.partition(":")
    if colon and spelling == "hex":
        return parse_hex(rest, "hex")
    if colon and spelling == "base64":
        return parse_base64(rest, "base64")
    value = read_value(text)
    if isinstance(value, Value):
        return value.bits
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Failure("the key is not UTF-8: write it as hex: and digits") from error


def read_time(text: str | None, option: str) -> int | None:
    """Read a time: milliseconds since 1970, or a date, which is UTC unless it says another.

    Raises
    ------
    Failure
        If it is neither.
    """
    if text is None:
        return None
    try:
        time = int(text)
    except ValueError:
        try:
            date = datetime.fromisoformat(text.removesuffix(" UTC"))
        except ValueError:
            raise Failure(
                f"{option}: {text!r} is neither milliseconds since 1970 nor a date like 2026-01-01T00:00:00.000"
            ) from None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        time = round((date - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)
    if not 0 <= time <= MAX_TIME:
        raise Failure(f"{option}: {text} is no time that a store can hold")
    return time
