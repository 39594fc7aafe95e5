"""Hypothesis strategies for headers as plain tuples: a key, a type or None, and bits or None.

Examples are small and likely to find errors: repeated keys, null and empty values, extreme numbers, numbers as text, and
text outside ASCII. :mod:`letterhead.testing.strategies` converts them to headers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from letterhead import _native
from letterhead.values import VALUE_TYPES

__all__ = ["FORMATS", "Traits", "bits", "data", "header_values", "headers", "keys", "messages", "values"]

ALL_TYPES = [*VALUE_TYPES, "type-16", "type-200", "type-255"]


class Traits(NamedTuple):
    """Properties of a writable format."""

    keys: str  # "text", "int" or "typed"
    types: list[str]  # types of values; empty if values have none
    checks: str  # check of typed values by the reader: "nothing", "size" or "value"
    nulls: bool  # whether a value can be null
    least: int  # minimum length of a key or a value
    fields: list[str]  # fields of a message, or ["headers"]


def _traits(row: dict[str, Any]) -> Traits:
    if not row["types"]:
        types, checks = [], "nothing"
    elif row["nulls"]:  # kip82-typed
        types, checks = [type for type in VALUE_TYPES if type != "int128" and not type.startswith("uint")], "value"
    else:
        types = [type for type in ALL_TYPES if type != "char"]
        checks = "size" if row["keys"] == "typed" else "nothing"
        if checks == "nothing":  # iggy-2023 has no other types
            types = [type for type in types if type in VALUE_TYPES]
    return Traits(row["keys"], types, checks, row["nulls"], row["part_len"][0], [name for name, _ in row["fields"]])


FORMATS: dict[str, Traits] = {row["name"]: _traits(row) for row in _native.formats() if row["is_target"]}
"""Writable formats by name."""

# --- keys and values -------------------------------------------------------------------------------------------------

FEW_KEYS: dict[str, list[Any]] = {
    "text": ["a", "b", "é", "📦", "5", "-0", "int32:5", ""],
    "int": [0, 5, -1, 2**31 - 1, -(2**31)],
    "typed": [
        "a",
        "5",
        ("int32", b"\0\0\0\5"),
        ("uint8", b"\5"),
        ("uint128", b"\xff" * 16),
        ("bool", b"\1"),
        ("bool", b"\2"),
        ("float64", b"\x3f\xf8" + bytes(6)),
        ("binary", b"\0\xff"),
        ("string", b"\xff"),
        ("type-200", b"x"),
    ],
}
"""Keys by form; there are only a few, because keys should repeat in examples."""

_number_texts = st.from_regex(r"-?0*[0-9]{0,4}", fullmatch=True) | st.integers(-(2**129), 2**129).map(str)
_float_texts = (
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,20}([eE][+-]?[0-9]{0,3})?", fullmatch=True)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(["NaN", "Infinity", "-Infinity", "+Infinity", "inf", "nan", "1e400", "-1e-400"])
)
_words = st.sampled_from(["true", "false", "True", "é", "📦", "a", "ab", " 1", "1_0", "\u0661"])
_texts = (_number_texts | _float_texts | _words | st.uuids().map(str) | st.text(max_size=6)).map(str.encode)
_sized = st.sampled_from([1, 2, 4, 8, 16]).flatmap(lambda size: st.binary(min_size=size, max_size=size))
_ends = st.sampled_from([b"\0", b"\x7f", b"\x80", b"\xff"]).flatmap(
    lambda first: st.sampled_from([0, 1, 3, 7, 15]).map(
        lambda more: first + (b"\xff" if first == b"\x7f" else b"\0") * more
    )
)
data = _sized | _ends | _texts | st.binary(max_size=5)
values = st.none() | data
"""Values of untyped formats."""


def bits(type: str, checks: str = "value", least: int = 0) -> st.SearchStrategy[bytes]:
    """Return a strategy for the bytes of a type, according to the checks of a format's reader."""
    width = VALUE_TYPES.get(type)
    if checks == "value" and type == "bool":
        return st.sampled_from([b"\0", b"\1"])
    if checks == "value" and type == "string":
        return st.text(min_size=least, max_size=4).map(str.encode)
    if width is None or checks == "nothing":
        return (data if width is None else bits(type) | data).filter(lambda drawn: len(drawn) >= least)
    halves = [b"\xd8\0", b"\xdf\xff", b"\0a"] if type == "char" else [b"\x7f" + b"\xff" * (width - 1)]
    return st.binary(min_size=width, max_size=width) | st.sampled_from(halves)


