"""`letterhead inspect`: a hex view that labels every byte and marks invalid bytes."""

from __future__ import annotations

import bisect
import itertools
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from rich.console import Console
from rich.text import Text

import letterhead as lh
from letterhead import _native
from letterhead._formatting import as_text, printable, quote
from letterhead._row_request import RowRequest
from letterhead.cli.brokers import connection_settings
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.formats import ReadArguments, in_microseconds, is_batch, row_of
from letterhead.cli.message_input import MessageInput
from letterhead.cli.options import Everything, Format, Json, group_options, option, reading, source
from letterhead.cli.render import as_integer, count_text, print_json, warn, zoned_time
from letterhead.cli.screen import console
from letterhead.cli.sniff import format_of
from letterhead.cli.sources.batches import FORMAT, batch_at, with_checksums
from letterhead.cli.sources.options import BootstrapServer, Timeout, as_milliseconds, parse_headers
from letterhead.errors import ErrorDetail
from letterhead.fields import normalise
from letterhead.kafka.batch_attributes import (
    CODEC_BITS,
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    ControlType,
    codec_name,
    control_type,
)
from letterhead.results import Inspection, Label

BYTES_PER_LINE = 8
BYTES_PER_LINE_WIDE = 16
WIDE = 120
# Maximum number of lines of a field before it is folded.
MAX_LINES_PER_FIELD = 2
MAX_MEANING = 48
MAX_LABELS = 1 << 30
# Field of labels that --headers hides.
HIDDEN = ""

FIELD_STYLES = {
    "key": "green",
    "value": "cyan",
    "payload": "magenta",
    "timestamp": "yellow",
    "origin timestamp": "yellow",
    "not read": "dim",
    "reserved": "dim",
}
# Fields of a message that contain the application's bytes.
VALUES = ("payload", "value", "key")
INTEGER_SIZES = (2, 4, 8)
# First field of each message of a batch.
FIRST_FIELDS = {"iggy-batch": "checksum"}
HEADINGS = {"polled prefix": "before the batches", "partition id": "batch"}
# Attribute bits of a record batch.
BITS = {0x08: "log append time", TRANSACTIONAL_BIT: "transactional", CONTROL_BIT: "control", 0x40: "delete horizon"}
CONTROL_TYPES: dict[int | None, str] = {
    ControlType.ABORT: "abort of a transaction",
    ControlType.COMMIT: "commit of a transaction",
    ControlType.LEADER_CHANGE: "leader change",
    ControlType.SNAPSHOT_HEADER: "snapshot header",
    ControlType.SNAPSHOT_FOOTER: "snapshot footer",
    ControlType.KRAFT_VERSION: "KRaft version",
    ControlType.KRAFT_VOTERS: "KRaft voters",
}


