"""The data source ``letterhead``: a path is read as the source of its kind reads it."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead import spark as lhs
from letterhead.spark.sources import named
from letterhead.spark.sources.iggy import IggySource
from letterhead.spark.sources.kafka import KafkaSource
from letterhead.spark.sources.segments import SegmentsSource
from letterhead.spark.sources.state import StateSource


@pytest.fixture(scope="module")
def sources(spark: Any) -> Any:
    lhs.register(spark)
    return spark


def delegate(path: str, **options: str) -> Any:
    return named.NamedSource({"path": path, **options})._source


def test_path_of_files_is_read_by_the_source_of_its_kind(sources: Any, samples: Path) -> None:
    options = lhs.options(columns=["offset"], headers={"tenant": "string"})
    ours, theirs = (
        sources.read.format(name).options(**options).load(str(samples / "orders-0")).orderBy("offset")
        for name in ("letterhead", "letterhead-segments")
    )
    assert ours.schema == theirs.schema
    assert ours.toArrow().equals(theirs.toArrow())
    state = sources.read.format("letterhead").option("store", "latest").load(str(samples / "streams-state-0_0"))
    with lh.read.state(samples / "streams-state-0_0", store="latest") as rows:
        assert state.count() == rows.read_all().num_rows


def test_filters_reach_the_source_of_the_kind(sources: Any, samples: Path) -> None:
    frame = sources.read.format("letterhead").load(str(samples / "orders-0")).where("offset >= 9990")
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(9990, 10_000))


@pytest.mark.parametrize(
    ("path", "kind", "expected"),
    [
        ("kafka://a:1,b:2/orders", KafkaSource, {"subscribe": "orders", "kafka.bootstrap.servers": "a:1,b:2"}),
        ("KAFKA://a:1/my%2Eorders/3", KafkaSource, {"assign": '{"my.orders": [3]}', "kafka.bootstrap.servers": "a:1"}),
        ("kafka:///orders", KafkaSource, {"subscribe": "orders"}),
        (
            "iggy://u:p%40@h:8090/shop/orders?tls=true", IggySource,
            {"address": "iggy://u:p%40@h:8090?tls=true", "stream": "shop", "topic": "orders"},
        ),
        ("iggy+tcp://t@h/1/2/0", IggySource, {"address": "iggy+tcp://t@h", "stream": "1", "topic": "2", "partitions": "[0]"}),
    ],
)  # fmt: skip
def test_address_becomes_options(path: str, kind: type, expected: dict[str, str]) -> None:
    source = delegate(path, startingOffsets="earliest")
    assert (type(source), dict(source.options)) == (kind, {**expected, "startingOffsets": "earliest"})


@pytest.mark.parametrize("name", ["subscribe", "subscribePattern", "assign"])
def test_topics_are_named_by_options_without_a_path(name: str) -> None:
    options = {name: "orders", "kafka.bootstrap.servers": "a:1"}
    source = named.NamedSource(options)._source
    assert (type(source), dict(source.options)) == (KafkaSource, options)


def test_directories_become_options(samples: Path) -> None:
    for name, kind in (("orders-0", SegmentsSource), ("streams-state-0_0", StateSource)):
        source = delegate(str(samples / name))
        assert (type(source), dict(source.options)) == (kind, {"path": str(samples / name)})


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("kafka://a:1", {}, "the address does not name a topic: kafka://host:port/topic"),
        ("kafka://a:1/my%20orders", {}, "topic 'my orders' must have 1 to 249 letters, digits, dots"),
        ("iggy://u:secret@h/shop", {}, "the address does not name a topic: iggy://host:port/stream/topic"),
        ("kafka://a:1/orders", {"Subscribe": "other"}, "the path has the option subscribe: leave out the option"),
        ("http://a/b", {}, "no source begins with http://"),
        ("nowhere", {}, "no such file or directory"),
    ],
)
def test_invalid_path_is_an_error_with_a_remedy(path: str, options: dict[str, str], message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
        delegate(path, **options)
    assert "secret" not in str(raised.value)


def test_table_is_left_to_spark(samples: Path) -> None:
    with pytest.raises(ValueError, match=r"is a table: read it with spark\.read\.parquet"):
        delegate(str(samples / "orders-0.parquet"))


def test_missing_path_is_named(sources: Any) -> None:
    with pytest.raises(
        Exception, match=r"pass the source to load: \.load\(\"kafka://host:port/topic\"\), or a directory"
    ):
        sources.read.format("letterhead").load().count()


def test_unknown_option_is_an_error_of_the_kind(sources: Any, samples: Path) -> None:
    with pytest.raises(Exception, match="unknown option 'colunms': did you mean 'columns'"):
        sources.read.format("letterhead").option("colunms", json.dumps(["offset"])).load(
            str(samples / "orders-0")
        ).count()


def test_source_without_writer_refuses_to_write(sources: Any, samples: Path) -> None:
    with pytest.raises(Exception, match="letterhead-segments only reads: only brokers write segments"):
        sources.range(1).write.format("letterhead").mode("append").save(str(samples / "orders-0"))


def test_example_runs(sources: Any) -> None:
    names = {"spark": sources, "lhs": lhs}
    [test] = [test for test in doctest.DocTestFinder().find(named, globs=names) if test.name.endswith("NamedSource")]
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
