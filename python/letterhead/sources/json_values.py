"""Parse bytes, typed values and headers in JSON: :func:`bytes_or_value` and :func:`headers_value`.

This is the JSON that letterhead writes, and reads in tables of JSON lines and in ``letterhead encode``. A value is
null, a string, or an object with "base64" or "hex"; a typed value is an object with "type" and "value", or with "type"
and "base64".
"""

from __future__ import annotations

import decimal
import re
from typing import Any

import letterhead as lh
from letterhead._strict_json import JsonError
from letterhead._value_text import check_type, parse_base64, parse_hex, parse_value
from letterhead.headers import HeaderKey
from letterhead.values import String, Value, value_from_message

__all__ = ["INTEGER_TYPE", "bytes_or_value", "headers_value", "integer", "json_type"]

INTEGER_TYPE = re.compile(r"u?int\d+")


def headers_value(document: Any, form: str, *, strings_have_types: bool) -> lh.Headers | None:
    """Parse a list of objects with "key" and "value"; ``form`` is the form of keys: text, int or typed."""
    if document is None:
        return None
    if not isinstance(document, list):
        raise JsonError(f'JSON: "headers" is a list, not {json_type(document)}')
    headers = lh.Headers()
    for index, item in enumerate(document):
        label = f"JSON: header {index}"
        if not isinstance(item, dict) or set(item) != {"key", "value"}:
            raise JsonError(f'{label}: an object with "key" and "value" is needed')
        value = bytes_or_value(item["value"], label, types=True)
        if strings_have_types and isinstance(item["value"], str):
            value = String(item["value"])
        headers.add(_key(item["key"], form, label), value)
    return headers


def _key(document: Any, form: str, label: str) -> HeaderKey:
    label = f"{label}: its key"
    if form == "int":
        return integer(document, label, -(1 << 31), 1 << 31)
    if form == "typed" and isinstance(document, dict):
        value = bytes_or_value(document, label, types=True)
        if not isinstance(value, Value):
            raise JsonError(f'{label} has no "type"')
        return lh.Headers([(value, None)])[0].key  # UTF-8 strings become str
    if not isinstance(document, str):
        raise JsonError(f"{label} is a string, not {json_type(document)}")
    _encodable(document, label)
    return document


def integer(number: Any, label: str, low: int, high: int) -> int:
    """Parse an integer from ``low`` to ``high``, a number or a string of its digits."""
    if isinstance(number, str) and re.fullmatch(r"-?[0-9]{1,40}", number):
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise JsonError(f"{label} is a whole number, not {json_type(number)}")
    if not low <= number < high:
        raise JsonError(f"{label} does not fit {(high - low).bit_length() - 1} bits")
    return number


def bytes_or_value(document: Any, label: str, *, types: bool = False) -> bytes | Value | None:
    """Parse the value of a header: null, a string, an object with base64 or hex, or an object with a type."""
    if document is None:
        return None
    if isinstance(document, str):
        return _encodable(document, label)
    type = document.get("type") if isinstance(document, dict) and types else None
    names = {"value", "base64", "hex"} if type is not None else {"base64", "hex"}
    if not isinstance(document, dict) or len(document) != 1 + (type is not None) or not names.intersection(document):
        typed = ', or with "type" and "value"' if types else ""
        raise JsonError(f'{label}: a value is null, a string, or an object with "base64" or "hex"{typed}')
    if type is not None:
        if not isinstance(type, str):
            raise JsonError(f'{label}: "type" is a string, not {json_type(type)}')
        type = _with_label(label, check_type, type)
    if type is not None and "value" in document:
        return _read_typed_value(type, document["value"], label)
    for name, parse in (("base64", parse_base64), ("hex", parse_hex)):
        if name in document:
            if not isinstance(document[name], str):
                raise JsonError(f'{label}: "{name}" is a string, not {json_type(document[name])}')
            bits = parse(document[name], f"{label}: {name}")
    return bits if type is None else value_from_message(type, bits)


def _read_typed_value(type: str, document: Any, label: str) -> Value:
    """Parse the value of an object with a type."""
    is_number = isinstance(document, int | float | decimal.Decimal) and not isinstance(document, bool)
    if type == "bool":
        fits, expected = isinstance(document, bool), "true or false"
    elif INTEGER_TYPE.fullmatch(type):
        fits, expected = isinstance(document, int | str) and not isinstance(document, bool), "a whole number"
    elif type in ("float32", "float64"):
        fits, expected = is_number or isinstance(document, str), "a number"
    else:
        fits, expected = isinstance(document, str), "a string"
    if not fits:
        raise JsonError(f'{label}: "value" of type {type} is {expected}, not {json_type(document)}')
    if isinstance(document, str) and type != "char":
        _encodable(document, label)
    value: Value = _with_label(
        label, parse_value, type, str(document).lower() if isinstance(document, bool) else str(document)
    )
    return value


def _with_label(label: str, parse: Any, *arguments: Any) -> Any:
    """Call a parser; errors name the location in the document."""
    try:
        return parse(*arguments)
    except ValueError as error:
        raise JsonError(f"{label}: {error}") from error


def _encodable(text: str, label: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise JsonError(f"{label} has a lone surrogate, which UTF-8 does not have") from error


def json_type(value: Any) -> str:
    """Return the type of a JSON value, for errors."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
