"""A signal ends a call of the compiled core, long before the call would end."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

PRELUDE = """
import struct, sys, threading
import letterhead as lh
from letterhead import arrow as lha
import numpy as np
import pyarrow as pa

def repeated(value, rows):
    # Views of the same bytes: hours of work in a few megabytes.
    view = np.frombuffer(struct.pack("<i4sii", len(value), value[:4], 0, 0), np.uint8)
    views = pa.py_buffer(np.tile(view, rows).tobytes())
    return pa.Array.from_buffers(pa.binary_view(), rows, [None, views, pa.py_buffer(value)])

good = lh.encode([("key", b"value")] * 50_000, "kafka")
bad = good[:-1] + b"?" + good[-1:]
batch = lh.batch([{"value": b"v", "headers": [("a", b"1")]}] * 20_000)
print("ready", flush=True)
"""

CALLS = {
    "valid rows": "lha.validate(repeated(good, 1_000_000), 'kafka')",
    "invalid rows": "lha.select(repeated(bad, 1_000_000), {'a': 'string'}, errors='null')",
    "rows for threads": "lha.select(repeated(good, 1_000_000), {'a': 'string'}, threads=2)",
    "batches": "lha.messages(repeated(batch, 1_000_000), 'record-batch', where='offset < 0')",
    "batches that are validated": "lha.validate(repeated(batch, 1_000_000), 'record-batch')",
    "a stream": "list(lha.validate(pa.chunked_array([repeated(good, 1_000_000)]), 'kafka').chunks)",
}


@pytest.mark.parametrize("call", CALLS)
def test_signal_ends_core_call(call: str) -> None:
    code = (
        f"{PRELUDE}\ntry:\n    {CALLS[call]}\n    print('ended')\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            # It may come before the call begins: then Python raises it there.
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=540)[0] == "interrupted\n"


def test_handler_exception_ends_core_call() -> None:
    code = f"""{PRELUDE}
import signal
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    {CALLS["valid rows"]}
except Alarm:
    print("rung", len(lha.validate(pa.array([good]), "kafka")))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=540)
    assert ended.stdout == "ready\nrung 1\n", ended.stderr