@group_options(source=source, settings=connection_settings, options=reading)
def inspect_command(
    *,
    format: Format = "",
    source: MessageInput,
    row: Annotated[int, option("--row", "With --column: the row, counted from 0.", "N", min=0)] = 0,
    offset: Annotated[
        int | None,
        option(
            "--offset", "FILE is a topic, log segments or their directory: the record with this offset.", "N", min=0
        ),
    ] = None,
    partition: Annotated[int | None, option("--partition -p", "With --offset: the partition.", "N", min=0)] = None,
    headers: Annotated[
        str | None, option("--headers", "Only these headers, read as these types: tenant,retry:int32.", "NAME:TYPE,...")
    ] = None,
    timeout: Timeout = None,
    bootstrap_server: BootstrapServer = None,
    settings: Mapping[str, str],
    json: Json = False,
    everything: Everything = False,
    options: ReadArguments,
) -> int:
    """Show the bytes of one message or batch, each labelled with its field.

    A byte in error is marked, with the reason below it. In a batch, every
    message has a heading. Compressed record batches are shown with their
    decompressed records, whose bytes are counted from the first one.

    \b
    Examples:
      letterhead inspect --format kafka --hex "02 06 6b 65 79 02 76"
      letterhead inspect message.bin --format streams-timestamped
      letterhead inspect state.parquet --column value --row 17 --format streams
      letterhead inspect orders-0 --offset 5000
      letterhead inspect kafka://broker:9092/orders/0 --offset 5000 --json
      kcat … | letterhead inspect - --format auto --json
    """
    only, code = None, OK
    if offset is not None:
        if source.column is not None or row or format not in ("", FORMAT):
            raise Failure("--offset excludes --column, --row and --format: a record of a log of Kafka is shown")
        partitions = None if partition is None else frozenset([partition])
        request = RowRequest(
            partitions=partitions, settings=settings, timeout_ms=as_milliseconds(timeout), servers=bootstrap_server
        )
        format = FORMAT
        data, only, code = batch_at(source.log, offset, request, options["limits"])
        # Otherwise, labels of the last records of a batch would be missing.
        options = {**options, "limits": options["limits"]._replace(reports=MAX_LABELS)}
    else:
        if partition is not None or settings or bootstrap_server is not None:
            raise Failure("--partition, --bootstrap-server, --config and -X need --offset")
        if not format:
            raise Failure("Missing option '--format' / '-f' (see letterhead inspect --help)")
        data = source.read(options["limits"], row, lists=False)
        format = format_of(format, [data])
    readable, inspection = _inspect(data, format, options)
    shown = _LabelFilter(only, _types_of(headers), row_of(format).types)
    if json:
        print_json(_document(data, readable, format, inspection, options, shown))
    else:
        _View(console(), data, readable, format, inspection, options, everything=everything, shown=shown).show()
    if missing := [name for name in shown.types or () if name not in shown.seen]:
        warn(f"there is no header {', '.join(map(quote, missing))}")
    return BAD_DATA if inspection["errors"] or shown.errors else code


def _inspect(data: bytes, format: str, options: ReadArguments) -> tuple[bytes, Inspection]:
    """Return labels and errors, and the bytes with corrected checksums, which can be read."""
    inspection = lh.inspect(data, format, **options)
    wrong = [error for error in inspection["errors"] if error.code == "bad_crc"]
    if not wrong or format != FORMAT:
        return data, inspection
    # The core does not read records with a wrong checksum.
    readable = with_checksums(data)
    opened = lh.inspect(readable, format, **options)
    stored = {label.start: label for label in inspection["labels"] if label.field == "crc"}
    return readable, {
        "labels": [stored.get(label.start, label) if label.field == "crc" else label for label in opened["labels"]],
        "errors": sorted([*wrong, *opened["errors"]], key=lambda error: error.byte_offset or 0),
    }


def _document(
    data: bytes, readable: bytes, format: str, inspection: Inspection, options: ReadArguments, shown: _LabelFilter
) -> dict[str, Any]:
    parts = _batch_parts(readable, format, inspection["labels"], options)
    document: dict[str, Any] = {
        "format": format,
        "bytes": len(data),
        "labels": _label_documents(data, inspection["labels"], parts, shown),
        "errors": [],
    }
    if any(part.compressed for part in parts):
        document["compressed"] = [
            {
                "start": part.start,
                "bytes": len(decompressed.data) - decompressed.skip,
                "labels": _label_documents(
                    decompressed.data, decompressed.labels, decompressed.parts, shown, decompressed.skip
                ),
            }
            for part in parts
            if part.compressed and (decompressed := _decompress(readable, format, part, options)) is not None
        ]
    document["errors"] = [error._asdict() for error in (*inspection["errors"], *shown.errors)]
    return document


def _label_documents(
    data: bytes, labels: Sequence[Label], parts: Sequence[_BatchPart], shown: _LabelFilter, skip: int = 0
) -> list[dict[str, Any]]:
    documents = []
    for label in shown.labels(data, labels, parts):
        if label.field == HIDDEN:
            continue
        document = label._asdict() | {"start": label.start - skip, "end": label.end - skip}
        document["hex"] = data[label.start : label.end].hex()
        if after := bisect.bisect_right(parts, label.start, key=lambda part: part.start):
            document["message"] = parts[after - 1].number
        documents.append(document)
    return documents


class _BatchPart(NamedTuple):
    """Message of a batch, or a compressed set of messages."""

    start: int
    end: int
    number: int | None
    messages: int | None  # number in a compressed set; 1 for a message
    heading: str
    compressed: bool = False
    headers: int = 0  # number in a compressed set, which has no labels for them


