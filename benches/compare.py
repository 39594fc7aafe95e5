"""Compare two versions of the Rust core in one process, on the same columns and in alternating turns.

The old version is a second checkout, and the new one is this checkout or that of `--new`. A small Cargo package in
`target/compare` depends on both. Every result of the new version has to equal that of the old one before a job is timed.

    git worktree add ../old 7d6d043
    python -m benches.compare ../old                                     all jobs on corpora A, B and C
    python -m benches.compare ../old --new ../kernel --jobs decode,select --corpora A --rounds 31
    python -m benches.compare ../old --quick                             small inputs: checks results, measures nothing

`old` and `new` are medians in nanoseconds of CPU time for a header, or for a record where the job reads record batches.
`old/new` is the median of the ratios of all rounds, with their quartiles: above 1, the new version is faster. A row passes
at 95 % of its bar. In the rows `decode / memcpy`, the time of decode is given as a multiple of the time that it takes to
copy half of the bytes that decode reads and writes. The exit code is 1 if a row misses its bar.

The quartiles do not show that the compiler translates and places two copies of the same source differently. This effect is
the same in every run of one build: `select` of two equal versions has measured 0.93 on A and 1.10 on C. To see its size,
compare two equal checkouts, or build with another placement: RUSTFLAGS="-C llvm-args=-align-all-nofallthru-blocks=5".

The environment is passed on to the measured process, which runs on the last core where `taskset` is available.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benches.limits import corpus
from benches.machine import features, ran_on

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "compare"
SOURCES = ROOT / "benches" / "compare"

JOBS = ("decode", "encode", "select", "select from lists", "validate", "record batches", "decode long values")
CORPORA = ("A", "B", "C")

AT_LEAST = 0.95
"""The part of a bar at which a job passes."""

BARS: dict[str, dict[str, dict[str, float]]] = {
    "x86-64": {
        "decode": {"A": 1.3, "B": 1.4, "C": 1.15},
        "encode": {"A": 1.1, "B": 1.15, "C": 1.25},
        "select": {"A": 1.25, "B": 1.25, "C": 1.25},
        "validate": {"A": 1.0, "B": 1.0, "C": 1.15},
        "record batches": {"A": 1.5, "B": 1.5, "C": 1.5},
        "decode long values": {"100 B": 1.15, "1000 B": 1.15},
    },
    "avx2": {
        "decode": {"A": 1.4, "B": 1.5, "C": 1.2},
        "encode": {"A": 1.15, "B": 1.25, "C": 1.25},
        "select": {"A": 1.3, "B": 1.35, "C": 1.3},
        "validate": {"A": 1.05, "B": 1.05, "C": 1.2},
        "record batches": {"A": 1.5, "B": 1.5, "C": 1.5},
        "decode long values": {"100 B": 1.2, "1000 B": 1.2},
    },
}
"""The least ratio of old to new, by instruction set, job and corpus."""

MOST_MEMCPY = {"avx2": 2.7}
"""The most that decode may take, as a multiple of memcpy."""

# Both versions share one lockfile, so they need two names, and neither needs a shared library.
MANIFEST = """\
[package]
name = "{program}"
version = "0.0.0"
edition = "2024"
publish = false

[[bin]]
name = "{program}"
path = "{main}"

[dependencies]
arrow-array = {{ version = "59", default-features = false }}
arrow-buffer = "59"
letterhead_old = {{ path = "old", default-features = false }}
letterhead_new = {{ path = "new", default-features = false }}
libc = "0.2"
mimalloc = {{ version = "0.1", default-features = false }}
serde_json = "1"

[workspace]

