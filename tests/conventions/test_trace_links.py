"""Span links of messages: compared with OpenTelemetry's propagators, with W3C's own cases, and one message with a column."""

from __future__ import annotations

import doctest
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import letterhead as lh
from letterhead import arrow as lha
from letterhead.conventions import columns, trace_link, trace_links

TRACE, SPAN = "12345678901234567890123456789012", "1234567890123456"
PARENT = f"00-{TRACE}-{SPAN}-01"


def link_of(headers: list[tuple[str, Any]], **options: Any) -> Any:
    """Return the link of a message, which must be the same by itself, in bytes and in lists of a column."""
    link = trace_link(headers, **options)
    column = pa.array([None, lh.encode(headers, "kafka")], pa.binary())
    links = lha.trace_links(column, **options)
    assert links.equals(lha.trace_links(lha.decode(column, "kafka"), **options))
    none, row = links.to_pylist()
    assert none is None
    if row is not None:
        row["attributes"] = {attribute["key"]: attribute["value"] for attribute in row["attributes"]}
    assert row == (None if link is None else link._asdict())
    return link


def state_of(*values: Any) -> str | None:
    link = link_of([("traceparent", PARENT), *(("tracestate", value) for value in values)])
    assert link.trace_id == TRACE
    return link.trace_state


def baggage_of(*values: Any) -> dict[str, str]:
    return link_of([("traceparent", PARENT), *(("baggage", value) for value in values)]).attributes


def test_examples_run() -> None:
    for module in (columns, trace_links):
        result = doctest.testmod(module)
        assert (result.failed, result.attempted > 0) == (0, True)


def test_link_matches_opentelemetry_extraction() -> None:
    state = trace.TraceState([("congo", "t61rcWkgMzE"), ("rojo", "00f067aa0ba902b7")])
    context = trace.SpanContext(int(TRACE, 16), int(SPAN, 16), False, trace.TraceFlags(3), state)
    current = trace.set_span_in_context(trace.NonRecordingSpan(context))
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, current)
    W3CBaggagePropagator().inject(carrier, baggage.set_baggage("user", "Amélie=1;2,3", current))
    link = link_of(list(carrier.items()))
    assert (int(link.trace_id, 16), int(link.span_id, 16)) == (context.trace_id, context.span_id)
    assert (link.trace_flags, link.trace_state) == (context.trace_flags, state.to_header())
    assert link.attributes == {"user": "Amélie=1;2,3"}


@pytest.mark.parametrize(
    "text",
    [
        "", "garbage", f"00-{TRACE}-{SPAN}-01-what-the-future-will-be-like", f"00-{TRACE}-{SPAN}-01.x",
        f"cc-{TRACE}-{SPAN}-01.x", f"ff-{TRACE}-{SPAN}-01", f".0-{TRACE}-{SPAN}-01", f"0-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01", f"00-.{TRACE[1:]}-{SPAN}-01", f"00-{TRACE}0-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN[1:]}-01", f"00-{TRACE}-{SPAN}-0", f"00-{TRACE}-{SPAN}-001", f"00-{TRACE[:-1]}A-{SPAN}-01", None,
        b"\xff" + PARENT.encode(),
    ],
)  # fmt: skip
def test_invalid_traceparent_yields_no_link(text: Any) -> None:
    # What follows is not parsed, as W3C requires.
    assert link_of([("traceparent", text), ("tracestate", "a=1"), ("baggage", "a=1")]) is None


def test_message_without_traceparent_yields_no_link() -> None:
    assert link_of([]) is None
    assert link_of([("TraceParent", PARENT), ("tracestate", "a=1")]) is None


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (f" \t{PARENT}\t ", 1), (f"00-{TRACE}-{SPAN}-fe", 2), (f"00-{TRACE}-{SPAN}-ff", 3), (f"cc-{TRACE}-{SPAN}-ff", 1),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like", 1), (f"01-{TRACE}-{SPAN}-02-", 0),
    ],
)  # fmt: skip
def test_future_versions_are_read_and_unknown_flags_cleared(text: str, flags: int) -> None:
    assert link_of([("traceparent", text)]) == (TRACE, SPAN, flags, None, {})


def test_last_traceparent_wins() -> None:
    old = f"00-{TRACE[::-1]}-{SPAN}-00"
    assert link_of([("traceparent", old), ("traceparent", PARENT)]).trace_id == TRACE
    assert link_of([("traceparent", PARENT), ("traceparent", None)]) is None


