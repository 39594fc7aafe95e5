"""Destinations of output: :class:`StandardOutput`, and :class:`FileSink`, which renames a file when it is complete."""

from __future__ import annotations

import contextlib
import io
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from letterhead._formatting import printable
from letterhead.cli.exits import UNREADABLE, Failure, reason
from letterhead.cli.output import STANDARD_OUTPUT, standard_output

__all__ = ["FileSink", "Sink", "StandardOutput", "open_sink", "write_bytes"]

Sink: TypeAlias = "StandardOutput | FileSink"


@contextmanager
def open_sink(out: Path | None) -> Iterator[Sink]:
    """Open a file or standard output; complete it at the end, and remove an incomplete file after an error."""
    sink = StandardOutput() if out in (None, STANDARD_OUTPUT) else FileSink(out)
    try:
        yield sink
        sink.close()
    except BaseException:
        sink.abort()
        raise


def write_bytes(data: bytes, out: Path | None) -> None:
    """Write bytes to a file or to standard output."""
    with open_sink(out) as sink, sink.errors():
        sink.file.write(data)


class StandardOutput:
    """Standard output; with ``escapes``, control characters of text are escaped on a terminal."""

    def __init__(self, *, escapes: bool = False) -> None:
        sys.stdout.flush()
        self._out: Any = standard_output()
        if escapes and sys.stdout.isatty():
            self._out = PrintableBytes(self._out)

    @property
    def file(self) -> Any:
        """Standard output as a file object for pyarrow's writers."""
        return self._out

    def flush(self) -> None:
        """Flush standard output."""
        self._out.flush()

    close = flush

    def abort(self) -> None:
        """Do nothing: written output cannot be taken back."""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Pass errors on: a closed pipe ends the command."""
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
    """File that is renamed when it is complete; pipes and devices are written directly."""

    def __init__(self, path: Path, compression: str | None = None) -> None:
        self._path = path
        in_place = path.exists() and not path.is_file()
        # With the random suffix, no other command writes to this name, and no existing link of this name is followed.
        self._partial = None if in_place else path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        with self.errors():
            self._file = path.open("wb") if self._partial is None else self._partial.open("xb")
        self._compressed: Any = None
        if compression is not None:
            import pyarrow as pa

            self._compressed = pa.CompressedOutputStream(self._file, compression)

    @property
    def file(self) -> Any:
        """File object for pyarrow's writers."""
        return self._file if self._compressed is None else self._compressed

    def flush(self) -> None:
        """Do nothing: readers see the file only when it is complete."""

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
        # Closing writes the rest of the buffer, which may not fit either.
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
            raise Failure(f"cannot write {self._path}: {reason(error)}", UNREADABLE) from error
