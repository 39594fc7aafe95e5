"""Turn a changelog topic into the table of its store: :func:`changelog_table`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from letterhead._invariants import require
from letterhead._names import check_name
from letterhead.errors import DecodeError, copy_error
from letterhead.offsets.output_columns import KAFKA_HEADERS
from letterhead.spark.frame import HEADERS, KAFKA_COLUMNS, Input, check_frame, check_types, fields_of
from letterhead.spark.header_functions import encode_headers
from letterhead.spark.sail import not_on_sail
from letterhead.state.durations import Milliseconds, milliseconds
from letterhead.state.storage.segments import segment_interval
from letterhead.state.storage.suppress_rows import Buffered, read_suppressed

__all__ = ["changelog_table"]

ChangelogType: TypeAlias = Literal["key-value", "window", "session", "versioned", "suppress"]


def changelog_table(
    df: DataFrame,
    store_type: ChangelogType = "key-value",
    *,
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
) -> DataFrame:
    """Turn the changelog topic of a store with headers into the table of the store's current values.

    A key has the value of its last record in its partition; there is no row if this record is a tombstone.

    Parameters
    ----------
    df : DataFrame
        All records of the topic, with these columns of Spark's Kafka source: ``partition``, ``offset``, ``timestamp``,
        ``key``, ``value`` and ``headers``.
    store_type : {"key-value", "window", "session", "versioned", "suppress"}, default "key-value"
        Type of the store. For a versioned store the table has the version of each key with the largest timestamp.
        ``"suppress"`` is the buffer of ``suppress()``.
    retention : int or timedelta, optional
        Milliseconds for which a window or session store keeps its rows: expired rows are dropped. By default none
        expire. Required for a versioned store, which drops a version that is older than this on arrival.
    segment_interval : int or timedelta, optional
        Length of a segment of a window or session store, in milliseconds: rows expire one segment at a time. By
        default as in the stores.

    Returns
    -------
    DataFrame
        A table with the columns

        ``partition``, ``key``
            the key without the times that follow it in windows and sessions;
        ``window_start``, or ``session_start`` and ``session_end``
            for windows and sessions, in milliseconds;
        ``offset``, ``timestamp``, ``headers``, ``payload``
            as in the record; null headers are an empty list;
        ``stored_key``, ``stored``
            the bytes of the row in the store: ``streams-timestamped`` in key-value and window stores, ``streams`` in
            session stores; in versioned stores ``int64 timestamp ‖ streams``, with the segment -1 before the key.

        For ``"suppress"`` the columns are ``partition``, ``key``, ``offset``, ``buffer_time`` (milliseconds), and for the
        ``new``, ``old`` and ``prior`` value each ``…_timestamp`` (milliseconds), ``…_headers`` and ``…_payload``. Kafka
        keeps timestamp and headers of the last two from version 4.4 on, with ``dsl.store.format=HEADERS``; this was
        implemented before that release.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or if the DataFrame lacks a column or is a stream. A record without a key ends
        the query.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> changelog = orders.select("partition", "offset", "timestamp", "key", "value", "headers")
    >>> table = lhs.changelog_table(changelog)
    >>> table  # doctest: +ELLIPSIS
    DataFrame[partition: int, key: binary, offset: bigint, timestamp: timestamp, headers: array<...>, payload: binary, ...]
    >>> table.count() <= changelog.select("key").distinct().count()
    True
    """
    check_frame(df, changelog_table)
    check_name("store type", store_type, get_args(ChangelogType))
    kept_ms = None if retention is None else milliseconds("retention", retention)
    interval = None if segment_interval is None else milliseconds("segment_interval", segment_interval)
    if store_type == "versioned" and kept_ms is None:
        raise ValueError("a versioned store drops late records: pass retention= with its history retention")
    if store_type in ("key-value", "suppress") and kept_ms is not None:
        raise ValueError(f"rows of a {store_type} store do not expire: leave out retention=")
    if interval is not None and (store_type not in ("window", "session") or kept_ms is None or interval < 1):
        raise ValueError("segment_interval= applies to window and session stores with retention=, and is at least 1 ms")
    return _ChangelogTable(store_type, kept_ms, interval).of_records(df)


@dataclass(frozen=True)
class _ChangelogTable:
    """Table of a store, with the arguments of :func:`changelog_table`; durations are in milliseconds."""

    store_type: ChangelogType
    retention: int | None
    segment_interval: int | None

    def of_records(self, df: DataFrame) -> DataFrame:
        """Return the table of a changelog topic; the DataFrame must contain all records from the first one on."""
        if df.isStreaming:
            raise ValueError(
                "the DataFrame is a stream, from which a deleted row could not be retracted: "
                "read the topic as a batch, or use foreachBatch"
            )
        if _KEY_TIMES[self.store_type]:
            not_on_sail(df.sparkSession, f"changelog_table of a {self.store_type} store", _BINARY_KEYS)
        check_types(fields_of(df), [Input(name, "a changelog needs", (type,)) for name, type in _COLUMNS.items()])
        records = df.select(*_COLUMNS).withColumn("ms", F.unix_millis("timestamp")).withColumn("key", F.expr(_KEY))
        versioned = self.store_type == "versioned"
        if versioned:
            records = self._without_late(records)
        # The latest version has the largest timestamp; ties are broken by the offset.
        order = F.struct("ms", "offset") if versioned else F.col("offset")
        latest = F.max_by(F.struct("offset", "timestamp", "ms", "headers", "value"), order).alias("latest")
        rows = records.groupBy("partition", "key").agg(latest).select("partition", "key", "latest.*")
        if self.retention is not None and not versioned:
            rows = self._without_expired(rows, records)
        rows = rows.where("value is not null")
        if self.store_type == "suppress":
            return rows.select("partition", "key", "offset", "headers", "value").mapInArrow(
                _parse_suppressed, _SUPPRESSED
            )
        rows = rows.withColumn("headers", F.coalesce("headers", F.array().cast(HEADERS)))
        format, fields = _STORED_FIELDS[self.store_type]
        kept = ["partition", "key", "offset", "timestamp", "ms", "headers", "value"]
        stored = encode_headers(rows, format, fields=fields, into="stored", keep=kept)
        stored_key, value = F.col("key"), F.col("stored")
        if versioned:
            stored_key = F.concat(F.unhex(F.lit("FF" * 8)), stored_key)
            value = F.concat(F.unhex(F.lpad(F.hex("ms"), 16, "0")), value)
        return stored.select(
            "partition",
            *self._key_columns(),
            "offset",
            "timestamp",
            "headers",
            F.col("value").alias("payload"),
            stored_key.alias("stored_key"),
            value.alias("stored"),
        )

    def _without_late(self, records: DataFrame) -> DataFrame:
        """Remove versions that arrived too late."""
        before = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
        observed = F.coalesce(F.max("ms").over(before), F.lit(-1))
        return records.withColumn("observed", observed).where(F.col("ms") >= F.col("observed") - self.retention)

    def _without_expired(self, rows: DataFrame, records: DataFrame) -> DataFrame:
        """Remove rows of expired segments: segments before the segment of the oldest retained time."""
        interval = self.segment_interval or segment_interval(require(self.retention, "the retention"))
        time = _time_in_key(max(_KEY_TIMES[self.store_type].values()))
        observed = records.groupBy("partition").agg(F.max(time).alias("observed"))
        joined = rows.withColumn("time", time).join(F.broadcast(observed), "partition")
        # `div` rounds towards zero, like the stores.
        return joined.where(f"time div {interval}L >= (observed - {self.retention}L) div {interval}L")

    def _key_columns(self) -> list[Column]:
        times = _KEY_TIMES[self.store_type]
        size = max(times.values(), default=0)
        key = F.expr(f"substring(key, 1, length(key) - {size})") if size else F.col("key")
        return [key.alias("key"), *(_time_in_key(start).alias(name) for name, start in times.items())]


def _parse_suppressed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parse the rows of the buffer of ``suppress()``."""
    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
            try:
                suppressed = read_suppressed(row["value"], headers)
            except DecodeError as error:
                position = f"partition={row['partition']}, offset={row['offset']}"
                raise copy_error(error, f"{error.message} in the row with {position}") from None
            fields = {name: row[name] for name in ("partition", "key", "offset")} | {"buffer_time": suppressed.time}
            for name in _VALUES:
                fields |= _fields(name, getattr(suppressed, name))
            rows.append(fields)
        yield pa.RecordBatch.from_pylist(rows, _SUPPRESSED_ARROW)


