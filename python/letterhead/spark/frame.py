"""What is checked on the driver before a job runs: that a frame has the columns, and that their types fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead.errors import unknown_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

__all__ = [
    "Input",
    "check_column",
    "check_no_collision",
    "check_types",
    "computed",
    "crossing_columns",
    "fields_of",
    "is_column",
    "kept_names",
    "named",
    "unused_name",
]


class Input(NamedTuple):
    """A column that is read.

    Attributes
    ----------
    name : str or Column
        Its name in the frame, or what computes it.
    purpose : str
        What it is needed for, for messages: ``"kafka is read from"``.
    types : tuple of str
        Types that fit, as :func:`letterhead.spark.schemas.spelled` spells them.
    hint : str
        What can be done where there is no such column, for messages.
    """

    name: Any
    purpose: str
    types: tuple[str, ...]
    hint: str = ""


def is_column(given: object) -> bool:
    """Return whether an argument is a Column, of classic Spark or of Connect."""
    # Up to Spark 3.5 a Column of Connect has a class of its own, which cannot be imported without Connect.
    return any(base.__name__ == "Column" and base.__module__.startswith("pyspark.") for base in type(given).__mro__)


def check_column(what: str, given: object) -> None:
    """Refuse what is neither a name nor a Column.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if not isinstance(given, str) and not is_column(given):
        raise TypeError(f"{what} must be str or a Column, not {given.__class__.__name__}")


def computed(df: DataFrame, inputs: Sequence[Input]) -> tuple[DataFrame, list[Input]]:
    """Return a frame in which every input is a column, and the inputs by their names in it.

    Parameters
    ----------
    df : DataFrame
        The frame.
    inputs : sequence of Input
        Columns by name, or as Columns: these are put behind the others, under names that no column has.
    """
    named_inputs = []
    for column in inputs:
        if not isinstance(column.name, str):
            name = unused_name("given_column", df.columns)
            df = df.withColumn(name, column.name)
            column = column._replace(name=name)
        named_inputs.append(column)
    return df, named_inputs


def fields_of(df: DataFrame) -> dict[str, StructField]:
    """Give the columns of a frame by name.

    Raises
    ------
    ValueError
        If two have the same name: none could be asked for.
    """
    fields = {field.name: field for field in df.schema.fields}
    if len(fields) < len(df.schema.fields):
        names = [field.name for field in df.schema.fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the frame has two columns {twice!r}: rename or drop one of them")
    return fields


def kept_names(fields: dict[str, StructField], keep: Sequence[str] | None, inputs: Iterable[Input]) -> list[str]:
    """Give the columns that come along: those asked for, or all that are not read."""
    if keep is None:
        read = {column.name for column in inputs if isinstance(column.name, str)}
        return [name for name in fields if name not in read]
    for name in keep:
        if name not in fields:
            raise unknown_name("column", name, fields)
    return list(keep)


def check_types(fields: dict[str, StructField], inputs: Iterable[Input]) -> None:
    """Check that the columns that are read are there and can be.

    Raises
    ------
    ValueError
        If the frame has no such column.
    TypeError
        If its type does not fit; the error names both.
    """
    from letterhead.spark.schemas import spelled

    for column in inputs:
        if column.name not in fields:
            error = unknown_name("column", column.name, fields)
            raise ValueError(f"{error}: {column.hint}") if column.hint else error
        given = spelled(fields[column.name].dataType)
        if given not in column.types:
            hint = _CASTS.get((given, column.types[0]), "")
            fits = " or ".join(column.types)
            raise TypeError(f"column {column.name!r} is {given}, and {column.purpose} {fits}{hint}")


def check_no_collision(df: DataFrame, kept: Iterable[str], made: Iterable[str]) -> None:
    """Check that no column would be there twice.

    Raises
    ------
    ValueError
        If one would.
    """
    kept = list(kept)
    for name in made:
        same = [other for other in kept if other == name or other.lower() == name.lower()]
        # Spark takes names for the same whatever their case, unless it was told not to.
        if same and (name in same or df.sparkSession.conf.get("spark.sql.caseSensitive", "false") != "true"):
            raise ValueError(
                f"column {name!r} would be there twice, kept from the frame as {same[0]!r} and made here: "
                "leave it out of keep=, or rename it before"
            )


def crossing_columns(names: Iterable[str]) -> list[Column]:
    """Give the columns of a frame by name, whatever characters are in it."""
    columns = []
    for place, name in enumerate(names):
        column = named(name)
        # `mapInArrow` of Spark 4.2 takes a dot in a name for a field of a struct.
        columns.append(column.alias(f"column_{place}") if "." in name or "`" in name else column)
    return columns


def named(name: str) -> Column:
    """Give a column by its whole name, whatever characters are in it."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def unused_name(name: str, fields: Iterable[str]) -> str:
    """Give a name that no column has, in any case."""
    taken = {field.lower() for field in fields}
    while name in taken:
        name += "_"
    return name


_CASTS = {
    ("timestamp", "bigint"): ": unix_millis makes it one",
    ("string", "binary"): ": a cast makes it one",
    ("int", "bigint"): ": a cast makes it one",
    ("int", "tinyint"): ": a cast makes it one",
    ("bigint", "decimal(20,0)"): ": a cast makes it one",
}
