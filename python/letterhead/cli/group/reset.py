"""`letterhead group reset`: show the new offsets of a group, and commit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from letterhead._formatting import printable
from letterhead.cli.exits import BAD_DATA, OK, Failure
from letterhead.cli.group.connection import connect
from letterhead.cli.group.options import Cluster
from letterhead.cli.render import count_text, note, print_json, warn
from letterhead.cli.screen import console, table
from letterhead.cli.sources.options import partition_numbers, points
from letterhead.errors import GroupNotFoundError
from letterhead.kafka.group_admin import GroupDescription, OffsetChange, describe_group, plan_reset
from letterhead.kafka.groups import GroupOffsets


def run_reset(
    cluster: Cluster, name: str, *, to: str | None, shift: int | None, topics: Sequence[str], execute: bool, json: bool
) -> int:
    """Print the new offsets of a group, and commit them with ``execute``."""
    point = None if to is None else points(to)
    chosen = dict(map(_partitions_of, topics))
    if isinstance(point, Mapping) and len(chosen) != 1:
        raise Failure("--to: points of partitions need one --topic")
    with connect(cluster) as client:
        try:
            group = describe_group(client, name)
        except GroupNotFoundError:
            if not chosen:
                raise
            group = GroupDescription.empty(name)
        check_no_members(group)
        changes = plan_reset(client, group, point, shift=shift, partitions=chosen)
        if execute:
            GroupOffsets(client, name).commit({change.partition: change.new for change in changes})
    for change in changes:
        if change.requested != change.new:
            warn(f"{change.partition} has no offset {change.requested}: {change.new} is the nearest")
    print_changes(name, changes, execute=execute, json=json)
    return OK


def check_no_members(group: GroupDescription) -> None:
    """Reject a group with active consumers."""
    if group.has_members:
        raise Failure(
            f"group {group.name!r} is {group.state} with {count_text(len(group.members), 'member')}, which commit offsets "
            "themselves: stop them first",
            BAD_DATA,
        )


def print_changes(name: str, changes: Sequence[OffsetChange], *, execute: bool, json: bool) -> None:
    """Print the new offsets of a group."""
    if json:
        print_json({"group": name, "committed": execute, "offsets": [_document(change) for change in changes]})
        return
    _show(changes)
    if execute:
        note(f"committed to group {name}")
    else:
        note("nothing was committed: --execute commits these offsets")


def _partitions_of(text: str) -> tuple[str, frozenset[int] | None]:
    """Return a topic, and the numbers of its partitions if they are listed as in orders:0,3-5."""
    topic, colon, numbers = text.partition(":")
    if not topic:
        raise Failure("--topic needs the name of a topic, as in orders or orders:0,3-5")
    return topic, partition_numbers("--topic", [numbers]) if colon else None


def _show(changes: Sequence[OffsetChange]) -> None:
    view = table("topic", "partition", "committed", "new", "change", right=("partition", "committed", "new", "change"))
    for change in changes:
        before = change.committed
        difference = "" if before is None else f"{change.new - before:+,}"
        view.add_row(
            printable(change.partition.topic),
            str(change.partition.partition),
            "" if before is None else f"{before:,}",
            f"{change.new:,}",
            difference,
        )
    console().print(view)


def _document(change: OffsetChange) -> dict[str, object]:
    return {
        "topic": change.partition.topic,
        "partition": change.partition.partition,
        "committed": change.committed,
        "new": change.new,
    }
