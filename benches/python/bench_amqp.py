"""Decode columns of AMQP primitives, and a profile of them, beside a Python UDF as Spark's worker runs it: row by row.

The other side is what `SQL_ARROW_BATCHED_UDF` of `pyspark.worker` does with a batch, with Spark's own converters: values
become Python objects, the function is called for each, and the results become a column. No process or socket is in
either time. The function is the decoder that people write by hand, with the checks that letterhead makes.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from conftest import OBJECTS, RELEASED, Sizes
from pyspark.sql import types as T
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.util import fail_on_stopiteration

import letterhead as lh
from benches import data
from letterhead.conventions.columns import ParseAmqp
from letterhead.operations import Select

CALLS = 1 if data.QUICK else 10
"""Batches in a run: one alone would be over before the caches know it."""


def string(n: int) -> bytes:
    text = f"device-{n % 50_000}".encode()
    return bytes([0xA1, len(text)]) + text


COLUMNS: dict[str, tuple[str, T.DataType, Callable[[int], bytes]]] = {
    "string": ("string", T.StringType(), string),
    "timestamp": ("timestamp_ms", T.TimestampType(), lambda n: b"\x83" + struct.pack(">q", 1_700_000_000_000 + n)),
    "long": ("int64", T.LongType(), lambda n: b"\x81" + struct.pack(">q", n * 1_000_000)),
    "long, written in two ways": (
        "int64", T.LongType(), lambda n: b"\x55" + bytes([n % 100]) if n % 3 else b"\x81" + struct.pack(">q", n << 20)
    ),
    "double": ("float64", T.DoubleType(), lambda n: b"\x82" + struct.pack(">d", n / 7)),
    "boolean": ("bool", T.BooleanType(), lambda n: b"\x41" if n % 2 else b"\x42"),
    "uuid": ("uuid", T.StringType(), lambda n: b"\x98" + uuid.UUID(int=n * 12_345_678_901).bytes),
}  # fmt: skip


def decode(message: bytes | None) -> Any:
    """Decode one value, as people do: by a chain of conditions on its first byte."""
    if message is None:
        return None
    code = message[0]
    if code in (0xA1, 0xA3):
        if len(message) < 2 or message[1] != len(message) - 2:
            raise ValueError("wrong length")
        return message[2:].decode()
    if code == 0x55:
        if len(message) != 2:
            raise ValueError("wrong length")
        return struct.unpack_from(">b", message, 1)[0]
    if code in (0x81, 0x82, 0x83):
        if len(message) != 9:
            raise ValueError("wrong length")
        if code == 0x82:
            return struct.unpack_from(">d", message, 1)[0]
        number = struct.unpack_from(">q", message, 1)[0]
        return number if code == 0x81 else datetime.datetime.fromtimestamp(number / 1000, datetime.UTC)
    if code in (0x41, 0x42):
        if len(message) != 1:
            raise ValueError("wrong length")
        return code == 0x41
    if code == 0x98:
        return str(uuid.UUID(bytes=message[1:]))
    raise ValueError(f"unknown code {code}")


def as_a_worker_does(
    function: Callable[[Any], Any], takes: T.DataType, returns: T.DataType
) -> Callable[[pa.Array], pa.Array]:
    """Return what Spark's worker makes of a Python UDF of one column."""
    call = fail_on_stopiteration(function)
    source = ArrowTableToRowsConversion._create_converter(takes, none_on_identity=True, binary_as_bytes=True)
    restored = LocalDataToArrowConversion._create_converter(returns, none_on_identity=True)
    type = to_arrow_type(returns, timezone="UTC")

    def run(column: pa.Array) -> pa.Array:
        messages = ArrowTableToRowsConversion._to_pylist(column)
        if source is not None:
            messages = [source(message) for message in messages]
        results = [call(*row) for row in list(zip(messages))]
        return pa.array(results if restored is None else [restored(result) for result in results], type=type)

    return run


@pytest.mark.parametrize("name", COLUMNS)
def test_column(measure: Callable[..., None], sizes: Sizes, name: str) -> None:
    type, _, batches, expected = udf_input(name, sizes.batch)
    run(measure, name, "letterhead", batches, lambda: decoded(batches, type), expected, RELEASED)


@pytest.mark.parametrize("name", COLUMNS)
def test_column_in_one_big_batch(measure: Callable[..., None], sizes: Sizes, name: str) -> None:
    type, _, batches, expected = udf_input(name, sizes.big, calls=1)
    run(
        measure,
        name,
        "letterhead, one big batch",
        batches,
        lambda: decoded(batches, type),
        expected,
        RELEASED,
        rounds=5,
    )


