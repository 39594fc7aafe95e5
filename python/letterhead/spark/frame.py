"""Validate a DataFrame on the driver, before a job runs: its columns, their types, and the names of new columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from letterhead._arrow_types import HEADER_FIELDS, has_headers
from letterhead._names import first_repeated, unknown_name
from letterhead.spark.schemas import arrow_schema, ddl, same_but_for_case
from letterhead.spark.sql_text import quote

__all__ = [
    "HEADERS",
    "KAFKA_COLUMNS",
    "VALUES_AS_BYTES",
    "Input",
    "check_column",
    "check_frame",
    "check_names",
    "check_no_collision",
    "check_replaced",
    "check_str",
    "check_types",
    "core_reads",
    "fields_of",
    "headers_expression",
    "identifying_names",
    "is_column",
    "choose_kept_names",
    "name_of_result",
    "quoted_column",
    "spark_reads",
    "select_transferred",
    "find_unused_name",
    "with_inputs",
    "with_shapes",
]


HEADERS = "array<struct<key:string,value:binary>>"
"""Type of the headers of Spark's Kafka source."""

KAFKA_COLUMNS = {
    "topic": "string", "partition": "int", "offset": "bigint", "timestamp": "timestamp", "key": "binary",
    "value": "binary", "headers": HEADERS,
}  # fmt: skip
"""Columns of Spark's Kafka source that describe records, and their types."""


class Input(NamedTuple):
    """Column to read: its name or a Column, and its accepted types, as :func:`letterhead.spark.schemas.ddl` writes them.

    Error messages contain its purpose (``"kafka is read from"``), and the hint if the column is missing. ``field`` is
    the field of the message that the column contains.
    """

    name: Any
    purpose: str
    types: tuple[str, ...]
    hint: str = ""
    field: str = "headers"


def is_column(argument: object) -> bool:
    """Return whether an argument is a Column, of classic Spark or of Connect."""
    # Up to Spark 3.5, Columns of Connect have their own class, which cannot be imported without Connect.
    return any(base.__name__ == "Column" and base.__module__.startswith("pyspark.") for base in type(argument).__mro__)


def check_str(name: str, argument: object) -> None:
    """Raise ``TypeError`` unless an argument is a str."""
    if not isinstance(argument, str):
        raise TypeError(f"{name} must be str, not {argument.__class__.__name__}")


def check_frame(argument: object, function: Callable[..., object]) -> None:
    """Raise ``TypeError`` unless the first argument of a function is a DataFrame."""
    # Up to Spark 3.5, DataFrames of Connect have their own class.
    if not hasattr(argument, "mapInArrow"):
        name = function.__name__
        raise TypeError(
            f"df must be a DataFrame, not {argument.__class__.__name__}: "
            f"lhs.{name}(df, ...) takes it first, as does df.transform(lhs.{name}, ...)"
        )


def check_column(name: str, argument: object) -> None:
    """Raise ``TypeError`` unless an argument is a column name or a Column."""
    if not isinstance(argument, str) and not is_column(argument):
        remedy = _NAMES_COLUMN if hasattr(argument, "mapInArrow") else ""
        raise TypeError(f"{name} must be str or a Column, not {argument.__class__.__name__}{remedy}")


_NAMES_COLUMN = ': name its column, as in df.select(lhs.header("headers", key, type))'


