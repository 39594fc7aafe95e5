"""A name in a condition that is no field and that no record has is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
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


@pytest.mark.parametrize("where", ["headers is null", "headers = 'x'", lh.col("headers").is_null()])
def test_headers_column_is_no_operand(where: Any) -> None:
    with pytest.raises(ValueError, match="name one of them"):
        lh.read.segments(ORDERS, where=where)


def test_header_with_key_headers_is_operand() -> None:
    assert lh.read.segments(ORDERS, where="headers['headers'] = 'x'").read_all().num_rows == 0
