"""Table of commands, and the help of `letterhead` itself, without importing other modules: :func:`print_help`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

from letterhead.cli.exits import EXIT_CODES, OK
from letterhead.cli.output import end_of_output
from letterhead.cli.render import screen_width, style

__all__ = ["COMMANDS", "DESCRIPTION", "EXAMPLES", "GROUPS", "VARIABLE", "print_help"]

DESCRIPTION = (
    "Inspect, decode, encode and convert message headers of Kafka, Kafka Streams and Iggy, and read the state stores that "
    "keep them."
)
EXAMPLES = """\
  letterhead read kafka://broker:9092/orders --last 10
  letterhead inspect message.bin --format kafka
  letterhead decode --hex 0202610276 --format auto
  letterhead scan topic.parquet"""
VERSION_HELP = "Print the version."
QUIET_HELP = "Print no progress and no notes: results, warnings and errors only."
NO_COLOR_HELP = "Print no colours and no bold text."
ZONE_HELP = "The zone of times that name none, and of times in tables: Europe/Berlin, +02:00, local; by default UTC."

OPTIONS = {
    "--version -V": VERSION_HELP,
    "--quiet -q": QUIET_HELP,
    "--no-color": NO_COLOR_HELP,
    "--tz ZONE": ZONE_HELP,
    "--help -h": "Show this message, or the help of a command.",
}
"""Options before the command, with their help."""

MAX_WIDTH = 100

VARIABLE = "_LETTERHEAD_COMPLETE"
"""Environment variable that a shell's completion function sets when it calls the command."""


class Command(NamedTuple):
    """Command or group of commands: its module, the name of its function in the module, and the first line of its help."""

    module: str
    name: str
    summary: str


COMMANDS = {
    "read": Command("read", "read_command", "Read topics, log segments, state directories and tables."),
    "inspect": Command(
        "inspect", "inspect_command", "Show the bytes of one message or batch, each labelled with its field."
    ),
    "decode": Command("decode", "decode_command", "Decode one message or batch, or a column of a source."),
    "encode": Command(
        "encode", "encode_command", "Encode JSON, as other commands print it with --json, to bytes on standard output."
    ),
    "convert": Command(
        "convert", "convert_command", "Convert one message, or a column of a source, to another format."
    ),
    "scan": Command("scan", "scan_command", "Find out which headers the messages of a source have, and suggest types."),
    "copy": Command("copy", "copy_command", "Copy a topic or a log to a directory or a topic, each record once."),
    "diff": Command("diff", "diff_command", "Compare the records of two topics, logs or tables."),
    "sql": Command(
        "sql", "sql_command", "Print expressions of Spark SQL that read headers, for views and models of dbt."
    ),
    "formats": Command("format_list", "formats_command", "List all formats: name, class, system, description."),
    "doctor": Command(
        "doctor_command",
        "doctor_command",
        "Show versions of installed components, what is missing, and how to install it.",
    ),
    "completion": Command(
        "completion", "completion_command", "Print a script that completes commands, options, formats and stores."
    ),
    "group": Command(
        "group.commands", "group", "List consumer groups of Kafka, show their positions, and reset their offsets."
    ),
    "state": Command(
        "state.commands",
        "state",
        "Read, compare and restore RocksDB state stores of Kafka Streams and letterhead, and upgrade them.",
    ),
}
"""Commands by name, in the order of the help."""

GROUPS = ("group", "state")
"""Commands that are groups of other commands."""


def print_help() -> int:
    """Print the help of `letterhead` itself, and return the exit code."""
    width = min(screen_width(sys.stdout), MAX_WIDTH)
    usage = style("Usage: letterhead [OPTIONS] COMMAND [ARGS]...", "bold", sys.stdout)
    lines = ["", f" {usage}", "", *_wrap(DESCRIPTION, width), "", " Examples:"]
    lines += [f" {line}" for line in EXAMPLES.splitlines()]
    lines += ["", *_panel("Options", OPTIONS.items(), width)]
    lines += _panel("Commands", ((name, command.summary) for name, command in COMMANDS.items()), width)
    lines += ["", *_wrap(EXIT_CODES, width), ""]
    try:
        print("\n".join(lines))
        sys.stdout.flush()
    except OSError as error:
        return end_of_output(error)
    return OK


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=" ", subsequent_indent=" ")


def _panel(title: str, rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return rows of names and descriptions in a box."""
    rows = [*rows]
    names = max(len(name) for name, _ in rows)
    room = max(20, width - names - 6)
    inner = names + room + 4
    lines = [f"╭─ {title} {'─' * (inner - len(title) - 3)}╮"]
    for name, text in rows:
        first, *others = textwrap.wrap(text, room)
        label = style(name, "bold", sys.stdout) + " " * (names - len(name))
        lines.append(f"│ {label}  {first.ljust(room)} │")
        lines += [f"│ {'':{names}}  {part.ljust(room)} │" for part in others]
    return [*lines, f"╰{'─' * inner}╯"]
