"""Write record batches as JSON lines, CSV, Parquet, Arrow IPC or a table, to a file or stdout: :func:`open_writer`.

Each writer buffers one batch; the writer of Parquet buffers one row group. A file has a temporary name until it is
complete; an error, an interrupt or SIGTERM removes it.
"""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from letterhead._arrow_types import is_text
from letterhead._background import Background
from letterhead._names import first_repeated
from letterhead._row_groups import RowGroups, UnwritableColumnError
from letterhead._table_batches import empty_batch
from letterhead._table_writers import COMPRESSION, JsonLinesWriter, split_batch
from letterhead.cli.exits import Failure
from letterhead.cli.output import is_utf8
from letterhead.cli.row_format import STANDARD_OUTPUT, Form, RowFormat, RowWriter, form_of
from letterhead.cli.row_table import RowTable
from letterhead.cli.row_text import csv_column, json_types
from letterhead.cli.sinks import FileSink, Sink, StandardOutput

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["open_writer"]


def open_writer(schema: pa.Schema, format: RowFormat) -> RowWriter:
    """Return a writer for rows of a schema."""
    form = form_of(format)
    if form is Form.TABLE:
        if format.target not in (None, STANDARD_OUTPUT):
            raise Failure("a table is written to standard output only: use .csv, .jsonl, .parquet or .arrow")
        return RowTable(schema, epoch_ms=format.epoch_ms, everything=format.everything, numbers=format.numbers)
    is_text = form in (Form.JSON, Form.CSV)
    target = format.target
    if target is None or target == STANDARD_OUTPUT:
        if not is_text and sys.stdout.isatty():
            raise Failure("bytes are not written to a terminal: use --out FILE, or a pipe")
        sink: Sink = StandardOutput(escapes=form is Form.CSV)
    else:
        sink = FileSink(target, COMPRESSION.get(target.suffix.lower()) if is_text else None)
    try:
        with _unwritable():
            return _writer(form, sink, schema, format)
    except BaseException:
        sink.abort()
        raise


def _writer(form: Form, sink: Sink, schema: pa.Schema, format: RowFormat) -> RowWriter:
    match form:
        case Form.JSON:
            return JsonLines(sink, schema, epoch_ms=format.epoch_ms)
        case Form.CSV:
            return Csv(sink, schema, epoch_ms=format.epoch_ms)
        case Form.PARQUET:
            return Parquet(sink, schema)
        case _:
            return Arrow(sink, schema, is_file=form is Form.ARROW)


@contextmanager
def _unwritable() -> Iterator[None]:
    """Report a column that a form does not store as a failure."""
    try:
        yield
    except UnwritableColumnError as error:
        raise Failure(f"{error}: write .arrow, or leave the column out by --columns") from error


class SinkWriter(RowWriter):
    """Writer of bytes to a sink."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch; on standard output its rows are visible immediately."""
        with self.sink.errors(), _unwritable():
            self.write_batch(batch)
            self.sink.flush()

    @abstractmethod
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch; errors of the operating system become failures."""

    def finish(self) -> None:
        """Write the end of the output after the last row."""

    def close(self) -> None:
        try:
            with self.sink.errors(), _unwritable():
                self.finish()
            self.sink.close()
        except BaseException:
            self.sink.abort()
            raise

    def abort(self) -> None:
        self.sink.abort()


class JsonLines(SinkWriter):
    """Writes one line per row. A batch is written while the next one is read: both release the GIL most of the time."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, epoch_ms: bool) -> None:
        super().__init__(sink)
        repeated = first_repeated(schema.names)
        if repeated is not None:
            raise Failure(f"two columns are named {repeated!r}, and an object of JSON has a name once")
        self._background: Background[None] = Background()
        ascii_only = isinstance(sink, StandardOutput) and not is_utf8(sys.stdout)
        self._lines = JsonLinesWriter(sink.file, epoch_ms=epoch_ms, ascii_only=ascii_only)

    def write(self, batch: pa.RecordBatch) -> None:
        """Start writing a batch after the previous batch is finished; an error of the previous batch is raised here."""
        self._background.start(super().write, batch)

    def flush(self) -> None:
        self._background.wait()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._lines.write_batch(json_types(batch))

    def finish(self) -> None:
        self._background.wait()
        self._background.close()

    def abort(self) -> None:
        # The rows before an error are complete on standard output.
        self._background.close()
        super().abort()


class Csv(SinkWriter):
    """Writes CSV by RFC 4180 with a header line; lists become JSON, and null an empty field without quotes.

    In a file of one column, null is ``""``: readers skip an empty line.
    """

    def __init__(self, sink: Sink, schema: pa.Schema, *, epoch_ms: bool) -> None:
        from pyarrow import csv

        super().__init__(sink)
        self._epoch_ms = epoch_ms
        empty = empty_batch(schema)
        self._writer = csv.CSVWriter(sink.file, self._text(empty).schema)
        self._has_null = self._has_empty = False

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for part in split_batch(batch):
            text = self._text(part)
            if text.num_columns == 1:
                self._write_column(text)
            else:
                self._writer.write_batch(text)

    def _write_column(self, batch: pa.RecordBatch) -> None:
        """Write rows of a single column."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        [column], [name] = batch.columns, batch.schema.names
        if is_text(column.type):
            self._has_null |= column.null_count > 0
            self._has_empty |= pc.any(pc.equal(column, "")).as_py() is True
            if self._has_null and self._has_empty:
                raise Failure(
                    f"column {name!r} has null and empty text, which look alike in CSV of one column: write .jsonl (--json), "
                    "or add a column by --columns"
                )
            self._writer.write_batch(pa.RecordBatch.from_arrays([pc.fill_null(column, "")], [name]))
            return
        lines = pa.BufferOutputStream()
        csv.write_csv(batch, lines, csv.WriteOptions(include_header=False))
        self.sink.file.write(re.sub(rb"(?m)^\n", b'""\n', lines.getvalue().to_pybytes()))

    def _text(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        columns = [csv_column(column, epoch_ms=self._epoch_ms) for column in json_types(batch).columns]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def finish(self) -> None:
        self._writer.close()


class Parquet(SinkWriter):
    """Writes a Parquet file, in row groups while the next rows are read."""

    def __init__(self, sink: Sink, schema: pa.Schema) -> None:
        super().__init__(sink)
        self._background: Background[None] = Background()
        self._groups = RowGroups(sink.file, self._background)
        self._groups.open(schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._groups.add(batch)

    def finish(self) -> None:
        self._groups.finish()
        self._background.close()

    def abort(self) -> None:
        self._background.close()
        self._groups.abort()
        super().abort()


class Arrow(SinkWriter):
    """Writes an Arrow IPC file or stream."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, is_file: bool) -> None:
        import pyarrow as pa

        super().__init__(sink)
        self._writer = (pa.ipc.new_file if is_file else pa.ipc.new_stream)(sink.file, schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self) -> None:
        self._writer.close()
