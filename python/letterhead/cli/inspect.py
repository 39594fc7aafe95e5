"""`letterhead inspect`: a hex view in which every byte is labelled and the failing byte is marked."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

import letterhead as lh
from letterhead._formatting import as_text, printable, quoted
from letterhead.cli.exits import FAULTS, OK
from letterhead.cli.formats import Reading, in_microseconds, is_batch, row_of
from letterhead.cli.render import console, counted, json_text, moment
from letterhead.cli.sniff import CODEC, format_of
from letterhead.results import Inspection, Label

BYTES_A_LINE = 8
BYTES_A_LINE_WIDE = 16
WIDE = 120
# A field is folded when it has more lines than this.
LINES_A_FIELD = 2
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
# The field that a message of a batch begins with, and what else has a heading.
BEGINS = {"iggy-batch": "checksum"}
HEADINGS = {"polled prefix": "before the batches", "partition id": "batch"}
CODECS = {1: "gzip", 2: "snappy", 3: "lz4"}


def run_inspect(data: bytes, format: str, *, json: bool, everything: bool, options: Reading) -> int:
    """Print the labelled bytes of one cell; the exit code says whether they have faults."""
    format = format_of(format, [data])
    row_of(format)
    seen = lh.inspect(data, format, **options)
    if json:
        print(json_text(_document(data, format, seen), indent=2))
    else:
        _View(console(), data, format, seen["faults"], everything=everything).show(seen["labels"])
    return FAULTS if seen["faults"] else OK


def _document(data: bytes, format: str, seen: Inspection) -> dict[str, Any]:
    labels = [{**label._asdict(), "hex": data[label.start : label.end].hex()} for label in seen["labels"]]
    if is_batch(format):
        for place in _places(data, format, seen["labels"]):
            for label in labels:
                if label["start"] >= place.start:
                    label["message"] = place.number
    return {
        "format": format,
        "bytes": len(data),
        "labels": labels,
        "faults": [fault._asdict() for fault in seen["faults"]],
    }


class _Place(NamedTuple):
    """Where a message of a batch begins, its number, and of a compressed set how many are in it."""

    start: int
    number: int | None
    inside: int | None

    @property
    def heading(self) -> str:
        if self.inside == 1:
            return "a message" if self.number is None else f"message {self.number}"
        if self.inside is None or self.number is None:
            return "a compressed set"
        if self.inside == 0:
            return "a compressed set of no messages"
        return f"messages {self.number} to {self.number + self.inside - 1}: a compressed set, which decode opens"


def _places(data: bytes, format: str, labels: list[Label]) -> list[_Place]:
    """Find where the messages of a batch begin. After a compressed set that cannot be read they have no numbers."""
    begins = BEGINS.get(format, "offset")
    starts = [label.start for label in labels if label.header is None and label.field == begins]
    number: int | None = 0
    places = []
    for start, end in itertools.pairwise([*starts, len(data)]):
        attributes = [int(each.text) for each in labels if start <= each.start < end and each.field == "attributes"]
        inside: int | None = 1
        if attributes and attributes[0] & CODEC:
            try:
                inside = len(list(lh.messages(data[start:end], format)))
            except lh.HeaderError:
                inside = None
        places.append(_Place(start, number, inside))
        number = None if number is None or inside is None else number + inside
    return places


class _View:
    """The layout of one hex view: offset, bytes, field, header, meaning."""

    def __init__(
        self, screen: Console, data: bytes, format: str, faults: list[lh.errors.Fault], *, everything: bool
    ) -> None:
        self.screen = screen
        self.data = data
        self.format = format
        self.everything = everything
        self.a_line = BYTES_A_LINE_WIDE if screen.width >= WIDE else BYTES_A_LINE
        self.digits = max(4, len(f"{len(data):x}"))
        self.offset_width = max(self.digits, len("offset"))
        self.hex_width = 3 * self.a_line - 1
        self.faults: dict[int, list[lh.errors.Fault]] = {}
        self.placeless: list[lh.errors.Fault] = []
        for fault in faults:
            if fault.byte_offset is None:
                self.placeless.append(fault)
            else:
                self.faults.setdefault(fault.byte_offset, []).append(fault)
        self.fault_count = len(faults)

    def show(self, labels: list[Label]) -> None:
        self.field_width = max([len(label.field) for label in labels] + [len("field")])
        places = (
            {place.start: place for place in _places(self.data, self.format, labels)} if is_batch(self.format) else {}
        )
        self._headline(labels, places)
        self._row("", "offset", "bytes", "field", "header", "meaning", style="bold")
        for label in labels:
            if places:
                self._heading(label, places)
            self._label(label)
        if self.faults or not self.data:
            # Only faults at the very end are left: bytes that should have been there.
            self._row("!" if self.faults else "", self._offset(len(self.data)), "", "end of the cell", "", "")
            for byte in sorted(self.faults):
                self._reasons(byte, 0)
        for fault in self.placeless:
            self._print(Text(f"! {printable(fault.message)} ({fault.code})", style="bold red"))

    def _heading(self, label: Label, places: dict[int, _Place]) -> None:
        place = places.get(label.start)
        text = HEADINGS.get(label.field, "") if place is None else place.heading
        if text:
            self._print(Text(f"  {text}", style="bold"))

    def _headline(self, labels: list[Label], places: dict[int, _Place]) -> None:
        headers = sum(label.header is not None for label in _first_of_headers(labels))
        verdict = (
            Text(counted(self.fault_count, "fault"), style="bold red")
            if self.fault_count
            else Text("no faults", style="bold green")
        )
        messages = f"{counted(sum(place.inside or 0 for place in places.values()), 'message')}, " if places else ""
        sizes = f"{self.format}: {counted(len(self.data), 'byte')}, {messages}{counted(headers, 'header')}, "
        self._print(Text.assemble(sizes, verdict))
        self._print(Text(""))

    def _label(self, label: Label) -> None:
        header = "" if label.header is None else f"header {label.header}"
        first = True
        for start, end in self._lines(label):
            if start is None:
                self._row("", "", f"… {counted(end, 'byte')}", "", "", "", style="dim")
                continue
            wrong = [byte for byte in range(start, end) if byte in self.faults]
            self._row(
                "!" if wrong else "",
                self._offset(start),
                self.data[start:end].hex(" "),
                label.field if first else "",
                header if first else "",
                self._meaning(label) if first else "",
                wrong=[byte - start for byte in wrong],
                style="red" if wrong else FIELD_STYLES.get(label.field, ""),
            )
            for byte in wrong:
                self._reasons(byte, 3 * (byte - start))
            first = False

    def _lines(self, label: Label) -> Iterator[tuple[int | None, int]]:
        """Cut a field into lines; a fold is given as (None, bytes left out)."""
        starts = range(label.start, label.end, self.a_line)
        folded = 0
        for line, start in enumerate(starts):
            end = min(start + self.a_line, label.end)
            wanted = (
                self.everything
                or len(starts) <= LINES_A_FIELD + 1
                or line < LINES_A_FIELD
                or any(byte in self.faults for byte in range(start, end))
            )
            if not wanted:
                folded += end - start
                continue
            if folded:
                yield None, folded
                folded = 0
            yield start, end
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
        closing = '"' if text.endswith('"') else ""
        return text[: MEANING - 1] + "…" + closing

    def _reasons(self, byte: int, indent: int) -> None:
        for fault in self.faults.pop(byte):
            place = " " * (2 + self.offset_width + 2 + indent)
            reason = f"^^ {printable(fault.message)} ({fault.code}, byte {byte})"
            self._print(Text(place + reason, style="bold red"))

    def _row(
        self,
        mark: str,
        offset: str,
        hex_bytes: str,
        field: str,
        header: str,
        meaning: str,
        *,
        wrong: list[int] | None = None,
        style: str = "",
    ) -> None:
        line = Text()
        line.append(f"{mark:<2}", style="bold red")
        line.append(f"{offset:<{self.offset_width}}  ", style=style if offset == "offset" else "dim")
        at = len(line)
        line.append(f"{hex_bytes:<{self.hex_width}}  ", style=style)
        for byte in wrong or []:
            line.stylize("bold reverse red", at + 3 * byte, at + 3 * byte + 2)
        line.append(f"{field:<{self.field_width}}  {header:<9}  {meaning}", style=style)
        line.rstrip()
        self._print(line)

    def _offset(self, byte: int) -> str:
        return f"{byte:0{self.digits}x}"

    def _print(self, line: Text) -> None:
        # On a terminal a long line is cut, so that the columns stay columns; a pipe gets all of it.
        if self.screen.is_terminal:
            self.screen.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            print(line.plain, file=self.screen.file or sys.stdout)


def _first_of_headers(labels: list[Label]) -> Iterator[Label]:
    """Give the first label of every run of labels that belong to the same header."""
    for _, run in itertools.groupby(labels, key=lambda label: label.header):
        yield next(run)


def _attributes(bits: int, format: str) -> str:
    """Say what the attributes of a message mean."""
    known = [CODECS.get(bits & CODEC, "an unknown codec") if bits & CODEC else ""]
    known.append("log append time" if bits & 0x08 else "")
    known.append(("tombstone" if format.endswith("wrapper") else "headers") if bits & 0x10 else "")
    return ", ".join([str(bits), *filter(None, known)])
