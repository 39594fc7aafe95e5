"""The operations, each once: for one message, and for a list of rows.

A row is a serialized message, or headers already (a list of keys and values, as Spark's Kafka source has them),
or null. The order of the errors of a row is the order of the checks: the frame, the block, then the columns in the
order asked for.

What is given back is plain: headers as ``(key, type, value)``, a key being ``str``, ``int`` or ``(type, bits)``; an
message as a dict of its fields; a value as Python has it; errors as :class:`~letterhead.errors.ErrorDetail`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from letterhead._names import check_name
from letterhead.errors import EncodeError, ErrorDetail, as_error
from letterhead.fields import Columns, normalise
from letterhead.limits import REPORTS, Limits
from letterhead.results import Loss
from tests.reference import keys, text_forms, types
from tests.reference.batches import kip82_messages
from tests.reference.convert import Converted, convert, convert_rows
from tests.reference.cursor import DecodeOptions
from tests.reference.formats import Format, named, of_one_message, target
from tests.reference.keys import Key
from tests.reference.losses import Losses, TypesOption, loss_reports
from tests.reference.protocols import Entry, Fields, Refused
from tests.reference.reading import (
    ERRORS,
    Reading,
    Reports,
    Row,
    Triple,
    error_reports,
    in_message,
    raise_first,
    read_batch,
    read_message,
    read_row,
    without_message,
)
from tests.reference.writing import NO_MESSAGE, Report, Writer

__all__ = [
    "SET_CODECS",
    "Converted",
    "Loss",
    "Losses",
    "batch",
    "convert",
    "convert_rows",
    "decode",
    "decode_rows",
    "encode",
    "encode_rows",
    "messages",
    "messages_rows",
    "select",
    "select_rows",
    "validate",
    "validate_rows",
]

Spec = tuple[str, Key, str, str, bool, tuple[str, str] | None, str | None]
"""What is asked for in one column: its name, a key, a type, what to do with repeats, whether it is required."""


SET_CODECS = ("none", "gzip", "snappy", "lz4")
"""The codecs of message sets, by their numbers."""


# --- decode ----------------------------------------------------------------------------------------------------------


def decode(
    data: bytes,
    format: str,
    *,
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
) -> list[Triple] | dict[str, Any]:
    """Read one message: headers if the format is a block, a dict of fields otherwise."""
    row = of_one_message(format)
    reading = read_message(data, row, DecodeOptions(lenient, strict_types, text_keys).within(limits))
    raise_first(reading.details, row)
    fields = _decoded(reading, row)
    headers: list[Triple] = fields["headers"]
    return fields if row.message else headers


def decode_rows(
    rows: Iterable[bytes | None],
    format: str,
    *,
    errors: str = "raise",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
) -> list[Any]:
    """Read every row; with ``errors="column"`` a dict of the fields and ``error``, null where the row is whole."""
    row = of_one_message(format)
    check_name("errors", errors, ERRORS)
    options = DecodeOptions(lenient, strict_types, text_keys).within(limits)
    reports = error_reports(options)
    return [_decode_row(data, number, row, errors, options, reports) for number, data in enumerate(rows)]


def _decode_row(
    data: bytes | None, number: int, row: Format, errors: str, options: DecodeOptions, reports: Reports[ErrorDetail]
) -> Any:
    if data is None:
        return None
    reading = read_message(data, row, options)
    if errors == "raise":
        raise_first(reading.details, row, number)
    if errors == "null" and reading.details:
        return None
    fields = _decoded(reading, row)
    if errors == "column":
        return {**fields, "error": reports.keep(reading.details) or None}
    return fields if row.message else fields["headers"]


def _decoded(reading: Reading, row: Format) -> dict[str, Any]:
    return {name: reading.headers if name == "headers" else reading.fields.get(name) for name, _ in row.fields}


# --- messages --------------------------------------------------------------------------------------------------------


def messages(
    data: bytes,
    format: str,
    *,
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
) -> list[dict[str, Any]]:
    """Read the messages of a batch, each a dict of fields."""
    row = _batch(format)
    result = []
    for reading in read_batch(data, row, DecodeOptions(lenient, strict_types, text_keys).within(limits)):
        raise_first(reading.details, row)
        result.append(_decoded(reading, row))
    return result


def messages_rows(
    rows: Iterable[bytes | None],
    format: str,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    errors: str = "raise",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    dialect: str = "arrow",
    limits: Limits | None = None,
) -> list[dict[str, Any]]:
    """Read the messages of every row, in order, each a dict.

    It has the fields of the format behind ``row``, the position of the row, or those that ``columns`` names; then what
    ``headers`` asks for; then ``error`` where that is the policy. With ``errors="null"`` no header of a message whose
    structure is broken is read, and of another those that could be; a message with a wrong checksum
    is null. Where the framing of a message breaks, one message says so and is the last of it.
    """
    row = _batch(format)
    check_name("errors", errors, ERRORS)
    check_name("dialect", dialect, types.DIALECTS)
    specs = _specs(headers, row) if headers else []
    known = ["row", *(name for name, _ in row.fields)]
    names = known if columns is None else list(columns)
    for name in names:
        check_name("column", name, known)
    options = DecodeOptions(lenient, strict_types, text_keys).within(limits)
    out = []
    reports = error_reports(options)
    for number, data in enumerate(rows):
        for place, reading in enumerate(() if data is None else read_batch(data, row, options)):
            if errors != "raise":
                # Each message has a row of its own, and errors without numbers can be grouped.
                reading = reading._replace(details=[without_message(place, detail) for detail in reading.details])
            values, details = _pick(reading, specs, dialect, strict_types)
            headers_details = details[len(reading.details) :]
            if errors == "raise":
                headers_details = [in_message(place, detail) for detail in headers_details]
            if reading.place is not None:
                headers_details = [
                    f if f.byte_offset is None else f._replace(byte_offset=reading.place) for f in headers_details
                ]
            details = [*reading.details, *headers_details]
            if errors == "raise":
                raise_first(details, row, number)
            result = {"row": number, **_decoded(reading, row)}
            if errors == "null" and (reading.broken or reading.frame_damaged):
                values = dict.fromkeys(values)
                if reading.frame_damaged:
                    result = {"row": number}
            result = {name: result.get(name) for name in names} | values
            out.append(result | {"error": reports.keep(details) or None} if errors == "column" else result)
    return out


def _batch(format: str) -> Format:
    row = named(format)
    if row.batch is None:
        raise ValueError(f"{format} is not a batch: read it with decode")
    return row


# --- validate --------------------------------------------------------------------------------------------------------


def validate(
    data: bytes, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> list[ErrorDetail]:
    """Find everything that is wrong with one message, or with all messages of a batch."""
    options = DecodeOptions(lenient, strict_types).within(limits)
    return error_reports(options).keep(_details(data, named(format), options))


def validate_rows(
    rows: Iterable[Row], format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> list[list[ErrorDetail] | None]:
    """Find everything that is wrong, row by row; null where a row is whole or there is none."""
    row = named(format)
    options = DecodeOptions(lenient, strict_types).within(limits)
    reports = error_reports(options)
    return [None if data is None else reports.keep(_details(data, row, options)) or None for data in rows]


def _details(data: Row, row: Format, options: DecodeOptions) -> list[ErrorDetail]:
    if row.batch is not None and isinstance(data, bytes | bytearray | memoryview):
        return [detail for reading in read_batch(bytes(data), row, options) for detail in reading.details]
    return read_row(data, row, options).details


# --- select ----------------------------------------------------------------------------------------------------------


def select(
    data: bytes,
    format: str,
    columns: Columns,
    *,
    lenient: bool = False,
    strict_types: bool = False,
    dialect: str = "arrow",
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Read some headers of one message as typed values."""
    row = of_one_message(format)
    check_name("dialect", dialect, types.DIALECTS)
    reading = read_message(data, row, DecodeOptions(lenient, strict_types).within(limits))
    values, details = _pick(reading, _specs(columns, row), dialect, strict_types)
    raise_first(details, row)
    return values


