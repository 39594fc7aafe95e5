"""The Rust core and its twin in plain Python: whatever the bytes, the same values and the same faults."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letterhead as lh
import strategies
from implementations import columns_of, fault_of, headers_type, messages, place
from letterhead import _native
from letterhead import arrow as lha
from letterhead.columns import ORDERS, SELECT_TYPES
from letterhead.errors import Fault, HeaderError
from letterhead.reference import kinds, ops
from letterhead.reference.formats import FORMATS

BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]

errors_options = st.sampled_from(["raise", "null", "column"])
layouts = strategies.layouts()


@st.composite
def format_and_cells(draw: st.DrawFn) -> tuple[str, list[bytes | None]]:
    format = draw(strategies.formats)
    return format, draw(st.lists(strategies.cells(format), max_size=5))


def outcome(call: Callable[[], Any]) -> Any:
    """Give what a call gives, or what its exception says, without the words."""
    try:
        return same(call())
    except HeaderError as error:
        return type(error), error.format, error.code, error.offset, error.row, error.header, error.key, error.column


def same(value: Any) -> Any:
    """Give a value in a form in which equal means the same: floats by bits, all NaNs one, faults by place."""
    if isinstance(value, Fault):
        return place(value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, dict):
        if set(value) == set(Fault._fields):
            return place(Fault(**value))
        if set(value) == {"key", "value"}:
            return (value["key"], None, value["value"])
        return {name: same(part) for name, part in value.items()}
    if isinstance(value, list):
        return [same(part) for part in value]
    return value


# --- the tables ------------------------------------------------------------------------------------------------------


def test_the_tables_of_formats_are_one() -> None:
    twin = [
        {"name": row.name, "is_": row.is_, "source": row.source, "layout": row.layout, "fields": list(row.fields)}
        for row in FORMATS.values()
    ]
    assert _native.formats() == twin


def test_the_tables_of_kinds_are_one() -> None:
    native = {row["name"]: (row["name"], row["kip82"], row["iggy"], row["width"]) for row in _native.kinds()}
    assert native == {row.name: tuple(row) for row in kinds.KINDS}


def test_the_types_of_select_are_one() -> None:
    assert sorted(_native.select_types()) == sorted(SELECT_TYPES)


# --- cells of bytes --------------------------------------------------------------------------------------------------


@given(format_and_cells(), errors_options, st.booleans(), st.sampled_from(BYTES), layouts)
def test_decode(
    given: tuple[str, list[bytes | None]], errors: Any, lenient: bool, of: pa.DataType, layout: tuple[int, int | None]
) -> None:
    format, rows = given
    column = strategies.lay(pa.array(rows, of), layout)
    native = outcome(lambda: lha.decode(column, format, errors=errors, lenient=lenient).to_pylist())
    assert native == outcome(lambda: ops.decode_rows(rows, format, errors=errors, lenient=lenient))


@given(format_and_cells(), st.sampled_from(BYTES), layouts)
def test_validate(given: tuple[str, list[bytes | None]], of: pa.DataType, layout: tuple[int, int | None]) -> None:
    format, rows = given
    column = strategies.lay(pa.array(rows, of), layout)
    assert same(lha.validate(column, format).to_pylist()) == same(ops.validate_rows(rows, format))


@given(
    format_and_cells(), strategies.columns, errors_options, st.booleans(), st.sampled_from(["arrow", "spark"]), layouts
)
def test_select(
    given: tuple[str, list[bytes | None]],
    columns: dict[str, lh.Field],
    errors: Any,
    lenient: bool,
    dialect: Any,
    layout: tuple[int, int | None],
) -> None:
    format, rows = given
    column = strategies.lay(pa.array(rows, pa.binary()), layout)
    options: dict[str, Any] = {"errors": errors, "lenient": lenient, "dialect": dialect}
    native = outcome(lambda: selected(column, format, columns, options))
    assert native == outcome(lambda: ops.select_rows(rows, format, columns, **options))


def selected(column: Any, format: str, columns: Any, options: dict[str, Any]) -> dict[str, list[Any]]:
    made = lha.select(column, format, columns, **options)
    if isinstance(made, pa.ChunkedArray):
        made = pa.concat_arrays(made.chunks) if made.num_chunks else pa.array([], made.type)
    return columns_of(made)


EVERY_SPELLING = [*SELECT_TYPES, *(f"{name}:{order}" for name in SELECT_TYPES[2:] for order in ORDERS)]


@pytest.mark.parametrize("type", EVERY_SPELLING)
def test_select_of_every_type_in_every_spelling(type: str) -> None:
    @settings(max_examples=max(10, settings.default.max_examples // 4))  # there are fifty of them
    @given(st.lists(strategies.values, max_size=8), st.sampled_from(["arrow", "spark"]))
    def check(values: list[bytes | None], dialect: Any) -> None:
        rows = [ops.encode([("a", value)], "kafka") for value in values]
        options = {"errors": "column", "dialect": dialect}
        columns = {"one": lh.field(type, key="a"), "all": lh.All(type, key="a")}
        native = outcome(lambda: selected(pa.array(rows, pa.binary()), "kafka", columns, options))
        assert native == outcome(lambda: ops.select_rows(rows, "kafka", columns, **options))

    check()


@pytest.mark.parametrize(("type", "bits"), [("float32", 0x7FA0_0001), ("float64", 0x7FF4_0000_0000_0001)])
@pytest.mark.parametrize("order", ["be", "le"])
def test_a_nan_keeps_its_payload(type: str, bits: int, order: Any) -> None:
    width = int(type[5:]) // 8
    data = bits.to_bytes(width, {"be": "big", "le": "little"}[order])
    cell = lh.encode([("a", data)], "kafka")
    made = lha.select(pa.array([cell]), "kafka", {"a": f"{type}:{order}"}).field(0)
    assert made.view(pa.uint32() if width == 4 else pa.uint64()).to_pylist() == [bits]


# --- a real store and a real topic -----------------------------------------------------------------------------------

WANTED = {
    "tenant": "string",
    "retry": "int32",
    "amount_cents": "int64",
    "weight_kg": "float64",
    "route": lh.All("string"),
    "note": "string",
    "blob": "binary",
    "event": lh.field("string", key="ce_type"),
    "señal-📦": "string",
}


def test_a_real_store_is_read_alike_and_written_back(samples: Path) -> None:
    column = pq.read_table(samples / "store-latest-0.parquet")["value"]
    rows = column.to_pylist()
    assert len(rows) == 6643
    read = lha.decode(column, "streams-timestamped")
    assert same(read.to_pylist()) == same(ops.decode_rows(rows, "streams-timestamped"))
    assert lha.encode(read, "streams-timestamped").to_pylist() == rows
    assert lha.validate(column, "streams-timestamped").null_count == len(rows)
    native = same(selected(column, "streams-timestamped", WANTED, {}))
    assert native == same(ops.select_rows(rows, "streams-timestamped", WANTED))
    assert all(any(value is not None for value in values) for values in native.values())


def test_a_real_topic_is_read_alike_as_lists_and_as_bytes(samples: Path) -> None:
    column = pq.read_table(samples / "orders-0.parquet")["headers"]
    rows = column.to_pylist()
    assert (len(rows), column.null_count) == (10_000, 300)
    from_lists = same(selected(column, "kafka", WANTED, {}))
    assert from_lists == same(ops.select_rows(rows, "kafka", WANTED, lists=True))
    cells = lha.encode(column, "kafka")
    assert cells.to_pylist() == ops.encode_rows(rows, "kafka")
    from_bytes = same(selected(cells, "kafka", WANTED, {}))
    # A message without a headers field is written as one without headers: its list of routes is empty, not null.
    assert from_bytes.pop("route") == [value or [] for value in from_lists.pop("route")]
    assert from_bytes == from_lists


# --- one message -----------------------------------------------------------------------------------------------------


@given(format_and_cells(), strategies.columns, st.booleans())
def test_one_message(given: tuple[str, list[bytes | None]], columns: dict[str, lh.Field], lenient: bool) -> None:
    format, rows = given
    for cell in filter(None, rows):
        native = outcome(partial(_native.decode, cell, format, lenient=lenient))
        assert native == outcome(partial(ops.decode, cell, format, lenient=lenient))
        chosen = outcome(partial(lh.select, cell, format, columns, lenient=lenient))
        assert chosen == outcome(partial(ops.select, cell, format, columns, lenient=lenient))
        assert [place(fault_of(error)) for error in lh.validate(cell, format)] == same(ops.validate(cell, format))


@given(format_and_cells())
def test_inspect_labels_every_byte_once(given: tuple[str, list[bytes | None]]) -> None:
    format, rows = given
    for cell in filter(None, rows):
        seen = lh.inspect(cell, format)
        assert same(seen["faults"]) == same(ops.validate(cell, format))
        at = 0
        for label in seen["labels"]:
            assert label.start == at < label.end
            at = label.end
        assert at == len(cell)


# --- lists of headers ------------------------------------------------------------------------------------------------

any_key = st.none() | strategies.keys
any_kind = st.sampled_from(
    [None, "int32", "string", "binary", "int64", "bool", "char", "kind-200", "kind-3", "kind-016", "nonsense"]
)


@st.composite
def list_rows(draw: st.DrawFn, *, typed: bool) -> list[Any]:
    plain = {"key": any_key, "value": strategies.values}
    header = st.none() | st.fixed_dictionaries({**plain, "kind": any_kind} if typed else plain)
    return draw(st.lists(st.none() | st.lists(header, max_size=5), max_size=5))


def list_column(rows: list[Any], *, typed: bool, layout: tuple[int, int | None]) -> Any:
    return strategies.lay(pa.array(rows, headers_type(kinds=typed)), layout)


@given(st.data(), strategies.formats, st.booleans(), strategies.columns, errors_options, layouts)
def test_select_from_lists(
    data: st.DataObject,
    format: str,
    typed: bool,
    columns: dict[str, lh.Field],
    errors: Any,
    layout: tuple[int, int | None],
) -> None:
    rows = data.draw(list_rows(typed=typed))
    column = list_column(rows, typed=typed, layout=layout)
    native = outcome(lambda: selected(column, format, columns, {"errors": errors}))
    assert native == outcome(lambda: ops.select_rows(rows, format, columns, errors=errors, lists=True))


@given(st.data(), strategies.formats, st.booleans(), layouts)
def test_validate_lists(data: st.DataObject, format: str, typed: bool, layout: tuple[int, int | None]) -> None:
    rows = data.draw(list_rows(typed=typed))
    column = list_column(rows, typed=typed, layout=layout)
    assert same(lha.validate(column, format).to_pylist()) == same(ops.validate_rows(rows, format))


# --- writing ---------------------------------------------------------------------------------------------------------

kinds_options = st.sampled_from([None, "be", "le", "text"])
null_headers_options = st.sampled_from(["empty", "raise"])


@given(
    st.data(), st.booleans(), kinds_options, st.sampled_from(["raise", "drop", "report"]), null_headers_options, layouts
)
def test_encode_lists(
    data: st.DataObject, typed: bool, how: Any, on_loss: Any, null_headers: Any, layout: tuple[int, int | None]
) -> None:
    rows: list[Any] = data.draw(list_rows(typed=typed))
    if typed and data.draw(st.booleans()):  # mostly values that are what their kind says
        drawn = data.draw(st.lists(st.none() | strategies.triples(), max_size=4))
        rows = [row and [dict(zip(("key", "kind", "value"), header, strict=True)) for header in row] for row in drawn]
    options: dict[str, Any] = {"kinds": how, "on_loss": on_loss, "null_headers": null_headers}
    column = list_column(rows, typed=typed, layout=layout)
    native = outcome(lambda: lha.encode(column, "kafka", **options).to_pylist())
    assert native == outcome(lambda: ops.encode_rows(rows, "kafka", **options))


@st.composite
def envelope_rows(draw: st.DrawFn) -> tuple[str, list[Any]]:
    format = draw(st.sampled_from([name for name, row in FORMATS.items() if row.envelope]))
    header = st.tuples(strategies.keys, strategies.values)
    parts = {
        "headers": st.none() | st.lists(header, max_size=4),
        "timestamp": st.none() | strategies.int64s,
        "payload": st.none() | strategies.payloads,
    }
    whole = st.fixed_dictionaries({name: parts[name] for name, _ in FORMATS[format].fields})
    return format, draw(st.lists(st.none() | whole, max_size=4))


@given(envelope_rows(), st.sampled_from(["raise", "drop", "report"]), null_headers_options, layouts)
def test_encode_envelopes(
    given: tuple[str, list[Any]], on_loss: Any, null_headers: Any, layout: tuple[int, int | None]
) -> None:
    format, rows = given
    options: dict[str, Any] = {"on_loss": on_loss, "null_headers": null_headers}
    column = strategies.lay(messages(rows, format), layout)
    native = outcome(lambda: lha.encode(column, format, **options).to_pylist())
    assert native == outcome(lambda: ops.encode_rows(rows, format, **options))


@given(st.none() | strategies.triples(), kinds_options, st.sampled_from(["raise", "drop"]), null_headers_options)
def test_encode_one_message(headers: Any, how: Any, on_loss: Any, null_headers: Any) -> None:
    options: dict[str, Any] = {"kinds": how, "on_loss": on_loss, "null_headers": null_headers}
    native = outcome(lambda: _native.encode(headers, "kafka", **options))
    assert native == outcome(lambda: ops.encode(headers, "kafka", **options))


# --- laws ------------------------------------------------------------------------------------------------------------


@given(st.data(), strategies.formats)
def test_what_is_written_is_read_back_and_passes_the_strict_reader(data: st.DataObject, format: str) -> None:
    message = data.draw(strategies.fields(format))
    written = lh.encode(message, format)
    assert written is not None
    assert lh.validate(written, format) == []
    read = lh.decode(written, format)
    if isinstance(read, lh.Envelope):
        assert read == lh.Envelope(**message)
    else:
        assert read == lh.Headers(message)
    assert lh.encode(read, format) == written


@given(format_and_cells())
def test_what_the_strict_reader_takes_the_lenient_one_takes_too(given: tuple[str, list[bytes | None]]) -> None:
    format, rows = given
    for cell in rows:
        if cell is not None and not lh.validate(cell, format):
            assert lh.decode(cell, format, lenient=True) == lh.decode(cell, format)


@pytest.mark.parametrize(
    ("kind", "bits", "text"),
    [
        ("float32", "4a000001", b"2097152.3"),  # 2097152.25 lies half-way between two shortest spellings
        ("float64", "4310000000000001", b"1125899906842624.3"),  # 1125899906842624.25
        ("float32", "80000000", b"-0"),
        ("float32", "00000001", b"0." + b"0" * 44 + b"1"),
        ("float64", "7fefffffffffffff", b"17976931348623157" + b"0" * 292),
    ],
)
def test_a_float_is_spelt_by_the_fewest_digits_and_a_tie_goes_up(kind: str, bits: str, text: bytes) -> None:
    headers = lh.Headers([("a", lh.Value.from_bits(kind, bytes.fromhex(bits)))])
    cell = lh.encode(headers, "kafka", kinds="text")
    assert lh.decode(cell, "kafka")["a"] == text
    assert ops.encode([("a", kind, bytes.fromhex(bits))], "kafka", kinds="text") == cell
