"""Rows of the buffer of suppress(): vectors made by hand, from descriptions of Kafka 4.4, which is not released yet."""

from __future__ import annotations

import struct

import pytest

import letterhead as lh
from letterhead.errors import DecodeError
from letterhead.state.storage.suppress_rows import Buffered, read_suppressed


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


CONTEXT = (
    struct.pack(">qq", 1000, 7) + sized(b"in") + struct.pack(">ii", 2, 2) + sized(b"a") + sized(b"1") + sized(b"b")
) + sized(None)
SAME = struct.pack(">i", -2)
TIME = struct.pack(">q", 5000)
HEADERS = lh.Headers([("a", b"1"), ("b", None)])

# Of a value with the header o = "x" and the timestamp 900: size 5, count 1, "o", "x".
BEFORE_OLD = bytes.fromhex("0a 02 02 6f 02 78 0000000000000384".replace(" ", ""))
# Of one without headers, and the timestamp 800.
BEFORE_PRIOR = bytes.fromhex("00 0000000000000320".replace(" ", ""))


def test_a_record_of_kafka_4_3_has_the_headers_of_the_new_value() -> None:
    row = read_suppressed(CONTEXT + sized(None) + sized(None) + sized(b"new") + TIME, [("v", b"\3")])
    assert row[:4] == ("in", 2, 7, 5000)
    assert row.new == Buffered(b"new", 1000, HEADERS)
    assert row.old == row.prior == Buffered(None, None, None)


def test_headers_of_old_and_prior_values_are_in_headers_of_the_record() -> None:
    value = CONTEXT + sized(b"first") + sized(b"old") + sized(b"new") + TIME
    row = read_suppressed(value, [("v", b"\3"), ("vh.old", BEFORE_OLD), ("vh.prior", BEFORE_PRIOR)])
    assert row.old == Buffered(b"old", 900, lh.Headers([("o", b"x")]))
    assert row.prior == Buffered(b"first", 800, lh.Headers())


def test_without_its_own_header_the_prior_value_has_that_of_the_old_one() -> None:
    row = read_suppressed(CONTEXT + sized(b"old") + SAME + sized(b"new") + TIME, [("v", b"\3"), ("vh.old", BEFORE_OLD)])
    assert row.old == row.prior == Buffered(b"old", 900, lh.Headers([("o", b"x")]))


@pytest.mark.parametrize("version", [None, b"\2", b"\4"])
def test_another_version_is_refused(version: bytes | None) -> None:
    headers = [] if version is None else [("v", version)]
    with pytest.raises(DecodeError, match=r"does not name version 3 of the changelog of suppress\(\)"):
        read_suppressed(CONTEXT, headers)


def test_damaged_rows_are_refused() -> None:
    whole = CONTEXT + sized(None) + sized(None) + sized(b"new") + TIME
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            read_suppressed(whole[:size], [("v", b"\3")])
    with pytest.raises(DecodeError, match="after the buffer time"):
        read_suppressed(whole + b"\0", [("v", b"\3")])
    many = struct.pack(">qq", 1, 1) + sized(b"in") + struct.pack(">ii", 0, 1 << 30)
    with pytest.raises(DecodeError, match="the count of headers 1073741824 is larger than the row"):
        read_suppressed(many, [("v", b"\3")])
    with pytest.raises(DecodeError):
        read_suppressed(CONTEXT + sized(b"1") + SAME + sized(b"2") + TIME, [("v", b"\3"), ("vh.old", b"\x0a")])
