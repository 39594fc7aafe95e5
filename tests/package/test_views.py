"""`views=True`: text and bytes that refer to the input, with the values of columns that are copied."""

from __future__ import annotations

import gc
import io
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers import strategies
from tests.helpers.implementations import binary_column
from tests.helpers.operations_by_name import apply, made
from tests.helpers.strategies import ONE, few

LENGTHS = [0, 1, 4, 11, 12, 13, 16, 63, 64, 100, 1_000, 10_000]

VALUES = [bytes(65 + place % 26 for place in range(length)) for length in LENGTHS]


def column(binary_type: pa.DataType | None = None) -> pa.Array:
    """Return a column of messages with values of many lengths, nulls, and rows without headers."""
    rows = [lh.encode([("a", value), ("null", None), ("b", value)], "kafka") for value in VALUES]
    return pa.array([*rows, None, b"", *rows], binary_type or pa.binary())


def buffers_of(views: pa.Array) -> list[pa.Buffer]:
    """Return the buffers that views refer to."""
    return [buffer for buffer in views.buffers()[2:] if buffer is not None and buffer.size]


def values_of(decoded: pa.Array) -> pa.Array:
    return decoded.values.field("value")


@pytest.mark.parametrize("format", ONE)
@few
@given(data=st.data(), errors=st.sampled_from(["raise", "null", "column"]))
def test_views_equal_normal_output(format: str, data: st.DataObject, errors: Any) -> None:
    rows = data.draw(st.lists(strategies.any_bytes(format) | strategies.valid_bytes(format), max_size=4))
    given_column = binary_column(rows).cast(
        data.draw(st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]))
    )
    given_column = strategies.lay(given_column, data.draw(strategies.layouts()))
    columns = data.draw(strategies.columns(format))
    calls: list[Any] = [
        lambda views: lha.decode(given_column, format, errors=errors, views=views),
        lambda views: lha.select(given_column, columns, format=format, errors=errors, views=views),
    ]
    for call in calls:
        try:
            expected = call(False)
        except lh.DecodeError as error:
            with pytest.raises(lh.DecodeError) as caught:
                call(True)
            assert (str(caught.value), caught.value.row) == (str(error), error.row)
            continue
        result = call(True)
        result.validate(full=True)
        assert result.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("format", ONE)
def test_type_is_known_before_reading_rows(format: str) -> None:
    for errors in ("raise", "column"):
        reported = made("decode", format, views=True, errors=errors).result_type()  # type: ignore[arg-type]
        assert lha.decode(binary_column([None]), format, views=True, errors=errors).type == reported  # type: ignore[arg-type]
        assert "value: binary_view" in str(reported)
        assert "value: binary>" not in str(reported)


def test_text_and_bytes_are_selected_as_views() -> None:
    types = {"s": "string", "b": "binary", "all": "array<string>", "n": "int32", "u": "uuid"}
    result = lha.select(binary_column([None]), types, errors="column", views=True)
    assert [str(field.type) for field in result.type][:-1] == [
        "string_view",
        "binary_view",
        "list<element: string_view>",
        "int32",
        "string_view",
    ]
    assert result.type.field("error").type == lha.validate(binary_column([None]), "kafka").type


