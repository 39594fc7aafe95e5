"""A column whose header could not be read is null, and one that an unread header may replace says so."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.fields import Repeat
from tests.reference import ops

HEADERS = [("tenant", b"acme"), ("route", b"a"), ("tenant", b"globex"), ("route", b"b")]
DATA = lh.encode(HEADERS, "kafka") or b""
REPEATS: tuple[Repeat, ...] = ("last", "first", "all", "error")


def cut(key: str, occurrence: int, into: int = 1) -> bytes:
    """Truncate the message inside the value of a header."""
    kept = [index for index, (name, _) in enumerate(HEADERS) if name == key][occurrence]
    whole = lh.encode(HEADERS[: kept + 1], "kafka") or b""
    return bytes([len(HEADERS) * 2]) + whole[1:-into]


def selected(data: bytes, format: str, columns: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str | None]]]:
    """Select with core and reference, which have to agree; return the values, and the codes and columns of errors."""
    [row] = lha.select(pa.array([data]), columns, format=format, errors="column").to_pylist()
    expected = ops.select_rows([data], format, columns, errors="column")
    errors = row.pop("error") or []
    assert row == {name: values[0] for name, values in expected.items() if name != "error"}
    codes = [(error["code"], error["column"]) for error in errors]
    assert codes == [(detail.code, detail.column) for detail in expected["error"][0] or ()]
    texts = [(error["message"], error["key"]) for error in errors]
    assert texts == [(detail.message, detail.key) for detail in expected["error"][0] or ()]
    return row, codes


def by_repeat(key: str) -> dict[str, Any]:
    return {f"by_{repeat}": lh.field("string", key=key, repeat=repeat) for repeat in REPEATS}


def values_by_repeat(last: Any, first: Any, every: Any, error: Any) -> dict[str, Any]:
    return {"by_last": last, "by_first": first, "by_all": every, "by_error": error}


def test_column_is_null_if_its_key_is_truncated_header() -> None:
    values, errors = selected(cut("tenant", 1), "kafka", {"tenant": "string"})
    assert (values, errors) == ({"tenant": None}, [("truncated", None)])


def test_value_replaceable_by_unread_headers_is_incomplete() -> None:
    values, errors = selected(cut("tenant", 1), "kafka", {"route": "string", "tenant": "string"})
    assert values == {"route": "a", "tenant": None}
    assert errors == [("truncated", None), ("incomplete", "route")]


def test_truncated_key_leaves_every_value_incomplete() -> None:
    data = bytes([4]) + (lh.encode([("tenant", b"acme")], "kafka") or b"")[1:] + b"\x0cten"
    values, errors = selected(data, "kafka", {"tenant": "string", "absent": "string"})
    assert values == {"tenant": "acme", "absent": None}
    assert errors == [("truncated", None), ("incomplete", "tenant")]


def test_first_value_is_complete_though_later_are_unread() -> None:
    values, errors = selected(cut("tenant", 1), "kafka", by_repeat("tenant"))
    assert values == values_by_repeat(None, "acme", None, None)
    assert errors == [("truncated", None)]
    values, errors = selected(cut("tenant", 1), "kafka", by_repeat("route"))
    assert values == values_by_repeat("a", "a", None, "a")
    assert errors == [("truncated", None), ("incomplete", "by_last"), ("incomplete", "by_error")]
    values, errors = selected(cut("tenant", 0), "kafka", by_repeat("tenant"))
    assert values == values_by_repeat(None, None, None, None)


def test_unreadable_required_header_is_not_absent() -> None:
    rows = [[{"key_type": "string", "key": b"a", "type": "nonsense", "value": b"x"}]]
    column = pa.array(rows, lha.decode(pa.array([b""]), "iggy").type)
    [row] = lha.select(column, {"a": lh.field("string", required=True)}, format="iggy", errors="column").to_pylist()
    assert (row["a"], [error["code"] for error in row["error"]]) == (None, ["unknown_type"])


def test_complete_message_and_errors_null_are_not_incomplete() -> None:
    values, errors = selected(DATA, "kafka", by_repeat("route"))
    assert errors == [("repeated_key", "by_error")]
    assert values["by_last"] == "b"
    [row] = lha.select(pa.array([cut("tenant", 1)]), {"route": "string"}, errors="null").to_pylist()
    assert row == {"route": None}
    with pytest.raises(lh.DecodeError) as caught:
        lha.select(pa.array([cut("tenant", 1)]), {"route": "string"})
    assert caught.value.code == "truncated"


@pytest.mark.parametrize("errors", ["null", "column"])
def test_damaged_header_replaces_only_values_it_could_replace(errors: Any) -> None:
    good, bad = {"key": "k", "type": "string", "value": b"good"}, {"key": "k", "type": "nonsense", "value": b"bad"}
    for headers, last, first in (([good, bad], None, "good"), ([bad, good], "good", None), ([bad], None, None)):
        column = pa.array([headers], lha.decode(pa.array([b""]), "kip82-typed").type)
        [row] = lha.select(column, by_repeat("k"), format="kip82-typed", errors=errors).to_pylist()
        expected = values_by_repeat(last, first, None, None)
        assert {name: row[name] for name in expected} == expected
        result = ops.select_rows(
            [[(header["key"], header["type"], header["value"]) for header in headers]],
            "kip82-typed",
            by_repeat("k"),
            errors=errors,
            lists=True,
        )
        assert {name: result[name][0] for name in expected} == expected


def test_batch_records_follow_same_rule() -> None:
    message = (
        lh.encode({"headers": [("tenant", lh.String("acme")), ("tenant", lh.String("b"))]}, "kip82-message") or b""
    )
    # The type of the second value, before the last b of the message.
    damaged = bytearray(message)
    damaged[message.rindex(b"b") - 1] = 99
    columns = {"tenant": lh.field("string")}
    for data in (message, bytes(damaged)):
        [row] = lha.messages(pa.array([data]), "kip82-messages", headers=columns, errors="column").to_pylist()
        [expected] = ops.messages_rows([data], "kip82-messages", headers=columns, errors="column")
        assert row["tenant"] == expected["tenant"] == ("b" if data == message else None)
    codes = [(error["code"], error["key"]) for error in row["error"]]
    assert codes == [("bad_crc", None), ("unknown_type", "tenant")]
    both = pa.array([bytes(damaged) + message + bytes(damaged)])
    rows = lha.messages(both, "kip82-messages", headers=columns, errors="column").to_pylist()
    assert [row["tenant"] for row in rows] == [None, "b", None]


@given(st.integers(1, len(DATA)), st.sampled_from(["tenant", "route", "absent"]), st.sampled_from(REPEATS))
def test_any_truncation_agrees_with_reference(length: int, key: str, repeat: Repeat) -> None:
    values, errors = selected(DATA[:length], "kafka", {"column": lh.field("string", key=key, repeat=repeat)})
    read = [value.decode() for name, value in HEADERS if name == key]
    if ("incomplete", "column") not in errors and repeat == "last":
        assert values["column"] in (None, read[-1] if read else None)
