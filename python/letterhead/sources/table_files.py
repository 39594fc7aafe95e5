"""Open Parquet, Arrow IPC or JSON lines, compressed or not, recognized by their first bytes: :func:`open_table`."""

from __future__ import annotations

import errno
import io
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from letterhead._arrow_types import ArrowStream, read_table
from letterhead._object_paths import ObjectPath, path_of
from letterhead._parquet_files import Table, open_parquet, parquet_rows, parquet_table, tables_of
from letterhead._table_batches import check_batches, damage, schema_without_encodings
from letterhead._table_writers import form_of_name
from letterhead.errors import DamagedTableError
from letterhead.limits import Limits, how_to_raise
from letterhead.sources.arrow_messages import CheckedMessages, checked_file_batches, most_decompressed
from letterhead.sources.json_lines import BOM, json_lines_table

__all__ = ["STANDARD_INPUT", "arrow_table", "open_table"]

STANDARD_INPUT = "-"
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
PARQUET, ARROW_FILE, ARROW_STREAM = b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"

ARROW_ROWS = 1 << 16
"""Maximum number of rows in a batch of an Arrow file or table; all rows are in memory anyway."""

_PIECE = 1 << 20


def open_table(name: str, limits: Limits | None = None) -> Table:
    """Open a table, keeping one batch in memory at a time.

    Parameters
    ----------
    name : str
        A file or a directory of Parquet files, also by the URL of an object store, or ``-`` for standard input.
    limits : Limits, optional
        Limits on the size of decompressed data, of JSON lines and of batches.

    Raises
    ------
    ValueError
        If the format of the file is not recognized.
    DamagedTableError
        If the file is damaged, or exceeds a limit.
    """
    path = path_of(name)
    if name != STANDARD_INPUT and path.is_dir():
        if isinstance(path, ObjectPath) and not tables_of(path):
            raise FileNotFoundError(f"{path} has no Parquet files (.parquet)")
        return parquet_table(path, limits=limits)
    if isinstance(path, ObjectPath):
        return _object_table(path, limits)
    with ExitStack() as files:
        if name == STANDARD_INPUT:
            stdin: Any = sys.stdin.buffer
            stdin = stdin if hasattr(stdin, "peek") else io.BufferedReader(stdin)
            return _open(stdin, "standard input", limits, files)._replace(close=files.pop_all().close)
        file = files.enter_context(open(name, "rb"))
        table = _open(file, name, limits, files)
        if table.rows is None and Path(name).is_file():
            size = Path(name).stat().st_size
            table = table._replace(bytes=size, position=lambda: size if file.closed else file.tell())
        return table._replace(close=files.pop_all().close)


def arrow_table(data: ArrowStream, label: str, limits: Limits | None = None) -> Table:
    """Open a table or a stream of any Arrow library."""
    stream = read_table(data)
    schema = schema_without_encodings(stream.schema)
    return Table(schema, lambda columns, last: check_batches(stream, label, ARROW_ROWS, last, limits))


def _object_table(path: ObjectPath, limits: Limits | None) -> Table:
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no such object", str(path))
    with ExitStack() as files:
        file = files.enter_context(io.BufferedReader(path.open(), _PIECE))
        if file.peek(8).startswith(PARQUET):  # only the needed parts of the object are requested
            return parquet_table(path, limits=limits)
        return _open(file, str(path), limits, files)._replace(close=files.pop_all().close)


def _open(file: Any, label: str, limits: Limits | None, files: ExitStack) -> Table:
    """Return the table of an open file. Temporary files that the table needs are added to ``files``."""
    with damage(label):
        return _recognized(file, label, limits, files)


def _recognized(file: Any, label: str, limits: Limits | None, files: ExitStack) -> Table:
    import pyarrow as pa

    compressed: _CountedReads | None = None
    codec = _codec(file)
    if codec is not None:
        compressed = _CountedReads(file)
        file = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(compressed, "r"), codec), _PIECE)
        if _codec(file) is not None:
            raise ValueError(f"{label} is compressed twice: decompress it once, and read the result")
    head = file.peek(8)[:8]
    if head.startswith(PARQUET):
        return _parquet(_seekable(file, label, limits, compressed, files), label, limits)
    if head.startswith(ARROW_FILE) and not file.peek(16).startswith((ARROW_FILE + ARROW_STREAM), 0, 12):
        schema, batches = checked_file_batches(_seekable(file, label, limits, compressed, files), label, limits)
        return Table(
            schema_without_encodings(schema),
            lambda columns, last: check_batches(batches, label, ARROW_ROWS, last, limits),
        )
    if head.startswith(ARROW_FILE):
        # A stream follows the magic bytes.
        file.read(len(ARROW_FILE))
    if head.startswith((ARROW_FILE, ARROW_STREAM)):
        stream = pa.ipc.open_stream(pa.PythonFile(CheckedMessages(file, label, limits), "r"))
        schema = schema_without_encodings(stream.schema)
        return Table(schema, lambda columns, last: check_batches(stream, label, ARROW_ROWS, last, limits))
    form, _ = form_of_name(label)
    if not head and form not in (None, "json"):
        raise DamagedTableError(f"cannot read {label}: it is empty, and was probably not written completely")
    if head.removeprefix(BOM).lstrip()[:1] in (b"{", b""):
        schema, batches = json_lines_table(file, label, limits, is_compressed=compressed is not None)
        schema = schema_without_encodings(schema)
        return Table(schema, lambda columns, last: check_batches(batches, label, limits=limits))
    raise ValueError(
        f"{label} is not a supported source: it is neither a log segment, nor Parquet, Arrow IPC or JSON lines "
        "(letterhead decode and inspect read one serialized message)"
    )


def _codec(file: Any) -> str | None:
    head = file.peek(4)[:4]
    return next((codec for magic, codec in COMPRESSED.items() if head.startswith(magic)), None)


class _CountedReads:
    """File that counts the bytes read."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self.count += len(data)
        return data


def _seekable(file: Any, label: str, limits: Limits | None, compressed: _CountedReads | None, files: ExitStack) -> Any:
    """Return a file with random access; a stream is copied to a temporary file."""
    if isinstance(file, io.BufferedReader) and isinstance(file.raw, io.FileIO) and file.seekable():
        return file
    spooled = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    while piece := file.read(_PIECE):
        spooled.write(piece)
        if compressed is not None and spooled.tell() > (most := most_decompressed(compressed.count, limits)):
            raise DamagedTableError(
                f"cannot read {label}: {compressed.count:,} bytes decompress to more than {most:,}: "
                f"{how_to_raise('decompressed_bytes')}"
            )
    return spooled


def _parquet(file: Any, label: str, limits: Limits | None) -> Table:
    import pyarrow as pa

    parquet = open_parquet(pa.PythonFile(file, "r"))
    rows = parquet.metadata.num_rows
    return Table(
        schema_without_encodings(parquet.schema_arrow),
        lambda columns, last: parquet_rows(parquet, columns, label, last, limits=limits),
        rows,
    )
