"""A stream is read once, and says so: what was read, failed, closed or exported raises instead of returning no rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import letterhead as lh
import letterhead.arrow as lha
from letterhead.errors import InvalidStateStoreError
from letterhead.kip82 import ConsumerRecord, MessageLog, ProducerRecord
from letterhead.read import Reader
from letterhead.state.interfaces import StoreIterator

SAMPLES = Path(__file__).parents[1] / "samples"
ROWS = 10_000


def segments() -> Reader:
    return lh.read.segments(SAMPLES / "orders-0", columns=["offset", "headers"])


def stored_rows() -> Reader:
    pytest.importorskip("rocksdict")
    return lh.read.state(SAMPLES / "streams-state-0_0", store="sessions", columns=["key"])


def blocks() -> pa.ChunkedArray[Any]:
    return pa.chunked_array([pa.array([bytes(1)] * 3, pa.binary()) for _ in range(2)])


class OfOtherLibrary:
    """A column that is neither an array nor a chunked array of pyarrow, whose results are streams."""

    def __init__(self, column: pa.ChunkedArray[Any]) -> None:
        self.column = column

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.column.__arrow_c_stream__(requested_schema)


def decoded() -> Any:
    return lha.decode(OfOtherLibrary(blocks()), "kafka")


STREAMS = [pytest.param(segments, id="segments"), pytest.param(stored_rows, id="state")]
EXPORTS: list[Any] = [
    pytest.param(lambda stream: list(stream), id="for"),
    pytest.param(lambda stream: pa.table(stream), id="pa.table"),
    pytest.param(lambda stream: pl.DataFrame(stream), id="polars"),
    pytest.param(lambda stream: pa.RecordBatchReader.from_stream(stream).read_all(), id="from_stream"),
]


@pytest.mark.parametrize("again", [*EXPORTS, pytest.param(lambda reader: reader.read_all(), id="read_all")])
@pytest.mark.parametrize("first", [*EXPORTS, pytest.param(lambda reader: reader.read_all(), id="read_all")])
@pytest.mark.parametrize("make", STREAMS)
def test_second_read_of_reader_raises(
    make: Callable[[], Reader], first: Callable[[Any], Any], again: Callable[[Any], Any]
) -> None:
    reader = make()
    assert len(first(reader)) > 0
    with pytest.raises(ValueError, match=r"the reader was (read to its end|exported)"):
        again(reader)


COLUMN_EXPORTS = [EXPORTS[0], pytest.param(pl.Series, id="polars"), pytest.param(pa.chunked_array, id="pyarrow")]


@pytest.mark.parametrize("again", COLUMN_EXPORTS)
@pytest.mark.parametrize("first", COLUMN_EXPORTS)
def test_second_read_of_column_stream_raises(first: Callable[[Any], Any], again: Callable[[Any], Any]) -> None:
    stream = decoded()
    assert len(first(stream)) > 0
    with pytest.raises(ValueError, match=r"the stream was (read to its end|exported)"):
        again(stream)


def test_duckdb_relation_of_reader_cannot_be_read_twice() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(segments())
    assert len(relation.fetchall()) == ROWS
    with pytest.raises(duckdb.Error, match="the reader was exported"):
        relation.fetchall()


def test_reader_schema_can_be_exported_at_any_time() -> None:
    reader = segments()
    reader.read_all()
    assert pa.schema(reader).equals(reader.schema)
    reader.close()
    assert pa.schema(reader).equals(reader.schema)


@pytest.mark.parametrize("make", [segments, decoded])
def test_stream_is_exported_once_even_if_unread(make: Callable[[], Any]) -> None:
    stream = make()
    capsule = stream.__arrow_c_stream__()
    for read in (stream.__arrow_c_stream__, lambda: next(stream), lambda: list(stream)):
        with pytest.raises(ValueError, match="exported"):
            read()
    del capsule


def test_cast_stream_is_exported_once() -> None:
    stream = decoded()
    type = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    requested = pa.field("", type).__arrow_c_schema__()
    capsule = stream.__arrow_c_stream__(requested)
    with pytest.raises(ValueError, match="exported"):
        stream.__arrow_c_stream__(requested)
    with pytest.raises(ValueError, match="exported"):
        next(stream)
    del capsule


@pytest.mark.parametrize("make", [segments, decoded])
def test_iteration_left_early_continues(make: Callable[[], Any]) -> None:
    whole = len(list(make()))
    stream = make()
    for _ in stream:
        break
    assert len(list(stream)) == whole - 1
    with pytest.raises(ValueError, match="read to its end"):
        list(stream)


def test_export_after_a_partial_read_returns_the_other_rows() -> None:
    reader = segments()
    first = next(reader)
    assert len(pa.table(reader)) == ROWS - len(first)


@pytest.mark.parametrize("make", [segments, decoded])
def test_next_after_end_raises_again(make: Callable[[], Any]) -> None:
    stream = make()
    list(stream)
    assert next(stream, None) is None


@pytest.mark.parametrize("read", [*EXPORTS, pytest.param(lambda reader: reader.read_all(), id="read_all"), next])
def test_reading_a_closed_reader_raises(read: Callable[[Any], Any]) -> None:
    reader = segments()
    next(reader)
    reader.close()
    reader.close()
    with pytest.raises(ValueError, match="the reader is closed"):
        read(reader)


def test_closing_reader_stops_library_that_has_its_stream() -> None:
    reader = segments()
    exported = pa.RecordBatchReader.from_stream(reader)
    exported.read_next_batch()
    reader.close()
    with pytest.raises(Exception, match="the reader is closed"):
        exported.read_next_batch()


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a log whose second half has a damaged batch."""
    source = next((SAMPLES / "orders-0").glob("*.log")).read_bytes()
    directory = tmp_path / "orders-0"
    directory.mkdir()
    middle = len(source) // 2
    (directory / f"{0:020}.log").write_bytes(source[:middle] + bytes([source[middle] ^ 1]) + source[middle + 1 :])
    return directory


