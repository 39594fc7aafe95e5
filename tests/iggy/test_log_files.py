"""``lh.read.segments`` on the files of a server that has stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.errors import DecodeError, TruncatedTailWarning
from tests.helpers.command import runner
from tests.iggy.server import Server
from tests.iggy.test_write import table

pytestmark = pytest.mark.iggy_server

COUNT = 12_000


@pytest.fixture(scope="module")
def stopped(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """The files of another server that has stopped, and what it returned to a reader."""
    other = Server(tmp_path_factory.mktemp("stopped"))
    other.start()
    try:
        other.create("tests", "logs", 2, {"segment_size": "1 MiB"})
        data = table(COUNT).drop_columns("key")
        data = data.append_column("payload", pa.array([b"x" * 200] * COUNT)).select([1, 2])
        data = data.rename_columns(["headers", "payload"])
        for first in range(0, COUNT, 500):
            lh.write.iggy(
                data.slice(first, 500), other.address, stream="tests", topic="logs", partition=first // 500 % 2
            )
        with lh.read.iggy(other.address, stream="tests", topic="logs") as reader:
            rows_read = reader.read_all()
    finally:
        other.stop()
    return other.partitions, rows_read


def read(path: Path, **options: Any) -> pa.Table:
    with lh.read.segments(path, format="iggy-batch", **options) as reader:
        return reader.read_all()


KEPT = ["partition", "offset", "timestamp", "origin_timestamp", "id", "headers", "payload"]


def test_files_match_server_replies(stopped: tuple[Path, pa.Table]) -> None:
    path, expected = stopped
    assert len(list(path.rglob("*.log"))) > 2
    result = read(path)
    assert result.select(KEPT).equals(expected.select(KEPT))
    assert result["stream"].unique().to_pylist() == result["topic"].unique().to_pylist() == ["0"]


def test_offsets_and_times_are_limited_with_or_without_index(stopped: tuple[Path, pa.Table], tmp_path: Path) -> None:
    path, expected = stopped
    for index in (True, False):
        copy = tmp_path / str(index) / "streams"
        shutil.copytree(path, copy)
        if not index:
            for file in copy.rglob("*.index"):
                file.unlink()
        result = read(copy, columns=["partition", "offset"], start=3777, end=3780)
        assert result.to_pylist() == [{"partition": p, "offset": o} for p in (0, 1) for o in (3777, 3778, 3779)]
        times = expected["timestamp"].cast(pa.int64()).to_pylist()
        since = times[4000] // 1000 + 1
        later = [row for row, time in enumerate(times) if time >= 1000 * since]
        result = read(copy, columns=["id"], start=f"@{since}")
        assert result["id"].to_pylist() == expected["id"].take(later).to_pylist()


def test_truncated_end_is_reported_and_earlier_damage_rejected(stopped: tuple[Path, pa.Table], tmp_path: Path) -> None:
    path, expected = stopped
    shutil.copytree(path, tmp_path / "copy")
    last = max((tmp_path / "copy").rglob("1/*.log"))
    data = last.read_bytes()
    last.write_bytes(data[:-10])
    with pytest.warns(TruncatedTailWarning, match="no whole batch begins here"):
        result = read(tmp_path / "copy", columns=["offset"])
    assert 0 < len(expected) - len(result) <= 1000
    first = min((tmp_path / "copy").rglob("1/*.log"))
    damaged = bytearray(first.read_bytes())
    damaged[400] ^= 1
    first.write_bytes(damaged)
    with pytest.raises(DecodeError, match=r"the batch at offset 0: .*checksum") as raised:
        read(tmp_path / "copy")
    assert raised.value.code == "bad_crc"


def test_directory_without_segments_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no log segments"):
        read(tmp_path)


def test_spark_reads_each_file_in_a_task(stopped: tuple[Path, pa.Table], spark: Any) -> None:
    from letterhead import spark as lhs

    path, _ = stopped
    columns, headers = ["partition", "offset", "timestamp", "payload"], {"retry": "int32"}
    frame = (
        spark.read.format("letterhead-segments")
        .options(**lhs.options(columns=columns, headers=headers), format="iggy-batch", where="retry::int32 >= 4000")
        .load(str(path))
    )
    assert frame.rdd.getNumPartitions() == len(list(path.rglob("*.log")))
    expected = read(path, columns=columns, headers=headers, where="retry::int32 >= 4000")
    assert len(expected) == COUNT - 4000
    order = [(name, "ascending") for name in ("partition", "offset")]
    assert frame.toArrow().cast(expected.schema).sort_by(order).equals(expected.sort_by(order))
    with pytest.raises(Exception, match="needs segments of Kafka"):
        spark.read.format("letterhead-segments").options(format="iggy-batch", isolationLevel="read_committed").load(
            str(path)
        )


def test_command_reads_server_files(
    stopped: tuple[Path, pa.Table], capfdbinary: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = runner(capfdbinary, monkeypatch)
    path, _ = stopped
    assert run("read", path, "-o", tmp_path / "all.parquet").code == 0
    assert pq.read_table(tmp_path / "all.parquet").equals(read(path))
    assert lh.open(path).read_all().equals(read(path))
    result = run("read", path, "--last", "2", "--columns", "partition,offset", "--json")
    expected = read(path, columns=["partition", "offset"], start=-2)
    assert [json.loads(line) for line in result.lines] == expected.to_pylist()
    [file, *_] = sorted(path.rglob("*.log"))
    assert run("read", file, "-n", "1").lines[0].split() == ["offset", "timestamp", "headers", "payload"]
    result = run("read", path, "--control")
    assert (result.code, "--control is for topics and log segments of Kafka" in result.err) == (2, True)
