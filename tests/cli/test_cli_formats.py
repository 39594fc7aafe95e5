"""The command and formats with types, with other keys than text, with messages' fields, and with many messages."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import _native
from letterhead._value_text import parse_value, text_of, text_with_type
from letterhead.cli.document import read_message, to_json
from letterhead.cli.exits import Failure
from letterhead.cli.formats import row_of
from letterhead.cli.headers import key_text
from letterhead.cli.spelling import read_value
from letterhead.values import VALUE_TYPES, Value, value_from_message
from tests.helpers.strategies import valid_bytes

VECTORS = Path(__file__).parents[1] / "vectors"

TYPED = lh.Headers(
    [("tenant", lh.String("株式会社")), ("retry", lh.Int32(3)), ("ok", lh.Bool(True)), ("raw", lh.Binary(b"\0\1"))]
)
NAN = Value.from_bits("float64", bytes.fromhex("7ff8000000000001"))
ANY_KEYS = lh.Headers(
    [
        ("tenant", lh.String("acme")),
        (lh.Int32(7), lh.UInt8(9)),
        (b"\xff", Value("type-200", b"zz")),
        ("int32:7", lh.Float32(2.5)),
        (lh.Bool(True), NAN),
        (value_from_message("string", b"\xff"), value_from_message("bool", b"\2")),
    ]
)


def message(offset: int, headers: Any = (), value: bytes | None = b"v", **fields: Any) -> bytes:
    fields = {"timestamp": 1767225600000, "key": b"k", **fields}
    return lh.encode(lh.Message(offset=offset, headers=headers, value=value, **fields), "kip82-message")


SET = message(0, {"n": lh.Int8(0)}) + message(1, value=None) + message(2, {"n": lh.Int8(2)})
DAMAGED = SET[: len(message(0, {"n": lh.Int8(0)})) + 12] + b"\0\0\0\0" + SET[len(message(0, {"n": lh.Int8(0)})) + 16 :]


def vector(name: str, ending: str) -> dict[str, Any]:
    lines = map(json.loads, (VECTORS / f"{name}.jsonl").open())
    return next(line for line in lines if line["id"].endswith(ending))


# how values and keys are spelt -----------------------------------------------------------------------------------------

types = st.sampled_from(list(VALUE_TYPES))


@given(types, st.data())
def test_value_text_reads_back_as_same_bits(type: str, data: st.DataObject) -> None:
    value = value_from_message(
        type, data.draw(st.binary(min_size=VALUE_TYPES[type] or 0, max_size=VALUE_TYPES[type] or 20))
    )
    text = text_of(value)
    if text is None:
        assert type in ("binary", "char", "bool", "string", "float32", "float64")
    else:
        assert parse_value(type, text) == value
        assert read_value(text_with_type(value)) == value


@pytest.mark.parametrize(
    ("value", "spelt"),
    [
        (lh.Int32(-3), "int32:-3"),
        (lh.Bool(True), "bool:true"),
        (lh.Float64(1.5), "float64:1.5"),
        (lh.Float64(float("-inf")), "float64:-Infinity"),
        (lh.UInt128(2**128 - 1), f"uint128:{2**128 - 1}"),
        (lh.Char("é"), "char:é"),
        (lh.Char("\ud800"), "char:d800"),
        (lh.String("a:b"), "string:a:b"),
        (lh.Binary(b"\0\xff"), "binary:00ff"),
        (Value("type-200", b"z"), "type-200:7a"),
        (value_from_message("bool", b"\2"), "bool:02"),
        (value_from_message("int32", b"\0\0\0"), "int32:000000"),
        (NAN, "float64:7ff8000000000001"),
    ],
)
def test_value_is_spelled_as_in_errors(value: Value, spelt: str) -> None:
    assert text_with_type(value) == spelt


def test_error_spells_key_as_command_does() -> None:
    for key in (
        lh.Int32(-3),
        lh.Float64(1.5),
        lh.Binary(b"\xff"),
        lh.Char("x"),
        Value("type-200", b"z"),
        lh.Bool(True),
    ):
        data = lh.encode([(key, lh.Int8(1))], "iggy") if key.type != "char" else b""
        if data:
            [loss] = lh.convert(data, "iggy", target="kafka", types="be", on_loss="report").losses[:1]
            assert loss.key == key_text(key)


@pytest.mark.parametrize("text", ["int32:x", "int8:300", "bool:1", "char:ab", "binary:0", "binary:xy", "int32:"])
def test_text_without_valid_value_is_rejected(text: str) -> None:
    with pytest.raises(Failure):
        read_value(text)


# JSON, both ways ---------------------------------------------------------------------------------------------------------


def whole() -> list[tuple[str, bytes]]:
    """Return what can be written again to the byte, of every format."""
    messages = [("iggy", lh.encode(ANY_KEYS, "iggy")), ("kip82-typed", lh.encode(TYPED, "kip82-typed"))]
    for path in sorted(VECTORS.glob("kip82_*.jsonl")):
        for line in map(json.loads, path.open()):
            if line["op"] == "both":
                messages.append((line["format"], bytes.fromhex(line["bytes"])))
    for name, format in (("iggy_seed_headers", "iggy-2023"), ("iggy_tlv_headers", "iggy")):
        messages += [(format, bytes.fromhex(json.loads(line)["bytes"])) for line in (VECTORS / f"{name}.jsonl").open()]
    for name, op, format in (
        ("iggy_seed_messages", "message", "iggy-message-2023"),
        ("iggy_tlv_messages", "message64", "iggy-message"),
    ):
        lines = map(json.loads, (VECTORS / f"{name}.jsonl").open())
        messages += [(format, bytes.fromhex(line["bytes"])) for line in lines if line["op"] == op]
    return messages


def test_message_json_encodes_to_same_bytes_in_every_format() -> None:
    formats = set()
    for format, data in whole():
        read = lh.decode(data, format)
        fields = {"headers": read} if isinstance(read, lh.Headers) else read._asdict()
        document = json.loads(json.dumps(to_json(fields, format)))
        written = lh.encode(read_message(document, format), format)
        assert written == data, format
        formats.add(format)
    assert len(formats) == 10


@pytest.mark.parametrize(
    ("format", "headers", "fields"),
    [
        ("kip82-typed", [*TYPED, ("note", None), ("unit", lh.Char("x")), ("half", lh.Char("\udc00"))], {}),
        ("iggy", ANY_KEYS, {}),
        ("kip82-int", [(5, b"x"), (-1, None), (5, b"\xff")], {}),
        ("kip82-message-wrapper", [(5, b"x")], {"offset": 3, "key": b"k", "value": b"v", "timestamp": 1}),
        ("iggy-message", TYPED, {"id": bytes(15) + b"\7", "timestamp": 1767225600000001, "payload": b"\xff"}),
    ],
)
def test_encode_undoes_decode(run, format, headers, fields):
    data = lh.encode(lh.Message(headers=headers, **fields) if fields else lh.Headers(headers), format)
    document = run("decode", "-f", format, "--json", "-", stdin=data)
    assert document.code == 0
    assert run("encode", "-f", format, stdin=document.raw).raw == data


def test_json_spells_typed_keys_and_values_without_loss(run):
    data = lh.encode(ANY_KEYS, "iggy")
    document = json.loads(run("decode", "-f", "iggy", "--json", "-", stdin=data).out)
    assert [(header["key"], header["value"]) for header in document["headers"]] == [
        ("tenant", "acme"),
        ({"type": "int32", "value": 7}, {"type": "uint8", "value": 9}),
        ({"type": "binary", "base64": "/w=="}, {"type": "type-200", "base64": "eno="}),
        ("int32:7", {"type": "float32", "value": 2.5}),
        ({"type": "bool", "value": True}, {"type": "float64", "base64": "f/gAAAAAAAE="}),
        ({"type": "string", "base64": "/w=="}, {"type": "bool", "base64": "Ag=="}),
    ]


def test_encode_accepts_every_spelling_of_typed_value(run):
    values = [
        {"type": "int32", "value": 3},
        {"type": "int32", "value": "3"},
        {"type": "int32", "hex": "00 00 00 03"},
        {"type": "int32", "base64": "AAAAAw=="},
    ]
    document = {"headers": [{"key": "k", "value": value} for value in values]}
    for format in ("iggy", "iggy-2023", "kip82-typed"):
        written = run("encode", "-f", format, stdin=json.dumps(document).encode()).raw
        assert lh.decode(written, format).get_all("k") == [lh.Int32(3)] * len(values)


def test_encode_writes_stated_types(run):
    document = json.dumps(
        {"headers": [{"key": "n", "value": {"hex": "33"}}, {"key": "n", "value": {"hex": "01"}}]}
    ).encode()
    result = run("encode", "-f", "iggy", "--types", "n=int16:text", "--types", "n=bool", stdin=document)
    assert lh.decode(result.raw, "iggy").get_all("n") == [lh.Int16(3), lh.Bool(True)]
    assert lh.decode(run("encode", "-f", "iggy", "--types", "binary", stdin=document).raw, "iggy").get_all("n") == [
        lh.Binary(b"3"),
        lh.Binary(b"\1"),
    ]
    refused = run("encode", "-f", "iggy", stdin=document)
    assert refused.err.index("--types retry=int32") < refused.err.index("--on-loss")
    assert (refused.code, refused.raw) == (1, b"")
    dropped = run("encode", "-f", "iggy", "--on-loss", "drop", stdin=document)
    assert (dropped.code, dropped.raw) == (0, b"")
    assert "all headers were left out (2 of 2)" in dropped.err


@pytest.mark.parametrize("text", ["int32:3", "string:acme", "binary:no hex", "株式会社"])
@pytest.mark.parametrize(("format", "key"), [("kafka", "n"), ("kip82-int", 1)])
def test_string_stays_text_whatever_it_spells(run, text, format, key):
    document = json.dumps({"headers": [{"key": key, "value": text}]}).encode()
    assert [header.value for header in lh.decode(run("encode", "-f", format, stdin=document).raw, format)] == [
        text.encode()
    ]


@pytest.mark.parametrize("format", ["iggy", "iggy-2023", "kip82-typed"])
def test_string_gets_type_string_in_typed_format(run, format):
    document = b'{"headers": [{"key": "n", "value": "int32:3"}]}'
    assert lh.decode(run("encode", "-f", format, stdin=document).raw, format)["n"] == lh.String("int32:3")


def test_typed_value_needs_types_option_in_untyped_format(run):
    document = b'{"headers": [{"key": "n", "value": {"type": "int32", "value": 3}}]}'
    refused = run("encode", "-f", "kafka", stdin=document)
    assert (refused.code, refused.raw) == (1, b"")
    assert "types" in refused.err


def test_encode_writes_types_as_the_options_choose(run):
    document = b'{"headers": [{"key": "n", "value": {"type": "int16", "value": 258}}]}'
    for word, value in (("be", b"\1\2"), ("le", b"\2\1"), ("text", b"258")):
        written = run("encode", "-f", "kafka", "--types", word, stdin=document).raw
        assert lh.decode(written, "kafka")["n"] == value


def test_encode_sorts_iggy_headers_on_request(run):
    document = b'{"headers": [{"key": "b", "value": "1"}, {"key": "a", "value": "2"}]}'
    written = run("encode", "-f", "iggy", "--canonical", stdin=document).raw
    assert [header.key for header in lh.decode(written, "iggy")] == ["a", "b"]


def test_key_in_untyped_format_is_text_only(run):
    document = b'{"headers": [{"key": "int32:3", "value": "int32:3"}]}'
    assert lh.decode(run("encode", "-f", "kafka", stdin=document).raw, "kafka")["int32:3"] == b"int32:3"


def test_computed_fields_may_be_omitted(run):
    document = b'{"headers": [], "timestamp": null, "value": "v"}'
    read = lh.decode(run("encode", "-f", "kip82-message", stdin=document).raw, "kip82-message")
    assert (read.offset, read.magic, read.timestamp, read.key, read.value) == (0, 2, -1, None, b"v")


@pytest.mark.parametrize(
    ("format", "header", "message"),
    [
        ("kip82-int", {"key": "x", "value": None}, "JSON: header 0: its key is a whole number, not a string"),
        ("kip82-int", {"key": True, "value": None}, "JSON: header 0: its key is a whole number, not true or false"),
        ("kip82-int", {"key": 2**31, "value": None}, "JSON: header 0: its key does not fit 32 bits"),
        ("iggy", {"key": 5, "value": None}, "JSON: header 0: its key is a string, not a number"),
        ("iggy", {"key": {"type": "int32", "value": "x"}, "value": None}, "JSON: header 0: its key: the text does not spell int32"),
        ("iggy", {"key": {"hex": "00"}, "value": None}, 'JSON: header 0: its key has no "type"'),
        ("kip82-typed", {"key": {"type": "int8", "hex": "00"}, "value": None}, "JSON: header 0: its key is a string, not an object"),
        ("iggy", {"key": "k", "value": {"type": "int8", "value": 300}}, "JSON: header 0: the number does not fit int8"),
        ("iggy", {"key": "k", "value": {"type": "int8", "value": 1.5}}, 'JSON: header 0: "value" of type int8 is a whole number, not a number'),
        ("iggy", {"key": "k", "value": {"type": "bool", "value": "true"}}, 'JSON: header 0: "value" of type bool is true or false, not a string'),
        ("iggy", {"key": "k", "value": {"type": "float64", "value": True}}, 'JSON: header 0: "value" of type float64 is a number, not true or false'),
        ("iggy", {"key": "k", "value": {"type": "string", "value": 3}}, 'JSON: header 0: "value" of type string is a string, not a number'),
        ("iggy", {"key": "k", "value": {"type": 3, "value": 3}}, 'JSON: header 0: "type" is a string, not a number'),
        ("iggy", {"key": "k", "value": {"type": "binary", "hex": "0"}}, "JSON: header 0: hex: 1 digits; bytes have two each"),
        (
            "iggy",
            {"key": "k", "value": {"type": "int32"}},
            'JSON: header 0: a value is null, a string, or an object with "base64" or "hex", or with "type" and "value"',
        ),
        (
            "iggy",
            {"key": "k", "value": {"type": "int32", "hex": "00000003", "value": 3}},
            'JSON: header 0: a value is null, a string, or an object with "base64" or "hex", or with "type" and "value"',
        ),
        ("iggy", {"key": "k", "value": 3}, 'JSON: header 0: a value is null, a string, or an object with "base64" or "hex", or with "type" and "value"'),
    ],
)  # fmt: skip
def test_encode_rejects_bad_headers_in_one_line(run, format, header, message):
    result = run("encode", "-f", format, "--as", "hex", stdin=json.dumps({"headers": [header]}).encode())
    assert result.err == f"letterhead: {message} (line 1)\n"
    assert (result.code, result.out) == (2, "")


def test_encode_names_the_nearest_type(run):
    document = b'{"headers": [{"key": "k", "value": {"type": "int33", "value": 3}}]}'
    result = run("encode", "-f", "iggy", "--as", "hex", stdin=document)
    assert result.err.startswith("letterhead: JSON: header 0: unknown type 'int33': did you mean 'int32'?")
    assert result.code == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tombstone", 1, '"tombstone" is true or false, not a number'),
        ("offset", "x", '"offset" is a whole number, not a string'),
        ("offset", 2**63, '"offset" does not fit 64 bits'),
        ("key", 3, '"key": a value is null, a string, or an object with "base64" or "hex"'),
    ],
)
def test_encode_rejects_bad_fields_in_one_line(run, field, value, message):
    document = {"headers": [], "timestamp": 1, "value": "v", field: value}
    result = run("encode", "-f", "kip82-message", "--as", "hex", stdin=json.dumps(document).encode())
    assert (result.code, result.err) == (2, f"letterhead: JSON: {message} (line 1)\n")


def test_batch_has_all_records(run):
    records = [{"offset": offset, "key": "k", "value": None, "headers": []} for offset in (3, 4)]
    lines = b"\n".join(json.dumps(record).encode() for record in records)
    written = run("encode", "-f", "record-batch", stdin=lines).raw
    assert [(message.offset, message.key) for message in lh.messages(written, "record-batch")] == [(3, b"k"), (4, b"k")]


def test_read_only_format_is_not_written(run):
    result = run("encode", "-f", "iggy-auto", "--as", "hex", stdin=b'{"headers": []}')
    message = "iggy-auto reads either layout and is no target: name iggy or iggy-2023"
    assert (result.code, result.err) == (2, f"letterhead: {message}\n")
    result = run("encode", "-f", "iggy-batch", "--as", "hex", stdin=b'{"headers": []}')
    assert (result.code, result.raw) == (2, b"")


def test_json_lines_become_lines_of_hex(run):
    lines = b'{"headers": [{"key": "a", "value": "1"}]}\n\n{"headers": [{"key": "b", "value": null}]}\n'
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=lines)
    assert result.out == "0202610231\n02026201\n"
    refused = run("encode", "-f", "kafka", stdin=lines)
    assert (refused.code, refused.raw) == (2, b"")
    assert refused.err.endswith("messages of kafka have no separator: pass --as hex for a line for each record\n")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (b"{", "JSON: expecting property name enclosed in double quotes (line 3, column 2)"),
        (b'{"headers": 3}', 'JSON: "headers" is a list, not a number (line 3)'),
    ],
)
def test_error_names_line(run, second, message):
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=b'{"headers": []}\n\n' + second)
    assert (result.code, result.err) == (2, f"letterhead: {message}\n")


def test_record_of_another_format_drops_fields_with_warning(run):
    record = b'{"topic": "t", "partition": 0, "offset": 3, "value": "v", "headers": [{"key": "b", "value": null}]}'
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=record)
    assert (result.code, result.out) == (0, "02026201\n")
    assert result.err == "letterhead: kafka has no offset, value: left out\n"


@pytest.mark.parametrize(
    ("time", "micros"),
    [
        ("2026-01-01T00:00:00.000001Z", 1767225600000001),
        ("2026-01-01T01:00:00+01:00", 1767225600000000),
        (1767225600000, 1767225600000000),
        (1767225600000.001, 1767225600000001),
        ("9223372036854775.807", 2**63 - 1),
    ],
)
def test_time_has_zone_or_is_integer_milliseconds(run, time, micros):
    document = {"id": "0123456789abcdef", "headers": [], "timestamp": time, "payload": "p"}
    written = run("encode", "-f", "iggy-message", stdin=json.dumps(document).encode()).raw
    assert lh.decode(written, "iggy-message").timestamp == micros


@pytest.mark.parametrize(
    "time", ["2026-01-01T00:00:00", "yesterday", "2026-01-01T00:00:00.0001Z", 0.5, True, [], "NaN"]
)
def test_time_without_zone_or_with_excess_digits_is_rejected(run, time):
    document = {"headers": [], "timestamp": time, "payload": "p"}
    result = run("encode", "-f", "streams-timestamped", "--as", "hex", stdin=json.dumps(document).encode())
    assert (result.code, result.raw) == (2, b"")
    assert result.err.startswith('letterhead: JSON: "timestamp" ')


@pytest.mark.parametrize("more", [[], ["--epoch-ms"]], ids=["iso", "epoch-ms"])
@given(time=st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**53))
def test_printed_times_read_back_equal(more: list[str], time: int) -> None:
    for format, name in (("streams-timestamped", "payload"), ("iggy-message", "payload")):
        fields = {"headers": lh.Headers(), "timestamp": time, name: b"p", "id": bytes(16)}
        fields = {field: fields[field] for field in dict(row_of(format).fields) if field in fields}
        document = to_json(fields, format, epoch_ms=bool(more))
        assert read_message(json.loads(json.dumps(document), parse_float=Decimal), format).timestamp == time


@pytest.mark.parametrize("format", ["kafka", "iggy", "kip82-typed", "kip82-int", "iggy-message", "kip82-message"])
@given(data=st.data())
def test_core_writes_same_json(format: str, data: st.DataObject) -> None:
    written = data.draw(st.lists(valid_bytes(format), max_size=4))
    fields = [lh.decode(message, format) for message in written]
    documents = [
        to_json({"headers": message} if isinstance(message, lh.Headers) else message._asdict(), format)
        for message in fields
    ]
    decoded = pa.array(lh.arrow.decode(pa.array(written, pa.binary()), format))
    columns = (
        dict(zip((field.name for field in decoded.type), decoded.flatten(), strict=True))
        if pa.types.is_struct(decoded.type)
        else {"headers": decoded}
    )
    for name in [name for name in columns if name.endswith("timestamp")]:
        columns[name] = columns[name].cast(pa.timestamp("us" if format.startswith("iggy") else "ms", "UTC"))
    lines = _native.json_lines(pa.RecordBatch.from_pydict(columns)).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(json.dumps(documents))
    for line, message in zip(lines, written, strict=True):
        document = json.loads(line, parse_float=Decimal)
        assert lh.encode(read_message(document, format), format) == message


# decode --------------------------------------------------------------------------------------------------------------


def test_decode_shows_types_and_values_as_text(run):
    data = lh.encode([*TYPED, ("note", None), ("unit", lh.Char("x")), ("x", NAN)], "kip82-typed")
    assert run("decode", "-f", "kip82-typed", "--hex", data.hex()).lines == [
        "kip82-typed: 116 bytes, 7 headers",
        "header   key        type      value                     bytes",
        "─────────────────────────────────────────────────────────────",
        '     0   "tenant"   string    "株式会社"                   12',
        '     1   "retry"    int32     3                             4',
        '     2   "ok"       bool      true                          1',
        '     3   "raw"      binary    00 01                         2',
        '     4   "note"               null',
        '     5   "unit"     char      "x"                           2',
        '     6   "x"        float64   7f f8 00 00 00 00 00 01       8',
    ]


def test_decode_shows_typed_keys_like_errors(run):
    lines = run("decode", "-f", "iggy", "--hex", lh.encode(ANY_KEYS, "iggy").hex()).lines
    assert [line.split()[1] for line in lines[3:]] == [
        '"tenant"',
        "int32:7",
        "binary:ff",
        '"int32:7"',
        "bool:true",
        "string:ff",
    ]


def test_decode_shows_every_message_field(run):
    lines = run("decode", "-f", "kip82-message", "--hex", message(3, {"n": lh.Int8(1)}).hex()).lines
    assert lines[0] == "kip82-message: 51 bytes, 1 header"
    names = [line.split(":")[0] for line in lines[1:9]]
    assert names == ["offset", "crc", "magic", "attributes", "timestamp", "key", "value", "tombstone"]
    assert "timestamp: 1767225600000  (2026-01-01T00:00:00.000Z)" in lines
    assert "tombstone: false" in lines


def test_iggy_times_are_microseconds(run):
    data = lh.encode(lh.Message(headers=[], timestamp=1767225600000001, payload=b"p"), "iggy-message")
    date = "2026-01-01T00:00:00.000001Z"
    assert f"timestamp: 1767225600000001  ({date})" in run("decode", "-f", "iggy-message", "--hex", data.hex()).lines
    assert f"1767225600000001  {date}" in run("inspect", "-f", "iggy-message", "--hex", data.hex()).out


def test_null_headers_are_shown(run):
    data = message(0, None, magic=1)
    assert "headers: null" in run("decode", "-f", "kip82-message", "--hex", data.hex()).lines
    document = json.loads(run("decode", "-f", "kip82-message", "--json", "--hex", data.hex()).out)
    assert document["headers"] is None


@pytest.mark.parametrize("command", ["inspect", "decode"])
def test_types_without_name_are_rejected_on_request(run, command):
    data = lh.encode([("k", Value("type-200", b"z"))], "iggy")
    assert run(command, "-f", "iggy", "--hex", data.hex()).code == 0
    refused = run(command, "-f", "iggy", "--strict-types", "--hex", data.hex())
    assert refused.code == 1
    assert "type code 200 is unknown" in refused.out + refused.err


# batches -------------------------------------------------------------------------------------------------------------


def test_decode_shows_messages_of_batch(run):
    result = run("decode", "-f", "kip82-messages", "--hex", SET.hex())
    assert result.lines[0] == f"kip82-messages: {len(SET)} bytes, 3 messages"
    assert [line for line in result.lines if line.startswith("message ")] == ["message 0", "message 1", "message 2"]
    assert "value: null" in result.lines
    assert result.code == 0


def test_encode_reads_messages_that_decode_json_prints(run):
    document = json.loads(run("decode", "-f", "kip82-messages", "--json", "--hex", SET.hex()).out)
    assert [message["offset"] for message in document["messages"]] == [0, 1, 2]
    written = [
        run("encode", "-f", "kip82-message", stdin=json.dumps(message).encode()).raw for message in document["messages"]
    ]
    assert b"".join(written) == SET


def test_decode_opens_compressed_sets(run):
    line = vector("kip82_messages", "/gzip-deflated")
    document = json.loads(run("decode", "-f", "kip82-messages", "--json", "--hex", line["bytes"]).out)
    assert [message["offset"] for message in document["messages"]] == [
        message["offset"] for message in line["messages"]
    ]


def test_decode_folds_many_messages(run):
    many = b"".join(message(n) for n in range(25))
    assert "… 5 more messages (--all)" in run("decode", "-f", "kip82-messages", "--hex", many.hex()).lines
    assert "message 24" in run("decode", "-f", "kip82-messages", "--all", "--hex", many.hex()).lines


def test_bad_message_stops_batch_and_is_named(run):
    result = run("decode", "-f", "kip82-messages", "--hex", DAMAGED.hex())
    assert result.err.startswith("letterhead: kip82-messages: message 1: the checksum is 00000000 and the bytes give ")
    assert (result.code, result.out) == (1, "")


def test_messages_beside_a_bad_one_are_kept(run):
    args = ("decode", "-f", "kip82-messages", "--hex", DAMAGED.hex())
    result = run(*args, "--errors", "column", "--json")
    messages = json.loads(result.out)["messages"]
    assert [decoded["error"] and decoded["error"][0]["code"] for decoded in messages] == [None, "bad_crc", None]
    assert messages[2]["headers"] == [{"key": "n", "value": {"type": "int8", "value": 2}}]
    [whole] = json.loads(run("decode", "-f", "kip82-messages", "--hex", message(0).hex(), "--json").out)["messages"]
    assert [set(fields) for fields in messages] == [{*whole, "error"}] * 3
    assert result.code == 1
    assert "! the checksum is 00000000" in run(*args, "--errors", "column").out
    result = run(*args, "--errors", "null", "--json")
    assert [decoded is None for decoded in json.loads(result.out)["messages"]] == [False, True, False]
    assert "message 1: null" in run(*args, "--errors", "null").lines


def test_lenient_drops_truncated_message(run):
    cut = SET[:-3].hex()
    assert run("decode", "-f", "kip82-messages", "--hex", cut).code == 1
    result = run("decode", "-f", "kip82-messages", "--lenient", "--json", "--hex", cut)
    assert (result.code, len(json.loads(result.out)["messages"])) == (0, 2)


def test_inspect_heads_every_record_in_batch(run):
    batch = lh.batch([{"value": b"x", "headers": [("k", b"v")]}, {"value": b"y"}])
    result = run("inspect", "-f", "record-batch", "--hex", (batch * 2).hex())
    assert result.lines[0] == f"record-batch: {len(batch) * 2} bytes, 4 messages, 2 headers, no errors"
    headings = [line.strip() for line in result.lines if line.startswith(("  a batch", "  message "))]
    assert headings == ["a batch", "message 0", "message 1", "a batch", "message 2", "message 3"]
    labels = json.loads(run("inspect", "-f", "record-batch", "--json", "--hex", batch.hex()).out)["labels"]
    assert [label["message"] for label in labels if label["field"] in ("offset", "value")] == [None, 0, 0, 1]


def test_inspect_heads_every_message(run):
    result = run("inspect", "-f", "kip82-messages", "--hex", SET.hex())
    assert result.lines[0] == f"kip82-messages: {len(SET)} bytes, 3 messages, 2 headers, no errors"
    assert [line.strip() for line in result.lines if line.startswith("  message ")] == [
        f"message {n}" for n in range(3)
    ]
    assert re.search(r"^  0011    10 +attributes +16, headers$", result.out, re.MULTILINE)
    document = json.loads(run("inspect", "-f", "kip82-messages", "--json", "--hex", SET.hex()).out)
    assert "".join(label["hex"] for label in document["labels"]) == SET.hex()
    assert sorted({label["message"] for label in document["labels"]}) == [0, 1, 2]


def test_inspect_counts_messages_of_compressed_set(run):
    compressed = bytes.fromhex(vector("kip82_messages", "/gzip-deflated")["bytes"])
    lines = run("inspect", "-f", "kip82-messages", "--hex", (SET + compressed + SET).hex()).lines
    assert "8 messages" in lines[0]
    headings = [line.strip() for line in lines if line.startswith("  message")]
    assert headings[3:5] == ["messages 3 to 4: a compressed set, which decode opens", "message 5"]


def test_inspect_stops_numbering_after_unreadable_compressed_set(run):
    compressed = bytes.fromhex(vector("kip82_messages", "/crc-inside-a-set")["bytes"])
    lines = run("inspect", "-f", "kip82-messages", "--hex", (compressed + SET).hex()).lines
    assert [line.strip() for line in lines if line.startswith("  a ")] == ["a compressed set", *["a message"] * 3]


def test_inspect_heads_parts_of_iggy_batch(run):
    lines = map(json.loads, (VECTORS / "iggy_tlv_messages.jsonl").open())
    line = next(line for line in lines if line["op"] == "send_messages_batch" and len(line["messages"]) == 2)
    data = bytes.fromhex(line["bytes"])[line["batch_at"] :]
    result = run("inspect", "-f", "iggy-batch", "--hex", data.hex())
    assert [line.strip() for line in result.lines if line.startswith(("  batch", "  message "))] == [
        "batch",
        "message 0",
        "message 1",
    ]
    assert result.code == 0


def test_inspect_marks_lengths_that_mean_null(run):
    typed = lh.encode([("k", None)], "kip82-typed")
    assert "value length  header 0   0, null" in run("inspect", "-f", "kip82-typed", "--hex", typed.hex()).out
    zeros = lh.encode([("", lh.Value("int8", 0))], "kip82-typed")
    assert "null" not in run("inspect", "-f", "kip82-typed", "--hex", zeros.hex()).out
    tombstone = message(0, value=None, key=None)
    assert run("inspect", "-f", "kip82-message", "--hex", tombstone.hex()).out.count("-1, null") == 2


# columns -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sets(tmp_path):
    """Write a column of batches: three messages, a null, a damaged one, none."""
    path = tmp_path / "sets.parquet"
    values = pa.array([SET, None, DAMAGED, b""], pa.binary())
    pq.write_table(pa.table({"id": [10, 11, 12, 13], "value": values}), path)
    return path


def test_column_of_batches_has_one_row_per_message(run, sets, tmp_path):
    out = tmp_path / "messages.parquet"
    args = ("decode", sets, "-c", "value", "-f", "kip82-messages", "--errors", "column", "--out", out)
    result = run(*args)
    table = pq.read_table(out)
    names = ["offset", "crc", "magic", "attributes", "timestamp", "key", "headers", "value", "tombstone", "error"]
    assert table.schema.names == ["id", *names]
    assert table.column("id").to_pylist() == [10] * 3 + [12] * 3
    assert [error is None for error in table.column("error").to_pylist()] == [True] * 4 + [False, True]
    assert result.err == f"6 messages written to {out}\nletterhead: 1 of 6 messages did not decode: bad_crc 1\n"
    assert result.code == 1


def test_bad_messages_become_null(run, sets):
    result = run("decode", sets, "-c", "value", "-f", "kip82-messages", "--errors", "null", "--json")
    rows = [json.loads(line) for line in result.lines]
    assert [row["offset"] for row in rows] == [0, 1, 2, 0, None, 2]
    assert rows[4] == {"id": 12, **dict.fromkeys(list(rows[0])[1:])}
    assert result.err == "letterhead: 1 of 6 messages did not decode: bad_crc 1\n"


def test_limit_counts_messages(run, sets):
    result = run("decode", sets, "-c", "value", "-f", "kip82-messages", "--limit", "2")
    assert result.lines[-1] == "2 messages from 2 of 4 rows"
    assert (result.code, result.err) == (0, "")


def test_bad_message_in_column_is_named_with_row(run, sets):
    result = run("decode", sets, "-c", "value", "-f", "kip82-messages", "--json")
    assert result.err.startswith("letterhead: kip82-messages: message 1: the checksum is 00000000 ")
    assert "row 2);" in result.err
    assert result.code == 1


def test_new_columns_can_have_a_prefix(run, tmp_path):
    path = tmp_path / "topic.parquet"
    pq.write_table(pa.table({"key": pa.array([b"a"]), "value": pa.array([message(7, TYPED)])}), path)
    args = ("decode", path, "-c", "value", "-f", "kip82-message")
    refused = run(*args)
    message_ = "the file already has a column 'key', which decoding 'value' would add: give a --prefix"
    assert (refused.code, refused.err) == (2, f"letterhead: {message_}\n")
    row = json.loads(run(*args, "--prefix", "m_", "--json").out)
    assert row["key"] == "a"
    assert row["m_offset"] == 7
    assert row["m_headers"][1] == {"key": "retry", "value": {"type": "int32", "value": 3}}
    screen = run(*args, "--prefix", "m_").lines
    assert screen[0] == "row 0"
    assert '  m_headers     tenant="株式会社"' in screen


@pytest.mark.parametrize(
    ("format", "headers", "displayed"),
    [
        ("iggy", [(lh.Int32(7), lh.UInt8(9)), ("int32:7", lh.String("a"))], ["int32:7=9", 'int32:7="a"']),
        ("kip82-int", [(5, b"x"), (6, None)], ['5="x"', "6=null"]),
        ("kip82-typed", [("ok", lh.Bool(True)), ("raw", lh.Binary(b"\xff"))], ["ok=true", "raw=ff"]),
    ],
)
def test_column_of_headers_becomes_table_and_json(run, tmp_path, format, headers, displayed):
    path = tmp_path / "blocks.parquet"
    data = lh.encode(headers, format)
    pq.write_table(pa.table({"value": pa.array([data])}), path)
    printed = run("decode", path, "-c", "value", "-f", format).out
    for text in displayed:
        assert text in printed
    row = json.loads(run("decode", path, "-c", "value", "-f", format, "--json").out)
    assert lh.encode(read_message(row, format), format) == data
