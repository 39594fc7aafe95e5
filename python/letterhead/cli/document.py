"""Messages as JSON: `letterhead decode --json` and every other command print the form that `letterhead encode` reads.

    {"headers": [{"key": "tenant", "value": "acme"}], "timestamp": "2026-01-01T00:00:00.000Z", "payload": {"base64": "AP8="}}

A value is null, a string if it is text, or else an object with "base64"; text is UTF-8 without control characters other
than tabs and ends of lines. A value with a type is an object with "type" and "value", or "base64" if its bits are not
valid; in formats with types, strings are plain JSON strings. Integers that a double cannot represent are strings of
digits, and times are ISO 8601, or milliseconds since 1970 as numbers. A key is a string, a number in formats with
integer keys, and in formats with typed keys an object like a value if it is not a string. The schema is
docs/reference/record.schema.json; :func:`letterhead._native.json_lines` writes rows of Arrow columns in the same form.
"""

from __future__ import annotations

import base64
import decimal
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import letterhead as lh
from letterhead._formats import format_table
from letterhead._formatting import iso_time
from letterhead._value_text import text_of
from letterhead.cli.exits import Failure
from letterhead.cli.formats import in_microseconds, row_of
from letterhead.headers import HeaderValue
from letterhead.sources.json_values import INTEGER_TYPE, bytes_or_value, headers_value, integer, json_type
from letterhead.values import value_from_message

# Fields that the format fills in if missing.
OPTIONAL = ("offset", "crc", "checksum", "magic", "attributes", "key", "id", "origin_timestamp", "tombstone")
# Columns that letterhead's JSON adds to the fields of a format: location and errors of a record.
PLACES = ("topic", "partition", "stream", "task", "store", "row", "error")
# Additional fields of records that are not part of any format.
OTHER_FIELDS = ("window_start", "window_end", "session_start", "session_end", "valid_from", "valid_to")
# Names of the content that headers describe: a value in Kafka's logs and in stores, a payload in other formats.
CONTENTS = {"value": "payload", "payload": "value"}
# Largest integer up to which doubles, which most JSON readers use, represent all integers.
MAX_EXACT = (1 << 53) - 1
# Bytes that do not occur in text but in most binary numbers. A value with such a byte is not shown as text, so the
# numbers of a column look alike.
CONTROLS = frozenset({*range(0x20), 0x7F} - {*b"\t\n\r"})
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,12})?")


def to_json(fields: Mapping[str, Any], format: str, *, epoch_ms: bool = False) -> dict[str, Any]:
    """Return the fields of a message as JSON values without loss."""
    micros = in_microseconds(format)
    return {
        name: headers_json(headers_of(value))
        if name == "headers" and value is not None
        else time_json(value, microseconds=micros, epoch_ms=epoch_ms)
        if is_time(name) and isinstance(value, int)
        else other_json(value)
        for name, value in fields.items()
    }


def headers_json(headers: lh.Headers) -> list[dict[str, Any]]:
    """Return headers as JSON values."""
    return [
        {"key": key if isinstance(key, str | int) else value_json(key), "value": value_json(value)}
        for key, value in headers
    ]


