"""The options of the functions of DataFrames: those that Arrow has, documented alike, and handed on. No job runs."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest
from pyspark.sql.types import DataType, StructType

import letterhead as lh
from letterhead import arrow as lha
from letterhead import operations
from letterhead import spark as lhs
from letterhead.spark.schemas import header_lists
from letterhead.spark.sources import options as sources
from tests.helpers.signatures import parameters
from tests.spark.frames import Recorder

OPERATIONS = {
    "decode": lhs.decode_headers,
    "select": lhs.select_headers,
    "encode": lhs.encode_headers,
    "convert": lhs.convert_headers,
    "messages": lhs.explode_batches,
}

LIMITS = lh.Limits(headers=9)


def documented(function) -> list[str]:
    """Return the parameters that a docstring with NumPy sections names."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)\n\n^[A-Z]\w+\n-+\n", inspect.getdoc(function), re.MULTILINE | re.DOTALL
    )[1]
    heads = re.findall(r"^(\w[^:\n]*)", section, re.MULTILINE)
    return [name.strip() for head in heads for name in head.split(",")]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_parameter_is_documented(operation):
    function = OPERATIONS[operation]
    assert sorted(documented(function)) == sorted(inspect.signature(function).parameters)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_options_match_arrow(operation):
    """With the same defaults. Arrow data has one engine."""
    of_arrow = parameters(getattr(lha, operation))
    of_spark = parameters(OPERATIONS[operation])
    own = {"df", "keep", "identify", "into", "fields", "engine"}
    assert set(of_spark) - own == set(of_arrow) - {"threads", "views"}
    for name in set(of_spark) - own - {"column"}:
        assert of_spark[name].default == of_arrow[name].default, name


READING = {"errors": "null", "lenient": True, "strict_types": True, "limits": LIMITS}
READ = operations.DecodeOptions(**READING)
READ_TEXT = operations.DecodeOptions(**READING, text_keys=True)
WHERE = "a::int8 > 3"
TYPES = {lh.Int32(3): ["int8", "type-20"]}

EXPECTED = {
    "decode": (
        "iggy",
        READING | {"text_keys": True, "where": WHERE},
        operations.Decode("iggy", READ_TEXT, WHERE),
    ),
    "select": (
        "iggy",
        READING | {"headers": {"a": "int8"}, "where": WHERE},
        operations.Select("iggy", {"a": "int8"}, READ, WHERE, dialect="spark"),
    ),
    "encode": (
        "iggy",
        {"on_loss": "drop", "types": TYPES, "nulls": "raise", "canonical": True},
        operations.Encode(
            "iggy", operations.WriteOptions(on_loss="drop", types=TYPES, nulls="raise", canonical=True)
        ),
    ),
    "convert": (
        "kafka",
        READING | {"target": "iggy", "on_loss": "drop", "types": "binary", "nulls": "raise", "canonical": True},
        operations.Convert(
            "kafka", "iggy", READ,
            operations.WriteOptions(on_loss="drop", types="binary", nulls="raise", canonical=True),
        ),
    ),
    # The number of the row that a message is from comes first.
    "messages": (
        "iggy-batch",
        READING | {"columns": ["offset"], "headers": {"a": "int8"}, "text_keys": True, "where": "offset > 3"},
        operations.ExplodeBatches(
            "iggy-batch", ("row", "offset"), {"a": "int8"}, READ_TEXT, "offset > 3", dialect="spark"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_option_reaches_operation(spark, operation):
    function = OPERATIONS[operation]
    own = {"df", "column", "format", "keep", "identify", "into", "fields", "error_column", "engine"}
    format, options, expected = EXPECTED[operation]
    assert set(options) == set(parameters(function)) - own
    column = header_lists(format)[0] if operation == "encode" else "binary"
    run, _ = function(
        Recorder(StructType().add("value", DataType.fromDDL(column))), format=format, column="value", **options
    )
    assert run.operation == expected
    assert (run.where is None) == (operation not in ("decode", "select"))
    assert pickle.loads(pickle.dumps(run)) == run


def test_runner_can_be_pickled(spark):
    types = {lh.Int32(3): "int8", b"\xff": ["int16", "binary"], "k": "type-200"}
    frame = Recorder(StructType().add("value", "binary"))
    run, _ = lhs.convert_headers(frame, "kafka", column="value", target="iggy", types=types)
    pickled = pickle.dumps(run)
    assert pickle.loads(pickled) == run
    # The mapping belongs to the caller.
    types["k"] = "int8"
    assert pickle.dumps(run) == pickled


def test_every_limit_is_source_option():
    limits = lh.Limits(**{name: number for number, name in enumerate(lh.Limits._fields)})
    values = sources.parse_options(lhs.options(limits=limits), sources.COMMON)
    assert sources.request_from_options(values).limits == limits


@pytest.mark.parametrize("value", ["[0, 2]", "0,2", " 0, 2 "])
def test_number_list_is_json_or_text(value: str) -> None:
    assert sources.number_list("partitions", value) == [0, 2]


@pytest.mark.parametrize("value", ["", "a", "0,,1", "[true]", "[]", "[0,2", "0,2]", "+1", "1_0", "0.5"])
def test_invalid_number_list_is_rejected(value: str) -> None:
    with pytest.raises(ValueError, match="option partitions must be numbers such as"):
        sources.number_list("partitions", value)


@pytest.mark.parametrize("value", ['{"0": true}', '{"0": 1.0}', '{"0": "1"}', "[0]"])
def test_offsets_are_whole_numbers(value: str) -> None:
    parse = sources.json_of("offsets", dict, int)
    assert parse("startingOffsets", '{"0": 1}') == {"0": 1}
    with pytest.raises(ValueError, match="option startingOffsets must be offsets"):
        parse("startingOffsets", value)
