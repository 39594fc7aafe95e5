"""Print one table of everything that was measured, from the raw results under `benches/record`.

Each line says how many nanoseconds one header took, or one row of a store, what that is of letterhead's own time for the
same work on the same data, how many rows one call had, how many bytes it read and wrote, and how the output's memory came about: without
those a figure means nothing. Results that are not there are left out, and named.

    python -m benches.run
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benches import goal, typed
from benches.direct import measure as direct
from benches.limits import report
from benches.machine import first_line, load_text, processor, ran_on
from benches.spark import pairs

RECORD = Path(__file__).resolve().parent / "record"
OURS = "letterhead"
LABEL = 50  # characters of the longest side

NOTES = """\
released  the output is freed before the next call; the allocator may hand the same pages back
fresh     every output is kept, so each call writes to pages that were never touched
reused    one output buffer, written again and again
objects   Python objects, freed before the next call
dropped   one message at a time, each result dropped before the next
garbage   Java objects, dropped at once; collecting them is in the time, keeping them would cost more
Python, Java and Iggy's crates ran on one core, unless it says all; Spark on two, with its input, both transports and its
sink in its time. x is the time as a multiple of letterhead's in the same group: above 1 is slower than letterhead. In
Spark, of what is read directly, and between Python's sides of a store, it is the median of the ratios within a round, so
it need not be the ratio of the medians. Take differences of less than 10 % for ties, and distrust everything that was
measured under a load of more than one."""


@dataclass(frozen=True)
class Row:
    """One measurement."""

    job: str
    source: str
    side: str
    ns: float  # of one header, or of one row
    batch_rows: int
    buffers: str
    memory: str
    ratio: float | None = None  # measured in pairs, where it was
    per: str = "header"


@dataclass(frozen=True)
class Bar:
    """A ratio that is aimed at: how many times the time of ours another side takes."""

    job: str
    side: str  # a pattern
    times: float
    ours: str = OURS


KEPT = ("python.json", "iggy-system.json", "iggy-mimalloc.json", "jvm-stores.json")
"""Results of which the medians are kept: with every round they are large."""

ROWS = RECORD / "rows.json"

SEND_MESSAGE = r"apache-iggy \S+ SendMessage"
BARS = [
    Bar("decode", r"crate iggy.*", 3),
    Bar("encode one message", SEND_MESSAGE, 3),
    Bar("encode one message", SEND_MESSAGE, 3, ours="letterhead, a column at once"),
    # At most three times what RocksDB takes alone.
    Bar("put a row", r"rocksdict \S+ alone.*", 1 / 3),
    Bar("get a row", r"rocksdict \S+ alone.*", 1 / 3),
    Bar("scan a store", r"letterhead, every key and value.*", 3),
    *(Bar(job, re.escape(side), times) for (job, side), times in direct.BARS.items()),
]


def main() -> None:
    """Read all available results, print the table, and write it beside the raw results."""
    readers = {
        "rust.txt": read_divan,
        "python.json": read_pytest_benchmark,
        "jvm.json": read_jmh,
        "jvm-stores.json": read_jmh_stores,
        "iggy-system.json": read_iggy,
        "iggy-mimalloc.json": read_iggy,
        "spark.json": read_spark,
        "spark-topology.json": read_topology,
        "direct.json": read_direct,
    }
    rows, missing, kept = [], [], []
    for name, read in readers.items():
        path = RECORD / name
        if path.exists():
            rows_of_file = list(read(path))
            rows += rows_of_file
            kept += rows_of_file if name in KEPT else []
        else:
            missing.append(name)
    if kept:
        head = {
            "taken": days(RECORD / name for name in KEPT),
            "machine": ran_on("src", "python", "Cargo.toml", "Cargo.lock"),
        }
        ROWS.write_text(json.dumps({**head, "rows": [asdict(row) for row in kept]}, indent=1) + "\n")
    absent = [f"not measured: {name}" for name in missing]
    text = "\n".join([machine(), "", *table(rows), *bars(rows), "", *limits(), *spark_bars(), NOTES, *absent])
    print(text)
    RECORD.mkdir(exist_ok=True)
    (RECORD / "table.txt").write_text(text + "\n")


def table(rows: list[Row]) -> Iterator[str]:
    """Lay the rows out, group by group, ours first, then by time."""
    for job, source in dict.fromkeys((row.job, row.source) for row in rows):
        group = [row for row in rows if (row.job, row.source) == (job, source)]
        group.sort(key=lambda row: (row.side != OURS, row.ns))
        ours = next((row.ns for row in group if row.side == OURS), None)
        yield f"{job}, {source}"
        yield f"  {'':{LABEL}} {f'ns/{group[0].per}':>9} {'x':>7}  {'rows a call':>11}  {'buffers':8}  memory a call"
        for row in group:
            ratio = row.ratio if row.ratio is not None else ours and row.ns / ours
            yield (
                f"  {row.side:{LABEL}} {row.ns:9.2f} {'' if ratio is None else format(ratio, '7.2f'):>7}"
                f"  {row.batch_rows:11,}  {row.buffers:8}  {row.memory}"
            )
        yield ""


def bars(rows: list[Row]) -> Iterator[str]:
    """Report for each targeted ratio whether it is reached."""
    yield f"{'aimed at':{2 + LABEL}} {'at least':>9} {'x':>7}"
    for bar, row, times in aimed_at(rows):
        verdict = goal.verdict(times, bar.times, at_least=True)
        against = "" if bar.ours == OURS else f", against `{bar.ours}`"
        yield f"  {row.side:{LABEL}} {bar.times:9.2f} {times:7.2f}  {verdict}: {row.job}, {row.source}{against}"


def aimed_at(rows: list[Row]) -> Iterator[tuple[Bar, Row, float]]:
    """Return every row that there is a bar for, and its time as a multiple of ours."""
    for bar in BARS:
        base = {row.source: row.ns for row in rows if (row.job, row.side) == (bar.job, bar.ours)}
        for row in rows:
            if row.job == bar.job and row.source in base and re.fullmatch(bar.side, row.side):
                yield bar, row, row.ratio if row.ratio is not None else row.ns / base[row.source]


def limits() -> Iterator[str]:
    """Report the same for single-core performance, which has a page of its own."""
    if report.RECORD.exists():
        yield from report.lines(report.Record.read())
    else:
        yield f"not measured: {report.RECORD.name}"
    yield ""


def spark_bars() -> Iterator[str]:
    """Report the same for Spark, where a ratio is the median of pairs and has an interval."""
    path = RECORD / "spark.json"
    if path.exists():
        record = json.loads(path.read_text())
        load = load_text(record["load"])
        yield f"aimed at in Spark, {record['rows']:,} rows, batches of {record['batch']:,}"
        yield from pairs.verdicts(record["bars"])
        yield f"  {record['processor']} with {' '.join(record['features'])}; load {load}"
        yield ""


def read_pytest_benchmark(path: Path) -> Iterator[Row]:
    """Read the Python side."""
    for benchmark in json.loads(path.read_text())["benchmarks"]:
        info = benchmark["extra_info"]
        writes = "Python objects" if info["writes"] is None else f"writes {megabytes(info['writes'])}"
        word, _, rest = info["buffers"].partition(":")
        per = info.get("per", "header")
        yield Row(
            job=info["job"],
            source=info["source"],
            side=info["side"],
            ns=benchmark["stats"]["median"] * 1e9 / info["rows" if per == "row" else "headers"],
            batch_rows=info["rows"],
            buffers="objects" if "Python objects" in rest else word,
            memory=f"reads {megabytes(info['reads'])}, {writes}",
            ratio=info.get("ratio"),
            per=per,
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
            ns=statistics.median(taken) / int(parameters["headers"]),
            batch_rows=int(parameters["rows"]),
            buffers="garbage",
            memory=f"reads and writes heap objects of {megabytes(content)} of keys and values",
        )


def read_jmh_stores(path: Path) -> Iterator[Row]:
    """Read the side of Kafka Streams' store: one operation is all rows."""
    jobs = {"put": "put a row", "get": "get a row"}
    for result in json.loads(path.read_text()):
        taken = [score for fork in result["primaryMetric"]["rawData"] for score in fork]
        parameters = result["params"]
        rows = int(parameters["rows"])
        yield Row(
            job=jobs[result["benchmark"].rpartition(".")[2]],
            source="rows of five headers and 100 bytes",
            side=f"Kafka Streams' Java store, metrics at {parameters['metrics']}",
            ns=statistics.median(taken) / rows,
            batch_rows=rows,
            buffers="garbage",
            memory="reads and writes heap objects",
            per="row",
        )


