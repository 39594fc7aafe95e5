"""Seconds and peak memory of hostile inputs, each read in a process of its own: the first row, and the last row of all.

    python -m tests.load.hostile_inputs              print a row for each input
    python -m tests.load.hostile_inputs dictionary   only inputs with one of these words in their names

`tests/sources/test_table_bounds.py` and `tests/package/test_memory_of_inputs.py` hold them to their bounds.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from tests.helpers.hostile_tables import FILES, arrow_file, wrong_buffers

PROGRAM = """
import sys, time
from pathlib import Path
import pyarrow.parquet, letterhead as lh
def peak():
    # Of this process alone: ru_maxrss begins with that of the parent.
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
def read(path, **options):
    try:
        with lh.open(path, **options) as reader:
            return next(reader, None)
    except (lh.errors.LetterheadError, ValueError) as error:
        return str(error).replace(path, "FILE")
for path in sys.argv[2:]:
    read(path)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
start = time.perf_counter()
results = [read(sys.argv[1]), read(sys.argv[1], options=lh.ReadOptions(last=1))]
seconds = time.perf_counter() - start
errors = [result for result in results if isinstance(result, str)]
grown = peak() - before
print(f"{seconds:.1f} | {grown / 1024:.0f} | {errors[0] if errors else 'read'}")
"""


def _after_the_first_rows(line: bytes) -> Callable[[], bytes]:
    return lambda: b'{"a":1}\n' * 10_000 + line + b"\n"


MORE: dict[str, Callable[[], bytes]] = {
    "nested values of another shape, after 10,000 lines": _after_the_first_rows(b'{"a":[{"b":1}]}'),
    "a number beyond 64 bits, after 10,000 lines": _after_the_first_rows(b'{"a":123456789012345678901234567890}'),
    "a lone surrogate, after 10,000 lines": _after_the_first_rows(rb'{"a":"\ud800"}'),
    "a byte-order mark, after 10,000 lines": _after_the_first_rows(b'\xef\xbb\xbf{"a":1}'),
    "runs of an Arrow file": lambda: arrow_file(
        pa.RunEndEncodedArray.from_arrays(pa.array([3, 5], pa.int32()), pa.array(["a", "b"]))
    ),
    "gzip in gzip in gzip": lambda: gzip.compress(gzip.compress(gzip.compress(b'{"a":1}\n'))),
}


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of all inputs that were requested."""
    names = {**FILES, **MORE}
    for name, make in names.items():
        if len(sys.argv) < 2 or any(word in name for word in sys.argv[1:]):
            yield name, make()
    if len(sys.argv) < 2:
        yield from wrong_buffers()


def main() -> None:
    """Print the table."""
    print("| input | bytes | seconds | MiB | result |\n| --- | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as directory:
        usual = Path(directory, "usual")
        usual.write_bytes(b'{"a":[1]}\n' * 1000)
        for name, data in inputs():
            path = Path(directory, "FILE")
            path.write_bytes(data)
            command = [sys.executable, "-c", PROGRAM, str(path), str(usual)]
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
                shown = ran.stdout.strip() or f"- | - | status {ran.returncode}: {ran.stderr.strip()[-100:]}"
            except subprocess.TimeoutExpired:
                shown = "over 120 | - | -"
            print(f"| {name} | {len(data):,} | {shown.replace(directory, '')} |", flush=True)


if __name__ == "__main__":
    main()
