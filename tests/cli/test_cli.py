"""The command: output on a pipe and on a terminal, exit codes, and rejected usage."""

from __future__ import annotations

import base64
import itertools
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead.cli import main
from letterhead.cli.commands import app_for
from letterhead.cli.document import value_json
from letterhead.conventions.profiles import PROFILES
from tests.helpers.extras import spelled_out
from tests.helpers.terminal import read_to_end
from tests.reference import ops

SAMPLES = Path(__file__).parents[1] / "samples"
STORE = SAMPLES / "store-latest-0.parquet"

GOOD = bytes.fromhex("040c74656e616e740861636d650a726f75746501")
GOOD_HEADERS = [("tenant", b"acme"), ("route", None)]
MESSAGE = lh.encode(
    lh.Message(headers=GOOD_HEADERS, timestamp=1767225600000, payload=b"\x00\xff"), "streams-timestamped"
)
# The terminal's codes for "clear the screen" and "set the title", as a hostile producer might send them.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\x85"


def terminal(*args: str, columns: int = 90) -> tuple[int, str]:
    """Run the command in a process of its own on a pseudo-terminal."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from letterhead.cli import main; sys.exit(main())", *args],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
    )
    os.close(follower)
    printed = read_to_end(leader)
    return process.wait(timeout=300), printed.decode().replace("\r\n", "\n")


# inspect -------------------------------------------------------------------------------------------------------------


def test_inspect_labels_every_byte_of_headers(run):
    result = run("inspect", "--format", "kafka", "--hex", GOOD.hex())
    assert result.out == (
        "kafka: 20 bytes, 2 headers, no errors\n"
        "\n"
        "  offset  bytes                    field         header     meaning\n"
        "  0000    04                       header count             2\n"
        "  0001    0c                       key length    header 0   6\n"
        '  0002    74 65 6e 61 6e 74        key           header 0   "tenant"\n'
        "  0008    08                       value length  header 0   4\n"
        '  0009    61 63 6d 65              value         header 0   "acme"\n'
        "  000d    0a                       key length    header 1   5\n"
        '  000e    72 6f 75 74 65           key           header 1   "route"\n'
        "  0013    01                       value length  header 1   -1, null\n"
    )
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (b"order-77", '"order-77"'), ((1250).to_bytes(8, "big"), "int64 1250"), ((-3).to_bytes(8, "big", signed=True), "int64 -3"),
        (b"\xa1\xb2\xc3\xd4\xe5\xf6\x07\x18", "8 bytes"), (b"acme", '"acme"'), ((7).to_bytes(4, "big"), "int32 7"),
        (b"\x01\xbb", "int16 443"), (b"de", '"de"'), (b"\x05", "1 byte"), (bytes(3), "3 bytes"),
    ],
)  # fmt: skip
def test_inspect_shows_a_value_as_text_or_as_an_integer(run, value, meaning):
    result = run("inspect", "-f", "kafka", "--hex", lh.encode([("k", value)], "kafka").hex())
    length, *after = [re.split(r"header 0 +", line)[1] for line in result.lines if re.search("value .*header 0", line)]
    assert (length, after) == (str(len(value)), [meaning])
    message = lh.encode(lh.Message(headers=[], timestamp=0, payload=value), "streams-timestamped")
    result = run("inspect", "-f", "streams-timestamped", "--hex", message.hex())
    assert result.lines[-1].endswith(f"  {meaning}")


def test_inspect_marks_the_failing_byte_with_its_reason(run):
    result = run("inspect", "-f", "kafka", "--hex", "04 06 6b ff 79 02 76 0a 61 62")
    assert result.out == (
        "kafka: 10 bytes, 2 headers, 2 errors\n"
        "\n"
        "  offset  bytes                    field         header     meaning\n"
        "  0000    04                       header count             2\n"
        "  0001    06                       key length    header 0   3\n"
        "! 0002    6b ff 79                 key           header 0\n"
        "             ^^ the key is not UTF-8 (key_not_utf8, byte 3)\n"
        "  0005    02                       value length  header 0   1\n"
        '  0006    76                       value         header 0   "v"\n'
        "  0007    0a                       key length    header 1   5\n"
        "! 0008    61 62                    not read\n"
        "          ^^ key takes 5 bytes and 2 are left (truncated, byte 8)\n"
    )
    assert result.code == 1


def test_inspect_marks_end_of_truncated_input(run):
    result = run("inspect", "-f", "streams-timestamped", "--hex", "00")
    assert result.out.endswith(
        "! 0001                             end of the bytes\n"
        "          ^^ timestamp takes 8 bytes and 0 are left (truncated, byte 1)\n"
    )
    assert result.code == 1


def test_inspect_empty_input_shows_its_end(run):
    result = run("inspect", "-f", "kafka", "-")
    assert result.out.startswith("kafka: 0 bytes, 0 headers, no errors\n")
    assert result.code == 0


@pytest.mark.parametrize("source", ["file", "stdin", "dash", "hex", "hex-stdin", "base64", "base64-stdin", "urlsafe"])
def test_inspect_reads_from_every_source(run, tmp_path, source):
    file = tmp_path / "message.bin"
    file.write_bytes(MESSAGE)
    pretty = "0x" + " 0x".join(f"{byte:02X}" for byte in MESSAGE[:9]) + "\n" + MESSAGE[9:].hex(":") + "\n"
    coded = base64.b64encode(MESSAGE)
    args, stdin = {
        "file": ([file], b""),
        "stdin": ([], MESSAGE),
        "dash": (["-"], MESSAGE),
        "hex": (["--hex", pretty], b""),
        "hex-stdin": (["--hex", "-"], pretty.encode()),
        "base64": (["--base64", coded.decode()], b""),
        "base64-stdin": (["--base64", "-"], coded[:10] + b"\n" + coded[10:] + b"\n"),
        "urlsafe": (["--base64", base64.urlsafe_b64encode(MESSAGE).decode()], b""),
    }[source]
    result = run("inspect", *args, "--format", "streams-timestamped", "--json", stdin=stdin)
    document = json.loads(result.out)
    assert "".join(label["hex"] for label in document["labels"]) == MESSAGE.hex()
    assert (document["bytes"], document["errors"], result.code) == (len(MESSAGE), [], 0)


def test_inspect_json_lists_the_errors(run):
    result = run("inspect", "-f", "kafka", "--json", "--hex", "03")
    document = json.loads(result.out)
    assert document["format"] == "kafka"
    assert document["errors"] == [
        {
            "code": "negative_count",
            "message": "header count -2 is negative",
            "byte_offset": 0,
            "header": None,
            "key": None,
            "column": None,
        }
    ]
    assert result.code == 1


def test_inspect_lenient_accepts_what_java_accepts(run):
    assert run("inspect", "-f", "kafka", "--hex", "03").code == 1
    assert run("inspect", "-f", "kafka", "--hex", "03", "--lenient").code == 0


def test_inspect_folds_long_values_and_all_unfolds_them(run):
    block = lh.encode([("blob", b"x" * 100)], "kafka")
    folded = run("inspect", "-f", "kafka", "--hex", block.hex()).out
    assert "          … 84 bytes\n" in folded
    assert '"' + "x" * 46 + '…"' in folded
    unfolded = run("inspect", "-f", "kafka", "--all", "--hex", block.hex()).out
    assert "…" not in unfolded
    assert len(re.findall(r"\b78\b", unfolded)) == 100
    assert '"' + "x" * 100 + '"' in unfolded


def test_inspect_shows_an_error_inside_a_folded_field(run):
    key = b"k" * 50 + b"\xff" + b"k" * 50
    block = b"\x02" + b"\xca\x01" + key + b"\x00"
    lines = run("inspect", "-f", "kafka", "--hex", block.hex()).out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("! "))
    assert lines[at - 1].strip() == "… 32 bytes"
    assert lines[at].split("  ")[1:3] != []
    column = lines[at + 1].index("^^")
    assert lines[at][column : column + 2] == "ff"
    assert lines[at + 1].strip() == "^^ the key is not UTF-8 (key_not_utf8, byte 53)"


def test_inspect_reads_row_of_parquet_file(run):
    messages = pq.read_table(STORE).column("value").to_pylist()
    result = run("inspect", STORE, "--column", "value", "--row", "17", "-f", "streams-timestamped", "--json")
    assert "".join(label["hex"] for label in json.loads(result.out)["labels"]) == messages[17].hex()


def test_inspect_damaged_messages_match_reference(run):
    messages = pq.read_table(STORE).column("value").to_pylist()[:200]
    for row, message in enumerate(messages[::5]):
        at = row * 7 % len(message)
        message = message[:at] if row % 2 else message[:at] + bytes([message[at] ^ 0xFF]) + message[at + 1 :]
        result = run("inspect", "-f", "streams-timestamped", "--json", "--hex", message.hex())
        document = json.loads(result.out)
        assert "".join(label["hex"] for label in document["labels"]) == message.hex()
        errors = [tuple(error.values()) for error in document["errors"]]
        assert errors == [tuple(error) for error in ops.validate(message, "streams-timestamped")]


# terminals -----------------------------------------------------------------------------------------------------------


def test_only_wrong_byte_of_field_is_highlighted():
    data = lh.encode([("tenant", b"acme")], "kafka").replace(b"tenant", b"ten\xffnt")
    _, printed = terminal("inspect", "-f", "kafka", "--hex", data.hex())
    [line] = [line for line in printed.splitlines() if "6e" in line and "ff" in line]
    plain, reverse = "", ""
    for codes, text in re.findall(r"\x1b\[([0-9;]*)m([^\x1b]*)", line):
        plain, reverse = plain + text, reverse + (text if "7" in codes.split(";") else "")
    assert "74 65 6e ff 6e 74" in plain
    assert reverse == "ff"


def test_terminal_shows_same_view_in_colour():
    code, printed = terminal("inspect", "-f", "kafka", "--hex", GOOD.hex())
    assert "\x1b[" in printed
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()]
    assert lines[3:6] == [
        "  0000    04                       header count             2",
        "  0001    0c                       key length    header 0   6",
        '  0002    74 65 6e 61 6e 74        key           header 0   "tenant"',
    ]
    assert code == 0


def test_terminal_lines_are_truncated_to_width():
    block = lh.encode([("k", "y" * 200)], "kafka")
    _, printed = terminal("inspect", "-f", "kafka", "--hex", block.hex(), columns=70)
    assert max(len(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()) <= 70


def test_pipe_gets_no_colour(run):
    for command in (["inspect"], ["decode"]):
        assert "\x1b" not in run(*command, "-f", "streams-timestamped", "--hex", MESSAGE.hex()).out


@pytest.mark.parametrize(
    "command", [["inspect"], ["inspect", "--all"], ["inspect", "--json"], ["decode"], ["decode", "--json"]]
)
def test_control_characters_in_data_are_not_printed(run, command):
    block = lh.encode([(HOSTILE, HOSTILE), ("a[red]b", b"[bold]:smile:")], "kafka")
    printed = run(*command, "-f", "kafka", "--hex", block.hex()).out
    assert [char for char in printed if not char.isprintable() and char != "\n"] == []
    assert "[red]" in printed
    assert ":smile:" in printed


def test_control_characters_in_argument_are_not_printed(run):
    result = run("inspect", "-f", "kafka", "\x1b[2Jmissing")
    assert "\x1b" not in result.err
    assert result.code == 3


def test_bytes_are_not_written_to_a_terminal(tmp_path):
    document = tmp_path / "headers.json"
    document.write_text('{"headers": []}')
    code, printed = terminal("encode", "-f", "kafka", str(document))
    assert printed == "letterhead: bytes are not written to a terminal: use --as hex, --out FILE, or a pipe\n"
    assert code == 2


def test_terminal_is_not_read_as_input():
    code, printed = terminal("inspect", "-f", "kafka")
    assert printed == "letterhead: no input: give a FILE, or - for standard input (see --help)\n"
    assert code == 2


def test_closed_pipe_prints_no_traceback():
    block = lh.encode([(f"key {number}", b"v" * 2000) for number in range(2000)], "kafka")
    command = "import sys; from letterhead.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "inspect", "--all", "-f", "kafka", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(block)
    process.stdin.close()
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 141


# decode, one message ----------------------------------------------------------------------------------------------------


def test_decode_shows_a_message_format(run):
    result = run("decode", "-f", "streams-timestamped", "--hex", MESSAGE.hex())
    assert [line.rstrip() for line in result.out.splitlines() if line.strip()] == [
        "streams-timestamped: 31 bytes, 2 headers",
        "timestamp: 1767225600000  (2026-01-01T00:00:00.000Z)",
        "payload: 00 ff  (2 bytes)",
        "header   key        value    bytes",
        "──────────────────────────────────",
        '     0   "tenant"   "acme"       4',
        '     1   "route"    null',
    ]
    assert (result.code, result.err) == (0, "")


def test_decode_json_spells_values_without_loss(run):
    result = run("decode", "-f", "streams-timestamped", "--json", "--hex", MESSAGE.hex())
    assert json.loads(result.out) == {
        "headers": [{"key": "tenant", "value": "acme"}, {"key": "route", "value": None}],
        "timestamp": "2026-01-01T00:00:00.000Z",
        "payload": {"base64": "AP8="},
    }


def test_decode_json_keeps_text_readable(run):
    block = lh.encode([("señal-📦", "株式会社")], "kafka")
    printed = run("decode", "-f", "kafka", "--json", "--hex", block.hex()).out
    assert "señal-📦" in printed
    assert "株式会社" in printed


def test_decode_reports_an_error_in_one_line(run):
    result = run("decode", "-f", "kafka", "--hex", "03")
    assert result.err == "letterhead: kafka: header count -2 is negative (byte 0)\n"
    assert (result.code, result.out) == (1, "")


def test_decode_returns_null_for_a_bad_message(run):
    result = run("decode", "-f", "kafka", "--hex", "03", "--errors", "null", "--json")
    assert (result.code, result.out) == (1, "null\n")
    assert "kafka: 1 byte, null" in run("decode", "-f", "kafka", "--hex", "03", "--errors", "null").out


def test_decode_keeps_readable_fields_of_bad_message(run):
    damaged = bytes([MESSAGE[0]]) + b"\x03" + MESSAGE[2:]
    args = ("decode", "-f", "streams-timestamped", "--hex", damaged.hex(), "--errors", "column")
    result = run(*args, "--json")
    document = json.loads(result.out)
    assert document["headers"] is None
    assert document["timestamp"] == "2026-01-01T00:00:00.000Z"
    assert document["payload"] == {"base64": "AP8="}
    assert [(error["code"], error["byte_offset"]) for error in document["error"]] == [("negative_count", 1)]
    assert result.code == 1
    assert "! header count -2 is negative (negative_count, byte 1)" in run(*args).out


def test_decode_lenient_reads_what_java_reads(run):
    block = bytes.fromhex("02 06 6b ff 79 02 76")
    assert run("decode", "-f", "kafka", "--hex", block.hex()).code == 1
    result = run("decode", "-f", "kafka", "--hex", block.hex(), "--lenient", "--json")
    assert json.loads(result.out)["headers"][0]["key"] == "k\ufffdy"
    assert result.code == 0


# decode, a column ----------------------------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    """Write a small store: two whole messages, a null, and a damaged one in the last row."""
    path = tmp_path / "store.parquet"
    messages = [
        MESSAGE,
        lh.encode(lh.Message(headers=[], timestamp=-1, payload=b"p"), "streams-timestamped"),
        None,
        b"\x05",
    ]
    pq.write_table(
        pa.table({"key": pa.array([b"a", b"b", b"c", b"d"]), "value": pa.array(messages, pa.binary())}), path
    )
    return path


def column(path: Path, *more: str | Path) -> list[str | Path]:
    return ["decode", path, "--column", "value", "-f", "streams-timestamped", *more]


def test_column_becomes_json_lines(run, parquet):
    result = run(*column(parquet, "--json", "--errors", "column"))
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert rows[0]["headers"][0] == {"key": "tenant", "value": "acme"}
    assert rows[1] == {
        "key": "b",
        "headers": [],
        "timestamp": "1969-12-31T23:59:59.999Z",
        "payload": "p",
        "error": None,
    }
    assert rows[2]["headers"] is None
    assert rows[3]["error"][0]["code"] == "negative_length"
    assert result.err == "letterhead: 1 of 4 rows did not decode: negative_length 1\n"
    assert result.code == 1


def test_column_becomes_table_of_first_rows(run, parquet):
    result = run(*column(parquet, "--limit", "2"))
    assert "tenant=" in result.out
    assert "2 of 4 rows" in result.out
    assert (result.code, result.err) == (0, "")


def test_column_becomes_parquet(run, parquet, tmp_path):
    out = tmp_path / "decoded.parquet"
    result = run(*column(parquet, "--out", out, "--errors", "column"))
    decoded = pq.read_table(out)
    assert decoded.schema.names == ["key", "headers", "timestamp", "payload", "error"]
    assert decoded.column("headers").to_pylist()[0] == [
        {"key": "tenant", "value": b"acme"},
        {"key": "route", "value": None},
    ]
    assert [row is None for row in decoded.column("error").to_pylist()] == [True, True, True, False]
    assert result.err == f"4 rows written to {out}\nletterhead: 1 of 4 rows did not decode: negative_length 1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decoded.parquet", "store.parquet"]


def test_error_column_has_requested_name(run, parquet, tmp_path):
    out, source = tmp_path / "decoded.parquet", ("--errors", "column", "--error-column", "problem")
    run(*column(parquet, "--out", out, *source))
    decoded = pq.read_table(out)
    assert decoded.schema.names == ["key", "headers", "timestamp", "payload", "problem"]
    assert [row is None for row in decoded.column("problem").to_pylist()] == [True, True, True, False]
    assert "negative_length" in run(*column(parquet, *source)).out
    refused = run(*column(parquet, "--error-column", "problem"))
    assert (refused.code, "--error-column needs" in refused.err) == (2, True)


def test_whole_store_becomes_parquet(run, tmp_path):
    out = tmp_path / "decoded.parquet"
    assert run("decode", STORE, "-c", "value", "-f", "streams-timestamped", "-o", out).code == 0
    messages = pq.read_table(STORE).column("value").to_pylist()
    decoded = pq.read_table(out).to_pylist()
    for message, row in zip(messages, decoded, strict=True):
        whole = lh.decode(message, "streams-timestamped")
        assert row["headers"] == [header._asdict() for header in whole.headers]
        assert (row["timestamp"], row["payload"]) == (whole.timestamp, whole.payload)


def test_bad_row_stops_column_and_is_named(run, parquet, tmp_path):
    out = tmp_path / "decoded.parquet"
    result = run(*column(parquet, "--out", out))
    assert (
        result.err
        == "letterhead: streams-timestamped: headers size -3 is negative (byte 0, row 3); to see all rows, with their errors, pass --errors column\n"
    )
    assert result.code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["store.parquet"]


def test_error_row_is_file_row(run, tmp_path):
    path = tmp_path / "long.parquet"
    messages = [MESSAGE] * 25_000
    messages[24_321] = b""
    pq.write_table(pa.table({"value": pa.array(messages, pa.binary())}), path)
    assert "row 24321)" in run(*column(path, "--out", tmp_path / "out.parquet")).err


def test_bad_rows_become_null(run, parquet):
    result = run(*column(parquet, "--errors", "null", "--json"))
    assert json.loads(result.out.splitlines()[3])["headers"] is None
    assert result.err == "letterhead: 1 of 4 rows did not decode: negative_length 1\n"
    assert result.code == 1


def test_table_without_rows_decodes_to_empty_table(run, tmp_path):
    path, out = tmp_path / "none.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"value": pa.array([], pa.binary())}), path)
    assert run(*column(path, "--out", out)).code == 0
    assert pq.read_table(out).schema.names == ["headers", "timestamp", "payload"]


def test_column_of_headers_format_becomes_headers(run, tmp_path):
    path = tmp_path / "blocks.parquet"
    pq.write_table(pa.table({"value": pa.array([GOOD, b""], pa.binary())}), path)
    result = run("decode", path, "--column", "value", "-f", "kafka", "--json")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [len(row["headers"]) for row in rows] == [2, 0]


def dead_letters() -> list[tuple[str, bytes | None]]:
    return [
        ("kafka_dlt-original-topic", b"orders"),
        ("route", b"eu-1"),
        ("kafka_dlt-original-offset", (5_000_000_000).to_bytes(8, "big")),
        ("kafka_dlt-original-timestamp", (1_767_225_600_123).to_bytes(8, "big")),
    ]


@pytest.mark.parametrize("form", ["bytes", "headers"])
def test_profile_makes_convention_columns(run, tmp_path, form):
    blocks = pa.array([lh.encode(dead_letters(), "kafka"), b"", None], pa.binary())
    path = tmp_path / "dead.parquet"
    pq.write_table(
        pa.table(
            {"n": [7, 8, 9], "message": blocks if form == "bytes" else lha.decode(blocks, "kafka"), "m": [1, 2, 3]}
        ),
        path,
    )
    requested = ["decode", path, "-c", "message", "-f", "kafka", "--profile", "spring-dlt"]
    result = run(*requested, "--json")
    assert (result.code, result.err) == (0, "")
    first, *others = map(json.loads, result.out.splitlines())
    columns = list(lh.profile("spring-dlt"))
    assert list(first) == ["n", *columns, "m"]
    assert {name: value for name, value in first.items() if value is not None} == {
        "n": 7,
        "original_topic": "orders",
        "original_offset": 5_000_000_000,
        "original_timestamp": "2026-01-01T00:00:00.123Z",
        "m": 1,
    }
    assert others == [{"n": n, **dict.fromkeys(columns), "m": n - 6} for n in (8, 9)]

    out = tmp_path / "out.parquet"
    assert run(*requested, "--prefix", "dlt_", "--out", out).code == 0
    actual = pq.read_table(out)
    assert actual.column_names == ["n", *(f"dlt_{name}" for name in columns), "m"]
    assert actual["dlt_original_offset"].to_pylist() == [5_000_000_000, None, None]
    assert actual.schema.field("dlt_original_timestamp").type == pa.timestamp("ms", "UTC")
    assert "original_offset" in run(*requested).out


def test_profile_reports_values_of_wrong_type(run, tmp_path):
    path = tmp_path / "dead.parquet"
    messages = [lh.encode(headers, "kafka") for headers in (dead_letters(), [("kafka_dlt-original-offset", b"17")])]
    pq.write_table(pa.table({"message": pa.array(messages, pa.binary())}), path)
    requested = ["decode", path, "-c", "message", "-f", "kafka", "--profile", "spring-dlt", "--json"]
    result = run(*requested, "--errors", "column")
    assert (result.code, result.err) == (1, "letterhead: 1 of 2 rows did not decode: wrong_size 1\n")
    whole, bad = (json.loads(line) for line in result.out.splitlines())
    assert (whole["error"], whole["original_offset"]) == (None, 5_000_000_000)
    assert bad["original_offset"] is None
    assert [(error["code"], error["column"]) for error in bad["error"]] == [("wrong_size", "original_offset")]
    assert "row 1" in run(*requested).err


def test_profile_of_batch_keeps_other_message_fields(run, tmp_path):
    path = tmp_path / "sets.parquet"
    sets = [
        lh.encode(lh.Message(offset=n, value=b"v", headers={"traceparent": lh.String(f"00-{n}")}), "kip82-message")
        for n in range(3)
    ]
    pq.write_table(pa.table({"part": [1, 2], "message": pa.array([sets[0] + sets[1], sets[2]], pa.binary())}), path)
    result = run("decode", path, "-c", "message", "-f", "kip82-messages", "--profile", "opentelemetry", "--json")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [(row["part"], row["offset"], row["traceparent"]) for row in rows] == [
        (1, 0, "00-0"),
        (1, 1, "00-1"),
        (2, 2, "00-2"),
    ]
    assert not {"headers", "row"} & set(rows[0])


@pytest.mark.parametrize("name", PROFILES)
def test_profile_columns_do_not_shadow_message_fields(name):
    fields = {field for row in _native.formats() for field, _ in row["fields"]}
    assert "offset" in fields
    assert not {"row", "error", *fields} & set(lh.profile(name))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["-f", "kafka", "--profile", "opentelemtry"],
            "unknown profile 'opentelemtry': did you mean 'opentelemetry'? (profiles: opentelemetry, ",
        ),
        (
            ["-f", "auto", "--profile", "opentelemetry"],
            "column 'headers' holds decoded headers: name their original --format, such as kafka",
        ),
        (["-f", "record-batch"], "the column is list<element: struct<key: string, value: binary>>, and record-batch "),
        (["-f", "kip82-int"], "the column is list<element: struct<key: string, value: binary>>, and what fits is "),
    ],
)
def test_list_of_headers_rejects_unsuitable_options(run, more, message):
    result = run("decode", SAMPLES / "orders-0.parquet", "-c", "headers", *more)
    assert (result.code, result.out, result.err.startswith(f"letterhead: {message}")) == (2, "", True)


@pytest.mark.parametrize("output", ["json", "parquet", "screen"])
def test_list_of_headers_is_decoded_unchanged(run, tmp_path, output):
    source, out = SAMPLES / "orders-0.parquet", tmp_path / "out.parquet"
    table = pq.read_table(source)
    if output == "screen":
        result = run("decode", source, "-c", "headers", "-f", "kafka", "-n", "2", "--prefix", "x_")
        assert "x_headers" in result.out
        assert "traceparent=" in result.out
    elif output == "parquet":
        result = run("decode", source, "-c", "headers", "-f", "kafka", "-o", out)
        assert pq.read_table(out) == table
    else:
        result = run("decode", source, "-c", "headers", "-f", "kafka", "--json", "-n", "50")
        decoded = [json.loads(line)["headers"] for line in result.lines]
        for headers, expected in zip(decoded, table.column("headers").to_pylist()[:50], strict=True):
            assert [header["key"] for header in headers or ()] == [header["key"] for header in expected or ()]
            values = [header["value"] for header in headers or ()]
            assert values == [value_json(header["value"]) for header in expected or ()]
    assert result.code == 0


def test_list_of_typed_headers_is_decoded_unchanged(run, tmp_path):
    blocks = pa.array([lh.encode([("retry", lh.Int32(3))], "iggy"), None], pa.binary())
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"h": pa.array(lh.arrow.decode(blocks, "iggy"))}), path)
    result = run("decode", path, "-c", "h", "-f", "iggy", "--json")
    value = {"type": "int32", "value": 3}
    assert [json.loads(line) for line in result.lines] == [
        {"headers": [{"key": "retry", "value": value}]},
        {"headers": None},
    ]


@pytest.mark.parametrize(
    ("command", "fits"),
    [
        (["decode", "-f", "kafka"], "key, value, headers"),
        (["decode", "-f", "auto"], "key, value, headers"),
        (["convert", "-f", "kafka", "-t", "iggy"], "key, value, headers"),
        (["inspect", "-f", "kafka"], "key, value"),
        (["encode", "-f", "kafka"], "key, value, headers"),
    ],
)
def test_parquet_file_needs_column_option(run, tmp_path, command, fits):
    path = SAMPLES / "orders-0.parquet"
    for result, name in ((run(*command, path), path), (run(*command, "-", stdin=path.read_bytes()), "standard input")):
        assert (result.code, result.raw) == (2, b"")
        assert result.err.startswith(f"letterhead: {name} is a Parquet file: ")
        assert "--column NAME" in result.err
        assert result.err.endswith(f"(columns that fit: {fits})\n")
    cut, plain = tmp_path / "cut.parquet", tmp_path / "plain.parquet"
    cut.write_bytes(path.read_bytes()[:100])
    assert "is a Parquet file: " in run(*command, cut).err
    pq.write_table(pa.table({"n": [1], "lists": [[1]]}), plain)
    assert "(columns that fit: none)" in run(*command, plain).err


def test_arrow_file_is_rejected_by_name(run, tmp_path):
    path = tmp_path / "messages.arrow"
    table = pa.table({"value": pa.array([GOOD])})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    for args in (
        ["decode", path, "-f", "kafka"], ["inspect", path, "-f", "kafka"], ["encode", path, "-f", "kafka"],
        ["convert", path, "-f", "kafka", "-t", "iggy"],
    ):  # fmt: skip
        result = run(*args)
        message = f"letterhead: {path} is an Arrow IPC file: "
        assert (result.code, result.raw, result.err.startswith(message)) == (2, b"", True), args
    assert run("inspect", path, "-f", "kafka", "-c", "value").code == 0
    assert run("decode", path, "-f", "kafka", "-c", "value", "--json").code == 0
    assert run("scan", path, "-c", "value").code == 0


# encode --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format", "data"), [("kafka", GOOD), ("streams-timestamped", MESSAGE), ("kafka", b"")])
def test_encode_undoes_decode(run, tmp_path, format, data):
    document = run("decode", "-f", format, "--json", "--hex", data.hex()).raw
    assert run("encode", "-f", format, stdin=document).raw == data
    assert run("encode", "-f", format, "--as", "hex", "-", stdin=document).out == data.hex() + "\n"
    out = tmp_path / "message.bin"
    assert run("encode", "-f", format, "--out", out, stdin=document).raw == b""
    assert out.read_bytes() == data


@pytest.mark.slow
def test_encode_undoes_decode_for_a_whole_store(run):
    messages = pq.read_table(STORE).column("value").to_pylist()
    for message in messages[:60]:
        document = run("decode", "-f", "streams-timestamped", "--json", "-", stdin=message).raw
        assert run("encode", "-f", "streams-timestamped", stdin=document).raw == message


def test_encode_accepts_every_spelling_of_value(run):
    values = ["acme", {"hex": "61636d65"}, {"base64": "YWNtZQ=="}, {"hex": "61 63 6D 65"}]
    document = {"headers": [{"key": "k", "value": value} for value in [*values, None]]}
    written = run("encode", "-f", "kafka", stdin=json.dumps(document).encode()).raw
    assert lh.decode(written, "kafka").get_all("k") == [b"acme"] * len(values) + [None]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "JSON: expecting value (line 1, column 1)"),
        ("[]", 'JSON: an object with "headers" is needed, not a list'),
        ("{}", 'JSON: "headers" is missing: kafka has headers'),
        ('{"headers": {}}', 'JSON: "headers" is a list, not an object'),
        ('{"headers": [], "paylod": null}', "JSON: kafka has no field 'paylod': it has headers"),
        ('{"headers": [1]}', 'JSON: header 0: an object with "key" and "value" is needed'),
        ('{"headers": [{"key": "k"}]}', 'JSON: header 0: an object with "key" and "value" is needed'),
        ('{"headers": [{"key": 1, "value": null}]}', "JSON: header 0: its key is a string, not a number"),
        ('{"headers": [{"key": null, "value": null}]}', "JSON: header 0: its key is a string, not null"),
        (
            '{"headers": [{"key": "k", "value": 3}]}',
            'JSON: header 0: a value is null, a string, or an object with "base64" or "hex", or with "type" and "value"',
        ),
        (
            '{"headers": [{"key": "k", "value": {}}]}',
            'JSON: header 0: a value is null, a string, or an object with "base64" or "hex", or with "type" and "value"',
        ),
        ('{"headers": [{"key": "k", "value": {"hex": 3}}]}', 'JSON: header 0: "hex" is a string, not a number'),
        ('{"headers": [{"key": "k", "value": {"hex": "6"}}]}', "JSON: header 0: hex: 1 digits; bytes have two each"),
        (
            '{"headers": [{"key": "k", "value": {"hex": "61", "base64": "YQ=="}}]}',
            'JSON: header 0: a value is null, a string, or an object with "base64" or "hex", or with "type" and "value"',
        ),
        (
            '{"headers": [{"key": "k", "value": "\\ud800"}]}',
            "JSON: header 0 has a lone surrogate, which UTF-8 does not have",
        ),
        (
            '{"headers": [{"key": "\\ud800", "value": null}]}',
            "JSON: header 0: its key has a lone surrogate, which UTF-8 does not have",
        ),
        ('{"headers": ' + "[" * 100_000, "JSON: the nesting is too deep"),
        ("9" * 5000, "JSON: a number is too long"),
        ('{"headers": [], "headers": []}', "JSON: an object has a name twice"),
        ("1e9999999999", "JSON: a number is too large or too small"),
    ],
)
def test_encode_rejects_bad_headers_in_one_line(run, document, message):
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=document.encode())
    assert result.err.removesuffix(" (line 1)\n").removesuffix("\n") == f"letterhead: {message}"
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    ("document", "message", "code"),
    [
        (
            {"headers": [], "timestamp": "x", "payload": None},
            'JSON: "timestamp" is neither a time with a zone, such as 2026-01-01T08:30:00Z, nor milliseconds since 1970',
            2,
        ),
        (
            {"headers": [], "timestamp": True, "payload": None},
            'JSON: "timestamp" is a time or a number of milliseconds, not true or false',
            2,
        ),
        ({"headers": [], "timestamp": 2**63, "payload": "p"}, 'JSON: "timestamp" does not fit 64 bits', 2),
        (
            {"headers": [], "payload": "p"},
            'JSON: "timestamp" is missing: streams-timestamped has headers, timestamp, payload',
            2,
        ),
        (
            {"headers": [], "timestamp": 1, "payload": None},
            "streams-timestamped: a null payload is a tombstone: the message is null and has no bytes",
            1,
        ),
    ],
)
def test_encode_rejects_bad_messages_in_one_line(run, document, message, code):
    result = run("encode", "-f", "streams-timestamped", "--as", "hex", stdin=json.dumps(document).encode())
    assert result.err == f"letterhead: {message} (line 1)\n"
    assert (result.code, result.out) == (code, "")


def test_encode_rejects_values_that_the_format_cannot_carry(run):
    document = {"headers": [{"key": "k", "value": "v"}], "timestamp": 1, "payload": None}
    result = run("encode", "-f", "streams-timestamped", "--as", "hex", stdin=json.dumps(document).encode())
    assert result.code == 1
    assert result.err.startswith("letterhead: streams-timestamped: ")
    document = {"headers": [], "timestamp": None, "payload": "p"}
    result = run("encode", "-f", "streams-timestamped", "--as", "hex", stdin=json.dumps(document).encode())
    assert result.code == 1
    assert "timestamp" in result.err


def test_encode_rejects_non_utf8_input(run):
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=b'{"\xff"}')
    assert (result.code, result.err) == (2, "letterhead: JSON: the input is not UTF-8 (line 1)\n")


# wrong usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["inspect", "--hex", "00"], "Missing option '--format' / '-f' (see letterhead inspect --help)"),
        (["inspect", "-f", "kafka", "--hex", "0g"], "--hex: 'g' is not a hex digit"),
        (["inspect", "-f", "kafka", "--hex", "\x1b"], r"--hex: '\x1b' is not a hex digit"),
        (["inspect", "-f", "kafka", "--hex", "012"], "--hex: 3 digits; bytes have two each"),
        (
            ["inspect", "-f", "kafka", "--hex", "00", "--base64", "AA=="],
            "--hex and --base64 exclude each other: give one of them",
        ),
        (["inspect", "-f", "kafka", "-", "--hex", "00"], "FILE and --hex exclude each other: give one of them"),
        (["inspect", "-f", "kafka", "--row", "1", "--hex", "00"], "--row needs --column"),
        (["inspect", "-f", "kafka", "--column", "value"], "--column needs a SOURCE, such as a Parquet file"),
        (
            ["decode", "-f", "kafka", "--limit", "1", "--hex", "00"],
            "--limit, --out, --prefix and --profile need --column: they are for a column of a source",
        ),
        (["decode", "-f", "kafka", "--column", "value"], "--column needs a SOURCE, such as a Parquet file"),
        (
            ["decode", "-f", "kafka", "--column", "value", "--hex", "00"],
            "--column needs a SOURCE, such as a Parquet file",
        ),
    ],
)
def test_wrong_usage_prints_one_line_and_exits_2(run, args, message):
    result = run(*args)
    assert result.err == f"letterhead: {message}\n"
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["inspect", "-f", "kafka", "no-such-file"], "no-such-file: no such file or directory"),
        (["inspect", "-f", "kafka", "."], ".: is a directory"),
        (["inspect", "-f", "kafka", "--column", "value", "no.parquet"], "no.parquet: no such file or directory"),
        (["encode", "-f", "kafka", "no-such-file", "--as", "hex"], "no-such-file: no such file or directory"),
        (
            ["scan", "no-such-file"],
            "no-such-file: no such file or directory; a topic is kafka://host:port/no-such-file",
        ),
    ],
)
def test_unreadable_input_prints_one_line_and_exits_3(run, args, message):
    result = run(*args)
    assert result.err == f"letterhead: cannot read {message}\n"
    assert (result.code, result.out) == (3, "")


@pytest.mark.parametrize("command", ["inspect", "decode", "encode"])
def test_misspelt_format_suggests_nearest(run, command):
    args = ["--as", "hex"] if command == "encode" else ["--hex", "00"]
    result = run(command, "-f", "kafak", *args, stdin=b'{"headers": []}')
    assert result.err.startswith("letterhead: unknown format 'kafak': did you mean 'kafka'?")
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    "args", [["inspct"], ["inspect", "--hexx", "00"], ["decode", "--errors", "ignore", "-f", "kafka"]]
)
def test_misspelt_command_or_option_prints_one_line(run, args):
    result = run(*args)
    assert result.err.startswith("letterhead: ")
    assert result.err.count("\n") == 1
    assert result.code == 2


def test_malformed_base64_is_rejected(run):
    result = run("inspect", "-f", "kafka", "--base64", "A")
    assert result.err.startswith("letterhead: --base64: ")
    assert result.code == 2


def test_parquet_is_checked_before_it_is_read(run, tmp_path, parquet):
    nonsense = tmp_path / "nonsense.parquet"
    nonsense.write_bytes(b"not parquet at all")
    text = tmp_path / "text.parquet"
    pq.write_table(pa.table({"value": ["a"], "key": [1]}), text)
    taken = tmp_path / "taken.parquet"
    pq.write_table(pa.table({"value": pa.array([MESSAGE]), "payload": [1]}), taken)
    for args, message in [
        (
            column(nonsense),
            f"{nonsense} is not a supported source: it is neither a log segment, nor Parquet, Arrow IPC or JSON lines (letterhead decode and "
            "inspect read one serialized message)",
        ),
        (column(text), f"column 'value' of {text} is string: bytes (binary), or lists or maps of headers, are needed"),
        (["decode", text, "-c", "valeu", "-f", "kafka"], f"{text} has no column 'valeu': it has value, key"),
        (column(taken), "the file already has a column 'payload', which decoding 'value' would add: give a --prefix"),
        (
            column(parquet, "--json", "--out", "x"),
            "--json and --out exclude each other: write to a file that ends in .jsonl",
        ),
        (column(parquet, "--out", parquet), "--out is the file that is read: give another name"),
        (
            column(parquet, "--errors", "null", "--out", tmp_path / "no" / "x.parquet"),
            f"cannot write {tmp_path / 'no' / 'x.parquet'}: no such file or directory",
        ),
        (
            ["inspect", parquet, "-c", "value", "--row", "4", "-f", "kafka"],
            f"row 4 is not in {parquet}: it has 4 rows, counted from 0",
        ),
    ]:
        result = run(*args)
        assert result.err == f"letterhead: {message}\n"
        assert result.code == (3 if message.startswith("cannot write") else 2)
    result = run("inspect", parquet, "-c", "value", "--row", "2", "-f", "kafka")
    assert result.err == "letterhead: row 2 of column 'value' is null: there are no bytes to inspect\n"
    assert result.code == 1


def test_folder_without_segments_and_stores_is_rejected(run, tmp_path):
    for command in (column(tmp_path), ["scan", tmp_path]):
        result = run(*command)
        assert (result.code, f"{tmp_path} has no log segments" in result.err) == (3, True)


@pytest.mark.parametrize(
    "args",
    [
        ["inspect", "-f", "kafka"],
        ["decode", "-f", "kafka", "-"],
        ["decode", "-f", "kafka", "--hex", "-"],
        ["inspect", "-f", "kafka", "--base64", "-"],
        ["encode", "-f", "kafka", "--as", "hex"],
        ["convert", "-f", "kafka", "--to", "streams", "--as", "hex"],
    ],
)
def test_closed_input_prints_one_line(args, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", None)  # as Python has it in a process that was started without one
    assert main(args) == 2
    assert capfd.readouterr().err == "letterhead: standard input is closed: give a FILE, --hex or --base64\n"


def test_closed_output_prints_one_line(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["decode", "-f", "kafka", "--hex", "00"]) == 2
    assert capfd.readouterr().err == "letterhead: standard output is closed: give it a file, a pipe, or /dev/null\n"


def test_name_in_capitals_suggests_correct_spelling(run):
    result = run("decode", "-f", "KAFKA", "--hex", "00")
    assert result.err.startswith(
        "letterhead: unknown format 'KAFKA': did you mean 'kafka'? (`letterhead formats` lists all)"
    )
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


# help and the rest ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["inspect", "decode", "encode", "convert"])
def test_help_has_examples_and_exit_codes(run, command):
    result = run(command, "--help")
    assert f"letterhead {command} " in result.out
    assert "Examples:" in result.out
    assert "Exit codes: 0 success" in result.out
    assert result.code == 0


def helps(command, path=()):
    yield list(path), command.help.partition("\f")[0]
    for name, under in getattr(command, "commands", {}).items():
        yield from helps(under, (*path, name))


@pytest.mark.parametrize(
    ("path", "text"),
    [*helps(typer.main.get_command(app_for(None)))],
    ids=lambda parameter: " ".join(parameter) if isinstance(parameter, list) else "",
)
def test_help_fits_80_columns(run, monkeypatch, path, text):
    monkeypatch.setenv("COLUMNS", "80")
    printed = [line.strip() for line in run(*path, "--help").out.splitlines()]
    _, *paragraphs = re.split(r"\n\s*\n", text)
    assert any("Examples:" in part for part in paragraphs)
    # What stands in lines of its own is not broken once more.
    for line in "\n".join(part for part in paragraphs if "\n" in part).replace("\b", "").splitlines():
        assert line.strip() in printed
    assert max(map(len, printed)) <= 80


def examples_that_bring_their_bytes():
    for _, text in helps(typer.main.get_command(app_for(None))):
        lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
        for line in lines:
            words = shlex.split(line) if line.startswith("letterhead ") else []
            if {"--hex", "--base64"} & set(words) and "|" not in words:
                yield words[1:]


@pytest.mark.parametrize("args", [*examples_that_bring_their_bytes()], ids=" ".join)
def test_self_contained_help_examples_run(run, args):
    result = run(*args)
    assert (result.code, bool(result.out)) == (0, True), result.err


def test_formats_lists_every_format_with_its_class_and_system(run):
    rows = json.loads(run("formats", "--json").out)
    names = [row["name"] for row in _native.formats()]
    assert [row["name"] for row in rows] == names
    assert {row["class"] for row in rows} == {"headers", "message", "batch"}
    assert {row["system"] for row in rows} == {"Kafka", "Kafka Streams", "Iggy", "KIP-82 draft"}
    table = run("formats")
    assert [line.split()[0] for line in table.lines if line.startswith(tuple(names))] == names
    assert table.code == 0


@pytest.mark.parametrize("command", ["inspect", "decode", "convert", "scan"])
def test_format_help_names_common_formats_and_list_command(run, command):
    words = run(command, "--help").out.replace("│", " ").split()
    assert {"kafka,", "streams-timestamped,", "iggy,", "record-batch,", "iggy-message,"} <= set(words)
    assert "kip82-typed," not in words
    assert "`letterhead formats`" in " ".join(words)


def test_help_names_every_command(run):
    result = run("--help")
    for command in ("inspect", "decode", "encode", "convert"):
        assert f" {command} " in result.out


def test_missing_command_shows_help_and_is_wrong_usage(run):
    result = run()
    assert "Usage: letterhead" in result.out + result.err
    assert result.code == 2


def test_version(run):
    assert re.fullmatch(r"letterhead \d+\.\d+\.\d+\S*\n", run("--version").out)


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_missing_cli_extra_is_named(run, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    result = run("formats")
    assert result.err == spelled_out(f"letterhead: the command needs {name}: pip install 'letterhead[cli]'\n")
    assert result.code == 2


def test_missing_pyarrow_names_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    result = run("inspect", STORE, "-c", "value", "-f", "kafka")
    assert result.err == spelled_out("letterhead: a table needs pyarrow: pip install 'letterhead[arrow]'\n")
    assert result.code == 2


def test_one_message_is_read_without_pyarrow():
    block_pyarrow = "import sys; sys.modules['pyarrow'] = None; from letterhead.cli import main; sys.exit(main())"
    for args in (["inspect"], ["decode"], ["decode", "--json"]):
        command = [sys.executable, "-c", block_pyarrow, *args, "-f", "kafka", "--hex", GOOD.hex()]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_wraps_at_screen_width(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("read", "--help").lines
    start = next(row for row, line in enumerate(lines) if line.strip().startswith("A topic is read up to its end"))
    paragraph = [line.strip() for line in itertools.takewhile(lambda line: "A POINT" not in line, lines[start:])]
    words = [line.split()[0] for line in paragraph[1:]]
    for line, word in zip(paragraph[:-1], words, strict=True):
        assert len(line) <= columns - 2 < len(line) + 1 + len(word)


def test_missing_argument_is_named_with_its_choices(run):
    assert "Choose from: bash, zsh, fish" in run("completion").err
