"""Decode the values of a frame with a decoder for each schema: :func:`decode_by_schema`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from letterhead import arrow as lha
from letterhead.arrow import SchemaDecoder
from letterhead.errors import check_name
from letterhead.fields import check_distinct
from letterhead.limits import Limits
from letterhead.spark.frame import (
    Input,
    check_column,
    check_names,
    check_no_collision,
    check_str,
    check_types,
    computed,
    crossing_columns,
    fields_of,
    identifying_names,
    kept_names,
)
from letterhead.spark.runner import Runner
from letterhead.spark.sail import is_sail
from letterhead.spark.schemas import header_lists, spark_type

__all__ = ["decode_by_schema"]


def decode_by_schema(
    column: str | Column,
    decode: SchemaDecoder,
    schema: str | StructType,
    *,
    headers: str | Column | None = None,
    format: str = "kafka",
    header: str = "__value_schema_id",
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    limits: Limits | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """Decode serialized values with a decoder that gets the values of one schema at a time.

    The id of the schema is in a header or in front of the value, as Confluent's serializers write it. Spark's own
    ``from_avro`` needs one schema for the whole column.

    Parameters
    ----------
    column : str or Column
        The values, or the keys: binary.
    decode : callable
        Gets a :class:`letterhead.arrow.SchemaGroup` and returns a row for each of its values, as in
        :func:`letterhead.arrow.decode_by_schema`. It runs on executors, for each Arrow batch and schema.
    schema : str or StructType
        The new columns, for example ``"id bigint, name string"``.
    headers : str or Column, optional
        Headers as Spark's Kafka source returns them with ``includeHeaders``, or in bytes of ``format``. A message without
        the header has its id in front of its value.
    format, header, limits
        As in :func:`letterhead.arrow.by_schema_id`.
    keep : sequence of str, optional
        Columns of the frame to keep, in front of the new ones; by default all but those read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a value that has no valid id, or that cannot be decoded: end the query; return null columns; or
        also describe the error in a last column.
    error_column : str, default "error"
        Name of that last column.

    Returns
    -------
    callable
        A function from DataFrame to DataFrame, for ``df.transform``; batch and streaming.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid; when called, if the frame lacks a column or a column has the wrong type.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> def decode(group):
    ...     return [{"schema": str(group.schema_id), "bytes": len(value)} for value in group.values.to_pylist()]
    >>> read = lhs.decode_by_schema("value", decode, "schema string, bytes int", headers="headers", keep=["offset"], errors="null")
    >>> orders.transform(read).where("offset = 1").first()
    Row(offset=1, schema='17', bytes=52)
    """
    check_column("column", column)
    inputs = [Input(column, "serialized values are", ("binary",), field="value")]
    if headers is not None:
        check_column("headers", headers)
        inputs.append(Input(headers, f"{format} is read from", ("binary", *header_lists(format))))
    check_str("header", header)
    check_name("errors value", errors, ("raise", "null", "column"))
    if not callable(decode):
        raise TypeError(f"decode must be a function, not {type(decode).__name__}")
    if not isinstance(schema, str | StructType):
        raise TypeError(f"schema must be str or StructType, not {type(schema).__name__}")
    options: dict[str, Any] = {
        "decode": decode, "header": header, "errors": errors, "error_column": error_column, "limits": limits
    }  # fmt: skip
    return _Decoding(
        format, options, tuple(inputs), check_names("keep", keep), check_names("identify", identify) or (), schema
    )


@dataclass(frozen=True)
class _Decoding:
    """A function from DataFrame to DataFrame, as :class:`letterhead.spark.transforms.Transform`."""

    format: str
    options: dict[str, Any]
    inputs: tuple[Input, ...]
    keep: tuple[str, ...] | None
    identify: tuple[str, ...]
    schema: str | StructType

    def __call__(self, df: DataFrame) -> DataFrame:
        columns = fields_of(df)
        if is_sail(df.sparkSession) and df.isStreaming:
            raise ValueError("Sail does not run Python on streams: pass a batch frame")
        df, inputs = computed(df, self.inputs)
        check_types(fields_of(df), inputs)
        kept = kept_names(columns, self.keep, self.inputs)
        # Spark parses text only in a session.
        given = df.sparkSession.createDataFrame([], self.schema).schema
        schema = StructType([StructField(field.name, field.dataType) for field in given.fields])
        check_distinct(schema.names, self.options["errors"], self.options["error_column"])
        arrow = to_arrow_schema(schema)
        # Rejects misspelt names before a job runs.
        nothing = pa.array([], pa.binary())
        options = {name: value for name, value in self.options.items() if name != "decode"}
        made = lha.decode_by_schema(nothing, _not_called, arrow, headers=nothing, format=self.format, **options).type
        if self.options["errors"] == "column":
            schema = schema.add(made[-1].name, spark_type(made[-1].type))
        check_no_collision(df, kept, schema.names)
        identify = identifying_names(columns, kept, self.identify)
        crossing = list(dict.fromkeys([*kept, *(column.name for column in inputs), *identify]))
        places = {column.field: crossing.index(column.name) for column in inputs}
        runner = Runner(
            "decode_by_schema", self.format, {**self.options, "schema": arrow}, tuple(kept), places, made,
            tuple(schema.names), {name: crossing.index(name) for name in identify},
        )  # fmt: skip
        result = StructType([*(columns[name] for name in kept), *schema.fields])
        return df.select(*crossing_columns(crossing)).mapInArrow(runner, result)


def _not_called(group: object) -> Any:
    raise AssertionError("no rows were given")
