#!/usr/bin/env python3
"""Write the manifest of the vectors: which files there are, who made them, how many cases each holds, and their SHA-256.

::

  manifest.py            write manifest.json
  manifest.py --check    compare it with the files; status 1 and a diff if they differ
  manifest.py --cases    print every case on a line: format, case, source, SHA-256 of its line

The identities of cases are computed and not kept: the file has their lines, and its SHA-256 is in the manifest. A case is
named by its file and the ``id`` of its line, or by its number where lines have none; that name stays in later versions.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import runner

HERE = Path(__file__).resolve().parent
MANIFEST = HERE / "manifest.json"

VERSION = "1.0.0"
"""Major: a case changed or went. Minor: cases came. Patch: words, the runner, the adapters."""

KAFKA = "Apache Kafka 4.3.1"
KAFKA_BOTH = "Apache Kafka 4.4.0 and 4.3.1"
IGGY_2023 = "Apache Iggy, iggy 0.6.210"
IGGY = "Apache Iggy, iggy_common 0.11.1-edge.10"
IGGY_BOTH = "Apache Iggy, iggy_common 0.11.1-edge.10 and iggy_binary_protocol 0.11.1-edge.8"
DRAFTS = "letterhead, by hand from the drafts of KIP-82"
ROCKSDB = f"{KAFKA} with RocksDB JNI 10.1.3"


class Source(NamedTuple):
    """What is said of a file that its lines do not say.

    Attributes
    ----------
    source : str
        Who made it, or what.
    formats : tuple of str
        The formats whose bytes it is about; the runner says it of the files that it reads.
    needs : str
        What an implementation has to have: ``formats``, ``classes`` or ``stores``, as the README tells them apart.
    """

    source: str
    formats: tuple[str, ...] = ()
    needs: str = "formats"


STREAMS = ("streams", "streams-timestamped")

FILES = {
    "varints.jsonl": Source(f"{KAFKA}, ByteUtils"),
    "headers.jsonl": Source(f"{KAFKA}, HeadersSerializer and HeadersDeserializer"),
    "value_timestamp_headers.jsonl": Source(f"{KAFKA}, ValueTimestampHeadersSerializer and its counterpart"),
    "aggregation_with_headers.jsonl": Source(f"{KAFKA}, AggregationWithHeadersSerializer and its counterpart"),
    "malformed.jsonl": Source(f"{KAFKA}, the three deserializers of headers, and helpers"),
    "conversions.jsonl": Source(f"{KAFKA}, HeadersBytesStore, TimestampedBytesStore and RecordConverters"),
    "record_batches.jsonl": Source(f"{KAFKA}, MemoryRecords and MemoryRecordsBuilder"),
    "trace_kv.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS[1:], "stores"),
    "trace_window.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS[1:], "stores"),
    "trace_session.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS[:1], "stores"),
    "trace_upgrade.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS, "stores"),
    "trace_versioned.jsonl": Source(f"{KAFKA}, TopologyTestDriver", (), "stores"),
    "queries.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS[1:], "stores"),
    "queries_window.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS[1:], "stores"),
    "queries_session.jsonl": Source(f"{KAFKA}, TopologyTestDriver", STREAMS[:1], "stores"),
    "dsl.jsonl": Source(f"{KAFKA_BOTH}, TopologyTestDriver", (), "stores"),
    "versioned_segments.jsonl": Source(f"{KAFKA}, RocksDBVersionedStoreSegmentValueFormatter", STREAMS[:1], "stores"),
    "rocksdb_fixtures.jsonl": Source(ROCKSDB, STREAMS, "stores"),
    "rocksdb/kv-headers.tar.gz": Source(ROCKSDB, STREAMS[1:], "stores"),
    "rocksdb/kv-mid-upgrade.tar.gz": Source(ROCKSDB, STREAMS[1:], "stores"),
    "rocksdb/kv-plain.tar.gz": Source(ROCKSDB, (), "stores"),
    "rocksdb/kv-timestamped.tar.gz": Source(ROCKSDB, (), "stores"),
    "rocksdb/session-headers.tar.gz": Source(ROCKSDB, STREAMS[:1], "stores"),
    "rocksdb/window-headers.tar.gz": Source(ROCKSDB, STREAMS[1:], "stores"),
    **{f"{name}.jsonl": Source(DRAFTS) for name in runner.FILES if name.startswith("kip82_")},
    "iggy_seed_headers.jsonl": Source(IGGY_2023),
    "iggy_tlv_headers.jsonl": Source(IGGY),
    "iggy_seed_malformed.jsonl": Source(IGGY_2023),
    "iggy_tlv_malformed.jsonl": Source(IGGY_BOTH),
    "iggy_seed_construct.jsonl": Source(IGGY_2023, ("iggy-2023",), "classes"),
    "iggy_tlv_construct.jsonl": Source(IGGY, ("iggy",), "classes"),
    "iggy_seed_json.jsonl": Source(IGGY_2023, ("iggy-2023",), "classes"),
    "iggy_tlv_json.jsonl": Source(IGGY, ("iggy",), "classes"),
    "iggy_seed_messages.jsonl": Source(IGGY_2023),
    "iggy_tlv_messages.jsonl": Source(IGGY_BOTH),
    "iggy_limits.jsonl": Source(f"{IGGY_2023}, and iggy_common 0.11.1-edge.10"),
    "iggy_wire_capture.jsonl": Source(
        "Apache Iggy, servers 0.4.300 and 0.9.0-edge.5", ("iggy-polled-2023", "iggy-batch"), "classes"
    ),
    "strict.json": Source("letterhead, by its reference implementation", tuple(runner.MODELS)),
}
"""All files that are data, in the order of the README."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="manifest.py", description="Write the manifest of the vectors.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--check", action="store_true", help="compare the manifest with the files; status 1 if it differs"
    )
    which.add_argument("--cases", action="store_true", help="print every case on a line, as JSON")
    source = parser.parse_args(arguments)
    if source.cases:
        for case in identities():
            print(json.dumps(case))
        return 0
    text = json.dumps(manifest(), indent=1) + "\n"
    if not source.check:
        MANIFEST.write_text(text)
        return 0
    old = MANIFEST.read_text() if MANIFEST.exists() else ""
    sys.stdout.writelines(
        difflib.unified_diff(old.splitlines(True), text.splitlines(True), "manifest.json", "the files")
    )
    return 0 if old == text else 1


