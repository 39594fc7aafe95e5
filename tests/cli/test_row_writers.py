"""Writers of rows: every form has every row, a file appears once it is complete, and a table says what it cuts."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import json
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from letterhead.cli.exits import Failure
from letterhead.cli.row_format import Form, RowFormat
from letterhead.cli.row_writers import open_writer
from tests.cli.test_cli_terminal import Terminal

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS = [
    {"offset": 0, "at": 0, "key": b"a", "value": b"\0\xff", "headers": [{"key": "k", "value": b"v"}, {"key": "k", "value": None}]},
    {"offset": 1, "at": None, "key": None, "value": b'say "hi", twice\n', "headers": []},
    {"offset": 2**60, "at": 1767225600123, "key": b"", "value": b"\x1b[2J", "headers": None},
]  # fmt: skip
SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("at", pa.timestamp("ms", "UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)
BATCH = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
JSON = [
    {
        "offset": 0,
        "at": "1970-01-01T00:00:00.000Z",
        "key": "a",
        "value": {"base64": "AP8="},
        "headers": [{"key": "k", "value": "v"}, {"key": "k", "value": None}],
    },
    {"offset": 1, "at": None, "key": None, "value": 'say "hi", twice\n', "headers": []},
    {
        "offset": str(2**60),
        "at": "2026-01-01T00:00:00.123Z",
        "key": "",
        "value": {"base64": "G1sySg=="},
        "headers": None,
    },
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")


def write(target: Path, **options: Any) -> Path:
    with open_writer(SCHEMA, RowFormat(target=target, **options)) as writer:
        writer.write(BATCH.slice(0, 1))
        writer.write(BATCH.slice(1, 0))
        writer.write(BATCH.slice(1))
    assert list(target.parent.iterdir()) == [target]
    return target


def json_rows(text: bytes) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def read_arrow(path: Path) -> pa.Table:
    return pa.ipc.open_file(path).read_all()


def read_stream(path: Path) -> pa.Table:
    return pa.ipc.open_stream(path).read_all()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("o.parquet", pq.read_table),
        ("o.pq", pq.read_table),
        ("o.arrow", read_arrow),
        ("o.feather", read_arrow),
        ("o.ARROWS", read_stream),
    ],
)
def test_columnar_file_has_every_row(name: str, read: Callable[[Path], pa.Table], tmp_path: Path) -> None:
    assert read(write(tmp_path / name)).combine_chunks().to_batches() == [BATCH]


@pytest.mark.parametrize("name", ["o.jsonl", "o.ndjson", "o.json", "o.jsonl.gz", "o.json.zst"])
def test_json_lines_have_every_row(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name)
    data = path.read_bytes()
    if name.endswith("gz"):
        data = gzip.decompress(data)
    elif name.endswith("zst"):
        data = pa.input_stream(str(path), compression="zstd").read()
    assert json_rows(data) == JSON


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz"])
def test_csv_has_every_row_and_headers_as_json(name: str, tmp_path: Path) -> None:
    data = write(tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == SCHEMA.names
    for row, expected in zip(rows, JSON, strict=True):
        offset, at, key, value, headers = row
        assert (offset, at or None, key or None) == (str(expected["offset"]), expected["at"], expected["key"] or None)
        assert (json.loads(value) if value.startswith("{") else value) == expected["value"]
        assert (json.loads(headers) if headers else None) == expected["headers"]
    # Null and text without characters differ.
    keys = pa.csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False),
    )["key"]
    assert keys.to_pylist() == ["a", None, ""]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3, None]),
        pa.array([None, "a\n\nb", None]),
        pa.array(["", "a", ""]),
        pa.array([None, b"\xff"]),
        pa.array([None, 5], pa.timestamp("ms", "UTC")),
        pa.array([[1], None]),
        pa.nulls(2),
    ],
)
def test_null_in_only_column_of_csv_is_a_row(column: pa.Array, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    schema = pa.schema([("only", column.type)])
    path = tmp_path / "o.csv"
    with open_writer(schema, RowFormat(target=path)) as writer:
        for part in (column, column[:0], column):
            writer.write(pa.RecordBatch.from_arrays([part], schema=schema))
    parsing = pa.csv.ParseOptions(newlines_in_values=True)
    assert pa.csv.read_csv(path, parse_options=parsing).num_rows == 2 * len(column)
    assert len(pandas.read_csv(path)) == 2 * len(column)
    with path.open(newline="") as file:
        assert [row != [] for row in csv.reader(file)] == [True] * (2 * len(column) + 1)


def test_null_and_empty_text_in_only_column_of_csv_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([("only", pa.binary())])
    writer = open_writer(schema, RowFormat(target=tmp_path / "o.csv"))
    writer.write(pa.RecordBatch.from_pydict({"only": [b""]}, schema))
    with pytest.raises(
        Failure, match=r"column 'only' has null and empty text.*write \.jsonl \(--json\), or add a column"
    ):
        writer.write(pa.RecordBatch.from_pydict({"only": [None]}, schema))
    writer.abort()
    assert not [*tmp_path.iterdir()]


UNION = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
INTERVAL = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
UNWRITABLE = {
    "union": UNION,
    "interval": INTERVAL,
    "union in struct": pa.StructArray.from_arrays([UNION], ["u"]),
    "interval in list": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), INTERVAL),
    "interval in dictionary": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), INTERVAL),
    "late time": pa.array([2**62], pa.timestamp("s")),
    "struct without fields": pa.array([{}], pa.struct([])),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_error_names_column_that_form_cannot_store(name: str, tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), UNWRITABLE[name]], ["offset", "wrong"])
    has_text = name in ("late time", "struct without fields")
    forms = {".parquet": "and parquet cannot store"}
    if not has_text:
        forms |= dict.fromkeys([".csv", ".jsonl", None], "which has no text form")
    for ending, reason in forms.items():
        target = None if ending is None else tmp_path / f"o{ending}"
        with pytest.raises(Failure) as failure, open_writer(batch.schema, RowFormat(target=target)) as writer:
            writer.write(batch)
        message = str(failure.value)
        assert message.startswith(f"column 'wrong' is {batch.schema.field('wrong').type}, {reason}"), ending
        assert message.endswith("write .arrow, or leave the column out by --columns")
        assert str(2**62) not in message
    if "dictionary" not in name:
        with open_writer(batch.schema, RowFormat(target=tmp_path / "o.arrow")) as writer:
            writer.write(batch)
        assert read_arrow(tmp_path / "o.arrow").combine_chunks().to_batches() == [batch]


def test_extension_types_are_written_as_text(tmp_path: Path) -> None:
    id = uuid.UUID(int=7)
    rows = pa.RecordBatch.from_pydict(
        {"id": pa.array([id.bytes, None], pa.uuid()), "document": pa.array(['{"a":1}', None], pa.json_())}
    )
    expected = [{"id": str(id), "document": '{"a":1}'}, {"id": None, "document": None}]
    for name in ("o.jsonl", "o.csv"):
        with open_writer(rows.schema, RowFormat(target=tmp_path / name)) as writer:
            writer.write(rows)
    assert json_rows((tmp_path / "o.jsonl").read_bytes()) == expected
    with (tmp_path / "o.csv").open(newline="") as file:
        assert [{name: text or None for name, text in row.items()} for row in csv.DictReader(file)] == expected


def test_epoch_ms_makes_times_numbers(tmp_path: Path) -> None:
    rows = json_rows(write(tmp_path / "o.jsonl", epoch_ms=True).read_bytes())
    assert [row["at"] for row in rows] == [0, None, 1767225600123]
    path = tmp_path / "csv" / "o.csv"
    path.parent.mkdir()
    assert [row["at"] for row in csv.DictReader(write(path, epoch_ms=True).open(newline=""))] == [
        "0",
        "",
        "1767225600123",
    ]


@pytest.mark.parametrize("name", ["o.txt", "o", "o.gz", "o.parquet.gz", ".csv"])
def test_unknown_file_extension_is_rejected_before_writing(name: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot tell what to write"):
        open_writer(SCHEMA, RowFormat(target=tmp_path / name))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.arrows", "o.jsonl", "o.csv", "o.csv.gz"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_error_leaves_existing_file_and_no_partial_one(name: str, error: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"before")

    def fail() -> None:
        with open_writer(SCHEMA, RowFormat(target=tmp_path / name)) as writer:
            writer.write(BATCH)
            raise error

    with pytest.raises(error):
        fail()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"before")]


def test_device_is_written_in_place() -> None:
    with open_writer(SCHEMA, RowFormat(Form.JSON, Path("/dev/null"))) as writer:
        writer.write(BATCH)
    assert not Path("/dev/null").is_file()


def test_pipe_is_written_in_place(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "o.jsonl")
    reader = os.open(tmp_path / "o.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    with open_writer(SCHEMA, RowFormat(target=tmp_path / "o.jsonl")) as writer:
        writer.write(BATCH)
    assert json_rows(os.read(reader, 1 << 16)) == JSON
    os.close(reader)


def test_full_disk_prints_one_line() -> None:
    def fill() -> None:
        with open_writer(SCHEMA, RowFormat(Form.JSON, Path("/dev/full"))) as writer:
            for _ in range(1000):
                writer.write(BATCH)

    with pytest.raises(Failure, match="cannot write /dev/full: no space left on device"):
        fill()


def test_duplicate_column_names_are_no_json_object() -> None:
    schema = pa.schema([("a", pa.int8()), ("a", pa.int8())])
    with pytest.raises(Failure, match="two columns are named 'a'"):
        open_writer(schema, RowFormat(Form.JSON))


OTHERS = pa.RecordBatch.from_pydict(
    {
        "date": pa.array([datetime.date(2026, 1, 1)]),
        "time": pa.array([datetime.time(8, 30)], pa.time64("us")),
        "money": pa.array([decimal.Decimal("1.50")], pa.decimal128(10, 2)),
        "wide": pa.array([decimal.Decimal(10**50)], pa.decimal256(60, 0)),
        "half": pa.array([1.5], pa.float16()),
        "span": pa.array([5], pa.duration("s")),
        "word": pa.array(["a"]).dictionary_encode(),
        "fixed": pa.array([b"ab"], pa.binary(2)),
        "pair": pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
        "map": pa.array([[("a", datetime.date(2026, 1, 1))]], pa.map_(pa.string(), pa.date32())),
        "deep": pa.array([[{"d": datetime.date(2026, 1, 1)}]]),
        "null": pa.nulls(1),
    }
)


def test_columns_of_every_type_are_written_as_json_csv_and_table(tmp_path: Path, capsys: Any) -> None:
    expected = {
        "date": "2026-01-01",
        "time": "08:30:00.000000",
        "money": "1.50",
        "wide": str(10**50),
        "half": 1.5,
        "span": 5,
        "word": "a",
        "fixed": "ab",
        "pair": [1, 2],
        "map": [{"key": "a", "value": "2026-01-01"}],
        "deep": [{"d": "2026-01-01"}],
        "null": None,
    }
    for target in (tmp_path / "o.jsonl", tmp_path / "o.csv", None):
        with open_writer(OTHERS.schema, RowFormat(target=target)) as writer:
            writer.write(OTHERS)
    assert json_rows((tmp_path / "o.jsonl").read_bytes()) == [expected]
    [row] = csv.DictReader((tmp_path / "o.csv").open())
    for name, value in expected.items():
        text = row[name] or None
        assert (json.loads(text) if isinstance(value, list) else text) == (
            value if value is None or isinstance(value, list) else str(value)
        )
    shown = capsys.readouterr().out
    assert all(name in shown for name in expected)


def test_large_batch_is_split_without_loss(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict({"n": pa.array(range(30_000)), "v": pa.array([bytes(500)] * 30_000)})
    with open_writer(rows.schema, RowFormat(target=tmp_path / "o.jsonl")) as writer:
        writer.write(rows)
    assert [row["n"] for row in json_rows((tmp_path / "o.jsonl").read_bytes())] == list(range(30_000))


# standard output -----------------------------------------------------------------------------------------------------


def printed(
    monkeypatch: pytest.MonkeyPatch, format: RowFormat, *batches: pa.RecordBatch, encoding: str = "utf-8"
) -> bytes:
    batches = batches or (BATCH,)
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        with open_writer(batches[0].schema, format) as writer:
            for batch in batches:
                writer.write(batch)
        out.flush()
    return out.buffer.getvalue()  # type: ignore[attr-defined]


def test_dash_means_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    dash = Path("-")
    assert json_rows(printed(monkeypatch, RowFormat(Form.JSON, dash))) == JSON
    assert printed(monkeypatch, RowFormat(Form.CSV, dash)).startswith(b'"offset","at","key","value","headers"\n')
    assert pa.ipc.open_stream(printed(monkeypatch, RowFormat(target=dash))).read_all().to_batches() == [BATCH]
    assert pq.read_table(pa.BufferReader(printed(monkeypatch, RowFormat(Form.PARQUET, dash)))).to_batches() == [BATCH]


@pytest.mark.parametrize("form", [Form.PARQUET, Form.ARROW, Form.ARROW_STREAM])
def test_bytes_are_not_written_to_a_terminal(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen.file)
    with pytest.raises(Failure, match="not written to a terminal"):
        open_writer(SCHEMA, RowFormat(form))
    assert screen.close() == ""


@pytest.mark.parametrize("form", [Form.CSV, Form.JSON, Form.TABLE])
def test_control_characters_do_not_reach_a_terminal(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = pa.RecordBatch.from_pydict({"\x1b[2Jname": ["\x1b]0;title\x07\x9b2J\u202e", None]})
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen.file)
    with open_writer(hostile.schema, RowFormat(form)) as writer:
        writer.write(hostile)
    screen.file.flush()
    shown = screen.close()
    assert "title" in shown
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_json_has_only_ascii_where_the_encoding_is_not_utf8(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"株": ["é"]})
    text = printed(monkeypatch, RowFormat(Form.JSON), batch, encoding=encoding)
    assert text == b'{"\\u682a":"\\u00e9"}\n'


@pytest.mark.parametrize("form", [Form.JSON, Form.CSV, Form.TABLE])
def test_rows_before_error_reach_stdout(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")

    def fail() -> None:
        with open_writer(SCHEMA, RowFormat(form)) as writer:
            writer.write(BATCH)
            raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        with pytest.raises(ValueError, match=r"^$"):
            fail()
    assert b"1152921504606846976" in out.buffer.getvalue()  # type: ignore[attr-defined]


def test_error_of_earlier_batch_is_raised_by_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        writer = open_writer(SCHEMA, RowFormat(Form.JSON))
        writer.write(BATCH)
        with pytest.raises(BrokenPipeError):
            writer.write(BATCH)
        writer.abort()
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


# tables --------------------------------------------------------------------------------------------------------------


def table(monkeypatch: pytest.MonkeyPatch, batch: pa.RecordBatch, width: int, **options: Any) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    return printed(monkeypatch, RowFormat(Form.TABLE, **options), batch).decode().splitlines()


LONG = pa.RecordBatch.from_pydict(
    {
        "offset": pa.array([5, 123456]),
        "value": pa.array([b"x" * 300, b"short"]),
        "headers": pa.array([[{"key": "k" * 50, "value": b"v" * 50}], None], HEADERS),
    }
)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_table_fits_screen_and_notes_truncation(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    *lines, last = table(monkeypatch, LONG, width)
    assert max(map(len, lines)) == width
    assert [line.split()[0] for line in lines[2:]] == ["5", "123456"]
    assert lines[2].count("…") == 2
    assert last == "… marks values that were cut: --all shows them whole"


def test_complete_table_notes_no_truncation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "…" not in "".join(table(monkeypatch, LONG.slice(1), 80))


def test_full_option_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table(monkeypatch, LONG, 80, everything=True)
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= 80
    assert sum(line.count("x") for line in lines) == 300
    assert sum(line.count("v") for line in lines[2:]) == 50


def test_wide_characters_keep_columns_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["株式会社", "x" * 8], "b": ["1", "2"]})
    lines = table(monkeypatch, batch, 80)
    assert [line.rstrip() for line in lines] == ["a         b", "────────  ─", "株式会社  1", "xxxxxxxx  2"]


def test_value_is_truncated_only_if_screen_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that arrive later, in other batches, may be longer than those before."""
    monkeypatch.setenv("COLUMNS", "80")
    values = ["c", "customer-0001", "customer-" + "1" * 51, "customer-" + "1" * 90]
    batches = [pa.RecordBatch.from_pydict({"key": [value], "value": ["v"], "n": [7]}) for value in values]
    lines = printed(monkeypatch, RowFormat(Form.TABLE), *batches).decode().splitlines()[2:]
    assert [line.split() for line in lines[:3]] == [[value, "v", "7"] for value in values[:3]]
    assert (len(lines[3]), lines[3].split()) == (80, [values[3][:69] + "…", "v", "7"])
    growing = [pa.RecordBatch.from_pydict({"a": ["a" * n], "b": ["b" * (40 - n)]}) for n in (1, 20, 39)]
    assert "…" not in printed(monkeypatch, RowFormat(Form.TABLE), *growing).decode()


