"""A table as a source: a file, a directory of Parquet files, standard input, or an Arrow table or stream."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from letterhead._arrow_types import has_headers, is_binary, is_list
from letterhead._error_policies import has_error_column
from letterhead._names import join_names
from letterhead._object_paths import public_name
from letterhead._parquet_files import Table
from letterhead._row_request import RowRequest
from letterhead._table_batches import empty_batch, no_column, split_batches
from letterhead.errors import DecodeError, copy_error
from letterhead.fields import check_distinct, columns_of
from letterhead.offsets.reading import last_rows
from letterhead.reader import Reader
from letterhead.sources.base import Findings, Source
from letterhead.sources.table_files import STANDARD_INPUT, arrow_table, open_table
from letterhead.where.nested_columns import append_nested_columns, find_nested_columns, with_nested_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._arrow_types import ArrowStream
    from letterhead.fields import NativeKey
    from letterhead.limits import Limits
    from letterhead.where.row_filter import RowFilter


class TableSource(Source):
    """A table, which is opened once."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._table: Table | None = None
        self._view: TableView | None = None
        self._done = 0

    @abstractmethod
    def open(self, limits: Limits | None) -> Table:
        """Return the table."""

    @abstractmethod
    def reopened(self) -> TableSource:
        """Return the same table for a second reader; raise ValueError if it can be read only once."""

    def _opened(self, request: RowRequest) -> Table:
        if self._table is None:
            self._table = self.open(request.limits)
        return self._table

    @property
    def fields(self) -> Iterable[str]:
        """Field names for conditions."""
        return [] if self._table is None else [name for name in self._table.schema.names if name != "headers"]

    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns."""
        schema = self._opened(request).schema
        return [*schema.names, *find_nested_columns(schema)]

    def default_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return all columns."""
        return request.without_headers(self._opened(request).schema.names)

    def decodes(self, request: RowRequest) -> bool:
        """Return whether headers are read."""
        schema = self._opened(request).schema
        tested, _ = _filter(with_nested_columns(schema, find_nested_columns(schema)), replace(request, errors="raise"))
        return bool(request.headers) or (tested is not None and tested.has_headers)

    def findings(self) -> Findings:
        """Return a finding for empty input, which has neither rows nor columns."""
        is_empty = self._table is not None and not self._table.schema.names and not self._done
        name = "standard input" if self.name == "-" else self.name
        return Findings([f"{name} is empty"] if is_empty else [])

    def unmatched_keys(self, request: RowRequest, *, has_selected: bool = False) -> list[NativeKey]:
        """Return the header keys in the condition that no row has."""
        return [] if self._view is None else self._view.unseen_headers

    def schema(self, request: RowRequest) -> pa.Schema:
        """Return the schema of the requested rows; the table stays open for a reader."""
        return TableView(self._opened(request).schema, request).schema

    def read_rows(self, request: RowRequest) -> Reader:
        """Return a stream of the rows."""
        table = self._opened(request)
        with ExitStack() as files:
            files.callback(table.close)
            view = self._view = TableView(table.schema, request)
            last = request.last
            # With a condition, the position of the last selected rows is unknown, so all rows are read.
            batches = self._counted(table.read(view.needed, last if request.where is None else None))
            files.callback(batches.close)
            reader = Reader(view.schema, lambda: view.rows(batches))
            reader._close = files.pop_all().close
            return reader

    @property
    def rows(self) -> int | None:
        """Number of rows of Parquet files."""
        return None if self._table is None else self._table.rows

    @property
    def unit(self) -> str:  # type: ignore[override]
        """Unit of progress: rows for Parquet files, bytes for other tables."""
        return "byte" if self.rows is None else "row"

    @property
    def total(self) -> int | None:
        """Total size of the table."""
        return None if self._table is None else self._table.bytes if self.rows is None else self.rows

    @property
    def done(self) -> int:
        """Amount read so far."""
        position = None if self._table is None else self._table.position
        return self._done if position is None else position()

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        for batch in batches:
            self._done += len(batch)
            yield batch


