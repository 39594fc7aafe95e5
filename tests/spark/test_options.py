"""The options of the transforms: those that Arrow has, documented alike, and handed on. No job runs."""

from __future__ import annotations

import inspect
import re

import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.spark.sources import options as sources

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
def test_the_options_are_those_of_arrow(operation):
    """With the same defaults. `where_headers` filters the rows of columns of messages."""
    of_arrow = inspect.signature(getattr(lha, operation)).parameters
    of_spark = inspect.signature(OPERATIONS[operation]).parameters
    own = {"keep", "identify", "into", "fields"}
    other = {"_dialect", "threads", "views"} | ({"where"} if operation != "messages" else set())
    assert set(of_spark) - own == set(of_arrow) - other
    for name in set(of_spark) - own - {"column"}:
        assert of_spark[name].default == of_arrow[name].default, name


@pytest.mark.parametrize(
    ("operation", "format", "options"),
    [
        ("decode", "iggy", {"errors": "null", "lenient": True, "strict_types": True, "text_keys": True, "limits": LIMITS}),
        ("select", "iggy", {
            "columns": {"a": "int8"}, "errors": "null", "lenient": True, "strict_types": True, "limits": LIMITS,
        }),
        (
            "encode",
            "iggy",
            {"on_loss": "drop", "types": {lh.Int32(3): ["int8", "type-20"]}, "null_headers": "raise", "canonical": True},
        ),
        (
            "convert",
            "kafka",
            {
                "target": "iggy", "on_loss": "drop", "types": "binary", "null_headers": "raise", "canonical": True,
                "errors": "null", "lenient": True, "strict_types": True, "limits": LIMITS,
            },
        ),
        (
            "messages",
            "iggy-batch",
            {
                "columns": ["offset"], "headers": {"a": "int8"}, "errors": "null", "lenient": True, "strict_types": True,
                "text_keys": True, "limits": LIMITS,
            },
        ),
    ],
)  # fmt: skip
def test_every_option_is_handed_on(operation, format, options):
    """To the function that the workers call, by its name there. A condition is resolved first."""
    function = OPERATIONS[operation]
    own = {"column", "format", "keep", "identify", "into", "fields", "error_column", "where"}
    assert set(options) == set(inspect.signature(function).parameters) - own
    handed = dict(function("value", format, **options).options)
    assert operation == "encode" or handed.pop("error_column") == "error"
    if operation in ("select", "messages"):
        assert handed.pop("_dialect") == "spark"
    if operation == "messages":
        # What says which row a message is from goes in front.
        assert handed["columns"] == ("row", "offset")
        handed["columns"] = ["offset"]
    assert handed == options


def test_what_travels_can_be_pickled():
    import pickle

    types = {lh.Int32(3): "int8", b"\xff": ["int16", "binary"], "k": "type-200"}
    transform = lhs.convert_headers("value", "kafka", target="iggy", types=types)
    assert pickle.loads(pickle.dumps(transform)) == transform
    # The mapping is the user's; what is in the transform is not.
    types["k"] = "int8"
    assert transform.options["types"]["k"] == "type-200"


def test_every_limit_is_an_option_of_the_sources():
    limits = lh.Limits(**{name: number for number, name in enumerate(lh.Limits._fields)})
    values = sources.parse_options(lhs.options(limits=limits), sources.COMMON)
    assert sources.read_arguments(values)["limits"] == limits
