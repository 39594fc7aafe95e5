"""Commands of `letterhead state` with options and help; the modules that implement them are imported when needed."""

from __future__ import annotations

from typing import Annotated

import typer

from letterhead.cli.exits import EXIT_CODES
from letterhead.cli.options import EpochMs, Json, flag, group_options, option
from letterhead.cli.state.options import (
    ChangelogSource,
    Retention,
    SegmentInterval,
    Selection,
    changelog,
    changelogs,
    limit_stores,
    stores,
)

state = typer.Typer(
    name="state",
    help="Read, compare and restore RocksDB state stores of Kafka Streams and letterhead, and upgrade them.\n\n"
    "DIR is the directory of a state, an application, a task or a store. Only `upgrade` changes one, and "
    "`restore` writes a new one.\n\n"
    "\b\nExamples:\n  letterhead state ls /tmp/kafka-streams\n  letterhead state verify /tmp/kafka-streams/orders-app",
    epilog=EXIT_CODES,
    rich_markup_mode="rich",
)


Everything = Annotated[bool, flag("--all", "Do not shorten long values.")]


@state.command("ls", epilog=EXIT_CODES)
@group_options(selection=stores, changelogs=changelogs)
def ls_command(
    *,
    selection: Selection,
    quick: Annotated[bool, flag("--quick", "Estimate the number of rows instead of reading them.")] = False,
    everything: Annotated[bool, flag("--all", "Also show families, segments and offsets of several stores.")] = False,
    changelogs: ChangelogSource | None,
    json: Json = False,
    epoch_ms: EpochMs = False,
) -> int:
    """List the stores: type, rows, bytes, and how many of the bytes are headers.

    All rows are read and counted, unless --quick is given. For a single store, it
    also shows column families, segments and their times, unfinished upgrades,
    whether the store was closed, and its changelog and input offsets. With
    --changelog or --bootstrap-server, it counts the records that a store lacks.

    \b
    Examples:
      letterhead state ls /tmp/kafka-streams
      letterhead state ls /tmp/kafka-streams/orders-app/0_0/rocksdb/latest
      letterhead state ls /tmp/kafka-streams --all --json
      letterhead state ls /tmp/kafka-streams --changelog kafka://broker:9092
    """
    from letterhead.cli.state.ls import run_ls

    return run_ls(selection, quick=quick, everything=everything, json=json, epoch_ms=epoch_ms, changelogs=changelogs)


@state.command("get", epilog=EXIT_CODES)
@group_options(selection=limit_stores)
def get_command(
    *,
    selection: Selection,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="Text; or hex:00ff, base64:AP8=, int64:7 and the like (string:… is always text)."
        ),
    ],
    start: Annotated[str | None, option("--start", "Start of a window or session.", "TIME")] = None,
    end: Annotated[str | None, option("--end", "End of a session.", "TIME")] = None,
    as_of: Annotated[
        str | None,
        option("--as-of", "Versioned stores: the version valid at this time, instead of the latest.", "TIME"),
    ] = None,
    everything: Everything = False,
    json: Json = False,
    epoch_ms: EpochMs = False,
) -> int:
    """Show the row of a key: value, timestamp, headers.

    A TIME is milliseconds since 1970, or a date, in UTC unless it names a zone.
    If several tasks have a store of this name, all of them are searched. If
    there is no row, the exit code is 1.

    \b
    Examples:
      letterhead state get 0_0 --store latest customer-0007
      letterhead state get 0_0/rocksdb/latest hex:637573746f6d6572 --json
      letterhead state get 0_0/hourly customer --start 2026-01-01T00:01:00
      letterhead state get 0_0 -s sessions int64:7 --start 1767225600000 \\
                 --end 1767225660000
      letterhead state get 0_0/rocksdb/prices pen --as-of 2026-01-01
    """
    from letterhead.cli.state.get import run_get

    return run_get(
        selection, key, start=start, end=end, as_of=as_of, json=json, everything=everything, epoch_ms=epoch_ms
    )


@state.command("upgrade", epilog=EXIT_CODES)
@group_options(selection=stores)
def upgrade_command(
    *,
    selection: Selection,
    to: Annotated[str, option("--to", "New format of the values: headers, or timestamped.", "VALUES")] = "headers",
    yes: Annotated[bool, flag("--yes -y", "Do not ask.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Print what would be moved, and change nothing.")] = False,
    json: Json = False,
) -> int:
    """Move all rows of older stores to the column family of stores with headers.

    A store with headers moves a row when it is read by its key or written; this
    command moves all of them. No row is lost if it is stopped: run it again to
    continue. Only the changelog restores the older store.

    \b
    Examples:
      letterhead state upgrade 0_0 --dry-run
      letterhead state upgrade 0_0 --store latest --yes
      letterhead state upgrade 0_0/rocksdb/prices --store-type versioned
    """
    from letterhead.cli.state.upgrade import run_upgrade

    return run_upgrade(selection, to=to, yes=yes, dry_run=dry_run, json=json)


