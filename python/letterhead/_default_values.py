"""Default value of a column for messages without the header: :func:`default_of` formats it for the compiled core."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

from letterhead.types import base_type

__all__ = ["Default", "default_of", "json_default"]

Default: TypeAlias = tuple[str, str]
"""Type that parses the text, and the text of the value."""


def default_of(type: str, value: object) -> Default:
    """Return a value as text, with the type that parses it: for alternatives, a type that holds the values of all.

    Examples
    --------
    >>> default_of("int32 | int32:text", 0), default_of("binary", b"\\0")
    (('int32:text', '0'), ('binary:hex', '00'))
    """
    from letterhead import _native  # imported here, because columns can be described without the native module

    name = base_type(type)
    spec = _spec(name, value)
    if spec is None:
        raise TypeError(f"default= must be a value of {name}, not {value.__class__.__name__}")
    _native.check_default(*spec)
    return spec


def json_default(default: Default) -> int | str:
    """Return a default as a JSON value, which :func:`default_of` converts back to the same default."""
    type, text = default
    if type == "binary:hex":
        try:
            return bytes.fromhex(text).decode()
        except UnicodeDecodeError:
            raise TypeError("a default of bytes must be UTF-8 here") from None
    return int(text) if type == "timestamp_ms:text" else text


def _spec(name: str, value: object) -> Default | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "binary":
        value = value.encode() if isinstance(value, str) else value
        return ("binary:hex", value.hex()) if isinstance(value, bytes) else None
    if name == "timestamp_ms":
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            _check_zone(value)
            value, rest = divmod(value - datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1))
            if rest:
                raise ValueError(
                    "default= has microseconds, and timestamp_ms has milliseconds: round it, or pass 'timestamp:iso'"
                )
        return ("timestamp_ms:text", str(value)) if isinstance(value, int) and not isinstance(value, bool) else None
    if name == "timestamp":
        if isinstance(value, datetime):
            _check_zone(value)
            value = value.astimezone(UTC).isoformat()
        return ("timestamp:iso", value) if isinstance(value, str) else None
    if isinstance(value, str):
        return ("string" if name == "string" else f"{name}:text"), value
    fits = (
        is_number if name.startswith("float")
        else isinstance(value, bool) if name == "bool"
        else isinstance(value, UUID) if name == "uuid"
        else isinstance(value, date) and not isinstance(value, datetime) if name == "date"
        else isinstance(value, int | Decimal) and not isinstance(value, bool) if name.startswith("decimal")
        else is_number and isinstance(value, int) if name.startswith(("int", "uint"))
        else False
    )  # fmt: skip
    return (f"{name}:text", _text(value)) if fits else None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    return str(value)


def _check_zone(value: datetime) -> None:
    if value.tzinfo is None:
        raise ValueError("default= has no time zone: pass datetime(..., tzinfo=UTC)")
