"""Commands of `letterhead group` with options and help; the modules that implement them are imported when needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from letterhead.cli.exits import EXIT_CODES, Failure
from letterhead.cli.group.options import Cluster, cluster
from letterhead.cli.options import Json, flag, group_options, option
from letterhead.cli.sources.options import Timeout, as_milliseconds

group = typer.Typer(
    name="group",
    help="List consumer groups of Kafka, show their positions, and reset their offsets or move them to a copy.\n\n"
    "Only `reset` and `translate` with --execute change a group.\n\n"
    "\b\nExamples:\n  letterhead group list -b broker:9092\n  letterhead group describe etl -b broker:9092",
    epilog=EXIT_CODES,
    rich_markup_mode="rich",
)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="The name of the group.")]


@group.command("list", epilog=EXIT_CODES)
@group_options(cluster=cluster)
def list_command(*, cluster: Cluster, json: Json = False) -> int:
    """List all groups with their states.

    \b
    Examples:
      letterhead group list -b broker:9092
      letterhead group list --config client.properties --json
    """
    from letterhead.cli.group.describe import run_list

    return run_list(cluster, json=json)


@group.command("describe", epilog=EXIT_CODES)
@group_options(cluster=cluster)
def describe_command(*, name: Name, cluster: Cluster, json: Json = False) -> int:
    """Show the position of a group in each partition, and its members.

    The lag is the number of offsets after the committed one. If the group does
    not exist, the exit code is 3.

    \b
    Examples:
      letterhead group describe etl -b broker:9092
      letterhead group describe etl -b broker:9092 --json
    """
    from letterhead.cli.group.describe import run_describe

    return run_describe(cluster, name, json=json)


@group.command("translate", epilog=EXIT_CODES)
def translate_command(
    *,
    name: Name,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The topic that was copied, kafka://host:port/topic.")
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Its copy, kafka://host:port/topic.")],
    offsets: Annotated[Path, option("--offsets", "The file that `copy --offsets` wrote.", "FILE")],
    to: Annotated[str | None, option("--to", "The group to commit to; by default the same name.", "GROUP")] = None,
    config: Annotated[Path | None, option("--config", "A property file for the source.", "FILE")] = None,
    target_config: Annotated[
        Path | None, option("--target-config", "A property file for the target; by default as for the source.", "FILE")
    ] = None,
    execute: Annotated[bool, flag("--execute", "Commit the offsets.")] = False,
    timeout: Timeout = None,
    json: Json = False,
) -> int:
    """Show where a group continues in the copy of a topic, and commit it with --execute.

    It continues at the first copied record that it has not read. Records that are
    copied later follow this offset. A group with active consumers is rejected.

    \b
    Examples:
      letterhead copy kafka://old:9092/orders kafka://new:9092/orders \\
                 --offsets map.jsonl
      letterhead group translate etl kafka://old:9092/orders \\
                 kafka://new:9092/orders --offsets map.jsonl --execute
    """
    from letterhead.cli.group.translate import run_translate

    own = None if config is None else str(config)
    clusters = [(source, own), (target, own if target_config is None else str(target_config))]
    return run_translate(
        name, to or name, clusters, offsets, timeout_ms=as_milliseconds(timeout), execute=execute, json=json
    )


@group.command("reset", epilog=EXIT_CODES)
@group_options(cluster=cluster)
def reset_command(
    *,
    name: Name,
    to: Annotated[
        str | None,
        option(
            "--to",
            "An offset, a time, earliest, latest, -N for N before the end, 0=POINT,1=POINT; or group:NAME for the offsets of another group.",
            "POINT",
        ),
    ] = None,
    shift_by: Annotated[
        int | None, option("--shift-by", "Move the committed offsets by N, backward if negative.", "N")
    ] = None,
    topic: Annotated[
        list[str] | None,
        option("--topic", "Only this topic, or partitions of it; repeated for others.", "NAME[:NUMBERS]"),
    ] = None,
    execute: Annotated[bool, flag("--execute", "Commit the offsets.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Only show the offsets (default).")] = False,
    cluster: Cluster,
    json: Json = False,
) -> int:
    """Show the new offsets of a group, and commit them with --execute.

    Without --topic, all partitions with committed offsets are reset. Offsets
    out of range become the first offset or the end. A group with active
    consumers is rejected.

    \b
    Examples:
      letterhead group reset etl -b broker:9092 --to earliest
      letterhead group reset etl -b broker:9092 --to -1h --topic orders --execute
      letterhead group reset etl -b broker:9092 --to 2026-01-01T08:30:00Z
      letterhead group reset etl -b broker:9092 --shift-by -1 --topic orders:0,3-5
      letterhead group reset copy -b broker:9092 --to group:etl --topic orders
    """
    if (to is None) == (shift_by is None):
        raise Failure("give one of --to POINT and --shift-by N")
    if execute and dry_run:
        raise Failure("--execute and --dry-run exclude each other: give one of them")
    from letterhead.cli.group.reset import run_reset

    return run_reset(cluster, name, to=to, shift=shift_by, topics=topic or [], execute=execute, json=json)
