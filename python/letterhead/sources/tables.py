"""A table as a source: Parquet, Arrow IPC or JSON lines, recognized by its first bytes, also if compressed; or Parquet files."""

from __future__ import annotations

import base64
import io
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from letterhead._arrow_types import is_list
from letterhead.errors import DamagedTableError
from letterhead.offsets.reading import last_rows
from letterhead.parquet_files import BATCH_ROWS, Table, damage, parquet_rows, parquet_table
from letterhead.reader import Reader
from letterhead.sources.base import RowRequest, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.column_filter import ColumnFilter
    from letterhead.fields import PlainKey

STANDARD_INPUT = "-"
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"
# Columns whose text is bytes: as `read --json` prints them.
BYTE_COLUMNS = ("key", "value", "payload")


class TableFile(Source):
    """A file, a directory of Parquet files, or standard input."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._table: Table | None = None
        self._view: TableView | None = None
        self._done = 0

    @property
    def fields(self) -> Iterable[str]:
        """The names of fields in a condition."""
        return [] if self._table is None else [name for name in self._table.schema.names if name != "headers"]

    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns."""
        self._table = self._table or open_table(self.name)
        names: list[str] = self._table.schema.names
        return names

    def unseen(self, request: RowRequest) -> list[PlainKey]:
        """Return the keys of headers in the condition that no row had."""
        return [] if self._view is None else self._view.unseen_headers

    def reader(self, request: RowRequest) -> Reader:
        """Return a stream of the rows."""
        self.check_without_offsets(request)
        self._table = self._table or open_table(self.name)
        view = self._view = TableView(self._table.schema, request)
        read = map(view, self._counted(self._table.read(view.needed)))
        last = request.last
        return Reader(view.schema, lambda: read if last is None else iter(last_rows(read, last)))

    @property
    def rows(self) -> int | None:
        """The number of rows of Parquet files."""
        return None if self._table is None else self._table.rows

    @property
    def unit(self) -> str:  # type: ignore[override]
        """Rows of Parquet files, and bytes of others."""
        return "byte" if self.rows is None else "row"

    @property
    def total(self) -> int | None:
        """The size of a file."""
        return None if self._table is None else self._table.bytes if self.rows is None else self.rows

    @property
    def done(self) -> int:
        """How much of it was read."""
        position = None if self._table is None else self._table.position
        return self._done if position is None else position()

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._done += len(batch)
            yield batch


