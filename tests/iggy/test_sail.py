"""The data source ``letterhead-iggy`` on Sail."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import letterhead as lh
from tests.iggy.server import Server
from tests.iggy.test_write import table

pytestmark = pytest.mark.iggy_server

HERE = Path(__file__).parent
SAIL = Path(os.environ.get("PYTHON_SAIL", HERE.parents[1] / ".venv-sail" / "bin" / "python"))
HEADERS = {"tenant": "string", "retry": "int32"}


def test_sail_reads_topic_like_python(server: Server, create: Callable[..., str]) -> None:
    topic = create(2)
    lh.write.iggy(table(2000).drop_columns("key"), server.address, stream="tests", topic=topic)
    with lh.read.iggy(
        server.address, stream="tests", topic=topic, columns=["partition", "offset"], headers=HEADERS
    ) as reader:
        expected = sorted(reader.read_all().to_pylist(), key=lambda row: (row["partition"], row["offset"]))
    command = [str(SAIL), str(HERE / "sail_client.py"), server.address, topic]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(done.stdout.splitlines()[-1])
    assert len(rows) == 2000
    assert rows == expected
