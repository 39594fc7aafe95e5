"""Compaction of messages in a frame: the last one of every key, by Spark's own expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from letterhead.errors import check_name, unknown_name
from letterhead.kip82.compaction import DELETE_RETENTION_MS, Keyless, delete_horizon
from letterhead.spark.frame import Input, check_types, fields_of, named, unused_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["compact"]

_PURPOSE = "compaction looks at"
_INPUTS = (
    Input("key", _PURPOSE, ("binary", "string")),
    Input("offset", _PURPOSE, ("bigint",)),
    Input("timestamp", _PURPOSE, ("bigint",)),
    Input("value", _PURPOSE, ("binary",)),
    Input("tombstone", _PURPOSE, ("boolean",)),
)


def compact(
    *,
    by: Sequence[str] = (),
    now: int | None = None,
    delete_retention_ms: int = DELETE_RETENTION_MS,
    keyless: Keyless = "keep",
) -> Callable[[DataFrame], DataFrame]:
    """Keep the last message of every key, and deletes for their time.

    What :meth:`letterhead.kip82.MessageLog.compact` keeps, by the same rule
    (:func:`letterhead.kip82.should_retain`), of a frame as :func:`messages` makes it of ``kip82-messages``,
    ``kip82-messages-int`` or ``kip82-messages-wrapper``. It is one window over the messages of each key: no Python runs on
    executors. It takes batch frames, not streaming ones, as the last message of a key is known only at the end.

    Parameters
    ----------
    by : sequence of str, optional
        Columns that say which log a message is of, such as topic and partition, where the frame has more than one.
    now : int, optional
        Milliseconds since 1970; by default the time when the frame is planned.
    delete_retention_ms : int, default 86,400,000
        How long a delete is kept, by its timestamp. One without a time, null or -1, stays.
    keyless : {"keep", "drop"}, default "keep"
        What becomes of messages without a key.

    Returns
    -------
    function from DataFrame to DataFrame
        For ``df.transform``. Columns stay as they are; rows may come in another order.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of these; when it is called, if the frame does not have the columns ``key``, ``offset``,
        ``timestamp`` (milliseconds), ``headers``, ``value`` and ``tombstone``, or those of ``by``.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> sent = fetched.transform(lhs.explode_batches("cell", "kip82-messages"))
    >>> sent.selectExpr("offset", "string(key) as key").collect()
    [Row(offset=0, key='k'), Row(offset=1, key='k'), Row(offset=2, key='k')]
    >>> sent.transform(lhs.compact()).selectExpr("offset", "string(key) as key").collect()
    [Row(offset=2, key='k')]
    >>> sent.transform(lhs.compact(by=["partition"])).select("partition", "offset").orderBy("partition").collect()
    [Row(partition=0, offset=1), Row(partition=1, offset=2)]
    """
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise TypeError(f"by must be a list of column names, not {by.__class__.__name__}")
    check_name("keyless value", keyless, ("keep", "drop"))
    delete_horizon(now, delete_retention_ms)  # what it refuses is refused here, and not when a frame comes

    def compacted(df: DataFrame) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        fields = fields_of(df)
        check_types(fields, _INPUTS)
        for name in ("headers", *by):
            if name not in fields:
                raise unknown_name("column", name, fields)
        horizon = F.lit(delete_horizon(now, delete_retention_ms)).cast("bigint")
        # Messages without a key replace none: each is a window of its own, so that they do not all meet in one task.
        alone = F.when(F.col("key").isNull(), F.col("offset"))
        same_key = Window.partitionBy(*map(named, by), F.col("key"), alone)
        is_last = F.col("offset") >= F.max("offset").over(same_key)
        keyed = F.coalesce(is_last, F.lit(True)) & ~F.coalesce(_expired(horizon), F.lit(False))
        retained = F.when(F.col("key").isNull(), F.lit(keyless == "keep")).otherwise(keyed)
        mark = unused_name("retained", fields)
        return df.select("*", retained.alias(mark)).where(F.col(mark)).drop(mark)

    return compacted


def _expired(horizon: Column) -> Column:
    """Say whether a message is a delete that was there long enough; null where that is not known."""
    from pyspark.sql import functions as F

    no_wrapper = F.col("value").isNull() & F.col("headers").isNull()
    delete = F.coalesce(F.col("tombstone"), F.lit(False)) | no_wrapper
    return delete & F.col("timestamp").between(F.lit(0), horizon)
