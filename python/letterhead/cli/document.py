"""Messages as JSON: `letterhead decode --json` prints what `letterhead encode` reads.

    {"headers": [{"key": "tenant", "value": {"hex": "61636d65", "text": "acme"}}], "timestamp": 1767225600000, …}

`decode` prints a value as null, or as an object with "hex" and, if it is text, "text". Typed values also have "type"; their
"hex" holds the bits, most significant byte first. `encode` needs "hex", "text" or "base64", and takes a string as
text (`"acme"`) or as a typed value (`"int32:3"`), which a format without types takes only with --types. A key is a string, a
number in formats with integer keys, and in formats with typed keys a string like `"int32:3"` or an object like a value.
"""

from __future__ import annotations

import contextlib
import decimal
import json
from collections.abc import Iterable, Mapping
from typing import Any

import letterhead as lh
from letterhead.cli.exits import Failure
from letterhead.cli.formats import row_of
from letterhead.cli.source import parse_base64, parse_hex
from letterhead.cli.spelling import KeyForm, as_key, check_type, looks_typed, of_text, read_key, read_value, spell_key
from letterhead.headers import HeaderKey, HeaderValue
from letterhead.value_text import text_of
from letterhead.values import Value, of_message

SPELLINGS = ("hex", "text", "base64")
# The format fills in these fields if they are missing.
OPTIONAL = ("offset", "crc", "checksum", "magic", "attributes", "key", "id", "origin_timestamp", "tombstone")


def to_json(fields: Mapping[str, Any], format: str, *, headers: str = "headers") -> dict[str, Any]:
    """Return the fields of a message, and other columns of its row, as JSON values without loss."""
    form: KeyForm = row_of(format)["keys"]
    return {
        name: headers_json(headers_of(value), form) if name == headers and value is not None else plain(value)
        for name, value in fields.items()
    }


def headers_json(headers: lh.Headers, form: KeyForm) -> list[dict[str, Any]]:
    """Return headers as JSON values."""
    return [{"key": _key_json(key, form), "value": value_json(value)} for key, value in headers]


def value_json(value: HeaderValue) -> dict[str, str] | None:
    """Return a value as JSON: its type if it has one, its bits as hex, and its text if it has one."""
    if value is None:
        return None
    document = {"hex": value.hex()} if isinstance(value, bytes) else {"type": value.type, "hex": value.bits.hex()}
    text = text_of(value) if isinstance(value, Value) else None
    if text is not None:
        document["text"] = text
    elif isinstance(value, bytes) or value.type == "binary":
        with contextlib.suppress(UnicodeDecodeError):
            document["text"] = (value if isinstance(value, bytes) else value.bits).decode("utf-8")
    return document


