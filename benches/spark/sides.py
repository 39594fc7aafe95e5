"""The ways to read headers in Spark that are compared: what each of them is, and what workers run for it.

* `letterhead`: `lhs.select_headers` and `lhs.decode_headers`, by Arrow; :mod:`benches.spark.lists` has Spark's expressions.
* `letterhead, arrow_udf`: the functions of `letterhead.arrow` in a scalar Arrow UDF, where the library uses `mapInArrow`.
* `kernel taken out`: `mapInArrow` that gets the very same input batches (the bytes do cross into the Python worker)
  and gives, for a batch of n rows, the first n rows of a record batch of the same schema that was computed beforehand
  from 10,000 rows of the same data and is in the worker's memory. So reading, transport both ways and the output's size
  are in it; looking at the bytes is not, nor is getting memory for the output.
* `letterhead header` (lists only): three times `lhs.header`, which makes expressions of Spark SQL and checks values.
* `Spark SQL` (lists only; its own functions cannot read varints): `element_at(filter(headers, …), -1)`. Numbers are
  read by `conv(hex(value), 16, 10)`, which is right here because none of these numbers is negative. Nothing is
  checked.
* `Java UDF`: `HeaderUdfs` of `benches/jvm`, on bytes with Kafka's own `HeadersDeserializer`.
* `Python UDF`: `benches/plain.py` for each row, in a `udf`; rows are moved by Arrow, which is Spark 4.2's default.
* `Arrow UDF`: the same in an `arrow_udf` over columns; on lists `pyarrow.compute` and numpy, with no loop over rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benches import data, plain
from benches.spark.session import BATCH, ROOT

SELECT, DECODE = "select 3 in Spark", "decode in Spark"
OURS, EMPTY, BY_UDF = "letterhead", "kernel taken out", "letterhead, arrow_udf"
VALUES, LISTS = "store values (streams-timestamped)", "orders (list column)"

SELECTED = "tenant string, retry int, amount_cents bigint"
DECODED = "headers array<struct<key:string,value:binary>>, timestamp bigint, payload binary"
DECODED_NAMES = ("headers", "timestamp", "payload")

JVM = ROOT / "target" / "jvm"
CLASSPATH = [JVM / "classes", *(JVM / "lib" / f"kafka-{name}-4.3.1.jar" for name in ("streams", "clients"))]
UDFS = "org.apache.kafka.streams.state.internals.HeaderUdfs"

# Rows that are computed beforehand: as many as a batch has.
READY = 2_000 if data.QUICK else BATCH

Job = Callable[[Any], Any]

SUMS = {
    SELECT: {
        "rows": "count(*)",
        "tenants": "count(tenant)",
        "tenant_bytes": "sum(octet_length(tenant))",
        "retries": "count(retry)",
        "retry_sum": "sum(retry)",
        "amounts": "count(amount_cents)",
        "amount_sum": "sum(amount_cents)",
    },
    # Of a row for each header, and one for a message without any.
    DECODE: {
        "rows": "count_if(coalesce(place, 0) = 0)",
        "headers": "count(place)",
        "key_bytes": "sum(octet_length(header.key))",
        "value_bytes": "sum(octet_length(header.value))",
        "nulls": "count_if(place is not null and header.value is null)",
    },
}


def added_up(job: str, result: Any) -> dict[str, int]:
    """Add up what a job made."""
    if job == DECODE:
        result = result.selectExpr("posexplode_outer(headers) as (place, header)")
    sums: dict[str, int] = (
        result.selectExpr(*(f"{total} as {column}" for column, total in SUMS[job].items())).first().asDict()
    )
    return sums


class Family(NamedTuple):
    """Jobs that give the same from the same column.

    Attributes
    ----------
    job, source : str
        What is made, and of what: names in the table of results.
    column : str
        Name of the column.
    make : callable
        Gives the column of so many rows.
    headers : int
        How many headers it holds.
    answer : dict
        What :func:`added_up` has to give of what comes out.
    sides : dict
        The jobs by name, each from a frame of that column to a frame.
    """

    job: str
    source: str
    column: str
    make: Callable[[int], pa.Array]
    headers: int
    answer: dict[str, int]
    sides: dict[str, Job]


def families(spark: Any, rows: int, java: bool = True) -> Iterator[Family]:
    """Return what is measured; the Java UDFs are registered with the session first."""
    if java:
        register_java_udfs(spark)
    store, orders = data.store_answer(rows), data.orders_answer(rows)
    yield Family(
        SELECT,
        VALUES,
        "value",
        data.store_values,
        store[0].headers,
        {"rows": rows, **vars(store[1])},
        values_selected(),
    )
    yield Family(
        SELECT,
        LISTS,
        "headers",
        data.orders_headers,
        orders[0].headers,
        {"rows": rows, **vars(orders[1])},
        lists_selected(),
    )
    yield Family(
        DECODE, VALUES, "value", data.store_values, store[0].headers, {"rows": rows, **vars(store[0])}, values_decoded()
    )


def register_java_udfs(spark: Any) -> None:
    """Register the Java UDFs with a session."""
    for path in CLASSPATH:
        if not path.exists():
            raise FileNotFoundError(f"{path} is needed for the Java UDFs: make target/jvm/.built")
    selecting = ("SelectFromValue", "SelectFromList", "SelectFromListChecked")
    for name, ddl in (*((name, SELECTED) for name in selecting), ("DecodeValue", DECODED)):
        spark.udf.registerJavaFunction(name, f"{UDFS}${name}", f"struct<{ddl}>")


def java_udf(function: str, column: str) -> Job:
    """Return the job that calls a function of :func:`register_java_udfs`."""
    return lambda df: df.selectExpr(f"{function}({column}) as made").select("made.*")


def values_selected() -> dict[str, Job]:
    """Name the ways to three typed columns from values of a store."""
    from letterhead import spark as lhs

    return {
        OURS: lambda df: lhs.select_headers(df, data.COLUMNS, column="value", format="streams-timestamped"),
        EMPTY: without_kernel("select-values", select_values(data.store_values(READY)), SELECTED),
        BY_UDF: _arrow_udf(select_values_natively, "value", SELECTED),
        "Java UDF": java_udf("SelectFromValue", "value"),
        "Python UDF": _python_udf(select_value, "value", SELECTED),
        "Arrow UDF": _arrow_udf(select_values, "value", SELECTED),
    }


def lists_selected() -> dict[str, Job]:
    """Name the ways to three typed columns from list columns."""
    from letterhead import spark as lhs

    last = "element_at(filter(headers, h -> h.key = '{}'), -1).value"
    number = "cast(conv(hex({}), 16, 10) as {})"
    sql = {
        "tenant": f"cast({last.format('tenant')} as string)",
        "retry": number.format(last.format("retry"), "int"),
        "amount_cents": number.format(last.format("amount_cents"), "bigint"),
    }
    return {
        OURS: lambda df: lhs.select_headers(df, data.COLUMNS, engine="arrow"),
        EMPTY: without_kernel("select-lists", select_lists(data.orders_headers(READY)), SELECTED),
        BY_UDF: _arrow_udf(select_lists_natively, "headers", SELECTED),
        "letterhead header": lambda df: df.select(*(lhs.header("headers", *column) for column in data.COLUMNS.items())),
        "Spark SQL": lambda df: df.selectExpr(*(f"{expression} as {name}" for name, expression in sql.items())),
        "Java UDF": java_udf("SelectFromList", "headers"),
        "Python UDF": _python_udf(select_list, "headers", SELECTED),
        "Arrow UDF": _arrow_udf(select_lists, "headers", SELECTED),
    }


def values_decoded() -> dict[str, Job]:
    """Name the ways to all headers from values of a store."""
    from letterhead import spark as lhs

    return {
        OURS: lambda df: lhs.decode_headers(df, "streams-timestamped", column="value"),
        EMPTY: without_kernel("decode-values", decode_values(data.store_values(READY)), DECODED),
        BY_UDF: _arrow_udf(decode_values_natively, "value", DECODED),
        "Java UDF": java_udf("DecodeValue", "value"),
        "Python UDF": _python_udf(decode_value, "value", DECODED),
        "Arrow UDF": _arrow_udf(decode_values, "value", DECODED),
    }


# What workers run, each on a batch or on a row. -----------------------------------------------------------------------


def without_kernel(name: str, result: pa.StructArray, ddl: str) -> Job:
    """Make the job that gives columns computed beforehand and never looks at its input."""
    path = ROOT / "target" / "benches" / f"{name}-made.arrow"
    path.parent.mkdir(parents=True, exist_ok=True)
    batch = pa.RecordBatch.from_struct_array(result)
    with pa.ipc.new_file(path, batch.schema) as file:
        file.write_batch(batch)

    # Only the path travels with the job: as little as does with ours.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ready = _read_once(str(path))
        for batch in batches:
            yield ready.slice(0, batch.num_rows)

    return lambda df: df.mapInArrow(run, ddl)


@cache
def _read_once(path: str) -> pa.RecordBatch:
    with pa.ipc.open_file(path) as file:
        return file.get_batch(0)


def select_value(value: bytes) -> Any:
    """Read three headers of a store's value."""
    return plain.select_three(plain.decode_block(plain.split_message(value)[0]))


