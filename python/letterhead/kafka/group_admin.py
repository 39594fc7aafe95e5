"""Administer consumer groups: :func:`list_groups`, :func:`describe_group` and :func:`plan_reset`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from letterhead.errors import GroupNotFoundError, TopicNotFoundError
from letterhead.kafka.client import EARLIEST_TIME, LATEST_TIME, KafkaClient
from letterhead.kafka.groups import GroupOffsets
from letterhead.kafka.message_fields import read_assignment
from letterhead.kafka.responses import check_code
from letterhead.offsets.partition_log import TopicPartition
from letterhead.offsets.specs import OffsetBounds, OffsetSpec, group_of

__all__ = ["Group", "GroupDescription", "Member", "OffsetChange", "describe_group", "list_groups", "plan_reset"]

_EMPTY = ("Empty", "Dead")
"""States of groups without members."""

_CONSUMER = "consumer"


class Group(NamedTuple):
    """Consumer group as brokers list it."""

    name: str
    state: str | None  # older brokers do not return it
    type: str | None  # classic, consumer, share or streams
    protocol: str  # "consumer", or another use of groups, such as "connect"


class Member(NamedTuple):
    """A member of a group."""

    id: str
    client: str
    host: str
    instance: str | None
    partitions: list[TopicPartition]


class GroupPosition(NamedTuple):
    """Position of a group in a partition."""

    partition: TopicPartition
    committed: int | None
    end: int | None  # None if the topic was deleted
    member: Member | None

    @property
    def lag(self) -> int | None:
        """Number of offsets that the group has not read yet."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)


class GroupDescription(NamedTuple):
    """Group with its members and positions."""

    name: str
    state: str
    protocol: str
    members: list[Member]
    positions: list[GroupPosition]

    @classmethod
    def empty(cls, name: str) -> GroupDescription:
        """Return the description of a group that does not exist yet."""
        return cls(name, "Empty", "", [], [])

    @property
    def has_members(self) -> bool:
        """Whether consumers are active; they commit offsets themselves."""
        return self.state not in _EMPTY


class OffsetChange(NamedTuple):
    """New offset of a group in a partition, before it is committed."""

    partition: TopicPartition
    committed: int | None
    new: int
    requested: int  # requested offset; the new offset differs if the partition does not contain it


def list_groups(client: KafkaClient) -> list[Group]:
    """Return all groups that the user may describe, sorted by name."""
    groups: dict[str, Group] = {}
    for broker in client.brokers():
        response = client.call(partial(_list_groups, client, broker))
        version = response.API_VERSION
        for group in response.groups or ():
            groups[group.group_id] = Group(
                group.group_id,
                group.group_state if version >= 4 else None,
                group.group_type.lower() if version >= 5 else None,
                group.protocol_type,
            )
    return [groups[name] for name in sorted(groups)]


async def _list_groups(client: KafkaClient, broker: int, deadline: float) -> Any:
    request = ListGroupsRequest(states_filter=[], types_filter=[], min_version=0, max_version=5)
    response = await client.send(broker, request, deadline, lambda _: None)
    check_code(response.error_code, f"broker {broker}")
    return response


def describe_group(client: KafkaClient, name: str) -> GroupDescription:
    """Return a group with its members and its offsets.

    Raises
    ------
    GroupNotFoundError
        If the group does not exist.
    """
    offsets = GroupOffsets(client, name)
    group = client.call(partial(_describe_group, offsets))
    state, protocol, members = (
        group.group_state,
        group.protocol_type,
        [_member(member, group) for member in group.members],
    )
    if group.error_code or state == "Dead":
        listed = next((listed for listed in list_groups(client) if listed.name == name), None)
        state, protocol = (listed.state or "", listed.protocol) if listed is not None else ("Dead", "")
    committed = offsets.committed(None)
    if state == "Dead" and not committed:
        raise GroupNotFoundError(f"there is no group {name!r} at {client.servers}: check its name")
    return GroupDescription(name, state, protocol, members, _positions(client, committed, members))


async def _describe_group(offsets: GroupOffsets, deadline: float) -> Any:
    name = offsets.group
    request = DescribeGroupsRequest(groups=[name], include_authorized_operations=False, min_version=0, max_version=6)
    response = await offsets.send_to_coordinator(request, deadline, partial(_find_group_mismatch, name))
    [group] = response.groups
    # Groups with the protocol of KIP-848 cause the same error, but are listed with their state.
    if group.error_code != kafka_errors.GroupIdNotFoundError.errno:
        check_code(group.error_code, f"group {name!r}")
    return group


