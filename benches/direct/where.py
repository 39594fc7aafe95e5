"""Read log segments with a condition on a header, against reading all columns of all records.

Run `python -m benches.direct.where [none|lz4|zstd ...]`. The records are those of `tests/samples/orders-0`, repeated. Prints
CPU time for each record and the ratio to the full read, all from one process; every answer is verified.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import letterhead as lh
from benches.data import QUICK, SAMPLES

REPEATS = 1 if QUICK else 50
PER_BATCH = 250

CONDITIONS = {
    "1 %": lh.col("ce_id", "string") < "03",
    "14 %": lh.col("tenant") == "acme",
    "97 %": lh.col("ce_id", "string") >= "0",
    "1 % by offset": lh.col("offset") < 100 * REPEATS,
}


def write_segment(folder: Path, codec: Any) -> int:
    """Write the sample's records several times; return how many there are."""
    with lh.read.segments(SAMPLES / "orders-0", columns=["timestamp", "key", "value", "headers"]) as reader:
        rows = reader.read_all().to_pylist()
    batches = []
    for first in range(0, len(rows), PER_BATCH):
        messages = [
            lh.Message(
                offset=at,
                timestamp=round(row["timestamp"].timestamp() * 1000),
                key=row["key"],
                value=row["value"],
                headers=[(header["key"], header["value"]) for header in row["headers"]],
            )
            for at, row in enumerate(rows[first : first + PER_BATCH])
        ]
        batches.append(lh.batch(messages, "record-batch", codec=codec))
    folder.mkdir()
    with (folder / "00000000000000000000.log").open("wb") as file:
        for number in range(REPEATS * len(batches)):
            # No checksum covers the base offset.
            file.write(struct.pack(">q", number * PER_BATCH) + batches[number % len(batches)][8:])
    return REPEATS * len(rows)


def read(folder: Path, where: Any = None) -> int:
    """Read all columns; return the number of records."""
    with lh.read.segments(folder, where=where) as reader:
        return sum(len(batch) for batch in reader)


def cpu_seconds(run: Callable[[], int], expected: int) -> float:
    """Return the least CPU time of several runs."""
    times = []
    for _ in range(1 if QUICK else 5):
        start = time.process_time()
        found = run()
        times.append(time.process_time() - start)
        assert found == expected, (found, expected)
    return min(times)


def main() -> None:
    """Print a line for each codec and condition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("codecs", nargs="*", default=["none", "lz4"])
    with lh.read.segments(SAMPLES / "orders-0", headers={"ce_id": "string", "tenant": "string"}) as reader:
        sample = reader.read_all().to_pylist()
    answers = {
        "1 %": sum((row["ce_id"] or "x") < "03" for row in sample),
        "14 %": sum(row["tenant"] == "acme" for row in sample),
        "97 %": sum(row["ce_id"] is not None for row in sample),
        "1 % by offset": len(sample) // 100,
    }
    for codec in parser.parse_args().codecs:
        with tempfile.TemporaryDirectory() as folder:
            topic = Path(folder) / "orders-0"
            records = write_segment(topic, codec)
            full = cpu_seconds(lambda topic=topic, records=records: read(topic), records)
            print(f"{codec}: all columns of all records: {full / records * 1e9:.0f} ns for each")
            for name, where in CONDITIONS.items():
                run = cpu_seconds(lambda topic=topic, where=where: read(topic, where), answers[name] * REPEATS)
                print(f"{codec}: {name}: {run / records * 1e9:.0f} ns for each, {full / run:.2f} times as fast")


if __name__ == "__main__":
    main()
