"""`letterhead convert`: bytes from one format to another, what is lost, and how it is said."""

from __future__ import annotations

import hashlib
import hmac
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

import letterhead as lh
from letterhead import arrow as lha
from letterhead.cli.document import value_json
from tests.helpers.terminal import read_to_end

STORE = Path(__file__).parents[1] / "samples" / "store-latest-0.parquet"

HEADERS = [("tenant", lh.String("acme")), ("retry", lh.Int32(3)), ("route", lh.String("a")), ("route", lh.Int8(1))]
TYPED = lh.encode([*HEADERS, ("note", None)], "kip82-typed")
PLAIN = lh.encode([("tenant", "acme"), ("retry", b"\0\0\0\3")], "kafka")
COMMAND = "import sys; from letterhead.cli import main; sys.exit(main())"


# one message ------------------------------------------------------------------------------------------------------------


def test_convert_writes_same_bytes_as_library(run):
    types = {"tenant": "string", "retry": "int32"}
    args = ("convert", "-f", "kafka", "--to", "iggy", "--types", "tenant=string", "--types", "retry=int32")
    result = run(*args, stdin=PLAIN)
    assert result.raw == lh.convert(PLAIN, "kafka", target="iggy", types=types)
    assert (result.code, result.err) == (0, "")
    assert run(*args, "--as", "hex", stdin=PLAIN).out == result.raw.hex() + "\n"
    assert json.loads(run(*args, "--json", stdin=PLAIN).out) == {
        "format": "kafka",
        "target": "iggy",
        "data": value_json(result.raw),
    }


@pytest.mark.parametrize("source", ["file", "hex", "base64", "stdin"])
def test_bytes_come_from_every_source_and_go_to_a_file(run, tmp_path, source):
    file, out = tmp_path / "message.bin", tmp_path / "out.bin"
    file.write_bytes(PLAIN)
    args = {
        "file": [file],
        "hex": ["--hex", PLAIN.hex(" ")],
        "base64": ["--base64", "BAx0ZW5hbnQIYWNtZQpyZXRyeQgAAAAD"],
        "stdin": ["-"],
    }[source]
    result = run("convert", *args, "-f", "kafka", "-t", "kip82-typed", "--types", "binary", "-o", out, stdin=PLAIN)
    assert (result.code, result.raw, result.err) == (0, b"", "")
    assert out.read_bytes() == lh.convert(PLAIN, "kafka", target="kip82-typed", types="binary")


@pytest.mark.parametrize("word", ["be", "le", "text"])
def test_types_option_selects_byte_order_or_text(run, word):
    block = lh.encode(HEADERS[:2], "iggy")
    result = run("convert", "-f", "iggy", "--to", "kafka", "--types", word, stdin=block)
    assert result.raw == lh.convert(block, "iggy", target="kafka", types=word)


def test_repeated_key_has_type_for_each_header(run):
    block = lh.encode([("a", b"\1"), ("a", b"x"), ("b=c", b"3")], "kafka")
    types = ["--types", "a=int8", "--types", "a=string", "--types", "b=c=int16:text"]
    result = run("convert", "-f", "kafka", "--to", "iggy", *types, stdin=block)
    assert lh.decode(result.raw, "iggy") == lh.Headers([("a", lh.Int8(1)), ("a", lh.String("x")), ("b=c", lh.Int16(3))])


def test_types_option_accepts_typed_key_as_losses_spell_it(run):
    block = lh.encode([(lh.Int32(3), lh.Binary(b"\1"))], "iggy")
    result = run("convert", "-f", "iggy", "--to", "iggy", "--types", "int32:3=int8", stdin=block)
    assert lh.decode(result.raw, "iggy") == lh.Headers([(lh.Int32(3), lh.Int8(1))])


def test_loss_stops_conversion(run):
    result = run("convert", "-f", "kip82-typed", "--to", "iggy", "--as", "hex", stdin=TYPED)
    message = "iggy: the value is null (header 4); choose a format that carries it, or leave it out with --on-loss drop"
    assert result.err == f"letterhead: {message} (null_not_carried)\n"
    assert (result.code, result.out) == (1, "")


