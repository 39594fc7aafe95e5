"""Values: a type and bits, never a byte order."""

from __future__ import annotations

import copy
import math
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import values
from letterhead.errors import DecodeError, EncodeError
from letterhead.values import VALUE_TYPES
from tests.reference import ops, types, value_types

INTEGERS = {name: width for name, width in VALUE_TYPES.items() if width and "int" in name}
UNNAMED = [f"type-{code}" for code in (16, 99, 200, 255)]


def sister(type: str) -> type[lh.Value]:
    return {name.lower(): getattr(values, name) for name in values.__all__}[type]


def bits_of(type: str) -> st.SearchStrategy[bytes]:
    if type == "bool":
        return st.sampled_from([b"\0", b"\1"])
    if type == "string":
        return st.text().map(str.encode)
    width = VALUE_TYPES.get(type)
    return st.binary() if width is None else st.binary(min_size=width, max_size=width)


any_type = st.sampled_from([*VALUE_TYPES, *UNNAMED])
any_value = any_type.flatmap(lambda type: st.builds(lh.Value.from_bits, st.just(type), bits_of(type)))


@pytest.mark.parametrize("type", VALUE_TYPES)
def test_every_type_has_a_class(type: str) -> None:
    assert issubclass(sister(type), lh.Value)


def test_type_names_and_widths_match_reference() -> None:
    assert {row.name: row.width for row in value_types.VALUE_TYPES} == VALUE_TYPES
    assert all(value_types.is_type(type) for type in [*VALUE_TYPES, *UNNAMED])


@pytest.mark.parametrize(
    ("value", "printed", "bits"),
    [
        (lh.Bool(True), "Bool(True)", b"\1"),
        (lh.Int8(-1), "Int8(-1)", b"\xff"),
        (lh.Int32(3), "Int32(3)", b"\0\0\0\3"),
        (lh.Int128(-2), "Int128(-2)", b"\xff" * 15 + b"\xfe"),
        (lh.UInt64(2**64 - 1), "UInt64(18446744073709551615)", b"\xff" * 8),
        (lh.Float32(1.5), "Float32(1.5)", b"\x3f\xc0\0\0"),
        (lh.Float64(-0.0), "Float64(-0.0)", b"\x80" + b"\0" * 7),
        (lh.Char("é"), "Char('é')", b"\0\xe9"),
        (lh.String("é"), "String('é')", b"\xc3\xa9"),
        (lh.Binary(b"\0"), "Binary(b'\\x00')", b"\0"),
        (lh.Value("type-200", b"x"), "Value('type-200', b'x')", b"x"),
    ],
)
def test_value_repr_names_type_and_bits_are_kept(value: lh.Value, printed: str, bits: bytes) -> None:
    assert repr(value) == printed
    assert value.bits == bits
    assert lh.Value(value.type, value.value) == value


@given(any_value)
def test_bits_survive_every_round_trip(value: lh.Value) -> None:
    for other in (
        lh.Value.from_bits(value.type, value.bits),
        lh.Value.from_bits(value.type, bytearray(value.bits)),
        pickle.loads(pickle.dumps(value)),
        copy.deepcopy(value),
        copy.copy(value),
    ):
        assert other == value
        assert hash(other) == hash(value)
        assert type(other) is type(value)
        assert (other.type, other.bits) == (value.type, value.bits)


@given(any_value, any_value)
def test_values_are_equal_exactly_if_type_and_bits_are(first: lh.Value, second: lh.Value) -> None:
    assert (first == second) == ((first.type, first.bits) == (second.type, second.bits))


def test_value_differs_from_its_plain_content() -> None:
    assert lh.Int32(3) != 3
    assert lh.Binary(b"x") != b"x"
    assert lh.Int32(3) != lh.Int64(3)


def test_nan_keeps_payload_and_zero_keeps_sign() -> None:
    signalling = struct.pack(">I", 0x7FA0_0001)
    value = lh.Value.from_bits("float32", signalling)
    assert isinstance(value.value, float)
    assert math.isnan(value.value)
    assert pickle.loads(pickle.dumps(value)).bits == signalling
    assert value == lh.Value.from_bits("float32", signalling)
    assert value != lh.Float32(math.nan)
    assert lh.Float64(0.0) != lh.Float64(-0.0)


