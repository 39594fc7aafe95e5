"""The demo: run as a stranger runs it, and every figure on its screen computed a second time without Spark.

The second computation is plain Python: pyarrow reads the files and `letterhead.reference` the bytes.
"""

from __future__ import annotations

import json
import os
import pty
import re
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from letterhead.reference import ops
from terminal import read_to_end

SAMPLES = Path(__file__).parents[1] / "samples"
FORMAT = "streams-timestamped"
TIMEOUT = 240

pytestmark = pytest.mark.timeout(TIMEOUT + 30)

COMMAND = "import sys; from letterhead.cli import main; sys.exit(main())"


def columns() -> dict[str, Any]:
    import letterhead as lh

    return {
        "tenant": "string",
        "retry": "int32",
        "amount_cents": "int64",
        "traceparent": "string",
        "route": lh.All("string"),
    }


def read(path: Path, by: str) -> list[dict[str, Any]]:
    return pq.read_table(path).sort_by(by).to_pylist()


@pytest.fixture(scope="module")
def topic() -> list[dict[str, Any]]:
    return read(SAMPLES / "orders-0.parquet", "offset")


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[dict[str, Any], Path]:
    """One run with --json: its report, and where it wrote."""
    out = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-c", COMMAND, "demo", "--data", str(SAMPLES), "--out", str(out), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout), out


def test_every_check_of_the_demo_holds(demo):
    report, _ = demo
    assert report["failures"] == []


def test_the_topic_becomes_what_the_reference_reads(demo, topic):
    report, out = demo
    lists = [row["headers"] for row in topic]
    expected = ops.select_rows(lists, "kafka", columns(), errors="column", lists=True)
    written = read(out / "topic-typed", "offset")
    for name, values in expected.items():
        assert [row[name] for row in written] == values, name
    assert [row["key"] for row in written] == [row["key"] for row in topic]
    assert report["topic"]["records"] == len(topic)
    assert report["topic"]["headers"] == sum(len(headers or []) for headers in lists)
    assert report["topic"]["without_headers"] == sum(not headers for headers in lists)
    assert report["topic"]["faults"] == 0


def test_the_sample_on_the_screen_is_in_the_topic(demo, topic):
    report, _ = demo
    sample = report["topic"]["sample"]
    assert any(len(row["route"] or []) > 1 for row in sample)
    assert any(row["tenant"] is None for row in sample)
    for row in sample:
        found = ops.select_rows([topic[row["offset"]]["headers"]], "kafka", columns(), lists=True)
        assert {name: values[0] for name, values in found.items()} == {name: row[name] for name in found}


def test_exactly_the_damaged_cells_are_set_aside(demo):
    report, out = demo
    before = read(SAMPLES / "store-latest-0.parquet", "key")
    after = read(out / "store-damaged.parquet", "key")
    assert [row["key"] for row in before] == [row["key"] for row in after]
    hurt = [new for old, new in zip(before, after, strict=True) if old["value"] != new["value"]]
    quarantine = read(out / "quarantine", "key")
    assert [(row["key"], row["value"]) for row in quarantine] == [(row["key"], row["value"]) for row in hurt]
    assert len(hurt) == round(0.01 * len(before))
    store = report["store"]
    assert (store["cells"], store["damaged"], store["set_aside"]) == (len(before), len(hurt), len(hurt))
    assert store["whole"] == len(before) - len(hurt)
    assert (store["missed"], store["unexpected"]) == ([], [])
    assert sum(kind["damaged"] for kind in store["kinds"]) == len(hurt)
    assert all(kind["found"] == kind["damaged"] > 0 for kind in store["kinds"])


def test_the_quarantine_says_what_the_reference_says(demo):
    _, out = demo
    quarantine = read(out / "quarantine", "key")
    cells = [row["value"] for row in quarantine]
    expected = ops.select_rows(cells, FORMAT, columns(), errors="column")["error"]
    assert [[tuple(fault.values()) for fault in row["error"]] for row in quarantine] == [
        [tuple(fault) for fault in faults] for faults in expected
    ]


