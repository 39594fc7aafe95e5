"""The verbs, each once: for one cell, and for a list of rows.

A row is a cell of bytes in a format, or headers already (a list of keys and values, as Spark's Kafka source has them),
or null. The order of the faults of a row is the order of the checks: the frame, the block, then the columns in the
order asked for.

What is given back is plain: headers as ``(key, kind, value)``, an envelope as a dict of its fields, a value as Python
has it, faults as :class:`~letterhead.errors.Fault`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from letterhead.columns import Columns, ColumnSpec, normalise
from letterhead.errors import ConversionError, DecodeError, EncodeError, Fault, HeaderError, check_name
from letterhead.reference import types
from letterhead.reference.cursor import Broken, Cursor
from letterhead.reference.formats import Format, named
from letterhead.reference.kinds import is_kind
from letterhead.reference.walk import Entry, Fields, Outgoing, Refused

ERRORS = ("raise", "null", "column")
ON_LOSS = ("raise", "drop", "report")
NULL_HEADERS = ("empty", "raise")

Triple = tuple[str, str | None, bytes | None]
Row = bytes | Sequence[Any] | None


class Reading(NamedTuple):
    """What could be read of one row."""

    fields: Fields
    entries: list[Entry]
    """Headers up to the first hard fault, those that could not be read left out."""
    absent: bool
    """The message has no headers field."""
    broken: bool
    """A hard fault, of the frame or the block, ended the walk."""
    damaged: bool
    """Not every header could be read."""
    faults: list[Fault]


# --- decode ----------------------------------------------------------------------------------------------------------


def decode(data: bytes, format: str, *, lenient: bool = False) -> list[Triple] | dict[str, Any]:
    """Read one message: headers if the format is a block, a dict of fields otherwise."""
    row = named(format)
    reading = _read_cell(data, row, lenient)
    _raise_first(reading.faults, row)
    fields = _decoded(reading, row)
    headers: list[Triple] = fields["headers"]
    return fields if row.envelope else headers


def decode_rows(
    rows: Iterable[bytes | None], format: str, *, errors: str = "raise", lenient: bool = False
) -> list[Any]:
    """Read every row; with ``errors="column"`` a dict of the fields and ``error``, null where the row is whole."""
    row = named(format)
    check_name("errors", errors, ERRORS)
    return [_decode_row(cell, number, row, errors, lenient) for number, cell in enumerate(rows)]


def _decode_row(cell: bytes | None, number: int, row: Format, errors: str, lenient: bool) -> Any:
    if cell is None:
        return None
    reading = _read_cell(cell, row, lenient)
    if errors == "raise":
        _raise_first(reading.faults, row, number)
    if errors == "null" and reading.faults:
        return None
    fields = _decoded(reading, row)
    if errors == "column":
        return {**fields, "error": reading.faults or None}
    return fields if row.envelope else fields["headers"]


def _decoded(reading: Reading, row: Format) -> dict[str, Any]:
    whole = not (reading.absent or reading.broken or reading.damaged)
    headers = [(entry.key, entry.kind, entry.value) for entry in reading.entries] if whole else None
    return {name: headers if name == "headers" else reading.fields.get(name) for name, _ in row.fields}


# --- validate --------------------------------------------------------------------------------------------------------


def validate(data: bytes, format: str) -> list[Fault]:
    """Find everything that is wrong with one message."""
    return _read_cell(data, named(format), lenient=False).faults


def validate_rows(rows: Iterable[Row], format: str) -> list[list[Fault] | None]:
    """Find everything that is wrong, row by row; null where a row is whole or there is none."""
    row = named(format)
    return [None if cell is None else _read(cell, row, lenient=False).faults or None for cell in rows]


# --- select ----------------------------------------------------------------------------------------------------------


def select(
    data: bytes, format: str, columns: Columns, *, lenient: bool = False, dialect: str = "arrow"
) -> dict[str, Any]:
    """Read some headers of one message as typed values."""
    row = named(format)
    check_name("dialect", dialect, types.DIALECTS)
    reading = _read_cell(data, row, lenient)
    values, faults = _pick(reading, normalise(columns), dialect)
    _raise_first(faults, row)
    return values


def select_rows(
    rows: Iterable[Row],
    format: str,
    columns: Columns,
    *,
    errors: str = "raise",
    lenient: bool = False,
    dialect: str = "arrow",
    lists: bool = False,
) -> dict[str, list[Any]]:
    """Read some headers of every row into columns; ``lists`` says that a null row is a null list, not a null cell."""
    row = named(format)
    check_name("errors", errors, ERRORS)
    check_name("dialect", dialect, types.DIALECTS)
    wanted = normalise(columns)
    names = [name for name, *_ in wanted] + (["error"] if errors == "column" else [])
    out: dict[str, list[Any]] = {name: [] for name in names}
    for number, cell in enumerate(rows):
        values = _select_row(cell, number, row, wanted, errors, lenient, dialect, lists)
        for name in names:
            out[name].append(values.get(name))
    return out


def _select_row(
    cell: Row, number: int, row: Format, wanted: list[ColumnSpec], errors: str, lenient: bool, dialect: str, lists: bool
) -> dict[str, Any]:
    if cell is None and not lists:
        return {}
    reading = _read(cell, row, lenient)
    values, faults = _pick(reading, wanted, dialect)
    if errors == "raise":
        _raise_first(faults, row, number)
    if errors == "null" and reading.broken:
        return {}
    return {**values, "error": faults or None}


def _pick(reading: Reading, wanted: list[ColumnSpec], dialect: str) -> tuple[dict[str, Any], list[Fault]]:
    faults = list(reading.faults)
    return {spec[0]: _column(reading, spec, dialect, faults) for spec in wanted}, faults


def _column(reading: Reading, spec: ColumnSpec, dialect: str, faults: list[Fault]) -> Any:
    """Give what one row has for one column, and note what is wrong with it."""
    column, key, type, repeat, required = spec
    found = [entry for entry in reading.entries if entry.key == key]
    # What comes after a hard fault was not read: a header may be there, and a list would be only the front of one.
    if required and not found and not reading.broken:
        faults.append(Fault("missing_key", "the header is required and absent", key=key, column=column))
    if repeat == "all" and reading.broken:
        return None
    if repeat == "error" and len(found) > 1:
        second = found[1]
        faults.append(Fault("repeated_key", "the key stands a second time", second.at, second.header, key, column))
        return None
    if repeat == "all":
        before = len(faults)
        values = [_value(entry, type, dialect, column, faults) for entry in found]
        return values if len(faults) == before else None
    if not found:
        return None
    return _value(found[-1] if repeat == "last" else found[0], type, dialect, column, faults)


def _value(entry: Entry, type: str, dialect: str, column: str, faults: list[Fault]) -> Any:
    if entry.value is None:
        return None
    if entry.kind is not None:
        name, _ = types.parse(type)
        if not types.accepts(type, entry.kind):
            message = f"the value is {entry.kind} and {name} was asked for"
            faults.append(Fault("wrong_kind", message, entry.at, entry.header, entry.key, column))
            return None
        type = name  # the value is its bits, most significant byte first, whatever the order asked for
    try:
        return types.read(type, entry.value, dialect=dialect)
    except types.Misfit as misfit:
        byte = None if entry.at is None else entry.at + misfit.within
        faults.append(Fault(misfit.code, misfit.message, byte, entry.header, entry.key, column))
        return None


# --- encode ----------------------------------------------------------------------------------------------------------


def encode(
    message: Iterable[Any] | Mapping[str, Any] | None,
    format: str,
    *,
    kinds: str | None = None,
    on_loss: str = "raise",
    null_headers: str = "empty",
) -> bytes | None:
    """Write one message: headers if the format is a block, a mapping of fields otherwise.

    A header is ``(key, value)`` or ``(key, kind, bits)``.
    """
    row = named(format)
    _check_writing(kinds, on_loss, null_headers)
    written, _ = _encode_row(message, row, kinds, on_loss, null_headers)
    return written


def encode_rows(
    rows: Iterable[Any], format: str, *, kinds: str | None = None, on_loss: str = "raise", null_headers: str = "empty"
) -> list[Any]:
    """Write every row. For a block a null row is a null list; for an envelope it is no message.

    With ``on_loss="report"`` a row is a dict of ``data`` and ``losses``, null where nothing was lost.
    """
    row = named(format)
    _check_writing(kinds, on_loss, null_headers)
    out: list[Any] = []
    nothing: tuple[None, list[Fault]] = (None, [])
    for number, message in enumerate(rows):
        if message is None and row.envelope:
            written, losses = nothing
        else:
            written, losses = _encode_row(message, row, kinds, on_loss, null_headers, number)
        out.append({"data": written, "losses": losses or None} if on_loss == "report" else written)
    return out


def _check_writing(kinds: str | None, on_loss: str, null_headers: str) -> None:
    if kinds is not None:
        check_name("kinds", kinds, types.SUFFIXES)
    check_name("on_loss", on_loss, ON_LOSS)
    check_name("null_headers", null_headers, NULL_HEADERS)


def _encode_row(
    message: Any, row: Format, kinds: str | None, on_loss: str, null_headers: str, number: int | None = None
) -> tuple[bytes | None, list[Fault]]:
    losses: list[Fault] = []
    try:
        written = _write(message, row, kinds, null_headers, losses)
    except Refused as refused:
        fault = Fault(refused.code, refused.message, None, refused.header, refused.key)
        raise fault.as_error(EncodeError, row.name, row=number) from None
    if on_loss == "raise":
        _raise_first(losses, row, number, ConversionError)
    return written, losses


def _write(message: Any, row: Format, kinds: str | None, null_headers: str, losses: list[Fault]) -> bytes | None:
    headers = message["headers"] if row.envelope else message
    if headers is None and null_headers == "raise":
        raise Refused("null_not_carried", "the headers are null")
    written = [_outgoing(index, header, kinds, losses) for index, header in enumerate(headers or ())]
    outgoing = [header for header in written if header is not None]
    if row.envelope is None:
        return row.block.write(outgoing)
    if row.envelope.is_absent(message):
        if outgoing:
            losses.append(Fault("null_not_carried", "the payload is null, so there is no cell for its headers"))
        return None
    return row.envelope.seal(message, row.block.write(outgoing))


def _outgoing(index: int, header: Any, kinds: str | None, losses: list[Fault]) -> Outgoing | None:
    """Make a header ready to be written; none where it is lost, as nobody said how."""
    key, kind, value = _triple(header)
    if key is None:
        raise Refused("null_key", "the key is null", index)
    try:
        raw = key.encode()
    except UnicodeEncodeError:
        raise Refused("key_not_utf8", "half of a surrogate pair has no UTF-8 form", index) from None
    if kind is not None and not is_kind(kind):
        raise Refused("unknown_kind", f"unknown kind '{kind}'", index, key)
    if kind is None or value is None:
        return Outgoing(key, raw, value)
    if kinds is None:
        message = f"the format carries no kinds, and how to write {kind} was not said"
        losses.append(Fault("kind_not_carried", message, None, index, key))
        return None
    try:
        return Outgoing(key, raw, types.untyped(kind, value, kinds))
    except types.Misfit as misfit:
        raise Refused(misfit.code, misfit.message, index, key) from None


# --- reading a row ---------------------------------------------------------------------------------------------------


def _read(cell: Row, row: Format, lenient: bool) -> Reading:
    if isinstance(cell, bytes | bytearray | memoryview):
        return _read_cell(bytes(cell), row, lenient)
    return _read_list(cell)


def _read_cell(cell: bytes, row: Format, lenient: bool) -> Reading:
    cursor = Cursor(cell, lenient=lenient)
    fields: Fields = {}
    entries: list[Entry] = []
    broken = False
    frame_faults = 0
    try:
        block = cursor
        if row.envelope is not None:
            fields, block = row.envelope.unseal(cursor)
        frame_faults = len(cursor.faults)
        for entry in row.block.walk(block):
            entries.append(entry)
    except Broken as end:
        cursor.faults.append(end.fault)
        broken = True
    return Reading(fields, entries, False, broken, len(cursor.faults) > frame_faults, cursor.faults)


def _read_list(headers: Sequence[Any] | None) -> Reading:
    entries: list[Entry] = []
    faults: list[Fault] = []
    for index, header in enumerate(headers or ()):
        key, kind, value = (None, None, None) if header is None else _triple(header)
        if key is None:
            faults.append(Fault("null_key", "the key is null", None, index))
        elif kind is not None and not is_kind(kind):
            faults.append(Fault("unknown_kind", f"unknown kind '{kind}'", None, index, key))
        else:
            entries.append(Entry(index, key, kind, value, None))
    return Reading({}, entries, headers is None, False, bool(faults), faults)


def _triple(header: Any) -> tuple[str | None, str | None, bytes | None]:
    if header is None:
        return None, None, None
    if isinstance(header, Mapping):
        return header["key"], header.get("kind"), header["value"]
    return (header[0], None, header[1]) if len(header) == 2 else tuple(header)


def _raise_first(
    faults: list[Fault], row: Format, number: int | None = None, error: type[HeaderError] = DecodeError
) -> None:
    if faults:
        raise faults[0].as_error(error, row.name, row=number)
