"""Print the headers of a few messages as a table: :func:`show_headers`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import StructField

from letterhead._formatting import as_text, printable, quote, quote_if_needed, space_hex
from letterhead._names import unknown_name
from letterhead.spark.frame import (
    HEADERS,
    Input,
    check_column,
    check_frame,
    choose_kept_names,
    fields_of,
    quoted_column,
    with_inputs,
)
from letterhead.spark.schemas import ddl

__all__ = ["show_headers"]


def show_headers(
    df: DataFrame,
    n: int = 20,
    *,
    column: str | Column = "headers",
    keep: Sequence[str] | None = None,
    width: int | None = 60,
) -> None:
    """Print the headers of the first messages, one line per header.

    A value of printable UTF-8 is printed as text in quotes, and any other as hex; null is ``null`` without quotes. This
    does not determine its type: the four bytes of an int32 can spell a word. Only the printed messages leave Spark.

    Parameters
    ----------
    df : DataFrame
        A batch DataFrame. For a stream, ``foreachBatch(lambda df, _: lhs.show_headers(df))`` prints each batch.
    n : int, default 20
        Number of messages.
    column : str or Column, default "headers"
        The column of headers, as returned by :func:`decode_headers` and by Spark's Kafka source with
        ``includeHeaders``.
    keep : sequence of str, optional
        Columns that identify a message; by default ``topic``, ``partition`` and ``offset``, if present.
    width : int or None, default 60
        Characters after which a key, a value or a kept column is truncated, marked by ``…``; ``None`` prints everything.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, the DataFrame is a stream, or it lacks a column.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.show_headers(orders.where("offset = 1"), keep=["offset"], width=24)
    offset  header  key                value                     bytes
    ──────  ──────  ─────────────────  ────────────────────────  ─────
    1       0       traceparent        "00-2a5067fd0af8b88cada…  55
            1       ce_id              "baa606a9-77ef-b717-612…  36
            2       ce_type            "order.shipped"           13
            3       ce_source          "/shop/web"               9
            4       ce_specversion     "1.0"                     3
            5       __value_schema_id  00 00 00 00 11            5
            6       tenant             "initech"                 7
            7       retry              00 00 00 00               4
            8       amount_cents       00 00 00 00 00 03 4a 85   8
            9       weight_kg          40 31 3f 3b 64 5a 1c ac   8
    """
    check_frame(df, show_headers)
    _check_count("n", n)
    if width is not None:
        _check_count("width", width)
    if df.isStreaming:
        raise ValueError("show_headers reads a batch DataFrame, and this is a stream: use "
                         "foreachBatch(lambda df, _: show_headers(df))")  # fmt: skip
    check_column("column", column)
    fields = fields_of(df)
    df, [headers] = with_inputs(df, [Input(column, "headers are printed from", ())])
    parts = _header_fields(headers.name, fields_of(df))
    keep = choose_kept_names(
        fields, [name for name in ("topic", "partition", "offset") if name in fields] if keep is None else keep
    )
    selected = [*(quoted_column(name).cast("string") for name in keep), _as_bytes(headers.name, parts)]
    # Columns are named by position, because two kept columns may have the same name.
    rows = (
        df.select(*(value.alias(f"column_{position}") for position, value in enumerate(selected)))
        .limit(n + 1)
        .collect()
    )
    head = [*map(printable, keep), "header", *(part.replace("_", " ") for part in parts), "bytes"]
    table = [line for row in rows[:n] for line in _lines([_text(value, width) for value in row[:-1]], row[-1], width)]
    for line in _align(head, table):
        print(line)
    if len(rows) > n:
        print(f"only the first {n} {'message is' if n == 1 else 'messages are'} shown: raise n= for more")


def _header_fields(column: str, fields: dict[str, StructField]) -> list[str]:
    """Return the header fields of the column: key, value, and for some formats types."""
    if column not in fields:
        raise unknown_name("column", column, fields)
    type = fields[column].dataType
    header = type.elementType if isinstance(type, T.ArrayType) else None
    names = header.names if isinstance(header, T.StructType) else []
    if not {"key", "value"} <= set(names) <= {"key_type", "key", "type", "value"}:
        hint = ": decode_headers reads headers from it" if ddl(type) == "binary" else ""
        raise TypeError(f"column {column!r} is {ddl(type)}, and headers are {HEADERS}{hint}")
    return list(names)


def _as_bytes(column: str, parts: list[str]) -> Column:
    """Return headers as bytes, because a string that is not UTF-8 would change on its way to Python."""

    def as_binary(header: Column) -> Column:
        # Integer keys are printed as text.
        return F.struct(
            *(header[part].cast("binary" if part == "value" else "string").cast("binary") for part in parts)
        )

    return F.transform(quoted_column(column), as_binary)


def _lines(kept: list[str], headers: list[Any] | None, width: int | None) -> Iterator[list[str]]:
    """Return one row for each header; the first one identifies the message."""
    if not headers:
        yield [*kept, "", "null" if headers is None else "none"]
        return
    for number, header in enumerate(headers):
        *others, value = (None if part is None else bytes(part) for part in header)
        size = "" if value is None else f"{len(value):,}"
        labels = kept if number == 0 else [""] * len(kept)
        yield [*labels, str(number), *(_key_or_type(part, width) for part in others), _value(value, width), size]


def _key_or_type(data: bytes | None, width: int | None) -> str:
    """Format a key or a type, without quotes if unambiguous."""
    text = None if data is None else as_text(data)
    return _value(data, width) if text is None else _cut(quote_if_needed(text), width)


def _value(data: bytes | None, width: int | None) -> str:
    if data is None:
        return "null"
    text = as_text(data)
    if text is not None:
        return _cut(quote(text), width)
    byte_count = len(data) if width is None else max(1, width // 3)
    return space_hex(data[:byte_count]) + (" …" if len(data) > byte_count else "")


def _text(value: str | None, width: int | None) -> str:
    return "null" if value is None else _cut(printable(value), width)


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: max(1, width - 1)] + "…"


def _align(head: list[str], table: list[list[str]]) -> Iterator[str]:
    lines = [line + [""] * (len(head) - len(line)) for line in table]
    widths = [max(map(_screen_width, texts)) for texts in zip(head, *lines, strict=True)]
    for line in [head, ["─" * width for width in widths], *lines]:
        yield "  ".join(
            text + " " * (width - _screen_width(text)) for text, width in zip(line, widths, strict=True)
        ).rstrip()


def _screen_width(text: str) -> int:
    """Return the width of text on a terminal, in columns."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _check_count(parameter: str, argument: object) -> None:
    if isinstance(argument, bool) or not isinstance(argument, int):
        raise TypeError(f"{parameter} must be int, not {argument.__class__.__name__}")
    if argument < 1:
        raise ValueError(f"{parameter} must be at least 1, and is {argument}")
