"""Build the targets, fuzz each of them format by format, and print a table of the runs.

``make fuzz`` passes the time for each target. ``--runs`` sets a number of executions for each format instead. Only Python,
the nightly toolchain and cargo-fuzz are needed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import keep
import seeds

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
ARTIFACTS = HERE / "artifacts"

NEEDED = {
    "nightly": (["cargo", "+nightly", "--version"], "rustup toolchain install nightly --profile minimal"),
    "cargo-fuzz": (["cargo", "fuzz", "--version"], "cargo install cargo-fuzz"),
}

HEADS = ("target", "format", "executions", "seconds", "edges", "features", "inputs", "findings")


@dataclass
class Ran:
    """The result of one run.

    Attributes
    ----------
    target, format : str
        The target and the format that were fuzzed.
    executions : int
        Number of inputs that were run.
    seconds : int
        Wall time.
    edges, features : int
        Coverage, as libFuzzer counts it.
    inputs : int
        Inputs in the corpus at the end.
    findings : int
        1 if the run ended with a crash, a leak or a timeout.
    """

    target: str
    format: str
    executions: int
    seconds: int
    edges: int
    features: int
    inputs: int
    findings: int


def main() -> int:
    """Run the requested targets; return 1 if there was a finding."""
    args = _arguments()
    _need_tools()
    seeds.write(CORPUS)
    keep.unpack(CORPUS)
    built = _build(args.sanitizer, args.compares)
    targets = args.targets.split() or sorted(path.stem for path in (HERE / "fuzz_targets").glob("*.rs"))
    rows = []
    for target in targets:
        formats = _formats(target, args.formats.split())
        for format in formats:
            rows.append(_run(built / target, target, format, args, len(formats)))
            if args.record:
                with args.record.open("a", encoding="utf-8") as record:
                    how = (args.sanitizer, args.compares, args.longest)
                    print(*astuple(rows[-1]), *how, args.label, sep="\t", file=record)
            if rows[-1].findings:
                print(f"{target} of {format}: see {ARTIFACTS / target / format}", file=sys.stderr)
    _show(rows)
    return int(any(row.findings for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--time", type=int, default=60, help="seconds for each target, shared by its formats")
    parser.add_argument("--runs", type=int, default=0, help="executions of each format, instead of a time")
    parser.add_argument("--most", type=int, default=0, help="with --runs, the most seconds for a format")
    parser.add_argument("--targets", default="", help="names separated by spaces (default: all)")
    parser.add_argument("--formats", default="", help="names separated by spaces (default: all)")
    parser.add_argument("--sanitizer", default="address", choices=["address", "none"])
    parser.add_argument("--compares", default="yes", choices=["yes", "no"], help="trace comparisons; no is faster")
    parser.add_argument("--longest", type=int, default=4096, help="the most bytes of an input; short inputs run faster")
    parser.add_argument("--record", type=Path, help="file to append a line for each run to")
    parser.add_argument("--label", default="", help="label of the runs in that file, such as a commit")
    return parser.parse_args()


def _need_tools() -> None:
    for name, (command, how) in NEEDED.items():
        try:
            present = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            present = False
        if not present:
            sys.exit(f"{name} is needed: {how}")


def _build(sanitizer: str, compares: str) -> Path:
    command = ["cargo", "+nightly", "fuzz", "build", "--sanitizer", sanitizer]
    command += ["--no-trace-compares"] if compares == "no" else []
    subprocess.run(command, cwd=HERE.parent, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target"))
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    [triple] = re.findall(r"^host: (\S+)$", host, re.MULTILINE)
    return (HERE.parent / target / triple / "release").resolve()


def _formats(target: str, requested: list[str]) -> list[str]:
    known = sorted(path.name for path in (CORPUS / target).iterdir())
    return [name for name in known if name in requested or not requested]


def _run(binary: Path, target: str, format: str, args: argparse.Namespace, share: int) -> Ran:
    corpus, artifacts = CORPUS / target / format, ARTIFACTS / target / format
    artifacts.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={max(1, args.time // share)}"]
    if args.runs:
        limits = [f"-runs={args.runs}", f"-max_total_time={args.most}"]
    command = [binary, corpus, *limits, f"-max_len={args.longest}", "-timeout=20", "-print_final_stats=1"]
    environment = {**os.environ, "LETTERHEAD_FUZZ_FORMAT": format}
    # As cargo fuzz does: the extension module is built beside the library and has the same symbols.
    environment["ASAN_OPTIONS"] = "detect_odr_violation=0:" + os.environ.get("ASAN_OPTIONS", "")
    start = time.monotonic()
    log = artifacts / "log.txt"
    with log.open("w", encoding="utf-8") as out:
        ran = subprocess.run(
            [*command, f"-artifact_prefix={artifacts}{os.sep}"], env=environment, stderr=out, stdout=out, check=False
        )
    text = log.read_text(encoding="utf-8", errors="replace")
    counted = re.findall(r"^stat::number_of_executed_units: (\d+)", text, re.MULTILINE)
    # A finding ends the run before it is counted; then the last line of progress has the number.
    counted = counted or re.findall(r"^#(\d+)\t", text, re.MULTILINE) or ["0"]
    reached = re.findall(r"cov: (\d+) ft: (\d+)", text) or [("0", "0")]
    edges, features = map(int, reached[-1])
    seconds = round(time.monotonic() - start)
    inputs = len(list(corpus.iterdir()))
    return Ran(target, format, int(counted[-1]), seconds, edges, features, inputs, int(ran.returncode != 0))


def _show(rows: list[Ran]) -> None:
    lines = [HEADS, *(tuple(f"{item:,}" if isinstance(item, int) else item for item in astuple(row)) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADS))]
    columns = min(shutil.get_terminal_size().columns, sum(widths) + 2 * len(widths))
    for number, line in enumerate(lines):
        items = [
            item.ljust(width) if place < 2 else item.rjust(width)
            for place, (item, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(items))
        if number == 0:
            print("-" * columns)
    print(f"{sum(row.executions for row in rows):,} executions, {sum(row.findings for row in rows)} findings")


if __name__ == "__main__":
    sys.exit(main())
