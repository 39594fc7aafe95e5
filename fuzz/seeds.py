"""Make the seeds of a run from the vectors: messages of real systems, and malformed ones.

`run.py` calls it; alone: ``python fuzz/seeds.py DIRECTORY``. The seeds of a target are in ``DIRECTORY/target/format``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"

BLOCKS = {
    "headers": ["kafka"],
    "malformed": ["kafka", "streams", "streams-timestamped"],
    "value_timestamp_headers": ["streams-timestamped"],
    "aggregation_with_headers": ["streams"],
    "iggy_seed_headers": ["iggy-2023", "iggy-auto"],
    "iggy_seed_malformed": ["iggy-2023", "iggy-auto"],
    "iggy_tlv_headers": ["iggy", "iggy-auto"],
    "iggy_tlv_malformed": ["iggy", "iggy-auto"],
    "record_batches": ["record-batch"],
}
"""The formats of files whose lines do not name them."""

SENT = {"message": "iggy-message-2023", "polled": "iggy-polled-2023", "message64": "iggy-message"}
"""Formats of Iggy's messages by the name in a line."""

PARTS = {
    "decode": [b"\x00", b"\x08", b"\x10", b"\x18", b"\x19", b"\x38"],
    "columns": [b"\x00\x00\x80", b"\x08\x00\xff", b"\x30\x00\x80", b"\x18\x00\xff", b"\x58\x07\x80"],
    "roundtrip": [b"\x00", b"\x01", b"\x08", b"\x20"],
    "convert": [bytes([shape, target]) for shape in (0x00, 0x10, 0x18) for target in range(0, 14, 3)],
    "select": [b"\x00\x00", b"\x08\x02", b"\x40\x07", b"\x20\x10"],
    "filter": [b"\x00\x00\x01", b"\x08\x02\x44", b"\x40\x07\x8b", b"\x20\x10\xe6"],
    "edit": [b"\x00\x1b\x00\x80", b"\x10\xe4\x93\xff", b"\x48\xd8\x6d\x80", b"\x20\xff\xff\x80", b"\x00\xaa\xaa\xff"],
    "pack": [b"\x00\x00", b"\x08\x02", b"\x40\x07", b"\x20\x10"],
    "json": [b"\x00", b"\x08", b"\x10", b"\x40"],
    "batches": [b"\x00", b"\x08", b"\x12", b"\x1a"],
    "stored": [b""],
    "log": [b"\x00", b"\x01"],
    "reference": [b"\x00\x00", b"\x01\x03", b"\x0c\x05", b"\x34\x07"],
}
"""What precedes a serialized message in the input of a target: see the bits in `src/targets` and `reference.py`."""

ONE = {"stored": ("streams", "streams-timestamped"), "log": ("record-batch",)}
"""Targets of a few formats."""

CONTENTS = [b"", b"a", b"letterhead " * 9, bytes(range(256)), bytes(300)]


def serialized_messages() -> Iterator[tuple[str, bytes]]:
    """Yield every serialized message of the vectors with its format."""
    for path in sorted(VECTORS.glob("*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            for format in _formats(path.stem, line):
                for field in ("hex", "bytes", "input"):
                    if isinstance(line.get(field), str):
                        yield format, bytes.fromhex(line[field])[line.get("batch_at", 0) :]


def _formats(name: str, line: dict[str, Any]) -> list[str]:
    if line.get("op") == "send_messages_batch":
        return ["iggy-batch"]
    if name in ("iggy_seed_messages", "iggy_tlv_messages"):
        return [SENT[line["op"]]] if line["op"] in SENT else []
    return BLOCKS.get(name, [line["format"]] if isinstance(line.get("format"), str) else [])


def inputs() -> Iterator[tuple[str, str, bytes]]:
    """Yield every seed with its target and format."""
    for index, (format, serialized) in enumerate(serialized_messages()):
        batch = "messages" in format or format in ("record-batch", "iggy-batch", "iggy-polled-2023")
        for target, parts in PARTS.items():
            if format not in ONE.get(target, (format,)) or (
                batch and target in ("decode", "columns", "roundtrip", "edit", "pack", "json")
            ):
                continue
            if (batch and target == "convert") or (not batch and target == "batches"):
                continue
            if target in ("roundtrip", "edit") and format == "iggy-auto":
                continue
            # The fuzzer finds the other ways to ask by itself.
            for part in (parts[index % len(parts)], parts[(index + 1) % len(parts)]):
                yield target, format, part + serialized
        if format == "record-batch" and serialized[16:17] == b"\2" and not serialized[22] & 7:
            # Its records by themselves, for the fuzzer to put into every codec.
            for codec in range(5):
                yield "batches", format, bytes([codec << 5 | 4, serialized[60], 0, 0]) + serialized[61:]
        if format.startswith("kip82-messages"):
            for codec in range(1, 4):
                for magic in range(3):
                    yield "batches", format, bytes([codec << 5 | 4, magic]) + serialized
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for content in CONTENTS:
            for shape in (4, 6):
                yield "codecs", codec, bytes([shape, 0, 8]) + content + b"\0\0"
    yield "codecs", "gzip", b"\0\0\x08" + gzip.compress(b"letterhead " * 9, mtime=0)
    yield "codecs", "zstd", b"\0\0\x08" + bytes.fromhex("28b52ffd045851000068656c6c6f2068656c6c6f0a5e5b2e83")
    yield "codecs", "lz4", b"\0\0\x08" + bytes.fromhex("04224d186040820500008068656c6c6f00000000")
    yield "codecs", "snappy", b"\0\0\x08" + b"\x05\x10hello"


def write(directory: Path) -> int:
    """Write each seed once; return their number."""
    count = 0
    for target, format, data in inputs():
        path = directory / target / format / hashlib.sha1(data, usedforsecurity=False).hexdigest()
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            count += 1
    return count


if __name__ == "__main__":
    print(write(Path(sys.argv[1])), "seeds")
