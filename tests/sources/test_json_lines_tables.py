"""Tables of JSON lines: a value is what the line says, or an error that names the line and the column."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import DamagedTableError

MANY = 10_000  # lines that decide on the types


def opened(tmp_path: Path, *lines: Any, **options: Any) -> pa.Table:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (tmp_path / "rows.jsonl").write_text(text + "\n", encoding="utf-8", errors="surrogatepass")
    return lh.open(tmp_path / "rows.jsonl", **options).read_all()


@pytest.mark.parametrize(
    ("lines", "type", "values"),
    [
        ([{"a": 1}, {"a": None}], pa.int64(), [1, None]),
        ([{"a": 1}, {"a": 2.5}], pa.float64(), [1.0, 2.5]),
        ([{"a": 1 << 63}, {"a": 5}], pa.uint64(), [1 << 63, 5]),
        ([{"a": True}, {"b": 1}], pa.bool_(), [True, None]),
        ([{"b": 1}, {"a": "x"}], pa.string(), [None, "x"]),
        ([{"a": None}], pa.null(), [None]),
        ([{"a": "x"}, {"a": {"base64": "/w=="}}], pa.binary(), [b"x", b"\xff"]),
        ([{"a": [1, 2.5]}, {"a": []}], pa.list_(pa.float64()), [[1.0, 2.5], []]),
        (
            [{"a": {"b": 1}}, {"a": {"c": [None, "x"]}}],
            pa.struct([("b", pa.int64()), ("c", pa.list_(pa.string()))]),
            [{"b": 1, "c": None}, {"b": None, "c": [None, "x"]}],
        ),
        ([{"a": {}}], pa.struct([]), [{}]),
    ],
)
def test_first_lines_determine_types(lines: list[Any], type: pa.DataType, values: list[Any], tmp_path: Path) -> None:
    table = opened(tmp_path, *lines)
    assert (table.schema.field("a").type, table["a"].to_pylist()) == (type, values)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("first", "line", "message"),
    [
        ({"a": 1}, {"a": "x"}, "column 'a': text, and an integer in other lines"),
        ({"a": "x"}, {"a": True}, "column 'a': true or false, and text in other lines"),
        ({"a": {"b": 1}}, {"a": [1]}, "column 'a': a list, and an object in other lines"),
        ({"a": {"b": [1]}}, {"a": {"b": ["x"]}}, r"column 'a.b\[\]': text, and an integer in other lines"),
        ({"a": 1}, '{"a": 123456789012345678901}', "column 'a': an integer of more than 64 bits, which should be text"),
        ({"a": 1.5}, '{"a": 1e999}', "is not JSON: a number is too large for a double"),
        ({"a": "x"}, '{"a": "\\ud800"}', "column 'a' has text with a lone surrogate"),
        ({"a": 1}, '{"a": NaN}', "is not JSON: NaN is not a JSON number"),
        ({"a": 1}, '{"a": 1, "a": 2}', "is not JSON: an object has a name twice"),
        (
            {"a": {"base64": "aGk="}},
            {"a": {"base64": 5}},
            "column 'a': the value: \"base64\" is a string, not a number",
        ),
        ({"a": {"base64": "aGk="}}, {"a": {"base64": "!!"}}, "column 'a': the value: base64: "),
        ({"value": "x"}, {"value": {"base64": "!!"}}, "column 'value': the value: base64: "),
        ({"a": 1}, "[1]", "is not an object"),
        ({"a": 1}, '{"a": ' + "[" * 100_000, "is not JSON: the nesting is too deep"),
        ({"a": 1}, '{"a": ' + "9" * 5000 + "}", "is not JSON: a number is too long"),
    ],
)
def test_value_out_of_column_range_is_rejected(first: Any, line: Any, message: str, late: bool, tmp_path: Path) -> None:
    lines = [first] * (MANY if late else 1)
    with pytest.raises(DamagedTableError, match=rf"rows.jsonl: line {len(lines) + 1:d}:? {message}"):
        opened(tmp_path, *lines, line)


@pytest.mark.parametrize(
    ("first", "line", "message"),
    [
        ({"a": 1}, {"a": 1.9}, "column 'a': a fraction, and an integer in other lines"),
        ({"a": 1.5}, {"a": (1 << 53) + 1}, "column 'a': an integer, and a fraction in other lines"),
        ({"a": "x"}, {"a": {"base64": "/w=="}}, "column 'a': bytes, and text in other lines"),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, "column 'a': an object with a further field, and others in other lines"),
        ({"a": 1}, {"b": 1}, "has a name 'b', which the first 10,000 lines lack: they have a"),
        ({"a": None}, {"a": 1}, "column 'a': a number, and null in other lines"),
        (
            {"headers": [{"key": "k", "value": "v"}]},
            {"headers": [{"key": "k", "value": {"type": "int32", "value": 3}}]},
            "column 'headers': a header has a type, which those in other lines lack",
        ),
    ],
)
def test_later_lines_do_not_change_types(first: Any, line: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedTableError, match=rf"rows.jsonl: line {MANY + 1}:? {message}"):
        opened(tmp_path, *[first] * MANY, line)


def test_integers_stay_exact_in_double_column(tmp_path: Path) -> None:
    assert opened(tmp_path, *[{"a": 1.5}] * MANY, {"a": 1 << 53})["a"].to_pylist()[-1] == float(1 << 53)


@pytest.mark.parametrize("late", [False, True])
def test_base64_is_read_like_encode_reads_it(late: bool, tmp_path: Path) -> None:
    table = opened(tmp_path, *[{"value": "x"}] * (MANY if late else 0), {"value": {"base64": "____aGk="}})
    assert table["value"].to_pylist()[-1] == b"\xff\xff\xffhi"


def test_typed_headers_follow_iggy(tmp_path: Path) -> None:
    headers = [{"key": "retry", "value": {"type": "int32", "value": 3}}, {"key": "note", "value": "x"}]
    table = opened(tmp_path, {"headers": headers}, {"headers": None})
    iggy = lh.arrow.decode(pa.array([lh.encode({"retry": lh.Int32(3), "note": lh.String("x")}, "iggy"), None]), "iggy")
    assert table["headers"].combine_chunks().to_pylist() == iggy.to_pylist()
    selected = opened(tmp_path, {"headers": headers}, headers={"retry": "int32"})
    assert selected["retry"].to_pylist() == [3]


@pytest.mark.parametrize("key", [{"type": "string", "value": "k"}, {"type": "uint64", "value": 5}])
def test_typed_keys_are_read(key: Any, tmp_path: Path) -> None:
    [[row]] = opened(tmp_path, {"headers": [{"key": key, "value": "x"}]})["headers"].to_pylist()
    assert row["key_type"] == key["type"]


def test_integer_keys_are_read(tmp_path: Path) -> None:
    table = opened(tmp_path, {"headers": [{"key": 7, "value": "x"}]})
    assert table["headers"].to_pylist() == [[{"key": 7, "value": b"x"}]]


def test_byte_order_mark_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'\xef\xbb\xbf\n  \r\n{"a": 1}\r\n\n' + b"\n" * 3_000_000 + b'{"a": "x"}')
    with pytest.raises(DamagedTableError, match="line 3000005: column 'a'"):
        lh.open(tmp_path / "rows.jsonl").read_all()


@pytest.mark.parametrize("size", [2 << 20, 9 << 20])
def test_lines_longer_than_a_piece_are_whole(size: int, tmp_path: Path) -> None:
    table = opened(tmp_path, {"a": "x" * size}, {"a": "y"}, {"a": "z" * size})
    assert [len(value) for value in table["a"].to_pylist()] == [size, 1, size]


def test_doubly_compressed_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "rows.gz").write_bytes(gzip.compress(gzip.compress(b'{"a":1}\n')))
    with pytest.raises(ValueError, match=r"rows.gz is compressed twice: decompress it once, and read the result"):
        lh.open(tmp_path / "rows.gz")
    (tmp_path / "once").write_bytes(gzip.decompress((tmp_path / "rows.gz").read_bytes()))
    assert lh.open(tmp_path / "once").read_all().to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(("limit", "rows"), [("decompressed_bytes", 1), ("headers", 30)])
def test_limit_can_be_raised(limit: str, rows: int, tmp_path: Path) -> None:
    line = {"a": "x" * 1000} if limit == "decompressed_bytes" else {"a": [1] * 1000}
    (tmp_path / "rows.gz").write_bytes(gzip.compress("\n".join([json.dumps(line)] * rows).encode()))
    with pytest.raises(DamagedTableError, match=rf"raise {limit} in limits="):
        lh.open(tmp_path / "rows.gz", limits=lh.Limits(**{limit: 900}))
    assert lh.open(tmp_path / "rows.gz", limits=lh.Limits(**{limit: 1100})).read_all().num_rows == rows


B, U = str(2**53), str(2**63)


@pytest.mark.parametrize(
    ("values", "type", "read"),
    [
        ([1, B, -2], "int64", [1, 2**53, -2]),
        ([f"-{B}", 1], "int64", [-(2**53), 1]),
        ([B, U, 1], "uint64", [2**53, 2**63, 1]),
        ([0.5, "NaN", 1, "-Infinity"], "double", [0.5, "nan", 1.0, "-inf"]),
        (["Infinity", 1.5], "double", ["inf", 1.5]),
        ([[1, B], []], "list<item: int64>", [[1, 2**53], []]),
        ([B, U], "string", [B, U]),
        ([B, "x"], "string", [B, "x"]),
        (["NaN", B], "string", ["NaN", B]),
        ([*[1] * 10_001, B], "int64", [*[1] * 10_001, 2**53]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_numeric_text_beside_numbers_is_a_number(tmp_path: Path, values: list[Any], type: str, read: list[Any]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values))
    table = lh.open(path).read_all()
    found = [str(value) if str(value) in ("nan", "inf", "-inf") else value for value in table["a"].to_pylist()]
    assert (str(table.schema.field("a").type), found) == (type, read)


@pytest.mark.parametrize(
    "values", [[1, "9007199254740991"], [1, "12"], [1, "01234567890123456"], [1, str(2**64)], [-1, U], [0.5, B]]
)
def test_other_text_is_not_read_as_number(tmp_path: Path, values: list[Any]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values))
    with pytest.raises(DamagedTableError):
        lh.open(path).read_all()


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (["2026-01-01T00:00:00.000Z", None, "2026-01-01T00:00:01Z"], pa.timestamp("ms", "UTC")),
        (["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000001Z"], pa.timestamp("us", "UTC")),
        (["2026-01-01T00:00:00.000Z", "soon"], pa.string()),
        (["2026-13-01T00:00:00.000Z"], pa.string()),
        (["2026-01-01"], pa.string()),
    ],
)
def test_record_times_are_read_as_times(tmp_path: Path, values: list[Any], type: pa.DataType) -> None:
    table = opened(tmp_path, *({"timestamp": value, "other": value} for value in values))
    assert (table.schema.field("timestamp").type, table.schema.field("other").type) == (type, pa.string())
    if type != pa.string():
        expected = [None if value is None else datetime.fromisoformat(value) for value in values]
        assert table["timestamp"].to_pylist() == expected
        bound = "2026-01-01T00:00:00Z"
        assert (
            opened(tmp_path, *({"timestamp": value} for value in values), where=f"timestamp > '{bound}'").num_rows == 1
        )


@pytest.mark.parametrize("wrong", ["later", 5, "2026-01-01T00:00:00.000001Z", {"a": 1}])
def test_later_value_that_is_no_time_raises(tmp_path: Path, wrong: Any) -> None:
    lines = [{"timestamp": "2026-01-01T00:00:00.000Z"}] * MANY + [{"timestamp": wrong}]
    with pytest.raises(DamagedTableError, match=f"line {MANY + 1}: column 'timestamp': .*times with milliseconds"):
        opened(tmp_path, *lines)


def test_log_written_as_json_lines_is_read_back(tmp_path: Path, samples: Path) -> None:
    headers: Any = {"amount": lh.field("int64", key="amount_cents"), "weight": "float64"}
    with lh.open(samples / "orders-0", headers=headers, errors="column", last=500) as reader:
        table = reader.read_all().select(["offset", "timestamp", "amount"])
    path = tmp_path / "orders.jsonl"
    text = "".join(
        json.dumps(row | {"timestamp": row["timestamp"].isoformat(timespec="milliseconds").replace("+00:00", "Z")})
        + "\n"
        for row in table.to_pylist()
    )
    path.write_text(text)
    assert lh.open(path).read_all().cast(table.schema) == table
    for where in ("timestamp >= '2026-01-01T00:23:00Z'", "timestamp <= '2026-01-01T00:24:00.5Z'"):
        assert lh.open(path, where=where).read_all().num_rows == lh.open(samples / "orders-0", where=where, start=9500).read_all().num_rows  # fmt: skip
