"""The option ``--edit`` of commands: changes of headers, such as ``replace ssn=last4``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import letterhead as lh
from letterhead._formatting import quote
from letterhead._header_edits import HeaderEdit, hmac, lit
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.formats import ReadArguments, row_of
from letterhead.cli.options import option
from letterhead.cli.render import warn
from letterhead.cli.spelling import key_text, read_key, read_value
from letterhead.kafka.properties import expand
from letterhead.operations import DecodeOptions, Edit, EditReport, Validate
from letterhead.values import String

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EditOption",
    "ReportedEdit",
    "edit_column",
    "edit_message",
    "edit_of",
    "edit_rows",
    "null_where_unreadable",
    "parse_edits",
    "warn_of_unseen",
]

_CHANGES = ("only", "drop", "rename", "replace", "set", "append")

EditOption = Annotated[
    list[str] | None,
    option(
        "--edit",
        "Change the headers of the rows that --where selects: 'drop KEY', 'only KEY', 'rename KEY=KEY', 'replace KEY=hash|redact|last4', "
        "'replace KEY=hmac:${env:SECRET}' (or '${file:PATH}'), 'set KEY=VALUE' or 'append KEY=VALUE'. "
        "Repeat it for other changes.",
        "CHANGE",
    ),
]


def parse_edits(edits: Sequence[str], format: str) -> HeaderEdit:
    """Return the edit that the options describe, for a format."""
    row = row_of(format)
    changes: dict[str, list[Any]] = {name: [] for name in _CHANGES}
    for edit in edits:
        name, _, rest = edit.strip().partition(" ")
        key, equals, value = rest.strip().partition("=")
        if name not in _CHANGES or not key or bool(equals) == (name in ("only", "drop")):
            raise Failure(f"--edit: {edit!r} is not a change such as 'drop retry' or 'replace ssn=last4'")
        with usage_errors():
            header = read_key(key, row.keys)
            if name in ("only", "drop"):
                changes[name].append(header)
            elif name == "rename":
                changes[name].append((header, read_key(value, row.keys)))
            elif name == "replace":
                changes[name].append((header, _mask(value)))
            else:
                changes[name].append((header, _constant(value, row.types)))
    with usage_errors():
        return HeaderEdit.of(
            only=changes["only"] or None,
            drop=changes["drop"],
            rename=dict(changes["rename"]),
            replace=dict(changes["replace"]),
            set=dict(changes["set"]),
            append=changes["append"],
        )


class ReportedEdit:
    """Edit that notes which keys occur, over all batches of a source."""

    def __init__(self, operation: Edit) -> None:
        self.operation = operation
        self.report = EditReport(operation.edit)

    def __call__(self, column: Any) -> Any:
        """Return the edited messages, or lists of headers."""
        return self.operation(column, report=self.report)


def edit_of(schema: pa.Schema, edits: Sequence[str]) -> ReportedEdit:
    """Return the edit of a source's header column."""
    from letterhead.sources.tables import format_of_headers

    format = format_of_headers(schema, "--edit")
    return ReportedEdit(Edit(format, parse_edits(edits, format)))


def warn_of_unseen(edits: Sequence[ReportedEdit], noun: str) -> int:
    """Warn if a header to hide does not occur in any source, and return the exit code.

    Such a key may be misspelt, and its values still visible.
    """
    code = OK
    unseen = [edit.report.unmatched_keys() for edit in edits]
    for key in unseen[0] if unseen else ():
        if all(key in keys for keys in unseen):
            code = BAD_DATA
            warn(f"--edit: none of these {noun}s had a header {quote(key_text(key))}, so that nothing was hidden")
    if edits and all(edit.report.kept_none() for edit in edits):
        code = BAD_DATA
        warn(f"--edit: none of these {noun}s had a header that 'only' names: none was kept")
    return code


def edit_message(data: bytes, format: str, edit: HeaderEdit, options: ReadArguments) -> tuple[bytes, int]:
    """Return a message with some headers changed, and the exit code."""
    message = lh.decode(data, format, **options)
    headers = message.headers if isinstance(message, lh.Message) else message
    edited = lh.Headers(edit.apply(() if headers is None else headers.items()))
    reported = ReportedEdit(Edit(format, edit))
    reported.report.note([] if headers is None else headers.keys(), 1)
    code = warn_of_unseen([reported], "message")
    if headers is not None and edited == headers:
        return data, code
    written: Any = lh.encode(message._replace(headers=edited) if isinstance(message, lh.Message) else edited, format)
    return data if written is None else written, code


def edit_column(values: Any, edit: ReportedEdit) -> Any:
    """Return the messages of a column with some headers changed.

    An unreadable message is unchanged, because the next step reports its errors. A readable message that cannot be
    written with the changes raises an error: it must not pass unchanged.
    """
    import pyarrow.compute as pc

    edited = edit(values)
    failed = pc.is_valid(edited.field("error"))
    if pc.any(failed).as_py():
        operation = edit.operation
        unreadable = pc.is_valid(Validate(operation.format, operation.options)(values))
        if pc.any(pc.and_not(failed, unreadable)).as_py():
            options = DecodeOptions(strict_types=operation.options.strict_types, limits=operation.options.limits)
            replace(operation, options=options)(values)
    return pc.if_else(failed, values, edited.field("data"))


def edit_rows(batch: pa.RecordBatch, edit: ReportedEdit, errors: pa.Array | None) -> pa.RecordBatch:
    """Return rows with some headers in their column ``headers`` changed; unreadable headers remain null."""
    index = batch.schema.get_field_index("headers")
    field, headers = batch.schema.field(index), batch.column(index)
    edited = edit(headers)
    return batch.set_column(index, field.with_type(edited.type), null_where_unreadable(edited, headers, errors))


def null_where_unreadable(result: pa.Array, values: pa.Array, errors: pa.Array | None) -> pa.Array:
    """Restore null for values that could not be read; other null values are messages without headers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if errors is None or errors.null_count == len(errors) or not values.null_count:
        return result
    unreadable = pc.and_(errors.is_valid(), values.is_null())
    return result.take(pc.if_else(unreadable, None, pa.array(range(len(values)), pa.int64())))


def _mask(text: str) -> Any:
    """Return the mask in the text; an HMAC key must be passed by reference, because other users can see arguments."""
    name, colon, secret = text.partition(":")
    if name != "hmac":
        return text
    key = expand("--edit", secret)
    if not colon or key == secret:
        raise Failure(
            "--edit: 'hmac' refers to its secret key: 'replace ssn=hmac:${env:SECRET}' or 'replace ssn=hmac:${file:PATH}'; "
            "in double quotes the shell would replace it"
        )
    return hmac(key)


def _constant(text: str, has_types: bool) -> Any:
    return lit(read_value(text) or (String(text) if has_types else text))
