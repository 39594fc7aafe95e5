"""Write one serialized message to standard output or to a file."""

from __future__ import annotations

import sys
from pathlib import Path

from letterhead.cli.exits import BAD_DATA, Failure
from letterhead.cli.source import reason


def check_terminal(option: str, as_hex: bool, out: Path | None) -> None:
    """Refuse to write bytes to a terminal, before anything is read; `option` prints text instead."""
    if out is None and not as_hex and sys.stdout.isatty():
        raise Failure(f"bytes are not written to a terminal: use {option}, --out FILE, or a pipe")


def write_message(data: bytes | None, format: str, *, as_hex: bool, out: Path | None) -> None:
    """Write bytes, or hex."""
    if data is None:
        raise Failure(f"{format}: a null payload is a tombstone: the message is null and has no bytes", BAD_DATA)
    if as_hex:
        data = data.hex().encode() + b"\n"
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_file(out, data)


def write_file(path: Path, data: bytes) -> None:
    """Write a file; an error ends the command."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise Failure(f"cannot write {path}: {reason(error)}") from error
