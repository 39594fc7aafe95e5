"""Columns of headers in the shapes that other systems write are read as lists of a key and a value are."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha

ROWS: list[list[tuple[str, bytes | None]] | None] = [
    [("tenant", b"acme"), ("retry", b"7")],
    [],
    None,
    [("tenant", None), ("tenant", "ümlaut".encode())],
    [("other", b"x")],
]
COLUMNS = {"tenant": "string", "all": lh.field("string", key="tenant", repeat="all"), "retry": "int32:text"}


def listed(key: pa.DataType, value: pa.DataType, names: tuple[str, str] = ("key", "value")) -> pa.Array:
    rows = [
        None if row is None else [dict(zip(names, pair, strict=True)) for pair in as_types(row, key, value)]
        for row in ROWS
    ]
    return pa.array(rows, pa.list_(pa.struct(list(zip(names, (key, value), strict=True)))))


def as_types(row: list[tuple[str, bytes | None]], key: pa.DataType, value: pa.DataType) -> list[tuple[Any, Any]]:
    return [
        (
            name.encode() if "binary" in str(key) else name,
            text if text is None or "binary" in str(value) else text.decode(),
        )
        for name, text in row
    ]


CANONICAL = listed(pa.string(), pa.binary())


def mapped(value: pa.DataType) -> pa.Array:
    rows = [None if row is None else as_types(row, pa.string(), value) for row in ROWS]
    return pa.array(rows, pa.map_(pa.string(), value))


def dictionaries() -> pa.Array:
    pairs = CANONICAL.flatten()
    fields = [pairs.field("key").dictionary_encode(), pairs.field("value").dictionary_encode()]
    headers = pa.StructArray.from_arrays(fields, ["key", "value"])
    return pa.ListArray.from_arrays(CANONICAL.offsets, headers, mask=CANONICAL.is_null())


def views(type: Any, offset: pa.DataType) -> pa.Array:
    """Return lists whose elements lie in another order, and between some of none."""
    pairs, offsets = CANONICAL.flatten(), CANONICAL.offsets.to_pylist()
    lengths = [end - start for start, end in itertools.pairwise(offsets)]
    turned = pa.concat_arrays([pairs[2:], pairs[:2]])
    starts = [(start - 2) % len(pairs) for start in offsets[:-1]]
    of = {"type": type(pairs.type), "mask": CANONICAL.is_null()}
    lists = pa.ListViewArray if offset == pa.int32() else pa.LargeListViewArray
    return lists.from_arrays(pa.array(starts, offset), pa.array(lengths, offset), turned, **of)


def by_turns() -> pa.Array:
    rows = [
        None if row is None else [part for pair in as_types(row, pa.string(), pa.string()) for part in pair]
        for row in ROWS
    ]
    return pa.array(rows, pa.list_(pa.string()))


def further_fields() -> pa.Array:
    rows = [None if row is None else [{"key": name, "n": 1, "value": text} for name, text in row] for row in ROWS]
    return pa.array(rows, pa.list_(pa.struct([("key", pa.string()), ("n", pa.int32()), ("value", pa.binary())])))


LOSSLESS = {
    "text values": listed(pa.string(), pa.string()),
    "large text values": listed(pa.large_string(), pa.large_string()),
    "views of text": listed(pa.string_view(), pa.string_view()),
    "byte keys": listed(pa.binary(), pa.binary()),
    "large byte keys": listed(pa.large_binary(), pa.large_binary()),
    "views of byte keys": listed(pa.binary_view(), pa.binary_view()),
    "name and value": listed(pa.string(), pa.binary(), ("name", "value")),
    "k and v": listed(pa.binary(), pa.string(), ("k", "v")),
    "map": mapped(pa.binary()),
    "map of text": mapped(pa.string()),
    "large lists": CANONICAL.cast(pa.large_list(CANONICAL.type.value_type)),
    "list views": views(pa.list_view, pa.int32()),
    "large list views": views(pa.large_list_view, pa.int64()),
    "dictionaries of keys and values": dictionaries(),
    "keys and values by turns": by_turns(),
}
FIXED = pa.array(
    [[{"key": "tenant", "value": b"a"}], None, [{"key": "b", "value": None}]], pa.list_(CANONICAL.type.value_type, 1)
)


@pytest.mark.parametrize("shape", LOSSLESS)
def test_headers_are_read_in_every_shape(shape: str) -> None:
    column = LOSSLESS[shape]
    expected = lha.select(CANONICAL, COLUMNS, errors="column")
    assert lha.select(column, COLUMNS, errors="column") == expected
    assert lha.select(column[1:4], COLUMNS, errors="column") == expected[1:4]
    halves = pa.chunked_array([column[:2], column[2:]])
    assert pa.chunked_array(lha.select(halves, COLUMNS, errors="column").chunks).combine_chunks() == expected
    assert lha.encode(column, "kafka") == lha.encode(CANONICAL, "kafka")
    edited = lha.edit(column, "kafka", drop=["retry"])
    assert edited.cast(CANONICAL.type) == lha.edit(CANONICAL, "kafka", drop=["retry"])
    assert str(lha.scan(column, "kafka")) == str(lha.scan(CANONICAL, "kafka"))


def test_lists_of_fixed_size_are_read() -> None:
    assert lha.select(FIXED, {"tenant": "string"}).field(0).to_pylist() == ["a", None, None]
    assert lha.select(FIXED[1:], {"b": "string"}).field(0).to_pylist() == [None, None]


def test_dictionaries_of_whole_columns_are_read() -> None:
    messages = pa.array([lh.encode([("tenant", b"acme")], "kafka"), None, b"\2"]).dictionary_encode()
    indexes = pa.array([1, 0, None, 1, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(indexes, messages.dictionary)
    plain = column.dictionary_decode()
    assert lha.select(column, COLUMNS, errors="column") == lha.select(plain, COLUMNS, errors="column")
    assert lha.decode(column, "kafka", errors="null") == lha.decode(plain, "kafka", errors="null")
    lists = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), CANONICAL[:2])
    assert lha.select(lists, {"tenant": "string"}).field(0).to_pylist() == [None, "acme", None, None]


def test_extra_fields_are_ignored_by_readers_rejected_by_writers() -> None:
    column = further_fields()
    assert lha.select(column, COLUMNS) == lha.select(CANONICAL, COLUMNS)
    assert lha.validate(column, "kafka").null_count == len(column)
    for write in (lha.encode, lambda lists, format: lha.edit(lists, format, drop=["retry"])):
        with pytest.raises(TypeError, match="n: int32"):
            write(column, "kafka")


def test_value_types_are_kept_beside_extra_fields() -> None:
    fields = [("key", pa.string()), ("type", pa.string()), ("value", pa.binary()), ("n", pa.int8())]
    column = pa.array([[{"key": "a", "type": "int16", "value": b"\1\0", "n": 1}]], pa.list_(pa.struct(fields)))
    assert lha.select(column, {"a": "int64"}, format="iggy").field(0).to_pylist() == [256]


def test_wrong_shape_names_both_types() -> None:
    for column in (pa.array([{"a": "1"}]), pa.array([[1]]), pa.array([[{"key": "a", "value": 1}]])):
        with pytest.raises(TypeError, match=r"the column is .*, and "):
            lha.select(column, {"a": "string"})


BAD_ROWS = {
    "bytes": (
        pa.array([[{"key": b"a", "value": b"1"}], [{"key": b"\xff", "value": b"2"}], [{"key": b"a", "value": b"3"}]]),
        "the key is null, or not UTF-8",
    ),
    "map": (
        pa.array([[(b"a", b"1")], [(b"\xff", b"2")], [(b"a", b"3")]], pa.map_(pa.binary(), pa.binary())),
        "the key is null, or not UTF-8",
    ),
    "turns": (pa.array([["a", "1"], ["b"], ["a", "3"]]), "the key is null, or has no value after it"),
}


@pytest.mark.parametrize("shape", BAD_ROWS)
def test_unreadable_row_is_bad_row(shape: str) -> None:
    column, message = BAD_ROWS[shape]
    for values in (column, pa.chunked_array([column[:1], column[1:]])):
        with pytest.raises(lh.DecodeError, match=f"{message} .*row 1"):
            lha.select(values, {"a": "string"})
    selected = lha.select(column, {"a": "string"}, errors="column")
    assert selected.field("a").to_pylist() == ["1", None, "3"]
    assert [error and error[0]["code"] for error in selected.field("error").to_pylist()] == [None, "null_key", None]
    assert lha.select(column, {"a": "string"}, errors="null").field(0).to_pylist() == ["1", None, "3"]
    assert [bool(errors) for errors in lha.validate(column, "kafka").to_pylist()] == [False, True, False]
    assert lha.scan(column, "kafka").statistics.bad_rows == 1
    # What is not among the rows is not read.
    assert lha.select(column[2:], {"a": "string"}).field(0).to_pylist() == ["3"]


def test_dictionaries_of_lists_are_scanned_and_edited() -> None:
    lists = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), CANONICAL[:2])
    assert lha.scan(lists, "kafka").statistics.rows == 4
    assert lha.edit(lists, "kafka", drop=["retry"]).to_pylist() == [
        [], [{"key": "tenant", "value": b"acme"}], None, [],
    ]  # fmt: skip
    others = [pa.array([value, None]).dictionary_encode() for value in (b"x", b"y")]
    chunks = [
        pa.ListArray.from_arrays([0, 2], pa.StructArray.from_arrays([pa.array(["a", "b"]), values], ["key", "value"]))
        for values in others
    ]
    assert lha.scan(pa.chunked_array(chunks), "kafka").statistics.rows == 2


def test_list_view_with_too_many_elements_raises_at_once() -> None:
    headers = pa.StructArray.from_arrays([pa.array([""] * 40_000), pa.nulls(40_000, pa.binary())], ["key", "value"])
    rows = 70_000
    offsets, sizes = pa.array([0] * rows, pa.int32()), pa.array([40_000] * rows, pa.int32())
    with pytest.raises(ValueError, match="more than 2 GiB: pass a stream"):
        lha.encode(pa.ListViewArray.from_arrays(offsets, sizes, headers), "kafka")


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary()])
def test_dictionary_that_expands_over_array_limit_raises_at_once(type: pa.DataType) -> None:
    values = pa.array([bytes(1 << 20)], type)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), values)
    lists = pa.DictionaryArray.from_arrays(
        pa.array([0] * 4000, pa.int32()),
        pa.ListArray.from_arrays([0, 1], pa.StructArray.from_arrays([pa.array(["a"]), values], ["key", "value"])),
    )
    for large in (column, lists):
        with pytest.raises(ValueError, match="more than 2 GiB: pass a stream"):
            lha.select(large, {"a": "string"})


def test_values_of_lists_are_shared_and_not_copied() -> None:
    from letterhead import _native

    for shape in ("text values", "name and value", "map", "map of text"):
        column = LOSSLESS[shape]
        assert {*_native.buffer_addresses(_native.header_lists(column))} <= {*_native.buffer_addresses(column)}
