"""Values of formats with types are read as every type that they fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha


def column(*values: Any) -> Any:
    return pa.array([lh.encode([("n", value)], "iggy") for value in values])


def read(type: str, *values: Any, **options: Any) -> list[Any]:
    return [row["n"] for row in lha.select(column(*values), {"n": type}, format="iggy", **options).to_pylist()]


def test_integer_column_reads_integers_in_range() -> None:
    values = (lh.UInt8(3), lh.Int8(-1), lh.UInt16(300), lh.Int32(-5), lh.UInt64(2**63 - 1), lh.Int128(7))
    assert read("int64", *values) == [3, -1, 300, -5, 2**63 - 1, 7]
    assert read("uint8", lh.Int64(255), lh.UInt128(0)) == [255, 0]
    assert read("array<int16>", lh.Int8(1)) == [[1]]


@pytest.mark.parametrize(
    ("type", "value"),
    [("int64", lh.UInt64(2**63)), ("uint8", lh.Int8(-1)), ("uint8", lh.Int64(256)), ("int64", lh.Int128(2**64))],
)
def test_integer_out_of_range_raises(type: str, value: Any) -> None:
    with pytest.raises(lh.DecodeError, match=f"the number does not fit {type}") as caught:
        read(type, value)
    assert caught.value.code == "out_of_range"


def test_float_column_reads_numbers_without_loss() -> None:
    assert read("float64", lh.Float32(0.5), lh.Int16(-3), lh.UInt64(2**53)) == [0.5, -3.0, 2.0**53]
    assert read("float32", lh.Int32(2**24)) == [2.0**24]
    with pytest.raises(lh.DecodeError, match="the number has no exact float64"):
        read("float64", lh.Int64(2**53 + 1))
    with pytest.raises(lh.DecodeError, match="float64 and float32 was requested"):
        read("float32", lh.Float64(0.5))


def test_binary_column_reads_text() -> None:
    assert read("binary", lh.String("é"), lh.Binary(b"\xff")) == ["é".encode(), b"\xff"]
    with pytest.raises(lh.DecodeError, match="the value is binary and string was requested"):
        read("string", lh.Binary(b"x"))


def test_strict_types_reads_only_values_of_type() -> None:
    assert read("int64", lh.Int64(3), strict_types=True) == [3]
    with pytest.raises(lh.DecodeError, match="the value is uint8 and int64 was requested") as caught:
        read("int64", lh.UInt8(3), strict_types=True)
    assert caught.value.code == "wrong_type"
    with pytest.raises(lh.DecodeError):
        lha.decode(column(lh.UInt8(3)), "iggy", where="n::int64 > 2", strict_types=True)


def test_one_message_is_read_like_column() -> None:
    data = lh.encode([("n", lh.UInt8(3))], "iggy") or b""
    assert lh.select(data, {"n": "int64"}, format="iggy") == {"n": 3}


def test_untyped_comparisons_use_stored_type() -> None:
    messages = column(lh.UInt8(3), lh.Int8(-1), lh.UInt16(300), lh.Int64(2))
    assert len(lha.decode(messages, "iggy", where="n > 2")) == 2
    assert len(lha.decode(messages, "iggy", where=lh.col("n").isin([-1, 300]))) == 2
    assert len(lha.decode(column(lh.Float32(0.5), lh.Int8(1)), "iggy", where="n >= 0.5")) == 2
    assert len(lha.decode(column(lh.Bool(True), lh.Bool(False)), "iggy", where="n = true")) == 1
    with pytest.raises(ValueError, match="needs a type"):
        lha.decode(pa.array([b""]), "kafka", where="n > 2")
