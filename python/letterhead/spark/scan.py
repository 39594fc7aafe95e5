"""What headers a frame carries: every worker scans its part, and the parts add up."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from letterhead import _native
from letterhead.errors import check_name
from letterhead.spark.frame import Input, check_column, check_types, computed, crossing_columns, fields_of
from letterhead.spark.schemas import header_lists

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from letterhead.limits import Limits
    from letterhead.scan import Scan, Statistics

__all__ = ["scan_headers"]

_ADDED_UP = 8
"""Rows that reach the driver, each of them many partitions added up: a part may have some megabytes."""


def scan_headers(
    df: DataFrame,
    column: str | Column = "headers",
    format: str = "kafka",
    *,
    max_keys: int = 1000,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Scan:
    """Find out what headers the messages of a frame carry.

    It reads the frame once. What the workers hand on is of a fixed size for each key, however many rows there are.

    Parameters
    ----------
    df : DataFrame
        A frame that is no stream. Of a large topic, `df.sample(0.01)` is often enough.
    column : str or Column, default "headers"
        A binary column, or a column of headers as Spark's Kafka source has with ``includeHeaders``.
    format : str, default "kafka"
        Name of the format.
    max_keys : int, default 1000
        Of how many keys statistics are kept. Of more, the ones with the most headers stay, and the others are counted.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Scan
        As :func:`letterhead.arrow.scan` gives it. Messages in which something is wrong are counted.

    Raises
    ------
    TypeError, ValueError
        If the frame does not have such a column, or is a stream.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> found = lhs.scan_headers(orders)
    >>> found["amount_cents"].guesses[0].evidence
    ... # doctest: +ELLIPSIS
    'all 9,700 values are 8 bytes; as int64 516 to 4,999,974; as float64 all 9,700 are subnormal, ...'
    >>> print(found.code())
    ... # doctest: +ELLIPSIS
    import letterhead as lh
    from letterhead import spark as lhs
    <BLANKLINE>
    columns = {
        "traceparent": "string",  # strong; lhs.traceparent reads its parts
    ...
    """
    from letterhead.scan import Scan, Statistics

    rows = {row["name"]: row for row in _native.formats()}
    check_name("format", format, rows)
    lists = () if rows[format]["is_"] == "batch" else header_lists(format)
    check_column("column", column)
    df, inputs = computed(df, [Input(column, f"{format} is read from", ("binary", *lists))])
    check_types(fields_of(df), inputs)
    if df.isStreaming:
        raise ValueError(
            "a stream has no end, and a scan would have none: scan a batch of the same topic, or the frames that "
            "foreachBatch gives"
        )
    scanner = Scanner(format, max_keys, {"lenient": lenient, "strict_types": strict_types, "limits": limits})
    parts = df.select(*crossing_columns([inputs[0].name])).mapInArrow(scanner, "part binary")
    whole = Statistics(max_keys=max_keys)
    for row in parts.repartition(_ADDED_UP).mapInArrow(add_up, "part binary").collect():
        whole.merge(pickle.loads(row["part"]))
    return Scan(format, whole, column if isinstance(column, str) else inputs[0].name)


@dataclass(frozen=True)
class Scanner:
    """Scan the batches of a partition: what workers run.

    Attributes
    ----------
    format : str
        Name of the format.
    max_keys : int
        Of how many keys statistics are kept.
    options : dict
        Those of reading.
    """

    format: str
    max_keys: int
    options: dict[str, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give one row for a partition: its statistics."""
        from letterhead import arrow as lha

        cells = (batch.column(0) for batch in batches)
        yield _part(lha.scan(cells, self.format, max_keys=self.max_keys, **self.options).statistics)


def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give one row for many: what workers run on the rows of others."""
    parts = (pickle.loads(part) for batch in batches for part in batch.column(0).to_pylist())
    whole = next(parts, None)
    if whole is not None:
        for part in parts:
            whole.merge(part)
        yield _part(whole)


def _part(statistics: Statistics) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(statistics)], pa.binary())], ["part"])
