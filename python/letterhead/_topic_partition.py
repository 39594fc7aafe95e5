"""Partitions of topics: :class:`TopicPartition`."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["TopicPartition"]


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: Any  # a name in Kafka, stream and topic in Iggy
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Parse ``topic-partition``, as Kafka names directories and keys offsets."""
        topic, _, partition = text.rpartition("-")
        return cls(topic, int(partition))
