"""Queries of the data source ``letterhead-iggy``: their offsets, tasks and readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from letterhead.errors import OffsetsGone
from letterhead.iggy import kafka_rows as iggy_kafka_rows
from letterhead.iggy.client import Client, Place, Topic
from letterhead.iggy.connection import Address
from letterhead.iggy.kafka_rows import KafkaRows
from letterhead.iggy.partitions import Span, rows_of
from letterhead.iggy.rows import COLUMNS, IggyRows
from letterhead.spark.sources.offset_queries import divided, limited
from letterhead.spark.sources.options import read_arguments

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2 there are no limits, and a trigger reads all available messages
    ReadAllAvailable = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

__all__ = ["BatchReader", "Query", "StreamReader"]

Offsets: TypeAlias = dict[str, dict[str, int]]
"""Offsets by topic and partition, as a checkpoint has them."""

_EARLIEST, _LATEST = -2, -1
_WORDS = {"earliest": _EARLIEST, "latest": _LATEST}


class Query:
    """A query with the values of its options, on the driver and in tasks."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._address = Address.parse(values["address"])
        self.topic = Topic(values["stream"], values["topic"])
        self.loss = not values.get("failOnDataLoss", True)
        self.limit = values.get("maxOffsetsPerTrigger")
        self._mapped = "mapping" in values
        if self._mapped and values.get("errors", "raise") != "raise":
            raise ValueError("the option mapping needs errors=raise")
        known = iggy_kafka_rows.COLUMNS if self._mapped else COLUMNS
        default = [name for name in known if not (values.get("headerColumns") and name == "headers")]
        self._columns = values.get("columns", default)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the record batches."""
        return self._rows().schema

    def client(self) -> Client:
        """Return a client that has not connected yet."""
        return Client(self._address, self._values.get("timeoutMs", 60_000))

    def places(self, client: Client) -> list[Place]:
        """Find the partitions to read."""
        places = client.partitions(self.topic)
        wanted = self._values.get("partitions")
        if wanted is None:
            return places
        missing = [number for number in wanted if Place(*self.topic, number) not in places]
        if missing:
            raise ValueError(f"option partitions: topic {self.topic} has no partition {missing[0]}")
        return [Place(*self.topic, number) for number in sorted(set(wanted))]

    def latest(self, client: Client, places: Iterable[Place]) -> dict[Place, int]:
        """Find the offsets at which partitions end."""
        return {place: client.end_offset(place) for place in places}

    def offsets(self, client: Client, places: Iterable[Place], side: str, default: str) -> dict[Place, int]:
        """Find the offsets at which to start or to end."""
        since = self._values.get(f"{side}ingTimestamp")
        if since is not None:
            return {place: client.offset_since(place, 1000 * since) for place in places}
        option = f"{side}ingOffsets"
        point = self._values.get(option, default)
        found = {}
        for place in places:
            offset = _WORDS[point] if isinstance(point, str) else point.get(str(place.partition))
            if offset is None:
                raise ValueError(f"option {option} names no offset for partition {place.partition}")
            if offset == _EARLIEST:
                offset = client.first_offset(place)
            elif offset == _LATEST:
                offset = client.end_offset(place)
            found[place] = offset
        return found

    def batch_spans(self, client: Client) -> list[Span]:
        """Find the offsets that a batch query reads."""
        places = self.places(client)
        starts = self.offsets(client, places, "start", "earliest")
        ends = self.offsets(client, places, "end", "latest")
        last = self.latest(client, places)
        for place in places:
            if ends[place] > last[place] and not self.loss:
                raise ValueError(f"{place}: endingOffsets is {ends[place]}, and the partition ends at {last[place]}")
        return [Span(place, starts[place], min(ends[place], last[place])) for place in places]

    def parts(self, spans: Iterable[Span]) -> list[_Part]:
        """Divide spans among tasks: one each, or more as the options request."""
        minimum, most = self._values.get("minPartitions", 0), self._values.get("maxRecordsPerPartition")
        return [_Part(span.place.partition, start, end) for span, start, end in divided([*spans], minimum, most)]

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the part of a task."""
        if not isinstance(part, _Part):  # without parts, Spark makes one of its own
            return
        span = Span(Place(*self.topic, part.partition), part.start, part.end)
        with self.client() as client:
            yield from rows_of(client, [span], self._rows(), loss=self.loss)

    def _rows(self) -> IggyRows | KafkaRows:
        headers, arguments = self._values.get("headerColumns"), read_arguments(self._values)
        if self._mapped:
            return KafkaRows(self._columns, headers, arguments["limits"], arguments["dialect"], arguments.get("where"))
        return IggyRows(self._columns, headers, **arguments)


