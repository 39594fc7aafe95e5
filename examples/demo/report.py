"""What the demo prints: a table for each step, and a line for each check. The figures are also in report.json."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


class Report:
    """Tables, checks and times of one run."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.figures: dict[str, Any] = {"failures": [], "times": []}
        self.screen = Console(highlight=False, width=None if sys.stdout.isatty() else 100)

    def step(self, title: str, meaning: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table with a title, and a sentence on what it shows."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        numbers = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(columns))]
        for name, is_number in zip(columns, numbers, strict=True):
            table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
        for row in rows:
            table.add_row(*map(shown, row))
        self.screen.print(f"\n[bold]{escape(title)}[/]\n[dim]{escape(meaning)}[/]\n")
        self.screen.print(table)

    def check(self, holds: bool, claim: str) -> None:
        """Print whether a check holds; one that does not makes the demo fail."""
        self.screen.print(f"[green]✓[/] {escape(claim)}" if holds else f"[bold red]✗ {escape(claim)}[/]")
        if not holds:
            self.figures["failures"].append(claim)

    @contextmanager
    def timed(self, step: str, headers: int) -> Iterator[None]:
        """Measure a step that handles a number of headers."""
        began = time.perf_counter()
        yield
        self.figures["times"].append([step, time.perf_counter() - began, headers])

    def end(self) -> int:
        """Print the times and the verdict, and return the exit code."""
        rows = [[step, seconds, headers, round(headers / seconds)] for step, seconds, headers in self.figures["times"]]
        meaning = (
            "Steps in Spark read and write Parquet once, cold: at this size that is nearly all of their time. "
            "The others are the library alone on one thread."
        )
        self.step("7  time", meaning, ["step", "seconds", "headers", "headers/s"], rows)
        (self.out / "report.json").write_text(json.dumps(self.figures, indent=2, default=str), encoding="utf-8")
        failures = len(self.figures["failures"])
        verdict = f"[bold red]{failures} checks failed.[/]" if failures else "[bold green]Every check held.[/]"
        self.screen.print(f"\n{verdict} Parquet, report.json and logs are in {escape(str(self.out))}.")
        return 1 if failures else 0


def shown(value: Any) -> str:
    """Format a value for a cell of a table."""
    if value is None:
        return "[dim]–[/]"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return escape(", ".join(value))
    return f"{value:,}" if isinstance(value, int) else escape(str(value))
