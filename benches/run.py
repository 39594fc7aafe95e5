"""Print one table of everything that was measured, from the raw results under `benches/record`.

Each line says how many nanoseconds one header took, what that is of letterhead's own time for the same work on the
same data, how many rows one call had, how many bytes it read and wrote, and how the output's memory came about: without
those a figure means nothing. Results that are not there are left out, and named.

    python -m benches.run
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "record"
OURS = "letterhead"

NOTES = """\
released  the output is freed before the next call; the allocator may hand the same pages back
fresh     every output is kept, so each call writes to pages that were never touched
reused    one output buffer, written again and again
objects   Python objects, freed before the next call
garbage   Java objects, dropped at once; collecting them is in the time, keeping them would cost more
Python and Java ran on one core; Spark on two, with Parquet, both transports and the noop sink in its time.
x is the time as a multiple of letterhead's in the same group: above 1 is slower than letterhead. In Spark it is the
median of the ratios within a round, so it need not be the ratio of the medians. Take differences of less than 10 % for
ties, and distrust everything that was measured under a load of more than one."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    job: str
    source: str
    side: str
    ns_per_header: float
    batch_rows: int
    buffers: str
    memory: str
    ratio: float | None = None  # measured in pairs, where it was


def main() -> None:
    """Read what there is, print the table, keep it beside the raw results."""
    readers = {
        "rust.txt": read_divan,
        "python.json": read_pytest_benchmark,
        "jvm.json": read_jmh,
        "spark.json": read_spark,
    }
    rows, missing = [], []
    for name, read in readers.items():
        path = RECORD / name
        if path.exists():
            rows += read(path)
        else:
            missing.append(name)
    text = "\n".join([machine(), "", *table(rows), "", NOTES, *(f"not measured: {name}" for name in missing)])
    print(text)
    RECORD.mkdir(exist_ok=True)
    (RECORD / "table.txt").write_text(text + "\n")


def table(rows: list[Row]) -> Iterator[str]:
    """Lay the rows out, group by group, ours first, then by time."""
    for job, source in dict.fromkeys((row.job, row.source) for row in rows):
        group = [row for row in rows if (row.job, row.source) == (job, source)]
        group.sort(key=lambda row: (row.side != OURS, row.ns_per_header))
        ours = next((row.ns_per_header for row in group if row.side == OURS), None)
        yield f"{job}, {source}"
        yield f"  {'':36} {'ns/header':>9} {'x':>7}  {'rows a call':>11}  {'buffers':8}  memory a call"
        for row in group:
            ratio = row.ratio if row.ratio is not None else ours and row.ns_per_header / ours
            yield (
                f"  {row.side:36} {row.ns_per_header:9.2f} {'' if ratio is None else format(ratio, '7.2f'):>7}"
                f"  {row.batch_rows:11,}  {row.buffers:8}  {row.memory}"
            )
        yield ""


def read_pytest_benchmark(path: Path) -> Iterator[Row]:
    """Read the Python side."""
    for benchmark in json.loads(path.read_text())["benchmarks"]:
        info = benchmark["extra_info"]
        writes = "Python objects" if info["writes"] is None else f"writes {megabytes(info['writes'])}"
        word, _, rest = info["buffers"].partition(":")
        yield Row(
            job=info["job"],
            source=info["source"],
            side=info["side"],
            ns_per_header=benchmark["stats"]["median"] * 1e9 / info["headers"],
            batch_rows=info["rows"],
            buffers="objects" if "Python objects" in rest else word,
            memory=f"reads {megabytes(info['reads'])}, {writes}",
        )


def read_jmh(path: Path) -> Iterator[Row]:
    """Read the Java side: one operation is a whole batch; the median over all iterations of all forks."""
    groups = {
        "decode": ("decode", "store blocks (kafka)"),
        "select": ("select 3", "store blocks (kafka)"),
        "encode": ("encode", "store headers to blocks (kafka)"),
    }
    for result in json.loads(path.read_text()):
        name = result["benchmark"].rpartition(".")[2]
        job, source = groups[name]
        taken = [score for fork in result["primaryMetric"]["rawData"] for score in fork]
        parameters = result["params"]
        content = int(parameters["keyBytes"]) + int(parameters["valueBytes"])
        yield Row(
            job=job,
            source=source,
            side="Kafka's Java " + ("HeadersSerializer" if name == "encode" else "HeadersDeserializer"),
            ns_per_header=statistics.median(taken) / int(parameters["headers"]),
            batch_rows=int(parameters["rows"]),
            buffers="garbage",
            memory=f"reads and writes heap objects of {megabytes(content)} of keys and values",
        )


def read_spark(path: Path) -> Iterator[Row]:
    """Read the Spark side; nanoseconds of wall time on two cores."""
    for result in json.loads(path.read_text())["results"]:
        seconds = statistics.median(result["seconds"])
        yield Row(
            job=result["job"],
            source=result["source"],
            side=result["side"],
            ns_per_header=seconds * 1e9 / result["headers"],
            batch_rows=result["batch"],
            buffers="released",
            memory=f"{result['rows']:,} rows in {seconds:.2f} s ({len(result['seconds'])} runs)",
            ratio=result["ratio"],
        )


LEAF = re.compile(r"^(?P<tree>[│ ]*)[├╰]─ (?P<name>\S+)")
RATE = re.compile(r"([\d.]+) ([KMGT]?)item/s")
ITEMS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
RUST_ROWS = 16_000  # ROWS in benches/rust/kernels.rs


def read_divan(path: Path) -> Iterator[Row]:
    """Read the Rust side from divan's tree, in which an item is a header: `work` or `work/batch`, then the rates."""
    branch: list[str] = []
    found: dict[tuple[str, str], float] = {}
    for line in path.read_text().splitlines():
        leaf = LEAF.match(line)
        if leaf:
            branch = [*branch[: len(leaf["tree"]) // 3], leaf["name"]]
        rates = RATE.findall(line)
        if len(rates) >= 3:
            number, prefix = rates[2]  # fastest, slowest, median, mean
            work, batch = branch if len(branch) == 2 else (branch[0], "regular")
            found[batch, work] = 1e9 / (float(number) * ITEMS[prefix])
    for (batch, work), ns_per_header in sorted(found.items()):
        copy = found.get((batch, "memcpy"))
        yield Row(
            job="Rust core, no Python",
            source=f"batch `{batch}` of benches/rust",
            side=work,
            ns_per_header=ns_per_header,
            batch_rows=RUST_ROWS,
            buffers="reused" if work == "memcpy" else "released",
            memory="" if copy is None or work == "memcpy" else f"{ns_per_header / copy:.1f} x memcpy of this batch",
        )


def machine() -> str:
    """Say what this ran on."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next((line.split(":")[1].strip() for line in cpuinfo.open() if line.startswith("model name")), model)
    versions = [
        f"Python {platform.python_version()}",
        first_line("rustc", "--version"),
        first_line("java", "--version"),
    ]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; {'; '.join(versions)}; load {load}"
    )


def first_line(*command: str) -> str:
    """Give the first line that a command prints."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return f"{command[0]} not found"


def megabytes(count: int) -> str:
    """Write a number of bytes."""
    return f"{count / 1e6:.2f} MB"


if __name__ == "__main__":
    main()
