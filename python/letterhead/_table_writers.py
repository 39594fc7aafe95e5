"""Write record batches as Parquet, Arrow IPC or JSON lines, by file extension: :func:`table_writer`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

from letterhead import _native
from letterhead._arrow_types import convert_children

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COMPRESSION", "FORMS", "JsonLinesWriter", "TableWriter", "as_json_types", "form_of_name", "split_batch", "table_writer",
]  # fmt: skip

FORMS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".arrows": "arrow_stream",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
"""Output forms by file extension."""

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
"""File extensions of compressed text, and the names of their codecs in pyarrow."""

_ROWS_AS_TEXT = 2048
_BYTES_AS_TEXT = 4 << 20
"""Maximum numbers of rows and of bytes that are formatted as text at a time."""


class TableWriter(Protocol):
    """Interface of pyarrow's writers."""

    def write_table(self, table: pa.Table, /) -> None:
        """Write rows."""

    def close(self) -> None:
        """Complete the file after the last row."""


def form_of_name(name: str) -> tuple[str | None, str | None]:
    """Return the form that a file extension implies, and the codec of compressed text; None for unknown extensions."""
    path = PurePath(PurePath(name).name.lower())
    codec = COMPRESSION.get(path.suffix)
    if codec is None:
        return FORMS.get(path.suffix), None
    form = FORMS.get(PurePath(path.stem).suffix)
    return (form, codec) if form == "json" else (None, codec)


def table_writer(form: str, file: Any, schema: pa.Schema) -> TableWriter:
    """Return a writer of a form to an open file."""
    import pyarrow as pa

    if form == "json":
        return JsonLinesWriter(file)
    if form == "parquet":
        import pyarrow.parquet as pq

        writer: TableWriter = pq.ParquetWriter(file, schema, compression="zstd")
        return writer
    return (pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream)(file, schema)  # type: ignore[no-any-return]


class JsonLinesWriter:
    """Writes a JSON object for each row; bytes that are not UTF-8 are ``{"base64": ...}``.

    Parameters
    ----------
    file : binary file
        The file to write.
    epoch_ms : bool
        Whether times are milliseconds since 1970.
    ascii_only : bool
        Whether other characters are escaped.
    """

    def __init__(self, file: Any, *, epoch_ms: bool = False, ascii_only: bool = False) -> None:
        self._file = file
        self._options = {"epoch_ms": epoch_ms, "ascii_only": ascii_only}

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        for part in split_batch(as_json_types(batch)):
            self._file.write(_native.json_lines(part, **self._options))

    def write_table(self, table: pa.Table) -> None:
        """Write the rows of a table."""
        for batch in table.to_batches():
            self.write_batch(batch)

    def close(self) -> None:
        """Do nothing: a JSON lines file has no footer."""


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch to limit the memory that its text takes."""
    rows = max(1, min(_ROWS_AS_TEXT, len(batch) * _BYTES_AS_TEXT // max(1, batch.nbytes)))
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def as_json_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast columns to types that the core can write as JSON."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_cast(column) for column in batch.columns], names=batch.schema.names)


def _cast(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, pa.ExtensionArray):
        is_uuid = isinstance(column.type, pa.UuidType)
        # pyarrow cannot cast UUIDs to text.
        texts = [None if value is None else str(value) for value in column.to_pylist()] if is_uuid else []
        column = pa.array(texts, pa.string()) if is_uuid else column.storage
    type = _json_type(column.type)
    return column if type == column.type else column.cast(type)


def _json_type(type: pa.DataType) -> pa.DataType:
    """Return the type in which the core writes a column as JSON: its own type if supported."""
    import pyarrow as pa

    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        storage = _json_type(type.storage_type)
        return type if storage == type.storage_type else storage
    if types.is_dictionary(type):
        return _json_type(type.value_type)
    if types.is_map(type):
        key, item = _json_type(type.key_type), _json_type(type.item_type)
        return pa.list_(pa.struct([("key", key), ("value", item)]))
    if types.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(_json_type(type.value_type)))
    if types.is_nested(type):
        return convert_children(type, _json_type)
    if types.is_fixed_size_binary(type):
        return pa.binary()
    if types.is_float16(type):
        return pa.float32()
    if types.is_date(type) or types.is_time(type) or (types.is_decimal(type) and (type.scale or type.bit_width != 128)):
        return pa.string()
    if types.is_duration(type):
        return pa.int64()
    return type
