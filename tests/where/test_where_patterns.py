"""Regular expressions, patterns without regard to case, presence and headers of any key, in conditions of every source."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import where
from tests.helpers.log_bytes import batch, record

Headers = list[tuple[str, bytes | None]]
Predicate = Callable[[Headers], bool]

MESSAGES: list[Headers] = [
    [("tenant", b"Acme"), ("note", b"timeout\nin poll")],
    [("tenant", b"acme gmbh"), ("n", b"\xff\xfe")],
    [("tenant", None)],
    [("tenant", b"100%"), ("tenant", "株式会社".encode())],
    [("error", b"read TIMEOUT"), ("empty", b"")],
    [],
]
TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def last(headers: Headers, key: str) -> bytes | None:
    return dict(headers).get(key)


def tenant(pattern: str, flags: int = re.DOTALL) -> Predicate:
    return lambda headers: (
        (value := last(headers, "tenant")) is not None and bool(re.search(pattern, value.decode(), flags))
    )


def any_value(predicate: Callable[[bytes], bool]) -> Predicate:
    return lambda headers: any(value is not None and predicate(value) for _, value in headers)


CONDITIONS: list[tuple[str, Predicate]] = [
    ("tenant ~ '^a'", tenant("^a")),
    ("tenant ~* '^a'", tenant("^a", re.IGNORECASE)),
    ("tenant rlike 'me$'", tenant("me$")),
    ("regexp_like(tenant, 'ACME', 'i')", tenant("acme", re.IGNORECASE)),
    ("tenant ilike 'acme'", tenant("^acme$", re.IGNORECASE)),
    ("tenant ilike '%GMBH'", tenant("gmbh$", re.IGNORECASE)),
    ("tenant like 'a_me%h'", tenant("^a.me.*h$")),
    ("tenant like '%me'", tenant("me$")),
    ("tenant like '100\\%'", tenant("^100%$")),
    ("tenant like '____'", tenant("^.{4}$")),
    ("not tenant ~ '^a'", lambda headers: last(headers, "tenant") is not None and not tenant("^a")(headers)),
    ("tenant present", lambda headers: any(key == "tenant" for key, _ in headers)),
    ("not tenant present and not (tenant present)", lambda headers: all(key != "tenant" for key, _ in headers)),
    ("tenant is present", lambda headers: any(key == "tenant" for key, _ in headers)),
    ("tenant is not present", lambda headers: all(key != "tenant" for key, _ in headers)),
    ("exists(empty)", lambda headers: any(key == "empty" for key, _ in headers)),
    ("headers['note'] is present", lambda headers: any(key == "note" for key, _ in headers)),
    ("any(headers) ~* 'timeout'", any_value(lambda value: b"timeout" in value.lower())),
    ("'100%' = any(headers)", any_value(lambda value: value == b"100%")),
    ("any(headers) = x'fffe'", any_value(lambda value: value == b"\xff\xfe")),
    ("any(headers) like 'read%' or tenant ~ '^a'", lambda headers: any_value(lambda v: v.startswith(b"read"))(headers)
     or tenant("^a")(headers)),
]  # fmt: skip


def encoded(headers: Headers) -> bytes:
    return lh.encode(headers, "kafka") or b""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[str], list[int]]]:
    """Functions that return the offsets of the messages that a condition selects, by surface."""
    folder = tmp_path_factory.mktemp("patterns")
    log = folder / "notes-0"
    log.mkdir()
    blocks = [encoded(headers) or b"\0" for headers in MESSAGES]
    data = b"".join(batch(record(block=block), base_offset=offset) for offset, block in enumerate(blocks))
    (log / "00000000000000000000.log").write_bytes(data)
    lists = [[{"key": key, "value": value} for key, value in headers] for headers in MESSAGES]
    table = pa.table({"offset": pa.array(range(len(MESSAGES))), "headers": pa.array(lists, TYPE)})
    pq.write_table(table, folder / "notes.parquet")

    def of_source(path: Path, text: str) -> list[int]:
        return lh.open(path, columns=["offset"], where=text).read_all()["offset"].to_pylist()

    def of_column(column: pa.Array, text: str) -> list[int]:
        rows = [*range(len(column))]
        return [row for row in rows if len(lha.select(column.slice(row, 1), {"t": "binary"}, where=text))]

    return {
        "segments": lambda text: of_source(log, text),
        "parquet": lambda text: of_source(folder / "notes.parquet", text),
        "bytes": lambda text: of_column(pa.array(map(encoded, MESSAGES), pa.binary()), text),
        "lists": lambda text: of_column(pa.array(lists, TYPE), text),
    }


@pytest.mark.parametrize(("text", "predicate"), CONDITIONS)
@pytest.mark.parametrize("surface", ["segments", "parquet", "bytes", "lists"])
def test_condition_selects_same_messages_in_each_source(
    sources: dict[str, Any], surface: str, text: str, predicate: Predicate
) -> None:
    assert sources[surface](text) == [row for row, headers in enumerate(MESSAGES) if predicate(headers)]


def test_keys_and_topics_match_regular_expressions(samples: Path) -> None:
    read = lh.open(samples / "orders-0", columns=["key"], where="key ~ '^order-0073[0-9]$' and topic ilike 'ORDERS'")
    keys = read.read_all()["key"].to_pylist()
    everything = lh.open(samples / "orders-0", columns=["key"]).read_all()["key"].to_pylist()
    assert keys == [key for key in everything if key is not None and re.fullmatch(rb"order-0073\d", key)]
    assert keys


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a ~ '('", r"not a regular expression: unclosed group"),
        ("a ~ '(?=x)'", "look-around"),
        ("a::int32 ~ 'x'", "matches is for text and bytes, not int32"),
        ("offset ~ 'x'", "matches is for text and bytes, not int64"),
    ],
)
def test_patterns_that_cannot_be_evaluated_are_rejected(samples: Path, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        lh.open(samples / "orders-0", where=text)


def test_any_header_rejects_null_test(samples: Path) -> None:
    with pytest.raises(ValueError, match=r"leave out any\(\)"):
        lh.col("headers").any().is_null()


def test_text_without_zone_uses_passed_zone(samples: Path) -> None:
    from zoneinfo import ZoneInfo

    condition = where.parse("timestamp < '2026-01-01T01:00:01'", timezone=ZoneInfo("Europe/Berlin"))
    aware = "timestamp < '2026-01-01T00:00:01Z'"
    counts = [
        lh.open(samples / "orders-0", columns=["offset"], where=text).read_all().num_rows for text in (condition, aware)
    ]
    assert counts[0] == counts[1] == 7
    with pytest.raises(ValueError, match="the time has no zone"):
        lh.open(samples / "orders-0", where="timestamp < '2026-01-01T01:00:01'")


def test_times_before_now_are_literals(samples: Path) -> None:
    assert lh.open(samples / "orders-0", columns=["offset"], where="timestamp > '-1d'").read_all().num_rows in (
        0,
        10_000,
    )
    assert (
        lh.open(samples / "orders-0", columns=["offset"], where="timestamp > '-20000w'").read_all().num_rows == 10_000
    )
