"""The Rust core and the reference implementation write the same bytes, and report the same losses and errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import _native
from letterhead import arrow as lha
from letterhead.results import Types, to_native_types
from letterhead.values import value_from_message
from tests.helpers import strategies
from tests.helpers.implementations import messages, plain_key
from tests.helpers.list_columns import list_column, list_rows
from tests.helpers.outcomes import outcome
from tests.helpers.strategies import BLOCKS, MESSAGES, ONE, WRITTEN, few
from tests.reference import codecs, ops
from tests.reference.formats import FORMATS

on_loss_options: Any = st.sampled_from(["raise", "drop", "report"])
null_headers_options: Any = st.sampled_from(["skip", "skip", "raise"])
layouts = strategies.layouts()


@st.composite
def write_options(draw: st.DrawFn, target: str, keys: list[Any]) -> dict[str, Any]:
    """Draw what a writer may be told; of types, what makes sense for the target."""
    return {
        "types": draw(strategies.types_for(target, keys)),
        "on_loss": draw(on_loss_options),
        "nulls": draw(null_headers_options),
        "canonical": draw(st.booleans()) and FORMATS[target].traits.canonical is not None,
    }


def types_option(types: Any) -> Types | None:
    """Return types by key as a user passes them."""
    if not isinstance(types, dict):
        return types  # type: ignore[no-any-return]
    return {value_from_message(*key) if isinstance(key, tuple) else key: type for key, type in types.items()}


def write_tuple(types: Any, on_loss: Any, nulls: Any, canonical: bool = False) -> Any:
    """Return the options of a writer as the core takes them."""
    return on_loss, to_native_types(types_option(types)), nulls, canonical


def pairs_in(message: Any) -> Any:
    """Return headers, or the fields of a message, with headers as pairs of key and value."""
    if isinstance(message, dict):
        return {**message, "headers": pairs_in(message["headers"])}
    return message and [
        (
            value_from_message(*key) if isinstance(key, tuple) else key,
            value if type is None else value_from_message(type, value),
        )
        for key, type, value in message
    ]


def without_types_of_nulls(message: Any) -> Any:
    """Return a message without the types of its nulls, which a column can have, and an object cannot."""
    if isinstance(message, dict):
        return {**message, "headers": without_types_of_nulls(message["headers"])}
    return message and [(key, None if value is None else type, value) for key, type, value in message]


def keys_of(rows: Any) -> list[Any]:
    """Return the plain keys of rows of headers, be they tuples or structs, or messages that have some."""
    keys: list[Any] = []
    for row in rows:
        for header in (row["headers"] if isinstance(row, dict) else row) or ():
            if isinstance(header, dict):
                key = header["key"]
                if "key_type" in header:
                    key = None if None in (key, header["key_type"]) else ops.keys.plain(header["key_type"], key)
            else:
                key = header and header[0]
            if key is not None and not (isinstance(key, tuple) and key[0] not in strategies.ALL_TYPES):
                keys.append(key)
    return keys


def written(column: Any) -> list[Any]:
    """Return messages written by the reference implementation: plain, or with their losses."""
    return [loss_row(row) for row in column.to_pylist()]


def loss_row(row: Any) -> Any:
    if isinstance(row, dict) and row.get("losses") is not None:
        return {**row, "losses": [lh.Loss(**loss) for loss in row["losses"]]}
    return row


# --- encode ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", BLOCKS)
@few
@given(st.data(), st.booleans(), layouts)
def test_encode_of_lists_matches(format: str, data: st.DataObject, typed: bool, layout: tuple[int, int | None]) -> None:
    rows = data.draw(list_rows(format, typed=typed) | loose_rows(format) if typed else list_rows(format, typed=typed))
    options = data.draw(write_options(format, keys_of(rows)))
    column = list_column(rows, format, typed=typed, layout=layout)
    reported = {**options, "types": types_option(options["types"])}
    native = outcome(lambda: written(lha.encode(column, format, **reported)))
    assert native == outcome(lambda: ops.encode_rows(rows, format, **options))


@st.composite
def loose_rows(draw: st.DrawFn, format: str) -> list[Any]:
    """Draw headers as structs that are mostly whole."""
    form = FORMATS[format].traits.keys
    own = strategies.headers(format) | strategies.loose_headers().map(
        lambda headers: [header for header in headers if ops.keys.is_of(header[0], form)]
    )
    return [row and [struct(header, form) for header in row] for row in draw(st.lists(st.none() | own, max_size=4))]


def struct(header: tuple[Any, ...], form: str) -> dict[str, Any]:
    key, type, value = header
    if form != "typed":
        return {"key": key, "type": type, "value": value}
    key_type, bits = ops.keys.typed(key)
    return {"key_type": key_type, "key": bits, "type": type, "value": value}


@pytest.mark.parametrize("format", MESSAGES)
@few
@given(st.data(), layouts)
def test_encode_of_message_formats_matches(format: str, data: st.DataObject, layout: tuple[int, int | None]) -> None:
    form = FORMATS[format].traits.keys
    has_types = FORMATS[format].traits.types is not None
    fitting = strategies.loose_headers().map(
        lambda headers: [h for h in headers if ops.keys.is_of(h[0], form) and (has_types or h[1] is None)]
    )
    drawn_message = strategies.messages(format) | strategies.loose_messages(
        format, strategies.headers(format) | fitting
    )
    rows: list[Any] = data.draw(st.lists(st.none() | drawn_message, max_size=4))
    options = data.draw(write_options(format, keys_of(filter(None, rows))))
    column = strategies.lay(messages(rows, format), layout)
    reported = {**options, "types": types_option(options["types"])}
    native = outcome(lambda: written(lha.encode(column, format, **reported)))
    assert native == outcome(lambda: ops.encode_rows(rows, format, **options))


@pytest.mark.parametrize("format", WRITTEN)
@few
@given(st.data())
def test_encode_of_single_message_matches(format: str, data: st.DataObject) -> None:
    message = data.draw(strategies.loose_messages(format, strategies.loose_headers()))
    if FORMATS[format].message is None:
        message = data.draw(st.none() | st.just(message))
    message = without_types_of_nulls(message)
    options = data.draw(write_options(format, keys_of([message or []])))
    options["on_loss"] = "raise" if options["on_loss"] == "raise" else "drop"
    native = outcome(lambda: _native.encode(pairs_in(message), format, *write_tuple(**options)))
    assert native == outcome(lambda: ops.encode(message, format, **options))


def test_signed_unsigned_numbers_parse_equally_at_any_width() -> None:
    for type in ("uint8", "uint64", "uint128"):
        for text in (b"-0", b"-1", b"0", str(2**128 - 1).encode(), str(2**128).encode()):
            headers, options = [("a", None, text)], {"types": {"a": f"{type}:text"}}
            native = outcome(partial(lh.encode, [("a", text)], "iggy", **options))
            assert native == outcome(partial(ops.encode, headers, "iggy", **options))


# --- sets ------------------------------------------------------------------------------------------------------------


@st.composite
def set_messages(draw: st.DrawFn, format: str) -> list[dict[str, Any]]:
    """Draw messages that mostly go into one set: of one magic and timestamp type, with offsets that increase."""
    inner_format = strategies.MESSAGE_OF[format]
    fitting = draw(st.booleans())
    magic, attributes = draw(st.sampled_from([2, 2, 0, 1, None])), draw(st.sampled_from([0, 0, 8, None]))
    drawn = draw(
        st.lists(strategies.loose_messages(inner_format, strategies.headers(inner_format)), min_size=1, max_size=4)
    )
    offset = draw(strategies.int64s)
    for message in drawn:
        offset = min(offset + draw(st.integers(1, 5)), (1 << 63) - 1)
        if fitting:
            own = {"magic": magic, "attributes": attributes, "offset": draw(st.sampled_from([None, offset]))}
            message.update(own, timestamp=drawn[0]["timestamp"])
    return drawn


def opened(data: bytes, format: str, codec: str) -> Any:
    """Return a set with what it holds decompressed: the bytes of a codec depend on the compressor."""
    if codec == "none":
        return data
    outer = ops.decode(data, strategies.MESSAGE_OF[format])
    assert isinstance(outer, dict)
    legacy = outer["magic"] == 0
    content = codecs.decompress(outer["attributes"] & 7, outer["value"], legacy=legacy)
    return {**outer, "crc": None, "value": content}


@pytest.mark.parametrize("format", strategies.MESSAGE_OF)
@few
@given(st.data(), st.sampled_from(ops.SET_CODECS))
def test_written_set_matches(format: str, data: st.DataObject, codec: str) -> None:
    source = data.draw(set_messages(format))
    options = data.draw(write_options(strategies.MESSAGE_OF[format], keys_of(source)))
    options = {name: options[name] for name in ("types", "nulls")} | {"on_loss": "drop"}
    if data.draw(st.booleans()):
        options["on_loss"] = "raise"
    reported = write_tuple(**options)
    source = [without_types_of_nulls(message) for message in source]
    plain = [pairs_in(message) for message in source]
    native = outcome(lambda: opened(_native.batch(plain, format, codec, reported), format, codec))
    assert native == outcome(lambda: opened(ops.batch(source, format, codec=codec, **options), format, codec))
    if isinstance(native, dict):
        for result in (
            _native.batch(plain, format, codec, reported),
            ops.batch(source, format, codec=codec, **options),
        ):
            read = ops.messages(result, format)
            assert [message["key"] for message in read] == [message["key"] for message in source]
            assert [message["offset"] for message in read][-1] == native["offset"]


# --- convert ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ONE)
@few
@given(st.data(), st.booleans(), st.booleans(), st.sampled_from(["raise", "null", "column"]), layouts)
def test_convert_of_columns_matches(
    format: str, data: st.DataObject, lenient: bool, strict_types: bool, errors: Any, layout: tuple[int, int | None]
) -> None:
    target = data.draw(st.sampled_from(WRITTEN))
    rows = data.draw(st.lists(strategies.any_bytes(format) | strategies.loosely_written_bytes(format), max_size=4))
    options = data.draw(write_options(target, keys_in(rows, format)))
    column = strategies.lay(pa.array(rows, pa.binary()), layout)
    reported = {**options, "types": types_option(options["types"])}
    read: dict[str, Any] = {"lenient": lenient, "strict_types": strict_types, "errors": errors}
    native = outcome(lambda: written(lha.convert(column, format, target=target, **reported, **read)))
    assert native == outcome(lambda: ops.convert_rows(rows, format, target=target, **options, **read))


@pytest.mark.parametrize("format", ONE)
@few
@given(st.data(), st.booleans(), st.booleans())
def test_convert_of_single_message_matches(format: str, data: st.DataObject, lenient: bool, strict_types: bool) -> None:
    value = data.draw(
        strategies.valid_bytes(format) | strategies.loosely_written_bytes(format) | strategies.mutated_bytes(format)
    )
    read = {"lenient": lenient, "strict_types": strict_types}
    for target in WRITTEN:
        options = data.draw(write_options(target, keys_in([value], format)))
        reported = {**options, "types": types_option(options["types"])}
        native = outcome(partial(converted, lh.convert, value, format, target=target, **reported, **read))
        assert native == outcome(partial(converted, ops.convert, value, format, target=target, **options, **read))


def converted(convert: Any, *arguments: Any, **options: Any) -> Any:
    """Convert, and give a report with what gives values their types again."""
    result = convert(*arguments, **options)
    if options["on_loss"] != "report":
        return result
    return {**result._asdict(), "types": {plain_key(key): type for key, type in result.losses.types.items()}}


def keys_in(rows: list[Any], format: str) -> list[Any]:
    """Return the keys of messages, as far as they can be read."""
    fields = ops.decode_rows(rows, format, errors="column")
    return keys_of(row for row in fields if row)
