"""Read headers by Spark's own expressions: :class:`SelectByExpressions` and :class:`FilterByExpressions`.

They are the steps of ``select_headers(engine="spark")`` and ``where_headers(engine="spark")``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StructField

from letterhead.fields import ColumnSpec
from letterhead.operations import DecodeOptions
from letterhead.operations.remedies import KEEP_ROWS
from letterhead.spark.conditions import HeaderCondition, check_tested_by_spark
from letterhead.spark.engine import OTHER_ENGINE, NotReadBySparkError, check_plain_options
from letterhead.spark.frame import (
    Input,
    check_no_collision,
    choose_kept_names,
    fields_of,
    find_unused_name,
    headers_expression,
    identifying_names,
)
from letterhead.spark.header_column import HeaderLists, check_read_by_spark, check_reported_by_spark
from letterhead.spark.sail import not_on_sail
from letterhead.spark.schemas import ddl, header_lists
from letterhead.spark.sql_text import F, Sql, column_by_name, projections, quote
from letterhead.spark.text_forms import form_parser
from letterhead.types import split_type
from letterhead.where.program import Filter

__all__ = ["FilterByExpressions", "SelectByExpressions", "reads_fast"]


@dataclass(frozen=True)
class SelectByExpressions:
    """Selects headers from a column of lists by projections; Spark pushes filters on kept columns and partitions through them.

    Attributes
    ----------
    format : str
        Name of the format.
    specs : tuple of ColumnSpec
        The headers.
    result : list of StructField
        The new columns: one for each header, and one for errors.
    options : DecodeOptions
        What to do with errors.
    keep : tuple of str or None
        The columns that are kept; by default all that are not read.
    where : FilterByExpressions, optional
        The condition that selects rows.
    """

    format: str
    specs: tuple[ColumnSpec, ...]
    result: list[StructField]
    options: DecodeOptions
    keep: tuple[str, ...] | None
    where: FilterByExpressions | None = None

    def __post_init__(self) -> None:
        check_plain_options(self.options)
        if self.where is not None and self.options.errors == "column":
            raise NotReadBySparkError(
                f"where= with errors='column' is not supported by Spark's expressions: {OTHER_ENGINE}"
            )
        for spec in self.specs:
            check_read_by_spark(spec.type, spec.split)
        if self.options.errors == "column":
            check_reported_by_spark(self.format)

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns of a DataFrame, then the new ones."""
        not_on_sail(df.sparkSession, "engine='spark'", OTHER_ENGINE)
        [column] = inputs
        kept = choose_kept_names(fields, self.keep, inputs)
        check_no_collision(df, kept, [field.name for field in self.result])
        if self.where is not None:
            read = fields_of(df)
            df = replace(self.where, keep=tuple(dict.fromkeys([*kept, column.name]))).apply(df, read, inputs)
        row = _row(fields, identifying_names(fields, kept, ()))
        df, name = _with_lists(df, column.name, self.format)
        lists = HeaderLists(column_by_name(name), self.format, self.options.errors, row)
        new = lists.columns(self.specs, self.result)
        return _project(df, kept, new)


@dataclass(frozen=True)
class FilterByExpressions:
    """Keeps rows by a condition on their headers; other conditions on columns and partitions are pushed down.

    Attributes
    ----------
    format : str
        Name of the format.
    filter : Filter
        The condition.
    options : DecodeOptions
        What to do with errors.
    error_type : str
        The type of a column of errors.
    keep : tuple of str or None
        The columns that are kept; by default all.
    """

    format: str
    filter: Filter
    options: DecodeOptions
    error_type: str
    keep: tuple[str, ...] | None

    def __post_init__(self) -> None:
        check_plain_options(self.options)
        check_reported_by_spark(self.format)
        check_tested_by_spark(self.filter)

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns of the rows, then their errors."""
        not_on_sail(df.sparkSession, "engine='spark'", OTHER_ENGINE)
        [column] = inputs
        kept = list(fields) if self.keep is None else choose_kept_names(fields, self.keep, inputs)
        errors = self.options.errors
        new = [self.options.error_column] if errors == "column" else []
        check_no_collision(df, kept, new)
        if not kept and not new:
            raise ValueError("no columns would be left: name columns in keep=")
        df, name = _with_lists(df, column.name, self.format)
        lists = HeaderLists(column_by_name(name), self.format, "null" if errors == "null" else "column", is_tested=True)
        condition = HeaderCondition(self.filter, lists)
        is_selected, results = condition.truth, {}
        if errors == "column":
            is_selected, results[new[0]] = condition.selected_with_errors(self.error_type)
        elif errors == "raise":
            is_selected = condition.raising(self.error_type, _row(fields, identifying_names(fields, kept, ())))
        selected = find_unused_name("selected", [*df.columns, *new])
        # Spark inlines the expressions of columns into a filter, once for each use, unless a generator returns them.
        rows = _project(df, kept, {**results, selected: F.explode(F.array(is_selected))})
        return rows.where(quote(selected)).select(*map(quote, [*kept, *new]))


def reads_fast(specs: Sequence[ColumnSpec]) -> bool:
    """Return whether expressions read headers at least as fast as Arrow."""
    return len(specs) <= _MAX_FAST and all(
        " | " not in spec.type and not split_type(spec.type)[2] and form_parser(spec.type) is None for spec in specs
    )


_MAX_FAST = 6
"""Number of columns above which Spark's generated methods are too large for Java's compiler."""


def _with_lists(df: DataFrame, name: str, format: str) -> tuple[DataFrame, str]:
    """Return a DataFrame with headers as lists, converted from other shapes, and the name of their column."""
    type = df.schema[name].dataType
    if ddl(type) in header_lists(format):
        return df, name
    lists = find_unused_name("computed_column", df.columns)
    return df.withColumn(lists, functions.expr(headers_expression(name, type) or quote(name))), lists


def _project(df: DataFrame, kept: list[str], new: Mapping[str, Sql]) -> DataFrame:
    """Return the kept columns of a DataFrame, then new ones, by successive projections."""
    columns = df.columns
    *steps, last = projections(new, columns)
    for step in steps:
        df = df.selectExpr(*_texts(columns, step))
    return df.selectExpr(*_texts(kept, last))


def _row(fields: Mapping[str, StructField], names: Iterable[str]) -> list[Sql]:
    """Return the suffix of error messages: columns with the position of the record, and the remedy."""
    values = []
    for name in names:
        type, text = ddl(fields[name].dataType), column_by_name(name).cast("string")
        if type == "string":
            # Only printable ASCII, so that nothing can control the terminal.
            text = F.concat(F.lit("'"), F.regexp_replace(F.substring(text, 1, 40), "[^ -~]", "?"), F.lit("'"))
        if not type.startswith("timestamp"):
            values.append((F.lit(f"{name}="), F.coalesce(text, F.lit("null"))))
    starts = chain([" in the row with "], repeat(", "))
    parts = [part for start, value in zip(starts, values, strict=False) for part in (F.lit(start), *value)]
    return [*parts, F.lit(f": {KEEP_ROWS}")]


def _texts(kept: list[str], new: Mapping[str, str]) -> list[str]:
    """Return the items of a SELECT list: the kept columns, then the new ones. Unchanged names need no alias."""
    items = (name if text == name else f"{text} as {quote(name)}" for name, text in new.items())
    return [*map(quote, kept), *items]
