"""Edits of headers: the rules, and the core against the reference implementation."""

from __future__ import annotations

import hashlib
import hmac
import pickle
import random
from typing import Any

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead._header_edits import HeaderEdit
from letterhead.errors import UnseenHeaderWarning
from letterhead.operations import Edit
from letterhead.values import value_from_message
from tests.helpers import strategies
from tests.helpers.outcomes import outcome
from tests.helpers.strategies import WRITTEN, few
from tests.reference import editing, ops
from tests.reference.formats import FORMATS

HEADERS = [("ssn", b"078-05-1120"), ("route", b"a"), ("note", None), ("route", b"b"), ("ssn", None)]


def kafka(*headers: tuple[str, Any]) -> bytes:
    return lh.encode(list(headers), "kafka") or b""


def edited(headers: Any, format: str = "kafka", **changes: Any) -> list[tuple[Any, Any]]:
    """Edit a message as bytes and in Python, which agree."""
    data = lh.encode(headers, format)
    [message] = lha.edit(pa.array([data]), format, **changes).to_pylist()
    of_bytes = lh.decode(message, format)
    assert of_bytes == lh.Headers(headers).edit(**changes)
    return of_bytes.items()


# --- rules -----------------------------------------------------------------------------------------------------------


def test_replace_keeps_position_repeats_and_nulls() -> None:
    assert edited(HEADERS, replace={"ssn": "redact"}) == [
        ("ssn", b"***"), ("route", b"a"), ("note", None), ("route", b"b"), ("ssn", None)
    ]  # fmt: skip


def test_drop_removes_all_headers_of_key() -> None:
    assert edited(HEADERS, drop=["route"]) == [("ssn", b"078-05-1120"), ("note", None), ("ssn", None)]


def test_only_keeps_headers_of_its_keys() -> None:
    assert edited(HEADERS, only=["route"]) == [("route", b"a"), ("route", b"b")]


def test_renames_happen_at_once() -> None:
    swapped = edited(HEADERS, rename={"ssn": "route", "route": "ssn"})
    assert [key for key, _ in swapped] == ["route", "ssn", "note", "ssn", "route"]


def test_header_is_renamed_and_replaced() -> None:
    assert edited([("ssn", b"x")], rename={"ssn": "id"}, replace={"ssn": "redact"}) == [("id", b"***")]


def test_set_leaves_one_header_at_first_position() -> None:
    assert edited(HEADERS, set={"route": "c", "new": None}) == [
        ("ssn", b"078-05-1120"), ("route", b"c"), ("note", None), ("ssn", None), ("new", None)
    ]  # fmt: skip


def test_unchanged_message_is_copied_at_any_length() -> None:
    data = lh.encode([("a", lh.String("x" * 200))], "iggy") * 500
    assert lha.edit(pa.array([data]), "iggy", only=["a"]).to_pylist() == [data]
    with pytest.raises(lh.EncodeError, match="more than 100000"):
        lha.edit(pa.array([data]), "iggy", append=[("a", lh.String("x"))])


def test_append_repeats_keys_in_order() -> None:
    assert edited([("a", b"1")], append=[("a", "2"), ("b", b""), ("a", None)]) == [
        ("a", b"1"), ("a", b"2"), ("b", b""), ("a", None)
    ]  # fmt: skip


def test_constants_replace_values() -> None:
    assert edited([("a", b"1")], replace={"a": lh.lit("hash")}) == [("a", b"hash")]
    assert edited([("a", b"1")], replace={"a": lh.lit(None)}) == [("a", None)]


def test_hash_is_sha256_in_hexadecimal() -> None:
    assert edited([("a", b"secret")], replace={"a": "hash"}) == [("a", hashlib.sha256(b"secret").hexdigest().encode())]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"078-05-1120", b"****1120"), (b"12345678", b"****5678"), (b"1234567", b"****"), (b"", b"****"),
        (b"1234567\xff", b"****"), (b"12345\n78", b"****"),
    ],
)  # fmt: skip
def test_last4_shows_at_most_half_of_value(value: bytes, shown: bytes) -> None:
    assert edited([("a", value)], replace={"a": "last4"}) == [("a", shown)]


