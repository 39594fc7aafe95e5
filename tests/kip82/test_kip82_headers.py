"""``Headers`` of the first draft: text keys, typed values, parsed on first access."""

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
from letterhead import _native
from letterhead.errors import DecodeError, EncodeError
from letterhead.kip82 import Headers, HeaderSerializer, Typed
from letterhead.kip82.typed import TYPES

# Every put of the draft: the method, a value, the code and the bytes that the draft gives for it.
PUTS: list[tuple[str, Any, int, bytes]] = [
    ("boolean", True, 0x00, b"\x01"),
    ("byte", -2, 0x01, b"\xfe"),
    ("char", "é", 0x02, b"\x00\xe9"),
    ("short", 256, 0x03, b"\x01\x00"),
    ("integer", 3, 0x04, b"\x00\x00\x00\x03"),
    ("long", -1, 0x05, b"\xff" * 8),
    ("float", 1.5, 0x06, struct.pack(">f", 1.5)),
    ("double", 0.1, 0x07, struct.pack(">d", 0.1)),
    ("string", "acmé", 0x08, "acmé".encode()),
    ("bytes", b"\x00\xff", 0x09, b"\x00\xff"),
]


def wire(key: str, code: int | None, value: bytes) -> bytes:
    """Encode one header as the draft specifies it."""
    typed = b"" if code is None else bytes([code]) + value
    return struct.pack(">i", len(key.encode())) + key.encode() + struct.pack(">i", len(typed)) + typed


@pytest.mark.parametrize(("name", "value", "code", "bits"), PUTS)
def test_every_put_method_writes_its_code_and_its_bytes(name: str, value: Any, code: int, bits: bytes) -> None:
    headers = Headers()
    assert getattr(headers, f"put_{name}")("key", value) is None
    assert headers.as_bytes() == wire("key", code, bits)
    read = Headers(headers.as_bytes())
    assert read.get_all("key") == [value]
    assert type(read.get_all("key")[0]) is type(value)
    [typed] = read.get_typed("key")
    assert typed is not None
    assert (typed.code, typed.value) == (code, value)


def test_types_agree_with_the_table_of_types() -> None:
    codes = {row["kip82"]: row["name"] for row in _native.types() if row["kip82"] is not None}
    assert codes == dict(enumerate(TYPES.values()))


def test_put_accepts_typed_values() -> None:
    headers = Headers()
    headers.put("n", Typed("short", 7))
    headers.put("m", lh.Int64(8))
    assert headers.as_bytes() == wire("n", 3, b"\x00\x07") + wire("m", 5, struct.pack(">q", 8))


def test_put_infers_the_type_of_bool_str_and_bytes() -> None:
    headers = Headers({"ok": True, "tenant": "acme", "blob": b"\x01"})
    assert headers.get_typed("ok") == [Typed("boolean", True)]
    assert headers.get_typed("tenant") == [Typed("string", "acme")]
    assert headers.get_typed("blob") == [Typed("byte[]", b"\x01")]


@pytest.mark.parametrize("value", [3, 0.5])
def test_put_rejects_numbers_without_a_type(value: float) -> None:
    with pytest.raises(TypeError, match=r"numbers need a type, as in Typed\('long', "):
        Headers().put("n", value)


def test_null_has_neither_bytes_nor_a_type() -> None:
    headers = Headers()
    headers.put("note", None)
    assert headers.as_bytes() == wire("note", None, b"") == struct.pack(">i", 4) + b"note" + bytes(4)
    assert Headers(headers.as_bytes()).get_all("note") == [None]
    assert Headers(headers.as_bytes()).get_typed("note") == [None]


def test_keys_may_repeat() -> None:
    headers = Headers()
    headers.put_string("route", "a")
    headers.put_boolean("ok", False)
    headers.put_string("route", "b")
    read = Headers(headers.as_bytes())
    assert read.get_all("route") == ["a", "b"]
    assert read["route"] == "b"
    assert read.keys() == ["route", "ok", "route"]
    assert read.items() == [("route", "a"), ("ok", False), ("route", "b")]
    assert (read.get_all("absent"), read.get("absent"), read.get("absent", 0)) == ([], None, 0)


def test_headers_are_parsed_on_first_access() -> None:
    block = Headers({"tenant": "acme"}).as_bytes()
    for access in (
        lambda h: h.keys(),
        lambda h: h.get("tenant"),
        lambda h: h.put("x", None),
        lambda h: len(h),
        lambda h: "tenant" in h,
        lambda h: h == Headers(),
    ):
        headers = Headers(block)
        assert not headers.parsed
        access(headers)
        assert headers.parsed


