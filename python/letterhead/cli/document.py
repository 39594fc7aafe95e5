"""A message as JSON, both ways: what `letterhead decode --json` prints, `letterhead encode` takes.

    {"headers": [{"key": "tenant", "value": {"hex": "61636d65", "text": "acme"}}], "timestamp": 1767225600000, …}

A value is null, or an object with "hex" and, where it spells something, "text"; of a value with a type also "type", and
then "hex" has its bits, most significant byte first. For `encode` one of them is enough, "base64" will do, and a string
stands for text: `"acme"`, or for a value with a type: `"int32:3"`, which a format without types takes only if --types says
how to write it. A key is a string, a number where keys are integers,
and where keys have types a string like `"int32:3"`, or an object as for values if it has no such spelling.
"""

from __future__ import annotations

import contextlib
import decimal
import json
from collections.abc import Iterable, Mapping
from typing import Any

import letterhead as lh
from letterhead.cli.exits import Failure
from letterhead.cli.formats import keys_of, row_of
from letterhead.cli.source import parse_base64, parse_hex
from letterhead.cli.spelling import (
    KeyForm,
    as_key,
    check_type,
    looks_typed,
    of_text,
    read_key,
    read_value,
    spell_key,
    text_of,
)
from letterhead.headers import HeaderKey, HeaderValue
from letterhead.values import Value, of_message

SPELLINGS = ("hex", "text", "base64")
# What a format fills in itself where a message does not say: these may be left out.
OPTIONAL = ("offset", "crc", "checksum", "magic", "attributes", "key", "id", "origin_timestamp", "tombstone")


def to_json(fields: Mapping[str, Any], format: str, *, headers: str = "headers") -> dict[str, Any]:
    """Spell the fields of a message, and columns that come along, for JSON without loss; one field has headers."""
    form = keys_of(format)
    return {
        name: headers_json(headers_of(value), form) if name == headers and value is not None else plain(value)
        for name, value in fields.items()
    }


def headers_json(headers: lh.Headers, form: KeyForm) -> list[dict[str, Any]]:
    """Spell headers for JSON."""
    return [{"key": _key_json(key, form), "value": value_json(value)} for key, value in headers]


def value_json(value: HeaderValue) -> dict[str, str] | None:
    """Spell a value for JSON: its type if it has one, its bits as hex always, and text as well where there is any."""
    if value is None:
        return None
    spelt = {"hex": value.hex()} if isinstance(value, bytes) else {"type": value.type, "hex": value.bits.hex()}
    text = text_of(value) if isinstance(value, Value) else None
    if text is not None:
        spelt["text"] = text
    elif isinstance(value, bytes) or value.type == "binary":
        with contextlib.suppress(UnicodeDecodeError):
            spelt["text"] = (value if isinstance(value, bytes) else value.bits).decode("utf-8")
    return spelt


