"""What `read` selects, counts and reports: the same, whatever else is asked for."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers.command import Result
from tests.helpers.log_bytes import batch, record

Run = Callable[..., Result]

SAMPLES = Path(__file__).parents[1] / "samples"
ORDERS = SAMPLES / "orders-0"
LOG = "00000000000000000000.log"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.fixture
def truncated(tmp_path: Path) -> Path:
    """A log that ends within a batch."""
    folder = tmp_path / "truncated-0"
    folder.mkdir()
    (folder / LOG).write_bytes((ORDERS / LOG).read_bytes()[:300_000])
    return folder


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A log whose second batch, with 269 records, has a wrong checksum."""
    folder = tmp_path / "damaged-0"
    shutil.copytree(ORDERS, folder)
    data = bytearray((folder / LOG).read_bytes())
    data[53_241 + 200] ^= 0xFF
    (folder / LOG).write_bytes(data)
    return folder


# Conditions on headers that cannot be read --------------------------------------------------------------------------

CONDITIONS = [
    "retry::int16 = 1",
    "tenant = 'acme' or retry::int16 = 1",
    "retry::int16 is null",
    "offset < 5 and retry::int16 = 1",
    "not retry::int16 = 1",
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Headers of which one is not of the type of the conditions, and a column of offsets."""
    headers = [[("retry", b"1234"), ("tenant", b"acme")], [("retry", b"\0\1")], [("tenant", b"globex")], None]
    lists = [row and [{"key": key, "value": value} for key, value in row] for row in headers]
    path = tmp_path / "headers.parquet"
    pq.write_table(pa.table({"offset": pa.array([0, 1, 2, 7]), "headers": pa.array(lists, HEADERS)}), path)
    return path


@pytest.mark.parametrize("where", CONDITIONS)
def test_errors_null_selects_same_rows_as_arrow_select(run: Run, table: Path, where: str) -> None:
    column = pq.read_table(table)["headers"].combine_chunks()
    expected = column
    if "offset" in where:
        expected, where_headers = column.slice(0, 3), where.partition(" and ")[2]
    else:
        where_headers = where
    selected = lha.select(expected, {"tenant": "string"}, where=where_headers, errors="null")
    result = run("read", table, "--where", where, "--errors", "null", "--json", "--headers", "tenant")
    assert [row["tenant"] for row in rows(result)] == selected.field("tenant").to_pylist()


@pytest.mark.parametrize("where", CONDITIONS)
def test_errors_null_of_records_selects_same_rows_as_arrow(run: Run, where: str) -> None:
    with lh.read.segments(ORDERS, columns=["offset"], where=where, errors="null") as reader:
        expected = reader.read_all()["offset"].to_pylist()
    result = run("read", ORDERS, "--where", where, "--errors", "null", "--json", "--columns", "offset")
    assert [row["offset"] for row in rows(result)] == expected
    assert result.code == 1
    assert "did not decode: wrong_size" in result.err


def test_undecided_rows_are_reported_and_not_counted(run: Run) -> None:
    result = run("read", ORDERS, "--where", "retry::int16 = 1", "--errors", "null", "--count-by", "partition", "--json")
    assert (result.code, rows(result)) == (1, [])
    assert "9,700 of 9,700 records did not decode: wrong_size 9,700" in result.err
    assert "9,700 records left out, as --where is null where a header or value cannot be read" in result.err


def test_errors_column_keeps_undecided_rows_and_names_where(run: Run, table: Path) -> None:
    result = run("read", table, "--where", "retry::int16 = 1", "--errors", "column", "--json", "--columns", "offset")
    first, second = rows(result)
    assert (first["offset"], [error["column"] for error in first["error"]]) == (0, ["where"])
    assert second == {"offset": 1, "error": None}


def test_condition_decided_by_other_operand_is_not_error_column(run: Run, table: Path) -> None:
    where = "tenant = 'acme' or retry::int16 = 1"
    result = run("read", table, "--where", where, "--errors", "column", "--json", "--columns", "offset")
    assert [[error["column"] for error in row["error"] or ()] for row in rows(result)] == [[None], []]


def test_header_error_in_condition_and_columns_counts_once(run: Run) -> None:
    arguments = ("--where", "retry::int16 = 1", "--headers", "retry:int16", "--errors", "column")
    result = run("read", ORDERS, *arguments, "--csv", "-n", "5")
    assert "5 of 5 records did not decode: wrong_size 5\n" in result.err


# Findings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "selection",
    [[], ["--last", "1"], ["-n", "1"], ["--where", "offset = 5"], ["--end", "3"], ["--batches"], ["--batches", "-n", "1"],
     ["--start", "-2"], ["--count-by", "partition"], ["--control"]],
    ids=str,
)  # fmt: skip
def test_truncated_end_is_reported_for_any_selection(run: Run, truncated: Path, selection: list[str]) -> None:
    result = run("read", truncated, *selection)
    assert (result.code, result.err.count("truncated at byte 293950")) == (1, 1)


def test_inspect_and_scan_report_a_truncated_end(run: Run, truncated: Path) -> None:
    for result in (run("inspect", truncated, "--offset", "3"), run("scan", truncated, "--last", "1")):
        assert (result.code, result.err.count("truncated at byte 293950")) == (1, 1)


@pytest.mark.parametrize("size", [0, 7, 9])
def test_inspect_reports_value_not_of_requested_type(run: Run, size: int) -> None:
    data = lh.encode([("a", b"v" * size)], "kafka")
    assert data is not None
    result = run("inspect", "-f", "kafka", "--hex", data.hex(), "--headers", "a:int64")
    assert (result.code, "1 header, 1 error" in result.lines[0]) == (1, True)
    assert f"{size} bytes where int64 takes 8 (wrong_size, byte" in result.out
    result = run("inspect", "-f", "kafka", "--hex", data.hex(), "--headers", "a:int64", "--json")
    [error] = json.loads(result.out)["errors"]
    assert (result.code, error["code"], error["column"]) == (1, "wrong_size", "a")
    assert run("inspect", "-f", "kafka", "--hex", data.hex(), "--headers", "a:binary").code == 0


def test_inspect_shows_bytes_of_batch_with_wrong_checksum(run: Run, damaged: Path) -> None:
    result = run("inspect", damaged, "--offset", "160", "--json")
    document = json.loads(result.out)
    assert result.code == 1
    # The changed byte is a length, too.
    assert [error["code"] for error in document["errors"]] == ["bad_crc", "negative_length"]
    stored = (damaged / LOG).read_bytes()[53_241:]
    shown = bytes.fromhex("".join(label["hex"] for label in document["labels"]))
    assert stored.startswith(shown[:61])
    result = run("inspect", damaged, "--offset", "160")
    assert (result.code, "2 errors" in result.lines[0], "^^" in result.out) == (1, True, True)


def test_inspect_of_missing_offset_suggests_no_options(run: Run) -> None:
    result = run("inspect", ORDERS, "--offset", "99999")
    assert (result.code, "--start" in result.err, "--end" in result.err) == (1, False, False)
    assert f"offset 99999 is not in {ORDERS}" in result.err


def test_damaged_batch_counts_as_batch(run: Run, damaged: Path) -> None:
    result = run("read", damaged, "--errors", "skip", "--count-by", "partition", "--json")
    assert rows(result) == [{"partition": 0, "count": 9731}]
    assert "letterhead: 1 batch left out, as it could not be read\n" in result.err
    assert "at most 269 records" in result.err
    result = run("read", damaged, "--errors", "column", "--count-by", "partition")
    assert "9,731 records with 1 value" in result.out
    assert "1 batch did not decode: bad_crc 1" in result.err
    assert run("read", damaged, "--errors", "only").lines[-1] == "0 records and 1 unreadable batch"


def test_header_with_null_value_counts_as_header(run: Run, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "null-0"
    folder.mkdir()
    (folder / LOG).write_bytes(batch(record(block=b"\2\x08null\1"), base_offset=0))
    assert run("read", folder, "--where", "\"null\" = 'x'", "--json").err == ""
    lists = pa.array([[{"key": "null", "value": None}]], HEADERS)
    pq.write_table(pa.table({"headers": lists}), table)
    assert run("read", table, "--where", "\"null\" = 'x'", "--json").err == ""


# Columns that tell rows apart ---------------------------------------------------------------------------------------


def test_rows_of_several_logs_have_topic_and_partition_columns(run: Run, tmp_path: Path) -> None:
    for name in ("a-0", "b-0"):
        shutil.copytree(ORDERS, tmp_path / name)
    result = run("read", tmp_path / "a-0", tmp_path / "b-0", "-n", "1")
    assert result.lines[0].split()[:3] == ["topic", "partition", "offset"]
    assert "topic" not in run("read", tmp_path / "a-0", "-n", "1").lines[0]


def test_rows_of_several_tasks_have_task_column(run: Run, tmp_path: Path) -> None:
    for name in ("0_0", "0_1"):
        shutil.copytree(SAMPLES / "streams-state-0_0", tmp_path / name)
    result = run("read", tmp_path / "0_0", tmp_path / "0_1", "--store", "latest", "-n", "1")
    assert result.lines[0].split()[:3] == ["task", "store", "key"]


# Times in the wrong unit --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "right"), [("1767243600", "1767243600000"), ("9999999999", "9999999999000")]
)  # fmt: skip
def test_seconds_are_rejected_with_suggested_milliseconds(run: Run, number: str, right: str) -> None:
    result = run("read", ORDERS, "--start", f"@{number}")
    assert (result.code, f"write @{right} if {number} are seconds" in result.err) == (2, True)
    assert run("read", ORDERS, "--start", f"@{right}", "--errors", "skip").code == 0
    result = run("read", ORDERS, "--where", f"timestamp < {number}")
    assert (result.code, f"write {right} if {number} are seconds" in result.err) == (2, True)
    assert run("read", ORDERS, "--where", f"timestamp < {right}", "--json", "-n", "1").code == 0


def test_microseconds_are_rejected(run: Run) -> None:
    result = run("read", ORDERS, "--end", "@1767243600000000")
    assert (result.code, "after the year 9999: check the unit" in result.err) == (2, True)


# Errors and their remedy ----------------------------------------------------------------------------------------------


def test_row_error_names_option_that_shows_all_rows(run: Run) -> None:
    arguments = ["read", str(ORDERS), "--headers", "retry:int16", "--csv"]
    result = run(*arguments)
    remedy = re.search(r"pass (--errors \w+)$", result.err.strip())
    assert (result.code, remedy is not None) == (1, True)
    result = run(*arguments, *remedy[1].split())  # type: ignore[index]
    assert (len(result.lines), "--errors" in result.err) == (10_001, False)


def test_message_error_names_no_option_for_rows(run: Run) -> None:
    result = run("decode", "--hex", "02", "-f", "kafka")
    assert (result.code, "--errors" in result.err) == (1, False)


def test_errors_are_counted_by_code(run: Run) -> None:
    result = run("read", ORDERS, "--headers", "retry:int16", "--errors", "column", "--count-by", "error", "--json")
    assert rows(result) == [{"error": "wrong_size", "count": 9700}, {"error": None, "count": 300}]
    arguments = ("--where", "retry::int16 = 1", "--headers", "retry:int16", "--errors", "only", "--json")
    result = run("read", ORDERS, *arguments, "--count-by", "partition,error")
    assert rows(result) == [{"partition": 0, "error": "wrong_size", "count": 9700}]


@pytest.mark.parametrize("errors", ["raise", "null", "skip"])
def test_header_named_error_stays_column(run: Run, errors: str) -> None:
    result = run(
        "read", ORDERS, "--headers", "error,tenant", "--errors", errors, "--columns", "offset", "--json", "-n1"
    )
    assert rows(result) == [{"offset": 0, "error": None, "tenant": "株式会社"}]


@pytest.mark.parametrize("source", [ORDERS, SAMPLES / "orders-0.parquet", SAMPLES / "streams-state-0_0"], ids=str)
def test_error_column_can_be_renamed(run: Run, source: Path) -> None:
    arguments = ["read", source, "--headers", "error,retry:int16", "--errors", "column", "--json", "-n", "1"]
    arguments += ["--store", "latest"] if source.is_dir() and source.name.startswith("streams") else []
    result = run(*arguments)
    remedy = re.search(r"give (--error-column) another name", result.err)
    assert (result.code, remedy is not None) == (2, True)
    result = run(*arguments, remedy[1], "problems")  # type: ignore[index]
    assert [*rows(result)[0]][-3:] == ["error", "retry", "problems"]


def test_error_column_name_needs_error_column(run: Run) -> None:
    result = run("read", ORDERS, "--error-column", "problems")
    assert (result.code, "--error-column needs --errors column or only" in result.err) == (2, True)


# The last printed rows ------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Two partitions; the header of every third record is not an int16."""
    blocks = [lh.encode([("n", b"\0\1" if number % 3 else b"\0\0\0\1")], "kafka") or b"" for number in range(60)]
    for partition in range(2):
        folder = tmp_path / "mixed" / f"t-{partition}"
        folder.mkdir(parents=True)
        records = [record(number, block=block) for number, block in enumerate(blocks)]
        (folder / LOG).write_bytes(batch(*records, base_offset=0))
    return tmp_path / "mixed"


@pytest.mark.parametrize("last", [0, 1, 3, 25, 100])
@pytest.mark.parametrize(
    ("errors", "is_printed"), [("skip", lambda n: n % 3), ("only", lambda n: n % 3 == 0), ("null", lambda n: n % 3)]
)
def test_last_option_prints_last_rows(
    run: Run, mixed: Path, tmp_path: Path, errors: str, is_printed: Callable[[int], object], last: int
) -> None:
    expected = [number for number in range(60) if is_printed(number)]
    arguments = ["--errors", errors, "--last", str(last), "--json"]
    arguments += ["--where", "n::int16 = 1"] if errors == "null" else ["--headers", "n:int16"]
    result = run("read", mixed, "--columns", "partition,offset", *arguments)
    found = [(row["partition"], row["offset"]) for row in rows(result)]
    assert found == [(partition, offset) for partition in (0, 1) for offset in (expected[-last:] if last else [])]
    table = tmp_path / "t.parquet"
    with lh.read.segments(mixed / "t-0", columns=["offset", "headers"]) as reader:
        pq.write_table(reader.read_all(), table)
    result = run("read", table, "--columns", "offset", *arguments)
    assert [row["offset"] for row in rows(result)] == (expected[-last:] if last else [])


def test_errors_among_last_rows_are_named_like_all(run: Run, damaged: Path) -> None:
    arguments = ("read", damaged, "--errors", "only", "--columns", "offset", "--json")
    whole, last = run(*arguments), run(*arguments, "--last", "2")
    assert (last.code, rows(last)) == (1, rows(whole)[-2:])
    [missing] = [line for line in whole.err.splitlines() if " are missing, " in line]
    assert missing in last.err.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [("--errors", "skip", "--headers", "n:int16"), ("--errors", "null", "--where", "n::int16 = 1")],
    ids=["skip", "null"],
)
def test_rows_after_last_printed_are_not_counted(run: Run, mixed: Path, arguments: tuple[str, ...]) -> None:
    read = ("read", mixed / "t-0", "--columns", "offset", *arguments)
    # Offsets 0 and 3 are unreadable, and so is 6, which follows the fourth row.
    limited = run(*read, "-n", "4")
    assert (limited.code, re.search(r"\b2 (of 6 )?records", limited.err) is not None) == (1, True)
    assert "4 records, and there are more" in limited.out
    assert [row["offset"] for row in rows(run(*read, "-n", "4", "--json"))] == [1, 2, 4, 5]
    # The last record of the file is the last one that is printed.
    whole = run(*read, "-n", "40")
    assert (re.search(r"\b20 (of 60 )?records", whole.err) is not None, "more" in whole.out) == (True, False)


