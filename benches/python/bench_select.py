"""Select three typed headers (a string, an int32, an int64) from bytes and from list columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import answers
import pyarrow as pa
from conftest import RELEASED, Sizes

from benches import data, plain
from letterhead import arrow as lha
from tests.reference import ops

STORE = "store blocks (kafka)"
MESSAGES = "store values (streams-timestamped)"
ORDERS = "orders (list column)"


def test_blocks(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.batch)
    select(measure, STORE, "letterhead", column, lambda: lha.select(column, data.COLUMNS), 100)


def test_blocks_in_one_big_batch(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.big)
    select(measure, STORE, "letterhead, one big batch", column, lambda: lha.select(column, data.COLUMNS), 5)


def test_blocks_by_decoding_first(measure: Callable[..., None], sizes: Sizes) -> None:
    """Two steps of ours instead of one: what `select` on bytes saves."""
    column = data.store_blocks(sizes.batch)

    def run() -> Any:
        return lha.select(lha.decode(column, "kafka"), data.COLUMNS)

    select(measure, STORE, "letterhead, decode then select", column, run, 60)


def test_blocks_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.plain)

    def run() -> pa.RecordBatch:
        return plain_batch([plain.decode_block(block) for block in column.to_pylist()])

    select(measure, STORE, "plain Python to Arrow", column, run, 5)


def test_blocks_reference(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.plain)
    messages = column.to_pylist()

    def run() -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict(ops.select_rows(messages, "kafka", data.COLUMNS), data.SELECTED_SCHEMA)

    select(measure, STORE, "tests/reference to Arrow", column, run, 3)


def test_messages(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_values(sizes.batch)
    select(
        measure,
        MESSAGES,
        "letterhead",
        column,
        lambda: lha.select(column, data.COLUMNS, format="streams-timestamped"),
        100,
    )


def test_messages_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_values(sizes.plain)

    def run() -> pa.RecordBatch:
        return plain_batch([plain.decode_block(plain.split_message(message)[0]) for message in column.to_pylist()])

    select(measure, MESSAGES, "plain Python to Arrow", column, run, 5)


def test_lists(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.orders_headers(sizes.batch)
    select(measure, ORDERS, "letterhead", column, lambda: lha.select(column, data.COLUMNS), 100)


def test_lists_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.orders_headers(sizes.plain)
    select(measure, ORDERS, "plain Python to Arrow", column, lambda: plain_batch(data.as_lists(column)), 5)


def plain_batch(rows: list[plain.HeaderList]) -> pa.RecordBatch:
    """Build the three columns as a data engineer would."""
    columns = list(zip(*map(plain.select_three, rows), strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, data.SELECTED_SCHEMA, strict=True)],
        schema=data.SELECTED_SCHEMA,
    )


def select(
    measure: Callable[..., None], source: str, side: str, column: pa.Array, run: Callable[[], Any], rounds: int
) -> None:
    """Measure one way from a column to the three typed columns."""
    kept, selected = (data.orders_answer if source == ORDERS else data.store_answer)(len(column))

    def check(result: Any) -> None:
        assert answers.selected_in(result) == selected

    measure(
        run,
        check,
        job="select 3",
        source=source,
        side=side,
        rows=len(column),
        headers=kept.headers,
        reads=column.nbytes,
        writes=lambda result: result.nbytes,
        buffers=RELEASED,
        rounds=rounds,
    )