def plain(value: Any) -> Any:
    """Spell any other value for JSON: bytes as hex and text, what JSON does not have as text."""
    if isinstance(value, bytes):
        return value_json(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, decimal.Decimal) and value == int(value):
        return int(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def headers_of(given: lh.Headers | Iterable[Mapping[str, Any]]) -> lh.Headers:
    """Make headers of the rows of a list column, as Arrow has them."""
    if isinstance(given, lh.Headers):
        return given
    return lh.Headers([(_row_key(row), _row_value(row)) for row in given])


def read_message(document: Any, format: str, *, with_types: bool = False) -> Any:
    """Turn a JSON document into what `letterhead.encode` takes for a format: headers, or a message."""
    if row_of(format)["is_"] == "batch":
        raise Failure(f"{format} is a batch: its messages are written one by one")
    fields = dict(row_of(format)["fields"])
    if not isinstance(document, dict):
        raise Failure(f'JSON: an object with "headers" is needed, not {_name(document)}')
    unknown = [name for name in document if name not in fields]
    if unknown:
        raise Failure(f"JSON: {format} has no field {unknown[0]!r}: it has {', '.join(fields)}")
    missing = [name for name in fields if name not in document and name not in OPTIONAL]
    if missing:
        raise Failure(f'JSON: "{missing[0]}" is missing: {format} has {", ".join(fields)}')
    headers = _headers(document["headers"], format, with_types=with_types)
    if list(fields) == ["headers"]:
        return headers
    given = {name: _field(name, document[name], of) for name, of in fields.items() if name in document}
    return lh.Message(**{**given, "headers": headers})


def _row_key(row: Mapping[str, Any]) -> Any:
    if "key_type" not in row or row["key_type"] is None:
        return row["key"]
    return of_message(row["key_type"], row["key"])


def _row_value(row: Mapping[str, Any]) -> HeaderValue:
    value: bytes | None = row["value"]
    type = row.get("type")
    return value if value is None or type is None else of_message(type, value)


def _key_json(key: HeaderKey, form: KeyForm) -> Any:
    if isinstance(key, int):
        return key
    spelt = spell_key(key, form)
    if isinstance(key, Value):
        with contextlib.suppress(Failure):
            if read_key(spelt, form) == key:
                return spelt
        return {"type": key.type, "hex": key.bits.hex()}
    return spelt


def _headers(given: Any, format: str, *, with_types: bool) -> lh.Headers | None:
    if given is None:
        return None
    if not isinstance(given, list):
        raise Failure(f'JSON: "headers" is a list, not {_name(given)}')
    form, with_types = keys_of(format), with_types or bool(row_of(format)["types"])
    headers = lh.Headers()
    for index, item in enumerate(given):
        place = f"JSON: header {index}"
        if not isinstance(item, dict) or set(item) != {"key", "value"}:
            raise Failure(f'{place}: an object with "key" and "value" is needed')
        key = _key(item["key"], form, place)
        value = item["value"]
        if not with_types and isinstance(value, str) and looks_typed(value):
            raise Failure(
                f"{place}: {json.dumps(value)} is a value with a type, and {format} has none: pass --types be, le or text "
                f'to write the value, or {{"text": …}} to write this text'
            )
        typed = _at(place, read_value, value) if with_types and isinstance(value, str) else None
        headers.add(key, _value(value, place, types=True) if typed is None else typed)
    return headers


def _key(given: Any, form: KeyForm, place: str) -> HeaderKey:
    if form == "int":
        if isinstance(given, bool) or not isinstance(given, int):
            raise Failure(f"{place}: a key is a whole number, not {_name(given)}")
        if not -(1 << 31) <= given < 1 << 31:
            raise Failure(f"{place}: its key does not fit 32 bits")
        return given
    if form == "typed" and isinstance(given, dict):
        value = _value(given, f"{place}: its key", types=True)
        if not isinstance(value, Value):
            raise Failure(f'{place}: its key has no "type"')
        return as_key(value)
    if not isinstance(given, str):
        raise Failure(f"{place}: a key is a string, not {_name(given)}")
    _encodable(given, f"{place}: its key")
    key: HeaderKey = _at(f"{place}: its key", read_key, given, form)
    return key


def _field(name: str, given: Any, of: str) -> Any:
    if name == "headers" or given is None:
        return None
    place = f'JSON: "{name}"'
    if of == "binary":
        return _value(given, place)
    if of == "bool":
        if not isinstance(given, bool):
            raise Failure(f"{place} is true or false, not {_name(given)}")
        return given
    if isinstance(given, bool) or not isinstance(given, int):
        raise Failure(f"{place} is a whole number, not {_name(given)}")
    low, high = (0, 1 << 64) if of.startswith("decimal") else (-(1 << 63), 1 << 63)
    if not low <= given < high:
        raise Failure(f"{place} does not fit 64 bits")
    return given


def _value(given: Any, place: str, *, types: bool = False) -> bytes | Value | None:
    """Read a value: null, a string, or bytes spelt one or more times, the same each time."""
    if given is None:
        return None
    if isinstance(given, str):
        return _encodable(given, place)
    spellings = [*SPELLINGS, "type"] if types else SPELLINGS
    if not isinstance(given, dict) or not set(given) - {"type"} or any(name not in spellings for name in given):
        raise Failure(f'{place}: a value is null, a string, or an object with "hex", "text" or "base64"')
    for name, text in given.items():
        if not isinstance(text, str):
            raise Failure(f'{place}: "{name}" is a string, not {_name(text)}')
    type = given.get("type")
    if type is not None:
        type = _at(place, check_type, type)
    read = {name: _spelt(name, text, type, place) for name, text in given.items() if name != "type"}
    if len(set(read.values())) > 1:
        raise Failure(f"{place}: {' and '.join(read)} are not the same bytes: change both, or leave one out")
    data = next(iter(read.values()))
    return data if type is None else of_message(type, data)


def _spelt(name: str, text: str, type: str | None, place: str) -> bytes:
    if name == "hex":
        return parse_hex(text, f"{place}: hex")
    if name == "base64":
        return parse_base64(text, f"{place}: base64")
    data = _encodable(text, place) if type != "char" else b""
    return data if type is None else _at(place, of_text, type, text).bits


def _at(place: str, read: Any, *given: Any) -> Any:
    """Read something, and say where it stands if it cannot be read."""
    try:
        return read(*given)
    except Failure as error:
        raise Failure(f"{place}: {error}") from error


def _encodable(text: str, place: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Failure(f"{place} has a lone surrogate, which UTF-8 does not have") from error


def _name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
