"""Headers: a sequence that can also be asked by key, and loses neither repeats nor order nor null."""

from __future__ import annotations

import copy
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import EncodeError
from letterhead.headers import FrozenHeaders

PAIRS = [("tenant", b"acme"), ("route", b"a"), ("note", None), ("route", b""), ("retry", lh.Int32(3))]

any_pairs = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "é", ""]),
        st.none() | st.binary(max_size=3) | st.builds(lh.Int8, st.integers(-2, 2)),
    )
)


@pytest.fixture
def headers() -> lh.Headers:
    return lh.Headers(PAIRS)


def test_position_returns_header_and_key_returns_last_value(headers: lh.Headers) -> None:
    assert headers[0] == lh.Header("tenant", b"acme") == ("tenant", b"acme")
    assert headers[-1] == ("retry", lh.Int32(3))
    assert headers[1:3] == lh.Headers(PAIRS[1:3])
    assert headers["route"] == b""
    assert headers["note"] is None


def test_missing_key_raises_key_error(headers: lh.Headers) -> None:
    for ask in (headers.__getitem__, lh.Headers().__getitem__):
        with pytest.raises(KeyError, match="absent"):
            ask("absent")
    with pytest.raises(IndexError):
        headers[5]


def test_headers_are_indexed_by_key_or_position_only(headers: lh.Headers) -> None:
    ask: Any = headers
    for index in (1.0, None):
        with pytest.raises(TypeError, match="by key or position"):
            ask[index]


def test_null_differs_from_absent(headers: lh.Headers) -> None:
    assert headers.get("note", b"default") is None
    assert headers.get("absent", b"default") == b"default"
    assert headers.get("absent") is None
    assert headers["note"] is None


def test_all_returns_every_value_in_order(headers: lh.Headers) -> None:
    assert headers.get_all("route") == [b"a", b""]
    assert headers.get_all("absent") == []


def test_keys_repeat_and_pair_with_values(headers: lh.Headers) -> None:
    assert headers.keys() == [key for key, _ in PAIRS]
    assert list(zip(headers.keys(), headers.values(), strict=True)) == PAIRS
    decoded = lh.decode(lh.encode(headers, "kafka", types="be"), "kafka")
    for some in (headers, headers.frozen(), decoded, decoded.frozen()):
        assert len(some.keys()) == len(some.values()) == len(some.items()) == len(some)


def test_dict_has_last_value_of_every_key(headers: lh.Headers) -> None:
    assert dict(headers) == {"tenant": b"acme", "route": b"", "note": None, "retry": lh.Int32(3)}


def test_contains_accepts_key_or_header(headers: lh.Headers) -> None:
    assert "route" in headers
    assert "absent" not in headers
    assert ("route", b"a") in headers
    assert ("route", b"b") not in headers
    assert ("retry", lh.Int64(3)) not in headers


def test_headers_are_a_sequence(headers: lh.Headers) -> None:
    assert len(headers) == 5
    assert [header.key for header in headers] == [key for key, _ in PAIRS]
    assert headers.index(("route", b"")) == 3  # type: ignore[arg-type]
    assert headers.count(lh.Header("route", b"a")) == 1
    assert next(reversed(headers)).key == "retry"
    assert list(headers) == PAIRS


def test_list_of_items_is_copy(headers: lh.Headers) -> None:
    headers.items().clear()
    assert len(headers) == 5


def test_add_keeps_existing_headers_and_remove_returns_count(headers: lh.Headers) -> None:
    assert headers.add("route", "c") is headers
    assert headers.get_all("route") == [b"a", b"", b"c"]
    assert headers.remove("route") == 3
    assert headers.remove("route") == 0
    assert "route" not in headers


@pytest.mark.parametrize("value", ["é", bytearray(b"\xc3\xa9"), memoryview(b"\xc3\xa9"), b"\xc3\xa9"])
def test_text_is_its_utf8_bytes_and_bytes_like_is_bytes(value: Any) -> None:
    result = lh.Headers([("k", value)])["k"]
    assert result == b"\xc3\xa9"
    assert type(result) is bytes


@pytest.mark.parametrize("value", [1, 1.5, True, ["a"], object()])
def test_value_of_unsupported_type_raises_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="the value of a header must be"):
        lh.Headers([("k", value)])


def test_text_without_utf8_form_is_rejected() -> None:
    with pytest.raises(EncodeError) as caught:
        lh.Headers([("k", "\ud800")])
    assert caught.value.code == "value_not_utf8"


@pytest.mark.parametrize("key", [1.0, True, None, ("int32", b"")])
def test_key_of_unsupported_type_raises_type_error(key: Any) -> None:
    with pytest.raises(TypeError, match="the key of a header must be str, int, bytes or a Value"):
        lh.Headers([(key, b"")])


