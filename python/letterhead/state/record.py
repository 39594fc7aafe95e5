"""Records that processors receive and forward, and the origin of the current record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from letterhead.errors import InvalidTimestampError
from letterhead.headers import Headers

__all__ = ["Record", "RecordContext"]

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Record(Generic[K, V]):
    """A record that a processor receives or forwards.

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
        """Return a copy with a copy of other headers."""
        return Record(self.key, self.value, self.timestamp, Headers(headers))


@dataclass(frozen=True, slots=True)
class RecordContext:
    """The origin, timestamp and headers of the record that is being processed.

    Parameters
    ----------
    topic : str or None
        The topic; ``None`` without a record, as in a punctuation.
    partition, offset : int
        Partition and offset in the topic; -1 without a record.
    timestamp : int
        Milliseconds since 1970.
    headers : Headers
        The headers of the record: the object that serializers add to, not a copy.
    """

    topic: str | None = None
    partition: int = -1
    offset: int = -1
    timestamp: int = 0
    headers: Headers = field(default_factory=Headers)

    def with_headers(self, headers: Headers) -> RecordContext:
        """Return a copy with other headers."""
        return RecordContext(self.topic, self.partition, self.offset, self.timestamp, headers)
