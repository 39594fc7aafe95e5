"""Header values of the types of KIP-1308: ours are the bytes of Kafka's serializers, and are read from them."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

import letterhead as lh
from tests.versions import built, check_built

pytestmark = pytest.mark.jvm

TYPES = {
    "String": ("string", lambda value: value),
    "Short": ("int16", lambda value: lh.Int16(value)),
    "Integer": ("int32", lambda value: lh.Int32(value)),
    "Long": ("int64", lambda value: lh.Int64(value)),
    "Float": ("float32", lambda value: lh.Float32(value)),
    "Double": ("float64", lambda value: lh.Float64(value)),
    "Boolean": ("bool", lambda value: lh.Bool(value)),
}


def test_typed_headers_match_bytes_of_kafka_serializers() -> None:
    programs = built("jvm-tests")
    check_built(programs)
    java = [shutil.which("java") or "java", "-cp", f"{programs / 'classes'}:{programs / 'lib'}/*"]
    done = subprocess.run(
        [*java, "letterhead.testing.streams.Serialized"], capture_output=True, text=True, check=True, timeout=120
    )
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["type"] for line in lines} == TYPES.keys()
    for line in lines:
        name, typed = TYPES[line["type"]]
        value = float(line["value"]) if name.startswith("float") else line["value"]
        data = bytes.fromhex(line["bytes"])
        assert lh.encode([("h", typed(value))], "kafka", types="be") == lh.encode([("h", data)], "kafka"), line
        assert lh.select(lh.encode([("h", data)], "kafka"), {"h": name}) == {"h": value}, line