@pytest.mark.parametrize("again", [*EXPORTS, pytest.param(lambda reader: reader.read_all(), id="read_all"), next])
def test_failed_reader_raises_each_time(damaged: Path, again: Callable[[Any], Any]) -> None:
    reader = lh.read.segments(damaged, columns=["offset"])
    with pytest.raises(lh.DecodeError):
        reader.read_all()
    for _ in range(2):
        with pytest.raises(ValueError, match="the reader failed"):
            again(reader)


def test_exported_stream_that_failed_does_not_end(damaged: Path) -> None:
    exported = pa.RecordBatchReader.from_stream(lh.read.segments(damaged, columns=["offset"]))
    with pytest.raises(Exception, match="the checksum is"):
        exported.read_all()
    with pytest.raises(Exception, match="failed"):
        exported.read_next_batch()


def test_interrupt_makes_reader_fail() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise KeyboardInterrupt

    reader = Reader(pa.schema({"n": pa.int64()}), batches)
    with pytest.raises(KeyboardInterrupt):
        list(reader)
    with pytest.raises(ValueError, match="the reader failed"):
        next(reader)


def test_scan_of_consumed_stream_raises() -> None:
    stream = decoded()
    assert lha.scan(stream, "kafka").to_dict()["rows"] == 6
    with pytest.raises(ValueError, match="read to its end"):
        lha.scan(stream, "kafka")


def test_conventions_of_consumed_stream_raise() -> None:
    from letterhead.conventions import columns

    stream = lha.select(OfOtherLibrary(blocks()), {"traceparent": "string"})
    list(stream)
    with pytest.raises(ValueError, match="read to its end"):
        columns.rfc3339(stream)


def message_set(*values: bytes) -> bytes:
    return b"".join(ProducerRecord("orders", b"k", value, header_format="typed").to_bytes() for value in values)


ITERATORS: list[Any] = [
    pytest.param(lambda data: lh.messages(data, "kip82-messages"), id="messages"),
    pytest.param(lambda data: ConsumerRecord.read(data, topic="orders"), id="records"),
]


@pytest.mark.parametrize("iterator_of", ITERATORS)
def test_second_iteration_over_messages_raises(iterator_of: Callable[[bytes], Iterator[Any]]) -> None:
    messages = iterator_of(message_set(b"1", b"2"))
    assert len(list(messages)) == 2
    assert next(messages, None) is None
    with pytest.raises(ValueError, match="was read to its end"):
        list(messages)


@pytest.mark.parametrize("iterator_of", ITERATORS)
def test_messages_of_closed_iterator_do_not_end_silently(iterator_of: Callable[[bytes], Any]) -> None:
    messages = iterator_of(message_set(b"1", b"2"))
    next(messages)
    messages.close()
    messages.close()
    with pytest.raises(ValueError, match="is closed"):
        list(messages)


@pytest.mark.parametrize("iterator_of", ITERATORS)
def test_messages_after_error_do_not_end_silently(iterator_of: Callable[[bytes], Iterator[Any]]) -> None:
    messages = iterator_of(message_set(b"1") + message_set(b"2")[:-1])
    next(messages)
    with pytest.raises(lh.DecodeError):
        next(messages)
    with pytest.raises(ValueError, match="failed"):
        next(messages)
    with pytest.raises(ValueError, match="failed"):
        list(messages)


def test_second_iteration_over_log_scan_raises(tmp_path: Path) -> None:
    with MessageLog(tmp_path / "orders-0") as log:
        log.append([lh.Message(key=b"k", value=b"v")])
        messages = log.scan()
        assert len(list(messages)) == 1
        with pytest.raises(ValueError, match="the scan of the log was read to its end"):
            list(messages)


def test_second_iteration_over_store_rows_raises() -> None:
    rows = StoreIterator(iter([(b"a", b"1")]), "latest")
    assert list(rows) == [(b"a", b"1")]
    assert not rows.has_next()
    with pytest.raises(InvalidStateStoreError, match="was read to its end"):
        list(rows)


def test_store_rows_after_error_do_not_end_silently() -> None:
    def rows() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise OSError("the disk is gone")

    iterator = StoreIterator(rows(), "latest")
    next(iterator)
    with pytest.raises(OSError, match="gone"):
        iterator.has_next()
    with pytest.raises(InvalidStateStoreError, match="failed"):
        iterator.has_next()
    with pytest.raises(InvalidStateStoreError, match="failed"):
        next(iterator)