@pytest.mark.parametrize(
    ("source", "target", "options", "remedies"),
    [
        ("kafka", "iggy", (), ("--types retry=int32", "--types binary")),
        ("kafka", "iggy", ("--types", "tenant=int32"), ("--types ", "--types binary")),
        ("iggy", "kafka", (), ("--types be",)),
        ("iggy", "kip82-typed", ("--types", "retry=int8"), ("--types ", "--types binary")),
    ],
)
def test_first_remedy_for_refused_conversion_loses_nothing(run, source, target, options, remedies):
    block = PLAIN if source == "kafka" else lh.encode([("retry", lh.Int32(3))], "iggy")
    result = run("convert", "-f", source, "-t", target, *options, stdin=block)
    assert result.code == 1
    for remedy in remedies:
        assert result.err.index(remedy) < result.err.index("--on-loss")


@pytest.mark.parametrize("on_loss", ["drop", "report"])
def test_conversion_that_drops_every_header_warns(run, on_loss):
    result = run("convert", "-f", "kafka", "-t", "iggy", "--on-loss", on_loss, stdin=PLAIN)
    count = len(lh.decode(PLAIN, "kafka"))
    assert (result.code, result.raw) == (0, b"")
    assert f"letterhead: iggy: all headers were left out ({count} of {count}): " in result.err
    kept = run("convert", "-f", "kafka", "-t", "iggy", "--on-loss", on_loss, "--types", "binary", stdin=PLAIN)
    none = run("convert", "-f", "kafka", "-t", "iggy", "--on-loss", on_loss, stdin=b"\0")
    assert "all headers" not in kept.err + none.err


@pytest.mark.parametrize("source", ["bytes", "lists"])
@pytest.mark.parametrize("errors", [(), ("--errors", "column")])
def test_column_rows_losing_every_header_are_counted(run, tmp_path, source, errors):
    messages = [PLAIN, b"", lh.encode([("a", None)], "kafka"), None, PLAIN]
    column = pa.array(messages, pa.binary())
    if source == "lists":
        column = pa.array(lha.decode(column, "kafka"))
    elif errors:
        column = pa.array([*messages, b"\1"], pa.binary())
    path = tmp_path / "messages.parquet"
    pq.write_table(pa.table({"headers": column}), path)
    args = ("convert", path, "-c", "headers", "-f", "kafka", "-t", "iggy", *errors, "-o", tmp_path / "out.parquet")
    result = run(*args, "--on-loss", "drop")
    assert f"letterhead: 3 of {len(column)} rows lost all headers: " in result.err
    result = run(*args, "--on-loss", "drop", "--types", "binary")
    assert f"letterhead: 1 of {len(column)} row" in result.err
    assert "all headers" not in run(*args, "--types", "binary").err


def test_list_of_headers_is_converted(run, samples, tmp_path):
    out = tmp_path / "out.parquet"
    path = samples / "orders-0.parquet"
    result = run("convert", path, "-c", "headers", "-f", "kafka", "-t", "kip82-typed", "--types", "binary", "-o", out)
    assert (result.code, result.err) == (0, f"10,000 rows written to {out}\n")
    lists = pq.read_table(path, columns=["headers"]).column("headers")
    expected = pa.chunked_array(lha.encode(lists, "kip82-typed", types="binary"))
    assert pq.read_table(out).column("headers").to_pylist() == expected.to_pylist()
    refused = run("convert", path, "-c", "headers", "-f", "kafka", "-t", "streams", "-o", tmp_path / "none.parquet")
    assert refused.code == 2
    assert "the column is list<" in refused.err


def test_losses_are_dropped_in_silence(run):
    result = run("convert", "-f", "kip82-typed", "--to", "iggy", "--on-loss", "drop", stdin=TYPED)
    assert lh.decode(result.raw, "iggy") == lh.Headers(HEADERS)
    assert (result.code, result.err) == (0, "")


def test_losses_are_reported_as_a_table(run):
    args = ("convert", "-f", "kip82-typed", "--to", "streams", "--types", "text", "--on-loss", "report", "--as", "hex")
    result = run(*args, stdin=TYPED)
    assert lh.decode(bytes.fromhex(result.out), "streams").headers["retry"] == b"3"
    assert [line.rstrip() for line in result.err.splitlines()] == [
        "kip82-typed to streams: 4 losses",
        "header   key      not carried                      written    code",
        "──────────────────────────────────────────────────────────────────────────────",
        "     0   tenant   the type string is not carried   as it is   type_not_carried",
        "     1   retry    the type int32 is not carried    text       type_not_carried",
        "     2   route    the type string is not carried   as it is   type_not_carried",
        "     3   route    the type int8 is not carried     text       type_not_carried",
        "To convert back and restore the types:",
        "  letterhead convert -f streams --to kip82-typed --types tenant=string --types retry=int32:text "
        "--types route=string --types route=int8:text",
    ]
    assert result.code == 0