def read_iggy(path: Path) -> Iterator[Row]:
    """Read the side of Iggy's crates, which take one message a call."""
    record = json.loads(path.read_text())
    allocator = "" if record["allocator"] == "system" else f", {record['allocator']}"
    for result in record["results"]:
        yield Row(
            job=result["job"],
            source=typed.source(result["corpus"]),
            side=result["side"] + allocator,
            ns=statistics.median(result["ns_per_header"]),
            batch_rows=1,
            buffers="dropped",
            memory=f"reads {megabytes(result['reads'])} in {result['messages']:,} calls",
        )


def row_of(result: dict[str, Any], **fields: Any) -> Row:
    """Return the row of a job that releases its results; ``fields`` are the figures."""
    return Row(job=result["job"], source=result["source"], side=result["side"], buffers="released", **fields)


def read_spark(path: Path) -> Iterator[Row]:
    """Read the Spark side; nanoseconds of wall time on two cores."""
    for result in json.loads(path.read_text())["results"]:
        seconds = statistics.median(result["seconds"])
        yield row_of(
            result,
            ns=seconds * 1e9 / result["headers"],
            batch_rows=result["batch"],
            memory=f"{result['rows']:,} rows in {seconds:.2f} s ({len(result['seconds'])} runs)",
            ratio=result["ratio"],
        )


