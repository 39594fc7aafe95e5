"""JSON lines as a table: :func:`json_lines_table`.

The first lines determine the columns and their types. If a column cannot hold a value of a line exactly, an error names
the line and the column.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from letterhead._arrow_types import HEADER_FIELDS
from letterhead._names import join_names
from letterhead._strict_json import STRING, JsonError, parse_json
from letterhead._table_batches import BATCH_ROWS
from letterhead._value_text import parse_base64
from letterhead.errors import DamagedTableError
from letterhead.limits import Limits, how_to_raise
from letterhead.sources.json_kinds import Misfit, arrow_type, convert_value, describe_type, is_bytes, merge_types
from letterhead.sources.json_values import headers_value
from letterhead.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BOM", "json_lines_table"]

BYTE_COLUMNS = ("key", "value", "payload")
"""Columns whose text represents bytes, as ``read --json`` prints them."""

TIME_COLUMNS = (
    "timestamp", "origin_timestamp", "window_start", "window_end", "session_start", "session_end", "valid_from", "valid_to",
)  # fmt: skip
"""Columns of records and stores whose times are printed as text."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
_MILLIS_LEN = len(".000")

_PIECE = 1 << 20
_BATCH_BYTES = 8 << 20
_GROUP_ROWS = 1000
_MOST_CELLS = 1 << 20
"""Limit of rows times columns in a batch."""

_SPARSE = 100
"""Expansion that is always allowed: a table may have this many values per value in the lines, regardless of the limit."""

BOM = b"\xef\xbb\xbf"


class _Row(NamedTuple):
    line: int
    document: dict[str, Any]
    byte_len: int


class _Column(NamedTuple):
    """Column with its type, the type of values that pyarrow converts directly, and a conversion for all other values."""

    type: pa.DataType
    plain: frozenset[type]
    convert: Callable[[Any], Any]
    build: Callable[[Sequence[Any]], pa.Array | None] | None = None
    """Function that builds an array from common values at once; None is returned for other values."""