def test_printed_command_for_reverse_conversion_works(run):
    there = run("convert", "-f", "kip82-typed", "--to", "kafka", "--types", "le", "--on-loss", "report", stdin=TYPED)
    [command] = [line for line in there.err.splitlines() if line.startswith("  letterhead ")]
    assert run(*shlex.split(command)[1:], stdin=there.raw).raw == TYPED


def test_conversion_without_losses_is_reported(run):
    result = run("convert", "-f", "kip82-typed", "--to", "kip82-message", "--on-loss", "report", stdin=TYPED)
    assert result.err == "kip82-typed to kip82-message: nothing was lost\n"
    assert lh.decode(result.raw, "kip82-message").headers == lh.decode(TYPED, "kip82-typed")


def test_losses_and_their_types_are_in_the_json(run):
    args = ("convert", "-f", "kip82-typed", "--to", "kafka", "--types", "be", "--on-loss", "report", "--json")
    result = run(*args, stdin=TYPED)
    actual = lh.convert(TYPED, "kip82-typed", target="kafka", types="be", on_loss="report")
    document = json.loads(result.out)
    assert document["data"] == value_json(actual.data)
    assert document["losses"] == [loss._asdict() for loss in actual.losses]
    assert document["types"] == {"tenant": "string", "retry": "int32", "route": ["string", "int8"]}
    assert (result.code, result.err) == (0, "")


def test_null_message_converts_to_no_bytes(run):
    message = lh.encode(lh.Message(headers=HEADERS, value=None, timestamp=1), "kip82-message")
    args = ("convert", "-f", "kip82-message", "--to", "streams", "--on-loss", "drop", "--types", "be")
    result = run(*args, "--as", "hex", stdin=message)
    emptied, tombstone = result.err.splitlines()
    assert emptied.startswith("letterhead: streams: all headers were left out (4 of 4)")
    assert tombstone == "letterhead: streams: a null payload is a tombstone: the message is null and has no bytes"
    assert result.code == 1
    result = run(*args, "--json", stdin=message)
    assert (result.code, json.loads(result.out)["data"]) == (0, None)


def test_canonical_sorts_keys_and_strict_types_rejects_unknown(run):
    block = lh.encode([("b", lh.Int8(1)), ("a", lh.Value("type-200", b"z"))], "iggy")
    result = run("convert", "-f", "iggy", "--to", "iggy", "--canonical", stdin=block)
    assert [header.key for header in lh.decode(result.raw, "iggy")] == ["a", "b"]
    result = run("convert", "-f", "iggy", "--to", "iggy", "--strict-types", stdin=block)
    assert (result.code, result.raw) == (1, b"")
    assert "type code 200 is unknown" in result.err


def test_lenient_reads_what_java_reads(run):
    args = ("convert", "-f", "kafka", "--to", "kip82-typed", "--as", "hex", "--hex", "03")
    assert run(*args).code == 1
    result = run(*args, "--lenient")
    assert (result.code, result.out) == (0, "\n")


def test_bytes_with_errors_are_not_converted(run):
    result = run("convert", "-f", "kafka", "--to", "iggy", "--types", "binary", "--as", "hex", stdin=PLAIN[:-1])
    assert result.err == "letterhead: kafka: value takes 4 bytes and 3 are left (header 1, byte 20)\n"
    assert (result.code, result.out) == (1, "")


def test_control_characters_in_key_are_not_printed(run):
    block = lh.encode([("\x1b[2J\u202e", lh.Int8(1))], "iggy")
    args = ("convert", "-f", "iggy", "--to", "kafka", "--types", "be", "--on-loss", "report")
    result = run(*args, "--as", "hex", stdin=block)
    assert [char for char in result.err if not char.isprintable() and char != "\n"] == []
    result = run(*args, "--json", stdin=block)
    assert [char for char in result.out if not char.isprintable() and char != "\n"] == []


# a column ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def messages(tmp_path):
    """Write a column: two messages, a null, one that is cut, one with a null value."""
    path = tmp_path / "messages.parquet"
    values = [lh.encode(HEADERS, "kip82-typed"), b"", None, TYPED[:-2], TYPED]
    pq.write_table(pa.table({"id": range(5), "value": pa.array(values, pa.binary())}), path)
    return path