def test_many_columns_are_lists_of_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({f"column{number}": [number, None] for number in range(9)})
    lines = table(monkeypatch, batch, 80, numbers="row")
    assert lines[0:2] == ["row 0", "  column0  0"]
    assert lines[10:12] == ["row 1", "  column0  null"]


def test_numbers_are_never_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    later = pa.RecordBatch.from_pydict({"n": pa.array([1] * 100 + [10**15]), "v": pa.array(["x" * 90] * 101)})
    assert str(10**15) in table(monkeypatch, later, 30)[-2]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"acme-eu1", '"acme-eu1"'),
        (bytes(7) + b"*", "42 = 00 00 00 00 00 00 00 2a"),
        (b"\xff" * 8, "-1 = ff ff ff ff ff ff ff ff"),
        (b"\x80" + bytes(7), "80 00 00 00 00 00 00 00"),
        (b"\0\0\0*", "00 00 00 2a"),
        (b"\n", "0a"),
        ("java.lang.Boom: €\n\tat a.B.c(B.java:1)\r\n".encode(), r'"java.lang.Boom: €\n\tat a.B.c(B.java:1)\r\n"'),
        ("👩\u200d💻\u00a0!".encode(), r'"👩\u200d💻\xa0!"'),
        (rb"a\n", r'"a\\n"'),
        ("\u202eevil".encode(), r'"\u202eevil"'),
        (b"\x1b[31mred", "1b 5b 33 31 6d 72 65 64"),
    ],
)
def test_bytes_are_shown_as_text_or_number_and_hex(value: bytes, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([[{"key": "k", "value": value}]], HEADERS)], ["headers"])
    assert table(monkeypatch, batch, 80)[2] == f"k={shown}"


