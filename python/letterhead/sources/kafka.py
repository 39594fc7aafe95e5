"""Kafka topic as a source, ``kafka://host:port[,host:port]/topic[/partition]``; without a topic, the list of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from letterhead._row_request import KAFKA_CONNECTION_OPTIONS, KAFKA_TOPIC_OPTIONS, RowRequest
from letterhead.kafka.topic_names import check_topic_name
from letterhead.sources.base import Logins, LogSource, Source
from letterhead.sources.topics import TopicSource, parse_path

if TYPE_CHECKING:
    from letterhead.fields import NativeKey
    from letterhead.kafka.internal_topics import InternalTopic
    from letterhead.kafka.settings import Settings
    from letterhead.kafka.topic_admin import TopicAdmin
    from letterhead.offsets.partition_log import OffsetRange
    from letterhead.reader import Reader

SCHEME = "kafka://"
FORM = "kafka://host:port/topic"


def is_kafka_address(text: str) -> bool:
    """Return whether a text is an address of Kafka."""
    return text.lower().startswith(SCHEME)


class KafkaAddress(NamedTuple):
    """Brokers, topic and partition; without brokers, they come from the settings."""

    servers: str | None
    topic: str | None
    partition: int | None

    @classmethod
    def parse(cls, text: str) -> KafkaAddress:
        """Parse an address."""
        servers, _, path = text[len(SCHEME) :].partition("/")
        if "@" in servers or "?" in path:
            raise ValueError(f"an address of Kafka is {FORM}: pass settings and passwords in settings=")
        if not path:
            return cls(servers or None, None, None)
        [topic], partition = parse_path(path.split("/"), 1, FORM)
        check_topic_name(topic)
        return cls(servers or None, topic, partition)


def kafka_source(name: str, logins: Logins) -> Source:
    """Return the topic that an address names, or the list of topics."""
    address = KafkaAddress.parse(name)
    if address.topic is None:
        return KafkaTopics(name, address, logins)
    cluster = KafkaCluster(address.servers, logins)
    return KafkaTopicSource(name, address.topic, address.partition, cluster.connection)


class KafkaCluster(NamedTuple):
    """Connection parameters of a cluster."""

    servers: str | None
    logins: Logins

    def connection(self, request: RowRequest) -> Settings:
        """Return the settings of a connection."""
        from letterhead.kafka.settings import request_settings

        servers = self.servers or request.servers
        values = self.logins.kafka_settings(request.settings or {}, has_servers=servers is not None)
        return request_settings(servers, values, request)


class KafkaTopics(Source):
    """List of a cluster's topics as rows."""

    noun = "topic"
    options = KAFKA_CONNECTION_OPTIONS

    def __init__(self, name: str, address: KafkaAddress, logins: Logins) -> None:
        super().__init__(name)
        self._cluster = KafkaCluster(address.servers, logins)

    @property
    def fields(self) -> Iterable[str]:
        """Field names for conditions."""
        from letterhead.kafka.topic_list import TOPIC_COLUMNS

        return TOPIC_COLUMNS

    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns."""
        return self.fields

    def default_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return all columns."""
        return (*self.fields,)

    def decodes(self, request: RowRequest) -> bool:
        """Return False: a list of topics contains nothing to decode."""
        return False

    def unmatched_keys(self, request: RowRequest, *, has_selected: bool = False) -> list[NativeKey]:
        """Return an empty list: rows of topics have no headers."""
        return []

    def read_rows(self, request: RowRequest) -> Reader:
        """Return a stream of the topics."""
        from letterhead.kafka.topic_list import TOPIC_SCHEMA, read_topics
        from letterhead.reader import Reader
        from letterhead.sources.tables import TableView

        if request.headers:
            raise ValueError(f"headers= needs a topic: {FORM}")
        connection = self._cluster.connection(request)
        view = TableView(TOPIC_SCHEMA, request)
        return Reader(view.schema, lambda: view.rows([read_topics(connection)]))


class KafkaLog(LogSource):
    """Kafka records, from a topic or from log segments."""

    noun = "record"
    screen_columns: tuple[str, ...] = ("offset", "timestamp", "key", "headers", "value")

    @property
    def where_fields(self) -> Mapping[str, str]:
        """Field names for conditions, with their types."""
        from letterhead.kafka.record_sets import WHERE_FIELDS

        return WHERE_FIELDS

    @property
    def record_columns(self) -> tuple[str, ...]:
        """Columns of a record."""
        from letterhead.kafka.record_sets import COLUMNS

        return COLUMNS

    def _view_columns(self, request: RowRequest) -> tuple[str, ...]:
        if request.view == "batches":
            from letterhead.kafka.batch_rows import BATCH_COLUMNS

            return tuple(BATCH_COLUMNS)
        if request.view == "control":
            from letterhead.kafka.control_rows import CONTROL_COLUMNS

            return request.without_headers(CONTROL_COLUMNS)
        return super()._view_columns(request)


class KafkaTopicSource(TopicSource, KafkaLog):
    """A topic."""

    unit = "offset"
    options = KAFKA_TOPIC_OPTIONS

    def __init__(
        self, name: str, topic: str, partition: int | None, connection: Callable[[RowRequest], Settings]
    ) -> None:
        super().__init__(name, topic, partition)
        self._connection = connection

    @cached_property
    def internal(self) -> InternalTopic | None:  # type: ignore[override]
        """Decoder of records, for an internal topic of Kafka."""
        return internal_topic_of(self.topic)

    def open_records(self, request: RowRequest) -> Reader:
        """Return a stream of the records."""
        from letterhead.kafka.topic_reader import read_topic

        request = self._of_partition(request)
        return self.followed(read_topic(self.topic, lambda: self._connection(request), request))

    def partition_numbers(self, request: RowRequest) -> list[int]:
        """Return the partitions of the topic; raise TopicNotFoundError if it does not exist."""
        with self.admin(request) as admin:
            return [partition.partition for partition in admin.partitions([self.topic])]

    def ranges(self, request: RowRequest) -> list[OffsetRange]:
        """Return the offset ranges of a request, which can be divided among tasks."""
        from letterhead.kafka.topic_reader import topic_ranges

        request = self._of_partition(request)
        return topic_ranges(self.topic, self._connection(request), request)

    def admin(self, request: RowRequest) -> TopicAdmin:
        """Return a client that describes and creates topics of the cluster."""
        from letterhead.kafka.topic_admin import TopicAdmin

        return TopicAdmin(self._connection(request))


def internal_topic_of(topic: str | None) -> InternalTopic | None:
    """Return the decoder for records of an internal topic; None for other topics."""
    if topic is None or not topic.startswith("__"):
        return None
    from letterhead.kafka.internal_topics import internal_topic

    return internal_topic(topic)
