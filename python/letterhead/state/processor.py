"""Processors of an application, with the records that they receive and the context in which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from letterhead.errors import InvalidTimestampError
from letterhead.headers import Headers

__all__ = ["Cancellable", "Processor", "ProcessorContext", "PunctuationType", "Punctuator", "Record", "RecordContext"]

K = TypeVar("K")
V = TypeVar("V")
KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")

PunctuationType: TypeAlias = Literal["stream_time", "wall_clock_time"]
Punctuator: TypeAlias = Callable[[int], None]


@dataclass(slots=True)
class Record(Generic[K, V]):
    """A record received or forwarded by a processor.

    Parameters
    ----------
    key : object
        The key; ``None`` is null.
    value : object
        The value; ``None`` is null.
    timestamp : int, default 0
        Milliseconds since 1970.
    headers : Headers, optional
        The headers, or anything that :class:`~letterhead.Headers` accepts.

    Raises
    ------
    InvalidTimestampError
        If the timestamp is negative.

    Examples
    --------
    >>> from letterhead.state import Record
    >>> record = Record(b"k", b"v", 5, {"tenant": b"acme"})
    >>> record.with_value(b"w").value, record.with_value(b"w").headers["tenant"]
    (b'w', b'acme')
    """

    key: K
    value: V
    timestamp: int = 0
    headers: Headers = field(default_factory=Headers)

    def __post_init__(self) -> None:
        if not isinstance(self.headers, Headers):
            self.headers = Headers(self.headers)
        if self.timestamp < 0:
            raise InvalidTimestampError(self.timestamp)

    def with_key(self, key: Any) -> Record[Any, V]:
        """Return a copy with another key; the headers are the same object."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record[K, Any]:
        """Return a copy with another value; the headers are the same object."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """Return a copy with another timestamp; the headers are the same object."""
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Any) -> Record[K, V]:
        """Return a copy with other headers, which are copied."""
        return Record(self.key, self.value, self.timestamp, Headers(headers))


@dataclass(frozen=True, slots=True)
class RecordContext:
    """Origin, timestamp and headers of the record being processed.

    Parameters
    ----------
    topic : str or None
        The topic; ``None`` without a record, as in a punctuation.
    partition, offset : int
        Partition and offset in the topic; -1 without a record.
    timestamp : int
        Milliseconds since 1970.
    headers : Headers
        The headers of the record, not a copy: serializers may add headers to this object.
    """

    topic: str | None = None
    partition: int = -1
    offset: int = -1
    timestamp: int = 0
    headers: Headers = field(default_factory=Headers)

    def with_headers(self, headers: Headers) -> RecordContext:
        """Return a copy with other headers."""
        return RecordContext(self.topic, self.partition, self.offset, self.timestamp, headers)


class Cancellable(Protocol):
    """A scheduled punctuation, returned by :meth:`ProcessorContext.schedule`."""

    def cancel(self) -> None:
        """Stop the punctuation."""


class ProcessorContext(Protocol):
    """Context in which a processor runs."""

    @property
    def application_id(self) -> str:
        """Name of the application."""

    @property
    def task_id(self) -> str:
        """Name of the task, ``<subtopology>_<partition>``."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Pass a record to the children of this processor, or only to the named child."""

    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor."""

    def schedule(self, interval_ms: int, type: PunctuationType, punctuator: Punctuator) -> Cancellable:
        """Call a function periodically with the current time, in milliseconds since 1970."""

    def record_context(self) -> RecordContext | None:
        """Return the origin of the current record; ``None`` in :meth:`Processor.init`."""

    def commit(self) -> None:
        """Request a commit after this record."""

    def current_stream_time_ms(self) -> int:
        """Return the greatest timestamp seen so far; -1 before the first record."""

    def current_system_time_ms(self) -> int:
        """Return the wall-clock time, in milliseconds since 1970."""


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """A step of a topology that handles one record at a time.

    Attributes
    ----------
    scope : {"key", "partition"}, default "key"
        The rows of a store that are visible to the processor in an engine that processes keys in parallel: the rows of
        the record's key, or of the whole partition. Engines that process whole partitions, such as the test driver, make
        all rows visible.
    context : ProcessorContext
        The context of the processor; set by :meth:`init`.

    Examples
    --------
    >>> from letterhead.state import Processor
    >>> class Upper(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))
    """

    scope: ClassVar[Literal["key", "partition"]] = "key"
    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Initialize the processor; override this method to get stores from the context."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Process one record."""
        raise NotImplementedError(f"{type(self).__name__} does not process records: define process")

    def close(self) -> None:
        """Release resources acquired in :meth:`init`; the engine closes the stores."""
