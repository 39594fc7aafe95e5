"""Look up formats for commands."""

from __future__ import annotations

from typing import TypedDict

from letterhead._formats import FormatInfo, format_table
from letterhead._names import unknown_name
from letterhead.cli.exits import Failure
from letterhead.limits import Limits

COMMON = ("kafka", "streams-timestamped", "iggy", "record-batch", "iggy-message")
"""Formats named in help texts; `letterhead formats` lists all."""


class ReadArguments(TypedDict):
    """Options of every operation that reads."""

    lenient: bool
    strict_types: bool
    limits: Limits


def row_of(format: str) -> FormatInfo:
    """Return the entry of a format; an unknown name ends the command."""
    rows = format_table()
    if format not in rows:
        suggestion, _, _ = str(unknown_name("format", format, rows)).partition(" (formats:")
        raise Failure(f"{suggestion} (`letterhead formats` lists all)")
    return rows[format]


def is_batch(format: str) -> bool:
    """Return whether a value of the format holds many messages."""
    return row_of(format).is_ == "batch"


def in_microseconds(format: str) -> bool:
    """Return whether the format's times are in microseconds, as in Iggy, rather than milliseconds."""
    return format.startswith("iggy")
