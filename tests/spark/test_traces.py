"""Span links of Spark jobs, with the SDK of OpenTelemetry on both sides: what producers sent is what the job links to."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from tests.helpers.pages import run
from tests.spark.frames import HEADERS, explained

PAGE = "docs/how-to/link-traces.md"


def produced(count: int) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Send messages, each from a span of its own; return its context and the headers."""
    from opentelemetry import baggage, trace
    from opentelemetry.baggage.propagation import W3CBaggagePropagator
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    tracer = TracerProvider().get_tracer("producer")
    messages = []
    for n in range(count):
        with tracer.start_as_current_span("send") as span:
            carrier: dict[str, str] = {}
            current = baggage.set_baggage(
                "card", "4111", baggage.set_baggage("tenant", f"Amélie {n}", trace.set_span_in_context(span))
            )
            TraceContextTextMapPropagator().inject(carrier, current)
            W3CBaggagePropagator().inject(carrier, current)
            # The SDK for Python writes a space as W3C does not.
            carrier = {key: value.replace("+", "%20") for key, value in carrier.items()}
            messages.append(
                (span.get_span_context(), [{"key": key, "value": value.encode()} for key, value in carrier.items()])
            )
    return messages


@pytest.mark.spark_only
def test_traces_page_links_span_of_each_batch(spark, tmp_path: Path, monkeypatch) -> None:
    from opentelemetry import trace

    messages = produced(150)
    bad = [{"key": "traceparent", "value": b"00-none"}]
    batches = [[headers for _, headers in messages[:6]] * 2 + [bad, [], None], [headers for _, headers in messages]]
    directory = tmp_path / "topic"
    directory.mkdir()
    for number, batch in enumerate(batches):
        path = directory / f"{number}.parquet"
        pq.write_table(pa.table({"headers": pa.array(batch, HEADERS)}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # a stream takes the oldest first
    schema = "headers array<struct<key:string,value:binary>>"
    topic = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))
    monkeypatch.chdir(tmp_path)
    run(PAGE, {"topic": topic}, "python")

    first, second = map(json.loads, (tmp_path / "spans.jsonl").read_text().splitlines())
    assert (first["name"], first["attributes"]) == ("process orders", {"messaging.batch.message_count": 15})
    expected = {
        (trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)): {"tenant": f"Amélie {n}"}
        for n, (context, _) in enumerate(messages)
    }
    for span, count in ((first, 6), (second, 128)):
        links = {
            (link["context"]["trace_id"][2:], link["context"]["span_id"][2:]): link["attributes"]
            for link in span["links"]
        }
        assert len(links) == len(span["links"]) == count
        assert links.items() <= expected.items()


def test_links_of_dataframe_are_read_from_lists_and_bytes(spark) -> None:
    traceparent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"
    sent = [("traceparent", traceparent), ("tracestate", b"a=1 , b=2"), ("baggage", b"tenant=Am%C3%A9lie,card=4111")]
    rows = [sent, [("traceparent", b"00-none")], None]
    lists = pa.array([row and [{"key": key, "value": value} for key, value in row] for row in rows], HEADERS)
    data = pa.array([None if row is None else lh.encode(row, "kafka") for row in rows], pa.binary())
    frame = spark.createDataFrame(pa.table({"n": [0, 1, 2], "headers": lists, "data": data}))
    for column in ("headers", "data"):
        link = lhs.trace_links(column, baggage=["tenant"]).alias("link")
        first, *others = (row.link for row in frame.select("n", link).orderBy("n").collect())
        assert others == [None, None]
        assert (first.trace_id, first.span_id) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
        assert (first.trace_flags, first.trace_state) == (3, "a=1,b=2")
        assert dict(first.attributes) == {"tenant": "Amélie"}


def test_unknown_names_are_rejected_before_job(spark) -> None:
    with pytest.raises(ValueError, match="unknown format 'kafak'"):
        lhs.trace_links("headers", "kafak")
    with pytest.raises(ValueError, match="unknown errors value 'column'"):
        lhs.trace_links("headers", errors="column")
    with pytest.raises(TypeError, match="column must be str or a Column"):
        lhs.trace_links(7)


@pytest.mark.spark_only
def test_convention_columns_are_named_and_errors_name_rows(spark) -> None:
    df = spark.sql("select 7 as `a.b`, id as offset, 'x' as text, cast('x' as binary) as data from range(1)")
    identify = ["offset", "a.b"]
    functions = {
        "traceparent": partial(lhs.traceparent, "text"), "rfc3339": partial(lhs.rfc3339, "text"),
        "schema_id": partial(lhs.schema_id, "data"), "trace_links": partial(lhs.trace_links, "data"),
        "amqp": partial(lhs.amqp, "data", "string"),
    }  # fmt: skip
    for name, function in functions.items():
        assert df.select(function()).columns == [f"{name}({function.args[0]})"]
        with pytest.raises(Exception, match=r"in the row with offset=0, a\.b=7") as caught:
            df.select(function(identify=identify)).collect()
        assert ('errors="null"' if name == "trace_links" else 'errors="column"') in str(caught.value)
    with pytest.raises(TypeError, match="identify must be a list of column names, not str"):
        lhs.traceparent("text", identify="offset")


@pytest.mark.spark_only
@pytest.mark.parametrize("type", ["binary", "string"])
def test_spark_reads_traceparent_like_arrow(spark, type: str) -> None:
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    forms = [("00", "01"), ("ff", "01"), ("00", "01-x"), ("cc", "0a-é\n"), ("00", "00-"), ("00", "01\n"), ("00", "0A")]
    ids = [(trace, span), ("0" * 32, span), (trace, "0" * 16), (trace[1:], span)]
    values = [f"{version}-{trace}-{span}-{rest}".encode() for trace, span in ids for version, rest in forms]
    values += [None, b"", b" " + values[0], values[0].upper()]
    values += [] if type == "string" else [values[3] + b"\xff", b"\xff" + values[0]]
    rows = pa.array(values, pa.binary()).cast(pa.string() if type == "string" else pa.binary())
    df = spark.createDataFrame(pa.table({"v": rows}))
    for errors in ("null", "column"):
        read = df.select(lhs.traceparent("v", errors=errors))
        assert read.toArrow().column(0).to_pylist() == lha.traceparent(rows, errors=errors).to_pylist()
        assert "Python" not in explained(read)
    with pytest.raises(Exception, match=r'traceparent: version ff is invalid \(bad_text, byte 0\): errors="column"'):
        df.where(f"substr(string(v), 1, 2) = 'ff' and string(v) not like '%{'0' * 16}%'").select(
            lhs.traceparent("v")
        ).collect()
    with pytest.raises(Exception, match=r"BINARY|traceparent is read from"):
        spark.range(1).select(lhs.traceparent("id")).collect()