def test_whole_cells_become_what_the_reference_reads(demo):
    report, out = demo
    damaged = {row["key"] for row in read(out / "quarantine", "key")}
    whole = [row for row in read(SAMPLES / "store-latest-0.parquet", "key") if row["key"] not in damaged]
    expected = ops.select_rows([row["value"] for row in whole], FORMAT, columns())
    written = read(out / "store-typed", "key")
    assert [row["key"] for row in written] == [row["key"] for row in whole]
    for name, values in expected.items():
        assert [row[name] for row in written] == values, name
    headers = sum(len(ops.decode(row["value"], FORMAT)["headers"]) for row in whole)
    assert report["store"]["headers_in_whole_cells"] == headers


def test_orders_and_amounts_by_tenant_add_up(demo):
    report, out = demo
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
    assert {row["tenant"]: row["amount_cents"] or 0 for row in report["tenants"]} == amounts


def test_cells_are_the_bytes_the_reference_writes(demo, topic):
    _, out = demo
    cells = read(out / "topic-cells", "offset")
    for row, cell in zip(topic, cells, strict=True):
        assert cell["offset"] == row["offset"]
        fields = {
            "headers": row["headers"],
            "timestamp": round(row["timestamp"].timestamp() * 1000),
            "payload": row["value"],
        }
        assert cell["cell"] == ops.encode(fields, FORMAT, on_loss="drop")


def test_what_came_back_is_what_went(demo, topic):
    report, out = demo
    back = read(out / "topic-back", "offset")
    for row, after in zip(topic, back, strict=True):
        tombstone = row["value"] is None
        assert after["headers"] == (None if tombstone else row["headers"] or [])
        assert after["payload"] == row["value"]
        assert after["timestamp"] == (None if tombstone else round(row["timestamp"].timestamp() * 1000))
    tombstones = [row for row in topic if row["value"] is None]
    without = sum(row["value"] is not None and not row["headers"] for row in topic)
    lossy = sum(bool(row["headers"]) for row in tombstones)
    assert report["there_and_back"] == {
        "records": len(topic),
        "with_value": len(topic) - len(tombstones),
        "equal": len(topic) - len(tombstones) - without,
        "without_headers": without,
        "without_headers_as_empty": without,
        "tombstones": len(tombstones),
        "tombstones_as_null": len(tombstones),
        "tombstones_with_headers": lossy,
        "losses_reported": lossy,
        "different": 0,
        "tombstone_headers": sum(len(row["headers"] or []) for row in tombstones),
    }


# The last screen: sizes and losses by arithmetic on the layouts, from the headers as pyarrow reads them.


