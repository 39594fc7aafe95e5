"""The formats whose values have types or whose keys are ids, column by column: five typed headers a message.

The whole corpus, in batches of the usual size; a plain Python side reads its first rows. The crates of Apache Iggy read
the same blocks (benches/iggy), and stand in the same groups of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from conftest import OBJECTS, Sizes

import letterhead as lh
from benches import typed
from letterhead import arrow as lha
from tests.reference import ops

each_format = pytest.mark.parametrize("corpus", typed.FORMATS)
each_corpus = pytest.mark.parametrize("corpus", [*typed.FORMATS, typed.SHUFFLED])


@each_corpus
def test_decode(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    name = typed.format_of(corpus)
    blocks, headers = typed.blocks(corpus, typed.ROWS), typed.headers(corpus, typed.ROWS)
    in_batches(measure, sizes, "decode", corpus, blocks, lambda batch: lha.decode(batch, name), headers)


@each_format
def test_decode_in_one_big_batch(measure: Callable[..., None], corpus: str) -> None:
    blocks = typed.blocks(corpus, typed.ROWS)

    def check(result: pa.Array) -> None:
        assert result.equals(typed.headers(corpus, typed.ROWS))

    measure(
        lambda: lha.decode(blocks, corpus),
        check,
        job="decode",
        source=typed.source(corpus),
        side="letterhead, one big batch",
        rows=len(blocks),
        headers=len(blocks) * typed.HEADERS_A_ROW,
        reads=blocks.nbytes,
        writes=lambda result: result.nbytes,
        rounds=10,
    )


@each_format
def test_decode_reference(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    messages = typed.blocks(corpus, sizes.plain).to_pylist()
    expected = typed.triples(corpus, sizes.plain)

    def check(rows: list[list[Any]]) -> None:
        assert [[tuple(header) for header in row] for row in rows] == expected

    in_python(measure, sizes, "decode", corpus, messages, lambda: ops.decode_rows(messages, corpus), check)


@each_corpus
def test_encode(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    name = typed.format_of(corpus)
    blocks, headers = typed.blocks(corpus, typed.ROWS), typed.headers(corpus, typed.ROWS)
    in_batches(measure, sizes, "encode", corpus, headers, lambda batch: lha.encode(batch, name), blocks)


@each_format
def test_encode_reference(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    """From tuples, which were made before: less than the job of the others."""
    messages = typed.blocks(corpus, sizes.plain).to_pylist()
    rows = typed.triples(corpus, sizes.plain)

    def check(written: list[bytes]) -> None:
        assert written == messages

    in_python(measure, sizes, "encode", corpus, messages, lambda: ops.encode_rows(rows, corpus), check)


@each_corpus
def test_select(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    name, columns = typed.format_of(corpus), columns_of(corpus)
    blocks, expected = typed.blocks(corpus, typed.ROWS), typed.selected(typed.ROWS).to_struct_array()
    in_batches(
        measure, sizes, "select 3", corpus, blocks, lambda batch: lha.select(batch, columns, format=name), expected
    )


@each_format
def test_select_reference(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    messages, columns = typed.blocks(corpus, sizes.plain).to_pylist(), columns_of(corpus)

    def check(columns: dict[str, list[Any]]) -> None:
        assert columns == typed.selected(sizes.plain).to_pydict()

    in_python(measure, sizes, "select 3", corpus, messages, lambda: ops.select_rows(messages, corpus, columns), check)


@each_corpus
def test_validate(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    name, blocks = typed.format_of(corpus), typed.blocks(corpus, typed.ROWS)
    spoilt = lha.validate(pa.array(spoil(blocks[:50].to_pylist()), pa.binary()), name)
    assert spoilt.null_count == 49
    assert [error["code"] for error in spoilt[0].as_py()] == ["truncated"]
    nothing = pa.nulls(len(blocks), spoilt.type)
    in_batches(measure, sizes, "validate", corpus, blocks, lambda batch: lha.validate(batch, name), nothing)


@each_format
def test_validate_reference(measure: Callable[..., None], sizes: Sizes, corpus: str) -> None:
    messages = typed.blocks(corpus, sizes.plain).to_pylist()

    def check(errors: list[Any]) -> None:
        assert not any(errors)
        assert [len(row or ()) for row in ops.validate_rows(spoil(messages), corpus)][:2] == [1, 0]

    in_python(measure, sizes, "validate", corpus, messages, lambda: ops.validate_rows(messages, corpus), check)


def columns_of(corpus: str) -> dict[str, Any]:
    """Ask for the three columns, by id where the keys are ids."""
    if corpus != "kip82-int":
        return typed.COLUMNS
    return {name: lh.field(type, key=typed.IDS[name]) for name, type in typed.COLUMNS.items()}


def spoil(messages: list[bytes]) -> list[bytes]:
    """Cut the last byte off the first message."""
    return [messages[0][:-1], *messages[1:]]


def in_batches(
    measure: Callable[..., None],
    sizes: Sizes,
    job: str,
    corpus: str,
    column: pa.Array,
    work: Callable[[pa.Array], pa.Array],
    expected: pa.Array,
) -> None:
    """Measure ours on the whole corpus, batch by batch, each output being freed before the next is made."""
    starts = range(0, len(column), sizes.batch)
    batches = [column[start : start + sizes.batch] for start in starts]

    def run() -> None:
        for batch in batches:
            work(batch)

    def check(_: None) -> None:
        for start, batch in zip(starts, batches, strict=True):
            assert work(batch).equals(expected[start : start + sizes.batch])

    measure(
        run,
        check,
        job=job,
        source=typed.source(corpus),
        side="letterhead",
        rows=sizes.batch,
        headers=len(column) * typed.HEADERS_A_ROW,
        reads=batches[0].nbytes,
        writes=lambda _: work(batches[0]).nbytes,
        rounds=40,
    )


def in_python(
    measure: Callable[..., None],
    sizes: Sizes,
    job: str,
    corpus: str,
    messages: list[bytes],
    run: Callable[[], Any],
    check: Callable[[Any], None],
) -> None:
    """Measure the reference on the first rows."""
    measure(
        run,
        check,
        job=job,
        source=typed.source(corpus),
        side="tests/reference",
        rows=sizes.plain,
        headers=sizes.plain * typed.HEADERS_A_ROW,
        reads=sum(map(len, messages)),
        buffers=OBJECTS,
        rounds=3,
    )
