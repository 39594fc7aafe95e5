"""`letterhead read` of log segments: what it shows, writes and reports, and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.helpers.command import Result, bytes_of
from tests.helpers.log_bytes import TRANSACTIONAL, batch, mark, record

LOG = f"{0:020}.log"

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[bytes], Path]:
    def make_folder(data: bytes) -> Path:
        folder = tmp_path / "orders-3"
        folder.mkdir()
        (folder / LOG).write_bytes(data)
        return folder

    return make_folder


BLOCK = b"\4\x0ctenant\x08acme\x08note\1"
FIRST = batch(
    record(key=b"a", value=b"\0\1", block=BLOCK), record(1, key=None, value=None), times=(1_767_225_600_000, 0)
)
SECOND = batch(record(), base_offset=110)


def test_records_are_shown_with_header_values(run: Run, folder: Callable[[bytes], Path]) -> None:
    result = run("read", folder(FIRST))
    assert (result.code, result.err) == (0, "")
    head, _, *rows, last = result.lines
    assert head.split() == ["offset", "timestamp", "key", "headers", "value"]
    assert [row.split() for row in rows] == [
        ["100", "2026-01-01T00:00:00.000Z", '"a"', 'tenant="acme"', "00", "01"],
        ["note=null"],
        ["101", "2026-01-01T00:00:00.000Z", "null", "none", "null"],
    ]
    assert last == "2 records"


def test_twenty_records_are_printed_by_default(run: Run, samples: Path) -> None:
    def offsets(*options: str) -> list[str]:
        lines = run("read", samples / "orders-0", *options).lines
        # Values that are folded have lines of their own, which begin further to the right.
        return [match[1] for line in lines if (match := re.match(r" *(\d+)  2026", line))]

    assert offsets() == [str(offset) for offset in range(20)]
    last = run("read", samples / "orders-0").lines[-1]
    assert last == "20 records, and there are more"
    assert offsets("--limit", "2", "--start", "5000") == ["5000", "5001"]
    assert len(offsets("--all", "--end", "60")) == 60


def test_json_has_all_fields_of_every_record(run: Run, samples: Path) -> None:
    result = run("read", samples / "orders-0", "--json")
    assert result.code == 0
    rows = [json.loads(line) for line in result.lines]
    with lh.read.segments(samples / "orders-0") as reader:
        expected = reader.read_all().to_pylist()
    assert len(rows) == len(expected) == 10_000

    for row, other in zip(rows, expected, strict=True):
        read = {**row, "key": bytes_of(row["key"]), "value": bytes_of(row["value"])}
        read["timestamp"] = datetime.fromisoformat(row["timestamp"])
        read["headers"] = [{"key": header["key"], "value": bytes_of(header["value"])} for header in row["headers"]]
        assert read == other


def test_parquet_has_all_fields_of_every_record(run: Run, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "orders.parquet"
    result = run("read", samples / "orders-0", "-o", out)
    assert (result.code, result.out) == (0, "")
    assert "10,000 records written to " in result.err
    with lh.read.segments(samples / "orders-0") as reader:
        assert pq.read_table(out) == reader.read_all()


def test_times_and_offsets_limit_records(run: Run, samples: Path) -> None:
    def offsets_between(*options: str) -> list[int]:
        lines = run("read", samples / "orders-0", "--json", *options).lines
        return [json.loads(line)["offset"] for line in lines]

    assert offsets_between("--start", "17", "--end", "20") == [17, 18, 19]
    assert offsets_between("--start", "-3", "--end", "-1") == [9997, 9998]
    with lh.read.segments(samples / "orders-0", columns=["offset", "timestamp"]) as reader:
        times = reader.read_all()
    rows = times.set_column(1, "timestamp", times["timestamp"].cast("int64")).to_pylist()
    since = 1_767_225_660_000  # one minute after the first
    expected = [row["offset"] for row in rows if since <= row["timestamp"] < since + 5000]
    assert len(expected) == 34
    assert offsets_between("--start", "2026-01-01T00:01:00Z", "--end", f"@{since + 5000}") == expected
    assert offsets_between("--start", "2026-01-01T01:01:00+01:00", "--end", "2026-01-01 00:01:05") == expected


def test_broker_directory_partitions_are_distinguished(run: Run, samples: Path, tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / LOG).write_bytes(FIRST)
    result = run("read", tmp_path)
    assert result.lines[0].split()[:4] == ["topic", "partition", "offset", "timestamp"]
    assert result.lines[-1] == "4 records"


def test_truncated_end_is_printed_and_exits_1(run: Run, folder: Callable[[bytes], Path]) -> None:
    result = run("read", folder(FIRST + SECOND[:-3]), "--json")
    assert result.code == 1
    assert len(result.lines) == 2
    [line] = result.err.splitlines()
    assert f"{LOG}: truncated at byte {len(FIRST)}, {len(SECOND) - 3} bytes before its end: the batch takes" in line


def test_truncated_batch_before_last_segment_stops_or_is_row(run: Run, folder: Callable[[bytes], Path]) -> None:
    path = folder(FIRST + SECOND[:-3])
    (path / f"{120:020}.log").write_bytes(batch(record(), base_offset=120))
    for source in (path, path / LOG):
        result = run("read", source, "--json")
        assert (result.code, len(result.lines)) == (1, 2)
        assert f"{LOG}: the batch at offset 102: the batch takes " in result.err
        result = run("read", source, "--json", "--errors", "column")
        assert result.code == 1
        errors = [row["error"][0]["code"] for row in map(json.loads, result.lines) if row["error"]]
        assert errors == ["truncated"]


def test_file_too_short_for_segment_raises(run: Run, folder: Callable[[bytes], Path]) -> None:
    path = folder(b"abc")
    result = run("read", path / LOG, "--json")
    assert (result.code, result.out) == (1, "")
    assert f"{LOG}: not a log segment: its 3 bytes end before the magic byte of a batch" in result.err
    assert run("read", path / LOG, "--errors", "column").code == 1
    (path / LOG).write_bytes(b"")
    assert run("read", path / LOG).code == 0


def test_damaged_batch_stops_read_or_is_row(run: Run, folder: Callable[[bytes], Path]) -> None:
    path = folder(FIRST[:-1] + b"\1" + SECOND)
    result = run("read", path, "--json")
    assert (result.code, result.out) == (1, "")
    assert f"{LOG}: the batch at offset 0: the checksum is" in result.err
    result = run("read", path, "--json", "--errors", "column")
    assert result.code == 1
    assert "letterhead: 1 batch did not decode: bad_crc 1\n" in result.err
    assert (
        f"{LOG}: offsets 0 to 109 are missing, at most 110 records: bytes 0 to {len(FIRST)} are damaged" in result.err
    )
    bad, good = [json.loads(line) for line in result.lines]
    assert (bad["offset"], bad["error"][0]["code"], bad["error"][0]["byte_offset"]) == (None, "bad_crc", 0)
    assert (good["offset"], good["error"]) == (110, None)
    result = run("read", path, "--json", "--errors", "null")
    assert [json.loads(line)["offset"] for line in result.lines] == [None, 110]
    assert result.code == 1


def test_many_damaged_batches_are_counted(run: Run, folder: Callable[[bytes], Path]) -> None:
    good, bad = batch(record(), base_offset=0), batch(record(), base_offset=0)[:-1] + b"\1"
    data = b"".join(
        (good if at % 2 else bad)[:7] + bytes([at]) + good[8:-1] + (good if at % 2 else bad)[-1:] for at in range(60)
    )
    result = run("read", folder(data), "--json", "--errors", "column")
    assert result.code == 1
    assert result.err.count("are missing, at most 1 record:") == 20
    assert "10 more damaged ranges" in result.err


def test_row_left_out_of_count_is_named(run: Run, folder: Callable[[bytes], Path]) -> None:
    result = run("read", folder(FIRST + batch(record(block=b"\2\x0ctenant\2\xff"), base_offset=110)), "--count-by", "tenant",
                 "--errors", "skip", "--csv")  # fmt: skip
    assert (result.code, result.lines) == (1, ['"tenant","count"', '"acme",1', ",1"])
    assert (
        "letterhead: topic orders, partition 3, offset 110: the value is not UTF-8 (value_not_utf8, byte " in result.err
    )


def test_counts_are_printed_beside_keys(run: Run, folder: Callable[[bytes], Path]) -> None:
    head, _, *rows, _ = run("read", folder(FIRST), "--count-by", "tenant").lines
    assert (head.split(), [row.split() for row in rows]) == (["tenant", "count"], [["acme", "1"], ["null", "1"]])
    assert len(head) < 30


def test_key_names_are_complete_beside_long_example(
    run: Run, folder: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "96")
    block = lh.encode(lh.Headers([("a-key-of-22-characters", bytes(range(8)))]), "kafka")
    lines = run("scan", folder(batch(record(block=block)))).lines
    assert [line.split()[:3] for line in lines if line.startswith("a-key")] == [["a-key-of-22-characters", "1", "0"]]


def test_pipe_is_not_read_as_log(run: Run, tmp_path: Path) -> None:
    import os

    (tmp_path / "orders-0").mkdir()
    os.mkfifo(tmp_path / "orders-0" / LOG)
    for path in (tmp_path / "orders-0", tmp_path / "orders-0" / LOG):
        result = run("read", path)
        assert (result.code, result.out) == (3, "")
        assert f"{LOG}: not a regular file" in result.err


def test_open_transaction_is_reported(run: Run, folder: Callable[[bytes], Path]) -> None:
    def sent_by(producer: int, offset: int) -> bytes:
        return batch(record(), base_offset=offset, attributes=TRANSACTIONAL, producer=(producer, 0, 0))

    path = folder(sent_by(1, 0) + mark(1, 1, commit=True) + sent_by(2, 2) + batch(record(), base_offset=3))
    result = run("read", path, "--committed", "--json")
    assert (result.code, [json.loads(line)["offset"] for line in result.lines]) == (0, [0])
    assert "orders-3: read up to offset 2, where a transaction of producer 2 is open" in result.err
    assert len(run("read", path, "--json").lines) == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{orders}", "--start", "yesterday"], "--start must be 'earliest', 'latest', an offset"),
        (["{orders}", "--json", "-o", "x.parquet"], "exclude each other"),
        (["{orders}", "--start", "9", "--end", "8"], "--end is before --start"),
        (["kafka://127.0.0.1:1/orders", "--start", "yesterday"], "--start must be 'earliest', 'latest', an offset"),
        (["{orders}", "--start", "1767225600000"], "for a time in milliseconds since 1970, pass '@1767225600000'"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_is_reported(run: Run, samples: Path, tmp_path: Path, args: list[str], message: str) -> None:
    result = run("read", *(arg.format(tmp=tmp_path, orders=samples / "orders-0") for arg in args))
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_unreadable_source_exits_3(run: Run, tmp_path: Path) -> None:
    result = run("read", tmp_path / "none")
    assert (result.code, result.out) == (3, "")
    assert result.err == f"letterhead: cannot read {tmp_path / 'none'}: no such file or directory\n"
    result = run("read", tmp_path)
    assert (result.code, result.out) == (3, "")
    assert "has no log segments" in result.err


def test_help_has_examples_and_exit_codes(run: Run) -> None:
    result = run("read", "--help")
    assert result.code == 0
    assert "letterhead read /var/lib/kafka/data/orders-0 --start -10 --all" in result.out
    assert "Exit codes: 0 success; 1 errors in the data" in result.out


@pytest.mark.parametrize("offset", [0, 153, 154, 422, 9999])
def test_inspect_finds_a_record_by_its_offset(run: Run, samples: Path, offset: int) -> None:
    result = run("inspect", samples / "orders-0", "--offset", offset, "--json")
    document = json.loads(result.out)
    base = int(document["labels"][0]["text"])
    labels = document["compressed"][0]["labels"] if "compressed" in document else document["labels"]
    [delta] = [int(label["text"]) for label in labels if label["field"] == "offset delta"]
    assert (result.code, base + delta) == (0, offset)
    with lh.read.segments(samples / "orders-0", columns=["key"], start=offset, end=offset + 1) as reader:
        [row] = reader.read_all().to_pylist()
    [key] = [label["hex"] for label in labels if label["field"] == "key" and label["header"] is None]
    assert bytes.fromhex(key) == row["key"]


def test_start_after_end_names_last_offset(run: Run, samples: Path) -> None:
    result = run("read", samples / "orders-0", "--start", "10001", "--json")
    assert (result.code, result.out) == (2, "")
    assert "--start is after the end of every partition: the last one ends at offset 10000" in result.err
    result = run("read", samples / "orders-0", "--start", "10000", "--json")
    assert (result.code, result.err) == (0, "no records from --start 10000 to --end latest\n")


def test_inspect_names_an_offset_that_is_missing(run: Run, samples: Path, tmp_path: Path) -> None:
    for offset in (10_000, 1 << 40):
        result = run("inspect", samples / "orders-0", "--offset", offset)
        assert (result.code, result.out) in ((1, ""), (2, ""))
        assert "offset" in result.err or "--start is after" in result.err
    for name in ("orders-0", "orders-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / LOG).write_bytes(batch(record(key=b"a")))
    result = run("inspect", tmp_path, "--offset", "100")
    assert (result.code, "choose one by --partition" in result.err) == (2, True)
    assert run("inspect", tmp_path, "--offset", "100", "--partition", "1").code == 0
    result = run("inspect", samples / "orders-0", "--offset", "1", "--column", "key")
    assert (result.code, "--offset excludes --column" in result.err) == (2, True)


def test_damaged_batch_is_listed_with_error(run: Run, folder: Callable[[bytes], Path]) -> None:
    path = folder(FIRST + SECOND[:-1] + b"\1")
    result = run("read", path, "--batches", "--json", "--columns", "base_offset,checksum")
    assert (result.code, [json.loads(line) for line in result.lines]) == (
        1,
        [{"base_offset": 100, "checksum": "ok"}, {"base_offset": 110, "checksum": "bad_crc"}],
    )
    assert result.err == "letterhead: 1 of 2 batches did not decode: bad_crc 1\n"


def test_headers_are_edited_before_rows_are_written(run: Run, folder: Callable[[bytes], Path], tmp_path: Path) -> None:
    source, masked = folder(FIRST), tmp_path / "masked.parquet"
    result = run("read", source, "--edit", "replace tenant=redact", "--edit", "append via=read", "--json")
    first, second = (json.loads(line) for line in result.lines)
    assert first["headers"] == [
        {"key": "tenant", "value": "***"},
        {"key": "note", "value": None},
        {"key": "via", "value": "read"},
    ]
    assert second["headers"] == [{"key": "via", "value": "read"}]
    assert run("read", source, "--edit", "drop tenant", "-o", masked).code == 0
    assert pq.read_table(masked)["headers"].to_pylist() == [[{"key": "note", "value": None}], []]


@pytest.mark.parametrize(
    ("edit", "warned"),
    [
        ("drop Tenant", 'none of these records had a header "Tenant", so that nothing was hidden'),
        ("replace tenannt=hash", 'none of these records had a header "tenannt", so that nothing was hidden'),
        ("only tenant,note", "none of these records had a header that 'only' names: none was kept"),
    ],
)
def test_edit_of_unseen_header_warns(
    run: Run, folder: Callable[[bytes], Path], tmp_path: Path, edit: str, warned: str
) -> None:
    source = folder(FIRST)
    for result in (
        run("read", source, "--edit", edit, "--json"),
        run("copy", source, tmp_path / "copy", "--edit", edit),
    ):
        assert (result.code, f"letterhead: --edit: {warned}\n" in result.err) == (1, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--edit", "mask tenant"], "is not a change such as"),
        (["--edit", "drop tenant", "--headers", "tenant"], "--edit changes the column headers, and excludes --headers"),
        (["--edit", "drop tenant", "--columns", "key"], "--edit needs a column of headers: there are key"),
    ],
)
def test_edit_that_cannot_apply_is_rejected(
    run: Run, folder: Callable[[bytes], Path], options: list[str], message: str
) -> None:
    result = run("read", folder(FIRST), *options)
    assert result.code != 0
    assert message in " ".join(result.err.split())


def test_header_is_not_selectable_as_column(run: Run, samples: Path) -> None:
    result = run("read", samples / "orders-0", "--headers", "tenant", "--columns", "offset,tenant")
    assert (result.code, result.out) == (2, "")
    assert "tenant of --headers follows the columns by itself" in result.err


def test_limit_counts_rows_of_damaged_batches(run, tmp_path):
    (tmp_path / "t-0").mkdir()
    batches = [lh.batch([lh.Message(offset=at, headers=[])], "record-batch") for at in range(5)]
    for at in (1, 3):
        batches[at] = batches[at][:-1] + b"\x09"
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    for errors, limit in (("only", 1), ("null", 2), ("column", 3)):
        result = run("read", tmp_path / "t-0", "-n", limit, "--errors", errors, "--columns", "offset", "--json")
        assert len(result.out.splitlines()) == limit
    assert run("read", tmp_path / "t-0", "-n", "1", "--json").code == 0
    assert "no records from" not in run("read", tmp_path / "t-0", "--errors", "only", "--start", "-2").err
