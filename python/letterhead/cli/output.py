"""Where the bytes of a cell go: standard output, or a file."""

from __future__ import annotations

import sys
from pathlib import Path

from letterhead.cli.exits import FAULTS, Failure
from letterhead.cli.source import reason


def check_terminal(option: str, as_hex: bool, out: Path | None) -> None:
    """Refuse to write bytes to a terminal, before anything is read; `option` asks for hex instead."""
    if out is None and not as_hex and sys.stdout.isatty():
        raise Failure(f"bytes are not written to a terminal: use {option}, --out FILE, or a pipe")


def write_cell(data: bytes | None, format: str, *, as_hex: bool, out: Path | None) -> None:
    """Write the bytes of one cell, or hex; a cell that is null has none."""
    if data is None:
        raise Failure(f"{format}: a null payload is a tombstone: the cell is null and has no bytes", FAULTS)
    if as_hex:
        data = data.hex().encode() + b"\n"
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise Failure(f"cannot write {out}: {reason(error)}") from error
