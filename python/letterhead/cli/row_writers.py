"""Write record batches as JSON lines, CSV, Parquet, Arrow IPC or a table, to a file or to standard output: :func:`open_writer`.

Each writer holds one batch at a time. A file has its name only once it is complete: until then it ends in `.part`, and an
error, an interrupt or SIGTERM removes it.
"""

from __future__ import annotations

import contextlib
import io
import sys
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from letterhead import _native
from letterhead._formatting import printable
from letterhead.cli.exits import Failure, reason
from letterhead.cli.output import is_utf8, standard_output
from letterhead.cli.row_format import COMPRESSION, STANDARD_OUTPUT, Form, RowFormat, RowWriter, form_of
from letterhead.cli.row_table import RowTable
from letterhead.cli.row_text import csv_column, in_parts, json_types

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Form", "RowFormat", "RowWriter", "open_writer"]

Sink: TypeAlias = "StandardOutput | FileSink"


def open_writer(schema: pa.Schema, format: RowFormat) -> RowWriter:
    """Return a writer of rows of a schema."""
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
        match form:
            case Form.JSON:
                return JsonLines(sink, schema, epoch_ms=format.epoch_ms)
            case Form.CSV:
                return Csv(sink, schema, epoch_ms=format.epoch_ms)
            case Form.PARQUET:
                return Parquet(sink, schema)
            case _:
                return Arrow(sink, schema, is_file=form is Form.ARROW)
    except BaseException:
        sink.abort()
        raise


class StandardOutput:
    """Standard output; with ``escapes``, control characters of text are escaped if it is a terminal."""

    def __init__(self, *, escapes: bool) -> None:
        sys.stdout.flush()
        self._out: Any = standard_output()
        if escapes and sys.stdout.isatty():
            self._out = PrintableBytes(self._out)

    @property
    def file(self) -> Any:
        """A file for the writers of pyarrow."""
        return self._out

    def flush(self) -> None:
        """Pass on what was written."""
        self._out.flush()

    close = flush

    def abort(self) -> None:
        """Leave what was written."""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Pass errors on: the one of a closed pipe ends the command."""
        yield


class PrintableBytes(io.RawIOBase):
    """Passes UTF-8 text on with control characters escaped, line by line."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._line = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        *lines, self._line = (self._line + bytes(data)).split(b"\n")
        for line in lines:
            self._out.write(printable(line.decode(errors="backslashreplace")).encode() + b"\n")
        return len(data)

    def flush(self) -> None:
        self._out.flush()


class FileSink:
    """A file that gets its name once it is complete; a pipe or a device is written in place."""

    def __init__(self, path: Path, compression: str | None) -> None:
        import pyarrow as pa

        self._path = path
        in_place = path.exists() and not path.is_file()
        self._partial = None if in_place else path.with_name(path.name + ".part")
        with self.errors():
            self._file = (self._partial or path).open("wb")
        self._compressed = pa.CompressedOutputStream(self._file, compression) if compression else None

    @property
    def file(self) -> Any:
        """A file for the writers of pyarrow."""
        return self._file if self._compressed is None else self._compressed

    def flush(self) -> None:
        """Leave what was written in the buffer: nobody reads the file before it is complete."""

    def close(self) -> None:
        """Complete the file."""
        with self.errors():
            if self._compressed is not None:
                self._compressed.close()
            self._file.close()
            if self._partial is not None:
                self._partial.replace(self._path)

    def abort(self) -> None:
        """Remove the file."""
        # What is left in its buffer may not fit either.
        with contextlib.suppress(OSError):
            if self._compressed is not None:
                self._compressed.close()
        with contextlib.suppress(OSError):
            self._file.close()
        if self._partial is not None:
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Report errors of the operating system as a failure of the command."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(f"cannot write {self._path}: {reason(error)}") from error


class SinkWriter(RowWriter):
    """A writer whose bytes go to a sink."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch; on standard output its rows are visible at once."""
        with self.sink.errors():
            self.write_batch(batch)
            self.sink.flush()

    @abstractmethod
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch; errors of the operating system become failures."""

    def finish(self) -> None:
        """Write what follows the last row."""

    def close(self) -> None:
        try:
            with self.sink.errors():
                self.finish()
            self.sink.close()
        except BaseException:
            self.sink.abort()
            raise

    def abort(self) -> None:
        self.sink.abort()


class JsonLines(SinkWriter):
    """A line for each row. A batch is written while the next one is read: both release Python's lock for most of their work."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, epoch_ms: bool) -> None:
        super().__init__(sink)
        repeated = [name for name in schema.names if schema.names.count(name) > 1]
        if repeated:
            raise Failure(f"two columns are named {repeated[0]!r}, and an object of JSON has a name once")
        self._worker = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None
        self._options = {"epoch_ms": epoch_ms, "ascii": isinstance(sink, StandardOutput) and not is_utf8(sys.stdout)}

    def write(self, batch: pa.RecordBatch) -> None:
        """Begin to write a batch, and end with the one before; its error is raised here."""
        self._wait()
        self._written = self._worker.submit(super().write, batch)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for part in in_parts(json_types(batch)):
            self.sink.file.write(_native.json_lines(part, **self._options))

    def finish(self) -> None:
        self._wait()
        self._worker.shutdown()

    def abort(self) -> None:
        # The rows before an error are whole on standard output.
        self._worker.shutdown()
        super().abort()

    def _wait(self) -> None:
        if self._written is not None:
            self._written.result()


class Csv(SinkWriter):
    """RFC 4180, with names in the first line; headers and other lists are JSON, and null is empty without quotes."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, epoch_ms: bool) -> None:
        import pyarrow as pa
        from pyarrow import csv

        super().__init__(sink)
        self._epoch_ms = epoch_ms
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        self._writer = csv.CSVWriter(sink.file, self._text(empty).schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for part in in_parts(batch):
            self._writer.write_batch(self._text(part))

    def _text(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        columns = [csv_column(column, epoch_ms=self._epoch_ms) for column in json_types(batch).columns]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def finish(self) -> None:
        self._writer.close()


class Parquet(SinkWriter):
    """A Parquet file."""

    def __init__(self, sink: Sink, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        super().__init__(sink)
        self._writer = pq.ParquetWriter(sink.file, schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        # Otherwise its destructor completes the file.
        self._writer.is_open = False
        super().abort()


class Arrow(SinkWriter):
    """An Arrow IPC file or stream."""

    def __init__(self, sink: Sink, schema: pa.Schema, *, is_file: bool) -> None:
        import pyarrow as pa

        super().__init__(sink)
        self._writer = (pa.ipc.new_file if is_file else pa.ipc.new_stream)(sink.file, schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self) -> None:
        self._writer.close()
