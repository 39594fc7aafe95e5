"""What produce and fetch requests have in common: topics, error codes, and the way to bytes and back.

The bytes are those of a request's or a response's body. What stands before it between a client and a broker (size, API key,
version, correlation id, client id) is the transport's: the version has to be known to read a body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

from letterhead.errors import RequestError
from letterhead.kip82 import wire
from letterhead.kip82.versions import check_version

__all__ = ["Body", "ErrorCode", "Partition", "Topic", "name_of", "topics_of"]

T = TypeVar("T")


class ErrorCode(IntEnum):
    """What Kafka's protocol calls what went wrong, of what can go wrong here."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43


@dataclass(frozen=True)
class Topic(Generic[T]):
    """A topic, and what is said of its partitions.

    Attributes
    ----------
    topic : str
        Its name.
    partitions : tuple
        What the request or the response says, a partition each.
    """

    topic: str
    partitions: tuple[T, ...]


class Partition:
    """One partition in a response, as far as all responses are alike."""

    partition: int
    error_code: int
    reason: str | None

    def raise_for_error(self, topic: str) -> None:
        """Raise what the error code says.

        Raises
        ------
        RequestError
            If it says anything.
        """
        if self.error_code:
            said = f": {self.reason}" if self.reason else ""
            raise RequestError(f"{topic}-{self.partition}: {name_of(self.error_code)}{said}", self.error_code)


@dataclass(frozen=True, repr=False)
class Body:
    """A request or a response: fields, and a schema for each version."""

    NAME: ClassVar[str]
    SCHEMAS: ClassVar[dict[int, wire.Schema]]

    version: int
    topics: tuple[Topic[Any], ...]

    def __post_init__(self) -> None:
        check_version(self.version)

    def encode(self) -> bytes:
        """Write it.

        Returns
        -------
        bytes
            The body, in its version.

        Raises
        ------
        EncodeError
            If a field does not hold what it was given.
        """
        return wire.write(self._format(self.version), self.SCHEMAS[self.version], self)

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """Read one.

        Parameters
        ----------
        data : bytes
            The body, to its last byte.
        version : int
            Its version, which the body does not say.

        Returns
        -------
        Self
            The request or response. Sets of messages are not opened.

        Raises
        ------
        DecodeError
            If the bytes are not that.
        ValueError
            If there is no such version.
        """
        check_version(version)
        return cls(version=version, **wire.read(cls._format(version), cls.SCHEMAS[version], bytes(data)))

    @classmethod
    def _format(cls, version: int) -> str:
        return f"{cls.NAME} {version}"

    def partitions(self) -> Iterator[tuple[str, Any]]:
        """Go through the partitions.

        Yields
        ------
        tuple of str and object
            The name of the topic, and what is said of the partition.
        """
        for topic in self.topics:
            for partition in topic.partitions:
                yield topic.topic, partition

    def __repr__(self) -> str:
        said = ", ".join(f"{topic}-{partition.partition}: {partition.said()}" for topic, partition in self.partitions())
        return f"<{self._format(self.version)}: {said or 'no partitions'}>"


def name_of(error_code: int) -> str:
    """Give the name of an error code, or its number where it is none of those here."""
    return ErrorCode(error_code).name if error_code in list(ErrorCode) else f"error {error_code}"


def topics_of(of: type[Any], schema: wire.Schema) -> wire.Array:
    """Give the type of an array of topics."""
    return wire.Array(Topic, (("topic", wire.STRING), ("partitions", wire.Array(of, schema))))
