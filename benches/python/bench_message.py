"""One message at a time: what a Python consumer pays for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import answers
from conftest import OBJECTS, Sizes

import letterhead as lh
from benches import data, plain
from tests.reference import ops

STORE = "store blocks (kafka), one call each"


def test_letterhead(measure: Callable[..., None], sizes: Sizes) -> None:
    decode_each(measure, "letterhead", sizes, lambda block: list(lh.decode(block, "kafka")), tuple)


def test_letterhead_pairs(measure: Callable[..., None], sizes: Sizes) -> None:
    decode_each(measure, "letterhead, plain pairs", sizes, lambda block: lh.decode(block, "kafka").items(), tuple)


def test_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    decode_each(measure, "plain Python", sizes, plain.decode_block, tuple)


def test_plain_python_unrolled(measure: Callable[..., None], sizes: Sizes) -> None:
    decode_each(measure, "plain Python, unrolled", sizes, plain.decode_block_unrolled, tuple)


def test_last_letterhead(measure: Callable[..., None], sizes: Sizes) -> None:
    last_of_each(measure, "letterhead", sizes, lambda block: lh.decode(block, "kafka").get("tenant"))


def test_last_plain_python(measure: Callable[..., None], sizes: Sizes) -> None:
    last_of_each(measure, "plain Python", sizes, lambda block: plain.last_value(plain.decode_block(block), "tenant"))


def test_last_plain_python_unrolled(measure: Callable[..., None], sizes: Sizes) -> None:
    def last(block: bytes) -> bytes | None:
        return plain.last_value(plain.decode_block_unrolled(block), "tenant")

    last_of_each(measure, "plain Python, unrolled", sizes, last)


def test_reference(measure: Callable[..., None], sizes: Sizes) -> None:
    def pair(header: tuple[str, Any, bytes | None]) -> tuple[str, bytes | None]:
        return header[0], header[2]

    decode_each(measure, "tests/reference", sizes, lambda block: ops.decode(block, "kafka"), pair)


def decode_each(
    measure: Callable[..., None],
    side: str,
    sizes: Sizes,
    decode: Callable[[bytes], Any],
    pair: Callable[[Any], tuple[str, bytes | None]],
) -> None:
    """Measure one decoder."""
    kept, _ = data.store_answer(sizes.plain)

    def check(messages: list[bytes]) -> None:
        assert answers.counts_of_rows([[pair(header) for header in decode(block)] for block in messages]) == kept

    once_a_message(measure, "decode one message", side, sizes, decode, check)


def last_of_each(measure: Callable[..., None], side: str, sizes: Sizes, last: Callable[[bytes], bytes | None]) -> None:
    """Measure one way to the last value of one key."""
    _, chosen = data.store_answer(sizes.plain)

    def check(messages: list[bytes]) -> None:
        tenants = [value for value in map(last, messages) if value is not None]
        assert (len(tenants), sum(map(len, tenants))) == (chosen.tenants, chosen.tenant_bytes)

    once_a_message(measure, "one header of one message", side, sizes, last, check)


def once_a_message(
    measure: Callable[..., None],
    job: str,
    side: str,
    sizes: Sizes,
    read: Callable[[bytes], Any],
    check: Callable[[list[bytes]], None],
) -> None:
    """Measure what is called once a message."""
    messages = data.store_blocks(sizes.plain).to_pylist()
    kept, _ = data.store_answer(sizes.plain)

    def run() -> None:
        # Each message is dropped before the next, as in a consumer; keeping all would measure the garbage collector.
        for block in messages:
            read(block)

    measure(
        run,
        lambda _: check(messages),
        job=job,
        source=STORE,
        side=side,
        rows=sizes.plain,
        headers=kept.headers,
        reads=sum(map(len, messages)),
        buffers=OBJECTS,
        rounds=10,
    )
