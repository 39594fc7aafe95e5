"""Make headers from columns: :func:`pack_headers`, the inverse of ``select_headers``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType, TimestampNTZType

from letterhead._names import unknown_name
from letterhead._table_batches import empty_batch
from letterhead.fields import Columns, columns_of
from letterhead.operations import Pack
from letterhead.operations.pack import HEADERS
from letterhead.spark.frame import Input, check_frame, check_names, check_str, is_column
from letterhead.spark.schemas import Declared, arrow_schema, spark_type
from letterhead.spark.steps import ArrowStep, run_step
from letterhead.spark.writing import GIVE_ZONE

__all__ = ["pack_headers"]


def pack_headers(
    df: DataFrame,
    columns: Columns | Sequence[str],
    format: str = "kafka",
    *,
    into: str = "headers",
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    nulls: Literal["keep", "skip"] = "skip",
    truncate: bool = False,
) -> DataFrame:
    """Make a column of headers from columns: the inverse of :func:`select_headers`.

    Spark's Kafka sink accepts the column with ``includeHeaders``; :func:`encode_headers` writes it as bytes.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    columns : mapping of str to type or Field, or sequence of str
        Type to write for each column, or a :func:`letterhead.field` with another key; headers are in the order of the
        columns. ``array<type>`` writes each element as a header. The type ``"headers"`` copies a column of lists of
        headers. With a sequence, headers have the types of the columns; times are ``timestamp_ms``.
    format : str, default "kafka"
        Name of the target format, which determines whether headers have types.
    into : str, default "headers"
        Name of the new column.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; by default all that are not read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    nulls : {"keep", "skip"}, default "skip"
        Whether a null becomes a header with a null value, or no header.
    truncate : bool, default False
        Whether to cut off digits of times and decimals that a type cannot hold: times are rounded toward the past,
        decimals toward zero. By default, such a value is an error.

    Returns
    -------
    DataFrame
        The kept columns, then the headers.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or if the DataFrame lacks a column, or a type cannot be written from its column.
        A ``timestamp_ntz`` is rejected, because it is not a point in time.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> types = {"tenant": "string", "retry": "int"}
    >>> typed = lhs.select_headers(orders, types, keep=["offset"])
    >>> packed = lhs.pack_headers(typed, types)
    >>> packed
    DataFrame[offset: bigint, headers: array<struct<key:string,value:binary>>]
    >>> packed.where(lhs.header("headers", "tenant", "string") == "acme").count()
    1390
    """
    check_frame(df, pack_headers)
    check_str("into", into)
    for name in columns if isinstance(columns, Sequence) and not isinstance(columns, str) else ():
        if is_column(name):
            raise TypeError("columns are named by str: add a Column to the DataFrame first, with withColumn")
    pack = Pack(format, columns, nulls, truncate)
    return run_step(df, (), _PackStep(pack, into, check_names("keep", keep), check_names("identify", identify) or ()))


@dataclass(frozen=True)
class _PackStep:
    """Step that packs columns; the DataFrame determines their types."""

    pack: Pack
    into: str
    keep: tuple[str, ...] | None
    identify: tuple[str, ...]

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns of a DataFrame, then the headers."""
        names = list(columns_of(self.pack.columns or {}))  # type: ignore[arg-type]
        for name in names:
            if name not in fields:
                raise unknown_name("column", name, fields)
        for name, type in columns_of(self.pack.columns or {}).items():  # type: ignore[arg-type]
            if isinstance(fields[name].dataType, TimestampNTZType) and type != HEADERS:
                raise TypeError(f"column {name!r} is timestamp_ntz, and headers have points in time: {GIVE_ZONE}")
        schema = arrow_schema(StructType([fields[name] for name in names]))
        # Columns of unsuitable types raise errors on the driver.
        type = self.pack(empty_batch(schema)).type
        result = Declared(type, [StructField(self.into, spark_type(type))])
        columns = tuple(Input(name, "headers are packed from", (), field=name) for name in names)
        step = ArrowStep(self.pack, result, (self.into,), self.keep, self.identify, {})
        return step.apply(df, fields, columns)
