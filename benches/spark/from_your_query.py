"""What people write to read headers in Spark against what does the same here: the queries of docs/how-to/from-your-query.md.

The code that is run is that of the page: of each section the block that makes `theirs` and the one that makes `ours`. They
read the sample of orders with a few headers more (:func:`topic`), repeated and shuffled to 100,000 rows, from Parquet, and
write to the noop sink. Both sides of a section run in turns, so that a slow minute of the machine meets both; what is
recorded is the ratio of the medians. Before that, both sides answer for the 10,000 rows of the topic, and in how many of
them they differ is compared with what is known (:data:`DIFFER`).

    python -m benches.spark.from_your_query [--record FILE] [--topic FILE]     LETTERHEAD_BENCH=quick: 10,000 rows, one round
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benches import data
from benches.spark.session import ROOT, start_spark, time_limit

PAGE = ROOT / "docs" / "how-to" / "from-your-query.md"
ROWS = 10_000 if data.QUICK else 100_000
ROUNDS = 1 if data.QUICK else 3
FILES = 4

# Rows of the topic in which theirs is not ours. All of these are wrong; tests/spark/test_from_your_query.py says how.
DIFFER = {1: 1_279, 2: 1_937, 3: 3_221, 4: 4_254, 5: 1_937, 6: 6_258, 7: 4_766, 8: 7_771}

FIRST_TIME = 1_767_225_600_000
STRINGS = ["007", "acme", "null", '"quoted"']
SPRING_TYPES = json.dumps({"customer": "java.lang.String", "total": "java.lang.Long"})


class Section(NamedTuple):
    """A section of the page."""

    number: int
    title: str
    theirs: str
    ours: str


def main() -> None:
    """Check both sides of every section, time them, print and record the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    parser.add_argument("--topic", type=Path, help="write the 10,000 rows of the topic to this Parquet file, and stop")
    options = parser.parse_args()
    if options.topic is not None:
        pq.write_table(topic(), options.topic)
        return
    path = generate()
    spark = start_spark()
    # All sides read rows; `benches.spark.engines` measures what Spark's default, columns as they are, saves an `arrow_udf`.
    spark.conf.set("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", "false")
    try:
        small = spark.createDataFrame(topic())
        results = [measure(spark, spark.read.parquet(str(path)), small, section) for section in sections()]
    finally:
        spark.stop()
    show(results)
    if options.record is not None:
        options.record.write_text(json.dumps({"rows": ROWS, "results": results}, indent=1) + "\n")


def topic() -> pa.Table:
    """Return the offsets and headers of the sample, with what it lacks added to every message that has headers."""
    table = pq.read_table(data.SAMPLES / "orders-0.parquet", columns=["offset", "headers"])
    rows = [
        headers and [*headers, *({"key": key, "value": value} for key, value in added(offset))]
        for offset, headers in zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    ]
    return pa.table({"offset": table["offset"], "headers": pa.array(rows, data.HEADERS_TYPE)})


def added(offset: int) -> Iterator[tuple[str, bytes]]:
    """Make the headers that are added to a message."""
    if offset % 5 == 4:
        yield "retry", struct.pack(">i", 9)
    yield "city", [b"Bern", "Zürich".encode(), "Zürich".encode("latin-1")][offset % 3]
    yield "delta", b"12" if offset % 50 == 7 else struct.pack(">i", offset % 7 - 3)
    device = f"device-{offset % 50}".encode()
    if offset % 9 == 8:
        yield "device", b"\xb1" + struct.pack(">i", len(device)) + device
    else:
        yield "device", (b"\xa3" if offset % 10 == 5 else b"\xa1") + bytes([len(device)]) + device
    yield "enqueued", b"\x83" + struct.pack(">q", FIRST_TIME + 37 * offset)
    sequence = -offset if offset % 10 == 2 else offset
    yield "sequence", b"\x55" + bytes([offset % 100]) if offset % 2 else b"\x81" + struct.pack(">q", sequence)
    yield "spring_json_header_types", SPRING_TYPES.encode()
    yield "customer", STRINGS[offset % 4].encode()
    yield "total", str(offset + 3_000_000_000 * (offset % 5 == 0)).encode()


