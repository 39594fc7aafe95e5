"""Format headers for a terminal, as a table or as short text."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

import letterhead as lh
from letterhead._formatting import printable, quote, space_hex
from letterhead._value_text import text_of
from letterhead.cli.screen import short, table, value_text
from letterhead.cli.spelling import key_text
from letterhead.headers import HeaderKey, HeaderValue
from letterhead.values import Value

SUMMARY_LIMIT = 24
VALUE_LIMIT = 60


def headers_table(headers: lh.Headers, *, limit: int | None) -> Table:
    """Return a table of headers, with a column of types if values have them."""
    with_types = any(isinstance(value, Value) for _, value in headers)
    types = ("type",) if with_types else ()
    view = table("header", "key", *types, "value", "bytes", right=("header", "bytes"))
    for index, (key, value) in enumerate(headers):
        type = (value.type if isinstance(value, Value) else "",) if with_types else ()
        bits = value.bits if isinstance(value, Value) else value
        size = "" if bits is None else f"{len(bits):,}"
        name = quote(key) if isinstance(key, str) else printable(key_text(key))
        view.add_row(str(index), name, *type, format_typed(value, limit=limit), size)
    return view


def header_text(key: HeaderKey, value: HeaderValue, limit: int | None) -> Text:
    """Return a header as key=value."""
    return Text.assemble(printable(key_text(key)), "=", _summary(value, limit))


def format_typed(value: HeaderValue, *, limit: int | None = None) -> Text:
    """Return a typed value as text, any other value as quoted text or hex."""
    if not isinstance(value, Value):
        return value_text(value, limit=limit)
    text = text_of(value)
    if value.type == "binary" or (value.type == "string" and text is not None):
        return value_text(value.bits, limit=limit)
    if text is None:
        return Text(space_hex(value.bits), style="cyan")
    return Text(quote(text) if value.type == "char" else text)


def _summary(value: HeaderValue, limit: int | None) -> Text:
    bits = value.bits if isinstance(value, Value) and value.type in ("string", "binary") else value
    if limit is not None and isinstance(bits, bytes | None):
        return short(bits, limit)
    return format_typed(value, limit=limit)
