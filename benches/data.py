"""The rows that every benchmark works on, and the answers it has to give.

All data comes from `tests/samples`: `store` is the store `latest` of a Kafka Streams application (messages of
`streams-timestamped`), `orders` the `headers` column of a topic as Spark's Kafka source gives it. More rows than a
sample has are made by repeating and shuffling it with a fixed seed, so Python, Java and Spark see the same headers;
variety of layouts is capped by the sample, which flatters branch predictors.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benches import plain

SAMPLES = Path(__file__).resolve().parent.parent / "tests" / "samples"
QUICK = os.environ.get("LETTERHEAD_BENCH") == "quick"

COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64"}
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([("key", pa.utf8()), ("value", pa.binary())])))
SELECTED_SCHEMA = pa.schema([("tenant", pa.utf8()), ("retry", pa.int32()), ("amount_cents", pa.int64())])


@dataclass(frozen=True)
class HeaderCounts:
    """What a batch of header blocks holds."""

    headers: int
    key_bytes: int
    value_bytes: int
    nulls: int


@dataclass(frozen=True)
class Selected:
    """What the three selected columns of a batch hold."""

    tenants: int
    tenant_bytes: int
    retries: int
    retry_sum: int
    amounts: int
    amount_sum: int


# The whole samples, once each, written down: Kafka's own HeadersDeserializer was seen to give the same for the store
# (benches/jvm checks it on every run, on the rows it is given).
STORE_COUNTS = HeaderCounts(headers=70_002, key_bytes=650_303, value_bytes=1_109_600, nulls=334)
STORE_SELECTED = Selected(
    tenants=6_456, tenant_bytes=45_363, retries=6_456, retry_sum=1_001, amounts=6_456, amount_sum=16_017_585_662
)
ORDERS_COUNTS = HeaderCounts(headers=105_092, key_bytes=976_772, value_bytes=1_667_078, nulls=502)
ORDERS_SELECTED = Selected(
    tenants=9_700, tenant_bytes=68_066, retries=9_700, retry_sum=1_509, amounts=9_700, amount_sum=24_131_751_782
)


@cache
def store_sample() -> list[bytes]:
    """Return the messages of the store, as they are in RocksDB."""
    return pq.read_table(SAMPLES / "store-latest-0.parquet").column("value").to_pylist()


@cache
def orders_sample() -> pa.Array:
    """Return the `headers` column of the topic."""
    return pq.read_table(SAMPLES / "orders-0.parquet").column("headers").combine_chunks().cast(HEADERS_TYPE)


def draw(sample_rows: int, rows: int) -> list[int]:
    """Choose `rows` rows of a sample: every row equally often, in an order that is always the same."""
    indices = [row % sample_rows for row in range(rows)]
    random.Random(1271).shuffle(indices)
    return indices


@cache
def store_values(rows: int) -> pa.Array:
    """Return `rows` messages of the store as a binary column (`streams-timestamped`)."""
    sample = pa.array(store_sample(), pa.binary())
    return sample.take(pa.array(draw(len(sample), rows)))


@cache
def store_blocks(rows: int) -> pa.Array:
    """Return the header blocks of the same messages as a binary column (`kafka`)."""
    sample = pa.array([plain.split_message(message)[0] for message in store_sample()], pa.binary())
    return sample.take(pa.array(draw(len(sample), rows)))


@cache
def store_headers(rows: int) -> pa.Array:
    """Return the headers of the same messages as a list column, read by the plain decoder."""
    sample = pa.array([plain.decode_block(plain.split_message(message)[0]) for message in store_sample()], HEADERS_TYPE)
    return sample.take(pa.array(draw(len(sample), rows)))


@cache
def orders_headers(rows: int) -> pa.Array:
    """Return `rows` rows of the topic's headers as a list column."""
    sample = orders_sample()
    return sample.take(pa.array(draw(len(sample), rows)))


def as_lists(column: pa.Array) -> list[plain.HeaderList]:
    """Turn either form of a column into plain Python lists; a null row (Spark has those) into an empty one."""
    if column.type == HEADERS_TYPE:
        return [[(header["key"], header["value"]) for header in row or ()] for row in column.to_pylist()]
    return [plain.decode_block(block) for block in column.to_pylist()]


@cache
def store_answer(rows: int) -> tuple[HeaderCounts, Selected]:
    """Return what `store_blocks(rows)` holds, by the plain decoder."""
    return answer_of([plain.decode_block(plain.split_message(message)[0]) for message in store_sample()], rows)


@cache
def orders_answer(rows: int) -> tuple[HeaderCounts, Selected]:
    """Return what `orders_headers(rows)` holds."""
    return answer_of(as_lists(orders_sample()), rows)


def answer_of(sample: list[plain.HeaderList], rows: int) -> tuple[HeaderCounts, Selected]:
    """Add up a sample's rows as often as `draw` takes them, so that two million rows cost no more than the sample."""
    kept = [0] * 4
    selected = [0] * 6
    for row, headers in enumerate(sample):
        times = rows // len(sample) + (row < rows % len(sample))
        values = [value for _, value in headers]
        tenant, retry, amount = plain.select_three(headers)
        for total, here in (
            (kept, (
                len(headers),
                sum(len(key.encode()) for key, _ in headers),
                sum(len(value) for value in values if value is not None),
                values.count(None),
            )),
            (selected, (
                tenant is not None, len((tenant or "").encode()),
                retry is not None, retry or 0,
                amount is not None, amount or 0,
            )),
        ):  # fmt: skip
            for position, number in enumerate(here):
                total[position] += number * times
    return HeaderCounts(*kept), Selected(*selected)
