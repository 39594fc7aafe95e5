"""Decode, select, encode and convert the headers of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from letterhead import operations
from letterhead._arrow_types import OnError
from letterhead._formats import format_table
from letterhead._invariants import require
from letterhead._names import check_name
from letterhead._parse_options import ParseOptions
from letterhead.fields import Columns, ColumnSpec, normalise
from letterhead.operations import (
    ColumnOperation,
    Convert,
    Decode,
    DecodeOptions,
    Encode,
    ExplodeBatches,
    Select,
    WriteOptions,
)
from letterhead.operations.options import decode_options
from letterhead.results import OnLoss, Types, to_native_types
from letterhead.spark.engine import Engine, NotReadBySparkError, check_engine
from letterhead.spark.frame import Input, check_column, check_frame, check_names, check_str, name_of_result
from letterhead.spark.schemas import ddl, header_lists, message_fields, output_schema, spark_type
from letterhead.spark.selection import FilterByExpressions, SelectByExpressions, reads_fast
from letterhead.spark.steps import ArrowStep, control_column_count, run_step
from letterhead.where.conditions import Where
from letterhead.where.program import Filter, filter_of

StepT = TypeVar("StepT")

__all__ = ["convert_headers", "decode_headers", "encode_headers", "explode_batches", "select_headers", "where_headers"]


def decode_headers(
    df: DataFrame,
    format: str = "kafka",
    *,
    column: str | Column = "headers",
    into: str | None = None,
    where: Where | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: OnError = "raise",
    text_keys: bool = False,
    **options: Unpack[ParseOptions],
) -> DataFrame:
    """Decode a binary column into headers.

    A headers format becomes one column ``headers``; a message format becomes one column for each of its fields.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    format : str, default "kafka"
        Name of the format.
    column : str or Column, default "headers"
        The binary column.
    into : str, optional
        Name of the column of headers. Only for a headers format.
    where : Condition or str, optional
        Return only rows for which a condition on headers, and on the fields of a message format, is true, as in
        :func:`where_headers`.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; ``[]`` keeps none. By default, all columns that are
        not read are kept. Only columns that are kept or read are transferred to Python.
    identify : sequence of str, optional
        Columns of the DataFrame that identify a row and contain nothing confidential, such as an order number. A raised
        error quotes their values, and no other values but ``topic``, ``partition``, ``offset`` and ``timestamp``, if these
        columns are kept.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    text_keys : bool, default False
        For formats with typed keys: return keys as text, and reject keys of other types.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Returns
    -------
    DataFrame
        The kept columns, then the fields of the message.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, the DataFrame lacks a column, or a column has the wrong type.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.decode_headers(state, "streams-timestamped", column="value", keep=["key"])
    DataFrame[key: binary, headers: array<struct<key:string,value:binary>>, timestamp: bigint, payload: binary]
    """
    check_frame(df, decode_headers)
    source = _bytes_input(column, format)
    parsing = decode_options(decode_headers, options, errors=errors, text_keys=text_keys)
    fields = message_fields(format)
    if into is not None:
        check_str("into", into)
        if len(fields) > 1:
            raise ValueError(
                f"into= names the one column of a headers format, and {format} returns {', '.join(fields)}: leave it out"
            )
    result_name = ("headers" if into is None else into) if len(fields) == 1 else None
    condition = filter_of(where, format)
    decode = Decode(format, parsing, condition)
    return _run(df, decode, source, keep, identify, result_name, _row_test(condition, format, parsing))


def select_headers(
    df: DataFrame,
    headers: Columns,
    format: str = "kafka",
    *,
    column: str | Column = "headers",
    where: Where | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: OnError = "raise",
    engine: Engine | None = None,
    **options: Unpack[ParseOptions],
) -> DataFrame:
    """Read some headers of every message into typed columns.

    Where the format stores a type with each value, a value of another type than the one requested is an error.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    headers : mapping of str to str or Field
        A type such as ``"int64"`` or ``"array<string>"``, or a :func:`letterhead.field`, by output column.
    format : str, default "kafka"
        Name of the format.
    column : str or Column, default "headers"
        A column of headers as returned by Spark's Kafka source with ``includeHeaders`` and by :func:`decode_headers`, or a
        binary column.
    where : Condition or str, optional
        Return only rows for which a condition on their headers is true, as in :func:`where_headers`. Of other rows, only
        headers in the condition are read.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; by default all that are not read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    engine : {"spark", "arrow"}, optional
        Engine that reads the headers: ``"arrow"`` is the native module in Python. ``"spark"`` reads lists of headers by
        expressions of Spark SQL: it needs nothing installed on executors, and filters on partitions and on kept columns
        reach the table. Spark then evaluates, and checks, only the columns that a query uses. A type that it does
        not support, such as one with the suffix ``:json``, is an error that names ``"arrow"``. By default, expressions read
        a list if they are as fast as Arrow: for up to six headers, none with alternative types or a text form, such as
        times. Arrow reads all others; the query plan then contains ``MapInArrow``.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> columns = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}
    >>> lhs.select_headers(orders, columns, keep=["offset"])
    DataFrame[offset: bigint, tenant: string, amount_cents: bigint, route: array<string>]

    A view with Spark's expressions, through which Spark pushes down conditions on other columns:

    >>> lhs.select_headers(orders, columns, engine="spark").where("offset = 1").count()
    1
    """
    check_frame(df, select_headers)
    check_column("column", column)
    parsing = decode_options(select_headers, options, errors=errors)
    _check_engine(engine, identify)
    specs = tuple(normalise(headers, sql=True))
    condition = filter_of(where, format, specs)
    select = Select(format, specs, parsing, condition, dialect="spark")
    step = _step(select, keep, identify, test=_row_test(condition, format, parsing))

    def by_expressions() -> SelectByExpressions:
        selected = None if condition is None else _filter_by_expressions(format, condition, parsing, None)
        return SelectByExpressions(format, specs, step.result.spark, parsing, step.keep, selected)

    read = specs if condition is None else (*specs, *condition.headers)
    return _run_by_engine(df, engine, step, column, read, by_expressions)


def encode_headers(
    df: DataFrame,
    format: str = "kafka",
    *,
    column: str | Column = "headers",
    fields: Mapping[str, str | Column | None] | None = None,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    on_loss: OnLoss = "raise",
    types: Types | None = None,
    nulls: Literal["skip", "raise"] = "skip",
    canonical: bool = False,
) -> DataFrame:
    """Encode a column of headers, with the other fields of a message format, into a binary column.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    format : str, default "kafka"
        Name of the format.
    column : str or Column, default "headers"
        The column of headers, as :func:`decode_headers` returns it for the format. Typed keys may also be text. The
        field ``type`` may be absent, and may be present where the format stores no types.
    fields : mapping of str to str, Column or None, optional
        Column of each field of the message, or ``None`` for a null field. By default the column of the same
        name.
    into : str, optional
        Name of the binary column; by default ``headers`` for a headers format and ``value`` for a message format.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; by default all that are not read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with data that the format cannot hold: raise; drop it, or write the nearest value; or do the same and
        report the losses.
        They are reported in a column ``losses``.
    types, nulls, canonical
        As in :func:`letterhead.encode`.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> fields = {"timestamp": "ts_ms", "payload": "value"}
    >>> lhs.encode_headers(frame, "streams-timestamped", fields=fields)
    DataFrame[key: binary, value: binary]
    """
    check_frame(df, encode_headers)
    check_column("column", column)
    options = _write_options(on_loss, types, nulls, canonical)
    inputs, null_fields = _field_inputs(column, format, fields)
    is_message = format_table()[format].is_ == "message"
    into = ("value" if is_message else "headers") if into is None else into
    check_str("into", into)
    step = _step(Encode(format, options), keep, identify, into, null_fields if is_message else None)
    return run_step(df, inputs, step)


def convert_headers(
    df: DataFrame,
    format: str,
    target: str,
    *,
    column: str | Column = "headers",
    into: str | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    on_loss: OnLoss = "raise",
    types: Types | None = None,
    nulls: Literal["skip", "raise"] = "skip",
    canonical: bool = False,
    errors: OnError = "raise",
    **options: Unpack[ParseOptions],
) -> DataFrame:
    """Convert a column of messages from one format to another.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    format, target : str
        Names of the formats to read and to write: headers formats or message formats.
    column : str or Column, default "headers"
        The binary column.
    into : str, optional
        Name of the new binary column; by default the name of ``column``.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; by default all that are not read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with data that the format cannot hold: raise; drop it, or write the nearest value; or do the same and
        report the losses.
        They are reported in a column ``losses``.
    types, nulls, canonical
        As in :func:`letterhead.encode`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> encoded = lhs.encode_headers(orders, "kafka", keep=["offset"])
    >>> lhs.convert_headers(encoded, "kafka", "iggy", types="binary", on_loss="report")
    ... # doctest: +ELLIPSIS
    DataFrame[offset: bigint, headers: binary, losses: array<struct<code:string,message:string,header:int,...>>]
    """
    check_frame(df, convert_headers)
    source = _bytes_input(column, format)
    writing = _write_options(on_loss, types, nulls, canonical)
    parsing = decode_options(convert_headers, options, errors=errors)
    convert = Convert(format, target, parsing, writing)
    return _run(df, convert, source, keep, identify, name_of_result(column, into))


def explode_batches(
    df: DataFrame,
    format: str,
    *,
    column: str | Column,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: OnError = "raise",
    text_keys: bool = False,
    where: Where | None = None,
    **options: Unpack[ParseOptions],
) -> DataFrame:
    """Read a column of batches into one row for each message.

    Kept columns are repeated for every message of their row. Rows with a null or empty batch are dropped.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    format : str
        Name of the batch format.
    column : str or Column
        The binary column.
    columns : sequence of str, optional
        Fields of the messages to return, in order; by default all. ``row`` is the row number within the Arrow batch that
        Spark passed, which does not identify a row of the DataFrame: keep the columns that do.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    keep : sequence of str, optional
        Columns of the DataFrame to keep, before the new columns; by default all that are not read.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
        If the framing is damaged, one row represents the rest of the batch.
    text_keys : bool, default False
        For formats with typed keys: return keys as text, and reject keys of other types.
    where : Condition or str, optional
        Return only messages for which a condition is true, as in :func:`letterhead.arrow.decode`.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.explode_batches(fetched, "kip82-messages", column="batch", columns=["offset"], headers={"n": "int8"}).collect()
    [Row(partition=0, offset=0, n=0), Row(partition=0, offset=1, n=1), Row(partition=1, offset=2, n=2)]
    """
    check_frame(df, explode_batches)
    source = _bytes_input(column, format)
    fields = check_names("columns", columns)
    if fields is None:
        fields = tuple(field.name for field in output_schema(ExplodeBatches(format)).spark[1:])
    parsing = decode_options(explode_batches, options, errors=errors, text_keys=text_keys)
    # The runner repeats the kept columns by the row number, which is the first column, and drops it.
    explode = ExplodeBatches(format, ("row", *fields), headers, parsing, where, dialect="spark")
    return _run(df, explode, source, keep, identify)


def where_headers(
    df: DataFrame,
    where: Where,
    format: str = "kafka",
    *,
    column: str | Column = "headers",
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: OnError = "raise",
    engine: Engine | None = None,
    **options: Unpack[ParseOptions],
) -> DataFrame:
    """Keep the rows whose headers a condition selects.

    Parameters
    ----------
    df : DataFrame
        The DataFrame, a batch or a stream.
    where : Condition or str
        The condition on headers, and for a message format on its fields: :func:`letterhead.col` and operators, or SQL
        text.
    format : str, default "kafka"
        Name of the format.
    column : str or Column, default "headers"
        A column of headers, or a binary column, as in :func:`select_headers`.
    keep : sequence of str, optional
        Columns of the DataFrame to keep; by default all.
    identify : sequence of str, optional
        Columns that a raised error quotes, as in :func:`decode_headers`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
        Here, ``"column"`` keeps rows with an error, too. With ``"null"``, a value with an error is null in the condition, so
        that comparisons leave its row out.
    engine : {"spark", "arrow"}, optional
        Engine that reads the headers, as in :func:`select_headers`. If expressions of
        Spark cannot evaluate the condition, such as regular expressions with groups, an error names ``"arrow"``.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> lhs.where_headers(orders, lh.col("tenant") == "acme", keep=["offset"]).count()
    1390
    """
    check_frame(df, where_headers)
    check_column("column", column)
    parsing = decode_options(where_headers, options, errors=errors)
    _check_engine(engine, identify)
    condition = require(filter_of(where, format), "the condition")
    step = _step(operations.Where(format, condition, parsing), keep, identify)

    def by_expressions() -> FilterByExpressions:
        return _filter_by_expressions(format, condition, parsing, step.keep)

    return _run_by_engine(df, engine, step, column, condition.headers, by_expressions)


def _row_test(condition: Filter | None, format: str, options: DecodeOptions) -> operations.Where | None:
    """Return the operation that tests which rows a condition selects."""
    return None if condition is None else operations.Where(format, condition, options)


def _filter_by_expressions(
    format: str, condition: Filter, options: DecodeOptions, keep: tuple[str, ...] | None
) -> FilterByExpressions:
    errors_of_rows = operations.Where(format, condition, DecodeOptions(errors="column"))
    error_type = ddl(output_schema(errors_of_rows).spark[-1].dataType)
    return FilterByExpressions(format, condition, options, error_type, keep)


def _run(
    df: DataFrame,
    operation: ColumnOperation,
    source: Input,
    keep: Sequence[str] | None,
    identify: Sequence[str],
    result_name: str | None = None,
    test: operations.Where | None = None,
) -> DataFrame:
    """Run an operation on a column."""
    return run_step(df, (source,), _step(operation, keep, identify, result_name, test=test))


def _run_by_engine(
    df: DataFrame,
    engine: Engine | None,
    step: ArrowStep,
    column: str | Column,
    specs: Sequence[ColumnSpec],
    by_expressions: Callable[[], Any],
) -> DataFrame:
    """Run a step on an engine; by default, on Spark's expressions if they are fast and the column is a list."""
    format = step.operation.format
    if engine == "spark":
        return run_step(df, (_lists_input(column, format),), by_expressions())
    is_fast = engine is None and not step.identify and reads_fast(specs)
    by_default = _if_possible(by_expressions) if is_fast else None
    return run_step(df, (_headers_input(column, format),), step, by_default)


