"""Rows as a table for people: :class:`RowTable`. Columns grow with longer values, because rows are not buffered."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, chop_cells, set_cell_size

from letterhead._arrow_types import (
    HEADER_FIELDS,
    as_header_lists,
    has_headers,
    header_lists_type,
    is_binary,
    is_list,
    is_text,
)
from letterhead._formatting import printable, quote
from letterhead._table_writers import split_batch
from letterhead._value_text import text_of
from letterhead.cli.document import headers_of
from letterhead.cli.render import SETTINGS, bytes_text, screen_width, style
from letterhead.cli.row_format import RowWriter
from letterhead.cli.row_text import json_column, json_types, time_texts
from letterhead.cli.spelling import key_text
from letterhead.headers import HeaderValue
from letterhead.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

# Maximum number of columns, beyond which a table is unreadable, and each row is printed as a list of its fields.
MAX_COLUMNS = 7
# Minimum width of a text column, unless its values are shorter.
MIN_WIDTH = 8
GAP = "  "
MORE = "…"
# Maximum number of headers shown for a row.
HEADERS_IN_SUMMARY = 4


class RowTable(RowWriter):
    """Prints rows in columns, or as lists of their fields if there are many.

    A value that does not fit in its column ends in an ellipsis, which the last line mentions; with ``everything`` it
    continues on the next line instead.
    """

    def __init__(self, schema: pa.Schema, *, epoch_ms: bool, everything: bool, numbers: str | None) -> None:
        self._numbers = [] if numbers is None else [numbers]
        self._names = [*self._numbers, *schema.names]
        self._are_headers = [_are_headers(type) for type in schema.types]
        types = [
            header_lists_type(type, drops_fields=True) if are_headers else type
            for type, are_headers in zip(schema.types, self._are_headers, strict=True)
        ]
        self._columns = [ColumnFormatter(type, everything) for type in types]
        self._right = [True] * len(self._numbers) + [column.is_number for column in self._columns]
        self._is_whole = [True] * len(self._numbers) + [column.is_whole for column in self._columns]
        self._epoch_ms = epoch_ms
        self._everything = everything
        self._width = screen_width(sys.stdout)
        names = sum(cell_len(printable(name)) + len(GAP) for name in self._names)
        self._as_lists = len(schema.names) > MAX_COLUMNS or names > self._width
        self._widths: list[int] = []
        self._rows = 0
        self._cut = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Print the rows of a batch."""
        import pyarrow as pa

        for part in split_batch(batch):
            columns = []
            own = json_types(part).columns
            for formatter, are_headers, column in zip(self._columns, self._are_headers, own, strict=True):
                if are_headers:
                    column = as_header_lists(column, drops_fields=True)
                if pa.types.is_timestamp(column.type):
                    texts = time_texts(column, epoch_ms=self._epoch_ms, zone=SETTINGS.zone)
                    columns.append([[text or "null"] for text in texts.to_pylist()])
                elif pa.types.is_struct(column.type):
                    texts = json_column(column, epoch_ms=self._epoch_ms)
                    columns.append([[printable(text or "null")] for text in texts.to_pylist()])
                else:
                    columns.append([formatter.lines(value) for value in column.to_pylist()])
            numbers = [[str(row)] for row in range(self._rows, self._rows + len(part))]
            rows = list(zip(*([numbers] if self._numbers else []), *columns, strict=True))
            self._rows += len(part)
            (self._print_lists if self._as_lists else self._print_rows)(rows)
        sys.stdout.flush()

    def close(self) -> None:
        """Print the column names if there were no rows, and mention truncated values."""
        if not self._rows and not self._as_lists:
            self._print_rows([])
        if self._cut:
            print(style(f"{MORE} marks values that were cut: --all shows them whole", "dim", sys.stdout))

    def abort(self) -> None:
        """Do nothing: the rows were already printed."""

    def _print_rows(self, rows: list[tuple[list[str], ...]]) -> None:
        has_head = bool(self._widths)
        self._widths = self._measured(rows)
        if not has_head:
            head = self._line([printable(name) for name in self._names], self._widths)
            print(style(head, "bold", sys.stdout))
            print(GAP.join("─" * width for width in self._widths))
        printed = []
        for row in rows:
            values = [
                self._fitted(lines, width, is_whole)
                for lines, width, is_whole in zip(row, self._widths, self._is_whole, strict=True)
            ]
            printed += [self._line(line, self._widths) for line in itertools.zip_longest(*values, fillvalue="")]
        print("\n".join(printed), end="\n" if printed else "")

    def _print_lists(self, rows: list[tuple[list[str], ...]]) -> None:
        """Print each row vertically, with a line for the name and value of each column."""
        names = [printable(name) for name in self._names[len(self._numbers) :]]
        label = min(max(map(cell_len, names)), self._width // 3)
        width = max(MIN_WIDTH, self._width - label - 2 * len(GAP))
        for number, row in enumerate(rows, self._rows - len(rows)):
            print(style(f"{self._numbers[0] if self._numbers else 'record'} {number}", "bold", sys.stdout))
            for name, lines in zip(names, row[len(self._numbers) :], strict=True):
                for index, line in enumerate(self._fitted(lines, width, False) or [""]):
                    print(f"{GAP}{_pad('' if index else name, label)}{GAP}{line}".rstrip())

    def _measured(self, rows: list[tuple[list[str], ...]]) -> list[int]:
        """Return the width of each column: that of its values, limited by the screen, but never less than before."""
        earlier = self._widths or [cell_len(printable(name)) for name in self._names]
        natural = [
            max(itertools.chain([width], (_cells(line) for row in rows for line in row[column])))
            for column, width in enumerate(earlier)
        ]
        shrinkable = [column for column, is_whole in enumerate(self._is_whole) if not is_whole]
        room = self._width - len(GAP) * (len(natural) - 1)
        left = room - sum(natural[column] for column in range(len(natural)) if column not in shrinkable)
        widths = list(natural)
        # The narrowest columns get their full width; the others share the rest.
        left -= sum(earlier[column] for column in shrinkable)
        for done, column in enumerate(sorted(shrinkable, key=lambda column: natural[column] - earlier[column])):
            share = earlier[column] + max(0, left // (len(shrinkable) - done))
            widths[column] = min(natural[column], max(share, MIN_WIDTH))
            left -= widths[column] - earlier[column]
        return widths

    def _fitted(self, lines: list[str], width: int, is_whole: bool) -> list[str]:
        fitted = []
        for line in lines:
            if is_whole or _cells(line) <= width:
                fitted.append(line)
            elif self._everything:
                fitted += chop_cells(line, width)
            else:
                self._cut = True
                fitted.append(set_cell_size(line, width - 1).rstrip() + MORE)
        return fitted

    def _line(self, values: Iterable[str], widths: list[int]) -> str:
        padded = [_pad(value, width, right) for value, width, right in zip(values, widths, self._right, strict=True)]
        return GAP.join(padded).rstrip()


def _are_headers(type: pa.DataType) -> bool:
    """Return whether a column has headers with text keys, in any shape."""
    import pyarrow as pa

    if pa.types.is_map(type):
        return is_text(type.key_type) and has_headers(type)
    if not is_list(type) or not pa.types.is_struct(type.value_type):
        return False
    names = {key for key, _ in HEADER_FIELDS} & {field.name for field in type.value_type}
    has_text = all(is_text(type.value_type.field(name).type) for name in names)
    return has_text and has_headers(type, drops_fields=True)


class ColumnFormatter:
    """Formats each value of a column as one or more lines of text, and escapes control characters."""

    def __init__(self, type: pa.DataType, everything: bool) -> None:
        import pyarrow as pa

        self.is_number = pa.types.is_integer(type) or pa.types.is_decimal(type)
        # Numbers and times are never cut.
        self.is_whole = self.is_number or pa.types.is_timestamp(type)
        self._everything = everything
        # Lines on a terminal are cut at its width.
        self._limit = None if everything else screen_width(sys.stdout)
        self._format = self._formatter(type)

    def lines(self, value: Any) -> list[str]:
        """Return the lines of a value."""
        return ["null"] if value is None else self._format(value)

    def _formatter(self, type: pa.DataType) -> Any:
        import pyarrow as pa

        if is_binary(type):
            return lambda value: [bytes_text(value, self._limit)]
        if is_list(type):
            element = type.value_type
            names = [field.name for field in element] if pa.types.is_struct(element) else []
            if "key" in names and "value" in names and is_binary(element.field("value").type):
                return self._headers
            if names[:2] == ["code", "message"]:
                return _losses if "written" in names else _errors
        return lambda value: [printable(str(value).lower() if isinstance(value, bool) else str(value))]

    def _headers(self, rows: list[dict[str, Any]]) -> list[str]:
        if not rows:
            return ["none"]
        shown = rows if self._everything else rows[:HEADERS_IN_SUMMARY]
        lines = [f"{printable(key_text(key))}={header_value(value, self._limit)}" for key, value in headers_of(shown)]
        if len(rows) > len(shown):
            lines.append(f"{MORE} {len(rows) - len(shown):,} more")
        return lines


def _errors(errors: list[dict[str, Any]]) -> list[str]:
    # The error of a header that several columns read is printed once.
    return list(dict.fromkeys(f"{error['code']}: {printable(error['message'])}" for error in errors))


def _losses(losses: list[dict[str, Any]]) -> list[str]:
    codes = Counter(loss["code"] for loss in losses)
    return [", ".join(f"{code} {count:,}" for code, count in codes.items())]


def header_value(value: HeaderValue, limit: int | None) -> str:
    """Return the value of a header in one line."""
    if not isinstance(value, Value):
        return "null" if value is None else bytes_text(value, limit)
    if value.type in ("string", "binary"):
        return bytes_text(value.bits, limit)
    text = text_of(value)
    if text is None:
        return bytes_text(value.bits, limit)
    return quote(text) if value.type == "char" else text


def _cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _pad(text: str, width: int, right: bool = False) -> str:
    width -= _cells(text) - len(text)
    return text.rjust(width) if right else text.ljust(width)
