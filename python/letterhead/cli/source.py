"""Where the bytes of a cell come from: a file, standard input, hex text, base64, or a row of a Parquet file."""

from __future__ import annotations

import base64 as base64_codec
import binascii
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from letterhead._optional_dependencies import how_to_install
from letterhead.cli.exits import FAULTS, Failure

if TYPE_CHECKING:
    import pyarrow.parquet

# Between bytes, and before them: `0x02 0x06`, `02:06`, `\x02\x06`, a dump over several lines.
_HEX_NOISE = re.compile(r"0[xX]|\\x|[\s,:]+")
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")

# What the files begin with.
_PARQUET = b"PAR1"
_ARROW = b"ARROW1"
_AS_PARQUET = "write it as Parquet (pyarrow.parquet.write_table) and pass --column NAME"


def read_cell(
    file: str | None,
    *,
    hex: str | None = None,
    base64: str | None = None,
    column: str | None = None,
    row: int = 0,
    lists: bool = True,
) -> bytes:
    """Read one message from the one source that was given; `lists` says whether --column takes lists of headers too."""
    given = [name for name, value in (("FILE", file), ("--hex", hex), ("--base64", base64)) if value is not None]
    if len(given) > 1:
        raise Failure(f"{' and '.join(given)} exclude each other: give one of them")
    if column is not None:
        if file in (None, "-"):
            raise Failure("--column needs a Parquet FILE")
        return _parquet_cell(Path(str(file)), column, row)
    if row:
        raise Failure("--row needs --column")
    if hex is not None:
        return parse_hex(_text(hex))
    if base64 is not None:
        return parse_base64(_text(base64))
    data = read_bytes(file)
    refuse_table(data, file, "pass --column NAME", lists=lists)
    return data


def read_bytes(file: str | None) -> bytes:
    """Read a file or standard input as it is."""
    if file is None or file == "-":
        given = _standard_input()
        if file is None and given.isatty():
            raise Failure("no input: give a FILE, or - for standard input (see --help)")
        return given.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {file}: {reason(error)}") from error


def refuse_table(data: bytes, file: str | None, remedy: str, *, lists: bool = True) -> None:
    """Refuse a Parquet or Arrow IPC file where a message is needed, and name the columns that --column takes."""
    name = file if file not in (None, "-") else "standard input"
    if data.startswith(_ARROW):
        raise Failure(f"{name} is an Arrow IPC file: {_AS_PARQUET}")
    if data.startswith(_PARQUET):
        raise Failure(f"{name} is a Parquet file: {remedy}{_columns_that_fit(data, lists)}")


def _columns_that_fit(data: bytes, lists: bool) -> str:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return ""  # what reads --column names the package that is missing
    try:
        schema = pq.read_schema(pa.BufferReader(data))
    except (OSError, pa.ArrowException):
        return ""
    fits = [field.name for field in schema if _is_bytes(field.type) or (lists and _is_headers(field.type))]
    return f" (columns that fit: {', '.join(fits) or 'none'})"


def _standard_input() -> TextIO:
    # Python has none where it was closed by whoever started the command.
    if sys.stdin is None:
        raise Failure("standard input is closed: give a FILE, --hex or --base64")
    return sys.stdin


def reason(error: OSError) -> str:
    """Say why a file cannot be used, without Python's error number."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()


def parse_hex(text: str, what: str = "--hex") -> bytes:
    """Turn hex text into bytes; separators and prefixes are skipped, anything else is refused."""
    digits = _HEX_NOISE.sub("", text)
    wrong = _NOT_HEX.search(digits)
    if wrong:
        raise Failure(f"{what}: {wrong.group()!r} is not a hex digit")
    if len(digits) % 2:
        raise Failure(f"{what}: {len(digits)} digits; bytes have two each")
    return bytes.fromhex(digits)


def parse_base64(text: str, what: str = "--base64") -> bytes:
    """Turn base64 text, of either alphabet, into bytes."""
    digits = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        return base64_codec.b64decode(digits, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Failure(f"{what}: {str(error).lower()}") from error


def open_parquet(path: Path, column: str) -> pyarrow.parquet.ParquetFile:
    """Open a Parquet file and check that it has a column of bytes of that name."""
    parquet, type = _opened(path, column)
    if not _is_bytes(type):
        raise Failure(f"column {column!r} of {path} is {type}: bytes (binary) are needed")
    return parquet


def open_headers(path: Path, column: str) -> tuple[pyarrow.parquet.ParquetFile, bool]:
    """Open a Parquet file and check that it has a column of bytes, or of headers; say whether it is of bytes."""
    parquet, type = _opened(path, column)
    if not _is_bytes(type) and not _is_list(type):
        raise Failure(f"column {column!r} of {path} is {type}: bytes (binary) or a list of headers are needed")
    return parquet, _is_bytes(type)


def _opened(path: Path, column: str) -> tuple[pyarrow.parquet.ParquetFile, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise Failure(how_to_install("a Parquet file", "pyarrow", "'letterhead[arrow]'")) from error
    if path.is_dir():
        raise Failure(f"cannot read {path}: is a directory")
    try:
        parquet = pq.ParquetFile(path)
    except OSError as error:
        raise Failure(f"cannot read {path}: {reason(error)}") from error
    except pa.ArrowInvalid as error:
        with path.open("rb") as file:
            if file.read(len(_ARROW)) == _ARROW:
                raise Failure(f"{path} is an Arrow IPC file: {_AS_PARQUET}") from error
        raise Failure(f"cannot read {path}: not a Parquet file") from error
    schema = parquet.schema_arrow
    if schema.names.count(column) != 1:
        raise Failure(f"{path} has no column {column!r}: it has {', '.join(schema.names)}")
    return parquet, schema.field(column).type


def _is_bytes(type: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type))


def _is_list(type: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(type) or pa.types.is_large_list(type))


def _is_headers(type: Any) -> bool:
    import pyarrow as pa

    return _is_list(type) and pa.types.is_struct(type.value_type) and type.value_type.get_field_index("key") >= 0


def _text(given: str) -> str:
    if given != "-":
        return given
    try:
        return _standard_input().buffer.read().decode("ascii")
    except UnicodeDecodeError as error:
        raise Failure(f"standard input is not text: byte {error.start} is not ASCII") from error


def _parquet_cell(path: Path, column: str, row: int) -> bytes:
    parquet = open_parquet(path, column)
    rows = parquet.metadata.num_rows
    if row >= rows:
        raise Failure(f"row {row} is not in {path}: it has {rows:,} rows, counted from 0")
    before = 0
    for batch in parquet.iter_batches(columns=[column]):
        if row < before + batch.num_rows:
            value = batch.column(0)[row - before].as_py()
            if value is None:
                raise Failure(f"row {row} of column {column!r} is null: there are no bytes to look at", FAULTS)
            return bytes(value)
        before += batch.num_rows
    raise Failure(f"row {row} is not in {path}")
