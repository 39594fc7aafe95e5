"""Headers that are text with a form of its own, alternatives, values for absent headers, and lists in one header."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha


def message(value: Any) -> bytes:
    return lh.encode([("k", value)], "kafka")


AT = datetime(2026, 1, 31, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("timestamp:iso", "2026-01-31T09:30:00.000+01:00", AT),
        ("timestamp:s", "1769848200", AT),
        ("timestamp:ms", "1769848200000", AT),
        ("timestamp:us", "1769848200000000", AT),
        ("timestamp:ns", "1769848200000000999", AT),
        ("date:text", "2026-01-31", AT.date()),
        ("decimal(9, 2):text", "-12.5", Decimal("-12.50")),
        ("binary:base64", "-_8", b"\xfb\xff"),
        ("binary:hex", "00fF", b"\x00\xff"),
        ("int32:base64", "AAAAAw==", 3),
        ("int32:le:base64", "AwAAAA", 3),
        ("int32:text:base64", "LTQy", -42),
        ("string:base64", "w6k", "é"),
        ("uuid:hex", "00112233445566778899AABBCCDDEEFF", "00112233-4455-6677-8899-aabbccddeeff"),
        ("timestamp:iso:base64", "MjAyNi0wMS0zMVQwODozMFo=", AT),
        ("string:latin-1:hex", "e9", "é"),
        ("string:json:base64", "ImEi", "a"),
        ("int64:amqp:hex", "5507", 7),
        ("timestamp:iso", "2026-01-31T08:30Z", AT),
    ],
)
def test_one_message_and_column_have_same_value(type: str, text: str, value: Any) -> None:
    assert lh.select(message(text), {"k": type}) == {"k": value}
    [row] = lha.select(pa.array([message(text)]), {"k": type}).to_pylist()
    assert row == {"k": value}


@pytest.mark.parametrize(
    ("type", "text", "code"),
    [
        ("timestamp:iso", "2026-01-31T08:30:00", "bad_text"),
        ("timestamp:iso", "2026-02-29T08:30:00Z", "bad_text"),
        ("timestamp:ms", "2026-01-31T08:30:00Z", "bad_text"),
        ("timestamp:s", "1769848200000", "out_of_range"),
        ("date:text", "0000-01-01", "out_of_range"),
        ("decimal(3,1):text", "1.25", "out_of_range"),
        ("binary:base64", "A", "bad_text"),
        ("binary:base64", "AB==", "bad_text"),
        ("binary:base64", "+_8=", "bad_text"),
        ("binary:base64", "AAAA\n", "bad_text"),
        ("int32:base64", "AAAA", "wrong_size"),
        ("string:base64", "/w==", "value_not_utf8"),
        ("int8:text:hex", "32353600", "bad_text"),
        ("string:utf-16le", "abc", "bad_text"),
        ("binary:hex", "abc", "bad_text"),
    ],
)
def test_invalid_text_raises_without_showing_it(type: str, text: str, code: str) -> None:
    with pytest.raises(lh.DecodeError) as caught:
        lh.select(message(text), {"k": type})
    assert (caught.value.code, caught.value.key, caught.value.byte_offset) == (code, "k", 4)
    assert text not in str(caught.value)


def test_iggy_stores_text_encodings_as_strings() -> None:
    lists = lha.pack(pa.table({"at": pa.array([AT])}), {"at": "timestamp:iso"}, format="iggy")
    [data] = lha.encode(lists, "iggy").to_pylist()
    assert lh.decode(data, "iggy").items() == [("at", lh.String("2026-01-31T08:30:00Z"))]
    assert lh.select(data, {"at": "timestamp:iso"}, format="iggy") == {"at": AT}
    with pytest.raises(lh.DecodeError, match="the value is int32 and timestamp:iso was requested"):
        lh.select(lh.encode([("at", lh.Int32(1))], "iggy"), {"at": "timestamp:iso"}, format="iggy")


def test_first_alternative_that_reads_value_wins() -> None:
    type = {"k": "int32 | int32:text"}
    assert lh.select(message(b"\0\0\0\7"), type) == {"k": 7}
    assert lh.select(message("-42"), type) == {"k": -42}
    # Four digits are both.
    assert lh.select(message("1234"), type) == {"k": 0x31323334}
    assert lh.select(message("1234"), {"k": "int32:text | int32"}) == {"k": 1234}
    with pytest.raises(lh.DecodeError, match="3 bytes where int32 takes 4; the text does not spell int32") as caught:
        lh.select(message("abc"), type)
    assert caught.value.code == "bad_text"


def test_times_of_mixed_units_become_microseconds() -> None:
    columns = {"k": "timestamp_ms | timestamp:iso"}
    rows = lha.select(pa.array([message((5).to_bytes(8, "big")), message("1970-01-01T00:00:00.005Z")]), columns)
    assert rows.field("k").type == pa.timestamp("us", "UTC")
    assert rows.field("k").cast(pa.int64()).to_pylist() == [5000, 5000]


@pytest.mark.parametrize(
    ("type", "default", "value"),
    [
        ("int32", -7, -7),
        ("uint64:text", 2**64 - 1, 2**64 - 1),
        ("int128", 5, 5),
        ("float64", 1.5, 1.5),
        ("float32", float("-inf"), float("-inf")),
        ("bool", True, True),
        ("string", "né", "né"),
        ("char", "x", "x"),
        ("binary:hex", b"\0\1", b"\0\1"),
        ("uuid", UUID(int=5), str(UUID(int=5))),
        ("timestamp_ms", AT, 1769848200000),
        ("timestamp:s", AT, AT),
        ("timestamp:iso", "2026-01-31T09:30:00+01:00", AT),
        ("date:text", date(2026, 1, 31), date(2026, 1, 31)),
        ("decimal(9,2):text", Decimal("0.5"), Decimal("0.50")),
        ("decimal(9,2):text", 3, Decimal("3.00")),
    ],
)
def test_default_replaces_absent_header_and_not_null(type: str, default: Any, value: Any) -> None:
    columns = {"k": lh.field(type, default=default)}
    empty, null = lh.encode([], "kafka"), message(None)
    assert lh.select(empty, columns) == {"k": value}
    assert lh.select(null, columns) == {"k": None}
    column = lha.select(pa.array([empty, null, None] * 100), columns).field("k")
    assert column.null_count == 200
    assert column.is_valid().to_pylist() == [True, False, False] * 100


def test_default_is_not_used_if_header_may_be_lost() -> None:
    data = message("5")[:-1]
    rows = lha.select(pa.array([data]), {"k": lh.field("int8:text", default=0)}, errors="null")
    assert rows.field("k").to_pylist() == [None]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"type": "int8", "default": 128}, ValueError, "the number does not fit int8"),
        ({"type": "int8", "default": 1.5}, TypeError, "default= must be a value of int8, not float"),
        ({"type": "int8", "default": True}, TypeError, "not bool"),
        ({"type": "date:text", "default": AT}, TypeError, "not datetime"),
        ({"type": "timestamp:iso", "default": datetime(2026, 1, 1)}, ValueError, "no time zone"),
        ({"type": "int8", "default": 1, "required": True}, ValueError, "is an error with required=True"),
        ({"type": "array<int8>", "default": 1}, ValueError, "has an empty list here"),
        ({"type": "string", "split": ","}, ValueError, "pass 'array<string>'"),
        ({"type": "array<string>", "split": ""}, TypeError, "split must be text"),
    ],
)
def test_invalid_default_or_separator_is_rejected(arguments: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        lh.field(**arguments)


def test_split_header_yields_list_elements() -> None:
    columns = {"k": lh.field("array<int8:text>", split=",")}
    data = lh.encode([("k", "1,2"), ("x", "0"), ("k", "3"), ("k", None)], "kafka")
    assert lh.select(data, columns) == {"k": [1, 2, 3, None]}
    assert lh.select(lh.encode([], "kafka"), columns) == {"k": []}
    with pytest.raises(lh.DecodeError, match="does not spell int8") as caught:
        lh.select(message("1,x"), columns)
    assert caught.value.byte_offset == 6


def test_conditions_compare_column_values() -> None:
    rows = [("2026-01-31T08:30:00Z", "1.5"), ("2027-01-01T00:00:00Z", "2"), (None, None)]
    data = pa.array([lh.encode([("at", at), ("price", price)], "kafka") for at, price in rows])
    columns = {"at": "timestamp:iso", "price": "decimal(9,2):text", "n": lh.field("int8", default=5)}

    def count(where: Any) -> int:
        return len(lha.select(data, columns, where=where))

    assert count(lh.col("at") > AT) == 1
    assert count(lh.col("at") >= "2026-01-31T08:30:00Z") == 2
    assert count(lh.col("price") == Decimal("1.50")) == count(lh.col("price") < 2) == 1
    assert count(lh.col("n") == 5) == 3
    assert count(lh.col("n").exists()) == 0
    with pytest.raises(ValueError, match="at most 2 decimals"):
        count(lh.col("price") == 1.005)


@pytest.mark.parametrize(
    ("charset", "python"), [("utf-16le", "utf-16-le"), ("utf-16be", "utf-16-be"), ("latin-1", "iso-8859-1")]
)
def test_text_is_read_and_written_in_other_charsets(charset: str, python: str) -> None:
    texts = ["", "acme", "é\xff\x80", None, *(["📦\ufeff\0"] if python.startswith("utf") else [])]
    lists = lha.pack(pa.record_batch({"k": pa.array(texts)}), {"k": f"string:{charset}"})
    assert [row and row[0]["value"] for row in lists.to_pylist()] == [
        [] if text is None else text.encode(python) for text in texts
    ]
    assert lha.select(lists, {"k": f"string:{charset}"}).field("k").to_pylist() == texts


@pytest.mark.parametrize(("charset", "text"), [("latin-1", "Ā"), ("utf-16le", "\ufffe"), ("utf-16be", "\ufffe")])
def test_character_missing_from_charset_raises_without_text(charset: str, text: str) -> None:
    with pytest.raises(lh.EncodeError, match=f"header k: the text has a character that {charset} lacks") as caught:
        lha.pack(pa.table({"k": ["a", text]}), {"k": f"string:{charset}"})
    assert (caught.value.code, caught.value.row) == ("out_of_range", 1)
    assert text not in str(caught.value)


def test_typed_formats_store_charsets_as_bytes_base64_as_text() -> None:
    table = pa.table({"city": ["é"], "n": [3]})
    columns = {"city": "string:latin-1", "n": "int32:base64"}
    packed = lha.pack(table, columns, format="iggy-2023")
    assert [tuple(header.values()) for header in packed.to_pylist()[0]] == [
        ("city", "binary", b"\xe9"),
        ("n", "string", b"AAAAAw=="),
    ]
    assert lha.select(packed, columns, format="iggy-2023").to_pylist() == [{"city": "é", "n": 3}]
    plain = lha.pack(table, {"city": "string", "n": "int32"}, format="iggy-2023")
    read = lha.select(plain, columns, format="iggy-2023", errors="column").to_pylist()[0]
    assert (read["city"], read["n"], read["error"][0]["code"]) == ("é", None, "wrong_type")


def test_conditions_and_defaults_support_new_types() -> None:
    rows = pa.array([message("AAAAAw=="), message("AAAABA=="), lh.encode([], "kafka")])
    for where in ('k::"int32:base64" > 3', lh.col("k", "int32:base64") > 3):
        assert lha.select(rows, {"k": "int32:base64"}, where=where).field("k").to_pylist() == [4]
    assert lha.select(rows, {"k": lh.field("int32:base64", default=7)}).field("k").to_pylist() == [3, 4, 7]


@pytest.mark.parametrize(
    ("type", "reason"),
    [
        ("int32:latin-1", "only string has the suffix"),
        ("int32:base64:hex", "only once"),
        ("array<int32>:base64", "array<int32:base64>"),
        ("date:base64", "pass 'date:text'"),
        ("foo:base64", "unknown type"),
    ],
)
def test_suffixes_unknown_to_type_are_rejected(type: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        lh.field(type)
