"""Headers with integer keys: ranges, writers, order, and the message wrapper."""

from __future__ import annotations

import json
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import DecodeError, EncodeError
from letterhead.kip82 import RESERVED, HeaderSerializer, IntHeaders, KeyRange, KeyRanges, MessageWrapper
from tests.reference import ops as reference

LEAST = -(1 << 31)
"""The lowest integer key."""


def wire(*headers: tuple[int, bytes | None]) -> bytes:
    """Encode headers as the draft specifies them."""
    return b"".join(
        struct.pack(">ii", key, -1 if value is None else len(value)) + (value or b"") for key, value in headers
    )


# Keys and values -----------------------------------------------------------------------------------------------------


def test_header_is_an_int32_key_an_int32_length_and_the_value() -> None:
    headers = IntHeaders([(5, b"acme"), (-1, None), (5, b"")])
    assert headers.as_bytes() == wire((5, b"acme"), (-1, None), (5, b""))
    read = IntHeaders(headers.as_bytes())
    assert not read.parsed
    assert (read.get_all(5), read[5], read.keys(), read.get_all(6)) == ([b"acme", b""], b"", [5, -1, 5], [])
    assert read.items() == [(5, b"acme"), (-1, None), (5, b"")]


def test_encoded_headers_can_be_concatenated_in_any_order() -> None:
    assert IntHeaders([(9, b"a"), (1, b"b")]).as_bytes() == wire((9, b"a"), (1, b"b"))


def test_integer_keys_are_smaller_than_text_keys() -> None:
    text = lh.encode([("transaction-id", lh.Binary(b"x"))], "kip82-typed")
    assert text is not None
    assert (len(IntHeaders({5: b"x"}).as_bytes()), len(text)) == (9, 24)


@pytest.mark.parametrize("value", ["acme", 3, lh.Int32(3), True])
def test_value_without_a_serializer_must_be_bytes(value: Any) -> None:
    with pytest.raises(TypeError, match="a value must be bytes or None"):
        IntHeaders().put(5, value)


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        ("tenant", EncodeError, "kip82-int: the key is text, and this header format has integer keys"),
        (True, TypeError, "a key must be int, not bool"),
        (b"a", TypeError, "a key must be int, not bytes"),
        (1 << 31, EncodeError, "kip82-int: an integer key has 32 bits"),
    ],
)
def test_key_must_be_a_32_bit_integer(key: Any, error: type[Exception], text: str) -> None:
    headers = IntHeaders()
    with pytest.raises(error, match=text):
        headers.put(key, b"x")
    assert len(headers) == 0


def test_damaged_bytes_raise_on_access_with_byte_and_reason() -> None:
    headers = IntHeaders(wire((1, b"a")) + b"\x00\x00\x00\x05\x00\x00\x00\x09abc")
    with pytest.raises(DecodeError) as caught:
        headers.get(1)
    error = caught.value
    assert (error.format, error.code, error.header, error.key) == ("kip82-int", "truncated", 1, "5")
    assert str(error) == "kip82-int: value takes 9 bytes and 3 are left (header 1, byte 17)"


def test_serializers_apply_to_their_keys_only() -> None:
    headers = IntHeaders(serializers={5: HeaderSerializer.for_type("long"), 6: HeaderSerializer.for_type("string")})
    headers.put(5, 82)
    headers.put(6, "acmé")
    headers.put(7, b"raw")
    assert headers.as_bytes() == wire((5, struct.pack(">q", 82)), (6, "acmé".encode()), (7, b"raw"))
    assert headers.items() == [(5, 82), (6, "acmé"), (7, b"raw")]
    with pytest.raises(EncodeError) as caught:
        headers.set(5, 1 << 63)
    assert (caught.value.format, caught.value.code, caught.value.key) == ("kip82-int", "out_of_range", "5")
    damaged = IntHeaders(wire((5, b"\x01")), serializers={5: HeaderSerializer.for_type("long")})
    with pytest.raises(lh.HeaderError, match="1 byte where int64 takes 8"):
        damaged.get(5)


# Ranges --------------------------------------------------------------------------------------------------------------


