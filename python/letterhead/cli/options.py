"""Options and words that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

EXIT_CODES = "Exit codes: 0 all is well; 1 the bytes have faults, or a check failed; 2 wrong usage."

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
