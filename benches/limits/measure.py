"""How far the kernels are from the limits of one core: the Rust core, Kafka's Java, and Python, on the same corpora.

The sides take turns, so that a slow minute of the machine meets all of them: three turns, in each of which every job of
the core and of Python is timed in three rounds and every job of Java in one fork, warmed up for two seconds. Where the
processor has AVX-512, the core is there a second time, compiled for it, on what Java is compared with. Run it on one core
(`tools/bench limits` does); what else runs there is in the times, and the load is in the record.

    python -m benches.limits.measure RECORD      LETTERHEAD_BENCH=quick: small corpora, answers checked, nothing to record
    python -m benches.limits.measure --build     compiles the core, with all cores, and measures nothing
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benches import data
from benches.jvm import export
from benches.limits import corpus, from_python
from benches.limits.report import WIDE
from benches.machine import features, ran_on

ROOT = Path(__file__).resolve().parents[2]
QUICK = data.QUICK
FOLDER = ROOT / "target" / "limits" / ("quick" if QUICK else "full")
TURNS, ROUNDS = (1, 1) if QUICK else (3, 3)

JAVA_CORPORA = ("A",) if QUICK else ("A", "B")
JAVA_ROWS = (500,) if QUICK else (16_000, 64_000)
JAVA = "Kafka's Java"
WIDE_TARGET = "x86-64-v4"
WIDE_NEEDS = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
DIGITS = 5  # of a time, which is more than it is worth

LIMIT_SECONDS = 900  # for any one program


def main(record: Path | None) -> None:
    """Write the corpora, let the sides take turns, and record."""
    corpora = corpus.write(FOLDER, quick=QUICK)["corpora"]
    began, load = time.time(), []
    rows_by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for turn in range(TURNS):
        load.append(round(os.getloadavg()[0], 1))
        print(f"turn {turn + 1} of {TURNS}, load {load[-1]}", file=sys.stderr, flush=True)
        for row in one_turn(corpora):
            key = tuple(row.get(part) for part in ("side", "corpus", "curve", "at", "job", "batch", "buffers"))
            row["ns"] = [float(f"{taken:.{DIGITS}g}") for taken in row["ns"]]
            if key in rows_by_key:
                for rounds in ("ns", "faults"):
                    rows_by_key[key].get(rounds, []).extend(row.get(rounds, []))
            else:
                rows_by_key[key] = row
    if record is None:
        print(
            f"{len(rows_by_key)} measurements gave the right answers, in {time.time() - began:.0f} s", file=sys.stderr
        )
        return
    result = {
        "taken": time.strftime("%Y-%m-%d", time.gmtime(began)),
        "minutes": round((time.time() - began) / 60, 1),
        "load": load,
        "machine": machine(),
        "corpora": {name: {"rows": known["rows"], **all_of(known)} for name, known in corpora.items()},
        "results": list(rows_by_key.values()),
    }
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(one_row_a_line(result))


def one_turn(corpora: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return what all sides took."""
    yield from core("batches", ROUNDS)
    if is_wide_measured():
        yield from core("java", ROUNDS, wide=True)
    yield from java(corpora)
    # Each in a process of its own, as memory that was freed is no longer fresh.
    for _ in range(ROUNDS):
        yield from core("fresh", 1)
    yield from core("curves", ROUNDS)
    yield from from_python.measure(FOLDER, corpora, ROUNDS, quick=QUICK)


# `cargo test` builds in seconds, `cargo bench` with all optimisations.
CARGO = ("cargo", "test" if QUICK else "bench", "--quiet", "--locked", "--no-default-features", "--bench", "limits")


def build() -> None:
    """Compile the core, where it is not there yet, however long that takes."""
    for environment in [{}, *([wide_environment()] if is_wide_measured() else [])]:
        subprocess.run([*CARGO, "--no-run"], cwd=ROOT, env={**os.environ, **environment}, check=True)


