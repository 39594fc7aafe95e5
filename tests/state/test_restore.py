"""Directories rebuilt from changelogs: the bytes of Kafka Streams, whatever the source, wherever it was interrupted."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.errors import DamagedRowError, ProcessorStateError
from letterhead.state import ChangelogRecord, Stores, restore
from letterhead.state.context import with_position
from letterhead.state.restoring import restore as restoring
from letterhead.state.storage.keys import window_key
from letterhead.state.storage.position import Position
from tests.helpers.log_bytes import TRANSACTIONAL, batch, mark
from tests.helpers.log_bytes import record as logged
from tests.state import changelogs, deviations, traces

RESTORED = [
    name
    for name, lines in traces.traces().items()
    if any(line["type"] == "restore" for line in lines) and "in-memory" not in name
]


def options_of(config: dict[str, Any]) -> dict[str, Any]:
    """The options of `restore` for the store that a line's `config` describes."""
    family, supplier = config["family"], config["supplier"]
    layout = next((name for name in ("timestamped", "plain") if name in supplier), "headers")
    if family == "versioned":
        return {
            "store_type": "versioned",
            "layout": "plain",
            "retention": config["history_retention_ms"],
            "segment_interval": config["segment_interval_ms"],
        }
    if family == "kv":
        return {"layout": layout}
    name = f"time-ordered-{family}" if "time-ordered" in supplier else family
    return {"store_type": name, "layout": layout, "retention": config["retention_ms"]}


@pytest.mark.parametrize("batch", [1, 7, 1000])
@pytest.mark.parametrize("trace", RESTORED)
def test_restored_directories_match_kafka_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace: str, batch: int
) -> None:
    if batch == 7:
        monkeypatch.setattr(restoring, "WRITE_BYTES", 1)  # each batch is a file of its own
    lines = traces.traces()[trace]
    config = lines[0]["config"]
    config.setdefault("supplier", "")
    changelog = traces.changelog_of(next(line["changelog_of"] for line in lines if line["type"] == "restore"))
    right = deviations.DEFECTS.get(trace, deviations.AsJava)(trace, changelog)
    table = changelogs.table(changelog)
    source = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch))
    done = restore(source, tmp_path / "app" / "0_0", "store", **options_of(config))
    assert (done.records, done.offsets) == (len(changelog), {0: len(changelog) - 1})
    counts: Counter[str] = Counter()
    run = traces.Run(trace, 0, config, tmp_path, right)
    for line in lines[2:]:
        if line["type"] == "close":
            run.close(line, counts)
        else:
            # What is read is not compared: a store that was just opened does not know what has expired.
            run.ops, record = line["ops"], line["record"]
            run.input.pipe_input(b"k", b"v", int(record["timestamp"]), traces.headers_of(record["headers"]))
            run.driver.take_changelog("store")
    assert counts["databases"]


SAMPLES = Path(__file__).resolve().parents[1] / "samples"
LATEST = SAMPLES / "orders-app-latest-changelog-0"


def record(key: bytes, value: bytes | None, timestamp: int = 5, **headers: bytes) -> ChangelogRecord:
    return ChangelogRecord(key, value, timestamp, lh.Headers(headers.items()))


def rows(directory: Path) -> dict[str, traces.Families]:
    return {
        place: {name: entries for name, entries in families.items() if name != "offsets"}
        for place, families in traces.databases(directory).items()
    }


@pytest.mark.parametrize("source", [LATEST, LATEST.with_name(LATEST.name + ".parquet"), "reader", "table"])
def test_any_source_restores_rows_of_kafka_streams(tmp_path: Path, source: Any) -> None:
    if source == "reader":
        source = lh.read.segments(LATEST)
    elif source == "table":
        source = pq.read_table(LATEST.with_name(LATEST.name + ".parquet"))
    assert restore(source, tmp_path, "latest").offsets == {0: 9999}
    # A copy, as rocksdict writes a file beside what it reads.
    sample = shutil.copytree(SAMPLES / "streams-state-0_0" / "rocksdb" / "latest", tmp_path / "sample")
    expected = traces.dump(sample)
    shutil.rmtree(sample)
    tables = traces.dump(tmp_path / "rocksdb" / "latest")
    assert {name: entries for name, entries in tables.items() if name != "offsets"} == {
        name: entries for name, entries in expected.items() if name != "offsets"
    }
    offsets = dict(tables["offsets"])
    key = b"orders-app-latest-changelog-0".hex()
    assert offsets[key] == dict(expected["offsets"])[key]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rocksdb"]


