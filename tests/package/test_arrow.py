"""Columns: which Arrow objects go in and come out, without copies, without the GIL, cut before an offset overflows."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead._header_edits import HeaderEdit
from letterhead.operations import Decode, Edit
from tests.helpers.operations_by_name import apply

THREE = {"tenant": "string", "retry": "int32", "amount_cents": "int64"}


@pytest.fixture(scope="module")
def headers(samples: Path) -> pa.Array:
    """The headers of a topic, as Spark's Kafka source gives them: 300 of the rows are null."""
    return pq.read_table(samples / "orders-0.parquet").column("headers").combine_chunks()


@pytest.fixture(scope="module")
def rows(headers: pa.Array) -> pa.Array:
    """The same headers as messages of bytes."""
    return lha.encode(headers, "kafka")


@pytest.fixture(scope="module")
def store(samples: Path) -> pa.Array:
    """The values of a store that keeps headers."""
    return pq.read_table(samples / "store-latest-0.parquet").column("value").combine_chunks()


def without_nulls(lists: pa.Array) -> list[object]:
    return [row or [] for row in lists.to_pylist()]


# --- the topic and the store -----------------------------------------------------------------------------------------


def test_topic_survives_encode_then_decode(headers: pa.Array, rows: pa.Array) -> None:
    read = lha.decode(rows, "kafka")
    assert read.type == headers.type
    assert read.to_pylist() == without_nulls(headers)
    assert headers.null_count == 300
    assert sum(header["value"] is None for row in read.to_pylist() for header in row) == 502


def test_select_is_equal_from_lists_and_from_messages(headers: pa.Array, rows: pa.Array) -> None:
    for columns in (
        THREE,
        {**THREE, "route": "array<string>", "first": lh.field("string", key="route", repeat="first")},
    ):
        assert lha.select(headers, columns).equals(lha.select(rows, columns))


def test_store_is_decoded_and_written_back_byte_for_byte(store: pa.Array) -> None:
    read = lha.decode(store, "streams-timestamped")
    assert read.type.names == ["headers", "timestamp", "payload"]
    assert lha.encode(read, "streams-timestamped").equals(store)


def test_typed_list_is_written_as_types_option_selects() -> None:
    type = pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())]))
    typed = pa.array([[{"key": "retry", "type": "int32", "value": b"\0\0\0\3"}]], type)
    with pytest.raises(lh.ConversionError, match="kafka: kafka carries no types") as caught:
        lha.encode(typed, "kafka")
    assert (caught.value.code, caught.value.key) == ("type_not_carried", "retry")
    little = lha.encode(typed, "kafka", types="le")
    assert lha.select(little, {"retry": "int32:le"}).to_pylist() == [{"retry": 3}]
    # Read as a list, the type decides: a wrong one is an error, not a guess.
    assert lha.select(typed, {"retry": "int32"}).to_pylist() == [{"retry": 3}]
    with pytest.raises(lh.DecodeError, match="the value is int32 and string was requested"):
        lha.select(typed, {"retry": "string"})


# --- what goes in, what comes out ------------------------------------------------------------------------------------


def test_pyarrow_input_returns_pyarrow(rows: pa.Array) -> None:
    assert isinstance(lha.decode(rows, "kafka"), pa.Array)
    chunked = pa.chunked_array([rows[:10], rows[10:30]])
    read = lha.decode(chunked, "kafka")
    assert isinstance(read, pa.ChunkedArray)
    assert [len(chunk) for chunk in read.chunks] == [10, 20]
    assert read.combine_chunks().equals(lha.decode(rows[:30], "kafka"))


def test_empty_column_returns_empty_column() -> None:
    empty = pa.array([], pa.binary())
    assert lha.decode(empty, "kafka").to_pylist() == []
    assert lha.decode(pa.chunked_array([], pa.binary()), "kafka").type == lha.decode(empty, "kafka").type
    assert lha.select(empty, THREE).type.names == list(THREE)


