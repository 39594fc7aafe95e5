"""`letterhead inspect`: a hex view in which every byte is labelled and the failing byte is marked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from letterhead import _native
from letterhead.cli.exits import FAULTS, OK, Failure
from letterhead.cli.render import as_text, console, counted, json_text, moment, printable, quoted
from letterhead.errors import Fault
from letterhead.message import Label

BYTES_A_LINE = 8
BYTES_A_LINE_WIDE = 16
WIDE = 120
# A field is folded when it has more lines than this.
LINES_A_FIELD = 2
MEANING = 48

FIELD_STYLES = {"key": "green", "value": "cyan", "payload": "magenta", "timestamp": "yellow", "not read": "dim"}


def run_inspect(data: bytes, format: str, *, json: bool, lenient: bool, everything: bool) -> int:
    """Print the labelled bytes of one cell; the exit code says whether they have faults."""
    labels, faults = look(data, format, lenient=lenient)
    if json:
        print(json_text(_document(data, format, labels, faults), indent=2))
    else:
        _View(console(), data, faults, everything=everything).show(format, labels)
    return FAULTS if faults else OK


def look(data: bytes, format: str, *, lenient: bool = False) -> tuple[list[Label], list[Fault]]:
    """Ask the native walk for the labels and faults of one cell."""
    try:
        seen = _native.inspect(data, format, lenient=lenient)
    except ValueError as error:
        raise Failure(str(error)) from error
    return [Label(*label) for label in seen["labels"]], [Fault(*fault) for fault in seen["faults"]]


def _document(data: bytes, format: str, labels: list[Label], faults: list[Fault]) -> dict[str, Any]:
    return {
        "format": format,
        "bytes": len(data),
        "labels": [{**label._asdict(), "hex": data[label.start : label.end].hex()} for label in labels],
        "faults": [fault._asdict() for fault in faults],
    }


class _View:
    """The layout of one hex view: offset, bytes, field, header, meaning."""

    def __init__(self, screen: Console, data: bytes, faults: list[Fault], *, everything: bool) -> None:
        self.screen = screen
        self.data = data
        self.everything = everything
        self.a_line = BYTES_A_LINE_WIDE if screen.width >= WIDE else BYTES_A_LINE
        self.digits = max(4, len(f"{len(data):x}"))
        self.offset_width = max(self.digits, len("offset"))
        self.hex_width = 3 * self.a_line - 1
        self.faults: dict[int, list[Fault]] = {}
        self.placeless: list[Fault] = []
        for fault in faults:
            if fault.byte is None:
                self.placeless.append(fault)
            else:
                self.faults.setdefault(fault.byte, []).append(fault)
        self.fault_count = len(faults)

    def show(self, format: str, labels: list[Label]) -> None:
        self.field_width = max([len(label.field) for label in labels] + [len("field")])
        self._headline(format, labels)
        self._row("", "offset", "bytes", "field", "header", "meaning", style="bold")
        for label in labels:
            self._label(label)
        if self.faults or not self.data:
            # Only faults at the very end are left: bytes that should have been there.
            self._row("!" if self.faults else "", self._offset(len(self.data)), "", "end of the cell", "", "")
            for byte in sorted(self.faults):
                self._reasons(byte, 0)
        for fault in self.placeless:
            self._print(Text(f"! {printable(fault.message)} ({fault.code})", style="bold red"))

    def _headline(self, format: str, labels: list[Label]) -> None:
        seen = {label.header for label in labels if label.header is not None}
        verdict = (
            Text(counted(self.fault_count, "fault"), style="bold red")
            if self.fault_count
            else Text("no faults", style="bold green")
        )
        sizes = f"{format}: {counted(len(self.data), 'byte')}, {counted(len(seen), 'header')}, "
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
        if label.field == "value length" and text == "-1":
            return "-1, null"
        if label.field == "timestamp":
            return f"{text}  {moment(int(text))}".rstrip()
        if label.field == "payload":
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
