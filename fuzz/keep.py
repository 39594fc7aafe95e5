"""Keep the inputs that reach something: minimised, and few enough to be part of the project.

``python fuzz/keep.py BINARIES [target ...]`` takes what the fuzzer has in ``fuzz/corpus``, has libFuzzer choose the inputs
that reach edges of the code which those of ``fuzz/kept/target/format.hex`` do not, and adds the shortest of them to that
file, an input a line. They are tested on stable Rust (``tests/rust/corpus.rs``) and are seeds of the next run.
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
"""Bytes that are added to the inputs of one target and format: all together stay below a mebibyte, in hex."""


def unpack(corpus: Path) -> None:
    """Put the inputs that are kept into a corpus, a file for each."""
    for path in KEPT.glob("*/*.hex"):
        directory = corpus / path.parent.name / path.stem
        directory.mkdir(parents=True, exist_ok=True)
        for line in path.read_text(encoding="ascii").split():
            data = bytes.fromhex(line)
            (directory / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def kept(target: str, format: str) -> list[bytes]:
    """Give what is kept of a target and a format."""
    path = KEPT / target / f"{format}.hex"
    return [bytes.fromhex(line) for line in path.read_text(encoding="ascii").split()] if path.exists() else []


def add(target: str, format: str, inputs: list[bytes]) -> int:
    """Add the shortest of the inputs to what is kept, and say how many they are."""
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
    """Have libFuzzer choose the inputs of the corpus that, with those that are kept, reach all edges it reaches."""
    with tempfile.TemporaryDirectory() as made:
        there = kept(target, format)
        for number, data in enumerate(there):
            Path(made, str(number)).write_bytes(data)
        environment = {**os.environ, "LETTERHEAD_FUZZ_FORMAT": format, "ASAN_OPTIONS": "detect_odr_violation=0"}
        command = [binary, "-set_cover_merge=1", "-use_counters=0", "-max_len=4096", made, CORPUS / target / format]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return [data for path in Path(made).iterdir() if (data := path.read_bytes()) not in there]


def main() -> None:
    """Keep what is worth it of every target and format that has a corpus."""
    binaries, only = Path(sys.argv[1]), sys.argv[2:]
    for directory in sorted(CORPUS.glob("*/*")):
        target, format = directory.parent.name, directory.name
        if (only and target not in only) or not (binaries / target).exists():
            continue
        print(target, format, add(target, format, reaching_more(binaries / target, target, format)), "added")


if __name__ == "__main__":
    main()