@pytest.mark.parametrize(
    ("values", "state"),
    [
        # The cases of W3C's test suite (w3c/trace-context, test/test.py).
        ([""], None), ([None], None), (["foo=1,bar=2", "rojo=1,congo=2", "baz=3"], "foo=1,bar=2,rojo=1,congo=2,baz=3"),
        (["foo=1", "", "bar=2"], "foo=1,bar=2"), (["foo=1", None, "bar=2"], "foo=1,bar=2"),
        (["foo=1,foo=2"], "foo=1"), (["foo=1", "foo=2"], "foo=1"),
        (["foo=1 \t , \t bar=2, \t baz=3"], "foo=1,bar=2,baz=3"), (["\t foo=1 \t"], "foo=1"), (["foo= 1"], "foo= 1"),
        (["foo =1"], None), (["FOO=1"], None), (["foo.bar=1"], None), (["foo@=1,bar=2"], "foo@=1,bar=2"),
        (["@foo=1,bar=2"], None), (["foo@@bar=1,bar=2"], "foo@@bar=1,bar=2"), (["0foo=1"], "0foo=1"),
        ([",".join(f"bar{n}={n}" for n in range(32))], ",".join(f"bar{n}={n}" for n in range(32))),
        ([",".join(f"bar{n}={n}" for n in range(31)), "a=1,b=2"], None),
        ([f"{'z' * 256}=1"], f"{'z' * 256}=1"), (["foo=1", f"{'z' * 257}=1"], None),
        ([f"foo={'v' * 256}"], f"foo={'v' * 256}"), ([f"foo={'v' * 257}"], None),
        (["foo=bar=baz"], None), (["foo=,bar=3"], None), (["foo=\u00e9"], None), ([b"foo=\xff"], None), (["foo=a\tb"], None),
        ([f"a={''.join(map(chr, [*range(0x20, 0x2C), *range(0x2D, 0x3D), *range(0x3E, 0x7F)]))}"],
         f"a={''.join(map(chr, [*range(0x20, 0x2C), *range(0x2D, 0x3D), *range(0x3E, 0x7F)]))}"),
    ],
)  # fmt: skip
def test_tracestate_follows_w3c(values: list[Any], state: str | None) -> None:
    assert state_of(*values) == state


@given(st.lists(st.text("ab0 @=,\t-", max_size=8), max_size=3))
def test_tracestate_agrees_with_opentelemetry(values: list[str]) -> None:
    keys = [member.strip(" \t").partition("=")[0] for value in values for member in value.split(",")]
    # OpenTelemetry's keys are those of Level 1, and a repeated key drops everything there.
    if any("@" in key or key[:1] == "0" for key in keys) or len(set(filter(None, keys))) < len(
        list(filter(None, keys))
    ):
        return
    assert state_of(*values) == (trace.TraceState.from_header(values).to_header() or None)


@pytest.mark.parametrize(
    ("values", "members"),
    [
        ([""], {}), (["a=1"], {"a": "1"}), (["a = 1 ; p = q ; r"], {"a": "1"}), (["a=1=2"], {"a": "1=2"}), (["a="], {"a": ""}),
        (["userId=Am%C3%A9lie,serverNode=DF%2028"], {"userId": "Amélie", "serverNode": "DF 28"}),
        (["userId =   alice", "serverNode = DF%2028, isProduction = false"],
         {"userId": "alice", "serverNode": "DF 28", "isProduction": "false"}),
        (["a=%FF%C3"], {"a": "\ufffd\ufffd"}), (["a=1+2"], {"a": "1+2"}), (["a=1,a=2"], {"a": "2"}),
        (["a b=1,=2,c,d=\"x\",e=\\,f=1 2,g=7"], {"g": "7"}), ([b"a=\xff,b=1"], {"b": "1"}),
        ([",".join(f"k{n}={n}" for n in range(181))], {f"k{n}": str(n) for n in range(180)}),
        ([f"a=1,b={'x' * 8190},c=2"], {"a": "1"}), ([f"a={'x' * 8190}"], {"a": "x" * 8190}),
    ],
)  # fmt: skip
def test_baggage_follows_w3c(values: list[Any], members: dict[str, str]) -> None:
    assert baggage_of(*values) == members


def test_only_named_baggage_becomes_attributes() -> None:
    headers = [("traceparent", PARENT), ("baggage", "tenant=acme,card=4111")]
    assert link_of(headers, baggage=["tenant", "other"]).attributes == {"tenant": "acme"}
    assert link_of(headers, baggage=[]).attributes == {}
    with pytest.raises(TypeError, match="baggage must be a list of str"):
        trace_link(headers, baggage="tenant")
    with pytest.raises(TypeError, match="baggage must be a list of str"):
        lha.trace_links(pa.array([b""]), baggage="tenant")


