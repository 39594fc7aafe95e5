"""Streams whose serialized values become typed columns."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.reader import Reader
from letterhead.schemas import AvroDecoder, decode_values, streams
from tests.helpers.memory_registry import MemoryRegistry, avro, headers, prefixed

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": ["null", "long"]}]}
DECODER = AvroDecoder(MemoryRegistry({1: V1, "orders-value": V1}), subject="orders-value")
IN_FRONT, IN_HEADER = prefixed(1, V1, {"id": 7}), avro(V1, {"id": None})
DAMAGED = IN_FRONT + b"x"


def table(*values: bytes | None, ids: list[bytes | None] | None = None) -> pa.Table:
    return pa.table(
        {
            "topic": ["orders"] * len(values),
            "partition": [3] * len(values),
            "offset": range(40, 40 + len(values)),
            "value": pa.array(values, pa.binary()),
            "headers": headers(*(ids or [None] * len(values))),
        }
    )


def test_examples_run() -> None:
    result = doctest.testmod(streams)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_values_become_a_struct_and_other_columns_stay() -> None:
    source = table(IN_FRONT, None, IN_HEADER, ids=[None, None, b"\0\0\0\0\1"])
    reader = decode_values(source, DECODER)
    assert reader.schema.field("value").type == pa.struct([("id", pa.int64())])
    result = reader.read_all()
    assert result.column_names == source.column_names
    # A record without a value is not one whose fields are null.
    assert result["value"].to_pylist() == [{"id": 7}, None, {"id": None}]
    assert result.drop(["value"]).equals(source.drop(["value"]))


@pytest.mark.parametrize("errors", ["null", "column"])
def test_values_that_cannot_be_read_are_null(errors: Any) -> None:
    result = decode_values(
        table(IN_FRONT, DAMAGED, IN_FRONT), DECODER, errors=errors, error_column="problem"
    ).read_all()
    assert result["value"].to_pylist() == [{"id": 7}, None, {"id": 7}]
    if errors == "column":
        assert [each and each[0]["code"] for each in result["problem"].to_pylist()] == [None, "trailing_bytes", None]
    else:
        assert "problem" not in result.column_names


def test_an_error_comes_after_the_rows_before_it_and_names_the_offset() -> None:
    reader = decode_values(table(IN_FRONT, IN_FRONT, DAMAGED, IN_FRONT), DECODER)
    assert next(reader)["offset"].to_pylist() == [40, 41]
    with pytest.raises(lh.DecodeError, match="offset 42") as caught:
        next(reader)
    assert (caught.value.topic, caught.value.partition, caught.value.offset, caught.value.row) == (
        "orders",
        3,
        42,
        None,
    )


def test_an_error_counts_the_rows_of_all_batches_without_offsets() -> None:
    source = pa.Table.from_batches(table(IN_FRONT, IN_FRONT, IN_FRONT, DAMAGED).select(["value"]).to_batches(2))
    with pytest.raises(lh.DecodeError, match="row 3") as caught:
        decode_values(source, DECODER, headers=None).read_all()
    assert caught.value.row == 3


def test_closing_closes_the_source() -> None:
    closed = []
    batch = table(IN_FRONT).to_batches()[0]

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield batch
            yield batch
        finally:
            closed.append(True)

    with decode_values(Reader(batch.schema, batches), DECODER) as reader:
        next(reader)
        assert closed == []
    assert closed == [True]


def test_wrong_arguments_are_refused() -> None:
    source = table(IN_FRONT)
    with pytest.raises(ValueError, match=r"has 0 columns 'headers'.*pass headers=None"):
        decode_values(source.drop(["headers"]), DECODER)
    with pytest.raises(ValueError, match="has 0 columns 'key'"):
        decode_values(source, DECODER, column="key")
    with pytest.raises(ValueError, match="has a column 'offset': pass another error_column="):
        decode_values(source, DECODER, errors="column", error_column="offset")
    with pytest.raises(ValueError, match="pass a schema or a subject"):
        decode_values(source, AvroDecoder(MemoryRegistry({1: V1})))
    with pytest.raises(ValueError, match="errors value"):
        decode_values(source, DECODER, errors="skip")  # type: ignore[arg-type]


def test_errors_join_those_of_the_source() -> None:
    source = table(IN_FRONT, DAMAGED, DAMAGED, IN_FRONT)
    error = {"code": "earlier", "message": "m", "byte_offset": None, "header": None, "key": None, "column": "retry"}
    type = decode_values(source, DECODER, errors="column").schema.field("error").type
    with_errors = source.append_column("error", pa.array([[error], [error], None, None], type))
    result = decode_values(with_errors, DECODER, errors="column").read_all()
    codes = [each and [error["code"] for error in each] for each in result["error"].to_pylist()]
    assert codes == [["earlier"], ["earlier", "trailing_bytes"], ["trailing_bytes"], None]
    assert result["value"].to_pylist() == [{"id": 7}, None, None, {"id": 7}]


def test_an_error_of_the_source_keeps_its_class() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield table(IN_FRONT).to_batches()[0]
        raise lh.DecodeError("the source ends", code="truncated", format="kafka")

    reader = decode_values(Reader(table(IN_FRONT).schema, batches), DECODER)
    assert next(reader)["offset"].to_pylist() == [40]
    with pytest.raises(lh.DecodeError, match="the source ends"):
        next(reader)
