"""The code of `docs/how-to/iggy-server.md`, between a broker, a server and Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.helpers import pages
from tests.iggy.server import Server
from tests.kafka import broker as kafka
from tests.kafka import topics

pytestmark = pytest.mark.iggy_server

EXAMPLE = pages.ROOT / "examples" / "kafka_iggy_spark.py"


def test_iggy_page_runs(server: Server, spark: Any, samples: Path, tmp_path: Path) -> None:
    if not kafka.BUILT.exists():
        pytest.skip("no Kafka broker: make target/kafka/.built")
    server.create("shop", "orders", 2)
    server.create("shop", "copy", 2)
    server.create("shop", "following", 2)
    running = kafka.Broker(tmp_path / "broker")
    running.start()
    try:
        topics.create(running.address, "orders", "orders-again")
        topics.produce(running.address, "orders", topics.orders(samples, 300))
        names: dict[str, Any] = {"spark": spark}
        there = {
            "iggy://iggy:secret@127.0.0.1:8090": server.address,
            "127.0.0.1:9092": running.address,
            "/data/": f"{tmp_path}/",
            "/var/lib/iggy/local_data/streams/0/topics/0": str(_partition(server)),
        }
        pages.run("docs/how-to/iggy-server.md", names, there=there)
        assert names["written"].rows == 1
        tables = []
        for topic in ("orders", "orders-again"):
            with lh.read.topic(topic, bootstrap_servers=running.address, columns=[*KEPT, "timestamp_type"]) as reader:
                tables.append(reader.read_all())
        assert tables[0].equals(tables[1])
        check_parquet_of_records(running.address, tmp_path / "records")
        result = followed(server)
        assert result.equals(tables[0].select(KEPT).cast(result.schema))
    finally:
        running.stop()
    table = pq.read_table(tmp_path / "orders")
    assert table.select(["payload", "tenant", "retry"]).to_pylist() == [
        {"payload": b"2 pens", "tenant": "acme", "retry": 3}
    ]


@pytest.mark.full
def test_example_copies_topic_to_parquet(server: Server, samples: Path, tmp_path: Path) -> None:
    if not kafka.BUILT.exists():
        pytest.skip("no Kafka broker: make target/kafka/.built")
    server.create("example", "copy", 2)
    running = kafka.Broker(tmp_path / "broker")
    running.start()
    try:
        topics.create(running.address, "orders")
        topics.produce(running.address, "orders", topics.orders(samples, 300))
        arguments = [running.address, "orders", server.address, "example", "copy", str(tmp_path / "table")]
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=540,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        types = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}
        columns = ["partition", "timestamp", "key", "value"]
        with lh.read.topic("orders", bootstrap_servers=running.address, columns=columns, headers=types) as reader:
            expected = reader.read_all()
    finally:
        running.stop()
    count = len(expected)
    assert done.stdout.startswith(
        f"{count} records are in Iggy\n{count} rows of partition, timestamp, key, value, tenant, amount_cents, route\n"
    )
    copied = pq.read_table(tmp_path / "table").cast(expected.schema)
    assert sorted(copied.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)


def check_parquet_of_records(broker: str, directory: Path) -> None:
    """The records of the topic are in the files, with the same values of their headers."""
    table = pq.read_table(directory)
    headers = {"tenant": "string", "amount_cents": "int64"}
    with lh.read.topic("orders", bootstrap_servers=broker, columns=table.column_names[:5], headers=headers) as reader:
        expected = reader.read_all()
    order = [("partition", "ascending"), ("offset", "ascending")]
    assert table.cast(expected.schema).sort_by(order).equals(expected.sort_by(order))


KEPT = ["partition", "offset", "timestamp", "key", "value", "headers"]


def followed(server: Server) -> pa.Table:
    """The records that a streaming query has copied."""
    with lh.read.iggy(
        server.address, stream="shop", topic="following", columns=KEPT, mapping="kafka-gateway-lossless"
    ) as reader:
        return reader.read_all()


def _partition(server: Server) -> Path:
    """A directory with files: the server writes its own when it stops."""
    server.create("tests", "files", 1, {"messages_required_to_save": "1"})
    lh.write.iggy(pa.table({"payload": [b"x"]}), server.address, stream="tests", topic="files")
    return max(server.partitions.rglob("*.log"), key=lambda file: file.stat().st_mtime).parent
