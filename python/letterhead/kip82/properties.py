"""The properties of a log on disk: a file beside its segments with their layout, topic and partition.

::

    {"layout": "typed", "topic": "orders", "partition": 0, "compacted_to": 0, "message_format_version": 2}

Below ``compacted_to``, offsets may be missing; from there on, every offset exists. A directory of Kafka 0.10 or older
gets this file when a log is opened there for writing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Self

from letterhead.errors import MessageLogError
from letterhead.kip82.files import replace_file
from letterhead.kip82.layouts import Layout, check_layout

__all__ = ["ANYWHERE", "Properties", "check_format_version"]

NAME = "log.json"

ANYWHERE: Final = (1 << 63) - 1
"""``compacted_to`` of a log of Kafka until its end is known: Kafka does not record how far its cleaner came."""


@dataclass(frozen=True)
class Properties:
    """The properties of a log; ``compacted_to`` is the first offset that compaction has not processed."""

    layout: Layout
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
            found = cls(**json.loads(text))
            check_layout(found.layout)
            for name, type in (("topic", str), ("partition", int), ("compacted_to", int)):
                if not isinstance(getattr(found, name), type):
                    raise TypeError(f"{name} must be {type.__name__}")
            check_format_version(found.message_format_version)
        except (ValueError, TypeError) as error:
            raise MessageLogError(f"{path} does not describe a log: {error}") from error
        return found

    @classmethod
    def open(
        cls, directory: Path, wanted: tuple[Layout | None, str | None, int | None, int | None], *, readonly: bool
    ) -> Self:
        """Read the properties of a log and compare them with the requested ones, or save those of a new log.

        Requested are a layout, topic, partition and message format version, or None for each. The properties of a log
        of Kafka are derived from its name, and not saved yet.
        """
        layout, topic, partition, message_format_version = wanted
        found = cls.read(directory)
        if found is not None:
            for name, value in (("layout", layout), ("topic", topic), ("partition", partition)):
                if value is not None and value != getattr(found, name):
                    raise MessageLogError(f"{directory} has the {name} {getattr(found, name)!r}, and not {value!r}")
            if message_format_version is None:
                return found
            return replace(found, message_format_version=message_format_version)
        is_of_kafka = any(path.stem.isdecimal() for path in directory.glob("*.log"))
        if readonly and not is_of_kafka:
            raise MessageLogError(f"{directory} is not a message log: it has no {NAME} and no segments")
        name_of_topic, _, number = directory.resolve().name.rpartition("-")
        if topic is None or partition is None:
            if not name_of_topic or not number.isdecimal():
                raise MessageLogError(
                    f"the name {directory.name!r} is not that of a topic and a partition, such as orders-0: "
                    "pass topic= and partition="
                )
            topic = name_of_topic if topic is None else topic
            partition = int(number) if partition is None else partition
        version = 2 if message_format_version is None else message_format_version
        made = cls(layout or "typed", topic, partition, ANYWHERE if is_of_kafka else 0, version)
        if not is_of_kafka:
            made.save(directory)
        return made

    def save(self, directory: Path) -> None:
        """Save the properties, in place of older ones."""
        replace_file(directory / NAME, json.dumps(asdict(self)) + "\n")


def check_format_version(version: object) -> None:
    """Raise if there is no such message format version."""
    if type(version) is not int or version not in (0, 1, 2):
        raise ValueError(f"unknown message_format_version {version!r}: choose 0 (Kafka 0.8, 0.9), 1 (0.10) or 2")