def select_rows(
    rows: Iterable[Row],
    format: str,
    columns: Columns,
    *,
    errors: str = "raise",
    lenient: bool = False,
    strict_types: bool = False,
    dialect: str = "arrow",
    lists: bool = False,
    limits: Limits | None = None,
) -> dict[str, list[Any]]:
    """Read some headers of every row into columns; ``lists`` says that a null row is a null list, not a null message."""
    row = of_one_message(format)
    check_name("errors", errors, ERRORS)
    check_name("dialect", dialect, types.DIALECTS)
    specs = _specs(columns, row)
    options = DecodeOptions(lenient, strict_types).within(limits)
    names = [name for name, *_ in specs] + (["error"] if errors == "column" else [])
    out: dict[str, list[Any]] = {name: [] for name in names}
    reports = error_reports(options)
    for number, data in enumerate(rows):
        null = data is None and not lists
        values = (
            {} if null else _select_row(read_row(data, row, options), number, row, specs, errors, dialect, strict_types)
        )
        if values.get("error"):
            values["error"] = reports.keep(values["error"])
        for name in names:
            out[name].append(values.get(name))
    return out


def _specs(columns: Columns, row: Format) -> list[Spec]:
    specs: list[Spec] = []
    for name, requested, type, repeat, required, default, split in normalise(columns):
        key = keys.as_key(requested)
        keys.check_form(key, row.traits.keys, row.name)
        specs.append((name, key, type, repeat, required, default, split))
    return specs


