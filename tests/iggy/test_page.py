"""The code of `docs/how-to/iggy-server.md`, between a broker, a server and Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import letterhead as lh
import pages
from server import Server

sys.path.append(str(Path(__file__).parents[1] / "kafka"))

import broker as kafka
import topics


@pytest.mark.timeout(240)
def test_the_page_runs(server: Server, spark: Any, samples: Path, tmp_path: Path) -> None:
    if not kafka.BUILT.exists():
        pytest.skip("no Kafka broker: make target/kafka/.built")
    server.create("shop", "orders", 2)
    server.create("shop", "copy", 2)
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
            with lh.read.topic(topic, bootstrap_servers=running.address) as reader:
                tables.append(reader.read_all().drop_columns("topic"))
        assert tables[0].equals(tables[1])
    finally:
        running.stop()
    table = pq.read_table(tmp_path / "orders")
    assert table.select(["payload", "tenant", "retry"]).to_pylist() == [
        {"payload": b"2 pens", "tenant": "acme", "retry": 3}
    ]


def _partition(server: Server) -> Path:
    """A directory with files: the server writes its own when it stops."""
    server.create("tests", "files", 1, {"messages_required_to_save": "1"})
    import pyarrow as pa

    lh.write.iggy(pa.table({"payload": [b"x"]}), server.address, stream="tests", topic="files")
    return max(server.partitions.rglob("*.log"), key=lambda file: file.stat().st_mtime).parent