@pytest.mark.parametrize("name", COLUMNS)
def test_row_by_row(measure: Callable[..., None], sizes: Sizes, name: str) -> None:
    type, returns, batches, expected = udf_input(name, sizes.batch)
    worker = as_a_worker_does(decode, T.BinaryType(), returns)
    run(
        measure, name, "Python UDF, in Spark's worker", batches, lambda: [worker(batch) for batch in batches], expected,
        OBJECTS, rounds=9, beside=lambda: decoded(batches, type),
    )  # fmt: skip


PROFILE = "the profile eventhubs, of seven headers"
HEADERS = T.ArrayType(T.StructType().add("key", T.StringType()).add("value", T.BinaryType()))
PROPERTIES = lh.profile("eventhubs")
SELECTED = T.StructType(
    [
        T.StructField(name, T.TimestampType() if header_field.type == "timestamp_ms:amqp" else T.StringType())
        for name, header_field in PROPERTIES.items()
    ]
)


def telemetry(n: int) -> list[tuple[str, bytes]]:
    """Return the headers of a message of a device: five properties of IoT Hub, two of the application."""
    auth = b'{"scope":"device","type":"sas","issuer":"iothub"}'
    return [
        ("iothub-connection-device-id", string(n)),
        ("iothub-connection-auth-method", bytes([0xA1, len(auth)]) + auth),
        ("iothub-connection-auth-generation-id", b"\xa1\x12" + b"%018d" % (n % 50_000)),
        ("iothub-enqueuedtime", b"\x83" + struct.pack(">q", 1_700_000_000_000 + n)),
        ("iothub-message-source", b"\xa1\x09Telemetry"),
        ("temperature", b"\x82" + struct.pack(">d", n / 7)),
        ("alert", b"\xa1\x05false"),
    ]


def decode_headers(headers: Any) -> tuple[Any, ...]:
    """Decode the values of one message, as people do."""
    values = {header.key: header.value for header in headers}
    return tuple(decode(values.get(column.key)) for column in PROPERTIES.values())


def test_profile(measure: Callable[..., None], sizes: Sizes) -> None:
    batches, expected = given_profile(sizes.batch)
    run(measure, PROFILE, "letterhead", batches, lambda: selected(batches), expected, RELEASED)


def test_profile_row_by_row(measure: Callable[..., None], sizes: Sizes) -> None:
    batches, expected = given_profile(sizes.plain)
    worker = as_a_worker_does(decode_headers, HEADERS, SELECTED)
    run(
        measure, PROFILE, "Python UDF, in Spark's worker", batches, lambda: [worker(batch) for batch in batches],
        expected, OBJECTS, rounds=9, beside=lambda: selected(batches),
    )  # fmt: skip


def selected(batches: list[pa.Array]) -> list[pa.Array]:
    return [Select("kafka", PROPERTIES, dialect="spark")(batch) for batch in batches]


def given_profile(rows: int, calls: int = CALLS) -> tuple[list[pa.Array], list[pa.Array]]:
    """Make batches of messages, and what is in their columns."""
    messages = [[telemetry(call * rows + n) for n in range(rows)] for call in range(calls)]
    columns = [[tuple(decode(dict(row).get(column.key)) for column in PROPERTIES.values()) for row in batch]
               for batch in messages]  # fmt: skip
    arrow = to_arrow_type(SELECTED, timezone="UTC")
    return (
        [pa.array(batch, data.HEADERS_TYPE) for batch in messages],
        [pa.array([dict(zip(PROPERTIES, row, strict=True)) for row in batch], arrow) for batch in columns],
    )


def decoded(batches: list[pa.Array], type: str) -> list[pa.Array]:
    return [ParseAmqp(type, dialect="spark")(batch) for batch in batches]


def udf_input(name: str, rows: int, calls: int = CALLS) -> tuple[str, T.DataType, list[pa.Array], list[pa.Array]]:
    """Make batches, and what is in them."""
    type, returns, write = COLUMNS[name]
    messages = [[write(call * rows + n) for n in range(rows)] for call in range(calls)]
    arrow = to_arrow_type(returns, timezone="UTC")
    return (
        type,
        returns,
        [pa.array(batch, pa.binary()) for batch in messages],
        [pa.array(map(decode, batch), arrow) for batch in messages],
    )


def run(
    measure: Callable[..., None],
    name: str,
    side: str,
    batches: list[pa.Array],
    work: Callable[[], list[pa.Array]],
    expected: list[pa.Array],
    buffers: str,
    **options: Any,
) -> None:
    def check(result: list[pa.Array]) -> None:
        assert all(batch.equals(expected_batch) for batch, expected_batch in zip(result, expected, strict=True))

    measure(
        work, check, job="decode AMQP", source=name, side=side, rows=len(batches[0]),
        headers=sum(map(len, batches)), reads=batches[0].nbytes, writes=lambda result: result[0].nbytes, buffers=buffers,
        **options,
    )  # fmt: skip
