"""Columns of headers that are lists of structs already, as Spark's Kafka source has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from letterhead.testing import plain
from tests.helpers import strategies
from tests.reference.formats import FORMATS

any_type = st.none() | st.sampled_from([*strategies.ALL_TYPES, "type-3", "type-016", "nonsense"])

typed_keys = st.fixed_dictionaries({"key_type": any_type, "key": st.none() | plain.data}) | strategies.loose_bits.map(
    lambda key: {"key_type": key[0], "key": key[1]}
)
"""A key and its type, of which one may be null, and whose bits may be none of its values."""


@st.composite
def list_rows(draw: st.DrawFn, format: str, *, typed: bool) -> list[Any]:
    """Draw lists of headers as structs of a format's keys, good and bad."""
    form = FORMATS[format].traits.keys
    values = {"value": strategies.values | strategies.long_data, **({"type": any_type} if typed else {})}
    keys = typed_keys if form == "typed" else st.fixed_dictionaries({"key": st.none() | strategies.keys(form)})
    header = st.none() | st.tuples(keys, st.fixed_dictionaries(values)).map(lambda parts: parts[0] | parts[1])
    return draw(st.lists(st.none() | st.lists(header, max_size=5), max_size=4))


def list_type(format: str, *, typed: bool) -> pa.DataType:
    """Return the type of such a column, with types of values or without."""
    keys: dict[str, Any] = {
        "text": [("key", pa.utf8())],
        "int": [("key", pa.int32())],
        "typed": [("key_type", pa.utf8()), ("key", pa.binary())],
    }
    fields = [*keys[FORMATS[format].traits.keys], *([("type", pa.utf8())] if typed else []), ("value", pa.binary())]
    return pa.list_(pa.field("element", pa.struct(fields)))


def list_column(rows: list[Any], format: str, *, typed: bool, layout: tuple[int, int | None]) -> Any:
    """Lay such lists into a column, somehow."""
    return strategies.lay(pa.array(rows, list_type(format, typed=typed)), layout)
