"""The program that `test_restore_kill.py` kills: it restores the store `s`, and prints lines.

There is a line after each batch, and at the end one with the number of records that it wrote.

`python killed_restore.py PARQUET TASK '{"store_type": …}'`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from letterhead.state import restore
from letterhead.state.restoring import bulk_rows
from letterhead.state.restoring import restore as restoring
from letterhead.state.storage.database import RocksDBOptions


def main(parquet: str, task: str, options: dict[str, Any]) -> None:
    # Small writes and buffers: when it is killed, some rows are in files, and others are lost.
    restoring.WRITE_BYTES = 1 << 13
    bulk_rows.OPTIONS = RocksDBOptions(write_buffer_bytes=1 << 16)
    source = pa.RecordBatchReader.from_batches(
        pq.read_schema(parquet), pq.ParquetFile(parquet).iter_batches(40, use_threads=False)
    )
    done = restore(source, task, "s", progress=lambda _: print_line("."), **options)
    print_line(str(done.records))


def print_line(text: str) -> None:
    os.write(1, text.encode() + b"\n")


main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
