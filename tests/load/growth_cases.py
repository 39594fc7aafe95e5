"""Cases of :mod:`growth`: each function makes an input of size n, and returns what is counted.

The name of a function says what there are n of.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import make_dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

import letterhead as lh
from letterhead import arrow as lha
from letterhead.cli.exits import Failure
from letterhead.cli.json_records import json_records
from letterhead.errors import LetterheadError
from letterhead.kafka.jaas import parse_jaas
from letterhead.kafka.properties import expand, read_client_config, read_properties
from tests.load.growth import case

Job = Callable[[], Any]

ONE = pa.array([lh.encode([("k", b"v")], "kafka")])
LISTS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SECRET = b"sixteen bytes or more"


def headers_of(n: int, value: bytes = b"v") -> list[tuple[str, bytes]]:
    """Return headers of n keys."""
    return [(f"k{i}", value) for i in range(n)]


def message_of(n: int) -> Any:
    """Return a column of one message, of n keys."""
    return pa.array([lh.encode(headers_of(n), "kafka")])


def rows_of(n: int) -> Any:
    """Return a column of n messages of three headers."""
    return pa.array([lh.encode([("k", b"%d" % i), ("route", b"a"), ("route", b"b")], "kafka") for i in range(n)])


def chunks_of(n: int) -> Any:
    """Return a stream of n chunks, of a message each."""
    return pa.chunked_array([rows_of(1)] * n)


def raised(job: Job) -> Job:
    """Expect an error of letterhead, or a wrong argument."""

    def run() -> BaseException:
        try:
            job()
        except (LetterheadError, Failure, ValueError, TypeError) as error:
            return error
        raise AssertionError("no error was raised")

    return run


# columns ----------------------------------------------------------------------------------------------------------------


@case(10_000)
def columns_as_text_of_blanks_before_a_type(n: int) -> Job:
    text = "k" + " " * n + "string"
    return lambda: lha.select(ONE, text)


@case(10_000)
def columns_as_text_of_blanks_after_a_type(n: int) -> Job:
    text = "k string" + " " * n
    return lambda: lha.select(ONE, text)


@case(10_000)
def columns_as_text_of_blanks(n: int) -> Job:
    return raised(lambda: lha.select(ONE, " " * n))


@case(10_000)
def columns_as_text_of_word_characters(n: int) -> Job:
    return raised(lambda: lha.select(ONE, "a" * n))


@case(2000)
def columns_as_text_of_words(n: int) -> Job:
    return raised(lambda: lha.select(ONE, "a " * n))


@case(10_000)
def columns_as_text_of_backticks(n: int) -> Job:
    return raised(lambda: lha.select(ONE, "`" * (2 * n + 1)))


@case(10_000)
def columns_as_text_of_an_unclosed_type(n: int) -> Job:
    return raised(lambda: lha.select(ONE, "a b" + "c" * n + "<"))


@case(2000)
def columns_as_text_of_brackets(n: int) -> Job:
    return raised(lambda: lha.select(ONE, "a array" + "<" * n))


@case(2000)
def columns_as_text_of_commas(n: int) -> Job:
    return raised(lambda: lha.select(ONE, "," * n))


@case(10_000)
def columns_as_text_with_a_long_comment(n: int) -> Job:
    text = "k string COMMENT '" + "''" * n + "'"
    return lambda: lha.select(ONE, text)


@case(300)
def columns_as_text_of_many_columns(n: int) -> Job:
    text = ", ".join(f"k{i} int" for i in range(n))
    return lambda: lha.select(ONE, text)


@case(500)
def columns_as_a_dictionary(n: int) -> Job:
    columns = {f"k{i}": "int32" for i in range(n)}
    return lambda: lha.select(ONE, columns)


@case(200)
def columns_as_a_schema_of_pyarrow(n: int) -> Job:
    columns = pa.schema([(f"k{i}", pa.int32()) for i in range(n)])
    return lambda: lha.select(ONE, columns)


@case(200)
def columns_as_a_dataclass(n: int) -> Job:
    columns = make_dataclass("Columns", [(f"k{i}", str) for i in range(n)])
    return lambda: lha.select(ONE, columns)


@case(300)
def columns_as_a_schema_of_spark(n: int) -> Job:
    from pyspark.sql.types import IntegerType, StructField, StructType

    columns = StructType([StructField(f"k{i}", IntegerType()) for i in range(n)])
    return lambda: lha.select(ONE, columns)


@case(300)
def columns_with_defaults(n: int) -> Job:
    columns = {f"k{i}": lh.field("int32", default=i) for i in range(n)}
    return lambda: lha.select(ONE, columns)


@case(200)
def columns_with_alternatives(n: int) -> Job:
    columns = {f"k{i}": "int64 | int32 | int64:text" for i in range(n)}
    return lambda: lha.select(ONE, columns)


@case(200)
def columns_of_arrays(n: int) -> Job:
    columns = {f"k{i}": "array<string>" for i in range(n)}
    return lambda: lha.select(ONE, columns)


@case(6000)
def a_type_with_many_alternatives(n: int) -> Job:
    return raised(lambda: lha.select(ONE, {"k": "int32 | " * n + "int32"}))


@case(5000)
def a_type_of_many_characters(n: int) -> Job:
    return raised(lambda: lh.field("string:" + "x" * n))


@case(5000)
def a_decimal_of_many_digits(n: int) -> Job:
    return raised(lambda: lh.field(f"decimal({'1' * n}, 2)"))


@case(1000)
def spring_columns_of_many_headers(n: int) -> Job:
    text = "{" + ", ".join(f'"k{i}": "java.lang.String"' for i in range(n)) + "}"
    return lambda: lh.spring_columns(text)


# reading ----------------------------------------------------------------------------------------------------------------


@case(300)
def select_of_many_columns_that_occur(n: int) -> Job:
    column, columns = message_of(n), {f"k{i}": "string" for i in range(n)}
    return lambda: lha.select(column, columns)


@case(300)
def select_of_many_columns_of_lists(n: int) -> Job:
    column = pa.array([[{"key": key, "value": value} for key, value in headers_of(n)]], LISTS)
    columns = {f"k{i}": "string" for i in range(n)}
    return lambda: lha.select(column, columns)


@case(500)
def select_of_one_message_in_python(n: int) -> Job:
    data, columns = lh.encode(headers_of(n), "kafka"), {f"k{i}": "string" for i in range(n)}
    return lambda: lh.select(data, columns)


@case(2000)
def select_of_many_values_of_one_key(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"v")] * n, "kafka")])
    return lambda: lha.select(column, "k array<string>")


@case(10_000)
def select_that_splits_a_long_value(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"a," * n)], "kafka")])
    return lambda: lha.select(column, {"k": lh.field("array<string>", split=",")})


@case(50_000)
def select_that_splits_at_a_long_separator(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"a" * 2 * n)], "kafka")])
    columns = {"k": lh.field("array<string>", split="a" * n + "b")}
    return lambda: lha.select(column, columns)


@case(600)
def select_of_rows_with_errors(n: int) -> Job:
    column = rows_of(n)
    return lambda: lha.select(column, "k int64, route int16", errors="column")


@case(2000)
def decode_of_rows(n: int) -> Job:
    column = rows_of(n)
    return lambda: lha.decode(column, "kafka")


@case(2000)
def decode_of_rows_with_errors(n: int) -> Job:
    column = pa.array([b"\x02\x02a"] * n)
    return lambda: lha.decode(column, "kafka", errors="column")


@case(100)
def decode_of_chunks(n: int) -> Job:
    column = chunks_of(n)
    return lambda: lha.decode(column, "kafka")


@case(2000)
def decode_of_one_message_of_kafka(n: int) -> Job:
    data = lh.encode(headers_of(n), "kafka")
    return lambda: lh.decode(data, "kafka")


@case(1000)
def decode_of_one_message_of_iggy(n: int) -> Job:
    data = lh.encode([(key, lh.Binary(value)) for key, value in headers_of(n)], "iggy")
    return lambda: lh.decode(data, "iggy")


@case(2000)
def decode_of_one_message_of_kip82_typed(n: int) -> Job:
    data = lh.encode([(key, lh.Binary(value)) for key, value in headers_of(n)], "kip82-typed")
    return lambda: lh.decode(data, "kip82-typed")


@case(2000)
def decode_of_repeated_keys_of_iggy(n: int) -> Job:
    one = lh.encode([("k", lh.Binary(b"v"))], "iggy") or b""
    column = pa.array([one * n])
    return lambda: lha.decode(column, "iggy", errors="column")


@case(500)
def messages_of_a_record_batch(n: int) -> Job:
    data = lh.batch([lh.Message(offset=i, key=None, value=b"v", headers=[("k", b"v")]) for i in range(n)])
    return lambda: list(lh.messages(data, "record-batch"))


@case(1000)
def messages_of_a_compressed_record_batch(n: int) -> Job:
    messages = [lh.Message(offset=i, key=None, value=b"v", headers=[("k", b"v")]) for i in range(n)]
    column = pa.array([lh.batch(messages, codec="gzip")])
    return lambda: lha.messages(column, "record-batch")


@case(500)
def messages_of_many_batches(n: int) -> Job:
    data = lh.batch([lh.Message(offset=0, key=None, value=b"v", headers=[("k", b"v")])])
    column = pa.array([data * n])
    return lambda: lha.messages(column, "record-batch")


@case(200)
def inspect_of_a_message(n: int) -> Job:
    data = lh.encode(headers_of(n), "kafka")
    return lambda: str(lh.inspect(data or b"", "kafka"))


@case(100)
def inspect_of_a_record_batch(n: int) -> Job:
    data = lh.batch([lh.Message(offset=i, key=None, value=b"v", headers=[("k", b"v")]) for i in range(n)])
    return lambda: str(lh.inspect(data, "record-batch"))


@case(2000)
def validate_of_rows(n: int) -> Job:
    column = rows_of(n)
    return lambda: lha.validate(column, "kafka")


@case(100)
def scan_of_rows_with_ten_new_keys_each(n: int) -> Job:
    column = pa.array([lh.encode([(f"k{i}-{j}", b"v") for j in range(10)], "kafka") for i in range(n)])
    return lambda: lha.scan(column, "kafka", max_keys=10)


@case(25)
def scan_of_kept_keys(n: int) -> Job:
    column = message_of(n)
    return lambda: lha.scan(column, "kafka")


@case(50)
def scan_of_chunks_with_ten_new_keys_each(n: int) -> Job:
    rows = [lh.encode([(f"k{i}-{j}", b"v") for j in range(10)], "kafka") for i in range(n)]
    column = pa.chunked_array([pa.array([row]) for row in rows])
    return lambda: lha.scan(column, "kafka", max_keys=10)


@case(300)
def scan_of_distinct_values(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"%08d" % i)], "kafka") for i in range(n)])
    return lambda: lha.scan(column, "kafka")


# conditions -------------------------------------------------------------------------------------------------------------


@case(200)
def where_with_many_literals_as_text(n: int) -> Job:
    where = "k in (" + ", ".join(f"'v{i}'" for i in range(n)) + ")"
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(500)
def where_with_many_literals_as_an_object(n: int) -> Job:
    where = lh.col("k").isin([f"v{i}" for i in range(n)])
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(400)
def where_with_literals_and_rows(n: int) -> Job:
    column, where = rows_of(n), lh.col("k").isin([f"v{i}" for i in range(n)])
    return lambda: lha.decode(column, "kafka", where=where)


@case(100)
def where_with_many_or_as_text(n: int) -> Job:
    where = " or ".join(f"k = 'v{i}'" for i in range(n))
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(200)
def where_with_many_or_as_an_object(n: int) -> Job:
    where = reduce(or_, (lh.col("k") == f"v{i}" for i in range(n)))
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(200)
def where_made_of_many_or(n: int) -> Job:
    return lambda: reduce(or_, [lh.col("k") == f"v{i}" for i in range(n)])


@case(200)
def where_with_many_or_pickled(n: int) -> Job:
    where = reduce(or_, (lh.col("k") == f"v{i}" for i in range(n)))
    return lambda: pickle.loads(pickle.dumps(where))


@case(100)
def where_with_many_keys(n: int) -> Job:
    column, where = message_of(n), " and ".join(f"k{i} = 'v'" for i in range(n))
    return lambda: lha.decode(column, "kafka", where=where)


@case(400)
def where_of_many_brackets(n: int) -> Job:
    return raised(lambda: lha.decode(ONE, "kafka", where="(" * n + "k = 'v'" + ")" * n))


@case(1000)
def where_of_many_quotes(n: int) -> Job:
    where = "k = '" + "''" * n + "'"
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(10_000)
def where_of_blanks(n: int) -> Job:
    where = "k" + " " * n + "= 'v'"
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(10_000)
def where_that_ends_too_early(n: int) -> Job:
    return raised(lambda: lha.decode(ONE, "kafka", where="k = '" + "v" * n))


@case(50_000)
def where_a_long_value_contains_a_long_part(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"a" * 2 * n)], "kafka")])
    where = lh.col("k").contains("a" * (n - 1) + "b")
    return lambda: lha.decode(column, "kafka", where=where)


# Headers ----------------------------------------------------------------------------------------------------------------


@case(1000)
def headers_made_of_pairs(n: int) -> Job:
    pairs = headers_of(n)
    return lambda: lh.Headers(pairs)


@case(1000)
def headers_get_of_many_keys(n: int) -> Job:
    headers, keys = lh.Headers(headers_of(n)), [f"k{i}" for i in range(n)]
    return lambda: [headers.get(key) for key in keys]


@case(1000)
def headers_get_of_many_absent_keys(n: int) -> Job:
    headers, keys = lh.Headers(headers_of(n)), [f"x{i}" for i in range(n)]
    return lambda: [headers.get_all(key) for key in keys]


@case(1000)
def headers_remove_of_many_keys(n: int) -> Job:
    pairs, keys = headers_of(n), [f"k{i}" for i in range(n)]

    def remove() -> None:
        headers = lh.Headers(pairs)
        for key in keys:
            headers.remove(key)

    return remove


@case(400)
def headers_add_remove_and_get_in_turn(n: int) -> Job:
    pairs = headers_of(n)

    def change() -> None:
        headers = lh.Headers(pairs)
        for i in range(n):
            headers.remove(f"k{i}")
            headers.add(f"n{i}", b"v")
            headers.get(f"k{n - 1}")

    return change


@case(1000)
def headers_of_decoded_bytes_get_of_many_keys(n: int) -> Job:
    data, keys = lh.encode(headers_of(n), "kafka"), [f"k{i}" for i in range(n)]

    def read() -> None:
        headers: Any = lh.decode(data or b"", "kafka")
        for key in keys:
            headers.get(key)

    return read


@case(1000)
def headers_unique(n: int) -> Job:
    headers = lh.Headers(headers_of(n) * 2)
    return lambda: headers.unique()


@case(500)
def headers_edit_of_many_keys(n: int) -> Job:
    headers = lh.Headers(headers_of(2 * n))
    rename = {f"k{i}": f"n{i}" for i in range(n)}
    return lambda: headers.edit(rename=rename, set={f"k{i}": b"v" for i in range(n, 2 * n)})


@case(500)
def headers_edit_that_drops_many_keys(n: int) -> Job:
    headers, keys = lh.Headers(headers_of(n)), [f"k{i}" for i in range(n)]
    return lambda: headers.edit(drop=keys)


@case(500)
def headers_edit_without_regard_to_case(n: int) -> Job:
    headers, masks = lh.Headers(headers_of(n)), {f"K{i}": "hash" for i in range(n)}
    return lambda: headers.edit(replace=masks, ignore_case=True)


@case(1000)
def headers_equal(n: int) -> Job:
    one, other = lh.Headers(headers_of(n)), lh.Headers(headers_of(n))
    return lambda: one == other


# edits of columns -------------------------------------------------------------------------------------------------------


@case(200)
def edit_that_sets_many_keys(n: int) -> Job:
    column, set = message_of(n), {f"k{2 * i}": b"w" for i in range(n)}
    return lambda: lha.edit(column, "kafka", set=set)


@case(500)
def edit_that_keeps_many_keys(n: int) -> Job:
    column, keys = message_of(n), [f"k{i}" for i in range(0, n, 2)]
    return lambda: lha.edit(column, "kafka", only=keys)


@case(500)
def edit_that_drops_many_keys(n: int) -> Job:
    column, keys = message_of(n), [f"k{i}" for i in range(n)]
    return lambda: lha.edit(column, "kafka", drop=keys)


@case(500)
def edit_that_renames_many_keys(n: int) -> Job:
    column, rename = message_of(n), {f"k{i}": f"n{i}" for i in range(n)}
    return lambda: lha.edit(column, "kafka", rename=rename)


@case(200)
def edit_that_masks_many_keys(n: int) -> Job:
    column, masks = message_of(n), {f"k{i}": lh.hmac(SECRET) for i in range(n)}
    return lambda: lha.edit(column, "kafka", replace=masks)


@case(200)
def edit_that_masks_many_keys_without_regard_to_case(n: int) -> Job:
    column, masks = message_of(n), {f"K{i}": "redact" for i in range(n)}
    return lambda: lha.edit(column, "kafka", replace=masks, ignore_case=True)


@case(300)
def edit_that_appends_many_headers(n: int) -> Job:
    append = [(f"n{i}", b"v") for i in range(n)]
    return lambda: lha.edit(ONE, "kafka", append=append)


@case(100)
def edit_that_calls_functions(n: int) -> Job:
    column = message_of(n)
    masks: dict[str, Any] = {f"k{i}": lambda values: values for i in range(n)}
    return lambda: lha.edit(column, "kafka", replace=masks)


@case(2000)
def edit_of_rows(n: int) -> Job:
    column = rows_of(n)
    return lambda: lha.edit(column, "kafka", replace={"k": "redact"}, append=[("n", b"v")])


@case(2000)
def edit_of_rows_with_a_function(n: int) -> Job:
    column = rows_of(n)
    return lambda: lha.edit(column, "kafka", replace={"route": lambda values: values})


@case(60)
def edit_of_chunks_with_functions(n: int) -> Job:
    column = chunks_of(n)
    return lambda: lha.edit(column, "kafka", replace={"k": lambda values: values})


@case(2000)
def edit_of_rows_with_a_column(n: int) -> Job:
    column = rows_of(n)
    values = pa.array([b"v"] * n)
    return lambda: lha.edit(column, "kafka", set={"k": values})


@case(200)
def edit_of_chunks_with_masks(n: int) -> Job:
    column = chunks_of(n)
    return lambda: lha.edit(column, "kafka", replace={"k": "redact", "route": "redact"})


# writing ----------------------------------------------------------------------------------------------------------------


@case(200)
def pack_of_many_columns(n: int) -> Job:
    table = pa.table({f"k{i}": ["v"] for i in range(n)})
    return lambda: lha.pack(table)


@case(200)
def pack_of_many_columns_with_types(n: int) -> Job:
    table, columns = pa.table({f"k{i}": [1] for i in range(n)}), {f"k{i}": "int64" for i in range(n)}
    return lambda: lha.pack(table, columns)


@case(2000)
def pack_of_rows(n: int) -> Job:
    table = pa.table({"a": ["v"] * n, "b": list(range(n)), "c": [["x", "y"]] * n})
    return lambda: lha.pack(table)


@case(500)
def pack_of_a_stream(n: int) -> Job:
    table = pa.table({"a": pa.chunked_array([["v"]] * n)})
    return lambda: list(lha.pack(table.to_reader()))


@case(20_000)
def pack_of_a_long_list_that_is_split(n: int) -> Job:
    table = pa.table({"a": [["x"] * n]})
    return lambda: lha.pack(table, {"a": lh.field("array<string>", split=",")})


@case(500)
def encode_with_many_types(n: int) -> Job:
    column = lha.decode(message_of(n), "kafka")
    types = {f"k{i}": "string" for i in range(n)}
    return lambda: lha.encode(column, "kip82-typed", types=types)


@case(500)
def encode_of_one_message_with_many_types(n: int) -> Job:
    headers, types = lh.Headers(headers_of(n)), {f"k{i}": "string" for i in range(n)}
    return lambda: lh.encode(headers, "kip82-typed", types=types)


@case(500)
def convert_with_many_losses(n: int) -> Job:
    column = pa.array([lh.encode([(f"k{i}", lh.Int32(i)) for i in range(n)], "kip82-typed")])
    return lambda: lha.convert(column, "kip82-typed", target="kafka", on_loss="report")


@case(500)
def convert_of_rows_with_losses(n: int) -> Job:
    column = pa.array([lh.encode([("k", lh.Int32(i))], "kip82-typed") for i in range(n)])
    return lambda: lha.convert(column, "kip82-typed", target="kafka", on_loss="report")


@case(300)
def batch_of_messages(n: int) -> Job:
    messages = [lh.Message(offset=i, key=None, value=b"v", headers=[("k", b"v")]) for i in range(n)]
    return lambda: lh.batch(messages)


# values and conventions -------------------------------------------------------------------------------------------------


def value_of(value: bytes, type: str) -> Job:
    """Select a value as a type; it may be an error."""
    column = pa.array([lh.encode([("k", value)], "kafka")])
    return lambda: lha.select(column, {"k": type}, errors="column")


@case(50_000)
def a_value_of_many_digits_as_int64_text(n: int) -> Job:
    return value_of(b"0" * n + b"1", "int64:text")


@case(50_000)
def a_value_of_many_digits_as_a_decimal(n: int) -> Job:
    return value_of(b"0." + b"0" * n + b"1", "decimal(10, 2):text")


@case(50_000)
def a_value_of_many_digits_as_float64_text(n: int) -> Job:
    return value_of(b"1." + b"1" * n, "float64:text")


@case(50_000)
def a_value_of_many_digits_as_a_time(n: int) -> Job:
    return value_of(b"2026-01-31T09:30:00." + b"1" * n + b"Z", "timestamp:iso")


@case(50_000)
def a_value_in_base64(n: int) -> Job:
    return value_of(b"YWJj" * (n // 4), "binary:base64")


@case(50_000)
def a_value_in_hex(n: int) -> Job:
    return value_of(b"ab" * n, "binary:hex")


@case(20_000)
def a_value_in_json(n: int) -> Job:
    return value_of(b'"' + b"\\u00e9" * n + b'"', "string:json")


@case(20_000)
def a_value_of_many_bytes_as_a_big_integer(n: int) -> Job:
    return value_of(b"\0" * n + b"\1", "int64:varlen")


@case(50_000)
def a_long_value_that_is_no_utf8(n: int) -> Job:
    return value_of(b"a" * n + b"\xff", "string")


@case(600)
def times_of_rfc_3339(n: int) -> Job:
    column = pa.array([b"2026-01-31T09:30:00.123456789+01:00"] * n)
    return lambda: lha.rfc3339(column)


@case(2000)
def values_of_amqp(n: int) -> Job:
    column = pa.array([b"\xa1\x05tenan"] * n)
    return lambda: lha.amqp(column, "string")


@case(2000)
def trace_contexts(n: int) -> Job:
    column = pa.array([b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"] * n)
    return lambda: lha.traceparent(column)


def traced(tracestate: bytes, baggage: bytes) -> Job:
    """Read the span links of a message."""
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = [("traceparent", trace), ("tracestate", tracestate), ("baggage", baggage)]
    column = pa.array([lh.encode(headers, "kafka")])
    return lambda: lha.trace_links(column, baggage=["tenant"], errors="null")


@case(2000)
def trace_states_of_many_members(n: int) -> Job:
    return traced(b",".join(b"k%d=v" % i for i in range(n)), b"")


@case(2000)
def baggage_of_many_members(n: int) -> Job:
    return traced(b"", b",".join(b"k%d=v" % i for i in range(n)))


@case(10_000)
def baggage_of_blanks(n: int) -> Job:
    return traced(b"", b"tenant = " + b" " * n + b"a" + b" " * n + b"x")


@case(200)
def schema_ids_of_many_schemas(n: int) -> Job:
    column = pa.array([b"\0" + i.to_bytes(4, "big") + b"v" for i in range(n)])
    return lambda: lha.by_schema_id(column)


@case(100)
def values_of_many_schemas_decoded(n: int) -> Job:
    column = pa.array([b"\0" + i.to_bytes(4, "big") + b"v" for i in range(n)])
    schema = pa.schema([("v", pa.binary())])

    def decode(group: Any) -> Any:
        return pa.StructArray.from_arrays([group.values], fields=list(schema))

    return lambda: lha.decode_by_schema(column, decode, schema)


# Settings and files of text ---------------------------------------------------------------------------------------------

_FILES = TemporaryDirectory(prefix="letterhead-growth-")


def file_of(name: str, text: str) -> Path:
    """Return a file with a text."""
    path = Path(_FILES.name, name)
    path.write_text(text)
    return path


@case(20_000)
def unclosed_references_of_a_setting(n: int) -> Job:
    value = "${env:" * n
    return lambda: expand("sasl.password", value)


@case(2_000)
def references_of_a_setting(n: int) -> Job:
    value = "${env:PATH} and " * n
    return lambda: expand("sasl.password", value)


@case(5_000)
def properties_of_many_names(n: int) -> Job:
    path = file_of("names.properties", "".join(f"name.{i} = value\\u20ac {i}\n" for i in range(n)))
    return lambda: read_properties(path)


@case(5_000)
def properties_of_many_continuations(n: int) -> Job:
    path = file_of("lines.properties", "name = a\\\n" + "  b\\\n" * n)
    return lambda: read_properties(path)


@case(50_000)
def properties_of_many_backslashes(n: int) -> Job:
    path = file_of("slashes.properties", "name" + "\\" * n + "\n")
    return lambda: read_properties(path)


@case(50_000)
def properties_of_blanks(n: int) -> Job:
    path = file_of("blanks.properties", "name" + " " * n + "=" + " " * n + "value" + " " * n)
    return lambda: read_properties(path)


@case(5_000)
def settings_of_kcat(n: int) -> Job:
    path = file_of("kcat.conf", "".join(f"name.{i}=value\n" for i in range(n)))
    return lambda: read_client_config(path)


@case(2_000)
def jaas_of_many_options(n: int) -> Job:
    text = "a.b.Module required " + " ".join(f'name{i}="value"' for i in range(n)) + ";"
    return lambda: parse_jaas(text)


@case(50_000)
def jaas_of_blanks(n: int) -> Job:
    text = "a.b.Module required" + " " * n + "name" + " " * n + "=" + " " * n + '"value";'
    return lambda: parse_jaas(text)


@case(50_000)
def jaas_of_an_unclosed_quote(n: int) -> Job:
    text = 'a.b.Module required name="' + '\\"' * n
    return lambda: parse_jaas(text)


@case(20_000)
def jaas_of_many_quotes(n: int) -> Job:
    text = "a.b.Module required name=" + "\"'" * n
    return lambda: parse_jaas(text)


@case(20_000)
def jaas_of_comments(n: int) -> Job:
    text = "a.b.Module required " + "/* " * n
    return lambda: parse_jaas(text)


@case(2_000)
def json_lines_of_rows(n: int) -> Job:
    path = file_of("rows.jsonl", "".join(f'{{"id": {i}, "text": "row {i}"}}\n' for i in range(n)))
    return lambda: lh.open(path).read_all()


@case(200)
def json_lines_of_many_names(n: int) -> Job:
    path = file_of("names.jsonl", "{" + ", ".join(f'"name{i}": {i}' for i in range(n)) + "}\n")
    return lambda: lh.open(path).read_all()


@case(2_000)
def json_lines_of_a_row_with_many_headers(n: int) -> Job:
    headers = ", ".join(f'{{"key": "k{i}", "value": "v"}}' for i in range(n))
    path = file_of("headers.jsonl", f'{{"headers": [{headers}]}}\n')
    return lambda: lh.open(path).read_all()


@case(50_000)
def json_lines_of_a_long_text(n: int) -> Job:
    path = file_of("text.jsonl", '{"text": "' + "\\n" * n + '"}\n')
    return lambda: lh.open(path).read_all()


@case(20_000)
def json_lines_of_a_text_without_an_end(n: int) -> Job:
    path = file_of("unclosed.jsonl", '{"text": "' + '\\",' * n)
    limits = lh.Limits(headers=n // 2)
    return raised(lambda: lh.open(path, limits=limits).read_all())


@case(20_000)
def records_in_json_of_a_text_without_an_end(n: int) -> Job:
    text = b'{"headers": [], "value": "' + b'\\",' * n
    return raised(lambda: [*json_records([text])])


@case(10_000)
def json_lines_of_blank_lines(n: int) -> Job:
    path = file_of("blank.jsonl", "\n" * n + '{"id": 1}\n')
    return lambda: lh.open(path).read_all()


# Conditions on all headers, and on text -----------------------------------------------------------------------------------


@case(500)
def where_any_header_of_many(n: int) -> Job:
    column = message_of(n)
    return lambda: lha.decode(column, "kafka", where="any(headers) = 'x'")


@case(200)
def where_with_many_patterns(n: int) -> Job:
    where = " or ".join(f"k{i} rlike 'a{i}.*'" for i in range(n))
    return lambda: lha.decode(ONE, "kafka", where=where)


@case(20_000)
def where_a_long_value_matches_a_pattern(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"a" * n)], "kafka")])
    return lambda: lha.decode(column, "kafka", where="k rlike '(a+)+b'")


@case(20_000)
def where_a_long_value_is_like_a_pattern(n: int) -> Job:
    column = pa.array([lh.encode([("k", b"a" * n)], "kafka")])
    return lambda: lha.decode(column, "kafka", where="k ilike '%a%a%a%a%b%'")
