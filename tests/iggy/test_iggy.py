"""``letterhead.iggy``: keys and values, maps of them, and the errors they give."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
import letterhead.iggy as iggy
from letterhead.errors import CODES, ConversionError, DecodeError, EncodeError, HeaderError
from letterhead.iggy import HeaderKey, HeaderKind, HeaderMap, HeaderValue, iggy_code
from letterhead.iggy.errors import _IGGY_ERRORS

INTEGERS = [kind for kind in HeaderKind if str(kind).startswith(("int", "uint"))]


def bounds(kind: HeaderKind) -> tuple[int, int]:
    bits = int(str(kind).lstrip("uint"))
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if str(kind).startswith("int") else (0, (1 << bits) - 1)


def values_of(kind: HeaderKind) -> st.SearchStrategy[Any]:
    if kind in INTEGERS:
        low, high = bounds(kind)
        return st.integers(low, high) | st.sampled_from([low, high])
    return {
        HeaderKind.RAW: st.binary(min_size=1, max_size=255),
        HeaderKind.STRING: st.text(min_size=1, max_size=60).filter(lambda text: _has_utf8(text)),
        HeaderKind.BOOL: st.booleans(),
        HeaderKind.FLOAT32: st.floats(width=32),
        HeaderKind.FLOAT64: st.floats(),
    }[kind]


def _has_utf8(text: str) -> bool:
    try:
        return len(text.encode()) <= 255
    except UnicodeEncodeError:
        return False


def name_of(kind: HeaderKind) -> str:
    return "str" if kind is HeaderKind.STRING else str(kind)


fields = st.sampled_from(list(HeaderKind)).flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind)))
keys = fields.map(lambda field: getattr(HeaderKey, f"from_{name_of(field[0])}")(field[1]))
text_keys = values_of(HeaderKind.STRING).map(HeaderKey)
values = fields.map(lambda field: getattr(HeaderValue, f"from_{name_of(field[0])}")(field[1]))
maps = st.lists(st.tuples(keys, values), max_size=6).map(HeaderMap)
text_maps = st.lists(st.tuples(text_keys, values), max_size=6).map(HeaderMap)


def test_import_loads_neither_arrow_nor_spark() -> None:
    loaded = "{'pyarrow', 'pyspark', 'pandas', 'numpy', 'letterhead.arrow', 'letterhead.spark', 'letterhead._native'}"
    program = f"import sys, letterhead.iggy; print(sorted({loaded} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_documented() -> None:
    for name in iggy.__all__:
        assert getattr(iggy, name).__doc__, name


def test_fifteen_kinds_have_their_codes() -> None:
    names = "raw string bool int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float32 float64"
    assert [str(kind) for kind in HeaderKind] == names.split()
    assert [kind.as_code() for kind in HeaderKind] == list(range(1, 16))
    for kind in HeaderKind:
        assert HeaderKind.parse(str(kind)) is HeaderKind.from_code(kind.as_code()) is kind
        assert f"{kind}" == str(kind)
        assert HeaderKind._of_value(kind._value_type) is kind


def test_kind_without_name_is_its_code() -> None:
    kind = HeaderKind(200)
    assert (str(kind), kind.as_code(), kind._is_named, kind._value_type) == ("kind-200", 200, False, "type-200")
    assert kind == HeaderKind(200) == copy.deepcopy(kind) == pickle.loads(pickle.dumps(kind))
    assert len(HeaderKind) == 15
    assert HeaderKind._of_value("char") is None
    for code in (0, 16, 255):
        with pytest.raises(DecodeError, match=f"kind code {code} is unknown"):
            HeaderKind.from_code(code)
    for wrong in (0, 256, -1, "raw"):
        with pytest.raises(ValueError, match="not a valid HeaderKind"):
            HeaderKind(wrong)


@given(fields)
def test_field_returns_its_original_value(field: tuple[HeaderKind, Any]) -> None:
    kind, given_value = field
    for cls in (HeaderKey, HeaderValue):
        result: Any = getattr(cls, f"from_{name_of(kind)}")(given_value)
        assert result.kind is kind
        got = getattr(result, f"as_{name_of(kind)}")()
        assert got == given_value or math.isnan(got)
        assert cls.from_kind_bytes(kind, result.value) == result == cls._from_value(result._typed)
        assert pickle.loads(pickle.dumps(result)) == copy.copy(result) == result
        assert len({result, copy.deepcopy(result)}) == 1
        if got == got and abs(got if isinstance(got, float) else 0) != math.inf:
            assert eval(repr(result), vars(iggy)) == result


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_numbers_are_little_endian_and_have_bounds(kind: HeaderKind) -> None:
    low, high = bounds(kind)
    make: Any = getattr(HeaderValue, f"from_{kind}")
    for number in (low, high, 1):
        width = len(make(number).value)
        assert make(number).value == number.to_bytes(width, "little", signed=low < 0)
    for number in (low - 1, high + 1):
        with pytest.raises(EncodeError) as raised:
            make(number)
        assert raised.value.code == "out_of_range"
    for wrong in ("1", 1.0, True, None):
        with pytest.raises(TypeError):
            make(wrong)


@given(fields, st.sampled_from(list(HeaderKind)))
def test_wrong_accessor_raises(field: tuple[HeaderKind, Any], requested: HeaderKind) -> None:
    result: Any = getattr(HeaderValue, f"from_{name_of(field[0])}")(field[1])
    if requested is field[0]:
        return
    with pytest.raises(DecodeError, match=f"the value is {field[0]} and {requested} was requested") as raised:
        getattr(result, f"as_{name_of(requested)}")()
    assert (raised.value.code, iggy_code(raised.value)) == ("wrong_type", 4019)


def test_keys_are_case_sensitive_unless_lowercased() -> None:
    assert HeaderKey("Key") != HeaderKey("key") == HeaderKey.lower("KEY")
    grows = "İ" * 127
    assert len(HeaderKey(grows).value) == 254
    with pytest.raises(EncodeError, match="key of 381 bytes is longer than 255"):
        HeaderKey.lower(grows)
    assert len(HeaderKey.lower(grows, validate=False).value) == 381


def test_keys_of_different_kinds_differ() -> None:
    same_bytes = [HeaderKey.from_uint8(1), HeaderKey.from_int8(1), HeaderKey.from_bool(True), HeaderKey.from_raw(b"\1")]
    headers = HeaderMap((key, "x") for key in same_bytes)
    assert headers.keys() == same_bytes
    assert HeaderMap.from_bytes(headers.to_bytes("iggy"), "iggy") == headers
    assert HeaderKey("a") != HeaderValue.from_str("a")


@pytest.mark.parametrize("cls", [HeaderKey, HeaderValue])
def test_field_has_1_to_255_bytes(cls: Any) -> None:
    part = "key" if cls is HeaderKey else "value"
    assert len(cls.from_raw(bytes(255)).value) == 255
    for make, whole in ((cls.from_raw, b"x"), (cls.from_str, "x")):
        with pytest.raises(EncodeError, match=f"the {part} has no bytes") as raised:
            make(whole * 0)
        assert raised.value.code == f"empty_{part}"
        with pytest.raises(EncodeError, match=f"{part} of 256 bytes is longer than 255") as raised:
            make(whole * 256)
        assert raised.value.code == "too_long"


def test_text_without_utf8_form_is_rejected() -> None:
    with pytest.raises(EncodeError) as raised:
        HeaderKey("\ud800")
    assert raised.value.code == "key_not_utf8"
    with pytest.raises(EncodeError) as raised:
        HeaderValue.from_str("\ud800")
    assert raised.value.code == "value_not_utf8"


def test_wrong_size_for_kind_is_rejected_unless_unvalidated() -> None:
    with pytest.raises(EncodeError, match=r"^3 bytes where int32 takes 4$"):
        HeaderValue(HeaderKind.INT32, b"abc")
    with pytest.raises(EncodeError, match=r"^key of 3 bytes where int32 takes 4$") as raised:
        HeaderKey.from_kind_bytes("int32", b"abc")
    assert (iggy_code(raised.value, "iggy"), raised.value.code) == (4018, "wrong_size")
    kept = HeaderValue.from_kind_bytes("int32", b"abc", validate=False)
    assert (kept.value, str(kept)) == (b"abc", "<malformed int32>")
    assert eval(repr(kept), vars(iggy)) == kept
    with pytest.raises(DecodeError, match="3 bytes where int32 takes 4"):
        kept.as_int32()


def test_values_invalid_for_kind_raise_when_read() -> None:
    for kind, data, code in (("bool", b"\2", "bad_bool"), ("string", b"\xff", "value_not_utf8")):
        value = HeaderValue(kind, data)
        with pytest.raises(DecodeError) as raised:
            value.as_bool() if kind == "bool" else value.as_str()
        assert raised.value.code == code
        assert repr(value) == f"HeaderValue.from_kind_bytes('{kind}', {data!r}, validate=False)"
    assert [str(HeaderValue("bool", b"\2")), str(HeaderValue("string", b"\xff"))] == ["<malformed bool>", "\ufffd"]


def test_first_byte_of_longer_value_is_read_on_request() -> None:
    assert HeaderValue.from_kind_bytes("bool", b"\1\0", validate=False).as_bool(validate=False) is True
    assert HeaderValue.from_kind_bytes("uint8", b"\7\0", validate=False).as_uint8(validate=False) == 7
    with pytest.raises(DecodeError, match="the value is raw"):
        HeaderValue.from_raw(b"\1").as_bool(validate=False)


@pytest.mark.parametrize("kind", list(HeaderKind), ids=str)
def test_bytes_of_any_size_are_kept_unchanged(kind: HeaderKind) -> None:
    data = b"\1\0abc"
    block = b"\1\0\0\0k" + bytes([kind.as_code()]) + len(data).to_bytes(4, "little") + data
    headers = HeaderMap.from_bytes(block)
    assert headers["k"] == HeaderValue.from_kind_bytes(kind, data, validate=False)
    assert headers["k"].value == data
    assert headers.to_bytes() == block


def test_bytes_are_not_built_from_integers() -> None:
    for make in (HeaderValue.from_raw, lambda n: HeaderValue("raw", n), lambda n: HeaderKey.from_kind_bytes("raw", n)):
        with pytest.raises(TypeError):
            make(5)


def test_values_without_iggy_type_are_rejected() -> None:
    with pytest.raises(EncodeError, match="value kind char is unknown to Iggy"):
        HeaderValue._from_value(lh.Char("x"))
    wrong: Any = "x"
    with pytest.raises(TypeError, match="Value such as Int32"):
        HeaderValue._from_value(wrong)
    assert HeaderValue._from_value(lh.Value("type-200", b"x")).kind == 200


@pytest.mark.parametrize(
    ("kind", "text", "code"),
    [
        ("int8", "128", "out_of_range"),
        ("uint8", "-1", "bad_text"),
        ("uint64", "9" * 5000, "out_of_range"),
        ("int32", "٣", "bad_text"),
        ("int32", "+", "bad_text"),
        ("float32", ".", "bad_text"),
        ("float64", "1_0", "bad_text"),
        ("bool", "True", "bad_text"),
        ("int", "1", "unknown_type"),
        ("binary", "1", "unknown_type"),
    ],
)
def test_text_of_invalid_value_is_rejected(kind: str, text: str, code: str) -> None:
    with pytest.raises(DecodeError) as raised:
        HeaderValue.from_kind_str_and_value_str(kind, text)
    assert raised.value.code == code


def test_text_to_float_rounds_once() -> None:
    # Going through 64 bits gives 0x3f800000.
    text = "1.00000005960464477539062500001"
    assert HeaderValue.from_kind_str_and_value_str("float32", text)._typed.bits.hex() == "3f800001"
    for spelt, number in (("-INF", -math.inf), ("+infinity", math.inf), ("1e400", math.inf), ("5.", 5.0)):
        assert HeaderValue.from_kind_str_and_value_str("float32", spelt).as_float32() == number
    assert math.isnan(HeaderValue.from_kind_str_and_value_str("float64", "-nan").as_float64())


def test_maps_accept_str_as_key() -> None:
    headers = HeaderMap({"a": "text", HeaderKey("b"): b"bytes", "c": True, "d": lh.Int32(3)})
    assert headers["a"] is headers[HeaderKey("a")]
    assert [str(value.kind) for value in headers.values()] == ["string", "raw", "bool", "int32"]
    assert "a" in headers
    assert HeaderKey("b") in headers
    assert "z" not in headers
    assert 3 not in headers
    assert headers.get("z") is None
    del headers["a"]
    with pytest.raises(KeyError):
        del headers["a"]
    assert len(headers) == 3
    assert repr(HeaderMap({"a": "b"})) == "HeaderMap({HeaderKey('a'): HeaderValue.from_str('b')})"
    assert repr(HeaderMap()) == "HeaderMap()"


def test_invalid_key_lookup_finds_nothing() -> None:
    for key in ("", "k" * 256, "\ud800"):
        assert key not in HeaderMap({"k": "v"})
        with pytest.raises(KeyError):
            HeaderMap()[key]
    ask: Any = HeaderMap()
    with pytest.raises(TypeError, match="indexed by a HeaderKey or a str"):
        ask[3]


def test_last_value_keeps_position_of_first_key() -> None:
    headers = HeaderMap([("a", "1"), ("b", "2"), ("a", "3")])
    assert [(str(key), str(value)) for key, value in headers.items()] == [("a", "3"), ("b", "2")]
    block = lh.encode([("a", lh.Int8(1)), ("b", lh.Int8(2)), ("a", lh.Int8(3))], "iggy")
    assert block is not None
    assert list(map(str, HeaderMap.from_bytes(block).values())) == ["3", "2"]


def test_invalid_header_argument_raises_type_error() -> None:
    wrong: list[tuple[Any, str]] = [
        ([("a", 3)], "pass a kind"),
        ([("a", 0.5)], "pass a kind"),
        ([("a", None)], "not NoneType"),
        ([(3, "a")], "must be a HeaderKey or a str"),
        ("ab", "mapping or pairs"),
        (lh.Headers([("a", b"b")]), "use HeaderMap.from_headers"),
    ]
    for given_headers, message in wrong:
        with pytest.raises(TypeError, match=message):
            HeaderMap(given_headers)


@given(maps)
def test_maps_survive_bytes_json_and_package_conversions(headers: HeaderMap) -> None:
    for canonical in (False, True):
        block = headers.to_bytes("iggy", canonical=canonical)
        assert HeaderMap.from_bytes(block) == HeaderMap.from_bytes(block, "iggy") == headers
        assert HeaderMap.from_json(headers.to_json("iggy", canonical=canonical)) == headers
        assert lh.encode(headers.to_headers(), "iggy", canonical=canonical) == block
    assert headers.size_bytes("iggy") == len(headers.to_bytes("iggy"))
    assert list(HeaderMap.from_bytes(headers.to_bytes("iggy"))) == list(headers)
    assert HeaderMap.from_headers(headers.to_headers()) == headers


@given(text_maps)
def test_maps_with_text_keys_survive_the_older_format(headers: HeaderMap) -> None:
    block = headers.to_bytes()
    assert HeaderMap.from_bytes(block) == HeaderMap.from_bytes(block, "iggy-2023") == headers
    assert HeaderMap.from_json(headers.to_json()) == HeaderMap.from_json(headers.to_json(), "iggy-2023") == headers
    assert headers.size_bytes() == len(block)
    assert headers._value_bytes() == sum(len(value.value) for value in headers.values())


def test_non_string_keys_are_rejected_by_older_format() -> None:
    headers = HeaderMap([("a", "b"), (HeaderKey.from_int32(3), "c")])
    for write in (headers.to_bytes, headers.to_json):
        with pytest.raises(ConversionError, match=r"the key is int32.*\(header 1") as raised:
            write()
        assert (raised.value.code, raised.value.format) == ("key_not_carried", "iggy-2023")


def test_kinds_without_name_pass_unless_strict() -> None:
    block = bytes.fromhex("c80100000061c90100000062")
    headers = HeaderMap.from_bytes(block)
    assert headers == {HeaderKey.from_kind_bytes(200, b"a"): HeaderValue(201, b"b")}
    assert headers.to_bytes("iggy") == block
    with pytest.raises(DecodeError, match="key type code 200 is unknown") as raised:
        HeaderMap.from_bytes(block, strict_types=True)
    assert iggy_code(raised.value, "iggy") == 4040
    # JSON has names for the fifteen only: the whole block goes as base64, as a server sends what it cannot read.
    assert headers.to_json("iggy") == '"yAEAAABhyQEAAABi"'
    assert HeaderMap.from_json(headers.to_json("iggy")) == headers
    for older in (HeaderMap({"a": HeaderValue(201, b"b")}), headers):
        for write in (older.to_bytes, older.to_json):
            with pytest.raises(HeaderError):
                write()


def test_headers_of_other_formats_are_imported_by_kind() -> None:
    assert HeaderMap.from_headers(lh.Headers([(3, lh.Int8(1)), (b"x", lh.Bool(True))])) == {
        HeaderKey.from_int32(3): HeaderValue.from_int8(1),
        HeaderKey.from_raw(b"x"): HeaderValue.from_bool(True),
    }
    untyped = lh.Headers([("tenant", "acme"), ("retry", "3")])
    with pytest.raises(ConversionError, match=r"iggy: iggy values need a type: pass types="):
        HeaderMap.from_headers(untyped)
    assert HeaderMap.from_headers(untyped, types="binary")["tenant"].as_raw() == b"acme"
    typed = HeaderMap.from_headers(untyped, types={"tenant": "string", "retry": "int32:text"})
    assert (typed["tenant"].as_str(), typed["retry"].as_int32()) == ("acme", 3)
    for headers, code in (
        (lh.Headers([("a", None)]), "null_not_carried"),
        (lh.Headers([("a", lh.Char("x"))]), "unknown_type"),
        (lh.Headers([("", lh.Int8(1))]), "empty_key"),
        (lh.Headers([("a", lh.Binary(bytes(256)))]), "too_long"),
    ):
        with pytest.raises(EncodeError) as raised:
            HeaderMap.from_headers(headers)
        assert raised.value.code == code


def test_json_in_another_form_than_the_requested_one_is_rejected() -> None:
    older, newer = '{"a":{"kind":"string","value":"Yg=="}}', HeaderMap({"a": "b"}).to_json("iggy")
    assert HeaderMap.from_json(older) == HeaderMap.from_json(newer) == {HeaderKey("a"): HeaderValue.from_str("b")}
    for text, format in (
        (newer, "iggy-2023"),
        (older, "iggy"),
        ("null", "iggy-auto"),
        ("3", "iggy-auto"),
        ('"AA"', "iggy-2023"),
    ):
        with pytest.raises(DecodeError) as raised:
            HeaderMap.from_json(text, format)
        assert raised.value.code == "bad_text"
        assert iggy_code(raised.value) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":NaN}',
        '{"a":{"kind":"raw","value":"eA==","n":Infinity}}',
        "[" * 100_000,
        '{"a":{"kind":"raw","value":"eA==","n":' + "9" * 5000 + "}}",
        b'{"\xff":{"kind":"raw","value":"eA=="}}',
        "\ufeff{}",
        '[["a"]]',
        '[{"key":{"kind":"raw","value":"eA=="}}]',
        '{"a":{"kind":["raw"],"value":"eA=="}}',
        '"!!!!"',
    ],
    ids=lambda text: repr(text[:20]),
)
def test_malformed_headers_json_raises(text: str | bytes) -> None:
    with pytest.raises(DecodeError) as raised:
        HeaderMap.from_json(text)
    assert raised.value.code == "bad_text"


def test_lone_surrogate_in_json_key_is_rejected() -> None:
    with pytest.raises(DecodeError) as raised:
        HeaderMap.from_json('{"\\ud800":{"kind":"raw","value":"eA=="}}')
    assert (raised.value.code, raised.value.header) == ("key_not_utf8", 0)


def test_json_error_names_location() -> None:
    with pytest.raises(DecodeError) as raised:
        HeaderMap.from_json('{"é": x}')
    assert raised.value.byte_offset == 7
    with pytest.raises(DecodeError) as raised:
        HeaderMap.from_json('{"a":{"kind":"raw","value":"eA=="},"":{"kind":"raw","value":"eA=="}}')
    assert (raised.value.code, raised.value.header, raised.value.format) == ("empty_key", 1, "iggy-2023")


def test_misspelt_format_raises_value_error() -> None:
    headers = HeaderMap({"a": "b"})
    format: Any
    for format in ("tlv", "iggy-auto"):
        for write in (headers.to_bytes, headers.to_json, headers.size_bytes, headers.validate):
            with pytest.raises(ValueError, match="unknown format"):
                write(format)
    for read in (HeaderMap.from_bytes, HeaderMap.from_json):
        with pytest.raises(ValueError, match="did you mean 'iggy-2023'"):
            read(b"", "igy-2023")


def test_every_code_in_the_table_of_iggys_errors_exists() -> None:
    assert {code for code, *_ in _IGGY_ERRORS} <= set(CODES)
    with pytest.raises(DecodeError) as raised:
        HeaderMap.from_bytes(b"\1")
    assert iggy_code(raised.value) is None
