"""`letterhead group translate`: show where a group continues in the copy of a topic, and commit these offsets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from letterhead.cli.exits import OK, Failure, usage_errors
from letterhead.cli.group.connection import connect
from letterhead.cli.group.options import Cluster
from letterhead.cli.group.reset import check_no_members, print_changes
from letterhead.cli.settings_files import file_settings
from letterhead.copies.offset_map import read_runs, translate
from letterhead.errors import GroupNotFoundError
from letterhead.kafka.group_admin import GroupDescription, OffsetChange, describe_group
from letterhead.kafka.groups import GroupOffsets
from letterhead.offsets.partition_log import TopicPartition
from letterhead.sources.kafka import KafkaAddress


def run_translate(
    name: str,
    to: str,
    topics: Sequence[tuple[str, str | None]],
    offsets: Path,
    *,
    timeout_ms: int | None,
    execute: bool,
    json: bool,
) -> int:
    """Print the offsets of a group in the copy of a topic, and commit them with ``execute``.

    ``topics`` contains the addresses of source and target, with their property files.
    """
    with usage_errors():
        (source, from_cluster), (target, to_cluster) = [
            _topic_of(address, config, timeout_ms) for address, config in topics
        ]
        if not offsets.exists():
            raise Failure(f"there is no file {offsets}: letterhead copy --offsets writes it")
        runs = read_runs(offsets)
    with connect(from_cluster) as client:
        committed = {
            partition.partition: offset
            for partition, offset in GroupOffsets(client, name).committed(client.partitions([source])).items()
        }
    if not committed:
        raise Failure(f"group {name!r} has no committed offsets of {source}: check its name")
    with connect(to_cluster) as client:
        try:
            group = describe_group(client, to)
        except GroupNotFoundError:
            group = GroupDescription.empty(to)
        check_no_members(group)
        before = {position.partition: position.committed for position in group.positions}
        known = {*client.partitions([target])}
        changes = []
        for number, offset in sorted(committed.items()):
            partition = TopicPartition(target, number)
            if partition not in known:
                raise Failure(f"{target} has no partition {number}: it is no copy of {source}")
            new = translate(runs.get(number, ()), offset)
            changes.append(OffsetChange(partition, before.get(partition), new, new))
        if execute:
            GroupOffsets(client, to).commit({change.partition: change.new for change in changes})
    print_changes(to, changes, execute=execute, json=json)
    return OK


def _topic_of(address: str, config: str | None, timeout_ms: int | None) -> tuple[str, Cluster]:
    parsed = KafkaAddress.parse(address)
    if parsed.topic is None or parsed.partition is not None:
        raise Failure(f"a group reads whole topics: pass kafka://host:port/topic, not {address}")
    return parsed.topic, Cluster(parsed.servers, {} if config is None else file_settings(config), timeout_ms)
