"""`letterhead.open` reads every kind of source, and refuses options of another kind."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh

SAMPLES = Path(__file__).parents[1] / "samples"
ORDERS = SAMPLES / "orders-0"
STATE = SAMPLES / "streams-state-0_0"


@pytest.fixture(scope="module")
def orders() -> pa.Table:
    with lh.read.segments(ORDERS) as reader:
        return reader.read_all()


def test_log_segments_are_read_from_directory_file_or_several(orders: pa.Table, tmp_path: Path) -> None:
    assert lh.open(ORDERS).read_all() == orders
    assert lh.open(str(ORDERS)).read_all() == orders
    [file] = ORDERS.glob("*.log")
    assert lh.open(file).read_all() == orders
    for topic in ("a-0", "b-0"):
        (tmp_path / topic).mkdir()
        shutil.copy(file, tmp_path / topic)
    files = sorted(tmp_path.rglob("*.log"))
    with lh.open(files, columns=["topic"]) as reader:
        assert reader.read_all()["topic"].to_pylist() == ["a"] * len(orders) + ["b"] * len(orders)


def test_store_is_read_from_state_directory() -> None:
    with lh.read.state(STATE, store="sessions") as reader:
        expected = reader.read_all()
    assert lh.open(STATE, store="sessions").read_all() == expected
    with pytest.raises(ValueError, match=r"several stores .*: choose one with store=: hourly, latest, sessions"):
        lh.open(STATE)


def test_table_is_recognized_by_content(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array(range(5)), "text": ["a", None, "b", "c", "d"]})
    pq.write_table(table, tmp_path / "parquet")
    with pa.ipc.new_file(tmp_path / "arrow", table.schema) as file:
        file.write(table)
    with pa.ipc.new_stream(tmp_path / "stream", table.schema) as stream:
        stream.write(table)
    (tmp_path / "json").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    (tmp_path / "gzip").write_bytes(gzip.compress((tmp_path / "json").read_bytes()))
    for name in ("parquet", "arrow", "stream", "json", "gzip"):
        assert lh.open(tmp_path / name).read_all() == table, name
        assert lh.open(tmp_path / name, where="n > 1", columns=["n"], last=2).read_all()["n"].to_pylist() == [3, 4]


def test_dash_means_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"n": 1}\n{"n": 2}\n')))
    assert lh.open("-").read_all().to_pylist() == [{"n": 1}, {"n": 2}]


def test_rows_columns_and_headers_are_selected() -> None:
    where = "tenant = 'acme' and retry::int > 2"
    options = {"columns": ["offset"], "headers": {"retry": "int32"}, "where": where}
    with lh.read.segments(ORDERS, **options) as reader:
        expected = reader.read_all()
    assert 0 < len(expected) < 1000
    assert lh.open(ORDERS, **options).read_all() == expected
    assert lh.open(ORDERS, start=5, end=7, columns=["offset"]).read_all()["offset"].to_pylist() == [5, 6]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("orders-0.parquet", {"start": 5}, "start= is for topics and log segments"),
        ("orders-0.parquet", {"follow": True}, "follow= is for topics"),
        ("orders-0.parquet", {"isolation_level": "read_committed"}, "isolation_level= is for topics and log segments"),
        ("orders-0.parquet", {"store": "latest"}, "store= and the options of its keys are for state directories"),
        ("orders-0", {"store": "latest"}, "store= and the options of its keys are for state directories"),
        ("orders-0", {"follow": True}, "follow= is for topics"),
        ("orders-0", {"partitions": [3]}, "has no partition 3"),
        ("orders-0", {"isolation_level": "commited"}, "read_committed"),
        ("streams-state-0_0", {"store": "latest", "partitions": [0]}, "partitions= is for topics and log segments"),
    ],
)
def test_option_of_another_source_is_rejected(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lh.open(SAMPLES / name, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": {0: 9990, 7: 3}}, r"^start names partition 7, and \S+orders-0 has only partition 0$"),
        ({"end": {7: 3}}, r"^end names partition 7, and \S+orders-0 has only partition 0$"),
        ({"start": {0: 9990, 7: 3}, "partitions": [0]}, "^start names partition 7, "),
        ({"partitions": [0, 7]}, r"^\S+orders-0 has no partition 7: it has only partition 0$"),
    ],
)
def test_partition_that_segments_lack_is_an_error(options: Any, message: str, tmp_path: Path) -> None:
    calls: list[Callable[..., Any]] = [
        lh.open,
        lh.read.segments,
        lambda source, **options: lh.copy(source, tmp_path / "copy", **options),
    ]
    if not options.keys() & {"start", "end"}:
        calls.append(lambda source, **options: lh.diff(source, source, **options))
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(ORDERS, **options)


def test_partition_that_segments_lack_is_an_error_of_commands(run: Callable[..., Any], tmp_path: Path) -> None:
    for command in (["read", ORDERS], ["copy", ORDERS, tmp_path / "copy"], ["diff", ORDERS, ORDERS]):
        result = run(*command, "--end", "0=5,7=3")
        assert (result.code, "--end names partition 7, and " in result.err) == (2, True), result.err


def test_file_without_partition_names_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes((ORDERS / "00000000000000000000.log").read_bytes())
    with pytest.raises(ValueError, match="has no partition 7: leave out partitions="):
        lh.open(path, partitions=[7])
    assert lh.open(path).read_all().num_rows == 10_000


def test_numbers_of_numpy_are_accepted() -> None:
    number = np.int64
    for options in ({"start": number(9990)}, {"last": number(10)}, {"start": {number(0): number(-10)}}):
        assert lh.open(ORDERS, **options, partitions=np.array([0])).read_all().num_rows == 10  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="last must be a whole number, not float64"):
        lh.open(ORDERS, last=np.float64(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_empty_file_of_a_form_with_footer_is_damaged(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(
        lh.errors.DamagedTableError, match=f"{name}: it is empty, and was probably not written completely"
    ):
        lh.open(tmp_path / name)
    (tmp_path / "a.jsonl").touch()
    assert lh.open(tmp_path / "a.jsonl").read_all().num_rows == 0


def test_invalid_source_names_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        lh.open(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="no such file or directory; a topic is kafka://host:port/missing"):
        lh.open("missing")
    for call in (lh.open, lambda source: lh.diff(source, source), lambda source: lh.copy(source, tmp_path / "copy")):
        with pytest.raises(
            TypeError, match=r"a source must be a path, an address such as .*, or an Arrow table, not int"
        ):
            call(3)
    with pytest.raises(ValueError, match="the Arrow table is no log, and cannot be copied to a file or directory"):
        lh.copy(lh.open(ORDERS), tmp_path / "copy")
    with pytest.raises(FileNotFoundError, match="has no log segments"):
        lh.open(tmp_path)
    with pytest.raises(ValueError, match="no source begins with http://"):
        lh.open("http://h/t")
    with pytest.raises(ValueError, match=f"no source begins with file://: pass the path {re.escape(str(ORDERS))}$"):
        lh.open(f"file://{ORDERS}")
    with pytest.raises(TypeError, match=r"a source must be a path, .*, not bytes"):
        lh.open(os.fsencode(ORDERS))  # type: ignore[arg-type]
    (tmp_path / "bytes").write_bytes(b"\x02\x06")
    with pytest.raises(ValueError, match="is not a supported source"):
        lh.open(tmp_path / "bytes")
    with pytest.raises(ValueError, match="open reads one source, not 2"):
        lh.open([ORDERS, SAMPLES / "orders-0.parquet"])


def test_damaged_table_raises_with_position(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n{"n": }\n')
    with pytest.raises(lh.errors.DamagedTableError, match=r"rows\.jsonl: line 2 is not JSON"):
        lh.open(tmp_path / "rows.jsonl").read_all()


def test_errors_hide_credentials_of_address() -> None:
    with pytest.raises(ValueError, match="store= and the options") as raised:
        lh.open("iggy://user:hunter2@h:8090/stream/topic", store="latest")
    assert "hunter2" not in str(raised.value)


def test_package_imports_without_pyarrow() -> None:
    program = "import sys; import letterhead as lh; lh.open; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def arrow_sources() -> dict[str, Callable[[], Any]]:
    def table() -> pa.Table:
        return lh.open(SAMPLES / "orders-0", columns=["offset", "partition", "headers"]).read_all()

    return {
        "table": table,
        "batch": lambda: table().combine_chunks().to_batches()[0],
        "stream": lambda: pa.RecordBatchReader.from_batches(table().schema, table().to_batches()),
        "Reader": lambda: lh.open(SAMPLES / "orders-0", columns=["offset", "partition", "headers"]),
        "polars": lambda: pytest.importorskip("polars").from_arrow(table()),
        "DuckDB": lambda: pytest.importorskip("duckdb").sql(
            "select * from arrow_table", connection=connection(table())
        ),
    }


def connection(table: pa.Table) -> Any:
    opened = pytest.importorskip("duckdb").connect()
    opened.register("arrow_table", table)
    return opened


@pytest.mark.parametrize("kind", arrow_sources())
def test_arrow_table_is_read_as_a_file_is(kind: str) -> None:
    options: dict[str, Any] = {"columns": ["offset"], "headers": {"tenant": "string"}, "last": 3}
    where = "tenant = 'acme' and retry::int32 > 2"
    expected = lh.open(SAMPLES / "orders-0", where=where, **options).read_all()
    assert expected.num_rows == 2
    assert lh.open(arrow_sources()[kind](), where=where, **options).read_all().equals(expected)


@pytest.mark.parametrize("kind", arrow_sources())
def test_arrow_table_is_compared_with_a_log(kind: str) -> None:
    source = arrow_sources()[kind]
    columns = ["headers"]
    assert lh.diff(SAMPLES / "orders-0", source(), columns=columns).read_all().num_rows == 0
    differences = lh.diff(
        source(), SAMPLES / "orders-0", columns=columns, where="offset < 3 or offset > 9997"
    ).read_all()
    assert differences.num_rows == 0


@pytest.mark.parametrize("codec", ["uncompressed", "zstd", "lz4"])
@pytest.mark.parametrize("way", ["path", "pipe"])
def test_arrow_file_of_polars_is_read(codec: Any, way: str, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"n": range(5000), "s": ["a", "bb", None, "c", ""] * 1000})
    frame = frame.with_columns(kind=polars.col("s").cast(polars.Categorical))
    path = tmp_path / "rows.arrow"
    frame.write_ipc(path, compression=codec)
    if way == "path":
        table = lh.open(path, where="n > 1").read_all()
        assert lh.open(path, last=3, columns=["n"]).read_all()["n"].to_pylist() == [4997, 4998, 4999]
    else:
        code = "import letterhead as lh, sys; print(lh.open('-', where='n > 1').read_all().num_rows)"
        with path.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
            done = subprocess.run(
                [sys.executable, "-c", code], stdin=cat.stdout, capture_output=True, text=True, check=True
            )
        assert done.stdout == "4998\n"
        return
    assert table.to_pylist() == frame.slice(2).to_dicts()


@pytest.mark.parametrize("part", ["footer", "length", "magic", "batch"])
def test_damaged_arrow_file_of_polars_is_an_error(part: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    pytest.importorskip("polars").DataFrame({"n": range(50)}).write_ipc(path, compression="zstd")
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[-10:-6], "little")
    begin = {"footer": len(data) - 10 - size, "length": len(data) - 10, "magic": len(data) - 6, "batch": 200}[part]
    for value in (b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\xff\xff\xff\xff"):
        damaged = data[:]
        damaged[begin : begin + 4] = value
        path.write_bytes(damaged)
        with pytest.raises(lh.errors.DamagedTableError, match=r"cannot read .*rows\.arrow"):
            lh.open(path).read_all()


def test_dictionary_of_views_is_read() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", "b"], pa.string_view()))
    assert lh.open(pa.table({"kind": column})).read_all()["kind"].to_pylist() == ["a", "b", None, "a"]


def test_column_is_no_table() -> None:
    for column in (pa.chunked_array([[1, 2]]), pa.chunked_array([["a"]])):
        for call in (lh.open, lambda column: lh.diff(column, column)):
            with pytest.raises(TypeError, match="this is a column, and no table: pass a table that has it"):
                call(column).read_all()


def test_error_of_a_reader_keeps_its_class() -> None:
    reader = lh.open(SAMPLES / "orders-0", headers={"retry": "uuid"})
    with pytest.raises(lh.DecodeError, match="offset"):
        lh.open(reader).read_all()


def test_reader_that_was_read_is_no_empty_table() -> None:
    reader = lh.open(SAMPLES / "orders-0")
    reader.read_all()
    with pytest.raises(ValueError, match="the reader was read to its end"):
        lh.open(reader).read_all()


def test_argument_of_other_functions_is_not_suggested_again(samples: Path) -> None:
    other: Any = {"start": 3}
    with pytest.raises(TypeError, match=r"unknown option 'start'.* \(options: last, ") as raised:
        lh.read.state(samples / "streams-state-0_0", **other)
    assert "did you mean 'start'" not in str(raised.value)
    assert "settings" not in str(raised.value)


def test_misspelt_column_of_a_table_gets_a_suggestion(samples: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no column 'ofset': did you mean 'offset'\? \(there are "):
        lh.open(samples / "orders-0.parquet", columns=["ofset"])


def test_misspelt_option_is_error_with_nearest_name(samples: Path) -> None:
    for wrong, right in (("lst", "last"), ("header", "headers"), ("timeout", "timeout_ms")):
        options: Any = {wrong: None}
        with pytest.raises(TypeError, match=f"unknown option '{wrong}': did you mean '{right}'"):
            lh.open(samples / "orders-0", **options)


def test_misspelt_column_in_condition_on_table_without_headers_is_named() -> None:
    table = pa.table({"tenant": ["acme"]})
    message = "where= needs a column of headers: there is no column 'tennant': did you mean 'tenant'?"
    with pytest.raises(ValueError, match=re.escape(message)):
        lh.open(table, where="tennant = 'acme'")
    assert lh.open(table, where="tenant = 'acme'").read_all() == table