def manifest() -> dict[str, Any]:
    """Make what stands in ``manifest.json``.

    Raises
    ------
    ValueError
        If a file is there that nothing is said of, or the other way round.
    """
    present = {
        str(path.relative_to(HERE)) for path in [*HERE.glob("*.jsonl"), *HERE.glob("rocksdb/*"), HERE / "strict.json"]
    }
    if present != set(FILES):
        raise ValueError(f"these files are not both listed and there: {', '.join(sorted(present ^ set(FILES)))}")
    counts: dict[str, Counter[str]] = {}
    for case in runner.cases():
        counts.setdefault(f"{case.file}.jsonl", Counter())[case.format] += 1
    return {
        "version": VERSION,
        "licence": "Apache-2.0",
        "notice": "NOTICE",
        "cases": sum(count.total() for count in counts.values()),
        "files": [_described(name, source, counts.get(name, Counter())) for name, source in FILES.items()],
    }


def _described(name: str, source: Source, counts: Counter[str]) -> dict[str, Any]:
    data = (HERE / name).read_bytes()
    return {
        "file": name,
        "formats": list(source.formats) or [format for format in runner.FORMATS if format in counts],
        "needs": source.needs,
        **({"lines": data.count(b"\n")} if name.endswith(".jsonl") else {}),
        "cases": {format: counts[format] for format in runner.FORMATS if format in counts},
        "source": source.source,
        "licence": "Apache-2.0",
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def identities() -> Iterator[dict[str, str | None]]:
    """Name every case: a line for each format that the runner sees it as, and each line that it does not read."""
    formats: dict[tuple[str, int], list[str | None]] = {}
    for case in runner.cases():
        formats.setdefault((f"{case.file}.jsonl", case.line), []).append(case.format)
    for name, source in FILES.items():
        if not name.endswith(".jsonl"):
            continue
        for number, line in enumerate((HERE / name).read_bytes().rstrip(b"\n").split(b"\n"), 1):
            case = f"{name.removesuffix('.jsonl')}/{runner.named(line.decode(), number)}"
            digest = hashlib.sha256(line).hexdigest()
            for format in formats.get((name, number)) or [" ".join(source.formats) or None]:
                yield {"format": format, "case": case, "source": source.source, "sha256": digest}


if __name__ == "__main__":
    sys.exit(main())
