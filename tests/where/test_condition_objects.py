"""Conditions as Python objects: long chains, pickles, and lists of literals."""

from __future__ import annotations

import copy
import math
import pickle
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.operations import Select


def messages(*values: Any, format: str = "kafka") -> pa.Array:
    return pa.array([lh.encode([("n", value)], format) for value in values])


def selected(column: pa.Array, where: Any, type: str = "string", format: str = "kafka") -> list[Any]:
    return [row["n"] for row in lha.select(column, {"n": type}, format=format, where=where).to_pylist()]


@pytest.mark.parametrize("combine", [or_, and_])
def test_condition_chain_may_exceed_python_recursion_limit(combine: Any) -> None:
    chain = reduce(combine, [lh.col("n") == str(number) for number in range(400)])
    column = messages("7", "399", "400")
    expected = ["7", "399"] if combine is or_ else []
    for condition in (chain, pickle.loads(pickle.dumps(chain)), copy.deepcopy(chain)):
        assert selected(column, condition) == expected
        assert repr(condition) == repr(chain)
        assert repr(condition).count("col('n')") == 400
    negated = pickle.loads(pickle.dumps(~chain))
    assert selected(column, negated) == (["400"] if combine is or_ else ["7", "399", "400"])
    operation = pickle.loads(pickle.dumps(Select("kafka", {"n": "string"}, where=chain)))
    assert [row["n"] for row in operation(column).to_pylist()] == expected


def test_long_literal_list_selects_like_short_one() -> None:
    column = messages(*map(str, range(50)), "", None)
    texts = [str(number) for number in range(-500, 500, 3)]
    assert selected(column, lh.col("n").isin(texts)) == [str(n) for n in range(50) if str(n) in texts]
    numbers = messages(*(lh.Int32(n) for n in range(-5, 5)), format="iggy")
    wanted = [7, -4, 3, 2**70, -4]
    assert selected(numbers, lh.col("n", "int32").isin(wanted), "int32", "iggy") == [-4, 3]
    floats = messages(*map(lh.Float64, (0.0, -0.0, 1.5, math.nan)), format="iggy")
    assert selected(floats, lh.col("n", "float64").isin([-0.0, math.nan, 1.5]), "float64", "iggy") == [0.0, -0.0, 1.5]
    assert selected(floats, ~lh.col("n", "float64").isin([0.0, 1.5]), "float64", "iggy")[0] != 0


def test_substring_is_found_anywhere_in_long_value() -> None:
    values = ["a" * 100_000 + "b", "a" * 100_001, "b", ""]
    column = messages(*values)
    assert selected(column, lh.col("n").contains("a" * 50_000 + "b")) == values[:1]
    assert selected(column, lh.col("n").contains("")) == values


@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_undecided_row_errors_name_condition_and_column(errors: str) -> None:
    column = messages(b"\0\7", b"seven")
    headers = {"n": "int16"}
    where = lh.col("n", "int16") >= 0
    batches = pa.array([lh.batch([lh.Message(headers={"n": value}) for value in (b"\0\7", b"seven")], "record-batch")])
    for read in (
        lambda: lha.select(column, headers, where=where, errors=errors),
        lambda: lha.messages(batches, "record-batch", columns=[], headers=headers, where=where, errors=errors),
    ):
        if errors == "raise":
            with pytest.raises(lh.DecodeError, match="5 bytes where int16 takes 2"):
                read()
            continue
        rows = read().to_pylist()
        assert [row["n"] for row in rows] == ([7] if errors == "null" else [7, None])
        if errors == "column":
            assert sorted(error["column"] for error in rows[1]["error"]) == ["n", "where"]