def test_integer_keys_are_read_by_name_and_positions_in_brackets() -> None:
    headers = lh.Headers([(7, b"a"), (0, b"b"), (7, None)])
    assert headers[0] == lh.Header(7, b"a")
    assert (headers.get(7), headers.get(0), headers.get_all(7)) == (None, b"b", [b"a", None])
    assert 7 in headers
    assert 1 not in headers
    assert dict(headers) == {7: None, 0: b"b"}
    assert headers.keys() == [7, 0, 7]
    assert headers.remove(7) == 2


@pytest.mark.parametrize("key", [1 << 31, -(1 << 31) - 1])
def test_integer_key_has_32_bits(key: int) -> None:
    with pytest.raises(lh.EncodeError) as caught:
        lh.Headers([(key, b"")])
    assert caught.value.code == "out_of_range"


def test_typed_keys_are_values_and_text_is_text() -> None:
    headers = lh.Headers([(lh.Int32(3), b"a"), (lh.String("tenant"), b"b"), (b"raw", b"c")])
    assert [header.key for header in headers] == [lh.Int32(3), "tenant", lh.Binary(b"raw")]
    assert (headers[lh.Int32(3)], headers["tenant"], headers[b"raw"]) == (b"a", b"b", b"c")
    assert lh.Int64(3) not in headers


def test_unique_keeps_last_value_at_first_position() -> None:
    headers = lh.Headers([("a", b"1"), ("b", b"2"), ("a", b"3")])
    assert headers.unique() == lh.Headers([("a", b"3"), ("b", b"2")])
    assert len(headers) == 3


@pytest.mark.parametrize("argument", ["tenant", b"tenant", ["ab"], [("k", b"v", 1)], [None]])
def test_non_pairs_raise_type_error(argument: Any) -> None:
    with pytest.raises(TypeError):
        lh.Headers(argument)


def test_mapping_and_headers_are_accepted(headers: lh.Headers) -> None:
    assert lh.Headers({"a": b"1", "b": None}) == lh.Headers([("a", b"1"), ("b", None)])
    other = lh.Headers(headers)
    other.add("more", b"")
    assert len(headers) == 5


def test_equality_is_ordered_and_by_type_and_bits() -> None:
    assert lh.Headers([("a", b"1"), ("b", b"2")]) != lh.Headers([("b", b"2"), ("a", b"1")])
    assert lh.Headers([("a", b"\0\0\0\3")]) != lh.Headers([("a", lh.Int32(3))])
    assert lh.Headers([("a", None)]) != lh.Headers([("a", b"")])
    nan = lh.Value.from_bits("float64", struct.pack(">Q", 0x7FF8_0000_0000_0001))
    assert lh.Headers([("a", nan)]) == lh.Headers([("a", nan)])
    assert lh.Headers([("a", nan)]) != lh.Headers([("a", lh.Float64(float("nan")))])
    assert lh.Headers([("a", b"1")]) != [("a", b"1")]


@given(any_pairs)
def test_round_trip_loses_nothing(pairs: list[tuple[str, Any]]) -> None:
    headers = lh.Headers(pairs)
    assert [tuple(header) for header in headers] == pairs
    for other in (pickle.loads(pickle.dumps(headers)), copy.deepcopy(headers), copy.copy(headers), headers[:]):
        assert other == headers
        assert type(other) is lh.Headers
    assert eval(repr(headers), {"Headers": lh.Headers, "Int8": lh.Int8}) == headers
    assert dict(headers) == dict(pairs)
    assert headers.keys() == [key for key, _ in pairs]


@given(any_pairs, any_pairs)
def test_frozen_headers_hash_like_they_compare(first: list[tuple[str, Any]], second: list[tuple[str, Any]]) -> None:
    left, right = lh.Headers(first).frozen(), lh.Headers(second).frozen()
    assert (left == right) == (first == second)
    assert hash(left) == hash(lh.Headers(first).frozen())
    assert len({left, right}) == (1 if first == second else 2)


def test_frozen_headers_reject_changes_and_stay_equal(headers: lh.Headers) -> None:
    frozen: Any = headers.frozen()
    assert frozen == headers
    assert headers == frozen
    headers.add("more", b"")
    assert frozen != headers
    with pytest.raises(TypeError, match="frozen"):
        frozen.add("k", b"v")
    with pytest.raises(TypeError, match="frozen"):
        frozen.remove("tenant")
    assert frozen.frozen() is frozen
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert type(frozen[1:]) is type(frozen) is FrozenHeaders
    assert lh.Headers(frozen).add("k", b"v")["k"] == b"v"


def test_mutable_headers_have_no_hash(headers: lh.Headers) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(headers)