def test_column_becomes_parquet_with_losses_and_errors(run, messages, tmp_path):
    out = tmp_path / "out.parquet"
    args = ("convert", messages, "-c", "value", "-f", "kip82-typed", "--to", "iggy", "-o", out)
    result = run(*args, "--on-loss", "report", "--errors", "column")
    table = pq.read_table(out)
    assert table.schema.names == ["id", "value", "losses", "error"]
    rows = table.to_pylist()
    assert lh.decode(rows[0]["value"], "iggy") == lh.Headers(HEADERS)
    assert (rows[1]["value"], rows[2]["value"]) == (b"", None)
    assert rows[3]["error"][0]["code"] == "truncated"
    assert [loss["code"] for loss in rows[4]["losses"]] == ["null_not_carried"]
    assert [line.rstrip() for line in result.err.splitlines()] == [
        f"5 rows written to {out}",
        "kip82-typed to iggy: 1 of 5 rows with losses",
        "times   key    not carried         written    first row   code",
        "──────────────────────────────────────────────────────────────────────────",
        "    1   note   the value is null   left out           4   null_not_carried",
        "letterhead: 1 of 5 rows did not convert: truncated 1",
    ]
    assert result.code == 1


def test_bad_column_rows_become_null(run, messages, tmp_path):
    out = tmp_path / "out.parquet"
    args = ("convert", messages, "-c", "value", "-f", "kip82-typed", "--to", "iggy", "-o", out, "--on-loss", "drop")
    result = run(*args, "--errors", "null")
    assert [value is None for value in pq.read_table(out)["value"].to_pylist()] == [False, False, True, True, False]
    assert result.err.endswith("letterhead: 1 of 5 rows did not convert: truncated 1\n")
    refused = run(*args)
    assert "row 3)" in refused.err
    assert refused.code == 1


def test_tombstone_in_column_is_not_bad_row(run, tmp_path):
    path, out = tmp_path / "messages.parquet", tmp_path / "out.parquet"
    messages = [lh.encode(lh.Message(headers=[], value=value, timestamp=1), "kip82-message") for value in (b"v", None)]
    pq.write_table(pa.table({"value": messages}), path)
    args = ("convert", path, "-c", "value", "-f", "kip82-message", "--to", "streams", "-o", out, "--on-loss", "drop")
    result = run(*args, "--errors", "null")
    assert pq.read_table(out)["value"].to_pylist() == [b"\0v", None]
    assert (result.code, result.err) == (0, f"2 rows written to {out}\n")


def test_column_becomes_json_lines_or_table(run, messages):
    args = ("convert", messages, "-c", "value", "-f", "kip82-typed", "--to", "kafka", "--types", "be", "--limit", "2")
    rows = [json.loads(line) for line in run(*args, "--json").lines]
    assert [list(row) for row in rows] == [["id", "value"]] * 2
    assert rows[0]["value"] == value_json(lh.encode(HEADERS, "kafka", types="be"))
    result = run(*args, "--on-loss", "report")
    assert "type_not_carried 4" in result.out
    assert "2 of 5 rows" in result.out
    assert "1 of 2 rows with losses" in result.err


def test_store_is_converted_to_iggy_with_losses_reported(run, tmp_path):
    there, restored = tmp_path / "there.parquet", tmp_path / "back.parquet"
    args = ("--types", "binary", "--on-loss", "report", "-o", there)
    result = run("convert", STORE, "-c", "value", "-f", "streams-timestamped", "--to", "iggy-message", *args)
    before = pq.read_table(STORE)["value"].to_pylist()
    decoded = [lh.decode(message, "streams-timestamped") for message in before]
    lost = {"note": 0, "blob": 0}
    for message in decoded:
        for key, value in message.headers:
            if not value or len(value) > 255:
                lost[key] += 1
    counts = {"note": 0, "blob": 0}
    for line in result.err.splitlines():
        loss = re.match(r" *([\d,]+)   (note|blob) ", line)
        if loss:
            counts[loss[2]] += int(loss[1].replace(",", ""))
    assert counts == lost
    args = ("--types", "be", "--on-loss", "drop", "-o", restored)
    assert run("convert", there, "-c", "value", "-f", "iggy-message", "--to", "streams-timestamped", *args).code == 0
    for message, after in zip(decoded, pq.read_table(restored)["value"].to_pylist(), strict=True):
        read = lh.decode(after, "streams-timestamped")
        kept = [header for header in message.headers if header.value and len(header.value) <= 255]
        assert (list(read.headers), read.timestamp, read.payload) == (kept, message.timestamp, message.payload)


