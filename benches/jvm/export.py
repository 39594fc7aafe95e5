"""Write a batch of header blocks for the Java benchmark and print its arguments.

Reading Parquet in Java would bring Hadoop along, so this writes what `DataInputStream` reads.

    python -m benches.jvm.export ROWS FILE  ->  "blocks=FILE rows=… headers=…" and what else the blocks hold
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benches import data
from benches.limits import corpus


def main(rows: int, file: Path) -> None:
    """Write the file, print the command line's part."""
    blocks = data.store_blocks(rows).to_pylist()
    corpus.write_blocks(file, [len(block) for block in blocks], blocks)
    kept, selected = data.store_answer(rows)
    sums = [selected.tenant_bytes, selected.retry_sum, selected.amount_sum]
    print(*arguments("store", file, rows, list(data.COLUMNS), kept, sums))


def arguments(name: str, file: Path, rows: int, keys: list[str], kept: data.HeaderCounts, sums: list[int]) -> list[str]:
    """Return the parameters of `HeadersBenchmark`: what it reads, the keys of a string, an int and a long, the answer."""
    text, number, amount = keys
    parameters: dict[str, Any] = {
        "corpus": name,
        "blocks": file,
        "rows": rows,
        "text": text,
        "number": number,
        "amount": amount,
        "headers": kept.headers,
        "keyBytes": kept.key_bytes,
        "valueBytes": kept.value_bytes,
        "nulls": kept.nulls,
        "textBytes": sums[0],
        "numberSum": sums[1],
        "amountSum": sums[2],
    }
    return [f"{parameter}={value}" for parameter, value in parameters.items()]


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
