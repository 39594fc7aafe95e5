"""Values of headers with their schema, which ``JsonConverter`` of connect-json 4.3.1 wrote as ``converter.type=header``."""

from __future__ import annotations

import math
from typing import Any

import pytest

import letterhead as lh

WRITTEN = [
    ("bool", '{"schema":{"type":"boolean","optional":false},"payload":true}', True),
    ("int8", '{"schema":{"type":"int8","optional":false},"payload":-1}', -1),
    ("int16", '{"schema":{"type":"int16","optional":false},"payload":7}', 7),
    ("int32", '{"schema":{"type":"int32","optional":false},"payload":42}', 42),
    ("int32", '{"schema":{"type":"int32","optional":true},"payload":null}', None),
    (
        "int32",
        '{"schema":{"type":"int32","optional":false,"name":"x","version":1,"doc":"d","default":3},"payload":4}',
        4,
    ),
    ("int64", '{"schema":{"type":"int64","optional":false},"payload":9223372036854775807}', 2**63 - 1),
    ("float32", '{"schema":{"type":"float","optional":false},"payload":1.5}', 1.5),
    ("float64", '{"schema":{"type":"double","optional":false},"payload":1.0E300}', 1e300),
    ("float64", '{"schema":{"type":"double","optional":false},"payload":"NaN"}', math.nan),
    ("float64", '{"schema":{"type":"double","optional":false},"payload":"-Infinity"}', -math.inf),
    ("string", '{"schema":{"type":"string","optional":false},"payload":"a\\"é\\n"}', 'a"é\n'),
    ("string", '{"schema":{"type":"string","optional":false},"payload":""}', ""),
    ("binary", '{"schema":{"type":"bytes","optional":false},"payload":"QcM="}', b"A\xc3"),
    ("binary", '{"schema":{"type":"bytes","optional":false},"payload":""}', b""),
    (
        "binary",
        '{"schema":{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        '"parameters":{"scale":"2"}},"payload":"+x4="}',
        b"\xfb\x1e",
    ),
    (
        "timestamp_ms",
        '{"schema":{"type":"int64","optional":false,"name":"org.apache.kafka.connect.data.Timestamp","version":1},'
        '"payload":1700000000123}',
        1700000000123,
    ),
    ("int64", '{"schema":null,"payload":5}', 5),
    ("string", '{"schema":null,"payload":"t"}', "t"),
    ("float64", '{"schema":null,"payload":2.5}', 2.5),
    ("bool", '{"schema":null,"payload":true}', True),
]
"""Type of a column, header that Connect wrote, and value."""


def select(type: str, text: str) -> Any:
    return lh.select(lh.encode([("x", text.encode())], "kafka"), {"x": type})["x"]


@pytest.mark.parametrize(("type", "text", "expected"), WRITTEN)
def test_value_matches_connect_output(type: str, text: str, expected: object) -> None:
    value = select(f"{type}:connect", text)
    assert value == expected or (value != value and expected != expected)


def test_value_is_read_as_a_wider_type() -> None:
    assert select("int64:connect", '{"payload":7,"schema":{"type":"int8"}}') == 7
    assert select("float64:connect", '{"payload":7,"schema":{"type":"int8"}}') == 7.0
    assert select("int8:connect", '{"payload":7,"schema":{"type":"int64"}}') == 7
    assert select("binary:connect", '{"payload":"QcM=","schema":{"type":"string"}}') == b"QcM="
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    assert select("uuid:connect", f'{{"payload":"{uuid}","schema":{{"type":"string"}}}}') == uuid


def test_alternatives_read_a_header_with_its_schema_or_without() -> None:
    types = "int32:connect | int32:text"
    assert [select(types, text) for text in ('{"schema":{"type":"int32"},"payload":1}', "2")] == [1, 2]


@pytest.mark.parametrize(
    ("type", "text", "code"),
    [
        ("int32", '{"schema":{"type":"int32"},"payload":"42"}', "bad_text"),
        ("int32", '{"schema":{"type":"int32"},"payload":1.5}', "bad_text"),
        ("int8", '{"schema":{"type":"int8"},"payload":300}', "out_of_range"),
        ("int8", '{"schema":{"type":"int32"},"payload":300}', "out_of_range"),
        ("float32", '{"schema":{"type":"int32"},"payload":16777217}', "out_of_range"),
        ("float64", '{"schema":{"type":"double"},"payload":"1.5"}', "bad_text"),
        ("string", '{"schema":{"type":"string"},"payload":5}', "bad_text"),
        ("string", '{"schema":{"type":"int32"},"payload":5}', "wrong_type"),
        ("int32", '{"schema":{"type":"string"},"payload":"5"}', "wrong_type"),
        ("binary", '{"schema":{"type":"bytes"},"payload":[65]}', "bad_text"),
        ("string", '{"schema":{"type":"array","items":{"type":"int32"}},"payload":[1]}', "wrong_type"),
        ("string", '{"schema":null,"payload":{}}', "wrong_type"),
        ("int32", '{"schema":{"type":"int32"},"payload":1,"x":1}', "bad_text"),
        ("int32", '{"payload":1}', "bad_text"),
        ("int32", "5", "bad_text"),
        ("string", "", "bad_text"),
    ],
)
def test_malformed_text_for_schema_raises(type: str, text: str, code: str) -> None:
    with pytest.raises(lh.DecodeError) as raised:
        select(f"{type}:connect", text)
    assert raised.value.code == code
