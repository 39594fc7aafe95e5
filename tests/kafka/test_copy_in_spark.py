"""Copies of topics by jobs of Spark: exact, continued after a kill, and the same directories as those of one process."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import spark as lhs
from letterhead.copies import copying
from letterhead.copies.part_directory import Part, PartDirectory, StagedPart
from letterhead.spark import copying as jobs
from tests.helpers.killed_commands import start_program
from tests.helpers.pages import run
from tests.kafka.written import TOPICS, create_with, numbered, producer, send, write_all

pytestmark = pytest.mark.broker

KILLED = """
import sys
from letterhead.copies import copying
copying.PART_ROWS = 2_000
from letterhead import spark as lhs
from letterhead.copies.part_directory import PartDirectory
from tests.helpers.spark_session import local_session
publish = PartDirectory.publish
def told(self, staged):
    publish(self, staged)
    print(self.rows, flush=True)
PartDirectory.publish = told
spark = local_session("killed copy")
lhs.copy_topic(spark, sys.argv[1], sys.argv[2], tasks=2)
"""


@pytest.fixture(scope="module")
def odd(broker: str) -> Iterator[str]:
    """Topics with every codec, deleted heads, times of brokers, gaps, and transactions, of which one is open."""
    producers = write_all(broker, "jobs-", 100)
    yield f"kafka://{broker}/jobs-"
    producers.clear()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("topic", TOPICS)
def test_job_copies_topic_exactly(topic: str, odd: str, spark: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(copying, "PART_ROWS", 40)
    copied = lhs.copy_topic(spark, odd + topic, tmp_path / "job", tasks=2, headers={"tenant": "string"})
    alone = lh.copy(odd + topic, tmp_path / "alone", headers={"tenant": "string"})
    assert (copied.rows, copied.ends) == (alone.rows, alone.ends)
    tables = [lh.open(tmp_path / name).read_all() for name in ("job", "alone")]
    assert tables[0].sort_by([("partition", "ascending"), ("offset", "ascending")]).equals(tables[1])
    assert not [name for name in names(tmp_path / "job") if "unfinished" in name]


def test_job_and_process_continue_each_other(
    broker: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PART_ROWS", 15)
    create_with(broker, "jobs-growing", 2)
    source, directory = f"kafka://{broker}/jobs-growing", tmp_path / "copy"
    count = len(numbered(20))
    assert lhs.copy_topic(spark, source, directory).rows == 0
    for turn in range(4):
        send(producer(broker), "jobs-growing", numbered(20, 100 * turn), turn % 2)
        copied = lhs.copy_topic(spark, source, directory) if turn % 2 == 0 else lh.copy(source, directory)
        assert copied.rows == count
    with lh.diff(source, directory) as differences:
        assert differences.read_all().num_rows == 0
    with pytest.raises(ValueError, match="is a copy with where null"):
        lhs.copy_topic(spark, source, directory, where="tenant = 'acme'")


def test_job_with_condition_has_selected_records(odd: str, spark: Any, tmp_path: Path) -> None:
    where = "tenant = 'acme' and offset >= 10"
    lhs.copy_topic(spark, odd + TOPICS[0], tmp_path / "job", where=where)
    found, expected = (lh.open(name, where=where).read_all() for name in (tmp_path / "job", odd + TOPICS[0]))
    assert found.num_rows > 0
    assert lh.open(tmp_path / "job").read_all().num_rows == found.num_rows == expected.num_rows


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.full)])
def test_killed_job_has_every_record_once(
    kills: int, broker: str, spark: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    topic = f"jobs-killed-{kills}"
    source, directory = f"kafka://{broker}/{topic}", tmp_path / "copy"
    create_with(broker, topic, 2)
    values = pa.array([b"%d" % number for number in range(25_000 * kills)])
    partitions = pa.array([number % 2 for number in range(len(values))], pa.int32())
    lh.write.topic(
        pa.table({"value": values, "partition": partitions}), topic, bootstrap_servers=broker, partition="partition"
    )
    chance = random.Random(kills)
    rounds = 0
    for _ in range(kills):
        process, _, output = start_program(KILLED, source, directory)
        for _ in range(chance.randrange(1, 4)):
            rounds += bool(output.readline())
        time.sleep(chance.uniform(0, 0.5))  # into the next round
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert rounds >= kills
    monkeypatch.setattr(copying, "PART_ROWS", 2_000)
    assert 0 < lhs.copy_topic(spark, source, directory).rows < len(values)
    assert lh.open(directory).read_all()["value"].combine_chunks().sort().equals(values.sort())
    assert not [name for name in names(directory) if "unfinished" in name]


def test_job_copies_to_object_store(broker: str, spark: Any) -> None:
    moto = pytest.importorskip("moto.server")
    from pyarrow import fs

    server = moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = fs.S3FileSystem(
            access_key="user",
            secret_key="secret",
            endpoint_override=f"http://{host}:{port}",
            allow_bucket_creation=True,
        )
        store.create_dir("backup")
        create_with(broker, "jobs-stored", 2)
        for partition in (0, 1):
            send(producer(broker), "jobs-stored", numbered(20), partition)
        source = f"kafka://{broker}/jobs-stored"
        target = f"s3://user:secret@backup/copy?endpoint_override={host}%3A{port}&scheme=http"
        assert lhs.copy_topic(spark, source, target).rows == 2 * len(numbered(20))
        found = sorted(info.base_name for info in store.get_file_info(fs.FileSelector("backup/copy")))
        assert [name[:10] for name in found] == ["_copy.json", "_copy.lock", "part-00000", "part-00001"]
        with lh.diff(source, target) as differences:
            assert differences.read_all().num_rows == 0
    finally:
        server.stop()


def test_error_of_task_leaves_no_file_and_its_advice_works(broker: str, spark: Any, tmp_path: Path) -> None:
    create_with(broker, "jobs-typed", 1)
    send(producer(broker), "jobs-typed", numbered(20))
    source, directory, headers = f"kafka://{broker}/jobs-typed", tmp_path / "copy", {"retry": "int64"}
    with pytest.raises(
        Exception, match=r"column retry: 4 bytes where int64 takes 8 (?s:.*)errors=\"column\" returns all rows"
    ):
        lhs.copy_topic(spark, source, directory, headers=headers)
    assert names(directory) == ["_copy.json", "_copy.lock"]
    assert lhs.copy_topic(spark, source, directory, headers=headers, errors="column").rows == len(numbered(20))
    assert lh.copy(source, tmp_path / "alone", headers=headers, errors="column").rows == len(numbered(20))
    tables = [lh.open(name).read_all() for name in (directory, tmp_path / "alone")]
    assert tables[0].equals(tables[1])
    assert tables[0]["error"].null_count < len(tables[0])


def test_directory_that_executors_do_not_share_is_named(
    broker: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_with(broker, "jobs-elsewhere", 1)
    send(producer(broker), "jobs-elsewhere", numbered(3))
    run_tasks = jobs._run

    def elsewhere(spark: Any, tasks: Sequence[Any]) -> list[StagedPart]:
        staged = run_tasks(spark, tasks)
        for part in staged:
            (tmp_path / "copy" / part.file).rename(tmp_path / part.file)
        return staged

    monkeypatch.setattr(jobs, "_run", elsewhere)
    with pytest.raises(FileNotFoundError, match="name a directory that the driver and all executors share"):
        lhs.copy_topic(spark, f"kafka://{broker}/jobs-elsewhere", tmp_path / "copy")


def test_other_sources_and_targets_are_refused(broker: str, spark: Any, tmp_path: Path, samples: Path) -> None:
    source = f"kafka://{broker}/jobs-typed"
    for arguments in ((samples / "orders-0", tmp_path / "copy"), (source, f"{source}-copy")):
        with pytest.raises(ValueError, match=r"a job copies a topic of Kafka to a directory: call letterhead\.copy"):
            lhs.copy_topic(spark, *map(str, arguments))
    with pytest.raises(ValueError, match="leave out follow="):
        lhs.copy_topic(spark, source, tmp_path / "copy", follow=True)
    with pytest.raises(ValueError, match="tasks must be at least 1"):
        lhs.copy_topic(spark, source, tmp_path / "copy", tasks=0)


def test_parts_are_named_in_order_of_offsets(tmp_path: Path) -> None:
    with PartDirectory(tmp_path, {}) as directory:
        staged = []
        for start in (10, 0):
            name = f"_{start}.unfinished"
            (tmp_path / name).write_bytes(b"")
            staged.append(StagedPart(Part(0, start, start + 10), 10, name))
        directory.publish(staged)
        assert directory.ends == {0: 20}


def test_block_of_page_copies_topic(broker: str, spark: Any, tmp_path: Path) -> None:
    create_with(broker, "jobs-page", 2)
    send(producer(broker), "jobs-page", numbered(20), 1)
    there = {"localhost:9092/orders": f"{broker}/jobs-page", "s3://backup/orders": str(tmp_path / "copy")}
    run("docs/how-to/shell.md", {"spark": spark, "lhs": lhs}, there=there)
    assert lh.open(tmp_path / "copy", where="tenant = 'acme'").read_all().num_rows > 0
