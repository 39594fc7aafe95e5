"""Decode, select, encode and convert the headers of a frame: functions from DataFrame to DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructField, StructType

from letterhead.errors import check_name
from letterhead.fields import Columns, check_distinct
from letterhead.limits import Limits
from letterhead.results import Types, plain_types
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
    name_of_result,
)
from letterhead.spark.runner import Runner
from letterhead.spark.sail import is_sail
from letterhead.spark.schemas import Declared, Operation, declared, header_lists, spark_type, spelled
from letterhead.where.conditions import Where
from letterhead.where.program import fields_of_format, resolve

__all__ = [
    "Transform",
    "convert_headers",
    "decode_headers",
    "encode_headers",
    "explode_batches",
    "select_headers",
    "where_headers",
]


def decode_headers(
    column: str | Column,
    format: str,
    *,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Decode a binary column into headers.

    A headers format becomes one column ``headers``; a message format becomes one column for each of its fields.

    Parameters
    ----------
    column : str or Column
        The binary column.
    format : str
        Name of the format.
    into : str, optional
        Name of the column of headers. Only for a headers format.
    keep : sequence of str, optional
        Columns of the frame to keep, in front of the new ones; ``[]`` keeps none. By default all but ``column``. Only
        the columns kept and read are transferred to Python.
    identify : sequence of str, optional
        Columns of the frame that identify a row and contain nothing confidential, such as an order number. A raised error
        quotes their values, and those of ``topic``, ``partition``, ``offset`` and ``timestamp`` if they are kept; it quotes
        no other values.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with an error in a row: raise it; make the row null; or make it null and describe the error in a last
        column.
    error_column : str, default "error"
        Name of that last column.
    lenient : bool, default False
        Accept what Kafka's Java deserializers accept, even where that loses data.
    strict_types : bool, default False
        Reject type codes without a name where the format allows them.
    text_keys : bool, default False
        For a format with typed keys: return text, and reject keys of other types.
    limits : Limits, optional
        Limits on what is read. Unset fields use the process-wide defaults, see :class:`letterhead.Limits`.

    Returns
    -------
    Transform
        A function from DataFrame to DataFrame, for ``df.transform``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid; when called, if the frame lacks a column or a column has the wrong type.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> state.transform(lhs.decode_headers("value", "streams-timestamped", keep=["key"]))
    DataFrame[key: binary, headers: array<struct<key:string,value:binary>>, timestamp: bigint, payload: binary]
    """
    read = _bytes_input(column, format)
    options = _reading(errors, error_column, lenient, strict_types, limits) | {"text_keys": text_keys}
    names = _field_types(format)
    if into is not None:
        check_str("into", into)
        if len(names) > 1:
            raise ValueError(
                f"into= names the one column of a headers format, and {format} returns {', '.join(names)}: leave it out"
            )
    first = ("headers" if into is None else into,) if len(names) == 1 else None
    return _transform("decode", format, options, (read,), keep, identify, first)