# wrong usage ---------------------------------------------------------------------------------------------------------

TO_IGGY = ["convert", "-f", "kafka", "--to", "iggy"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["convert", "-f", "kafka", "--hex", "00"], "Missing option '--to' / '-t' (see letterhead convert --help)"),
        ([*TO_IGGY, "--hex", "00", "--types", "be", "--types", "a=int8"], "--types be is for all values: give no other --types"),
        ([*TO_IGGY, "--hex", "00", "--as", "hex", "--types", "a"], "--types: 'a' is neither be, le, text, binary nor KEY=TYPE, as in retry=int32"),
        ([*TO_IGGY, "--hex", "00", "--limit", "1"], "--limit and --errors need --column: they are for a column of a source"),
        ([*TO_IGGY, "--hex", "00", "--errors", "null"], "--limit and --errors need --column: they are for a column of a source"),
        ([*TO_IGGY, "--hex", "00", "--json", "--as", "hex"], "--json excludes --as and --out: it prints a document that has the bytes"),
        ([*TO_IGGY, "--hex", "00", "--json", "-o", "x"], "--json excludes --as and --out: it prints a document that has the bytes"),
        ([*TO_IGGY, "-c", "value", "--hex", "00"], "--column needs a SOURCE, such as a Parquet file"),
        ([*TO_IGGY, "-c", "value", "x.parquet", "--as", "hex"], "--as is for one message, not for --column"),
        ([*TO_IGGY, "-c", "value", str(STORE), "--json", "-o", "x"], "--json and --out exclude each other: write to a file that ends in .jsonl"),
        (
            [*TO_IGGY, "--hex", "00", "--as", "hex", "--types", "be"],
            'types="be", "le" and "text" write values without their types, and iggy has types: give types={key: type} or types="binary"',
        ),
        (
            ["convert", "-f", "kafka", "--to", "iggy-auto", "--hex", "00", "--as", "hex"],
            "iggy-auto reads either layout and is no target: name iggy or iggy-2023",
        ),
        (
            ["convert", "-f", "kafka", "--to", "kip82-messages", "--hex", "00", "--as", "hex"],
            "kip82-messages is a batch and no target",
        ),
        (
            ["convert", "-f", "kip82-messages", "--to", "kafka", "--hex", "", "--as", "hex"],
            "kip82-messages is a batch: convert its messages one by one",
        ),
    ],
)  # fmt: skip
def test_wrong_usage_prints_one_line_and_exits_2(run, args, message):
    result = run(*args)
    assert result.err == f"letterhead: {message}\n"
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-f", "kafka", "--to", "igy"], "unknown format 'igy': did you mean 'iggy'?"),
        (["-f", "kafak", "--to", "iggy"], "unknown format 'kafak': did you mean 'kafka'?"),
        (["-f", "kafka", "--to", "iggy", "--types", "a=int33"], "unknown type 'int33': did you mean 'int32'?"),
        (["-f", "kafka", "--to", "iggy", "--on-loss", "ignore"], "Invalid value for '--on-loss'"),
    ],
)
def test_misspelt_names_are_reported(run, args, message):
    for source in (["--hex", "00", "--as", "hex"], [STORE, "--column", "value"]):
        result = run("convert", *args, *source)
        assert result.err.startswith(f"letterhead: {message}")
        assert result.err.count("\n") == 1
        assert result.code == 2


# terminals -----------------------------------------------------------------------------------------------------------


def terminal(*args: str) -> tuple[int, str]:
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "90", "LINES": "40", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-c", COMMAND, *args]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    printed = read_to_end(leader)
    return process.wait(timeout=300), printed.decode().replace("\r\n", "\n")


def test_bytes_are_not_written_to_a_terminal():
    code, printed = terminal("convert", "-f", "kafka", "--to", "iggy", "--types", "binary", "--hex", PLAIN.hex())
    assert printed == "letterhead: bytes are not written to a terminal: use --as hex, --json, --out FILE, or a pipe\n"
    assert code == 2


def test_terminal_shows_coloured_losses_and_progress(tmp_path):
    args = ("convert", str(STORE), "-c", "value", "-f", "streams-timestamped", "--to", "iggy-message")
    code, printed = terminal(*args, "--types", "binary", "--on-loss", "report", "-o", str(tmp_path / "out.parquet"))
    assert "\x1b[" in printed
    assert "converting value" in printed
    assert "rows with losses" in printed
    assert code == 0


