"""The data sources: what Spark makes of files of Kafka."""

from __future__ import annotations

import doctest
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import spark as lhs
from letterhead.spark.sources import register
from letterhead.spark.sources.options import COMMON, parse_options

SEGMENTS = "letterhead-segments"


@pytest.fixture(scope="module")
def sources(spark: Any) -> Any:
    register(spark)
    return spark


def load(spark: Any, path: Path, **options: Any) -> Any:
    source = {name: option if isinstance(option, str) else json.dumps(option) for name, option in options.items()}
    return spark.read.format(SEGMENTS).options(**source).load(str(path))


def test_sources_name_required_spark_version(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)  # as before Spark 4
    with pytest.raises(ValueError, match=r"came with Spark 4\.0, and this is 4\..*: read with letterhead.read"):
        register(spark)


# --- segments --------------------------------------------------------------------------------------------------------


def test_segments_match_broker_rows_in_spark(sources: Any, samples: Path) -> None:
    for name in ("orders-0", "orders-app-latest-changelog-0"):
        ours = load(sources, samples / name).orderBy("offset").toArrow()
        theirs = sources.read.parquet(str(samples / f"{name}.parquet")).orderBy("offset").toArrow()
        assert ours.num_rows == theirs.num_rows == 10_000
        for column in ("topic", "partition", "offset", "key", "value"):
            assert ours.column(column).to_pylist() == theirs.column(column).to_pylist(), column
        assert [headers or None for headers in ours.column("headers").to_pylist()] == theirs.column(
            "headers"
        ).to_pylist()


def test_source_returns_reader_rows_in_its_types(sources: Any, samples: Path) -> None:
    headers = {"tenant": "string", "amount_cents": "int64", "kind": {"type": "string", "key": "ce_type"}}
    frame = load(sources, samples / "orders-0", columns=["partition", "offset"], headers=headers)
    assert frame.schema.simpleString() == (
        "struct<partition:int,offset:bigint,tenant:string,amount_cents:bigint,kind:string>"
    )
    with lh.read.segments(
        samples / "orders-0",
        columns=["partition", "offset"],
        headers={**headers, "kind": lh.field("string", key="ce_type")},
    ) as reader:
        assert frame.orderBy("offset").toArrow().to_pylist() == reader.read_all().to_pylist()
    as_text = "tenant,amount_cents:int64,kind=ce_type:string"
    written = load(sources, samples / "orders-0", columns="partition, offset", headers=as_text)
    assert written.schema == frame.schema
    assert written.where("tenant = 'acme'").count() == frame.where("tenant = 'acme'").count() > 0
    assert frame.where("tenant is not null").count() > 9_000


