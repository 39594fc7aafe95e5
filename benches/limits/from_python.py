"""The corpora from Python: letterhead's operations on columns, and what a data engineer writes in an afternoon.

Both take a column and give one. Plain Python takes fewer rows, which does not change what a header costs it, and trusts
its input.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benches import data, plain
from benches.limits import corpus
from letterhead import arrow as lha

OURS, PLAIN = "letterhead, from Python", "plain Python"
BATCHES = {OURS: (16_000, 64_000), PLAIN: (4_000,)}
QUICK_BATCHES = {OURS: (500,), PLAIN: (500,)}

READ: dict[str, Callable[[bytes], Any]] = {
    "string": bytes.decode,
    "binary": bytes,
    "int32": lambda value: struct.unpack(">i", value)[0],
    "int64": lambda value: struct.unpack(">q", value)[0],
}
ARROW = {"string": pa.utf8(), "binary": pa.binary(), "int32": pa.int32(), "int64": pa.int64()}


def measure(folder: Path, corpora: dict[str, Any], rounds: int, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Check and time every job of both sides on every corpus; give one row for each."""
    for name, known in corpora.items():
        for side, batches in (QUICK_BATCHES if quick else BATCHES).items():
            for rows in batches:
                messages = corpus.read_blocks(folder / known["file"], rows)
                holds = known["holds"][str(rows)]
                jobs = jobs_of(side, messages, dict(known["select"]))
                check(jobs, messages, holds)
                taken: dict[str, list[float]] = {job: [] for job in jobs}
                for _ in range(rounds):
                    for job, run in jobs.items():
                        began = perf_counter_ns()
                        run()
                        taken[job].append((perf_counter_ns() - began) / holds["headers"])
                for job, ns in taken.items():
                    yield {
                        "side": side, "corpus": name, "job": job, "batch": rows, "rows": rows,
                        "headers": holds["headers"], "buffers": "released", "ns": ns,
                    }  # fmt: skip


def jobs_of(side: str, messages: pa.Array, columns: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """Return the four jobs of a side."""
    lists = pa.array([plain.decode_block(block) for block in messages.to_pylist()], data.HEADERS_TYPE)
    if side == OURS:
        return {
            "decode": partial(lha.decode, messages, "kafka"),
            "encode": partial(lha.encode, lists, "kafka"),
            "select": partial(lha.select, messages, "kafka", columns),
            "validate": partial(lha.validate, messages, "kafka"),
        }
    return {
        "decode": lambda: pa.array([plain.decode_block(block) for block in messages.to_pylist()], data.HEADERS_TYPE),
        "encode": lambda: pa.array([plain.encode_block(row) for row in data.as_lists(lists)], pa.binary()),
        "select": lambda: plain_select(messages, columns),
        "validate": lambda: pa.array([None if is_whole(block) else "damaged" for block in messages.to_pylist()]),
    }


def plain_select(messages: pa.Array, columns: dict[str, str]) -> pa.StructArray:
    """Select the last header of each key."""
    rows = [dict(plain.decode_block(block)) for block in messages.to_pylist()]
    result = []
    for key, type in columns.items():
        values = (row.get(key) for row in rows)
        result.append(pa.array([None if value is None else READ[type](value) for value in values], ARROW[type]))
    return pa.StructArray.from_arrays(result, list(columns))


def is_whole(block: bytes) -> bool:
    """Decode and see: this finds fewer errors than letterhead, and names none."""
    try:
        plain.decode_block(block)
    except (IndexError, UnicodeDecodeError):
        return False
    return True


def check(jobs: dict[str, Callable[[], Any]], messages: pa.Array, holds: dict[str, Any]) -> None:
    """Compare the results of a side with those of the rows."""
    keys, values = jobs["decode"]().flatten().flatten()
    seen = [len(keys), total(pc.binary_length(keys)), total(pc.binary_length(values)), values.null_count]
    assert seen == [holds[name] for name in ("headers", "key_bytes", "value_bytes", "nulls")]
    assert jobs["encode"]().equals(messages)
    selected = [
        [
            len(column) - column.null_count,
            total(column if pa.types.is_integer(column.type) else pc.binary_length(column)),
        ]
        for column in jobs["select"]().flatten()
    ]
    assert selected == holds["selected"]
    assert jobs["validate"]().null_count == len(messages)


def total(column: pa.Array) -> int:
    """Sum a column of integers, in 64 bits; nothing adds up to 0."""
    return pc.sum(column.cast(pa.int64())).as_py() or 0