def select_values(values: pa.Array) -> pa.Array:
    """Read three headers of every value."""
    columns = zip(*map(select_value, values.to_pylist()), strict=True)
    return _struct([pa.array(column, field.type) for column, field in zip(columns, data.SELECTED_SCHEMA, strict=True)])


def select_list(headers: Any) -> Any:
    """Select three headers of a list of them."""
    return plain.select_three((header["key"], header["value"]) for header in headers or ())


def select_lists(headers: pa.Array) -> pa.Array:
    """Select three headers of every list."""
    flat, rows = headers.flatten(), pc.list_parent_indices(headers).to_numpy()
    keys, values = flat.field("key"), flat.field("value")

    def last(key: str) -> pa.Array:
        places = np.flatnonzero(pc.equal(keys, key).to_numpy(zero_copy_only=False))
        place = np.full(len(headers), -1)
        place[rows[places]] = places  # of several to a row, the last is written last
        return values.take(pa.array(place, mask=place < 0))

    def number(key: str, type: str) -> pa.Array:
        values = last(key)
        width = np.dtype(type).itemsize
        bits = pc.fill_null(values, bytes(width)).cast(pa.binary(width))
        big = np.frombuffer(bits.buffers()[1], type, count=len(bits), offset=bits.offset * width)
        return pa.array(big.astype(big.dtype.newbyteorder("=")), mask=values.is_null().to_numpy(zero_copy_only=False))

    return _struct([last("tenant").cast(pa.utf8()), number("retry", ">i4"), number("amount_cents", ">i8")])


