"""`letterhead encode`: JSON, as `letterhead decode --json` gives it, into the bytes of one cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import letterhead as lh
from letterhead.cli.document import read_message
from letterhead.cli.exits import OK, Failure
from letterhead.cli.losses import header_count, warn_if_emptied
from letterhead.cli.output import check_terminal, write_cell
from letterhead.cli.source import read_bytes, refuse_table


def run_encode(
    file: str | None,
    format: str,
    *,
    as_hex: bool,
    out: Path | None,
    types: Any = None,
    on_loss: Literal["raise", "drop"] = "raise",
    canonical: bool = False,
) -> int:
    """Encode one JSON document and write the bytes to standard output or to a file."""
    check_terminal("--hex", as_hex, out)
    given = read_bytes(file)
    refuse_table(given, file, "encode reads JSON; `letterhead convert --column NAME` reads columns")
    message = read_message(_parse(given), format, with_types=types is not None)
    try:
        data = lh.encode(message, format, types=types, on_loss=on_loss, canonical=canonical)
    except lh.errors.HeaderError:
        raise
    except (ValueError, TypeError) as error:
        raise Failure(str(error)) from error
    if on_loss == "drop":
        warn_if_emptied(header_count(message), data, format)
    write_cell(data, format, as_hex=as_hex, out=out)
    return OK


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise Failure("JSON: the input is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise Failure(f"JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or thousands of brackets in each other.
        raise Failure("JSON: a number or a nesting beyond all bounds") from error
