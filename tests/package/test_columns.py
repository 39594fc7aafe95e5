"""What ``select`` is asked for: types, keys, repeats, and what a mistake is told."""

from __future__ import annotations

from typing import Any

import pytest

import letterhead as lh
from letterhead.fields import REPEATS, normalise
from letterhead.types import ORDERS, SELECT_TYPES, UUID_ORDERS
from letterhead.values import value_from_message
from tests.helpers.type_suffixes import orders_of
from tests.reference import types


def test_bare_type_uses_own_key_last_value_and_is_optional() -> None:
    assert normalise({"tenant": "string"}) == [("tenant", "tenant", "string", "last", False, None, None)]


def test_columns_come_in_the_requested_order() -> None:
    requested = normalise(
        {
            "b": "int32:le",
            "a": lh.field("uuid:text", key="id", repeat="error", required=True),
            "route": "array<string>",
            "stop": lh.field("array<int8>", key="stops", required=True),
        }
    )
    assert requested == [
        ("b", "b", "int32:le", "last", False, None, None),
        ("a", "id", "uuid:text", "error", True, None, None),
        ("route", "route", "string", "all", False, None, None),
        ("stop", "stops", "int8", "all", True, None, None),
    ]


def test_all_is_a_field_that_repeats() -> None:
    assert lh.field("array<string>", key="k") == lh.field("string", key="k", repeat="all")
    assert lh.field("string") == lh.Field("string")


def test_empty_key_is_valid() -> None:
    assert normalise({"a": lh.field("string", key="")})[0][1] == ""


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        ("a", "a"),
        (7, 7),
        (-(2**31), -(2**31)),
        (lh.Int32(7), ("int32", b"\0\0\0\7")),
        (lh.Bool(True), ("bool", b"\1")),
        (lh.Value("type-200", b"x"), ("type-200", b"x")),
        (b"\0", ("binary", b"\0")),
        (lh.Binary(b"\0"), ("binary", b"\0")),
        # One spelling a key: what is text is a str.
        (lh.String("a"), "a"),
        (value_from_message("string", b"\xff"), ("string", b"\xff")),
    ],
)
def test_every_key_form_has_one_plain_form(key: Any, plain: Any) -> None:
    assert normalise({"out": lh.field("string", key=key)}) == [("out", plain, "string", "last", False, None, None)]
    assert normalise({"out": lh.field("array<string>", key=key)})[0][1] == plain


@pytest.mark.parametrize("key", [2**31, -(2**31) - 1])
def test_integer_key_has_32_bits(key: int) -> None:
    with pytest.raises(ValueError, match="an integer key has 32 bits"):
        lh.field("string", key=key)
    with pytest.raises(ValueError, match="column 'a': an integer key has 32 bits"):
        normalise({"a": lh.Field("string", key=key)})


@pytest.mark.parametrize("name", SELECT_TYPES)
def test_every_type_accepts_only_its_suffixes(name: str) -> None:
    for order in orders_of(name):
        assert lh.field(f"{name}:{order}").type == f"{name}:{order}"
    refused = {"string": "neither byte order", "binary": "neither byte order", "uuid": "does not say which order"}
    if name in refused:
        with pytest.raises(ValueError, match=refused[name]):
            lh.field(f"{name}:le")
    else:
        with pytest.raises(ValueError, match="only uuid has the suffix"):
            lh.field(f"{name}:guid")
    with pytest.raises(ValueError, match="suffix"):
        lh.field(f"{name}:")


def test_reference_has_same_types() -> None:
    assert set(types.TYPES) == set(SELECT_TYPES)
    assert (types.SUFFIXES, types.UUID_ORDERS) == (ORDERS, UUID_ORDERS)
    assert len(REPEATS) == 4


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("itn64", "did you mean 'int64'"),
        ("int46", "did you mean 'int64'"),
        ("str", "unknown type 'str'"),
        ("Int32", "did you mean 'int32'"),
        ("int32:texd", "did you mean 'text'"),
        ("int32 :be", "did you mean 'int32'"),
        ("", "unknown type ''"),
    ],
)
def test_misspelt_type_gets_suggestion_and_names_column(type: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        normalise({"amount": type})
    assert str(caught.value).startswith("column 'amount': ")


def test_misspelt_repeat_gets_suggestion() -> None:
    misspelt: Any = "lsat"
    with pytest.raises(ValueError, match="unknown repeat 'lsat': did you mean 'last'"):
        lh.field("string", repeat=misspelt)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([("tenant", "string")], "headers must be a mapping"),
        (None, "headers must be a mapping"),
        ({1: "string"}, "the name of a column must be str"),
        ({"a": None}, "column 'a': a type such as 'int64'"),
        ({"a": int}, "column 'a': a type such as 'int64'"),
        ({"a": lh.Field(1)}, "column 'a': a type such as 'int64', 'bigint'"),  # type: ignore[arg-type]
        ({"a": lh.Field("string", key=1.0)}, "column 'a': key must be str, int, bytes or a Value, not float"),  # type: ignore[arg-type]
        ({"a": lh.Field("string", key=True)}, "column 'a': key must be str, int, bytes or a Value, not bool"),
        ({"a": lh.Field("string", required=1)}, "column 'a': required must be bool"),  # type: ignore[arg-type]
        ({"a": lh.Field("string", repeat=None)}, "column 'a': repeat must be str"),  # type: ignore[arg-type]
    ],
)
def test_wrong_argument_type_raises_type_error(columns: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        normalise(columns)


def test_empty_columns_raise_value_error() -> None:
    with pytest.raises(ValueError, match="no columns"):
        normalise({})


def test_field_built_directly_is_validated() -> None:
    with pytest.raises(ValueError, match="column 'a': unknown repeat"):
        normalise({"a": lh.Field("string", repeat="lsat")})  # type: ignore[arg-type]