@dataclass
class _Part(InputPartition):  # type: ignore[misc]
    """A range of offsets that a task reads."""

    partition: int
    start: int
    end: int


class BatchReader(DataSourceReader):  # type: ignore[misc]
    """Read the offsets that a batch query finds when it starts."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def partitions(self) -> list[_Part]:
        with self._query.client() as client:
            return self._query.parts(self._query.batch_spans(client))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Its only state is offsets: a query restarted from its checkpoint reads the messages after them."""

    def __init__(self, query: Query) -> None:
        if query.limit is not None and ReadMaxRows is None:
            raise ValueError("maxOffsetsPerTrigger needs Spark 4.2: before it a trigger reads all available messages")
        self._query = query
        self._client: Client | None = None
        self._target: dict[Place, int] | None = None

    def initialOffset(self) -> Offsets:
        client = self._connected()
        return self._offsets_of(self._query.offsets(client, self._query.places(client), "start", "latest"))

    def getDefaultReadLimit(self) -> Any:
        return ReadAllAvailable() if self._query.limit is None else ReadMaxRows(self._query.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._latest()

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:
        ends = self._latest() if self._target is None else dict(self._target)
        starts = self._places_of(start)
        self._check(starts, ends)
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            ends = limited(limit.max_rows, starts | self._earliest(ends.keys() - starts.keys()), ends)
        return self._offsets_of(ends)

    def reportLatestOffset(self) -> Offsets:
        return self._offsets_of(self._latest())

    def partitions(self, start: Offsets, end: Offsets) -> list[_Part]:
        starts, ends = self._places_of(start), self._places_of(end)
        # A new partition is read from its beginning.
        starts |= self._earliest(ends.keys() - starts.keys())
        return self._query.parts(Span(place, starts[place], last) for place, last in ends.items())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, Any]:
        # Each task opens its own connection.
        return self.__dict__ | {"_client": None}

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._query.client()
        return self._client

    def _latest(self) -> dict[Place, int]:
        client = self._connected()
        return self._query.latest(client, self._query.places(client))

    def _earliest(self, places: Iterable[Place]) -> dict[Place, int]:
        return {place: self._connected().first_offset(place) for place in places}

    def _check(self, starts: Mapping[Place, int], ends: dict[Place, int]) -> None:
        """Reject partitions that were deleted or purged: messages written to them since would be skipped."""
        for place, start in starts.items():
            if ends.get(place, -1) >= start:
                continue
            if not self._query.loss:
                why = (
                    f"the partition ends at {ends[place]}" if place in ends else "the partition does not exist any more"
                )
                raise OffsetsGone(place, start, f"{why}; {_REMEDIES}")
            if place in ends:
                ends[place] = start

    def _places_of(self, offsets: Offsets | None) -> dict[Place, int]:
        name = str(self._query.topic)
        others = [other for other in offsets or () if other != name]
        if others:
            raise ValueError(f"the checkpoint is of topic {others[0]}, not {name}: use a new checkpointLocation")
        return {Place(*self._query.topic, int(number)): at for number, at in (offsets or {}).get(name, {}).items()}

    def _offsets_of(self, offsets: Mapping[Place, int]) -> Offsets:
        return {str(self._query.topic): {str(place.partition): at for place, at in sorted(offsets.items())}}


# The remedies that lose no data come first.
_REMEDIES = (
    "check that address names the server of the checkpoint; to read a purged topic, start with a new checkpointLocation "
    "and startingOffsets=earliest; failOnDataLoss=false skips the messages that are gone"
)