def test_unread_damaged_bytes_are_passed_on_unchanged() -> None:
    headers = Headers(b"\x00\x00\x00")
    assert repr(headers) == "Headers(<3 bytes, not parsed yet>)"
    assert headers.as_bytes() == b"\x00\x00\x00"
    assert headers.copy().frozen().as_bytes() == b"\x00\x00\x00"
    assert not headers.parsed


@pytest.mark.parametrize(
    ("block", "code", "byte", "text"),
    [
        ("000000", "truncated", 0, "kip82-typed: key length takes 4 bytes and 3 are left (header 0"),
        ("00000001 61 00000002 0b 01", "unknown_type", 9, "value type code 11 is unknown"),
        ("00000001 61 00000002 00 02", "bad_bool", 10, "the byte is not a boolean: 0 or 1"),
        ("00000001 61 00000003 04 0001", "wrong_size", 10, "2 bytes where int32 takes 4"),
        ("00000001 ff 00000000", "key_not_utf8", 4, "key is not UTF-8"),
        ("ffffffff", "negative_length", 0, "key length -1 is negative"),
    ],
)
def test_damaged_bytes_raise_on_access_with_byte_and_reason(block: str, code: str, byte: int, text: str) -> None:
    headers = Headers(bytes.fromhex(block))
    with pytest.raises(DecodeError) as caught:
        headers.keys()
    error = caught.value
    assert (error.format, error.code, error.byte_offset, error.header) == ("kip82-typed", code, byte, 0)
    assert text in str(error)
    assert not headers.parsed


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("byte", 128, "out_of_range"),
        ("short", -32769, "out_of_range"),
        ("integer", 1 << 31, "out_of_range"),
        ("long", 1 << 63, "out_of_range"),
        ("float", 1e39, "out_of_range"),
        ("char", "ab", "wrong_size"),
        ("char", "😀", "out_of_range"),
        ("string", "\ud800", "value_not_utf8"),
    ],
)
def test_value_outside_its_type_is_rejected_and_not_added(name: str, value: Any, code: str) -> None:
    headers = Headers({"a": "b"})
    with pytest.raises(EncodeError) as caught:
        getattr(headers, f"put_{name}")("key", value)
    error = caught.value
    assert (error.format, error.code, error.header, error.key) == ("kip82-typed", code, 1, "key")
    assert headers.items() == [("a", "b")]


@pytest.mark.parametrize(
    ("name", "value"),
    [("boolean", 1), ("byte", True), ("integer", 3.0), ("string", b"a"), ("bytes", "a"), ("double", "1"), ("char", 65)],
)
def test_value_of_wrong_python_type_raises_type_error(name: str, value: Any) -> None:
    with pytest.raises(TypeError):
        getattr(Headers(), f"put_{name}")("key", value)


def test_keys_must_be_text_with_a_utf8_form() -> None:
    with pytest.raises(EncodeError, match="this header format has text keys") as caught:
        Headers().put(5, "a")  # type: ignore[arg-type]
    assert caught.value.code == "key_not_carried"
    with pytest.raises(EncodeError) as caught:
        Headers().put("\ud800", "a")
    assert (caught.value.code, caught.value.format) == ("key_not_utf8", "kip82-typed")
    with pytest.raises(TypeError, match="a key must be str, not bytes"):
        Headers().put(b"a", "a")  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="this header format has text keys"):
        Headers().get(5)  # type: ignore[arg-type]


def test_type_unknown_to_draft_is_rejected() -> None:
    with pytest.raises(EncodeError, match="kip82-typed: the draft has no type for uint8") as caught:
        Headers().put("n", lh.UInt8(1))
    assert caught.value.code == "unknown_type"


def test_typed_values_are_equal_by_type_and_bits() -> None:
    assert Typed("float", 0.1) == Typed("float", 0.10000000149011612)
    assert Typed("int", 1) != Typed("long", 1)
    assert hash(Typed("string", "a")) == hash(Typed("string", "a"))
    assert math.isnan(Typed("double", math.nan).value)  # type: ignore[arg-type]
    assert Typed("double", 0.0) != Typed("double", -0.0)
    assert repr(Typed("byte[]", b"\x01")) == "Typed('byte[]', b'\\x01')"
    assert pickle.loads(pickle.dumps(Typed("char", "x"))) == Typed("char", "x")
    with pytest.raises(ValueError, match="unknown type 'integer': did you mean 'int'"):
        Typed("integer", 3)