class TableFile(TableSource):
    """A file, a directory of Parquet files, or standard input."""

    def __init__(self, name: str) -> None:
        # The URL of an object store can contain a secret, and names are printed.
        super().__init__(public_name(name))
        self.location = name

    def open(self, limits: Limits | None) -> Table:
        """Open the file."""
        return open_table(self.location, limits)

    def reopened(self) -> TableFile:
        """Return the same file, to be read again."""
        if self.location == STANDARD_INPUT:
            raise ValueError(
                "standard input is read once: pass create= with a number, and leave out verify=; or copy a file"
            )
        return TableFile(self.location)


class ArrowTable(TableSource):
    """A table or a stream of any Arrow library."""

    def __init__(self, data: ArrowStream) -> None:
        super().__init__("the Arrow table")
        self._data = data

    def open(self, limits: Limits | None) -> Table:
        """Import the table."""
        return arrow_table(self._data, self.name, limits)

    def reopened(self) -> ArrowTable:
        """Return the same table, to be read again; raise ValueError for a stream, which has no length."""
        if not hasattr(self._data, "__len__"):
            raise ValueError("an Arrow stream is read once: pass create= with a number, or a table")
        return ArrowTable(self._data)


_ROW = "letterhead: row"
"""Column for the row number in the table."""

_ERRORS = "letterhead: errors"
"""Column for errors in evaluating the condition."""


