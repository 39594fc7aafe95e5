"""`letterhead diff`: what differs between two sources, on a screen, as JSON and in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.errors import DecodeError
from tests.helpers.command import Result

Run = Callable[..., Result]


def record(offset: int, **changes: Any) -> dict[str, Any]:
    headers = [{"key": "tenant", "value": "acme"}, {"key": "n", "value": "1"}]
    own = {"partition": 0, "offset": offset, "timestamp": "2026-01-01T00:00:00.000Z", "key": "k", "value": "v"}
    return {**own, "headers": headers, **changes}


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, *records: dict[str, Any]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    return write


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_copied_log_is_equal_in_every_form(ending: str, run: Run, samples: Path, tmp_path: Path) -> None:
    path = tmp_path / f"orders.{ending}"
    assert run("read", samples / "orders-0", "-o", path).code == 0
    result = run("diff", samples / "orders-0", path)
    assert (result.code, result.lines) == (0, ["no record differs; 10,000 equal"])


def test_diff_shows_only_differences_in_order(run: Run, written: Callable[..., Path]) -> None:
    other = [{"key": "tenant", "value": "acme"}, {"key": "n", "value": "2"}]
    first = written("a.jsonl", record(0), record(1), record(2), record(3))
    second = written("b.jsonl", record(0), record(1, headers=other, value="w"), record(3), record(4, key=None))
    result = run("diff", first, second)
    assert result.code == 1
    rows = [line.split() for line in result.lines]
    assert rows[0] == ["partition", "offset", "differs", "first", "second"]
    assert rows[2:4] == [["0", "1", "value", '"v"', '"w"'], ["headers", 'n="1"', 'n="2"']]
    assert [row[:3] for row in rows if row[0] == "0"] == [
        ["0", "1", "value"],
        ["0", "2", "record"],
        ["0", "4", "record"],
    ]
    assert result.lines[-1] == "1 record differs, 1 only in the first source, 1 only in the second; 2 equal"
    assert run("diff", first, second, "--columns", "timestamp", "--where", "offset in (0, 1, 3)").code == 0


def test_repeats_and_order_of_headers_differ(run: Run, written: Callable[..., Path]) -> None:
    pairs = [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]
    first = written("a.jsonl", record(0, headers=pairs), record(1, headers=pairs))
    second = written("b.jsonl", record(0, headers=pairs[::-1]), record(1, headers=pairs[1:]))
    result = run("diff", first, second, "--json")
    found = [json.loads(line) for line in result.lines]
    assert [row["differs"] for row in found] == [["headers"], ["headers"]]
    assert [row["second"]["headers"] for row in found] == [pairs[::-1], pairs[1:]]


def test_differences_are_written_to_a_file(run: Run, written: Callable[..., Path], tmp_path: Path) -> None:
    first, second = written("a.jsonl", record(0)), written("b.jsonl", record(0, value="w"), record(1))
    assert run("diff", first, second, "-o", tmp_path / "d.parquet").code == 1
    rows = pq.read_table(tmp_path / "d.parquet").to_pylist()
    assert [(row["offset"], row["differs"]) for row in rows] == [(0, ["value"]), (1, [])]
    assert (rows[0]["first"]["value"], rows[0]["second"]["value"], rows[1]["first"]) == (b"v", b"w", None)


def test_limit_counts_hidden_differences(run: Run, written: Callable[..., Path]) -> None:
    first = written("a.jsonl", *map(record, range(30)))
    second = written("b.jsonl", *(record(offset, key="x") for offset in range(30)))
    shown = run("diff", first, second)
    assert sum('"k"' in line for line in shown.lines) == 20
    assert shown.lines[-1] == "30 records differ (10 not shown: --all); 0 equal"
    assert sum('"k"' in line for line in run("diff", first, second, "--all").lines) == 30
    assert len(run("diff", first, second, "--json", "-n", "3").lines) == 3
    assert run("diff", first, second, "-n", "0").code == 1


def test_positions_option_compares_topic_with_copy(run: Run, written: Callable[..., Path]) -> None:
    first = written("a.jsonl", record(3), record(5), record(9))
    second = written("b.jsonl", record(0), record(1), record(2))
    assert run("diff", first, second).code == 1
    assert run("diff", first, second, "--by", "position").lines == ["no record differs; 3 equal"]


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([record(1), record(0)], [], "compare by position"),
        ([{"other": 1}], [], "no column is in both sources"),
        ([record(0)], ["--columns", "nope"], "there is no column 'nope'"),
        ([record(0)], ["-p", "1"], "--partition is for topics and log segments"),
    ],
)
def test_incomparable_sources_raise(
    records: list[dict[str, Any]], options: list[str], message: str, run: Run, written: Callable[..., Path]
) -> None:
    result = run("diff", written("a.jsonl", *records), written("b.jsonl", record(0)), *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_function_returns_same_differences_as_command(run: Run, written: Callable[..., Path]) -> None:
    first, second = written("a.jsonl", record(0), record(1)), written("b.jsonl", record(0, value="w"), record(3))
    for options in ({}, {"columns": ["value"]}, {"by": "position"}, {"where": "offset < 2"}):
        arguments = [
            part
            for name, value in options.items()
            for part in (f"--{name}", *([value] if isinstance(value, str) else value))
        ]
        rows = lh.diff(first, second, **options).read_all().to_pylist()
        printed = [json.loads(line) for line in run("diff", first, second, *arguments, "--json").lines]
        places = [[row.get("offset", row.get("position")), row["differs"], row["first"] is None] for row in rows]
        assert places == [
            [row.get("offset", row.get("position")), row["differs"], row["first"] is None] for row in printed
        ]
    with pytest.raises(ValueError, match="unknown by 'ofset'"):
        lh.diff(first, second, by="ofset")
    with pytest.raises(ValueError, match=r"the second source has no column 'nope'|there is no column 'nope'"):
        lh.diff(first, second, columns=["nope"])


HEADERS = [[("a", b"1"), ("b", None)], [], [("c", b"2")]]
SHAPES = {
    "map": (pa.map_(pa.string(), pa.binary()), HEADERS),
    "key and value": (
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        [[{"key": key, "value": value} for key, value in row] for row in HEADERS],
    ),
    "name and value": (
        pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
        [[{"name": key, "value": value} for key, value in row] for row in HEADERS],
    ),
}


@pytest.mark.parametrize("second", SHAPES)
@pytest.mark.parametrize("first", SHAPES)
def test_headers_in_every_shape_are_compared(first: str, second: str) -> None:
    tables = [
        pa.table({"offset": [0, 1, 2], "headers": pa.array(rows, type)})
        for type, rows in (SHAPES[first], SHAPES[second])
    ]
    assert lh.diff(*tables).read_all().num_rows == 0
    changed = pa.table({"offset": [0, 1, 2], "headers": pa.array([*SHAPES[second][1][:2], []], SHAPES[second][0])})
    [row] = lh.diff(tables[0], changed).read_all().to_pylist()
    assert (row["offset"], row["differs"], row["first"]["headers"]) == (2, ["headers"], [{"key": "c", "value": b"2"}])


def test_diff_cannot_follow_topic() -> None:
    with pytest.raises(ValueError, match="a comparison ends: leave out follow="):
        lh.diff("kafka://127.0.0.1:9/a", "kafka://127.0.0.1:9/b", follow=True)


def test_stream_is_not_compared_with_itself(samples: Path) -> None:
    reader = lh.open(samples / "orders-0")
    with pytest.raises(ValueError, match="a stream is read once, and cannot be compared with itself"):
        lh.diff(reader, reader)
    table = lh.open(samples / "orders-0").read_all()
    assert lh.diff(table, table).read_all().num_rows == 0
    assert lh.diff(samples / "orders-0", samples / "orders-0").read_all().num_rows == 0


def test_standard_input_is_not_compared_with_itself(run: Run) -> None:
    result = run("diff", "-", "-")
    assert (result.code, "standard input is read once" in result.err) == (2, True)


def test_error_names_the_offsets_that_do_not_ascend() -> None:
    table = pa.table({"partition": [0] * 5, "offset": [3, 4, 9, 7, 12], "value": [b"x"] * 5})
    expected = "offsets of partition 0 in the first source do not ascend, from 9 to 7: sort the table"
    with pytest.raises(ValueError, match=expected):
        lh.diff(table, table).read_all()


def test_error_names_the_source_with_the_unreadable_value(run: Run, written: Callable[..., Path]) -> None:
    eight, one = ([{"key": "n", "value": value}] for value in ("12345678", "1"))
    good = written("good.jsonl", record(0, headers=eight), record(1, headers=eight))
    bad = written("bad.jsonl", record(0, headers=eight), record(1, headers=one))
    for sources, name in (((good, bad), "second"), ((bad, good), "first")):
        with pytest.raises(DecodeError, match=rf" in the {name} source \(header 0, row 1\)") as raised:
            lh.diff(*sources, where="n::bigint > 0").read_all()
        assert (raised.value.row, raised.value.code) == (1, "wrong_size")
        assert f" in the {name} source (" in run("diff", *sources, "--where", "n::bigint > 0").err


@pytest.mark.parametrize("name", ["offset", "partition"])
@pytest.mark.parametrize("values", [["a", "b"], [0.5, 1.5], [[1], [2]]])
def test_columns_by_which_rows_meet_are_whole_numbers(name: str, values: list[Any]) -> None:
    table = pa.table({"partition": [0, 0], "offset": [0, 1], "value": [b"x", b"y"], name: values})
    with pytest.raises(ValueError, match=rf"rows meet by the column '{name}', which is .*: cast it to whole numbers"):
        lh.diff(table, table)
    assert lh.diff(table, table.rename_columns({name: "other"})).read_all().num_rows == 0


def test_last_rows_of_logs_and_tables_are_not_compared(run: Run, samples: Path) -> None:
    sources = samples / "orders-0", samples / "orders-0.parquet"
    with pytest.raises(ValueError, match="last= counts rows of each partition of a log, but of a whole table"):
        lh.diff(*sources, last=3)
    result = run("diff", *sources, "--last", "3")
    assert (result.code, "--last counts rows of each partition" in result.err) == (2, True)
    assert lh.diff(samples / "orders-0", samples / "orders-0", last=3).read_all().num_rows == 0


def test_stores_are_chosen_for_a_comparison(samples: Path) -> None:
    state = samples / "streams-state-0_0"
    with pytest.raises(ValueError, match=r"there are several stores in .*: choose one with store="):
        lh.diff(state, state)
    assert lh.diff(state, state, store="latest").read_all().num_rows == 0


@pytest.mark.parametrize("columns", ["value", {"value": "string"}])
def test_columns_of_a_comparison_are_a_list(columns: Any, samples: Path) -> None:
    with pytest.raises(TypeError, match="columns must be a list of column names"):
        lh.diff(samples / "orders-0", samples / "orders-0", columns=columns)


NAN = float("nan")


@pytest.mark.parametrize(
    "type",
    [
        pa.float64(), pa.float32(), pa.struct([("a", pa.float64())]), pa.list_(pa.float32()), pa.large_list(pa.float64()),
        pa.list_(pa.float64(), 1), pa.map_(pa.string(), pa.float64()), pa.list_(pa.struct([("a", pa.list_(pa.float64()))])),
    ],
    ids=str,
)  # fmt: skip
def test_floats_are_compared_by_their_bits_at_any_depth(type: pa.DataType) -> None:
    def table(number: float) -> pa.Table:
        nested: Any = number
        if pa.types.is_map(type):
            nested = [("k", number)]
        elif pa.types.is_struct(type):
            nested = {"a": number}
        elif pa.types.is_nested(type):
            nested = [{"a": [number]}] if pa.types.is_struct(type.value_type) else [number]
        return pa.table({"offset": [0, 1], "x": pa.array([nested, None], type)})

    assert lh.diff(table(NAN), table(NAN)).read_all().num_rows == 0
    assert lh.diff(table(0.0), table(-0.0)).read_all()["offset"].to_pylist() == [0]


ORDERS = Path(__file__).parents[1] / "samples" / "orders-0"
UNDECIDED = "amount_cents = 'x'"
"""A condition on text, for a header that has other bytes."""


@pytest.mark.parametrize("command", ["copy", "diff"])
def test_remedy_for_undecided_record_works(command: str, run: Callable[..., Any], tmp_path: Path) -> None:
    second = tmp_path / "copy" if command == "copy" else ORDERS
    result = run(command, ORDERS, second, "--where", UNDECIDED)
    assert result.code == 1
    remedy = (
        "run letterhead read with the same --where, and --errors only; a test of bytes, as in tenant::binary = 'acme'"
    )
    assert remedy in result.err
    assert run("read", ORDERS, "--where", UNDECIDED, "--errors", "only", "-n", "1", "--json").lines
    assert run(command, ORDERS, second, "--where", UNDECIDED.replace(" ", "::binary ", 1)).code == 0


def test_remedy_for_wrong_type_in_copy_with_condition_works(run: Callable[..., Any], tmp_path: Path) -> None:
    options = ["--where", "offset < 10", "--headers", "amount_cents:int32"]
    result = run("copy", ORDERS, tmp_path / "copy", *options)
    assert result.code == 1
    assert "run letterhead read with the same --where and --headers, and --errors only" in result.err
    assert run("read", ORDERS, *options, "--errors", "only", "--json").lines


def test_notes_of_copy_and_diff_name_functions_that_show_the_row(tmp_path: Path) -> None:
    for call in (
        lambda: lh.copy(ORDERS, tmp_path / "copy", where=UNDECIDED),
        lambda: lh.diff(ORDERS, ORDERS, where=UNDECIDED).read_all(),
    ):
        with pytest.raises(DecodeError) as error:
            call()
        [note] = error.value.__notes__
        assert note.startswith('letterhead.open with errors="column" shows such rows; a test of bytes')
    with pytest.raises(DecodeError) as error:
        lh.copy(ORDERS, tmp_path / "copy", headers={"amount_cents": "int32"})
    assert error.value.__notes__ == ['errors="column" returns all rows, and the errors of each in a column']
    assert lh.copy(ORDERS, tmp_path / "copy", headers={"amount_cents": "int32"}, errors="column").rows == 10_000
