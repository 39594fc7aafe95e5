"""The record of mutation tests, tests/MUTATION.md: a table of rates by package for each language."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

RECORD = Path(__file__).resolve().parents[1] / "MUTATION.md"
INTRODUCTION = """\
# Mutation tests

`tools/mutate` changes one place of the code at a time and runs the tests that cover it. A change that no test notices survives.
"""
OUTCOMES = ["killed", "survived", "not run", "timed out"]


def table(counts: Mapping[str, Counter[str]]) -> str:
    """Return a table of outcomes by package, and their sum."""
    lines = [f"| package | mutants | {' | '.join(OUTCOMES)} | rate |", "| --- " * (len(OUTCOMES) + 3) + "|"]
    rows = [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]
    for name, outcomes in rows:
        numbers = [outcomes.total(), *(outcomes[outcome] for outcome in OUTCOMES)]
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} | {outcomes['killed'] / outcomes.total():.0%} |")
    return "\n".join(lines)


def record(language: str, command: str, counts: Mapping[str, Counter[str]]) -> None:
    """Replace the section of a language in the record."""
    revision = ["git", "describe", "--always", "--dirty=, changed"]
    commit = subprocess.run(revision, check=True, capture_output=True, text=True).stdout.strip()
    text = RECORD.read_text() if RECORD.exists() else INTRODUCTION
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    sections[language] = f"\n`{command}` at {commit}, {datetime.now(UTC):%Y-%m-%d}:\n\n{table(counts)}\n\n"
    RECORD.write_text(
        INTRODUCTION + "".join(f"\n## {name}\n{body.rstrip()}\n" for name, body in sorted(sections.items()))
    )


def check_rate(counts: Mapping[str, Counter[str]], percent: float) -> None:
    """End the program with a failure if tests noticed too few mutants."""
    total = sum(counts.values(), Counter())
    if 100 * total["killed"] < percent * total.total():
        sys.exit(f"{total['killed']} of {total.total()} mutants were noticed: less than {percent:g} %")
