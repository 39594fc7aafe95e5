"""Options and words that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from letterhead.cli.exits import Failure
from letterhead.limits import Limits

EXIT_CODES = "Exit codes: 0 all is well; 1 the bytes have faults, or a check failed; 2 wrong usage."

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _limit(option: str, help: str) -> typer.models.OptionInfo:
    said: typer.models.OptionInfo = typer.Option(option, metavar="N", min=0, help=help, rich_help_panel="Limits")
    return said


MaxCellBytes = Annotated[int | None, _limit("--max-cell-bytes", "Refuse cells of more bytes.")]
MaxHeaders = Annotated[int | None, _limit("--max-headers", "Refuse messages of more headers.")]
MaxDecompressedBytes = Annotated[
    int | None, _limit("--max-decompressed-bytes", "Refuse compressed batches that become more bytes.")
]


def limits_of(cell_bytes: int | None, headers: int | None, decompressed_bytes: int | None) -> Limits:
    """Give the limits of a command: those that were said, and else those of the environment.

    Raises
    ------
    Failure
        If one is no number that a limit can be.
    """
    try:
        return Limits(cell_bytes=cell_bytes, headers=headers, decompressed_bytes=decompressed_bytes).filled()
    except ValueError as error:
        raise Failure(str(error)) from None