# edits ------------------------------------------------------------------------------------------------------------------


def test_headers_are_edited_before_they_are_converted(run):
    args = ("convert", "-f", "kafka", "--to", "kafka", "--edit", "replace tenant=redact", "--edit", "drop retry")
    result = run(*args, "--edit", "append via=cli", stdin=PLAIN)
    assert lh.decode(result.raw, "kafka").items() == [("tenant", b"***"), ("via", b"cli")]


def test_edit_of_unseen_header_warns(run, tmp_path):
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"h": pa.array([PLAIN, None], pa.binary())}), path)
    args = ("-f", "kafka", "--to", "kafka", "--edit", "drop ssn", "--edit", "replace tenant=hash")
    for result in (run("convert", *args, stdin=PLAIN), run("convert", str(path), "-c", "h", *args, "-o", str(out))):
        assert result.code == 1
        [warned] = [line for line in result.err.splitlines() if "--edit" in line]
        assert warned.endswith('had a header "ssn", so that nothing was hidden')


def test_edited_values_have_types_where_the_format_has_them(run):
    args = ("convert", "-f", "kip82-typed", "--to", "kip82-typed", "--edit", "set retry=int32:4", "--edit", "set x=y")
    assert lh.decode(run(*args, stdin=TYPED).raw, "kip82-typed").items() == [
        ("tenant", lh.String("acme")), ("retry", lh.Int32(4)), ("route", lh.String("a")), ("route", lh.Int8(1)),
        ("note", None), ("x", lh.String("y")),
    ]  # fmt: skip


@pytest.mark.parametrize("lists", [False, True])
def test_column_is_edited(run, tmp_path, lists):
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    column = pa.array([PLAIN, None], pa.binary())
    pq.write_table(pa.table({"h": lha.decode(column, "kafka") if lists else column}), path)
    args = ("convert", path, "-c", "h", "-f", "kafka", "--to", "kafka", "--edit", "replace tenant=last4", "-o", out)
    assert run(*map(str, args)).code == 0
    first, second = pq.read_table(out)["h"].to_pylist()
    assert lh.decode(first, "kafka")["tenant"] == b"****"
    assert second == (b"" if lists else None)  # a null list is encoded as no headers


def test_unreadable_messages_are_reported_and_not_edited(run, tmp_path):
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"h": [PLAIN, b"\x02"]}), path)
    args = (
        "convert",
        path,
        "-c",
        "h",
        "-f",
        "kafka",
        "--to",
        "kafka",
        "--edit",
        "drop tenant",
        "--errors",
        "column",
        "-o",
        out,
    )
    run(*map(str, args))
    first, second = pq.read_table(out).to_pylist()
    assert lh.decode(first["h"], "kafka").keys() == ["retry"]
    assert (second["h"], second["error"][0]["code"]) == (None, "count_too_large")


def test_hmac_key_is_read_from_environment_or_file(run, tmp_path, monkeypatch):
    key = b"sixteen bytes or more"
    (tmp_path / "key").write_bytes(key + b"\n")
    monkeypatch.setenv("MASK_KEY", key.decode())
    expected = hmac.new(key, b"acme", hashlib.sha256).hexdigest().encode()
    for secret in ("${env:MASK_KEY}", f"${{file:{tmp_path / 'key'}}}"):
        edit = f"replace tenant=hmac:{secret}"
        result = run("convert", "-f", "kafka", "--to", "kafka", "--edit", edit, stdin=PLAIN)
        assert lh.decode(result.raw, "kafka")["tenant"] == expected


@pytest.mark.parametrize(
    "mask", ["hmac", "hmac:", "hmac:sixteen bytes or more", "hmac:${env:NO_SUCH_KEY}", "hmac:${env:SHORT}"]
)
def test_hmac_key_literal_absent_or_short_is_usage_error(run, monkeypatch, mask):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.setenv("SHORT", "too short")
    result = run("convert", "-f", "kafka", "--to", "kafka", "--edit", f"replace tenant={mask}", stdin=PLAIN)
    assert result.code == 2
    assert "sixteen" not in result.err


@pytest.mark.parametrize("edit", ["drop", "mask a=b", "drop a=b", "set a", "replace a=hsh"])
def test_misspelt_edit_is_usage_error(run, edit):
    result = run("convert", "-f", "kafka", "--to", "kafka", "--edit", edit, stdin=PLAIN)
    assert result.code == 2
    assert "--edit" in result.err or "unknown mask" in result.err