@pytest.mark.spark_only
def test_segment_is_one_partition_and_large_one_several(
    sources: Any, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from letterhead import _native
    from letterhead.kafka.log_directory import partitions
    from letterhead.spark.sources import segments as source

    data = (samples / "orders-0" / f"{0:020}.log").read_bytes()
    heads = _native.record_batches(data)[0]
    cut = next(head for head in heads if head[0] > len(data) // 2)
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for base, part in ((0, data[: cut[0]]), (cut[2], data[cut[0] :])):
        (folder / f"{base:020}.log").write_bytes(part)
    frame = load(sources, folder, columns=["offset"])
    assert frame.rdd.getNumPartitions() == 2
    assert sorted(row.offset for row in frame.collect()) == list(range(10_000))
    # By its index a segment is cut where batches begin.
    entries = [head for head in heads[1:] if head[0] < cut[0]]
    index = b"".join(head[3].to_bytes(4, "big") + head[0].to_bytes(4, "big") for head in entries)
    (folder / f"{0:020}.index").write_bytes(index)
    monkeypatch.setattr(source, "_SPLIT_LEN", len(data) // 8)
    [segments] = partitions(folder)
    reader = source.SegmentsSourceReader({"path": str(folder), "columns": ["offset"]})
    parts = reader.partitions()
    assert len(parts) > 4
    assert [part.segment.path for part in parts[-1:]] == [segments[1].path]
    offsets = [offset for part in parts for rows in reader.read(part) for offset in rows.column("offset").to_pylist()]
    assert offsets == list(range(10_000))


def test_start_and_end_are_options(sources: Any, samples: Path) -> None:
    times = pq.read_table(samples / "orders-0.parquet", columns=["timestamp"]).column("timestamp").to_pylist()
    first = next(row for row, time in enumerate(times) if time >= times[6000])

    def offsets(**options: str) -> list[int]:
        frame = load(sources, samples / "orders-0", columns=["offset"], **options)
        return sorted(row.offset for row in frame.collect())

    assert offsets(start="100", end="9000") == list(range(100, 9000))
    assert offsets(start=times[6000].isoformat(), end="-1000") == list(range(first, 9000))
    assert offsets(start=f"@{int(times[6000].timestamp() * 1000)}", end="9000") == list(range(first, 9000))


def test_damage_raises_with_file_name_or_is_error_row(sources: Any, samples: Path, tmp_path: Path) -> None:
    data = bytearray((samples / "orders-0" / f"{0:020}.log").read_bytes())
    data[len(data) // 2] ^= 1
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(data)
    with pytest.raises(Exception, match=r"00000000000000000000\.log: the batch at offset \d+: the checksum"):
        load(sources, folder, columns=["offset"]).collect()
    [bad] = load(sources, folder, columns=["offset"], errors="column").where("error is not null").collect()
    assert (bad.offset, bad.error[0].code) == (None, "bad_crc")


def test_error_column_has_requested_name(sources: Any, samples: Path, tmp_path: Path) -> None:
    from letterhead.spark.sources.kafka import KafkaSource

    headers = {"error": "int64", "tenant": "string"}
    options = {"columns": ["offset"], "headers": headers, "errors": "column", "errorColumn": "problem"}
    names = ["offset", "error", "tenant", "problem"]
    (tmp_path / "orders-0").mkdir()
    data = bytearray((samples / "orders-0" / f"{0:020}.log").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(data)
    frame = load(sources, tmp_path / "orders-0", **options)
    assert frame.columns == names
    [bad] = frame.where("problem is not null").collect()
    assert bad.problem[0].code == "bad_crc"
    source = {name: option if isinstance(option, str) else json.dumps(option) for name, option in options.items()}
    where = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}
    assert KafkaSource(where | source).schema().names == names
    state = sources.read.format("letterhead-state").options(**source | {"columns": '["key"]', "store": "latest"})
    assert state.load(str(samples / "streams-state-0_0")).columns == ["key", *names[1:]]
    with pytest.raises(Exception, match="error_column= names the column of errors='column'"):
        load(sources, samples / "orders-0", errorColumn="problem").schema  # noqa: B018


def test_truncated_batch_warns_in_last_segment_and_raises_before(tmp_path: Path, samples: Path) -> None:
    from letterhead.errors import DecodeError, TruncatedTailWarning
    from letterhead.spark.sources import segments as source

    data = (samples / "orders-0" / f"{0:020}.log").read_bytes()
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log = folder / f"{0:020}.log"

    def rows(**options: str) -> list[Any]:
        reader = source.SegmentsSource({"path": str(log), "columns": '["offset"]', **options})._reader()
        return [row for part in reader.partitions() for result in reader.read(part) for row in result.to_pylist()]

    log.write_bytes(data[:-100])
    with pytest.warns(TruncatedTailWarning, match=f"{log.name}: truncated at byte ") as warned:
        rows_read = rows()
    assert len(warned) == 1
    assert 9_000 < len(rows_read) < 10_000
    with pytest.warns(TruncatedTailWarning):
        assert [row["error"][0]["code"] for row in rows(errors="column") if row["error"]] == ["truncated"]
    with pytest.warns(TruncatedTailWarning):  # whatever is selected
        assert [row["offset"] for row in rows(end="100")] == list(range(100))
    (folder / f"{10_000:020}.log").write_bytes(b"")
    with pytest.raises(DecodeError, match="the batch takes "):
        rows()
    assert rows(errors="column")[-1]["error"][0]["code"] == "truncated"
    log.write_bytes(data[:3])
    with pytest.raises(DecodeError, match="not a log segment"):
        rows()


@pytest.mark.spark_only
def test_damage_is_reported_by_one_part_of_segment(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from letterhead import _native
    from letterhead.spark.sources import segments as source

    data = bytearray((samples / "orders-0" / f"{0:020}.log").read_bytes())
    heads = _native.record_batches(data)[0]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    index = b"".join(head[3].to_bytes(4, "big") + head[0].to_bytes(4, "big") for head in heads[1:])
    (folder / f"{0:020}.index").write_bytes(index)
    monkeypatch.setattr(source, "_SPLIT_LEN", len(data) // 8)
    for damaged in (3, len(heads) // 2, len(heads) - 1):
        changed = bytearray(data)
        changed[heads[damaged][0] + 100] ^= 1
        (folder / f"{0:020}.log").write_bytes(changed)
        reader = source.SegmentsSourceReader({"path": str(folder), "columns": ["offset"], "errors": "column"})
        parts = reader.partitions()
        assert len(parts) > 4
        rows_read = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        first, last = heads[damaged][2], heads[damaged][3]
        assert [row["offset"] for row in rows_read if not row["error"]] == [*range(first), *range(last + 1, 10_000)]
        messages = [row["error"][0]["message"] for row in rows_read if row["error"]]
        # A part that ends in the batch reports only the offsets of its own.
        assert len(set(messages)) == len(messages) <= 2
        assert f"offsets {first} to" in messages[0]
        assert f"to {last} are missing" in messages[-1]


def test_truncated_tail_is_row_in_spark(sources: Any, samples: Path, tmp_path: Path) -> None:
    data = (samples / "orders-0" / f"{0:020}.log").read_bytes()
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(data[:-100])
    frame = load(sources, tmp_path / "orders-0", columns=["topic", "offset"], errors="column")
    [bad] = frame.where("error is not null").collect()
    assert (bad.topic, bad.offset, bad.error[0].code) == ("orders", None, "truncated")
    assert load(sources, tmp_path / "orders-0", columns=["offset"]).count() == frame.count() - 1


NANOSECONDS = 1_700_000_000_000_000_000
"""A timestamp of a producer that sends nanoseconds, where Kafka has milliseconds."""


def test_timestamp_out_of_spark_range_follows_errors(sources: Any, tmp_path: Path) -> None:
    folder = tmp_path / "orders-7"
    folder.mkdir()
    messages: list[Any] = [
        {"offset": at, "timestamp": NANOSECONDS if at == 2 else 1000, "value": b"v"} for at in range(4)
    ]
    (folder / f"{0:020}.log").write_bytes(lh.batch(messages[:2]) + lh.batch(messages[2:3]) + lh.batch(messages[3:]))
    columns = ["offset", "timestamp"]
    with pytest.raises(Exception, match=r"the timestamp does not fit .*topic orders, partition 7, offset 2"):
        load(sources, folder, columns=columns).collect()
    rows = load(sources, folder, columns=columns, errors="null").orderBy("offset").collect()
    assert [row.timestamp is None for row in rows] == [False, False, True, False]
    assert [row.offset for row in rows] == [0, 1, 2, 3]
    rows = load(sources, folder, columns=columns, errors="column").orderBy("offset").collect()
    assert [(row.timestamp is None, row.error and row.error[0].code) for row in rows] == [
        (False, None), (False, None), (True, "out_of_range"), (False, None),
    ]  # fmt: skip
    # A time is compared with the stored timestamp, and other columns do not need it.
    later = load(sources, folder, columns=columns, errors="null", start="@2000").orderBy("offset")
    assert [row.offset for row in later.collect()] == [2, 3]
    assert load(sources, folder, columns=["offset"]).count() == 4


def test_limits_are_options_and_apply_on_workers(sources: Any, samples: Path) -> None:
    with lh.read.segments(samples / "orders-0", columns=["headers"]) as reader:
        counts = [len(headers) for headers in reader.read_all().column("headers").to_pylist()]
    most = max(counts) - 1
    limits = lhs.options(limits=lh.Limits(headers=most))
    assert limits == {"limits": f"headers={most}"}
    frame = load(sources, samples / "orders-0", columns=["offset"], errors="column", **limits)
    bad = frame.where("error is not null").collect()
    assert len(bad) == sum(count > most for count in counts) > 0
    assert {row.error[0].code for row in bad} == {"limit_exceeded"}


def test_wrong_options_raise_on_driver(sources: Any, samples: Path) -> None:
    for wrong, message in (
        ({"columns": '["ofset"]'}, "did you mean 'offset'"),
        ({"colums": '["offset"]'}, "did you mean 'columns'"),
        ({"start": "first"}, "option start must be 'earliest', 'latest', an offset"),
        ({"isolationLevel": "committed"}, "isolationLevel"),
        ({"limits": "headers=-1"}, "option limits: limits must be NAME=NUMBER"),
        ({"headers": {"tenant": "string", "Tenant": "string"}}, "'tenant' and 'Tenant' would be made"),
        ({"headers": {"Offset": "string"}}, "'offset' and 'Offset' would be made"),
        ({"errors": "column", "errorColumn": "KEY"}, "'key' and 'KEY' would be made"),
    ):
        with pytest.raises(Exception, match=message):
            load(sources, samples / "orders-0", **wrong).collect()


NUMBERS = {"maxOffsetsPerTrigger": 1, "maxRecordsPerPartition": 1, "minPartitions": 1}
TIMES = {"startingTimestamp": 0, "endingTimestamp": 0, "timeoutMs": 1}


@pytest.mark.parametrize(
    ("module", "option", "least"),
    [("kafka", *item) for item in NUMBERS.items()] + [("iggy", *item) for item in (NUMBERS | TIMES).items()],
)
def test_numeric_source_options_have_minimum(module: str, option: str, least: int) -> None:
    table = importlib.import_module(f"letterhead.spark.sources.{module}").OPTIONS
    assert parse_options({option: str(least)}, table) == {option: least}
    with pytest.raises(ValueError, match=f"option {option} must be at least {least}, not {least - 1}"):
        parse_options({option: str(least - 1)}, table)


@pytest.mark.parametrize("module", ["kafka", "iggy"])
@pytest.mark.parametrize("option", ["startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp"])
def test_times_in_seconds_are_rejected(module: str, option: str) -> None:
    table = importlib.import_module(f"letterhead.spark.sources.{module}").OPTIONS
    if option not in table:
        pytest.skip("an option of topics of Kafka")
    for number, right in ((1767225600, "1767225600000"), (1767225600000, None), (1767225600000000, "check the unit")):
        text = f'{{"orders": {{"0": {number}}}}}' if "By" in option else str(number)
        if right is None:
            assert parse_options({option: text}, table)
            continue
        with pytest.raises(ValueError, match=rf"option {option}: {number} milliseconds since 1970 are .*{right}"):
            parse_options({option: text}, table)


@pytest.mark.parametrize("module", ["segments", "state", "kafka", "iggy"])
def test_source_columns_differing_only_by_case_are_rejected(samples: Path, module: str) -> None:
    from letterhead.spark.sources import iggy, kafka, segments, state

    source, options = {
        "segments": (segments.SegmentsSource, {"path": str(samples / "orders-0")}),
        "state": (state.StateSource, {"path": str(samples / "streams-state-0_0"), "store": "latest"}),
        "kafka": (kafka.KafkaSource, {"subscribe": "orders", "kafka.bootstrap.servers": "127.0.0.1:1"}),
        "iggy": (iggy.IggySource, {"address": "iggy://u:p@127.0.0.1:1", "stream": "s", "topic": "t"}),
    }[module]
    with pytest.raises(ValueError, match="Spark ignores the case of names"):
        source(options | {"headers": '{"tenant": "string", "TENANT": "string"}'}).schema()


def test_written_options_reject_names_differing_only_by_case() -> None:
    with pytest.raises(ValueError, match="'offset' and 'Offset' would be made"):
        lhs.options(columns=["offset"], headers={"Offset": "string"})


def test_read_only_source_names_writer(sources: Any, samples: Path, tmp_path: Path) -> None:
    row = sources.range(1)
    for source, remedy in (
        ("letterhead-segments", "only brokers write segments"),
        ("letterhead-state", "lhs.restore_stores writes stores"),
        ("letterhead-kafka", "write to Kafka by Spark's own format kafka"),
    ):
        with pytest.raises(Exception, match=f"{source} only reads: {remedy}"):
            row.write.format(source).mode("append").option("path", str(tmp_path)).save()


@pytest.mark.spark_only
def test_file_source_names_stream_reader(sources: Any, samples: Path) -> None:
    state = {"path": str(samples / "streams-state-0_0"), "store": "latest"}
    for source, options in ((SEGMENTS, {"path": str(samples / "orders-0")}), ("letterhead-state", state)):
        stream = sources.readStream.format(source).options(**options).load()
        with pytest.raises(Exception, match=f"{source} reads files as a batch, not as a stream: use spark.read"):
            stream.writeStream.format("noop").start().processAllAvailable()


def test_source_example_runs(sources: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from letterhead.spark.sources import segments as source

    monkeypatch.chdir(Path(__file__).parents[2])
    done = doctest.testmod(source, extraglobs={"spark": sources})
    assert (done.failed, done.attempted > 4) == (0, True)


def test_empty_list_of_columns_is_rejected(sources: Any, samples: Path) -> None:
    with pytest.raises(ValueError, match="no columns were asked for"):
        lhs.options(columns=[])
    with pytest.raises(Exception, match="no columns were asked for"):
        load(sources, samples / "orders-0", columns=[]).count()


def test_headers_option_accepts_command_line_syntax(sources: Any, samples: Path) -> None:
    names = "tenant, cents=amount_cents:int64"
    json_text = '{"tenant": "string", "cents": {"type": "int64", "key": "amount_cents"}}'
    read = [load(sources, samples / "orders-0", columns=["offset"], headers=text) for text in (names, json_text)]
    assert read[0].schema == read[1].schema
    assert read[0].orderBy("offset").collect() == read[1].orderBy("offset").collect()
    with pytest.raises(ValueError, match="option headers needs NAME:TYPE, as in tenant:string"):
        parse_options({"headers": "=x:string"}, COMMON)
    with pytest.raises(ValueError, match="option headers: name and type are separated by a colon: retry:int"):
        parse_options({"headers": "tenant,retry int"}, COMMON)
