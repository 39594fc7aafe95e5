"""Options that several commands have, and the words that they take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from letterhead.cli.exits import Failure
from letterhead.cli.formats import table_of_formats
from letterhead.limits import Limits

EXIT_CODES = "Exit codes: 0 all is well; 1 the bytes have faults, or a check failed; 2 wrong usage."


class Errors(StrEnum):
    """What to do with bytes that do not decode."""

    raise_ = "raise"
    null = "null"
    column = "column"


class OnLoss(StrEnum):
    """What to do with what a target cannot carry."""

    raise_ = "raise"
    drop = "drop"
    report = "report"


class Refusal(StrEnum):
    """The same where there is nothing to report in."""

    raise_ = "raise"
    drop = "drop"


class Types(StrEnum):
    """What becomes of types where one side has none."""

    be = "be"
    le = "le"
    text = "text"
    binary = "binary"


def format_names() -> str:
    """Give the names of all formats, for a line of help."""
    return ", ".join(row["name"] for row in table_of_formats().values())


def _target_names() -> str:
    return ", ".join(row["name"] for row in table_of_formats().values() if row["is_target"])


File = Annotated[str | None, typer.Argument(metavar="FILE|-", help="Raw bytes; - is standard input.")]
Format = Annotated[
    str,
    typer.Option(
        "--format", "-f", metavar="FORMAT", help=f"One of: {format_names()}; or auto: the one that fits, if one does."
    ),
]
Written = Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=f"One of: {_target_names()}.")]
Target = Annotated[str, typer.Option("--to", "-t", metavar="TARGET", help=f"One of: {_target_names()}.")]
Hex = Annotated[
    str | None,
    typer.Option("--hex", metavar="TEXT", help="The bytes as hex (spaces, 0x, colons are fine); - reads stdin."),
]
Base64 = Annotated[
    str | None, typer.Option("--base64", metavar="TEXT", help="The bytes as base64; - reads standard input.")
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column",
        "-c",
        metavar="NAME",
        help="FILE is Parquet: use this column of bytes (decode, convert: or of headers).",
    ),
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Accept what Java's deserializers accept, as they read it.")]
StrictTypes = Annotated[
    bool, typer.Option("--strict-types", help="Of iggy: refuse types that have no name yet, codes 16 to 255.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Everything = Annotated[bool, typer.Option("--all", help="Do not fold long values, and show every message.")]
WordOfTypes = Annotated[
    Types | None,
    typer.Option(
        "--types",
        help="To a format without types: write values big-endian, little-endian or as text. To one with types: "
        "values without a type are binary.",
    ),
]
Type = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="KEY=TYPE",
        help="To a format with types: the type of a key's values, as in retry=int32, at=int64:le, n=int32:text. "
        "Give it once for each key; for one key several times, in the order of its headers.",
    ),
]
Canonical = Annotated[bool, typer.Option("--canonical", help="To iggy: sort the headers as Iggy's own map does.")]
OnErrors = Annotated[
    Errors,
    typer.Option("--errors", help="Bytes that do not decode: stop there, give null, or add a column that says why."),
]
ErrorColumn = Annotated[
    str,
    typer.Option("--error-column", metavar="NAME", help="With --errors column: the name of the column that says why."),
]
Limit = Annotated[
    int | None, typer.Option("--limit", "-n", min=0, help="With --column: the first rows only (20 on screen).")
]


def _limit(option: str, help: str) -> typer.models.OptionInfo:
    said: typer.models.OptionInfo = typer.Option(option, metavar="N", min=0, help=help, rich_help_panel="Limits")
    return said


MaxMessageBytes = Annotated[
    int | None, _limit("--max-message-bytes", "Refuse messages, batches and stored values of more bytes.")
]
MaxHeaders = Annotated[int | None, _limit("--max-headers", "Refuse messages of more headers.")]
MaxDecompressedBytes = Annotated[
    int | None, _limit("--max-decompressed-bytes", "Refuse compressed batches that become more bytes.")
]

MaxRecords = Annotated[int | None, _limit("--max-records", "Refuse batches of more records.")]
MaxOutputBytes = Annotated[
    int | None, _limit("--max-output-bytes", "Refuse batches whose keys, values and headers take more bytes.")
]


def limits_of(
    message_bytes: int | None,
    headers: int | None,
    decompressed_bytes: int | None = None,
    records: int | None = None,
    output_bytes: int | None = None,
) -> Limits:
    """Return the limits of a command: those of its options, and for the unset ones those of the environment."""
    try:
        return Limits(
            message_bytes=message_bytes,
            headers=headers,
            decompressed_bytes=decompressed_bytes,
            records=records,
            output_bytes=output_bytes,
        ).filled()
    except ValueError as error:
        raise Failure(str(error)) from None
