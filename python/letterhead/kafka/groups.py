"""Offsets of consumer groups, for tools that show lag: :class:`GroupOffsets` and :class:`OffsetCommits`.

Offsets are read and written without joining the group, as by a consumer that assigns its partitions itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from letterhead.errors import GroupNotFoundError
from letterhead.kafka.broker_connections import BrokerConnections
from letterhead.kafka.responses import FindMismatch, check_code
from letterhead.offsets.partition_log import OffsetRange, TopicPartition
from letterhead.offsets.specs import EARLIEST, OffsetPoint

__all__ = ["GroupOffsets", "OffsetCommits"]

_HAS_MEMBERS = (
    kafka_errors.UnknownMemberIdError.errno,
    kafka_errors.IllegalGenerationError.errno,
    kafka_errors.RebalanceInProgressError.errno,
)


class GroupOffsets:
    """The committed offsets of a consumer group.

    Parameters
    ----------
    connections : BrokerConnections
        Connections to the cluster.
    group : str
        Name of the group.
    """

    def __init__(self, connections: BrokerConnections, group: str) -> None:
        self.group = group
        self._connections = connections
        self._coordinator: Any = None

    def committed(self, partitions: Iterable[TopicPartition] | None) -> dict[TopicPartition, int]:
        """Return committed offsets by partition, if there are any; None requests all partitions."""
        requested = None if partitions is None else list(partitions)
        offsets: dict[TopicPartition, int] = self._connections.call(partial(self._fetch_offsets, requested))
        return offsets

    async def _fetch_offsets(
        self, partitions: list[TopicPartition] | None, deadline: float
    ) -> dict[TopicPartition, int]:
        topics = None if partitions is None else [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in _group_by_topic(partitions).items()
        ]  # fmt: skip
        request = OffsetFetchRequest(group_id=self.group, topics=topics, min_version=2, max_version=7)
        find_mismatch = partial(_find_partitions_mismatch, partitions)
        response = await self.send_to_coordinator(request, deadline, find_mismatch)
        check_code(response.error_code, f"group {self.group!r}")
        offsets = {}
        for partition, fetched in _pairs(response):
            check_code(fetched.error_code, f"{partition} of group {self.group!r}")
            if fetched.committed_offset >= 0:
                offsets[partition] = fetched.committed_offset
        return offsets

    def start_points(
        self, partitions: Sequence[TopicPartition], option: str, *, can_be_new: bool
    ) -> dict[TopicPartition, OffsetPoint]:
        """Return the start offsets: committed offsets, or the first offset of partitions without one.

        Raises
        ------
        GroupNotFoundError
            If the group has no offset of any of the partitions, unless ``can_be_new`` is true.
        """
        committed = self.committed(partitions)
        if partitions and not committed and not can_be_new:
            topics = ", ".join(_group_by_topic(partitions))
            raise GroupNotFoundError(
                f"{option}: group {self.group!r} has no committed offset of {topics}: check its name; brokers delete the "
                "offsets of an unused group after offsets.retention.minutes"
            )
        return {
            partition: OffsetPoint("offset", committed[partition], exact=True) if partition in committed else EARLIEST
            for partition in partitions
        }

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write offsets, and wait until the brokers have stored them."""
        self.wait(self.begin_commit(offsets))

    def begin_commit(self, offsets: Mapping[TopicPartition, int]) -> Any:
        """Start to write offsets in the background, and return a handle for :meth:`wait`."""
        return self._connections.begin(partial(self._commit_offsets, dict(offsets)))

    async def _commit_offsets(self, offsets: Mapping[TopicPartition, int], deadline: float) -> None:
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offsets[TopicPartition(topic, number)],
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in _group_by_topic(offsets).items()
        ]
        # From version 10 on, topics are identified by ids instead.
        request = OffsetCommitRequest(
            group_id=self.group, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None,
            retention_time_ms=-1, topics=topics, min_version=2, max_version=8,
        )  # fmt: skip
        find_mismatch = partial(_find_partitions_mismatch, [*offsets])
        response = await self.send_to_coordinator(request, deadline, find_mismatch)
        for partition, committed in _pairs(response):
            if committed.error_code in _HAS_MEMBERS:
                raise ValueError(
                    f"group {self.group!r} has active consumers, which commit offsets themselves: name another group"
                )
            check_code(committed.error_code, f"{partition} of group {self.group!r}")

    def wait(self, pending: Any) -> None:
        """Wait for a commit that :meth:`begin_commit` started."""
        self._connections.wait(pending)

    async def send_to_coordinator(self, request: Any, deadline: float, find_mismatch: FindMismatch) -> Any:
        """Send a request to the coordinator of the group."""
        node, self._coordinator = self._coordinator, None  # looked up again after an error
        if node is None:
            node = await self._find_coordinator(deadline)
        response = await self._connections.send(node, request, deadline, find_mismatch)
        if not any(_error_codes(response)):
            self._coordinator = node
        return response

    async def _find_coordinator(self, deadline: float) -> Any:
        request = FindCoordinatorRequest(key=self.group, key_type=CoordinatorType.GROUP, min_version=0, max_version=3)
        response = await self._connections.send_to_any(request, deadline, _find_coordinator_mismatch)
        check_code(response.error_code, f"group {self.group!r}")
        # The coordinator gets its own connection, because commits must not wait for fetches.
        return self._connections.add_coordinator(response, self.group)


