"""Change the core in small ways, one at a time, and see whether its tests notice: the Rust half of ``tools/mutate``.

    python tests/mutation/core.py [--sample N] [--seed N] [--since REVISION] [--record] [--at-least PERCENT] [FILE ...]

cargo-mutants makes the changes and runs ``cargo test`` for each of them; a sample is drawn here, because it has none. Of the
core only: what the tests of Python notice beside that does not count.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

from record import check_rate, record, table

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "target" / "mutants" / "rust"
OPTIONS = ["--no-default-features", "--profile", "mutants"]


def listed(files: list[str], since: str | None) -> list[str]:
    """Return the names of all mutants: a place and a change."""
    command = ["cargo", "mutants", "--list", "--json", *OPTIONS]
    for file in files:
        command += ["--file", file]
    if since:
        difference = OUTPUT / "changes.diff"
        difference.write_text(
            subprocess.run(["git", "diff", since, "--", "src"], check=True, capture_output=True, text=True).stdout
        )
        command += ["--in-diff", str(difference)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return [mutant["name"] for mutant in json.loads(printed)]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="tools/mutate rust", description="Change the core, and run its tests.")
    parser.add_argument("files", nargs="*", default=["src/**"], help="files of src (all)")
    parser.add_argument("--sample", type=int, default=50, help="how many mutants (50)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--since", metavar="REVISION", help="only lines that have changed since then")
    parser.add_argument("--record", action="store_true", help="write tests/MUTATION.md")
    parser.add_argument("--at-least", metavar="PERCENT", type=float, default=0, help="fail if fewer mutants are killed")
    chosen = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    names = sorted(listed(chosen.files, chosen.since))
    # The binding is compiled only with the feature `python`.
    names = [name for name in names if not name.startswith("src/python/")]
    drawn = random.Random(chosen.seed).sample(names, min(chosen.sample, len(names)))
    if not drawn:
        print("no mutants")
        return
    print(f"{len(drawn)} of {len(names):,} mutants", flush=True)
    expression = "|".join(re.escape(name) for name in drawn)
    command = ["cargo", "mutants", *OPTIONS, "--re", f"^({expression})$", "--output", str(OUTPUT), "--no-shuffle"]
    # Its exit code says whether mutants survived, and so does the table.
    subprocess.run(command, cwd=ROOT, check=False)
    outcomes = json.loads((OUTPUT / "mutants.out" / "outcomes.json").read_text())["outcomes"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        if outcome["scenario"] == "Baseline":
            continue
        parts = outcome["scenario"]["Mutant"]["file"].split("/")
        result = {"MissedMutant": "survived", "CaughtMutant": "killed", "Timeout": "killed"}.get(outcome["summary"])
        if result:  # others do not compile
            counts[parts[1] if len(parts) > 2 else "letterhead"][result] += 1
    print(table(counts))
    if chosen.record:
        record("rust", f"tools/mutate rust --sample {chosen.sample} --seed {chosen.seed}", counts)
    check_rate(counts, chosen.at_least)


if __name__ == "__main__":
    main()
