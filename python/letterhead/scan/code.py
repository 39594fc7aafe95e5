"""Code that selects the headers of a scan: text to paste, read, and change where the scan could not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from letterhead.scan.key import KeyScan
from letterhead.scan.readings import SHAPES, Tally
from letterhead.scan.statistics import Key
from letterhead.values import of_message

__all__ = ["Surface", "select_code"]

Surface: TypeAlias = Literal["spark", "arrow"]

_CALLS: dict[Surface, tuple[str, str]] = {
    "spark": (
        "from letterhead import spark as lhs",
        "headers = df.transform(lhs.select_headers({column}, {format}, columns, errors=\"column\"))",
    ),
    "arrow": (
        "from letterhead import arrow as lha",
        "headers = lha.select(column, {format}, columns, errors=\"column\")",
    ),
}  # fmt: skip

_TAKEN_APART = {
    "a schema id: 00 and an int32, or 01 and 16 bytes": "schema_id",
    "an AMQP 1.0 primitive": "amqp",
    "a W3C traceparent": "traceparent",
    "an RFC 3339 time": "rfc3339",
}
"""Shapes, and the functions that read more of them than a type says."""

_NONE = Tally()


def select_code(keys: Sequence[KeyScan], more_keys: int, format: str, column: str, surface: Surface) -> str:
    """Write the code; a comment on each line says how sure its type is, and what it could be instead."""
    imports, call = _CALLS[surface]
    module = imports.rpartition(" ")[2]
    lines = [f"    {_item(key)},  # {_comment(key, module)}" for key in keys]
    if more_keys:
        lines.append(f"    # {more_keys:,} more keys")
    body = "\n".join(["columns = {", *lines, "}"])
    return (
        f"import letterhead as lh\n{imports}\n\n{body}\n{call.format(column=literal(column), format=literal(format))}\n"
    )


def _item(key: KeyScan) -> str:
    type = key.guesses[0].type
    text = isinstance(key.key, str)
    if key.statistics.repeated:
        type = f"array<{type}>"
    value = literal(type) if text else f"lh.field({literal(type)}, key={key_code(key.key)})"
    return f"{literal(key.name)}: {value}"


def key_code(key: Key) -> str:
    """Write a key as `lh.field` takes it."""
    if isinstance(key, str):
        return literal(key)
    if isinstance(key, int):
        return repr(key)
    type, bits = key
    return repr(bits) if type == "binary" else f"lh.{of_message(type, bits)!r}"


def literal(text: str) -> str:
    """Write text as Python, in double quotes where it has none of its own."""
    written = repr(text)
    return written if '"' in written else f'"{written[1:-1]}"'


def _comment(key: KeyScan, module: str) -> str:
    first, *others = key.guesses
    ties = [guess.type for guess in others if guess.confidence == first.confidence == "tie"]
    said: str = first.confidence
    if ties:
        said = f"tie with {', '.join(ties)}"
    elif first.confidence == "stated" and others:
        said = f"stated, and so are {', '.join(guess.type for guess in others)}: rows with those are errors"
    if first.fits < first.of:
        said += f"; {first.of - first.fits:,} of {first.of:,} values are none"
    for shape in SHAPES.get(first.type, ()):
        if shape.type in _TAKEN_APART and key.statistics.shapes.get(shape.type, _NONE).fits == first.of > 0:
            said += f"; {module}.{_TAKEN_APART[shape.type]} reads what is in it"
    return said