def plan_reset(
    client: KafkaClient,
    group: GroupDescription,
    point: OffsetSpec | None,
    *,
    shift: int | None,
    partitions: Mapping[str, Iterable[int] | None],
) -> list[OffsetChange]:
    """Return the new offsets of a group, clipped to the offsets of the partitions.

    Parameters
    ----------
    client : KafkaClient
        Connections to the cluster.
    group : GroupDescription
        The group.
    point : int, str, datetime, mapping or None
        Where the group continues, in the form that readers accept, or ``"group:NAME"`` for another group's offsets.
    shift : int, optional
        Number to add to each committed offset.
    partitions : mapping of str to iterable of int or None
        Topics and their partitions, None for all; without topics, all partitions with committed offsets.
    """
    committed = {position.partition: position.committed for position in group.positions}
    chosen = (
        _choose_partitions(client, partitions)
        if partitions
        else [partition for partition in committed if committed[partition] is not None]
    )
    if not chosen:
        raise ValueError(f"group {group.name!r} has no committed offsets: name a topic")
    first, end = (
        client.offsets(dict.fromkeys(chosen, time), "read_uncommitted") for time in (EARLIEST_TIME, LATEST_TIME)
    )
    if shift is not None:
        missing = [partition for partition in chosen if committed.get(partition) is None]
        if missing:
            raise ValueError(f"group {group.name!r} has no committed offset of {missing[0]} to shift")
        wanted = {partition: (committed[partition] or 0) + shift for partition in chosen}
    else:
        wanted = _resolve_offsets(client, chosen, point or "latest", first, end)
    return [
        OffsetChange(
            partition,
            committed.get(partition),
            min(max(wanted[partition], first[partition]), end[partition]),
            wanted[partition],
        )
        for partition in chosen
    ]


def _choose_partitions(client: KafkaClient, topics: Mapping[str, Iterable[int] | None]) -> list[TopicPartition]:
    from letterhead.offsets.ranges import choose_partitions

    chosen: list[TopicPartition] = []
    for topic, numbers in topics.items():
        chosen += choose_partitions(client.partitions([topic]), topic, numbers)
    return chosen


def _resolve_offsets(
    client: KafkaClient,
    partitions: Sequence[TopicPartition],
    spec: OffsetSpec,
    first: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Resolve a start point to an offset in each partition."""
    other = group_of("to=", spec)
    if other is not None:
        points = GroupOffsets(client, other).start_points(partitions, "to=", can_be_new=False)
    else:
        bounds = OffsetBounds.parse(spec, "latest", ("to=", "end="))
        bounds.check_partitions((partition.partition for partition in partitions), "the reset")
        points = {partition: bounds.of_partition(partition.partition)[0] for partition in partitions}
    times = {partition: max(point.value, 0) for partition, point in points.items() if point.kind == "time"}
    since = client.offsets(times, "read_uncommitted") if times else {}
    return {
        partition: point.resolve(
            first=lambda partition=partition: first[partition],  # type: ignore[misc]
            end=lambda partition=partition: end[partition],  # type: ignore[misc]
            since=lambda _, partition=partition: None if since[partition] < 0 else since[partition],  # type: ignore[misc]
        )
        for partition, point in points.items()
    }


def _positions(
    client: KafkaClient, committed: Mapping[TopicPartition, int], members: Iterable[Member]
) -> list[GroupPosition]:
    owners = {partition: member for member in members for partition in member.partitions}
    partitions = sorted({*committed, *owners})
    known: list[TopicPartition] = []
    for topic in dict.fromkeys(partition.topic for partition in partitions):
        try:
            known += client.partitions([topic])
        except TopicNotFoundError:
            continue
    ends = client.offsets(
        {partition: LATEST_TIME for partition in partitions if partition in known}, "read_uncommitted"
    )
    return [
        GroupPosition(partition, committed.get(partition), ends.get(partition), owners.get(partition))
        for partition in partitions
    ]


def _member(member: Any, group: Any) -> Member:
    partitions = []
    if group.protocol_type == _CONSUMER:
        partitions = [
            TopicPartition(*partition) for partition in read_assignment(bytes(member.member_assignment or b""))
        ]
    return Member(
        member.member_id, member.client_id, member.client_host, getattr(member, "group_instance_id", None), partitions
    )


def _find_group_mismatch(name: str, response: Any) -> str | None:
    if [group.group_id for group in response.groups or ()] != [name]:
        return f"describes other groups than {name!r}"
    return None
