"""What an error advises works: it is in the message, and in a call that succeeds."""

from __future__ import annotations

import re
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import make_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import UnseenHeaderWarning

HEADERS = [("k", b"1"), ("n", None), ("route", b"a"), ("route", b"b")]
MESSAGE = lh.encode(HEADERS, "kafka")
TYPED = lh.encode([("retry", lh.Int32(3))], "kip82-typed")
BATCH = lh.batch([lh.Message(offset=0, key=None, value=b"v", headers=HEADERS)])
COLUMN = pa.array([MESSAGE])
DAMAGED = pa.array([MESSAGE, b"\x02"])
EXACT = pa.table({"at": pa.array([datetime(2026, 1, 31, 9, 30, 0, 123456, UTC)], pa.timestamp("us", "UTC"))})
NAIVE = pa.table({"at": pa.array([datetime(2026, 1, 31)], pa.timestamp("ms"))})
DECIMALS = pa.table({"d": [Decimal("1.25")]})
STRUCTS = pa.table({"s": [{"a": 1}]})
NULLS = pa.table({"d": pa.array([None], pa.string())})
LISTS = lha.decode(COLUMN, "kafka")
FEW = lh.Limits(headers=1)

NAMES: dict[str, Any] = {name: value for name, value in globals().items() if name.isupper()} | {
    "Annotated": Annotated, "Decimal": Decimal, "date": date, "datetime": datetime, "lh": lh, "lha": lha,
    "letterhead": lh, "make_dataclass": make_dataclass, "pa": pa, "pc": pc, "pyarrow": pa, "table": pa.table({"number": [1], "serialized": COLUMN}), "secrets": secrets, "UUID": UUID,
}  # fmt: skip


class Advice(NamedTuple):
    """A call that fails, what its error advises, where ``...`` is anything, and a call that follows the advice."""

    wrong: str
    advised: str
    right: str


