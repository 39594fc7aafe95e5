"""Keys as text, as the core writes them in errors."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead._value_text import UNNAMED, text_of, text_of_key, text_with_type
from letterhead.values import VALUE_TYPES, value_from_message

NUMBERS = {name: width for name, width in VALUE_TYPES.items() if width is not None}


def key_in_error(key: Any) -> str | None:
    """Return the key as the error for an absent header names it."""
    with pytest.raises(lh.DecodeError) as caught:
        lh.select(b"", {"column": lh.field("binary", key=key, required=True)}, format="iggy")
    return caught.value.key


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tenant", "tenant"),
        (b"\0\xff", "binary:00ff"),
        (lh.Int32(-3), "int32:-3"),
        (lh.Bool(True), "bool:true"),
        (lh.String("acme"), "acme"),
        (value_from_message("string", b"\xff"), "string:ff"),
        (value_from_message("type-200", b"\1\2"), "type-200:0102"),
        (lh.Float64(float("inf")), "float64:Infinity"),
        (value_from_message("float32", struct.pack(">I", 0x7FC00001)), "float32:NaN"),
    ],
)
def test_key_is_spelled_as_in_errors(key: Any, text: str) -> None:
    assert text_of_key(key) == text == key_in_error(key)


@given(
    st.one_of(
        [st.tuples(st.just(type), st.binary(min_size=width, max_size=width)) for type, width in NUMBERS.items()]
        + [st.tuples(st.sampled_from(["binary", "string", *sorted(UNNAMED)[:3]]), st.binary(min_size=1, max_size=40))]
    )
)
def test_any_key_is_spelled_as_in_errors(key: tuple[str, bytes]) -> None:
    value = value_from_message(*key)
    text = text_of(value)
    assert text_with_type(value) == f"{value.type}:{value.bits.hex() if text is None else text}"
    assert text_of_key(value) == key_in_error(value)
