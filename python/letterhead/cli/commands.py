"""The commands of `letterhead`, each in the module of its name."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from letterhead.cli.common import add_common_options
from letterhead.cli.completion import completion_command
from letterhead.cli.convert import convert_command
from letterhead.cli.decode import decode_command
from letterhead.cli.doctor import run_doctor
from letterhead.cli.encode import encode_command
from letterhead.cli.exits import OK
from letterhead.cli.formats import run_formats
from letterhead.cli.inspect import inspect_command
from letterhead.cli.options import EXIT_CODES, Json, option
from letterhead.cli.read import read_command
from letterhead.cli.scan import scan_command
from letterhead.cli.state.commands import state

app = typer.Typer(
    name="letterhead",
    help="Inspect, decode, encode and convert message headers of Kafka, Kafka Streams and Iggy, and read the state stores "
    "that keep them.\n\n\b\nExamples:\n"
    "  letterhead inspect message.bin --format kafka\n"
    "  letterhead decode --hex 0202610276 --format auto\n"
    "  letterhead scan topic.parquet",
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"letterhead {importlib.metadata.version('letterhead')}")
        raise typer.Exit(OK)


@app.callback()
def _root(
    version: Annotated[bool, option("--version -V", "Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    pass


def formats_command(json: Json = False) -> int:
    """List all formats: name, class, system, description.

    A format of class headers is a list of headers, message also has the other
    fields of one message, and batch holds many messages.

    \b
    Examples:
      letterhead formats
      letterhead formats --json
    """
    return run_formats(json=json)


def doctor_command(json: Json = False) -> int:
    """Show versions of installed components, what is missing, and how to install it.

    The exit code is 1 if there is a problem; notes do not count as problems.
    `letterhead.spark.doctor(spark)` asks the executors of a Spark session.

    \b
    Examples:
      letterhead doctor
      letterhead doctor --json
    """
    return run_doctor(json=json)


for name, command in (
    ("read", read_command),
    ("inspect", inspect_command),
    ("decode", decode_command),
    ("encode", encode_command),
    ("convert", convert_command),
    ("scan", scan_command),
    ("formats", formats_command),
    ("doctor", doctor_command),
    ("completion", completion_command),
):
    app.command(name, epilog=EXIT_CODES)(command)
app.add_typer(state)
add_common_options(app)