def plain(value: Any) -> Any:
    """Return any other value as JSON: bytes as hex and text, types that JSON lacks as text."""
    if isinstance(value, bytes):
        return value_json(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, decimal.Decimal) and value == int(value):
        return int(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def headers_of(headers: lh.Headers | Iterable[Mapping[str, Any]]) -> lh.Headers:
    """Return headers from an element of a list column."""
    if isinstance(headers, lh.Headers):
        return headers
    rows = [(_typed(row.get("key_type"), row["key"]), _typed(row.get("type"), row["value"])) for row in headers]
    return lh.Headers(rows)


def read_message(document: Any, format: str, *, with_types: bool = False) -> Any:
    """Return what `letterhead.encode` takes for a format, headers or a message, from a JSON document."""
    if row_of(format)["is_"] == "batch":
        raise Failure(f"{format} is a batch: its messages are written one by one")
    fields = dict(row_of(format)["fields"])
    if not isinstance(document, dict):
        raise Failure(f'JSON: an object with "headers" is needed, not {_json_type(document)}')
    unknown = [name for name in document if name not in fields]
    if unknown:
        raise Failure(f"JSON: {format} has no field {unknown[0]!r}: it has {', '.join(fields)}")
    missing = [name for name in fields if name not in document and name not in OPTIONAL]
    if missing:
        raise Failure(f'JSON: "{missing[0]}" is missing: {format} has {", ".join(fields)}')
    headers = _headers(document["headers"], format, with_types=with_types)
    if list(fields) == ["headers"]:
        return headers
    message_fields = {
        name: _field(name, document[name], arrow_type)
        for name, arrow_type in fields.items()
        if name in document and name != "headers"
    }
    return lh.Message(**message_fields, headers=headers)


def _typed(type: str | None, bits: Any) -> Any:
    return bits if bits is None or type is None else of_message(type, bits)


def _key_json(key: HeaderKey, form: KeyForm) -> Any:
    if isinstance(key, int):
        return key
    text = spell_key(key, form)
    if isinstance(key, Value):
        with contextlib.suppress(Failure):
            if read_key(text, form) == key:
                return text
        return {"type": key.type, "hex": key.bits.hex()}
    return text


def _headers(document: Any, format: str, *, with_types: bool) -> lh.Headers | None:
    if document is None:
        return None
    if not isinstance(document, list):
        raise Failure(f'JSON: "headers" is a list, not {_json_type(document)}')
    form, with_types = row_of(format)["keys"], with_types or bool(row_of(format)["types"])
    headers = lh.Headers()
    for index, item in enumerate(document):
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
        typed = _naming_place(place, read_value, value) if with_types and isinstance(value, str) else None
        headers.add(key, _value(value, place, types=True) if typed is None else typed)
    return headers


def _key(document: Any, form: KeyForm, place: str) -> HeaderKey:
    if form == "int":
        return _integer(document, f"{place}: a key", -(1 << 31), 1 << 31)
    if form == "typed" and isinstance(document, dict):
        value = _value(document, f"{place}: its key", types=True)
        if not isinstance(value, Value):
            raise Failure(f'{place}: its key has no "type"')
        return as_key(value)
    if not isinstance(document, str):
        raise Failure(f"{place}: a key is a string, not {_json_type(document)}")
    _encodable(document, f"{place}: its key")
    key: HeaderKey = _naming_place(f"{place}: its key", read_key, document, form)
    return key


def _field(name: str, document: Any, arrow_type: str) -> Any:
    if document is None:
        return None
    place = f'JSON: "{name}"'
    if arrow_type == "binary":
        return _value(document, place)
    if arrow_type == "bool":
        if not isinstance(document, bool):
            raise Failure(f"{place} is true or false, not {_json_type(document)}")
        return document
    return _integer(document, place, *((0, 1 << 64) if arrow_type.startswith("decimal") else (-(1 << 63), 1 << 63)))


def _integer(number: Any, place: str, low: int, high: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise Failure(f"{place} is a whole number, not {_json_type(number)}")
    if not low <= number < high:
        raise Failure(f"{place} does not fit {(high - low).bit_length() - 1} bits")
    return number


def _value(document: Any, place: str, *, types: bool = False) -> bytes | Value | None:
    """Read a value: null, a string, or an object whose spellings agree."""
    if document is None:
        return None
    if isinstance(document, str):
        return _encodable(document, place)
    spellings = [*SPELLINGS, "type"] if types else SPELLINGS
    if (
        not isinstance(document, dict)
        or not set(document) - {"type"}
        or any(name not in spellings for name in document)
    ):
        raise Failure(f'{place}: a value is null, a string, or an object with "hex", "text" or "base64"')
    for name, text in document.items():
        if not isinstance(text, str):
            raise Failure(f'{place}: "{name}" is a string, not {_json_type(text)}')
    type = document.get("type")
    if type is not None:
        type = _naming_place(place, check_type, type)
    bytes_by_spelling = {
        name: _decode_spelling(name, text, type, place) for name, text in document.items() if name != "type"
    }
    if len(set(bytes_by_spelling.values())) > 1:
        raise Failure(
            f"{place}: {' and '.join(bytes_by_spelling)} are not the same bytes: change both, or leave one out"
        )
    data = next(iter(bytes_by_spelling.values()))
    return data if type is None else of_message(type, data)


def _decode_spelling(name: str, text: str, type: str | None, place: str) -> bytes:
    if name == "hex":
        return parse_hex(text, f"{place}: hex")
    if name == "base64":
        return parse_base64(text, f"{place}: base64")
    data = _encodable(text, place) if type != "char" else b""
    return data if type is None else _naming_place(place, of_text, type, text).bits


def _naming_place(place: str, parse: Any, *arguments: Any) -> Any:
    """Call a reader; its failure names the place in the document."""
    try:
        return parse(*arguments)
    except Failure as error:
        raise Failure(f"{place}: {error}") from error


def _encodable(text: str, place: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Failure(f"{place} has a lone surrogate, which UTF-8 does not have") from error


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
