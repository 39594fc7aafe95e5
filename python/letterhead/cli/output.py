"""Standard output, its encoding, and serialized messages written there or to a file."""

from __future__ import annotations

import base64
import codecs
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import BinaryIO, TextIO

from letterhead.cli.exits import BROKEN_PIPE, UNREADABLE, Failure, reason
from letterhead.cli.render import warn

# Replacements for characters outside a terminal's encoding.
SUBSTITUTES = {"…": "...", "─": "-", "━": "-", "—": "-"}

STANDARD_OUTPUT = Path("-")

TOMBSTONE = "{}: a null payload is a tombstone: the message is null and has no bytes"


def prepare_streams() -> None:
    """Configure streams to replace or escape characters outside the terminal's encoding."""
    codecs.register_error("letterhead.terminal", _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not is_utf8(stream):
            stream.reconfigure(errors="letterhead.terminal")


def is_utf8(stream: TextIO) -> bool:
    """Return whether the encoding of a stream is UTF-8."""
    with contextlib.suppress(LookupError):
        return codecs.lookup(stream.encoding or "").name == "utf-8"
    return False


def standard_output() -> BinaryIO:
    """Return standard output as a binary stream."""
    sys.stdout.flush()
    return sys.stdout.buffer


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    escaped = (SUBSTITUTES.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text)
    return "".join(escaped), error.end


def end_of_output(error: OSError) -> int:
    """Report that standard output failed, and return the exit code; report nothing if the reader of a pipe is gone."""
    # Python flushes standard output again at exit, so it is redirected to a file that accepts the bytes.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    what = f"cannot open {error.filename}" if error.filename is not None else "cannot write standard output"
    warn(f"{what}: {reason(error)}")
    return UNREADABLE


def check_terminal(option: str, is_text: bool, out: Path | None) -> None:
    """Reject writing bytes to a terminal before anything is read; `option` prints text instead."""
    if out in (None, STANDARD_OUTPUT) and not is_text and sys.stdout.isatty():
        raise Failure(f"bytes are not written to a terminal: use {option}, --out FILE, or a pipe")


def as_line(data: bytes, form: str | None) -> bytes:
    """Return the bytes unchanged, or encoded as a line of hex or base64."""
    if form is None:
        return data
    return (data.hex().encode() if form == "hex" else base64.b64encode(data)) + b"\n"