def _step(
    operation: ColumnOperation,
    keep: Sequence[str] | None,
    identify: Sequence[str],
    result_name: str | None = None,
    null_fields: Mapping[str, pa.DataType] | None = None,
    test: operations.Where | None = None,
) -> ArrowStep:
    """Return the step of an operation; ``result_name`` replaces the name of its first column."""
    result = output_schema(operation)
    names = [field.name for field in result.spark[control_column_count(operation) :]]
    if result_name is not None:
        names[0] = result_name
    kept, identifying = check_names("keep", keep), check_names("identify", identify) or ()
    return ArrowStep(operation, result, tuple(names), kept, identifying, null_fields, test)


def _write_options(
    on_loss: OnLoss, types: Types | None, nulls: Literal["skip", "raise"], canonical: bool
) -> WriteOptions:
    # Errors list the type names of Spark.
    to_native_types(types, sql=True)
    return WriteOptions(on_loss=on_loss, types=types, nulls=nulls, canonical=canonical)


def _bytes_input(column: str | Column, format: str) -> Input:
    check_column("column", column)
    return Input(column, f"{format} is read from", ("binary",))


def _headers_input(column: str | Column, format: str) -> Input:
    check_column("column", column)
    return Input(column, f"{format} is read from", ("binary", *header_lists(format)))