def test_aborted_and_open_transactions_are_skipped(tmp_path: Path) -> None:
    def transactional(offset: int, key: bytes, producer: int) -> bytes:
        return batch(logged(key=key), base_offset=offset, attributes=TRANSACTIONAL, producer=(producer, 0, 0))

    log = tmp_path / "app-store-changelog-0" / f"{0:020}.log"
    log.parent.mkdir()
    log.write_bytes(
        transactional(0, b"committed", 1)
        + mark(1, 1, commit=True)
        + transactional(2, b"aborted", 2)
        + mark(3, 2, commit=False)
        + batch(logged(key=b"plain"), base_offset=4)
        + transactional(5, b"open", 3)
        + batch(logged(key=b"after"), base_offset=6)
    )
    done = restore(log.parent, tmp_path / "0_0", "store")
    assert (done.records, done.offsets) == (2, {0: 4})
    with lh.read.state(tmp_path / "0_0") as reader:
        assert reader.read_all()["key"].to_pylist() == [b"committed", b"plain"]
    assert [*lh.state.diff(tmp_path / "0_0", log.parent)] == []


def test_existing_store_is_rejected_and_kept(tmp_path: Path) -> None:
    restore(changelogs.table([record(b"k", b"1")]), tmp_path, "store")
    before = traces.databases(tmp_path)
    with pytest.raises(FileExistsError, match=r"store store exists in .*: restore into another directory"):
        restore(changelogs.table([record(b"k", b"2")]), tmp_path, "store")
    assert traces.databases(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


def test_interrupted_restore_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "WRITE_BYTES", 1)
    whole = changelogs.table([record(b"k%d" % (n % 7), b"%d" % n) for n in range(100)])

    def broken() -> Any:
        yield from whole.slice(0, 60).to_batches(max_chunksize=20)
        raise ConnectionError("gone")

    task = tmp_path / "app" / "0_0"
    with pytest.raises(OSError, match="gone"):
        restore(pa.RecordBatchReader.from_batches(whole.schema, broken()), task, "store")
    assert not (task / "rocksdb").exists()
    with pytest.raises(
        ProcessorStateError, match=r"a restore of store store was interrupted that had layout='headers'"
    ):
        restore(whole, task, "store", layout="plain")
    assert restore(whole, task, "store").records == 60  # the last batch waited, and is read again
    restore(whole, tmp_path / "other", "store")
    assert traces.databases(task) == traces.databases(tmp_path / "other")


def test_restore_killed_before_last_step_is_complete(tmp_path: Path) -> None:
    whole = changelogs.table([record(b"k", b"1")])
    restore(whole, tmp_path, "store")
    hidden = tmp_path / ".store.restoring"
    hidden.mkdir()
    assert restore(whole, tmp_path, "store").offsets == {0: 0}
    assert not hidden.exists()


def test_partitions_become_tasks(tmp_path: Path) -> None:
    parts = [changelogs.table([record(b"%d" % part, b"1")] * 3, partition=part) for part in (0, 2)]
    both = pa.concat_tables(parts)
    with pytest.raises(ValueError, match="the source has partitions 0 and 2: pass partition="):
        restore(both, tmp_path / "one", "store")
    done = restore(both, tmp_path / "0_{partition}", "store")
    assert done.directories == {part: tmp_path / f"0_{part}" / "rocksdb" / "store" for part in (0, 2)}
    assert lh.read.state(tmp_path / "0_2").read_all()["key"].to_pylist() == [b"2"]
    assert restore(both, tmp_path / "two", "store", partition=2).offsets == {2: 2}
    # A partition without records before the end has no directory.
    later = pa.concat_tables([parts[0], changelogs.table([record(b"2", b"1")], partition=2, first=9)])
    assert [*restore(later, tmp_path / "1_{partition}", "store", end=9).directories] == [0]
    assert not (tmp_path / "1_2").exists()


