"""Select headers by Spark's own expressions: :class:`SelectByExpressions`, the step of ``select_headers(engine="spark")``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from letterhead.operations import ReadOptions, Select
from letterhead.spark import sql_text
from letterhead.spark.frame import Input, check_no_collision, kept_names, named
from letterhead.spark.header_column import check_read_by_spark, header_sql
from letterhead.spark.sail import not_on_sail

__all__ = ["SelectByExpressions"]

_REMEDY = "omit engine=, or pass 'arrow'"


@dataclass(frozen=True)
class SelectByExpressions:
    """Select headers from a column of lists, as a projection: filters on kept columns and partitions pass through it.

    Attributes
    ----------
    select : Select
        The columns and what to do with errors.
    keep : tuple of str or None
        The columns that are kept; by default all that are not read.
    """

    select: Select
    keep: tuple[str, ...] | None

    def __post_init__(self) -> None:
        options = self.select.options
        if options.errors == "column":
            raise ValueError(f"errors='column' is not read by Spark's expressions: {_REMEDY}")
        others = ReadOptions(errors=options.errors, error_column=options.error_column)
        if options != others:
            raise ValueError(f"lenient=, strict_types= and limits= apply to binary columns: {_REMEDY}")
        for spec in self.select.specs:
            check_read_by_spark(spec.type, spec.split)

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns of a frame, then the new ones."""
        not_on_sail(df.sparkSession, "engine='spark'", _REMEDY)
        [column] = inputs
        kept = kept_names(fields, self.keep, inputs)
        check_no_collision(df, kept, [spec.name for spec in self.select.specs])
        headers, errors = sql_text.named(column.name), self.select.options.errors
        new = [
            header_sql(headers, spec, errors, self.select.format).column().alias(spec.name)
            for spec in self.select.specs
        ]
        return df.select(*map(named, kept), *new)
