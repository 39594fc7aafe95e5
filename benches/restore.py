"""Compare a restore with that of Kafka Streams, in one run, from the same changelog on one broker.

    python -m benches.restore [RECORDS] [--record FILE]

The changelog has records of five headers and 100 bytes (`benches.stores`), by default a million with keys of their own.
Kafka Streams, in the reference version of docs/versions.toml, restores its key-value store with headers from it in a process of its own, and measures from the start
of the restore to its end, without its start and without closing the store. Ours is measured as a user calls it: from the
connection to the broker, or the opening of the log segments, until the directory is closed and in its place. CPU is that
of the process, its threads included. The directories must be equal, or nothing is printed.

Two more restores show where the CPU time goes and how much memory partitions take: one of each source with its parts
measured, a thread at a time, and one of a Parquet file in a process of its own, of one partition and of eight.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from benches.machine import ran_on
from tests.versions import REFERENCE, built

ROOT = Path(__file__).resolve().parents[1]

APP, STORE = "bench", "store"
CHANGELOG = f"{APP}-{STORE}-changelog"
BAR = 3.0
ROUNDS = 4
JAVA = f"Kafka Streams {REFERENCE}"
PARTITIONS = (1, 8)
BATCH = 50_000
JVM = built("jvm-tests", REFERENCE)


def records(count: int) -> Iterator[tuple[bytes, bytes, int, list[tuple[str, bytes]]]]:
    """Yield records with keys in random order."""
    choose = random.Random(1271)
    keys = choose.sample(range(100_000_000), count)
    for number, key in enumerate(keys):
        headers = [
            ("tenant", b"acme-%04d" % choose.randrange(10_000)),
            ("traceparent", b"00-%032x-%016x-01" % (choose.getrandbits(128), choose.getrandbits(64))),
            ("retry", struct.pack(">i", choose.randrange(6))),
            ("amount_cents", struct.pack(">q", choose.randrange(1_000_000))),
            ("content-type", b"application/json"),
        ]
        yield b"customer-%08d" % key, choose.randbytes(100), 1_767_225_600_000 + number, headers


def produce(address: str, count: int) -> None:
    """Create the topics, and write the changelog."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    for created in admin.create_topics([NewTopic("in", 1, 1), NewTopic(CHANGELOG, 1, 1)]).values():
        created.result()
    producer = Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 1_000_000, "linger.ms": 20})
    for key, value, timestamp, headers in records(count):
        while True:
            try:
                producer.produce(CHANGELOG, value, key, 0, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                producer.poll(1)
    producer.flush()


def of_kafka_streams(address: str, state: Path) -> dict[str, Any]:
    """Restore with Kafka Streams, and close the store."""
    program = "letterhead.testing.streams.StreamsApp"
    command = ["java", "-Xmx1g", "-cp", f"{JVM / 'classes'}:{JVM / 'lib'}/*", program, address, APP, str(state), "in"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        restored = json.loads(process.stdout.readline())
        assert process.stdout.readline() == "running\n"
        process.stdin.close()
    return {"wall": restored["ns"] / 1e9, "cpu": restored["cpu_ns"] / 1e9, "records": restored["records"]}


def of_ours(source: Any, task: Path, count: int) -> dict[str, Any]:
    """Restore with letterhead."""
    from letterhead import state

    wall, cpu = time.perf_counter(), time.process_time()
    done = state.restore(opened(source), task, STORE)
    result = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "records": done.records}
    assert done.records == count
    return result


def opened(source: Any) -> Any:
    """Return the source of a restore: a path, or a reader of the topic."""
    import letterhead as lh

    if isinstance(source, Path):
        return source
    return lh.read.topic(CHANGELOG, bootstrap_servers=source, isolation_level="read_committed", batch_bytes=8 << 20)


def parts(source: Any, task: Path) -> dict[str, float]:
    """Return the seconds of CPU of each part of a restore."""
    from letterhead import state
    from letterhead.state.restoring import bulk_rows, changelog_records
    from letterhead.state.storage.database import Database

    before = time.process_time()
    for _ in changelog_records.changelog_records(opened(source)):
        pass
    spent = {"read": time.process_time() - before}
    names = {
        "encode": (bulk_rows, "rows_of"),
        "sort": (bulk_rows, "_last_by_key"),
        "write files": (Database, "add_file"),
        "flush and close": (Database, "flush"),
        " close": (Database, "close"),
    }
    originals = {part: getattr(owner, name) for part, (owner, name) in names.items()}

    def measured(part: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            started = time.thread_time()
            try:
                return originals[part](*arguments, **options)
            finally:
                spent[part] = spent.get(part, 0.0) + time.thread_time() - started

        return call

    try:
        for part, (owner, name) in names.items():
            setattr(owner, name, measured(part))
        before = time.process_time()
        state.restore(opened(source), task, STORE)
        whole = time.process_time() - before
    finally:
        for part, (owner, name) in names.items():
            setattr(owner, name, originals[part])
    spent["flush and close"] += spent.pop(" close")
    spent["rest, with RocksDB's own threads"] = whole - sum(spent.values())
    return spent


def write_parquet(paths: dict[int, Path], count: int) -> None:
    """Write the changelog to a file for each number of partitions, among which its records are divided in turns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    field = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    types = {"key": pa.binary(), "value": pa.binary(), "timestamp": pa.int64(), "headers": pa.list_(field)}
    places = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    with ExitStack() as opened:
        schema = pa.schema(types | places)
        writers = {
            partitions: opened.enter_context(pq.ParquetWriter(path, schema, compression="none"))
            for partitions, path in paths.items()
        }
        for first, some in zip(range(0, count, BATCH), batched(records(count), BATCH), strict=True):
            columns = [
                pa.array(column, type) for column, type in zip(zip(*some, strict=True), types.values(), strict=True)
            ]
            numbers = range(first, first + len(some))
            for partitions, writer in writers.items():
                place = [
                    [CHANGELOG] * len(some),
                    [number % partitions for number in numbers],
                    [number // partitions for number in numbers],
                ]
                arrays = [pa.array(column, type) for column, type in zip(place, places.values(), strict=True)]
                writer.write_table(pa.table([*columns, *arrays], schema))


def batched(items: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """Yield the items in lists of that length, the last one shorter."""
    while some := list(islice(items, count)):
        yield some


def memory(path: Path, directory: Path) -> int:
    """Restore a file in a process of its own, and return by how many bytes its memory grew at most."""
    command = [sys.executable, "-m", "benches.restore", "--restore", str(path), str(directory)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd=ROOT)
    return int(done.stdout)


def restore_file(path: Path, directory: Path) -> None:
    """Restore a file, and print by how many bytes the memory of the process grew at most."""
    from letterhead import state

    # With all that it imports.
    state.restore(ROOT / "tests" / "samples" / "orders-app-latest-changelog-0", directory / "warm", "latest")
    before = most_memory()
    state.restore(path, directory / "0_{partition}", STORE)
    print(most_memory() - before)


def most_memory() -> int:
    """Return the most bytes of memory that this process had; `getrusage` begins with those of its parent."""
    (most,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(most) * 1024


def rows(task: Path) -> tuple[int, bytes]:
    """Return the number of rows of a store and a digest of them; rows that stay in memory would slow down what follows."""
    from letterhead.state.storage.database import StoredFamilies

    count, digest = 0, hashlib.sha256()
    with StoredFamilies(task / "rocksdb" / STORE) as families:
        for key, value in families.rows("keyValueWithTimestampAndHeaders"):
            count += 1
            digest.update(struct.pack(">II", len(key), len(value)) + key + value)
    return count, digest.digest()


def main() -> None:
    """Print one line for each side, and the ratios of Kafka Streams' time to ours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--record", type=Path, help="where to write the results as JSON")
    parser.add_argument("--restore", nargs=2, type=Path, metavar=("PARQUET", "DIRECTORY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.restore is not None:
        restore_file(*options.restore)
        return
    load = [os.getloadavg()]
    directory = Path(tempfile.mkdtemp(prefix="letterhead-restore-"))
    try:
        record = compared(directory, options.records)
        record["memory"] = {}
        paths = {partitions: directory / f"{partitions}.parquet" for partitions in PARTITIONS}
        write_parquet(paths, options.records)
        for partitions, path in paths.items():
            record["memory"][partitions] = memory(path, directory / f"memory {partitions}")
            print(f"{partitions} partitions: {record['memory'][partitions] / 2**20:.0f} MiB", flush=True)
    finally:
        shutil.rmtree(directory)
    load.append(os.getloadavg())
    if options.record is not None:
        head = {"records": options.records, "load": load, "machine": ran_on("src", "python", "benches")}
        options.record.write_text(json.dumps(head | record, indent=1) + "\n")


def compared(directory: Path, count: int) -> dict[str, Any]:
    """Restore with both, in rounds, then measure the parts of ours."""
    from tests.kafka.broker import Broker

    broker = Broker(directory / "broker")
    broker.start()
    try:
        produce(broker.address, count)
        (segments,) = (directory / "broker" / "data").glob(f"{CHANGELOG}-0")
        sources = {"topic": broker.address, "log segments": segments}
        taken: dict[str, list[dict[str, Any]]] = {}
        for turn in range(ROUNDS):
            sides = {JAVA: lambda at: of_kafka_streams(broker.address, at)}
            sides |= {name: lambda at, source=source: of_ours(source, at / APP / "0_0", count)
                      for name, source in sources.items()}  # fmt: skip
            expected = None
            for side, restored in sides.items():
                state = directory / f"{side} {turn}"
                result = restored(state)
                assert result["records"] == count, result
                taken.setdefault(side, []).append(result)
                now = rows(state / APP / "0_0")
                assert now[0] == count
                assert expected in (None, now), side
                expected = now
                shutil.rmtree(state)
                print(f"round {turn}: {side:20} {result['wall']:6.2f} s, CPU {result['cpu']:6.2f} s", flush=True)
        best = {
            side: {clock: min(run[clock] for run in results) for clock in ("wall", "cpu")}
            for side, results in taken.items()
        }
        java = best.pop(JAVA)
        ratios = {side: {clock: java[clock] / ours[clock] for clock in ours} for side, ours in best.items()}
        for side, ratio in ratios.items():
            met = "met" if ratio["wall"] >= BAR else "missed"
            print(f"{side}: {ratio['wall']:.1f} times the speed, {ratio['cpu']:.1f} of CPU; bar {BAR:.0f}: {met}")
        profile = {name: parts(source, directory / f"parts {name}") for name, source in sources.items()}
        for name, spent in profile.items():
            print(f"{name}: " + ", ".join(f"{part} {cpu:.2f} s" for part, cpu in spent.items()), flush=True)
    finally:
        broker.stop()
    return {"bar": BAR, "rounds": taken, "ratios": ratios, "parts": profile}


if __name__ == "__main__":
    main()
