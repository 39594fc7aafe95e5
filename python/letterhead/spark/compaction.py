"""Compact the messages of a DataFrame with Spark's own expressions: :func:`compact`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from letterhead._names import check_name
from letterhead.kip82.compaction import DELETE_RETENTION_MS, Keyless, delete_horizon
from letterhead.spark.frame import Input, check_frame, check_names, choose_kept_names, find_unused_name, quoted_column
from letterhead.spark.steps import run_step

__all__ = ["compact"]

_TYPES = {
    "key": ("binary", "string"), "offset": ("bigint",), "timestamp": ("bigint",), "value": ("binary",),
    "tombstone": ("boolean",),
}  # fmt: skip
"""Columns that compaction reads, and their accepted types."""


def compact(
    df: DataFrame,
    *,
    by: Sequence[str] = (),
    now: int | None = None,
    delete_retention_ms: int = DELETE_RETENTION_MS,
    keyless: Keyless = "keep",
) -> DataFrame:
    """Keep the last message of every key, and deletes for their retention time.

    The rule is the same as for :meth:`letterhead.kip82.MessageLog.compact`
    (``letterhead.kip82.compaction.should_retain``). No Python runs on executors.

    Parameters
    ----------
    df : DataFrame
        Messages, as :func:`explode_batches` returns them for ``kip82-messages``, ``kip82-messages-int`` or
        ``kip82-messages-wrapper``. It must not be a stream, because the last message of a key is known only at the end.
    by : sequence of str, optional
        Columns that identify the log of a message, such as topic and partition, if the DataFrame has several.
    now : int, optional
        Milliseconds since 1970; by default the time when the DataFrame is planned.
    delete_retention_ms : int, default 86400000
        Milliseconds for which a delete is kept after its timestamp. Deletes with timestamp null or -1 are always kept.
    keyless : {"keep", "drop"}, default "keep"
        What to do with messages without a key.

    Returns
    -------
    DataFrame
        The kept messages, with all columns. The order of rows may change.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or if the DataFrame lacks one of the columns ``key``, ``offset``,
        ``timestamp`` (milliseconds), ``headers``, ``value`` and ``tombstone``, or a column of ``by``.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> sent = lhs.explode_batches(fetched, "kip82-messages", column="batch")
    >>> sent.selectExpr("offset", "string(key) as key").collect()
    [Row(offset=0, key='k'), Row(offset=1, key='k'), Row(offset=2, key='k')]
    >>> lhs.compact(sent).selectExpr("offset", "string(key) as key").collect()
    [Row(offset=2, key='k')]
    >>> lhs.compact(sent, by=["partition"]).select("partition", "offset").orderBy("partition").collect()
    [Row(partition=0, offset=1), Row(partition=1, offset=2)]
    """
    check_frame(df, compact)
    by = check_names("by", by) or ()
    check_name("keyless value", keyless, ("keep", "drop"))
    delete_horizon(now, delete_retention_ms)  # rejects bad arguments

    inputs = tuple(Input(name, "compaction reads", types, field=name) for name, types in _TYPES.items())
    return run_step(df, inputs, _CompactionStep(by, now, delete_retention_ms, keyless))


@dataclass(frozen=True)
class _CompactionStep:
    """Compaction by expressions of Spark SQL, with the arguments of :func:`compact`."""

    by: tuple[str, ...]
    now: int | None
    delete_retention_ms: int
    keyless: Keyless

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the rows that compaction keeps."""
        choose_kept_names(fields, ("headers", *self.by))
        horizon = F.lit(delete_horizon(self.now, self.delete_retention_ms)).cast("bigint")
        # Each message without a key gets its own window; otherwise one task would process them all.
        alone = F.when(F.col("key").isNull(), F.col("offset"))
        same_key = Window.partitionBy(*map(quoted_column, self.by), F.col("key"), alone)
        is_last = F.col("offset") >= F.max("offset").over(same_key)
        no_wrapper = F.col("value").isNull() & F.col("headers").isNull()
        delete = F.coalesce(F.col("tombstone"), F.lit(False)) | no_wrapper
        expired = delete & F.col("timestamp").between(F.lit(0), horizon)
        keyed = F.coalesce(is_last, F.lit(True)) & ~F.coalesce(expired, F.lit(False))
        retained = F.when(F.col("key").isNull(), F.lit(self.keyless == "keep")).otherwise(keyed)
        mark = find_unused_name("retained", fields)
        return df.select("*", retained.alias(mark)).where(F.col(mark)).drop(mark)