def sections() -> list[Section]:
    """Return the sections of the page with their code."""
    parsed = []
    for part in re.split(r"\n## (?=[0-9]+\. )", PAGE.read_text())[1:]:
        part = part.partition("\n## ")[0]
        number, title = part.partition("\n")[0].split(". ", 1)
        blocks = re.findall(r"^```python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
        (theirs,) = (block for block in blocks if "theirs = " in block)
        (ours,) = (block for block in blocks if "ours = " in block)
        parsed.append(Section(int(number), title, theirs, ours))
    return parsed


def run(code: str, side: str, spark: Any, frame: Any) -> Any:
    """Run a block of the page on a frame, and give the frame it makes."""
    from pyspark.sql import functions as F

    import letterhead as lh
    from letterhead import spark as lhs

    names = {"spark": spark, "topic": frame, "lh": lh, "lhs": lhs, "F": F, "udf": F.udf}
    exec(compile(code, str(PAGE), "exec"), names)
    return names[side]


@contextmanager
def going_through(spark: Any, section: Section) -> Iterator[None]:
    """Set what theirs needs to end well, where it ends with an error otherwise."""
    if section.number == 1:
        spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.mapKeyDedupPolicy")


def differing(spark: Any, frame: Any, section: Section) -> int:
    """Count the rows in which theirs is not ours; a list is compared as its text, and so are bytes."""
    theirs, ours = (
        run(code, side, spark, frame) for code, side in ((section.theirs, "theirs"), (section.ours, "ours"))
    )
    columns = [name for name in theirs.columns if name != "offset"]

    def spelled(df: Any) -> dict[int, list[Any]]:
        rows = df.collect()
        assert len(rows) == frame.count(), section
        return {row["offset"]: [comparable(row[name]) for name in columns] for row in rows}

    with going_through(spark, section):
        left = spelled(theirs)
    right = spelled(ours)
    return sum(left[offset] != right[offset] for offset in left)


def comparable(value: Any) -> Any:
    """Return a value as text: an only element as itself, bytes as their number."""
    if isinstance(value, list):
        return None if not value else comparable(value[0]) if len(value) == 1 else str(value)
    if isinstance(value, bytes | bytearray):
        return str(int.from_bytes(value, "big", signed=True))
    if hasattr(value, "timestamp"):
        return str(round(value.timestamp() * 1000))
    return None if value is None else str(value)


def measure(spark: Any, frame: Any, small: Any, section: Section) -> dict[str, Any]:
    """Check a section on the topic, then time both sides on all rows."""
    with time_limit(f"{section.title}: answer"):
        differ = differing(spark, small, section)
    assert differ == DIFFER[section.number], (section.title, differ)
    seconds: dict[str, list[float]] = {"theirs": [], "ours": []}
    for number in range(ROUNDS + 1):
        # There and back, so that no side always follows the other.
        for side in list(seconds)[:: -1 if number % 2 else 1]:
            result = run(getattr(section, side), side, spark, frame)
            with time_limit(f"{section.title}: {side}"), going_through(spark, section):
                started = time.perf_counter()
                result.write.format("noop").mode("overwrite").save()
                seconds[side].append(time.perf_counter() - started)
            print(f"{section.title} round {number}: {side} {seconds[side][-1]:.2f} s", file=sys.stderr, flush=True)
    for taken in seconds.values():
        del taken[0]  # the first round is for the JIT, the page cache and the start of the workers
    ratio = statistics.median(seconds["theirs"]) / statistics.median(seconds["ours"])
    return {"section": section.number, "title": section.title, "differ": differ, "seconds": seconds, "ratio": ratio}


def generate() -> Path:
    """Write the rows to Parquet once, in files small enough that both cores get several tasks."""
    path = ROOT / "target" / "benches" / f"from-your-query-{ROWS}.parquet"
    if not (path / "_SUCCESS").exists():
        path.mkdir(parents=True, exist_ok=True)
        table = topic()
        table = table.take(pa.array(data.draw(len(table), ROWS)))
        for number in range(FILES):
            pq.write_table(table.slice(number * ROWS // FILES, ROWS // FILES), path / f"part-{number}.parquet")
        (path / "_SUCCESS").touch()
    return path


def show(results: list[dict[str, Any]]) -> None:
    """Print the medians and ratios."""
    print(
        f"\nfrom your query to ours, {ROWS:,} rows, local[2], noop sink" + (" (quick: times mean nothing)" * data.QUICK)
    )
    for row in results:
        theirs, ours = (statistics.median(row["seconds"][side]) for side in ("theirs", "ours"))
        print(f"  {row['section']}. {row['title']:36} {theirs:6.2f} s  ours {ours:6.2f} s  {row['ratio']:6.2f} x")


if __name__ == "__main__":
    main()
