"""Topologies of the DSL in Kafka Streams whose stores it chooses itself, and the changelogs that they write.

`python -m tests.state.dsl` runs them with every version of docs/versions.toml, and writes tests/vectors/dsl.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "vectors" / "dsl.jsonl"
FORMATS = ("DEFAULT", "HEADERS")

Record = dict[str, Any]


def record(topic: str, key: bytes, value: bytes | None, timestamp: int, **headers: bytes) -> Record:
    shown = [{"key": name, "value": data.hex()} for name, data in headers.items()]
    data = None if value is None else value.hex()
    return {"topic": topic, "key": key.hex(), "value": data, "timestamp": timestamp, "headers": shown}


INPUTS: dict[str, list[Record]] = {
    "suppress": [
        record("in", b"a", b"1", 1000, o=b"x"),
        record("in", b"a", b"2", 1100, p=b"y"),
        record("in", b"b", b"3", 1200),
        record("in", b"a", b"3", 2500),
        record("in", b"a", b"4", 2600, q=b"z"),
        record("in", b"a", None, 2700),
        record("in", b"b", b"9", 2800, w=b"w"),
    ],
    "outer-join": [
        record("left", b"a", b"1", 1000, o=b"x"),
        record("left", b"a", b"2", 1000, o=b"y"),
        record("right", b"b", b"3", 1200, h=b"h"),
        record("right", b"a", b"4", 1500, q=b"q"),
        record("left", b"c", b"5", 1600),
        record("left", b"z", b"6", 9000),
    ],
}


def run(server: Any, task: Path, topology: str, format: str) -> dict[str, list[Record]]:
    """Run a topology; return the records of its changelogs and of its output."""
    config = {"topology": topology, "format": format, "records": INPUTS[topology]}
    topics: dict[str, list[Record]] = server.ask({"do": "dsl", "directory": str(task), "config": config})
    return topics


def case(version: str, topology: str, format: str, topics: dict[str, list[Record]]) -> dict[str, Any]:
    name = f"{topology}-{version}-{format.lower()}"
    return {"id": name, "kafka": version, "topology": topology, "format": format, "in": INPUTS[topology], "out": topics}


def cases() -> dict[str, dict[str, Any]]:
    lines = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return {line["id"]: line for line in lines}


def write(directory: Path) -> None:
    from tests.state.java import JavaServer
    from tests.versions import REFERENCE, VERSIONS

    lines = []
    for version in (REFERENCE, *VERSIONS["kafka"]["also"]):
        server = JavaServer(directory / version, version)
        for topology in INPUTS:
            for format in FORMATS:
                task = directory / f"{version}-{topology}-{format}" / "app" / "0_0"
                lines.append(case(version, topology, format, run(server, task, topology, format)))
        server.stop()
    FILE.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary))