class TableView:
    """Selects rows and columns of a table, and decodes headers into typed columns."""

    def __init__(self, schema: pa.Schema, request: RowRequest) -> None:
        from letterhead.operations import DecodeOptions, Select

        self._request = request
        own_names, nested = schema.names, find_nested_columns(schema)
        schema = with_nested_columns(schema, nested)
        counts = Counter(schema.names)
        for name in request.columns or ():
            if counts[name] == 0:
                raise no_column(name, schema.names)
        self._names = [*(request.without_headers(own_names) if request.columns is None else request.columns)]
        self._select = None
        self._filter, self._tested = _filter(schema, request)
        # Errors of the condition are ignored in rows before the requested last rows.
        defers = request.last is not None and request.errors == "raise"
        self._test = _filter(schema, replace(request, errors="column"))[0] if defers else self._filter
        reads_condition = self._filter is not None and self._filter.has_headers
        if request.headers:
            options = DecodeOptions(limits=request.limits, **request.error_options)
            self._select = Select(format_of_headers(schema), request.headers, options)
        elif request.errors != "raise" and not reads_condition:
            raise ValueError("errors= is for a table with headers=: nothing else of it is decoded")
        self._decodes = self._select is not None or reads_condition
        needed = [*dict.fromkeys([*self._names, *self._tested, *(["headers"] if self._decodes else [])])]
        for name in needed:
            if counts[name] > 1:
                raise ValueError(f"{counts[name]} columns are named {name!r}: pass the names of others in columns=")
        self._nested = {name: nested[name] for name in needed if name in nested}
        self.needed = [*dict.fromkeys(nested[name][0] if name in nested else name for name in needed)]
        """Columns of the table to read."""
        check_distinct([*self._names, *columns_of(request.headers or {})], request.errors, request.error_column)
        empty = empty_batch(schema)
        self.schema: pa.Schema = self._view(self._chosen(empty)).schema

    @property
    def unseen_headers(self) -> list[NativeKey]:
        """Header keys in the condition that no row has."""
        return [] if self._test is None else self._test.unseen_headers

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the requested rows and columns of batches; the last rows are selected before headers are decoded."""
        last = self._request.last
        # Row numbers are unknown if only the end of a table is read, and are needed only for errors.
        is_numbered = last is None and self._decodes
        if self._nested:
            batches = (append_nested_columns(batch, self._nested) for batch in batches)
        chosen = _up_to_error(self._chosen, _number_rows(batches) if is_numbered else batches)
        for batch in _up_to_error(self._view, chosen if last is None else last_rows(chosen, last)):
            yield from split_batches(batch, self._request.limits)

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows for which the condition is true or cannot be evaluated."""
        if self._test is None:
            return batch
        batch, errors = self._test(batch)
        return batch if errors is None else batch.append_column(_ERRORS, errors)

    def _view(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the requested columns of rows."""
        import pyarrow as pa

        errors, name = None, self._request.error_column
        if _ERRORS in batch.schema.names:
            errors = batch.column(_ERRORS)
            if self._request.errors == "raise" and errors.null_count < len(errors) and self._filter is not None:
                self._filter(batch)  # raises the first error
        columns = {column: batch.column(column) for column in self._names}
        if self._select is not None:
            typed = self._select(batch.column("headers"))
            columns |= dict(zip(typed.type.names, typed.flatten(), strict=True))
        if errors is not None and has_error_column(self._request.errors):
            if name not in columns:
                columns[name] = errors
            elif errors.null_count < len(errors):
                from letterhead.offsets.output_columns import join_errors

                columns[name] = join_errors(errors, columns[name])
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _number_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Append the number of each row of a table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    before = 0
    for batch in batches:
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(batch))
        yield batch.append_column(_ROW, pc.cumulative_sum(ones, start=before - 1))
        before += len(batch)


def _up_to_error(
    work: Callable[[pa.RecordBatch], pa.RecordBatch], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the results for batches; an error follows the rows before it, and names the row of the table if known."""
    for batch in batches:
        try:
            result = work(batch)
        except DecodeError as error:
            row = error.row
            if row:
                yield work(batch.slice(0, row))
            is_known = row is not None and _ROW in batch.schema.names
            raise copy_error(error, row=batch.column(_ROW)[row].as_py() if is_known else None) from None
        yield result


def format_of_headers(schema: pa.Schema, option: str = "headers=") -> str:
    """Return the format of a header column: typed headers come from Iggy."""
    import pyarrow as pa

    if schema.names.count("headers") != 1:
        raise ValueError(f"{option} needs a column of headers: there are {join_names(schema.names)}")
    type = schema.field("headers").type
    if is_binary(type):
        raise ValueError(
            f"{option}: column 'headers' is {type}: read it with letterhead decode --column headers, or in Python with "
            "letterhead.arrow.select(table['headers'], ...)"
        )
    if not has_headers(type, drops_fields=True):
        raise ValueError(
            f"{option}: column 'headers' is {type}: lists of a key and a value, or a map of these, are headers"
        )
    is_typed = is_list(type) and pa.types.is_struct(type.value_type) and type.value_type.get_field_index("type") >= 0
    return "iggy" if is_typed else "kafka"


def _filter(schema: pa.Schema, request: RowRequest) -> tuple[RowFilter | None, tuple[str, ...]]:
    from letterhead.where.row_filter import RowFilter, field_type

    if request.where is None:
        return None, ()
    fields = {field.name: field_type(field.type) for field in schema}
    # If a column ``headers`` does not contain headers, conditions on other columns still work.
    are_headers = schema.names.count("headers") == 1 and has_headers(schema.field("headers").type, drops_fields=True)
    format = format_of_headers(schema) if are_headers else "kafka"
    row_filter = RowFilter(request.where, fields, request.headers, format, errors=request.errors, limits=request.limits)
    if row_filter.has_headers:
        # A name in a condition that is not a column is a header.
        unknown = next((name for name in row_filter.header_keys if isinstance(name, str)), None)
        if "headers" not in schema.names and unknown is not None:
            raise ValueError(f"where= needs a column of headers: {no_column(unknown, schema.names)}")
        format_of_headers(schema, "where=")
    return row_filter, tuple(row_filter.fields)