def varint_len(number: int) -> int:
    return max(1, -(-((number << 1) ^ (number >> 31)).bit_length() // 7))


def block_len(format: str, headers: list[tuple[bytes, bytes | None]]) -> int:
    if format == "kafka":
        each = sum(
            varint_len(len(key)) + len(key) + (1 if value is None else varint_len(len(value)) + len(value))
            for key, value in headers
        )
        return varint_len(len(headers)) + each if headers else 0
    if format == "kip82-typed":
        return sum(8 + len(key) + (0 if value is None else 1 + len(value)) for key, value in headers)
    if format == "kip82-int":
        return 0
    frame = {"iggy": 10, "iggy-2023": 9}[format]
    return sum(frame + len(key) + len(value) for key, value in headers if value and len(value) <= 255)


def message_len(format: str, headers: list[tuple[bytes, bytes | None]], key: bytes, value: bytes | None) -> int:
    payload = len(value or b"")
    # offset, size, crc, magic, attributes, timestamp, key and the lengths of key and value
    kip82 = 8 + 4 + 4 + 1 + 1 + 8 + 4 + len(key) + 4
    if format in ("streams", "streams-timestamped"):
        block = block_len("kafka", headers)
        timestamp = 8 if format == "streams-timestamped" else 0
        return 0 if value is None else varint_len(block) + block + timestamp + payload
    if format == "kip82-wrapper":
        return 1 + 4 + 4 + payload
    if format == "kip82-message-wrapper":
        return kip82 + (0 if value is None else 9 + payload)
    if format == "kip82-message-int":
        return kip82 + payload
    if format == "kip82-message":
        return kip82 + payload + (4 + block_len("kip82-typed", headers) if headers else 0)
    if format == "iggy-message-2023":
        return 16 + 4 + 4 + block_len("iggy-2023", headers) + payload
    return 64 + block_len("iggy", headers) + payload


def test_the_sizes_of_every_format_are_those_of_its_layout(demo, topic):
    report, _ = demo
    rows = report["formats"]["rows"]
    assert len(rows) == 13
    example = report["formats"]["record"]["offset"]
    for row in rows:
        total = 0
        for record in topic:
            headers = [(header["key"].encode(), header["value"]) for header in record["headers"] or []]
            if row["is"] == "block":
                size = block_len(row["format"], headers)
            else:
                size = message_len(row["format"], headers, record["key"], record["value"])
            total += size
            if record["offset"] == example:
                assert row["record_bytes"] == size, row["format"]
        assert row["bytes"] == total, row["format"]


def test_what_each_format_could_not_carry_adds_up(demo, topic):
    report, _ = demo
    values = [header["value"] for record in topic for header in record["headers"] or []]
    on_tombstones = sum(len(record["headers"] or []) for record in topic if record["value"] is None)
    tombstones = sum(record["value"] is None for record in topic)
    with_headers = sum(record["value"] is None and bool(record["headers"]) for record in topic)
    nulls, empties = sum(value is None for value in values), sum(value == b"" for value in values)
    long = sum(value is not None and len(value) > 255 for value in values)
    records, headers = len(topic), len(values)
    all_of = dict.fromkeys(("offset", "timestamp", "key"), records)
    iggy = {"null values": nulls, "empty values": empties, "overlong values": long}
    expected = {
        "kafka": (headers, {"kinds": headers - nulls}),
        "kip82-typed": (headers, {}),
        "kip82-int": (0, {"text keys": headers}),
        "iggy": (headers - nulls - empties - long, iggy),
        "iggy-2023": (headers - nulls - empties - long, iggy),
        "streams": (headers - on_tombstones, {**all_of, "kinds": headers - nulls, "null payloads": with_headers}),
        "streams-timestamped": (
            headers - on_tombstones,
            {"offset": records, "key": records, "kinds": headers - nulls, "null payloads": with_headers},
        ),
        "kip82-wrapper": (0, {**all_of, "text keys": headers}),
        "kip82-message": (headers, {}),
        "kip82-message-int": (0, {"text keys": headers}),
        "kip82-message-wrapper": (0, {"text keys": headers}),
        "iggy-message-2023": (headers - nulls - empties - long, {**all_of, **iggy, "null payloads": tombstones}),
        "iggy-message": (headers - nulls - empties - long, {"key": records, **iggy, "null payloads": tombstones}),
    }
    found = report["formats"]
    assert (found["records"], found["headers"]) == (records, headers)
    rows = {row["format"]: row for row in found["rows"]}
    assert {
        name: (row["headers"], {lost["what"]: lost["count"] for lost in row["not_carried"]})
        for name, row in rows.items()
    } == expected
    assert all(row["equal"] for row in rows.values())


def test_the_record_on_the_last_screen_is_in_the_topic(demo, topic):
    report, _ = demo
    record = report["formats"]["record"]
    headers = topic[record["offset"]]["headers"]
    assert [header["key"] for header in record["headers"]] == [header["key"] for header in headers]
    for shown, header in zip(record["headers"], headers, strict=True):
        value = header["value"]
        if value is None:
            assert shown["value"] is None
        elif header["key"] in ("retry", "amount_cents"):
            assert shown["value"] == f"int{8 * len(value)}:{int.from_bytes(value, 'big', signed=True)}"
        elif header["key"] == "__value_schema_id":
            assert shown["value"] == f"binary:{value.hex()}"
        elif header["key"] == "weight_kg":
            assert shown["value"] == f"float64:{struct.unpack('>d', value)[0]:g}"
        else:
            assert shown["value"] == f"string:{value.decode()}"


def test_rates_are_headers_by_seconds(demo):
    report, _ = demo
    assert report["times"][0]["headers"] is None
    for row in report["times"][1:]:
        assert row["headers_per_second"] == pytest.approx(row["headers"] / row["seconds"])


def test_the_screen_is_clean_and_complete(tmp_path):
    """Run on a pseudo-terminal of 100 columns, with more damage than by default."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100", "LINES": "50", "TERM": "xterm-256color"}
    arguments = ["demo", "--data", str(SAMPLES), "--out", str(tmp_path), "--bad-share", "0.2"]
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments], stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    printed = read_to_end(leader)
    assert process.wait(timeout=TIMEOUT) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed.decode())
    screen = text[text.rindex("letterhead 0") :]
    assert max(len(line.rstrip("\r")) for line in screen.split("\n")) <= 100 + len(str(tmp_path))
    for noise in ("WARN", "ERROR", "log4j", "incubator", "Traceback", "Stage"):
        assert noise not in text
    damaged = round(0.2 * pq.read_table(SAMPLES / "store-latest-0.parquet").num_rows)
    assert f"{damaged:,} of them damaged" in re.sub(r"\s+", " ", screen)
    assert f"{damaged:,} ✓" in screen
    assert "✗" not in screen
    assert screen.index("5  time") < screen.index("6  the same headers in every format") < screen.index("Every check")
    for name in ("kafka", "kip82-message-wrapper", "iggy-message-2023"):
        assert re.search(rf"^{name} +\d", screen, re.MULTILINE)
    assert "Every check held." in screen


def test_a_mismatch_ends_with_exit_code_1(tmp_path):
    """Tell the demo of damage that was not done: it must not find it, and must say so."""
    lie = """
import sys
from letterhead.cli import damage, demo_steps, main

def one_too_many(cells, share):
    damaged, done = damage.damage_cells(cells, share)
    damaged[done[0].row] = cells[done[0].row]
    return damaged, done

demo_steps.damage_cells = one_too_many
sys.exit(main())
"""
    arguments = ["demo", "--data", str(SAMPLES), "--out", str(tmp_path), "--json"]
    result = subprocess.run(
        [sys.executable, "-c", lie, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert result.returncode == 1
    assert "letterhead: demo: 1 damaged cells were not found" in result.stderr
    report = json.loads(result.stdout)
    assert len(report["store"]["missed"]) == 1
    assert report["failures"]


@pytest.mark.full
def test_a_header_that_does_not_come_back_ends_with_exit_code_1(tmp_path):
    """Tell the demo's last step of one loss too many: what came back is then more than was to be expected."""
    lie = """
import sys
from letterhead.cli import demo_formats, main

class Lie(demo_formats._Losses):
    def __init__(self, column):
        super().__init__(column)
        self.left_out = demo_formats.pa.concat_arrays([self.left_out, demo_formats.pa.array([0])])

demo_formats._Losses = Lie
sys.exit(main())
"""
    arguments = ["demo", "--data", str(SAMPLES), "--out", str(tmp_path), "--json"]
    result = subprocess.run(
        [sys.executable, "-c", lie, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert result.returncode == 1
    message = "letterhead: demo: kafka: headers that were not reported as lost came back otherwise than they went"
    assert message in result.stderr
    assert not json.loads(result.stdout)["formats"]["rows"][0]["equal"]
