"""Read a Parquet file, or a directory of files as Spark writes it, as one table: :func:`parquet_table`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from letterhead._formatting import count_noun
from letterhead._invariants import require
from letterhead._object_paths import ObjectPath
from letterhead._table_batches import (
    BATCH_ROWS,
    check_batches,
    common_type,
    damage,
    first_line,
    schema_without_encodings,
)
from letterhead.errors import DamagedTableError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from letterhead.limits import Limits

__all__ = ["Table", "open_parquet", "parquet_rows", "parquet_table", "read_footer", "tables_of"]

# Number of threads that read footers.
THREADS = 8
_TAIL_BYTES = 1 << 16
"""Number of bytes read at once from the end of a Parquet file; most footers are smaller."""
# Table formats whose log lists their files: other files in the directory are not part of the table.
LOGS = {"Delta": "_delta_log", "Iceberg": "metadata/*.metadata.json"}
COMMITTED = "_spark_metadata"
"""Log of a streaming query of Spark, which lists the files that it committed."""
_BATCH = re.compile(r"[0-9]+(\.compact)?")
"""Names of the files of that log."""


_Path = Path | ObjectPath


class Table(NamedTuple):
    """Open table. ``rows`` is None if the number is unknown.

    ``read`` returns batches with at least the given columns and, unless None, at least the given number of last rows.

    ``position`` returns how many of the file's ``bytes`` were read, if both are known. ``close`` closes the file that is
    read; files of a directory are open only while their batches are read.
    """

    schema: pa.Schema
    read: Callable[[Sequence[str], int | None], Iterator[pa.RecordBatch]]
    rows: int | None = None
    bytes: int | None = None
    position: Callable[[], int] | None = None
    close: Callable[[], None] = lambda: None


def tables_of(directory: _Path) -> list[_Path]:
    """Return the Parquet files of a directory and of its partition directories (``key=value``), in order.

    Names that begin with a dot or an underscore are skipped, and so are files that a streaming query of Spark did not
    commit. A file or directory behind several links is read once.
    """
    for name, pattern in LOGS.items():
        if next(directory.glob(pattern), None) is not None:
            raise ValueError(
                f"{directory} is a table of {name}, whose log tells which of its files to read: write its rows to Parquet"
            )
    files = list(_files(directory, {_resolve(directory)}))
    log = directory / COMMITTED
    if not log.is_dir():
        return files
    committed = _list_committed_names(log)
    if missing := len(committed.difference(path.name for path in files)):
        raise DamagedTableError(
            f"cannot read {directory}: it lacks {count_noun(missing, 'file')} that {COMMITTED} names"
        )
    return [path for path in files if path.name in committed]


def _sorted_paths(directory: _Path) -> list[_Path]:
    paths: list[Any] = [*directory.iterdir()]
    return sorted(paths)


def _resolve(path: _Path) -> str:
    """Resolve links in a path. Unlike :meth:`Path.resolve`, this does not fail for a link to itself."""
    return os.path.realpath(path) if isinstance(path, Path) else str(path)


def _files(directory: _Path, seen: set[str]) -> Iterator[_Path]:
    for path in _sorted_paths(directory):
        if path.name.startswith((".", "_")):
            continue
        is_directory = path.is_dir() and "=" in path.name
        if not is_directory and (path.is_dir() or path.suffix != ".parquet"):
            continue
        resolved = _resolve(path)
        if resolved in seen:
            continue
        seen.add(resolved)
        if is_directory:
            yield from _files(path, seen)
        elif path.is_file():
            yield path
        else:  # reading a named pipe would wait for a writer
            raise ValueError(f"{path} is not a regular file: pass Parquet files or log segments")


def _list_committed_names(log: _Path) -> set[str]:
    """Return the names of the files that a streaming query committed and has not deleted."""
    added: set[str] = set()
    deleted: set[str] = set()
    for path in _sorted_paths(log):
        if _BATCH.fullmatch(path.name) is None:
            continue
        if not path.is_file():  # reading a named pipe would wait for a writer
            raise DamagedTableError(f"cannot read {path}: it is not a regular file")
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if number == 1 and line.startswith(b"v"):
                continue  # the version of the log
            try:
                entry = json.loads(line)
                name = unquote(entry["path"]).rpartition("/")[2]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise DamagedTableError(f"cannot read {path}: line {number} names no file") from None
            (deleted if entry.get("action") == "delete" else added).add(name)
    return added - deleted


def parquet_table(path: _Path, batch_rows: int = BATCH_ROWS, limits: Limits | None = None) -> Table:
    """Open a Parquet file, or a directory of Parquet files, whose partition directories (``key=value``) become columns."""
    import pyarrow as pa

    files = tables_of(path) if path.is_dir() else [path]
    if not files:
        return Table(pa.schema([]), lambda columns, last: iter(()), 0)

    def footer(file: _Path) -> tuple[pa.Schema, int]:
        metadata = read_footer(file)
        with damage(str(file)):
            return schema_without_encodings(metadata.schema.to_arrow_schema().remove_metadata()), metadata.num_rows

    with ThreadPoolExecutor(THREADS) as threads:
        footers = [*threads.map(footer, files)]
    keys = [_partition_keys(path, file) for file in files]
    columns = _merged_columns([(file, schema) for file, (schema, _) in zip(files, footers, strict=True)])
    in_paths = [
        pa.field(name, _partition_type([own.get(name) for own in keys]))
        for name in dict.fromkeys(name for own in keys for name in own)
        if name not in columns
    ]
    schema = pa.schema([*(column.field for column in columns.values()), *in_paths])

    def read(names: Sequence[str], last: int | None) -> Iterator[pa.RecordBatch]:
        fields = [field for field in schema if field.name in names]
        for file, own_keys in zip(files, keys, strict=True):
            with file.open("rb") as opened, damage(str(file)):
                parquet = open_parquet(opened, is_remote=isinstance(file, ObjectPath))
                own = [name for name in parquet.schema_arrow.names if name in names]
                for batch in parquet_rows(parquet, own, str(file), last, batch_rows, limits):
                    arrays = [_column(batch, field, columns.get(field.name), file, own_keys) for field in fields]
                    yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    return Table(schema, read, sum(rows for _, rows in footers))


class _Merged(NamedTuple):
    """Column merged from several files, and the file that determines its type."""

    field: pa.Field
    file: _Path


def _merged_columns(schemas: Sequence[tuple[_Path, pa.Schema]]) -> dict[str, _Merged]:
    """Return the columns of files, each with a type that can hold all of its values; raise ValueError if there is none."""
    merged: dict[str, _Merged] = {}
    for file, schema in schemas:
        for field in schema:
            known = merged.get(field.name)
            if known is None:
                merged[field.name] = _Merged(field, file)
                continue
            type = common_type(known.field.type, field.type)
            if type is None:
                raise ValueError(
                    f"the Parquet files have columns of different types: {field.name!r} is {known.field.type} in {known.file}, "
                    f"and {field.type} in {file}: {_ONE_TYPE}"
                )
            if type != known.field.type:
                merged[field.name] = _Merged(known.field.with_type(type), file)
    # Other files may have nulls.
    return {name: column._replace(field=column.field.with_nullable(True)) for name, column in merged.items()}


_ONE_TYPE = "read each file alone, or write the column with one type"


DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Name of the directory for nulls."""


