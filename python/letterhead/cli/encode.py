"""`letterhead encode`: encode JSON lines, as all commands print them with `--json`."""

from __future__ import annotations

import decimal
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import letterhead as lh
from letterhead.cli.document import read_message
from letterhead.cli.exits import OK, Failure, usage_errors
from letterhead.cli.formats import is_batch
from letterhead.cli.losses import header_count, warn_if_emptied
from letterhead.cli.message_input import read_bytes, refuse_table
from letterhead.cli.options import Canonical, EncodeOnLoss, Written, flag, grouped, option, types_option
from letterhead.cli.output import check_terminal, write_messages
from letterhead.cli.render import warn
from letterhead.errors import replaced


@grouped(types=types_option)
def encode_command(
    *,
    format: Written,
    file: Annotated[str | None, typer.Argument(metavar="FILE|-", help="JSON; - is standard input.")] = None,
    hex: Annotated[bool, flag("--hex", "Write hex instead of bytes, a line for each record.")] = False,
    out: Annotated[Path | None, option("--out -o", "Write the bytes to a file.", "FILE")] = None,
    types: Any,
    on_loss: Annotated[
        EncodeOnLoss, option("--on-loss", "What the format cannot carry: stop, or leave it out.")
    ] = EncodeOnLoss.raise_,
    canonical: Canonical = False,
) -> int:
    """Encode JSON, as other commands print it with --json, to bytes on standard output.

    The input is one record, or one on each line. A value is null, a string, or
    an object with "base64" or "hex". A value with a type is an object with
    "type" and "value", such as {"type": "int32", "value": 3}; in a format with
    types a string has the type string, and a format without types takes types
    only with --types. A key is a string, a whole number in formats with integer
    keys, or in iggy also an object with "type" and "value". Batch formats hold
    all records; of other formats, several records need --hex.

    \b
    Examples:
      echo '{"headers": [{"key": "tenant", "value": "acme"}]}' \\
                 | letterhead encode -f kafka --hex
      letterhead decode --hex 02010000006b040100000003 -f iggy --json \\
                 | letterhead encode -f iggy --hex
      letterhead decode message.bin -f kafka --json \\
                 | letterhead encode -f kafka > same.bin
    """
    check_terminal("--hex", hex, out)
    text = read_bytes(file)
    refuse_table(text, file, "encode reads JSON; `letterhead convert --column NAME` reads columns")
    left_out: set[str] = set()
    messages = []
    for place, document in _documents(text):
        try:
            messages.append(read_message(document, format, with_types=types is not None, left_out=left_out))
        except Failure as failure:
            raise Failure(f"{failure}{place}") from failure
    written = _encoded(messages, format, types, on_loss, canonical)
    if len(written) > 1 and not hex:
        raise Failure(f"{len(written):,} records of {format} have no separator: pass --hex for a line for each")
    if left_out:
        warn(f"{format} has no {', '.join(sorted(left_out))}: left out")
    write_messages(written, format, as_hex=hex, out=out)
    return OK


def _encoded(
    messages: list[Any], format: str, types: Any, on_loss: EncodeOnLoss, canonical: bool
) -> list[bytes | None]:
    """Encode each message, or all as one batch."""
    if is_batch(format):
        with usage_errors():
            return [lh.batch(messages, format, types=types, on_loss=on_loss.value)]
    written = []
    for row, message in enumerate(messages):
        try:
            with usage_errors():
                data = lh.encode(message, format, types=types, on_loss=on_loss.value, canonical=canonical)
        except lh.errors.HeaderError as error:
            raise error if len(messages) == 1 else replaced(error, row=row) from error
        if on_loss is EncodeOnLoss.drop:
            warn_if_emptied(header_count(message), data, format)
        written.append(data)
    return written


def _documents(text: bytes) -> Iterator[tuple[str, Any]]:
    """Parse one document, or one on each line; with the place of each in the input, for errors."""
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if len(lines) < 2 or not _is_whole(lines[0][1]):
        yield "", _parse(text)
        return
    for number, line in lines:
        yield f" (line {number})", _parse(line, number)


def _is_whole(line: bytes) -> bool:
    try:
        _parse(line)
    except Failure:
        return False
    return True


def _parse(text: bytes, line: int = 1) -> Any:
    try:
        return json.loads(text, parse_float=decimal.Decimal, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Failure("JSON: the input is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise Failure(f"JSON: {error.msg.lower()} (line {line + error.lineno - 1}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or thousands of nested brackets.
        raise Failure("JSON: a number is too long, or the nesting too deep") from error


def _refuse_constant(name: str) -> NoReturn:
    raise Failure(f'JSON: {name} is no number of JSON: write "{name}"')
