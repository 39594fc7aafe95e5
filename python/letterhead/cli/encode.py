"""`letterhead encode`: JSON, as `letterhead decode --json` gives it, into the bytes of one cell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import letterhead as lh
from letterhead import _native
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.source import parse_base64, parse_hex, read_bytes, reason

SPELLINGS = ("hex", "text", "base64")


def run_encode(file: str | None, format: str, *, as_hex: bool, out: Path | None) -> int:
    """Encode one JSON document and write the bytes to standard output or to a file."""
    if out is None and not as_hex and sys.stdout.isatty():
        raise Failure("bytes are not written to a terminal: use --hex, --out FILE, or a pipe")
    message = read_message(_parse(read_bytes(file)), format)
    try:
        data = lh.encode(message, format)
    except lh.errors.HeaderError:
        raise
    except (ValueError, TypeError) as error:
        raise Failure(str(error)) from error
    if data is None:
        raise Failure(f"{format}: a null payload is a tombstone: the cell is null and has no bytes", FAULTS)
    if as_hex:
        data = data.hex().encode() + b"\n"
    if out is not None:
        try:
            out.write_bytes(data)
        except OSError as error:
            raise Failure(f"cannot write {out}: {reason(error)}") from error
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return OK


def read_message(document: Any, format: str) -> Any:
    """Turn a JSON document into what `letterhead.encode` takes for a format: headers, or an envelope."""
    fields = _fields(format)
    if not isinstance(document, dict):
        raise Failure(f'JSON: an object with "headers" is needed, not {_name(document)}')
    unknown = [name for name in document if name not in fields]
    if unknown:
        raise Failure(f"JSON: {format} has no field {unknown[0]!r}: it has {', '.join(fields)}")
    missing = [name for name in fields if name not in document]
    if missing:
        raise Failure(f'JSON: "{missing[0]}" is missing: {format} has {", ".join(fields)}')
    headers = _headers(document["headers"])
    if list(fields) == ["headers"]:
        return headers
    others = {name: _field(name, document[name], fields[name]) for name in fields if name != "headers"}
    return lh.Envelope(headers=headers, **others)


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise Failure("JSON: the input is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise Failure(f"JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or thousands of brackets in each other.
        raise Failure("JSON: a number or a nesting beyond all bounds") from error


def _fields(format: str) -> dict[str, str]:
    """Name the fields of a format with their Arrow types; a block has the one field `headers`."""
    try:
        lh.validate(b"", format)
    except ValueError as error:
        raise Failure(str(error)) from error
    row = next(row for row in _native.formats() if row["name"] == format)
    return {"headers": "list", **{name: kind for name, kind in row["fields"] if name != "headers"}}


def _headers(given: Any) -> Any:
    if given is None:
        return None
    if not isinstance(given, list):
        raise Failure(f'JSON: "headers" is a list, not {_name(given)}')
    headers = lh.Headers()
    for index, item in enumerate(given):
        place = f"JSON: header {index}"
        if not isinstance(item, dict) or set(item) != {"key", "value"}:
            raise Failure(f'{place}: an object with "key" and "value" is needed')
        if not isinstance(item["key"], str):
            raise Failure(f"{place}: a key is a string, not {_name(item['key'])}")
        _encodable(item["key"], f"{place}: its key")
        headers.add(item["key"], _value(item["value"], place))
    return headers


def _field(name: str, given: Any, kind: str) -> Any:
    if "binary" in kind.lower():
        return _value(given, f'JSON: "{name}"')
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise Failure(f'JSON: "{name}" is a whole number, not {_name(given)}')
    if given is not None and not -(2**63) <= given < 2**63:
        raise Failure(f'JSON: "{name}" does not fit 64 bits')
    return given


def _value(given: Any, place: str) -> bytes | None:
    """Read a value: null, a string, or bytes spelt one or more times, the same each time."""
    if given is None:
        return None
    if isinstance(given, str):
        return _encodable(given, place)
    if not isinstance(given, dict) or not given or any(name not in SPELLINGS for name in given):
        raise Failure(f'{place}: a value is null, a string, or an object with "hex", "text" or "base64"')
    for name, text in given.items():
        if not isinstance(text, str):
            raise Failure(f'{place}: "{name}" is a string, not {_name(text)}')
    read = {name: _spelt(name, text, place) for name, text in given.items()}
    if len(set(read.values())) > 1:
        raise Failure(f"{place}: {' and '.join(read)} are not the same bytes: change both, or leave one out")
    return next(iter(read.values()))


def _spelt(name: str, text: str, place: str) -> bytes:
    if name == "text":
        return _encodable(text, place)
    try:
        return parse_hex(text) if name == "hex" else parse_base64(text)
    except Failure as error:
        raise Failure(f"{place}: {str(error).removeprefix('--')}") from error


def _encodable(text: str, place: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Failure(f"{place} has a lone surrogate, which UTF-8 does not have") from error


def _name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
