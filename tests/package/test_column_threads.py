"""`threads=n`: the result and the error of one thread, for every operation and format."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers import strategies
from tests.helpers.implementations import binary_column
from tests.helpers.operations_by_name import apply
from tests.helpers.strategies import BATCHES, ONE, WRITTEN
from tests.reference.formats import FORMATS

pytestmark = pytest.mark.usefixtures("gil_stays_disabled")

ROWS = 2_500
"""More rows than one range has."""


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call returned, or the attributes of its error."""
    try:
        return call()
    except lh.HeaderError as error:
        return type(error), str(error), error.code, error.row, error.byte_offset, error.header, error.key, error.column


def assert_same(call: Callable[..., Any]) -> None:
    """Compare two and three threads with one."""
    expected = outcome(lambda: call(threads=1))
    for threads in (2, 3):
        result = outcome(lambda threads=threads: call(threads=threads))
        if isinstance(expected, tuple):
            assert result == expected
            continue
        assert type(result) is type(expected)
        assert result.equals(expected)
        if isinstance(result, pa.ChunkedArray):
            assert [len(chunk) for chunk in result.chunks] == [len(chunk) for chunk in expected.chunks]
        else:
            result.validate(full=True)


def tiled(rows: list[Any], drawn: list[Any], seed: int) -> list[Any]:
    """Repeat rows until there are enough, and put others at places by chance."""
    many = list(itertools.islice(itertools.cycle(rows or [None]), ROWS))
    for row in drawn:
        many[random.Random(seed).randrange(ROWS)] = row
        seed += 1
    return many


@pytest.mark.parametrize("format", ONE)
@settings(max_examples=4)
@given(data=st.data(), seed=st.integers(0, 1000), errors=st.sampled_from(["raise", "null", "column"]))
def test_threaded_reading_equals_single_thread(format: str, data: st.DataObject, seed: int, errors: Any) -> None:
    good = data.draw(st.lists(strategies.valid_bytes(format), min_size=1, max_size=3))
    rows = tiled(good, data.draw(st.lists(strategies.any_bytes(format), max_size=2)), seed)
    types = st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()])
    column = binary_column(rows).cast(data.draw(types))[data.draw(st.integers(0, 9)) :]
    columns = data.draw(strategies.columns(format))
    views = data.draw(st.booleans())
    input_column = data.draw(st.sampled_from([column, pa.chunked_array([column[:10], column[10:]])]))
    assert_same(lambda **threads: lha.decode(input_column, format, errors=errors, views=views, **threads))
    assert_same(lambda **threads: lha.validate(input_column, format, **threads))
    assert_same(
        lambda **threads: lha.select(input_column, columns, format=format, errors=errors, views=views, **threads)
    )


@pytest.mark.parametrize("format", WRITTEN)
@settings(max_examples=4)
@given(
    data=st.data(), on_loss=st.sampled_from(["raise", "drop", "report"]), errors=st.sampled_from(["raise", "column"])
)
def test_threaded_writing_equals_single_thread(format: str, data: st.DataObject, on_loss: Any, errors: Any) -> None:
    rows = data.draw(st.lists(strategies.valid_bytes(format), min_size=1, max_size=3))
    column = binary_column(tiled(rows, data.draw(st.lists(strategies.any_bytes(format), max_size=1)), 1))
    read = lha.decode(column, format, errors="null")[data.draw(st.integers(0, 9)) :]
    assert_same(lambda **threads: lha.encode(read, format, on_loss=on_loss, **threads))
    target = data.draw(st.sampled_from(WRITTEN))
    types: Any = "binary" if FORMATS[target].traits.types else "be"
    assert_same(
        lambda **threads: lha.convert(
            column, format, target=target, on_loss=on_loss, types=types, errors=errors, **threads
        )
    )


@pytest.mark.parametrize("format", BATCHES)
def test_batches_are_validated_by_threads(format: str) -> None:
    assert_same(lambda **threads: lha.validate(binary_column([b"\1", None, b""] * 2_000), format, **threads))


