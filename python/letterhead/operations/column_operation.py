"""The base class of operations on columns of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from letterhead import _native
from letterhead._arrow_types import ArrowStream, Column, ColumnT, check_column, is_pyarrow, to_pyarrow
from letterhead.errors import DecodeError
from letterhead.operations.options import READ_DEFAULTS, ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KEEP_ROWS", "NULL_ROWS", "ColumnOperation", "noting_remedy"]


KEEP_ROWS = 'errors="column" returns all rows, and the errors of each in a column'
"""The remedy for a row that cannot be read."""

NULL_ROWS = 'errors="null" returns null for such a row'
"""The remedy of functions that have no column of errors."""


@contextmanager
def noting_remedy(errors: str, remedy: str = KEEP_ROWS) -> Iterator[None]:
    """Note in an error of a row, if ``errors="raise"``, which option keeps the other rows."""
    try:
        yield
    except DecodeError as error:
        if errors == "raise" and error.row is not None and not getattr(error, "__notes__", ()):
            error.add_note(remedy)
        raise


class ColumnOperation(ABC):
    """A function from a column of messages to a column of results, with its arguments.

    Attributes
    ----------
    format : str
        Name of the format of the messages.
    """

    format: str
    native_name: ClassVar[_native._Operation]

    @abstractmethod
    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""

    @property
    def reads(self) -> ReadOptions:
        """The options that say what happens to a row that cannot be read."""
        options: Any = getattr(self, "options", None)
        return options if isinstance(options, ReadOptions) else READ_DEFAULTS

    def run(self, column: ColumnT, *, threads: int = 1) -> ColumnT:
        """Return the result for a column: for a pyarrow column as pyarrow, for any other as an object of the core."""
        with noting_remedy(self.reads.errors):
            result: Any = self.run_native(column, threads)
            return to_pyarrow(result) if is_pyarrow(column) else result  # type: ignore[no-any-return]

    def run_once(self, column: pa.Array) -> Any:
        """Return the result for an array as pyarrow, for callers whose errors name other remedies than :meth:`run`."""
        return to_pyarrow(self.run_native(column))

    def run_native(self, column: Column, threads: int = 1) -> _native.Column | _native.Stream:
        """Return the result for a column as an object of the core."""
        check_column(column)
        arguments: _native._Options = {**self.arguments(), "threads": threads}
        return _native.apply(self.native_name, column, self.format, **arguments)

    def chunks(self, stream: ArrowStream) -> Iterator[pa.Array]:
        """Yield the result for each chunk of a stream; a chunk is split where the result would exceed an Arrow column."""
        results = self.run_native(stream)
        if not isinstance(results, _native.Stream):
            raise TypeError("chunks() reads a stream: pass an array to run()")
        with noting_remedy(self.reads.errors):
            for chunk in results:
                yield to_pyarrow(chunk)

    def result_type(self, input: pa.DataType) -> pa.DataType:
        """Return the type of the result for columns of a type; raises whatever :meth:`run` raises for such a column."""
        import pyarrow as pa

        return self.run(pa.array([], input)).type