def test_reserved_ranges_are_named_and_do_not_overlap() -> None:
    assert [key_range.name for key_range in RESERVED] == ["broker", "client", "vendor", "in-house"]
    assert RESERVED["broker"].low == 0
    assert RESERVED["in-house"].high == (1 << 31) - 1
    for lower, upper in zip(list(RESERVED), list(RESERVED)[1:], strict=False):
        assert lower.high + 1 == upper.low
    assert [RESERVED.find(key) for key in (0, 10_000, 999_999_999)] == [
        RESERVED[n] for n in ("broker", "client", "vendor")
    ]
    assert RESERVED.find(-5) is None


def test_ranges_are_configurable_and_validated() -> None:
    ranges = KeyRanges([KeyRange(100, 199, "mine"), KeyRange(-10, -1, "broker")])
    assert [key_range.name for key_range in ranges] == ["broker", "mine"]
    assert (ranges.find(150), ranges.find(50), len(ranges)) == (KeyRange(100, 199, "mine"), None, 2)
    assert ranges == KeyRanges(reversed(list(ranges)))
    with pytest.raises(ValueError, match=r"overlap"):
        KeyRanges([KeyRange(1, 5, "a"), KeyRange(5, 9, "b")])
    with pytest.raises(ValueError, match="two ranges are named 'a'"):
        KeyRanges([KeyRange(1, 5, "a"), KeyRange(6, 9, "a")])
    with pytest.raises(ValueError, match="put the lower bound first"):
        KeyRange(5, 1, "a")
    with pytest.raises(ValueError, match="unknown range 'in_house': did you mean 'in-house'"):
        RESERVED["in_house"]


def test_keys_outside_writer_range_are_rejected_and_others_kept() -> None:
    broker = IntHeaders({7: b"cluster-a"}).as_bytes()
    headers = IntHeaders(broker, writes=RESERVED["in-house"])
    headers.put(1_000_000_001, b"acme")
    for change in (lambda: headers.put(7, b"b"), lambda: headers.set(7, b"b"), lambda: headers.remove(7)):
        with pytest.raises(EncodeError) as caught:
            change()
        error = caught.value
        assert (error.format, error.code, error.key) == ("kip82-int", "limit_exceeded", "7")
        assert "key 7 is outside the range of its writer, 1000000000 to 2147483647 (in-house)" in str(error)
    assert headers.as_bytes() == wire((7, b"cluster-a"), (1_000_000_001, b"acme"))
    with pytest.raises(EncodeError, match="outside the range of its writer"):
        headers.copy().put(7, b"b")
    free = headers._writing(None)
    assert (free.remove(7), headers.get_all(7)) == (1, [b"cluster-a"])


# Order ---------------------------------------------------------------------------------------------------------------


def test_sorted_is_stable() -> None:
    headers = IntHeaders([(9, b"x"), (1, b"a"), (9, b"y"), (-3, b"")])
    assert headers.sorted().items() == [(-3, b""), (1, b"a"), (9, b"x"), (9, b"y")]
    assert headers.items()[0] == (9, b"x")
    ordered = headers.sorted()
    ordered.put(3, b"z")
    headers.put(3, b"z")
    assert (ordered.keys(), headers.keys()) == ([-3, 1, 3, 9, 9], [9, 1, 9, -3, 3])


def test_sorting_changes_only_the_order() -> None:
    block = IntHeaders([(9, b"x"), (1, b"a")]).sorted().as_bytes()
    assert block == wire((1, b"a"), (9, b"x"))
    assert lh.decode(block, "kip82-int") == lh.Headers([(1, b"a"), (9, b"x")])
    read = IntHeaders(block)
    assert read.items() == [(1, b"a"), (9, b"x")]