@pytest.mark.parametrize(("end", "last"), [(2, 1), (datetime.fromtimestamp(0.030, UTC), 2), (9, 4)])
def test_restore_stops_at_offset_or_time(tmp_path: Path, end: int | datetime, last: int) -> None:
    # The third record is not older than 30; the fourth is, and is after it.
    whole = changelogs.table([record(b"k", b"%d" % n, time) for n, time in enumerate((10, 20, 25, 30, 15))])
    assert restore(whole, tmp_path, "store", end=end).offsets == {0: last}
    (row,) = lh.read.state(tmp_path).read_all().to_pylist()
    assert row["value"] == b"%d" % last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store_type": "session", "layout": "timestamped", "retention": 5}, "its layout is plain or headers"),
        ({"store_type": "window"}, "rows of a window store expire: pass retention="),
        ({"retention": 5}, "rows of a key-value store do not expire"),
        ({"store_type": "windows"}, "did you mean 'window'"),
        ({"layout": "json"}, "unknown layout 'json'"),
        ({"partition": 7}, "the source has no record before the end"),
    ],
)
def test_unsuitable_options_are_rejected(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        restore(changelogs.table([record(b"k", b"1")]), tmp_path / "t", "store", **options)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("end", "error", "message"),
    [
        (-1, ValueError, "end is -1: an offset is not negative"),
        (True, TypeError, "end must be an offset or a datetime, not bool"),
        ("9", TypeError, "end must be an offset or a datetime, not str"),
        (datetime(2026, 1, 1), ValueError, "has no time zone"),
    ],
)
def test_end_that_is_neither_offset_nor_time_is_rejected(
    tmp_path: Path, end: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        restore(changelogs.table([record(b"k", b"1")]), tmp_path / "t", "store", end=end)
    assert not (tmp_path / "t").exists()


def test_out_of_order_records_are_rejected(tmp_path: Path) -> None:
    table = changelogs.table([record(b"k", b"1")] * 2)
    with pytest.raises(ValueError, match="the offsets of partition 0 do not increase after -1: sort the records"):
        restore(table.take([1, 0]), tmp_path, "store")
    with pytest.raises(ValueError, match="the source has no column 'timestamp'"):
        restore(table.drop(["timestamp"]), tmp_path, "store")
    with pytest.raises(ValueError, match="the source has no column 'headers': pass layout="):
        restore(table.drop(["headers"]), tmp_path, "store")


def test_key_without_time_is_rejected(tmp_path: Path) -> None:
    table = changelogs.table([record(window_key(b"k", 5), b"1"), record(b"short", b"1")])
    with pytest.raises(DamagedRowError, match="a key of 5 bytes is too short: the times take 12"):
        restore(table, tmp_path, "store", store_type="window", retention=60_000)


def test_empty_partition_becomes_empty_store(tmp_path: Path) -> None:
    done = restore(changelogs.table([]), tmp_path, "store", topic=changelogs.TOPIC, partition=0)
    assert (done.records, done.offsets) == (0, {0: -1})
    assert lh.read.state(tmp_path).read_all().num_rows == 0


def test_versioned_store_with_headers_is_restored(tmp_path: Path) -> None:
    supplier = Stores.persistent_versioned_key_value_store_with_headers("store", 1000)
    changelog = [record(b"k", b"%d" % n, 100 * (n % 13), h=b"%d" % n) for n in range(40)] + [record(b"k", None, 1300)]
    driver_store = Stores.versioned_key_value_store_with_headers_builder(supplier).build()
    driver_store.open(tmp_path / "driver", context())
    driver_store.restore(changelog)
    driver_store.close()
    restore(changelogs.table(changelog), tmp_path / "ours", "store", store_type="versioned", retention=1000)
    assert rows(tmp_path / "ours") == rows(tmp_path / "driver")


def context() -> Any:
    from letterhead.state.context import ChangelogList, StoreContext

    return StoreContext("app", changelog=ChangelogList())


def test_position_headers_are_not_row_headers(tmp_path: Path) -> None:
    position = Position({"orders": {0: 7}})
    headers = with_position(lh.Headers([("tenant", b"acme")]), position)
    records = [ChangelogRecord(b"k1", b"v", 5, headers), record(b"k2", b"v", tenant=b"acme")]
    restore(changelogs.table(records), tmp_path / "with", "store")
    plain = [record(original.key, original.value, tenant=b"acme") for original in records]
    restore(changelogs.table(plain), tmp_path / "without", "store")
    assert rows(tmp_path / "with") == rows(tmp_path / "without")


@pytest.mark.parametrize(
    ("topic", "partition", "task", "store", "reason"),
    [
        ("orders", 0, "0_0", "store", "topic orders is not named <application>-store-changelog"),
        (
            "app-store-changelog",
            0,
            "0_7",
            "store",
            "the records are of partition 0, and the task 0_7 is of partition 7",
        ),
        ("app-store-changelog", 0, "named__1_7", "store", "the task named__1_7 is of partition 7"),
        (
            "app-store-changelog",
            0,
            "0_0",
            "tore",
            "topic app-store-changelog is not named <application>-tore-changelog",
        ),
        ("-store-changelog", 0, "0_0", "store", "topic -store-changelog is not named"),
        ("app-store-changelog-2", 0, "0_0", "store", "topic app-store-changelog-2 is not named"),
        ("app-storeXchangelog", 0, "0_0", "store", "topic app-storeXchangelog is not named"),
    ],
)
def test_contradicting_names_are_rejected_unless_forced(
    tmp_path: Path, topic: str, partition: int, task: str, store: str, reason: str
) -> None:
    table = changelogs.table([record(b"k", b"1")], topic=topic, partition=partition)
    with pytest.raises(ValueError, match=re.escape(reason)):
        restore(table, tmp_path / task, store)
    assert list(tmp_path.iterdir()) == []
    assert restore(table, tmp_path / task, store, force=True).offsets == {partition: 0}


def test_records_of_another_topic_are_rejected_unless_forced(tmp_path: Path) -> None:
    table = changelogs.table([record(b"k", b"1")], topic="other-store-changelog")
    with pytest.raises(
        ValueError, match="the records are of topic other-store-changelog, and not of app-store-changelog"
    ):
        restore(table, tmp_path / "0_0", "store", topic="app-store-changelog")
    done = restore(table, tmp_path / "0_0", "store", topic="app-store-changelog", force=True)
    assert done.offsets == {0: 0}


@pytest.mark.parametrize("task", ["0_0", "named__3_0", "anything", "0_x"])
def test_matching_or_neutral_names_are_accepted(tmp_path: Path, task: str) -> None:
    table = changelogs.table([record(b"k", b"1")], topic="my-app-store-changelog")
    assert restore(table, tmp_path / task, "store").offsets == {0: 0}


def test_records_of_several_topics_are_rejected(tmp_path: Path) -> None:
    own = changelogs.table([record(b"k", b"1")])
    other = changelogs.table([record(b"k", b"2")], first=1, topic="other-store-changelog")
    both = pa.concat_tables([own, other])
    for source in (both, both.combine_chunks(), pa.concat_tables([other, own])):
        with pytest.raises(ValueError, match=r"the source has records of topics app-.* and other-.*: select those of"):
            restore(source, tmp_path, "store", topic=changelogs.TOPIC, force=True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", ["pipe", "pipe.parquet", "directory/pipe.parquet"])
def test_pipe_is_rejected_as_changelog(tmp_path: Path, place: str) -> None:
    pipe = tmp_path / place
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="is not a regular file"):
        restore(pipe.parent if "/" in place else pipe, tmp_path / "0_0", "store")


def windows(*rows: tuple[int, int]) -> list[ChangelogRecord]:
    """Records of windows that begin at the first number of each pair, with the second one as timestamp."""
    return [record(window_key(b"k", start), b"%d" % number, time) for number, (start, time) in enumerate(rows)]


WINDOW: dict[str, Any] = {"store_type": "window", "layout": "headers", "retention": 1000, "segment_interval": 2000}


def starts(directory: Path) -> list[int]:
    with lh.read.state(directory) as reader:
        times = reader.read_all()["window_start"].cast(pa.int64()).to_pylist()
    return sorted(times)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # The last record is of 3500, and 2600 of an older window is the first that is not older than 2500.
        ({}, [2200, 2400, 3400]),
        ({"start": "earliest"}, [2000, 2100, 2200, 2400, 3400]),
        ({"start": 1}, [2100, 2200, 2400, 3400]),
        ({"start": {0: 3}}, [2400, 3400]),
        # The last record before the end is of 2450.
        ({"end": 4}, [2000, 2100, 2200, 2400]),
        # The last of those is of 2300, whose retention begins before all of them.
        ({"end": datetime.fromtimestamp(2.4, UTC)}, [2000, 2100]),
    ],
)
@pytest.mark.parametrize("source", ["table", "parquet"])
def test_windowed_store_starts_with_first_record_in_retention(
    tmp_path: Path, source: str, options: dict[str, Any], expected: list[int]
) -> None:
    records: Any = changelogs.table(windows((2000, 2200), (2100, 2300), (2200, 2600), (2400, 2450), (3400, 3500)))
    if source == "parquet":
        pq.write_table(records, tmp_path / "changelog.parquet")
        records = tmp_path / "changelog.parquet"
    done = restore(records, tmp_path / "0_0", "store", **WINDOW, **options)
    assert starts(tmp_path / "0_0") == expected
    assert done.records == len(expected)


