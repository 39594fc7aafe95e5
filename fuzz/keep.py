"""Keep the inputs that reach something: minimised, and few enough to be part of the project.

``python fuzz/keep.py BINARIES [target ...]`` takes what the fuzzer has in ``fuzz/corpus``, has libFuzzer choose the inputs that together reach
all that was reached, and writes the shortest of them to ``fuzz/kept/target/format.hex``, an input a line. They are
tested on stable Rust (``tests/rust/corpus.rs``) and are seeds of the next run.
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
MOST_BYTES = 3000
"""Bytes of the inputs of one target and format: all together stay below a mebibyte, in hex."""


def unpack(corpus: Path) -> None:
    """Put the inputs that are kept into a corpus, a file for each."""
    for path in KEPT.glob("*/*.hex"):
        directory = corpus / path.parent.name / path.stem
        directory.mkdir(parents=True, exist_ok=True)
        for line in path.read_text(encoding="ascii").split():
            data = bytes.fromhex(line)
            (directory / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def pack(target: str, format: str, inputs: list[bytes]) -> int:
    """Write the shortest inputs, and those that are there already, and say how many there are."""
    path = KEPT / target / f"{format}.hex"
    there = set(path.read_text(encoding="ascii").split()) if path.exists() else set()
    chosen, left = set(there), MOST_BYTES
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        left -= len(data)
        if left < 0:
            break
        if data:
            chosen.add(data.hex())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{line}\n" for line in sorted(chosen, key=lambda line: (len(line), line))), encoding="ascii"
    )
    return len(chosen)


def minimised(binary: Path, corpus: Path, format: str) -> list[bytes]:
    """Have libFuzzer choose the inputs that reach all that the corpus reaches."""
    with tempfile.TemporaryDirectory() as made:
        environment = {**os.environ, "LETTERHEAD_FUZZ_FORMAT": format, "ASAN_OPTIONS": "detect_odr_violation=0"}
        command = [binary, "-set_cover_merge=1", "-max_len=4096", made, corpus]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return [path.read_bytes() for path in Path(made).iterdir()]


def main() -> None:
    """Keep what is worth it of every target and format that has a corpus."""
    binaries, only = Path(sys.argv[1]), sys.argv[2:]
    for directory in sorted((HERE / "corpus").glob("*/*")):
        target, format = directory.parent.name, directory.name
        if (only and target not in only) or not (binaries / target).exists():
            continue
        print(target, format, pack(target, format, minimised(binaries / target, directory, format)))


if __name__ == "__main__":
    main()
