"""Work on the columns of a DataFrame: :func:`run_step` checks the DataFrame, and applies a :class:`Step`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from letterhead.conventions.schemas import DecodeBySchema
from letterhead.fields import check_distinct
from letterhead.operations import ColumnOperation, ExplodeBatches, Pack, Select, Where
from letterhead.spark.frame import (
    HEADERS,
    Input,
    check_no_collision,
    check_types,
    choose_kept_names,
    core_reads,
    fields_of,
    identifying_names,
    select_transferred,
    spark_reads,
    with_inputs,
    with_shapes,
)
from letterhead.spark.runner import Runner
from letterhead.spark.sail import is_sail
from letterhead.spark.schemas import Declared, ddl, header_lists
from letterhead.spark.selection import FilterByExpressions, SelectByExpressions

__all__ = ["ArrowStep", "Step", "control_column_count", "run_step"]


class Step(Protocol):
    """Step of a transform: computes the result from the prepared input columns."""

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the resulting DataFrame.

        ``fields`` are the columns of the caller's DataFrame. ``inputs`` are the columns to read, by their names in
        ``df``, to which columns for them may have been added.
        """


def run_step(
    df: DataFrame,
    inputs: Sequence[Input],
    step: Step,
    by_default: SelectByExpressions | FilterByExpressions | None = None,
) -> DataFrame:
    """Check the columns that a step reads, and return its result.

    Parameters
    ----------
    df : DataFrame
        A batch or a stream, of classic Spark or of Connect.
    inputs : sequence of Input
        The columns that are read.
    step : Step
        An operation that runs as ``mapInArrow``, or expressions of Spark SQL.
    by_default : SelectByExpressions or FilterByExpressions, optional
        A step by expressions of Spark, used instead of ``step`` if the column is a list of headers in its format.

    Raises
    ------
    ValueError
        If a column is missing, or the result would have two columns of the same name.
    TypeError
        If a column has the wrong type.
    """
    fields = fields_of(df)
    df, inputs = with_inputs(df, inputs)
    if by_default is not None and _has_lists(df, inputs[0].name, by_default.format):
        return by_default.apply(df, fields, tuple(inputs))
    if isinstance(step, ArrowStep):
        reads = partial(core_reads, drops_fields=isinstance(step.operation, Select | Where))
        inputs = with_shapes(fields_of(df), inputs, reads)
    elif isinstance(step, SelectByExpressions | FilterByExpressions):
        inputs = with_shapes(fields_of(df), inputs, spark_reads)
    check_types(fields_of(df), inputs)
    return step.apply(df, fields, tuple(inputs))


def _has_lists(df: DataFrame, name: str, format: str) -> bool:
    """Return whether the engine is Spark, and a column has the type of its Kafka source's headers and of the format's lists."""
    field = fields_of(df).get(name)
    if field is None or not ddl(field.dataType) == HEADERS == header_lists(format)[0]:
        return False
    return not is_sail(df.sparkSession)


@dataclass(frozen=True)
class ArrowStep:
    """Operation on columns that runs as ``mapInArrow`` and returns the kept columns, then the new ones.

    Spark matches the columns of ``mapInArrow`` by position, so the function and its declared schema are built together.

    Attributes
    ----------
    operation : ColumnOperation, DecodeBySchema or Pack
        The operation.
    result : Declared
        The columns that the operation returns.
    names : tuple of str
        Names of the new columns: the fields of ``result``, without a first field that only selects or repeats rows.
    keep : tuple of str or None
        The columns that are kept; by default all that are not read.
    identify : tuple of str
        The columns that an error quotes.
    null_fields : mapping of str to pyarrow.DataType, optional
        For an operation that reads a struct: its fields that are null in every row, and their types.
    where : Where, optional
        The condition of the operation, if it returns only rows for which it is true.
    """

    operation: ColumnOperation | DecodeBySchema | Pack
    result: Declared
    names: tuple[str, ...]
    keep: tuple[str, ...] | None
    identify: tuple[str, ...]
    null_fields: Mapping[str, pa.DataType] | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        check_distinct(self.names)

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns of a DataFrame, then the new ones."""
        if is_sail(df.sparkSession) and df.isStreaming:
            raise ValueError("Sail does not run Python on streams: pass a batch DataFrame")
        # Unlike other operations, a condition also keeps the column that it reads by default.
        keeps_all = isinstance(self.operation, Where) and self.keep is None
        kept = list(fields) if keeps_all else choose_kept_names(fields, self.keep, inputs)
        check_no_collision(df, kept, self.names)
        if not kept and not self.names:
            raise ValueError("no columns would be left: name columns in keep= or columns=")
        identify = identifying_names(fields, kept, self.identify)
        # A column that is both kept and read is transferred once.
        transferred = list(dict.fromkeys([*kept, *(column.name for column in inputs), *identify]))
        positions = {name: position for position, name in enumerate(transferred)}
        inputs_by_field: Mapping[str, int] = {column.field: positions[column.name] for column in inputs}
        runner = Runner(
            self.operation,
            tuple(kept),
            inputs_by_field["headers"] if self.null_fields is None else {**inputs_by_field, **self.null_fields},
            self.result.arrow,
            self.names,
            {name: positions[name] for name in identify},
            self.where,
        )
        columns = self.result.spark[control_column_count(self.operation) :]
        new = [StructField(name, column.dataType) for name, column in zip(self.names, columns, strict=True)]
        schema = StructType([*(fields[name] for name in kept), *new])
        return df.select(*select_transferred(transferred)).mapInArrow(runner, schema)


def control_column_count(operation: ColumnOperation | DecodeBySchema | Pack) -> int:
    """Return the number of leading result columns that only select or repeat rows, and are not part of the output."""
    return 1 if isinstance(operation, ExplodeBatches | Where) else 0
