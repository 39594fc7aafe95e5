"""The data source ``letterhead``: a topic, log segments or state stores that the path names."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from letterhead.sources import iggy, kafka
from letterhead.sources.recognition import open_sources
from letterhead.sources.segments import IggySegmentsSource, KafkaSegmentsSource
from letterhead.sources.stores import StateStores
from letterhead.sources.topics import parse_path
from letterhead.spark.sources.base import ArrowSource
from letterhead.spark.sources.iggy import IggySource
from letterhead.spark.sources.kafka import KafkaSource
from letterhead.spark.sources.segments import SegmentsSource
from letterhead.spark.sources.state import StateSource

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NamedSource"]


class NamedSource(ArrowSource):
    """Read what a path names, as :func:`letterhead.open` does: ``spark.read.format("letterhead").load(path)``.

    The path is a topic (``kafka://host:port/topic``, ``iggy://user:password@host:port/stream/topic``), log segments or a
    state directory. Topics of Kafka can also be named by ``subscribe``, without a path. The source for this type of
    path, such as ``letterhead-kafka``, defines all other options.

    Examples
    --------
    >>> lhs.register(spark)
    >>> orders = spark.read.format("letterhead").options(**lhs.options(columns=["offset"])).load("tests/samples/orders-0")
    >>> orders.count()
    10000
    >>> spark.readStream.format("letterhead").load("kafka://127.0.0.1:9092/orders")  # doctest: +SKIP
    """

    format_name = "letterhead"

    @cached_property
    def _source(self) -> ArrowSource:
        options = dict(self.options)
        path = next((options.pop(name) for name in self.options if name.lower() == "path"), None)
        names = {name.lower() for name in options}
        if path is None:
            if names & _NAMES_OF_TOPICS:
                return KafkaSource(options)
            raise ValueError('pass the source to load: .load("kafka://host:port/topic"), or a directory')
        source, own = _source_and_options(path)
        for name in own:
            if name.lower() in names:
                raise ValueError(
                    f"the path has the option {name}: leave out the option, or use format {source.format_name}"
                )
        return source({**options, **own})

    def arrow_schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return self._source.arrow_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        return self._source.reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query."""
        return self._source.streamReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        return self._source.writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a streaming query."""
        return self._source.streamWriter(schema, overwrite)


_NAMES_OF_TOPICS = {"subscribe", "subscribepattern", "assign"}
"""Options of Spark's source ``kafka`` that name topics, in lower case."""


def _source_and_options(path: str) -> tuple[type[ArrowSource], dict[str, Any]]:
    """Return the source for a path, and the options given in the path."""
    if kafka.is_kafka_address(path):
        return KafkaSource, _topic_options(kafka.KafkaAddress.parse(path))
    if iggy.is_iggy_address(path):
        return IggySource, _iggy_options(path)
    [source] = open_sources([path])
    if isinstance(source, StateStores):
        return StateSource, {"path": path}
    if isinstance(source, IggySegmentsSource):
        return SegmentsSource, {"path": path, "format": "iggy-batch"}
    if isinstance(source, KafkaSegmentsSource):
        return SegmentsSource, {"path": path}
    raise ValueError(f"{source.name} is a table: read it with spark.read.parquet or another format of Spark")


def _topic_options(address: kafka.KafkaAddress) -> dict[str, Any]:
    if address.topic is None:
        raise ValueError(f"the address does not name a topic: {kafka.FORM}")
    topics = (
        {"subscribe": address.topic}
        if address.partition is None
        else {"assign": json.dumps({address.topic: [address.partition]})}
    )
    return topics if address.servers is None else {**topics, "kafka.bootstrap.servers": address.servers}


def _iggy_options(path: str) -> dict[str, Any]:
    parts = urlsplit(path)
    [stream, topic], partition = parse_path(parts.path.split("/")[1:], 2, iggy.FORM)
    query = f"?{parts.query}" if parts.query else ""
    options = {"address": f"{parts.scheme}://{parts.netloc}{query}", "stream": stream, "topic": topic}
    return options if partition is None else {**options, "partitions": json.dumps([partition])}
