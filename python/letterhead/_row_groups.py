"""Group rows of a file for writing: :class:`RowGroups`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

from letterhead._background import Background
from letterhead._table_writers import TableWriter, table_writer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowGroups", "UnwritableColumnError"]

_GROUP_BYTES = 32 << 20
"""Size of a row group in bytes."""


class RowGroups:
    """Writes records to an open file in groups of 32 MiB, each in the background.

    Attributes
    ----------
    held : int
        Bytes of the records that wait for their group.
    size : int
        Bytes of all records before compression.
    """

    def __init__(self, file: Any, background: Background[None], form: str = "parquet") -> None:
        self._file = file
        self._background = background
        self._form = form
        self._writer: TableWriter | None = None
        self._batches: list[pa.RecordBatch] = []
        self.held = 0
        self.size = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records."""
        self._batches.append(rows)
        size = rows.nbytes
        self.held += size
        self.size += size
        if self.held >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Start to write the buffered records."""
        import pyarrow as pa

        if self._batches:
            group = pa.Table.from_batches(self._batches)
            self._background.start(self._write, self.open(group.schema), group)
            self._batches.clear()
            self.held = 0

    def finish(self, schema: pa.Schema | None = None) -> None:
        """Write the remaining rows and the footer; without records, the file has ``schema``."""
        self.flush()
        self._background.wait()
        if schema is not None:
            self.open(schema)
        self.close()

    def close(self) -> None:
        """Close the writer, but not the file."""
        if self._writer is not None:
            self._writer.close()

    def abort(self) -> None:
        """Drop the file: nothing more is written to it."""
        if self._form == "parquet" and self._writer is not None:
            # The destructor would write the footer.
            self._writer.is_open = False  # type: ignore[attr-defined]

    def open(self, schema: pa.Schema) -> TableWriter:
        """Return the writer, created on first use; raise if a type cannot be written."""
        import pyarrow as pa

        if self._writer is None:
            with _naming_column(self._form, pa.Table.from_batches([], schema)):
                self._writer = table_writer(self._form, self._file, schema)
        return self._writer

    def _write(self, writer: TableWriter, group: pa.Table) -> None:
        with _naming_column(self._form, group):
            writer.write_table(group)


class UnwritableColumnError(ValueError):
    """A column has a type or a value that a file format cannot store."""


@contextmanager
def _naming_column(form: str, rows: pa.Table) -> Iterator[None]:
    """Name the column in errors of pyarrow's writers, whose own messages quote values and do not name the column."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        for index, field in enumerate(rows.schema):
            empty = pa.Table.from_batches([], pa.schema([field]))
            what = None if _is_writable(form, empty) else "that type"
            if what is None and not _is_writable(form, rows.select([index])):
                what = "a value of it"
            if what is not None:
                raise UnwritableColumnError(
                    f"column {field.name!r} is {field.type}, and {form} cannot store {what}"
                ) from error
        raise


def _is_writable(form: str, rows: pa.Table) -> bool:
    import pyarrow as pa

    try:
        writer = table_writer(form, BytesIO(), rows.schema)
        writer.write_table(rows)
        writer.close()
    except pa.ArrowException:
        return False
    return True