def decode_value(value: bytes) -> Any:
    """Read all headers of a store's value, its timestamp and its payload."""
    block, rest = plain.split_message(value)
    return plain.decode_block(block), struct.unpack_from(">q", rest)[0], rest[8:]


def decode_values(values: pa.Array) -> pa.Array:
    """Read all headers of every value, its timestamp and its payload."""
    columns = zip(*map(decode_value, values.to_pylist()), strict=True)
    types = (data.HEADERS_TYPE, pa.int64(), pa.binary())
    return _struct([pa.array(column, type) for column, type in zip(columns, types, strict=True)], DECODED_NAMES)


def select_values_natively(values: pa.Array) -> pa.Array:
    """Select with the kernel."""
    return _natively("select", values, "streams-timestamped", data.COLUMNS)


def select_lists_natively(headers: pa.Array) -> pa.Array:
    """Select from lists with the kernel."""
    return _natively("select", headers, "kafka", data.COLUMNS)


def decode_values_natively(values: pa.Array) -> pa.Array:
    """Decode with the kernel."""
    return _natively("decode", values, "streams-timestamped")


def _natively(operation: str, *arguments: Any) -> pa.Array:
    from letterhead import arrow as lha

    return pa.array(getattr(lha, operation)(*arguments))


def _struct(columns: list[pa.Array], names: tuple[str, ...] = tuple(data.COLUMNS)) -> pa.Array:
    return pa.StructArray.from_arrays(columns, list(names))


def _python_udf(function: Callable[[Any], Any], column: str, ddl: str) -> Job:
    from pyspark.sql import functions as F

    result = F.udf(function, f"struct<{ddl}>", useArrow=True)
    return lambda df: df.select(result(column).alias("made")).select("made.*")


def _arrow_udf(function: Callable[[pa.Array], pa.Array], column: str, ddl: str) -> Job:
    from pyspark.sql import functions as F

    result = F.arrow_udf(function, f"struct<{ddl}>")
    return lambda df: df.select(result(column).alias("made")).select("made.*")