def _partition_keys(directory: _Path, file: _Path) -> dict[str, str | None]:
    """Return the Hive partition keys in a file's path, and their values."""
    parts = _path_in_store(file)[len(_path_in_store(directory)) :].replace(os.sep, "/").split("/")[:-1]
    keys: dict[str, str | None] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if equals:
            keys.setdefault(unquote(name), None if value == DEFAULT_PARTITION else unquote(value))
    return keys


_WHOLE = re.compile(r"-?[0-9]+")


def _partition_type(values: Sequence[str | None]) -> pa.DataType:
    """Return int32 if all values are 32-bit integers, otherwise text."""
    import pyarrow as pa

    texts = [value for value in values if value is not None]
    are_numbers = bool(texts) and all(_WHOLE.fullmatch(text) and -(1 << 31) <= int(text) < 1 << 31 for text in texts)
    return pa.int32() if are_numbers else pa.string()


def _path_in_store(path: _Path) -> str:
    return path.path if isinstance(path, ObjectPath) else str(path)


def read_footer(path: _Path) -> pq.FileMetaData:
    """Return the metadata of a Parquet file; store errors raise OSError, damage raises :class:`DamagedTableError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        needed = min(size, int.from_bytes(tail[-8:-4], "little") + 8)
        if needed > len(tail):
            file.seek(size - needed)
            tail = file.read()
    try:
        return pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError) as error:
        raise DamagedTableError(f"cannot read {path}: it is damaged: {first_line(error)}") from error


def open_parquet(file: Any, *, is_remote: bool = False) -> pq.ParquetFile:
    """Open a Parquet file without decoding dictionaries of text and bytes, because one value may fill every row."""
    import pyarrow.parquet as pq

    metadata = pq.ParquetFile(file).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    encoded = [
        metadata.schema.column(number).path
        for number in range(metadata.num_columns)
        if metadata.schema.column(number).physical_type == "BYTE_ARRAY"
        and any(group.column(number).has_dictionary_page for group in groups)
    ]
    # With pre_buffer, one request reads neighbouring columns of a row group.
    return pq.ParquetFile(file, metadata=metadata, read_dictionary=encoded, pre_buffer=is_remote)


def parquet_rows(
    parquet: pq.ParquetFile,
    columns: Sequence[str],
    label: str,
    last: int | None,
    batch_rows: int = BATCH_ROWS,
    limits: Limits | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file for :class:`Table`, in batches checked by :func:`letterhead._table_batches.check_batches`."""
    names = parquet.schema_arrow.names
    # pyarrow reads a dot in a column name as a path to a nested field.
    is_plain = len(set(names)) == len(names) and not any("." in name for name in columns)
    # Dictionaries of nested columns differ between row groups, and pyarrow cannot combine them in one batch.
    batches = chain.from_iterable(
        parquet.iter_batches(batch_rows, row_groups=[group], columns=[*columns] if is_plain else None)
        for group in _last_groups(parquet.metadata, last)
    )
    return check_batches(batches, label, batch_rows, last, limits)


