"""A topic of an Iggy server as a source: ``iggy://user:password@host:port/stream/topic[/partition]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from letterhead._row_request import IGGY_TOPIC_OPTIONS, RowRequest
from letterhead.sources.base import Logins, LogSource
from letterhead.sources.topics import TopicSource, parse_path

if TYPE_CHECKING:
    from letterhead.iggy.address import Address
    from letterhead.iggy.client import IggyTopic
    from letterhead.reader import Reader

SCHEMES = ("iggy://", "iggy+tcp://")
FORM = "iggy://host:port/stream/topic"


def is_iggy_address(text: str) -> bool:
    """Return whether a text is an address of Iggy."""
    return text.lower().startswith(SCHEMES)


class IggyLog(LogSource):
    """Iggy messages, from a topic or from log files."""

    noun = "message"
    screen_columns: tuple[str, ...] = ("offset", "timestamp", "headers", "payload")
    source_columns: tuple[str, ...] = ("stream", "topic", "partition")

    @property
    def where_fields(self) -> Mapping[str, str]:
        """Field names for conditions, with their types."""
        from letterhead.iggy.rows import WHERE_FIELDS

        return WHERE_FIELDS

    @property
    def record_columns(self) -> tuple[str, ...]:
        """Default columns of a message."""
        from letterhead.iggy.rows import COLUMNS

        return COLUMNS

    def _serialized_column(self, request: RowRequest) -> tuple[str, str, str]:
        return ("payload", "headers", "iggy") if request.mapping is None else super()._serialized_column(request)


def iggy_source(name: str, logins: Logins) -> IggyTopicSource:
    """Return the topic that an address names."""
    from letterhead.iggy.address import Address
    from letterhead.iggy.client import IggyTopic

    scheme, _, rest = name.partition("://")
    has_login = "@" in rest
    server, path = Address.parse_with_path(name if has_login else f"{scheme}://{logins.iggy_login()}@{rest}")
    [stream, topic], partition = parse_path(path.split("/")[1:], 2, FORM)
    # The name is printed, so it must not contain credentials.
    public = f"{scheme}://{rest.rpartition('@')[2]}"
    has_password = has_login and server.password is not None
    return IggyTopicSource(public, server, IggyTopic(stream, topic), partition, has_password=has_password)


class IggyTopicSource(TopicSource, IggyLog):
    """A topic."""

    unit = "offset"
    options = IGGY_TOPIC_OPTIONS

    def __init__(
        self, name: str, server: Address, topic: IggyTopic, partition: int | None, *, has_password: bool = False
    ) -> None:
        super().__init__(name, str(topic.topic), partition)
        self.server = server
        self.iggy_topic = topic
        self.has_password = has_password

    def _condition_fields(self, request: RowRequest) -> Mapping[str, str]:
        if request.mapping is None:
            return self.where_fields
        from letterhead.iggy.kafka_rows import WHERE_FIELDS

        return WHERE_FIELDS

    def default_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return all columns, or the columns for a terminal: a mapped message has key and value instead of a payload."""
        columns = super().default_columns(request)
        if request.mapping is None or "payload" not in columns:
            return columns
        others = [name for name in columns if name not in ("headers", "payload")]
        return (*others, "key", *request.without_headers(["headers"]), "value")

    def _view_columns(self, request: RowRequest) -> tuple[str, ...]:
        if request.mapping is None:
            return super()._view_columns(request)
        from letterhead.iggy.kafka_rows import COLUMNS

        return request.without_headers(COLUMNS)

    def partition_numbers(self, request: RowRequest) -> list[int]:
        """Return the partitions of the topic."""
        from letterhead.iggy.client import IggyClient

        topic = self.iggy_topic
        topic.check()
        with IggyClient(self.server, request.timeout_ms) as client:
            return [partition.partition for partition in client.partitions(topic)]

    def open_records(self, request: RowRequest) -> Reader:
        """Return a stream of the messages."""
        from letterhead.iggy.topic_reader import read_topic

        return self.followed(read_topic(self.server, self.iggy_topic, self._of_partition(request)))
