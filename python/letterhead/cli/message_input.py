"""Read one serialized message from a file, standard input, hex, base64, or a row of a table."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, TextIO

from letterhead._arrow_types import has_headers, is_binary
from letterhead._value_text import parse_base64, parse_hex
from letterhead.cli.exits import BAD_DATA, UNREADABLE, Failure, reason, usage_errors
from letterhead.limits import Limits

# Magic bytes at the start of files.
_PARQUET = b"PAR1"
_ARROW = b"ARROW1"


class MessageInput(NamedTuple):
    """Input of a command: one message, or with `column` a column of the source `file`."""

    file: str | None
    hex: str | None
    base64: str | None
    column: str | None

    @property
    def table(self) -> str:
        """Source of the column."""
        if self.hex is not None or self.base64 is not None or self.file is None:
            raise Failure("--column needs a SOURCE, such as a Parquet file")
        return self.file

    @property
    def log(self) -> str:
        """Topic or log segments with the record."""
        if self.hex is not None or self.base64 is not None or self.file in (None, "-"):
            raise Failure("--offset needs a topic, log segments or their directory")
        return str(self.file)

    def read(self, limits: Limits, row: int = 0, *, lists: bool = True) -> bytes:
        """Read one message; `lists` tells whether --column also accepts header columns."""
        sources = [name for name in ("file", "hex", "base64") if getattr(self, name) is not None]
        if len(sources) > 1:
            names = " and ".join("FILE" if name == "file" else f"--{name}" for name in sources)
            raise Failure(f"{names} exclude each other: give one of them")
        if self.column is not None:
            return _value(self.table, self.column, row, limits)
        if row:
            raise Failure("--row needs --column")
        with usage_errors():
            if self.hex is not None:
                return parse_hex(_text(self.hex), "--hex")
            if self.base64 is not None:
                return parse_base64(_text(self.base64), "--base64")
        limit: Any = limits.filled().message_bytes
        data = read_bytes(self.file, limit + 1)
        refuse_table(data, self.file, "pass --column NAME", lists=lists)
        if len(data) > limit:
            name = "standard input" if self.file in (None, "-") else str(self.file)
            raise Failure(
                f"{name} has more than {limit:,} bytes, the limit for a message: raise message_bytes in --limits",
                BAD_DATA,
            )
        return data


def read_bytes(file: str | None, max_bytes: int = -1) -> bytes:
    """Read a file or standard input completely, or only its first bytes."""
    with _open_input(file) as data, _read_errors(file):
        return data.read(max_bytes)


def read_lines(file: str | None) -> Iterator[bytes]:
    """Read the lines of a file or of standard input, one at a time."""
    with _open_input(file) as data:
        while True:
            with _read_errors(file):
                line = data.readline()
            if not line:
                return
            yield line


@contextmanager
def _open_input(file: str | None) -> Iterator[BinaryIO]:
    if file is None or file == "-":
        stdin = _standard_input()
        if file is None and stdin.isatty():
            raise Failure("no input: give a FILE, or - for standard input (see --help)")
        yield stdin.buffer
        return
    with _read_errors(file):
        data = open(file, "rb")  # noqa: SIM115
    with data:
        if _never_ends(data.fileno()):
            raise Failure(f"cannot read {file}: it is a device", UNREADABLE)
        yield data


@contextmanager
def _read_errors(file: str | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot read {file or 'standard input'}: {reason(error)}", UNREADABLE) from error


def _never_ends(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.isatty(descriptor))


def is_table(data: bytes) -> bool:
    """Return whether bytes are the start of a Parquet or Arrow IPC file."""
    return data.startswith((_ARROW, _PARQUET))


def refuse_table(data: bytes, file: str | None, remedy: str, *, lists: bool = True) -> None:
    """Reject a Parquet or Arrow IPC file where a message is needed, and name the columns for --column."""
    name = file if file not in (None, "-") else "standard input"
    if data.startswith(_ARROW):
        raise Failure(f"{name} is an Arrow IPC file: {remedy}")
    if data.startswith(_PARQUET):
        raise Failure(f"{name} is a Parquet file: {remedy}{_columns_that_fit(data, lists)}")


def _standard_input() -> TextIO:
    # Python sets `sys.stdin` to None if the parent process closed it.
    if sys.stdin is None:
        raise Failure("standard input is closed: give a FILE, --hex or --base64")
    return sys.stdin


def _text(argument: str) -> str:
    if argument != "-":
        return argument
    try:
        return _standard_input().buffer.read().decode("ascii")
    except UnicodeDecodeError as error:
        raise Failure(f"standard input is not text: byte {error.start} is not ASCII") from error


def _columns_that_fit(data: bytes, lists: bool) -> str:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pq.read_schema(pa.BufferReader(data))
    except (ImportError, OSError, ValueError):
        return ""  # reading the column reports the error
    fits = [field.name for field in schema if is_binary(field.type) or (lists and has_headers(field.type))]
    return f" (columns that fit: {', '.join(fits) or 'none'})"


def _value(source: str, name: str, row: int, limits: Limits) -> bytes:
    from letterhead._row_request import RowRequest
    from letterhead.cli.sources.columns import open_column

    column = open_column(source, name, RowRequest(limits=limits), lists=False, alone=True)
    rows = 0
    for batch, _ in column.batches():
        if row < rows + len(batch):
            value = batch.column(name)[row - rows].as_py()
            if value is None:
                raise Failure(f"row {row} of column {name!r} is null: there are no bytes to inspect", BAD_DATA)
            return bytes(value)
        rows += len(batch)
    raise Failure(f"row {row} is not in {source}: it has {rows:,} rows, counted from 0")
