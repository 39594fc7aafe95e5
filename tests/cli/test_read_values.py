"""`letterhead read --value`: what it needs, and messages of Iggy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead.schemas import registry as registry_module
from tests.helpers.batch_bytes import batch, frame
from tests.helpers.command import Result
from tests.helpers.log_bytes import write_segments
from tests.helpers.memory_registry import MemoryRegistry, avro, prefixed

Run = Callable[..., Result]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
UNION = {"type": "record", "name": "U", "fields": [{"name": "u", "type": ["null", "int", "string"]}]}
BY_REGISTRY = ("--value", "avro", "--registry", "http://registry:8081")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--value", "avro"], "needs --registry URL"),
        (["--registry", "http://registry"], "need --value"),
        (["--key", "avro"], "--key avro needs --registry URL"),
        ([*BY_REGISTRY, "--key-subject", "a"], "needs --key"),
        (["--value-subject", "a"], "need --value"),
        ([*BY_REGISTRY, "--batches"], "--value and --key exclude"),
        ([*BY_REGISTRY, "--count-by", "partition"], "--value and --key exclude"),
        ([*BY_REGISTRY, "--value-subject", "a", "--value-schema", "b"], "exclude each other"),
        ([*BY_REGISTRY, "--registry-settings", "nothing=1"], "unknown registry setting"),
    ],
)
def test_contradictory_options_are_rejected(run: Run, options: list[str], error: str) -> None:
    result = run("read", "tests/samples/orders-0", *options)
    assert (result.code, error in result.err) == (2, True)


def test_table_rejects_serialized_value_options(run: Run) -> None:
    result = run("read", "tests/samples/orders-0.parquet", *BY_REGISTRY)
    assert (result.code, "--value is for topics and log segments" in result.err) == (2, True)


def test_iggy_values_are_read_from_payload(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = lh.encode([("__value_schema_id", lh.values.Binary(b"\0\0\0\0\1"))], "iggy")
    stored = batch(
        frame(0, prefixed(1, SCHEMA, {"id": 7})), frame(1, avro(SCHEMA, {"id": 8}), header), timestamp=10**15
    )
    path = write_segments(tmp_path / "streams/1/topics/2/partitions/3", [stored], [0])
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(SCHEMA))
    monkeypatch.setattr(registry_module, "Registry", lambda *_: MemoryRegistry({1: SCHEMA}))
    result = run("read", path, *BY_REGISTRY, "--value-schema", schema, "--json")
    assert [json.loads(line)["payload"] for line in result.lines] == [{"id": 7}, {"id": 8}]
    result = run("read", path, *BY_REGISTRY, "--value-schema", schema, "--json", "--where", '"payload.id" > 7')
    assert [json.loads(line)["payload"] for line in result.lines] == [{"id": 8}]
    result = run("read", path, *BY_REGISTRY)
    assert (result.code, "--value-subject" in result.err) == (2, True)
    result = run("read", path, *BY_REGISTRY, "--value-schema", schema, "--key", "avro")
    assert (result.code, "--key is for records of Kafka" in result.err) == (2, True)


@pytest.mark.parametrize("format", ["--json", "--csv", "--all", "-o"])
def test_union_of_several_types_has_field_for_each(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    stored = batch(
        *(frame(at, prefixed(1, UNION, {"u": value})) for at, value in enumerate((None, 1, "x"))), timestamp=10**15
    )
    path = write_segments(tmp_path / "streams/1/topics/2/partitions/3", [stored], [0])
    monkeypatch.setattr(registry_module, "Registry", lambda *_: MemoryRegistry({1: UNION, "u": UNION}))
    out = tmp_path / "out.parquet"
    result = run(
        "read",
        path,
        *BY_REGISTRY,
        "--value-subject",
        "u",
        "--columns",
        "payload",
        format,
        *([out] if format == "-o" else []),
    )
    assert result.code == 0
    expected = [None, {"int": 1, "string": None}, {"int": None, "string": "x"}]
    if format == "--json":
        assert [json.loads(line)["payload"]["u"] for line in result.lines] == expected
    elif format == "-o":
        assert [row["u"] for row in pq.read_table(out)["payload"].to_pylist()] == expected
    else:
        assert len(result.lines) >= 4
