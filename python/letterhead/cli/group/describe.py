"""`letterhead group list` and `letterhead group describe`."""

from __future__ import annotations

from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.exits import OK
from letterhead.cli.group.connection import connect
from letterhead.cli.group.options import Cluster
from letterhead.cli.render import count_text, print_json
from letterhead.cli.screen import console, table
from letterhead.kafka.group_admin import GroupDescription, describe_group, list_groups


def run_list(cluster: Cluster, *, json: bool) -> int:
    """Print all groups."""
    with connect(cluster) as client:
        groups = list_groups(client)
    if json:
        print_json([
            {"group": group.name, "state": group.state, "type": group.type, "protocol": group.protocol} for group in groups
        ])  # fmt: skip
        return OK
    view = table("group", "state", "type", "protocol", fold=True)
    for group in groups:
        view.add_row(*(Text(printable(part or "")) for part in (group.name, group.state, group.type, group.protocol)))
    screen = console()
    if groups:
        screen.print(view)
    screen.print(count_text(len(groups), "group"), style="dim")
    return OK


def run_describe(cluster: Cluster, name: str, *, json: bool) -> int:
    """Print the members of a group and its positions."""
    with connect(cluster) as client:
        group = describe_group(client, name)
    if json:
        print_json(_document(group))
        return OK
    screen = console()
    view = table(
        "topic", "partition", "committed", "end", "lag", "client", "host", "member",
        right=("partition", "committed", "end", "lag"), fold=True,
    )  # fmt: skip
    for position in group.positions:
        numbers = [
            "" if number is None else f"{number:,}" for number in (position.committed, position.end, position.lag)
        ]
        member = position.member
        reader = ("", "", "") if member is None else (member.client, member.host, member.id)
        view.add_row(
            printable(position.partition.topic), str(position.partition.partition), *numbers, *map(printable, reader)
        )
    if group.positions:
        screen.print(view)
    for idle in group.members:
        if not idle.partitions:
            screen.print(Text(printable(f"{idle.client} {idle.host} {idle.id}: no partition"), style="dim"))
    lags = [position.lag for position in group.positions if position.lag is not None]
    state = f"{printable(group.state)}, {count_text(len(group.members), 'member')}"
    screen.print(Text(f"{printable(group.name)}: {state}; lag {sum(lags):,}", style="dim"))
    return OK


def _document(group: GroupDescription) -> dict[str, object]:
    return {
        "group": group.name,
        "state": group.state,
        "protocol": group.protocol,
        "members": [
            {
                "member": member.id,
                "client": member.client,
                "host": member.host,
                "instance": member.instance,
                "partitions": [str(partition) for partition in member.partitions],
            }
            for member in group.members
        ],
        "offsets": [
            {
                "topic": position.partition.topic,
                "partition": position.partition.partition,
                "committed": position.committed,
                "end": position.end,
                "lag": position.lag,
                "member": None if position.member is None else position.member.id,
            }
            for position in group.positions
        ],
    }
