"""Encode list columns of headers into header blocks."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from conftest import OBJECTS, RELEASED, Sizes, measure_column

from benches import data, plain
from letterhead import arrow as lha
from tests.reference import ops

STORE = "store headers to blocks (kafka)"


def test_letterhead(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_headers(sizes.batch)
    encode(measure, "letterhead", column, lambda: lha.encode(column, "kafka"), 100)


def test_letterhead_in_one_big_batch(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_headers(sizes.big)
    encode(measure, "letterhead, one big batch", column, lambda: lha.encode(column, "kafka"), 5)


def test_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_headers(sizes.plain)

    def run() -> pa.Array:
        return pa.array([plain.encode_block(row) for row in data.as_lists(column)], pa.binary())

    encode(measure, "plain Python to Arrow", column, run, 5)


def test_reference(measure: Callable[..., None], sizes: Sizes) -> None:
    """From lists of headers, which were made before: less than the job of the others."""
    column = data.store_headers(sizes.plain)
    rows = data.as_lists(column)
    kept, _ = data.store_answer(sizes.plain)

    def check(blocks: list[bytes]) -> None:
        assert blocks == data.store_blocks(sizes.plain).to_pylist()

    measure(
        lambda: ops.encode_rows(rows, "kafka"),
        check,
        job="encode",
        source=STORE,
        side="tests/reference, from tuples",
        rows=sizes.plain,
        headers=kept.headers,
        reads=column.nbytes,
        buffers=OBJECTS,
        rounds=3,
    )


def encode(measure: Callable[..., None], side: str, column: pa.Array, run: Callable[[], pa.Array], rounds: int) -> None:
    """Measure one way from a list column to blocks."""

    def check(result: pa.Array) -> None:
        assert result.equals(data.store_blocks(len(column)))

    measure_column(measure, column, run, check, job="encode", source=STORE, side=side, buffers=RELEASED, rounds=rounds)
