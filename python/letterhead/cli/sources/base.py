"""A source of rows: :class:`Source`, and what to read of it: :class:`RowRequest`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import typer

from letterhead.cli.exits import OK, UNREADABLE, Failure
from letterhead.cli.source import reason
from letterhead.errors import HeaderError, LogTruncated, OffsetsGone, ProtocolError

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.cli.sources.stores import StoreOptions
    from letterhead.limits import Limits
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader
    from letterhead.where.conditions import Where

__all__ = ["RowRequest", "Source", "reading_errors"]

TIMEOUT_MS = 15_000


@dataclass(frozen=True)
class RowRequest:
    """Which rows and columns to read of every source, and how to reach it."""

    columns: tuple[str, ...] | None = None
    headers: Mapping[str, str] | None = None
    where: Where | None = None
    start: OffsetSpec = "earliest"
    end: OffsetSpec = "latest"
    last: int | None = None
    follow: bool = False
    partitions: frozenset[int] | None = None
    committed: bool = False
    errors: OnError = "raise"
    on_screen: bool = False
    limits: Limits | None = None
    timeout_ms: int = TIMEOUT_MS
    settings: Mapping[str, str] | None = None
    stores: StoreOptions | None = None

    def only(self, columns: Sequence[str], where: Where | None) -> RowRequest:
        """Return the request for other columns, without typed headers, and another condition."""
        return replace(self, columns=tuple(columns), headers=None, where=where, follow=False)


class Source(ABC):
    """A source of rows. It is opened when the first row is read."""

    noun: ClassVar[str] = "row"
    """What a row is, in counts."""

    headers_format: ClassVar[str] = "kafka"
    """The format of keys and values in a column of headers."""

    screen_columns: ClassVar[tuple[str, ...]] = ()
    """The columns of a table on a screen."""

    partition_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that tell apart the rows of several partitions."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    @abstractmethod
    def fields(self) -> Iterable[str]:
        """The names of fields in a condition."""

    @property
    def total(self) -> int | None:
        """The size of the source in the unit of :attr:`done`; None if it is unknown."""
        return None

    @property
    def done(self) -> int:
        """How much has been read."""
        return 0

    @abstractmethod
    def reader(self, request: RowRequest) -> Reader:
        """Return a stream of the requested rows."""

    def probe(self, request: RowRequest, where: Where) -> Reader:
        """Return a stream of one column of the rows that another condition selects."""
        return self.reader(request.only(self.probed_columns, where))

    probed_columns: ClassVar[tuple[str, ...]] = ("offset",)

    def finish(self) -> int:
        """Report what was noticed while the rows were read, and return the exit code."""
        return OK

    def requested_columns(self, request: RowRequest, *, several: bool = False) -> tuple[str, ...] | None:
        """Return the requested columns, or those of a screen, None for the default of the reader.

        With ``several`` partitions, a screen shows the columns that tell them apart.
        """
        if request.columns is not None or not request.on_screen:
            return request.columns
        columns = (*(self.partition_columns if several else ()), *self.screen_columns)
        return tuple(name for name in columns if not (request.headers and name == "headers"))


@contextmanager
def reading_errors() -> Iterator[None]:
    """Turn errors of opening and reading a source into failures of the command; errors in the data pass."""
    try:
        yield
    except HeaderError:
        raise
    except (OffsetsGone, LogTruncated, ProtocolError) as error:
        raise Failure(str(error), UNREADABLE) from error
    except OSError as error:
        raise Failure(_described(error), UNREADABLE) from error
    except (ValueError, TypeError, ImportError) as error:
        raise Failure(str(error)) from error
    except (typer.Abort, typer.Exit):
        raise  # they are errors of Python's class for all others
    except RuntimeError as error:
        raise Failure(str(error), UNREADABLE) from error


def _described(error: OSError) -> str:
    if error.errno is None:  # of a connection
        return str(error)
    return f"cannot read {error.filename}: {reason(error)}" if error.filename else reason(error)
