"""A name in a condition that is no field and that no record has is noticed."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import UnseenHeaderWarning
from tests.helpers.command import Result

SAMPLES = Path(__file__).parents[1] / "samples"
ORDERS = str(SAMPLES / "orders-0")
STATE = str(SAMPLES / "streams-state-0_0")


def shown_names(result: Result) -> list[str]:
    return result.lines[0].split()


@pytest.mark.parametrize(
    "where", ["tenent = 'acme'", "tenant = 'acme' or tenent = 'x'", "tenent::string is null", "not tenent = 'x'"]
)
def test_read_warns_of_header_absent_from_all_records(where: str, run: Any) -> None:
    result = run("read", ORDERS, "--json", "--where", where)
    assert result.code == 0
    assert 'no record had a header "tenent"' in result.err
    assert "tenant" not in result.err
    assert "offset" in result.err


@pytest.mark.parametrize("where", ["tenant = 'no such tenant'", "tenant = 'acme'", "offset < 5 and key is not null"])
def test_read_does_not_warn_of_header_in_some_record(where: str, run: Any) -> None:
    assert run("read", ORDERS, "--json", "--where", where).err == ""


def test_read_does_not_check_headers_after_limit(run: Any) -> None:
    result = run("read", ORDERS, "--json", "-n", "1", "--where", "tenant = 'acme' or tenent = 'x'")
    assert (len(result.lines), result.err) == (1, "")


@pytest.mark.parametrize("store", ["latest", "hourly", "sessions"])
def test_store_read_warns_of_header_absent_from_all_rows(store: str, run: Any) -> None:
    result = run("read", STATE, "--store", store, "--where", "tenent = 'acme'")
    times = {"latest": [], "hourly": ["window_start", "sequence"], "sessions": ["session_start", "session_end"]}[store]
    others = ["task", "store", "key", *times, *(["timestamp"] if store != "sessions" else []), "value"]
    assert f'no record had a header "tenent"; names of fields are {", ".join(others)}' in result.err


def test_store_read_does_not_warn_of_header_in_some_row(run: Any) -> None:
    assert run("read", STATE, "--store", "latest", "--json", "--where", "tenant = 'nobody'").err == ""


@pytest.mark.parametrize("store", ["latest", "hourly", "sessions"])
def test_all_columns_shown_by_store_read_are_fields(store: str, run: Any) -> None:
    total = len(run("read", STATE, "--store", store, "--json").lines)
    for name in shown_names(run("read", STATE, "--store", store, "-n", "1")):
        if name != "headers":
            result = run("read", STATE, "--store", store, "--json", "--where", f"{name} is not null")
            assert (len(result.lines), result.err) == (total, ""), name


def test_all_columns_shown_by_read_are_fields(run: Any) -> None:
    for name in shown_names(run("read", ORDERS, "-n", "1")):
        if name != "headers":
            result = run("read", ORDERS, "-n", "1", "--where", f"{name} is not null")
            assert (result.lines[-1].startswith("1 record"), result.err) == (True, ""), name


def test_time_shown_by_read_can_be_compared(run: Any) -> None:
    line = run("read", ORDERS, "-n", "1").lines[2].split()
    assert run("read", ORDERS, "-n", "1", "--where", f"timestamp = '{line[1]}'").lines[2].split() == line


CALLS: dict[str, Callable[..., Any]] = {
    "open": lambda **options: lh.open(ORDERS, **options).read_all(),
    "open a table": lambda **options: lh.open(f"{ORDERS}.parquet", **options).read_all(),
    "open a stream": lambda **options: pa.RecordBatchReader.from_stream(lh.open(ORDERS, **options)).read_all(),
    "open a store": lambda **options: lh.open(STATE, store="latest", **options).read_all(),
    "segments": lambda **options: lh.read.segments(ORDERS, **options).read_all(),
    "state": lambda **options: lh.read.state(STATE, store="latest", **options).read_all(),
    "diff": lambda **options: lh.diff(ORDERS, ORDERS, **options).read_all(),
    "copy": lambda **options: lh.copy(ORDERS, f"{tempfile.mkdtemp()}/copy", **options),
    "copy to a file": lambda **options: lh.copy(ORDERS, f"{tempfile.mkdtemp()}/copy.jsonl", **options),
}


@pytest.mark.parametrize("call", CALLS)
def test_functions_warn_of_header_absent_from_all_rows(call: str) -> None:
    with pytest.warns(
        UnseenHeaderWarning, match='^where=: no record had a header "tenent"; names of fields are '
    ) as warned:
        CALLS[call](where="tenent = 'acme'")
    assert {warning.filename for warning in warned if warning.category is UnseenHeaderWarning} == {__file__}
    if call != "diff":
        message = '^none of these (record|row)s has a value of the header "tenent"$'
        with pytest.warns(UnseenHeaderWarning, match=message) as warned:
            CALLS[call](headers={"tenent": "string"})
        assert {warning.filename for warning in warned if warning.category is UnseenHeaderWarning} == {__file__}
        assert sum(warning.category is UnseenHeaderWarning for warning in warned) == 1


@pytest.mark.parametrize("call", CALLS)
def test_functions_do_not_warn_of_header_in_some_row(call: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenHeaderWarning)
        CALLS[call](where="tenant = 'no such tenant'")
        CALLS[call](where="key is null")


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"tenent": "string"}, "last": 5},
        {"headers": {"retry": "int64"}, "errors": "column"},
        {"headers": {"tenent": "string"}, "start": 5, "end": 5},
        {"where": "tenent = 'x'", "start": 5, "end": 5},
        {"headers": lh.conventions.profile("cloudevents")},
    ],
)
def test_names_that_need_not_be_wrong_are_not_reported(options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenHeaderWarning)
        lh.open(ORDERS, **options).read_all()
        with lh.open(ORDERS, headers={"tenent": "string"}) as reader:
            next(reader)


def test_column_is_reported_by_its_header() -> None:
    headers = {"a": lh.field("string", key="tenent"), "b": lh.field("string", key="tenant")}
    with pytest.warns(UnseenHeaderWarning, match='header "tenent"$'):
        lh.open(ORDERS, headers=headers).read_all()


@pytest.mark.parametrize("header", ["tenent", "retry"])
def test_column_of_nulls_is_reported_with_its_type(header: str) -> None:
    # With errors="null", values of other types are null, too.
    with pytest.warns(UserWarning, match=f'^none of these records has a value of the header "{header}" as int64$'):
        lh.open(ORDERS, headers={header: "int64"}, errors="null").read_all()


def test_continued_copy_is_not_searched_for_names(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenHeaderWarning)
        for end in (5000, "latest", "latest"):
            lh.copy(ORDERS, tmp_path / "copy", where="tenant = 'acme'", end=end)


def test_condition_on_fields_bounds_the_search(tmp_path: Path) -> None:
    [log] = Path(ORDERS).glob("*.log")
    data = bytearray(log.read_bytes())
    data[-100] ^= 1  # the search does not read batches that the condition excludes
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / log.name).write_bytes(data)
    with pytest.warns(UnseenHeaderWarning, match='no record had a header "tenent"'):
        lh.open(tmp_path / "orders-0", where="offset < 5 and tenent = 'x'").read_all()


@pytest.mark.parametrize(
    "command",
    [
        ["diff", ORDERS, ORDERS, "--where", "tenent = 'x'"],
        ["copy", ORDERS, "copy", "--where", "tenent = 'x'"],
        ["scan", ORDERS, "--where", "tenent = 'x'"],
        ["decode", ORDERS, "-c", "headers", "-f", "kafka", "--where", "tenent = 'x'"],
    ],
)
def test_every_command_warns_of_header_absent_from_all_records(
    command: list[str], run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*command)
    assert (result.code, 'letterhead: --where: no record had a header "tenent"' in result.err) == (0, True), result.err


def test_verified_copy_names_header_without_values_once(run: Any, tmp_path: Path) -> None:
    result = run("copy", ORDERS, tmp_path / "copy", "--headers", "tenent", "--verify")
    assert (result.code, result.err.count('none of these records has a value of the header "tenent"')) == (0, 1)


@pytest.mark.parametrize("where", ["headers is null", "headers = 'x'", lh.col("headers").is_null()])
def test_headers_column_is_no_operand(where: Any) -> None:
    with pytest.raises(ValueError, match="name one of them"):
        lh.read.segments(ORDERS, where=where)


def test_header_with_key_headers_is_operand() -> None:
    assert lh.read.segments(ORDERS, where="headers['headers'] = 'x'").read_all().num_rows == 0