def value_json(value: HeaderValue) -> Any:
    """Return a value as JSON."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return bytes_json(value)
    if value.type == "string":
        try:
            return value.bits.decode("utf-8")
        except UnicodeDecodeError:
            return {"type": value.type, **_base64(value.bits)}
    if value.type == "binary":
        data = bytes_json(value.bits)
        return {"type": value.type, **({"value": data} if isinstance(data, str) else data)}
    text = text_of(value)
    if text is None:
        return {"type": value.type, **_base64(value.bits)}
    return {"type": value.type, "value": _type_json(value.type, text)}


def bytes_json(data: bytes) -> Any:
    """Return bytes as a string if they are text, otherwise as an object with base64."""
    if not CONTROLS.isdisjoint(data):
        return _base64(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _base64(data)


def time_json(time: int, *, microseconds: bool = False, epoch_ms: bool = False) -> Any:
    """Return a time as ISO 8601 in UTC, or as milliseconds if requested or if its year does not have four digits."""
    text = None if epoch_ms else iso_time(time, "microseconds" if microseconds else "milliseconds")
    if text is not None:
        return text
    if not microseconds:
        return integer_json(time)
    if time % 1000 == 0:
        return integer_json(time // 1000)
    # A double preserves the decimals if it can hold twice the number.
    return time / 1000 if 2 * abs(time) <= MAX_EXACT else str(decimal.Decimal(time).scaleb(-3))


def is_time(name: str) -> bool:
    """Return whether a field of a message is a time."""
    return name.endswith("timestamp")


def other_json(value: Any) -> Any:
    """Return any other value as JSON: bytes as text or base64, values without a JSON type as text."""
    if isinstance(value, bytes):
        return bytes_json(value)
    if isinstance(value, Mapping):
        return {str(name): other_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [other_json(item) for item in value]
    if isinstance(value, decimal.Decimal) and value == int(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return integer_json(value)
    return value if value is None or isinstance(value, float | str | bool) else str(value)


def integer_json(number: int) -> int | str:
    """Return an integer, or its digits if most JSON readers would round it."""
    return number if abs(number) <= MAX_EXACT else str(number)


def headers_of(headers: lh.Headers | Iterable[Mapping[str, Any]]) -> lh.Headers:
    """Return headers from an element of a list column."""
    if isinstance(headers, lh.Headers):
        return headers
    rows = [
        (_type_value(row.get("key_type"), row["key"]), _type_value(row.get("type"), row["value"])) for row in headers
    ]
    return lh.Headers(rows)


def read_message(document: Any, format: str, *, with_types: bool = False, left_out: set[str] | None = None) -> Any:
    """Return headers or a message for `letterhead.encode` from a JSON document.

    Fields of other formats' records are ignored, and added to ``left_out``; unknown names are errors.
    """
    row = row_of(format)
    fields = dict(row.fields)
    if not isinstance(document, dict):
        raise Failure(f'JSON: an object with "headers" is needed, not {json_type(document)}')
    for name, other in CONTENTS.items():
        if name in fields and name not in document and other in document and other not in fields:
            document = {name if field == other else field: value for field, value in document.items()}
    others = [name for name in document if name not in fields]
    unknown = [name for name in others if name not in _fields_of_records()]
    if unknown:
        raise Failure(f"JSON: {format} has no field {unknown[0]!r}: it has {', '.join(fields)}")
    if left_out is not None:
        left_out.update(name for name in others if name not in PLACES)
    required = ("headers",) if row.is_ == "batch" else [name for name in fields if name not in OPTIONAL]
    missing = [name for name in required if name not in document]
    if missing:
        raise Failure(f'JSON: "{missing[0]}" is missing: {format} has {", ".join(fields)}')
    headers = headers_value(document["headers"], row.keys, strings_have_types=row.types and not with_types)
    if list(fields) == ["headers"]:
        return headers
    message_fields = {
        name: _field(name, document[name], arrow_type, format)
        for name, arrow_type in fields.items()
        if name in document and name != "headers"
    }
    return lh.Message(**message_fields, headers=headers)


def _fields_of_records() -> set[str]:
    return {name for row in format_table().values() for name, _ in row.fields}.union(PLACES, OTHER_FIELDS)


def _type_value(type: str | None, bits: Any) -> Any:
    return bits if bits is None or type is None else value_from_message(type, bits)


def _base64(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def _type_json(type: str, text: str) -> Any:
    if type == "bool":
        return text == "true"
    if INTEGER_TYPE.fullmatch(type):
        return integer_json(int(text))
    if type in ("float32", "float64") and text not in ("NaN", "Infinity", "-Infinity"):
        return float(text)
    return text


def _field(name: str, document: Any, arrow_type: str, format: str) -> Any:
    if document is None:
        return None
    label = f'JSON: "{name}"'
    if arrow_type == "binary":
        return bytes_or_value(document, label)
    if arrow_type == "string":
        if not isinstance(document, str):
            raise Failure(f"{label} is a string, not {json_type(document)}")
        return document
    if arrow_type == "bool":
        if not isinstance(document, bool):
            raise Failure(f"{label} is true or false, not {json_type(document)}")
        return document
    if is_time(name):
        return _time(document, label, microseconds=in_microseconds(format))
    return integer(document, label, *((0, 1 << 64) if arrow_type.startswith("decimal") else (-(1 << 63), 1 << 63)))


def _time(document: Any, label: str, *, microseconds: bool) -> int:
    """Read a time as ISO 8601 with a zone, or a number of milliseconds since 1970."""
    if isinstance(document, str) and not NUMBER.fullmatch(document):
        try:
            moment = datetime.fromisoformat(document)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise Failure(
                f"{label} is neither a time with a zone, such as 2026-01-01T08:30:00Z, nor milliseconds since 1970"
            )
        number, rest = divmod(moment - EPOCH, timedelta(microseconds=1 if microseconds else 1000))
        if rest:
            raise Failure(f"{label} has more digits than the milliseconds that the format keeps")
        return number
    if not isinstance(document, int | str | decimal.Decimal) or isinstance(document, bool):
        raise Failure(f"{label} is a time or a number of milliseconds, not {json_type(document)}")
    milliseconds = decimal.Decimal(document)
    if not microseconds and milliseconds != milliseconds.to_integral_value():
        raise Failure(f"{label} has more digits than the milliseconds that the format keeps")
    # A JSON reader that uses doubles may have changed a digit after the microseconds.
    return integer(round(milliseconds.scaleb(3) if microseconds else milliseconds), label, -(1 << 63), 1 << 63)
