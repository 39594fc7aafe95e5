"""A topic of an Iggy server as a source: ``iggy://user:password@host:port/stream/topic[/partition]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from letterhead._row_request import IGGY_TOPIC_OPTIONS, RowRequest
from letterhead.sources.base import Logins, LogSource
from letterhead.sources.kafka import choose_partitions

if TYPE_CHECKING:
    from letterhead.reader import Reader

SCHEMES = ("iggy://", "iggy+tcp://")
FORM = "iggy://user@host:port/stream/topic"


class IggyTopicSource(LogSource):
    """A topic."""

    noun = "message"
    unit = "offset"
    options = IGGY_TOPIC_OPTIONS
    screen_columns = ("offset", "timestamp", "headers", "payload")
    source_columns = ("stream", "topic", "partition")

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of a message by default."""
        from letterhead.iggy.rows import COLUMNS

        return COLUMNS

    def __init__(self, name: str, logins: Logins) -> None:
        from letterhead.iggy.address import Address

        scheme, _, rest = name.partition("://")
        # The name is printed, and a login is a secret.
        super().__init__(f"{scheme}://{rest.rpartition('@')[2]}")
        has_login = "@" in rest
        address = name if has_login else f"{scheme}://{logins.iggy_login()}@{rest}"
        server, path = Address.parse_with_path(address)
        names = [unquote(part) for part in path.split("/")[1:]]
        if not 2 <= len(names) <= 3 or not all(names):
            raise ValueError(f"the address does not name a topic: {FORM}")
        if len(names) == 3 and not (names[2].isascii() and names[2].isdecimal()):
            raise ValueError(f"a partition is a number: {FORM}/0")
        self._server = server
        self._stream, self._topic = names[:2]
        self._partition = int(names[2]) if len(names) == 3 else None
        self.has_password = has_login and server.password is not None

    @property
    def where_fields(self) -> Mapping[str, str]:
        """The fields in a condition, and their types."""
        from letterhead.iggy.rows import WHERE_FIELDS

        return WHERE_FIELDS

    def _condition_fields(self, request: RowRequest) -> Mapping[str, str]:
        if request.mapping is None:
            return self.where_fields
        from letterhead.iggy.kafka_rows import WHERE_FIELDS

        return WHERE_FIELDS

    def _view_columns(self, request: RowRequest) -> tuple[str, ...]:
        if request.mapping is None:
            return super()._view_columns(request)
        from letterhead.iggy.kafka_rows import COLUMNS

        return request.without_headers(COLUMNS)

    @property
    def topic_name(self) -> str:
        """The name of the topic."""
        return self._topic

    def _serialized_column(self, request: RowRequest) -> tuple[str, str, str]:
        return ("payload", "headers", "iggy") if request.mapping is None else super()._serialized_column(request)

    def partition_numbers(self, request: RowRequest) -> list[int]:
        """Return the partitions of the topic."""
        from letterhead.iggy.client import TIMEOUT_MS, IggyClient, IggyTopic

        topic = IggyTopic(self._stream, self._topic)
        topic.check()
        with IggyClient(self._server, TIMEOUT_MS if request.timeout_ms is None else request.timeout_ms) as client:
            return [partition.partition for partition in client.partitions(topic)]

    def has_several(self, request: RowRequest) -> bool:
        """Return whether neither the address nor the request names one partition."""
        return self._partition is None and (request.partitions is None or len(request.partitions) > 1)

    def open_records(self, request: RowRequest) -> Reader:
        """Return a stream of the messages."""
        from letterhead.iggy.client import IggyTopic
        from letterhead.iggy.topic_reader import read_topic

        request = replace(request, partitions=choose_partitions(self._partition, request))
        return self.followed(read_topic(self._server, IggyTopic(self._stream, self._topic), request))
