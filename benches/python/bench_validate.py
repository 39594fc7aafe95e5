"""Validate header blocks: say of every row whether it is whole."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from conftest import OBJECTS, Sizes, measure_column

from benches import data, plain
from letterhead import arrow as lha
from tests.reference import ops

STORE = "store blocks (kafka)"


def test_letterhead(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.batch)
    validate(measure, "letterhead", column, 100)


def test_letterhead_in_one_big_batch(measure: Callable[..., None], sizes: Sizes) -> None:
    column = data.store_blocks(sizes.big)
    validate(measure, "letterhead, one big batch", column, 5)


def test_reference(measure: Callable[..., None], sizes: Sizes) -> None:
    messages = data.store_blocks(sizes.plain).to_pylist()
    kept, _ = data.store_answer(sizes.plain)

    def check(errors: list[list[tuple]]) -> None:
        assert not any(errors)
        assert [len(row or ()) for row in ops.validate_rows(spoil(messages), "kafka")][:2] == [1, 0]

    measure(
        lambda: ops.validate_rows(messages, "kafka"),
        check,
        job="validate",
        source=STORE,
        side="tests/reference",
        rows=sizes.plain,
        headers=kept.headers,
        reads=sum(map(len, messages)),
        buffers=OBJECTS,
        rounds=3,
    )


def test_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    """Decode and see whether that fails: it finds fewer errors than we do, and names none."""
    messages = data.store_blocks(sizes.plain).to_pylist()
    kept, _ = data.store_answer(sizes.plain)

    def whole(block: bytes) -> bool:
        try:
            plain.decode_block(block)
        except (IndexError, UnicodeDecodeError):
            return False
        return True

    def check(verdicts: list[bool]) -> None:
        assert all(verdicts)
        assert not whole(spoil(messages)[0])

    measure(
        lambda: [whole(block) for block in messages],
        check,
        job="validate",
        source=STORE,
        side="plain Python, decode and see",
        rows=sizes.plain,
        headers=kept.headers,
        reads=sum(map(len, messages)),
        buffers=OBJECTS,
        rounds=5,
    )


def validate(measure: Callable[..., None], side: str, column: pa.Array, rounds: int) -> None:
    """Measure ours, which must find nothing here and one error in a spoilt copy."""

    def check(result: pa.Array) -> None:
        assert result.null_count == len(column) == len(result)
        spoilt = lha.validate(pa.array(spoil(column[:50].to_pylist()), pa.binary()), "kafka")
        assert spoilt.null_count == 49
        assert [error["code"] for error in spoilt[0].as_py()] == ["truncated"]

    measure_column(
        measure,
        column,
        lambda: lha.validate(column, "kafka"),
        check,
        job="validate",
        source=STORE,
        side=side,
        rounds=rounds,
    )


def spoil(messages: list[bytes]) -> list[bytes]:
    """Put a message that ends inside its key in the first place."""
    return [b"\x02\x06ke", *messages[1:]]
