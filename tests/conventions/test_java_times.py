"""Times that ``java.time`` writes are read: it leaves out seconds that are 0."""

from __future__ import annotations

import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from letterhead import arrow as lha

pytestmark = pytest.mark.jvm

PROGRAM = """
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;

class Times {
    public static void main(String[] args) {
        for (String zone : new String[] {"Z", "+01:00", "-09:30"}) {
            for (long millis : new long[] {1769848200000L, 1769848201000L, 1769848200500L, -60000L, 1769848260000L}) {
                OffsetDateTime time = Instant.ofEpochMilli(millis).atOffset(ZoneOffset.of(zone));
                System.out.println(millis + " " + time);
                System.out.println(millis + " " + time.toInstant());
            }
        }
    }
}
"""


def test_times_of_java_are_read(tmp_path: Path) -> None:
    program = tmp_path / "Times.java"
    program.write_text(PROGRAM)
    java = shutil.which("java") or "java"
    done = subprocess.run([java, program], capture_output=True, text=True, check=True, timeout=120)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 30
    assert any(len(text) == len("2026-01-31T08:30Z") for _, text in lines)
    headers = pa.array(
        [[{"key": "at", "value": text.encode()}] for _, text in lines],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    times: list[datetime] = lha.select(headers, {"at": "timestamp:iso"}).field("at").to_pylist()
    assert [round(time.timestamp() * 1000) for time in times] == [int(millis) for millis, _ in lines]
    by_function = lha.rfc3339(pa.array([text for _, text in lines]), unit="ms").cast(pa.int64())
    assert by_function.to_pylist() == [int(millis) for millis, _ in lines]
