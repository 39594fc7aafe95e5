"""Names of formats, helpers and Hypothesis strategies that the tests of the reference implementation share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from letterhead.errors import ErrorDetail, HeaderError
from tests.reference import keys, ops
from tests.reference.formats import FORMATS
from tests.reference.value_types import VALUE_TYPES

Line = dict[str, Any]

WRITTEN = [name for name, row in FORMATS.items() if row.batch is None and not row.traits.instead]
BATCHES = [name for name, row in FORMATS.items() if row.batch is not None]
READ_AS_ONE = [name for name, row in FORMATS.items() if row.batch is None]


def codes(details: list[ErrorDetail]) -> list[str]:
    """Return the codes of some errors."""
    return [detail.code for detail in details]


def places(details: list[ErrorDetail]) -> list[tuple[str, int | None, int | None, str | None]]:
    """Return the codes of some errors, and where they are."""
    return [(detail.code, detail.byte_offset, detail.header, detail.key) for detail in details]


def raised(call: Any, error: type[HeaderError], code: str) -> HeaderError:
    """Make sure of an exception and its code, and give it."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.code == code, str(caught.value)
    return caught.value


def id_bytes(number: str | int) -> bytes:
    """Return an id of Iggy as the reference implementation does."""
    return int(number).to_bytes(16, "big")


def kip82(offset: int, **fields: Any) -> bytes:
    """Write a message of the typed draft."""
    message = dict.fromkeys(name for name, _ in FORMATS["kip82-message"].fields)
    result = ops.encode({**message, "offset": offset, "value": b"v", "headers": [], **fields}, "kip82-message")
    assert result is not None
    return result


def headers_for(format: str) -> st.SearchStrategy[list[Any]]:
    """Draw headers that a format carries without a loss."""
    traits = FORMATS[format].traits
    types = [] if traits.types is None else sorted(set(traits.types.values()))
    widths = {row.name: row.width for row in VALUE_TYPES}

    def bits(type: str) -> st.SearchStrategy[bytes]:
        if type == "bool":
            return st.sampled_from([b"\0", b"\1"])
        if type == "string":
            return st.text(min_size=0 if traits.nulls else 1, max_size=4).map(str.encode)
        width = widths.get(type)
        least = 0 if traits.nulls else 1
        return st.binary(min_size=least, max_size=5) if width is None else st.binary(min_size=width, max_size=width)

    text = st.text(min_size=traits.lengths[0], max_size=4)
    typed = st.sampled_from(types or ["string"]).flatmap(
        lambda type: st.tuples(st.just(type), bits(type).filter(bool)).map(lambda key: keys.plain(*key))
    )
    int32s = st.integers(-(2**31), 2**31 - 1)
    key = {"text": text, "int": int32s, "typed": text | typed}[traits.keys]
    plain = st.tuples(st.just(None), st.none() | st.binary(max_size=5))
    typed_values = st.sampled_from(types or ["string"]).flatmap(lambda type: st.tuples(st.just(type), bits(type)))
    values = plain if traits.types is None else typed_values
    if traits.types is not None and traits.nulls:
        values = values | st.just((None, None))
    return st.lists(st.tuples(key, values).map(lambda pair: (pair[0], *pair[1])), max_size=4)


@st.composite
def messages_for(draw: st.DrawFn, format: str) -> Any:
    """Draw a message that a format carries without a loss."""
    headers = draw(headers_for(format))
    if FORMATS[format].message is None:
        return headers
    naturals = st.sampled_from([0, 2**63 - 1]) | st.integers(0, 2**40)
    signed = naturals | st.integers(-(2**63), -1)
    data = st.binary(max_size=6)
    drawn = {
        "offset": naturals if FORMATS[format].micros else signed,
        "timestamp": naturals if FORMATS[format].micros else signed,
        "origin_timestamp": naturals,
        "checksum": st.integers(0, 2**64 - 1),
        "id": st.binary(min_size=16, max_size=16),
        "magic": st.just(2),
        "attributes": st.sampled_from([0, 8]),
        "crc": st.none(),
        "tombstone": st.booleans(),
        "key": st.none() | data,
        "value": st.none() | data,
        "payload": data,
    }
    fields = {name: draw(drawn[name]) for name, _ in FORMATS[format].fields if name != "headers"}
    return {**fields, "headers": headers}
