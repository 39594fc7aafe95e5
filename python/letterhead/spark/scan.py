"""Report the headers of a DataFrame: :func:`scan_headers`. Workers scan partitions, and their statistics are merged."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from letterhead import arrow as lha
from letterhead._formats import format_table
from letterhead._names import check_name
from letterhead.limits import Limits
from letterhead.spark.frame import (
    Input,
    check_column,
    check_frame,
    check_types,
    core_reads,
    fields_of,
    select_transferred,
    with_inputs,
    with_shapes,
)
from letterhead.spark.schemas import header_lists

if TYPE_CHECKING:
    from letterhead.scan import Scan
    from letterhead.scan.statistics import Statistics

__all__ = ["scan_headers"]

_MERGED_ROWS = 8
"""Maximum number of rows of merged statistics sent to the driver. A row may have several megabytes."""


def scan_headers(
    df: DataFrame,
    format: str = "kafka",
    *,
    column: str | Column = "headers",
    max_keys: int = 1000,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Scan:
    """Report which headers the messages of a DataFrame have, with a suggested type for each.

    It reads the DataFrame once. The workers return statistics of a fixed size per key, regardless of the number of
    rows.

    Parameters
    ----------
    df : DataFrame
        A batch DataFrame. For a large topic, ``df.sample(0.01)`` is often enough.
    format : str, default "kafka"
        Name of the format.
    column : str or Column, default "headers"
        A column of headers as Spark's Kafka source returns it with ``includeHeaders``, or a binary column.
    max_keys : int, default 1000
        Maximum number of keys with statistics. If there are more, those with the fewest headers are only counted.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.

    Returns
    -------
    Scan
        As returned by :func:`letterhead.arrow.scan`. Malformed messages are counted.

    Raises
    ------
    TypeError, ValueError
        If the DataFrame lacks the column, the column has the wrong type, or the DataFrame is a stream.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> report = lhs.scan_headers(orders)
    >>> report["amount_cents"].guesses[0].evidence
    ... # doctest: +ELLIPSIS
    'all 9,700 values are 8 bytes; as int64 516 to 4,999,974; as float64 all 9,700 are subnormal, ...'
    >>> print(report.code())
    ... # doctest: +ELLIPSIS
    import letterhead as lh
    from letterhead import spark as lhs
    <BLANKLINE>
    columns = {
        "traceparent": "string",  # strong; lhs.traceparent reads its parts
    ...
    """
    check_frame(df, scan_headers)
    # The scan imports pyarrow.compute, which workers of other functions do not need.
    from letterhead.scan import Scan
    from letterhead.scan.statistics import Statistics

    formats = format_table()
    check_name("format", format, formats)
    lists = () if formats[format].is_ == "batch" else header_lists(format)
    check_column("column", column)
    df, inputs = with_inputs(df, [Input(column, f"{format} is read from", ("binary", *lists))])
    check_types(fields_of(df), with_shapes(fields_of(df), inputs, partial(core_reads, drops_fields=True)))
    if df.isStreaming:
        raise ValueError(
            "a stream has no end, and a scan would have none: scan a batch of the same topic, or each DataFrame of "
            "foreachBatch"
        )
    scanner = partial(
        _scan_partition, format=format, max_keys=max_keys, lenient=lenient, strict_types=strict_types, limits=limits
    )
    parts = df.select(*select_transferred([inputs[0].name])).mapInArrow(scanner, "part binary")
    merged = Statistics(max_keys=max_keys)
    for row in parts.repartition(_MERGED_ROWS).mapInArrow(_merge, "part binary").collect():
        merged.merge(pickle.loads(row["part"]))
    return Scan(format, merged, column if isinstance(column, str) else inputs[0].name)


def _scan_partition(
    batches: Iterator[pa.RecordBatch],
    format: str,
    max_keys: int,
    lenient: bool,
    strict_types: bool,
    limits: Limits | None,
) -> Iterator[pa.RecordBatch]:
    """Return the statistics of a partition as one row, on a worker."""
    columns = (batch.column(0) for batch in batches)
    scan = lha.scan(columns, format, max_keys=max_keys, lenient=lenient, strict_types=strict_types, limits=limits)
    yield _part(scan.statistics)


def _merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the statistics of many partitions into one row, on a worker."""
    parts = (pickle.loads(part) for batch in batches for part in batch.column(0).to_pylist())
    merged = next(parts, None)
    if merged is not None:
        for part in parts:
            merged.merge(part)
        yield _part(merged)


def _part(statistics: Statistics) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(statistics)], pa.binary())], ["part"])