def _fields(name: str, buffered: Buffered) -> dict[str, object]:
    headers = None if buffered.headers is None else [{"key": key, "value": value} for key, value in buffered.headers]
    return {f"{name}_timestamp": buffered.timestamp, f"{name}_headers": headers, f"{name}_payload": buffered.value}


_VALUES = ("new", "old", "prior")
_SUPPRESSED = "partition int, key binary, offset bigint, buffer_time bigint, " + ", ".join(
    f"{name}_timestamp bigint, {name}_headers {HEADERS}, {name}_payload binary" for name in _VALUES
)
_SUPPRESSED_ARROW = pa.schema(
    [
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("offset", pa.int64()),
        ("buffer_time", pa.int64()),
        *(
            field
            for name in _VALUES
            for field in (
                (f"{name}_timestamp", pa.int64()),
                (f"{name}_headers", KAFKA_HEADERS),
                (f"{name}_payload", pa.binary()),
            )
        ),
    ]
)

# Kafka rejects a record without a key, which would otherwise become a row.
_KEY = (
    "case when key is not null then key else cast(raise_error(concat('the record at offset ', offset, ' of partition ', "
    "partition, ' has no key: is the topic a changelog? if so, leave such records out: "
    'where("key is not null")\')) as binary) end'
)
_BINARY_KEYS = "it reads parts of binary keys as text; run it on Spark"
_COLUMNS = {name: type for name, type in KAFKA_COLUMNS.items() if name != "topic"}
_TIMESTAMPED = ("streams-timestamped", {"timestamp": "ms", "payload": "value"})
_PLAIN = ("streams", {"payload": "value"})
_KEY_TIMES: dict[str, dict[str, int]] = {
    "key-value": {},
    "window": {"window_start": 12},
    "session": {"session_start": 8, "session_end": 16},
    "versioned": {},
    "suppress": {},
}
"""Times in a stored key, with the distance in bytes from the end of the key."""

_STORED_FIELDS = {"key-value": _TIMESTAMPED, "window": _TIMESTAMPED, "session": _PLAIN, "versioned": _PLAIN}


def _time_in_key(start: int) -> Column:
    """Return the integer ``start`` bytes before the end of a key; times in keys are not negative."""
    time_bytes = F.expr(f"substring(key, length(key) - {start} + 1, 8)")
    return F.conv(F.hex(time_bytes), 16, 10).cast("bigint")
