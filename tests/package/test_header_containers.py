"""All header containers have the same reading protocol."""

from __future__ import annotations

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
