"""How much memory a process has at most that reads a topic, or segments, batch by batch and keeps none.

Prints, in MiB, the resident set before the first batch, the largest one, and the largest of it that is the process's own:
segments are mapped, and pages of theirs that were looked at count as resident while the system has no better use for
them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import letterhead as lh
from benches.direct import records

WANTED: dict[str, dict[str, Any]] = {
    "three typed headers": {"columns": ["offset"], "headers": records.typed()},
    "all columns": {"columns": ["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"]},
}  # fmt: skip


def main() -> None:
    """Read, check and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=WANTED)
    parser.add_argument("rows", type=int, help="how many records: the first ones of both partitions")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--address")
    options = parser.parse_args()
    selection, end = WANTED[options.job], options.rows // records.PARTITIONS
    if options.address:
        ends = dict.fromkeys(range(records.PARTITIONS), end)
        reader: Any = lh.read.topic(records.TOPIC, bootstrap_servers=options.address, end=ends, **selection)
    else:
        reader = lh.read.segments(options.directory, end=end, **selection)
    before, own, rows, offsets = status("VmRSS"), 0.0, 0, 0
    for batch in reader:
        rows += len(batch)
        offsets += pc.sum(batch.column("offset")).as_py()
        own = max(own, status("RssAnon"))
    answer = records.answer(options.rows)
    assert (rows, offsets) == (answer.rows, answer.offsets), (options.job, rows, offsets)
    # Not `ru_maxrss`: that begins with what the process had that started this one.
    print(json.dumps({"before": before, "peak": status("VmHWM"), "own": own}))


def status(name: str) -> float:
    """Read a line of what the kernel says of this process, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


if __name__ == "__main__":
    main()