class TableView:
    """Selects rows and columns of a table, and reads headers into typed columns."""

    def __init__(self, schema: pa.Schema, request: RowRequest) -> None:
        import pyarrow as pa

        from letterhead.operations import ReadOptions, Select

        self._request = request
        if request.columns is not None:
            for name in request.columns:
                if schema.names.count(name) != 1:
                    raise ValueError(f"there is no column {name!r}: there are {', '.join(schema.names)}")
        self._names = [
            name
            for name in (request.columns or schema.names)
            if request.columns is not None or not (request.headers and name == "headers")
        ]
        self._select = None
        if request.headers:
            options = ReadOptions(errors=request.errors, limits=request.limits)
            self._select = Select(format_of_headers(schema), request.headers, options)
        elif request.errors != "raise":
            raise ValueError("errors= is for a table with headers=: nothing else of it is decoded")
        self._filter, self._tested = _filter(schema, request)
        needs_headers = self._select is not None or (self._filter is not None and self._filter.has_headers)
        self.needed = [*dict.fromkeys([*self._names, *self._tested, *(["headers"] if needs_headers else [])])]
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        self.schema: pa.Schema = self(empty).schema

    @property
    def unseen_headers(self) -> list[PlainKey]:
        """Keys of headers in the condition that no row had."""
        return [] if self._filter is None else self._filter.unseen_headers

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the requested rows and columns of a batch."""
        import pyarrow as pa

        if self._filter is not None:
            batch = self._filter(batch)
        columns = {name: batch.column(name) for name in self._names}
        if self._select is not None:
            typed = self._select.run(batch.column("headers"))
            columns |= dict(zip(typed.type.names, typed.flatten(), strict=True))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def open_table(name: str) -> Table:
    """Open a table, of which one batch is in memory."""
    if name != STANDARD_INPUT and Path(name).is_dir():
        return parquet_table(Path(name))
    file: Any = sys.stdin.buffer if name == STANDARD_INPUT else open(name, "rb")  # noqa: SIM115
    label = "standard input" if name == STANDARD_INPUT else name
    with damage(label):
        table = _open(file if hasattr(file, "peek") else io.BufferedReader(file), label)
    if table.rows is None and name != STANDARD_INPUT and Path(name).is_file():
        size = Path(name).stat().st_size
        # A compressed stream closes the file at its end.
        table = table._replace(bytes=size, position=lambda: size if file.closed else file.tell())
    return table._replace(read=lambda columns: _checked(table.read(columns), label))


def _open(file: Any, label: str) -> Table:
    import pyarrow as pa

    head = file.peek(8)[:8]
    for magic, codec in COMPRESSED.items():
        if head.startswith(magic):
            file = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file, "r"), codec), 1 << 20)
            head = file.peek(8)[:8]
    if head.startswith(PARQUET):
        return _parquet(file)
    if head.startswith(ARROW_FILE):
        # After its first bytes, a file is a stream.
        file.read(len(ARROW_FILE))
    if head.startswith((ARROW_FILE, ARROW_STREAM)):
        stream = pa.ipc.open_stream(pa.PythonFile(file, "r"))
        return Table(stream.schema, lambda columns: iter(stream))
    if head.lstrip()[:1] == b"{" or not head:
        return _json_lines(file, label)
    raise ValueError(
        f"{label} is not a supported source: it is neither a log segment, nor Parquet, Arrow IPC or JSON lines "
        "(letterhead decode and inspect read one serialized message)"
    )


def _checked(batches: Iterator[pa.RecordBatch], label: str) -> Iterator[pa.RecordBatch]:
    while True:
        with damage(label):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _parquet(file: Any) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not (isinstance(file, io.BufferedReader) and isinstance(file.raw, io.FileIO) and file.seekable()):
        # Its columns are read from its end.
        spooled = tempfile.TemporaryFile()  # noqa: SIM115
        shutil.copyfileobj(file, spooled, 1 << 20)
        file = spooled
    parquet = pq.ParquetFile(pa.PythonFile(file, "r"))
    return Table(parquet.schema_arrow, lambda columns: parquet_rows(parquet, columns), parquet.metadata.num_rows)


def _json_lines(file: Any, label: str) -> Table:
    """Read objects, a line each. The first batch decides on the columns and their types."""
    import pyarrow as pa

    documents = _documents(file, label)
    first = list(itertools.islice(documents, BATCH_ROWS))
    schema = pa.RecordBatch.from_pylist(first).schema if first else pa.schema([])

    def batches() -> Iterator[pa.RecordBatch]:
        rows, before = first, 0
        while rows:
            for number, row in enumerate(rows, before + 1):
                unknown = row.keys() - set(schema.names)
                if unknown:
                    raise DamagedTableError(
                        f"{label}: line {number} has a name {min(unknown)!r}, which the first {BATCH_ROWS:,} lines lack"
                    )
            try:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                lines = f"lines {before + 1} to {before + len(rows)}"
                raise ValueError(f"{label}: {lines}: a value has another type than before") from error
            before += len(rows)
            rows = list(itertools.islice(documents, BATCH_ROWS))

    return Table(schema, lambda columns: batches())


def _documents(file: Any, label: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DamagedTableError(f"{label}: line {number} is not JSON") from error
        if not isinstance(document, dict):
            raise DamagedTableError(f"{label}: line {number} is not an object")
        yield {name: _value(name, value) for name, value in document.items()}


def _value(name: str, value: Any) -> Any:
    """Return a value of a document: bytes in base64 as bytes, and text as bytes where a record has bytes."""
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {key: _value(key, item) for key, item in value.items()}
    if isinstance(value, str) and name in BYTE_COLUMNS:
        return value.encode()
    if name == "headers" and isinstance(value, list):
        return [
            {key: item if key == "key" else _value(key, item) for key, item in header.items()}
            if isinstance(header, dict)
            else header
            for header in value
        ]
    return value


def format_of_headers(schema: pa.Schema, option: str = "headers=") -> str:
    """Return the format of a column of headers: typed headers come from Iggy."""
    import pyarrow as pa

    if schema.names.count("headers") != 1:
        raise ValueError(f"{option} needs a column of headers: there are {', '.join(schema.names)}")
    type = schema.field("headers").type
    if not is_list(type):
        raise ValueError(f"{option}: column 'headers' is {type}: read it with letterhead decode --column headers")
    is_typed = pa.types.is_struct(type.value_type) and type.value_type.get_field_index("type") >= 0
    return "iggy" if is_typed else "kafka"


def _filter(schema: pa.Schema, request: RowRequest) -> tuple[ColumnFilter | None, tuple[str, ...]]:
    from letterhead.column_filter import ColumnFilter

    if request.where is None:
        return None, ()
    fields = {field.name: kind for field in schema if (kind := _record_field(field.type)) is not None}
    format = format_of_headers(schema) if "headers" in schema.names else "kafka"
    column_filter = ColumnFilter(request.where, fields, request.headers, format, limits=request.limits)
    if column_filter.has_headers:
        format_of_headers(schema)
    return column_filter, tuple(column_filter.fields)


def _record_field(type: pa.DataType) -> Any:
    """Return the type of a column in a condition; None if it has none."""
    import pyarrow as pa

    from letterhead.where.program import RecordField

    types = pa.types
    if types.is_timestamp(type):
        return RecordField("timestamp" if type.unit in ("us", "ns") else "timestamp_ms")
    for name, matches in (
        ("int64", types.is_integer), ("float64", types.is_floating), ("bool", types.is_boolean), ("string", types.is_string),
        ("string", types.is_large_string), ("binary", types.is_binary), ("binary", types.is_large_binary),
    ):  # fmt: skip
        if matches(type):
            return RecordField(name)
    return None
