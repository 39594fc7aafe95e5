"""`letterhead encode`: records of JSON become messages one at a time."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import letterhead as lh
from letterhead.cli.exits import Failure
from letterhead.cli.json_records import json_records

SAMPLES = Path(__file__).parents[1] / "samples"


def test_encode_writes_each_record_before_it_reads_the_next(tmp_path):
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "letterhead", "encode", "-f", "kafka", "--as", "hex"]
    with (
        subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE) as process,
        os.fdopen(writing, "wb", 0) as pipe,
    ):
        os.close(reading)
        for number in range(3):
            headers = [("n", str(number).encode())]
            pipe.write(json.dumps({"headers": [{"key": "n", "value": str(number)}]}).encode() + b"\n")
            assert bytes.fromhex(process.stdout.readline().decode()) == lh.encode(headers, "kafka")
        pipe.close()
        assert process.wait() == 0


LONG_TEXTS = {
    "commas": b'{"headers": [{"key": "k", "value": "' + b"x," * 10_000_000 + b'"}]}\n',
    "escapes": b'{"headers": [{"key": "k", "value": "' + rb"\n" * 10_000_000 + b'"}]}\n',
    "no end": b'{"headers": [{"key": "k", "value": "' + rb"\"" * 10_000_000,
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read in /proc")
@pytest.mark.parametrize("name", LONG_TEXTS)
def test_encoding_record_takes_small_multiple_of_its_size(name, tmp_path):
    program = """
