"""`letterhead encode`: encode JSON, as `letterhead decode --json` prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import letterhead as lh
from letterhead.cli.document import read_message
from letterhead.cli.exits import OK, Failure, usage_errors
from letterhead.cli.losses import header_count, warn_if_emptied
from letterhead.cli.options import Canonical, EncodeOnLoss, Written, flag, grouped, option, types_option
from letterhead.cli.output import check_terminal, write_message
from letterhead.cli.source import read_bytes, refuse_table


@grouped(types=types_option)
def encode_command(
    *,
    format: Written,
    file: Annotated[str | None, typer.Argument(metavar="FILE|-", help="JSON; - is standard input.")] = None,
    hex: Annotated[bool, flag("--hex", "Write hex instead of bytes.")] = False,
    out: Annotated[Path | None, option("--out -o", "Write the bytes to a file.", "FILE")] = None,
    types: Any,
    on_loss: Annotated[
        EncodeOnLoss, option("--on-loss", "What the format cannot carry: stop, or leave it out.")
    ] = EncodeOnLoss.raise_,
    canonical: Canonical = False,
) -> int:
    """Encode JSON, as `letterhead decode --json` prints it, to bytes on standard output.

    A value is null, a string, or an object with "hex", "text" or "base64". A
    typed value is a string like "int32:3", "bool:true", "string:acme" or
    "binary:00ff", or an object that also has "type". A format without types
    takes it only with --types; {"text": "int32:3"} is that text itself. A key
    is a string, a whole number in formats with integer keys, or in iggy also a
    string like "int32:3".

    \b
    Examples:
      echo '{"headers": [{"key": "tenant", "value": "acme"}]}' \\
                 | letterhead encode -f kafka --hex
      echo '{"headers": [{"key": "retry", "value": "int32:3"}]}' \\
                 | letterhead encode -f iggy --hex
      letterhead decode message.bin -f kafka --json \\
                 | letterhead encode -f kafka > same.bin
    """
    check_terminal("--hex", hex, out)
    text = read_bytes(file)
    refuse_table(text, file, "encode reads JSON; `letterhead convert --column NAME` reads columns")
    message = read_message(_parse(text), format, with_types=types is not None)
    with usage_errors():
        data = lh.encode(message, format, types=types, on_loss=on_loss.value, canonical=canonical)
    if on_loss is EncodeOnLoss.drop:
        warn_if_emptied(header_count(message), data, format)
    write_message(data, format, as_hex=hex, out=out)
    return OK


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise Failure("JSON: the input is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise Failure(f"JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or thousands of nested brackets.
        raise Failure("JSON: a number is too long, or the nesting too deep") from error
