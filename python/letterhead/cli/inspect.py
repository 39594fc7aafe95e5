"""`letterhead inspect`: a hex view that labels every byte and marks the bytes in error."""

from __future__ import annotations

import bisect
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from rich.console import Console
from rich.text import Text

import letterhead as lh
from letterhead._formatting import as_text, printable, quoted
from letterhead.cli.exits import BAD_DATA, OK
from letterhead.cli.formats import Reading, in_microseconds, is_batch, row_of
from letterhead.cli.options import Everything, Format, Json, grouped, option, reading, source
from letterhead.cli.render import console, counted, moment, print_json
from letterhead.cli.sniff import CODEC, format_of
from letterhead.cli.source import Source
from letterhead.results import Inspection, Label

BYTES_PER_LINE = 8
BYTES_PER_LINE_WIDE = 16
WIDE = 120
# A field with more lines than this is folded.
LINES_PER_FIELD = 2
MEANING = 48

FIELD_STYLES = {
    "key": "green",
    "value": "cyan",
    "payload": "magenta",
    "timestamp": "yellow",
    "origin timestamp": "yellow",
    "not read": "dim",
    "reserved": "dim",
}
# The first field of each message of a batch.
BEGINS = {"iggy-batch": "checksum"}
HEADINGS = {"polled prefix": "before the batches", "partition id": "batch"}
CODECS = {1: "gzip", 2: "snappy", 3: "lz4"}


@grouped(source=source, options=reading)
def inspect_command(
    *,
    format: Format,
    source: Source,
    row: Annotated[int, option("--row", "With --column: the row, from 0.", "N", min=0)] = 0,
    json: Json = False,
    everything: Everything = False,
    options: Reading,
) -> int:
    """Show the bytes of one message or batch, each labelled with its field.

    A byte in error is marked, with the reason below it. In a batch, every
    message has a heading.

    \b
    Examples:
      letterhead inspect --format kafka --hex "02 06 6b 65 79 02 76"
      letterhead inspect message.bin --format streams-timestamped
      letterhead inspect state.parquet --column value --row 17 --format streams
      letterhead inspect segment.bin --format kip82-messages
      kcat … | letterhead inspect - --format auto --json
    """
    data = source.read(row, lists=False)
    format = format_of(format, [data])
    found = lh.inspect(data, format, **options)
    if json:
        print_json(_document(data, format, found))
    else:
        _View(console(), data, format, found, everything=everything).show()
    return BAD_DATA if found["errors"] else OK


def _document(data: bytes, format: str, found: Inspection) -> dict[str, Any]:
    labels = [{**label._asdict(), "hex": data[label.start : label.end].hex()} for label in found["labels"]]
    places = _places(data, format, found["labels"])
    for label in labels:
        if place := bisect.bisect_right(places, label["start"], key=lambda place: place.start):
            label["message"] = places[place - 1].number
    return {
        "format": format,
        "bytes": len(data),
        "labels": labels,
        "errors": [error._asdict() for error in found["errors"]],
    }


class _Place(NamedTuple):
    """Where a message of a batch begins, its number, the number of messages in a compressed set, and the heading."""

    start: int
    number: int | None
    inside: int | None
    heading: str


def _places(data: bytes, format: str, labels: list[Label]) -> list[_Place]:
    """Find the messages of a batch; those after an unreadable compressed set have no number."""
    if not is_batch(format):
        return []
    begins = BEGINS.get(format, "offset")
    starts = [label.start for label in labels if label.header is None and label.field == begins]
    number: int | None = 0
    places = []
    for start, end in itertools.pairwise([*starts, len(data)]):
        fields = [each for each in labels if start <= each.start < end]
        attributes = next((int(each.text) for each in fields if each.field == "attributes"), 0)
        inside: int | None = 1
        if attributes & CODEC:
            try:
                inside = len(list(lh.messages(data[start:end], format)))
            except lh.HeaderError:
                inside = None
        elif any(each.field == "record count" for each in fields):
            places.append(_Place(start, None, 0, "a batch"))
            for record in (each.start for each in fields if each.field == "record length"):
                places.append(_Place(record, number, 1, _heading(number, 1)))
                number = None if number is None else number + 1
            continue
        places.append(_Place(start, number, inside, _heading(number, inside)))
        number = None if number is None or inside is None else number + inside
    return places


def _heading(number: int | None, inside: int | None) -> str:
    if inside == 1:
        return "a message" if number is None else f"message {number}"
    if inside is None or number is None:
        return "a compressed set"
    if inside == 0:
        return "a compressed set of no messages"
    return f"messages {number} to {number + inside - 1}: a compressed set, which decode opens"


