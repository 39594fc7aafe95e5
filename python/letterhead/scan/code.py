"""Generate Python code that selects the headers found by a scan, as a draft to correct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from letterhead.scan.key import KeyScan, find_tied_types, select_type
from letterhead.scan.readings import SHAPES, Tally
from letterhead.scan.statistics import Key
from letterhead.values import value_from_message

Surface: TypeAlias = Literal["spark", "arrow", "python"]

_SPARK = "from letterhead import spark as lhs"
_ARROW = "from letterhead import arrow as lha"
_CODE: dict[tuple[Surface, bool], tuple[str, str]] = {
    ("spark", False): (_SPARK, 'lhs.select_headers(df, columns{option}{position}, errors="column")'),
    ("arrow", False): (_ARROW, 'lha.select(column, columns{option}, errors="column")'),
    ("python", False): ("", "lh.select(data, columns{option})"),
    ("spark", True): (_SPARK, 'lhs.explode_batches(df, {format}, column={column}, headers=columns, errors="column")'),
    ("arrow", True): (_ARROW, 'lha.messages(column, {format}, headers=columns, errors="column")'),
    ("python", True): (f"import pyarrow as pa\n{_ARROW}", "lha.messages(pa.array([data]), {format}, headers=columns)"),
}
"""Imports and call for each API; the key contains True for batch formats."""

_READERS = {
    "a schema id: 00 and an int32, or 01 and 16 bytes": "schema_id",
    "an AMQP 1.0 primitive": "amqp",
    "a W3C traceparent": "traceparent",
    "an RFC 3339 time": "rfc3339",
}
"""Functions that read the parts of each shape."""


def select_code(
    keys: Sequence[KeyScan], more_keys: int, format: str, column: str, surface: Surface, *, is_batch: bool
) -> str:
    """Return the code; each line has a comment with the confidence in the type, and other possible types."""
    module = "lhs" if surface == "spark" else "lha"
    lines = [f"    {_item(key)},  # {_comment(key, module)}" for key in keys]
    if more_keys:
        lines.append(f"    # {more_keys:,} more keys")
    body = "\n".join(["columns = {", *lines, "}"])
    imports, call = _CODE[surface, is_batch]
    imports = "\n".join(filter(None, ["import letterhead as lh", imports]))
    # Omit options that have the default value.
    option = "" if format == "kafka" else f", format={literal(format)}"
    position = "" if column == "headers" else f", column={literal(column)}"
    call = call.format(column=literal(column), format=literal(format), option=option, position=position)
    return f"{imports}\n\n{body}\nheaders = {call}\n"


def _item(key: KeyScan) -> str:
    type = literal(select_type(key))
    value = type if isinstance(key.key, str) else f"lh.field({type}, key={key_code(key.key)})"
    return f"{literal(key.name)}: {value}"


def key_code(key: Key) -> str:
    """Return a key as Python code for `lh.field`."""
    if isinstance(key, str):
        return literal(key)
    if isinstance(key, int):
        return repr(key)
    type, bits = key
    return repr(bits) if type == "binary" else f"lh.{value_from_message(type, bits)!r}"


def literal(text: str) -> str:
    """Return text as a Python literal, in double quotes unless it contains double quotes."""
    written = repr(text)
    return written if '"' in written else f'"{written[1:-1]}"'


def _comment(key: KeyScan, module: str) -> str:
    first, *others = key.guesses
    comment: str = first.confidence
    if first.confidence == "tie":
        comment = f"tie with {', '.join(find_tied_types(key)[1:])}"
    elif first.confidence == "stated" and others:
        comment = f"stated, but so are {', '.join(guess.type for guess in others)}: rows with those are errors"
    if first.fits < first.values:
        comment += f"; {first.values - first.fits:,} of {first.values:,} values are not of this type"
    for shape in SHAPES.get(first.type, ()):
        if shape in _READERS and key.statistics.shapes.get(shape, Tally()).fits == first.values > 0:
            comment += f"; {module}.{_READERS[shape]} reads its parts"
    return comment
