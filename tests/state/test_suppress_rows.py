"""Rows of the buffer of suppress(), as Kafka Streams wrote them: 4.4 with headers of old and prior values, 4.3 without."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DecodeError
from letterhead.state.storage.suppress_rows import Buffered, Suppressed, read_suppressed
from tests.state import dsl
from tests.state.java import JavaServer
from tests.versions import KAFKA

NOTHING = Buffered(None, None, None)
A, B = b"a".hex(), b"b".hex()


def changelog(case: dict[str, Any]) -> Iterator[tuple[str, bytes | None, list[tuple[str, bytes | None]]]]:
    for record in case["out"]["app-buffer-store-changelog"]:
        headers = [(header["key"], bytes.fromhex(header["value"])) for header in record["headers"]]
        yield record["key"], record["value"] and bytes.fromhex(record["value"]), headers


def rows(name: str) -> list[tuple[str, Suppressed | None]]:
    return [(key, value and read_suppressed(value, headers)) for key, value, headers in changelog(dsl.cases()[name])]


def headers(**values: bytes) -> lh.Headers:
    return lh.Headers(values.items())


def buffered(value: bytes, timestamp: int, **values: bytes) -> Buffered:
    return Buffered(value, timestamp, headers(**values))


UNKNOWN = Buffered(b"3", -1, lh.Headers())
"""The value that was emitted before: Kafka Streams does not know its headers any more."""


def test_kafka_4_4_rows_have_headers_of_old_and_prior_values() -> None:
    assert rows("suppress-4.4.0-headers") == [
        (A, Suppressed("in", 0, 0, 1000, buffered(b"1", 1000, o=b"x"), NOTHING, NOTHING)),
        (A, Suppressed("in", 0, 1, 1000, buffered(b"2", 1100, p=b"y"), buffered(b"1", 1000, o=b"x"), NOTHING)),
        (B, Suppressed("in", 0, 2, 1200, buffered(b"3", 1200), NOTHING, NOTHING)),
        (A, None),
        (B, None),
        (A, Suppressed("in", 0, 4, 2600, buffered(b"4", 2600, q=b"z"), UNKNOWN, UNKNOWN)),
        (A, Suppressed("in", 0, 5, 2600, Buffered(None, 2700, lh.Headers()), buffered(b"4", 2600, q=b"z"), UNKNOWN)),
        (B, Suppressed("in", 0, 6, 2800, buffered(b"9", 2800, w=b"w"), UNKNOWN, UNKNOWN)),
    ]


@pytest.mark.parametrize("name", ["suppress-4.4.0-default", "suppress-4.3.1-headers", "suppress-4.3.1-default"])
def test_other_rows_have_headers_of_new_value_only(name: str) -> None:
    def plain(value: Buffered) -> Buffered:
        return Buffered(value.value, None, None)

    expected = [
        (key, row and row._replace(old=plain(row.old), prior=plain(row.prior)))
        for key, row in rows("suppress-4.4.0-headers")
    ]
    assert rows(name) == expected


@pytest.mark.jvm
@pytest.mark.parametrize("format", dsl.FORMATS)
@pytest.mark.parametrize("topology", dsl.INPUTS)
def test_vectors_match_kafka_streams(tmp_path: Path, topology: str, format: str) -> None:
    server = JavaServer(tmp_path / "java")
    try:
        topics = dsl.run(server, tmp_path / "app" / "0_0", topology, format)
    finally:
        server.stop()
    case = dsl.case(KAFKA, topology, format, topics)
    assert case == dsl.cases()[case["id"]]


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


CONTEXT = struct.pack(">qq", 1000, 7) + sized(b"in") + struct.pack(">ii", 2, 1) + sized(b"a") + sized(b"1")
SAME = struct.pack(">i", -2)
TIME = struct.pack(">q", 5000)
OLD_PREFIX = b"\x0a\x02\x02o\x02x" + struct.pack(">q", 900)


def test_prior_value_that_differs_from_old_has_no_headers() -> None:
    value = CONTEXT + sized(b"first") + sized(b"old") + sized(b"new") + TIME
    row = read_suppressed(value, [("v", b"\3"), ("vh.old", OLD_PREFIX)])
    assert (row.old, row.prior) == (buffered(b"old", 900, o=b"x"), Buffered(b"first", None, None))


@pytest.mark.parametrize("version", [None, b"\2", b"\4"])
def test_unknown_version_is_rejected(version: bytes | None) -> None:
    headers = [] if version is None else [("v", version)]
    with pytest.raises(DecodeError, match=r"does not name version 3 of the changelog of suppress\(\)"):
        read_suppressed(CONTEXT, headers)


def test_damaged_rows_are_rejected() -> None:
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
