"""How the work of functions and parsers grows with their input: instructions for n, 2n and 4n, and the factors between them.

Time on a shared machine says little, and instructions are nearly the same in every run. Callgrind (valgrind) counts those of
Python, of the core and of pyarrow alike, in one process for all cases. Input is made before counting begins.

    python -m tests.load.growth              print a row for each case; exit code 1 if one grows by more than 2.3
    python -m tests.load.growth ddl edit     only cases with one of these words in their names

A case is a function in :mod:`tests.load.growth_cases`.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

MOST = 2.3
"""The factor by which twice the input may multiply the work: n log n, and tables that are made larger, need more than 2."""

COUNTED = "LETTERHEAD_GROWTH_FILES"
"""The environment variable by which the process that is counted knows the prefix of callgrind's files."""

_REQUESTS = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; }
void stop(void) { CALLGRIND_STOP_INSTRUMENTATION; }
void zero(void) { CALLGRIND_ZERO_STATS; }
void dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""

Make = Callable[[int], Callable[[], Any]]
"""Makes an input of a size, and returns what is counted."""


class Case(NamedTuple):
    """A function or parser, and the smallest size of its input."""

    name: str
    size: int
    make: Make


class Growth(NamedTuple):
    """Instructions for n, 2n and 4n."""

    name: str
    size: int
    counts: tuple[int, int, int]

    @property
    def factors(self) -> tuple[float, float]:
        """By what twice the input multiplied the work."""
        once, twice, four = self.counts
        return twice / once, four / twice


cases: dict[str, Case] = {}


def case(size: int) -> Callable[[Make], Make]:
    """Add a case, named as its function; ``size`` is n: the work should take about a millisecond."""

    def add(make: Make) -> Make:
        name = make.__name__.replace("_", " ").strip()
        if name in cases:
            raise ValueError(f"there are two cases {name!r}")
        cases[name] = Case(name, size, make)
        return make

    return add


def measure(names: list[str]) -> list[Growth]:
    """Count cases, in a process under callgrind."""
    for tool in ("valgrind", "cc"):
        if shutil.which(tool) is None:
            raise RuntimeError(f"no instructions can be counted: {tool} is not installed")
    with tempfile.TemporaryDirectory() as directory:
        source, library = Path(directory, "requests.c"), Path(directory, "requests.so")
        source.write_text(_REQUESTS)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        out = Path(directory, "out")
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        # Hashes are the same in every run; blocks of memory grow by moving pages, whatever was freed before.
        environment = {
            COUNTED: str(library),
            "PYTHONHASHSEED": "0",
            "MALLOC_MMAP_THRESHOLD_": "131072",
            "OMP_NUM_THREADS": "1",
        }
        ran = subprocess.run(
            [*command, sys.executable, __file__, *names], env=os.environ | environment, capture_output=True, text=True
        )
        if ran.returncode != 0:
            raise RuntimeError(f"the cases did not end: {ran.stderr[-2000:]}")
        counts: dict[str, list[int]] = {}
        for file in Path(directory).glob("out.*"):
            text = file.read_text()
            trigger = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if trigger is not None and total is not None:
                name, times = json.loads(trigger[1])
                counts.setdefault(name, [0, 0, 0])[times] = int(total[1])
    return [Growth(name, cases[name].size, tuple(counts[name])) for name in names]  # type: ignore[arg-type]


def run_counted(names: list[str]) -> None:
    """Run cases under callgrind, and have it write a file for each size."""
    requests = ctypes.CDLL(os.environ[COUNTED])
    gc.disable()
    for name in names:
        _, size, make = cases[name]
        # What is imported, cached and allocated once does not count.
        make(max(1, size // 8))()
        for times in range(3):
            job = make(size << times)
            gc.collect()
            requests.start()
            requests.zero()
            result = job()
            requests.dump(json.dumps([name, times]).encode())
            requests.stop()
            del job, result


def table(grown: list[Growth]) -> str:
    """Return rows of the cases: size, millions of instructions, factors."""
    width = max(len(growth.name) for growth in grown)
    lines = [f"{'':{width}}        n      Mi(n)     Mi(2n)     Mi(4n)   2n/n  4n/2n"]
    for growth in grown:
        millions = " ".join(f"{count / 1e6:10.2f}" for count in growth.counts)
        factors = " ".join(f"{factor:6.2f}" for factor in growth.factors)
        too_much = "  MORE THAN LINEAR" if max(growth.factors) > MOST else ""
        lines.append(f"{growth.name:{width}} {growth.size:8,} {millions} {factors}{too_much}")
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """Count, and print a table."""
    from tests.load import growth_cases  # noqa: F401

    if COUNTED in os.environ:
        run_counted(words)
        return 0
    names = [name for name in cases if not words or any(word in name for word in words)]
    grown = measure(names)
    print(table(grown))
    return int(any(max(growth.factors) > MOST for growth in grown))


if __name__ == "__main__":
    # The cases add themselves to this module, whatever it was started as.
    sys.modules["tests.load.growth"] = sys.modules["__main__"]
    sys.exit(main(sys.argv[1:]))
