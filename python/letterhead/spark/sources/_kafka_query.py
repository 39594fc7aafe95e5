"""Queries of the data source ``letterhead-kafka``: their offsets, tasks and readers. It needs kafka-python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from letterhead.errors import OffsetsGone, check_name
from letterhead.kafka.client import EARLIEST, LATEST, Client, Place
from letterhead.kafka.partitions import Span, rows_of, selected_spans
from letterhead.kafka.record_sets import WHERE_FIELDS, Rows
from letterhead.spark.sources.offset_queries import divided, limited
from letterhead.spark.sources.options import read_arguments
from letterhead.spark.sources.pushdown import push
from letterhead.where.program import resolve

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2 there are no limits, and a trigger reads all available records
    ReadAllAvailable = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

if TYPE_CHECKING:
    from letterhead.kafka.settings import Settings

__all__ = ["BatchReader", "Query", "StreamReader"]

Offsets: TypeAlias = dict[str, dict[str, int]]
"""Offsets by topic and partition, as Spark's own source writes them into a checkpoint."""

DEFAULT_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

COLUMNS = (*DEFAULT_COLUMNS, "headers", "producerId", "producerEpoch", "sequence", "transactional")
"""Columns by Spark's names; those of :data:`letterhead.kafka.record_sets.FIELDS` are the same in snake case."""

# The column timestampType has another value than the field where that is null, and is left to Spark.
_WHERE_FIELDS = {
    re.sub("_([a-z])", lambda found: found[1].upper(), name): of
    for name, of in WHERE_FIELDS.items()
    if name != "timestamp_type"
}

_POINTS = {
    "start": ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    "end": ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"),
}

_WORDS = {"earliest": EARLIEST, "latest": LATEST}

_BATCH_BYTES = 1 << 20


