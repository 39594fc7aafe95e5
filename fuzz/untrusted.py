"""Fuzz the parsers of text, and tables of Arrow: each input is read, or is refused by a documented error, in little time and memory.

``tools/fuzz untrusted`` calls it for each target; LETTERHEAD_FUZZ_TARGET names the target, and the options are those of libFuzzer.
"""

from __future__ import annotations

import io
import os
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS.parent))

with atheris.instrument_imports(include=["letterhead"]):
    import letterhead as lh
    from letterhead import arrow as lha
    from letterhead.errors import LetterheadError
    from letterhead.fields import columns_of
    from letterhead.kafka.jaas import parse_jaas
    from letterhead.kafka.properties import expand, read_properties
    from letterhead.sources import json_kinds, json_lines, json_values, table_files, tables  # noqa: F401
    from letterhead.where.parsing import parse

import pyarrow as pa
from tests.helpers.hostile_tables import arrow_file

DIRECTORY = Path(tempfile.mkdtemp(prefix="letterhead-fuzz-"))
LIMITS = lh.Limits(decompressed_bytes=1 << 20, message_bytes=1 << 20, headers=10_000)


def lines(data: bytes) -> None:
    """Read lines as a table, and its headers as typed columns; what is read can be read again."""
    path = DIRECTORY / "rows.jsonl"
    path.write_bytes(b'{"headers":[]}\n' + data if data[:1] == b"h" else data)
    table = lh.open(path, limits=LIMITS).read_all()
    table.validate(full=True)
    table.to_pylist()


def properties(data: bytes) -> None:
    """Read a property file, and resolve the references of its values to files of this directory."""
    path = DIRECTORY / "client.properties"
    path.write_bytes(data)
    for name, value in read_properties(path).items():
        expand(name, value.replace("/", ""))


def jaas(data: bytes) -> None:
    """Read the text of a login."""
    parse_jaas(data.decode("utf-8", "replace"))


def ddl(data: bytes) -> None:
    """Read columns as a schema of Spark has them, and select them."""
    text = data.decode("utf-8", "replace")
    columns_of(text)
    lha.select(pa.array([b"\0"]), "kafka", text)


def conditions(data: bytes) -> None:
    """Parse a condition, and test it on a message."""
    condition = parse(data.decode("utf-8", "replace"))
    lha.select(pa.array([lh.encode({"a": b"1"}, "kafka")]), "kafka", {"a": "string"}, where=condition)


def arrow(data: bytes) -> None:
    """Read an Arrow file some numbers of which were changed, and its headers."""
    if len(data) < 2:
        return
    file = bytearray(BASES[data[0] % len(BASES)])
    for at in range(1, len(data) - 3, 4):
        position, choice = struct.unpack_from("<HH", data, at)
        number = NUMBERS[choice % len(NUMBERS)]
        width = 8 if choice & 0x8000 else 4
        position %= max(1, len(file) - width)
        file[position : position + width] = (number & (1 << 8 * width) - 1).to_bytes(width, "little")
    path = DIRECTORY / "rows.arrow"
    path.write_bytes(file)
    table = lh.open(path, limits=LIMITS).read_all()
    if table.nbytes < 1 << 20 and table.num_rows < 1 << 16:
        table.to_pylist()
    if "headers" in table.column_names:
        lh.open(path, headers={"k": "string"}, where="k = 'v'", limits=LIMITS).read_all()


NUMBERS = [
    0,
    1,
    2,
    3,
    7,
    8,
    63,
    64,
    127,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    -1,
    -2,
    -8,
    -(1 << 31),
    1 << 32,
    1 << 40,
    1 << 62,
    -(1 << 62),
]


def bases() -> list[bytes]:
    """Return Arrow files with columns of each layout."""
    header = pa.StructArray.from_arrays([pa.array(["k", "l", "k"]), pa.array([b"v", None, b"w"])], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), header)
    columns = [
        pa.array(["ab", None]), pa.array([b"ab", b"cdef"]), pa.array(["a", "b"]).dictionary_encode(), headers,
        pa.array([[1, 2], None]), pa.array([b"a" * 20, b"b"]).cast(pa.binary_view()), pa.array([True, None]),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"])),
        pa.array([{"x": [1]}, None]), pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    ]  # fmt: skip
    files = [arrow_file(column, codec) for column in columns for codec in (None, "zstd")]
    batch = pa.RecordBatch.from_arrays([headers, pa.array([1, 2])], ["headers", "n"])
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    return [*files, stream.getvalue()]


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (lines, properties, jaas, ddl, conditions, arrow)
}
BASES = bases()


def check(data: bytes) -> None:
    """Call the target; LetterheadError, ValueError and TypeError are what it may raise."""
    try:
        TARGET(data)
    except (LetterheadError, ValueError, TypeError, MemoryError) as error:
        assert "Traceback" not in str(error)


SEEDS: dict[str, list[bytes]] = {
    "lines": [
        b'{"a":1,"b":[1.5,null],"c":{"d":"x"}}\n{"a":2}\n', b'h{"headers":[{"key":"k","value":{"base64":"/w=="}}]}\n',
        b'{"headers":[{"key":"k","value":{"type":"int32","value":3}}],"value":"x"}\n', b'{"a":true}\n\n{"a":9007199254740993}',
    ],
    "properties": [
        b"a = b\\\n  c\n# d\ne\\u0020f:${env:HOME}\n", b"password=${file:client.properties:a}\n! x\n\\ g=h\\\\\n",
    ],
    "jaas": [
        b'org.example.M required username="a\\"b" password=\'c\';', b"M optional /* x */ a-b = c.d // e\n f=\"\\101\";",
    ],
    "ddl": [
        b"tenant string, retry int", b"`a b` array<struct<x: bigint, y: decimal(10,2)>> not null comment 'z'", b"t timestamp",
        b"a string:utf-8, b int32 | int64",
    ],
    "conditions": [
        b"a = 'x' and b::int32 > 3", b"not (a in ('x', 'y') or `b c` is null)", b"a between 1 and 5.5",
        b"a like 'x%' and timestamp >= '2026-01-01T00:00:00Z'", b"any(a) = x'00ff'", b"a = -1e5 or a != true",
    ],
    "arrow": [bytes([base, 0, 0, 0, 0, 40, 0, 3, 0]) for base in range(len(BASES))],
}  # fmt: skip


def write_seeds(directory: Path) -> None:
    """Write the first inputs of each target."""
    for name, seeds in SEEDS.items():
        (directory / name).mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(seeds):
            (directory / name / f"seed-{number}").write_bytes(seed)


if __name__ == "__main__" and sys.argv[1:2] == ["seeds"]:
    write_seeds(Path(sys.argv[2]))
elif __name__ == "__main__":
    TARGET = TARGETS[os.environ["LETTERHEAD_FUZZ_TARGET"]]
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
