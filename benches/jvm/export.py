"""Write a batch of header blocks for the Java benchmark and print its arguments.

Reading Parquet in Java would bring Hadoop along, so this writes what `DataInputStream` reads: an int32 count, then an
int32 length and the bytes of each block.

    python -m benches.jvm.export ROWS FILE  ->  "FILE rows headers keyBytes valueBytes nulls retrySum amountSum"
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from benches import data


def main(rows: int, file: Path) -> None:
    """Write the file, print the command line's part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        out.write(struct.pack(">i", rows))
        for block in data.store_blocks(rows).to_pylist():
            out.write(struct.pack(">i", len(block)))
            out.write(block)
    held, selected = data.store_answer(rows)
    print(
        file, rows, held.headers, held.key_bytes, held.value_bytes, held.nulls, selected.retry_sum, selected.amount_sum
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