def check_names(parameter: str, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return distinct column names as a tuple; raise ``TypeError`` or ``ValueError`` for other arguments."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"{parameter} must be a list of column names, not {names.__class__.__name__}")
    for name in names:
        check_str(f"a column of {parameter}", name)
    if (repeated := first_repeated(names)) is not None:
        raise ValueError(f"{parameter} names {repeated!r} twice")
    return tuple(names)


def check_replaced(df: DataFrame, columns: Iterable[str], name: str) -> None:
    """Raise ``ValueError`` if the name of a new column differs from the name of another column only by case.

    A column of exactly this name is replaced.
    """
    columns = [*columns]
    if name not in columns:
        check_no_collision(df, [], [*columns, name])


def name_of_result(column: str | Column, into: str | None) -> str:
    """Return the name of the new column: ``into``, or by default the name of the column that is read."""
    check_column("column", column)
    if into is None and not isinstance(column, str):
        raise ValueError("into= names the column that is made, as a Column has no name to be replaced")
    name: Any = column if into is None else into
    check_str("into", name)
    return name  # type: ignore[no-any-return]


def with_inputs(df: DataFrame, inputs: Iterable[Input]) -> tuple[DataFrame, list[Input]]:
    """Return a DataFrame with every input as a column, and the inputs with their column names.

    An input that is a Column, or a field of a struct such as ``"redpanda.headers"``, is appended to the DataFrame under
    an unused name.
    """
    named_inputs = []
    for column in inputs:
        if not isinstance(column.name, str) or _is_nested(df, column.name):
            name = find_unused_name("computed_column", df.columns)
            df = df.withColumn(name, F.col(column.name) if isinstance(column.name, str) else column.name)
            column = column._replace(name=name)
        named_inputs.append(column)
    return df, named_inputs


def _is_nested(df: DataFrame, name: str) -> bool:
    """Return whether a name is a path to a field of a struct rather than a column."""
    if "." not in name or name in df.columns:
        return False
    type: Any = df.schema
    for part in name.split("."):
        if not isinstance(type, StructType) or part not in type.names:
            return False
        type = type[part].dataType
    return True


def fields_of(df: DataFrame) -> dict[str, StructField]:
    """Return the columns of a DataFrame by name; raise ``ValueError`` if two have the same name."""
    fields = {field.name: field for field in df.schema.fields}
    if (repeated := first_repeated(field.name for field in df.schema.fields)) is not None:
        raise ValueError(f"the DataFrame has two columns {repeated!r}: rename or drop one of them")
    return fields


def choose_kept_names(
    fields: Mapping[str, StructField], keep: Sequence[str] | None, inputs: Iterable[Input] = ()
) -> list[str]:
    """Return the columns to keep: requested columns, which must exist, or by default all columns that are not read."""
    if keep is None:
        input_names = {column.name for column in inputs if isinstance(column.name, str)}
        return [name for name in fields if name not in input_names]
    for name in keep:
        if name not in fields:
            raise unknown_name("column", name, fields)
    return list(keep)


def identifying_names(fields: Mapping[str, StructField], kept: Sequence[str], identify: Sequence[str]) -> list[str]:
    """Return the columns that errors quote: the record's position if kept, and columns that the caller names."""
    for name in identify:
        if name not in fields:
            raise unknown_name("column", name, fields)
    # A column of another type has such a name only by chance.
    positions = [name for name in kept if ddl(fields[name].dataType) in _POSITION_TYPES.get(name, ())]
    return list(dict.fromkeys([*positions, *identify]))


def check_types(fields: Mapping[str, StructField], inputs: Iterable[Input]) -> None:
    """Raise ``ValueError`` if a column to read is missing, and ``TypeError`` if it has the wrong type."""
    for column in inputs:
        if column.name not in fields:
            error = unknown_name("column", column.name, fields)
            raise ValueError(f"{error}: {column.hint}") if column.hint else error
        field = fields[column.name]
        type = ddl(field.dataType)
        if type not in column.types:
            expression = headers_expression(column.name, field.dataType) if HEADERS in column.types else None
            hint = (
                _TYPE_HINTS.get((type, column.types[0]), "") if expression is None else f": {expression} makes it one"
            )
            fits = " or ".join(column.types)
            raise TypeError(f"column {column.name!r} is {type}, and {column.purpose} {fits}{hint}")


def with_shapes(
    fields: Mapping[str, StructField], inputs: Iterable[Input], reads: Callable[[StructField], bool]
) -> list[Input]:
    """Return inputs that also accept the header shapes of ``reads``: :func:`core_reads`, or :func:`spark_reads`."""
    shaped = []
    for column in inputs:
        field = fields.get(column.name)
        if field is not None and HEADERS in column.types and ddl(field.dataType) not in column.types and reads(field):
            column = column._replace(types=(*column.types, ddl(field.dataType)))
        shaped.append(column)
    return shaped


def core_reads(field: StructField, *, drops_fields: bool) -> bool:
    """Return whether the core reads a column as headers; with ``drops_fields``, they may have more fields."""
    [arrow] = arrow_schema(StructType([field]))
    return has_headers(arrow.type, drops_fields=drops_fields)


def spark_reads(field: StructField) -> bool:
    """Return whether Spark's expressions can convert a column to lists of headers."""
    return headers_expression(field.name, field.dataType) is not None


def headers_expression(name: str, type: DataType) -> str | None:
    """Return an SQL expression that converts a header column to lists of key and bytes; None for other shapes."""
    column = ".".join(f"`{part}`" if not part.isidentifier() else part for part in name.split("."))
    if isinstance(type, MapType):
        column, element = f"map_entries({column})", {"key": type.keyType, "value": type.valueType}
    elif isinstance(type, ArrayType) and isinstance(type.elementType, StructType):
        element = {field.name: field.dataType for field in type.elementType.fields}
    else:
        return None
    names = next((pair for pair in HEADER_FIELDS if {*pair} <= element.keys()), None)
    # The expression keeps only the key and the value.
    if names is None or {*names} != element.keys():
        return None
    parts = []
    for part, source, wanted in zip(("key", "value"), names, ("string", "binary"), strict=True):
        if ddl(element[source]) not in ("string", "binary"):
            return None
        value = f"h.{source}"
        if ddl(element[source]) != wanted:
            # A cast from bytes to text does not reject bytes that are not UTF-8.
            value = f"cast({value} as {wanted})" if wanted == "binary" else f"validate_utf8(cast({value} as string))"
        parts.append(f"{value} as {part}")
    if isinstance(type, MapType) and parts == ["h.key as key", "h.value as value"]:
        return column
    return f"transform({column}, h -> struct({', '.join(parts)}))"


def check_no_collision(df: DataFrame, kept: Iterable[str], new: Iterable[str]) -> None:
    """Raise ``ValueError`` if Spark could not distinguish a new column from a kept column or another new column."""
    # Spark ignores the case of names unless it is configured otherwise.
    kept = list(kept)
    taken = {name.lower(): name for name in kept}
    for name in new:
        earlier = taken.setdefault(name.lower(), name)
        if earlier not in kept and earlier == name:
            continue
        if earlier == name or not _is_case_sensitive(df):
            if earlier in kept:
                raise ValueError(
                    f"column {name!r} would be there twice, kept from the DataFrame as {earlier!r} and made here: "
                    "leave it out of keep=, or rename it before"
                )
            raise same_but_for_case(earlier, name)


def _is_case_sensitive(df: DataFrame) -> bool:
    return bool(df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true")


def select_transferred(names: Iterable[str]) -> list[Column]:
    """Return the columns to transfer to Python; their names may contain any characters."""
    columns = []
    for position, name in enumerate(names):
        column = quoted_column(name)
        # `mapInArrow` of Spark 4.2 reads a dot in a name as the field of a struct.
        columns.append(column.alias(f"column_{position}") if "." in name or "`" in name else column)
    return columns


def quoted_column(name: str) -> Column:
    """Return a column by its complete name, which may contain any characters."""
    return F.col(quote(name))


def find_unused_name(name: str, fields: Iterable[str]) -> str:
    """Return a name that no column has, ignoring case."""
    taken = {field.lower() for field in fields}
    while name in taken:
        name += "_"
    return name


_POSITION_TYPES = {
    "topic": ("string",), "partition": ("int", "bigint"), "offset": ("int", "bigint"),
    "timestamp": ("timestamp", "timestamp_ntz", "bigint"),
}  # fmt: skip
"""Columns with the position of a record in its topic, and their types."""

VALUES_AS_BYTES = "transform({}, h -> struct(h.key as key, cast(h.value as binary) as value))"
"""SQL expression that converts text values of headers to bytes."""

_TYPE_HINTS = {
    ("timestamp", "bigint"): ": unix_millis makes it one",
    ("string", "binary"): ": a cast makes it one",
    (HEADERS, "binary"): ": these are headers already, which encode_headers writes",
    ("int", "bigint"): ": a cast makes it one",
    ("int", "tinyint"): ": a cast makes it one",
    ("bigint", "decimal(20,0)"): ": a cast makes it one",
}