class OffsetCommits:
    """Commits offsets while a topic is read: at the start, after each response, and at the end.

    Parameters
    ----------
    group : GroupOffsets
        The group whose offsets are committed.
    ranges : sequence of OffsetRange
        Requested offsets, before a condition narrows them.
    """

    def __init__(self, group: GroupOffsets, ranges: Sequence[OffsetRange]) -> None:
        ranges = [requested for requested in ranges if requested.start <= requested.end]
        self._group = group
        self._offsets = {requested.partition: requested.start for requested in ranges}
        self._ends = {requested.partition: requested.end for requested in ranges}
        self._pending: Any = None
        if self._offsets:
            # An error such as a missing ACL is raised before any row is read.
            group.commit(self._offsets)

    def note_read(self, partition: TopicPartition, offset: int) -> None:
        """Commit the offset up to which a partition was read, unless an earlier commit is pending."""
        self._offsets[partition] = offset
        if self._pending is None or self._pending.is_done:
            self._wait()
            self._pending = self._group.begin_commit(self._offsets)

    def finish(self) -> None:
        """Commit the ends of all ranges, and wait until the brokers have stored them."""
        self._wait()
        if self._ends:
            self._group.commit(self._ends)

    def finish_at(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit offsets within the ranges after reading stopped early, and wait until the brokers have stored them."""
        self._wait()
        if self._offsets:
            self._group.commit({**self._offsets, **positions})

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._group.wait(pending)


def _group_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _pairs(response: Any) -> list[tuple[TopicPartition, Any]]:
    return [
        (TopicPartition(topic.name, partition.partition_index), partition)
        for topic in getattr(response, "topics", None) or ()
        for partition in topic.partitions or ()
    ]


def _error_codes(response: Any) -> Iterator[int]:
    yield getattr(response, "error_code", 0)
    yield from (group.error_code for group in getattr(response, "groups", None) or ())
    yield from (partition.error_code for _, partition in _pairs(response))


def _find_partitions_mismatch(partitions: Sequence[TopicPartition] | None, response: Any) -> str | None:
    if getattr(response, "error_code", 0) or partitions is None:
        return None
    if sorted(partition for partition, _ in _pairs(response)) != sorted(partitions):
        return "sent group offsets of other partitions than the requested ones"
    return None


def _find_coordinator_mismatch(response: Any) -> str | None:
    if not response.error_code and not (response.host and 0 < response.port < 1 << 16):
        return "sent a coordinator that has no valid address"
    return None
