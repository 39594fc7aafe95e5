"""What a log on disk is: the file beside its segments that names their layout, topic and partition.

::

    {"layout": "typed", "topic": "orders", "partition": 0, "compacted_to": 0, "message_format_version": 2}

Below ``compacted_to`` offsets may be missing; from there on every one of them is there. A directory that Kafka 0.10 or an
older release wrote has no such file until a log is opened there to be written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from letterhead.errors import MessageLogError
from letterhead.kip82.files import replace_file
from letterhead.kip82.layouts import Layout, check_layout

__all__ = ["ANYWHERE", "Properties", "check_format_version"]

NAME = "log.json"

ANYWHERE: Final = (1 << 63) - 1
"""``compacted_to`` of a log that Kafka wrote, until its end is known: Kafka does not say what its cleaner removed."""

VERSIONS = (0, 1, 2)
"""The message formats, by their magic."""


@dataclass(frozen=True)
class Properties:
    """What a log is.

    Attributes
    ----------
    layout : {"typed", "int", "wrapper"}
        Layout of its messages.
    topic : str
        Name of the topic.
    partition : int
        Number of the partition.
    compacted_to : int
        The first offset that compaction has not looked at.
    message_format_version : {0, 1, 2}
        Magic of the messages that are appended.
    """

    layout: Layout
    topic: str
    partition: int
    compacted_to: int = 0
    message_format_version: int = 2

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read the properties of a log."""
        path = directory / NAME
        text = path.read_bytes()
        try:
            found = cls(**json.loads(text))
            check_layout(found.layout)
            for name, type in (("topic", str), ("partition", int), ("compacted_to", int)):
                if not isinstance(getattr(found, name), type):
                    raise TypeError(f"{name} must be {type.__name__}")
            check_format_version(found.message_format_version)
        except (ValueError, TypeError) as error:
            raise MessageLogError(f"{path} does not say what log this is: {error}") from error
        return found

    @classmethod
    def saved(cls, directory: Path) -> Self | None:
        """Read those of a log; ``None`` where none are saved."""
        try:
            return cls.read(directory)
        except FileNotFoundError:
            return None

    @classmethod
    def open(
        cls,
        directory: Path,
        layout: Layout | None,
        topic: str | None,
        partition: int | None,
        message_format_version: int | None,
        *,
        readonly: bool,
    ) -> Self:
        """Read those of a log and compare them with what was asked for, or save those of a new one.

        Those of a log that Kafka wrote are made from its name, and not saved yet.
        """
        asked = {"layout": layout, "topic": topic, "partition": partition}
        found = cls.saved(directory)
        if found is not None:
            for name, value in asked.items():
                if value is not None and value != getattr(found, name):
                    raise MessageLogError(f"{directory} has the {name} {getattr(found, name)!r}, and not {value!r}")
            if message_format_version is None:
                return found
            return replace(found, message_format_version=message_format_version)
        is_of_kafka = any(path.stem.isdecimal() for path in directory.glob("*.log"))
        if readonly and not is_of_kafka:
            raise MessageLogError(f"{directory} is no message log: it has no {NAME} and no segments")
        named, _, number = directory.resolve().name.rpartition("-")
        if topic is None or partition is None:
            if not named or not number.isdecimal():
                raise MessageLogError(
                    f"the name {directory.name!r} is not that of a topic and a partition, such as orders-0: "
                    "give topic= and partition="
                )
            topic = named if topic is None else topic
            partition = int(number) if partition is None else partition
        version = 2 if message_format_version is None else message_format_version
        if is_of_kafka:
            return cls(layout or "typed", topic, partition, ANYWHERE, version)
        made = cls(layout or "typed", topic, partition, 0, version)
        made.save(directory)
        return made

    def save(self, directory: Path) -> None:
        """Write them in the place of what was there."""
        fields: dict[str, Any] = asdict(self)
        replace_file(directory / NAME, json.dumps(fields) + "\n")


def check_format_version(version: object) -> None:
    """Raise if the message format has no such version."""
    if type(version) is not int or version not in VERSIONS:
        raise ValueError(f"there is no message_format_version {version!r}: choose 0 (Kafka 0.8, 0.9), 1 (0.10) or 2")
