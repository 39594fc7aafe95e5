"""Headers in one Spark SQL expression: :func:`header_columns`, a struct of typed columns, and :func:`sql`, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from pyspark.sql import Column
from pyspark.sql import functions as spark_functions
from pyspark.sql.types import StructType

from letterhead._arrow_types import OnError
from letterhead._names import check_name
from letterhead._parse_options import ParseOptions
from letterhead._value_text import text_of_key
from letterhead.fields import ColumnSpec, column_spec, columns_of, field, normalise
from letterhead.operations import DecodeOptions, Pack, Select
from letterhead.operations.options import decode_options
from letterhead.spark.checks import raise_expression, value_unless_failed
from letterhead.spark.engine import Engine, check_engine, check_engine_on_sail, check_plain_options, has_plain_options
from letterhead.spark.frame import check_column, check_str
from letterhead.spark.header_column import check_column_type, header_values, is_read_by_spark
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import active_is_sail
from letterhead.spark.schemas import header_lists, output_schema
from letterhead.spark.sql_text import F, Sql, as_subquery, attribute, quote
from letterhead.spark.writing import accepted_types, writer
from letterhead.types import ValueType, base_type

if TYPE_CHECKING:
    from letterhead.fields import Columns, Repeat
    from letterhead.headers import GivenKey

__all__ = ["header_columns", "select_items", "sql", "sql_pack"]


def header_columns(
    column: str | Column,
    headers: Columns,
    *,
    format: str | None = None,
    errors: OnError = "raise",
    engine: Engine | None = None,
    **options: Unpack[ParseOptions],
) -> Column:
    """Read some headers of every message into one column, a struct, for ``select`` and ``where``.

    :func:`select_headers` returns the same columns of a DataFrame, and Spark plans it in less time: use it for dozens
    of columns. From a list of headers this is an expression of Spark SQL, as :func:`header` is. In the condition of a
    join, where Spark accepts no subquery, use :func:`header`.

    Parameters
    ----------
    column : str or Column
        Headers, as returned by Spark's Kafka source, or with ``format`` their bytes.
    headers : mapping of str to str or Field
        Fields of the struct, as in :func:`select_headers`.
    format : str, optional
        Format of the bytes, or of the list of headers. By default a list of headers of ``kafka``.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    engine : {"spark", "arrow"}, optional
        Engine that reads the headers, as in :func:`header`.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Returns
    -------
    Column
        A struct, named ``header_columns``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or the engine does not support it.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> typed = lhs.header_columns("headers", {"tenant": "string", "amount_cents": "int64"}).alias("h")
    >>> orders.select("offset", typed).where("h.amount_cents > 4990000").select("offset", "h.*").orderBy("offset").first()
    Row(offset=679, tenant='株式会社', amount_cents=4991187)
    """
    check_column("column", column)
    check_engine(engine)
    parsing = decode_options(header_columns, options, errors=errors)
    select = Select("kafka" if format is None else format, headers, parsing, dialect="spark")
    result = output_schema(select).spark
    is_read = has_plain_options(parsing) and all(
        is_read_by_spark(spec.type, spec.split) for spec in normalise(headers, sql=True)
    )
    on_sail = active_is_sail()
    check_engine_on_sail(engine, on_sail)
    if engine == "spark" or (engine is None and format is None and is_read and not on_sail):
        check_plain_options(parsing, "pass engine='arrow'")
        values = header_values(column, select.format, headers, errors, result)
        struct = check_column_type(column, select.format, F.struct(**values))
        read = spark_functions.expr(as_subquery(struct)) if isinstance(column, str) else struct.column
    else:
        read = ArrowFunction("header_columns", select.apply).column(column, StructType(result))
    return read.alias("header_columns")


def sql(
    column: str,
    key: GivenKey,
    type: ValueType,
    *,
    repeat: Repeat = "last",
    required: bool = False,
    default: object = None,
    split: str | None = None,
    errors: Literal["raise", "null"] = "raise",
    format: str = "kafka",
) -> str:
    """Return the expression of Spark SQL that reads a header, as text.

    Use it where Python does not run: in persistent views, dbt models, and tools that only send SQL. Neither the session
    nor its executors need letterhead. Values and errors are the same as with :func:`header`.

    Parameters
    ----------
    column : str
        Headers, as returned by Spark's Kafka source: the name of a column, or SQL that names one, ``t.headers``.
    key : str, int, bytes or Value
        Key of the header, as in :func:`header`.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        Type of the value, as in :func:`header`.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that occurs more than once.
    required : bool, default False
        Whether a message without the header is an error.
    default : object, optional
        The value if a message lacks the header.
    split : str, optional
        For ``array<type>``: the text between the elements of one value.
    errors : {"raise", "null"}, default "raise"
        What to do with a value of another type, and with malformed headers.
    format : str, default "kafka"
        Format of the list of headers.

    Returns
    -------
    str
        The expression, written for the version of pyspark that is installed.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or no expression reads the type.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> tenant = lhs.sql("headers", "tenant", "string")
    >>> orders.where(f"{tenant} = 'acme'").count()
    1390
    """
    check_str("column", column)
    check_name("errors value", errors, ("raise", "null"))
    read = field(type, key=key, repeat=repeat, required=required, default=default, split=split)
    [text] = _texts(column, {text_of_key(key): read}, format, DecodeOptions(errors=errors)).values()
    return text


def sql_pack(columns: Columns, *, nulls: Literal["keep", "skip"] = "skip") -> str:
    """Return, as text, the Spark SQL expression that turns columns into headers: the inverse of :func:`sql`.

    Use it where Python does not run, and where functions cannot be registered: in SQL files of declarative pipelines,
    in persistent views and in dbt models. :func:`pack_headers` writes the same bytes.

    Parameters
    ----------
    columns : mapping of str to type or Field
        Column, or SQL that names one, ``t.tenant``, to the type in which its values are written, or to a
        :func:`letterhead.field` with another key; the types are as in :func:`pack_headers`, without ``split=``.
    nulls : {"keep", "skip"}, default "skip"
        Whether a null becomes a header with a null value, or no header.

    Returns
    -------
    str
        The expression, of type ``array<struct<key:string,value:binary>>``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or no expression writes the type.

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead import spark as lhs
    >>> packed = lhs.sql_pack({"tenant": "string", "retry": lh.field("int32", key="attempt")})
    >>> rows = spark.sql(f"select {packed} as headers from values ('acme', 3) as t(tenant, retry)")
    >>> rows.select(lhs.header("headers", "attempt", "int32")).first()
    Row(attempt=3)
    """
    check_name("nulls value", nulls, ("keep", "skip"))
    # Pack raises errors for the same arguments as in pack_headers.
    Pack("kafka", columns, nulls)
    lists = []
    for name, type in columns_of(columns).items():
        check_str("column", name)
        lists.append(_header_list(attribute(name), column_spec(name, type, sql=True), nulls))
    headers = lists[0] if len(lists) == 1 else F.concat(*lists)
    return as_subquery(headers if nulls == "keep" else F.array_compact(headers))


def _header_list(column: Sql, spec: ColumnSpec, nulls: Literal["keep", "skip"]) -> Sql:
    """Return the header of a column as an array, with null for a skipped header."""

    def header(value: Sql) -> Sql:
        written = F.struct(key=F.lit(str(spec.key)), value=_written(value, spec))
        return written if nulls == "keep" else F.when(value.is_not_null(), written).otherwise(None)

    if spec.repeat != "all":
        return F.array(header(column))
    if spec.split is not None:
        raise ValueError(
            f"column {spec.name!r}: Spark's expressions do not join a list by split=: pack_headers writes it in Python"
        )
    return F.mapped("transform", F.coalesce(column, F.array()), "packed", header)


def _written(column: Sql, spec: ColumnSpec) -> Sql:
    """Return the bytes of a value; a column of an unsuitable type is an error."""
    type = spec.type.partition(" | ")[0]
    base, scale = base_type(type), 0
    column_type = F.typeof(column)
    if base.startswith("decimal"):
        # The scale of a decimal determines its digits.
        accepted, fits = base, column_type == base
        scale = int(base[:-1].partition(",")[2])
    else:
        names = accepted_types(base)
        accepted = " or ".join(names)
        fits = F.regexp_replace(column_type, "^string collate .*", "string").isin(*names)
        if "bigint" in names:
            fits = fits | column_type.rlike(r"^decimal\([0-9]+,0\)$")
    message = f"column {spec.name}: {type} is written from {accepted}, not from "
    other = F.raise_error(F.concat(F.lit(message), column_type))
    checks, value = writer(type, scale=scale)(column)
    written = value_unless_failed(checks, value, lambda check: raise_expression(f"header {spec.key}: ", check))
    return F.when(fits, written).otherwise(other)


def select_items(column: str, columns: Columns, format: str, options: DecodeOptions) -> list[str]:
    """Return the items of a SELECT list that read headers, as named expressions."""
    return [f"{text} as {quote(name)}" for name, text in _texts(column, columns, format, options).items()]


def _texts(column: str, columns: Columns, format: str, options: DecodeOptions) -> dict[str, str]:
    """Return the SQL text of each column; it raises for a list of another type."""
    result = output_schema(Select(format, columns, options, dialect="spark")).spark
    values = header_values(column, format, columns, options.errors, result, "select_headers reads it in Python")
    type = header_lists(format)[0]
    # Spark Connect includes the default collation in the names of string types.
    has_type = F.typeof(attribute(column)).isin(type, type.replace(":string", ":string collate UTF8_BINARY"))
    error = F.raise_error(F.lit(f"headers of {format} are read from {type}"))
    return {name: as_subquery(F.when(has_type, value).otherwise(error)) for name, value in values.items()}