def keys(form: str, least: int = 0) -> st.SearchStrategy[Any]:
    """Return a strategy for keys of a form."""
    known = st.sampled_from(FEW_KEYS[form]).filter(lambda key: key != "" or not least)
    if form == "int":
        return known | st.integers(-(2**31), 2**31 - 1)
    text = known | st.text(min_size=least, max_size=4)
    if form == "text":
        return text
    named = st.sampled_from([type for type in ALL_TYPES if type != "char"])
    return text | named.flatmap(lambda type: bits(type, "size", least=1).map(lambda drawn: _key(type, drawn)))


def _key(type: str, bits: bytes) -> Any:
    """Return a typed key; a UTF-8 string becomes text, which is the only form of such keys."""
    try:
        return bits.decode() if type == "string" else (type, bits)
    except UnicodeDecodeError:
        return type, bits


def _typed_values(types: list[str], checks: str, least: int) -> st.SearchStrategy[tuple[str, bytes]]:
    return st.sampled_from(types).flatmap(lambda type: st.tuples(st.just(type), bits(type, checks, least)))


# --- headers and messages that a format can hold ---------------------------------------------------------------------


def header_values(traits: Traits) -> st.SearchStrategy[Any]:
    """Return a strategy for the type and the bytes of values."""
    typed: st.SearchStrategy[Any] = st.tuples(st.none(), data.filter(lambda drawn: len(drawn) >= traits.least))
    if traits.types:
        typed = _typed_values(traits.types, traits.checks, traits.least)
    return typed | st.just((None, None)) if traits.nulls else typed


def headers(format: str) -> st.SearchStrategy[list[Any]]:
    """Return a strategy for headers that a format can hold without loss; half of the examples repeat two keys."""
    traits = FORMATS[format]
    typed = header_values(traits)
    two = st.sampled_from(FEW_KEYS[traits.keys][:2])
    few_keys, any_keys = (
        st.tuples(key, typed).map(lambda pair: (pair[0], *pair[1])) for key in (two, keys(traits.keys, traits.least))
    )
    return st.lists(any_keys, max_size=4) | st.lists(few_keys, min_size=2, max_size=6)


int64s = st.sampled_from([0, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
naturals = st.sampled_from([0, 1767225600000, 2**63 - 1]) | st.integers(0, 2**63 - 1)
payloads = st.binary(max_size=12)
ids = st.binary(min_size=16, max_size=16)

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "checksum": st.integers(0, 2**64 - 1),
    "id": ids,
    "magic": st.just(2),
    "attributes": st.sampled_from([0, 8]),
    "crc": st.none(),
    "tombstone": st.booleans(),
    "key": st.none() | payloads,
    "value": st.none() | payloads,
    "payload": payloads,
}


def messages(format: str) -> st.SearchStrategy[Any]:
    """Return a strategy for messages that a format can hold without loss: headers, or a dict of fields."""
    fields = FORMATS[format].fields
    if fields == ["headers"]:
        return headers(format)
    # Iggy's numbers are unsigned.
    numbers = naturals if format.startswith("iggy") else int64s
    drawn = {**FIELDS, **dict.fromkeys(("offset", "timestamp", "origin_timestamp"), numbers)}
    return st.fixed_dictionaries({name: headers(format) if name == "headers" else drawn[name] for name in fields})
