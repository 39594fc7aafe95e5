"""The commands of `letterhead state`, their options and their help; each does its work in the module of its name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from letterhead.cli.options import EXIT_CODES, Json, MaxHeaders, MaxMessageBytes, limits_of

state = typer.Typer(
    name="state",
    help="Stores in RocksDB, made by Kafka Streams or by letterhead: what is in them, and what is wrong with them.\n\n"
    "DIR is a state directory, that of an application, of a task, or of one store. Only `upgrade` changes anything.\n\n"
    "\b\nExamples:\n  letterhead state ls /tmp/kafka-streams\n  letterhead state verify /tmp/kafka-streams/orders-app",
    epilog=EXIT_CODES,
    rich_markup_mode="rich",
)


class Damaged(StrEnum):
    """What to do with rows that cannot be read."""

    report = "report"
    raise_ = "raise"


Dir = Annotated[Path, typer.Argument(metavar="DIR", help="A state, application, task or store directory.")]
Name = Annotated[str | None, typer.Option("--store", "-s", metavar="NAME", help="The stores of this name only.")]
Said = Annotated[
    str | None,
    typer.Option(
        "--store-type",
        metavar="TYPE",
        help="Where the files do not say: key-value, window, session, versioned, time-ordered-window, "
        "time-ordered-session.",
    ),
]
Values = Annotated[
    str | None,
    typer.Option(
        "--values", metavar="VALUES", help="Of time-ordered windows without headers: plain or timestamped (assumed)."
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Do not fold long values.")]


@state.command("ls", epilog=EXIT_CODES)
def ls_command(
    directory: Dir,
    store: Name = None,
    store_type: Said = None,
    quick: Annotated[bool, typer.Option("--quick", help="Estimate the rows, and read none of them.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Of several stores too: families, segments, offsets.")
    ] = False,
    json: Json = False,
) -> int:
    """List the stores: type, rows, bytes, and how many of the bytes are headers.

    All rows are read and counted, unless --quick is given. Of one store it also
    shows the column families, segments and their times, whether an upgrade is
    unfinished, whether it was closed, and how far its changelog and inputs are.

    \b
    Examples:
      letterhead state ls /tmp/kafka-streams
      letterhead state ls /tmp/kafka-streams/orders-app/0_0/rocksdb/latest
      letterhead state ls /tmp/kafka-streams --all --json
    """
    from letterhead.cli.state.ls import run_ls

    return run_ls(directory, name=store, said=store_type, quick=quick, everything=everything, json=json)


@state.command("get", epilog=EXIT_CODES)
def get_command(
    directory: Dir,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="Text; or hex:00ff, base64:AP8=, int64:7 and the like (string:… is always text)."
        ),
    ],
    store: Name = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="TIME", help="Of a window or session: when it starts.")
    ] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="TIME", help="Of a session: when it ends.")] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="Of a versioned store: what was valid then; else the latest."),
    ] = None,
    store_type: Said = None,
    values: Values = None,
    everything: Everything = False,
    json: Json = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
) -> int:
    """Show the row of a key: value, timestamp, headers.

    A TIME is milliseconds since 1970, or a date, which is UTC unless it says
    another zone. Where tasks have stores of the same name, all of them are
    asked. No row: exit code 1.

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
        directory,
        key,
        name=store,
        said=store_type,
        values=values,
        limits=limits_of(max_message_bytes, max_headers),
        start=start,
        end=end,
        as_of=as_of,
        json=json,
        everything=everything,
    )


@state.command("scan", epilog=EXIT_CODES)
def scan_command(
    directory: Dir,
    store: Name = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="KEY", help="Keys from this one on, spelt as for `get`.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="KEY", help="Keys up to this one, included.")] = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="KEY", help="Keys that begin with these bytes.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=0, help="The first rows only.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the last row to the first.")] = False,
    keys_only: Annotated[bool, typer.Option("--keys-only", help="Leave out values, timestamps and headers.")] = False,
    damaged: Annotated[
        Damaged, typer.Option("--damaged", help="Rows that cannot be read: name them on stderr and go on, or stop.")
    ] = Damaged.report,
    store_type: Said = None,
    values: Values = None,
    everything: Everything = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, a line for each row.")] = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
) -> int:
    """Show all rows of a store, or those of some keys, in the order of the store.

    Windows and sessions come by segment, and in a segment by key; of a
    versioned store every version is shown. With damaged rows, which are left
    out, the exit code is 1.

    \b
    Examples:
      letterhead state scan 0_0/rocksdb/latest --limit 20
      letterhead state scan 0_0 --store hourly --prefix customer --json
      letterhead state scan 0_0/rocksdb/latest --from a --to b --reverse
    """
    from letterhead.cli.state.scan import run_scan

    return run_scan(
        directory,
        name=store,
        said=store_type,
        values=values,
        limits=limits_of(max_message_bytes, max_headers),
        first=first,
        last=last,
        prefix=prefix,
        limit=limit,
        backward=reverse,
        keys_only=keys_only,
        damaged=damaged.value,
        json=json,
        everything=everything,
    )


@state.command("upgrade", epilog=EXIT_CODES)
def upgrade_command(
    directory: Dir,
    store: Name = None,
    to: Annotated[
        str, typer.Option("--to", metavar="VALUES", help="What values are to have: headers, or timestamped.")
    ] = "headers",
    store_type: Said = None,
    values: Values = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be moved, and change nothing.")] = False,
    json: Json = False,
) -> int:
    """Move all rows of older stores to the column family of stores with headers.

    A store with headers does that by itself, row by row, when rows are read by
    their key or written. Here all are moved at once. Whenever it is stopped, no
    row is lost, and it goes on when it is run again. There is no way back but
    the changelog.

    \b
    Examples:
      letterhead state upgrade 0_0 --dry-run
      letterhead state upgrade 0_0 --store latest --yes
      letterhead state upgrade 0_0/rocksdb/prices --store-type versioned
    """
    from letterhead.cli.state.upgrade import run_upgrade

    return run_upgrade(
        directory, name=store, said=store_type, values=values, to=to, yes=yes, dry_run=dry_run, json=json
    )


@state.command("verify", epilog=EXIT_CODES)
def verify_command(
    directory: Dir,
    store: Name = None,
    store_type: Said = None,
    values: Values = None,
    json: Json = False,
    max_message_bytes: MaxMessageBytes = None,
    max_headers: MaxHeaders = None,
) -> int:
    """Read every row of every column family strictly, and name each one that is damaged.

    It is told by its store, its key as it is stored, the byte in its value, the
    reason and the code of the reason. With faults the exit code is 1.

    \b
    Examples:
      letterhead state verify /tmp/kafka-streams
      letterhead state verify 0_0 --store latest --json
    """
    from letterhead.cli.state.verify import run_verify

    limits = limits_of(max_message_bytes, max_headers)
    return run_verify(directory, name=store, said=store_type, values=values, limits=limits, json=json)
