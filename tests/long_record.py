"""Record a run of a long tier in tests/RECORD.md: python tests/long_record.py TIER passed|failed SECONDS LOG.

``tools/test --long`` calls it after each tier with what the tier printed. With the name of a tier alone, it prints the commit
of the last run that passed, or of the first commit if there was none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

RECORD = Path(__file__).with_name("RECORD.md")
COLUMNS = ["tier", "result", "date", "commit", "passed", "failed", "skipped", "minutes"]
COUNTED = ("passed", "failed", "skipped")
INTRODUCTION = """\
# Long tests

The last run of each tier of `tools/test --long`, which rewrites this table. A count is of tests; where a tier has none, it is empty.
"""


def counts(log: str) -> Counter[str]:
    """Add up the summaries of pytest and of `cargo test`."""
    total: Counter[str] = Counter()
    for line in log.splitlines():
        pytest = re.search(r"(?:^|=+ )((?:\d+ [a-z]+,? ?)+)in [\d.]+s", line)
        cargo = re.match(r"test result: .*?\. (\d+ passed; \d+ failed; \d+ ignored)", line)
        if summary := pytest or cargo:
            for number, word in re.findall(r"(\d+) ([a-z]+)", summary[1]):
                outcome = {"ignored": "skipped", "error": "failed", "errors": "failed"}.get(word, word)
                total[outcome] += int(number) if outcome in COUNTED else 0
    return total


def rows_by_tier() -> dict[str, list[str]]:
    """Return the rows of the table."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    rows = [[value.strip() for value in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row for row in rows if row != COLUMNS and not row[0].startswith("-")}


def last_commit(tier: str) -> str:
    """Return the commit of the last run of a tier that passed."""
    _, result, _, commit, *_ = rows_by_tier().get(tier, [tier, "", "", ""])
    commit = commit.removesuffix(", changed")
    known = (
        subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], check=False, capture_output=True).returncode
        == 0
    )
    if known and result == "passed":
        return commit
    return printed("git", "rev-list", "--max-parents=0", "--max-count=1", "HEAD")


def printed(*command: str) -> str:
    """Return the output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(tier: str, result: str, seconds: str, log: str) -> None:
    """Replace the row of a tier."""
    commit = printed("git", "rev-parse", "--short", "HEAD")
    # Rows of other tiers in the record do not change what was tested.
    if printed("git", "status", "--porcelain", "--untracked-files=no", "--", ":!tests/RECORD.md"):
        commit += ", changed"
    total = counts(Path(log).read_text(errors="replace"))
    numbers = [f"{total[outcome]:,}" if total else "" for outcome in COUNTED]
    rows = rows_by_tier()
    rows[tier] = [tier, result, f"{datetime.now(UTC):%Y-%m-%d}", commit, *numbers, f"{int(seconds) / 60:.1f}"]
    table = [COLUMNS, ["---"] * len(COLUMNS), *(rows[name] for name in sorted(rows))]
    RECORD.write_text(INTRODUCTION + "\n" + "".join(f"| {' | '.join(row)} |\n" for row in table))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(last_commit(sys.argv[1]))
    else:
        main(*sys.argv[1:])
