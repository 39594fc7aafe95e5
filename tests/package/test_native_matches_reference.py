"""The Rust core and the reference implementation read any bytes to the same values, errors and messages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead.conventions import amqp
from letterhead.fields import normalise
from letterhead.operations import DecodeOptions, ExplodeBatches, Select
from letterhead.types import SELECT_TYPES
from tests.helpers import strategies
from tests.helpers.implementations import detail_of, from_row
from tests.helpers.list_columns import list_column, list_rows
from tests.helpers.outcomes import decoded, decoded_alike, outcome, read_alike, read_tuple, same, selected
from tests.helpers.strategies import BATCHES, ONE, few
from tests.helpers.type_suffixes import orders_of
from tests.reference import ops, value_types
from tests.reference.formats import FORMATS
from tests.reference.reading import in_message
from tests.reference.text_forms import TEXT_FORMS
from tests.reference.types import CHARSET_TYPES

BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
DIALECTS: list[Any] = ["arrow", "spark"]

layouts = strategies.layouts()
read_options = st.fixed_dictionaries({"lenient": st.booleans(), "strict_types": st.booleans()})
errors_options: Any = st.sampled_from(["raise", "null", "column"])

every_format = pytest.mark.parametrize("format", FORMATS)
every_one = pytest.mark.parametrize("format", ONE)
every_batch = pytest.mark.parametrize("format", BATCHES)


def column_of(rows: list[bytes | None], data: st.DataObject) -> Any:
    """Lay messages into a column, somehow."""
    return strategies.lay(pa.array(rows, data.draw(st.sampled_from(BYTES))), data.draw(layouts))


# --- the tables ------------------------------------------------------------------------------------------------------


def test_format_tables_match() -> None:
    table = [
        {
            "name": row.name,
            "is_": row.is_,
            "source": row.source,
            "layout": row.layout,
            "fields": list(row.fields),
            "keys": row.traits.keys,
            "types": row.traits.types is not None,
            "nulls": row.traits.nulls,
            "part_len": (row.traits.lengths[0], row.traits.lengths[-1]),
            "is_target": row.batch is None and not row.traits.instead,
        }
        for row in FORMATS.values()
    ]
    assert _native.formats() == table


def test_type_tables_match() -> None:
    native = {row["name"]: (row["name"], row["kip82"], row["iggy"], row["width"]) for row in _native.types()}
    assert native == {row.name: tuple(row) for row in value_types.VALUE_TYPES}


def test_select_types_match() -> None:
    assert sorted(_native.select_types()) == sorted(SELECT_TYPES)


# --- messages of bytes --------------------------------------------------------------------------------------------------


@every_one
@few
@given(st.data(), read_options, errors_options, st.booleans())
def test_decode_matches(format: str, data: st.DataObject, read: dict[str, bool], errors: Any, text_keys: bool) -> None:
    rows = data.draw(strategies.rows(format))
    column = column_of(rows, data)
    options: dict[str, Any] = {**read, "errors": errors, "text_keys": text_keys}
    native = outcome(lambda: decoded(lha.decode(column, format, **options)))
    assert native == outcome(lambda: ops.decode_rows(rows, format, **options))


@every_format
@few
@given(st.data(), read_options)
def test_validate_matches(format: str, data: st.DataObject, read: dict[str, bool]) -> None:
    rows = data.draw(strategies.rows(format))
    column = column_of(rows, data)
    assert same(lha.validate(column, format, **read).to_pylist()) == same(ops.validate_rows(rows, format, **read))


@every_one
@few
@given(st.data(), read_options, errors_options, st.sampled_from(DIALECTS))
def test_select_matches(format: str, data: st.DataObject, read: dict[str, bool], errors: Any, dialect: Any) -> None:
    rows = data.draw(strategies.rows(format))
    columns = data.draw(strategies.columns(format))
    column = column_of(rows, data)
    options: dict[str, Any] = {**read, "errors": errors}
    native = outcome(lambda: selected(Select(format, columns, DecodeOptions(**options), dialect=dialect)(column)))
    assert native == outcome(lambda: ops.select_rows(rows, format, columns, dialect=dialect, **options))


@every_batch
@few
@given(st.data(), read_options, errors_options, st.booleans(), st.sampled_from(DIALECTS))
def test_messages_match(
    format: str, data: st.DataObject, read: dict[str, bool], errors: Any, text_keys: bool, dialect: Any
) -> None:
    rows = data.draw(strategies.rows(format))
    headers = data.draw(st.none() | strategies.columns(format))
    column = column_of(rows, data)
    options: dict[str, Any] = {**read, "errors": errors, "text_keys": text_keys}
    native = outcome(
        lambda: messages_of(
            ExplodeBatches(format, headers=headers, options=DecodeOptions(**options), dialect=dialect)(column)
        )
    )
    assert native == outcome(lambda: ops.messages_rows(rows, format, headers=headers, dialect=dialect, **options))


def messages_of(column: Any) -> list[dict[str, Any]]:
    """Return messages as plain values, with times as the numbers they are: not every one is a date of Python's."""
    columns = selected(column)
    return [from_row(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


EVERY_SPELLING = [
    *SELECT_TYPES,
    *CHARSET_TYPES,
    *(f"{name}:{order}" for name in SELECT_TYPES for order in orders_of(name)),
]


FORMS = [*TEXT_FORMS, "int32 | int32:text", "timestamp:iso | timestamp:s", "timestamp_ms:text | timestamp:iso"]


@pytest.mark.parametrize("type", FORMS)
@few
@given(st.lists(st.none() | strategies.form_values, max_size=8), st.sampled_from(DIALECTS), st.booleans())
def test_select_of_text_encodings_matches(type: str, values: list[bytes | None], dialect: Any, in_iggy: bool) -> None:
    format = "iggy" if in_iggy else "kafka"
    pairs: list[Any] = [None if data is None else ("string" if in_iggy else None, data) for data in values]
    messages = [ops.encode([("a", *pair)], format) for pair in pairs if pair and not (in_iggy and not pair[1])]
    columns = {"one": lh.field(type, key="a"), "all": lh.field(f"array<{type}>", key="a", split=",")}
    select = Select(format, columns, DecodeOptions(errors="column"), dialect=dialect)
    native = outcome(lambda: selected(select(pa.array(messages, pa.binary()))))
    assert native == outcome(lambda: ops.select_rows(messages, format, columns, errors="column", dialect=dialect))


@pytest.mark.parametrize("type", EVERY_SPELLING)
@few
@given(st.lists(strategies.values, max_size=8), st.sampled_from(DIALECTS))
def test_select_of_every_type_in_every_spelling_matches(type: str, values: list[bytes | None], dialect: Any) -> None:
    rows = [ops.encode([("a", value)], "kafka") for value in values]
    columns = {"one": lh.field(type, key="a"), "all": lh.field(f"array<{type}>", key="a")}
    select = Select("kafka", columns, DecodeOptions(errors="column"), dialect=dialect)
    native = outcome(lambda: selected(select(pa.array(rows, pa.binary()))))
    assert native == outcome(lambda: ops.select_rows(rows, "kafka", columns, errors="column", dialect=dialect))


@pytest.mark.parametrize("type", amqp.READ_AS)
@few
@given(st.lists(strategies.amqp_values | st.none(), max_size=8), st.sampled_from(DIALECTS), st.booleans())
def test_select_of_amqp_matches(type: str, values: list[bytes | None], dialect: Any, types: bool) -> None:
    format = "kip82-typed" if types else "kafka"
    rows = [ops.encode([("a", "binary", value) if types else ("a", None, value)], format) for value in values]
    columns = {"one": lh.field(f"{type}:amqp", key="a"), "all": lh.field(f"array<{type}:amqp>", key="a")}
    select = Select(format, columns, DecodeOptions(errors="column"), dialect=dialect)
    native = outcome(lambda: selected(select(pa.array(rows, pa.binary()))))
    assert native == outcome(lambda: ops.select_rows(rows, format, columns, errors="column", dialect=dialect))


@pytest.mark.parametrize(("type", "bits"), [("float32", 0x7FA0_0001), ("float64", 0x7FF4_0000_0000_0001)])
@pytest.mark.parametrize("order", ["be", "le"])
def test_nan_keeps_its_payload(type: str, bits: int, order: Any) -> None:
    width = int(type[5:]) // 8
    data = bits.to_bytes(width, {"be": "big", "le": "little"}[order])
    value = lh.encode([("a", data)], "kafka")
    result = lha.select(pa.array([value]), {"a": f"{type}:{order}"}).field(0)
    assert result.view(pa.uint32() if width == 4 else pa.uint64()).to_pylist() == [bits]


# --- a real store and a real topic -----------------------------------------------------------------------------------

WANTED = {
    "tenant": "string",
    "retry": "int32",
    "amount_cents": "int64",
    "weight_kg": "float64",
    "route": "array<string>",
    "note": "string",
    "blob": "binary",
    "event": lh.field("string", key="ce_type"),
    "señal-📦": "string",
}


@pytest.mark.slow
def test_real_store_is_read_equally_and_written_back(samples: Path) -> None:
    format = "streams-timestamped"
    column = pq.read_table(samples / "store-latest-0.parquet")["value"]
    rows = column.to_pylist()
    assert len(rows) == 6643
    read = lha.decode(column, format)
    assert same(decoded(read)) == same(ops.decode_rows(rows, format))
    assert lha.encode(read, format).to_pylist() == rows
    assert lha.validate(column, format).null_count == len(rows)
    native = same(selected(lha.select(column, WANTED, format=format)))
    assert native == same(ops.select_rows(rows, format, WANTED))
    assert all(any(value is not None for value in values) for values in native.values())


@pytest.mark.slow
def test_real_topic_is_read_equally_as_lists_and_bytes(samples: Path) -> None:
    column = pq.read_table(samples / "orders-0.parquet")["headers"]
    rows = column.to_pylist()
    assert (len(rows), column.null_count) == (10_000, 300)
    from_lists = same(selected(lha.select(column, WANTED)))
    assert from_lists == same(ops.select_rows(rows, "kafka", WANTED, lists=True))
    values = lha.encode(column, "kafka")
    assert values.to_pylist() == ops.encode_rows(rows, "kafka")
    from_bytes = same(selected(lha.select(values, WANTED)))
    # A message without a headers field is written as one without headers: its list of routes is empty, not null.
    assert from_bytes.pop("route") == [value or [] for value in from_lists.pop("route")]
    assert from_bytes == from_lists


TYPES = {"tenant": "string", "retry": "int32", "amount_cents": "int64", "weight_kg": "float64", "note": "string"}


@pytest.mark.parametrize("target", [name for name in strategies.BLOCKS if name != "kip82-int"])
def test_real_topic_is_converted_equally_and_back(samples: Path, target: str) -> None:
    headers = pq.read_table(samples / "orders-0.parquet")["headers"].slice(0, 1000)
    values = lha.encode(headers, "kafka")
    rows = values.to_pylist()
    source: Any = None if target == "kafka" else {**dict.fromkeys(keys_of(headers), "binary"), **TYPES}
    options: dict[str, Any] = {"target": target, "types": source, "on_loss": "report"}
    result = lha.convert(values, "kafka", **options).to_pylist()
    assert same(losses_of(result)) == same(ops.convert_rows(rows, "kafka", **options))
    restored = lha.convert(
        pa.array([row["data"] for row in result], pa.binary()), target, target="kafka",
        types=None if target == "kafka" else "be",
    ).to_pylist()  # fmt: skip
    whole = [row["losses"] is None for row in result]
    assert sum(whole) > 400
    assert all(result == row for result, row, is_whole in zip(restored, rows, whole, strict=True) if is_whole)


def keys_of(headers: Any) -> list[str]:
    return sorted({header["key"] for row in headers.to_pylist() for header in row or ()})


def losses_of(rows: list[Any]) -> list[Any]:
    """Return the losses of rows from the reference implementation."""
    return [{**row, "losses": row["losses"] and [lh.Loss(**loss) for loss in row["losses"]]} for row in rows]


# --- one message -----------------------------------------------------------------------------------------------------


def with_times(values: dict[str, Any], format: str, columns: Any) -> dict[str, Any]:
    """Return selected values with times as objects, which are microseconds in the reference."""
    time = pa.timestamp("us", "UTC")
    for field in Select(format, columns).result_type():
        if field.type == time or (pa.types.is_list(field.type) and field.type.value_type == time):
            values[field.name] = pa.array([values[field.name]], field.type)[0].as_py()
    return values


@every_one
@few
@given(st.data(), read_options)
def test_single_message_matches(format: str, data: st.DataObject, read: dict[str, bool]) -> None:
    columns = data.draw(strategies.columns(format))
    for value in filter(None, data.draw(strategies.rows(format))):
        native = outcome(partial(decoded_alike, value, format, **read))
        assert native == outcome(partial(ops.decode, value, format, **read))
        chosen = outcome(partial(_native.select, value, format, normalise(columns), read_tuple(**read)))
        assert chosen == outcome(
            lambda value=value: with_times(ops.select(value, format, columns, **read), format, columns)
        )


@every_batch
@few
@given(st.data(), read_options)
def test_messages_of_single_batch_match(format: str, data: st.DataObject, read: dict[str, bool]) -> None:
    value = data.draw(strategies.any_bytes(format)) or b""
    whole: list[Any] = []
    details = []
    for place, message in enumerate(ops.messages_rows([value], format, errors="column", **read)):
        # The exception numbers the messages of a value.
        details = [in_message(place, detail) for detail in message.pop("error") or ()]
        if details:
            break
        whole.append({name: value for name, value in message.items() if name != "row"})
    parts = list(_native.messages(value, format, read_tuple(**read)))
    native = [message for messages, _ in parts for message in messages]
    error = parts[-1][1] if parts else None
    assert same([read_alike(message) for message in native]) == same(whole)
    assert same(error and detail_of(error)) == same(details[0] if details else None)


@every_format
@few
@given(st.data(), read_options)
def test_inspect_labels_every_byte_once(format: str, data: st.DataObject, read: dict[str, bool]) -> None:
    value = data.draw(strategies.any_bytes(format)) or b""
    seen = lh.inspect(value, format, **read)
    details = ops.validate(value, format, **read)
    assert same(seen["errors"]) == same(details)
    assert [detail_of(error) for error in lh.validate(value, format, **read)] == seen["errors"]
    at = 0
    for label in seen["labels"]:
        assert label.start == at < label.end
        at = label.end
    assert at == len(value)


# --- lists of headers ------------------------------------------------------------------------------------------------


@every_one
@few
@given(st.data(), st.booleans(), errors_options, layouts)
def test_select_from_lists_matches(
    format: str, data: st.DataObject, typed: bool, errors: Any, layout: tuple[int, int | None]
) -> None:
    rows = data.draw(list_rows(format, typed=typed))
    columns = data.draw(strategies.columns(format))
    column = list_column(rows, format, typed=typed, layout=layout)
    native = outcome(lambda: selected(lha.select(column, columns, format=format, errors=errors)))
    assert native == outcome(lambda: ops.select_rows(rows, format, columns, errors=errors, lists=True))


@every_one
@few
@given(st.data(), st.booleans(), layouts)
def test_validate_of_lists_matches(
    format: str, data: st.DataObject, typed: bool, layout: tuple[int, int | None]
) -> None:
    rows = data.draw(list_rows(format, typed=typed))
    column = list_column(rows, format, typed=typed, layout=layout)
    assert same(lha.validate(column, format).to_pylist()) == same(ops.validate_rows(rows, format))
