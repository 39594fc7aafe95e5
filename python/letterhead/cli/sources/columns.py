"""Column of serialized messages or headers in a source: :func:`open_column`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from letterhead._arrow_types import has_headers, is_binary
from letterhead._error_policies import has_error_column
from letterhead._optional_dependencies import how_to_install
from letterhead._row_request import RowRequest
from letterhead._table_batches import empty_batch
from letterhead.cli.exits import Failure
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import check_request, column_names, open_reader, open_sources, report_findings
from letterhead.sources.base import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._arrow_types import OnError

__all__ = ["SourceColumn", "open_column"]

_ERRORS = "letterhead: source"
"""Column for errors of source rows."""


class SourceColumn:
    """Column of a source that is read once.

    Attributes
    ----------
    name : str
        The column.
    schema : pyarrow.Schema
        All columns that are read; the errors of rows are returned separately.
    is_bytes : bool
        Whether the column has bytes, not headers.
    rows : int or None
        Number of rows; None if it is unknown before reading.
    source : Source
        The source.
    file : Path or None
        The file, if the source is one.
    """

    def __init__(self, source: Source, name: str, request: RowRequest) -> None:
        self.name = name
        self._reader = open_reader(source, request)
        self.source = source
        self._first: list[tuple[pa.RecordBatch, pa.Array | None]] = []
        schema = self._reader.schema
        self._has_errors = _ERRORS in schema.names
        self.schema: pa.Schema = schema.remove(schema.get_field_index(_ERRORS)) if self._has_errors else schema
        if self.schema.names.count(name) != 1:
            raise Failure(f"{source.name} has no column {name!r}: {_names_text(self.schema.names)}")
        self.is_bytes = is_binary(self.schema.field(name).type)
        selects = request.where is not None or request.last is not None
        self.rows = None if selects else source.rows
        self.file = path if (path := Path(source.name)).is_file() else None

    def first_values(self, count: int) -> list[Any]:
        """Return the first non-null values, which :meth:`batches` still returns."""
        values: list[Any] = []
        for batch, errors in self._read():
            self._first.append((batch, errors))
            values += batch.column(self.name).drop_null().to_pylist()
            if len(values) >= count:
                break
        return values[:count]

    def empty(self) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return a batch without rows, in the form of :meth:`batches`."""
        return self._split(empty_batch(self._reader.schema))

    def batches(self) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
        """Read the source: rows, and the errors of rows that cannot be read or for which the condition is undecided."""
        return itertools.chain(self._first, self._read())

    def finish(self) -> int:
        """Report the findings about the source, and return the exit code."""
        return report_findings(self.source)

    def _read(self) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
        while True:
            with reading_errors():
                batch = next(self._reader, None)
            if batch is None:
                return
            yield self._split(batch)

    def _split(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        errors = batch.column(_ERRORS) if self._has_errors else None
        return batch.select(self.schema.names), errors


def open_column(
    text: str, column: str, request: RowRequest, *, errors: OnError = "raise", lists: bool = True, alone: bool = False
) -> SourceColumn:
    """Open a source with a column of bytes, or with ``lists`` of headers; with ``alone``, read no other column.

    ``errors`` is the policy for rows that cannot be read, or for which the condition is undecided.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise Failure(how_to_install("a table", "pyarrow", "letterhead[arrow]")) from error
    [source] = open_sources([text], request)
    check_request([source], request)
    names = column_names(source, request)
    if column not in names:
        raise Failure(f"{source.name} has no column {column!r}: {_names_text(names)}")
    chosen = () if alone else source.chosen_columns(request)
    request = replace(request, columns=(*chosen, *([] if column in chosen else [column])))
    with reading_errors():
        decodes = source.decodes(request)
    if decodes:
        request = replace(
            request, errors=errors, error_column=_ERRORS if has_error_column(errors) else request.error_column
        )
    opened = SourceColumn(source, column, request)
    type = opened.schema.field(column).type
    if not opened.is_bytes and not (lists and has_headers(type)):
        needed = "bytes (binary), or lists or maps of headers, are needed" if lists else "bytes (binary) are needed"
        raise Failure(f"column {column!r} of {source.name} is {type}: {needed}")
    return opened


def _names_text(names: Sequence[str]) -> str:
    return f"it has {', '.join(names)}" if names else "it is empty"