def test_more_than_63_headers_are_counted_in_two_bytes() -> None:
    headers = [("a", b"1")] * 63
    assert len(edited(headers, append={"b": "2"})) == 64
    assert len(edited([*headers, ("b", b"2")], drop=["b"])) == 63


@pytest.mark.filterwarnings("ignore::letterhead.errors.UnseenHeaderWarning")
def test_untouched_message_is_copied() -> None:
    padded = bytes.fromhex("82000261820062")  # lengths of more bytes than they need
    rows = [padded, b"", b"\x00", None]
    assert lha.edit(pa.array(rows), "kafka", drop=["x"], replace={"y": "hash"}).to_pylist() == rows


def test_other_headers_keep_their_bytes() -> None:
    other = bytes.fromhex("0261820062")
    data = bytes.fromhex("04") + other + bytes.fromhex("02620263")
    assert lha.edit(pa.array([data]), "kafka", drop=["b"]).to_pylist() == [b"\x02" + other]
    long = pa.array([data] * 200)  # most rows are far from the end of the buffer, where kernels read them
    assert set(lha.edit(long, "kafka", drop=["b"]).to_pylist()) == {b"\x02" + other}


def test_function_gets_replaced_values() -> None:
    rows = pa.array([kafka(*HEADERS), None, kafka(("a", b"1")), kafka(("ssn", b"x"))])
    seen = []

    def upper(values: Any) -> Any:
        seen.append(values.to_pylist())
        return pc.binary_join_element_wise(values, b"!", b"")

    result = lha.edit(rows, "kafka", replace={"ssn": upper})
    assert seen == [[b"078-05-1120", None, b"x"]]
    assert lh.decode(result[3].as_py(), "kafka") == lh.Headers({"ssn": b"x!"})
    assert lh.decode(result[0].as_py(), "kafka").get_all("ssn") == [b"078-05-1120!", None]
    assert result[2].as_py() == kafka(("a", b"1"))


def test_each_function_gets_the_values_of_its_key() -> None:
    def marked(mark: bytes) -> Any:
        return lambda values: pa.array([value and value + mark for value in values.to_pylist()], pa.binary())

    typed = [(lh.Int32(3), "a"), ("3", "b"), (lh.Binary(b"3"), "c"), (lh.Int32(4), "d"), (lh.Int32(3), "e")]
    message = lh.encode([(key, lh.String(value)) for key, value in typed], "iggy")
    functions = {"3": marked(b"1"), lh.Int32(3): marked(b"2"), lh.Binary(b"3"): marked(b"3"), lh.Int32(5): marked(b"4")}
    with pytest.warns(UnseenHeaderWarning, match=r"no message had a header Int32\(5\)"):
        edited = lha.edit(pa.array([message, None, message]), "iggy", replace=functions)
    expected = [lh.String(value) for value in ("a2", "b1", "c3", "d", "e2")]
    assert [row and lh.decode(row, "iggy").values() for row in edited.to_pylist()] == [expected, None, expected]

    integers = lh.encode([(1, b"a"), (2, b"b"), (1, None)], "kip82-int")
    edited = lha.edit(pa.array([integers]), "kip82-int", replace={2: marked(b"2"), 1: marked(b"1")})
    assert lh.decode(edited[0].as_py(), "kip82-int").values() == [b"a1", b"b2", None]


def test_function_is_applied_to_each_chunk() -> None:
    chunks = pa.chunked_array([[kafka(("a", b"1"))], [kafka(("b", b"1")), kafka(("a", b"2"))]])
    result = lha.edit(chunks, "kafka", replace={"a": lambda values: pa.array(["new"] * len(values))})
    assert result.to_pylist() == [kafka(("a", b"new")), kafka(("b", b"1")), kafka(("a", b"new"))]
    assert [len(chunk) for chunk in result.chunks] == [1, 2]