import sys
from pathlib import Path
from letterhead.cli import main
status = main(["encode", sys.argv[1], "-f", "kafka", "-o", sys.argv[2]])
print(status, Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
    (tmp_path / "records.json").write_bytes(LONG_TEXTS[name])
    command = [sys.executable, "-c", program, str(tmp_path / "records.json"), str(tmp_path / "out")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    status, kibibytes = map(int, ran.stdout.split())
    assert status == (2 if name == "no end" else 0), ran.stderr
    assert 1024 * kibibytes < 10 * len(LONG_TEXTS[name]) + (64 << 20)


@pytest.mark.parametrize("indent", [None, 2])
def test_encode_reads_records_on_one_line_or_several(run, indent):
    documents = [{"headers": [{"key": "k", "value": f'{{"[{number}'}]} for number in range(3)]
    text = "\n\n".join(json.dumps(document, indent=indent) for document in documents)
    written = run("encode", "-f", "kafka", "--as", "hex", stdin=text.encode()).out.split()
    assert [lh.decode(bytes.fromhex(line), "kafka")["k"] for line in written] == [b'{"[0', b'{"[1', b'{"[2']


def test_encode_names_line_of_invalid_record(run):
    good = '{"headers": []}\n'
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=(good + '{\n"headers": [\n' + good).encode())
    assert result.err == "letterhead: JSON: expecting ',' delimiter (line 5, column 1)\n"
    result = run("encode", "-f", "kafka", "--as", "hex", stdin=(good + "\n" + '{"headers": 3}').encode())
    assert result.err == 'letterhead: JSON: "headers" is a list, not a number (line 3)\n'
    assert bytes.fromhex(result.out) == lh.encode([], "kafka")


def test_encode_stops_at_unterminated_record(run):
    lines = itertools.chain([b'{"headers": [\n'], itertools.repeat(b'{"headers": []}\n'))
    with pytest.raises(Failure, match="expecting ',' delimiter"):
        next(json_records(lines))


def test_several_messages_without_separator_are_rejected(run):
    result = run("encode", "-f", "kafka", stdin=b'{"headers": []}\n' * 2)
    assert (result.code, result.raw) == (2, b"")
    assert "pass --as hex for a line for each record" in result.err


@pytest.mark.parametrize("size", [1 << 20, 2000])
def test_encode_undoes_read_of_log_with_several_producers(run, monkeypatch, tmp_path, size):
    monkeypatch.setattr("letterhead.cli.encode.BATCH_BYTES", size)
    log = tmp_path / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir()
    documents = run("read", SAMPLES / "orders-0", "--start", "7990", "--end", "8010", "--json").raw
    assert len({json.loads(line)["producer_id"] for line in documents.splitlines()}) > 1
    assert run("encode", "-f", "record-batch", "-o", log, stdin=documents).code == 0
    assert run("read", log.parent, "--json").raw == documents


@pytest.mark.parametrize(
    ("source", "format"),
    [
        ("orders-0", "iggy-message"),
        ("orders-0", "streams-timestamped"),
        ("streams-state-0_0 -s latest", "streams-timestamped"),
        ("streams-state-0_0 -s hourly", "record-batch"),
        ("streams-state-0_0 -s sessions", "streams"),
    ],
)
def test_encode_accepts_record_content_from_all_sources(run, source, format):
    name, *options = source.split()
    types = ["--types", "binary"] if format.startswith("iggy") else []
    line = run("read", SAMPLES / name, *options, "-n", "2", "--json").raw.splitlines()[1]
    written = run("encode", "-f", format, *types, stdin=line)
    decoded = json.loads(run("decode", "-f", format, "--json", stdin=written.raw).out)
    [message] = decoded.get("messages", [decoded])
    assert message.get("value", message.get("payload")) == json.loads(line)["value"]


@pytest.mark.parametrize("with_offsets", [True, False])
def test_offsets_of_several_batches_increase(run, monkeypatch, with_offsets):
    monkeypatch.setattr("letterhead.cli.encode.BATCH_BYTES", 1)
    documents = [{"headers": [], "value": "v", **({"offset": 2 * n} if with_offsets else {})} for n in range(4)]
    text = "\n".join(map(json.dumps, documents)).encode()
    data = run("encode", "-f", "record-batch", stdin=text).raw
    step = 2 if with_offsets else 1
    assert [message.offset for message in lh.messages(data, "record-batch")] == [n * step for n in range(4)]
    again = run("encode", "-f", "record-batch", stdin=text + b"\n" + json.dumps(documents[2]).encode())
    if with_offsets:
        assert (again.code, again.err) == (1, "letterhead: record-batch: offset 4 is not after 6 (row 4)\n")


@pytest.mark.parametrize("first", [-1, 0, 5, (1 << 31) - 2])
def test_producer_sequences_are_consecutive_in_batch(run, first):
    sequences = [first if first < 0 else (first + n) % (1 << 31) for n in range(4)]
    documents = [{"headers": [], "value": "v", "producer_id": 7, "producer_epoch": 0, "sequence": n} for n in sequences]
    data = run("encode", "-f", "record-batch", stdin="\n".join(map(json.dumps, documents)).encode()).raw
    assert int.from_bytes(data[8:12], "big") == len(data) - 12, "there is one batch"
    expected = [None if sequence < 0 else sequence for sequence in sequences]
    assert [message.sequence for message in lh.messages(data, "record-batch")] == expected


def test_encode_and_convert_write_base64_that_decode_reads(run):
    document = b'{"headers": [{"key": "k", "value": {"base64": "AP8="}}]}'
    encoded = run("encode", "-f", "kafka", "--as", "base64", stdin=document).out.strip()
    converted = run(
        "convert", "-f", "kafka", "-t", "streams", "--base64", encoded, "--as", "base64", "-o", "-"
    ).out.strip()
    decoded = json.loads(run("decode", "-f", "streams", "--base64", converted, "--json").out)
    assert decoded["headers"] == json.loads(document)["headers"]


@pytest.mark.parametrize("command", [["encode"], ["convert", "-t", "kafka", "--hex", "02026b0276"]])
def test_dash_means_standard_output(run, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    result = run(*command, "-f", "kafka", "-o", "-", stdin=b'{"headers": [{"key": "k", "value": "v"}]}')
    assert (result.raw, list(tmp_path.iterdir())) == (bytes.fromhex("02026b0276"), [])


@pytest.mark.parametrize("format", ["record-batch", "kip82-messages", "kip82-messages-int", "kip82-messages-wrapper"])
def test_decoded_batch_encodes_to_same_bytes(run, format):
    key = {"kip82-messages-int": 7, "kip82-messages-wrapper": "7"}.get(format, "retry")
    value = lh.Int32(5) if format == "kip82-messages" else b"\0\xff"
    messages = [
        lh.Message(offset=n, timestamp=5000 + n, key=b"k", value=b"v", headers=[(key, value)]) for n in range(3)
    ]
    batch = lh.batch(messages, format)
    decoded = run("decode", "-f", format, "--json", stdin=batch).out
    assert run("encode", "-f", format, stdin=decoded.encode()).raw == batch


@pytest.mark.parametrize("format", ["record-batch", "kafka"])
def test_batch_without_messages_is_rejected(run, format):
    result = run("encode", "-f", format, stdin=b'{"messages": []}')
    assert (result.code, " needs " in result.err) == (2, True)