@pytest.mark.parametrize("binary_type", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_long_values_refer_to_input_buffers(binary_type: pa.DataType) -> None:
    given_column = column(binary_type)
    inputs = {buffer.address for buffer in given_column.buffers()[2:] if buffer}
    result = values_of(lha.decode(given_column, "kafka", views=True))
    assert {buffer.address for buffer in buffers_of(result)} <= inputs
    chosen = lha.select(given_column, {"a": "string", "b": "binary"}, views=True)
    for name in ("a", "b"):
        assert {buffer.address for buffer in buffers_of(chosen.field(name))} <= inputs


def test_short_values_do_not_keep_input_alive() -> None:
    short = binary_column([lh.encode([("a", b"twelve bytes")], "kafka")] * 100)
    assert buffers_of(values_of(lha.decode(short, "kafka", views=True))) == []


def test_values_not_in_input_have_own_buffer() -> None:
    number, uuid = lh.Int128(-(2**100)), bytes(range(16))
    iggy = binary_column([lh.encode([("n", number), ("long", lh.Binary(b"x" * 100))], "iggy")] * 3)
    plain = lha.decode(iggy, "iggy")
    assert lha.decode(iggy, "iggy", views=True).to_pylist() == plain.to_pylist()
    only_numbers = binary_column([lh.encode([("n", number)], "iggy")] * 3)
    assert len(buffers_of(values_of(lha.decode(only_numbers, "iggy", views=True)))) == 1
    uuids = binary_column([lh.encode([("u", uuid), ("x", b"y" * 50)], "kafka")] * 3)
    result = lha.select(uuids, {"u": "uuid", "x": "binary"}, views=True)
    result.validate(full=True)
    assert result.to_pylist() == lha.select(uuids, {"u": "uuid", "x": "binary"}).to_pylist()


def test_non_utf8_text_is_rejected() -> None:
    rows = [lh.encode([("a", value)], "kafka") for value in (b"x" * 100, b"x" * 99 + b"\xff", b"\xff")]
    for views in (False, True):
        with pytest.raises(lh.DecodeError) as caught:
            lha.select(binary_column(rows), {"a": "string"}, views=views)
        assert caught.value.row == 1
        nulls = lha.select(binary_column(rows), {"a": "string"}, errors="null", views=views)
        assert nulls.to_pylist() == [{"a": "x" * 100}, {"a": None}, {"a": None}]


def test_list_values_refer_to_value_column() -> None:
    lists = lha.decode(column(), "kafka")
    result = lha.select(lists, {"a": "binary"}, views=True)
    assert result.to_pylist() == lha.select(lists, {"a": "binary"}).to_pylist()
    (buffer,) = buffers_of(result.field("a"))
    assert buffer.address == values_of(lists).buffers()[2].address


def test_output_outlives_input() -> None:
    given_column = column()
    expected = lha.decode(given_column, "kafka").to_pylist()
    result = lha.decode(given_column, "kafka", views=True)
    del given_column
    gc.collect()
    junk = [pa.array([b"\0" * 10_000] * 50) for _ in range(20)]
    assert result.to_pylist() == expected
    del junk


def test_polars_and_duckdb_read_views() -> None:
    table = pa.table({"headers": lha.decode(column(), "kafka", views=True)})
    expected = table["headers"].to_pylist()
    assert pl.DataFrame(table)["headers"].to_list() == expected
    assert [row[0] for row in duckdb.from_arrow(table).fetchall()] == expected
    chosen = lha.select(column(), {"a": "string", "b": "binary"}, views=True)
    flat = pa.Table.from_struct_array(chosen)
    assert pl.DataFrame(flat).to_dicts() == chosen.to_pylist() == flat.to_pylist()
    lengths = duckdb.from_arrow(flat).aggregate("sum(length(a)), sum(octet_length(b))").fetchall()
    assert lengths == [(2 * sum(LENGTHS), 2 * sum(LENGTHS))]
    series = lha.decode(pl.Series([row.as_py() for row in column()], dtype=pl.Binary), "kafka", views=True)
    assert pl.Series(series).to_list() == expected


def test_views_survive_ipc_and_streams() -> None:
    chunked = pa.chunked_array([column(), column()[3:]])
    expected = lha.decode(chunked, "kafka").to_pylist()
    result = lha.decode(chunked, "kafka", views=True)
    table = pa.table({"headers": result})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert pa.ipc.open_stream(sink.getvalue()).read_all()["headers"].to_pylist() == expected
    stream = apply("decode", chunked, "kafka", views=True)
    assert pa.chunked_array(stream).to_pylist() == expected


def test_views_option_is_boolean() -> None:
    with pytest.raises(TypeError, match="views must be bool, not str"):
        lha.decode(binary_column([b""]), "kafka", views="yes")  # type: ignore[arg-type]
