"""Values and headers for tests: of each type the ones at its edges, the nearly right ones, and any bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from letterhead.types import SELECT_TYPES
from letterhead.values import VALUE_TYPES
from tests.helpers.strategies import form_values
from tests.helpers.type_suffixes import orders_of
from tests.reference.types import CHARSET_TYPES, is_text

TYPES = [
    *SELECT_TYPES, *CHARSET_TYPES,
    *(f"{name}:{order}" for name in SELECT_TYPES for order in orders_of(name) if order != "be"),
]  # fmt: skip
"""Every type in every spelling; ``:be`` is the same as none, which the Python tests hold."""

WIDTHS = {
    "bool": 1, "char": 2, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "int128": 16, "uint8": 1, "uint16": 2,
    "uint32": 4, "uint64": 8, "uint128": 16, "float32": 4, "float64": 8, "uuid": 16, "timestamp_ms": 8,
}  # fmt: skip

_NOT_UTF8 = [
    b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc3",
    b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"a\xe2\x82", b"\xfe\xff",
]  # fmt: skip

_UTF8 = [
    "", "a", "\0", "\x7f", "\x80", "é", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufeff", "\ufffd", "\ufffe", "\uffff",
    "\U00010000", "\U0010ffff", "📦", "e\u0301", "a\n", "ab",
]  # fmt: skip

_LIMITS = [sign * 10**38 + step for sign in (-1, 1) for step in (-1, 0, 1)] + [
    sign * 2**bits + step
    for bits in (7, 8, 15, 16, 31, 32, 63, 64, 127, 128)
    for sign in (-1, 1)
    for step in (-1, 0, 1)
]

_MILLIS = [sign * (2**63 // 1000) + step for sign in (-1, 1) for step in (-1, 0, 1)]

_INTEGERS = [0, 1, -1, 9, 10, -10, 255, 65535, *_LIMITS, *_MILLIS]

_INTEGER_TEXTS = [
    *(str(number) for number in _INTEGERS), "-0", "00", "-007", "0" * 60 + "5", "-" + "0" * 60 + "5", "9" * 60,
    "", "-", "+1", "1.0", " 1", "1 ", "1\n", "\n1", "1_0", "0x1", "1e3", "--1", "\u0661", "1\0",
]  # fmt: skip

_FLOAT_TEXTS = [
    "0", "-0", "+0", "0.0", "1", "1.", ".5", "-.5", "+2.5E-3", "1e5", "1E+5", "1e400", "-1e400", "1e-400", "1e39", "NaN",
    "Infinity", "-Infinity", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1.7976931348623157e308",
    "1.7976931348623159e308", "3.4028235677973366e38", "3.4028235677973362e38", "1.1754942e-38", "7e-46", "7.1e-46",
    "1.00000017881393432617187499", "1.00000017881393421514957253748434595763683319091796875", "9007199254740993",
    "0." + "0" * 300 + "1", "1" + "0" * 50, "123456789012345678901234567890.5", "1e99999999999", "1e-99999999999",
    "", ".", "e5", "1e", "1e+", "inf", "nan", "+Infinity", "+NaN", "-NaN", "1f", "1d", "0x1p3", "1 ", " 1", "1\n", "1,0", "-",
]  # fmt: skip

_UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"

_OTHER_TEXTS = [
    "true", "false", "True", "TRUE", "False", "FALSE", "tRUE", "true ", "true\n", "1", "", _UUID, _UUID.upper(), _UUID + "\n", _UUID[:-1],
    _UUID.replace("-", ""), _UUID[:-1] + "g", "{" + _UUID + "}", _UUID[:8] + _UUID[9:13] + "-" + _UUID[13:],
]  # fmt: skip

_LARGEST = 1.7976931348623157e308

_FLOATS = [0.0, -0.0, 1.0, -1.5, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, _LARGEST,
           float("inf"), float("-inf"), float("nan"), 0.1, 3.4028234663852886e38, 1e-45]  # fmt: skip


def values(type: str) -> st.SearchStrategy[bytes | None]:
    """Draw values for a type: mostly of its width or spelling, often at an edge."""
    name, _, order = type.partition(":")
    if is_text(type):
        return _with_nulls(
            form_values, form_values, st.sampled_from(_INTEGER_TEXTS).map(str.encode), st.sampled_from(_NOT_UTF8)
        )
    if order == "text":
        texts = _FLOAT_TEXTS if "float" in name else _INTEGER_TEXTS if "int" in name or "time" in name else _OTHER_TEXTS
        spelled = [st.sampled_from(texts).map(str.encode), st.sampled_from(_UTF8).map(str.encode)]
        if "float" in name:
            spelled += [
                st.floats().map(repr).map(str.encode),
                st.from_regex(rb"\A[+-]?[0-9]{1,25}(\.[0-9]{0,25})?e-?[0-9]{1,3}\Z"),
            ]
        elif texts is _INTEGER_TEXTS:
            spelled.append(st.integers(-(2**130), 2**130).map(str).map(str.encode))
        elif name == "uuid":
            spelled.append(st.uuids().map(str).map(str.encode))
        return _with_nulls(*spelled, st.sampled_from(_NOT_UTF8))
    if type in CHARSET_TYPES:
        units = st.lists(
            st.sampled_from([0x41, 0, 0xE9, 0xD7FF, 0xD83D, 0xDCE6, 0xDFFF, 0xE000, 0xFEFF, 0xFFFE, 0xFFFF])
        )
        order = "little" if type.endswith("le") else "big"
        utf16 = units.map(lambda units: b"".join(unit.to_bytes(2, order) for unit in units))
        texts = st.sampled_from(_UTF8).map(lambda text: text.encode("utf-16-le" if order == "little" else "utf-16-be"))
        return _with_nulls(utf16, texts, st.binary(max_size=6))
    if name in ("string", "binary"):
        return _with_nulls(st.sampled_from(_UTF8).map(str.encode), st.sampled_from(_NOT_UTF8), st.binary(max_size=6))
    width = WIDTHS[name]
    edges = [(number % (1 << 8 * width)).to_bytes(width, "big") for number in _INTEGERS]
    if "float" in name:
        edges += [
            struct.pack(">d" if width == 8 else ">f", number) for number in _FLOATS if width == 8 or number != _LARGEST
        ]
    if name == "char":
        edges += [
            unit.to_bytes(2, "big") for unit in (0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFEFF, 0xFFFE, 0x7FF)
        ]
    if order == "le":
        edges = [edge[::-1] for edge in edges]
    exact = st.binary(min_size=width, max_size=width)
    return _with_nulls(st.sampled_from(edges), exact, exact, st.binary(max_size=width + 1))


def _with_nulls(*strategies: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes | None]:
    return st.one_of(*strategies, *strategies, st.none())


KEYS: dict[str, list[dict[str, object]]] = {
    "kafka": [{"key": "k"}, {"key": "κ"}],
    "kip82-typed": [{"key": "k"}, {"key": "k"}, {"key": "κ"}, {"key": None}],
    "kip82-int": [{"key": 7}, {"key": 7}, {"key": -7}, {"key": None}],
    "iggy": [
        {"key_type": type, "key": key}
        for type, key in [
            ("string", b"k"), ("string", b"k"), ("int8", b"k"), ("int8", b"k"), ("binary", b"k"), ("string", b"\xff"),
            ("type-200", b"k"), ("k", b"k"), (None, b"k"), ("string", None),
        ]
    ],
}  # fmt: skip
"""Keys of the formats, as they stand in a list: the first is asked for, the last ones are none."""

_UNKNOWN = ["", "foo", "Int8", "type-15", "type-016", "type-256", "type-16\n", "type--1", "uuid"]

_TYPES = [*VALUE_TYPES, "type-16", "type-99", "type-100", "type-199", "type-200", "type-249", "type-255"]


def typed_headers(format: str, type: str, broken: bool = True) -> st.SearchStrategy[list[dict[str, object]] | None]:
    """Draw the headers of a message of a format, or null: mostly of the type that the type needs."""
    name = type.partition(":")[0]
    needed = {"uuid": "binary", "timestamp_ms": "int64"}.get(name, name)
    few = [entry for entry in KEYS[format] if broken or None not in entry.values()]
    types = [st.just(needed), st.just(needed), st.none(), st.sampled_from(_TYPES)]
    if broken:
        types.append(st.sampled_from(_UNKNOWN))
    header = st.tuples(
        st.sampled_from(few),
        st.fixed_dictionaries({"type": st.one_of(types)} if format in ("kip82-typed", "iggy") else {}),
        # Bits of a value with a type lie in one order.
        st.fixed_dictionaries({"value": values(type) | values(name)}),
    ).map(lambda parts: {**parts[0], **parts[1], **parts[2]})
    return st.one_of(st.none(), st.lists(header, max_size=4), st.lists(header, min_size=1, max_size=2))


def headers(type: str, keys: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, object]] | None]:
    """Draw the headers of a message, or null."""
    header = st.fixed_dictionaries({"key": st.sampled_from(keys), "value": values(type)})
    return st.one_of(st.none(), st.lists(header, max_size=4), st.lists(header, min_size=1, max_size=2))


EXAMPLES = max(1, settings.default.max_examples // 100)
"""Frames that Hypothesis makes for a test. One is a job, of about 50 rows and several types: it counts as 100."""


def many_rows(test: Callable[..., None]) -> Callable[..., None]:
    """Set up a test whose example is a frame: it costs a job, so a failure is shown as it was found."""
    return settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )(test)