class Query:
    """A query with the settings of its connection and the values of its options, on the driver and in tasks."""

    def __init__(self, settings: Settings, values: Mapping[str, Any]) -> None:
        self.settings = settings
        self.isolation: Any = settings.isolation_level or "read_uncommitted"
        check_name("kafka.isolation.level", self.isolation, ("read_uncommitted", "read_committed"))
        self._values = values
        self._columns = values.get(
            "columns", [*DEFAULT_COLUMNS, *(["headers"] if values.get("includeHeaders") else [])]
        )
        for name in self._columns:
            check_name("column", name, COLUMNS)
        self.loss = not values.get("failOnDataLoss", True)
        self.limit = values.get("maxOffsetsPerTrigger")
        named = [name for name in ("assign", "subscribe", "subscribePattern") if name in values]
        if len(named) != 1:
            raise ValueError(
                "exactly one of the options assign, subscribe, subscribePattern is needed, "
                f"not {' and '.join(named) or 'none'}"
            )
        self._how, self._which = named[0], values[named[0]]

    @property
    def schema(self) -> pa.Schema:
        """Schema of the record batches."""
        made = self._rows().schema
        names = [*self._columns, *made.names[len(self._columns) :]]
        types = {"timestampType": pa.int32()}
        return pa.schema([(name, types.get(name, made.field(at).type)) for at, name in enumerate(names)])

    def places(self, client: Client) -> list[Place]:
        """Find the partitions to read."""
        if self._how == "assign":
            wanted = [Place(topic, number) for topic, numbers in self._which.items() for number in numbers]
            there = set(client.partitions(dict.fromkeys(place.topic for place in wanted)))
            missing = [str(place) for place in wanted if place not in there]
            if missing:
                raise ValueError(f"option assign: partition {missing[0]} does not exist")
            return wanted
        if self._how == "subscribe":
            topics = [topic.strip() for topic in self._which.split(",") if topic.strip()]
        else:
            topics = [topic for topic in client.topics() if re.fullmatch(self._which, topic)]
        return client.partitions(dict.fromkeys(topics)) if topics else []

    def batch_spans(self, client: Client) -> list[Span]:
        """Find the offsets that a batch query reads."""
        places = self.places(client)
        starts = self.offsets(client, places, "start", default="earliest", rejected="latest")
        ends = self.offsets(client, places, "end", default="latest", rejected="earliest")
        last = self.latest(client, places)
        for place in places:
            if ends[place] > last[place] and not self.loss:
                raise ValueError(f"{place}: endingOffsets is {ends[place]}, and the partition ends at {last[place]}")
        spans = [Span(place, starts[place], min(ends[place], last[place])) for place in places]
        return selected_spans(client, spans, self._rows().where)

    def push(self, filters: Iterable[Any]) -> list[Any]:
        """Add filters of Spark to the condition; return those that Spark has to evaluate."""
        headers = self._values.get("headerColumns")
        where, left = push(
            filters, self._values.get("where"), headers, lambda pushed: resolve(pushed, _WHERE_FIELDS, headers),
            keeps_errors=self._values.get("errors") == "column",
        )  # fmt: skip
        if where is not None:
            self._values = {**self._values, "where": where}
        return left

    def latest(self, client: Client, places: Iterable[Place]) -> dict[Place, int]:
        """Find the offsets at which partitions end."""
        return client.offsets(dict.fromkeys(places, LATEST), self.isolation)

    def offsets(
        self,
        client: Client,
        places: Sequence[Place],
        side: Literal["start", "end"],
        *,
        default: str,
        rejected: str | None = None,
    ) -> dict[Place, int]:
        """Find the offsets at which to start or to end."""
        option = next((name for name in _POINTS[side] if name in self._values), f"{side}ingOffsets")
        point = self._values.get(option, default)
        is_time = "imestamp" in option
        if isinstance(point, dict):
            given = _of_places(option, point, places)
        else:
            given = {place: _WORDS[point] if isinstance(point, str) else point for place in places}
        if not is_time and rejected is not None and _WORDS[rejected] in given.values():
            raise ValueError(f"{option} cannot be {rejected} in a batch query")
        queried = {place: offset for place, offset in given.items() if is_time or offset < 0}
        # The latest offset depends on the isolation level; timestamps are those of all records.
        found = given | client.offsets(queried, "read_uncommitted" if is_time else self.isolation)
        late = [place for place in queried if found[place] < 0]
        if late and side == "start" and self._values.get("startingOffsetsByTimestampStrategy") != "latest":
            raise ValueError(
                f"{option}: {late[0]} has no record at {given[late[0]]} or later; to begin with the next one, set "
                "startingOffsetsByTimestampStrategy to latest"
            )
        return found | self.latest(client, late) if late else found

    def parts(self, spans: Iterable[Span]) -> list[_Part]:
        """Divide spans among tasks: one each, or more as the options request."""
        minimum, most = self._values.get("minPartitions", 0), self._values.get("maxRecordsPerPartition")
        return [_Part(*span.place, start, end) for span, start, end in divided([*spans], minimum, most)]

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the part of a task."""
        if not isinstance(part, _Part):  # without parts, Spark makes one of its own
            return
        schema = self.schema
        span = Span(Place(part.topic, part.partition), part.start, part.end)
        with Client(self.settings) as client:
            for rows in rows_of(
                client, [span], self._rows(), isolation=self.isolation, batch_bytes=_BATCH_BYTES, loss=self.loss
            ):
                columns = [_as_spark(name, column) for name, column in zip(schema.names, rows.columns, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _rows(self) -> Any:
        names = [re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name) for name in self._columns]
        headers, arguments = self._values.get("headerColumns"), read_arguments(self._values)
        # Names are those of the columns here.
        where = resolve(arguments.pop("where", None), _WHERE_FIELDS, headers)
        return Rows(names, headers, where=where, **arguments)


@dataclass
class _Part(InputPartition):  # type: ignore[misc]
    """A range of offsets that a task reads."""

    topic: str
    partition: int
    start: int
    end: int


class BatchReader(DataSourceReader):  # type: ignore[misc]
    """Read the offsets that a batch query finds when it starts."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def push(self, filters: list[Any]) -> list[Any]:
        return self._query.push(filters)

    def partitions(self) -> list[_Part]:
        with Client(self._query.settings) as client:
            return self._query.parts(self._query.batch_spans(client))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Its only state is offsets: a query restarted from its checkpoint reads the records after them."""

    def __init__(self, query: Query) -> None:
        if query.limit is not None and ReadMaxRows is None:
            raise ValueError("maxOffsetsPerTrigger needs Spark 4.2: before it a trigger reads all available records")
        self._query = query
        self._client: Client | None = None
        self._target: dict[Place, int] | None = None

    def initialOffset(self) -> Offsets:
        client = self._connected()
        return _offsets_of(self._query.offsets(client, self._query.places(client), "start", default="latest"))

    def getDefaultReadLimit(self) -> Any:
        return ReadAllAvailable() if self._query.limit is None else ReadMaxRows(self._query.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._latest()

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:
        ends = self._latest() if self._target is None else dict(self._target)
        starts = _places_of(start or {})
        ends = self._never_back(starts, ends)
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            new = [place for place in ends if place not in starts]
            starts |= self._earliest(new)
            ends = limited(limit.max_rows, starts, ends)
        return _offsets_of(ends)

    def reportLatestOffset(self) -> Offsets:
        return _offsets_of(self._latest())

    def partitions(self, start: Offsets, end: Offsets) -> list[_Part]:
        starts, ends = _places_of(start), _places_of(end)
        new = [place for place in ends if place not in starts]
        # A new partition is read from its beginning.
        starts |= self._earliest(new)
        return self._query.parts(Span(place, starts[place], ends[place]) for place in ends)

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
            self._client = Client(self._query.settings)
        return self._client

    def _latest(self) -> dict[Place, int]:
        client = self._connected()
        return self._query.latest(client, self._query.places(client))

    def _earliest(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._connected().offsets(dict.fromkeys(places, EARLIEST), "read_uncommitted") if places else {}

    def _never_back(self, starts: dict[Place, int], ends: dict[Place, int]) -> dict[Place, int]:
        """Reject partitions that were deleted or truncated: records written to them since would be skipped."""
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
        return ends


# The remedies that lose no data come first. Skipping also skips records of a recreated topic below the old offsets.
_REMEDIES = (
    "check that kafka.bootstrap.servers names the cluster of the checkpoint; to read a recreated topic, start "
    "with a new checkpointLocation and startingOffsets=earliest; failOnDataLoss=false skips the records that are gone"
)


def _as_spark(name: str, column: pa.Array) -> pa.Array:
    """Convert a column to that of Spark's own source."""
    if name == "timestampType":
        return pc.fill_null(column.cast(pa.int32()), -1)
    if name == "headers":  # a message without headers has null there
        return pc.if_else(pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column)
    return column


def _places_of(offsets: Offsets) -> dict[Place, int]:
    return {
        Place(topic, int(number)): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }


def _offsets_of(offsets: Mapping[Place, int]) -> Offsets:
    made: Offsets = {}
    for place, offset in sorted(offsets.items()):
        made.setdefault(place.topic, {})[str(place.partition)] = offset
    return made


def _of_places(option: str, point: Offsets, places: Sequence[Place]) -> dict[Place, int]:
    given = _places_of(point)
    for one, other, how in ((places, given, "names no offset for"), (given, places, "names partitions not read:")):
        missing = [str(place) for place in one if place not in other]
        if missing:
            raise ValueError(f"option {option} {how} {', '.join(missing)}")
    return {place: given[place] for place in places}
