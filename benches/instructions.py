"""Count the instructions that a header takes, and compare them with the record.

Time on a shared machine says little about a change; instructions are the same in every run. What is counted is the
portable build on one core, without Python: callgrind (valgrind) counts a job done twice and done once, and the
difference is one job without what prepares it.

    python -m benches.instructions            compare with the record; exit code 1 if a count is higher
    python -m benches.instructions --record   write the record

It needs valgrind, and exits with 1 where that is not installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).resolve().parent / "record" / "instructions.json"
JOBS = [
    "decode",
    "encode",
    "select",
    "select from lists",
    "validate",
    "convert to kip82-typed",
    "convert to iggy",
    "convert from iggy",
    "decode iggy",
    "encode iggy",
    "decode where",
    "decode kip82-typed",
    "decode streams",
    "messages of record-batch",
    "select from record-batch",
    "edit",
    "edit streams",
]
BATCHES = ["regular", "vectors"]

ALLOWED = 1.03
"""What a count may grow by."""

OTHER_COMPILER = 1.25
"""The same where another compiler made the code."""

HIGHER = "HIGHER"

MEMORY = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""Makes glibc grow large blocks by moving their pages. By default, what was freed before decides whether it copies them."""


def program() -> Path:
    """Build what is counted."""
    command = [
        "cargo",
        "bench",
        "--no-default-features",
        "--bench",
        "instructions",
        "--no-run",
        "--message-format=json",
    ]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    result = [json.loads(line) for line in built.splitlines()]
    executables = [
        line["executable"] for line in result if line.get("executable") and line["target"]["name"] == "instructions"
    ]
    return Path(executables[-1])


def count(binary: Path, job: str, batch: str, times: int) -> tuple[int, int]:
    """Return the instructions of all of a run, and the headers of its batch."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(binary), job, batch, str(times)]
        ran = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=ROOT, timeout=600, env=os.environ | MEMORY
        )
        total = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)
    if total is None:
        raise RuntimeError(f"callgrind said nothing of {job}, {batch}: {ran.stderr}")
    return int(total[1]), int(ran.stdout)


def per_header(binary: Path, job: str, batch: str) -> float:
    """Return the instructions of one header in a job."""
    (once, headers), (twice, _) = count(binary, job, batch, 1), count(binary, job, batch, 2)
    return round((twice - once) / headers, 2)


def compiler() -> str:
    """Return the version of the compiler."""
    return subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()


def allowed(record: dict[str, Any], now: str) -> float:
    """Return what a count may grow by where this compiler made the code."""
    return ALLOWED if record["compiler"] == now else OTHER_COMPILER


def verdict(now: float, before: float, most: float) -> str:
    """Compare a count with that on record."""
    if now > before * most:
        return HIGHER
    return "lower: record it" if now * ALLOWED < before else ""


def main(arguments: list[str]) -> int:
    """Count, and record or compare."""
    if shutil.which("valgrind") is None:
        print("no instructions were counted: valgrind is not installed (apt install valgrind)", file=sys.stderr)
        return 1
    binary = program()
    counts = {f"{job}, {batch}": per_header(binary, job, batch) for job in JOBS for batch in BATCHES}
    if arguments == ["--record"]:
        RECORD.write_text(json.dumps({"compiler": compiler(), "per header": counts}, indent=2) + "\n")
    record = json.loads(RECORD.read_text())
    most = allowed(record, compiler())
    higher = 0
    print(f"{'instructions a header':34} {'now':>8} {'record':>8}   by {record['compiler']}")
    for name, now in counts.items():
        before = record["per header"][name]
        told = verdict(now, before, most)
        higher += told == HIGHER
        print(f"  {name:32} {now:8.1f} {before:8.1f}   {told}".rstrip())
    if higher:
        print(
            f"{higher} of {len(counts)} take over {most - 1:.0%} more instructions than on record. If the change is worth it:"
        )
        print("  tools/bench record-instructions")
    return 1 if higher else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