@pytest.mark.parametrize("layout", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_every_layout_of_bytes_is_read(rows: pa.Array, layout: pa.DataType) -> None:
    assert lha.decode(rows.cast(layout), "kafka").equals(lha.decode(rows, "kafka"))


def test_unaligned_buffers_are_read(headers: pa.Array) -> None:
    times = pa.array(range(len(headers)), pa.int64())
    moved = pa.py_buffer(b"\0" + times.buffers()[1].to_pybytes()).slice(1)
    assert moved.address % 8 != 0
    shifted = pa.Array.from_buffers(pa.int64(), len(times), [None, moved])

    def written(timestamps: pa.Array) -> pa.Array:
        names = ["headers", "timestamp", "payload"]
        payload = pa.array([b"x"] * len(headers))
        return lha.encode(pa.StructArray.from_arrays([headers, timestamps, payload], names), "streams-timestamped")

    assert written(shifted).equals(written(times))


def test_large_lists_and_views_are_read(headers: pa.Array, rows: pa.Array) -> None:
    wide = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    views = pa.list_(pa.struct([("key", pa.string_view()), ("value", pa.binary_view())]))
    for layout in (wide, views):
        assert lha.encode(pa.array(headers.to_pylist(), layout), "kafka").equals(rows)


def test_slice_returns_its_rows(headers: pa.Array, rows: pa.Array) -> None:
    for start, length in ((0, 0), (1, 7), (299, 1000), (9_990, 10)):
        assert lha.decode(rows.slice(start, length), "kafka").equals(lha.decode(rows, "kafka").slice(start, length))
        assert lha.encode(headers.slice(start, length), "kafka").equals(rows.slice(start, length))
        part = lha.select(headers.slice(start, length), THREE)
        assert part.equals(lha.select(headers, THREE).slice(start, length))


def test_polars_input_and_output_work(rows: pa.Array) -> None:
    import polars as pl

    series = pl.Series(rows)
    read = pl.Series(lha.decode(series, "kafka"))
    assert read.to_list() == lha.decode(rows, "kafka").to_pylist()
    frame = pl.DataFrame(pl.Series(lha.select(series, THREE)).struct.unnest())
    assert frame["amount_cents"].sum() == 24_131_751_782
    # polars' own lists are large lists of views.
    assert pl.Series(lha.encode(read, "kafka")).to_list() == rows.to_pylist()


def test_duckdb_reads_output(rows: pa.Array) -> None:
    import duckdb

    picked = lha.select(rows, THREE)
    orders = pa.table(dict(zip(THREE, picked.flatten(), strict=True)))  # noqa: F841 (DuckDB finds it by its name)
    assert duckdb.sql("select sum(amount_cents)::bigint, count(tenant) from orders").fetchall() == [
        (24_131_751_782, 9_700)
    ]


def test_nanoarrow_input_and_output_work(rows: pa.Array) -> None:
    import nanoarrow as na

    result = lha.validate(na.Array(rows), "kafka")
    assert len(na.Array(result)) == len(rows)


def test_stream_input_returns_stream_for_other_libraries(rows: pa.Array) -> None:
    class Stream:
        """A library of its own: nothing but the protocol."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.chunked_array([rows[:5], rows[5:9]]).__arrow_c_stream__(requested_schema)

    result = lha.decode(Stream(), "kafka")
    assert not isinstance(result, pa.ChunkedArray)
    assert pa.chunked_array(result).to_pylist() == lha.decode(rows[:9], "kafka").to_pylist()
    with pytest.raises(ValueError, match="the stream was exported, and is read elsewhere"):
        pa.chunked_array(result)


def exported(array: pa.Array | pa.ChunkedArray) -> Any:
    """Return an array or a stream of another library: nothing but the protocol, with capsules that are made once."""
    name = "__arrow_c_stream__" if isinstance(array, pa.ChunkedArray) else "__arrow_c_array__"
    capsules = getattr(array, name)()
    return SimpleNamespace(**{name: lambda requested_schema=None: capsules})


def test_consumer_may_request_another_type(headers: pa.Array, rows: pa.Array) -> None:
    wide = pa.large_binary()
    assert pa.array(lha.encode(exported(headers), "kafka"), type=wide).equals(rows.cast(wide))
    stream = lha.encode(exported(pa.chunked_array([headers[:9], headers[9:]])), "kafka")
    assert pa.chunked_array(stream, type=wide).equals(pa.chunked_array([rows[:9].cast(wide), rows[9:].cast(wide)]))
    schema = pa.schema([("retry", pa.int64())])
    columns = lha.select(exported(pa.chunked_array([rows])), {"retry": "int32"})
    assert pa.RecordBatchReader.from_stream(columns, schema=schema).schema == schema


def test_imported_capsule_is_not_imported_again(rows: pa.Array) -> None:
    array, stream = exported(rows), exported(pa.chunked_array([rows]))
    for column in (array, stream):
        lha.validate(column, "kafka")
        with pytest.raises(ValueError, match="was imported already: export it again"):
            lha.validate(column, "kafka")


def test_capsules_of_other_names_are_rejected() -> None:
    class Swapped:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return pa.array([b""]).__arrow_c_array__()[::-1]

    with pytest.raises(ValueError, match="incorrect name"):
        lha.validate(Swapped(), "kafka")


def test_stream_error_counts_rows_over_all_chunks(rows: pa.Array) -> None:
    chunked = pa.chunked_array([rows[:5], pa.array([b"", b"\x02"])])
    with pytest.raises(lh.DecodeError) as caught:
        lha.decode(chunked, "kafka")
    assert (caught.value.row, caught.value.code) == (6, "count_too_large")


def test_object_without_arrow_protocol_raises_type_error() -> None:
    with pytest.raises(TypeError, match=r"any Arrow array or stream .* and this is list"):
        lha.decode([b"\0"], "kafka")


def test_wrong_column_type_names_both_types(headers: pa.Array) -> None:
    with pytest.raises(
        TypeError, match="the column is int64, and kafka is read from binary, large_binary or binary_view"
    ):
        lha.decode(pa.array([1]), "kafka")
    with pytest.raises(
        TypeError, match=r"the column is list<.*>, and what fits is struct<headers: .*, payload: binary>"
    ):
        lha.encode(headers, "streams")
    with pytest.raises(TypeError, match=r"what fits is list<element: struct<key: string, value: binary>>"):
        lha.encode(pa.array([[{"key": "a", "val": b""}]]), "kafka")


# --- copies, the GIL, threads ----------------------------------------------------------------------------------------


def addresses(array: pa.Array) -> set[int]:
    return {buffer.address for buffer in array.buffers() if buffer is not None}


def test_kernel_reads_pyarrow_buffers(rows: pa.Array, headers: pa.Array) -> None:
    for column in (rows, rows.slice(17, 1000), headers, headers.slice(17, 1000)):
        seen = set(_native.buffer_addresses(column))
        data = {buffer.address for buffer in column.buffers()[1:] if buffer is not None and buffer.size}
        # Offsets of a slice begin inside the same buffer; what they point into is the very buffer. The offsets of a
        # slice of lists are copied, because they begin with 0.
        inside = {
            address
            for address in seen
            for buffer in column.buffers()
            if buffer is not None and buffer.address <= address < buffer.address + buffer.size
        }
        assert len(seen - inside) == (column.offset > 0 and pa.types.is_list(column.type))
        assert len(seen & data) >= 1


def test_output_reaches_pyarrow_without_copy(rows: pa.Array) -> None:
    result = apply("decode", rows, "kafka")
    native = set(_native.buffer_addresses(result))
    arrow = pa.array(result)
    assert addresses(arrow) <= native
    assert len(addresses(arrow)) >= 5


def test_many_threads_on_same_column_get_same_result(store: pa.Array) -> None:
    expected = lha.decode(store, "streams-timestamped")
    results: list[pa.Array] = []
    threads = [
        threading.Thread(target=lambda: results.append(lha.decode(store, "streams-timestamped"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(result.equals(expected) for result in results)


# --- cutting ---------------------------------------------------------------------------------------------------------


def test_stream_is_split_before_overflow(rows: pa.Array) -> None:
    chunked = pa.chunked_array([rows[:2000]])
    result = [pa.array(part) for part in apply("decode", chunked, "kafka", max_offset=20_000)]
    assert len(result) > 10
    assert pa.concat_arrays(result).equals(lha.decode(rows[:2000], "kafka"))
    assert all(part.flatten().field("value").buffers()[2].size <= 20_000 for part in result)


@pytest.mark.parametrize("operation", ["encode", "select"])
def test_every_operation_splits_output(headers: pa.Array, operation: Any) -> None:
    options: Any = {"columns": [("blob", "blob", "binary", "all", False, None, None)]} if operation == "select" else {}
    whole = pa.array(apply(operation, headers, "kafka", **options))
    stream = apply(operation, pa.chunked_array([headers]), "kafka", **options, max_offset=8_000)
    parts = [pa.array(part) for part in stream]
    assert len(parts) > 3
    assert pa.concat_arrays(parts).equals(whole)


def test_edited_column_is_split(rows: pa.Array) -> None:
    edit = Edit("kafka", HeaderEdit.of(drop=["note"], append={"via": b"test"}))
    whole = edit(rows)
    parts = [pa.array(part) for part in edit._core().apply(pa.chunked_array([rows]), max_offset=20_000)]
    assert len(parts) > 10
    assert pa.concat_arrays(parts).equals(whole)
    assert all(part.buffers()[2].size <= 20_000 for part in parts)


def test_split_output_has_every_selected_row(rows: pa.Array) -> None:
    decode = Decode("kafka", where="tenant != 'acme'")
    whole = decode(rows)
    assert 100 < len(whole) < len(rows)
    stream = decode.apply(pa.chunked_array([rows]), max_offset=20_000)
    parts = [pa.array(part) for part in stream]
    assert len(parts) > 10
    assert pa.concat_arrays(parts).equals(whole)


def test_array_that_would_overflow_suggests_stream(rows: pa.Array) -> None:
    with pytest.raises(lh.HeaderError, match="pass a stream or a chunked array") as caught:
        apply("decode", rows, "kafka", max_offset=20_000)
    assert caught.value.code == "too_large"
    assert caught.value.row > 0


TOO_LARGE: dict[str, tuple[type[lh.HeaderError], Callable[..., Any]]] = {
    "decode": (lh.DecodeError, lambda column, **options: apply("decode", column, "kafka", **options)),
    "select": (
        lh.DecodeError,
        lambda column, **options: apply(
            "select", column, "kafka", columns=[("blob", "blob", "binary", "all", False, None, None)], **options
        ),
    ),
    "messages": (lh.DecodeError, lambda column, **options: apply("messages", column, "record-batch", **options)),
    "convert": (
        lh.ConversionError,
        lambda column, **options: apply("convert", column, "kafka", target="kip82-typed", types="binary", **options),
    ),
    "encode": (lh.EncodeError, lambda column, **options: apply("encode", column, "kafka", **options)),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large_result_raises_error_of_its_operation(name: str) -> None:
    error, call = TOO_LARGE[name]
    messages = [[("blob", bytes(size))] for size in (10, 10, 100)]
    rows = [lh.encode(headers, "kafka") for headers in messages]
    if name == "messages":
        rows = [lh.batch([{"headers": headers}]) for headers in messages]
    column = pa.array(
        [[{"key": "blob", "value": value} for _, value in m] for m in messages] if name == "encode" else rows
    )
    limit = 80
    with pytest.raises(error, match="pass a stream or a chunked array") as caught:
        call(column, max_offset=limit)
    assert (type(caught.value), caught.value.code, caught.value.row) == (error, "too_large", 2)
    stream = call(pa.chunked_array([column]), max_offset=limit)
    assert len(next(stream)) == 2
    with pytest.raises(error, match="this row alone passes") as caught:
        next(stream)
    assert (type(caught.value), caught.value.code, caught.value.row) == (error, "too_large", 2)


@pytest.mark.full
def test_two_gibibytes_of_values_are_split_into_two_arrays() -> None:
    value = random.Random(1).randbytes(1 << 20)
    data = lh.encode([("blob", value)], "kafka")
    rows = pa.array([data], pa.large_binary())
    chunked = pa.chunked_array([pa.concat_arrays([rows] * 2100)])
    result = lha.decode(chunked, "kafka")
    assert result.num_chunks == 2
    assert len(result) == 2100
    assert [len(chunk) for chunk in result.chunks] == [2047, 53]
    assert result[2099].as_py() == [{"key": "blob", "value": value}]
    with pytest.raises(lh.HeaderError, match="pass a stream"):
        lha.decode(chunked.chunk(0), "kafka")