def test_values_with_types_are_read_as_text_or_bytes() -> None:
    headers = [("traceparent", lh.String(PARENT)), ("tracestate", lh.Binary(b"a=1")), ("baggage", lh.Int8(1))]
    for format in ("iggy", "kip82-typed"):
        (link,) = lha.trace_links(pa.array([lh.encode(headers, format)]), format).to_pylist()
        assert (link["trace_id"], link["trace_state"], link["attributes"]) == (TRACE, "a=1", [])
    assert trace_link(headers) == (TRACE, SPAN, 1, "a=1", {})


def test_damaged_headers_are_raised_or_null() -> None:
    good = lh.encode([("traceparent", PARENT)], "kafka")
    column = pa.chunked_array([pa.array([good]), pa.array([None, good, b"\x05"])])
    with pytest.raises(lh.DecodeError, match=r"header count -3 is negative \(byte 0, row 3\)"):
        lha.trace_links(column)
    links = lha.trace_links(column, errors="null")
    assert (links.num_chunks, links.is_valid().to_pylist()) == (2, [True, False, True, False])
    with pytest.raises(ValueError, match="unknown errors value 'column'"):
        lha.trace_links(column, errors="column")
    with pytest.raises(ValueError, match="kip82-int has integer keys"):
        lha.trace_links(column, "kip82-int")
    with pytest.raises(ValueError, match="unknown format 'kafak'"):
        lha.trace_links(column, "kafak")


def test_topic_links_match_its_traceparents(samples: Any) -> None:
    headers = pq.read_table(samples / "orders-0.parquet", columns=["headers"])["headers"]
    links = lha.trace_links(headers)
    texts = lha.select(headers, {"traceparent": "binary"}).combine_chunks().field("traceparent")
    parsed = lha.traceparent(texts, errors="null")
    assert links.combine_chunks().field("span_id").equals(parsed.field("parent_id"))
    assert (len(links), links.null_count) == (10_000, 300)
    # A slice has offsets of its own.
    assert lha.trace_links(headers[7:19]).to_pylist() == links.to_pylist()[7:19]


@pytest.mark.parametrize(
    ("b3", "trace_id", "flags"),
    [
        # Written by opentelemetry-propagator-b3 1.45.1 of PyPI.
        ("12345678901234567890123456789012-1234567890123456-0", TRACE, 0),
        ("12345678901234567890123456789012-1234567890123456-1", TRACE, 1),
        # Forms of openzipkin/b3-propagation.
        (f"{TRACE}-{SPAN}", TRACE, 0),
        (f"{TRACE}-{SPAN}-d", TRACE, 1),
        (f" {TRACE}-{SPAN}-1-05e3ac9a4f6e3b90\t", TRACE, 1),
        (f"{TRACE[:16]}-{SPAN}-1", "0" * 16 + TRACE[:16], 1),
    ],
)
def test_single_b3_header_yields_link(b3: str, trace_id: str, flags: int) -> None:
    link = link_of([("b3", b3), ("tracestate", "congo=t61rcWkgMzE"), ("baggage", "tenant=acme")])
    assert link == (trace_id, SPAN, flags, None, {"tenant": "acme"})


@pytest.mark.parametrize(
    "b3",
    [
        "0", "1", "d", "", f"{'0' * 32}-{SPAN}-1", f"{TRACE}-{'0' * 16}-1", f"{TRACE}-{SPAN}-2", f"{TRACE}-{SPAN}-05e3ac9a4f6e3b90",
        f"{TRACE[:20]}-{SPAN}-1", f"{TRACE}-{SPAN}-1\n", f"{TRACE.replace('1', 'A')}-{SPAN}-1", b"\xff",
    ],
)  # fmt: skip
def test_b3_without_valid_ids_yields_no_link(b3: Any) -> None:
    assert link_of([("b3", b3)]) is None


def test_valid_traceparent_takes_precedence_over_b3() -> None:
    b3 = ("b3", f"{'a' * 32}-{SPAN}-0")
    state = ("tracestate", "congo=t61rcWkgMzE")
    assert link_of([b3, ("traceparent", PARENT), state])[:4] == (TRACE, SPAN, 1, "congo=t61rcWkgMzE")
    assert link_of([b3, ("traceparent", "none"), state])[:4] == ("a" * 32, SPAN, 0, None)
    rows = [[("traceparent", PARENT)], [b3], [], [b3, ("b3", f"{TRACE}-{SPAN}-1")]]
    column = pa.array([lh.encode(row, "kafka") for row in rows])
    assert lha.trace_links(column).field("trace_id").to_pylist() == [TRACE, "a" * 32, None, TRACE]