def _last_groups(metadata: pq.FileMetaData, last: int | None) -> Sequence[int]:
    """Return the indices of the row groups that contain the last rows."""
    groups = range(metadata.num_row_groups)
    if last is None:
        return groups
    rows, first = 0, len(groups)
    while first and rows < last:
        first -= 1
        rows += metadata.row_group(first).num_rows
    return groups[first:]


def _column(
    batch: pa.RecordBatch, field: pa.Field, merged: _Merged | None, file: _Path, keys: Mapping[str, str | None]
) -> pa.Array:
    """Return a column of a file, or a constant column with the value in its partition path."""
    import pyarrow as pa

    name, type = field.name, field.type
    if name not in batch.schema.names:
        return pa.repeat(_partition_value(field, file, keys.get(name)), len(batch))
    column = batch.column(name)
    try:
        column = column.cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        other = require(merged, "the column of a file").file
        raise ValueError(
            f"column {name!r} is {column.type} in {file}, and would be {type} with {other}, which cannot hold all of its "
            f"values: {_ONE_TYPE}"
        ) from None
    if name in keys and not _are_equal(column, _partition_value(field, file, keys[name])):
        raise _contradiction(field, file, "and the file has other values in it")
    return column


def _partition_value(field: pa.Field, file: _Path, text: str | None) -> pa.Scalar[Any]:
    """Return the value in a partition path."""
    import pyarrow as pa

    try:
        # pyarrow converts text to a number only by a cast.
        return pa.scalar(text).cast(field.type) if text is not None else pa.scalar(None, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _contradiction(field, file, f"and files have {field.type} in it") from None


def _are_equal(column: pa.Array, value: pa.Scalar[Any]) -> bool:
    """Return whether every row equals a value; for a null value, whether every row is null."""
    import pyarrow.compute as pc

    if not value.is_valid:
        return bool(column.null_count == len(column))
    return not column.null_count and pc.all(pc.equal(column, value)).as_py() is not False


def _contradiction(field: pa.Field, file: _Path, why: str) -> ValueError:
    return ValueError(
        f"{file}: its directories name the column {field.name!r}, {why}: read the file alone to get its column, or move it to "
        "the directory of its values"
    )