def _select_row(
    reading: Reading, number: int, row: Format, specs: list[Spec], errors: str, dialect: str, strict: bool
) -> dict[str, Any]:
    values, details = _pick(reading, specs, dialect, strict)
    if errors == "raise":
        raise_first(details, row, number)
    if errors == "null" and reading.broken:
        return {}
    return {**values, "error": details or None}


def _pick(reading: Reading, specs: list[Spec], dialect: str, strict: bool) -> tuple[dict[str, Any], list[ErrorDetail]]:
    details = list(reading.details)
    return {spec[0]: _column(reading, spec, dialect, details, strict) for spec in specs}, details


def _column(reading: Reading, spec: Spec, dialect: str, details: list[ErrorDetail], strict: bool) -> Any:
    """Return what one row has for one column, and note what is wrong with it."""
    column, key, type, repeat, required, default, split = spec
    entries = [entry for entry in reading.entries if entry.key == key]
    # A header that could not be read does not make two others one.
    if repeat == "error" and len(entries) > 1:
        second = entries[1]
        text = keys.spell(key)
        details.append(
            ErrorDetail("repeated_key", "the key occurs a second time", second.at, second.header, text, column)
        )
        return None
    if _is_lost(reading, key, repeat, entries):
        return None
    # What comes after a hard error was not read: a header may be there, and a list would be only the front of one.
    if required and not entries and not reading.broken:
        missing = "the header is required and absent"
        details.append(ErrorDetail("missing_key", missing, key=keys.spell(key), column=column))
        return None
    if repeat == "all" and reading.broken:
        return None
    if repeat == "all":
        before = len(details)
        elements = [element for entry in entries for element in _split(entry, split)]
        values = [_value(element, type, dialect, column, details, strict) for element in elements]
        return values if len(details) == before else None
    if not entries:
        if default is None or reading.broken:
            return None
        return types.read(default[0], default[1].encode(), dialect=_dialect(type, dialect))
    before = len(details)
    value = _value(entries[-1] if repeat == "last" else entries[0], type, dialect, column, details, strict)
    if reading.broken and repeat != "first" and len(details) == before:
        unread = "headers after this one were not read, and may have the key, too"
        details.append(ErrorDetail("incomplete", unread, key=keys.spell(key), column=column))
    return value


def _is_lost(reading: Reading, key: Key, repeat: str, entries: list[Entry]) -> bool:
    """Return whether the header that a column selects may be one that has the key and could not be read."""
    read = [entry.header for entry in entries]
    headers = [detail.header for detail in reading.details if detail.key == keys.spell(key)]
    unread = [header for header in headers if header is not None and header not in read]
    if not read or repeat in ("all", "error"):
        return bool(unread)
    if repeat == "first":
        return any(header < read[0] for header in unread)
    return any(header > read[-1] for header in unread)


def _split(entry: Entry, separator: str | None) -> list[Entry]:
    """Return an entry for each element of a value."""
    if separator is None or entry.value is None or entry.type not in (None, "string", "binary"):
        return [entry]
    elements, at = [], entry.at
    for value in entry.value.split(separator.encode()):
        elements.append(entry._replace(value=value, at=at))
        at = None if at is None else at + len(value) + len(separator.encode())
    return elements


def _dialect(type: str, dialect: str) -> str:
    """Return how times are counted: of alternatives, some may have microseconds."""
    return "spark" if " | " in type and "timestamp:" in type else dialect


