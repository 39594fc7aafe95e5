"""Lists of headers from columns: the inverse of ``select``."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.types import SELECT_TYPES
from tests.helpers.outcomes import same, selected
from tests.helpers.strategies import BLOCKS, few, form_values
from tests.helpers.type_suffixes import orders_of
from tests.reference.formats import FORMATS
from tests.reference.text_forms import TEXT_FORMS
from tests.reference.types import CHARSET_TYPES

TYPES = [name + suffix for name in SELECT_TYPES for suffix in ["", *(f":{order}" for order in orders_of(name))]] + [
    *TEXT_FORMS,
    *CHARSET_TYPES,
    "int32:text | int32",
]


def rows_of(lists: Any) -> list[list[tuple[Any, ...]] | None]:
    return [row and [tuple(header.values()) for header in row] for row in lists.to_pylist()]


def test_headers_follow_column_order() -> None:
    table = pa.table({"a": [1], "b": ["x"], "c": [[b"1", b"2"]]})
    lists = lha.pack(table, {"c": "array<binary>", "a": "int16:le", "b": "string"})
    assert rows_of(lists) == [[("c", b"1"), ("c", b"2"), ("a", b"\1\0"), ("b", b"x")]]
    assert isinstance(lists, pa.ChunkedArray)
    [batch] = table.to_batches()
    assert isinstance(lha.pack(batch), pa.ListArray)
    assert lha.pack(pa.StructArray.from_arrays(batch.columns, batch.schema.names)) == lha.pack(batch)


def test_columns_without_types_are_written_as_their_own() -> None:
    table = pa.table(
        {"n": pa.array([7], pa.uint16()), "at": pa.array([1_000_000], pa.timestamp("us", "UTC")), "f": [True]}
    )
    assert rows_of(lha.pack(table)) == [[("n", b"\0\7"), ("at", (1000).to_bytes(8, "big")), ("f", b"\1")]]
    assert rows_of(lha.pack(table, ["f", "n"])) == [[("f", b"\1"), ("n", b"\0\7")]]
    assert rows_of(lha.pack(table, ["n"], format="iggy")) == [[("string", b"n", "uint16", b"\0\7")]]


@pytest.mark.parametrize("format", ["iggy", "iggy-2023", "kip82-typed"])
def test_header_without_type_has_null_type(format: str) -> None:
    element = pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())])
    headers = pa.array([[("a", None, b"x"), ("b", "int8", b"\1")], None, [("c", "string", b"y")]], pa.list_(element))
    packed = lha.pack(pa.table({"headers": headers}), ["headers"], format)
    types = [header["type"] for row in packed.to_pylist() for header in row or []]
    assert types == [None, "int8", "string"]
    expected = lha.encode(headers, format, types="binary")
    assert lha.encode(packed, format, types="binary").to_pylist() == [data or b"" for data in expected.to_pylist()]


@pytest.mark.parametrize("unit", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integer_is_written_from_any_integer_column(unit: str) -> None:
    table = pa.table({"n": pa.array([3], unit)})
    for type in ("int8", "uint16:le", "int64", "uint64:text"):
        assert lha.select(lha.pack(table, {"n": type}), {"n": type}).to_pylist() == [{"n": 3}]


def test_lists_of_headers_are_inserted_between_columns() -> None:
    rest = lha.decode(pa.array([lh.encode([("x", b"1"), ("y", None)], "kafka"), None]), "kafka")
    table = pa.table({"a": ["1", "2"], "rest": rest, "b": ["3", "4"]})
    expected = [[("a", b"1"), ("x", b"1"), ("y", None), ("b", b"3")], [("a", b"2"), ("b", b"4")]]
    assert rows_of(lha.pack(table)) == expected
    assert rows_of(lha.pack(table, {"a": "string", "rest": "headers", "b": "string"})) == expected


def test_lists_of_typed_headers_keep_types() -> None:
    rest = lha.decode(pa.array([lh.encode([("n", lh.Int32(258))], "iggy")]), "iggy")
    lists = lha.pack(pa.table({"rest": rest, "m": pa.array([-2], pa.int16())}), format="iggy")
    [data] = lha.encode(lists, "iggy").to_pylist()
    assert lh.decode(data, "iggy").items() == [("n", lh.Int32(258)), ("m", lh.Int16(-2))]


def test_nulls_are_skipped_or_kept() -> None:
    table = pa.table({"a": pa.array([None, "x"]), "b": pa.array([[None, 1], None], pa.list_(pa.int8()))})
    assert rows_of(lha.pack(table)) == [[("b", b"\1")], [("a", b"x")]]
    assert rows_of(lha.pack(table, nulls="keep")) == [[("a", None), ("b", None), ("b", b"\1")], [("a", b"x")]]
    with pytest.raises(lh.EncodeError, match='nulls="skip"') as caught:
        lha.pack(table, ["a"], format="iggy", nulls="keep")
    assert caught.value.row == 0


def test_keys_come_from_fields() -> None:
    table = pa.table({"n": pa.array([1], pa.int8())})
    assert rows_of(lha.pack(table, {"n": lh.field("int8", key="x-n")})) == [[("x-n", b"\1")]]
    assert rows_of(lha.pack(table, {"n": lh.field("int8", key=3)}, format="kip82-int")) == [[(3, b"\1")]]


@pytest.mark.parametrize(
    ("column", "type", "code"),
    [
        (pa.array([1, 128]), "int8", "out_of_range"),
        (pa.array([1, -1]), "uint64:text", "out_of_range"),
        (pa.array(["a", "ab"]), "char", "bad_text"),
        (pa.array([None, "0001"]), "uuid", "bad_text"),
        (pa.array([[1], [1, 300]]), "array<uint8>", "out_of_range"),
        (pa.array([Decimal("1.00"), Decimal("1.25")]), "decimal(9,1):text", "out_of_range"),
    ],
)
def test_value_out_of_range_is_error_of_row(column: Any, type: str, code: str) -> None:
    with pytest.raises(lh.EncodeError) as caught:
        lha.pack(pa.table({"k": column}), {"k": type})
    assert (caught.value.row, caught.value.code, caught.value.key) == (1, code, "k")


@pytest.mark.parametrize(
    ("columns", "format", "message"),
    [
        ({"tex": "string"}, "kafka", "unknown column 'tex': did you mean 'text'"),
        ({"text": "int8"}, "kafka", "header text: the column is string, and int8 cannot be written from it"),
        ({"text": "array<string>"}, "kafka", "header text: the column is string"),
        ({"text": "string:json"}, "kafka", "can be read, but not written"),
        ({"text": "strin"}, "kafka", "column 'text': unknown type 'strin'"),
        ({"text": "char"}, "iggy", "no values of type char"),
        ({"text": "string"}, "kip82-int", "kip82-int has integer keys"),
        ({}, "kafka", "no columns were asked for"),
        ("text", "kafka", "are not DDL"),
        (["half"], "kafka", "column 'half': halffloat"),
    ],
)  # fmt: skip
def test_unpackable_columns_are_rejected(columns: Any, format: str, message: str) -> None:
    table = pa.table({"text": ["a"], "half": pa.array([1.0], pa.float16())})
    with pytest.raises((TypeError, ValueError), match=message):
        lha.pack(table, columns, format=format)


def test_times_dates_and_decimals_are_written_as_text() -> None:
    at = datetime(2026, 1, 31, 8, 30, 0, 120_000, UTC)
    whole = at.replace(microsecond=0)
    table = pa.table(
        {"at": pa.array([at]), "day": [at.date()], "price": pa.array([Decimal("-0.5")], pa.decimal128(9, 2))}
    )
    [row] = rows_of(lha.pack(table, {"at": "timestamp:iso", "day": "date:text", "price": "decimal(9,3):text"}))
    assert row == [("at", b"2026-01-31T08:30:00.120Z"), ("day", b"2026-01-31"), ("price", b"-0.500")]
    assert rows_of(lha.pack(table, ["day", "price"])) == [[("day", b"2026-01-31"), ("price", b"-0.50")]]
    assert rows_of(lha.pack(pa.table({"at": [whole]}), {"at": "timestamp:s"})) == [[("at", b"1769848200")]]


def test_list_with_separator_becomes_one_header() -> None:
    table = pa.table({"tags": [["new", "vip"], [""], [], None, ["a", None]], "n": [[1, 2], [], None, [3], []]})
    types = {"tags": lh.field("array<string>", split=","), "n": lh.field("array<int8:text>", split=", ")}
    lists = lha.pack(table, types)
    rows = [[("tags", b"new,vip"), ("n", b"1, 2")], [("tags", b"")], [], [("n", b"3")], [("tags", b"a")]]
    assert rows_of(lists) == rows
    large = pa.schema([("tags", pa.large_list(pa.string())), ("n", pa.large_list(pa.int64()))])
    assert lha.pack(table.cast(large), types) == lists
    read = [{"tags": row["tags"] or [], "n": row["n"] or []} for row in table.to_pylist()]
    read[4]["tags"] = ["a"]
    assert lha.select(lists, types).to_pylist() == read
    with pytest.raises(lh.EncodeError, match="an element has the text of split= in it") as caught:
        lha.pack(pa.table({"tags": [["a"], ["b,c"]]}), {"tags": types["tags"]})
    assert caught.value.row == 1
    with pytest.raises(lh.EncodeError, match="an element is null"):
        lha.pack(table, types, nulls="keep")


NEARLY = datetime(2026, 1, 31, 8, 30, 0, 1999, UTC)


@pytest.mark.parametrize("type", ["timestamp_ms", "timestamp_ms:text", "timestamp:ms", "timestamp:s"])
def test_time_out_of_type_range_raises(type: str) -> None:
    table = pa.table({"at": pa.array([None, NEARLY.replace(microsecond=0), NEARLY])})
    with pytest.raises(lh.EncodeError, match='pass "timestamp:iso", or truncate=True') as caught:
        lha.pack(table, {"at": type})
    assert (caught.value.code, caught.value.row) == ("out_of_range", 2)
    assert rows_of(lha.pack(table, {"at": "timestamp:iso"}))[2] == [("at", b"2026-01-31T08:30:00.001999Z")]
    truncated = lha.select(lha.pack(table, {"at": type}, truncate=True), {"at": type}).to_pylist()
    assert truncated[2]["at"] == NEARLY.replace(microsecond=0 if type.endswith(":s") else 1000)
    before = pa.table({"at": pa.array([-1], pa.timestamp("us", "UTC"))})
    last_number = -1
    assert (
        lha.pack(before, {"at": type}, truncate=True).to_pylist()
        == lha.pack(
            pa.table({"at": pa.array([last_number], pa.timestamp("s" if type.endswith(":s") else "ms", "UTC"))}),
            {"at": type},
        ).to_pylist()
    )


def test_decimal_is_truncated_only_on_request() -> None:
    table = pa.table({"n": pa.array([Decimal("1.259"), Decimal("-1.259"), Decimal("-0.001")])})
    with pytest.raises(lh.EncodeError, match="the number has more decimals than"):
        lha.pack(table, {"n": "decimal(9,2):text"})
    packed = lha.pack(table, {"n": "decimal(9,2):text"}, truncate=True)
    assert rows_of(packed) == [[("n", b"1.25")], [("n", b"-1.25")], [("n", b"0.00")]]
    with pytest.raises(TypeError, match="truncate must be bool, not int"):
        lha.pack(table, {"n": "decimal(9,2):text"}, truncate=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("type", ["timestamp_ms", "timestamp:iso", "timestamp:us"])
def test_times_without_zone_are_rejected(type: str) -> None:
    table = pa.table({"at": pa.array([0], pa.timestamp("us"))})
    for columns in ({"at": type}, ["at"]):
        with pytest.raises(TypeError, match=r"times without a time zone.*assume_timezone"):
            lha.pack(table, columns)
    aware = pa.table({"at": pc.assume_timezone(table["at"], "UTC")})
    assert lha.select(lha.pack(aware, {"at": type}), {"at": type}).to_pylist()[0]["at"].timestamp() == 0


def hidden(values: pa.Array, large: bool) -> pa.Array:
    """Return lists of one value each, of which the second is null, and has its value all the same."""
    offsets = pa.array([0, 1, 2], pa.int64() if large else pa.int32())
    mask = pa.array([False, True])
    return (pa.LargeListArray if large else pa.ListArray).from_arrays(offsets, values, mask=mask)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("values", "type", "format"),
    [
        (pa.array([1, 1000]), "int8", "kafka"),
        (pa.array([Decimal("1.5"), Decimal("1.55")], pa.decimal128(9, 2)), "decimal(9,1):text", "kafka"),
        (pa.array([datetime(2026, 1, 1, tzinfo=UTC), NEARLY]), "timestamp_ms", "kafka"),
        (pa.array(["00010203-0405-0607-0809-0a0b0c0d0e0f", "x"]), "uuid", "kafka"),
        (pa.array([b"a", b"b" * 300]), "binary", "iggy"),
        (pa.array(["a", "b" * 300]), "string", "iggy"),
        (pa.array([b"a", b""]), "binary", "iggy"),
    ],
)
def test_values_of_null_lists_are_not_written(values: pa.Array, type: str, format: str, large: bool) -> None:
    table = pa.table({"k": hidden(values, large)})
    first, second = lha.pack(table, {"k": f"array<{type}>"}, format=format).to_pylist()
    assert (len(first), second) == (1, [])


def test_values_of_null_structs_are_not_written() -> None:
    fields = pa.array([1, 1000])
    structs = pa.StructArray.from_arrays([fields], ["k"], mask=pa.array([False, True]))
    assert rows_of(lha.pack(structs, {"k": "int8"})) == [[("k", b"\1")], []]


def test_list_of_nulls_joins_no_elements() -> None:
    table = pa.table({"tags": pa.array([[None], [""], []], pa.list_(pa.string()))})
    types = {"tags": lh.field("array<string>", split=",")}
    for format in ("kafka", "iggy"):
        rows = pa.table({"tags": table["tags"].take([0, 2])}) if format == "iggy" else table
        packed = lha.pack(rows, types, format=format)
        assert [len(row) for row in packed.to_pylist()] == ([0, 0] if format == "iggy" else [0, 1, 0])


def test_error_names_stream_row() -> None:
    table = pa.table({"n": pa.chunked_array([[1, 2], [3], [4, 1000]])})
    for source in (table, table.to_reader()):
        with pytest.raises(lh.EncodeError) as caught:
            list(lha.pack(source, {"n": "int8"}))
        assert caught.value.row == 4


def test_stream_is_packed_chunk_by_chunk() -> None:
    read = []

    def batches() -> Any:
        for number in range(3):
            read.append(number)
            yield pa.record_batch({"n": pa.array([number]).dictionary_encode()})

    schema = pa.schema([("n", pa.dictionary(pa.int32(), pa.int64()))])
    packed = lha.pack(pa.RecordBatchReader.from_batches(schema, batches()), {"n": "int8"})
    chunks = iter(packed)
    assert rows_of(pa.array(next(chunks))) == [[("n", b"\0")]]
    assert read == [0]
    assert [rows_of(pa.array(chunk)) for chunk in chunks] == [[[("n", b"\1")]], [[("n", b"\2")]]]
    messages = lha.encode(lha.pack(polars.DataFrame({"n": [1, 2]}), {"n": "int8"}), "kafka")
    assert [lh.decode(message.as_py(), "kafka")["n"] for message in pa.chunked_array(messages)] == [b"\1", b"\2"]


def test_dictionaries_and_runs_are_packed_as_their_values() -> None:
    values = pa.array(["x", "x", None])
    for encoded in (values.dictionary_encode(), pc.run_end_encode(values)):
        assert rows_of(lha.pack(pa.table({"k": encoded}))) == [[("k", b"x")], [("k", b"x")], []]


def test_duplicate_column_names_are_rejected() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(ValueError, match="two columns have the name 'n'"):
        lha.pack(table)


def test_guid_byte_order_matches_dotnet() -> None:
    text = "00112233-4455-6677-8899-aabbccddeeff"
    table = pa.table({"id": [text]})
    for type, data in (
        ("uuid", UUID(text).bytes),
        ("uuid:guid", UUID(text).bytes_le),
        ("uuid:reversed", UUID(text).bytes[::-1]),
    ):
        [[(_, written)]] = rows_of(lha.pack(table, {"id": type}))
        assert written == data, type
        fixed = pa.table({"id": pa.array([UUID(text).bytes], pa.binary(16))})
        assert rows_of(lha.pack(fixed, {"id": type})) == [[("id", data)]], type
        for format in ("kafka", "iggy"):
            packed = lha.pack(table, {"id": type}, format=format)
            assert lha.select(packed, {"id": type}, format=format).to_pylist() == [{"id": text}], (type, format)


@pytest.mark.parametrize("format", BLOCKS)
@few
@given(st.data())
def test_select_reads_packed_headers(format: str, data: st.DataObject) -> None:
    """For columns that select made of any bytes, of all types, as single values and as lists."""
    keys = [3, 4] if FORMATS[format].traits.keys == "int" else ["a", "b"]
    type = data.draw(st.sampled_from(TYPES))
    values = (
        st.none()
        | form_values
        | st.binary(max_size=17)
        | st.binary(min_size=16, max_size=16)
        | st.integers(-(2**15), 2**15).map(lambda n: str(n).encode())
    )
    rows = data.draw(st.lists(st.tuples(values, st.lists(values, max_size=3)), max_size=12))
    kafka = [lh.encode([("a", first), *(("b", value) for value in many)], "kafka") for first, many in rows]
    read = {"x": lh.field(type, key="a"), "y": lh.field(f"array<{type}>", key="b")}
    columns = lha.select(pa.array(kafka, pa.binary()), read, errors="null")
    if FORMATS[format].traits.types:
        # There are no nulls, empty values, or values longer than 255 bytes.
        read_values = selected(columns)
        whole = [not any(map(empty, (x, *(y or ())))) for x, y in zip(read_values["x"], read_values["y"], strict=True)]
        columns = columns.filter(pa.array(whole, pa.bool_()))
    fields = {"x": lh.field(type, key=keys[0]), "y": lh.field(f"array<{type}>", key=keys[1])}
    try:
        packed = lha.pack(columns, fields, format=format, nulls="skip" if FORMATS[format].traits.types else "keep")
    except ValueError as error:
        assert "has no values of type" in str(error)
        return
    messages = lha.encode(packed, format)
    for source in (packed, messages):
        again = lha.select(source, fields, format=format)
        expected = selected(columns)
        assert same(selected(again)) == same({**expected, "y": [row or [] for row in expected["y"]]})


def empty(value: Any) -> bool:
    return value in (None, "", b"")
