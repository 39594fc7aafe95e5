"""The keys of headers, in the three forms that formats have.

==========  ====================  ==========================================================
form        in plain Python       formats
==========  ====================  ==========================================================
text        ``str``               ``kafka``, ``kip82-typed``, ``iggy-2023`` and those around
int         ``int``               ``kip82-int`` and those around
typed       ``(type, bits)``      ``iggy``, ``iggy-auto`` and those around
==========  ====================  ==========================================================

A typed key of type string whose bits are UTF-8 is a plain ``str``: the same key is never two things.
"""

from __future__ import annotations

from typing import Any

from letterhead.values import Value
from tests.reference import types

Key = str | int | tuple[str, bytes]


def plain(type: str, bits: bytes) -> Key:
    """Return a typed key as plain Python has it."""
    if type == "string":
        try:
            return bits.decode()
        except UnicodeDecodeError:
            pass
    return type, bits


def typed(key: Key) -> tuple[str, bytes]:
    """Return a key of any form as a type and bits."""
    if isinstance(key, str):
        return "string", key.encode()
    if isinstance(key, int):
        return "int32", key.to_bytes(4, "big", signed=True)
    return key


def spell(key: Key) -> str:
    """Return a key in words, as errors show it: ``tenant``, ``3``, ``int32:3``, ``binary:00ff``."""
    if isinstance(key, tuple):
        type, bits = key
        text = types.text_of(type, bits)
        return f"{type}:{bits.hex() if text is None else text}"
    return str(key)


def as_key(key: Any) -> Key:
    """Read a key as a user gives it: a ``Value`` or bytes are typed keys."""
    if isinstance(key, Value):
        return plain(key.type, key.bits)
    if isinstance(key, bytes | bytearray | memoryview):
        return "binary", bytes(key)
    if isinstance(key, tuple):
        name, bits = key
        return plain(name, bits)
    if isinstance(key, str | int) and not isinstance(key, bool):
        return key
    raise TypeError(f"a key must be str, int, bytes or a Value, not {type(key).__name__}")


def is_of(key: Key, form: str) -> bool:
    """Return whether a format whose keys have this form can have this key."""
    if form == "typed":
        return not isinstance(key, int)
    return isinstance(key, str if form == "text" else int)


def check_form(key: Key, form: str, format: str) -> None:
    """Refuse a key to look for that no header of a format could have."""
    if not is_of(key, form):
        has = {"text": "text keys", "int": "integer keys", "typed": "typed keys: give lh.Int32(3)"}[form]
        raise ValueError(f"key {spell(key)}: {format} has {has}")
