"""The transforms on streaming frames: every row once, over a restart too."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import spark as lhs
from tests.spark.frames import collected

COLUMNS = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}


@pytest.fixture
def inbox(samples, tmp_path):
    """Lay out a directory of files that a stream takes one by one; return what adds the next."""
    directory = tmp_path / "inbox"
    directory.mkdir()
    orders = pq.read_table(samples / "orders-0.parquet").slice(0, 4000)

    def arrive(first: int, last: int) -> None:
        # In microseconds, as Spark writes; nanoseconds it would not read.
        pq.write_table(orders.slice(first, last - first), directory / f"{first:05}.parquet", coerce_timestamps="us")

    return directory, arrive


def run(spark, stream, out, checkpoint) -> list[int]:
    """Run a stream over what is there; return the number of rows of each batch."""
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(540)
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()


def test_stream_equals_batch_over_restart(spark, inbox, tmp_path):
    directory, arrive = inbox
    for first in (0, 1000, 2000):
        arrive(first, first + 1000)
    schema = spark.read.parquet(str(directory)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))
    assert stream.isStreaming
    typed = lhs.select_headers(stream, COLUMNS, keep=["offset"], errors="column")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    assert run(spark, typed, out, checkpoint) == [1000, 1000, 1000]
    assert run(spark, typed, out, checkpoint) == []
    arrive(3000, 4000)
    assert run(spark, typed, out, checkpoint) == [1000]

    batch = spark.read.parquet(str(directory)).transform(lhs.select_headers, COLUMNS, keep=["offset"], errors="column")
    expected = collected(batch.orderBy("offset"))
    assert collected(spark.read.parquet(str(out)).orderBy("offset")) == expected
    assert expected["offset"] == list(range(4000))


def test_stream_is_written_and_read_back(spark, inbox, tmp_path):
    directory, arrive = inbox
    arrive(0, 500)
    schema = spark.read.parquet(str(directory)).schema
    stream = spark.readStream.schema(schema).parquet(str(directory)).where("value is not null")
    restored = lhs.encode_headers(
        stream, "streams", fields={"payload": "value"}, into="value", keep=["offset"]
    ).transform(lhs.decode_headers, "streams", column="value")
    run(spark, restored, tmp_path / "out", tmp_path / "checkpoint")
    result = collected(spark.read.parquet(str(tmp_path / "out")).orderBy("offset"))
    table = pq.read_table(directory)
    rows = [row for row in table.to_pylist() if row["value"] is not None]
    assert result["offset"] == [row["offset"] for row in rows]
    assert result["payload"] == [row["value"] for row in rows]
    assert result["headers"] == [row["headers"] or [] for row in rows]


def test_stream_messages_are_converted(spark, tmp_path):
    """Rows multiply in a stream as they do in a batch."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for file in range(2):
        sets = [
            b"".join(
                lh.encode(lh.Message(offset=10 * row + n, value=b"v", headers={"n": lh.Int8(n)}), "kip82-message")
                for n in range(row)
            )
            for row in range(3 * file, 3 * file + 3)
        ]
        pq.write_table(pa.table({"row": range(3 * file, 3 * file + 3), "value": sets}), inbox / f"{file}.parquet")
    schema = spark.read.parquet(str(inbox)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(inbox))
    result = (
        lhs.explode_batches(stream, "kip82-messages", column="value", columns=["offset", "headers"])
        .transform(lhs.encode_headers, "kip82-typed", keep=["row", "offset"])
        .transform(lhs.convert_headers, "kip82-typed", target="kafka", types="text", keep=["row", "offset"])
    )
    assert result.isStreaming
    assert run(spark, result, tmp_path / "out", tmp_path / "checkpoint") == [3, 3]
    rows_read = collected(spark.read.parquet(str(tmp_path / "out")).orderBy("offset"))
    messages = [(row, n) for row in range(6) for n in range(row)]
    assert rows_read["row"] == [row for row, _ in messages]
    assert rows_read["offset"] == [10 * row + n for row, n in messages]
    assert rows_read["headers"] == [lh.encode([("n", str(n))], "kafka") for _, n in messages]


def test_watermark_stays_on_kept_column(spark, inbox, tmp_path):
    """Without it Spark refuses to append windows: it could never close one."""
    from pyspark.sql import functions as F

    directory, arrive = inbox
    arrive(0, 4000)
    schema = spark.read.parquet(str(directory)).schema
    stream = spark.readStream.schema(schema).parquet(str(directory)).withWatermark("timestamp", "1 second")
    typed = lhs.select_headers(stream, {"retry": "int32"}, keep=["timestamp"])
    windows = typed.groupBy(F.window("timestamp", "10 seconds")).count()
    run(spark, windows, tmp_path / "out", tmp_path / "checkpoint")
    counts = collected(spark.read.parquet(str(tmp_path / "out")).select("count"))["count"]
    # The last window stays open.
    assert 0 < sum(counts) < 4000