def select_headers(
    column: str | Column,
    format: str,
    columns: Columns,
    *,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Read some headers of every message into typed columns.

    Where the format stores a type with each value, a value of another type than the one requested is an error.

    Parameters
    ----------
    column : str or Column
        A binary column, or a column of headers as returned by :func:`decode_headers` and by Spark's Kafka source with
        ``includeHeaders``.
    format : str
        Name of the format.
    columns : mapping of str to str or Field
        Output column to a type such as ``"int64"`` or ``"array<string>"``, or to a :func:`letterhead.field`.
    keep, identify, errors, error_column, lenient, strict_types, limits
        As in :func:`decode_headers`.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> columns = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}
    >>> orders.transform(lhs.select_headers("headers", "kafka", columns, keep=["offset"]))
    DataFrame[offset: bigint, tenant: string, amount_cents: bigint, route: array<string>]
    """
    read = _bytes_input(column, format)
    options = _reading(errors, error_column, lenient, strict_types, limits) | {"columns": columns, "_dialect": "spark"}
    transform = _transform("select", format, options, (read,), keep, identify, None)
    return replace(transform, inputs=(read._replace(types=(*read.types, *header_lists(format))),))


def encode_headers(
    column: str | Column,
    format: str,
    *,
    fields: Mapping[str, str | Column | None] | None = None,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
) -> Transform:
    """Encode a column of headers, with the other fields of a message format, into a binary column.

    Parameters
    ----------
    column : str or Column
        The column of headers, as :func:`decode_headers` returns it for the format. Typed keys may also be text. The
        field ``type`` may be absent, and may be present where the format stores no types.
    format : str
        Name of the format.
    fields : mapping of str to str, Column or None, optional
        Field of the message to its column, or to ``None`` where the field is null. By default the column of the same
        name.
    into : str, optional
        Name of the binary column; by default ``headers`` for a headers format and ``value`` for a message format.
    keep, identify
        As in :func:`decode_headers`.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the format cannot represent: raise an error; write the nearest or leave it out; or do that
        and describe it in a column ``losses``.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        How types are converted, as in :func:`letterhead.convert`.
    null_headers : {"empty", "raise"}, default "empty"
        Whether null headers are written as no headers or rejected.
    canonical : bool, default False
        For ``iggy``: sort the headers as Iggy's own map does.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> fields = {"timestamp": "ts_ms", "payload": "value"}
    >>> frame.transform(lhs.encode_headers("headers", "streams-timestamped", fields=fields))
    DataFrame[key: binary, value: binary]
    """
    check_column("column", column)
    options: dict[str, Any] = {"on_loss": on_loss, "types": types, "null_headers": null_headers, "canonical": canonical}
    inputs, nulls = _field_inputs(column, format, fields)
    into = ("headers" if nulls is None else "value") if into is None else into
    check_str("into", into)
    return _transform("encode", format, options, inputs, keep, identify, (into,), nulls)


def convert_headers(
    column: str | Column,
    format: str,
    *,
    target: str,
    into: str | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Convert a column of messages from one format to another.

    Parameters
    ----------
    column : str or Column
        The binary column.
    format, target : str
        Names of the formats to read and to write: headers formats or message formats.
    into : str, optional
        Name of the new binary column; by default that of ``column``.
    on_loss, types, null_headers, canonical
        As in :func:`encode_headers`.
    keep, identify, errors, error_column, lenient, strict_types, limits
        As in :func:`decode_headers`.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> encoded = orders.transform(lhs.encode_headers("headers", "kafka", keep=["offset"]))
    >>> encoded.transform(lhs.convert_headers("headers", "kafka", target="iggy", types="binary", on_loss="report"))
    ... # doctest: +ELLIPSIS
    DataFrame[offset: bigint, headers: binary, losses: array<struct<code:string,message:string,header:int,...>>]
    """
    read = _bytes_input(column, format)
    options: dict[str, Any] = {"on_loss": on_loss, "types": types, "null_headers": null_headers, "canonical": canonical}
    options |= _reading(errors, error_column, lenient, strict_types, limits) | {"target": target}
    return _transform("convert", format, options, (read,), keep, identify, (name_of_result(column, into),))


def explode_batches(
    column: str | Column,
    format: str,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
    where: Where | None = None,
) -> Transform:
    """Read a column of batches into one row for each message.

    Kept columns are repeated for every message of their row. Rows with a null or empty batch are dropped.

    Parameters
    ----------
    column : str or Column
        The binary column.
    format : str
        Name of the batch format.
    columns : sequence of str, optional
        Fields of the messages to return, in order; by default all. ``row`` is the row number within the Arrow batch that
        Spark passed, which does not identify a row of the frame: keep the columns that do.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`select_headers`; they follow the fields.
    errors, error_column
        As in :func:`decode_headers`. Where the framing is damaged, one row describes the rest of the batch.
    lenient : bool, default False
        Ignore a message that is cut off at the end of a batch, as a fetch returns it.
    keep, identify, strict_types, text_keys, limits
        As in :func:`decode_headers`.
    where : Condition, str, pyarrow.compute.Expression or polars.Expr, optional
        Return only the messages that this condition on headers and fields selects, as :func:`letterhead.arrow.messages`.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> fetched.transform(lhs.explode_batches("batch", "kip82-messages", columns=["offset"], headers={"n": "int8"})).collect()
    [Row(partition=0, offset=0, n=0), Row(partition=0, offset=1, n=1), Row(partition=1, offset=2, n=2)]
    """
    read = _bytes_input(column, format)
    fields = check_names("columns", columns)
    if fields is None:
        fields = tuple(field.name for field in declared("messages", format).spark[1:])
    options = _reading(errors, error_column, lenient, strict_types, limits)
    # The runner repeats the kept columns by the row number, which is the first column, and drops it.
    options |= {"columns": ("row", *fields), "text_keys": text_keys, "_dialect": "spark"}
    if headers is not None:
        options["headers"] = _mapping("headers", headers)
    if where is not None:
        options["where"] = resolve(where, fields_of_format(format), headers)
    return _transform("messages", format, options, (read,), keep, identify, ())


