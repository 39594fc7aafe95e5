"""Edits of headers in plain Python: decode, change, encode."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.reference import ops
from tests.reference.formats import FORMATS

Triple = tuple[Any, str | None, bytes | None]


class PlainEdit(NamedTuple):
    """The parameters of an edit; new values are masks, or pairs of type and bits."""

    only: Sequence[Any] | None = None
    drop: Sequence[Any] = ()
    rename: Sequence[tuple[Any, Any]] = ()
    replace: Sequence[tuple[Any, Any]] = ()
    set: Sequence[tuple[Any, Any]] = ()
    append: Sequence[tuple[Any, Any]] = ()


def edit(data: bytes, format: str, change: PlainEdit) -> bytes | None:
    """Return an edited message; one that the edit does not touch is returned as it is."""
    decoded = ops.decode(data, format)
    headers = decoded["headers"] if isinstance(decoded, dict) else decoded
    edited = edit_headers(headers or [], change, typed=FORMATS[format].traits.types is not None)
    if edited == (headers or []) and not touches(headers or [], change):
        return data
    if not isinstance(decoded, dict):
        return ops.encode(edited, format)
    kept = edited or (None if headers is None else edited)
    # Checksums are those of the message as it was.
    computed: dict[str, Any] = {name: None for name in ("checksum", "crc") if name in decoded}
    return ops.encode({**decoded, **computed, "headers": kept}, format)


def touches(headers: list[Triple], change: PlainEdit) -> bool:
    """Return whether headers are written, though they may be equal to what they were."""
    written = {key for key, _ in (*change.rename, *change.set)}
    replaced = {key for key, _ in change.replace}
    return any(key in written or (key in replaced and bits is not None) for key, _, bits in headers)


def edit_headers(headers: list[Triple], change: PlainEdit, *, typed: bool) -> list[Triple]:
    """Return the edited headers of a message."""
    rename, replace, unset = dict(change.rename), dict(change.replace), dict(change.set)
    result: list[Triple] = []
    for key, type, bits in headers:
        if any(key == name for name, _ in change.set):
            if key in unset:
                result.append((key, *unset.pop(key)))
        elif key not in change.drop and (change.only is None or key in change.only):
            if bits is not None and key in replace:
                new = replace[key]
                type, bits = new if isinstance(new, tuple) else ("string" if typed else None, mask(new, type, bits))
            result.append((rename.get(key, key), type, bits))
    return [*result, *((key, *value) for key, value in (*unset.items(), *change.append))]


def mask(name: str, type: str | None, bits: bytes) -> bytes:
    """Return the text that hides a value."""
    if name == "hash":
        return hashlib.sha256(bits).hexdigest().encode()
    if name == "redact":
        return b"***"
    last = bits[-4:].decode("latin-1")
    is_shown = type in (None, "string", "binary") and len(bits) >= 8 and all(" " <= letter <= "~" for letter in last)
    return b"****" + (bits[-4:] if is_shown else b"")
