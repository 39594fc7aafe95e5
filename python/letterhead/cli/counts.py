"""Count rows by values of columns or headers, and compute minimum and maximum of other columns: :class:`Counts`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from letterhead._header_text import split_columns
from letterhead._row_request import RowRequest
from letterhead.cli.exits import BAD_DATA, Failure, usage_errors
from letterhead.cli.render import SETTINGS, count_text
from letterhead.cli.row_text import json_column, json_types, zone_name
from letterhead.cli.sources.opening import column_names
from letterhead.errors import HeaderError
from letterhead.fields import field
from letterhead.sources.base import Source

if TYPE_CHECKING:
    import pyarrow as pa

COUNT = "count"
MERGED_ROWS = 1 << 16
"""Number of groups from single batches at which the groups are merged."""

_ITEM = re.compile(r"(?:(min|max)\((.+)\)|(.+))")
_FUNCTION = re.compile(r"\w+\(.*\)")
"""Function of a column, such as ``sum(amount_cents:int64)``."""

_SPAN = re.compile(r"(\d+)(s|m|h|d)")
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_FORM = (
    "--count-by needs names of columns or headers, each once, as in tenant, retry:int32, timestamp:1h or max(timestamp)"
)


class Item(NamedTuple):
    """Column of the result: values or time spans to count by, or the minimum or maximum of the counted rows."""

    name: str
    column: str
    type: str | None = None
    span: tuple[int, str] | None = None
    extreme: Literal["min", "max"] | None = None
    key: str | None = None  # key of the header, if the column has another name

    @classmethod
    def parse(cls, text: str) -> Item:
        """Parse NAME, NAME:TYPE, NAME=HEADER:TYPE, NAME:SPAN, min(NAME) or max(NAME)."""
        match = _ITEM.fullmatch(text)
        extreme: Any = match and match[1]
        column, _, suffix = (match[2] or match[3] if match else "").partition(":")
        span = _SPAN.fullmatch(suffix)
        column, renamed, key = column.partition("=")
        if not column or (renamed and not key) or (span is not None and (extreme or not int(span[1]))):
            raise Failure(_FORM)
        name = f"{extreme}({column})" if extreme else column
        if span is not None:
            return cls(name, column, span=(int(span[1]), _UNITS[span[2]]), key=key or None)
        return cls(name, column, suffix or None, extreme=extreme, key=key or None)


class Counts:
    """Counts rows by the values of columns. A name that is not a column of any source is read as a header."""

    def __init__(self, names: str, request: RowRequest, sources: Sequence[Source], *, has_errors: bool) -> None:
        texts = split_columns(names)
        items = [Item.parse(text) for text in texts]
        self._keys = [item for item in items if item.extreme is None]
        self._extremes = [item for item in items if item.extreme is not None]
        if not self._keys or len({item.name for item in items} - {COUNT}) < len(items):
            raise Failure(_FORM)
        typed: dict[str, Any] = dict(request.headers or {})  # type: ignore[arg-type]
        common = set[str].intersection(*({*column_names(source, request)} for source in sources))
        columns = []
        self._untyped: set[str] = set()
        self._error_column = request.error_column if has_errors else None
        for text, item in zip(texts, items, strict=True):
            if item.column == self._error_column:
                continue
            if item.extreme is None and _FUNCTION.fullmatch(text) and text not in (*common, *typed):
                raise Failure(
                    "--count-by has no function but min(NAME) and max(NAME), as in tenant, max(amount_cents:int64)"
                )
            if item.key is not None:
                with usage_errors():
                    typed[item.column] = field(item.type or "string", key=item.key)
            elif item.type is None and item.column in common and item.column not in typed:
                columns.append(item.column)
            elif item.type is not None or item.column not in typed:
                typed[item.column] = item.type or "string"
                self._untyped |= set() if item.type else {item.column}
        self.request = replace(request, columns=tuple(dict.fromkeys(columns)), headers=typed or None)
        """Request for the counted columns. Typed headers are kept, because a condition may name them."""
        self._nested: dict[str, list[pa.Table]] = {}
        """Values by which pyarrow cannot group rows, with their text."""

        self._parts: list[pa.Table] = []
        self._part_rows = 0
        self._merged_rows = 0

    @contextmanager
    def remedies(self) -> Iterator[None]:
        """Add the remedy to the error of an untyped header that is not text."""
        try:
            yield
        except HeaderError as error:
            if error.code != "value_not_utf8" or error.column not in self._untyped:
                raise
            raise Failure(
                f"{error}; to count its bytes, write --count-by {error.column}:binary, or another type", BAD_DATA
            ) from error

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        import pyarrow as pa

        columns = [self._key(item, batch.column(item.column)) for item in self._keys]
        columns += [_as_orderable(batch.column(item.column), item) for item in self._extremes]
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(batch))
        names = [*(item.name for item in self._keys), *(item.name for item in self._extremes), COUNT]
        for item, values in zip(self._keys, columns, strict=False):
            column = batch.column(item.column)
            if pa.types.is_nested(column.type) and item.column != self._error_column:
                self._nested.setdefault(item.name, []).append(_distinct(pa.table([values, column], ["text", "value"])))
        part = self._merged(pa.table([*columns, ones], names=names))
        self._parts.append(part)
        self._part_rows += len(part)
        if self._part_rows > MERGED_ROWS + self._merged_rows:
            self._merge()

    def result(self, limit: int | None) -> pa.RecordBatch:
        """Return the values and their counts: by time for time spans, otherwise largest counts first."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._merge()
        if not self._parts:
            names = [*(item.name for item in self._keys), *(item.name for item in self._extremes)]
            return pa.RecordBatch.from_pylist(
                [], schema=pa.schema([*((n, pa.string()) for n in names), (COUNT, "int64")])
            )
        [table] = self._parts
        spans = [(item.name, "ascending") for item in self._keys if item.span is not None]
        others = [(item.name, "ascending") for item in self._keys if item.span is None]
        order = pc.sort_indices(table, sort_keys=[*spans, (COUNT, "descending"), *others])
        result = table.take(order[:limit] if limit is not None else order).combine_chunks()
        for name, parts in self._nested.items():
            known = pa.concat_tables(parts).combine_chunks()
            values = known["value"].take(pc.index_in(result[name], known["text"].combine_chunks()))
            result = result.set_column(result.schema.get_field_index(name), name, values.combine_chunks())
        return pa.RecordBatch.from_arrays(
            [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in result.columns],
            names=result.column_names,
        )

    def summary(self, noun: str) -> str:
        """Return the numbers of rows and values as text."""
        import pyarrow.compute as pc

        rows = sum(pc.sum(part[COUNT]).as_py() for part in self._parts)
        return f"{count_text(rows, noun)} with {count_text(sum(map(len, self._parts)), 'value')}"

    def _key(self, item: Item, column: pa.Array) -> pa.Array:
        """Return the values by which rows are counted."""
        if item.column == self._error_column:
            return _codes(column)
        return _countable(self._spans(item, column), item)

    def _spans(self, item: Item, column: pa.Array) -> pa.Array:
        """Return the start of the time span of each value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if item.span is None:
            return column
        if not pa.types.is_timestamp(column.type):
            raise Failure(f"--count-by: {item.column} is {column.type}, and only times have spans such as :1h")
        number, unit = item.span
        # Days begin at midnight in the zone of --tz.
        zoned = column.cast(pa.timestamp(column.type.unit, zone_name(SETTINGS.zone)))
        return pc.floor_temporal(zoned, number, unit, calendar_based_origin=unit != "day").cast(column.type)

    def _merge(self) -> None:
        import pyarrow as pa

        if len(self._parts) > 1:
            self._parts = [self._merged(pa.concat_tables(self._parts))]
        for parts in self._nested.values():
            parts[:] = [_distinct(pa.concat_tables(parts))]
        self._part_rows = 0
        self._merged_rows = sum(map(len, self._parts))

    def _merged(self, table: pa.Table) -> pa.Table:
        keys = [item.name for item in self._keys]
        extremes = [(item.name, item.extreme) for item in self._extremes]
        merged = table.group_by(keys).aggregate([*extremes, (COUNT, "sum")])
        names = [*keys, *(f"{name}_{extreme}" for name, extreme in extremes), f"{COUNT}_sum"]
        return merged.select(names).rename_columns(table.column_names)


def _distinct(values: pa.Table) -> pa.Table:
    """Return the distinct texts, each with one of the values that it represents."""
    import pyarrow.compute as pc

    texts = values["text"].combine_chunks()
    return values.take(pc.index_in(pc.unique(texts), texts))


def _codes(errors: pa.Array) -> pa.Array:
    """Return the distinct error codes of each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(errors), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    codes = pa.ListArray.from_arrays(offsets, errors.flatten().field("code"), mask=errors.is_null())
    joined = pc.binary_join(codes, ",").dictionary_encode()
    distinct = [", ".join(dict.fromkeys(text.split(","))) for text in joined.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(joined.indices, pa.array(distinct, pa.string())).dictionary_decode()


def _countable(column: pa.Array, item: Item) -> pa.Array:
    """Return a column that pyarrow can group and sort: lists, structs and intervals become JSON text."""
    import pyarrow as pa

    column = _sortable(column)
    if not (pa.types.is_nested(column.type) or pa.types.is_interval(column.type)):
        return column
    [column] = json_types(pa.RecordBatch.from_arrays([column], names=[item.column])).columns
    return json_column(column)


def _sortable(column: pa.Array) -> pa.Array:
    """Widen small floats and decimals to types that pyarrow can sort."""
    import pyarrow as pa

    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    if str(column.type).startswith(("decimal32", "decimal64")):
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    return column


def _as_orderable(column: pa.Array, item: Item) -> pa.Array:
    """Cast a column to a type whose minimum and maximum pyarrow can compute."""
    import pyarrow as pa

    column, types = _sortable(column), pa.types
    is_number = types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type)
    is_text = types.is_string(column.type) or types.is_large_string(column.type)
    is_time = types.is_timestamp(column.type) or types.is_date(column.type) or types.is_time(column.type)
    is_binary = types.is_binary(column.type) or types.is_large_binary(column.type)
    others = types.is_boolean(column.type) or types.is_null(column.type) or types.is_fixed_size_binary(column.type)
    if not (is_number or is_text or is_time or is_binary or others):
        raise Failure(
            f"--count-by: {item.name}: the values of column {item.column}, which is {column.type}, have no order"
        )
    return column
