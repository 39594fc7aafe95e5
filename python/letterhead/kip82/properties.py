"""Properties of a log on disk, in a file next to its segments: header format, topic and partition.

::

    {"header_format": "typed", "topic": "orders", "partition": 0, "compacted_to": 0, "message_format_version": 2}

Offsets below ``compacted_to`` may be missing; all later offsets exist. For a directory of Kafka 0.10 or older, this
file is created when the log is opened for writing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, Self

from letterhead._durable_files import replace_file
from letterhead.errors import MessageLogError
from letterhead.kip82.header_formats import HeaderFormat, check_header_format

__all__ = ["ANYWHERE", "Properties", "RequestedProperties", "check_format_version"]

NAME = "log.json"

ANYWHERE: Final = (1 << 63) - 1
"""Value of ``compacted_to`` for a Kafka log until its end is known; Kafka does not record its cleaner's progress here."""


class RequestedProperties(NamedTuple):
    """Requested properties of a log; None accepts any value."""

    header_format: HeaderFormat | None
    topic: str | None
    partition: int | None
    message_format_version: int | None


@dataclass(frozen=True)
class Properties:
    """Properties of a log; ``compacted_to`` is the first offset that compaction has not processed."""

    header_format: HeaderFormat
    topic: str
    partition: int
    compacted_to: int = 0
    message_format_version: int = 2

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """Read the properties of a log; ``None`` if none are saved."""
        path = directory / NAME
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            properties = cls(**json.loads(text))
            check_header_format(properties.header_format)
            for name, type in (("topic", str), ("partition", int), ("compacted_to", int)):
                if not isinstance(getattr(properties, name), type):
                    raise TypeError(f"{name} must be {type.__name__}")
            check_format_version(properties.message_format_version)
        except (ValueError, TypeError) as error:
            raise MessageLogError(f"{path} does not describe a log: {error}") from error
        return properties

    @classmethod
    def open(cls, directory: Path, requested: RequestedProperties, *, readonly: bool) -> Self:
        """Read the properties of a log and compare them with the requested ones, or save the properties of a new log.

        For a log of Kafka, they are derived from the directory name, and not yet saved.
        """
        header_format, topic, partition, message_format_version = requested
        saved = cls.read(directory)
        if saved is not None:
            for name, value, saved_value in (
                ("header format", header_format, saved.header_format),
                ("topic", topic, saved.topic),
                ("partition", partition, saved.partition),
            ):
                if value not in (None, saved_value):
                    raise MessageLogError(f"{directory} has the {name} {saved_value!r}, and not {value!r}")
            if message_format_version is None:
                return saved
            return replace(saved, message_format_version=message_format_version)
        is_of_kafka = any(path.stem.isdecimal() for path in directory.glob("*.log"))
        if readonly and not is_of_kafka:
            raise MessageLogError(f"{directory} is not a message log: it has no {NAME} and no segments")
        name_of_topic, _, number = directory.resolve().name.rpartition("-")
        if topic is None or partition is None:
            if not name_of_topic or not number.isdecimal():
                raise MessageLogError(
                    f"the name {directory.name!r} is not a topic and a partition, such as orders-0: "
                    "pass topic= and partition="
                )
            topic = name_of_topic if topic is None else topic
            partition = int(number) if partition is None else partition
        version = 2 if message_format_version is None else message_format_version
        created = cls(header_format or "typed", topic, partition, ANYWHERE if is_of_kafka else 0, version)
        if not is_of_kafka:
            created.save(directory)
        return created

    def save(self, directory: Path) -> None:
        """Save the properties, replacing the existing file."""
        replace_file(directory / NAME, json.dumps(asdict(self)) + "\n")


def check_format_version(version: object) -> None:
    """Raise ``ValueError`` for an unknown message format version."""
    if type(version) is not int or version not in (0, 1, 2):
        raise ValueError(f"unknown message_format_version {version!r}: choose 0 (Kafka 0.8, 0.9), 1 (0.10) or 2")