def test_function_may_return_views() -> None:
    views = pa.array(["new"], pa.string_view())
    edited = lha.edit(pa.array([kafka(("a", b"1"))]), "kafka", replace={"a": lambda _: views})
    assert edited.to_pylist() == [kafka(("a", b"new"))]


def test_function_in_typed_format_keeps_types_of_bytes() -> None:
    data = lh.encode([("n", lh.Int32(5)), ("n", lh.String("x"))], "iggy")
    swap = lambda values: pa.array([value[::-1] for value in values.to_pylist()], pa.binary())  # noqa: E731
    [result] = lha.edit(pa.array([data]), "iggy", replace={"n": swap}).to_pylist()
    assert lh.decode(result, "iggy").get_all("n") == [lh.Int32(5 << 24), lh.String("x")]


@pytest.mark.parametrize("values", [pa.array([1]), [b"x"], pa.array([b"x", b"y"])])
def test_function_returning_wrong_type_is_rejected(values: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="header 'a'"):
        lha.edit(pa.array([kafka(("a", b"1"))]), "kafka", replace={"a": lambda _: values})


def test_array_has_one_value_per_message() -> None:
    rows = pa.array([kafka(("a", b"1")), kafka(), kafka(("b", b"2"))])
    values = pa.array(["x", None, "z"])
    assert lha.edit(rows, "kafka", set={"a": values}).to_pylist() == [
        kafka(("a", b"x")), kafka(("a", None)), kafka(("b", b"2"), ("a", b"z"))
    ]  # fmt: skip
    skipped = lha.edit(rows, "kafka", set={"a": values}, nulls="skip").to_pylist()
    assert skipped == [kafka(("a", b"x")), b"", kafka(("b", b"2"), ("a", b"z"))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "no edit was requested"),
        ({"drop": "ssn"}, "drop must be a list of keys"),
        ({"drop": ["a"], "replace": {"a": "hash"}}, "drop and replace both name 'a'"),
        ({"drop": ["a"], "rename": {"a": "b"}}, "drop and rename both name 'a'"),
        ({"set": {"a": "1"}, "rename": {"b": "a"}}, "rename makes headers 'a'"),
        ({"only": ["a"], "replace": {"b": "hash"}}, "only does not keep"),
        ({"replace": {"a": "hsh"}}, "did you mean 'hash'"),
        ({"replace": {"a": None}}, "lh.lit"),
        ({"set": {"a": 3}}, "header 'a': the value of a header must be"),
        ({"append": ["a"]}, "append takes pairs"),
        ({"set": {"a": lh.Int32(3)}}, "kafka has no values of type int32"),
        ({"drop": [3]}, "kafka has text keys"),
    ],
)
def test_invalid_edits_are_rejected(changes: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        lha.edit(pa.array([b""]), "kafka", **changes)


def test_value_not_carried_by_format_is_error_of_row() -> None:
    rows = pa.array([lh.encode({"a": lh.Int8(1)}, "iggy"), lh.encode({"b": lh.Int8(1)}, "iggy")])
    long = lambda values: pa.array([b"x" * 256] * len(values))  # noqa: E731
    with pytest.raises(lh.EncodeError, match="longer than 255") as caught:
        lha.edit(rows, "iggy", replace={"b": long})
    assert caught.value.row == 1
    result = lha.edit(rows, "iggy", replace={"b": long}, errors="column").to_pylist()
    assert result[0] == {"data": rows[0].as_py(), "error": None}
    assert result[1]["data"] is None
    assert result[1]["error"][0]["code"] == "too_long"


def test_headers_not_carried_by_old_magic_are_error_of_row() -> None:
    rows = pa.array([lh.encode(lh.Message(headers={}, value=b"v", magic=magic), "kip82-message") for magic in (2, 0)])
    with pytest.raises(lh.EncodeError, match="magic 0 has no headers") as caught:
        lha.edit(rows, "kip82-message", set={"a": "1"})
    assert caught.value.row == 1
    result = lha.edit(rows, "kip82-message", set={"a": "1"}, errors="column").to_pylist()
    assert result[0]["error"] is None
    assert (result[1]["data"], result[1]["error"][0]["code"]) == (None, "field_not_carried")


@pytest.mark.filterwarnings("ignore::letterhead.errors.UnseenHeaderWarning")
def test_invalid_message_raises_even_if_edit_does_not_touch_it() -> None:
    with pytest.raises(lh.DecodeError, match="row 1"):
        lha.edit(pa.array([b"", b"\x02"]), "kafka", drop=["a"])
    assert lha.edit(pa.array([b"", b"\x02"]), "kafka", drop=["a"], errors="null").to_pylist() == [b"", None]


@pytest.mark.parametrize("format", ["kafka", "iggy"])
def test_lists_of_headers_are_edited_like_messages(format: str) -> None:
    value: Any = lh.String("acme") if format == "iggy" else b"acme"
    messages = pa.array([lh.encode([("tenant", value), ("route", value)], format), lh.encode([], format)])
    lists = lha.decode(messages, format)
    edited = lha.edit(lists, format, replace={"tenant": "redact"}, append={"via": "etl"})
    assert edited.type == lists.type
    assert edited == lha.decode(lha.edit(messages, format, replace={"tenant": "redact"}, append={"via": "etl"}), format)
    assert lha.edit(pa.chunked_array([lists, lists]), format, drop=["route"]).num_chunks == 2


def test_errors_of_lists_of_headers_are_only_raised() -> None:
    with pytest.raises(ValueError, match="errors= is for messages in bytes"):
        lha.edit(lha.decode(pa.array([lh.encode([], "kafka")]), "kafka"), "kafka", drop=["a"], errors="null")


def test_iggy_auto_is_rejected_by_edit() -> None:
    with pytest.raises(ValueError, match="name iggy or iggy-2023"):
        lha.edit(pa.array([b""]), "iggy-auto", drop=["a"])


# --- masks with a key --------------------------------------------------------------------------------------------------

SECRET = b"a key of more than sixteen bytes"


def test_hmac_matches_everywhere() -> None:
    code = hmac.digest(SECRET, b"078-05-1120", "sha256").hex().encode()
    for key in (SECRET, SECRET.decode(), bytearray(SECRET)):
        assert edited(HEADERS, replace={"ssn": lh.hmac(key)})[0] == ("ssn", code)
    long_key = SECRET * 4
    assert (
        edited(HEADERS, replace={"ssn": lh.hmac(long_key)})[0][1]
        == hmac.digest(long_key, b"078-05-1120", "sha256").hex().encode()
    )
    typed = lha.edit(pa.array([lh.encode([("n", lh.Int32(7))], "iggy")]), "iggy", replace={"n": lh.hmac(SECRET)})
    assert lh.decode(typed[0].as_py(), "iggy")["n"] == lh.String(hmac.digest(SECRET, b"\0\0\0\7", "sha256").hex())
    message = lh.encode(lh.Message(value=b"v", headers={"ssn": lh.String("1")}), "kip82-message")
    masked = lha.edit(pa.array([message]), "kip82-message", replace={"ssn": lh.hmac(SECRET)})
    headers = lh.decode(masked[0].as_py(), "kip82-message").headers
    assert headers["ssn"] == lh.String(hmac.digest(SECRET, b"1", "sha256").hex())


def test_hmac_key_is_hidden() -> None:
    mask = lh.hmac(SECRET)
    edit = HeaderEdit.of(replace={"ssn": mask})
    shown = [repr(mask), str(mask), repr(edit), repr(Edit("kafka", edit)), f"{[mask]}"]
    assert all("hmac(...)" in text for text in shown)
    assert not any(secret in text for text in shown for secret in (SECRET.decode(), SECRET.hex(), "sixteen"))
    assert pickle.loads(pickle.dumps(mask)) == mask
    assert {mask, lh.hmac(SECRET)} == {mask}


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (b"short", ValueError, r"fewer than 16 bytes.*secrets\.token_bytes\(32\)"),
        ("", ValueError, "fewer than 16 bytes"),
        (3, TypeError, "must be str or bytes, not int"),
        (None, TypeError, "must be str or bytes, not NoneType"),
    ],
)
def test_guessable_hmac_key_is_rejected(key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lh.hmac(key)


def test_hmac_is_rejected_as_header_value() -> None:
    for changes in ({"set": {"a": lh.hmac(SECRET)}}, {"append": {"a": lh.hmac(SECRET)}}):
        with pytest.raises(TypeError, match="not Hmac"):
            lh.Headers().edit(**changes)


# --- what an edit does not find ----------------------------------------------------------------------------------------


def test_empty_changes_change_nothing() -> None:
    data = kafka(("a", b"1"))
    for changes in (
        {"drop": []},
        {"rename": {}},
        {"replace": {}},
        {"set": {}},
        {"append": []},
        {"drop": [], "append": {}},
    ):
        assert edited([("a", b"1")], **changes) == [("a", b"1")]
        assert lha.edit(pa.array([data]), "kafka", **changes).to_pylist() == [data]
    assert edited([("a", b"1")], only=[]) == []
    with pytest.raises(ValueError, match="no edit was requested"):
        lh.Headers().edit()
    with pytest.raises(ValueError, match="no edit was requested"):
        lha.edit(pa.array([data]), "kafka")


@pytest.mark.parametrize("changes", [{"replace": {"Tenant": "hash"}}, {"drop": ["Tenant"]}])
def test_masked_header_absent_from_all_messages_warns(changes: dict[str, Any]) -> None:
    messages = pa.array([kafka(("tenant", b"acme")), kafka()])
    sources = [
        messages,
        pa.chunked_array([messages, messages]),
        lha.decode(messages, "kafka"),
        pa.chunked_array([lha.decode(messages, "kafka")]),
    ]
    for source in sources:
        with pytest.warns(UnseenHeaderWarning, match=r"no message had a header 'Tenant'.*ignore_case=True"):
            lha.edit(source, "kafka", **changes)
    # Another library reads the stream; the warning comes at its end.
    for read in (pa.chunked_array, list):
        edited = lha.edit(polars.Series([kafka(("tenant", b"acme"))]), "kafka", **changes)
        with pytest.warns(UnseenHeaderWarning, match="no message had a header 'Tenant'"):
            read(edited)


@pytest.mark.parametrize("as_lists", [False, True])
def test_keeping_no_header_warns(as_lists: bool) -> None:
    messages = pa.array([kafka(("tenant", b"acme")), kafka()])
    column = lha.decode(messages, "kafka") if as_lists else messages
    with pytest.warns(UnseenHeaderWarning, match="only= names: none was kept"):
        lha.edit(column, only=["tenant,retry"])


@pytest.mark.filterwarnings("error")
def test_header_present_in_some_message_does_not_warn() -> None:
    some = pa.array([kafka(), None, kafka(("tenant", b"acme"))])
    for source in (some, pa.chunked_array([some[:2], some[2:]]), lha.decode(some, "kafka")):
        lha.edit(source, "kafka", replace={"tenant": "hash"})
        lha.edit(source, "kafka", drop=["tenant"])
    for threads in (1, 3):
        lha.edit(pa.chunked_array([some] * 50), "kafka", drop=["tenant"], threads=threads)
    lha.edit(some[:0], "kafka", drop=["tenant"])
    # These hide nothing.
    lha.edit(some, "kafka", only=["tenant"], rename={"tenant": "y"}, set={"z": b"1"})
    lha.edit(some[:1], "kafka", only=["z"], set={"z": b"1"})
    lh.Headers().edit(drop=["tenant"])


@pytest.mark.filterwarnings("error")
def test_keys_are_found_in_any_case_on_request() -> None:
    headers = [("SSN", b"1"), ("Ssn", b"2"), ("route", b"a"), ("É", b"3")]
    digests = [hashlib.sha256(value).hexdigest().encode() for value in (b"1", b"2")]
    expected = [("SSN", digests[0]), ("Ssn", digests[1]), ("route", b"a"), ("É", b"3")]
    assert edited(headers, replace={"sSn": "hash"}, ignore_case=True) == expected
    assert edited(headers, drop=["ssn", "ROUTE"], ignore_case=True) == [("É", b"3")]
    assert edited(headers, only=["Ssn"], ignore_case=True) == headers[:2]
    assert edited(headers, rename={"ssn": "id"}, ignore_case=True) == [("id", b"1"), ("id", b"2"), *headers[2:]]
    # Only the letters A to Z have a case.
    with pytest.warns(UnseenHeaderWarning, match="no message had a header 'é'"):
        assert edited(headers, drop=["é"], ignore_case=True) == headers
    assert edited(headers, append={"SSN": b"x"}, drop=["ssn"], ignore_case=True) == [*headers[2:], ("SSN", b"x")]
    lists = lha.decode(pa.array([kafka(*headers), None]), "kafka")
    assert [row and len(row) for row in lha.edit(lists, "kafka", drop=["ssn"], ignore_case=True).to_pylist()] == [
        2,
        None,
    ]
    typed = pa.array([lh.encode([("N", lh.Int32(1)), (lh.Int8(3), lh.Int8(3))], "iggy")])
    assert lh.decode(lha.edit(typed, "iggy", drop=["n"], ignore_case=True)[0].as_py(), "iggy").items() == [
        (lh.Int8(3), lh.Int8(3))
    ]
    numbers = pa.array([lh.encode([(3, b"x")], "kip82-int")])
    assert lh.decode(lha.edit(numbers, "kip82-int", drop=[3], ignore_case=True)[0].as_py(), "kip82-int").items() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"set": {"a": b"1"}}, "set= has exact keys"),
        ({"replace": {"a": "hash", "A": "redact"}}, "replace names 'a' and 'A'"),
        ({"rename": {"a": "x", "A": "y"}}, "rename names 'a' and 'A'"),
        ({"drop": ["a"], "replace": {"A": "hash"}}, "drop and replace both name 'a'"),
    ],
)
def test_contradictions_differing_in_case_are_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lh.Headers().edit(**changes, ignore_case=True)
    with pytest.raises(TypeError, match="ignore_case must be bool"):
        lh.Headers().edit(drop=["a"], ignore_case=1)  # type: ignore[arg-type]


