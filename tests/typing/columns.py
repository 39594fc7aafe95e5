"""Types of the results of column functions: pyarrow in, pyarrow out; else an Arrow array or stream of any library."""

from __future__ import annotations

from typing import Any, assert_type

import nanoarrow as na
import pyarrow as pa

import letterhead as lh
from letterhead import arrow as lha
from letterhead import fields as columns_module
from letterhead.arrow import ArrowArray, ArrowStream, Column
from letterhead.scan import Scan


class Shared:
    """An array of no particular library: it has the method of the protocol."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Export the array."""
        capsules: tuple[object, object] = self._array.__arrow_c_array__()
        return capsules


class SharedStream:
    """A stream of no particular library."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the stream."""
        capsule: object = self._stream.__arrow_c_stream__()
        return capsule


block = lh.encode([("tenant", "acme"), ("route", "a")], "kafka")
columns: columns_module.Columns = {"tenant": "string", "route": "array<string>", "n": lh.field("int64", key="retry")}
set_ = lh.encode({"value": b"v"}, "kip82-message")

# An array of pyarrow.
array: pa.Array[Any] = pa.array([block, None], pa.binary())
decoded = lha.decode(array, "kafka")
assert_type(decoded, "pa.Array[Any]")
assert_type(lha.select(array, columns, errors="column"), "pa.Array[Any]")
assert_type(lha.encode(decoded, "kafka", on_loss="report"), "pa.Array[Any]")
assert_type(lha.convert(array, "kafka", target="iggy", types="binary"), "pa.Array[Any]")
assert_type(lha.validate(array, "kafka", threads=2), "pa.Array[Any]")
assert_type(lha.messages(pa.array([set_]), "kip82-messages"), "pa.Array[Any]")
assert decoded.type == pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

numbers = pa.array([bytes.fromhex("5507")])
assert_type(lha.amqp(numbers, "int64", errors="null"), "pa.Array[Any]")
assert_type(lha.traceparent(numbers, errors="null"), "pa.Array[Any]")
assert_type(lha.trace_links(array, errors="null"), "pa.Array[Any]")
assert_type(lha.schema_id(numbers, errors="null"), "pa.Array[Any]")
assert_type(lha.rfc3339(numbers, unit="ms", errors="null"), "pa.Array[Any]")

# A chunked array of pyarrow.
chunked: pa.ChunkedArray[Any] = pa.chunked_array([array, array])
assert_type(lha.decode(chunked, "kafka"), "pa.ChunkedArray[Any]")
assert_type(lha.select(chunked, columns), "pa.ChunkedArray[Any]")
assert_type(lha.encode(lha.decode(chunked, "kafka"), "kafka"), "pa.ChunkedArray[Any]")
assert_type(lha.convert(chunked, "kafka", target="iggy", types="binary"), "pa.ChunkedArray[Any]")
assert_type(lha.validate(chunked, "kafka"), "pa.ChunkedArray[Any]")
assert_type(lha.messages(pa.chunked_array([[set_]]), "kip82-messages"), "pa.ChunkedArray[Any]")
assert_type(lha.amqp(pa.chunked_array([numbers]), "int64"), "pa.ChunkedArray[Any]")
assert lha.decode(chunked, "kafka").num_chunks == 2

# Of any other library.
shared = Shared(na.c_array([block, None], na.binary()))
shared_decoded = lha.decode(shared, "kafka")
assert_type(shared_decoded, ArrowArray)
assert_type(lha.select(shared, columns, errors="column"), ArrowArray)
assert_type(lha.encode(shared_decoded, "kafka"), ArrowArray)
assert_type(lha.convert(shared, "kafka", target="iggy", types="binary"), ArrowArray)
assert_type(lha.validate(shared, "kafka"), ArrowArray)
assert na.array(shared_decoded).to_pylist()[1] is None
stream = lha.decode(SharedStream(chunked), "kafka")
assert_type(stream, ArrowStream)
assert len(na.Array(stream)) == 4


def of_any_column(column: Column) -> Column:
    """Decode an array or a stream."""
    return assert_type(lha.decode(column, "kafka"), Column)


assert assert_type(lha.scan(array, "kafka"), Scan).statistics.rows == 2

assert assert_type(lh.field("int64", key="retry", repeat="first"), lh.Field).type == "int64"
assert assert_type(lh.field("array<string>"), lh.Field).repeat == "all"