def test_empty_table_shows_column_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(monkeypatch, LONG.slice(0, 0), 80)[0].split() == ["offset", "value", "headers"]


def test_table_prints_each_batch_before_reading_next(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with open_writer(LONG.schema, RowFormat(Form.TABLE)) as writer:
        writer.write(LONG.slice(0, 1))
        assert "xxx" in out.getvalue()


def test_files_beside_output_are_kept(tmp_path: Path) -> None:
    out, own, other = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.part", tmp_path / "other"
    own.write_text("mine")
    other.write_text("theirs")
    (tmp_path / "rows.jsonl.new").symlink_to(other)
    with open_writer(SCHEMA, RowFormat(None, out)) as writer:
        writer.write(BATCH)
        [partial] = [path for path in tmp_path.iterdir() if path.name.endswith(".part") and path != own]
        assert (partial.is_symlink(), partial.stat().st_mode & 0o777) == (False, 0o666 & ~umask())
    assert (own.read_text(), other.read_text()) == ("mine", "theirs")
    assert len(out.read_bytes().splitlines()) == len(ROWS)
    assert not partial.exists()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_last_of_two_writers_keeps_file_name(tmp_path: Path) -> None:
    out = tmp_path / "rows.arrow"
    with open_writer(SCHEMA, RowFormat(None, out)) as first:
        first.write(BATCH)
        with open_writer(SCHEMA, RowFormat(None, out)) as second:
            second.write(BATCH.slice(1))
        assert pa.ipc.open_file(out).read_all().num_rows == 2
    assert pa.ipc.open_file(out).read_all().num_rows == 3
    assert [path.name for path in tmp_path.iterdir()] == ["rows.arrow"]
