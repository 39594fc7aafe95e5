"""Tables whose headers have the shapes that other systems write are read without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def nested(name: str) -> dict[str, Any]:
    """Return the columns of a topic as a table format of Redpanda has them."""
    rows = [{"offset": 5, name: [{"key": "tenant", "value": b"acme"}]}, None, {"offset": 7, name: []}]
    return {"value": [b"a", b"b", b"c"], "redpanda": pa.array(rows, pa.struct([("offset", pa.int64()), (name, PAIRS)]))}


SHAPES = {
    "map": {"headers": pa.array([[("tenant", "acme")], [], None], pa.map_(pa.string(), pa.string()))},
    "text": {
        "headers": pa.array(
            [[{"key": "tenant", "value": "acme"}], [], None],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])),
        )
    },
    "names": {
        "headers": pa.array(
            [[{"name": b"tenant", "value": b"acme", "n": 1}], [], None],
            pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary()), ("n", pa.int8())])),
        )
    },
    "nested": nested("headers"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_typed_columns_and_conditions_read_every_shape(shape: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    path = written(tmp_path / "rows.parquet", **SHAPES[shape])
    table = lh.open(path, headers={"tenant": "string"}).read_all()
    assert table["tenant"].to_pylist() == ["acme", None, None]
    assert table.drop_columns("tenant") == lh.open(path).read_all().drop_columns(
        [] if shape == "nested" else ["headers"]
    )
    assert lh.open(path, where="tenant = 'acme'").read_all().num_rows == 1
    assert lh.open(path, headers={"tenant": "string"}, last=2).read_all()["tenant"].to_pylist() == [None, None]
    columns = [] if shape == "nested" else ["--columns", "headers"]
    printed = run("read", path, "--headers", "tenant", "--json", *columns, "-n", "1")
    assert json.loads(printed.out)["tenant"] == "acme"


def test_single_nested_headers_field_is_column_if_named(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.parquet", **nested("headers"))
    assert lh.open(path).read_all().column_names == ["value", "redpanda"]
    headers = lh.open(path, columns=["headers"]).read_all()["headers"].to_pylist()
    assert headers == [[{"key": "tenant", "value": b"acme"}], None, []]
    other = written(tmp_path / "other.parquet", **nested("headers"), more=nested("headers")["redpanda"])
    with pytest.raises(ValueError, match="headers= needs a column of headers: there are value, redpanda, more"):
        lh.open(other, headers={"tenant": "string"})


NULL = pa.null()
UNTYPED = {
    "null": NULL,
    "list of nulls": pa.list_(NULL),
    "large list of nulls": pa.large_list(NULL),
    "list view of nulls": pa.list_view(NULL),
    "empty list of fixed size": pa.list_(NULL, 0),
    "null keys and values": pa.list_(pa.struct([("key", NULL), ("value", NULL)])),
    "null values": pa.list_(pa.struct([("name", pa.string()), ("value", NULL)])),
    "map of nulls": pa.map_(pa.binary(), NULL),
}
"""Types that libraries infer for the headers of messages that have none."""


@pytest.mark.filterwarnings("ignore::letterhead.errors.UnseenHeaderWarning")
@pytest.mark.parametrize("shape", UNTYPED)
def test_types_inferred_from_messages_without_headers_are_read(
    shape: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    headers = pa.array([None, None] if shape == "null" else [[], None], UNTYPED[shape])
    table = pa.table({"offset": [5, 6], "headers": headers})
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    expected = {"offset": [5, 6], "tenant": [None, None]}
    for source in (table, path):
        assert lh.open(source, headers={"tenant": "string"}).read_all().to_pydict() == expected
        assert lh.open(source, where="tenant = 'acme'").read_all().num_rows == 0
        assert lh.open(source).read_all()["headers"].to_pylist() == headers.to_pylist()
        assert (
            lh.diff(source, pa.table({"offset": [5, 6], "headers": pa.array([[], []], PAIRS)})).read_all().num_rows == 0
        )
    check_column_functions(headers)
    check_column_functions(pa.chunked_array([headers[:1], headers[1:]]))
    result = run("read", path, "--edit", "set tenant=acme", "--json")
    assert result.code == 0, result.err
    assert [json.loads(line)["headers"] for line in result.lines] == [[{"key": "tenant", "value": "acme"}]] * 2


@pytest.mark.parametrize("headers", [[None, None], [[], None], [[], []], [[{"key": "a", "value": None}], []]])
def test_polars_types_of_missing_headers_are_read(headers: list[Any]) -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"offset": [5, 6], "headers": headers, "more": [None, None]})
    rows = lh.open(table, headers={"tenant": "string"}, where="offset > 4").read_all()
    assert rows.to_pydict() == {"offset": [5, 6], "more": [None, None], "tenant": [None, None]}
    assert lh.open(table, columns=["headers"]).read_all()["headers"].to_pylist() == headers
    if not any(headers):
        check_column_functions(table["headers"])
    with pytest.raises(TypeError, match="a column has a type that Arrow lacks, such as Int128 of polars: cast it"):
        lh.open(polars.DataFrame({"n": polars.Series([1], dtype=polars.Int128)}))


def check_column_functions(column: Any) -> None:
    """Check the functions of letterhead.arrow on the headers of two messages that have none."""
    as_arrow: Any = pa.array if isinstance(column, pa.Array) else pa.chunked_array
    selected = as_arrow(lha.select(column, {"tenant": "string"}, where="tenant is null"))
    assert selected.to_pylist() == [{"tenant": None}] * 2
    assert as_arrow(lha.encode(column)).to_pylist() == [b"", b""]
    assert as_arrow(lha.edit(column, set={"a": b"1"})).to_pylist() == [[{"key": "a", "value": b"1"}]] * 2
    assert lha.scan(column).to_dict()["rows"] == 2
    assert as_arrow(lha.validate(column)).to_pylist() == [None, None]


def test_files_without_headers_are_read_beside_others(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", offset=[0], headers=pa.nulls(1))
    written(tmp_path / "b.parquet", offset=[1], headers=pa.array([[]], pa.list_(NULL)))
    written(tmp_path / "c.parquet", offset=[2], headers=pa.array([[{"key": "tenant", "value": b"acme"}]], PAIRS))
    rows = lh.open(tmp_path, headers={"tenant": "string"}).read_all()
    assert rows["tenant"].to_pylist() == [None, None, "acme"]


@pytest.mark.parametrize("element", [pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_lists_of_size_zero_are_read(element: pa.DataType) -> None:
    type = pa.list_(element, 0)
    validity = pa.py_buffer(b"\x05")
    lists = pa.Array.from_buffers(type, 3, [validity], children=[pa.nulls(0, element)])
    for column in (lists, lists.slice(1), pa.nulls(2, type)):
        assert lh.open(pa.table({"a": column})).read_all()["a"].to_pylist() == column.to_pylist()


LINES = {
    "objects": [{"headers": {"tenant": "acme", "b": None}}, {"headers": {}}, {"headers": None}, {}],
    "other names": [{"headers": [{"k": "tenant", "v": "acme"}, {"k": "b", "v": None}]}, {"headers": []}, {}, {}],
    "AWS Lambda": [{"headers": [{"tenant": [97, 99, 109, 101]}, {"b": None}]}, {"headers": []}, {}, {}],
    "bytes": [{"headers": {"tenant": {"base64": "YWNtZQ=="}, "b": None}}, {"headers": {}}, {}, {}],
}


@pytest.mark.parametrize("lines", LINES)
def test_json_lines_headers_keep_order_and_nulls(lines: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES[lines]))
    headers = lh.open(path).read_all()["headers"].to_pylist()
    assert headers == [[{"key": "tenant", "value": b"acme"}, {"key": "b", "value": None}], [], None, None]
    assert lh.open(path, headers={"tenant": "string"}).read_all()["tenant"].to_pylist() == ["acme", None, None, None]


def test_json_header_bytes_may_be_signed_or_unsigned(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"headers":[{"a":[65,-61]},{"a":[65,195]},{"a":[]}]}\n')
    headers = lh.open(path).read_all()["headers"].to_pylist()[0]
    assert [header["value"] for header in headers] == [b"A\xc3", b"A\xc3", b""]
    path.write_text('{"headers":[{"a":[195,-61]}]}\n')
    with pytest.raises(ValueError, match="lists of a key and a value, or a map of these, are headers"):
        lh.open(path, headers={"a": "binary"})


def test_struct_field_is_column_by_path(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = written(tmp_path / "rows.parquet", **nested("headers"), more=nested("headers")["redpanda"])
    assert lh.open(path).read_all().column_names == ["value", "redpanda", "more"]
    table = lh.open(path, columns=["more.offset", "redpanda.headers", "value"]).read_all()
    assert table.column_names == ["more.offset", "redpanda.headers", "value"]
    assert table["more.offset"].to_pylist() == [5, None, 7]
    assert table["redpanda.headers"].to_pylist() == [[{"key": "tenant", "value": b"acme"}], None, []]
    selected = lh.open(path, columns=["value"], where='"more.offset" > 5').read_all()
    assert selected["value"].to_pylist() == [b"c"]
    assert run("read", path, "--columns", "more.offset", "--last", "1", "--json").out == '{"more.offset":7}\n'
    assert run("read", path, "--count-by", "more.offset", "--json").out.count("more.offset") == 3
    assert "tenant" in run("scan", path, "--column", "redpanda.headers").out
    decoded = run("decode", path, "--column", "redpanda.headers", "-f", "kafka", "--json").out.splitlines()
    assert json.loads(decoded[0])["headers"] == [{"key": "tenant", "value": "acme"}]
    failed = run("scan", path, "--column", "redpanda.header")
    assert failed.code == 2
    assert "redpanda.headers" in failed.err


def test_ambiguous_path_is_no_column(tmp_path: Path) -> None:
    columns = {"a": [{"b.c": 1, "b": {"c": 2, "d": 3}}], "a.b": [{"d": 4}]}
    path = written(tmp_path / "rows.parquet", **columns)
    assert lh.open(path, columns=["a.b"]).read_all()["a.b"].to_pylist() == [{"d": 4}]
    for name in ("a.b.c", "a.b.d"):
        with pytest.raises(ValueError, match=f"there is no column '{name}'"):
            lh.open(path, columns=[name])


def test_line_of_another_shape_raises_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"headers":{"a":"1"}}\n' * 20_000 + '{"headers":{"a":1}}\n')
    with pytest.raises(lh.errors.DamagedTableError, match="line 20001: column 'headers': a header is neither text"):
        lh.open(path).read_all()


def test_kcat_messages_have_headers(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "kcat.json"
    line = {
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "tstype": "create",
        "ts": 1,
        "broker": 0,
        "key": None,
        "payload": "p",
    }
    lines = [{**line, "headers": ["tenant", "acme", "n", None]}, {**line, "offset": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    printed = run("read", path, "--headers", "tenant", "--columns", "offset", "--json")
    assert [json.loads(line) for line in printed.out.splitlines()] == [
        {"offset": 0, "tenant": "acme"}, {"offset": 1, "tenant": None},
    ]  # fmt: skip
    assert run("read", path, "--where", "tenant = 'acme'", "--columns", "offset", "--json").out == '{"offset":0}\n'


@pytest.mark.parametrize("shape", ["map", "text"])
def test_table_shows_headers_of_every_shape_alike(shape: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    path = written(tmp_path / "rows.parquet", **SHAPES[shape])
    assert [line.strip() for line in run("read", path).out.splitlines()[2:5]] == ['tenant="acme"', "none", "null"]


def test_objects_of_numbers_are_rejected_with_valid_shapes(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"headers":{"a":1}}\n')
    with pytest.raises(
        ValueError, match="column 'headers' is struct<a: int64>: lists of a key and a value, or a map of these"
    ):
        lh.open(path, headers={"a": "string"})


@pytest.mark.parametrize("shape", ["map", "text"])
def test_headers_of_every_shape_are_edited(shape: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    path, out = written(tmp_path / "rows.parquet", **SHAPES[shape]), tmp_path / "out.parquet"
    printed = run("read", path, "--edit", "append n=x", "--json", "-n", "1")
    assert json.loads(printed.out)["headers"][-1] == {"key": "n", "value": "x"}, printed.err
    assert run("read", path, "--edit", "drop tenant", "-o", out).code == 0
    assert pq.read_table(out)["headers"].to_pylist() == [[], [], None]


def test_header_column_named_twice_is_rejected(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = written(tmp_path / "rows.parquet", **SHAPES["map"])
    result = run("read", path, "--headers", "a=tenant,a:int32")
    assert (result.code, "--headers makes column 'a' twice" in result.err) == (2, True)


def test_empty_segment_list_raises() -> None:
    with pytest.raises(ValueError, match="no log segment is named"):
        lh.read.segments([])
