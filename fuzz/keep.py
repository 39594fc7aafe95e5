"""Keep the inputs that add coverage, minimized and few enough to be committed.

``python fuzz/keep.py BINARIES [target ...]`` lets libFuzzer choose the inputs of ``fuzz/corpus`` that cover edges which
``fuzz/kept/target/format.hex`` does not, and appends the shortest of them to that file, one per line. They are tested on
stable Rust (``tests/rust/corpus.rs``) and are seeds of the next run.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE / "kept"
CORPUS = HERE / "corpus"
MOST_BYTES = 3000
"""The most bytes added for one target and format, so that all together stay below 1 MiB in hex."""


def unpack(corpus: Path) -> None:
    """Write the kept inputs into a corpus, one file each."""
    for path in KEPT.glob("*/*.hex"):
        directory = corpus / path.parent.name / path.stem
        directory.mkdir(parents=True, exist_ok=True)
        for line in path.read_text(encoding="ascii").split():
            data = bytes.fromhex(line)
            (directory / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def kept(target: str, format: str) -> list[bytes]:
    """Return the kept inputs of a target and a format."""
    path = KEPT / target / f"{format}.hex"
    return [bytes.fromhex(line) for line in path.read_text(encoding="ascii").split()] if path.exists() else []


def add(target: str, format: str, inputs: list[bytes]) -> int:
    """Append the shortest of the inputs to the kept ones; return how many were added."""
    there, left = kept(target, format), MOST_BYTES
    chosen = set(there)
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        left -= len(data)
        if left < 0:
            break
        if data:
            chosen.add(data)
    path = KEPT / target / f"{format}.hex"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = sorted((data.hex() for data in chosen), key=lambda line: (len(line), line))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return len(chosen) - len(there)


def reaching_more(binary: Path, target: str, format: str) -> list[bytes]:
    """Let libFuzzer choose the inputs of the corpus that, with the kept ones, cover all edges that the corpus covers."""
    with tempfile.TemporaryDirectory() as directory:
        there = kept(target, format)
        for number, data in enumerate(there):
            Path(directory, str(number)).write_bytes(data)
        environment = {**os.environ, "LETTERHEAD_FUZZ_FORMAT": format, "ASAN_OPTIONS": "detect_odr_violation=0"}
        command = [
            binary,
            "-set_cover_merge=1",
            "-use_counters=0",
            "-max_len=4096",
            directory,
            CORPUS / target / format,
        ]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return [data for path in Path(directory).iterdir() if (data := path.read_bytes()) not in there]


def main() -> None:
    """Keep inputs of every target and format that has a corpus."""
    binaries, only = Path(sys.argv[1]), sys.argv[2:]
    for directory in sorted(CORPUS.glob("*/*")):
        target, format = directory.parent.name, directory.name
        if (only and target not in only) or not (binaries / target).exists():
            continue
        print(target, format, add(target, format, reaching_more(binaries / target, target, format)), "added")


if __name__ == "__main__":
    main()
