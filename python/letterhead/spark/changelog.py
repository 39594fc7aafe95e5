"""A changelog topic as the table of what its store holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

from letterhead.errors import check_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ChangelogTable", "changelog_table"]

StoreKind: TypeAlias = Literal["key-value", "window", "session", "versioned"]
Milliseconds: TypeAlias = "int | timedelta"


def changelog_table(
    store: StoreKind = "key-value",
    *,
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
) -> ChangelogTable:
    """Turn a changelog topic of a store that keeps headers into the table of the store's current values.

    The frame has the columns of Spark's Kafka source: ``partition``, ``offset``, ``timestamp``, ``key``, ``value`` and
    ``headers``. A key has the value of its last record in its partition, and no row if that is a tombstone.

    Parameters
    ----------
    store : {"key-value", "window", "session", "versioned"}, default "key-value"
        What kind of store it is. Of a versioned store the table has the latest version of each key: that of the largest
        timestamp.
    retention : int or timedelta, optional
        How long a window or session store keeps its rows, in milliseconds: what it has dropped is left out. By default
        nothing is. A versioned store has to say how long versions are kept: one that came later than that was dropped.
    segment_interval : int or timedelta, optional
        Length of a segment of a window or session store, in milliseconds: rows are dropped a segment at a time. By
        default that of the stores.

    Returns
    -------
    ChangelogTable
        A function from DataFrame to DataFrame, for ``df.transform``. What comes out has the columns

        ``partition``, ``key``
            the key without the times that stand behind it in windows and sessions;
        ``window_start``, or ``session_start`` and ``session_end``
            for windows and sessions, in milliseconds;
        ``offset``, ``timestamp``, ``headers``, ``payload``
            the record that the value is from; null headers are an empty list;
        ``stored_key``, ``stored``
            the bytes of the row, as the store has them: ``streams-timestamped`` in key-value and window stores, ``streams``
            in session stores; in versioned ones ``int64 timestamp ‖ streams``, and -1 as the segment before the key.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of these; when it is called, if the frame does not have such columns or is a stream.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> changelog = orders.select("partition", "offset", "timestamp", "key", "value", "headers")
    >>> table = changelog.transform(lhs.changelog_table())
    >>> table  # doctest: +ELLIPSIS
    DataFrame[partition: int, key: binary, offset: bigint, timestamp: timestamp, headers: array<...>, payload: binary, ...]
    >>> table.count() <= changelog.select("key").distinct().count()
    True
    """
    check_name("store", store, ("key-value", "window", "session", "versioned"))
    kept, interval = _milliseconds("retention", retention), _milliseconds("segment_interval", segment_interval)
    if store == "versioned" and kept is None:
        raise ValueError("a versioned store drops what comes too late: retention= says how late that is")
    if store == "key-value" and kept is not None:
        raise ValueError("a key-value store keeps its rows for good: retention= is for the others")
    if interval is not None and (store not in ("window", "session") or kept is None or interval < 1):
        raise ValueError("segment_interval= is for windows and sessions with retention=, and at least 1 ms")
    return ChangelogTable(store, kept, interval)


@dataclass(frozen=True)
class ChangelogTable:
    """A function from DataFrame to DataFrame; call it, or hand it to ``df.transform``.

    Attributes
    ----------
    store : {"key-value", "window", "session", "versioned"}
        What kind of store it is.
    retention, segment_interval : int or None
        How long rows are kept, and how many are dropped at a time, in milliseconds.
    """

    store: StoreKind
    retention: int | None
    segment_interval: int | None

    def __call__(self, df: DataFrame) -> DataFrame:
        """Plan the work on a frame.

        Parameters
        ----------
        df : DataFrame
            A changelog topic from its beginning.

        Returns
        -------
        DataFrame
            The table.
        """
        from pyspark.sql import functions as F

        from letterhead.spark.frame import Input, check_types, fields_of
        from letterhead.spark.transforms import encode_headers

        if df.isStreaming:
            raise ValueError(
                "the frame is a stream, in which a row that is deleted could not be taken back: "
                "read the topic as a batch, or use foreachBatch"
            )
        check_types(fields_of(df), [Input(name, "a changelog has", (type,)) for name, type in _COLUMNS.items()])
        records = df.select(*_COLUMNS).withColumn("ms", F.unix_millis("timestamp"))
        if self.store == "versioned":
            records = self._in_time(records)
        # Of versions, the latest is that of the largest timestamp, and of those the last.
        order = F.struct("ms", "offset") if self.store == "versioned" else F.col("offset")
        latest = F.max_by(F.struct("offset", "timestamp", "ms", "headers", "value"), order).alias("latest")
        rows = records.groupBy("partition", "key").agg(latest).select("partition", "key", "latest.*")
        if self.retention is not None and self.store != "versioned":
            rows = self._kept(rows, records)
        rows = rows.where("value is not null").withColumn("headers", F.coalesce("headers", F.expr(_NO_HEADERS)))
        format, fields = _STORED_FIELDS[self.store]
        kept = ["partition", "key", "offset", "timestamp", "ms", "headers", "value"]
        stored = rows.transform(encode_headers("headers", format, fields=fields, into="stored", keep=kept))
        return stored.select(
            "partition",
            *self._key_columns(),
            "offset",
            "timestamp",
            "headers",
            F.col("value").alias("payload"),
            self._stored_key().alias("stored_key"),
            self._stored().alias("stored"),
        )

    def _in_time(self, records: DataFrame) -> DataFrame:
        """Leave out versions that came too late."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        before = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
        observed = F.coalesce(F.max("ms").over(before), F.lit(-1))
        return records.withColumn("observed", observed).where(F.col("ms") >= F.col("observed") - self.retention)

    def _kept(self, rows: DataFrame, records: DataFrame) -> DataFrame:
        """Leave out rows whose segment the store has dropped: those before that of the oldest time that it keeps."""
        from pyspark.sql import functions as F

        from letterhead.storage.segments import segment_interval

        assert self.retention is not None
        interval = self.segment_interval or segment_interval(self.retention)
        time = _tail(16, 8) if self.store == "session" else _tail(12, 8)
        observed = records.groupBy("partition").agg(F.max(time).alias("observed"))
        joined = rows.withColumn("time", time).join(F.broadcast(observed), "partition")
        # `div` cuts towards zero, as the stores do.
        return joined.where(f"time div {interval}L >= (observed - {self.retention}L) div {interval}L")

    def _key_columns(self) -> list[Column]:
        from pyspark.sql import functions as F

        if self.store == "window":
            return [_without_tail(12).alias("key"), _tail(12, 8).alias("window_start")]
        if self.store == "session":
            return [
                _without_tail(16).alias("key"),
                _tail(8, 8).alias("session_start"),
                _tail(16, 8).alias("session_end"),
            ]
        return [F.col("key")]

    def _stored_key(self) -> Column:
        from pyspark.sql import functions as F

        return F.concat(F.unhex(F.lit("FF" * 8)), "key") if self.store == "versioned" else F.col("key")

    def _stored(self) -> Column:
        from pyspark.sql import functions as F

        if self.store != "versioned":
            return F.col("stored")
        return F.concat(F.unhex(F.lpad(F.hex("ms"), 16, "0")), "stored")


_COLUMNS = {
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
_NO_HEADERS = "cast(array() as array<struct<key:string,value:binary>>)"
_TIMESTAMPED = ("streams-timestamped", {"timestamp": "ms", "payload": "value"})
_PLAIN = ("streams", {"payload": "value"})
_STORED_FIELDS = {"key-value": _TIMESTAMPED, "window": _TIMESTAMPED, "session": _PLAIN, "versioned": _PLAIN}


def _tail(start: int, size: int) -> Column:
    """Read an integer that begins some bytes before the end of a key; times in keys are not negative."""
    from pyspark.sql import functions as F

    found = F.expr(f"substring(key, length(key) - {start} + 1, {size})")
    return F.conv(F.hex(found), 16, 10).cast("bigint")


def _without_tail(size: int) -> Column:
    from pyspark.sql import functions as F

    return F.expr(f"substring(key, 1, length(key) - {size})")


def _milliseconds(name: str, duration: object) -> int | None:
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration = duration // timedelta(milliseconds=1)
    if not isinstance(duration, int) or isinstance(duration, bool):
        raise TypeError(f"{name} must be a number of milliseconds or a timedelta, not {type(duration).__name__}")
    if duration < 0:
        raise ValueError(f"{name} cannot be negative")
    return duration
