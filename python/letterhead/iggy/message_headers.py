"""Headers of a message: a map, None, or bytes that cannot be decoded, such as encrypted headers."""

from __future__ import annotations

from typing import Any, TypeAlias

import letterhead.iggy.json_transport as transport
from letterhead.errors import ConversionError, DecodeError
from letterhead.headers import Headers
from letterhead.iggy.errors import shift_errors
from letterhead.iggy.formats import Format, ReadFormat
from letterhead.iggy.headers import HeaderMap
from letterhead.iggy.wire import Cursor

__all__ = [
    "MessageHeaders",
    "normalize_headers",
    "encode_headers",
    "headers_tree",
    "map_or_bytes",
    "read_headers",
    "read_headers_tree",
]

MessageHeaders: TypeAlias = HeaderMap | bytes | None


def normalize_headers(headers: Any) -> MessageHeaders:
    """Convert headers to a map or bytes; empty :class:`letterhead.Headers` become ``None``, as in Iggy's library."""
    if headers is None or isinstance(headers, HeaderMap):
        return headers
    if isinstance(headers, bytes | bytearray | memoryview):
        return bytes(headers)
    if isinstance(headers, Headers):
        return HeaderMap.from_headers(headers) if headers else None
    return HeaderMap(headers)


def map_or_bytes(data: bytes) -> MessageHeaders:
    """Decode headers in the format ``iggy``; return bytes that cannot be decoded unchanged."""
    try:
        return HeaderMap.from_bytes(data, "iggy") if data else None
    except DecodeError:
        return data


def read_headers(cursor: Cursor) -> HeaderMap | None:
    """Read the length and the headers of a message in the format ``iggy-2023``."""
    size = cursor.number(4, "headers length")
    start = cursor.at
    data = cursor.take(size, "headers block")
    with shift_errors(start, cursor.prefix):
        return HeaderMap.from_bytes(data, "iggy-2023") if data else None


def encode_headers(headers: MessageHeaders, format: Format) -> bytes:
    """Encode the headers of a message."""
    if isinstance(headers, HeaderMap):
        return headers.to_bytes(format)
    if headers and format == "iggy-2023":
        message = "headers as bytes are not carried: pass a HeaderMap, or use the format iggy"
        raise ConversionError(message, format="iggy-2023", code="field_not_carried")
    return headers or b""


def headers_tree(headers: MessageHeaders, format: Format, *, canonical: bool) -> Any:
    """Return the headers of a message as a JSON value."""
    if isinstance(headers, HeaderMap):
        return headers._to_tree(format, canonical=canonical)
    data = encode_headers(headers, format)
    return transport.to_base64(data) if data else None


def read_headers_tree(fields: transport.Fields, format: ReadFormat, *, validate: bool) -> MessageHeaders:
    """Parse the headers of a message from the JSON field of the format."""
    present = {name: fields[name] for name in ("headers", "user_headers") if fields.get(name) is not None}
    if not present:
        return None
    expected = {"iggy-2023": "headers", "iggy": "user_headers"}.get(format)
    if len(present) == 2 or (expected is not None and expected not in present):
        transport.refuse("a message has the field headers or the field user_headers, by its format", format)
    [(name, tree)] = present.items()
    detected: Format = "iggy-2023" if name == "headers" else "iggy"
    if detected == "iggy" and isinstance(tree, str):
        return map_or_bytes(transport.read_base64(tree, "the field user_headers", "iggy", padded=True))
    return HeaderMap._from_tree(tree, detected, validate=validate)
