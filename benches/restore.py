"""Compare a restore with that of Kafka Streams, in one run, from the same changelog on one broker.

    python -m benches.restore [RECORDS]

The changelog has records of five headers and 100 bytes (`benches.stores`), by default a million with keys of their own.
Kafka Streams 4.3.1 restores its key-value store with headers from it in a process of its own, and measures from the start
of the restore to its end, without its start and without closing the store. Ours is measured as a user calls it: from the
connection to the broker, or the opening of the log segments, until the directory is closed and in its place. CPU is that
of the process, its threads included. The directories must be equal, or nothing is printed.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / "kafka")]

APP, STORE = "bench", "store"
CHANGELOG = f"{APP}-{STORE}-changelog"
BAR = 3.0
ROUNDS = 2


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


def of_kafka_streams(address: str, state: Path, classes: str) -> dict[str, Any]:
    """Restore with Kafka Streams, and close the store."""
    program = "letterhead.testing.streams.StreamsApp"
    command = ["java", "-Xmx1g", "-cp", classes, program, address, APP, str(state), "in"]
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
    import letterhead as lh
    from letterhead import state

    opened = (
        source if isinstance(source, Path) else lh.read.topic(CHANGELOG, bootstrap_servers=source, batch_bytes=8 << 20)
    )
    wall, cpu = time.perf_counter(), time.process_time()
    done = state.restore(opened, task, STORE)
    result = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "records": done.records}
    assert done.records == count
    return result


def rows(task: Path) -> list[tuple[bytes, bytes]]:
    """Read the rows of a store."""
    from letterhead.storage.database import StoredFamilies

    with StoredFamilies(task / "rocksdb" / STORE) as families:
        return list(families.rows("keyValueWithTimestampAndHeaders"))


def main(count: int = 1_000_000) -> None:
    """Print one line for each side, and the ratios of Kafka Streams' time to ours."""
    from broker import Broker

    built = ROOT / "target" / "jvm-tests"
    classes = f"{built / 'classes'}:{built / 'lib'}/*"
    directory = Path(tempfile.mkdtemp(prefix="letterhead-restore-"))
    broker = Broker(directory / "broker")
    broker.start()
    try:
        produce(broker.address, count)
        (segments,) = (directory / "broker" / "data").glob(f"{CHANGELOG}-0")
        found: dict[str, list[dict[str, Any]]] = {}
        for round in range(ROUNDS):
            sides = {
                "Kafka Streams 4.3.1": lambda at: of_kafka_streams(broker.address, at, classes),
                "letterhead, from the topic": lambda at: of_ours(broker.address, at / APP / "0_0", count),
                "letterhead, from the segments": lambda at: of_ours(segments, at / APP / "0_0", count),
            }
            expected = None
            for side, restored in sides.items():
                state = directory / f"{side} {round}"
                result = restored(state)
                assert result["records"] == count, result
                found.setdefault(side, []).append(result)
                now = rows(state / APP / "0_0")
                assert len(now) == count
                assert expected in (None, now), side
                expected = now
                shutil.rmtree(state)
                print(f"round {round}: {side:32} {result['wall']:6.2f} s, CPU {result['cpu']:6.2f} s", flush=True)
        best = {
            side: {of: min(each[of] for each in results) for of in ("wall", "cpu")} for side, results in found.items()
        }
        java = best.pop("Kafka Streams 4.3.1")
        for side, ours in best.items():
            ratio = {of: java[of] / ours[of] for of in ours}
            met = "met" if ratio["wall"] >= BAR else "missed"
            print(f"{side}: {ratio['wall']:.1f} times the speed, {ratio['cpu']:.1f} of CPU; bar {BAR:.0f}: {met}")
    finally:
        broker.stop()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