{profile}
"""


def main() -> int:
    """Build the program, run it, and print what it measured; return 1 if a job misses its bar."""
    arguments = parsed()
    old, new = arguments.old.resolve(), arguments.new.resolve()
    for checkout in (old, new):
        if not (checkout / "src" / "lib.rs").is_file():
            sys.exit(f"{checkout} is not a checkout of letterhead: it has no src/lib.rs")
    program = build(old, new)
    data = ROOT / "target" / "limits" / ("quick" if arguments.quick else "full")
    corpus.write(data, quick=arguments.quick)
    rounds = 1 if arguments.quick else arguments.rounds
    load = round(os.getloadavg()[0], 1)
    began = time.time()
    results = measure(program, data, rounds, arguments.corpora, arguments.jobs)
    rows = list(compared(results, arguments.bars))
    if arguments.quick:
        print(f"{len(results)} jobs have equal results in both versions")
        return 0
    print(f"old {commit(old)} {old}\nnew {commit(new)} {new}")
    print(f"{rounds} rounds in {time.time() - began:.0f} s, load {load} before them, bars of {arguments.bars}\n")
    print(table(rows))
    if arguments.json:
        machine = ran_on()
        del machine["commit"], machine["changed"]
        record = {
            "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime(began)),
            "old": commit(old), "new": commit(new), "load": load, "bars": arguments.bars, "machine": machine,
            "rows": rows, "results": results,
        }  # fmt: skip
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(row["passes"] is False for row in rows))


def parsed() -> argparse.Namespace:
    """Parse the command line."""
    about, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m benches.compare",
        description=about,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="checkout of the old version")
    parser.add_argument("--new", type=Path, default=ROOT, metavar="DIR", help="checkout of the new version (this one)")
    parser.add_argument("--jobs", type=names(JOBS), default=list(JOBS), help=f"any of: {', '.join(JOBS)} (all)")
    parser.add_argument("--corpora", type=names(CORPORA), default=list(CORPORA), help="any of: A, B, C (all)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each job (15)")
    parser.add_argument(
        "--bars",
        choices=list(BARS),
        default="avx2" if "avx2" in features() else "x86-64",
        help="instruction set whose bars apply (that of this machine)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows and all times to a file")
    parser.add_argument("--quick", action="store_true", help="one round on small inputs, to check results")
    return parser.parse_args()


def names(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Make a parser of lists that are separated by commas."""

    def parse(text: str) -> list[str]:
        source = [name.strip() for name in text.split(",")]
        if unknown := [name for name in source if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of: {', '.join(known)}")
        return source

    return parse


def build(old: Path, new: Path) -> Path:
    """Write the package that depends on both checkouts, compile it, and return the program."""
    # A name for each pair of checkouts: comparisons with several checkouts share the compiled dependencies.
    program = f"compare-{zlib.crc32(f'{old}:{new}'.encode()):08x}"
    package = FOLDER / program
    for name, checkout in (("old", old), ("new", new)):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "Cargo.toml").write_text(library(checkout, f"letterhead_{name}"))
    profile = section((new / "Cargo.toml").read_text(), "[profile.release]").replace('strip = "symbols"\n', "")
    main = SOURCES / "main.rs"
    (package / "Cargo.toml").write_text(MANIFEST.format(program=program, main=main, profile=profile))
    shutil.copy(new / "Cargo.lock", package / "Cargo.lock")
    print("building", file=sys.stderr, flush=True)
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(package / "Cargo.toml")]
    run([*command, "--target-dir", str(FOLDER / "build")], OLD_JOBS=str(jobs_of(old)), NEW_JOBS=str(jobs_of(new)))
    return FOLDER / "build" / "release" / program


def jobs_of(checkout: Path) -> Path:
    """Return the file with which a checkout's library is called."""
    return checkout / "benches" / "compare" / "jobs.rs"


def library(checkout: Path, name: str) -> str:
    """Return the manifest of a checkout's library under another name, without its tests and benchmarks."""
    text = (checkout / "Cargo.toml").read_text()
    kept = [part for part in sections(text) if not part.startswith(("[[", "[dev-", "[profile", "[workspace"))]
    text = "".join(kept).replace('name = "letterhead"', f'name = "{name}"')
    text = re.sub(r"^(readme|exclude|crate-type) = .*\n", "", text, flags=re.MULTILINE)
    return text.replace("[lib]\n", f'[lib]\npath = "{checkout / "src" / "lib.rs"}"\n')