# Wrong checksums ------------------------------------------------------------------------------------------------------


def test_records_in_batch_with_wrong_checksum_carry_error(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    shutil.copytree(ORDERS, folder)
    data = bytearray((folder / LOG).read_bytes())
    data[53_241 + 17] ^= 0xFF  # the checksum itself
    (folder / LOG).write_bytes(data)
    result = run("read", folder, "--ignore-crc", "--count-by", "error", "--json")
    assert (result.code, rows(result)) == (1, [{"error": None, "count": 9731}, {"error": "bad_crc", "count": 269}])
    assert "269 of 10,000 records did not decode: bad_crc 269" in result.err
    with lh.open(folder, errors="column", ignore_crc=True) as reader, lh.read.segments(ORDERS) as whole:
        read = reader.read_all()
        assert read.drop(["error"]).drop(["topic"]).equals(whole.read_all().drop(["topic"]))
    wrong = [
        offset for offset, error in zip(*(read[name].to_pylist() for name in ("offset", "error")), strict=True) if error
    ]
    assert wrong == [*range(154, 423)]
    result = run("read", folder, "--ignore-crc", "--start", "200", "--end", "202", "--columns", "offset", "--json")
    assert [row["offset"] for row in rows(result)] == [200, 201]
    result = run("read", folder, "--ignore-crc", "--where", "tenant = 'acme'", "--errors", "only", "--json")
    assert {row["offset"] for row in rows(result)} < {*range(154, 423)}


def test_condition_tests_headers_before_edits(run: Run) -> None:
    change = ("--edit", "rename tenant=customer", "--columns", "headers", "--json", "-n", "3")
    changed = rows(run("read", ORDERS, "--where", "tenant = 'acme'", *change))
    keys = [{header["key"] for header in row["headers"]} for row in changed]
    assert len(keys) == 3
    assert all("customer" in names and "tenant" not in names for names in keys)
    assert rows(run("read", ORDERS, "--where", "customer = 'acme'", *change)) == []


def test_records_hidden_by_damage_are_named_as_missing(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    shutil.copytree(ORDERS, folder)
    data = bytearray((folder / LOG).read_bytes())
    data[886_251 + 200] ^= 0xFF  # within the gzip data of offsets 3500 to 3912
    (folder / LOG).write_bytes(data)
    options: dict[str, Any] = {"columns": ["offset"], "errors": "column"}
    with lh.read.segments(folder, **options) as plain, lh.read.segments(folder, **options, ignore_crc=True) as reader:
        assert plain.read_all().num_rows == reader.read_all().num_rows == 9588
        [expected], [damaged] = plain.damaged, reader.damaged
    assert damaged[:5] == expected[:5] == (str(folder / LOG), 886_251, expected.end, 3500, 3912)
    for arguments in ((), ("--errors", "only"), ("--count-by", "partition"), ("--where", "tenant = 'acme'")):
        result = run("read", folder, "--ignore-crc", "--json", *arguments)
        assert (result.code, "offsets 3500 to 3912 are missing, at most 413 records" in result.err) == (1, True)
    for arguments in (("--start", "3913"), ("--end", "3500")):
        result = run("read", folder, "--ignore-crc", "--json", "--columns", "offset", *arguments)
        assert (result.code, result.err) == (0, "")


def test_batch_with_wrong_checksum_is_read_up_to_damage(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    records = [record(number) for number in range(10)]
    damaged, size = bytearray(batch(*records, base_offset=10)), len(records[0])
    damaged[61 + 7 * size] = 1  # the length of the eighth record is -1
    (folder / LOG).write_bytes(batch(*records, base_offset=0) + damaged + batch(*records, base_offset=20))
    result = run("read", folder, "--ignore-crc", "--json", "--columns", "offset")
    assert [row["offset"] for row in rows(result)] == [*range(17), None, *range(20, 30)]
    assert (result.code, "offsets 17 to 19 are missing, at most 3 records" in result.err) == (1, True)


def test_damage_within_batch_is_error_of_its_record(run: Run, damaged: Path) -> None:
    result = run("read", damaged, "--ignore-crc", "--errors", "only", "--columns", "offset", "--json", "-n", "2")
    first, second = ([error["code"] for error in row["error"]] for row in rows(result))
    assert (first, second) == (["negative_length", "bad_crc"], ["bad_crc"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--errors", "skip"], "--ignore-crc shows records with an error, and --errors skip does not"),
        (["--batches"], "--ignore-crc is for records of log segments of Kafka"),
    ],
)
def test_checksums_are_ignored_for_printed_records(run: Run, damaged: Path, arguments: list[str], message: str) -> None:
    result = run("read", damaged, "--ignore-crc", *arguments)
    assert (result.code, message in result.err) == (2, True)
    result = run("read", SAMPLES / "orders-0.parquet", "--ignore-crc")
    assert (result.code, "--ignore-crc is for records of log segments of Kafka" in result.err) == (2, True)
    with pytest.raises(ValueError, match="ignore_crc= needs errors='column'"):
        lh.read.segments(damaged, ignore_crc=True)


def test_unreadable_batch_is_not_counted_as_control_record(run: Run, damaged: Path) -> None:
    result = run("read", damaged, "--control", "--errors", "column", "--count-by", "partition", "--json")
    assert rows(result) == [{"partition": 0, "count": 9731}]


# Nothing to read ------------------------------------------------------------------------------------------------------


def test_empty_input_is_noted(run: Run, tmp_path: Path) -> None:
    result = run("read", "-", "--json")
    assert (result.code, result.out, result.err) == (0, "", "letterhead: standard input is empty\n")
    (tmp_path / "t.jsonl").write_bytes(b"")
    assert run("read", tmp_path / "t.jsonl").err.endswith("t.jsonl is empty\n")
    assert run("scan", tmp_path / "t.jsonl").err.endswith("has no column 'headers': it is empty\n")
    assert run("read", tmp_path / "t.jsonl", "--columns", "a").err.endswith("the table is empty\n")


def test_column_limit_reports_remaining_rows(run: Run) -> None:
    result = run("decode", ORDERS, "-c", "headers", "-f", "kafka", "--limit", "1")
    assert result.lines[-1] == "1 row, and there are more"


# Advice of conditions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "advice"),
    [
        ("note exists", r"write (note IS PRESENT)$"),
        ("tenant = 'acme' and note exists", r"write (tenant = 'acme' AND note IS PRESENT)$"),
        ("timestamp > -1h", r"as in (timestamp > '-1h')$"),
        ("timestamp > @1767225600000", r"as a (number): 1767225600000$"),
    ],
)
def test_condition_suggested_by_error_is_accepted(run: Run, where: str, advice: str) -> None:
    result = run("read", ORDERS, "--where", where, "--json")
    found = re.search(advice, result.err.strip())
    assert (result.code, found is not None) == (2, True)
    right = where.replace("@", "") if found[1] == "number" else found[1]  # type: ignore[index]
    assert run("read", ORDERS, "--where", right, "--json", "-n", "1").code == 0


def test_misspelt_broker_option_is_named(run: Run) -> None:
    result = run("read", "kafka:///orders", "-X", "bootstrap.server=h:9092")
    assert (result.code, "did you mean 'bootstrap.servers'?" in result.err) == (2, True)
    assert "pass -b host:port" in run("group", "list").err