def test_float32_is_nearest_value() -> None:
    assert lh.Float32(0.1).value == struct.unpack(">f", struct.pack(">f", 0.1))[0]
    assert lh.Float32(math.inf).value == math.inf
    assert lh.Float64(3) == lh.Float64(3.0)


@pytest.mark.parametrize("type", INTEGERS)
def test_integer_bounds_are_accepted_and_next_numbers_rejected(type: str) -> None:
    bits = 8 * INTEGERS[type]
    low, high = (0, 2**bits - 1) if type.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for number in (low, high):
        assert sister(type)(number).value == number  # type: ignore[call-arg,arg-type]
    for number in (low - 1, high + 1):
        with pytest.raises(EncodeError, match=rf"outside {type} \({low} to {high}\)$") as caught:
            lh.Value(type, number)
        assert caught.value.code == "out_of_range"


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("int32", "3"),
        ("int32", 3.0),
        ("int32", True),
        ("int32", None),
        ("bool", 1),
        ("float64", "1.5"),
        ("float64", True),
        ("char", 97),
        ("string", b"a"),
        ("binary", "a"),
        ("type-200", "a"),
    ],
)
def test_value_of_wrong_python_type_raises_type_error(type: str, value: object) -> None:
    with pytest.raises(TypeError, match="not"):
        lh.Value(type, value)


@pytest.mark.parametrize(
    ("type", "value", "code"),
    [
        ("float32", 1e39, "out_of_range"),
        ("float64", 10**400, "out_of_range"),
        ("char", "ab", "wrong_size"),
        ("char", "", "wrong_size"),
        ("char", "📦", "out_of_range"),
        ("string", "\ud800", "value_not_utf8"),
    ],
)
def test_value_out_of_type_range_is_rejected(type: str, value: object, code: str) -> None:
    with pytest.raises(EncodeError) as caught:
        lh.Value(type, value)
    assert caught.value.code == code
    assert caught.value.format is None


@pytest.mark.parametrize(
    ("type", "bits", "code"),
    [
        ("int32", b"\0\0\3", "wrong_size"),
        ("bool", b"\2", "bad_bool"),
        ("bool", b"", "wrong_size"),
        ("string", b"\xff", "value_not_utf8"),
        ("char", b"a", "wrong_size"),
    ],
)
def test_bits_invalid_for_type_are_rejected(type: str, bits: bytes, code: str) -> None:
    with pytest.raises(EncodeError) as caught:
        lh.Value.from_bits(type, bits)
    assert caught.value.code == code


def test_lone_surrogate_is_char_without_text() -> None:
    half = lh.Char("\ud83d")
    assert half.bits == b"\xd8\x3d"
    assert half.value == "\ud83d"
    with pytest.raises(types.Misfit, match="half of a surrogate pair"):
        types.untyped("char", half.bits, "text")


@pytest.mark.parametrize("type", ["int23", "type-0", "type-15", "type-256", "type-016", "type-x", "", "uuid", "Int32"])
def test_unknown_type_raises_value_error(type: str) -> None:
    with pytest.raises(ValueError, match="unknown type"):
        lh.Value(type, b"")


def test_misspelt_type_gets_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'int32'"):
        lh.Value("itn32", 3)


def test_values_are_immutable() -> None:
    value: Any = lh.Int32(3)
    for name in ("type", "bits", "value", "other"):
        with pytest.raises(AttributeError):
            setattr(value, name, 1)


# --- bits that came in a message -------------------------------------------------------------------------------------

MISFITS: dict[str, tuple[str, str, bytes, str, str]] = {
    "a boolean that is neither 0 nor 1": ("iggy", "bool", b"\2", "bad_bool", "Bool(<bits 02>)"),
    "a string that is not UTF-8": ("iggy", "string", b"a\xff", "value_not_utf8", "String(<bits 61ff>)"),
    "a number of another size": ("iggy-2023", "int32", b"\1\2\3", "wrong_size", "Int32(<bits 010203>)"),
    "a number that is too long": ("iggy-2023", "uint128", bytes(17), "wrong_size", f"UInt128(<bits {'00' * 17}>)"),
    "a float of another size": ("iggy-2023", "float64", b"\1", "wrong_size", "Float64(<bits 01>)"),
    "a boolean of five bytes": ("iggy-2023", "bool", b"\1\2\3\4\5", "wrong_size", "Bool(<bits 0102030405>)"),
}
"""What some formats let pass: the format, the type, the bits, and what is told to who reads the value."""


