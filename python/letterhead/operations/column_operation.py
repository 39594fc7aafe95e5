"""The base class of operations on columns of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from letterhead import _native
from letterhead._arrow_types import ArrowStream, Column, ColumnT, to_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnOperation"]


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

    def run(self, column: ColumnT, *, threads: int = 1) -> ColumnT:
        """Return the result for a column: for a pyarrow column as pyarrow, for any other as an object of the core."""
        result: Any = self.run_native(column, threads)
        is_pyarrow = type(column).__module__.partition(".")[0] == "pyarrow"
        return to_pyarrow(result) if is_pyarrow else result  # type: ignore[no-any-return]

    def run_native(self, column: Column, threads: int = 1) -> _native.Column | _native.Stream:
        """Return the result for a column as an object of the core."""
        arguments: _native._Options = {**self.arguments(), "threads": threads}
        return _native.apply(self.native_name, column, self.format, **arguments)

    def chunks(self, stream: ArrowStream) -> Iterator[pa.Array]:
        """Yield the result for each chunk of a stream; a chunk is split where the result would exceed an Arrow column."""
        results = self.run_native(stream)
        if not isinstance(results, _native.Stream):
            raise TypeError("chunks() reads a stream: pass an array to run()")
        for chunk in results:
            yield to_pyarrow(chunk)

    def result_type(self, input: pa.DataType) -> pa.DataType:
        """Return the type of the result for columns of a type; raises whatever :meth:`run` raises for such a column."""
        import pyarrow as pa

        return self.run(pa.array([], input)).type
