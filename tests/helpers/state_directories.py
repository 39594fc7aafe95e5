"""State directories of tests: fixtures of Kafka Streams, raw rows, and values of stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import letterhead as lh

SAMPLES = Path(__file__).parents[1] / "samples"
VECTORS = Path(__file__).parents[1] / "vectors"
NEW_YEAR = 1767225600000
MINUTE = 60_000
WITH_HEADERS = "keyValueWithTimestampAndHeaders"


def described(name: str) -> dict[str, dict[str, list[tuple[bytes, bytes]]]]:
    """Return the rows of a fixture as Java read them, by directory and family."""
    lines = [json.loads(line) for line in (VECTORS / "rocksdb_fixtures.jsonl").read_text().splitlines()]
    [databases] = [line["databases"] for line in lines if line["fixture"] == name]
    return {
        database["dir"]: {
            family["name"]: [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in family["entries"]]
            for family in database["column_families"]
        }
        for database in databases
    }


def write_raw(directory: Path, family: str, *rows: tuple[bytes, bytes]) -> None:
    """Write rows with no store in between."""
    import rocksdict

    def options() -> Any:
        return rocksdict.Options(raw_mode=True)

    names = rocksdict.Rdict.list_cf(str(directory))
    database = rocksdict.Rdict(str(directory), options=options(), column_families={name: options() for name in names})
    opened = database.get_column_family(family) if family in names else database.create_column_family(family, options())
    for key, value in rows:
        opened.put(key, value)
    opened.close()
    database.close()


def snapshot(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(directory.rglob("*"))
    }


def message(payload: bytes, *, headers: Any = (), timestamp: int = NEW_YEAR) -> bytes:
    data = lh.encode(lh.Message(headers=list(headers), timestamp=timestamp, payload=payload), "streams-timestamped")
    assert data is not None
    return data


def aggregation(payload: bytes, headers: Any = ()) -> bytes:
    data = lh.encode(lh.Message(headers=list(headers), payload=payload), "streams")
    assert data is not None
    return data
