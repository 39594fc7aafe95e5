"""Requests for reading topics: metadata, offsets, and stored record sets: :class:`KafkaClient`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from letterhead.errors import TopicNotFoundError
from letterhead.kafka.broker_connections import BrokerConnections
from letterhead.kafka.broker_errors import is_final
from letterhead.kafka.responses import (
    ISOLATION,
    Fetched,
    Isolation,
    check_code,
    find_fetch_mismatch,
    find_metadata_mismatch,
    find_offsets_mismatch,
    unwrap_response,
)
from letterhead.kafka.settings import Settings
from letterhead.offsets.partition_log import TopicPartition

# Imported after broker_connections, because its ImportError names the required version.
from kafka import errors as kafka_errors  # isort: skip
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest  # isort: skip
from kafka.protocol.metadata import MetadataRequest  # isort: skip

__all__ = ["EARLIEST_TIME", "LATEST_TIME", "DescribedTopic", "KafkaClient"]

_NO_TOPIC = (kafka_errors.UnknownTopicOrPartitionError.errno, kafka_errors.InvalidTopicError.errno)

LATEST_TIME, EARLIEST_TIME = -1, -2
"""Special times for :meth:`KafkaClient.offsets`, in addition to milliseconds."""

_log = logging.getLogger(__name__)

_NO_SESSION = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": []}

_LEADER_SECONDS = 30.0
"""Time for which the leader is read after a replica failed. A leader recommends a replica until the replica has been
out of sync for ``replica.lag.time.max.ms``, which is 30 s by default."""


class DescribedTopic(NamedTuple):
    """Description of a topic from the brokers' metadata."""

    name: str
    is_internal: bool
    partitions: list[TopicPartition]
    replicas: int  # maximum over the partitions
    leaderless: list[TopicPartition]  # partitions without a leader, which cannot be read now


class _Fetch(NamedTuple):
    """Fetch of records of a partition from an offset."""

    partition: TopicPartition
    offset: int
    isolation: Isolation
    last_epoch: int
    wait_ms: int


