"""Every kind of source with every option: it means something there, or is refused with the same words on each surface."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead._row_request import OPTIONS, RowRequest

SAMPLES = Path(__file__).parents[1] / "samples"

TOPIC, TOPICS, IGGY = "kafka://127.0.0.1:9/orders", "kafka://127.0.0.1:9", "iggy://user:secret@127.0.0.1:9/shop/orders"
SEGMENTS, STATE, TABLE = SAMPLES / "orders-0", SAMPLES / "streams-state-0_0", SAMPLES / "orders-0.parquet"
ARROW = pa.table({"offset": [0, 1], "headers": pa.array([[("tenant", b"a")], []], pa.map_(pa.string(), pa.binary()))})
SOURCES: dict[str, Any] = {
    "topic of Kafka": TOPIC, "topics of Kafka": TOPICS, "topic of Iggy": IGGY, "segments of Kafka": SEGMENTS,
    "state directory": STATE, "table": TABLE, "Arrow table": ARROW,
}  # fmt: skip

LOGS = {"topic of Kafka", "topic of Iggy", "segments of Kafka"}

# The parameter and a value of lh.open, the arguments of `letterhead read` if it has the option, the sources for which it is, and the field.
CASES: list[tuple[str, Any, list[str], set[str], str]] = [
    ("start", 1, ["--start", "1"], LOGS, "start"),
    ("end", 5, ["--end", "5"], LOGS, "end"),
    ("partitions", [0], ["--partition", "0"], LOGS, "partitions"),
    ("follow", True, ["--follow"], {"topic of Kafka", "topic of Iggy"}, "follow"),
    ("timeout_ms", 10, ["--timeout", "0.01"], {"topic of Kafka", "topics of Kafka", "topic of Iggy"}, "timeout_ms"),
    ("settings", {"client.id": "x"}, ["-X", "client.id=x"], {"topic of Kafka", "topics of Kafka"}, "settings"),
    ("commit_group", "g", ["--commit-group", "g"], {"topic of Kafka"}, "commit_group"),
    ("isolation_level", "read_committed", ["--committed"], {"topic of Kafka", "segments of Kafka"}, "committed"),
    ("ignore_crc", True, ["--ignore-crc"], {"segments of Kafka"}, "ignore_crc"),
    ("store", "latest", ["--store", "latest"], {"state directory"}, "stores"),
    ("store_type", "key-value", ["--store-type", "key-value"], {"state directory"}, "stores"),
    ("fetch_bytes", 100, [], {"topic of Kafka", "topics of Kafka", "topic of Iggy"}, "fetch_bytes"),
    ("batch_bytes", 100, [], {"topic of Kafka"}, "batch_bytes"),
    ("token_provider", str, [], {"topic of Kafka", "topics of Kafka"}, "token_provider"),
    ("mapping", "kafka-gateway", [], {"topic of Iggy"}, "mapping"),
]

VIEWS = ["--batches", "--control"]


def of_every_source() -> list[Any]:
    return [pytest.param(*case, kind, id=f"{case[0]}, {kind}") for case, kind in itertools.product(CASES, SOURCES)]


@pytest.mark.parametrize(("name", "value", "arguments", "kinds", "field", "kind"), of_every_source())
def test_option_works_or_is_rejected_with_same_words_everywhere(
    name: str, value: Any, arguments: list[str], kinds: set[str], field: str, kind: str, run: Callable[..., Any]
) -> None:
    source = SOURCES[kind]
    needed: dict[str, Any] = {"store": "latest"} if kind == "state directory" and name != "store" else {}
    if name == "ignore_crc":
        needed |= {"errors": "column"}
    if name == "token_provider" and kind in kinds:
        needed["settings"] = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    options = {name: value, **needed}
    if kind in kinds:
        lh.open(source, **options).close()
        return
    with pytest.raises(ValueError, match=r"(is|are) for .*, not for ") as refused:
        lh.open(source, **options)
    parameter, sources = OPTIONS[field]
    assert str(refused.value).startswith(parameter)
    assert f" for {sources}, not for " in str(refused.value)
    assert "secret" not in str(refused.value)
    if not arguments or kind == "Arrow table":
        return
    result = run("read", source, *arguments, *(["-s", "latest"] if needed.get("store") else []))
    assert (result.code, f" for {sources}, not for " in result.err) == (2, True), result.err
    flag = {"-X": "--config", "--store-type": "--store"}.get(arguments[0], arguments[0])
    assert result.err.splitlines()[-1].startswith(f"letterhead: {flag} ")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["topics of Kafka", "topic of Iggy", "state directory", "table"])
def test_batch_views_need_kafka_logs(view: str, kind: str, run: Callable[..., Any]) -> None:
    result = run("read", SOURCES[kind], view)
    assert (result.code, f"{view} is for topics and log segments of Kafka" in result.err) == (2, True)


@pytest.mark.parametrize("kind", ["topics of Kafka", "state directory", "table"])
def test_registry_values_need_logs(kind: str, run: Callable[..., Any]) -> None:
    store = ["-s", "latest"] if kind == "state directory" else []
    result = run("read", SOURCES[kind], *store, "--value", "avro", "--registry", "http://127.0.0.1:9")
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith("letterhead: --value is for topics and log segments, not for ")


def test_every_option_of_sources_is_tried() -> None:
    assert {*OPTIONS} == {case[4] for case in CASES} | {"view", "serialized"}
    everywhere = {"columns", "headers", "where", "last", "errors", "error_column", "limits"}
    only_commands = {"on_screen", "among_others", "servers"}
    assert {field.name for field in fields(RowRequest)} == {*OPTIONS} | everywhere | only_commands


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"last": -1}, ValueError, "last must be at least 0, not -1"),
        ({"columns": "offset"}, TypeError, "columns must be a list of column names, not str"),
        ({"columns": {"tenant": "string"}}, TypeError, "headers= makes columns of headers, by name and type"),
        ({"columns": []}, ValueError, "no columns were asked for"),
        ({"headers": {}}, ValueError, "no columns were asked for"),
        ({"columns": ["a", "b", "a"]}, ValueError, "two columns 'a' would be made: name it once in columns="),
        ({"last": "3"}, TypeError, "last must be a whole number, not str"),
        ({"partitions": "0"}, TypeError, "partitions must be a list of whole numbers, such as [0, 1]"),
        ({"partitions": 0}, TypeError, "partitions must be a list of whole numbers, such as [0, 1]"),
        ({"partitions": [True]}, TypeError, "partitions must be a list of whole numbers, such as [0, 1]"),
        ({"partitions": []}, ValueError, "no partitions were asked for"),
        ({"follow": "no"}, TypeError, "follow must be bool, not str"),
        ({"ignore_crc": 1}, TypeError, "ignore_crc must be bool, not int"),
        ({"isolation_level": "commited"}, ValueError, "isolation_level"),
        ({"errors": "drop"}, ValueError, "unknown errors value 'drop' (errors values: raise, null, column)"),
    ],
)
def test_invalid_value_is_rejected_by_every_source(
    kind: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        lh.open(SOURCES[kind], **options)


@pytest.mark.parametrize("kind", ["segments of Kafka", "state directory", "table"])
def test_batches_of_every_source_are_bounded(kind: str) -> None:
    store = "latest" if kind == "state directory" else None
    whole = lh.open(SOURCES[kind], store=store).read_all()
    with lh.open(SOURCES[kind], store=store, limits=lh.Limits(arrow_batch_bytes=20_000)) as reader:
        parts = list(reader)
    assert pa.Table.from_batches(parts) == whole
    assert all(part.nbytes <= 20_000 or len(part) == 1 for part in parts)


@pytest.mark.parametrize("kind", ["topic of Kafka", "topic of Iggy", "segments of Kafka", "table"])
def test_typed_column_does_not_replace_another(kind: str) -> None:
    with pytest.raises(ValueError, match="two columns 'offset' would be made: rename one of them"):
        lh.open(SOURCES[kind], headers={"offset": "string"})


@pytest.mark.parametrize("kind", ["segments of Kafka", "state directory", "table"])
def test_batches_with_many_header_columns_are_bounded(kind: str) -> None:
    headers = {f"column{number}": lh.field("string", key="tenant") for number in range(50)}
    options: dict[str, Any] = {"headers": headers, "store": "latest" if kind == "state directory" else None}
    whole = lh.open(SOURCES[kind], **options).read_all()
    with lh.open(SOURCES[kind], **options, limits=lh.Limits(arrow_batch_bytes=50_000)) as reader:
        parts = list(reader)
    assert pa.Table.from_batches(parts) == whole
    assert all(part.nbytes <= 60_000 for part in parts)


def test_differences_are_bounded() -> None:
    table = lh.open(SEGMENTS).read_all()
    limits = lh.Limits(arrow_batch_bytes=50_000)
    with lh.diff(table, table.slice(9000), columns=["headers", "value"], limits=limits) as reader:
        parts = list(reader)
    assert sum(map(len, parts)) == 9000
    assert all(part.nbytes <= 60_000 for part in parts)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout_ms": "5"}, TypeError, "timeout_ms must be a whole number, not str"),
        ({"timeout_ms": -1}, ValueError, "timeout_ms must be at least 1, not -1"),
        ({"fetch_bytes": 1.5}, TypeError, "fetch_bytes must be a whole number, not float"),
        ({"batch_bytes": 0}, ValueError, "batch_bytes must be at least 1, not 0"),
        ({"limits": {"headers": 3}}, TypeError, "limits must be letterhead.Limits, not dict"),
    ],
)
def test_option_of_another_type_is_an_error(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        lh.open(TOPIC, **options)
    if "limits" in options:
        for kind in SOURCES:
            with pytest.raises(error, match=re.escape(message)):
                lh.open(SOURCES[kind], **options)


def test_format_of_segments_is_not_guessed_silently() -> None:
    with pytest.raises(ValueError, match=r"\.log is a log segment of Kafka: leave out format="):
        lh.read.segments(SEGMENTS, format="iggy-batch")


def test_text_with_the_ending_of_segments_does_not_hide_a_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "part-0.parquet")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "job.log").write_text("started\n")
    assert lh.open(tmp_path).read_all().num_rows == 1
