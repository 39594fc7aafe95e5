"""Select headers by Spark's own expressions: :class:`SelectByExpressions`, the step of ``select_headers(engine="spark")``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StructField

from letterhead.fields import ColumnSpec
from letterhead.operations import ReadOptions
from letterhead.spark.frame import (
    Input,
    check_no_collision,
    headers_expression,
    identifying_names,
    kept_names,
    unused_name,
)
from letterhead.spark.header_column import HeaderLists, check_read_by_spark, check_reported_by_spark
from letterhead.spark.sail import not_on_sail
from letterhead.spark.schemas import header_lists, spelled
from letterhead.spark.sql_text import F, Sql, named, projections, quoted

__all__ = ["SelectByExpressions"]

_REMEDY = "omit engine=, or pass 'arrow'"


@dataclass(frozen=True)
class SelectByExpressions:
    """Select headers from a column of lists by projections, which filters on kept columns and partitions pass through.

    Attributes
    ----------
    format : str
        Name of the format.
    specs : tuple of ColumnSpec
        The headers.
    result : list of StructField
        The columns that are made: one of each header, and of errors.
    options : ReadOptions
        What to do with errors.
    keep : tuple of str or None
        The columns that are kept; by default all that are not read.
    """

    format: str
    specs: tuple[ColumnSpec, ...]
    result: list[StructField]
    options: ReadOptions
    keep: tuple[str, ...] | None

    def __post_init__(self) -> None:
        options = self.options
        if options != ReadOptions(errors=options.errors, error_column=options.error_column):
            raise ValueError(f"lenient=, strict_types= and limits= apply to binary columns: {_REMEDY}")
        for spec in self.specs:
            check_read_by_spark(spec.type, spec.split)
        if options.errors == "column":
            check_reported_by_spark(self.format)

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns of a frame, then the new ones."""
        not_on_sail(df.sparkSession, "engine='spark'", _REMEDY)
        [column] = inputs
        kept = kept_names(fields, self.keep, inputs)
        check_no_collision(df, kept, [field.name for field in self.result])
        row = _row(fields, identifying_names(fields, kept, ()))
        df, name = self._with_lists(df, column.name)
        lists = HeaderLists(named(name), self.format, self.options.errors, row)
        new = lists.columns(self.specs, self.result)
        columns = df.columns
        *steps, last = projections(new, columns)
        for step in steps:
            df = df.selectExpr(*_texts(columns, step))
        return df.selectExpr(*_texts(kept, last))

    def _with_lists(self, df: DataFrame, name: str) -> tuple[DataFrame, str]:
        """Return a frame with headers as lists, and the name of their column: headers of other shapes are converted."""
        type = df.schema[name].dataType
        if spelled(type) in header_lists(self.format):
            return df, name
        lists = unused_name("computed_column", df.columns)
        return df.withColumn(lists, functions.expr(headers_expression(name, type) or quoted(name))), lists


def _row(fields: Mapping[str, StructField], names: Iterable[str]) -> list[Sql]:
    """Return the parts of the text that identifies a row in an error, by columns with the position of its record."""
    values = []
    for name in names:
        type, text = spelled(fields[name].dataType), named(name).cast("string")
        if type == "string":
            # Nothing that could change the terminal.
            text = F.concat(F.lit("'"), F.regexp_replace(F.substring(text, 1, 40), "[^ -~]", "?"), F.lit("'"))
        if not type.startswith("timestamp"):
            values.append((F.lit(f"{name}="), F.coalesce(text, F.lit("null"))))
    starts = chain([" in the row with "], repeat(", "))
    return [part for start, value in zip(starts, values, strict=False) for part in (F.lit(start), *value)]


def _texts(kept: list[str], new: Mapping[str, str]) -> list[str]:
    """Return the items of a SELECT list: the kept columns, then the new ones."""
    return [*map(quoted, kept), *(f"{text} as {quoted(name)}" for name, text in new.items())]
