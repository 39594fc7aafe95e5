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
def test_unreadable_values_are_null(errors: Any) -> None:
    result = decode_values(
        table(IN_FRONT, DAMAGED, IN_FRONT), DECODER, errors=errors, error_column="problem"
    ).read_all()
    assert result["value"].to_pylist() == [{"id": 7}, None, {"id": 7}]
    if errors == "column":
        assert [each and each[0]["code"] for each in result["problem"].to_pylist()] == [None, "trailing_bytes", None]
    else:
        assert "problem" not in result.column_names


def test_error_follows_preceding_rows_and_names_offset() -> None:
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


def test_error_without_offsets_counts_rows_of_all_batches() -> None:
    source = pa.Table.from_batches(table(IN_FRONT, IN_FRONT, IN_FRONT, DAMAGED).select(["value"]).to_batches(2))
    with pytest.raises(lh.DecodeError, match="row 3") as caught:
        decode_values(source, DECODER, headers=None).read_all()
    assert caught.value.row == 3


def test_closing_closes_source() -> None:
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


def test_wrong_arguments_are_rejected() -> None:
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


def test_value_errors_join_source_errors() -> None:
    source = table(IN_FRONT, DAMAGED, DAMAGED, IN_FRONT)
    error = {"code": "earlier", "message": "m", "byte_offset": None, "header": None, "key": None, "column": "retry"}
    type = decode_values(source, DECODER, errors="column").schema.field("error").type
    with_errors = source.append_column("error", pa.array([[error], [error], None, None], type))
    result = decode_values(with_errors, DECODER, errors="column").read_all()
    codes = [each and [error["code"] for error in each] for each in result["error"].to_pylist()]
    assert codes == [["earlier"], ["earlier", "trailing_bytes"], ["trailing_bytes"], None]
    assert result["value"].to_pylist() == [{"id": 7}, None, None, {"id": 7}]


def test_source_error_keeps_its_class() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield table(IN_FRONT).to_batches()[0]
        raise lh.DecodeError("the source ends", code="truncated", format="kafka")

    reader = decode_values(Reader(table(IN_FRONT).schema, batches), DECODER)
    assert next(reader)["offset"].to_pylist() == [40]
    with pytest.raises(lh.DecodeError, match="the source ends"):
        next(reader)


NEXT = prefixed(1, V1, {"id": 9})


@pytest.mark.parametrize(
    ("where", "offsets"),
    [
        ('"value.id" > 7', [41]),
        ('"value.id" > 7 or offset = 40', [40, 41]),
        ('"value.id" is null', [42, 43]),
        ('value is not null and "value.id" is null', [43]),
        ("tenant = 'acme' and \"value.id\" = 7", [40]),
        ("tenant = 'acme' or \"value.id\" = 9", [40, 41]),
        (lh.col("value.id").isin([7, 9]) & (lh.col("partition") == 3), [40, 41]),
        ("headers['value.id']::string = 'x'", [43]),
    ],
)
def test_condition_tests_value_fields(where: Any, offsets: list[int]) -> None:
    source = table(IN_FRONT, NEXT, None, IN_HEADER)
    tagged = [[("tenant", b"acme")], [], [], [("__value_schema_id", b"\0\0\0\0\1"), ("value.id", b"x")]]
    source = source.set_column(4, "headers", [[lh.encode(each, "kafka") for each in tagged]])
    result = decode_values(source, DECODER, where=where).read_all()
    assert (result["offset"].to_pylist(), result.column_names) == (offsets, source.column_names)


def test_undecided_condition_is_error_of_value() -> None:
    source, where = table(IN_FRONT, NEXT, DAMAGED, NEXT), '"value.id" = 9 or offset = 40'
    reader = decode_values(source, DECODER, where=where)
    assert next(reader)["offset"].to_pylist() == [40, 41]
    with pytest.raises(lh.DecodeError, match="offset 42"):
        next(reader)
    assert decode_values(source, DECODER, where=where, errors="null").read_all()["offset"].to_pylist() == [40, 41, 43]
    result = decode_values(source, DECODER, where=where, errors="column").read_all()
    errors = [each and (each[0]["code"], each[0]["column"]) for each in result["error"].to_pylist()]
    assert errors == [None, None, ("trailing_bytes", "where"), None]
    decided = decode_values(source, DECODER, where=f"({where}) and offset > 42", errors="column").read_all()
    assert decided["offset"].to_pylist() == [43]
    # The row is selected whatever its value is.
    known = decode_values(source, DECODER, where='"value.id" = 9 or offset = 42', errors="column").read_all()
    assert [each and each[0]["column"] for each in known["error"].to_pylist()] == [None, None, None]


def test_names_missing_from_rows_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"'value\.nothing' is no field"):
        decode_values(table(IN_FRONT), DECODER, where='"value.nothing" = 1')
    with pytest.raises(ValueError, match="names a header, and headers=None"):
        decode_values(table(IN_FRONT), DECODER, headers=None, where="tenant = 'a'")


def test_offsets_of_rows_excluded_by_condition_are_committed() -> None:
    used: list[int] = []

    class Committing(Reader):
        def note_used(self, rows: int) -> None:
            used.append(rows)

        def close_after(self, rows: int) -> None:
            pass

    source = table(NEXT, IN_FRONT, NEXT, IN_FRONT, NEXT, NEXT)
    batches = source.to_batches(4)
    for rows, expected in ((0, 0), (1, 2), (2, 4)):
        reader = decode_values(Committing(source.schema, lambda: iter(batches)), DECODER, where='"value.id" = 9')
        assert next(reader)["offset"].to_pylist() == [40, 42]
        reader.close_after(rows)  # type: ignore[attr-defined]
        assert used[-1] == expected