class KafkaClient(BrokerConnections):
    """Reads topics, offsets and record sets of a cluster.

    Each method ends within ``timeout`` seconds, including name lookup, connections, authentication and retries.
    """

    _creates_topics = False  # whether metadata requests may create missing topics

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._fetch_bytes = settings.fetch_bytes
        self._rack = settings.rack
        self._leaders: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int] = {}  # newest known epochs, including partitions without a known leader
        self._topic_ids: dict[str, Any] = {}
        self._replicas: dict[TopicPartition, int] = {}  # broker of the last fetch, if it was not the leader
        self._leader_only: dict[
            TopicPartition, float
        ] = {}  # times until which only the leader is read, because a replica failed

    # --- metadata ----------------------------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Return the names of all visible topics, except Kafka's internal ones."""
        return [topic.name for topic in self.described_topics() if not topic.is_internal]

    def described_topics(self) -> list[DescribedTopic]:
        """Return all visible topics, sorted by name."""
        topics = [topic for topic in self._metadata_of(None).topics if not topic.error_code]
        return [
            DescribedTopic(
                topic.name,
                topic.is_internal,
                [TopicPartition(topic.name, partition.partition_index) for partition in topic.partitions],
                max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
                [
                    TopicPartition(topic.name, partition.partition_index)
                    for partition in topic.partitions
                    if partition.leader_id < 0
                ],
            )
            for topic in sorted(topics, key=lambda topic: str(topic.name))
        ]

    def brokers(self) -> list[int]:
        """Return the ids of all brokers."""
        return sorted(broker.node_id for broker in self._metadata_of([]).brokers)

    def cluster_id(self) -> str | None:
        """Return the id of the cluster; None if its brokers are too old to have one."""
        cluster: str | None = self._metadata_of([]).cluster_id
        return cluster

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of topics, in order; raise TopicNotFoundError if a topic does not exist."""
        names = list(topics)
        ordered = sorted(self._metadata_of(names).topics, key=lambda topic: names.index(topic.name))
        return [TopicPartition(topic.name, number) for topic in ordered
                for number in sorted(partition.partition_index for partition in topic.partitions)]  # fmt: skip

    def _metadata_of(self, topics: list[str] | None) -> Any:
        return self.call(partial(self._metadata, topics))

    async def _metadata(self, topics: list[str] | None, deadline: float) -> Any:
        """Request the metadata of some or all topics, and store the brokers, leaders and epochs."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=self._creates_topics,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            max_version=12,
        )
        response = await self.send_to_any(request, deadline, partial(find_metadata_mismatch, topics))
        for topic in response.topics:
            if topics is not None and topic.error_code in _NO_TOPIC:
                raise TopicNotFoundError(
                    f"there is no topic {topic.name!r} at {self.servers}: check its name, and whether the user may "
                    "describe it"
                )
            if topics is not None:
                check_code(topic.error_code, topic.name)
        self.note_metadata(response)
        self._note_leaders(response)
        return response

    def _note_leaders(self, response: Any) -> None:
        for topic in response.topics:
            topic_id = topic.topic_id if response.API_VERSION >= 10 else None
            if self._topic_ids.setdefault(topic.name, topic_id) != topic_id:  # recreated topic: epochs begin at 0
                self._topic_ids[topic.name] = topic_id
                self._epochs = {known: epoch for known, epoch in self._epochs.items() if known.topic != topic.name}
            for described in topic.partitions:
                partition = TopicPartition(topic.name, described.partition_index)
                # Before version 9 the epoch can be outdated (KAFKA-9212).
                epoch = described.leader_epoch if response.API_VERSION >= 9 else -1
                # A broker that has not learned of the newest election returns the previous leader.
                is_stale = 0 <= epoch < self._epochs.get(partition, -1)
                self._leaders[partition] = -1 if is_stale else described.leader_id
                self._epochs[partition] = max(epoch, self._epochs.get(partition, -1))

    async def _leader(self, partition: TopicPartition, deadline: float) -> int:
        if self._leaders.get(partition, -1) < 0:
            response = await self.retry(partial(self._metadata, [partition.topic]), deadline)
            if partition.partition not in (
                described.partition_index for topic in response.topics for described in topic.partitions
            ):
                raise ValueError(f"topic {partition.topic!r} has no partition {partition.partition}")
            if self._leaders[partition] < 0:
                raise kafka_errors.LeaderNotAvailableError(str(partition))
        return self._leaders[partition]

    def _prepare_retry(self) -> None:
        """Forget the leaders, which an election may have replaced."""
        self._leaders.clear()

    # --- offsets -----------------------------------------------------------------------------------------------------

    def offsets(self, times: Mapping[TopicPartition, int], isolation: Isolation) -> dict[TopicPartition, int]:
        """Return, for each partition, the offset of the first record at or after a time, or -1 if all are older.

        The result has the order of ``times``. A time is in milliseconds since 1970, :data:`EARLIEST_TIME` or
        :data:`LATEST_TIME`; with ``"read_committed"`` the latest is the first offset of the oldest open transaction.
        """
        offsets: dict[TopicPartition, int] = {}
        self.call(partial(self._list_offsets, times, isolation, offsets))
        return {partition: offsets[partition] for partition in times}

    async def _list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        isolation: Isolation,
        offsets: dict[TopicPartition, int],
        deadline: float,
    ) -> None:
        """Add the missing offsets, with one request for each leader."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in times:
            if partition not in offsets:
                by_leader.setdefault(await self._leader(partition, deadline), []).append(partition)
        for leader, partitions in by_leader.items():
            request = self._list_offsets_request(partitions, times, isolation)
            response = await self.send(leader, request, deadline, partial(find_offsets_mismatch, partitions))
            for topic in response.topics:
                for listed in topic.partitions:
                    partition = TopicPartition(topic.name, listed.partition_index)
                    check_code(listed.error_code, partition)
                    offsets[partition] = listed.offset

    def _list_offsets_request(
        self, partitions: Iterable[TopicPartition], times: Mapping[TopicPartition, int], isolation: Isolation
    ) -> ListOffsetsRequest:
        by_topic: dict[str, list[Any]] = {}
        for partition in partitions:
            by_topic.setdefault(partition.topic, []).append(
                ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=self._epochs.get(partition, -1),
                    timestamp=times[partition],
                )
            )
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=ISOLATION[isolation],
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=of) for name, of in by_topic.items()],
            min_version=2,
            max_version=7,
        )

    # --- records -----------------------------------------------------------------------------------------------------

    def fetch(
        self, partition: TopicPartition, offset: int, isolation: Isolation, *, last_epoch: int = -1, wait_ms: int = 500
    ) -> Any:
        """Start a fetch in the background, and return a handle for :meth:`fetched`.

        The broker waits up to ``wait_ms`` for a record. ``last_epoch`` is the leader epoch of the record before
        ``offset``, or -1. With it, brokers since Kafka 2.7 compare their log with the log of the leader that sent the record.
        """
        return self.begin(partial(self._fetch, _Fetch(partition, offset, isolation, last_epoch, wait_ms)))

    def fetched(self, pending: Any) -> Fetched:
        """Wait for the response to a fetch."""
        response: Fetched = self.wait(pending)
        return response

    async def _fetch(self, fetch: _Fetch, deadline: float) -> Fetched:
        """Fetch from the leader, or from the replica that it prefers for the rack of this client."""
        partition = fetch.partition
        leader = await self._leader(partition, deadline)
        if not self._rack or time.monotonic() < self._leader_only.get(partition, 0.0):
            return await self._fetch_from(leader, fetch, deadline)
        replica = self._replicas.pop(partition, -1)
        if replica < 0:
            fetched = await self._fetch_from(leader, fetch, deadline, rack=self._rack)
            replica = fetched.replica
            if replica < 0 or replica == leader:
                return fetched
            if not self.knows_broker(replica):  # the replica was down when metadata was requested
                await self.retry(partial(self._metadata, [partition.topic]), deadline)
        try:
            replica_deadline = min(deadline, time.monotonic() + self.timeout / 3)
            fetched = await self._fetch_from(replica, fetch, replica_deadline, rack=self._rack)
        except kafka_errors.KafkaError as error:
            if is_final(error):
                raise
            _log.warning(
                "%s: the replica at broker %s cannot be read (%s); reading from the leader for %g s",
                partition, replica, type(error).__name__, _LEADER_SECONDS,
            )  # fmt: skip
            self._leader_only[partition] = time.monotonic() + _LEADER_SECONDS
        else:
            if fetched.records:
                self._replicas[partition] = replica
                return fetched
        # Only the leader knows the end of the log, which offsets exist, and what an election removed.
        return await self._fetch_from(leader, fetch, deadline)

    async def _fetch_from(self, node: int, fetch: _Fetch, deadline: float, *, rack: str = "") -> Fetched:
        """Send a fetch to a broker, and return its response for the partition."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=fetch.partition.partition,
            current_leader_epoch=self._epochs.get(fetch.partition, -1),
            fetch_offset=fetch.offset,
            last_fetched_epoch=fetch.last_epoch,
            log_start_offset=-1,
            partition_max_bytes=self._fetch_bytes,
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=min(fetch.wait_ms, int(500 * self.timeout)),  # half of the time limit
            min_bytes=1,
            max_bytes=self._fetch_bytes,
            isolation_level=ISOLATION[fetch.isolation],
            topics=[FetchRequest.FetchTopic(topic=fetch.partition.topic, partitions=[partition])],
            rack_id=rack,
            # From version 13 on, topics are identified by ids instead.
            min_version=4,
            max_version=12,
            **_NO_SESSION,
        )
        find_mismatch = partial(find_fetch_mismatch, fetch.partition, fetch.last_epoch)
        response = await self.send(node, request, deadline, find_mismatch)
        return unwrap_response(response, fetch.partition, fetch.isolation)
