"""A directory of Parquet files, as Spark writes it, as a source."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.helpers.command import Result, rows_of

Run = Callable[..., Result]


@pytest.fixture
def directory(samples: Path, tmp_path: Path) -> Path:
    """What `partitionBy("day", "shard").parquet(path)` of Spark writes, with what else lies there."""
    table = pq.read_table(samples / "orders-0.parquet")
    for number in range(4):
        path = tmp_path / "orders" / f"day=2026-01-0{1 + number // 2}" / f"shard={number % 2}"
        path.mkdir(parents=True)
        pq.write_table(table.slice(number * 100, 100), path / f"part-0000{number}-c000.snappy.parquet")
        (path / f".part-0000{number}-c000.snappy.parquet.crc").write_bytes(b"crc")
    (tmp_path / "orders" / "_SUCCESS").touch()
    (tmp_path / "orders" / "_temporary").mkdir()
    (tmp_path / "orders" / "_temporary" / "part-00009.parquet").write_bytes(b"half")
    return tmp_path / "orders"


def test_rows_of_directory_have_partition_columns(run: Run, samples: Path, directory: Path) -> None:
    expected = rows_of(run("read", samples / "orders-0.parquet", "--json", "-n", "400"))
    for row, record in enumerate(expected):
        record |= {"day": f"2026-01-0{1 + row // 200}", "shard": row // 100 % 2}
    assert rows_of(run("read", directory, "--json")) == expected
    with lh.open(directory, where="day = '2026-01-02' and shard = 1", columns=["offset", "day"]) as reader:
        table = reader.read_all()
    assert table["offset"].to_pylist() == [row["offset"] for row in expected[300:]]
    assert set(table["day"].to_pylist()) == {"2026-01-02"}


def test_every_command_reads_a_directory(run: Run, samples: Path, directory: Path, tmp_path: Path) -> None:
    counts = rows_of(run("read", directory, "--count-by", "shard", "--json"))
    assert sorted((row["shard"], row["count"]) for row in counts) == [(0, 200), (1, 200)]
    assert "Scan of 400 rows" in run("scan", directory).out
    assert "Scan of 50 rows" in run("scan", directory, "--sample", "50").out
    decoded = rows_of(run("decode", directory, "-c", "headers", "-f", "kafka", "--json", "-n", "1"))
    assert decoded[0]["day"] == "2026-01-01"
    converted = tmp_path / "converted.parquet"
    options = ("-c", "headers", "-f", "kafka", "-t", "kafka", "-o", converted)
    assert run("convert", directory, *options).code == 0
    assert pq.read_metadata(converted).num_rows == 400
    value = pq.read_table(samples / "orders-0.parquet")["value"][350].as_py()
    inspected = run("inspect", directory, "-c", "value", "--row", "350", "-f", "streams", "--json")
    assert json.loads(inspected.out)["bytes"] == len(value)


def test_changelog_restores_from_partition_directories(run: Run, samples: Path, tmp_path: Path) -> None:
    changelog = pq.read_table(samples / "orders-app-latest-changelog-0.parquet")
    for part, part_rows in enumerate((changelog.slice(0, 5000), changelog.slice(5000))):
        path = tmp_path / "changelog" / "partition=0" / f"part-{part}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part_rows.drop_columns(["partition"]), path)
    restored = run("state", "restore", tmp_path / "changelog", tmp_path / "app" / "0_0", "-s", "latest")
    assert restored.code == 0, restored.err
    assert run("state", "diff", tmp_path / "app", samples / "streams-state-0_0" / "rocksdb" / "latest").code == 0


def test_columns_missing_from_some_files_are_null(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": pa.array([1 << 40]), "text": ["t"]}), tmp_path / "b.parquet")
    assert rows_of(run("read", tmp_path, "--json")) == [{"n": 1, "text": None}, {"n": 1 << 40, "text": "t"}]
    pq.write_table(pa.table({"n": [["list"]]}), tmp_path / "c.parquet")
    result = run("read", tmp_path, "--json")
    assert (result.code, "columns of different types" in result.err) == (2, True)
    found = (
        f"'n' is int64 in {tmp_path / 'b.parquet'}, and list<element: string> in {tmp_path / 'c.parquet'}: read each"
    )
    assert found in result.err
    assert rows_of(run("read", tmp_path / "c.parquet", "--json")) == [{"n": ["list"]}]


INEXACT = {
    "whole numbers and floats": (pa.array([(1 << 53) + 1]), pa.array([1.5]), "would be double with"),
    "times": (
        pa.array([1 << 60], pa.timestamp("us")),
        pa.array([1], pa.timestamp("ns")),
        "would be timestamp[ns] with",
    ),
    "decimals and floats": (pa.array([Decimal("0.1")]), pa.array([0.5]), "and double in"),
}


@pytest.mark.parametrize("case", INEXACT)
def test_values_of_files_are_exact_or_an_error(case: str, tmp_path: Path) -> None:
    first, second, message = INEXACT[case]
    for name, column in (("a", first), ("b", second)):
        pq.write_table(pa.table({"n": column}), tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        lh.open(tmp_path).read_all()
    assert not isinstance(raised.value, lh.errors.DamagedTableError | pa.ArrowInvalid)
    assert all(str(tmp_path / name) in str(raised.value) for name in ("a.parquet", "b.parquet"))
    if "decimals" in case:
        with pytest.raises(
            ValueError, match=r"column 'n' is decimal128.* in the first source and double in the second"
        ):
            lh.diff(pa.table({"n": first}), pa.table({"n": second}))


@pytest.mark.parametrize("type", [pa.int32(), pa.int64(), pa.int16(), pa.string()])
def test_column_may_repeat_its_partition_path(type: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "partition=03" / "x.parquet"
    path.parent.mkdir()
    value = "03" if type == pa.string() else 3
    pq.write_table(pa.table({"offset": [5, 6], "partition": pa.array([value] * 2, type)}), path)
    # A file without the column has the value of its path.
    (tmp_path / "partition=04").mkdir()
    pq.write_table(pa.table({"offset": [7]}), tmp_path / "partition=04" / "x.parquet")
    rows = lh.open(tmp_path).read_all()
    assert rows["partition"].to_pylist() == [value, value, "04" if type == pa.string() else 4]
    assert rows.schema.field("partition").type == type


@pytest.mark.parametrize("column", [[3, 0], [3, None], ["a", "b"], [b"3", b"\xff"], [[3], [3]]])
def test_column_that_contradicts_its_partition_path_is_an_error(column: list[Any], run: Run, tmp_path: Path) -> None:
    path = tmp_path / "orders" / "partition=3" / "x.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"offset": [5, 6], "partition": column}), path)
    message = re.escape(f"{path}: its directories name the column 'partition', and ")
    with pytest.raises(ValueError, match=message):
        lh.open(tmp_path / "orders").read_all()
    result = run("read", tmp_path / "orders", "--json")
    assert (result.code, "read the file alone to get its column" in result.err) == (2, True)
    assert lh.open(path).read_all()["partition"].to_pylist() == column
    assert lh.open(tmp_path / "orders", columns=["offset"]).read_all()["offset"].to_pylist() == [5, 6]


def test_partition_path_of_nulls_is_a_column_of_text(tmp_path: Path) -> None:
    path = tmp_path / "tenant=__HIVE_DEFAULT_PARTITION__" / "x.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"offset": [5]}), path)
    assert lh.open(tmp_path).read_all().to_pydict() == {"offset": [5], "tenant": [None]}


def test_only_files_committed_by_streaming_query_are_read(run: Run, directory: Path) -> None:
    log = directory / "_spark_metadata"
    log.mkdir()
    names = ["part-00000-c000.snappy.parquet", "part-00003-c000.snappy.parquet"]
    for batch, name in enumerate(names):
        entry = {"path": f"file:///elsewhere/day%3D2026/{name}", "size": 1, "action": "add"}
        (log / f"{batch}{'.compact' if not batch else ''}").write_text(f"v1\n{json.dumps(entry)}\n")
    offsets = [row["offset"] for row in rows_of(run("read", directory, "--columns", "offset", "--json"))]
    assert offsets == [*range(100), *range(300, 400)]


def test_files_deleted_by_streaming_query_are_omitted(run: Run, directory: Path) -> None:
    (directory / "_spark_metadata").mkdir()
    entries = [("00000", "add"), ("00001", "add"), ("00000", "delete")]
    lines = [
        json.dumps({"path": f"file:///x/part-{name}-c000.snappy.parquet", "action": action}) for name, action in entries
    ]
    (directory / "_spark_metadata" / "0.compact").write_text("\n".join(["v1", *lines]))
    offsets = [row["offset"] for row in rows_of(run("read", directory, "--columns", "offset", "--json"))]
    assert offsets == [*range(100, 200)]


@pytest.mark.parametrize(
    "entry", ['{"size": 1}', '{"path": 5}', '{"path": "x"', "{" * 100_000, '{"path": null}', "[]", "v1", "\0"]
)
def test_commit_without_file_is_named(run: Run, directory: Path, entry: str) -> None:
    (directory / "_spark_metadata").mkdir()
    (directory / "_spark_metadata" / "0").write_text(f"v1\n{entry}\n")
    result = run("read", directory)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"letterhead: cannot read {directory / '_spark_metadata' / '0'}: line 2 names no file\n"


def test_missing_file_committed_by_streaming_query_raises(run: Run, directory: Path) -> None:
    (directory / "_spark_metadata").mkdir()
    (directory / "_spark_metadata" / "0").write_text('v1\n{"path": "file:///x/part-9.parquet", "action": "add"}\n')
    result = run("read", directory)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"letterhead: cannot read {directory}: it lacks 1 file that _spark_metadata names\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_malformed_commit_is_not_read(run: Run, directory: Path, make: Callable[[Path], None]) -> None:
    log = directory / "_spark_metadata"
    log.mkdir()
    make(log / ".1.tmp")
    make(log / "1")
    result = run("read", directory)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"letterhead: cannot read {log / '1'}: it is not a regular file\n"


def test_link_to_itself_is_not_a_file(run: Run, directory: Path) -> None:
    (directory / "self.parquet").symlink_to("self.parquet")
    result = run("read", directory)
    assert (result.code, result.out) == (2, "")
    assert "self.parquet is not a regular file" in result.err


def test_link_is_followed_once(run: Run, directory: Path) -> None:
    for link, target in [
        ("day=2026-01-01/shard=7", "."),
        ("x=1", "."),
        ("y=1", ".."),
        ("z=1", "day=2026-01-02/shard=0"),
    ]:
        (directory / link).symlink_to(directory / target)
    [file] = (directory / "day=2026-01-01" / "shard=0").glob("part*.parquet")
    (directory / "day=2026-01-01" / "shard=0" / "same.parquet").symlink_to(file)
    rows = rows_of(run("read", directory, "--columns", "offset", "--json"))
    assert [row["offset"] for row in rows] == [*range(400)]


def test_table_with_transaction_log_is_rejected(run: Run, directory: Path) -> None:
    (directory / "_delta_log").mkdir()
    result = run("read", directory)
    assert (result.code, "is a table of Delta" in result.err) == (2, True)


def test_damaged_file_is_named(run: Run, directory: Path) -> None:
    path = next(directory.rglob("part-00002*"))
    path.write_bytes(path.read_bytes()[:-20])
    result = run("read", directory, "--json")
    assert (result.code, result.out) == (1, "")
    assert f"cannot read {path}: it is damaged" in result.err


def test_directory_of_unrelated_files_is_rejected(run: Run, directory: Path) -> None:
    # Tables in directories of other names are not parts of one.
    result = run("read", directory.parent)
    assert (result.code, "no Parquet files" in result.err) == (3, True)


def test_values_of_directories_are_unquoted_and_null(run: Run, tmp_path: Path) -> None:
    for name, number in (("tenant=a%20b", 1), ("tenant=__HIVE_DEFAULT_PARTITION__", 2)):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"n": [number]}), tmp_path / name / "part-0.parquet")
    table = lh.open(tmp_path).read_all()
    assert dict(zip(table["n"].to_pylist(), table["tenant"].to_pylist(), strict=True)) == {1: "a b", 2: None}
