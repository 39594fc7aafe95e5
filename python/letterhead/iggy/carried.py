"""The headers that a message carries: a map, none, or bytes that nobody here can read."""

from __future__ import annotations

from typing import Any, TypeAlias

import letterhead.iggy.json_transport as transport
from letterhead.errors import ConversionError, DecodeError
from letterhead.headers import Headers
from letterhead.iggy.faults import placed
from letterhead.iggy.headers import HeaderMap
from letterhead.iggy.layouts import BLOCKS, Layout, ReadLayout
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
    """Read the headers of a message in the layout ``tlv``; what cannot be read stays bytes, as encrypted headers do."""
    try:
        return HeaderMap.from_bytes(block, "tlv") if block else None
    except DecodeError:
        return block


def read_block(cursor: Cursor) -> HeaderMap | None:
    """Read the headers of a message in the layout ``2023``, and their length before them."""
    size = cursor.number(4, "headers length")
    start = cursor.at
    block = cursor.take(size, "headers block")
    with placed(start, cursor.what):
        return HeaderMap.from_bytes(block, "2023") if block else None


def block_of(headers: Carried, layout: Layout) -> bytes:
    """Write the headers of a message."""
    if isinstance(headers, HeaderMap):
        return headers.to_bytes(layout)
    if headers and layout == "2023":
        message = "headers that are given as bytes are not carried"
        raise ConversionError(message, format=BLOCKS["2023"], code="field_not_carried")
    return headers or b""


def headers_tree(headers: Carried, layout: Layout, *, canonical: bool) -> Any:
    """Give the headers of a message as JSON has them."""
    if isinstance(headers, HeaderMap):
        return headers._to_tree(layout, canonical=canonical)
    block = block_of(headers, layout)
    return transport.text_of(block) if block else None


def read_headers_tree(fields: transport.Fields, layout: ReadLayout, *, validate: bool) -> Carried:
    """Read the headers of a message from whichever field has them."""
    given = {name: fields[name] for name in ("headers", "user_headers") if fields.get(name) is not None}
    if not given:
        return None
    wanted = {"2023": "headers", "tlv": "user_headers"}.get(layout)
    if len(given) == 2 or (wanted is not None and wanted not in given):
        transport.refuse("a message has the field headers or the field user_headers, by its layout", BLOCKS[layout])
    [(name, tree)] = given.items()
    found: Layout = "2023" if name == "headers" else "tlv"
    if found == "tlv" and isinstance(tree, str):
        return map_or_bytes(transport.read_base64(tree, "the field user_headers", BLOCKS["tlv"], padded=True))
    return HeaderMap._from_tree(tree, found, validate=validate)
