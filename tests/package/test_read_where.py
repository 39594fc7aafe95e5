"""`where=` of the readers: what is selected, and what is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import letterhead as lh
from letterhead.offsets import segment_file

HEADERS = {"tenant": "string", "retry": "int32"}


def read(path: Path, **options: Any) -> pa.Table:
    with lh.read.segments(path, headers=HEADERS, **options) as reader:
        return reader.read_all()


@pytest.mark.parametrize(
    ("where", "mask"),
    [
        (lh.col("tenant") == "acme", pc.field("tenant") == "acme"),
        ((lh.col("retry") > 0) & (lh.col("offset") >= 5000), (pc.field("retry") > 0) & (pc.field("offset") >= 5000)),
        (lh.col("partition") == 1, pc.field("partition") == 1),
        (
            (lh.col("topic") == "no") | lh.col("tenant").is_null(),
            (pc.field("topic") == "no") | pc.field("tenant").is_null(),
        ),
    ],
)
def test_selected_records_match_pyarrow(samples: Path, where: Any, mask: Any) -> None:
    expected = read(samples / "orders-0").filter(mask)
    assert read(samples / "orders-0", where=where).combine_chunks() == expected.combine_chunks()


def test_batches_outside_condition_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    messages = [lh.Message(offset=at, timestamp=1000 + at, headers=[("retry", b"x")]) for at in range(30)]
    batches = [lh.batch(messages[first : first + 10], "record-batch") for first in (0, 10, 20)]
    (folder / "00000000000000000000.log").write_bytes(b"".join(batches))
    # Each record has a bad value, which is only an error where it is read.
    bad = lh.col("retry", "int32") > 0
    for where in (lh.col("offset") >= 30, lh.col("timestamp") > 2000, lh.col("offset") < 0):
        assert read(folder, where=bad & where).num_rows == 0
    with pytest.raises(lh.DecodeError, match="1 byte where int32 takes 4"):
        read(folder, where=bad & (lh.col("offset") >= 29))
    kept = read(folder, where=bad & (lh.col("offset") >= 29), errors="column")
    assert kept["offset"].to_pylist() == [29]
    assert {error["column"] for error in kept["error"][0].as_py()} == {"where", "retry"}


def test_sparse_selection_reads_more_batches_at_a_time(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_file, "PIECE_LEN", 20_000)

    def sizes(where: Any) -> list[int]:
        with lh.read.segments(samples / "orders-0", columns=["offset"], where=where) as reader:
            return [len(rows) for rows in reader]

    everything, few = sizes(None), sizes(lh.col("ce_id", "string") < "03")
    assert 20 < len(sizes(lh.col("ce_id", "string") >= "0")) <= len(everything)
    assert len(few) < len(everything) / 2
    # What follows records that are all selected is read in single pieces again.
    dense = sizes((lh.col("offset") >= 5_000) | (lh.col("ce_id", "string") < "03"))
    assert max(dense) > max(everything)
    assert max(dense[len(dense) // 2 :]) <= max(everything)


def test_damaged_batches_are_never_dropped_silently(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batch = lh.batch([lh.Message(offset=0, timestamp=1, headers=[("tenant", "b")])], "record-batch")
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    after = bytearray(lh.batch([lh.Message(offset=0, timestamp=1, headers=[("tenant", "b")])], "record-batch"))
    after[7] = 1
    (folder / "00000000000000000000.log").write_bytes(damaged + after)
    where = lh.col("tenant") == "a"
    with pytest.raises(lh.DecodeError):
        read(folder, where=where)
    assert [error[0]["code"] for error in read(folder, where=where, errors="column")["error"].to_pylist()] == [
        "bad_crc"
    ]
    assert read(folder, where=where, errors="null").num_rows == 0


_STORE_CONDITIONS = [
    (lh.col("tenant") == "acme", lambda rows: pc.equal(rows["tenant"], "acme")),
    (
        (lh.col("retry", "int32") > 0) & lh.col("key").starts_with("order-1"),
        lambda rows: pc.and_kleene(pc.greater(rows["retry"], 0), pc.starts_with(rows["key"], b"order-1")),
    ),
    (
        (lh.col("timestamp") > "2026-01-01T00:10:00Z") & ~(lh.col("tenant").isin(["acme"])),
        lambda rows: pc.and_kleene(
            pc.greater(rows["timestamp"].cast(pa.int64()), 1767226200000), pc.not_equal(rows["tenant"], "acme")
        ),
    ),
]


@pytest.mark.parametrize(("where", "mask"), _STORE_CONDITIONS)
def test_store_rows_are_selected(samples: Path, where: Any, mask: Any) -> None:
    def rows(where: Any = None) -> pa.Table:
        options: Any = {"store": "latest", "headers": HEADERS}
        with lh.read.state(samples / "streams-state-0_0", where=where, **options) as reader:
            return reader.read_all().combine_chunks()

    full = rows()
    assert rows(where) == full.filter(mask(full)).combine_chunks()


def test_store_rows_with_errors_are_kept_or_null(samples: Path) -> None:
    where = lh.col("tenant", "int16") > 0
    state = samples / "streams-state-0_0"
    with (
        pytest.raises(lh.errors.DamagedRowError, match="column where"),
        lh.read.state(state, store="latest", where=where) as reader,
    ):
        reader.read_all()
    with lh.read.state(state, store="latest", where=where, errors="null") as reader:
        assert reader.read_all().num_rows == 0
    with lh.read.state(state, store="latest", columns=["key"], where=where, errors="column") as reader:
        errors = reader.read_all()["error"]
    assert len(errors) > 0
    assert errors.null_count == 0
