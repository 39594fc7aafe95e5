"""Topics as targets of copies: :class:`CopyTarget`, whose subclasses write to Kafka and to Iggy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from letterhead._background import Background
from letterhead._context_managers import Closing
from letterhead._row_request import RowRequest
from letterhead.reader import Reader
from letterhead.sources.topics import TopicSource
from letterhead.written import Appended

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Appender", "CopyTarget", "NoteAppended", "RefusedRowError", "ends_of"]

SourceT = TypeVar("SourceT", bound=TopicSource)

NoteAppended: TypeAlias = "Callable[[pa.Table, Iterable[Appended]], object]"


class CopyTarget(ABC, Generic[SourceT]):
    """Appends records to a topic, each to its own partition.

    Attributes
    ----------
    name : str
        Address of the topic, without a login.
    written : tuple of str
        Columns that are written; other columns of a source are dropped.
    required : tuple of str
        Columns that must not be null.
    chunk_rows : int
        Minimum number of rows of a chunk, which is appended while the next one is read.
    has_password : bool
        Whether the address that was passed contains a password.
    """

    written: tuple[str, ...]
    required: tuple[str, ...]
    chunk_rows = 1
    has_password = False

    def __init__(self, source: SourceT, compared: Sequence[str], request: RowRequest) -> None:
        self.name = source.name
        self._source = source
        self._compared = tuple(compared)
        self._request = request

    def partitions(self) -> int:
        """Return the number of partitions; raise TopicNotFoundError if the topic does not exist."""
        return len(self._source.partition_numbers(self._request))

    @abstractmethod
    def create(self, partitions: int, settings: Mapping[str, str]) -> None:
        """Create the topic, if it does not exist."""

    def reader(self) -> Reader:
        """Return a reader of the topic's records, with the columns that are compared."""
        return self._source.reader(replace(self._request, columns=self._compared))

    def last_records(self) -> dict[int, dict[str, Any]]:
        """Return the last record of each non-empty partition."""
        with self._source.reader(replace(self._request, columns=self._compared, last=1)) as reader:
            return {record["partition"]: record for record in reader.read_all().to_pylist()}

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        last: Mapping[int, Mapping[str, Any]] | None,
        *,
        at_once: bool = False,
        note: NoteAppended = lambda rows, appended: None,
    ) -> None:
        """Append records while the next ones are read.

        ``last`` has the last records of the topic by partition, if known. With ``at_once``, each batch is acknowledged
        before the next one is read. ``note`` is called with acknowledged rows and their offsets.

        Raises
        ------
        ValueError
            If a record is rejected, after which nothing is written to its partition; or if another writer's records
            interrupt the copy.
        """
        chunks = _chunks(batches, 1 if at_once else self.chunk_rows)
        first = next(chunks, None)
        if first is None:
            return
        columns = [name for name in self.written if name in first.schema.names]
        ends = None if last is None else ends_of(last)

        def append(chunk: pa.Table) -> AppendedChunk:
            try:
                return AppendedChunk(chunk, appender.append(chunk.select(columns)))
            except RefusedRowError as error:
                raise refusal_error(chunk, error.row, error.reason) from error.__cause__

        def finish() -> None:
            done = background.wait()
            if done is not None:
                if ends is not None:
                    check_alone(done.appended, ends)
                note(*done)

        background: Background[AppendedChunk] = Background()
        with self.appender(first.select(columns).schema, ends) as appender, background:
            try:
                for chunk in chain([first], chunks):
                    finish()
                    background.start(append, chunk)
                    if at_once:
                        finish()
            except Exception:
                finish()
                raise
            except BaseException:
                appender.interrupt()
                raise
            finish()

    @abstractmethod
    def appender(self, schema: pa.Schema, ends: Mapping[int, int] | None) -> Appender:
        """Return an appender of records with these columns; ``ends`` are the next offsets by partition, if known."""


class AppendedChunk(NamedTuple):
    """Records of the source, and their positions in the topic."""

    rows: pa.Table
    appended: Sequence[Appended]


class Appender(Closing, ABC):
    """Appends records to a topic. Any thread may call :meth:`append`, but only one at a time."""

    @abstractmethod
    def append(self, rows: pa.Table) -> Sequence[Appended]:
        """Append rows, wait, and return their positions; raise RefusedRowError for a rejected row."""

    def interrupt(self) -> None:
        """Interrupt a call that waits for an acknowledgement."""


class RefusedRowError(Exception):
    """A row of a chunk was rejected; later rows of its partition are not written."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(row, reason)
        self.row = row
        self.reason = reason


def ends_of(last: Mapping[int, Mapping[str, Any]] | None) -> dict[int, int]:
    """Return the offset after the last record of each partition."""
    return {partition: record["offset"] + 1 for partition, record in (last or {}).items()}


def check_alone(batches: Iterable[Appended], ends: dict[int, int]) -> None:
    """Raise ValueError if another writer's records interrupt the copy; update the ends of partitions."""
    for appended in batches:
        if appended.offset < 0 or ends.get(appended.partition, 0) < 0:  # a broker recognized a repeated request
            ends[appended.partition] = -1
            continue
        if appended.offset != ends.get(appended.partition, 0):
            raise ValueError(
                f"records of another writer came between those of the copy, before offset {appended.offset} of "
                f"partition {appended.partition}: stop it, and copy to a new topic"
            )
        ends[appended.partition] = appended.offset + appended.rows


def refusal_error(rows: pa.Table, row: int, reason: str) -> ValueError:
    """Return the error for a rejected record; it names partition and offset in the source."""
    record = rows.slice(row, 1).select([name for name in ("partition", "offset") if name in rows.schema.names])
    location = " of ".join(f"{name} {value}" for name, value in reversed(record.to_pylist()[0].items()))
    return ValueError(
        f"the record at {location or f'row {row}'} was not written: {reason}; nothing after it in its partition is: call again "
        "to continue with it"
    )


def _chunks(batches: Iterable[pa.RecordBatch], least_rows: int) -> Iterator[pa.Table]:
    import pyarrow as pa

    chunk: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        chunk.append(batch)
        rows += len(batch)
        if rows >= least_rows:
            yield pa.Table.from_batches(chunk)
            chunk, rows = [], 0
    if chunk:
        yield pa.Table.from_batches(chunk)
