"""A source of rows: :class:`Source`, and what to read of it: :class:`RowRequest`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import typer

from letterhead.cli.exits import BAD_DATA, OK, UNREADABLE, Failure, as_options, described
from letterhead.cli.where import unseen_headers
from letterhead.errors import (
    HeaderError,
    LogTruncated,
    OffsetsGone,
    ProtocolError,
    StateStoreError,
    StoreChoiceError,
    StoreNotFoundError,
)

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import PlainKey
    from letterhead.limits import Limits
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.reader import Reader
    from letterhead.state.reading.key_bounds import KeyBounds
    from letterhead.where.conditions import Where
    from letterhead.where.program import RecordField

__all__ = ["LogSource", "RowRequest", "Source", "StoreOptions", "reading_errors"]

TIMEOUT_MS = 15_000
BATCH_SCREEN_COLUMNS = ("base_offset", "last_offset", "records", "bytes", "codec", "checksum")


class StoreOptions(NamedTuple):
    """Which stores of a directory are read, and which of their keys."""

    name: str | None = None
    store_type: str | None = None
    values: str | None = None
    keys: KeyBounds | None = None
    backward: bool = False


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
    view: Literal["records", "batches", "control"] = "records"


class Source(ABC):
    """A source of rows. It is opened when the first row is read."""

    noun: ClassVar[str] = "row"
    """What a row is, in counts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def check_view(self, request: RowRequest) -> None:
        """Refuse the views of batches and of control records."""
        if request.view != "records":
            raise Failure(f"--{request.view} is for topics and log segments of Kafka, not for {self.name}")

    def check_without_offsets(self, request: RowRequest, instead: str) -> None:
        """Refuse the views and options that need offsets; ``instead`` names the options that select rows."""
        self.check_view(request)
        if request.start != "earliest" or request.end != "latest" or request.partitions is not None:
            raise Failure(f"--start, --end and --partition are for topics and log segments: {instead}")
        if request.follow or request.committed:
            raise Failure("--follow and --committed are for topics")

    @abstractmethod
    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns."""

    @abstractmethod
    def reader(self, request: RowRequest) -> Reader:
        """Return a stream of the requested rows."""

    @abstractmethod
    def unseen(self, request: RowRequest) -> list[PlainKey]:
        """Return the keys of headers in the condition that no row had, once all rows were read."""

    @property
    def fields(self) -> Iterable[str]:
        """The names of fields in a condition, once the source is open."""
        return ()

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known before they are read."""
        return None

    @property
    def total(self) -> int | None:
        """The size of the source in the unit of :attr:`done`; None if it is unknown."""
        return None

    @property
    def done(self) -> int:
        """How much has been read."""
        return 0

    def finish(self) -> int:
        """Report what was noticed while the rows were read, and return the exit code."""
        return OK


class LogSource(Source):
    """Partitions of offsets: a topic, or log segments."""

    screen_columns: tuple[str, ...]
    """The columns of a table on a screen."""

    partition_columns: tuple[str, ...] = ("partition",)
    """Columns that tell apart the rows of several partitions."""

    @property
    @abstractmethod
    def where_fields(self) -> Mapping[str, RecordField]:
        """The fields in a condition, and their types."""

    @property
    def fields(self) -> Iterable[str]:
        """The names of fields in a condition."""
        return self.where_fields

    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns: those of the fields, and the headers."""
        return (*self.where_fields, "headers")

    def unseen(self, request: RowRequest) -> list[PlainKey]:
        """Look for the headers of the condition: reading stops at the first record that has one."""
        from letterhead.where.program import resolve

        where = resolve(request.where, self.where_fields, request.headers)
        if where is None or not where.headers:
            return []
        probed = replace(request, columns=("offset",), headers=None)
        return unseen_headers(where.headers, lambda condition: self.reader(replace(probed, where=condition)))

    def requested_columns(self, request: RowRequest, *, several: bool) -> tuple[str, ...] | None:
        """Return the requested columns, or those of a screen, None for the default of the reader.

        With ``several`` partitions, a screen shows the columns that tell them apart.
        """
        if request.columns is not None or not request.on_screen:
            return request.columns
        columns = (*(self.partition_columns if several else ()), *self.screen_columns)
        if request.view == "batches":
            return (*columns[: -len(self.screen_columns)], *BATCH_SCREEN_COLUMNS)
        if request.view == "control":
            columns = (*columns[:-3], "control", "aborted", *columns[-3:])
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
    except (StoreNotFoundError, StoreChoiceError) as error:
        raise Failure(as_options(str(error))) from error
    except StateStoreError as error:
        raise Failure(str(error), BAD_DATA) from error
    except OSError as error:
        raise Failure(described(error), UNREADABLE) from error
    except (ValueError, TypeError, ImportError) as error:
        raise Failure(as_options(str(error))) from error
    except (typer.Abort, typer.Exit):
        raise  # they are errors of Python's class for all others
    except RuntimeError as error:
        raise Failure(str(error), UNREADABLE) from error
