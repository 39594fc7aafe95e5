"""`letterhead convert`: one cell, or a column of a Parquet file, from one format to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal, TypeAlias

import letterhead as lh
from letterhead.cli.column import (
    ErrorOptions,
    ErrorPolicy,
    Made,
    Tally,
    column_format,
    deliver,
    rows_wanted,
    taken_apart,
    worked,
)
from letterhead.cli.document import plain, value_json
from letterhead.cli.exits import OK, Failure
from letterhead.cli.formats import Converting, row_of
from letterhead.cli.headers import key_text
from letterhead.cli.losses import KEEP, Summary, header_count, show_losses, warn_if_emptied
from letterhead.cli.output import check_terminal, write_cell
from letterhead.cli.render import counted, json_text
from letterhead.cli.sniff import format_of
from letterhead.cli.source import open_headers

OnLoss: TypeAlias = Literal["raise", "drop", "report"]


def run_cell(
    data: bytes,
    format: str,
    target: str,
    *,
    on_loss: OnLoss,
    types: Any,
    as_hex: bool,
    json: bool,
    out: Path | None,
    options: Converting,
) -> int:
    """Convert one cell; its bytes go to standard output or a file, its losses to stderr, with --json both to stdout."""
    if json and (out is not None or as_hex):
        raise Failure("--json excludes --to-hex and --out: it prints a document that has the bytes")
    check_terminal("--to-hex, --json", as_hex or json, out)
    row_of(target)
    format = format_of(format, [data])
    try:
        made = lh.convert(data, format, target=target, on_loss=on_loss, types=types, **options)
    except lh.errors.HeaderError:
        raise
    except (ValueError, TypeError) as error:
        raise Failure(str(error)) from error
    written, losses = made if isinstance(made, lh.Converted) else (made, None)
    if on_loss != "raise":
        reading: Any = {name: option for name, option in options.items() if name != "canonical"}
        warn_if_emptied(header_count(lh.decode(data, format, **reading)), written, target)
    if json:
        print(json_text(_document(format, target, written, losses), indent=2))
        return OK
    if losses is not None:
        show_losses(losses, format, target)
    write_cell(written, target, as_hex=as_hex, out=out)
    return OK


def run_column(
    path: Path,
    column: str,
    format: str,
    target: str,
    *,
    on_loss: OnLoss,
    types: Any,
    json: bool,
    errors: ErrorPolicy,
    error_column: str,
    limit: int | None,
    out: Path | None,
    everything: bool,
    options: Converting,
) -> int:
    """Convert a column of a Parquet file; sum up on stderr what was lost, and which rows were bad."""
    limit = rows_wanted(limit, json=json, out=out)
    parquet, of_bytes = open_headers(path, column)
    row_of(target)
    format = column_format(format, parquet, column, of_bytes)
    tally, losses, bad = Tally(), Summary(), ErrorOptions(errors, error_column)
    reading: Any = {name: option for name, option in options.items() if name != "canonical"}
    emptied = 0

    def work(cells: Any) -> Made:
        nonlocal emptied
        from letterhead import arrow as lha

        writing: Any = {"on_loss": on_loss, "types": types}
        if of_bytes:
            converted = lha.convert(cells, format, target=target, **bad.options, **writing, **options)
        else:
            converted = lha.encode(cells, target, canonical=options["canonical"], **writing)
        made = taken_apart(converted, "data", bad)
        if on_loss != "raise":
            emptied += _emptied(cells, format if of_bytes else None, made, target, **reading)
        if "losses" in made.fields:
            for row, found in enumerate(made.fields["losses"].to_pylist()):
                if found:
                    losses.add(tally.cells + row, found)
        made.fields = {column if name == "data" else name: array for name, array in made.fields.items()}
        return made

    batches = worked(parquet, column, work, limit=limit, tally=tally, doing="converting")
    in_file, document = parquet.metadata.num_rows, plain if json else None
    deliver(batches, tally, path, in_file, out=out, document=document, error_column=error_column, everything=everything)
    if on_loss == "report":
        losses.show(format, target, tally.rows)
    if emptied:
        print(f"letterhead: {emptied:,} of {counted(tally.rows, 'row')} lost all headers: {KEEP}", file=sys.stderr)
    return tally.report("convert")


def _emptied(cells: Any, format: str | None, made: Made, target: str, **reading: Any) -> int:
    """Count the messages that had headers and were written without any; without a format the cells are the headers."""
    import pyarrow.compute as pc

    written = made.fields["data"]
    before = pc.list_value_length(cells if format is None else _headers(cells, format, **reading))
    none_left = pc.or_kleene(pc.is_null(written), pc.equal(pc.list_value_length(_headers(written, target)), 0))
    lost = pc.and_kleene(pc.greater(before, 0), none_left)
    if made.faults is not None:
        lost = pc.and_kleene(lost, pc.is_null(made.faults))
    return int(pc.sum(lost, min_count=0).as_py())


def _headers(cells: Any, format: str, **reading: Any) -> Any:
    """Decode the headers of a column; null where they cannot be read."""
    from letterhead import arrow as lha

    decoded = lha.decode(cells, format, errors="null", **reading)
    return taken_apart(decoded, "headers", ErrorOptions("raise")).fields["headers"]


def _document(format: str, target: str, written: bytes | None, losses: lh.Losses | None) -> dict[str, Any]:
    document: dict[str, Any] = {"format": format, "target": target, "data": value_json(written)}
    if losses is not None:
        document["losses"] = [loss._asdict() for loss in losses]
        document["types"] = {key_text(key): types for key, types in losses.types.items()}
    return document