@state.command("check", epilog=EXIT_CODES)
@group_options(selection=stores, changelogs=changelogs)
def check_command(
    *,
    selection: Selection,
    to: Annotated[
        str, option("--to", "The version of Kafka Streams that opens the directory next: 4.3 or 4.4.", "VERSION")
    ],
    from_version: Annotated[str | None, option("--from", "The current version.", "VERSION")] = None,
    layout: Annotated[
        str | None,
        option("--layout", "New format of the values: headers, timestamped or plain; by default unchanged.", "LAYOUT"),
    ] = None,
    run_trial: Annotated[
        bool, flag("--try", "Try the upgrade on copies in the temporary directory, and compare all rows.")
    ] = False,
    changelogs: ChangelogSource | None,
    retention: Retention = None,
    segment_interval: SegmentInterval = None,
    json: Json = False,
) -> int:
    """Predict what an upgrade or downgrade of Kafka Streams does to each store.

    Stores are kept, converted row by row, or rejected. A rejected store is
    rebuilt from its changelog after you delete the directory, or lost without a
    changelog. A defect of Kafka Streams damages time-ordered sessions that get
    headers. With --try, copies are opened, converted or restored, and their rows
    compared with the stores, which are not changed. Exit code 1: a store would
    be lost or damaged, or a copy has other rows.

    \b
    Examples:
      letterhead state check orders-app --to 4.4 --layout headers --try
      letterhead state check 0_0 --store latest --to 4.3 --layout timestamped \\
                 --try --changelog orders-app-latest-changelog-0
    """
    from letterhead.cli.state.check import run_check

    source = changelogs and changelogs._replace(retention=retention, segment_interval=segment_interval)
    return run_check(
        selection, to=to, from_version=from_version, layout=layout, run_trial=run_trial, source=source, json=json
    )


@state.command("verify", epilog=EXIT_CODES)
@group_options(selection=limit_stores)
def verify_command(*, selection: Selection, json: Json = False) -> int:
    """Read every row of every column family strictly, and report damaged ones.

    An error names the store, the key as it is stored, the byte in the value, and
    the reason with its code. With errors the exit code is 1.

    \b
    Examples:
      letterhead state verify /tmp/kafka-streams
      letterhead state verify 0_0 --store latest --json
    """
    from letterhead.cli.state.verify import run_verify

    return run_verify(selection, json=json)


@state.command("restore", epilog=EXIT_CODES)
@group_options(source=changelog)
def restore_command(
    *,
    source: ChangelogSource,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The task's directory; {partition} in it stands for every partition.")
    ],
    store: Annotated[str, option("--store -s", "Name of the store.", "NAME")],
    store_type: Annotated[
        str,
        option(
            "--store-type", "key-value, window, session, versioned, time-ordered-window, time-ordered-session.", "TYPE"
        ),
    ] = "key-value",
    layout: Annotated[
        str, option("--layout", "Format of the values: headers, timestamped, or plain.", "LAYOUT")
    ] = "headers",
    topic: Annotated[
        str | None, option("--topic", "Name of the changelog, if the source does not contain it.", "NAME")
    ] = None,
    partition: Annotated[int | None, option("--partition", "Only this partition.", "N", min=0)] = None,
    start: Annotated[
        str | None, option("--start", "earliest, or an offset; by default the same as in Kafka Streams 4.4.", "OFFSET")
    ] = None,
    end: Annotated[
        str | None, option("--end", "Stop before this offset, or the first record of this time.", "OFFSET|TIME")
    ] = None,
    force: Annotated[
        bool, flag("--force", "Restore even if topic, partition, store and task do not fit by name.")
    ] = False,
    json: Json = False,
) -> int:
    """Rebuild the directory of a store from its changelog.

    CHANGELOG is a Parquet file with the columns of Spark's Kafka source, log
    segments, or a topic. DIR is the directory of the
    task, such as app/0_0, and must not have the store yet. Kafka Streams opens
    the store and continues there. The changelog is named
    APPLICATION-STORE-changelog. If the command is stopped, run it again to
    continue.

    A window or session store starts at the first record within the retention of
    the last one, as in Kafka Streams 4.4. With --start earliest it gets all
    rows of its oldest segments, as in 4.3.

    \b
    Examples:
      letterhead state restore orders-app-latest-changelog-0 app/0_0 -s latest
      letterhead state restore changelog.parquet 'app/0_{partition}' -s latest
      letterhead state restore -b broker orders-app-hourly-changelog app/0_0 \\
                 -s hourly --partition 0 --store-type window \\
                 --retention 7200000
      letterhead state restore changelog.parquet old/0_0 -s latest \\
                 --layout timestamped --end 2026-01-01T08:30:00Z
    """
    from letterhead.cli.state.restore import run_restore

    return run_restore(
        source,
        directory,
        store,
        store_type=store_type,
        layout=layout,
        topic=topic,
        partition=partition,
        start=start,
        end=end,
        force=force,
        json=json,
    )


@state.command("diff", epilog=EXIT_CODES)
@group_options(selection=limit_stores, source=changelog)
def diff_command(
    *,
    selection: Selection,
    source: ChangelogSource,
    limit: Annotated[
        int | None, option("--limit -n", "Show only the first N differences (20 on a terminal).", "N", min=0)
    ] = None,
    everything: Annotated[bool, flag("--all", "Show all differences, and do not shorten long values.")] = False,
    json: Annotated[bool, flag("--json", "Print JSON, a line for each difference.")] = False,
    epoch_ms: EpochMs = False,
) -> int:
    """Compare the stores of two directories, or a store with its changelog.

    CHANGELOG is the other directory; or a Parquet file, log segments or a topic
    as for `restore`, read up to the offset that the store has. Only fields that
    both sides store are compared. If any differs, the exit code is 1.

    \b
    Examples:
      letterhead state diff backup/0_0 app/0_0
      letterhead state diff app/0_0 -s latest orders-app-latest-changelog-0
      letterhead state diff app/0_0 -s hourly --retention 7200000 --json \\
                 kafka://broker:9092/orders-app-hourly-changelog
    """
    from letterhead.cli.state.diff import run_diff

    return run_diff(selection, source, limit=limit, everything=everything, json=json, epoch_ms=epoch_ms)
