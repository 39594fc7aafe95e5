"""The operations of this package with plain values in and out, so that rules are written as literals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import ErrorDetail
from letterhead.headers import Headers
from letterhead.values import value_from_message
from tests.helpers.implementations import binary_column, columns_of, detail_of, from_row, messages, plain, values
from tests.helpers.list_columns import list_type
from tests.helpers.outcomes import selected

RowErrors = list[ErrorDetail] | None


def decode(data: bytes, format: str, **options: Any) -> Any:
    """Decode one message: ``(key, type, bits)`` for a header, a dict of the fields for a message format."""
    return plain(lh.decode(data, format, **options))


def decode_rows(rows: list[bytes | None], format: str, **options: Any) -> list[Any]:
    """Decode a column; a row has a field ``error`` with ``errors="column"``."""
    decoded = [from_row(row) for row in lha.decode(binary_column(rows), format, **options).to_pylist()]
    for row in decoded:
        if isinstance(row, dict) and "error" in row:
            row["error"] = _details(row["error"])
    return decoded


def validate(data: bytes, format: str, **options: Any) -> list[ErrorDetail]:
    """Return the errors of one message."""
    return [detail_of(error) for error in lh.validate(data, format, **options)]


def select(data: bytes, format: str, columns: Any, **options: Any) -> dict[str, Any]:
    """Read some headers of one message."""
    return lh.select(data, columns, format=format, **options)


def select_rows(rows: list[Any], format: str, columns: Any, **options: Any) -> dict[str, list[Any]]:
    """Read some headers of a column of bytes, or of lists of headers."""
    is_lists = options.pop("lists", False) or any(isinstance(row, list) for row in rows)
    column = _lists(rows, format) if is_lists else binary_column(rows)
    result = selected(lha.select(column, columns, format=format, **options))
    return {name: [*map(_details, part)] if name == "error" else part for name, part in result.items()}


def read_value(type: str, data: bytes) -> Any:
    """Read the value of a header as a type."""
    [column] = lha.select(binary_column([_one_value(data)]), {"v": type}).flatten()
    [value] = columns_of(pa.RecordBatch.from_arrays([column], ["v"]))["v"]
    return value


def value_at(data: bytes) -> int:
    """Return the byte at which a value begins, of which :func:`read_value` reports errors."""
    return len(_one_value(data)) - len(data)


def spelled(type: str, bits: bytes, types: Any) -> bytes | None:
    """Return the bytes of a typed value in a format without types."""
    [(_, value)] = lh.decode(lh.encode([("v", value_from_message(type, bits))], "kafka", types=types) or b"", "kafka")
    assert not isinstance(value, lh.Value)
    return value


def encode(message: Any, format: str, **options: Any) -> bytes | None:
    """Encode one message."""
    if isinstance(message, dict):
        fields = message["headers"]
        return lh.encode(lh.Message(**{**message, "headers": _headers(fields)}), format, **options)
    return lh.encode(_headers(message), format, **options)


def encode_rows(rows: list[Any], format: str, **options: Any) -> list[Any]:
    """Encode a column; a row has its bytes and losses with ``on_loss="report"``."""
    encoded = lha.encode(messages(rows, format), format, **options).to_pylist()
    for row in encoded:
        if isinstance(row, dict):
            row["losses"] = [lh.Loss(**loss) for loss in row["losses"]]
    return encoded


def _headers(headers: Any) -> Any:
    triples = isinstance(headers, list) and all(len(header) == 3 for header in headers)
    return values(headers) if triples and not isinstance(headers, Headers) else headers


def _lists(rows: list[Any], format: str) -> Any:
    structs = [
        row
        and [header if isinstance(header, dict) else dict(zip(("key", "value"), header, strict=True)) for header in row]
        for row in rows
    ]
    typed = any("type" in header for row in structs for header in row or ())
    return pa.array(structs, list_type(format, typed=typed))


def _details(errors: list[dict[str, Any]] | None) -> RowErrors:
    return errors and [ErrorDetail(**error) for error in errors]


def _one_value(data: bytes) -> bytes:
    return lh.encode([("v", data)], "kafka") or b""
