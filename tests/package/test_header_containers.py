"""All header containers have the same reading protocol."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest

import letterhead as lh
from letterhead.iggy import HeaderKey, HeaderMap, HeaderValue
from letterhead.kip82 import Headers, IntHeaders

# A container, its pairs in order (the last key occurs twice where the container keeps repeats), and a key it lacks.
REPEATED = [("tenant", b"acme"), ("route", b"a"), ("route", b"b")]
CONTAINERS: dict[str, tuple[Callable[[Any], Any], list[tuple[Any, Any]], Any]] = {
    "lh.Headers": (lh.Headers, REPEATED, "absent"),
    "lh.Headers, decoded": (lambda pairs: lh.decode(lh.encode(pairs, "kafka"), "kafka"), REPEATED, "absent"),
    "kip82.Headers": (Headers, REPEATED, "absent"),
    "kip82.IntHeaders": (IntHeaders, [(1, b"acme"), (7, b"a"), (7, None)], 8),
    "iggy.HeaderMap": (
        HeaderMap,
        [(HeaderKey("tenant"), HeaderValue.from_str("acme")), (HeaderKey.from_int8(1), HeaderValue.from_bool(True))],
        "absent",
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_all_containers_share_one_reading_protocol(container: str) -> None:
    make, pairs, absent = CONTAINERS[container]
    headers = make(pairs)
    assert [(header.key, header.value) for header in headers] == pairs
    assert len(headers) == len(pairs)
    assert headers.items() == pairs
    assert headers.values() == [value for _, value in pairs]
    assert list(headers.keys()) == (list(dict(pairs)) if container == "iggy.HeaderMap" else [key for key, _ in pairs])
    for key, last in dict(pairs).items():
        assert key in headers
        assert headers[key] == headers.get(key) == headers.get(key, 0) == last
        assert headers.get_all(key) == [value for name, value in pairs if name == key]
    assert absent not in headers
    assert (headers.get(absent), headers.get(absent, 0), headers.get_all(absent)) == (None, 0, [])
    with pytest.raises(KeyError):
        headers[absent]
    assert headers == make(pairs)
    assert headers != make(pairs[:1])
    assert dict(headers) == dict(pairs)


def test_long_header_lists_behave_like_short_ones() -> None:
    """Lists of more headers than are compared one by one have an index, and forget removed headers when they are read."""
    chance = random.Random(9)
    for count in (0, 31, 32, 33, 70) * 12:
        expected = [(f"k{chance.randrange(30)}", str(number).encode()) for number in range(count)]
        headers = lh.Headers(expected)
        if chance.random() < 0.5:
            headers = lh.decode(lh.encode(expected, "kafka") or b"", "kafka")
        for _ in range(30):
            key = f"k{chance.randrange(32)}"
            values = [value for name, value in expected if name == key]
            match chance.choice(
                ["get", "all", "in", "remove", "remove", "remove", "add", "len", "iter", "last", "equal"]
            ):
                case "get":
                    assert headers.get(key, b"none") == (values[-1] if values else b"none")
                case "all":
                    assert headers.get_all(key) == values
                case "in":
                    assert (key in headers) == bool(values)
                case "remove":
                    assert headers.remove(key) == len(values)
                    expected = [pair for pair in expected if pair[0] != key]
                case "add":
                    headers.add(key, b"new")
                    expected.append((key, b"new"))
                case "len":
                    assert len(headers) == len(expected)
                case "iter":
                    assert [tuple(header) for header in headers] == expected
                case "last" if expected:
                    assert tuple(headers[len(expected) - 1]) == expected[-1]
                case "equal":
                    assert headers == lh.Headers(expected)
        assert headers.items() == expected
        assert pickle.loads(pickle.dumps(headers)) == headers