def read_topology(path: Path) -> Iterator[Row]:
    """Read what a row and a key cost a stream of Spark: differences of wall times, which noise can make negative."""
    for result in json.loads(path.read_text())["results"]:
        most = max(result["seconds"], key=int)  # the smaller job is what the difference is taken from
        seconds = statistics.median(result["seconds"][most])
        yield row_of(
            result,
            ns=result["ns"],
            batch_rows=result["rows"],
            memory=f"{result['rows']:,} rows in {seconds:.2f} s",
            per=result["per"],
        )


def read_direct(path: Path) -> Iterator[Row]:
    """Read what topics and segments took that were read directly; nanoseconds of wall time a record."""
    for result in json.loads(path.read_text())["results"]:
        seconds = statistics.median(result["seconds"])
        yield row_of(
            result,
            ns=seconds * 1e9 / result["rows"],
            batch_rows=result["rows"],
            memory=f"{result['rows']:,} records in {seconds:.3f} s ({len(result['seconds'])} runs)",
            ratio=result["ratio"],
            per="row",
        )


LEAF = re.compile(r"^(?P<tree>[│ ]*)[├╰]─ (?P<name>\S+)")
RATE = re.compile(r"([\d.]+) ([KMGT]?)item/s")
ITEMS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
RUST_ROWS = 16_000  # ROWS in benches/rust/kernels.rs


def read_divan(path: Path) -> Iterator[Row]:
    """Read the Rust side from divan's tree, in which an item is a header: `work` or `work/batch`, then the rates."""
    branch: list[str] = []
    seconds: dict[tuple[str, str], float] = {}
    for line in path.read_text().splitlines():
        leaf = LEAF.match(line)
        if leaf:
            branch = [*branch[: len(leaf["tree"]) // 3], leaf["name"]]
        rates = RATE.findall(line)
        if len(rates) >= 3:
            number, prefix = rates[2]  # fastest, slowest, median, mean
            work, batch = branch if len(branch) == 2 else (branch[0], "regular")
            seconds[batch, work] = 1e9 / (float(number) * ITEMS[prefix])
    for (batch, work), ns_per_header in sorted(seconds.items()):
        copy = seconds.get((batch, "memcpy"))
        yield Row(
            job="Rust core, no Python",
            source=f"batch `{batch}` of benches/rust",
            side=work,
            ns=ns_per_header,
            batch_rows=RUST_ROWS,
            buffers="reused" if work == "memcpy" else "released",
            memory="" if copy is None or work == "memcpy" else f"{ns_per_header / copy:.1f} x memcpy of this batch",
        )


def days(paths: Iterable[Path]) -> list[str]:
    """Return the days on which results were written."""
    written = (path.stat().st_mtime for path in paths if path.exists())
    return sorted({time.strftime("%Y-%m-%d", time.gmtime(seconds)) for seconds in written})


def machine() -> str:
    """Describe the machine."""
    versions = [
        f"Python {platform.python_version()}",
        first_line("rustc", "--version"),
        first_line("java", "--version"),
    ]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; {'; '.join(versions)}; load {load}"


def megabytes(count: int) -> str:
    """Write a number of bytes."""
    return f"{count / 1e6:.2f} MB"


if __name__ == "__main__":
    main()