@pytest.mark.parametrize("rest", [[], [(1, b"a"), (9, b"x")], [(9, b"x"), (1, b"a")], [(LEAST, None), (LEAST, b"")]])
def test_null_header_with_the_lowest_key_is_kept(rest: list[tuple[int, bytes | None]]) -> None:
    pairs = [(LEAST, None), *rest]
    read = IntHeaders(wire(*pairs))
    assert (read.items(), read.get_all(LEAST)[0]) == (pairs, None)
    assert read.up_to(5).items() == [pair for pair in pairs if pair[0] <= 5]
    for source in (pairs, lh.Headers(pairs), read):
        result = IntHeaders(source)
        assert (result.items(), result.as_bytes()) == (pairs, wire(*pairs))
    put = IntHeaders(wire(*rest))
    put.put(LEAST, None)
    assert put.as_bytes() == wire(*rest, (LEAST, None))
    put.set(LEAST, b"x")
    assert put.remove(LEAST) == 1


def test_added_headers_keep_the_order() -> None:
    headers = IntHeaders([(9, b"x"), (1, b"a")]).sorted()
    headers.put(5, b"m")
    headers.put(1, b"b")
    assert headers.items() == [(1, b"a"), (1, b"b"), (5, b"m"), (9, b"x")]
    assert headers.as_bytes() == wire((1, b"a"), (1, b"b"), (5, b"m"), (9, b"x"))
    for source in ([(3, b""), (2, b"")], IntHeaders([(3, b""), (2, b"")]), lh.Headers([(3, b""), (2, b"")])):
        assert IntHeaders(source, in_order=True).keys() == [2, 3]


def test_up_to_in_order_stops_at_the_first_higher_key() -> None:
    low, high = wire((1, b"a"), (7, None)), wire((70_000, b"b" * 50))
    for damage in (high, high[:-1], b"\x00\x01\x11\x70\xff\xff\xff\x00", high + b"\x00"):
        read = IntHeaders(low + damage, in_order=True)
        part = read.up_to(RESERVED["broker"].high)
        assert not part.parsed
        assert part.as_bytes() == low
        assert part.items() == [(1, b"a"), (7, None)]
        assert not read.parsed


def test_up_to_reads_everything_without_in_order() -> None:
    block = wire((70_000, b"b"), (1, b"a"))
    assert IntHeaders(block).up_to(9_999).items() == [(1, b"a")]
    with pytest.raises(DecodeError, match=r"kip82-int: .*\(header 2, "):
        IntHeaders(block + b"\x00").up_to(9_999)


def test_up_to_reports_damage_before_the_highest_key() -> None:
    with pytest.raises(DecodeError) as caught:
        IntHeaders(wire((1, b"a")) + struct.pack(">ii", 5, -2) + wire((9, b"")), in_order=True).up_to(7).keys()
    assert (caught.value.code, caught.value.byte_offset, caught.value.header) == ("negative_length", 13, 1)
    with pytest.raises(DecodeError) as caught:
        IntHeaders(struct.pack(">ii", 5, 100), in_order=True).up_to(7).keys()
    assert (caught.value.code, caught.value.byte_offset) == ("truncated", 8)


def test_unordered_bytes_are_rejected_with_in_order() -> None:
    headers = IntHeaders(wire((LEAST, None), (9, b"xyz"), (1, b"a")), in_order=True)
    with pytest.raises(DecodeError) as caught:
        headers.keys()
    error = caught.value
    assert (error.format, error.code, error.byte_offset, error.header) == ("kip82-int", "not_in_order", 19, 2)
    assert "key 1 comes after key 9: leave out in_order=True" in str(error)


int_keys = st.integers(LEAST, (1 << 31) - 1)
pairs_of_ints = st.lists(
    st.tuples(st.just(LEAST) | st.integers(0, 5) | int_keys, st.none() | st.binary(max_size=9)), max_size=8
)


@given(pairs_of_ints, int_keys | st.integers(0, 5))
def test_up_to_agrees_with_reading_everything(pairs: list[tuple[int, bytes | None]], highest: int) -> None:
    headers = IntHeaders(pairs)
    assert IntHeaders(headers.as_bytes()) == headers
    expected = sorted((pair for pair in pairs if pair[0] <= highest), key=lambda pair: pair[0])
    assert IntHeaders(headers.sorted().as_bytes(), in_order=True).up_to(highest).items() == expected
    assert IntHeaders(headers.as_bytes()).up_to(highest).items() == [pair for pair in pairs if pair[0] <= highest]