def test_lists_are_selected_and_validated_by_threads() -> None:
    headers = [{"key": "a", "value": b"x" * 20}, {"key": "b", "value": None}]
    list_type = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    for type in (list_type, pa.large_list(list_type.value_type)):
        lists = pa.array([headers, None, []] * 2_000, type)[1:]
        assert_same(lambda lists=lists, **threads: lha.select(lists, {"a": "string"}, **threads))
        assert_same(lambda lists=lists, **threads: lha.validate(lists, "kafka", **threads))


@pytest.mark.parametrize("bad", [0, 1023, 1024, 2_499])
def test_first_bad_row_is_raised(bad: int) -> None:
    rows: list[bytes | None] = [lh.encode([("a", b"x")], "kafka")] * ROWS
    rows[bad] = b"\1"
    rows[-1] = b"\x02"
    for column in (binary_column(rows), pa.chunked_array([binary_column(rows[:7]), binary_column(rows[7:])])):
        with pytest.raises(lh.DecodeError) as caught:
            lha.decode(column, "kafka", threads=2)
        assert caught.value.row == bad


def chunks_of(rows: list[Any], lengths: list[int]) -> list[pa.Array]:
    """Divide rows into arrays of these lengths."""
    ends = itertools.accumulate(lengths)
    return [binary_column(rows[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def parts_until(parts: Iterator[Any], error: type[Exception]) -> list[int]:
    """Return the lengths of the parts before an error; none comes after it."""
    lengths = []
    with pytest.raises(error) as caught:
        lengths.extend(len(part) for part in parts)
    with pytest.raises(ValueError, match="the stream failed at an earlier chunk"):
        next(parts)
    assert getattr(caught.value, "row", None) in (None, sum(lengths) + 5)
    return lengths


LENGTHS = [[1_200] * 4, [1_300, 1_100, 1_200], [0, 0, 1_100, 1_200, 1, 1_100], [4_500, 0], [10, 3_000, 10, 3_000]]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_chunks_of_threads_equal_those_of_one(lengths: list[int]) -> None:
    rows: list[bytes | None] = [lh.encode([("a", b"%d" % row)], "kafka") for row in range(sum(lengths))]
    rows[3_000] = b"\1"
    column = pa.chunked_array(chunks_of(rows, lengths), pa.binary())
    for errors in ("raise", "null", "column"):
        assert_same(lambda errors=errors, **threads: lha.decode(column, "kafka", errors=errors, **threads))
        assert_same(lambda errors=errors, **threads: lha.select(column, {"a": "string"}, errors=errors, **threads))
        assert_same(
            lambda errors=errors, **threads: lha.convert(
                column, "kafka", target="kip82-typed", types="binary", errors=errors, **threads
            )
        )
    assert_same(lambda **threads: lha.validate(column, "kafka", **threads))
    assert_same(lambda **threads: lha.encode(lha.decode(column, "kafka", errors="null"), "kafka", **threads))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("bad", range(4))
def test_chunks_before_chunk_error_are_returned(threads: int, bad: int) -> None:
    rows: list[bytes | None] = [lh.encode([("a", b"x")], "kafka")] * 4_800
    for chunk in range(bad, 4):
        rows[1_200 * chunk + 5] = b"\1"
    chunks = pa.chunked_array(chunks_of(rows, [1_200] * 4))
    parts = iter(apply("decode", chunks, "kafka", threads=threads))
    assert parts_until(parts, lh.DecodeError) == [1_200] * bad


@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_messages_of_chunks_are_read_by_threads(errors: Any) -> None:
    data = b"".join(lh.encode(lh.Message(offset=row, value=b"x" * 40), "kip82-message") or b"" for row in range(1_000))
    rows: list[Any] = [data, data, None, data, data[:-1], data, data, data]
    column = pa.chunked_array(chunks_of(rows, [2, 2, 2, 2]), pa.binary())
    assert_same(lambda **threads: lha.messages(column, "kip82-messages", errors=errors, **threads))
    assert_same(lambda **threads: lha.messages(column[:4], "kip82-messages", headers={"a": "int32"}, **threads))
    assert_same(lambda **threads: lha.messages(column.chunk(0), "kip82-messages", **threads))


def reader_of(batches: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]) -> pa.RecordBatchReader:
    """Return a stream whose batches are made when they are requested, from one batch of messages."""
    messages = lha.decode(binary_column([lh.encode(lh.Message(value=b"x"), "kip82-message")] * 1_200), "kip82-message")
    batch = pa.RecordBatch.from_struct_array(messages)
    return pa.RecordBatchReader.from_batches(batch.schema, batches(batch))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("good", range(4))
def test_chunks_before_a_failing_input_are_returned(threads: int, good: int) -> None:
    def batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from [batch] * good
        raise OSError("disk on fire")

    parts = iter(apply("encode", reader_of(batches), "kip82-message", threads=threads))
    assert parts_until(parts, ValueError) == [1_200] * good


def test_at_most_one_chunk_per_thread_is_read_ahead() -> None:
    read = 0

    def batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        nonlocal read
        for _ in range(10):
            read += 1
            yield batch

    parts = apply("encode", reader_of(batches), "kip82-message", threads=3)
    assert [read for _ in parts] == [3, 3, 3, 6, 6, 6, 9, 9, 9, 10]


@pytest.mark.parametrize("limit", [10_000, 40_000, 200_000])
def test_streams_are_split_as_by_one_thread(limit: int) -> None:
    column = binary_column([lh.encode([("a", b"x" * (row % 50))], "kafka") for row in range(ROWS)] + [b"\1"])
    chunked = pa.chunked_array([column, column, column[:-1]])
    for operation in ("decode", "validate"):
        result = [
            [
                pa.array(part)
                for part in apply(
                    operation,  # type: ignore[arg-type]
                    chunked,
                    "kafka",
                    errors="null",
                    threads=threads,
                    max_offset=limit,
                )
            ]
            for threads in (1, 2)
        ]
        assert result[0] == result[1]
    assert_same(lambda **threads: lha.decode(column, "kafka", errors="null", **threads))


@pytest.mark.parametrize(
    ("threads", "error", "message"),
    [
        (0, ValueError, "threads must be at least 1, not 0"),
        (-1, ValueError, "threads must be at least 1, not -1"),
        ("2", TypeError, "threads must be int, not str"),
        (2.0, TypeError, "threads must be int, not float"),
        (True, TypeError, "threads must be int, not bool"),
        (None, TypeError, "threads must be int, not NoneType"),
    ],
)
def test_thread_count_must_be_positive_integer(threads: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lha.decode(binary_column([b""]), "kafka", threads=threads)


def test_thread_count_may_exceed_rows_and_processors() -> None:
    column = binary_column([b""] * 3)
    assert lha.decode(column, "kafka", threads=2**40).to_pylist() == [[], [], []]
    many = binary_column([b""] * ROWS)
    assert lha.decode(many, "kafka", threads=64).equals(lha.decode(many, "kafka"))


@pytest.mark.parametrize("errors", ["raise", "null", "column"])
@pytest.mark.parametrize("chunked", [False, True])
def test_batches_decompressed_by_one_thread_alone_read_equally(errors: Any, chunked: bool) -> None:
    def batch(size: int) -> bytes:
        return lh.batch([{"value": bytes([size % 251]) * size, "headers": [("k", b"v")]}], codec="zstd")

    # Larger than the share of a thread, over the limit, or together larger than the share.
    sizes = [9 << 20, 10, 1 << 20, 17 << 20, *[10] * 40, 9 << 20, *[1 << 20] * 12, 10]
    column = pa.array([batch(size) for size in sizes] * 2)
    data = pa.chunked_array([column, column]) if chunked else column

    def read(threads: int) -> Any:
        limits = lh.Limits(decompressed_bytes=16 << 20)
        try:
            result = lha.messages(data, "record-batch", errors=errors, limits=limits, threads=threads)
            return pa.chunked_array(result) if chunked else result
        except lh.HeaderError as error:
            return str(error)

    expected = read(1)
    for threads in (2, 8):
        assert read(threads) == expected
