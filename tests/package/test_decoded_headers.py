"""Headers that were decoded stay in their bytes; nobody can tell but by the time it takes."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import _native
from tests.helpers.strategies import few
from tests.reference import ops

GIVEN = [("route", b"a"), ("tenant", None), ("route", b""), ("ключ", b"\xff"), ("", b"x"), ("k" * 70, b"v" * 200)]

keys = st.sampled_from(["a", "b", "ключ", ""]) | st.text(st.characters(codec="utf-8"), max_size=40)
pairs_of_text = st.lists(st.tuples(keys, st.none() | st.binary(max_size=80)), max_size=20)


def decoded(pairs: Any = GIVEN, format: str = "kafka") -> lh.Headers:
    data = lh.encode(pairs, format)
    assert data is not None
    read = lh.decode(data, format)
    assert type(read) is lh.Headers
    return read


def is_packed(headers: lh.Headers) -> bool:
    return type(headers._items) is _native.Packed


def test_lookups_by_key_leave_headers_unparsed() -> None:
    headers = decoded()
    assert (headers["route"], headers.get("route"), headers.get("tenant", b"none")) == (b"", b"", None)
    assert (headers.get("other"), headers.get("other", 5)) == (None, 5)
    assert headers.get_all("route") == [b"a", b""]
    assert headers.get_all("other") == []
    assert "ключ" in headers
    assert "other" not in headers
    assert len(headers) == 6
    assert headers.keys() == ["route", "tenant", "route", "ключ", "", "k" * 70]
    assert headers.items() == GIVEN
    assert {type(pair) for pair in headers.items()} == {tuple}
    assert is_packed(headers)


def test_first_access_parses_headers_for_good() -> None:
    headers = decoded()
    assert headers[0] == ("route", b"a")
    assert not is_packed(headers)
    assert headers[0] is headers[0] is next(iter(headers))
    assert all(type(header) is lh.Header for header in headers)


@pytest.mark.parametrize("key", ["other", "\ud800", "ro"])
def test_missing_key_is_named(key: str) -> None:
    with pytest.raises(KeyError) as raised:
        decoded()[key]
    assert raised.value.args == (key,)
    assert (decoded().get(key, b"d"), decoded().get_all(key), key in decoded()) == (b"d", [], False)


def test_typed_keys_are_looked_up_equally() -> None:
    class Text(str):
        pass

    assert decoded()[Text("route")] == b""
    assert Text("route") in decoded()
    assert ("route", b"a") in decoded()
    assert 5 not in decoded()
    with pytest.raises(TypeError, match="the key of a header must be str"):
        decoded().get(5.0)  # type: ignore[arg-type]
    numbers = decoded([(7, b"a"), (7, b"b")], "kip82-int")
    assert (numbers.get(7), numbers.get_all(7), "7" in numbers) == (b"b", [b"a", b"b"], False)
    typed = decoded([("n", lh.Int32(3)), (lh.Int8(1), lh.String("x")), (b"\xff", lh.Bool(True))], "iggy")
    assert (typed["n"], typed[lh.Int8(1)], typed[b"\xff"]) == (lh.Int32(3), lh.String("x"), lh.Bool(True))


@few
@given(pairs_of_text)
def test_decoded_headers_equal_eager_ones(pairs: list[tuple[str, bytes | None]]) -> None:
    data, eager = lh.encode(pairs, "kafka"), lh.Headers(pairs)
    assert data is not None

    def fresh() -> Any:
        return lh.decode(data, "kafka")

    assert fresh() == eager
    assert repr(fresh()) == repr(eager)
    assert pickle.loads(pickle.dumps(fresh())) == copy.copy(fresh()) == copy.deepcopy(fresh()) == eager
    assert list(fresh()) == list(eager)
    assert fresh().items() == eager.items() == pairs
    assert (fresh().keys(), fresh().unique(), fresh().frozen()) == (eager.keys(), eager.unique(), eager.frozen())
    assert hash(fresh().frozen()) == hash(eager.frozen())
    assert (len(fresh()), dict(fresh()), fresh()[1:]) == (len(eager), dict(eager), eager[1:])
    for key in ["a", "b", "missing", *eager.keys()]:
        assert (fresh().get(key, 0), fresh().get_all(key), key in fresh()) == (
            eager.get(key, 0),
            eager.get_all(key),
            key in eager,
        )
    assert [(key, None, value) for key, value in fresh()] == [tuple(row) for row in ops.decode(data, "kafka")]


def test_decoded_headers_mutate_like_eager_ones() -> None:
    headers, eager = decoded(), lh.Headers(GIVEN)
    other = lh.Headers(headers)
    for container in (headers, eager):
        seen = iter(container)
        assert container.add("last", b"z") is container
        assert len(list(seen)) == 7
        assert container.remove("route") == 2
    assert headers == eager
    assert (headers["last"], "route" in headers) == (b"z", False)
    assert other == lh.Headers(GIVEN)


def test_concurrent_changes_lose_no_header() -> None:
    for _ in range(50):
        headers, ready = decoded(), threading.Barrier(4)

        def change(number: int, headers: lh.Headers = headers, ready: threading.Barrier = ready) -> None:
            ready.wait()
            headers.add(f"thread-{number}", b"")

        threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(headers.keys()[-4:]) == [f"thread-{number}" for number in range(4)]


def test_invalid_arguments_are_rejected_at_once() -> None:
    with pytest.raises(lh.DecodeError) as raised:
        lh.decode(b"\x04\x02a\x02b\x02\xff\x00", "kafka")
    assert str(raised.value) == "kafka: the key is not UTF-8 (header 1, byte 6)"


def test_later_changes_to_input_bytes_have_no_effect() -> None:
    data = bytearray(lh.encode(GIVEN, "kafka") or b"")
    headers = lh.decode(data, "kafka")
    data[:] = bytes(len(data))
    assert headers == lh.Headers(GIVEN)


def same_objects(pairs: list[tuple[str, bytes | None]], read: Callable[[lh.Headers], object]) -> int:
    """Decode messages of one header each until what is kept is kept; count what two more readings share."""
    messages = [lh.encode([pair], "kafka") for pair in pairs]
    for message in messages * 2:
        read(lh.decode(message or b"", "kafka"))
    first, again = ([read(lh.decode(message or b"", "kafka")) for message in messages] for _ in range(2))
    assert first == again
    return sum(before is after for before, after in zip(first, again, strict=True))


def test_cached_keys_and_headers_are_bounded() -> None:
    def key(headers: lh.Headers) -> object:
        return headers.items()[0][0]

    def header(headers: lh.Headers) -> object:
        return headers[0]

    many = range(2000)
    assert same_objects([(f"key-{number}", b"") for number in many], key) <= 512
    assert same_objects([("key", b"value-%d" % number) for number in many], header) <= 512
    assert same_objects([("tenant", b"acme")], key) == same_objects([("tenant", b"acme")], header) == 1
    assert same_objects([("k" * 65, b"")], key) == same_objects([("k", b"v" * 64)], header) == 0


def test_headers_differing_in_one_part_are_not_equal() -> None:
    pairs = [("a", b"b"), ("ab", b""), ("", b"ab"), ("a", None), ("a", b""), ("ab", None), ("", None), ("", b"")]
    for _ in range(4):
        for pair in pairs:
            assert list(decoded([pair])) == [pair]
            assert decoded([pair]).items() == [pair]
    values = [lh.Int8(1), lh.UInt8(1), lh.Bool(True), lh.Binary(b"\x01"), lh.String("\x01"), lh.Int16(1), lh.Int16(256)]
    for format in ("iggy", "kip82-typed") * 4:
        for value in values:
            if format == "iggy" or type(value) in (lh.Int16, lh.Bool):
                assert decoded([("k", value)], format)[0] == ("k", value)


def test_threads_decoding_together_get_own_values() -> None:
    def read(number: int, wrong: list[object]) -> None:
        pairs = [("tenant", b"%d" % number), ("route", b"a"), ("id", None), (f"key-{number}", b"x")]
        for _ in range(300):
            if list(decoded(pairs)) != pairs:
                wrong.append(number)

    wrong: list[object] = []
    threads = [threading.Thread(target=read, args=(number, wrong)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_every_thread_caches_its_own_headers() -> None:
    def of_a_thread() -> list[lh.Header]:
        result: list[lh.Header] = []
        thread = threading.Thread(target=lambda: result.extend(decoded([("tenant", b"acme")])[0] for _ in range(4)))
        thread.start()
        thread.join()
        return result

    first, second = of_a_thread(), of_a_thread()
    assert first[-1] is first[-2]
    assert first[-1] is not second[-1]
    assert first == second
