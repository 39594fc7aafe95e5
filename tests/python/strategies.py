"""What Hypothesis draws: headers, cells good and bad, columns asked for, and the ways an Arrow column can lie."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import letterhead as lh
from letterhead.columns import ORDERS, REPEATS, SELECT_TYPES
from letterhead.reference import ops
from letterhead.reference.formats import FORMATS
from letterhead.values import KINDS

FEW_KEYS = ["a", "b", "ab", "é", "📦", ""]

formats = st.sampled_from(sorted(FORMATS))
keys = st.sampled_from(FEW_KEYS) | st.text(max_size=4)
int64s = st.sampled_from([0, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
payloads = st.binary(max_size=12)

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
values = st.none() | _sized | _ends | _texts | st.binary(max_size=5)
pairs = st.lists(st.tuples(keys, values), max_size=6)
_crowded = st.lists(st.tuples(st.sampled_from(["a", "b"]), values), min_size=2, max_size=8)


def triples() -> st.SearchStrategy[list[tuple[str, str | None, bytes | None]]]:
    """Draw headers of which some are typed."""
    return st.lists(st.one_of(st.tuples(keys, st.none(), values), _typed()), max_size=6)


def _typed() -> st.SearchStrategy[tuple[str, str | None, bytes | None]]:
    def bits(kind: str) -> st.SearchStrategy[bytes]:
        if kind == "bool":
            return st.sampled_from([b"\0", b"\1"])
        if kind == "string":
            return st.text(max_size=4).map(str.encode)
        if kind == "char":
            return st.sampled_from([b"\xd8\0", b"\xdf\xff", b"\0a"]) | st.binary(min_size=2, max_size=2)
        width = KINDS.get(kind)
        return st.binary(max_size=4) if width is None else st.binary(min_size=width, max_size=width)

    kinds = st.sampled_from([*KINDS, "kind-16", "kind-255"])
    return kinds.flatmap(lambda kind: st.tuples(keys, st.just(kind), st.none() | bits(kind)))


def fields(format: str, headers: st.SearchStrategy[Any] = pairs) -> st.SearchStrategy[Any]:
    """Draw a message that a format can carry: headers, or a dict of fields."""
    if FORMATS[format].envelope is None:
        return headers
    drawn = {"headers": headers, "timestamp": int64s, "payload": payloads}
    return st.fixed_dictionaries({name: drawn[name] for name, _ in FORMATS[format].fields})


def good_cells(format: str) -> st.SearchStrategy[bytes]:
    """Draw bytes that a format can have; in half of them the same few keys stand again and again."""
    return st.sampled_from([pairs, _crowded]).flatmap(
        lambda headers: fields(format, headers).map(lambda message: ops.encode(message, format) or b"")
    )


@st.composite
def mutated_cells(draw: st.DrawFn, format: str) -> bytes:
    """Draw bytes that were good until something happened to them."""
    cell = bytearray(draw(good_cells(format)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(cell)))
        byte = draw(st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
        match draw(st.sampled_from(["change", "insert", "cut", "drop"])):
            case "change":
                cell[place : place + 1] = bytes([byte])
            case "insert":
                cell[place:place] = bytes([byte])
            case "cut":
                del cell[place:]
            case "drop":
                del cell[place : place + 1]
    return bytes(cell)


_likely_bytes = st.sampled_from([0, 1, 2, 3, 4, 6, 8, 0x0F, 0x61, 0x62, 0x70, 0x7F, 0x80, 0xC3, 0xA9, 0xED, 0xFF])
random_cells = st.binary(max_size=24) | st.lists(_likely_bytes, max_size=24).map(bytes)


def cells(format: str) -> st.SearchStrategy[bytes | None]:
    """Draw cells of every sort, null too."""
    return st.none() | good_cells(format) | mutated_cells(format) | random_cells


types = st.one_of(
    st.sampled_from(SELECT_TYPES), st.builds("{}:{}".format, st.sampled_from(SELECT_TYPES[2:]), st.sampled_from(ORDERS))
)
columns = st.dictionaries(
    st.sampled_from(["a", "b", "x", "y z", "é"]),
    st.builds(
        lh.field,
        types,
        key=st.sampled_from(["a", "b"]) | st.none() | st.sampled_from(FEW_KEYS),
        repeat=st.sampled_from(REPEATS),
        required=st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def layouts() -> st.SearchStrategy[tuple[int, int | None]]:
    """Draw how a column lies: how many foreign rows stand before it, and where it is cut into chunks."""
    return st.tuples(st.integers(0, 9), st.none() | st.integers(0, 5))


def lay(array: Any, layout: tuple[int, int | None]) -> Any:
    """Give the same rows in another layout: a slice of more, or chunks."""
    import pyarrow as pa

    before, cut = layout
    if before:
        array = pa.concat_arrays([pa.nulls(before, array.type), array])[before:]
    return array if cut is None else pa.chunked_array([array[:cut], array[cut:]], array.type)
