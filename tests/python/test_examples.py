"""The examples of KIP-82's interceptors run as they stand, and print what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = {
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
refused: kip82-typed: the record at offset 0 of orders, partition 0, has a seal that does not hold: \
what it covers was changed, or other keys made it
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_says(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED[name]


def test_every_example_of_kip82_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("kip82_*.py")} == set(PRINTED)
