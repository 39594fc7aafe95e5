"""Topics as targets of copies: :class:`CopyTarget`, whose subclasses write to Kafka and to Iggy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from letterhead._row_request import RowRequest
from letterhead.reader import Reader
from letterhead.sources.topics import TopicSource
from letterhead.written import Appended

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CopyTarget", "NoteAppended", "check_alone", "ends_of", "refusal_error"]

SourceT = TypeVar("SourceT", bound=TopicSource)

NoteAppended: TypeAlias = "Callable[[pa.Table | pa.RecordBatch, Iterable[Appended]], object]"


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
    has_password : bool
        Whether the address that was passed contains a password.
    """

    written: tuple[str, ...]
    required: tuple[str, ...]
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
        """Return the last record of each partition with records."""
        with self._source.reader(replace(self._request, columns=self._compared, last=1)) as reader:
            return {record["partition"]: record for record in reader.read_all().to_pylist()}

    @abstractmethod
    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        last: Mapping[int, Mapping[str, Any]] | None,
        *,
        at_once: bool = False,
        note: NoteAppended = lambda rows, appended: None,
    ) -> None:
        """Append records after the last ones, if these are known; with ``at_once``, write each batch before reading the next.

        ``note`` is called with acknowledged rows and their offsets.

        Raises
        ------
        ValueError
            If a record is refused, after which nothing is written to its partition; or if records of another writer came in
            between.
        """


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


def refusal_error(rows: pa.Table | pa.RecordBatch, row: int, reason: str) -> ValueError:
    """Return the error for a rejected record; it names partition and offset in the source."""
    record = rows.slice(row, 1).select([name for name in ("partition", "offset") if name in rows.schema.names])
    location = " of ".join(f"{name} {value}" for name, value in reversed(record.to_pylist()[0].items()))
    return ValueError(
        f"the record at {location or f'row {row}'} was not written: {reason}; nothing after it in its partition is: call again "
        "to continue with it"
    )
