"""The demo: run as a stranger runs it, and every figure on its screen computed a second time without Spark.

The second computation is plain Python: pyarrow reads the files and `reference` the bytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.reference import ops

SAMPLES = Path(__file__).parents[1] / "samples"
DEMO = Path(__file__).parents[2] / "examples" / "demo"
FORMAT = "streams-timestamped"
TIMEOUT = 540

pytestmark = pytest.mark.timeout(TIMEOUT + 30)


def columns() -> dict[str, Any]:

    return {
        "tenant": "string",
        "retry": "int32",
        "amount_cents": "int64",
        "traceparent": "string",
        "route": "array<string>",
    }


def read(path: Path, by: str) -> list[dict[str, Any]]:
    return pq.read_table(path).sort_by(by).to_pylist()


@pytest.fixture(scope="module")
def topic() -> list[dict[str, Any]]:
    return read(SAMPLES / "orders-0.parquet", "offset")


@pytest.fixture(scope="module")
def demo(request, tmp_path_factory) -> tuple[dict[str, Any], Path, str]:
    """One run: its figures, where it wrote, and what it printed."""
    out = tmp_path_factory.mktemp("demo")
    engine = request.config.getoption("--engine")
    command = [sys.executable, str(DEMO), "--engine", engine, "--out", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads((out / "report.json").read_text()), out, result.stdout


def test_every_demo_check_passes(demo):
    report, _, printed = demo
    assert report["failures"] == []
    assert printed.count("✓") == 11
    assert "✗" not in printed
    assert "Every check held." in printed


def test_topic_table_matches_reference(demo, topic):
    report, out, _ = demo
    lists = [row["headers"] for row in topic]
    expected = ops.select_rows(lists, "kafka", columns(), errors="column", lists=True)
    written = read(out / "topic-typed", "offset")
    for name, values in expected.items():
        assert [row[name] for row in written] == values, name
    assert report["topic"] == {"records": len(topic), "headers": sum(len(headers or []) for headers in lists)}


def test_exactly_damaged_rows_are_set_aside(demo):
    report, out, _ = demo
    before = read(SAMPLES / "store-latest-0.parquet", "key")
    after = read(out / "store-damaged.parquet", "key")
    hurt = [new for old, new in zip(before, after, strict=True) if old["value"] != new["value"]]
    quarantine = read(out / "quarantine", "key")
    assert [(row["key"], row["value"]) for row in quarantine] == [(row["key"], row["value"]) for row in hurt]
    assert len(hurt) == round(0.01 * len(before)) == report["store"]["damaged"]


def test_quarantine_errors_match_reference(demo):
    _, out, _ = demo
    quarantine = read(out / "quarantine", "key")
    values = [row["value"] for row in quarantine]
    expected = ops.select_rows(values, FORMAT, columns(), errors="column")["error"]
    assert [[tuple(found_error.values()) for found_error in row["error"]] for row in quarantine] == [
        [tuple(found_error) for found_error in found_errors] for found_errors in expected
    ]


def test_complete_values_match_reference(demo):
    _, out, _ = demo
    damaged = {row["key"] for row in read(out / "quarantine", "key")}
    whole = [row for row in read(SAMPLES / "store-latest-0.parquet", "key") if row["key"] not in damaged]
    expected = ops.select_rows([row["value"] for row in whole], FORMAT, columns())
    written = read(out / "store-typed", "key")
    assert [row["key"] for row in written] == [row["key"] for row in whole]
    for name, values in expected.items():
        assert [row[name] for row in written] == values, name


def test_orders_and_amounts_by_tenant_add_up(demo):
    report, out, _ = demo
    orders: dict[str | None, int] = defaultdict(int)
    amounts: dict[str | None, int] = defaultdict(int)
    damaged = {row["key"] for row in read(out / "quarantine", "key")}
    for row in read(SAMPLES / "store-latest-0.parquet", "key"):
        if row["key"] in damaged:
            continue
        headers = {key: value for key, _, value in ops.decode(row["value"], FORMAT)["headers"]}
        tenant = headers["tenant"].decode() if "tenant" in headers else None
        orders[tenant] += 1
        amounts[tenant] += int.from_bytes(headers["amount_cents"], "big", signed=True) if tenant is not None else 0
    assert {row["tenant"]: row["orders"] for row in report["tenants"]} == orders
    assert {row["tenant"]: row["cents"] or 0 for row in report["tenants"]} == amounts


def test_values_match_bytes_of_reference(demo, topic):
    _, out, _ = demo
    values = read(out / "topic-values", "offset")
    for row, value in zip(topic, values, strict=True):
        assert value["offset"] == row["offset"]
        fields = {
            "headers": row["headers"],
            "timestamp": round(row["timestamp"].timestamp() * 1000),
            "payload": row["value"],
        }
        assert value["value"] == ops.encode(fields, FORMAT, on_loss="drop")


@pytest.mark.spark_only
def test_losses_of_each_format_add_up(demo, topic):
    report, _, _ = demo
    values = [header["value"] for record in topic for header in record["headers"] or []]
    on_tombstones = sum(len(record["headers"] or []) for record in topic if record["value"] is None)
    headers = len(values)
    long = sum(value is not None and len(value) > 255 for value in values)
    iggy = headers - long - sum(not value for value in values)
    expected = {
        "kafka": headers,
        "kip82-typed": headers,
        "kip82-int": 0,
        "iggy": iggy,
        "iggy-2023": iggy,
        "streams": headers - on_tombstones,
        "streams-timestamped": headers - on_tombstones,
        "kip82-wrapper": 0,
        "kip82-message": headers,
        "kip82-message-int": 0,
        "kip82-message-wrapper": 0,
        "iggy-message-2023": iggy,
        "iggy-message": iggy,
    }
    assert {format: carried for format, _, carried, _ in report["formats"]} == expected


@pytest.mark.full
@pytest.mark.spark_only
def test_unreported_damage_fails_demo(tmp_path):
    """The demo is told of one damaged row that is whole: it must not find it, and must say so."""
    lie = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
import damage

def one_too_many(messages, share, real=damage.damage_messages):
    damaged, done = real(messages, share)
    damaged[done[0].row] = messages[done[0].row]
    return damaged, done

damage.damage_messages = one_too_many
sys.argv = ["demo", "--out", sys.argv[2]]
runpy.run_path(sys.path[0], run_name="__main__")
"""
    command = [sys.executable, "-c", lie, str(DEMO), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert result.returncode == 1, result.stderr
    assert "✗ every damaged row is set aside" in result.stdout