# --- null lists, rows and order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["kafka", "iggy"])
def test_null_list_is_edited_like_empty_headers(format: str) -> None:
    value: Any = lh.String("x") if format == "iggy" else b"x"
    lists = lha.decode(pa.array([lh.encode([("a", value)], format), None, lh.encode([], format)]), format)
    added = lha.edit(lists, format, append={"b": value})
    assert [len(row) for row in added.to_pylist()] == [2, 1, 1]
    assert [len(row) for row in lha.edit(lists, format, set={"a": value}).to_pylist()] == [1, 1, 1]
    dropped = lha.edit(lists, format, drop=["a"])
    assert dropped.to_pylist() == [[], None, []]
    chunks = lha.edit(pa.chunked_array([lists, lists]), format, append={"b": value})
    assert chunks.to_pylist() == added.to_pylist() * 2
    messages = lha.edit(pa.array([None, b""]), "kafka", append={"b": b"x"})
    assert [message and lh.decode(message, "kafka").keys() for message in messages.to_pylist()] == [None, ["b"]]


def test_null_list_has_defaults_of_message_without_header() -> None:
    lists = pa.array([None, []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    columns = {"a": lh.field("string", default="d"), "b": "array<string>", "c": "int32"}
    row = {"a": "d", "b": [], "c": None}
    assert lha.select(lists, columns).to_pylist() == [row, row]
    assert lha.select(pa.array([None, b""]), columns).to_pylist() == [dict.fromkeys(row), row]
    required = {"a": lh.field("array<string>", required=True)}
    assert lha.select(lists, required, errors="null").to_pylist() == [{"a": None}] * 2


def test_edit_function_errors_name_row_of_stream() -> None:
    good, bad = kafka(("a", b"1")), b"\x0f"
    for changes in ({"replace": {"a": lambda values: values}}, {"drop": ["A"], "ignore_case": True}, {"drop": ["a"]}):
        with pytest.raises(lh.DecodeError) as caught:
            lha.edit(pa.chunked_array([[good, good], [good], [good, bad]]), "kafka", **changes)
        assert caught.value.row == 4


def test_new_headers_have_the_order_of_their_mappings() -> None:
    headers = [("c", b"0"), ("z", b"1")]
    changes: dict[str, Any] = {
        "only": ["z", "b", "a", "c"], "set": {"b": b"2", "c": b"3", "a": b"4"}, "append": {"y": b"5", "x": b"6"},
    }  # fmt: skip
    expected = [("c", b"3"), ("z", b"1"), ("b", b"2"), ("a", b"4"), ("y", b"5"), ("x", b"6")]
    assert edited(headers, **changes) == expected
    numbers = lha.edit(pa.array([b""]), "kip82-int", only=[3, 1, 2], set={2: b"b", 3: b"c", 1: b"a"})
    assert lh.decode(numbers[0].as_py(), "kip82-int").keys() == [2, 3, 1]


@pytest.mark.parametrize("format", ["kafka", "iggy", "kip82-int", "streams"])
def test_edits_of_many_keys_equal_edits_of_few(format: str) -> None:
    """More keys than are compared one by one."""
    value: Any = lh.String("v") if format == "iggy" else b"v"
    key: Any = int if format == "kip82-int" else "key-{}".format
    pairs = [(key(number % 60), value) for number in range(80)]
    changes: dict[str, Any] = {
        "drop": [key(number) for number in range(0, 60, 5)],
        "rename": {key(number): key(number + 1000) for number in range(1, 60, 5)},
        "replace": {key(number): "redact" for number in range(2, 60, 5)},
        "set": {key(number): value for number in range(3, 90, 5)},
    }
    data = lh.encode(lh.Message(headers=pairs, payload=b"") if format == "streams" else pairs, format)
    message = lh.decode(lha.edit(pa.array([data]), format, **changes)[0].as_py(), format)
    assert (message.headers if format == "streams" else message) == lh.Headers(pairs).edit(**changes)


def test_struct_is_rejected_as_message_column() -> None:
    structs = pa.StructArray.from_arrays([pa.array([kafka()]), pa.array([b"x"])], ["a", "b"])
    for changes in ({"drop": ["a"]}, {"replace": {"a": lambda values: values}}):
        with pytest.raises(
            TypeError, match=r"the column is struct<a: binary, b: binary>, and kafka is read from binary"
        ):
            lha.edit(structs, "kafka", **changes)


# --- the core and the reference implementation -------------------------------------------------------------------------


def new_values(format: str) -> st.SearchStrategy[tuple[str | None, bytes | None]]:
    traits = FORMATS[format].traits
    if not traits.types:
        return st.tuples(st.none(), st.none() | st.binary(min_size=1, max_size=70))
    return st.sampled_from([("int32", b"\0\0\0\5"), ("string", b"text"), ("binary", b"\xff")])


@pytest.mark.parametrize("column", [pa.binary(), pa.large_binary(), pa.binary_view()])
@pytest.mark.parametrize(
    "changes",
    [{"drop": ["x"]}, {"append": {"z": b"9"}, "drop": ["x"]}, {"set": {"x": b"8"}}, {"rename": {"x": "longer"}}],
    ids=lambda changes: " and ".join(changes),
)
def test_messages_between_changed_ones_stay_in_place(changes: Any, column: pa.DataType) -> None:
    draw = random.Random(1)
    rows = [
        [(key, b"v" * draw.randrange(1, 9)) for key in draw.choices("abcx", [5, 5, 5, at % 3], k=draw.randrange(5))]
        for at in range(2000)
    ]
    messages = lha.edit(pa.array([kafka(*row) for row in rows], column), "kafka", **changes).to_pylist()
    for row, message in zip(rows, messages, strict=True):
        assert lh.decode(message, "kafka") == lh.Headers(row).edit(**changes)


@st.composite
def edits(draw: st.DrawFn, format: str, keys: list[Any]) -> editing.PlainEdit:
    """Draw an edit without contradictions; most keys are those of the messages."""
    form = FORMATS[format].traits.keys
    other = st.sampled_from([3, 1, 2, 7] if form == "int" else ["other", "b", "a", "k" * 40])
    some_key = (st.sampled_from(keys) | other) if keys else other
    free = draw(st.lists(some_key, unique=True, max_size=8))
    values = new_values(format)
    drop, rename, set = (
        free[:1],
        [(key, draw(some_key)) for key in free[1:2]],
        [(key, draw(values)) for key in free[4:]],
    )
    rename = [(old, new) for old, new in rename if new not in [key for key, _ in set]]
    masks = st.sampled_from(["hash", "redact", "last4"])
    replace = [(key, draw(values | masks)) for key in free[2:4]]
    append = draw(st.lists(st.tuples(some_key, values), max_size=2))
    if draw(st.booleans()):
        only = draw(st.permutations(free[1:]))
        return editing.PlainEdit(only, [], rename, replace, set, append)
    return editing.PlainEdit(None, drop, rename, replace, set, append)


def public(change: editing.PlainEdit) -> dict[str, Any]:
    """Return the parameters of an edit as users pass them."""

    def key(plain: Any) -> Any:
        return value_from_message(*plain) if isinstance(plain, tuple) else plain

    def value(plain: Any) -> Any:
        if not isinstance(plain, tuple):
            return plain
        type, bits = plain
        return lh.lit(bits if type is None or bits is None else value_from_message(type, bits))

    return {
        "only": None if change.only is None else [key(name) for name in change.only],
        "drop": [key(name) for name in change.drop],
        "rename": {key(old): key(new) for old, new in change.rename},
        **{
            name: [(key(header), value(new)) for header, new in getattr(change, name)]
            for name in ("replace", "set", "append")
        },
    }


@pytest.mark.filterwarnings("ignore::letterhead.errors.UnseenHeaderWarning")
@pytest.mark.parametrize("format", WRITTEN)
@few
@given(st.data(), strategies.layouts(), st.integers(1, 3))
def test_core_and_reference_agree(format: str, data: st.DataObject, layout: tuple[int, int | None], times: int) -> None:
    rows = data.draw(st.lists(st.none() | strategies.valid_bytes(format), max_size=6)) * (
        times * 20 if times > 2 else 1
    )
    keys = [key for row in rows if row is not None for key, *_ in headers_of(row, format)]
    change = data.draw(edits(format, keys))
    arguments = public(change)
    arguments["replace"], arguments["set"] = dict(arguments["replace"]), dict(arguments["set"])
    assume(change.only is not None or any(change[1:]))
    column = strategies.lay(pa.array(rows, pa.binary()), layout)
    core = outcome(lambda: lha.edit(column, format, **arguments).to_pylist())
    reference = outcome(lambda: [row if row is None else editing.edit(row, format, change) for row in rows])
    if isinstance(reference, list):
        assert core == reference
    else:
        assert not isinstance(core, list)


def headers_of(row: bytes, format: str) -> list[Any]:
    decoded = ops.decode(row, format)
    return (decoded["headers"] if isinstance(decoded, dict) else decoded) or []


@pytest.mark.parametrize(("format", "limited"), [("iggy-2023", "values"), ("iggy", "headers")])
def test_edit_has_limit_of_writer(format: str, limited: str) -> None:
    """Iggy limits the bytes of all headers; its format of 2023 limits those of the values alone."""

    def written(count: int) -> bytes:
        headers = [(f"key {number:018}", b"x" * 90) for number in range(count)]
        return lh.encode(headers, format, types="binary") or b""

    most = 99_900 // (90 if limited == "values" else len(written(2)) - len(written(1)))
    message = pa.array([written(most)])
    [shorter] = lha.edit(message, format, drop=["key 000000000000000000"]).to_pylist()
    assert lh.decode(shorter, format) == lh.decode(message[0].as_py(), format)[1:]
    with pytest.raises(lh.HeaderError, match=f"the {limited} take [0-9]+ bytes, more than 100000"):
        lha.edit(message, format, append=[("last", b"y" * 255)])