@given(pairs_of_ints)
def test_sorting_agrees_with_reference_and_adds_no_header(pairs: list[tuple[int, bytes | None]]) -> None:
    block = IntHeaders(pairs).sorted().as_bytes()
    read = [(key, value) for key, _, value in reference.decode(block, "kip82-int")]
    assert read == sorted(pairs, key=lambda pair: pair[0])


def test_unparsed_headers_can_be_pickled() -> None:
    headers = IntHeaders(wire((1, b"a")), writes=RESERVED["broker"], in_order=True)
    again = pickle.loads(pickle.dumps(headers))
    assert (again.parsed, again.items()) == (False, [(1, b"a")])
    with pytest.raises(EncodeError, match="outside the range of its writer"):
        again.put(1_000_000_001, b"")
    again.put(0, b"")
    assert again.keys() == [0, 1]


# The wrapper ---------------------------------------------------------------------------------------------------------


def test_wrapper_is_a_version_the_headers_and_the_value() -> None:
    wrapper = MessageWrapper({5: b"acme"}, b"42")
    block = wire((5, b"acme"))
    assert wrapper.to_bytes() == b"\x00" + struct.pack(">i", len(block)) + block + struct.pack(">i", 2) + b"42"
    read = MessageWrapper.from_bytes(wrapper.to_bytes())
    assert read == wrapper
    assert (read.get_headers().items(), read.get_value()) == ([(5, b"acme")], b"42")


def test_wrapper_distinguishes_null_from_empty() -> None:
    null, empty = MessageWrapper({}, None), MessageWrapper({}, b"")
    assert (null.to_bytes(), empty.to_bytes()) == (bytes.fromhex("00 00000000 ffffffff"), bytes(9))
    assert [MessageWrapper.from_bytes(wrapper.to_bytes()).value for wrapper in (null, empty)] == [None, b""]


def test_unknown_wrapper_version_is_rejected() -> None:
    with pytest.raises(DecodeError, match="magic 1 is unknown: a wrapper has 0") as caught:
        MessageWrapper.from_bytes(b"\x01" + bytes(8))
    assert (caught.value.format, caught.value.code, caught.value.byte_offset) == ("kip82-wrapper", "bad_magic", 0)


def test_wrapper_value_can_be_an_object_with_a_serializer() -> None:
    wrapper = MessageWrapper({5: b"x"}, {"qty": 1})
    data = wrapper.to_bytes(serialize=lambda value: json.dumps(value).encode())
    assert MessageWrapper.from_bytes(data, deserialize=json.loads) == wrapper
    with pytest.raises(TypeError, match="value must be bytes, not dict"):
        wrapper.to_bytes()


def test_wrapper_headers_are_parsed_on_first_access() -> None:
    read = MessageWrapper.from_bytes(MessageWrapper({5: b"acme"}, b"42").to_bytes())
    assert not read.headers.parsed
    assert (read.headers.get_all(5), read.headers.parsed) == ([b"acme"], True)


def test_damaged_wrapper_headers_leave_value_readable() -> None:
    read = MessageWrapper.from_bytes(bytes.fromhex("00 00000008 00000005 fffffffe 00000002 3432"))
    assert read.value == b"42"
    with pytest.raises(DecodeError, match="kip82-int: value length -2 is negative"):
        read.headers.keys()


@given(st.binary(max_size=24) | st.builds(lambda *parts: b"".join(parts), st.just(b"\0\0\0\0"), st.binary(max_size=24)))
def test_wrapper_is_readable_if_core_reads_all_but_headers(data: bytes) -> None:
    try:
        read = lh.decode(data, "kip82-wrapper")
    except DecodeError as error:
        if error.header is None:
            with pytest.raises(DecodeError) as caught:
                MessageWrapper.from_bytes(data)
            assert str(caught.value) == str(error)
        else:
            assert MessageWrapper.from_bytes(data).headers.error is not None
    else:
        result = MessageWrapper.from_bytes(data)
        assert (result.headers.to_headers(), result.value) == (read.headers, read.value)
