"""A look at the headers of a few messages, as a table on the screen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from letterhead._formatting import as_text, printable, quoted, spaced_hex
from letterhead.errors import unknown_name
from letterhead.spark.frame import Input, check_column, computed, fields_of, named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

__all__ = ["show_headers"]

_PLACE = ("topic", "partition", "offset")


def show_headers(
    df: DataFrame,
    column: str | Column = "headers",
    n: int = 20,
    *,
    keep: Sequence[str] | None = None,
    width: int | None = 60,
) -> None:
    """Print the headers of the first messages, a line for each header.

    A value is shown as text in quotes where it is visible UTF-8 throughout, and otherwise as hex; null is ``null`` without
    quotes. That is for the eye and says nothing about types: the four bytes of an int32 can spell a word. Nothing is
    changed, and only the messages that are shown leave Spark.

    Parameters
    ----------
    df : DataFrame
        A batch frame. In a stream, ``foreachBatch(lambda df, _: lhs.show_headers(df))`` shows each batch.
    column : str or Column, default "headers"
        The column of headers, as Spark's Kafka source gives it with ``includeHeaders`` and as
        :func:`decode_headers` does for any format.
    n : int, default 20
        How many messages.
    keep : sequence of str, optional
        Columns that say which message it is; by default those of ``topic``, ``partition`` and ``offset`` that there are.
    width : int or None, default 60
        Characters of a key, a value or a kept column after which the rest is cut off, shown by ``…``; ``None`` shows
        everything.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of these, the frame is a stream, or it does not have such columns.

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
    _check_count("n", n)
    if width is not None:
        _check_count("width", width)
    if df.isStreaming:
        raise ValueError("show_headers reads a batch frame, and this is a stream: "
                         "foreachBatch(lambda df, _: show_headers(df)) shows each batch")  # fmt: skip
    check_column("column", column)
    fields = fields_of(df)
    df, [read] = computed(df, [Input(column, "headers are shown from", ())])
    parts = _parts(read.name, fields_of(df))
    if keep is None:
        keep = [name for name in _PLACE if name in fields]
    for name in keep:
        if name not in fields:
            raise unknown_name("column", name, fields)
    selected = [*(named(name).cast("string") for name in keep), _as_bytes(read.name, parts)]
    # By position, as two kept columns may be the same.
    rows = df.select(*(each.alias(f"column_{place}") for place, each in enumerate(selected))).limit(n + 1).collect()
    head = [*map(printable, keep), "header", *(part.replace("_", " ") for part in parts), "bytes"]
    table = [line for row in rows[:n] for line in _lines([_text(cell, width) for cell in row[:-1]], row[-1], width)]
    for line in _aligned(head, table):
        print(line)
    if len(rows) > n:
        print(f"only the first {n} {'message is' if n == 1 else 'messages are'} shown: n= says how many")


def _parts(column: str, fields: dict[str, StructField]) -> list[str]:
    """Give what a header of the column has: key, value, and for some formats types."""
    from pyspark.sql import types as T

    from letterhead.spark.schemas import spelled

    if column not in fields:
        raise unknown_name("column", column, fields)
    of = fields[column].dataType
    header = of.elementType if isinstance(of, T.ArrayType) else None
    names = header.names if isinstance(header, T.StructType) else []
    if not {"key", "value"} <= set(names) <= {"key_type", "key", "type", "value"}:
        hint = ": decode_headers reads headers from it" if spelled(of) == "binary" else ""
        raise TypeError(
            f"column {column!r} is {spelled(of)}, and headers are array<struct<key:string,value:binary>>{hint}"
        )
    return list(names)


def _as_bytes(column: str, parts: list[str]) -> Column:
    """Give headers as they are: a string that is not UTF-8 would reach Python as another one."""
    from pyspark.sql import functions as F

    def header(given: Column) -> Column:
        # The number of a key that is one is spelled.
        return F.struct(
            *((given[part].cast("string") if part != "value" else given[part]).cast("binary") for part in parts)
        )

    return F.transform(named(column), header)


def _lines(kept: list[str], headers: list[Any] | None, width: int | None) -> Iterator[list[str]]:
    """Give a line for each header; the message is named in the first one."""
    if not headers:
        yield [*kept, "", "null" if headers is None else "none"]
        return
    for number, header in enumerate(headers):
        *others, value = (None if part is None else bytes(part) for part in header)
        size = "" if value is None else f"{len(value):,}"
        yield [
            *(kept if number == 0 else [""] * len(kept)),
            str(number),
            *(_plain(part, width) for part in others),
            _value(value, width),
            size,
        ]


def _plain(data: bytes | None, width: int | None) -> str:
    """Show a key or a type: without quotes, where that leaves no doubt."""
    text = None if data is None else as_text(data)
    if text and text.split() == [text] and text != "null" and '"' not in text:
        return _cut(text, width)
    return _value(data, width)


def _value(data: bytes | None, width: int | None) -> str:
    if data is None:
        return "null"
    text = as_text(data)
    if text is not None:
        return _cut(quoted(text), width)
    most = len(data) if width is None else max(1, width // 3)
    return spaced_hex(data[:most]) + (" …" if len(data) > most else "")


def _text(cell: str | None, width: int | None) -> str:
    return "null" if cell is None else _cut(printable(cell), width)


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: max(1, width - 1)] + "…"


def _aligned(head: list[str], table: list[list[str]]) -> Iterator[str]:
    lines = [line + [""] * (len(head) - len(line)) for line in table]
    widths = [max(map(_cells, cells)) for cells in zip(head, *lines, strict=True)]
    for line in [head, ["─" * width for width in widths], *lines]:
        yield "  ".join(text + " " * (width - _cells(text)) for text, width in zip(line, widths, strict=True)).rstrip()


def _cells(text: str) -> int:
    """Give the places that text takes on a screen."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _check_count(what: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{what} must be int, not {given.__class__.__name__}")
    if given < 1:
        raise ValueError(f"{what} must be at least 1, and is {given}")
