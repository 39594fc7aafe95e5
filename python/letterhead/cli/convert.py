"""`letterhead convert`: convert one message, or a column of a Parquet file, to another format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.cli.column import NewColumns, deliver, new_columns, open_values, process_column
from letterhead.cli.document import value_json
from letterhead.cli.edits import EditOption, ReportedEdit, edit_column, edit_message, parse_edits, warn_of_unseen
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.formats import ReadArguments, row_of
from letterhead.cli.losses import KEEP_HINT, LossSummary, header_count, show_losses, warn_if_emptied
from letterhead.cli.message_input import MessageInput
from letterhead.cli.options import (
    Canonical,
    Format,
    OnLoss,
    Target,
    WrittenAs,
    group_options,
    option,
    reading,
    rows,
    source,
    types_option,
)
from letterhead.cli.output import TOMBSTONE, as_line, check_terminal
from letterhead.cli.render import count_text, print_json, warn
from letterhead.cli.row_counts import RowCounts
from letterhead.cli.row_options import RowOptions
from letterhead.cli.sinks import write_bytes
from letterhead.cli.sniff import format_of
from letterhead.cli.sources.options import check_unused, selection
from letterhead.cli.spelling import key_text
from letterhead.operations import Convert, Decode, DecodeOptions, Edit, Encode, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa


@group_options(source=source, types=types_option, rows=rows, request=selection, options=reading)
def convert_command(
    *,
    format: Format,
    to: Target,
    source: MessageInput,
    on_loss: Annotated[
        OnLoss, option("--on-loss", "Losses: stop; drop the data or write the nearest value; or do so and report it.")
    ] = OnLoss.raise_,
    types: Any,
    canonical: Canonical = False,
    edit: EditOption = None,
    written_as: WrittenAs = None,
    rows: RowOptions,
    request: RowRequest,
    options: ReadArguments,
) -> int:
    """Convert one message, or a column of a source, to another format.

    The bytes of one message go to standard output. A column is shown as a table
    of its first rows, or written as JSON lines (--json) or Parquet (--out); the
    converted bytes replace the column, and a column `losses` lists the losses.
    The exit code is 0 if every loss was dropped or reported by --on-loss.

    \b
    Examples:
      letterhead convert in.bin -f kafka -t iggy --types retry=int32 -o out.bin
      letterhead convert in.bin -f iggy --to kafka --types be \\
                 --on-loss report --as hex
      letterhead convert --hex "02 06 6b 65 79 02 76" -f auto --to iggy \\
                 --types binary --json
      letterhead convert store.parquet -c value -f streams --to iggy-message \\
                 --types binary --on-loss report --errors column -o out.parquet
      letterhead convert orders.parquet -c headers -f kafka --to kafka \\
                 --edit "replace ssn=last4" --edit "drop retry" -o masked.parquet
    """
    rows.check_column(source.column)
    if source.column is not None:
        if written_as is not None:
            raise Failure("--as is for one message, not for --column")
        with usage_errors():
            writing = WriteOptions(on_loss=on_loss.value, types=types, canonical=canonical)
        return _convert_column(source, format, to, rows, writing, request, options, edit)
    if rows.limit is not None or rows.errors != "raise":
        raise Failure("--limit and --errors need --column: they are for a column of a source")
    check_unused(request)
    if rows.json and (rows.out is not None or written_as is not None):
        raise Failure("--json excludes --as and --out: it prints a document that has the bytes")
    data = source.read(options["limits"])
    check_terminal("--as hex, --json", written_as is not None or rows.json, rows.out)
    row_of(to)
    format = format_of(format, [data])
    code = OK
    if edit:
        data, code = edit_message(data, format, parse_edits(edit, format), options)
    with usage_errors():
        converted = lh.convert(
            data, format, target=to, on_loss=on_loss.value, types=types, canonical=canonical, **options
        )
    written, losses = converted if isinstance(converted, lh.Converted) else (converted, None)
    if on_loss is not OnLoss.raise_:
        warn_if_emptied(header_count(lh.decode(data, format, **options)), written, to)
    if rows.json:
        print_json(_document(format, to, written, losses))
        return code
    if losses is not None:
        show_losses(losses, format, to)
    if written is None:
        raise Failure(TOMBSTONE.format(to), BAD_DATA)
    write_bytes(as_line(written, written_as), rows.out)
    return code


def _convert_column(
    source: MessageInput,
    format: str,
    to: str,
    rows: RowOptions,
    writing: WriteOptions,
    request: RowRequest,
    options: ReadArguments,
    edit: Sequence[str] | None,
) -> int:
    row_of(to)
    column, format, rows = open_values(source, format, rows, request, options["limits"])
    of_bytes = column.is_bytes
    convert = Convert(format, to, rows.read_options(options), writing) if of_bytes else Encode(to, writing)
    edit_headers = None
    if edit:
        edit_options = {name: value for name, value in options.items() if name != "lenient"}
        policy: Any = {"errors": "column"} if of_bytes else {}
        with usage_errors():
            operation = Edit(format, parse_edits(edit, format), DecodeOptions(**policy, **edit_options))  # type: ignore[arg-type]
        edit_headers = ReportedEdit(operation)
    tally, losses = RowCounts(), LossSummary()
    emptied = 0

    def work(values: pa.Array) -> NewColumns:
        nonlocal emptied
        if edit_headers is not None:
            values = edit_column(values, edit_headers) if of_bytes else edit_headers(values)
        converted = new_columns(convert(values), "data", rows)
        if writing.on_loss != "raise":
            emptied += _count_emptied(_headers(values, format, options) if of_bytes else values, converted, to)
        if "losses" in converted.fields:
            for row, row_losses in enumerate(converted.fields["losses"].to_pylist()):
                if row_losses:
                    losses.add(tally.values + row, row_losses)
        converted.fields = {column.name if name == "data" else name: array for name, array in converted.fields.items()}
        return converted

    batches = process_column(column, work, rows, tally=tally, doing="converting")
    deliver(batches, tally, column.file, column.rows, rows)
    edited = OK if edit_headers is None else warn_of_unseen([edit_headers], "row")
    if writing.on_loss == "report":
        losses.show(format, to, tally.rows)
    if emptied:
        warn(f"{emptied:,} of {count_text(tally.rows, 'row')} lost all headers: {KEEP_HINT}")
    return max(tally.report("convert", is_null=rows.errors == "null"), edited, column.finish())


def _count_emptied(headers: pa.Array, converted: NewColumns, target: str) -> int:
    """Return the number of messages that had headers and have none left."""
    import pyarrow.compute as pc

    written = converted.fields["data"]
    none_left = pc.or_kleene(pc.is_null(written), pc.equal(pc.list_value_length(_headers(written, target)), 0))
    # The headers of an unreadable message, and their number, are null.
    lost = pc.and_kleene(pc.greater(pc.list_value_length(headers), 0), none_left)
    return int(pc.sum(lost, min_count=0).as_py())


def _headers(values: pa.Array, format: str, options: ReadArguments | None = None) -> pa.Array:
    """Return the decoded headers of a column; null where they are invalid."""
    import pyarrow as pa

    read_options = DecodeOptions(errors="null", **options) if options else DecodeOptions(errors="null")
    decoded = Decode(format, read_options)(values)
    if not pa.types.is_struct(decoded.type):
        return decoded
    return decoded.flatten()[decoded.type.get_field_index("headers")]


def _document(format: str, target: str, written: bytes | None, losses: lh.Losses | None) -> dict[str, Any]:
    document: dict[str, Any] = {"format": format, "target": target, "data": value_json(written)}
    if losses is not None:
        document["losses"] = [loss._asdict() for loss in losses]
        document["types"] = {key_text(key): types for key, types in losses.types.items()}
    return document
