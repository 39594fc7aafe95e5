"""The headers that a message carries: a map, none, or bytes that nobody here can read."""

from __future__ import annotations

from typing import Any, TypeAlias

import letterhead.iggy.json_transport as transport
from letterhead.errors import ConversionError, DecodeError
from letterhead.headers import Headers
from letterhead.iggy.faults import placed
from letterhead.iggy.formats import Format, ReadFormat
from letterhead.iggy.headers import HeaderMap
from letterhead.iggy.wire import Cursor

__all__ = ["Carried", "as_map", "block_of", "headers_tree", "map_or_bytes", "read_block", "read_headers_tree"]

Carried: TypeAlias = HeaderMap | bytes | None


def as_map(given: Any) -> Carried:
    """Take the headers of a message; none that were read are ``None``, as Iggy has them."""
    if given is None or isinstance(given, HeaderMap):
        return given
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    if isinstance(given, Headers):
        return HeaderMap.from_headers(given) if given else None
    return HeaderMap(given)


def map_or_bytes(block: bytes) -> Carried:
    """Read the headers of a message in the format ``iggy``; what cannot be read stays bytes, as encrypted headers do."""
    try:
        return HeaderMap.from_bytes(block, "iggy") if block else None
    except DecodeError:
        return block


def read_block(cursor: Cursor) -> HeaderMap | None:
    """Read the headers of a message in the format ``iggy-2023``, and their length before them."""
    size = cursor.number(4, "headers length")
    start = cursor.at
    block = cursor.take(size, "headers block")
    with placed(start, cursor.what):
        return HeaderMap.from_bytes(block, "iggy-2023") if block else None


def block_of(headers: Carried, format: Format) -> bytes:
    """Write the headers of a message."""
    if isinstance(headers, HeaderMap):
        return headers.to_bytes(format)
    if headers and format == "iggy-2023":
        message = "headers that are given as bytes are not carried"
        raise ConversionError(message, format="iggy-2023", code="field_not_carried")
    return headers or b""


def headers_tree(headers: Carried, format: Format, *, canonical: bool) -> Any:
    """Give the headers of a message as JSON has them."""
    if isinstance(headers, HeaderMap):
        return headers._to_tree(format, canonical=canonical)
    block = block_of(headers, format)
    return transport.text_of(block) if block else None


def read_headers_tree(fields: transport.Fields, format: ReadFormat, *, validate: bool) -> Carried:
    """Read the headers of a message from whichever field has them."""
    given = {name: fields[name] for name in ("headers", "user_headers") if fields.get(name) is not None}
    if not given:
        return None
    wanted = {"iggy-2023": "headers", "iggy": "user_headers"}.get(format)
    if len(given) == 2 or (wanted is not None and wanted not in given):
        transport.refuse("a message has the field headers or the field user_headers, by its format", format)
    [(name, tree)] = given.items()
    found: Format = "iggy-2023" if name == "headers" else "iggy"
    if found == "iggy" and isinstance(tree, str):
        return map_or_bytes(transport.read_base64(tree, "the field user_headers", "iggy", padded=True))
    return HeaderMap._from_tree(tree, found, validate=validate)
