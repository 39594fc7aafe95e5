"""What is done over and over: each job passes a known number of headers through one part, and checks its answer."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead.state import Stores, ValueTimestampHeaders
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.storage.database import RocksDBOptions

HEADERS = int(os.environ.get("LETTERHEAD_LOAD", "50_000_000"))
"""How many headers each job passes through, in all."""

COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64", "route": "array<string>"}
FORMAT = "streams-timestamped"

# A cache is there to fill up: a small one is full before anything is measured.
_SMALL = RocksDBOptions(block_cache_bytes=4 << 20, write_buffer_bytes=2 << 20)


class Job(NamedTuple):
    """Work of one sort.

    Attributes
    ----------
    name : str
        What it does.
    headers : int
        Headers that one run passes through.
    run : callable
        Does it once.
    """

    name: str
    headers: int
    run: Callable[[], None]


def jobs(samples: Path, scratch: Path, times: int = 10) -> list[Job]:
    """Make the jobs: columns and segments hold the sample ``times`` over.

    Parameters
    ----------
    samples : Path
        The sample data.
    scratch : Path
        Where segments and a store may be made.
    times : int, default 10
        How often the sample is repeated.
    """
    blocks = blocks_of(samples, times)
    stored = pq.read_table(samples / "store-latest-0.parquet")
    values = pa.concat_arrays([stored.column("value").combine_chunks()] * times)
    log = repeat_segment(samples / "orders-0", scratch / "orders-0", times)
    messages = list(zip(stored.column("key").to_pylist(), map(_decoded, stored.column("value")), strict=True))
    state = repeat_state(messages, scratch / "state" / "0_0", times)

    lists = lha.decode(blocks, "kafka")
    of_blocks = len(lists.flatten())
    of_stored = len(lha.decode(values, FORMAT).field("headers").flatten())
    selected = lha.select(blocks, COLUMNS)
    amounts = selected.field("amount_cents").drop_null().to_numpy().sum()
    converted = lha.convert(blocks, "kafka", target="kip82-typed", types="binary")
    streams = lha.convert(values, FORMAT, target="streams", on_loss="drop")
    rows = {"segments": len(blocks), "state": len({key for key, _ in messages}) * times}

    def decode() -> None:
        assert len(lha.decode(blocks, "kafka").flatten()) == of_blocks

    def select() -> None:
        result = lha.select(blocks, COLUMNS)
        assert result.field("amount_cents").drop_null().to_numpy().sum() == amounts

    def encode() -> None:
        assert lha.encode(lists, "kafka").equals(blocks)

    def convert() -> None:
        assert lha.convert(blocks, "kafka", target="kip82-typed", types="binary").equals(converted)

    def convert_stored() -> None:
        assert lha.convert(values, FORMAT, target="streams", on_loss="drop").equals(streams)

    def read_segments() -> None:
        with lh.read.segments(log) as reader:
            assert sum(batch.num_rows for batch in reader) == rows["segments"]

    def read_state() -> None:
        with lh.read.state(state, store="latest") as reader:
            assert sum(batch.num_rows for batch in reader) == rows["state"]

    keys = len({key for key, _ in messages})

    def keep() -> None:
        store = opened(scratch / "store")
        for key, message in messages:
            store.put(key, ValueTimestampHeaders.make(message.payload, message.timestamp, message.headers))
        for key, message in messages[::10]:
            assert store.get(key).headers == message.headers
        with store.all() as kept:
            assert sum(1 for _ in kept) == keys
        store.close()

    return [
        Job("decode", of_blocks, decode),
        Job("select", of_blocks, select),
        Job("encode", of_blocks, encode),
        Job("convert", of_blocks, convert),
        Job("convert stored messages", of_stored, convert_stored),
        Job("read segments", of_blocks, read_segments),
        Job("read state", of_stored, read_state),
        Job("keep in a store", of_stored // times, keep),
    ]


def blocks_of(samples: Path, times: int) -> pa.Array:
    """Return the headers of the sample topic as blocks, a number of times."""
    lists = pq.read_table(samples / "orders-0.parquet").column("headers").combine_chunks()
    return pa.concat_arrays([lha.encode(lists, "kafka")] * times)


def repeat_segment(partition: Path, result: Path, times: int) -> Path:
    """Make a partition of a number of segments, each the one of another partition with offsets that go on."""
    result.mkdir(parents=True)
    [path] = partition.glob("*.log")
    data = path.read_bytes()
    batches, end = _native.record_batches(data)
    assert end == len(data)
    with lh.read.segments(partition, columns=["offset"]) as reader:
        count = reader.read_all().num_rows
    for number in range(times):
        copy = bytearray(data)
        for position, *_ in batches:
            # The checksum does not cover the offset of a batch.
            [offset] = struct.unpack_from(">q", data, position)
            struct.pack_into(">q", copy, position, offset + number * count)
        (result / f"{number * count:020}.log").write_bytes(copy)
    return result


def repeat_state(messages: list[tuple[bytes, lh.Message]], task: Path, times: int) -> Path:
    """Make the state directory of a task, whose store has every message a number of times, under other keys."""
    store = opened(task)
    for number in range(times):
        for key, message in messages:
            value = ValueTimestampHeaders.make(message.payload, message.timestamp, message.headers)
            store.put(b"%s-%d" % (key, number), value)
    store.close()
    return task


def opened(task: Path) -> Any:
    """Open the store of a task, with all its layers."""
    supplier = Stores.persistent_timestamped_key_value_store_with_headers("latest", options=_SMALL)
    store = Stores.timestamped_key_value_store_with_headers_builder(supplier).with_logging_disabled().build()
    store.open(task, StoreContext("app", changelog=ChangelogList()))
    return store


def _decoded(value: pa.Scalar) -> lh.Message:
    message = lh.decode(value.as_py(), FORMAT)
    assert isinstance(message, lh.Message)
    return message
