"""Compare headers, and say which of them differ and how."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeAlias

from letterhead.headers import Header, HeaderKey, Headers, HeaderValue
from letterhead.values import Value, of_message

__all__ = ["assert_headers_equal"]

Rows: TypeAlias = "list[Headers | None]"

_MOST_ROWS = 5
_MOST_BYTES = 32
_MOST_CHARACTERS = 64


def assert_headers_equal(left: Any, right: Any) -> None:
    """Check that headers are the same: every one, in order, by key, type and bits.

    Null is not empty, and a value with a type is not the same as its bytes. Columns and frames are compared row by row.

    Parameters
    ----------
    left, right : Headers, list of (key, value), Arrow column, or Spark DataFrame
        Headers of one message; or many of them: an Arrow array, chunked array or stream of lists of structs as
        :func:`letterhead.arrow.decode` gives; or a DataFrame that has one column of headers and nothing else
        (``df.select("headers")``), which is collected. Rows of a DataFrame have the order that they are given in:
        sort it. ``None`` is a message whose headers are null.

    Raises
    ------
    AssertionError
        If they differ. It shows the headers of the first rows that do: ``-`` before those of the left only, ``+`` before
        those of the right only.
    TypeError
        If they are not headers, or one is of one message and the other of many.

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
        told = _difference(_headers(left), _headers(right))
        if told:
            raise AssertionError(f"headers differ (left -, right +)\n{told}")
        return
    told = _rows_differ(_rows(left), _rows(right))
    if told:
        raise AssertionError(told)


# What was given. -------------------------------------------------------------------------------------------------------


def _is_many(given: Any) -> bool:
    return hasattr(given, "toArrow") or any(hasattr(given, f"__arrow_c_{of}__") for of in ("array", "stream"))


def _headers(given: Any) -> Headers | None:
    return given if given is None or isinstance(given, Headers) else Headers(given)


def _rows(given: Any) -> Rows:
    """Give the headers of every row of a column or a frame."""
    import pyarrow as pa

    if given is None:
        raise TypeError("one side has many rows, and the other is None")
    if hasattr(given, "toArrow"):
        if len(given.columns) != 1:
            raise TypeError(f"a frame with one column of headers is needed, not {', '.join(given.columns)}: select it")
        column = given.toArrow().column(0)
    elif hasattr(given, "__arrow_c_array__"):
        column = pa.array(given)
    else:
        column = pa.chunked_array(given)
    of = column.type
    if not (pa.types.is_list(of) or pa.types.is_large_list(of) or str(of).startswith("list_view")):
        raise TypeError(f"a column of headers is a list of structs with key and value, not {of}")
    if not pa.types.is_struct(of.value_type) or not {"key", "value"} <= {each.name for each in of.value_type}:
        raise TypeError(f"a column of headers is a list of structs with key and value, not {of}")
    return [None if row is None else Headers([_header(each) for each in row]) for row in column.to_pylist()]


def _header(row: Mapping[str, Any]) -> Header:
    key, value, type = row["key"], row["value"], row.get("type")
    if row.get("key_type") is not None:
        key = of_message(row["key_type"], key)
    return Header(key, value if value is None or type is None else of_message(type, value))


# What differs. ---------------------------------------------------------------------------------------------------------


def _rows_differ(left: Rows, right: Rows) -> str | None:
    told = []
    for row, (ours, theirs) in enumerate(zip(left, right, strict=False)):
        difference = _difference(ours, theirs)
        if difference:
            told.append(f"row {row}:\n{difference}")
    if not told and len(left) == len(right):
        return None
    head = []
    if told:
        head.append(f"headers differ in {len(told)} of {min(len(left), len(right))} rows (left -, right +)")
    if len(left) != len(right):
        head.append(f"the left has {len(left)} rows, the right {len(right)}")
    more = [f"and {len(told) - _MOST_ROWS} more rows"] if len(told) > _MOST_ROWS else []
    return "\n".join([*head, *told[:_MOST_ROWS], *more])


def _difference(left: Headers | None, right: Headers | None) -> str | None:
    """Show two lists of headers, line by line, and say what kind of difference it is; nothing where they are equal."""
    if left == right:
        return None
    if left is None or right is None:
        return "\n".join(f"{sign} {_shown_all(side)}" for sign, side in (("-", left), ("+", right)))
    lines = []
    ours, theirs = ([_comparable(header) for header in side] for side in (left, right))
    for what, a, b, c, d in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what == "equal":
            # A header that only moved up or down is shown where it stands on the right.
            lines += [f"  {place}  {_shown(right[place])}" for place in range(c, d)]
            continue
        lines += [f"- {place}  {_shown(left[place])}" for place in range(a, b)]
        lines += [f"+ {place}  {_shown(right[place])}" for place in range(c, d)]
    return "\n".join([*lines, *_explained(left, right)])


def _explained(left: Headers, right: Headers) -> list[str]:
    """Say in words what the first difference is, where it is one that is easily overlooked."""
    if sorted(map(repr, left)) == sorted(map(repr, right)):
        return ["the headers are the same, in another order"]
    if left.unique() == right.unique() and len(left) != len(right):
        return ["the last value of every key is the same: repeated headers are missing"]
    place = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if place is None or left[place].key != right[place].key:
        return []
    ours, theirs = left[place].value, right[place].value
    if None in (ours, theirs):
        return [f"header {place}: the value is {_shown_value(ours)}, and on the right {_shown_value(theirs)}"]
    types = [value.type if isinstance(value, Value) else "no type" for value in (ours, theirs)]
    if types[0] != types[1]:
        return [f"header {place}: the type is {types[0]}, and on the right {types[1]}"]
    return [_where_bits_differ(place, _bits(ours), _bits(theirs))]


def _where_bits_differ(place: int, ours: bytes, theirs: bytes) -> str:
    first = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    sizes = f" ({len(ours)} and {len(theirs)} bytes)" if len(ours) != len(theirs) else ""
    return f"header {place}: the values differ from byte {first} on{sizes}"


def _bits(value: HeaderValue) -> bytes:
    return value.bits if isinstance(value, Value) else value or b""


def _comparable(header: Header) -> tuple[Any, Any]:
    return _hashable(header.key), _hashable(header.value)


def _hashable(part: HeaderKey | HeaderValue) -> Any:
    return (part.type, part.bits) if isinstance(part, Value) else part


def _shown_all(headers: Headers | None) -> str:
    return "null" if headers is None else f"{len(headers)} headers" if len(headers) else "no headers, not null"


def _shown(header: Header) -> str:
    key = header.key
    return f"{_shown_value(key) if isinstance(key, Value) else repr(key)} = {_shown_value(header.value)}"


def _shown_value(value: HeaderValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, Value):
        return f"{value.type}:{_hex(value.bits)}"
    if not value:
        return "empty"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _hex(value)
    if not text.isprintable():
        return _hex(value)
    shown = f"{text[:_MOST_CHARACTERS]!r}" + (f"… {len(value)} bytes" if len(text) > _MOST_CHARACTERS else "")
    # Two texts can look alike outside ASCII.
    return shown if text.isascii() else f"{shown} ({_hex(value)})"


def _hex(bits: bytes) -> str:
    return bits[:_MOST_BYTES].hex() + (f"… {len(bits)} bytes" if len(bits) > _MOST_BYTES else "")
