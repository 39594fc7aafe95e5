"""`letterhead read` of tables, of standard input, and of several sources."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from tests.helpers.command import Result, rows_of

Run = Callable[..., Result]
ENDINGS = ("parquet", "arrow", "arrows", "jsonl", "jsonl.gz", "jsonl.zst")


@pytest.fixture
def table(run: Run, samples: Path, tmp_path: Path) -> Callable[[str], Path]:
    def write(ending: str) -> Path:
        path = tmp_path / f"orders.{ending}"
        assert run("read", samples / "orders-0", "-n", "50", "-o", path).code == 0
        # The content decides what it is.
        return path.rename(tmp_path / "orders")

    return write


@pytest.mark.parametrize("ending", ENDINGS)
def test_read_output_is_readable_as_source(run: Run, samples: Path, table: Callable[[str], Path], ending: str) -> None:
    expected = run("read", samples / "orders-0", "-n", "50", "--json").out
    path = table(ending)
    assert run("read", path, "--json").out == expected
    assert run("read", "-", "--json", stdin=path.read_bytes()).out == expected


def test_compressed_parquet_file_is_read(run: Run, table: Callable[[str], Path], tmp_path: Path) -> None:
    path = table("parquet")
    expected = run("read", path, "--json").out
    (tmp_path / "compressed").write_bytes(gzip.compress(path.read_bytes()))
    assert run("read", tmp_path / "compressed", "--json").out == expected


@pytest.mark.parametrize("ending", ENDINGS)
def test_table_headers_are_selected_and_tested(run: Run, table: Callable[[str], Path], ending: str) -> None:
    options = ["--columns", "offset", "--headers", "tenant,amount_cents:int64", "--where", "tenant = 'acme'", "--json"]
    with lh.read.segments("tests/samples/orders-0", columns=["offset"], where="tenant = 'acme'", end=50) as reader:
        offsets = reader.read_all()["offset"].to_pylist()
    rows = rows_of(run("read", table(ending), *options))
    assert [row["offset"] for row in rows] == offsets
    assert {row["tenant"] for row in rows} == {"acme"}
    assert all(isinstance(row["amount_cents"], int) for row in rows)


def test_table_columns_are_condition_operands(run: Run, table: Callable[[str], Path]) -> None:
    path = table("parquet")
    where = "offset >= 48 and topic = 'orders' and timestamp >= '2026-01-01T00:00:00Z'"
    assert [row["offset"] for row in rows_of(run("read", path, "--where", where, "--json"))] == [48, 49]
    assert [row["offset"] for row in rows_of(run("read", path, "--last", "2", "--json"))] == [48, 49]
    result = run("read", path, "--where", "tenent = 'acme'", "--json")
    assert (result.code, 'no record had a header "tenent"' in result.err) == (0, True)


@pytest.mark.parametrize("name", ["orders-0", "orders-0.parquet", "orders-0.jsonl", "streams-state-0_0 -s latest"])
def test_errors_only_prints_unreadable_rows_and_counts_all(run: Run, samples: Path, name: str) -> None:
    source, *options = name.split()
    stdin = b""
    if source.endswith(".jsonl"):
        source, stdin = "-", run("read", samples / "orders-0", "--json").raw
    source = "-" if source == "-" else samples / source
    args = ["read", source, *options, "--headers", "tenant:int32"]
    everything = [json.loads(line) for line in run(*args, "--errors", "column", "--json", stdin=stdin).lines]
    bad = [row for row in everything if row["error"]]
    assert 0 < len(bad) < len(everything)
    result = run(*args, "--errors", "only", "--json", stdin=stdin)
    assert (result.code, [json.loads(line) for line in result.lines]) == (1, bad)
    assert f"{len(bad):,} of {len(everything):,} r" in result.err
    # A limit counts printed rows, and only errors up to the last of them.
    result = run(*args, "--errors", "only", "--json", "--limit", "3", stdin=stdin)
    assert [json.loads(line) for line in result.lines] == bad[:3]
    assert f"letterhead: 3 of {everything.index(bad[3])} r" in result.err


@pytest.mark.parametrize(("errors", "bad", "rows"), [("null", 2, 3), ("column", 2, 3), ("skip", 7, 10)])
def test_errors_are_counted_up_to_the_limit(run: Run, samples: Path, errors: str, bad: int, rows: int) -> None:
    result = run("read", samples / "orders-0", "--headers", "tenant:int32", "-n", "3", "--errors", errors)
    counted = f"{bad} records left out" if errors == "skip" else f"{bad} of {rows} records"
    assert (result.code, counted in result.err) == (1, True)


def test_typed_iggy_headers_are_read_from_table(run: Run, tmp_path: Path) -> None:
    headers = lh.arrow.decode(pa.array([lh.encode({"retry": lh.Int32(3)}, "iggy")]), "iggy")
    pq.write_table(pa.table({"n": [1], "headers": headers}), tmp_path / "t.parquet")
    result = run("read", tmp_path / "t.parquet", "--headers", "retry:int32", "--where", "retry::int32 > 2", "--json")
    assert rows_of(result) == [{"n": 1, "retry": 3}]


def test_columns_of_two_types_are_not_written_to_one_file(run: Run, samples: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "two.parquet"
    pq.write_table(pa.table({"offset": pa.array([7], pa.int32()), "n": [1]}), table)
    arguments = ("read", samples / "orders-0", table, "--columns", "offset")
    result = run(*arguments, "-o", out)
    assert (result.code, out.exists()) == (2, False)
    assert f"column offset is int32 in {table}, and int64 in {samples / 'orders-0'}: --json writes both" in result.err
    assert rows_of(run(*arguments, "--json"))[-1] == {"offset": 7}


def test_suggestion_for_condition_with_bare_name_works(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": [1, 2], "b": [True, None], "headers": pa.array([b"\0"] * 2, pa.binary())}), table)
    result = run("read", table, "--where", "b", "--columns", "id", "--json")
    advice = re.search(r"compare a column, as in (.*), or a header", result.err)
    assert (result.code, advice is not None) == (2, True)
    assert rows_of(run("read", table, "--where", advice[1], "--columns", "id", "--json")) == [{"id": 1}]  # type: ignore[index]


def test_typed_name_is_header_and_same_named_field_is_noted(run: Run, samples: Path) -> None:
    result = run("read", samples / "orders-0", "--where", "partition::int64 = 1", "--json")
    assert (result.code, result.out) == (0, "")
    assert 'no record had a header "partition"; the field "partition" is written without' in result.err
    assert len(rows_of(run("read", samples / "orders-0", "--where", "partition = 1", "--json"))) == 0


def test_sources_are_read_in_sequence(run: Run, samples: Path, tmp_path: Path) -> None:
    orders, store = samples / "orders-0", samples / "streams-state-0_0"
    rows = rows_of(run("read", orders, store, "-s", "hourly", "--json"))
    assert len(rows) == 10_000 + 300
    assert "window_start" in rows[-1]
    out = tmp_path / "two.parquet"
    result = run("read", orders, store, "-s", "latest", "-o", out)
    assert (result.code, "has other columns than" in result.err, out.exists()) == (2, True, False)
    columns = ["--columns", "key,value,timestamp"]
    assert run("read", orders, store, "-s", "latest", *columns, "-o", out).code == 0
    assert pq.read_table(out).num_rows == 10_000 + 6643
    rows = rows_of(run("read", orders, orders, "--count-by", "tenant", "--json"))
    assert sum(row["count"] for row in rows) == 20_000


def test_error_names_the_file_among_several(run: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"headers": [{"key": "n", "value": "12345678"}]}\n')
    bad.write_text('{"headers": [{"key": "n", "value": "1"}]}\n')
    for sources in ([good, bad], [bad, good]):
        result = run("read", *sources, "--headers", "n:int64")
        assert (result.code, f" in {bad} (header 0, row 0)" in result.err) == (1, True), result.err
    assert " in " not in run("read", bad, "--headers", "n:int64").err


@pytest.mark.parametrize("option", [["--count-by", "a"], ["--columns", "a"], ["--where", "a = 1"], ["-n", "1"]])
def test_unopenable_source_prints_one_line(option: list[str], run: Run, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("a,b\n1,2\n")
    result = run("read", tmp_path / "out.csv", *option)
    assert (result.code, result.lines) == (2, [])
    assert result.err.startswith(f"letterhead: {tmp_path / 'out.csv'} is not a supported source")
    assert result.err.count("\n") == 1
    store = samples / "streams-state-0_0"
    result = run("read", store, "--store", "none", *option)
    assert (result.code, result.err.count("\n"), result.err[:12]) == (result.code or 2, 1, "letterhead: ")


def test_header_named_like_column_can_be_renamed(run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    messages = [lh.Message(offset=7, timestamp=1, headers=[("offset", b"12"), ("a:b", b"x")])]
    (directory / f"{0:020}.log").write_bytes(lh.batch(messages, "record-batch"))
    result = run("read", directory, "--headers", "offset:string", "--json")
    assert (result.code, result.err) == (
        2,
        "letterhead: two columns 'offset' would be made: rename the one of --headers, as in header_offset=offset:string\n",
    )
    [row] = rows_of(run("read", directory, "--headers", "header_offset=offset:string", "--columns", "offset", "--json"))
    assert row == {"offset": 7, "header_offset": "12"}
    for wrong in ("=offset", "x=", "=:string"):
        result = run("read", directory, "--headers", wrong)
        assert (result.code, result.err.endswith("or NAME=HEADER:TYPE\n")) == (2, True)


@pytest.mark.parametrize("errors", ["raise", "column", "null", "skip", "only"])
def test_condition_on_valid_table_accepts_every_error_policy(
    errors: str, run: Run, samples: Path, tmp_path: Path
) -> None:
    source, where = samples / "orders-0.parquet", ["--where", "tenant = 'acme'"]
    expected = [] if errors == "only" else rows_of(run("read", source, *where, "--json"))
    rows = rows_of(run("read", source, *where, "--errors", errors, "--json"))
    assert [row["offset"] for row in rows] == [row["offset"] for row in expected]


@pytest.mark.parametrize("group_rows", [1, 100, 1000, 5000, 20_000])
def test_small_row_groups_with_nested_dictionaries_are_read(
    group_rows: int, run: Run, samples: Path, tmp_path: Path
) -> None:
    rows = 50 if group_rows == 1 else 10_000
    table = pq.read_table(samples / "orders-0.parquet").slice(0, rows)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group_rows, use_dictionary=True)
    assert lh.open(tmp_path / "t.parquet").read_all().to_pylist() == table.to_pylist()
    last = lh.open(tmp_path / "t.parquet", columns=["offset"], headers={"tenant": "string"}, last=7).read_all()
    assert last["offset"].to_pylist() == table["offset"].to_pylist()[-7:]
    assert run("read", tmp_path / "t.parquet", "--where", "tenant present", "--count-by", "tenant").code == 0


def test_counts_accept_renamed_headers_and_control_records(run: Run, samples: Path) -> None:
    counting = ["--json", "-n", "3"]
    plain = rows_of(run("read", samples / "orders-0", "--count-by", "tenant", *counting))
    renamed = rows_of(run("read", samples / "orders-0", "--count-by", "t=tenant:string", *counting))
    assert [{"tenant": row["t"], "count": row["count"]} for row in renamed] == plain
    rows = rows_of(run("read", samples / "orders-0", "--control", "--count-by", "aborted,control", "--json"))
    assert rows == [{"aborted": False, "control": None, "count": 10_000}]
    result = run("read", samples / "orders-0", "--errors", "column", "--columns", "offset,error")
    assert (result.code, "error of --errors follows the columns by itself" in result.err) == (2, True)


def test_count_by_lists_its_functions(run: Run, samples: Path) -> None:
    result = run("read", samples / "orders-0", "--count-by", "tenant,sum(amount_cents:int64)")
    assert (result.code, result.err) == (
        2,
        "letterhead: --count-by has no function but min(NAME) and max(NAME), as in tenant, max(amount_cents:int64)\n",
    )
    assert run("read", samples / "orders-0", "--count-by", "tenant, max(amount_cents:int64)").code == 0


def test_inspect_needs_kafka_log_for_batches(run: Run, samples: Path) -> None:
    parquet = samples / "orders-0.parquet"
    result = run("inspect", parquet, "--offset", "17")
    assert (result.code, result.err) == (
        2,
        f"letterhead: --offset is for topics and log segments of Kafka, not for {parquet}\n",
    )


def test_output_does_not_replace_source(run: Run, table: Callable[[str], Path], tmp_path: Path) -> None:
    path = table("jsonl").rename(tmp_path / "orders.jsonl")
    before = path.read_bytes()
    result = run("read", path, "-o", path)
    assert (result.code, "--out is the file that is read" in result.err) == (2, True)
    assert path.read_bytes() == before


def test_log_files_of_one_partition_are_one_source(run: Run, samples: Path) -> None:
    files = sorted((samples / "orders-0").glob("*.log"))
    expected = run("read", samples / "orders-0", "--json").out
    assert run("read", *files[::-1], "--json").out == expected


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (
            b"a,b\n1,2\n",
            2,
            "is not a supported source: it is neither a log segment, nor Parquet, Arrow IPC or JSON lines",
        ),
        (b'{"a": 1}\n{"a":\n', 1, "line 2 is not JSON"),
        (b'{"a": 1}\n[]\n', 1, "line 2 is not an object"),
        (b"PAR1 and no more", 1, "it is damaged"),
        (b"ARROW1\0\0", 1, "it is damaged"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\0abc", 1, "it is damaged"),
    ],
)
def test_file_that_is_no_table_is_named(run: Run, tmp_path: Path, data: bytes, code: int, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    for source, stdin in ((tmp_path / "file", b""), ("-", data)):
        result = run("read", source, "--json", stdin=stdin)
        assert (result.code, message in result.err) == (code, True), result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "nothing"], "there is no column 'nothing': there are topic,"),
        (["--start", "5"], "--start is for topics and log segments"),
        (["--follow"], "--follow is for topics"),
        (["--committed"], "--committed is for topics and log segments of Kafka"),
        (["-s", "x"], "--store and the options of its keys are for state directories"),
        (["--control"], "--control is for topics and log segments of Kafka"),
        (["--errors", "skip"], "--errors is for a table with --headers"),
        (["--partition", "x"], "'x' is neither a number nor a range"),
        (["--start", "0=1,x"], "'x' is not PARTITION=POINT"),
        (["--start", "0=1,0=2"], "'0=2' is a second point of partition 0"),
        (["--columns", "offset,offset"], "two columns 'offset' would be made: name it once in --columns"),
        (["--headers", ":int32"], "--headers needs NAME:TYPE"),
        (["--headers", "id, tenant string"], "--headers: name and type are separated by a colon: tenant:string"),
        (["--csv", "--json"], "--json and --csv exclude each other"),
    ],
)
def test_wrong_options_are_named(run: Run, table: Callable[[str], Path], options: list[str], message: str) -> None:
    result = run("read", table("parquet"), *options)
    assert (result.code, result.out, message in result.err) == (2, "", True), result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_read_permission_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"{}")
    (tmp_path / "file").chmod(0)
    result = run("read", tmp_path / "file")
    assert (result.code, result.err) == (3, f"letterhead: cannot read {tmp_path / 'file'}: permission denied\n")


def test_typed_header_absent_from_all_rows_is_noted(run: Run, samples: Path) -> None:
    args = ("read", samples / "orders-0", "--columns", "offset", "--headers", "tenent,tenant")
    result = run(*args, "--end", "100", "--json")
    assert (result.code, result.err) == (0, 'letterhead: none of these records has a value of the header "tenent"\n')
    # Other rows may have it.
    assert run(*args, "--json", "-n", "3").err == run(*args, "--last", "1", "--json").err == ""


def test_duplicate_column_names_are_rejected_unless_unselected(run: Run, tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "b", "a"])
    with pa.ipc.new_file(tmp_path / "t", batch.schema) as file:
        file.write_batch(batch)
    for options in ([], ["--columns", "a"]):
        result = run("read", tmp_path / "t", *options)
        assert (result.code, result.err) == (
            2,
            "letterhead: 2 columns are named 'a': pass the names of others in --columns\n",
        )
    assert rows_of(run("read", tmp_path / "t", "--columns", "b", "--json")) == [{"b": 2}]


def test_parquet_file_has_few_row_groups(run: Run, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    assert run("read", samples / "orders-0", "--limits", "arrow_batch_bytes=20000", "--out", out).code == 0
    metadata = pq.read_metadata(out)
    assert (metadata.num_rows, metadata.num_row_groups) == (10_000, 1)
    assert pq.read_table(out)["offset"].to_pylist() == list(range(10_000))