def test_one_pass_stream_restores_from_first_record(tmp_path: Path) -> None:
    records = changelogs.table(windows((2000, 2200), (3400, 3500)))
    restore(records.to_reader(), tmp_path, "store", **WINDOW)
    assert starts(tmp_path) == [2000, 3400]


@pytest.mark.parametrize("store_type", ["key-value", "versioned"])
def test_other_stores_restore_from_first_record(tmp_path: Path, store_type: Any) -> None:
    options = {"layout": "plain", "retention": 1000, "segment_interval": 500} if store_type == "versioned" else {}
    table = changelogs.table([record(b"a", b"1", 5000), record(b"b", b"2", 9000)])
    restore(table, tmp_path, "store", store_type=store_type, **options)  # type: ignore[arg-type]
    with lh.read.state(tmp_path, store_type=store_type) as reader:
        assert reader.read_all()["key"].to_pylist() == [b"a", b"b"]


def test_windowed_store_after_transaction_starts_at_first_record(tmp_path: Path) -> None:
    """The last offset of the log is the marker, from which Kafka Streams learns no time."""
    log = tmp_path / "app-store-changelog-0" / f"{0:020}.log"
    log.parent.mkdir()
    keys = [window_key(b"k", start) for start in (2000, 3400)]
    batches = [
        batch(logged(key=key), base_offset=offset, attributes=TRANSACTIONAL, producer=(1, 0, 0), times=(time, time))
        for offset, (key, time) in enumerate(zip(keys, (2200, 3500), strict=True))
    ]
    log.write_bytes(b"".join(batches) + mark(2, 1, commit=True))
    restore(log.parent, tmp_path / "0_0", "store", **WINDOW)
    assert starts(tmp_path / "0_0") == [2000, 3400]


def test_start_that_is_no_offset_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match='start must be "earliest", an offset or a mapping'):
        restore(changelogs.table(windows((0, 1))), tmp_path, "store", **WINDOW, start="latest")