def sections(manifest: str) -> list[str]:
    """Split a manifest before each of its tables."""
    return re.split(r"^(?=\[)", manifest, flags=re.MULTILINE)


def section(manifest: str, head: str) -> str:
    """Return one table of a manifest, or nothing if it has none of that name."""
    return next((part for part in sections(manifest) if part.startswith(head)), "")


def measure(program: Path, data: Path, rounds: int, corpora: list[str], jobs: list[str]) -> list[dict[str, Any]]:
    """Run the program on one core."""
    result = program.parent / f"{program.name}.json"
    pin = ["taskset", "-c", str((os.cpu_count() or 1) - 1)] if shutil.which("taskset") else []
    command = [*pin, str(program), str(data), str(result), str(rounds), ",".join(corpora), ",".join(jobs)]
    # The Python module sets this option of the allocator when it is imported.
    run(command, MIMALLOC_PURGE_DELAY=os.environ.get("MIMALLOC_PURGE_DELAY", "10000"))
    return json.loads(result.read_text())


def run(command: list[str], **environment: str) -> None:
    """Run a program, and exit if it fails; it has printed why."""
    code = subprocess.run(command, env={**os.environ, **environment}, check=False).returncode
    if code != 0:
        sys.exit(f"exit code {code}: {shlex.join(command)}")


def compared(results: list[dict[str, Any]], bars: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each job, and one more where it has been compared with memcpy."""
    results = sorted(results, key=lambda result: JOBS.index(result["job"]))
    for result in results:
        job, corpus_name, ns = result["job"], result["corpus"], result["ns"]
        bar = BARS[bars].get(job, {}).get(corpus_name)
        ratio = quartiles([old / new for old, new in zip(ns["old"], ns["new"], strict=True)])
        yield {
            "job": job, "corpus": corpus_name, "batch": result["batch"],
            "old": statistics.median(ns["old"]), "new": statistics.median(ns["new"]), "ratio": ratio,
            "bar": bar and f">= {bar}", "passes": bar and ratio[1] >= AT_LEAST * bar,
        }  # fmt: skip
    for result in results:
        if result["job"] != "decode":
            continue
        ns, most = result["ns"], MOST_MEMCPY.get(bars)
        old, new = (
            statistics.median([taken / copy for taken, copy in zip(ns[side], ns["memcpy"], strict=True)])
            for side in ("old", "new")
        )
        yield {
            "job": "decode / memcpy", "corpus": result["corpus"], "batch": result["batch"],
            "old": old, "new": new, "ratio": None, "bar": most and f"<= {most}", "passes": most and new <= most,
        }  # fmt: skip


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, method="inclusive")
    return low, middle, high


def table(rows: list[dict[str, Any]]) -> str:
    """Lay the rows out for a terminal."""
    lines = [f"{'job':19}{'corpus':8}{'batch':>7}{'old':>9}{'new':>9}   {'old/new':22}{'bar':9}verdict"]
    for row in rows:
        low, middle, high = row["ratio"] or (0, 0, 0)
        ratio = f"{middle:.3f} [{low:.3f}-{high:.3f}]" if row["ratio"] else ""
        verdict = {None: "", True: "pass", False: "MISS"}[row["passes"]]
        lines.append(
            f"{row['job']:19}{row['corpus']:8}{row['batch']:>7}{row['old']:9.2f}{row['new']:9.2f}   {ratio:22}"
            f"{row['bar'] or '':9}{verdict}".rstrip()
        )
    return "\n".join(lines)


def commit(checkout: Path) -> str:
    """Name the commit of a checkout, with a plus if its sources have changed since."""
    git = ("git", "-C", str(checkout))
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    dirty = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "Cargo.toml"], check=False)
    return (head.stdout.strip() or "unknown") + "+" * (dirty.returncode == 1)


if __name__ == "__main__":
    sys.exit(main())
