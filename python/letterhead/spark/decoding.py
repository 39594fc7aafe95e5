"""Decode the values of a DataFrame with a decoder for each schema: :func:`decode_by_schema`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructField, StructType

from letterhead._arrow_types import OnError
from letterhead.arrow import SchemaDecoder
from letterhead.conventions.schema_group import ColumnsDecoder, known_columns
from letterhead.conventions.schemas import DecodeBySchema
from letterhead.fields import Field
from letterhead.limits import Limits
from letterhead.operations import DecodeOptions, Select
from letterhead.spark.frame import Input, check_column, check_frame, check_names, check_str
from letterhead.spark.schemas import Declared, arrow_schema, header_lists, spark_schema, spark_type
from letterhead.spark.steps import ArrowStep, run_step

__all__ = ["decode_by_schema"]


def decode_by_schema(
    df: DataFrame,
    decode: SchemaDecoder | ColumnsDecoder,
    schema: str | StructType | None = None,
    *,
    column: str | Column = "value",
    headers: str | Column | None = None,
    format: str = "kafka",
    header: str = "__value_schema_id",
    id_bytes: Literal[4, 8] | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: OnError = "raise",
    error_column: str = "error",
    limits: Limits | None = None,
) -> DataFrame:
    """Decode serialized values with a decoder that gets the values of one schema at a time.

    The id of the schema is in a header or before the value, as Confluent's and Apicurio's serializers write it. Spark's own
    ``from_avro`` needs one schema for the whole column.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    decode : callable or AvroDecoder
        A :class:`letterhead.schemas.AvroDecoder` with a schema or a subject, or a function that receives a
        :class:`letterhead.arrow.SchemaGroup` and returns a row for each of its values, as in
        :func:`letterhead.arrow.decode_by_schema`. It runs on executors, for each Arrow batch and schema.
    schema : str or StructType, optional
        The new columns, for example ``"id bigint, name string"``. An ``AvroDecoder`` determines its columns itself; the
        driver fetches the schema of its subject when the function is called.
    column : str or Column, default "value"
        The values, or the keys: binary.
    headers : str or Column, optional
        Headers as Spark's Kafka source returns them with ``includeHeaders``, or in bytes of ``format``. A message without
        the header has its id before its value.
    format : str, default "kafka"
        Name of the format of the headers.
    header : str, default "__value_schema_id"
        Header with the id, as in :func:`letterhead.arrow.by_schema_id`.
    id_bytes : {4, 8}, optional
        Size of an id before a value, as in :func:`letterhead.arrow.by_schema_id`.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; by default all that are not read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a value that has no valid id, or that cannot be decoded: end the query; return null columns; or
        also describe the error in a last column.
    error_column : str, default "error"
        Name of the error column.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

    Returns
    -------
    DataFrame
        The kept columns, then the decoded ones.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, the DataFrame lacks a column, or a column has the wrong type.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> def decode(group):
    ...     return [{"schema": str(group.schema_id), "bytes": len(value)} for value in group.values.to_pylist()]
    >>> read = lhs.decode_by_schema(orders, decode, "schema string, bytes int", headers="headers", errors="null")
    >>> read.where("offset = 1").select("offset", "schema", "bytes").first()
    Row(offset=1, schema='17', bytes=52)
    """
    check_frame(df, decode_by_schema)
    check_column("column", column)
    inputs = [Input(column, "serialized values are", ("binary",), field="value")]
    if headers is not None:
        check_column("headers", headers)
        inputs.append(Input(headers, f"{format} is read from", ("binary", *header_lists(format))))
    check_str("header", header)
    knows_columns = isinstance(decode, ColumnsDecoder)
    if not callable(decode) and not knows_columns:
        raise TypeError(f"decode must be a function, not {type(decode).__name__}")
    if not isinstance(schema, str | StructType) and not (schema is None and knows_columns):
        raise TypeError(f"schema must be str or StructType, not {type(schema).__name__}")
    options = DecodeOptions(errors=errors, error_column=error_column, limits=limits)
    # Rejects misspelt names before a job runs.
    Select(format, {"id": Field("binary", header)})
    step = _SchemaStep(
        decode,
        schema,
        format,
        header,
        id_bytes,
        options,
        check_names("keep", keep),
        check_names("identify", identify) or (),
    )
    return run_step(df, inputs, step)


@dataclass(frozen=True)
class _SchemaStep:
    """Decoder and its columns. The columns are parsed with a session, because Spark parses DDL only in a session."""

    decode: SchemaDecoder | ColumnsDecoder
    schema: str | StructType | None
    format: str
    header: str
    id_bytes: Literal[4, 8] | None
    options: DecodeOptions
    keep: tuple[str, ...] | None
    identify: tuple[str, ...]

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the kept columns, then the decoded ones."""
        if self.schema is None and isinstance(self.decode, ColumnsDecoder):
            requested = _own_columns(known_columns(self.decode))
        else:
            if isinstance(self.decode, ColumnsDecoder):
                self.decode.bind([])  # bound in the driver, because all executors must use the same schema
            requested = df.sparkSession.createDataFrame([], self.schema).schema
        schema = StructType([StructField(field.name, field.dataType) for field in requested.fields])
        operation = DecodeBySchema(
            self.decode, arrow_schema(schema), self.format, self.header, self.options, self.id_bytes
        )
        result = operation.result_type(pa.struct([(column.field, pa.binary()) for column in inputs]))
        if self.options.errors == "column":
            schema = schema.add(result[-1].name, spark_type(result[-1].type))
        names = tuple(schema.names)
        step = ArrowStep(operation, Declared(result, schema.fields), names, self.keep, self.identify, null_fields={})
        return step.apply(df, fields, inputs)


def _own_columns(schema: pa.Schema) -> StructType:
    try:
        return spark_schema(schema)
    except TypeError as error:
        raise TypeError(
            f"{error}: pass schema= with a type for the column, or a schema without it to the decoder"
        ) from None
