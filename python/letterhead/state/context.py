"""Context of a store in its task: the current record, the changelog, the cache."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, Protocol

from letterhead.headers import Headers
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.layers.cache import RecordCache
from letterhead.state.processor import RecordContext
from letterhead.state.serdes import BytesSerde, Serde
from letterhead.state.storage.position import Position

__all__ = ["Changelog", "ChangelogList", "StoreContext", "changelog_topic"]


class Changelog(Protocol):
    """Destination for changes to stores, with one topic for each store."""

    def send(self, topic: str, partition: int, record: ChangelogRecord) -> None:
        """Append a record to a partition."""

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return the offset of the last record written to each topic and partition."""


class ChangelogList:
    """Changelog topics in memory.

    Examples
    --------
    >>> from letterhead import Headers
    >>> from letterhead.state.context import ChangelogList
    >>> from letterhead.state.interfaces import ChangelogRecord
    >>> changelog = ChangelogList()
    >>> changelog.send("app-store-changelog", 0, ChangelogRecord(b"k", b"v", 5, Headers()))
    >>> changelog.offsets(), changelog.records("app-store-changelog")[0].value
    ({('app-store-changelog', 0): 0}, b'v')
    """

    def __init__(self) -> None:
        self._topics: defaultdict[str, deque[ChangelogRecord]] = defaultdict(deque)
        self._offsets: dict[tuple[str, int], int] = {}

    def send(self, topic: str, partition: int, record: ChangelogRecord) -> None:
        """Append one record to a partition."""
        self._topics[topic].append(record)
        self._offsets[topic, partition] = self._offsets.get((topic, partition), -1) + 1

    def offsets(self) -> dict[tuple[str, int], int]:
        """Return the offset of the last record written to each topic and partition."""
        return dict(self._offsets)

    def records(self, topic: str) -> deque[ChangelogRecord]:
        """Return the queue of a topic's records; the caller removes records from the left as it processes them."""
        return self._topics[topic]

    def topics(self) -> list[str]:
        """Return the topics that were written to."""
        return list(dict.fromkeys(topic for topic, _ in self._offsets))


class StoreContext:
    """Context of the stores of a task; ``record`` is the record being processed.

    Parameters
    ----------
    application_id, task_id : str
        Names of the application, the prefix of changelog topics, and of the task, ``<subtopology>_<partition>``.
    changelog : Changelog
        Receives the changes.
    cache : RecordCache, optional
        The cache of the thread; without it, caching layers write through.
    consistency_vectors : bool, default False
        Whether to add the position of the store to every record of the changelog.
    key_serde, value_serde : Serde, optional
        Default serdes of stores; :class:`BytesSerde` if not given.
    """

    def __init__(
        self,
        application_id: str,
        task_id: str = "0_0",
        *,
        changelog: Changelog,
        cache: RecordCache | None = None,
        consistency_vectors: bool = False,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> None:
        self.application_id = application_id
        self.task_id = task_id
        self.partition = int(task_id.rpartition("_")[2])
        self.changelog = changelog
        self.cache = cache
        self.consistency_vectors = consistency_vectors
        self.key_serde: Serde[Any] = key_serde or BytesSerde()
        self.value_serde: Serde[Any] = value_serde or BytesSerde()
        self.record: RecordContext | None = None

    def current(self) -> RecordContext:
        """Return the current record, or an empty record."""
        if self.record is None:
            self.record = RecordContext()
        return self.record


CONSISTENCY_VERSION = ("v", b"\x00")
CONSISTENCY_POSITION = "c"


def changelog_topic(application_id: str, store: str) -> str:
    """Return the name of a store's changelog topic; serdes of the store also receive it."""
    return f"{application_id}-{store}-changelog"


def with_position(headers: Headers, position: Position) -> Headers:
    """Return a copy of a record's headers with the position of the store appended."""
    return Headers(headers).add(*CONSISTENCY_VERSION).add(CONSISTENCY_POSITION, position.serialize())


def position_of(record: ChangelogRecord) -> tuple[ChangelogRecord, Position]:
    """Remove the store's position from the headers of a record, and return both; the position is empty if missing."""
    headers = record.headers
    if len(headers) < 2 or tuple(headers[-2]) != CONSISTENCY_VERSION or headers[-1].key != CONSISTENCY_POSITION:
        return record, Position()
    position = headers[-1].value
    return record._replace(headers=Headers(headers[:-2])), Position.deserialize(
        position if isinstance(position, bytes) else None
    )