TYPES = [
    Advice("lh.field('string', split=',')", "'array<string>'", "lh.field('array<string>', split=',')"),
    Advice(
        "lh.field('timestamp_ms', default=datetime(2026, 1, 31))",
        "datetime(..., tzinfo=UTC)",
        "lh.field('timestamp_ms', default=datetime(2026, 1, 31, tzinfo=UTC))",
    ),
    Advice(
        "lh.field('timestamp_ms', default=datetime(2026, 1, 31, 0, 0, 0, 5, UTC))",
        "'timestamp:iso'",
        "lh.field('timestamp:iso', default=datetime(2026, 1, 31, 0, 0, 0, 5, UTC))",
    ),
    Advice("lh.field('timestamp:text')", "'timestamp:iso'", "lh.field('timestamp:iso')"),
    Advice("lh.field('timestamp:text')", "'timestamp:s'", "lh.field('timestamp:s')"),
    Advice("lh.field('uuid:le')", "'uuid:guid'", "lh.field('uuid:guid')"),
    Advice("lh.field('uuid:le')", "'uuid:reversed'", "lh.field('uuid:reversed')"),
    Advice("lh.field('decimal(3, 1)')", "'decimal(3,1):text'", "lh.field('decimal(3,1):text')"),
    Advice("lh.field('amt', 'int64')", "field('int64', 'amt')", "lh.field('int64', 'amt')"),
    Advice("lh.field('amt', 'int64be')", "field('int64:be', 'amt')", "lh.field('int64:be', 'amt')"),
    Advice("lh.field('int32_le')", "'int32:le'", "lh.field('int32:le')"),
    Advice("lh.field('uint16-text')", "'uint16:text'", "lh.field('uint16:text')"),
    Advice("lh.field('date')", "'date:text'", "lh.field('date:text')"),
    Advice("lh.field('varchar(3)')", "'string'", "lh.field('string')"),
    Advice("lh.field('array<int> | array<int:text>')", "array<... | ...>", "lh.field('array<int | int:text>')"),
]
READS = [
    Advice(
        "lh.select(MESSAGE, \"k string default 'x'\")",
        "lh.field(..., default=...)",
        "lh.select(MESSAGE, {'k': lh.field('string', default='x')})",
    ),
    Advice(
        "lh.select(MESSAGE, make_dataclass('C', [('n', list[Annotated[int, lh.field('int32')]])]))",
        "Annotated[int, 'int32']",
        "lh.select(MESSAGE, make_dataclass('C', [('n', list[Annotated[int, 'int32']])]))",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', error_column='e')",
        "errors='column'",
        "lha.decode(COLUMN, 'kafka', error_column='e', errors='column')",
    ),
    Advice(
        "lha.select(COLUMN, 'error string', errors='column')",
        "error_column=",
        "lha.select(COLUMN, 'error string', errors='column', error_column='errors')",
    ),
    Advice("lh.decode(MESSAGE, 'kafak')", "'kafka'", "lh.decode(MESSAGE, 'kafka')"),
    Advice("lh.decode(BATCH, 'record-batch')", "messages", "lh.messages(BATCH, 'record-batch')"),
    Advice("lh.messages(MESSAGE, 'kafka')", "decode", "lh.decode(MESSAGE, 'kafka')"),
    Advice("lha.scan(COLUMN, 'kafka', max_keys=0)", "1", "lha.scan(COLUMN, 'kafka', max_keys=1)"),
    Advice(
        "lh.decode(MESSAGE, 'kafka', limits=FEW)", "limits=", "lh.decode(MESSAGE, 'kafka', limits=lh.Limits(headers=4))"
    ),
    Advice("lha.select(COLUMN, 'k int')", 'errors="column"', "lha.select(COLUMN, 'k int', errors=\"column\")"),
    Advice("lha.decode(DAMAGED, 'kafka')", 'errors="column"', "lha.decode(DAMAGED, 'kafka', errors=\"column\")"),
    Advice(
        "lha.messages(DAMAGED, 'record-batch')",
        'errors="column"',
        "lha.messages(DAMAGED, 'record-batch', errors=\"column\")",
    ),
    Advice(
        "lha.convert(DAMAGED, 'kafka', target='kip82-typed', types='binary')",
        'errors="column"',
        "lha.convert(DAMAGED, 'kafka', target='kip82-typed', types='binary', errors=\"column\")",
    ),
    Advice("lha.select(table, 'k string')", 'table["serialized"]', "lha.select(table[\"serialized\"], 'k string')"),
    Advice("lha.decode([b'\\0'], 'kafka')", "pyarrow.array(...)", "lha.decode(pyarrow.array([b'\\0']), 'kafka')"),
    Advice("lha.amqp((b'\\x41',), 'bool')", "pyarrow.array(...)", "lha.amqp(pyarrow.array((b'\\x41',)), 'bool')"),
    Advice(
        "lha.decode(COLUMN.to_numpy(zero_copy_only=False), 'kafka')",
        "pyarrow.array(...)",
        "lha.decode(pyarrow.array(COLUMN.to_numpy(zero_copy_only=False)), 'kafka')",
    ),
    Advice("lha.traceparent(DAMAGED)", 'errors="column"', 'lha.traceparent(DAMAGED, errors="column")'),
    Advice("lha.trace_links(DAMAGED)", 'errors="null"', 'lha.trace_links(DAMAGED, errors="null")'),
    Advice("lha.by_schema_id(DAMAGED)", 'errors="null"', 'lha.by_schema_id(DAMAGED, errors="null")'),
]
CONDITIONS = [
    Advice(
        "lha.decode(COLUMN, 'kafka', where='k = \"acme\"')",
        "'acme'",
        "lha.decode(COLUMN, 'kafka', where=\"k = 'acme'\")",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=\"`content-type` = 'acme'\")",
        '"content-type"',
        "lha.decode(COLUMN, 'kafka', where='\"content-type\" = \\'acme\\'')",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=\"`content-type` = 'acme'\")",
        "headers['content-type']",
        "lha.decode(COLUMN, 'kafka', where=\"headers['content-type'] = 'acme'\")",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where='k = null')", "IS NULL", "lha.decode(COLUMN, 'kafka', where='k IS NULL')"
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where='n')",
        "n::bool = true",
        "lha.decode(COLUMN, 'kafka', where='n::bool = true')",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where='n = 5')", "::int32", "lha.decode(COLUMN, 'kafka', where='n::int32 = 5')"
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('n') == 5)",
        "'int32'",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'int32') == 5)",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('k'))",
        "col('k') == ",
        "lha.decode(COLUMN, 'kafka', where=lh.col('k') == '1')",
    ),
    Advice("lh.col('k') == None", "is_null()", "lh.col('k').is_null()"),
    Advice(
        "lha.messages(pa.array([BATCH]), 'record-batch', where='timestamp > 2026-01-31')",
        "'2026-01-31T00:00:00Z'",
        "lha.messages(pa.array([BATCH]), 'record-batch', where=\"timestamp > '2026-01-31T00:00:00Z'\")",
    ),
    Advice(
        "lha.messages(pa.array([BATCH]), 'record-batch', where=\"timestamp > '2026-01-31'\")",
        "'2026-01-31T00:00:00Z'",
        "lha.messages(pa.array([BATCH]), 'record-batch', where=\"timestamp > '2026-01-31T00:00:00Z'\")",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where='n::\"date:text\" > 2026-01-31')",
        "'2026-01-31'",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'date:text') > '2026-01-31')",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=\"route = any('a')\")",
        "'a' = ANY(route)",
        "lha.decode(COLUMN, 'kafka', where=\"'a' = ANY(route)\")",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where='x-route-id is null')",
        "headers['x-route-id']",
        "lha.decode(COLUMN, 'kafka', where=\"headers['x-route-id'] is null\")",
    ),
    Advice("lha.decode(LISTS, 'kafka')", "select", "lha.select(LISTS, {'k': 'string'})"),
    Advice("lha.decode(LISTS, 'kafka')", "encode", "lha.decode(lha.encode(LISTS, 'kafka'), 'kafka')"),
    Advice("(lh.col('k') == 'a') and (lh.col('n') == 'b')", "&", "(lh.col('k') == 'a') & (lh.col('n') == 'b')"),
    Advice("not (lh.col('k') == 'a')", "~", "~(lh.col('k') == 'a')"),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'timestamp_ms') == datetime(2026, 1, 1))",
        "datetime(..., tzinfo=UTC)",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'timestamp_ms') == datetime(2026, 1, 1, tzinfo=UTC))",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'timestamp_ms') == 'yesterday')",
        "'2026-01-01T08:30:00Z'",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'timestamp_ms') == '2026-01-01T08:30:00Z')",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'timestamp_ms') == 'tomorrow')",
        "'-1h'",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'timestamp_ms') >= '-1h')",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'date:text') == 5)",
        "date",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'date:text') == date(2026, 1, 31))",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'decimal(3, 1):text') == 'x')",
        "Decimal",
        "lha.decode(COLUMN, 'kafka', where=lh.col('n', 'decimal(3, 1):text') == Decimal('1.5'))",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=lh.col('k', 'array<string>') == 'a')",
        "any()",
        "lha.decode(COLUMN, 'kafka', where=lh.col('k').any() == 'a')",
    ),
    Advice("lh.col('k', repeat='all')", "col(...).any()", "lh.col('k').any()"),
    Advice(
        "lh.col('k', repeat='first')", "col('k', 'string', repeat='first')", "lh.col('k', 'string', repeat='first')"
    ),
    Advice(
        "lh.col('k', lh.field('string'), repeat='first')",
        "lh.field(..., repeat=...)",
        "lh.col('k', lh.field('string', repeat='first'))",
    ),
    Advice(
        "lha.decode(COLUMN, 'kafka', where=pc.field('k') == 'a')",
        "letterhead.col",
        "lha.decode(COLUMN, 'kafka', where=letterhead.col('k') == 'a')",
    ),
]
EDITS = [
    Advice("lha.edit(COLUMN, 'kafka')", "drop", "lha.edit(COLUMN, 'kafka', drop=[])"),
    Advice(
        "lha.edit(COLUMN, 'kafka', set={'k': b'v'}, ignore_case=True)",
        "append=",
        "lha.edit(COLUMN, 'kafka', drop=['k'], append={'k': b'v'}, ignore_case=True)",
    ),
    Advice(
        "lha.edit(COLUMN, 'kafka', replace={'k': 'hsh'})", "'hash'", "lha.edit(COLUMN, 'kafka', replace={'k': 'hash'})"
    ),
    Advice(
        "lha.edit(COLUMN, 'kafka', replace={'k': 'hsh'})",
        "lh.lit('hsh')",
        "lha.edit(COLUMN, 'kafka', replace={'k': lh.lit('hsh')})",
    ),
    Advice(
        "lha.edit(COLUMN, 'kafka', replace={'k': None})",
        "lh.lit(None)",
        "lha.edit(COLUMN, 'kafka', replace={'k': lh.lit(None)})",
    ),
    Advice(
        "lha.edit(COLUMN, 'kafka', set={'k': 3})",
        "lh.Int32(3).bits",
        "lha.edit(COLUMN, 'kafka', set={'k': lh.Int32(3).bits})",
    ),
    Advice("lha.edit(COLUMN, 'kafka', set={'k': 3})", "'3'", "lha.edit(COLUMN, 'kafka', set={'k': lh.lit('3')})"),
    Advice(
        "lha.edit(pa.array([TYPED]), 'kip82-typed', set={'k': 3})",
        "lh.Int32(3)",
        "lha.edit(pa.array([TYPED]), 'kip82-typed', set={'k': lh.Int32(3)})",
    ),
    Advice(
        "lh.encode({'at': datetime(2026, 1, 31, tzinfo=UTC)}, 'kafka')",
        "value.isoformat()",
        "(value := datetime(2026, 1, 31, tzinfo=UTC), lh.encode({'at': value.isoformat()}, 'kafka'))",
    ),
    Advice(
        "lh.encode({'id': UUID(int=5)}, 'kafka')",
        "value.bytes",
        "(value := UUID(int=5), lh.encode({'id': value.bytes}, 'kafka'))",
    ),
    Advice(
        "lh.encode({'id': UUID(int=5)}, 'kafka')",
        "str(value)",
        "(value := UUID(int=5), lh.encode({'id': str(value)}, 'kafka'))",
    ),
    Advice(
        "lh.Headers().add('k', ['a', 'b'])",
        "[(key, value) for value in values]",
        "(key := 'k', values := ['a', 'b'], lh.Headers([(key, value) for value in values]))",
    ),
    Advice(
        "lha.edit(COLUMN, 'kafka', replace={'k': lambda value: int(value)})",
        "lambda values: pyarrow.compute.utf8_upper(values.cast('string'))",
        "lha.edit(COLUMN, 'kafka', replace={'k': lambda values: pyarrow.compute.utf8_upper(values.cast('string'))})",
    ),
    Advice("lh.lit(3)", "lh.Int32(3).bits", "lha.edit(COLUMN, 'kafka', set={'k': lh.lit(lh.Int32(3).bits)})"),
    Advice(
        "lha.edit(COLUMN, 'kafka', set={'k': lh.Int32(5)})",
        "lh.Int64(3).bits",
        "lha.edit(COLUMN, 'kafka', set={'k': lh.Int64(3).bits})",
    ),
    Advice(
        "lha.edit(DAMAGED, 'kafka', drop=['k'])",
        'errors="column"',
        "lha.edit(DAMAGED, 'kafka', drop=['k'], errors=\"column\")",
    ),
    Advice("lh.hmac('short')", "secrets.token_bytes(32)", "lh.hmac(secrets.token_bytes(32))"),
    Advice(
        "lh.Headers(HEADERS).frozen().add('x', b'')",
        "Headers(headers)",
        "(headers := lh.Headers(HEADERS).frozen(), lh.Headers(headers).add('x', b''))",
    ),
]
WRITES = [
    Advice("lha.pack(NAIVE)", 'pyarrow.compute.assume_timezone(column, "UTC")', "(column := NAIVE['at'], lha.pack(pa.table({'at': pyarrow.compute.assume_timezone(column, \"UTC\")})))"),
    Advice("lha.pack(EXACT)", '"timestamp:iso"', "lha.pack(EXACT, {'at': \"timestamp:iso\"})"),
    Advice("lha.pack(EXACT)", "truncate=True", "lha.pack(EXACT, truncate=True)"),
    Advice("lha.pack(DECIMALS, {'d': 'decimal(3, 1):text'})", "truncate=True", "lha.pack(DECIMALS, {'d': 'decimal(3, 1):text'}, truncate=True)"),
    Advice("lha.pack(NULLS, format='iggy', nulls='keep')", 'nulls="skip"', "lha.pack(NULLS, format='iggy', nulls=\"skip\")"),
    Advice("lh.encode({'retry': lh.Int32(5)}, 'kafka')", 'types="be"', "lh.encode({'retry': lh.Int32(5)}, 'kafka', types=\"be\")"),
    Advice("lh.encode({'retry': bytes(4)}, 'iggy')", 'types={"retry": "int32"}', "lh.encode({'retry': bytes(4)}, 'iggy', types={\"retry\": \"int32\"})"),
    Advice("lh.encode({'retry': bytes(4)}, 'iggy')", 'types="binary"', "lh.encode({'retry': bytes(4)}, 'iggy', types=\"binary\")"),
    Advice("lh.encode({'k': bytes(4)}, 'iggy', types='be')", "types={key: type}", "(key := 'k', type := 'int32', lh.encode({'k': bytes(4)}, 'iggy', types={key: type}))"),
    Advice("lh.encode({'k': lh.Int32(5)}, 'kafka', types={'k': 'int32'})", 'types="be"', "lh.encode({'k': lh.Int32(5)}, 'kafka', types=\"be\")"),
    Advice("lh.convert(TYPED, 'kip82-typed', target='kafka')", 'types="be"', "lh.convert(TYPED, 'kip82-typed', target='kafka', types=\"be\")"),
    Advice("lh.batch([], 'kafka')", "encode", "lh.encode([], 'kafka')"),
]  # fmt: skip


@pytest.mark.parametrize("advice", [*TYPES, *READS, *CONDITIONS, *EDITS, *WRITES], ids=lambda advice: advice.wrong)
def test_pasted_advice_works(advice: Advice) -> None:
    with pytest.raises((TypeError, ValueError, lh.HeaderError)) as raised:
        run(advice.wrong)
    message = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert advice.advised in message
    assert re.search(re.escape(advice.advised).replace(re.escape("..."), ".*"), advice.right)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(advice.right)


def test_warning_advice_works() -> None:
    with pytest.warns(UnseenHeaderWarning, match="ignore_case=True"):
        lha.edit(COLUMN, "kafka", replace={"ROUTE": "hash"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edited = lha.edit(COLUMN, "kafka", replace={"ROUTE": "redact"}, ignore_case=True)
    assert lh.decode(edited[0].as_py(), "kafka")["route"] == b"***"


def run(call: str) -> None:
    result = eval(call, dict(NAMES))
    if isinstance(result, Iterator):
        list(result)
