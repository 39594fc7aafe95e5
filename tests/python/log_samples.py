"""Messages that the tests of the log write, in each layout."""

from __future__ import annotations

import itertools
from typing import Any

import letterhead as lh
from letterhead.kip82.layouts import MESSAGES

LAYOUTS = ("typed", "int", "wrapper")


def sample(number: int, layout: str = "typed", **fields: Any) -> lh.Envelope:
    """Make a message: of every third a delete with headers, of every fifth one without headers."""
    headers: Any = [("n", lh.Int32(number)), ("note", None)] if layout == "typed" else [(5, b"%d" % number), (7, None)]
    delete = number % 3 == 2
    return lh.Envelope(
        **{
            "timestamp": 1_000_000 + number,
            "key": b"k%d" % (number % 4),
            "headers": [] if number % 5 == 4 else headers,
            "value": None if delete and layout != "wrapper" else b"v%d" % number,
            "tombstone": delete if layout == "wrapper" else None,
            **fields,
        }
    )


def samples(count: int, layout: str = "typed", start: int = 0) -> list[lh.Envelope]:
    """Make messages, in order."""
    return [sample(number, layout) for number in range(start, start + count)]


def cells(given: list[lh.Envelope], layout: str = "typed") -> list[bytes]:
    """Write messages as they stand in a log from offset 0 on."""
    return [
        lh.encode(lh.Envelope(**{**message._asdict(), "offset": offset, "magic": 2}), MESSAGES[layout])
        for message, offset in zip(given, itertools.count(), strict=False)
    ]