def test_set_replaces_all_values_of_key() -> None:
    headers = Headers([("route", "a"), ("tenant", "acme"), ("route", "b")])
    headers.set("route", "c")
    assert headers.items() == [("tenant", "acme"), ("route", "c")]
    assert headers.remove("route") == 1
    assert headers.remove("route") == 0
    with pytest.raises(TypeError):
        headers.set("tenant", 3)
    assert headers.items() == [("tenant", "acme")]


def test_headers_convert_to_and_from_letterhead_headers() -> None:
    headers = Headers({"tenant": "acme", "note": None})
    assert headers.to_headers() == lh.Headers([("tenant", lh.String("acme")), ("note", None)])
    assert Headers(lh.decode(headers.as_bytes(), "kip82-typed")) == headers
    headers.to_headers().add("x", b"")
    assert len(headers) == 2


def test_serializer_converts_values_of_its_key() -> None:
    point = HeaderSerializer(lambda p: struct.pack(">hh", *p), lambda data: struct.unpack(">hh", data))
    headers = Headers(serializers={"at": point})
    headers.put("at", (3, -4))
    headers.put("at", None)
    assert headers.as_bytes() == wire("at", 9, b"\x00\x03\xff\xfc") + wire("at", None, b"")
    assert Headers(headers.as_bytes(), serializers={"at": point}).get_all("at") == [(3, -4), None]
    assert Headers(headers.as_bytes()).get_all("at") == [b"\x00\x03\xff\xfc", None]


def test_value_of_another_type_than_its_serializer_is_rejected() -> None:
    headers = Headers({"at": "north"}, serializers={})
    read = Headers(headers.as_bytes(), serializers={"at": HeaderSerializer.for_type("long")})
    with pytest.raises(DecodeError, match="has the type string, and the serializer of its key reads long") as caught:
        read.get_all("at")
    assert caught.value.code == "wrong_type"
    assert caught.value.__notes__ == ["in a header with the key 'at'"]


def test_errors_of_serializers_are_raised() -> None:
    with pytest.raises(TypeError, match="the serializer of the key 'a' must return bytes, not str"):
        Headers(serializers={"a": HeaderSerializer(str, str)}).put("a", 1)
    headers = Headers({"a": b"zz"}).copy(serializers={"a": HeaderSerializer(bytes, lambda data: int(data))})
    with pytest.raises(ValueError, match="invalid literal") as caught:
        headers.get("a")
    assert caught.value.__notes__ == ["in a header with the key 'a'"]


def test_frozen_headers_are_immutable_and_their_copy_is_not() -> None:
    frozen = Headers(Headers({"a": "b"}).as_bytes()).frozen()
    assert not frozen.parsed
    for change in (
        lambda: frozen.put("x", None),
        lambda: frozen.put_string("x", "y"),
        lambda: frozen.set("a", "c"),
        lambda: frozen.remove("a"),
    ):
        with pytest.raises(TypeError, match=r"immutable: change a copy\(\)"):
            change()
    changed = frozen.copy()
    changed.put("x", None)
    assert (frozen.keys(), changed.keys()) == (["a"], ["a", "x"])


def test_headers_can_be_copied_and_pickled() -> None:
    headers = Headers({"a": "b", "n": Typed("int", 3)})
    for other in (copy.deepcopy(headers), pickle.loads(pickle.dumps(headers)), Headers(headers.as_bytes())):
        assert other == headers
    assert headers != Headers({"a": "b"})
    assert headers != {"a": "b"}


values = st.one_of(
    st.none(),
    st.booleans().map(lambda v: Typed("boolean", v)),
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda v: Typed("int", v)),
    st.floats().map(lambda v: Typed("double", v)),
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda v: Typed("string", v)),
    st.binary().map(lambda v: Typed("byte[]", v)),
)


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), values), max_size=8))
def test_headers_round_trip(pairs: list[tuple[str, Typed | None]]) -> None:
    headers = Headers(pairs)
    read = Headers(headers.as_bytes())
    assert read == headers
    assert read.keys() == [key for key, _ in pairs]
    assert len(read.keys()) == len(read.values()) == len(read)
    for key, _ in pairs:
        assert read.get_typed(key) == [value for kept, value in pairs if kept == key]
