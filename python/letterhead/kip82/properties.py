"""What a log on disk is: the file beside its segments that says which layout, topic and partition they are of.

::

    {"layout": "typed", "topic": "orders", "partition": 0, "compacted_to": 0}

Below ``compacted_to`` offsets may be missing; from there on every one of them is there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from letterhead.kip82.files import replace_file
from letterhead.kip82.layouts import Layout, check_layout
from letterhead.kip82.log_errors import MessageLogError

__all__ = ["Properties"]

NAME = "log.json"


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
    """

    layout: Layout
    topic: str
    partition: int
    compacted_to: int = 0

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read those of a log.

        Raises
        ------
        FileNotFoundError
            If there are none.
        MessageLogError
            If they do not say what they must.
        """
        path = directory / NAME
        text = path.read_bytes()
        try:
            found = cls(**json.loads(text))
            check_layout(found.layout)
            for name, type in (("topic", str), ("partition", int), ("compacted_to", int)):
                if not isinstance(getattr(found, name), type):
                    raise TypeError(f"{name} must be {type.__name__}")
        except (ValueError, TypeError) as error:
            raise MessageLogError(f"{path} does not say what log this is: {error}") from error
        return found

    @classmethod
    def open(
        cls, directory: Path, layout: Layout | None, topic: str | None, partition: int | None, *, readonly: bool
    ) -> Self:
        """Read those of a log and hold them against what was asked for; or write those of a new one.

        Raises
        ------
        MessageLogError
            If the directory is no log, or another one.
        """
        asked = {"layout": layout, "topic": topic, "partition": partition}
        try:
            found = cls.read(directory)
        except FileNotFoundError:
            if readonly or any(directory.glob("*.log")):
                raise MessageLogError(f"{directory} is no message log: it has no {NAME}") from None
        else:
            for name, value in asked.items():
                if value is not None and value != getattr(found, name):
                    raise MessageLogError(f"{directory} has the {name} {getattr(found, name)!r}, and not {value!r}")
            return found
        named, _, number = directory.resolve().name.rpartition("-")
        if topic is None or partition is None:
            if not named or not number.isdecimal():
                raise MessageLogError(
                    f"the name {directory.name!r} is not that of a topic and a partition, such as orders-0: "
                    "give topic= and partition="
                )
            topic = named if topic is None else topic
            partition = int(number) if partition is None else partition
        made = cls(layout or "typed", topic, partition)
        made.save(directory)
        return made

    def save(self, directory: Path) -> None:
        """Write them in the place of what was there."""
        fields: dict[str, Any] = asdict(self)
        replace_file(directory / NAME, json.dumps(fields) + "\n")