def is_wide_measured() -> bool:
    """Return whether the build for AVX-512 runs as well; quick runs skip it."""
    return has_avx512() and not QUICK


def has_avx512() -> bool:
    """Return whether this processor runs code compiled for AVX-512."""
    return WIDE_NEEDS.issubset(features())


def wide_environment() -> dict[str, str]:
    """Return the settings that compile the same sources for AVX-512 into a folder of their own."""
    return {"RUSTFLAGS": f"-C target-cpu={WIDE_TARGET}", "CARGO_TARGET_DIR": str(ROOT / "target" / WIDE_TARGET)}


def core(benchmark: str, rounds: int, *, wide: bool = False) -> Iterator[dict[str, Any]]:
    """Run the Rust side."""
    result = FOLDER / f"{benchmark}.json"
    environment = wide_environment() if wide else {}
    run(*CARGO, "--", benchmark, str(FOLDER), str(result), str(rounds), environment=environment)
    for row in json.loads(result.read_text()):
        yield {"side": "memcpy" if row["job"] == "memcpy" else WIDE if wide else "letterhead", **row}


def java(corpora: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Run Kafka's own classes on the first rows of a corpus, again and again."""
    for name in JAVA_CORPORA:
        for rows in JAVA_ROWS:
            holds, keys = corpora[name]["holds"][str(rows)], [key for key, _ in corpora[name]["select"]]
            kept = data.HeaderCounts(*(holds[part] for part in ("headers", "key_bytes", "value_bytes", "nulls")))
            sums = [total for _, total in holds["selected"]]
            result = FOLDER / "java.json"
            run(
                *("java", "-cp", "target/jvm/classes:target/jvm/lib/*"),
                "org.apache.kafka.streams.state.internals.HeadersBenchmark",
                *("quick" if QUICK else "turn", str(result)),
                *export.arguments(name, FOLDER / f"{name}.bin", rows, keys, kept, sums),
            )
            for measured in json.loads(result.read_text()):
                taken = [score for fork in measured["primaryMetric"]["rawData"] for score in fork]
                yield {
                    "side": JAVA, "corpus": name, "job": measured["benchmark"].rpartition(".")[2], "batch": rows,
                    "rows": rows, "headers": kept.headers, "buffers": "garbage",
                    "ns": [score / kept.headers for score in taken],
                }  # fmt: skip


def run(*command: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Run a program, and show what it said if it failed."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        # What the module tells the allocator when it is imported.
        env={**os.environ, "MIMALLOC_PURGE_DELAY": "10000", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")


def machine() -> dict[str, Any]:
    """Describe the machine and the versions."""
    (kafka,) = (ROOT / "target" / "jvm" / "lib").glob("kafka-clients-*[0-9].jar")
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        **ran_on("src", "Cargo.toml", "Cargo.lock"),
        "huge_pages": pages.read_text().partition("[")[2].partition("]")[0] if pages.exists() else "unknown",
        "wide": WIDE_TARGET if has_avx512() else None,
        "kafka": kafka.stem.removeprefix("kafka-clients-"),
        "allocator": "mimalloc, which keeps pages for ten seconds",
    }


def all_of(known: dict[str, Any]) -> dict[str, int]:
    """Return what a whole corpus holds."""
    holds = known["holds"][str(known["rows"])]
    size = (FOLDER / known["file"]).stat().st_size - 4 * (known["rows"] + 1)
    return {"bytes": size, **{name: holds[name] for name in ("headers", "key_bytes", "value_bytes", "nulls")}}


def one_row_a_line(result: dict[str, Any]) -> str:
    """Write the record so that a change to it can be read."""
    rows = ",\n".join("  " + json.dumps(row) for row in result["results"])
    head = json.dumps({**result, "results": []}, indent=1)
    return head.replace('"results": []', f'"results": [\n{rows}\n ]') + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--build"]:
        build()
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
