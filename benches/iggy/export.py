"""Write the header blocks that Iggy's crates read, and print the arguments of `letterhead-bench-iggy`.

A file is what a few lines of Rust can read: a u32 count, then a u32 length and the bytes of each block, little-endian.

    python -m benches.iggy.export DIRECTORY  ->  "CORPUS FILE headers checksum selected" for each corpus
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from benches import typed


def main(directory: Path) -> None:
    """Write the files, print the command line's part."""
    directory.mkdir(parents=True, exist_ok=True)
    selected = sum(len(message.tenant) + message.retry + message.amount for message in typed.messages(typed.ROWS))
    for corpus in ("iggy", "iggy-2023", typed.SHUFFLED):
        file = directory / f"{corpus}-{typed.ROWS}.bin"
        with file.open("wb") as out:
            out.write(struct.pack("<I", typed.ROWS))
            for block in typed.blocks(corpus, typed.ROWS).to_pylist():
                out.write(struct.pack("<I", len(block)))
                out.write(block)
        checksum = typed.checksum(typed.rows_of(corpus, typed.ROWS))
        print(corpus, file, typed.ROWS * typed.HEADERS_A_ROW, checksum, selected)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