def json_lines_table(
    file: BinaryIO, label: str, limits: Limits | None, *, is_compressed: bool
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of a table, and its batches, which can be read once.

    Parameters
    ----------
    file : binary file
        Objects, one per line.
    label : str
        Name of the file in errors.
    limits : Limits or None
        ``message_bytes`` limits a line, ``decompressed_bytes`` a line of a compressed file, and ``headers`` the
        elements and fields of a line, and the number of values in the table of the first lines.
    is_compressed : bool
        Whether ``file`` decompresses a compressed file.

    Raises
    ------
    DamagedTableError
        If a line is not a JSON object, exceeds a limit, or contains a value that does not fit its column.
    """
    import pyarrow as pa

    filled = (limits or Limits()).filled()
    groups = _group_rows(_rows(file, label, filled, "decompressed_bytes" if is_compressed else "message_bytes"))
    first = next(groups, [])
    columns = _columns(first, label, filled.headers or 0)
    schema = pa.schema([(name, column.type) for name, column in columns.items()])
    return schema, _table_batches(chain([first], groups), columns, schema, label, len(first))


def _columns(rows: Sequence[_Row], label: str, most: int) -> dict[str, _Column]:
    """Return the columns of the first rows."""
    values: dict[str, list[tuple[int, Any]]] = {}
    for row in rows:
        for name, value in row.document.items():
            values.setdefault(name, []).append((row.line, value))
    cells = len(rows) * len(values)
    if cells > max(most, _SPARSE * sum(map(len, values.values()))):
        raise DamagedTableError(
            f"{label}: the first {len(rows):,} lines have {len(values):,} names, and few of them occur on a line: as a table "
            f"they have {cells:,} values, over the limit of {most:,}: {how_to_raise('headers')}"
        )
    return {name: _column(name, lines, label) for name, lines in values.items()}


def _table_batches(
    groups: Iterator[list[_Row]], columns: Mapping[str, _Column], schema: pa.Schema, label: str, count: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    size = max(1, _MOST_CELLS // max(len(columns), 1))
    parts: list[pa.RecordBatch] = []
    for group in groups:
        for start in range(0, len(group), size):
            parts.append(_batch(group[start : start + size], columns, schema, label, count))
            if sum(map(len, parts)) >= min(BATCH_ROWS, size):
                yield parts[0] if len(parts) == 1 else pa.concat_batches(parts)
                parts = []
    if parts:
        yield parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def _rows(file: BinaryIO, label: str, limits: Limits, line_limit: str) -> Iterator[_Row]:
    most, most_elements = getattr(limits, line_limit), limits.headers or 0
    for number, line in _lines(file, label, most, line_limit):
        # Python objects for short elements take many times as much memory as their text.
        if line.count(b",") > most_elements and _has_more_elements(line, most_elements):
            raise DamagedTableError(
                f"{label}: line {number} has more than {most_elements:,} elements: {how_to_raise('headers')}"
            )
        try:
            document = parse_json(line)
        except JsonError as error:
            raise DamagedTableError(f"{label}: line {number} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise DamagedTableError(f"{label}: line {number} is not an object")
        size = len(line)
        if isinstance(line, bytearray):
            line.clear()  # `_lines` would keep the line until it reads the next one
        yield _Row(number, document, size)


def _has_more_elements(line: bytes | bytearray, most: int) -> bool:
    """Return whether there are more commas outside of strings, without a copy of the line."""
    count = end = 0
    for string in STRING.finditer(line):
        count += line.count(b",", end, string.start())
        end = string.end()
        if count > most:
            return True
    return count + line.count(b",", end) > most


def _lines(file: BinaryIO, label: str, most: int, limit: str) -> Iterator[tuple[int, bytes | bytearray]]:
    """Yield non-blank lines with their numbers. A run of blank lines counts as one line against the limit."""
    number, rest, blank = 1, bytearray(), 0
    is_first = True
    while piece := file.read(_PIECE):
        if is_first:
            piece, is_first = piece.removeprefix(BOM), False
        head, newline, tail = piece.rpartition(b"\n")
        blank = blank + len(piece) if not rest and not piece.strip() else 0
        if blank + len(rest) + (0 if newline else len(piece)) > most:
            raise DamagedTableError(f"{label}: line {number} has more than {most:,} bytes: {how_to_raise(limit)}")
        if not newline:
            rest += tail
            continue
        if blank:
            number += piece.count(b"\n")
            rest = bytearray(tail)
            continue
        line: bytes | bytearray
        for line in head.split(b"\n"):
            if rest:  # not copied, because it can be as long as the limit
                rest += line
                line, rest = rest, bytearray()
            if line and not line.isspace():
                yield number, line
            number += 1
        rest = bytearray(tail)
    if rest and not rest.isspace():
        yield number, rest


def _group_rows(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    """Yield the first rows as one group, and later rows in small groups, which keep garbage collection cheap."""
    group: list[_Row] = []
    size, rows_of_group = 0, BATCH_ROWS
    for row in rows:
        group.append(row)
        size += row.byte_len
        if len(group) == rows_of_group or size >= _BATCH_BYTES:
            yield group
            group, size, rows_of_group = [], 0, _GROUP_ROWS
    if group:
        yield group


def _batch(
    rows: Sequence[_Row], columns: Mapping[str, _Column], schema: pa.Schema, label: str, count: int
) -> pa.RecordBatch:
    import pyarrow as pa

    present = set().union(*(row.document for row in rows))
    unknown = present - columns.keys()
    if unknown:
        row = next(row for row in rows if not unknown.isdisjoint(row.document))
        raise DamagedTableError(
            f"{label}: line {row.line} has a name {min(unknown & row.document.keys())!r}, which the first {count:,} lines "
            f"lack: they have {join_names(columns)}"
        )
    missing: dict[pa.DataType, pa.Array] = {}
    arrays = []
    for name, column in columns.items():
        if name in present:
            arrays.append(_array(name, column, rows, label))
        else:
            array = missing.get(column.type)
            arrays.append(missing.setdefault(column.type, pa.nulls(len(rows), column.type)) if array is None else array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(name: str, column: _Column, rows: Sequence[_Row], label: str) -> pa.Array:
    import pyarrow as pa

    values = [row.document.get(name) for row in rows]
    built = None if column.build is None else column.build(values)
    if built is not None:
        return built
    if not column.plain.issuperset(map(type, values)):
        values = [_convert(name, column, row, label) for row in rows]
    try:
        return pa.array(values, column.type)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        for row in rows:
            value = _convert(name, column, row, label)
            try:
                pa.array([value], column.type)
            except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as error:
                why = "text with a lone surrogate" if isinstance(error, UnicodeEncodeError) else "a number out of range"
                raise DamagedTableError(f"{label}: line {row.line}: column {name!r} has {why}") from None
        raise


def _convert(name: str, column: _Column, row: _Row, label: str) -> Any:
    try:
        return column.convert(row.document.get(name))
    except ValueError as error:
        raise _misfit(label, row.line, name, error) from None


def _misfit(label: str, line: int, name: str, error: ValueError) -> DamagedTableError:
    path = error.path if isinstance(error, Misfit) else ""
    return DamagedTableError(f"{label}: line {line}: column {name + path!r}: {error}")


def _column(name: str, values: Sequence[tuple[int, Any]], label: str) -> _Column:
    """Return the column for values that are paired with their line numbers."""
    import pyarrow as pa

    if name == "headers" and all(value is None or _as_headers(value) is not None for _, value in values):
        return _headers_column([_as_headers(value) for _, value in values])
    kind = None
    for line, value in values:
        try:
            kind = merge_types(kind, value)
        except ValueError as error:
            raise _misfit(label, line, name, error) from None
    if arrow_type(kind) == pa.string() and name in BYTE_COLUMNS:
        kind = "bytes"
    if kind == "text" and name in TIME_COLUMNS:
        column = _times_column([value for _, value in values])
        if column is not None:
            return column
    plain = {pa.bool_(): bool, pa.int64(): int, pa.uint64(): int, pa.float64(): float, pa.string(): str}
    own = plain.get(arrow_type(kind))
    types = {type(None)} if own is None else {own, type(None)}
    return _Column(arrow_type(kind), frozenset(types), lambda value: convert_value(kind, value))


def _as_headers(value: Any) -> list[dict[str, Any]] | None:
    """Return headers as objects with key and value; None if the value has an unsupported shape.

    Supported are lists of objects with other field names, an object with text values, as HTTP bridges write it, and a
    list of objects that map a key to bytes, as AWS Lambda receives Kafka records.
    """
    if isinstance(value, dict):
        if is_bytes(value) or not all(
            text is None or isinstance(text, str) or is_bytes(text) for text in value.values()
        ):
            return None
        return [{"key": key, "value": text} for key, text in value.items()]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    names = next((pair for pair in HEADER_FIELDS if all(item.keys() == {*pair} for item in value)), None)
    if names is None:
        return _lambda_headers(value)
    key, content = names
    return value if names == HEADER_FIELDS[0] else [{"key": item[key], "value": item[content]} for item in value]


def _lambda_headers(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return headers from objects that map a key to null or a list of signed or unsigned bytes; None for other shapes."""
    headers: list[dict[str, Any]] = []
    for item in items:
        if len(item) != 1:
            return None
        [(key, numbers)] = item.items()
        if numbers is None:
            headers.append({"key": key, "value": None})
            continue
        if not isinstance(numbers, list) or any(type(number) is not int for number in numbers):
            return None
        low, high = min(numbers, default=0), max(numbers, default=0)
        if low < -128 or high > (255 if low >= 0 else 127):
            return None
        text = base64.b64encode(bytes(number & 0xFF for number in numbers)).decode()
        headers.append({"key": key, "value": {"base64": text}})
    return headers


def _text_headers(values: Sequence[Any]) -> pa.Array | None:
    """Return headers whose keys and values have the most common JSON form; None if any has another form."""
    import pyarrow as pa

    keys, contents, offsets = [], [], [0]
    try:
        for value in values:
            headers = _as_headers(value) if isinstance(value, dict) else value
            if headers is None and value is not None:
                return None
            for header in headers or ():
                key, content = header["key"], header["value"]
                if isinstance(content, dict):
                    if len(header) != 2 or not is_bytes(content):
                        return None
                    content = parse_base64(content["base64"], "base64")
                elif len(header) != 2 or not (content is None or isinstance(content, str)):
                    return None
                keys.append(key)
                contents.append(content)
            offsets.append(len(keys))
        pairs = pa.StructArray.from_arrays(
            [pa.array(keys, pa.string()), pa.array(contents, pa.binary())], ["key", "value"]
        )
    except (LookupError, TypeError, ValueError):
        return None  # row-by-row parsing determines the line of the error
    missing = pa.array([value is None for value in values]) if None in values else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs, mask=missing)