def _if_possible(make: Callable[[], StepT]) -> StepT | None:
    """Return a step of Spark's expressions; None if they do not support it."""
    try:
        return make()
    except NotReadBySparkError:
        return None


def _lists_input(column: str | Column, format: str) -> Input:
    check_column("column", column)
    return Input(column, f"{format} is read by Spark's expressions from", header_lists(format)[:1])


def _check_engine(engine: Engine | None, identify: Sequence[str]) -> None:
    check_engine(engine)
    if engine == "spark" and identify:
        raise ValueError("identify= names columns that errors quote, which needs engine='arrow': omit one of them")


def _field_inputs(
    column: str | Column, format: str, fields: Mapping[str, str | Column | None] | None
) -> tuple[tuple[Input, ...], dict[str, pa.DataType]]:
    """Return the columns from which a format is written, and the types of fields that are null."""
    types, fields = message_fields(format), _mapping("fields", fields or {})
    others = [name for name in types if name != "headers"]
    for field, name in fields.items():
        if not others:
            raise ValueError(f"{format} has no fields but its headers, and fields= names {field!r}: leave it out")
        check_name("field", field, others)
        if name is not None:
            check_column(f"the column of field {field!r}", name)
    inputs = [Input(column, f"the headers of {format} are written from", header_lists(format))]
    null_fields = {}
    for field in others:
        name = fields.get(field, field)
        if name is None:
            null_fields[field] = types[field]
            continue
        hint = "" if field in fields else f"pass fields={{{field!r}: ...}} with another column, or None for null"
        type = ddl(spark_type(types[field]))
        inputs.append(Input(name, f"the {field} of {format} is written from", (type,), hint, field))
    return tuple(inputs), null_fields


def _mapping(parameter: str, argument: object) -> dict[Any, Any]:
    if not isinstance(argument, Mapping):
        raise TypeError(f"{parameter} must be a mapping, not {argument.__class__.__name__}")
    return dict(argument)
