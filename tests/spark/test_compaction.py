"""Compaction in Spark: what the log keeps, and what a plain statement of the rule keeps."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import spark as lhs
from letterhead.kip82 import MessageLog
from letterhead.kip82.header_formats import BATCH_FORMATS, MESSAGE_FORMATS
from tests.spark.frames import explained

HEADER_FORMATS = ("typed", "int", "wrapper")
NOW = 1_700_000_000_000
HOUR = 3_600_000


def history(header_format: str, count: int) -> Iterator[dict[str, Any]]:
    """Make what producers send over two days: keys that come back, deletes with headers, null values, no keys."""
    chance = random.Random(82)
    for number in range(count):
        headers: Any = [("id", lh.Int64(number))] if header_format == "typed" else [(5, b"%d" % number)]
        message = {
            "key": None if chance.random() < 0.01 else b"key-%d" % chance.randrange(count // 5),
            "value": b"value %d" % number,
            "headers": headers if chance.random() < 0.7 else [],
            "timestamp": NOW - 48 * HOUR + number * 48 * HOUR // count if chance.random() < 0.98 else -1,
        }
        if chance.random() < 0.3:
            if header_format != "wrapper":
                message["value"] = None
            elif chance.random() < 0.5:
                message["tombstone"] = True  # a delete by bit 4, with headers and a value
                message["value"] = chance.choice([None, b"why"])
            else:
                # Without a wrapper a null value is a delete; in a wrapper, without the bit, it is none.
                message["value"] = None
        yield message


def kept_by_the_rule(
    messages: Iterable[lh.Message], header_format: str, retention: int, keyless: str = "keep", now: int = NOW
) -> list[int]:
    """State the rule: the last of a key stays, but a delete only for its retention."""
    messages = list(messages)
    last = {message.key: message.offset for message in messages}
    kept = []
    for message in messages:
        if header_format == "wrapper":
            deletes = message.attributes & 0x10 != 0 or (message.value is None and message.headers is None)
        else:
            deletes = message.value is None
        old = message.timestamp != -1 and message.timestamp <= now - retention
        if message.key is None:
            keeps = keyless == "keep"
        else:
            keeps = last[message.key] == message.offset and not (deletes and old)
        if keeps:
            kept.append(message.offset)
    return kept


def read_by_spark(spark, path: Path, header_format: str, **options: Any):
    """Read the files of a log as who outgrows it does: each of them is a value."""
    files = spark.read.format("binaryFile").load(f"{path}/*.log")
    return lhs.explode_batches(files, BATCH_FORMATS[header_format], column="content", keep=[], **options)


@pytest.mark.spark_only
@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_log_and_spark_compaction_keep_same_messages(spark, tmp_path, header_format, count):
    path = tmp_path / "orders-0"
    with MessageLog(path, header_format, sync="flush", segment_bytes=10 * count) as log:
        batch = list(history(header_format, count))
        for start in range(0, len(batch), 1000):
            log.append(batch[start : start + 1000])
        assert log.next_offset == count
        before = list(log.scan())
        expected_offsets = kept_by_the_rule(before, header_format, 24 * HOUR)
        deletes = [message for message in before if message.tombstone]
        assert len(deletes) > count // 10
        assert sum(bool(message.headers) for message in deletes) > count // 20
        df = read_by_spark(spark, path, header_format).transform(lhs.compact, now=NOW, delete_retention_ms=24 * HOUR)
        by_spark = df.orderBy("offset").toArrow()
        done = log.compact(now=NOW, delete_retention_ms=24 * HOUR)
        after = list(log.scan())
        assert (done.kept, done.removed) == (len(expected_offsets), count - len(expected_offsets))
        assert [message.offset for message in after] == expected_offsets
        assert by_spark["offset"].to_pylist() == expected_offsets
        # The very messages, and not only which: in both they are what they were.
        assert after == [before[offset] for offset in expected_offsets]
        values = (lh.encode(message._replace(crc=None), MESSAGE_FORMATS[header_format]) for message in after)
        assert b"".join(values) == b"".join(file.read_bytes() for file in sorted(path.glob("*.log")))
        rows = read_by_spark(spark, path, header_format).orderBy("offset").toArrow()
        assert rows == by_spark
    kept_deletes = [message for message in after if message.tombstone]
    assert any(message.headers for message in kept_deletes), "a delete carries headers, and is there for its retention"
    assert all(
        message.timestamp == -1 or message.timestamp > NOW - 24 * HOUR for message in kept_deletes if message.key
    )
    with MessageLog(path) as log:
        assert [message.offset for message in log.scan()] == expected_offsets
        assert log.next_offset == count


@pytest.mark.parametrize("keyless", ["keep", "drop"])
@pytest.mark.parametrize("retention", [0, HOUR, 72 * HOUR])
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_retention_and_keyless_options_apply(spark, tmp_path, header_format, retention, keyless):
    path = tmp_path / "orders-0"
    options = {"now": NOW, "delete_retention_ms": retention, "keyless": keyless}
    with MessageLog(path, header_format, sync="flush", segment_bytes=20_000) as log:
        for message in history(header_format, 1500):
            log.append([message])
        expected_offsets = kept_by_the_rule(log.scan(), header_format, retention, keyless)
        df = read_by_spark(spark, path, header_format).transform(lhs.compact, **options)
        assert [row.offset for row in df.select("offset").orderBy("offset").collect()] == expected_offsets
        log.compact(**options)
        assert [message.offset for message in log.scan()] == expected_offsets


def frame_of(spark, rows: list[tuple]):
    types = "key binary, offset bigint, timestamp bigint, headers array<struct<key:int,value:binary>>, value binary, "
    return spark.createDataFrame(rows, types + "tombstone boolean, `a.b` int")


def test_unknown_nulls_delete_nothing(spark):
    """Rows of messages that could not be read have nulls: no reason to drop one."""
    rows = [
        (None, None, None, None, None, None, 1),
        (b"k", None, None, None, b"v", None, 1),
        (b"k", 5, None, [], b"v", None, 1),
        (b"d", 6, None, [], None, True, 1),
    ]
    df = frame_of(spark, rows).transform(lhs.compact, now=NOW, delete_retention_ms=0)
    assert sorted(df.collect(), key=str) == sorted(frame_of(spark, rows).collect(), key=str)


def test_logs_are_distinguished_by_partition_columns(spark):
    rows = [(b"k", offset, 1, [], b"v", False, log) for log in (1, 2) for offset in range(3)]
    df = frame_of(spark, rows)
    assert sorted(row["a.b"] for row in lhs.compact(df, by=["a.b"]).collect()) == [1, 2]
    assert [row.offset for row in lhs.compact(df, by=["a.b"]).collect()] == [2, 2]
    assert lhs.compact(df).columns == df.columns


def test_compaction_runs_no_python(spark):
    plan = explained(frame_of(spark, []).transform(lhs.compact))
    assert "Window" in plan
    for runs_python in ("MapInArrow", "EvalPython", "ArrowPython", "FlatMapGroups"):
        assert runs_python not in plan


def test_column_of_same_name_stays(spark):
    df = spark.createDataFrame(pa.table({"Retained": [1]})).crossJoin(
        frame_of(spark, [(b"k", 0, 0, [], b"v", False, 1)])
    )
    assert lhs.compact(df).columns == df.columns


def test_invalid_arguments_are_rejected_before_job(spark):
    df = frame_of(spark, [])
    with pytest.raises(ValueError, match="unknown column 'tombstone'"):
        df.drop("tombstone").transform(lhs.compact)
    with pytest.raises(ValueError, match="unknown column 'headers'"):
        df.drop("headers").transform(lhs.compact)
    with pytest.raises(ValueError, match=r"unknown column 'ab'.*did you mean 'a\.b'"):
        lhs.compact(df, by=["ab"])
    with pytest.raises(TypeError, match="'timestamp' is timestamp, and compaction reads bigint: unix_millis makes"):
        df.selectExpr(
            "key", "offset", "timestamp_millis(timestamp) as timestamp", "headers", "value", "tombstone"
        ).transform(lhs.compact)
    with pytest.raises(TypeError, match="by must be a list of column names, not str"):
        lhs.compact(spark.range(1), by="partition")
    with pytest.raises(ValueError, match="unknown keyless value 'dorp': did you mean 'drop'"):
        lhs.compact(spark.range(1), keyless="dorp")
    with pytest.raises(ValueError, match="delete_retention_ms is -1"):
        lhs.compact(spark.range(1), delete_retention_ms=-1)