def _times_column(values: Sequence[str | None]) -> _Column | None:
    """Return a column of times that are text in the lines; None if a value is not a time."""
    import pyarrow as pa

    matches = [_TIME.fullmatch(value) for value in values if value is not None]
    if not all(matches):
        return None
    is_fine = any(len(match[1] or "") > _MILLIS_LEN for match in matches if match)
    type = pa.timestamp("us" if is_fine else "ms", "UTC")

    def build(values: Sequence[Any]) -> pa.Array | None:
        try:
            return pa.array(values, pa.string()).cast(type)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return None

    def convert(value: Any) -> Any:
        array = build([value])
        if array is None:
            found = describe_type(merge_types(None, value) or "text")
            raise Misfit(
                "", found, f"times with {'micro' if is_fine else 'milli'}seconds, such as 2026-01-31T09:30:00.000Z,"
            )
        return array[0].as_py()

    return None if build(values) is None else _Column(type, frozenset({NoneType}), convert, build)


def _headers_column(values: Sequence[list[dict[str, Any]] | None]) -> _Column:
    """Return a column of headers, in the format of Iggy if any has a type, otherwise of Kafka or of KIP-82's integer keys."""
    import pyarrow as pa

    headers = [header for value in values for header in value or ()]
    binary = pa.binary()
    if any(isinstance(part, dict) and "type" in part for header in headers for part in header.values()):
        fields = [("key_type", pa.string()), ("key", binary), ("type", pa.string()), ("value", binary)]
        return _Column(pa.list_(pa.struct(fields)), frozenset({type(None)}), _type_headers)
    is_int = bool(headers) and all(type(header["key"]) is int for header in headers)
    fields = [("key", pa.int32() if is_int else pa.string()), ("value", binary)]
    form = "int" if is_int else "text"

    def convert(value: Any) -> Any:
        headers = headers_value(_as_header_objects(value), form, strings_have_types=False)
        if headers is None:
            return None
        rows = [{"key": key, "value": value} for key, value in headers]
        if any(isinstance(row["value"], Value) for row in rows):
            raise JsonError("a header has a type, which those in other lines lack")
        return rows

    return _Column(pa.list_(pa.struct(fields)), frozenset({type(None)}), convert, None if is_int else _text_headers)


def _as_header_objects(value: Any) -> Any:
    """Return headers as objects with key and value; other values are unchanged, and raise when parsed."""
    headers = _as_headers(value)
    if headers is None and isinstance(value, dict):
        raise JsonError("a header is neither text, nor null, nor base64")
    return value if headers is None else headers


def _type_headers(value: Any) -> Any:
    headers = headers_value(_as_header_objects(value), "typed", strings_have_types=True)
    if headers is None:
        return None
    return [{**_type_value("key_type", "key", key), **_type_value("type", "value", value)} for key, value in headers]


def _type_value(type_name: str, name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {type_name: "string", name: value.encode()}
    if isinstance(value, Value):
        return {type_name: value.type, name: value.bits}
    if value is None:
        return {type_name: None, name: None}
    raise JsonError('a value without "type" stands beside values that have one')