class _DecompressedSet(NamedTuple):
    """Decompressed messages of a set; the first ``skip`` bytes of ``data`` are not shown again."""

    data: bytes
    skip: int
    labels: list[Label]
    parts: list[_BatchPart]


def _batch_parts(
    data: bytes, format: str, labels: list[Label], options: ReadArguments, number: int | None = 0
) -> list[_BatchPart]:
    """Find the messages of a batch; messages after an unreadable compressed set have no number."""
    if not is_batch(format):
        return []
    first_field = FIRST_FIELDS.get(format, "offset")
    starts = [index for index, label in enumerate(labels) if label.header is None and label.field == first_field]
    parts = []
    for index, next_at in itertools.pairwise([*starts, len(labels)]):
        fields = labels[index:next_at]
        start, end = fields[0].start, labels[next_at].start if next_at < len(labels) else len(data)
        attributes = next((label for label in fields if label.field == "attributes"), None)
        bits = 0 if attributes is None else int(attributes.text)
        control = attributes is not None and _is_of_batch(attributes) and bool(bits & CONTROL_BIT)
        messages: int | None = 1
        if bits & CODEC_BITS:
            headers = 0
            try:
                messages = 0
                for message in lh.messages(data[start:end], format, **options):
                    messages, headers = messages + 1, headers + len(message.headers or ())
            except lh.HeaderError:
                messages, headers = None, 0
            opens = messages is not None and format == "record-batch"
            heading = _heading(number, messages, codec_name(bits & CODEC_BITS), opens=opens)
            if control:
                heading += ", control records"
            parts.append(_BatchPart(start, end, number, messages, heading, opens, headers))
        elif any(label.field == "record count" for label in fields):
            parts.append(_BatchPart(start, end, None, 0, "a control batch" if control else "a batch"))
            records = [index for index, label in enumerate(fields) if label.field == "record length"]
            for index, next_record in itertools.pairwise([*records, len(fields)]):
                heading = _heading(number, 1)
                if control:
                    heading += f": {_control_type(data, fields[index:next_record])}"
                parts.append(_BatchPart(fields[index].start, end, number, 1, heading))
                number = None if number is None else number + 1
            continue
        else:
            parts.append(_BatchPart(start, end, number, messages, _heading(number, messages)))
        number = None if number is None or messages is None else number + messages
    return parts


def _decompress(data: bytes, format: str, part: _BatchPart, options: ReadArguments) -> _DecompressedSet | None:
    """Return a decompressed set; None if it cannot be read."""
    read_options = (options["lenient"], options["strict_types"], options["limits"])
    try:
        decompressed = _native.uncompressed(data[part.start : part.end], read_options)
    except lh.HeaderError:
        return None
    labels = lh.inspect(decompressed, format, **options)["labels"]
    # The header was already shown with the compressed records.
    skip = next((label.end for label in labels if label.field == "record count"), 0)
    parts = _batch_parts(decompressed, format, labels, options, part.number)
    return _DecompressedSet(
        decompressed, skip, [label for label in labels if label.start >= skip],
        [inside for inside in parts if inside.start >= skip],
    )  # fmt: skip


def _heading(number: int | None, messages: int | None, codec: str = "", *, opens: bool = False) -> str:
    if not codec:
        return "a message" if number is None else f"message {number}"
    if messages is None or number is None:
        return "a compressed set"
    if messages == 0:
        return "a compressed set of no messages"
    description = f"compressed by {codec}" if opens else "a compressed set, which decode opens"
    return f"messages {number} to {number + messages - 1}: {description}"


def _is_of_batch(attributes: Label) -> bool:
    """Return whether attributes belong to a record batch; a message of an older format has one byte of attributes."""
    return attributes.end - attributes.start == 2


def _control_type(data: bytes, fields: Sequence[Label]) -> str:
    """Return the meaning of a control record, whose key contains a version and a type."""
    keys = (data[label.start : label.end] for label in fields if label.field == "key" and label.header is None)
    return CONTROL_TYPES.get(control_type(next(keys, None)), "a control record")


def _types_of(headers: str | None) -> dict[str, str] | None:
    """Return the headers named by ``--headers``, with the types of their values."""
    return None if headers is None else {key: type for _, key, type in parse_headers(headers)}


