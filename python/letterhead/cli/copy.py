"""`letterhead copy`: copy a topic or a log; a killed copy continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from letterhead._row_request import RowRequest
from letterhead.cli.diff import print_comparison
from letterhead.cli.edits import EditOption, ReportedEdit, edit_of, edit_rows, warn_of_unseen
from letterhead.cli.exits import OK, Failure, usage_errors
from letterhead.cli.options import ErrorColumn, Errors, flag, group_options, limits, option
from letterhead.cli.progress import progress
from letterhead.cli.render import count_text, note, print_json, warn
from letterhead.cli.row_format import Form, RowFormat
from letterhead.cli.row_options import ERROR_COLUMN
from letterhead.cli.settings_files import file_settings
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import (
    AskedLogins,
    check_request,
    open_sources,
    print_remarks,
    report_findings,
    warn_of_password,
)
from letterhead.cli.sources.options import header_columns, selection
from letterhead.limits import Limits
from letterhead.sources.base import Source

if TYPE_CHECKING:
    from letterhead.copies.copying import Copied, Copying


@group_options(request=selection, limits=limits)
def copy_command(
    *,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A topic or log segments; to a topic also a table, as for `read`.")
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A directory of Parquet files, also s3://bucket/path, kafka://host:port/topic or iggy://host:port/stream/topic, "
            "or a file: .parquet, .arrow, .arrows, .jsonl.",
        ),
    ],
    headers: Annotated[
        str | None,
        option("--headers", "To files: headers as typed columns, in addition to the column headers.", "NAME:TYPE,..."),
    ] = None,
    value_errors: Annotated[
        Errors,
        option("--errors", "With --headers, a value of another type: stop, make it null, or report it in a column."),
    ] = Errors.raise_,
    error_column: ErrorColumn = ERROR_COLUMN,
    edit: EditOption = None,
    create: Annotated[
        bool, flag("--create", "Create the topic, with as many partitions as the source has, if it does not exist.")
    ] = False,
    partitions: Annotated[
        int | None, option("--partitions", "With --create: number of partitions.", "N", min=1)
    ] = None,
    append: Annotated[
        bool, flag("--append", "Write after the existing records of the topic; repeated, it copies them again.")
    ] = False,
    offsets: Annotated[
        Path | None,
        option(
            "--offsets", "To a topic: a file with the offset of each record in the copy, for `group translate`.", "FILE"
        ),
    ] = None,
    follow: Annotated[
        bool, flag("--follow -F", "Also copy new records of a topic, until Ctrl-C; a directory gets files every 30 s.")
    ] = False,
    verify: Annotated[bool, flag("--verify", "Compare the copy with the source, as `letterhead diff` does.")] = False,
    target_config: Annotated[
        Path | None, option("--target-config", "A property file for the target; by default as for the source.", "FILE")
    ] = None,
    json: Annotated[bool, flag("--json", "Print what was copied as JSON.")] = False,
    request: RowRequest,
    limits: Limits,
) -> int:
    """Copy a topic or a log to a directory, a topic or a file, each record once.

    Keys, values, headers with order, repeats and nulls, timestamps and partitions
    are kept. Run the same command again to continue a killed copy: a directory
    continues after the last offset of its files, a topic after its last record,
    which is compared with the source. New records of the source are copied in the
    same way. A file appears once it is complete.

    A directory is a table for `read`, Spark, DuckDB and others, with the offset
    of each record; --headers adds typed columns. The same command copies it back
    to a topic. With --follow new records are copied until Ctrl-C, and the same
    command continues later. With --offsets, it finds the records in a topic
    without reading the source from its beginning.

    \b
    Examples:
      letterhead copy kafka://broker:9092/orders /backup/orders
      letterhead copy kafka://broker:9092/orders /backup/orders --headers tenant
      letterhead copy kafka://broker:9092/orders s3://backup/orders --follow
      letterhead copy kafka://broker:9092/orders orders.jsonl.zst
      letterhead copy /backup/orders kafka://other:9092/orders --create --verify
      letterhead copy kafka://broker:9092/orders kafka://other:9092/orders \\
                 --where "tenant = 'acme'" --edit 'replace ssn=hash'
    """
    from letterhead.copies.copy import split_options
    from letterhead.copies.copying import BatchEdit, Copying

    if append and verify:
        raise Failure("--append and --verify exclude each other: the target has other records, too")
    if follow and verify:
        raise Failure("--follow and --verify exclude each other: such a copy has no end")
    [opened] = open_sources([source], request)
    own = None if target_config is None else file_settings(str(target_config))
    request, target_options = split_options(opened, replace(request, limits=limits, follow=follow), target, own)
    check_request([opened], request)
    request = replace(request, headers=header_columns(headers), errors=value_errors.value, error_column=error_column)
    with usage_errors():
        change = _edit_of(edit, opened, request)
        applied = None if change is None else BatchEdit(lambda batch: edit_rows(batch, change, None), [*(edit or ())])
        copying = Copying(
            opened,
            request,
            target,
            edit=applied,
            append=append,
            target_options=target_options,
            offsets=offsets,
            logins=AskedLogins(),
        )
    if copying.target_has_password:
        warn_of_password()
    with print_remarks():
        if create:
            copying.create(partitions)
        if follow:
            note(f"copying {opened.name} to {copying.target_name} until Ctrl-C")
        copied = _run(copying, opened, follow=follow)
    for remark in copied.remarks:
        warn(remark)
    code = max(warn_of_unseen([] if change is None else [change], opened.noun), report_findings(opened))
    if json:
        print_json({"rows": copied.rows, "ends": {str(number): end for number, end in sorted(copied.ends.items())}})
    else:
        note(f"{count_text(copied.rows, opened.noun)} copied to {copying.target_name}")
    return max(code, _verify(copying, copied, opened) if verify else OK)


def _run(copying: Copying, source: Source, *, follow: bool) -> Copied:
    from letterhead.copies.copying import Copied

    rows = 0
    with progress(None, f"copying {source.name}", prints=False, noun=source.noun, source=source) as advance:

        def count(more: int) -> None:
            nonlocal rows
            rows += more
            advance(more)

        try:
            return copying.run(count)
        except KeyboardInterrupt:
            if not follow:
                raise
            return Copied(rows, {}, [])  # Ctrl-C is the normal end


def _verify(copying: Copying, copied: Copied, source: Source) -> int:
    with reading_errors():
        comparison, schema, batches = copying.verify(copied)
    return print_comparison(comparison, schema, batches, RowFormat(Form.TABLE), [source], None)


def _edit_of(texts: Sequence[str] | None, source: Source, request: RowRequest) -> ReportedEdit | None:
    if not texts:
        return None
    of_headers = replace(request, columns=("headers",), headers=None, where=None, follow=False)
    return edit_of(source.schema(of_headers), texts)
