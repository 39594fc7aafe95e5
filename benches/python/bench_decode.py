"""Decode whole columns: header blocks and store values into lists of headers."""

from __future__ import annotations

from collections.abc import Callable

import answers
import numpy as np
import pyarrow as pa
from conftest import KEPT, OBJECTS, RELEASED, REUSED, Sizes, measure_column

from benches import data, plain
from letterhead import arrow as lha
from tests.reference import ops

STORE = "store blocks (kafka)"
MESSAGES = "store values (streams-timestamped)"


def test_letterhead(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.batch)
    decode_blocks(measure, "letterhead", column, lambda: lha.decode(column, "kafka"), RELEASED, 100)


def test_letterhead_keeping_every_output(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.batch)
    outputs = []

    def run() -> pa.Array:
        outputs.append(lha.decode(column, "kafka"))
        return outputs[-1]

    decode_blocks(measure, "letterhead, every output kept", column, run, KEPT, 60)


def test_letterhead_in_one_big_batch(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.big)
    decode_blocks(measure, "letterhead, one big batch", column, lambda: lha.decode(column, "kafka"), RELEASED, 5)


def test_copy(measure: Callable[..., None], sizes: Sizes) -> None:
    """Copy (input + output) / 2 bytes: the memory traffic of the job with no work in it."""
    target = np.zeros(half_the_traffic(sizes), np.uint8)
    source = np.ones_like(target)

    def run() -> np.ndarray:
        np.copyto(target, source)
        return target

    copy(measure, "memcpy of (input + output) / 2 bytes", sizes, run, REUSED, 100)


def test_copy_keeping_every_output(measure: Callable[..., None], sizes: Sizes) -> None:
    """The same, to pages that were never touched: what the machine asks for them, whoever writes."""
    source = np.ones(half_the_traffic(sizes), np.uint8)
    outputs = []

    def run() -> np.ndarray:
        outputs.append(source.copy())
        return outputs[-1]

    copy(measure, "memcpy, every output kept", sizes, run, KEPT, 60)


def test_plain_python_to_arrow(measure: Callable[..., None], sizes: Sizes) -> None:
    """The same job as ours: a column in, a column out."""
    column = data.store_blocks(sizes.plain)

    def run() -> pa.Array:
        return pa.array([plain.decode_block(block) for block in column.to_pylist()], data.HEADERS_TYPE)

    decode_blocks(measure, "plain Python to Arrow", column, run, RELEASED, 5)


def test_plain_python_objects(measure: Callable[..., None], sizes: Sizes) -> None:
    """Less than our job: the tuples are made, no column is built of them."""
    column = data.store_blocks(sizes.plain)
    messages = column.to_pylist()
    kept, _ = data.store_answer(sizes.plain)

    def check(rows: list[plain.HeaderList]) -> None:
        assert answers.counts_of_rows(rows) == kept

    measure(
        lambda: [plain.decode_block(block) for block in messages],
        check,
        job="decode",
        source=STORE,
        side="plain Python, to tuples only",
        rows=sizes.plain,
        headers=kept.headers,
        reads=column.nbytes,
        buffers=OBJECTS,
        rounds=5,
    )


def test_reference(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.plain)
    messages = column.to_pylist()
    kept, _ = data.store_answer(sizes.plain)

    def check(rows: list[plain.HeaderList]) -> None:
        assert answers.counts_of_rows([[(key, value) for key, _, value in row] for row in rows]) == kept

    measure(
        lambda: ops.decode_rows(messages, "kafka"),
        check,
        job="decode",
        source=STORE,
        side="tests/reference",
        rows=sizes.plain,
        headers=kept.headers,
        reads=column.nbytes,
        buffers=OBJECTS,
        rounds=3,
    )


def test_messages(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_values(sizes.batch)
    kept, _ = data.store_answer(sizes.batch)

    def check(result: pa.StructArray) -> None:
        assert answers.counts_of_list(result.field("headers")) == kept
        assert result.field("payload").null_count == 0

    measure_column(
        measure,
        column,
        lambda: lha.decode(column, "streams-timestamped"),
        check,
        job="decode",
        source=MESSAGES,
        side="letterhead",
    )


def test_messages_plain_python_to_arrow(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_values(sizes.plain)
    kept, _ = data.store_answer(sizes.plain)

    def run() -> pa.StructArray:
        headers, timestamps, payloads = [], [], []
        for message in column.to_pylist():
            block, rest = plain.split_message(message)
            headers.append(plain.decode_block(block))
            timestamps.append(int.from_bytes(rest[:8], "big", signed=True))
            payloads.append(rest[8:])
        return pa.StructArray.from_arrays(
            [pa.array(headers, data.HEADERS_TYPE), pa.array(timestamps, pa.int64()), pa.array(payloads, pa.binary())],
            ["headers", "timestamp", "payload"],
        )

    def check(result: pa.StructArray) -> None:
        assert answers.counts_of_list(result.field("headers")) == kept
        assert result.equals(lha.decode(column, "streams-timestamped"))

    measure_column(measure, column, run, check, job="decode", source=MESSAGES, side="plain Python to Arrow", rounds=5)


def half_the_traffic(sizes: Sizes) -> int:
    """Return half of the bytes that the decode of a batch reads and writes: a copy reads and writes as many."""
    column = data.store_blocks(sizes.batch)
    return (column.nbytes + lha.decode(column, "kafka").nbytes) // 2


def copy(
    measure: Callable[..., None], side: str, sizes: Sizes, run: Callable[[], np.ndarray], buffers: str, rounds: int
) -> None:
    """Measure one way to copy."""
    kept, _ = data.store_answer(sizes.batch)
    traffic = half_the_traffic(sizes)

    def check(result: np.ndarray) -> None:
        assert int(result.sum()) == traffic

    measure(
        run,
        check,
        job="decode",
        source=STORE,
        side=side,
        rows=sizes.batch,
        headers=kept.headers,
        reads=traffic,
        writes=lambda result: result.nbytes,
        buffers=buffers,
        rounds=rounds,
    )


def decode_blocks(
    measure: Callable[..., None], side: str, column: pa.Array, run: Callable[[], pa.Array], buffers: str, rounds: int
) -> None:
    """Measure one way from a column of blocks to a list column."""
    kept, _ = data.store_answer(len(column))

    def check(result: pa.Array) -> None:
        assert result.type == data.HEADERS_TYPE
        assert len(result) == len(column)
        assert answers.counts_of_list(result) == kept

    measure_column(measure, column, run, check, job="decode", source=STORE, side=side, buffers=buffers, rounds=rounds)