class _LabelFilter:
    """Selects the labels of one message of a batch, or of some headers, and adds types to their values."""

    def __init__(self, only: int | None, types: Mapping[str, str] | None, has_types: bool) -> None:
        if types is not None:
            with usage_errors():
                normalise(types)
        self._only = only
        self.types = types
        self._has_types = has_types
        self.seen: set[str] = set()
        self.errors: list[ErrorDetail] = []
        """Type errors of the labels returned so far."""

    def labels(
        self, data: bytes, labels: Sequence[Label], parts: Sequence[_BatchPart], errors: Collection[int | None] = ()
    ) -> Iterator[Label]:
        """Yield labels; labels that --headers hides have the field ``HIDDEN``, unless they have an error."""
        shown = (label for label in labels if self._is_of_message(label, parts))
        for header, group in itertools.groupby(shown, key=lambda label: label.header):
            fields = [*group]
            if self.types is None:
                yield from fields
                continue
            key = next((label for label in fields if label.field == "key" and header is not None), None)
            names = () if key is None else (key.text, data[key.start : key.end].decode(errors="replace"))
            name = next((name for name in names if name in self.types), None)
            for label in fields:
                if name is not None and label.field == "value" and not self._has_types:
                    label = self._typed(label, data, name, self.types[name])
                elif name is None and not any(byte in errors for byte in range(label.start, label.end)):
                    label = label._replace(field=HIDDEN)
                yield label
            length = next((label for label in fields if label.field == "value length"), None)
            if name is not None and length is not None and length.text == "0" and not self._has_types:
                # An empty value has no label.
                self._typed(length._replace(start=length.end), data, name, self.types[name])
            self.seen.update(() if name is None else (name,))

    def _typed(self, label: Label, data: bytes, name: str, type: str) -> Label:
        """Return the label of a value with its typed meaning; note the error if the type does not fit."""
        try:
            with usage_errors():
                value = lh.select(lh.encode([("", data[label.start : label.end])], "kafka"), {"": type})[""]
        except lh.HeaderError as error:
            # An empty value has no bytes to mark, so its length is marked.
            byte = label.start - (label.start == label.end)
            self.errors.append(ErrorDetail(error.code, f"not {type}: {error.message}", byte, label.header, name, name))
            return label._replace(text=f"not {type}")
        return label._replace(text=f"{type} {quote(value) if isinstance(value, str) else value}")

    def _is_of_message(self, label: Label, parts: Sequence[_BatchPart]) -> bool:
        """Return whether a label belongs to the selected message, or to the header of the batch."""
        after = bisect.bisect_right(parts, label.start, key=lambda part: part.start)
        if self._only is None or not after:
            return True
        part = parts[after - 1]
        return part.number is None or part.messages != 1 or part.number == self._only


_Opened: TypeAlias = tuple[_DecompressedSet, list[Label], dict[int | None, list[ErrorDetail]]]


