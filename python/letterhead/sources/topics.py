"""Base class of topics as sources: :class:`TopicSource`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote

from letterhead._row_request import RowRequest
from letterhead.sources.base import LogSource


class TopicSource(LogSource):
    """Topic, or a single partition if the address names one."""

    def __init__(self, name: str, topic: str, partition: int | None) -> None:
        super().__init__(name)
        self.topic = topic
        self.partition = partition

    @property
    def topic_name(self) -> str:
        """Name of the topic."""
        return self.topic

    def has_several(self, request: RowRequest) -> bool:
        """Return whether neither the address nor the request selects a single partition."""
        return self.partition is None and (request.partitions is None or len(request.partitions) > 1)

    def _of_partition(self, request: RowRequest) -> RowRequest:
        """Return the request, restricted to the partition in the address, if any."""
        if self.partition is None:
            return request
        if request.partitions is not None and request.partitions != {self.partition}:
            raise ValueError(f"the address names partition {self.partition}, and partitions= another one")
        return replace(request, partitions=frozenset([self.partition]))


def parse_path(parts: Iterable[str], names: int, form: str) -> tuple[list[str], int | None]:
    """Parse the path of an address: ``names`` names, optionally followed by the number of a partition."""
    decoded = [unquote(part) for part in parts]
    if not names <= len(decoded) <= names + 1 or not all(decoded):
        raise ValueError(f"the address does not name a topic: {form}")
    number = decoded[names] if len(decoded) > names else None
    if number is not None and not (number.isascii() and number.isdecimal()):
        raise ValueError(f"a partition is a number: {form}/0")
    return decoded[:names], None if number is None else int(number)