@pytest.mark.parametrize("name", MISFITS)
def test_invalid_bits_are_kept_and_reported_when_read(name: str) -> None:
    format, type, bits, code, printed = MISFITS[name]
    # As they lie in the message, most significant byte last where the type has a width.
    lie = bits[::-1] if VALUE_TYPES[type] else bits
    message = b"\1\0\0\0a" + bytes([next(row.iggy for row in value_types.VALUE_TYPES if row.name == type) or 0])
    message = (b"\2" if format == "iggy" else b"") + message + len(bits).to_bytes(4, "little") + lie
    read = lh.decode(message, format)
    assert isinstance(read, lh.Headers)
    value = read["a"]
    assert isinstance(value, sister(type))
    assert (value.type, value.bits, repr(value)) == (type, bits, printed)
    with pytest.raises(DecodeError) as caught:
        _ = value.value
    assert (caught.value.code, caught.value.format) == (code, None)
    assert lh.encode(read, format) == message
    with pytest.raises(DecodeError) as in_select:
        lh.select(message, {"a": type}, format=format)
    assert (in_select.value.code, in_select.value.key) == (code, "a")


@pytest.mark.parametrize(
    ("message", "key", "code"),
    [
        ("03" + "01000000" + "02" + "03" + "01000000" + "01", ("bool", b"\2"), "bad_bool"),
        ("02" + "01000000" + "ff" + "03" + "01000000" + "01", ("string", b"\xff"), "value_not_utf8"),
    ],
)
def test_invalid_key_bits_still_make_usable_keys(message: str, key: Any, code: str) -> None:
    data = bytes.fromhex(message)
    read = lh.decode(data, "iggy")
    assert isinstance(read, lh.Headers)
    expected = values.value_from_message(*key)
    assert read.keys() == [expected]
    assert read.get(expected) == lh.Bool(True)
    with pytest.raises(DecodeError) as caught:
        _ = read[0].key.value  # type: ignore[union-attr]
    assert caught.value.code == code
    assert lh.encode(read, "iggy") == data
    requested = {"a": lh.field("bool", key=expected)}
    assert ops.select(data, "iggy", requested) == {"a": True}
    assert lh.select(data, requested, format="iggy") == {"a": True}


def test_non_utf8_key_of_type_string_is_found() -> None:
    message = bytes.fromhex("02" + "01000000" + "ff" + "03" + "01000000" + "01")
    key = values.value_from_message("string", b"\xff")
    assert lh.select(message, {"a": lh.field("bool", key=key)}, format="iggy") == {"a": True}


def test_number_rounded_to_infinity_is_out_of_range() -> None:
    longdouble = pytest.importorskip("numpy").longdouble
    if longdouble("1e400") == math.inf:
        pytest.skip("a long double has 64 bits here")
    for kind, number in ((lh.Float64, longdouble("1e400")), (lh.Float32, longdouble("-1e400")), (lh.Float32, 3.5e38)):
        with pytest.raises(EncodeError) as caught:
            kind(number)
        assert caught.value.code == "out_of_range"
    assert lh.Float64(longdouble("inf")).value == math.inf


@given(any_type, st.binary(max_size=20))
def test_any_message_bits_make_movable_value(type: str, bits: bytes) -> None:
    value = values.value_from_message(type, bits)
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
        assert (other, hash(other), other.__class__) == (value, hash(value), value.__class__)
    try:
        result = lh.Value.from_bits(type, bits)
    except EncodeError as error:
        with pytest.raises(DecodeError) as caught:
            _ = value.value
        assert (caught.value.code, caught.value.message) == (error.code, error.message)
        assert bits.hex() in repr(value)
    else:
        assert result == value
        assert repr(result) == repr(value)
