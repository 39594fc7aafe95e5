"""Sample messages for tests of the log, in each header format."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st

import letterhead as lh
from letterhead.kip82.header_formats import BATCH_FORMATS, CODECS, MESSAGE_FORMATS

HEADER_FORMATS = ("typed", "int", "wrapper")


def sample(number: int, header_format: str = "typed", **fields: Any) -> lh.Message:
    """Make a message: every third one is a delete with headers, every fifth one has no headers."""
    headers: Any = (
        [("n", lh.Int32(number)), ("note", None)] if header_format == "typed" else [(5, b"%d" % number), (7, None)]
    )
    delete = number % 3 == 2
    return lh.Message(
        **{
            "timestamp": 1_000_000 + number,
            "key": b"k%d" % (number % 4),
            "headers": [] if number % 5 == 4 else headers,
            "value": None if delete and header_format != "wrapper" else b"v%d" % number,
            "tombstone": delete if header_format == "wrapper" else None,
            **fields,
        }
    )


def samples(count: int, header_format: str = "typed", start: int = 0) -> list[lh.Message]:
    """Make messages, in order."""
    return [sample(number, header_format) for number in range(start, start + count)]


def encoded(source: list[lh.Message], header_format: str = "typed") -> list[bytes]:
    """Encode messages for a log, with offsets from 0 on."""
    return [
        lh.encode(lh.Message(**{**message._asdict(), "offset": offset, "magic": 2}), MESSAGE_FORMATS[header_format])
        for message, offset in zip(source, itertools.count(), strict=False)
    ]


def frame(
    offset: int, count: int, header_format: str = "typed", *, magic: int = 2, codec: str = "none", **fields: Any
) -> bytes:
    """Encode messages of one magic with consecutive offsets: single ones, or a compressed set."""
    source = [
        {
            **message._asdict(),
            "offset": message.timestamp - 1_000_000,
            "magic": magic,
            "headers": message.headers if magic == 2 else None,
            "tombstone": message.tombstone if magic == 2 else None,
            **fields,
        }
        for message in samples(count, header_format, offset)
    ]
    return lh.batch(source, BATCH_FORMATS[header_format], codec=codec)


@st.composite
def logs(draw: st.DrawFn, header_format: str) -> list[tuple[int, bytes]]:
    """Draw the content of a file of a log, of every magic and codec: next offsets, and the bytes before them."""
    result, offset = [], 0
    for _ in range(draw(st.integers(1, 6))):
        codec = draw(st.sampled_from(CODECS))
        count = draw(st.integers(1, 5)) if codec != "none" else 1
        fields = draw(st.sampled_from([{}, {"key": None, "value": None, "headers": None}, {"value": bytes(300)}]))
        data = frame(offset, count, header_format, magic=draw(st.sampled_from([0, 1, 2])), codec=codec, **fields)
        offset += count
        result.append((offset, data))
    return result