def _value(entry: Entry, type: str, dialect: str, column: str, details: list[ErrorDetail], strict: bool) -> Any:
    """Return the value as the first of the alternatives that reads it, and note why if none does."""
    if entry.value is None:
        return None
    misfits = []
    for alternative in type.split(" | "):
        try:
            return _read(entry, entry.value, alternative, _dialect(type, dialect), strict)
        except types.Misfit as misfit:
            misfits.append(misfit)
    messages = list(dict.fromkeys(misfit.message for misfit in misfits))
    byte = None if entry.at is None else entry.at + misfits[-1].within
    text = keys.spell(entry.key)
    details.append(ErrorDetail(misfits[-1].code, "; ".join(messages), byte, entry.header, text, column))
    return None


def _read(entry: Entry, value: bytes, type: str, dialect: str, strict: bool) -> Any:
    if entry.type is None:
        return types.read(type, value, dialect=dialect)
    if types.accepts(type, entry.type):
        # Otherwise the value is its bits, most significant byte first, whatever the order asked for.
        is_bytes = entry.type == "binary" or types.is_text(type)
        return types.read(type if is_bytes else types.parse(type)[0], value, dialect=dialect)
    if not strict and types.is_wider(type, entry.type):
        return types.read_wider(type, entry.type, value, dialect=dialect)
    bytes_type, base = text_forms.split_base(type)
    name = bytes_type if text_forms.is_form(bytes_type) else types.parse(type)[0]
    name = f"{name}:{base}" if base else name
    raise types.Misfit("wrong_type", f"the value is {entry.type} and {name} was requested")


def encode(
    message: Iterable[Any] | Mapping[str, Any] | None,
    format: str,
    *,
    types: TypesOption = None,
    on_loss: str = "raise",
    nulls: str = "skip",
    canonical: bool = False,
) -> bytes | None:
    """Write one message: headers if the format is a block, a mapping of fields otherwise.

    A header is ``(key, value)`` or ``(key, type, bits)``.
    """
    row = target(format)
    writer = Writer(row, types=types, on_loss=on_loss, nulls=nulls, canonical=canonical, converting=False)
    return _write(message, writer).data


def encode_rows(
    rows: Iterable[Any],
    format: str,
    *,
    types: TypesOption = None,
    on_loss: str = "raise",
    nulls: str = "skip",
    canonical: bool = False,
) -> list[Any]:
    """Write every row. A null row is a null list in a headers format, and no message in a message format.

    With ``on_loss="report"`` a row is a dict of ``data`` and ``losses``, null where nothing was lost.
    """
    row = target(format)
    writer = Writer(row, types=types, on_loss=on_loss, nulls=nulls, canonical=canonical, converting=False)
    out: list[Any] = []
    reports = loss_reports(REPORTS)
    for number, message in enumerate(rows):
        nothing = message is None and row.message is not None
        report = NO_MESSAGE if nothing else _write(message, writer, number)
        losses = reports.keep(report.losses) or None
        out.append({"data": report.data, "losses": losses} if on_loss == "report" else report.data)
    return out


def batch(
    messages: Iterable[Mapping[str, Any]],
    format: str,
    *,
    codec: str = "none",
    types: TypesOption = None,
    on_loss: str = "raise",
    nulls: str = "skip",
) -> bytes:
    """Write messages, each a mapping of all fields, as one set of ``kip82-messages*``."""
    number = SET_CODECS.index(codec)
    row = target(format.replace("messages", "message"))
    writer = Writer(row, types=types, on_loss=on_loss, nulls=nulls, canonical=False, converting=False)
    laid_out: list[Fields] = []
    written: list[bytes] = []
    try:
        for fields in kip82_messages.lay_out(messages, number):
            laid_out.append(fields)
            written.append(_write(fields, writer, len(written)).data or b"")
    except Refused as refused:
        detail = ErrorDetail(refused.code, refused.message, None, refused.header, refused.key)
        raise as_error(detail, EncodeError, format, row=len(written)) from None
    data = b"".join(written)
    if not number:
        return data
    return encode(kip82_messages.compressed(laid_out, data, number), row.name) or b""


def _write(message: Any, writer: Writer, number: int | None = None) -> Report:
    row = writer.row
    fields: Fields = {} if row.message is None else {name: message.get(name) for name, _ in row.fields}
    report = writer.write(message if row.message is None else message["headers"], lambda _: fields, number)
    raise_first(report.details, row, number, EncodeError)
    return report