def test_message_is_collection_of_fields() -> None:
    message = lh.Message(headers=[("a", "1")], timestamp=5, payload=b"x")
    assert message.headers == lh.Headers([("a", b"1")])
    assert message._fields == ("headers", "timestamp", "payload")
    assert message._asdict() == {"headers": lh.Headers([("a", b"1")]), "timestamp": 5, "payload": b"x"}
    assert message == lh.Message(headers={"a": b"1"}, timestamp=5, payload=b"x")
    assert message != lh.Message(headers={"a": b"1"}, timestamp=6, payload=b"x")
    assert message._replace(timestamp=6).timestamp == 6
    assert pickle.loads(pickle.dumps(message)) == copy.deepcopy(message) == message
    assert repr(message) == "Message(headers=Headers([('a', b'1')]), timestamp=5, payload=b'x')"
    message.headers = {"b": b"2"}
    assert message.headers == lh.Headers({"b": b"2"})
    with pytest.raises(TypeError, match="unhashable"):
        hash(message)


def test_assigning_only_headers_field_converts_to_headers() -> None:
    message = lh.Message(headers=[], payload=b"")
    message.payload = b"x"
    assert message.payload == b"x"
    message.headers = None
    assert message.headers is None


def test_misspelt_message_field_is_rejected() -> None:
    message = lh.Message(headers=[], payload=b"")
    with pytest.raises(AttributeError, match="did you mean 'payload'"):
        message.paylaod = b"x"
    with pytest.raises(AttributeError, match="did you mean 'headers'"):
        _ = message.header
    with pytest.raises(ValueError, match="unknown field"):
        message._replace(paylaod=b"x")


@pytest.fixture(params=["made", "decoded"])
def header(request: pytest.FixtureRequest) -> lh.Header:
    if request.param == "made":
        return lh.Header("tenant", b"acme")
    return lh.decode(lh.encode([("tenant", b"acme")], "kafka"), "kafka")[0]


def test_header_is_tuple(header: lh.Header) -> None:
    pair = ("tenant", b"acme")
    assert type(header) is lh.Header
    assert isinstance(header, tuple)
    assert (tuple(header), header[0], header[-1], header[:1], len(header)) == (pair, "tenant", b"acme", pair[:1], 2)
    assert header == pair
    assert pair == header
    assert header != ("tenant", None)
    assert hash(header) == hash(pair)
    assert header < ("tenant", b"b")
    assert {pair: 1}[header] == 1


def test_header_has_named_tuple_methods(header: lh.Header) -> None:
    key, value = header
    assert (key, value) == (header.key, header.value) == ("tenant", b"acme")
    assert repr(header) == "Header(key='tenant', value=b'acme')"
    assert header._fields == ("key", "value")
    assert header._asdict() == {"key": "tenant", "value": b"acme"}
    assert header._replace(value=None) == lh.Header(key="tenant", value=None)
    assert type(header._replace(value=None)) is type(lh.Header._make(["a", b""])) is lh.Header
    match header:
        case lh.Header("tenant", value=matched):
            assert matched == b"acme"
        case _:
            pytest.fail("no match")
    with pytest.raises(AttributeError):
        header.key = "other"  # type: ignore[misc]


def test_copied_header_is_header(header: lh.Header) -> None:
    copies = [pickle.loads(pickle.dumps(header, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for result in (*copies, copy.copy(header), copy.deepcopy(header)):
        assert type(result) is lh.Header
        assert result == header


def test_header_has_only_key_and_value() -> None:
    make: Any = lh.Header
    for items in ((), ("key",), ("key", b"", b""), (("key", b""),)):
        with pytest.raises(TypeError):
            make(*items)


any_key = st.sampled_from(["a", "é", "", "\ud800", 7, -1, 1 << 40, True, b"k", 1.5, lh.Int8(1), lh.String("s"), None])
any_value = st.sampled_from(
    [None, b"", b"v", bytearray(b"x"), memoryview(b"y"), "text", "\ud800", 5, *map(lh.Int8, (1, 2))]
)


@given(st.dictionaries(any_key, any_value, max_size=4), st.sampled_from(["kafka", "kip82-int", "kip82-typed", "iggy"]))
def test_dict_is_encoded_like_its_items(headers: dict[Any, Any], format: str) -> None:
    def outcome(headers: Any) -> Any:
        try:
            return lh.encode(headers, format)
        except (TypeError, lh.HeaderError) as error:
            return type(error), str(error)

    assert outcome(headers) == outcome(list(headers.items()))


def test_header_can_be_subclassed(header: lh.Header) -> None:
    class Named(lh.Header):
        pass

    assert Named(*header) == header
    assert repr(Named(*header)) == "Named(key='tenant', value=b'acme')"
