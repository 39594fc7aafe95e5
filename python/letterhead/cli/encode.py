"""`letterhead encode`: encode JSON lines, as all commands print them with `--json`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

import letterhead as lh
from letterhead.cli.document import read_message
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.formats import is_batch
from letterhead.cli.json_records import JsonRecord, json_records
from letterhead.cli.losses import header_count, warn_if_emptied
from letterhead.cli.message_input import is_table, read_lines, refuse_table
from letterhead.cli.options import Canonical, EncodeOnLoss, Written, WrittenAs, group_options, option, types_option
from letterhead.cli.output import TOMBSTONE, as_line, check_terminal
from letterhead.cli.render import warn
from letterhead.cli.sinks import open_sink
from letterhead.errors import copy_error

# Minimum size of a complete batch of records, in bytes of JSON.
BATCH_BYTES = 1 << 20
# Fields that all records of a batch share.
BATCH_FIELDS = ("timestamp_type", "producer_id", "producer_epoch", "transactional", "control")


@group_options(types=types_option)
def encode_command(
    *,
    format: Written,
    file: Annotated[str | None, typer.Argument(metavar="FILE|-", help="JSON; - is standard input.")] = None,
    written_as: WrittenAs = None,
    out: Annotated[Path | None, option("--out -o", "Write the bytes to a file.", "FILE")] = None,
    types: Any,
    on_loss: Annotated[EncodeOnLoss, option("--on-loss", "Losses: stop, or drop the data.")] = EncodeOnLoss.raise_,
    canonical: Canonical = False,
) -> int:
    """Encode JSON, as other commands print it with --json, to bytes on standard output.

    The input is records, one after another, or a batch that `letterhead decode`
    printed. A value is null, a string, or an
    object with "base64" or "hex". A value with a type is an object with
    "type" and "value", such as {"type": "int32", "value": 3}; in a format with
    types a string has the type string, and a format without types takes types
    only with --types. A key is a string, a whole number in formats with integer
    keys, or in iggy also an object with "type" and "value". Batch formats hold
    several records: a batch ends after 1 MiB of JSON, or before a record of
    another producer. In other formats, several records need --as.

    \b
    Examples:
      echo '{"headers": [{"key": "tenant", "value": "acme"}]}' \\
                 | letterhead encode -f kafka --as hex
      letterhead decode --hex 02010000006b040100000003 -f iggy --json \\
                 | letterhead encode -f iggy --as hex
      letterhead decode message.bin -f kafka --json \\
                 | letterhead encode -f kafka > same.bin
    """
    check_terminal("--as hex", written_as is not None, out)
    left_out: set[str] = set()
    with open_sink(out) as sink, closing(_lines(file)) as lines:
        messages = _messages(lines, format, with_types=types is not None, left_out=left_out)
        if is_batch(format):
            written: Iterator[bytes] = _encode_batches(messages, format, types, on_loss)
        elif written_as is not None:
            written = _encode_messages(messages, format, types, on_loss, canonical=canonical)
        else:
            written = _only(_encode_messages(messages, format, types, on_loss, canonical=canonical), format)
        for data in written:
            with sink.errors():
                sink.file.write(as_line(data, written_as))
                sink.flush()
    if left_out:
        warn(f"{format} has no {', '.join(sorted(left_out))}: left out")
    return OK


def _lines(file: str | None) -> Generator[bytes, None, None]:
    """Read lines; reject a table."""
    lines = read_lines(file)
    first = next(lines, b"")
    if is_table(first):
        refuse_table(
            b"".join([first, *lines]), file, "encode reads JSON; `letterhead convert --column NAME` reads columns"
        )
    yield first
    yield from lines


def _messages(lines: Iterable[bytes], format: str, *, with_types: bool, left_out: set[str]) -> Iterator[JsonRecord]:
    for record in json_records(lines):
        documents = _read_batch_document(record.document)
        for document in documents:
            try:
                message = read_message(document, format, with_types=with_types, left_out=left_out)
            except (Failure, ValueError) as failure:
                raise Failure(f"{failure} (line {record.line})") from failure
            yield record._replace(document=message, byte_len=record.byte_len // len(documents))


def _read_batch_document(document: Any) -> list[Any]:
    """Return the messages of a batch that `letterhead decode` printed; any other document is a single message."""
    is_batch = isinstance(document, dict) and [*document] == ["messages"] and isinstance(document["messages"], list)
    return document["messages"] if is_batch else [document]


def _encode_messages(
    messages: Iterable[JsonRecord], format: str, types: Any, on_loss: EncodeOnLoss, *, canonical: bool
) -> Iterator[bytes]:
    """Encode each message."""
    for row, (message, line, _) in enumerate(messages):
        try:
            with usage_errors():
                data = lh.encode(message, format, types=types, on_loss=on_loss.value, canonical=canonical)
        except lh.errors.HeaderError as error:
            raise copy_error(error, row=row) from error
        if on_loss is EncodeOnLoss.drop:
            warn_if_emptied(header_count(message), data, format)
        if data is None:
            raise Failure(f"{TOMBSTONE.format(format)} (line {line})", BAD_DATA)
        yield data


def _only(written: Iterator[bytes], format: str) -> Iterator[bytes]:
    """Return the only message; raise Failure if there are several."""
    data = next(written, None)
    if data is None:
        raise Failure(f"{format} needs one message")
    if any(True for _ in written):
        raise Failure(f"messages of {format} have no separator: pass --as hex for a line for each record")
    yield data


def _encode_batches(messages: Iterable[JsonRecord], format: str, types: Any, on_loss: EncodeOnLoss) -> Iterator[bytes]:
    """Encode messages as batches: a new batch begins at the size limit, or where a field of the batch changes."""
    row, next_offset = 0, 0
    for group in _divide(messages):
        try:
            with usage_errors():
                if row:
                    group[0] = _set_offset(group[0], next_offset, format)
                data = lh.batch(group, format, types=types, on_loss=on_loss.value)
        except lh.errors.HeaderError as error:
            raise copy_error(error, row=row + (error.row or 0)) from error
        for message in group:
            offset = message._asdict().get("offset")
            next_offset = (next_offset if offset is None else offset) + 1
        row += len(group)
        yield data


def _divide(messages: Iterable[JsonRecord]) -> Iterator[list[lh.Message]]:
    group: list[lh.Message] = []
    size, common = 0, None
    for row, (message, _, length) in enumerate(messages):
        fields = _batch_fields(message, row)
        if group and (size >= BATCH_BYTES or fields != common):
            yield group
            group, size = [], 0
        group.append(message)
        size, common = size + length, fields
    yield group


def _set_offset(message: lh.Message, next_offset: int, format: str) -> lh.Message:
    """Return the first message of a later batch, with the next offset if it has none."""
    fields = message._asdict()
    offset = fields.get("offset")
    if offset is not None and offset < next_offset:
        raise lh.errors.EncodeError(
            f"offset {offset} is not after {next_offset - 1}", format=format, code="out_of_range", row=0
        )
    return lh.Message(**{**fields, "offset": next_offset if offset is None else offset})


def _batch_fields(message: lh.Message, row: int) -> tuple[Any, ...]:
    """Return the fields that all records of a record batch share; sequences increase with offsets."""
    fields = message._asdict()
    sequence, offset = fields.get("sequence"), fields.get("offset")
    if sequence is not None and sequence >= 0:
        sequence = (sequence - (row if offset is None else offset)) % (1 << 31)
    appended = fields.get("timestamp") if fields.get("timestamp_type") == 1 else None
    return (sequence, appended, *map(fields.get, BATCH_FIELDS))