class _View:
    """The hex view: offset, bytes, field, header, meaning."""

    def __init__(self, screen: Console, data: bytes, format: str, found: Inspection, *, everything: bool) -> None:
        self.screen = screen
        self.data = data
        self.format = format
        self.everything = everything
        self.labels = found["labels"]
        self.per_line = BYTES_PER_LINE_WIDE if screen.width >= WIDE else BYTES_PER_LINE
        self.digits = max(4, len(f"{len(data):x}"))
        self.offset_width = max(self.digits, len("offset"))
        self.hex_width = 3 * self.per_line - 1
        self.field_width = max(len(field) for field in ["field", *(label.field for label in self.labels)])
        self.error_count = len(found["errors"])
        self.errors: dict[int | None, list[lh.errors.ErrorDetail]] = {}
        for error in found["errors"]:
            self.errors.setdefault(error.byte_offset, []).append(error)
        self.places = {place.start: place for place in _places(data, format, self.labels)}

    def show(self) -> None:
        """Print the view."""
        self._headline()
        self._row("", "offset", "bytes", "field", "header", "meaning", style="bold")
        for label in self.labels:
            place = self.places.get(label.start)
            heading = place.heading if place else HEADINGS.get(label.field, "") if self.places else ""
            if heading:
                self._print(Text(f"  {heading}", style="bold"))
            self._label(label)
        unplaced = self.errors.pop(None, [])
        if self.errors or not self.data:
            # Only errors at the very end are left: missing bytes.
            self._row("!" if self.errors else "", f"{len(self.data):0{self.digits}x}", "", "end of the bytes", "", "")
            for byte in sorted(offset for offset in self.errors if offset is not None):
                self._reasons(byte, 0)
        for error in unplaced:
            self._print(Text(f"! {printable(error.message)} ({error.code})", style="bold red"))

    def _headline(self) -> None:
        headers = [index for index, _ in itertools.groupby(label.header for label in self.labels) if index is not None]
        verdict = (
            Text(counted(self.error_count, "error"), style="bold red")
            if self.error_count
            else Text("no errors", style="bold green")
        )
        messages = sum(place.inside or 0 for place in self.places.values())
        in_batch = f"{counted(messages, 'message')}, " if self.places else ""
        sizes = f"{self.format}: {counted(len(self.data), 'byte')}, {in_batch}{counted(len(headers), 'header')}, "
        self._print(Text.assemble(sizes, verdict))
        self._print(Text(""))

    def _label(self, label: Label) -> None:
        header = "" if label.header is None else f"header {label.header}"
        texts = (label.field, header, self._meaning(label))
        for start, end in self._lines(label):
            if start is None:
                self._row("", "", f"… {counted(end, 'byte')}", "", "", "", style="dim")
                continue
            wrong = [byte for byte in range(start, end) if byte in self.errors]
            style = "red" if wrong else FIELD_STYLES.get(label.field, "")
            marked = [byte - start for byte in wrong]
            self._row(
                "!" if wrong else "",
                f"{start:0{self.digits}x}",
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
                or len(starts) <= LINES_PER_FIELD + 1
                or line < LINES_PER_FIELD
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
        if text == "0" and label.field == "value length" and not of_message and row["types"] and row["nulls"]:
            return "0, null"
        if label.field.endswith("timestamp"):
            return f"{text}  {moment(int(text), microseconds=in_microseconds(self.format))}".rstrip()
        if label.field == "attributes":
            return _attributes(int(text), row["name"])
        if of_message and label.field in ("payload", "value", "key"):
            payload = as_text(self.data[label.start : label.end])
            text = text if payload is None else quoted(payload)
        if self.everything or len(text) <= MEANING:
            return text
        return text[: MEANING - 1] + "…" + ('"' if text.endswith('"') else "")

    def _reasons(self, byte: int, indent: int) -> None:
        for error in self.errors.pop(byte):
            place = " " * (2 + self.offset_width + 2 + indent)
            reason = f"^^ {printable(error.message)} ({error.code}, byte {byte})"
            self._print(Text(place + reason, style="bold red"))

    def _row(self, *fields: str, wrong: Sequence[int] = (), style: str = "") -> None:
        mark, offset, hex_bytes, field, header, meaning = fields
        line = Text()
        line.append(f"{mark:<2}", style="bold red")
        line.append(f"{offset:<{self.offset_width}}  ", style=style if offset == "offset" else "dim")
        at = len(line)
        line.append(f"{hex_bytes:<{self.hex_width}}  ", style=style)
        for byte in wrong:
            line.stylize("bold reverse red", at + 3 * byte, at + 3 * byte + 2)
        line.append(f"{field:<{self.field_width}}  {header:<9}  {meaning}", style=style)
        line.rstrip()
        self._print(line)

    def _print(self, line: Text) -> None:
        # A terminal cuts long lines, to keep the columns aligned; a pipe gets all of them.
        if self.screen.is_terminal:
            self.screen.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            print(line.plain, file=self.screen.file or sys.stdout)


def _attributes(bits: int, format: str) -> str:
    """Return the attributes of a message and their meaning."""
    known = [CODECS.get(bits & CODEC, "an unknown codec") if bits & CODEC else ""]
    known.append("log append time" if bits & 0x08 else "")
    known.append(("tombstone" if format.endswith("wrapper") else "headers") if bits & 0x10 else "")
    return ", ".join([str(bits), *filter(None, known)])
