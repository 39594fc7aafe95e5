"""The examples run as they stand, from any directory and with the bundled data, and print what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.reference import ops

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

PRINTED = {
    "one_message": """\
['tenant', 'route', 'route', 'note', 'retry'] [b'eu-1', b'eu-2'] None
{'tenant': 'acme', 'retry': 3, 'route': ['eu-1', 'eu-2']}
True
truncated - kafka: value takes 4 bytes and 2 are left (header 4, byte 48)
""",
    "kafka_to_iggy": """\
Counter({('note', 'null_not_carried'): 502, ('note', 'empty_value'): 438, ('blob', 'too_long'): 98})
{'tenant': '株式会社', 'amount_cents': 2255027}
8991 messages without a loss, the same again: True
""",
    "dead_letter_replay": """\
dead letters: {'IllegalStateException': 3, 'TimeoutException': 2}
again: 1217 order-07324 12 headers
again: 1617 order-06041 10 headers
no mark of the dead letter is left: True
""",
    "stream_processor": """\
4000 records in, 2111 out, 154 of them replace one
1805 keys are kept, 139 of them replaced another order
""",
    "state_to_parquet": """\
6643 rows of key, timestamp, value, headers, tenant, amount_cents, trace, error
damaged: 0
most: [{'tenant': 'acme', 'amount_cents_sum': 2357306599}]
headers a row: 10.54
""",
    "traceparent": """\
with a trace: 9700 of 10000
same trace id: 9700 | new traces: 300
parents are our spans: True
sampled: 4805
all other headers are as they were: True
""",
    "kip82_routing": """\
orders-eu [(b'o1', Headers([(1000000001, b'eu')])), (b'o3', Headers([(1000000001, b'eu')]))]
orders-us [(b'o2', Headers([(1000000001, b'us')]))]
""",
    "kip82_transactions": """\
orders/o1 > invoices/o1 > parcels/o1
orders/o2 > invoices/o2 > parcels/o2
""",
    "kip82_audit": """\
shop-1 in cluster-a | mirror-1 from cluster-a | same True
shop-1 in cluster-a | mirror-1 from cluster-a | same True
None in None | mirror-1 from cluster-b | same False
""",
    "kip82_sealing": """\
readable: [('acme', False), ('acme', False)]
received: [(b'a hat for 42', False, ['tenant', 'hop']), (None, True, ['tenant', 'hop'])]
refused: the seal of the record at offset 0 of orders, partition 0 does not match its content
""",
}


RUN_ELSEWHERE = {
    "kafka_iggy_spark",  # tests/iggy/test_page.py: it needs servers
    "spark_quarantine",  # tests/spark/test_readme.py
}


@pytest.mark.parametrize("name", PRINTED)
def test_example_prints_documented_output(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYSPARK_PYTHON": sys.executable, "PYTHONIOENCODING": "utf-8"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=540,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == PRINTED[name].strip()


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == PRINTED.keys() | RUN_ELSEWHERE


def test_state_totals_match_reference(samples: Path) -> None:
    totals: Counter[str] = Counter()
    for message in pq.read_table(samples / "store-latest-0.parquet", columns=["value"])["value"].to_pylist():
        row = ops.select(message, "streams-timestamped", {"tenant": "string", "amount_cents": "int64"})
        if row["tenant"] is not None:
            totals[row["tenant"]] += row["amount_cents"]
    [(tenant, most)] = totals.most_common(1)
    assert str([{"tenant": tenant, "amount_cents_sum": most}]) in PRINTED["state_to_parquet"]
