"""Operations as objects: checked when they are made, equal after pickling, and with the type of their results."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.conventions.schemas import DecodeBySchema
from letterhead.operations import (
    ColumnOperation,
    Convert,
    Decode,
    DecodeOptions,
    Encode,
    ExplodeBatches,
    Select,
    Validate,
    Where,
    WriteOptions,
)

MESSAGES = pa.array([lh.encode([("retry", b"\0\0\0\3"), ("tenant", "acme")], "kafka"), None, b"\1"], pa.binary())
LISTS = lha.decode(MESSAGES.slice(0, 2), "kafka")
BATCHES = pa.array([lh.batch([{"offset": 7, "value": b"v", "headers": {"retry": b"\0\0\0\3"}}])])
COLUMNS = {"retry": lh.field("int32", required=True), "tenant": "string"}
ERRORS = DecodeOptions(errors="column", error_column="problem", limits=lh.Limits(headers=9))
CONDITION = lh.col("retry", "int32") > 2

OPERATIONS: dict[str, tuple[ColumnOperation, pa.Array, pa.Array]] = {
    "Decode": (
        Decode("kafka", ERRORS, CONDITION),
        MESSAGES,
        lha.decode(
            MESSAGES, "kafka", errors="column", error_column="problem", limits=lh.Limits(headers=9), where=CONDITION
        ),
    ),
    "Select": (
        Select("kafka", COLUMNS, ERRORS, "tenant = 'acme'", views=True),
        MESSAGES,
        lha.select(
            MESSAGES, COLUMNS, errors="column", error_column="problem", where="tenant = 'acme'", views=True
        ),
    ),
    "Encode": (
        Encode("iggy", WriteOptions(types={"retry": "int32", "tenant": "string"}, on_loss="report")),
        LISTS,
        lha.encode(LISTS, "iggy", types={"retry": "int32", "tenant": "string"}, on_loss="report"),
    ),
    "Convert": (
        Convert("kafka", "iggy", DecodeOptions(errors="null"), WriteOptions(types="binary")),
        MESSAGES,
        lha.convert(MESSAGES, "kafka", target="iggy", errors="null", types="binary"),
    ),
    "ExplodeBatches": (
        ExplodeBatches("record-batch", ["row", "offset"], {"retry": "int32"}, where="offset = 7"),
        BATCHES,
        lha.messages(
            BATCHES, "record-batch", columns=["row", "offset"], headers={"retry": "int32"}, where="offset = 7"
        ),
    ),
    "Validate": (Validate("kafka"), MESSAGES, lha.validate(MESSAGES, "kafka")),
    "Where": (
        Where("kafka", CONDITION, DecodeOptions(errors="null")),
        MESSAGES,
        pa.array([{"selected": selected} for selected in (True, False, False)], pa.struct([("selected", pa.bool_())])),
    ),
}  # fmt: skip

every_operation = pytest.mark.parametrize("name", OPERATIONS)


@every_operation
def test_operation_returns_function_result_and_declares_its_type(name: str) -> None:
    operation, column, expected = OPERATIONS[name]
    result = operation(column)
    assert result.equals(expected)
    assert operation.result_type() == result.type
    chunks = list(operation.chunks(pa.chunked_array([column, column])))
    assert pa.chunked_array(chunks).combine_chunks().to_pylist()[: len(result)] == result.to_pylist()


@every_operation
def test_operation_survives_pickling_and_is_immutable(name: str) -> None:
    operation, column, expected = OPERATIONS[name]
    restored = pickle.loads(pickle.dumps(operation))
    assert restored == operation
    assert restored(column).equals(expected)
    with pytest.raises(AttributeError):
        operation.format = "iggy"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DecodeOptions(errors="nul"), ValueError, "unknown errors value 'nul': did you mean 'null'"),
        (lambda: DecodeOptions(errors=None), TypeError, "errors must be str, not NoneType"),
        (
            lambda: DecodeOptions(error_column="problem"),
            ValueError,
            "error_column= names the column of errors='column'",
        ),
        (lambda: DecodeOptions(lenient=1), TypeError, "lenient must be bool, not int"),
        (lambda: DecodeOptions(limits={"headers": 9}), TypeError, "limits must be letterhead.Limits, not dict"),
        (lambda: WriteOptions(on_loss="dorp"), ValueError, "unknown on_loss value 'dorp': did you mean 'drop'"),
        (lambda: WriteOptions(nulls="skipp"), ValueError, "unknown nulls value 'skipp': did you mean 'skip'"),
        (lambda: WriteOptions(canonical="yes"), TypeError, "canonical must be bool, not str"),
        (lambda: WriteOptions(types=3), TypeError, "types must be a word or a mapping of key to type, not int"),
        (lambda: Select("kafka", {}), ValueError, "no columns were asked for"),
        (lambda: Select("kafka", {"a": "itn32"}), ValueError, "column 'a': unknown type 'itn32'"),
        (lambda: Select("kafka", {"problem": "string"}, ERRORS), ValueError, "two columns 'problem' would be made"),
        (
            lambda: ExplodeBatches("record-batch", "offset"),
            TypeError,
            "columns must be a list of column names, not str",
        ),
        (lambda: Where("kafka", None), TypeError, "where must be a condition, not None"),
        (lambda: DecodeBySchema(None, pa.schema([])), TypeError, "decode must be a function, not NoneType"),
    ],
)
def test_invalid_arguments_are_rejected_at_construction(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_operation_ignores_later_changes_to_callers_mappings() -> None:
    columns, types = {"retry": "int32"}, {"retry": "int32"}
    select, encode = Select("kafka", columns), Encode("iggy", WriteOptions(types=types))
    expected = pickle.dumps((select, encode))
    columns["tenant"] = types["tenant"] = "string"
    assert pickle.dumps((select, encode)) == expected


def test_spark_dialect_columns_have_spark_types() -> None:
    columns = {"count": "uint16", "at": "timestamp_ms"}
    types = {dialect: Select("kafka", columns, dialect=dialect).result_type() for dialect in ("arrow", "spark")}
    assert [field.type for field in types["arrow"]] == [pa.uint16(), pa.timestamp("ms", "UTC")]
    assert [field.type for field in types["spark"]] == [pa.int32(), pa.timestamp("us", "UTC")]


def test_decoding_by_schema_declares_type_without_decoder_call() -> None:
    def decode(group: Any) -> Any:
        raise AssertionError("there are no values")

    operation = DecodeBySchema(decode, pa.schema([("n", pa.int32())]), options=DecodeOptions(errors="column"))
    type = operation.result_type(pa.struct([("value", pa.binary()), ("headers", pa.binary())]))
    assert (type.names, type.field("n").type) == (["n", "error"], pa.int32())