class _View:
    """Hex view: offset, bytes, field, header, meaning."""

    def __init__(
        self,
        screen: Console,
        data: bytes,
        readable: bytes,
        format: str,
        inspection: Inspection,
        options: ReadArguments,
        *,
        everything: bool,
        shown: _LabelFilter,
    ) -> None:
        self.screen = screen
        self.data = data
        self.skip = 0
        self.options = options
        self.format = format
        self.everything = everything
        self.shown = shown
        self.labels = inspection["labels"]
        self.per_line = BYTES_PER_LINE_WIDE if screen.width >= WIDE else BYTES_PER_LINE
        self.digits = max(4, len(f"{len(data):x}"))
        self.offset_width = max(self.digits, len("offset"))
        self.hex_width = 3 * self.per_line - 1
        self.field_width = max(len(field) for field in ["field", *(label.field for label in self.labels)])
        self.parts = {part.start: part for part in _batch_parts(readable, format, self.labels, options)}
        self.errors: dict[int | None, list[ErrorDetail]] = {}
        self._add_errors(inspection["errors"])
        # Labels are created before printing, because the first line contains the number of their errors.
        self.shown_labels = self._labels(data, self.labels, list(self.parts.values()))
        self.decompressed = {
            start: opened
            for start, part in self.parts.items()
            if part.compressed and (opened := self._opened(readable, part)) is not None
        }
        self.error_count = len(inspection["errors"]) + len(shown.errors)

    def show(self) -> None:
        """Print the view."""
        self._headline()
        self._row("", "offset", "bytes", "field", "header", "meaning", style="bold")
        compressed: _BatchPart | None = None
        for label in self.shown_labels:
            if compressed is not None and label.start >= compressed.end:
                self._show_opened(compressed)
                compressed = None
            part = self.parts.get(label.start)
            heading = part.heading if part else HEADINGS.get(label.field, "") if self.parts else ""
            if heading:
                self._print(Text(f"  {heading}", style="bold"))
            self._label(label)
            if part and part.compressed:
                compressed = part
        if compressed is not None:
            self._show_opened(compressed)
        without_byte = self.errors.pop(None, [])
        if self.errors or not self.data:
            # The remaining errors are at the end of the bytes, because bytes are missing there.
            self._row("!" if self.errors else "", f"{len(self.data):0{self.digits}x}", "", "end of the bytes", "", "")
            for byte in sorted(offset for offset in self.errors if offset is not None):
                self._reasons(byte, 0)
        for error in without_byte:
            self._print(Text(f"! {printable(error.message)} ({error.code})", style="bold red"))

    def _labels(self, data: bytes, labels: Sequence[Label], parts: Sequence[_BatchPart]) -> list[Label]:
        """Return the labels to show, and collect their type errors."""
        before = len(self.shown.errors)
        shown = [*self.shown.labels(data, labels, parts, self.errors)]
        self._add_errors(self.shown.errors[before:])
        return shown

    def _opened(self, readable: bytes, part: _BatchPart) -> _Opened | None:
        """Return a decompressed set, with the labels to show and their type errors."""
        decompressed = _decompress(readable, self.format, part, self.options)
        if decompressed is None:
            return None
        outer, self.errors = self.errors, {}
        labels = self._labels(decompressed.data, decompressed.labels, decompressed.parts)
        errors, self.errors = self.errors, outer
        return decompressed, labels, errors

    def _add_errors(self, errors: Sequence[ErrorDetail]) -> None:
        for error in errors:
            self.errors.setdefault(error.byte_offset, []).append(error)

    def _show_opened(self, part: _BatchPart) -> None:
        """Print the messages of a compressed set; byte positions start at its first message."""
        if part.start not in self.decompressed:
            return
        decompressed, labels, errors = self.decompressed[part.start]
        size = count_text(len(decompressed.data) - decompressed.skip, "byte")
        self._print(Text(f"  decompressed, {size}", style="bold"))
        outer = self.data, self.skip, self.errors
        # Other errors were shown with the compressed bytes.
        self.data, self.skip, self.errors = decompressed.data, decompressed.skip, errors
        headings = {inside.start: inside.heading for inside in decompressed.parts}
        for label in labels:
            if label.start in headings:
                self._print(Text(f"  {headings[label.start]}", style="bold"))
            self._label(label)
        self.data, self.skip, self.errors = outer

    def _headline(self) -> None:
        header_indexes = [
            index for index, _ in itertools.groupby(label.header for label in self.labels) if index is not None
        ]
        headers = len(header_indexes) + sum(part.headers for part in self.parts.values())
        verdict = (
            Text(count_text(self.error_count, "error"), style="bold red")
            if self.error_count
            else Text("no errors", style="bold green")
        )
        messages = sum(part.messages or 0 for part in self.parts.values())
        in_batch = f"{count_text(messages, 'message')}, " if self.parts else ""
        # A truncated list of labels ends with a label for the rest.
        at_least = "at least " if self.labels and self.labels[-1].field == "not shown" else ""
        sizes = f"{self.format}: {count_text(len(self.data), 'byte')}, {in_batch}{at_least}{count_text(headers, 'header')}, "
        self._print(Text.assemble(sizes, verdict))
        self._print(Text(""))

    def _label(self, label: Label) -> None:
        if label.field == HIDDEN:
            return
        header = "" if label.header is None else f"header {label.header}"
        texts = (label.field, header, self._meaning(label))
        for start, end in self._lines(label):
            if start is None:
                self._row("", "", f"… {count_text(end, 'byte')}", "", "", "", style="dim")
                continue
            wrong = [byte for byte in range(start, end) if byte in self.errors]
            style = "red" if wrong else FIELD_STYLES.get(label.field, "")
            marked = [byte - start for byte in wrong]
            self._row(
                "!" if wrong else "",
                f"{start - self.skip:0{self.digits}x}",
                self.data[start:end].hex(" "),
                *texts,
                wrong=marked,
                style=style,
            )
            for byte in wrong:
                self._reasons(byte, 3 * (byte - start))
            texts = ("", "", "")

    def _lines(self, label: Label) -> Iterator[tuple[int | None, int]]:
        """Split a field into lines; omitted lines become (None, number of bytes)."""
        starts = range(label.start, label.end, self.per_line)
        folded = 0
        for line, start in enumerate(starts):
            end = min(start + self.per_line, label.end)
            if (
                self.everything
                or len(starts) <= MAX_LINES_PER_FIELD + 1
                or line < MAX_LINES_PER_FIELD
                or any(byte in self.errors for byte in range(start, end))
            ):
                if folded:
                    yield None, folded
                    folded = 0
                yield start, end
            else:
                folded += end - start
        if folded:
            yield None, folded

    def _meaning(self, label: Label) -> str:
        text = printable(label.text)
        row = row_of(self.format)
        of_message = label.header is None
        if text == "-1" and (label.field == "value length" or (of_message and label.field == "key length")):
            return "-1, null"
        if text == "0" and label.field == "value length" and not of_message and row.types and row.nulls:
            return "0, null"
        if label.field.endswith("timestamp"):
            return f"{text}  {zoned_time(int(text), microseconds=in_microseconds(self.format))}".rstrip()
        if label.field == "attributes":
            return _attributes(int(text), row.name, of_batch=_is_of_batch(label))
        if (
            label.field in VALUES
            if of_message
            else label.field == "value" and not row.types and self.shown.types is None
        ):
            text = _reading(self.data[label.start : label.end]) or text
        if self.everything or len(text) <= MAX_MEANING:
            return text
        return text[: MAX_MEANING - 1] + "…" + ('"' if text.endswith('"') else "")

    def _reasons(self, byte: int, indent: int) -> None:
        for error in self.errors.pop(byte):
            margin = " " * (2 + self.offset_width + 2 + indent)
            reason = f"^^ {printable(error.message)} ({error.code}, byte {byte})"
            self._print(Text(margin + reason, style="bold red"))

    def _row(self, *fields: str, wrong: Sequence[int] = (), style: str = "") -> None:
        mark, offset, hex_bytes, field, header, meaning = fields
        line = Text()
        line.append(f"{mark:<2}", style="bold red")
        line.append(f"{offset:<{self.offset_width}}  ", style=style if offset == "offset" else "dim")
        start = len(line)
        line.append(f"{hex_bytes:<{self.hex_width}}  ", style=style)
        for byte in wrong:
            line.stylize("bold reverse red", start + 3 * byte, start + 3 * byte + 2)
        line.append(f"{field:<{self.field_width}}  {header:<9}  {meaning}", style=style)
        line.rstrip()
        self._print(line)

    def _print(self, line: Text) -> None:
        # Long lines are cut on a terminal, to keep the columns aligned, but not in a pipe.
        if self.screen.is_terminal:
            self.screen.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            print(line.plain, file=self.screen.file or sys.stdout)


def _reading(data: bytes) -> str | None:
    """Return bytes as text, or as an integer if that is likely; otherwise None."""
    text, number = as_text(data), as_integer(data, INTEGER_SIZES)
    if text is not None:
        return quote(text)
    return None if number is None else f"int{8 * len(data)} {number}"


def _attributes(bits: int, format: str, *, of_batch: bool) -> str:
    """Return the attributes of a message or a record batch and their meaning."""
    known = [codec_name(bits & CODEC_BITS)] if bits & CODEC_BITS else []
    if format == "record-batch":
        # Older formats have only the first of these bits.
        known += [name for bit, name in BITS.items() if bits & bit and (of_batch or bit == 0x08)]
    else:
        known += ["log append time"] * bool(bits & 0x08)
        known += ["tombstone" if format.endswith("wrapper") else "headers"] * bool(bits & 0x10)
    return ", ".join([str(bits), *known])
