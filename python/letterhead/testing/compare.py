"""Compare headers, and report the differences."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeAlias

from letterhead._formatting import as_text
from letterhead.headers import Header, Headers, HeaderValue
from letterhead.values import Value, value_from_message

__all__ = ["assert_headers_equal"]

Rows: TypeAlias = "list[Headers | None]"

_MAX_ROWS = 5
_MAX_BYTES = 32
_MAX_CHARACTERS = 64


def assert_headers_equal(left: Any, right: Any) -> None:
    """Raise if headers differ in number, order, keys, types or bits.

    Null differs from empty, and a typed value from its bytes. Columns and DataFrames are compared row by row.

    Parameters
    ----------
    left, right : Headers, list of (key, value), Arrow column, or Spark DataFrame
        The headers of one message (``None`` for null headers), or of many: an Arrow array, chunked array or stream of lists
        of structs, as :func:`letterhead.arrow.decode` returns; or a DataFrame with one column of headers and no other
        (``df.select("headers")``), which is collected. Rows are compared in the order of the DataFrame, so sort it.

    Raises
    ------
    AssertionError
        If they differ. Its text shows the headers of the first rows that differ, with ``-`` for the left side and ``+`` for
        the right side.
    TypeError
        If they are not headers, or one side is one message and the other many.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.testing import assert_headers_equal
    >>> assert_headers_equal(lh.Headers({"k": "v"}), [("k", b"v")])
    >>> assert_headers_equal([("k", b"v"), ("n", lh.Int32(3))], [("k", b"v"), ("n", lh.Int64(3)), ("k", None)])
    Traceback (most recent call last):
        ...
    AssertionError: headers differ (left -, right +)
      0  'k' = 'v'
    - 1  'n' = int32:00000003
    + 1  'n' = int64:0000000000000003
    + 2  'k' = null
    header 1: the type is int32, and on the right int64
    """
    is_many = _is_many(left), _is_many(right)
    if is_many[0] != is_many[1] and left is not None and right is not None:
        raise TypeError("one side has the headers of one message, and the other of many")
    if not any(is_many):
        difference = _difference(_headers(left), _headers(right))
        report = difference and f"headers differ (left -, right +)\n{difference}"
    else:
        report = _rows_difference(_rows(left), _rows(right))
    if report:
        raise AssertionError(report)


def _is_many(side: Any) -> bool:
    return hasattr(side, "toArrow") or any(
        hasattr(side, f"__arrow_c_{interface}__") for interface in ("array", "stream")
    )


def _headers(side: Any) -> Headers | None:
    return side if side is None or isinstance(side, Headers) else Headers(side)


def _rows(side: Any) -> Rows:
    """Return the headers of all rows of a column or a DataFrame."""
    import pyarrow as pa

    if side is None:
        raise TypeError("one side has many rows, and the other is None")
    if hasattr(side, "toArrow"):
        if len(side.columns) != 1:
            raise TypeError(f"a frame with one column of headers is needed, not {', '.join(side.columns)}: select it")
        column = side.toArrow().column(0)
    elif hasattr(side, "__arrow_c_array__"):
        column = pa.array(side)
    else:
        column = pa.chunked_array(side)
    column_type = column.type
    is_list = (
        pa.types.is_list(column_type) or pa.types.is_large_list(column_type) or str(column_type).startswith("list_view")
    )
    item: Any = column_type.value_type if is_list else None
    if not (is_list and pa.types.is_struct(item) and {"key", "value"} <= {field.name for field in item}):
        raise TypeError(f"a column of headers is a list of structs with key and value, not {column_type}")
    return [None if row is None else Headers([_header(header) for header in row]) for row in column.to_pylist()]


def _header(row: Mapping[str, Any]) -> Header:
    key, value, type = row["key"], row["value"], row.get("type")
    if row.get("key_type") is not None:
        key = value_from_message(row["key_type"], key)
    return Header(key, value if value is None or type is None else value_from_message(type, value))


def _rows_difference(left: Rows, right: Rows) -> str:
    pairs = enumerate(zip(left, right, strict=False))
    differences = [(row, difference) for row, (a, b) in pairs if (difference := _difference(a, b))]
    lines = []
    if differences:
        lines.append(f"headers differ in {len(differences)} of {min(len(left), len(right))} rows (left -, right +)")
    if len(left) != len(right):
        lines.append(f"the left has {len(left)} rows, the right {len(right)}")
    lines += [f"row {row}:\n{difference}" for row, difference in differences[:_MAX_ROWS]]
    if len(differences) > _MAX_ROWS:
        lines.append(f"and {len(differences) - _MAX_ROWS} more rows")
    return "\n".join(lines)


def _difference(left: Headers | None, right: Headers | None) -> str | None:
    """Return two lists of headers line by line with an explanation of the difference; None if they are equal."""
    if left == right:
        return None
    if left is None or right is None:
        return "\n".join(f"{sign} {_format_headers(side)}" for sign, side in (("-", left), ("+", right)))
    lines = []
    for operation, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if operation == "equal":
            # A header that only moved is shown at its position on the right.
            lines += [f"  {index}  {_format_header(right[index])}" for index in range(c, d)]
            continue
        lines += [f"- {index}  {_format_header(left[index])}" for index in range(a, b)]
        lines += [f"+ {index}  {_format_header(right[index])}" for index in range(c, d)]
    return "\n".join([*lines, *_explain(left, right)])


def _explain(left: Headers, right: Headers) -> list[str]:
    """Return an explanation of the first difference, if it is easily overlooked."""
    if sorted(map(repr, left)) == sorted(map(repr, right)):
        return ["the headers are the same, in another order"]
    if left.unique() == right.unique() and len(left) != len(right):
        return ["the last value of every key is the same: repeated headers are missing"]
    index = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if index is None or left[index].key != right[index].key:
        return []
    ours, theirs = left[index].value, right[index].value
    if None in (ours, theirs):
        return [f"header {index}: the value is {_format_value(ours)}, and on the right {_format_value(theirs)}"]
    types = [value.type if isinstance(value, Value) else "no type" for value in (ours, theirs)]
    if types[0] != types[1]:
        return [f"header {index}: the type is {types[0]}, and on the right {types[1]}"]
    a, b = _bits(ours), _bits(theirs)
    first = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    sizes = f" ({len(a)} and {len(b)} bytes)" if len(a) != len(b) else ""
    return [f"header {index}: the values differ from byte {first} on{sizes}"]


def _bits(value: HeaderValue) -> bytes:
    return value.bits if isinstance(value, Value) else value or b""


def _format_headers(headers: Headers | None) -> str:
    return "null" if headers is None else f"{len(headers)} headers" if len(headers) else "no headers, not null"


def _format_header(header: Header) -> str:
    key = header.key
    return f"{_format_value(key) if isinstance(key, Value) else repr(key)} = {_format_value(header.value)}"


def _format_value(value: HeaderValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, Value):
        return f"{value.type}:{_hex(value.bits)}"
    if not value:
        return "empty"
    text = as_text(value)
    if text is None:
        return _hex(value)
    shown = f"{text[:_MAX_CHARACTERS]!r}" + (f"… {len(value)} bytes" if len(text) > _MAX_CHARACTERS else "")
    # Different text outside ASCII can look alike.
    return shown if text.isascii() else f"{shown} ({_hex(value)})"


def _hex(bits: bytes) -> str:
    return bits[:_MAX_BYTES].hex() + (f"… {len(bits)} bytes" if len(bits) > _MAX_BYTES else "")
