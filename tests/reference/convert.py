"""convert: a message of one format into another. By value, never by bytes; what is lost on the way is said.

Fields find their counterpart by what they mean. Times are milliseconds or microseconds, as the format has them.

=====================  ===============================================================================================
a field of the source  in the target
=====================  ===============================================================================================
payload, value         each other
crc, checksum          made anew or 0: never copied, never lost
magic, attributes      copied where the target has them, never lost
tombstone              copied where the target marks them; elsewhere lost where it contradicts the value: true beside a
                       value, or false beside a null in a wrapper if a null deletes in the target
any other              copied; lost where it is not null and the target has no place for it
=====================  ===============================================================================================

A field that the source format does not have is written as the target's own none: -1 for a time in milliseconds, which
also stands for one that is null, an empty payload, 0 or null for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from letterhead._names import check_name
from letterhead.errors import DecodeError, EncodeError, HeaderError
from letterhead.limits import Limits
from letterhead.results import Loss
from tests.reference.cursor import DecodeOptions
from tests.reference.formats import Format, named, target
from tests.reference.losses import Ledger, Losses, TypesOption, loss_reports
from tests.reference.protocols import Fields
from tests.reference.reading import ERRORS, error_reports, raise_first, read_message
from tests.reference.writing import NO_MESSAGE, Report, Writer

DERIVED = ("crc", "checksum")
"""Fields that follow from the others."""

SILENT = ("magic", "attributes")
"""Fields that say how a message lies in its format, and nothing of the message."""

TIMES = ("timestamp", "origin_timestamp")

INT64 = range(-(1 << 63), 1 << 63)


class Converted(NamedTuple):
    """A message in another format.

    Attributes
    ----------
    data : bytes or None
        The bytes; ``None`` where the target has no bytes for the message.
    losses : Losses
        What the target could not carry.
    """

    data: bytes | None
    losses: Losses


def convert(
    data: bytes,
    format: str,
    *,
    target: str,
    on_loss: str = "raise",
    types: TypesOption = None,
    nulls: str = "skip",
    canonical: bool = False,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> bytes | Converted | None:
    """Write one message in another format; with ``on_loss="report"`` also say what was lost."""
    source, writer = _pair(format, target, on_loss=on_loss, types=types, nulls=nulls, canonical=canonical)
    options = DecodeOptions(lenient, strict_types).within(limits)
    writer.most_reports = options.max_reports
    report, faulty, error = _convert(data, source, writer, options)
    raise_first(report.details, faulty, error=error)
    return Converted(report.data, report.losses) if on_loss == "report" else report.data


def convert_rows(
    rows: Iterable[bytes | None],
    format: str,
    *,
    target: str,
    on_loss: str = "raise",
    types: TypesOption = None,
    nulls: str = "skip",
    canonical: bool = False,
    errors: str = "raise",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> list[Any]:
    """Write every row in another format; a null row is no message.

    With ``on_loss="report"`` or ``errors="column"`` a row is a dict of ``data``, then ``losses``, then ``error``, those
    that were asked for, each null where there are none. Losses are raised whatever ``errors`` says.
    """
    check_name("errors", errors, ERRORS)
    source, writer = _pair(format, target, on_loss=on_loss, types=types, nulls=nulls, canonical=canonical)
    options = DecodeOptions(lenient, strict_types).within(limits)
    out: list[Any] = []
    error_lists, loss_lists = error_reports(options), loss_reports(options.max_reports)
    for number, data in enumerate(rows):
        nothing = NO_MESSAGE, source, DecodeError
        report, faulty, error = nothing if data is None else _convert(data, source, writer, options, number)
        if errors == "raise":
            raise_first(report.details, faulty, number, error)
        result: dict[str, Any] = {"data": report.data}
        if on_loss == "report":
            result["losses"] = loss_lists.keep(report.losses) or None
        if errors == "column":
            result["error"] = error_lists.keep(report.details) or None
        out.append(result if len(result) > 1 else report.data)
    return out


def _pair(format: str, into: str, **options: Any) -> tuple[Format, Writer]:
    source = named(format)
    if source.batch is not None:
        raise ValueError(f"{format} is a batch: convert its messages one by one")
    if named(into).batch is not None:
        raise ValueError(f"{into} is a batch and no target")
    return source, Writer(target(into), **options, converting=True, from_typed_keys=source.traits.keys == "typed")


def _convert(
    data: bytes, source: Format, writer: Writer, options: DecodeOptions, number: int | None = None
) -> tuple[Report, Format, type[HeaderError]]:
    """Write one message; also give the format that its errors are of, and the class of their exception."""
    reading = read_message(data, source, options)
    if reading.details:
        return NO_MESSAGE._replace(details=reading.details), source, DecodeError

    def fields(ledger: Ledger) -> Fields:
        return carry_fields(reading.fields, source, writer.row, ledger, no_wrapper=reading.headers is None)

    return writer.write(reading.headers, fields, number), writer.row, EncodeError


def carry_fields(fields: Fields, source: Format, into: Format, ledger: Ledger, *, no_wrapper: bool) -> Fields:
    """Return the fields of the target, made of those of the source."""
    places = {_meaning(name): name for name in _names(into)}
    result: Fields = dict.fromkeys(_names(into))
    known = {_meaning(name) for name in _names(source)}
    if "payload" in places and "payload" not in known:
        result[places["payload"]] = b""
    if "timestamp" in places and not into.micros:
        result["timestamp"] = -1  # Kafka's word for "no timestamp"
    for name in _names(source):
        value, meaning = fields[name], _meaning(name)
        if value is None or name in DERIVED:
            continue
        if meaning == "tombstone" and not into.marks_tombstones:
            # Elsewhere a tombstone is a null value and nothing else, and one in a wrapper without the mark is none.
            is_null = fields["value"] is None
            revived = value and not is_null
            deleted = not value and is_null and not no_wrapper and into.null_deletes
            if revived or deleted:
                ledger.lose(Loss("field_not_carried", f"{name} is not carried"))
        elif meaning not in places:
            if name not in SILENT:
                ledger.lose(Loss("field_not_carried", f"{name} is not carried"))
        elif name in ("offset", *TIMES):
            result[name] = _number(name, value, source, into, ledger)
        else:
            result[places[meaning]] = value
    return result


def _names(row: Format) -> list[str]:
    return [name for name, _ in row.fields if name != "headers"]


def _meaning(name: str) -> str:
    return "payload" if name == "value" else name


def _number(name: str, value: int, source: Format, into: Format, ledger: Ledger) -> int | None:
    """Return an offset or a time as the target has it."""
    # Iggy has no sign, and 0 where Kafka has -1 for none.
    if into.micros and value < 0:
        if value != -1:
            ledger.lose(Loss("out_of_range", f"{name} is negative"))
        return None
    if name not in TIMES or source.micros == into.micros:
        return value
    if into.micros:
        if value * 1000 in INT64:
            return value * 1000
        ledger.lose(Loss("out_of_range", f"{name} does not fit int64"))
        return None
    if value % 1000:
        ledger.lose(Loss("field_not_carried", f"{name} has parts of a millisecond", written="ms"))
    return value // 1000
