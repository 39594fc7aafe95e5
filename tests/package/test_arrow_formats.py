"""Columns of every format: their types, lists that come back as they went in, and the operations that write and expand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.iggy import PolledMessage, PolledMessages
from tests.helpers.batch_bytes import message
from tests.helpers.implementations import binary_column, decoded_type, from_row
from tests.helpers.operations_by_name import apply, made
from tests.helpers.strategies import BATCHES, MESSAGES, ONE, WRITTEN
from tests.reference import ops
from tests.reference.formats import FORMATS

every_format = pytest.mark.parametrize("format", FORMATS)
every_one = pytest.mark.parametrize("format", ONE)
every_written = pytest.mark.parametrize("format", WRITTEN)
every_batch = pytest.mark.parametrize("format", BATCHES)

HEADERS: dict[str, list[Any]] = {
    "kafka": [("tenant", None, b"acme"), ("note", None, None), ("route", None, b""), ("route", None, b"b")],
    "kip82-typed": [
        ("retry", "int32", b"\0\0\0\3"),
        ("note", None, None),
        ("unit", "char", b"\xd8\0"),
        ("", "binary", b""),
    ],
    "kip82-int": [(5, None, b"a"), (-1, None, None), (5, None, b"")],
    "iggy": [
        ("a", "int32", b"\0\0\0\3"),
        (("uint8", b"\7"), "type-200", b"x"),
        (("string", b"\xff"), "string", b"\xff"),
    ],
    "iggy-2023": [("a", "int32", b"\3\2\1"), ("a", "bool", b"\2"), ("b", "uint128", b"\xff" * 16)],
}
"""Headers that each block can have, as plain values."""

VALUES: dict[str, Any] = {
    "offset": 7,
    "timestamp": 1767225600000,
    "origin_timestamp": 1,
    "checksum": 2**64 - 1,
    "id": bytes(range(16)),
    "crc": None,
    "magic": 2,
    "attributes": 8,
    "key": b"k",
    "value": b"v",
    "payload": b"p",
    "tombstone": False,
}


def good(format: str) -> Any:
    """Return a message that a format carries, as plain values."""
    row = FORMATS[format]
    headers = HEADERS[next(name for name, block in FORMATS.items() if block.block is row.block)]
    return (
        {**{name: VALUES[name] for name, _ in row.fields if name != "headers"}, "headers": headers}
        if row.message
        else headers
    )


def valid_bytes(format: str) -> list[bytes | None]:
    written = FORMATS[format].traits.instead or (format,)
    return [*(ops.encode(good(name), name) for name in written), None, ops.encode(good(written[-1]), written[-1])]


# --- types -----------------------------------------------------------------------------------------------------------


@every_format
def test_field_types_match_format_table(format: str) -> None:
    operation: Any = "messages" if format in BATCHES else "decode"
    row_type = made(operation, format).result_type()
    fields = FORMATS[format].fields
    if FORMATS[format].is_ == "headers":
        assert spelled(row_type) == fields[0][1]
        return
    row = [("row", "int64")] if format in BATCHES else []
    assert [(field.name, spelled(field.type)) for field in row_type] == [*row, *fields]


def spelled(data_type: pa.DataType) -> str:
    return str(data_type).replace("decimal128(20)", "decimal128(20, 0)")


@every_one
@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_decoded_columns_have_the_declared_type(format: str, errors: Any) -> None:
    for text_keys, rows in ((False, valid_bytes(format)), (True, [None])):
        reported = made("decode", format, errors=errors, text_keys=text_keys).result_type()
        result = lha.decode(binary_column(rows), format, errors=errors, text_keys=text_keys)
        assert result.type == reported
        if errors == "column":
            assert reported.names[-1] == "error"


@pytest.mark.parametrize("format", [name for name in FORMATS if FORMATS[name].traits.keys == "typed"])
def test_typed_keys_as_text_have_the_type_of_text_keys(format: str) -> None:
    operation: Any = "messages" if format in BATCHES else "decode"
    row_type = made(operation, format, text_keys=True).result_type()
    headers = row_type if FORMATS[format].is_ == "headers" else row_type.field("headers").type
    assert str(headers) == "list<element: struct<key: string, type: string, value: binary>>"


@pytest.mark.parametrize("on_loss", ["raise", "drop", "report"])
@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_converted_columns_have_the_declared_type(on_loss: Any, errors: Any) -> None:
    column = binary_column([ops.encode([("a", None, b"x")], "kafka"), None])
    result = lha.convert(column, "kafka", target="iggy", types="binary", on_loss=on_loss, errors=errors)
    reported = made("convert", "kafka", target="iggy", on_loss=on_loss, errors=errors).result_type()
    names = ["data", *(["losses"] if on_loss == "report" else []), *(["error"] if errors == "column" else [])]
    assert result.type == reported
    assert reported == pa.binary() if len(names) == 1 else reported.names == names


# --- there and back --------------------------------------------------------------------------------------------------


@every_one
def test_column_survives_round_trip(format: str) -> None:
    rows = valid_bytes(format)
    column = binary_column(rows)
    read = lha.decode(column, format)
    assert [from_row(row) for row in read.to_pylist()] == [value and ops.decode(value, format) for value in rows]
    for start in range(len(rows) + 1):
        assert lha.decode(column[start:], format).equals(read[start:])
    chunked = pa.chunked_array([column[:1], column[1:]])
    assert lha.decode(chunked, format).combine_chunks().equals(read)
    if format in WRITTEN:
        # Of a block, a null list is a message without headers.
        again = [value or (None if format in MESSAGES else b"") for value in rows]
        assert lha.encode(read, format).to_pylist() == again
        assert lha.encode(read[1:], format).to_pylist() == again[1:]
        parts = pa.chunked_array([read[:1], read[1:]])
        assert lha.encode(parts, format).to_pylist() == again


@every_written
def test_large_lists_and_views_of_every_format_are_written(format: str) -> None:
    value = ops.encode(good(format), format)
    column = lha.decode(binary_column([value]), format)
    for widened in (large, viewed):
        assert lha.encode(pa.array(column.to_pylist(), widened(column.type)), format).to_pylist() == [value]


def large(data_type: pa.DataType) -> pa.DataType:
    return remade(data_type, pa.large_list, pa.large_string(), pa.large_binary())


def viewed(data_type: pa.DataType) -> pa.DataType:
    return remade(data_type, pa.list_, pa.string_view(), pa.binary_view())


def remade(data_type: pa.DataType, lists: Callable[[Any], Any], text: pa.DataType, binary: pa.DataType) -> pa.DataType:
    if pa.types.is_list(data_type):
        return lists(pa.field("element", remade(data_type.value_type, lists, text, binary)))
    if pa.types.is_struct(data_type):
        return pa.struct([(field.name, remade(field.type, lists, text, binary)) for field in data_type])
    return {pa.string(): text, pa.binary(): binary}.get(data_type, data_type)


@pytest.mark.parametrize("format", MESSAGES)
def test_message_fields_may_come_in_any_order(format: str) -> None:
    column = lha.decode(binary_column([ops.encode(good(format), format)]), format)
    turned = pa.StructArray.from_arrays(column.flatten()[::-1], names=column.type.names[::-1])
    assert lha.encode(turned, format).equals(lha.encode(column, format))


def test_header_is_selected_equally_from_list_and_bytes() -> None:
    value = ops.encode(HEADERS["iggy"], "iggy")
    columns = {"a": "int32", "none": lh.field("binary", key=lh.UInt8(8)), "all": lh.field("array<int32>", key="a")}
    column = binary_column([value])
    assert lha.select(column, columns, format="iggy").equals(
        lha.select(lha.decode(column, "iggy"), columns, format="iggy")
    )
    assert lha.select(column, columns, format="iggy").to_pylist() == [{"a": 3, "none": None, "all": [3]}]


# --- many messages ---------------------------------------------------------------------------------------------------

SET = message("kip82-message", offset=7, headers=[("n", "int8", b"\1")]) + message("kip82-message", offset=8)
OFFSETS = {"columns": ["row", "offset"], "headers": {"n": "int8"}}


def test_rows_are_counted_over_stream_chunks() -> None:
    chunked = pa.chunked_array([binary_column([SET, None]), binary_column([]), binary_column([SET])])
    result = lha.messages(chunked, "kip82-messages", **OFFSETS)
    assert isinstance(result, pa.ChunkedArray)
    assert result.to_pylist() == [
        {"row": 0, "offset": 7, "n": 1},
        {"row": 0, "offset": 8, "n": None},
        {"row": 2, "offset": 7, "n": 1},
        {"row": 2, "offset": 8, "n": None},
    ]
    bad = pa.chunked_array([binary_column([SET]), binary_column([SET + b"\0"])])
    with pytest.raises(lh.DecodeError) as caught:
        lha.messages(bad, "kip82-messages")
    assert (caught.value.row, caught.value.code, caught.value.message[:10]) == (1, "truncated", "message 2:")


def test_slice_of_batches_has_their_messages() -> None:
    column = binary_column([SET, SET, None, SET])
    result = lha.messages(column[1:], "kip82-messages", **OFFSETS)
    assert [row["row"] for row in result.to_pylist()] == [0, 0, 2, 2]


@every_batch
def test_empty_message_column_has_declared_type(format: str) -> None:
    result = lha.messages(binary_column([]), format)
    assert (len(result), result.type) == (0, made("messages", format).result_type())


def test_incomplete_message_follows_error_policy() -> None:
    bad = bytearray(SET)
    bad[12] ^= 1  # the checksum of the first one
    column = binary_column([bytes(bad)])
    assert [row["offset"] for row in lha.messages(column, "kip82-messages", errors="null").to_pylist()] == [None, 8]
    reported = lha.messages(column, "kip82-messages", errors="column", columns=["offset"]).to_pylist()
    assert [(row["offset"], row["error"] and row["error"][0]["code"]) for row in reported] == [
        (7, "bad_crc"),
        (8, None),
    ]
    broken = binary_column([SET[:16] + b"\x09" + SET[17:]])
    rows = lha.messages(broken, "kip82-messages", errors="null", columns=["row", "offset"]).to_pylist()
    assert rows == [{"row": 0, "offset": None}, {"row": 0, "offset": 8}]


@pytest.mark.parametrize(("operation", "limit"), [("convert", 500), ("messages", 30), ("decode", 100)])
def test_streams_of_every_operation_split_before_overflow(operation: str, limit: int) -> None:
    call: Callable[..., Any] = {
        "convert": lambda column, **options: apply("convert", column, "iggy", target="iggy-message", **options),
        "messages": lambda column, **options: apply("messages", column, "kip82-messages", **options),
        "decode": lambda column, **options: apply("decode", column, "iggy", **options),
    }[operation]
    value = SET if operation == "messages" else ops.encode(HEADERS["iggy"], "iggy")
    column = binary_column([value, None] * 100)
    whole = pa.array(call(column))
    parts = [pa.array(part) for part in call(pa.chunked_array([column]), max_offset=limit)]
    assert len(parts) > 3
    assert pa.concat_arrays(parts).equals(whole)
    with pytest.raises(lh.HeaderError, match="pass a stream or a chunked array") as caught:
        call(column, max_offset=limit)
    assert caught.value.code == "too_large"


def test_other_libraries_read_output_of_every_format() -> None:
    import polars as pl

    for format in ONE:
        column = binary_column(valid_bytes(format))
        read = lha.decode(column, format)
        assert pl.Series(lha.decode(pl.Series(column), format)).to_list() == read.to_pylist()
        assert pl.Series(lha.validate(pl.Series(column), format)).null_count() == len(column)
    result = pl.DataFrame(pl.Series(lha.messages(pl.Series([SET]), "kip82-messages", **OFFSETS)).struct.unnest())
    assert result.to_dicts() == [{"row": 0, "offset": 7, "n": 1}, {"row": 0, "offset": 8, "n": None}]


def test_encode_expects_type_that_decode_returns() -> None:
    for format in WRITTEN:
        with pytest.raises(TypeError) as caught:
            lha.encode(pa.array([1]), format)
        assert spelled(decoded_type(format)) in str(caught.value)


def test_strict_types_applies_to_batch_messages() -> None:
    block = lh.encode([("k", lh.Value("type-200", b"\x01"))], "iggy")
    data = PolledMessages([PolledMessage(offset=5, timestamp=6, id=7, payload=b"x" * 500, headers=block)]).to_bytes(
        "iggy"
    )
    column = pa.array([data, data])  # of the first, as many bytes lie behind its headers as a kernel reads
    result = lha.messages(column, "iggy-batch", columns=["headers"])
    assert (
        result.field("headers").to_pylist()
        == [[{"key_type": "string", "key": b"k", "type": "type-200", "value": b"\x01"}]] * 2
    )
    with pytest.raises(lh.DecodeError) as raised:
        lha.messages(column, "iggy-batch", columns=["headers"], strict_types=True)
    assert (raised.value.code, raised.value.row) == ("unknown_type", 0)
    rows = lha.messages(column, "iggy-batch", columns=["offset"], strict_types=True, errors="column").to_pylist()
    assert [(row["offset"], [detail["code"] for detail in row["error"]]) for row in rows] == [(5, ["unknown_type"])] * 2
