"""Small files that claim, or decompress to, many times their size."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def arrow_file(array: pa.Array, compression: str | None = None) -> bytes:
    """Return an Arrow file with one column."""
    batch = pa.RecordBatch.from_arrays([array], ["a"])
    file = io.BytesIO()
    with pa.ipc.new_file(file, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return file.getvalue()


def parquet_file(table: pa.Table, **options: Any) -> bytes:
    """Return a Parquet file."""
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def _zeros(count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(bytes(8 * count))])


BILLIONS = 2_000_000_000

FILES: dict[str, Callable[[], bytes]] = {
    "a line of 80 MB": lambda: gzip.compress(b'{"a":"' + b"x" * 80_000_000 + b'"}\n', 6),
    "a line of nested lists": lambda: gzip.compress(b'{"a":[' + b"[]," * 20_000_000 + b"[]]}\n", 6),
    "a line of text with commas": lambda: gzip.compress(b'{"a":"' + b"x," * 30_000_000 + b'"}\n', 6),
    "a line of text with escapes": lambda: gzip.compress(b'{"a":"' + rb"\n," * 20_000_000 + b'"}\n', 6),
    "a line of short text": lambda: gzip.compress(b'{"a":[' + b'"",' * 20_000_000 + b'""]}\n', 6),
    "a line of text without an end": lambda: gzip.compress(b'{"a":"' + rb"\"," * 20_000_000, 6),
    "blank lines": lambda: gzip.compress(b'{"a":1}' + b"\n" * 80_000_000, 6),
    "blank lines alone": lambda: gzip.compress(b"\n" * 80_000_000, 6),
    "10,000 different names": lambda: b"".join(b'{"n%d":1}\n' % number for number in range(10_000)),
    "billions of lists of null": lambda: arrow_file(
        pa.Array.from_buffers(pa.list_(pa.null(), 1), BILLIONS, [None], children=[pa.nulls(BILLIONS)])
    ),
    "billions of empty structs": lambda: arrow_file(
        pa.Array.from_buffers(pa.struct([]), BILLIONS, [None], children=[])
    ),
    "billions of nulls": lambda: arrow_file(pa.nulls(BILLIONS)),
    "a run of a billion": lambda: arrow_file(
        pa.RunEndEncodedArray.from_arrays(pa.array([1_000_000_000], pa.int32()), pa.array(["x" * 1000]))
    ),
    "compressed zeros": lambda: arrow_file(_zeros(50_000_000), "zstd"),
    "values of a dictionary": lambda: arrow_file(
        pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 100_000]))
    ),
    "values of a Parquet dictionary": lambda: parquet_file(
        pa.table({"a": ["x" * 1_000_000] * 4_000}), compression="zstd"
    ),
    "headers of a Parquet dictionary": lambda: parquet_file(
        pa.table({"a": [[{"key": "k", "value": b"x" * 1_000_000}]] * 4_000}), compression="zstd"
    ),
    "compressed Parquet": lambda: gzip.compress(
        parquet_file(pa.table({"a": _zeros(50_000_000)}), compression="none", use_dictionary=False), 1
    ),
    "40,000 columns": lambda: parquet_file(pa.table({f"c{number}": [1] for number in range(40_000)})),
}


def wrong_buffers() -> Iterator[tuple[str, bytes]]:
    """Yield Arrow files whose offsets, indexes or views lie outside of their data, or whose text is not UTF-8."""
    text = pa.array(["ab", "cdef"])
    header = pa.StructArray.from_arrays([pa.array(["k"] * 6), pa.array([b"v"] * 6)], ["key", "value"])
    for name, offsets in {
        "offsets outside": (0, 2, 1 << 30), "negative offsets": (-4, 2, 6), "decreasing offsets": (0, 6, 2),
        "offsets beyond 31 bits": (0, 2, -(1 << 31)),
    }.items():  # fmt: skip
        for type in (pa.string(), pa.binary()):
            yield f"{name} of {type}", _changed(text.cast(type), "<3i", (0, 2, 6), offsets)
        yield f"{name} of large_string", _changed(text.cast(pa.large_string()), "<3q", (0, 2, 6), offsets)
        for child in (pa.array([b"a"] * 6), header):
            lists = pa.ListArray.from_arrays(pa.array([0, 2, 6], pa.int32()), child)
            yield f"{name} of lists of {child.type}", _changed(lists, "<3i", (0, 2, 6), offsets)
    yield "text that is not UTF-8", _changed(text, "6s", (b"abcdef",), (b"ab\xff\xfeef",))
    keys = pa.StructArray.from_arrays([text, pa.array([b"v"] * 2)], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), keys)
    yield "keys that are not UTF-8", _changed(headers, "6s", (b"abcdef",), (b"ab\xff\xfeef",))
    for index in (7, -1):
        dictionary = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 1], pa.int32()), pa.array(["a", "b"]))
        yield f"index {index} of a dictionary", _changed(dictionary, "<4i", (1, 0, 1, 1), (1, 0, index, 1))
    view = pa.array([b"a" * 20]).cast(pa.binary_view())
    yield "a view outside", _changed(view, "<i4sii", (20, b"aaaa", 0, 0), (20, b"aaaa", 0, 9))
    yield "a view of another buffer", _changed(view, "<i4sii", (20, b"aaaa", 0, 0), (20, b"aaaa", 1, 0))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([3, 1234567], pa.int32()), pa.array(["a", "b"]))
    for ends in ((3, 2), (0, 1234567), (3, 1234566)):
        yield f"ends of runs {ends}", _changed(runs, "<2i", (3, 1234567), ends)


def _changed(array: pa.Array, form: str, old: tuple[Any, ...], new: tuple[Any, ...]) -> bytes:
    """Return an Arrow file in which some bytes of a buffer were changed."""
    data, before = arrow_file(array), struct.pack(form, *old)
    assert before in data
    return data.replace(before, struct.pack(form, *new))