def where_headers(
    column: str | Column,
    format: str,
    where: Where,
    *,
    keep: Sequence[str] | None = None,
    identify: Sequence[str] = (),
    errors: Literal["raise", "null", "column"] = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Transform:
    """Keep the rows whose headers a condition selects; the others do not return from Python.

    Parameters
    ----------
    column : str or Column
        A binary column, or a column of headers, as in :func:`select_headers`.
    format : str
        Name of the format.
    where : Condition, str, pyarrow.compute.Expression or polars.Expr
        The condition on headers, and for a message format on its fields, as in :mod:`letterhead.arrow`.
    keep : sequence of str, optional
        Columns of the frame to keep; by default all.
    identify, errors, error_column, lenient, strict_types, limits
        As in :func:`decode_headers`. With ``errors="column"``, rows with an error are kept too. With ``errors="null"``, a
        value with an error is null in the condition, so that comparisons leave its row out.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> orders.transform(lhs.where_headers("headers", "kafka", lh.col("tenant") == "acme", keep=["offset"])).count()
    1390
    """
    read = _bytes_input(column, format)
    program = resolve(where, fields_of_format(format))
    if program is None:
        raise TypeError("where must be a condition, not None")
    options = _reading(errors, error_column, lenient, strict_types, limits) | {"where": program}
    transform = _transform("where", format, options, (read,), keep, identify, None)
    return replace(transform, inputs=(read._replace(types=(*read.types, *header_lists(format))),))


@dataclass(frozen=True)
class Transform:
    """A function from DataFrame to DataFrame; call it, or pass it to ``df.transform``.

    It runs as ``mapInArrow``, on batch and streaming frames, of classic Spark and Connect. Spark matches the columns of
    ``mapInArrow`` by position, so the function and its declared schema are made together.

    Attributes
    ----------
    operation, format, options, names
        As in :class:`letterhead.spark.runner.Runner`.
    inputs : tuple of Input
        The columns that are read.
    keep : tuple of str or None
        The columns that are kept.
    identify : tuple of str
        The columns that an error quotes.
    made : Declared
        The columns that the operation returns.
    nulls : mapping of str to pyarrow.DataType, optional
        For a message format to write: the fields that are null, and their types.
    """

    operation: str
    format: str
    options: Mapping[str, Any]
    inputs: tuple[Input, ...]
    keep: tuple[str, ...] | None
    identify: tuple[str, ...]
    made: Declared
    names: tuple[str, ...]
    nulls: Mapping[str, pa.DataType] | None = None

    def __post_init__(self) -> None:
        check_distinct(self.names)

    def __call__(self, df: DataFrame) -> DataFrame:
        """Return the kept columns of a frame, then the new ones.

        Raises ``ValueError`` if a column is missing or would be there twice, ``TypeError`` if one has the wrong type.
        """
        columns = fields_of(df)
        if is_sail(df.sparkSession) and df.isStreaming:
            raise ValueError("Sail does not run Python on streams: pass a batch frame")
        df, inputs = computed(df, self.inputs)
        check_types(fields_of(df), inputs)
        # A condition keeps the column that it reads.
        all_columns = list(columns) if self.operation == "where" and self.keep is None else None
        kept = all_columns or kept_names(columns, self.keep, self.inputs)
        check_no_collision(df, kept, self.names)
        if not kept and not self.names:
            raise ValueError("no columns would be left: name columns in keep= or columns=")
        identify = identifying_names(columns, kept, self.identify)
        # A column that is both kept and read is transferred once.
        crossing = list(dict.fromkeys([*kept, *(column.name for column in inputs), *identify]))
        places: Any = {column.field: crossing.index(column.name) for column in inputs}
        places = places["headers"] if self.nulls is None else {**places, **self.nulls}
        runner = Runner(
            self.operation, self.format, self.options, tuple(kept), places, self.made.arrow, self.names,
            {name: crossing.index(name) for name in identify},
        )  # fmt: skip
        new = [
            StructField(name, field.dataType)
            for name, field in zip(self.names, self.made.spark[runner.selects :], strict=True)
        ]
        schema = StructType([columns[name] for name in kept] + new)
        return df.select(*crossing_columns(crossing)).mapInArrow(runner, schema)


def _reading(
    errors: str, error_column: str, lenient: bool, strict_types: bool, limits: Limits | None
) -> dict[str, Any]:
    return {
        "errors": errors, "error_column": error_column, "lenient": lenient, "strict_types": strict_types, "limits": limits
    }  # fmt: skip


def _transform(
    operation: Operation,
    format: str,
    options: Mapping[str, Any],
    inputs: tuple[Input, ...],
    keep: Sequence[str] | None,
    identify: Sequence[str],
    first: tuple[str, ...] | None,
    nulls: dict[str, pa.DataType] | None = None,
) -> Transform:
    """Make a transform; ``first`` replaces the name of the first column that the operation returns."""
    plain_types(options.get("types"), sql=True)
    made = declared(operation, format, **options)
    # A mapping belongs to the caller, who may change it.
    options = {name: dict(given) if isinstance(given, Mapping) else given for name, given in options.items()}
    # The first column of a condition only selects rows.
    names = tuple(field.name for field in made.spark[operation == "where" :])
    names = names if first is None else (*first, *names[1:])
    return Transform(
        operation,
        format,
        options,
        inputs,
        check_names("keep", keep),
        check_names("identify", identify) or (),
        made,
        names,
        nulls,
    )


def _bytes_input(column: str | Column, format: str) -> Input:
    check_column("column", column)
    return Input(column, f"{format} is read from", ("binary",))


def _field_types(format: str) -> dict[str, pa.DataType]:
    """Return the fields of a message format with their types, or ``headers`` with that of a headers format."""
    # errors="column" returns a struct for a headers format too, and the error as its last field.
    return {field.name: field.type for field in [*declared("decode", format, errors="column").arrow][:-1]}


def _field_inputs(
    column: str | Column, format: str, fields: Mapping[str, str | Column | None] | None
) -> tuple[tuple[Input, ...], dict[str, pa.DataType] | None]:
    """Return the columns to write a format from, and for a message format the types of its null fields."""
    types, fields = _field_types(format), _mapping("fields", fields or {})
    others = [name for name in types if name != "headers"]
    for field, name in fields.items():
        if not others:
            raise ValueError(f"{format} has no fields but its headers, and fields= names {field!r}: leave it out")
        check_name("field", field, others)
        if name is not None:
            check_column(f"the column of field {field!r}", name)
    inputs = [Input(column, f"the headers of {format} are written from", header_lists(format))]
    nulls = {}
    for field in others:
        name = fields.get(field, field)
        if name is None:
            nulls[field] = types[field]
            continue
        hint = "" if field in fields else f"pass fields={{{field!r}: ...}} with another column, or None for null"
        type = spelled(spark_type(types[field]))
        inputs.append(Input(name, f"the {field} of {format} is written from", (type,), hint, field))
    return tuple(inputs), nulls if others else None


def _mapping(what: str, given: object) -> dict[Any, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a mapping, not {given.__class__.__name__}")
    return dict(given)
