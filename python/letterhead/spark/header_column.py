"""One header as a column, for ``select``, ``where`` and ``join``: :func:`header`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from letterhead._default_values import default_of
from letterhead._formats import format_table
from letterhead._invariants import present
from letterhead._names import check_name
from letterhead._shared_parameters import documented
from letterhead._value_text import text_of_key
from letterhead.fields import Field, field_and_default, plain_key
from letterhead.operations import ReadOptions, Select
from letterhead.spark.checks import Check, chosen, guarded, raised
from letterhead.spark.expressions import header_parser, is_type, is_utf8, parser
from letterhead.spark.frame import VALUES_AS_BYTES
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import active_is_sail
from letterhead.spark.schemas import declared
from letterhead.types import ValueType, is_only_read, is_text_suffix

if TYPE_CHECKING:
    from letterhead.fields import Repeat
    from letterhead.headers import GivenKey
    from letterhead.limits import Limits

__all__ = ["header"]


@documented
def header(
    column: str | Column,
    key: GivenKey,
    type: ValueType,
    *,
    repeat: Repeat = "last",
    required: bool = False,
    default: object = None,
    split: str | None = None,
    errors: Literal["raise", "null"] = "raise",
    format: str | None = None,
    engine: Literal["spark", "arrow"] | None = None,
    limits: Limits | None = None,
) -> Column:
    """Read one header of every message as a column.

    From a column of headers, as Spark's Kafka source returns it with ``includeHeaders``, this is an expression of Spark
    SQL: it runs no Python, needs nothing installed on executors, and works in ``where`` and ``join``. From a binary
    column (with ``format``), and on Sail, an Arrow UDF reads them, which needs Spark 4.1. Both return the same values. For
    several headers use :func:`select_headers`: three expressions over ten headers take more than four times as long.

    Parameters
    ----------
    column : str or Column
        Headers, as returned by :func:`decode_headers` and by Spark's Kafka source
        (``array<struct<key:string,value:binary>>``), or with ``format`` their bytes (``binary``).
    key : str, int, bytes or Value
        Key of the header, and name of the new column. An int for formats with integer keys; a
        :class:`~letterhead.Value` for Iggy's typed keys, where bytes mean ``Binary(...)``.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        Type of the value, or several such as ``int32 | int32:text``, see :func:`letterhead.field`. Where the headers have
        types, a value of another type is an error.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that occurs more than once; ``"all"`` returns an array, empty if the key is absent.
    required : bool, default False
        Whether a message without the header is an error. A header with a null value is present.
    default : object, optional
        The value where a message lacks the header. A header with a null value stays null.
    split : str, optional
        For ``array<type>``: the text between the elements of one value, as in ``"eu,us"``.
    errors : {"raise", "null"}, default "raise"
        What to do with a value of another type, and with malformed headers.
    format : str, optional
        Format of the bytes, or of the list of headers: whether it has types, and the type of its keys. By default
        a list of headers of ``kafka``.
    engine : {"spark", "arrow"}, optional
        What evaluates it: Spark's own expressions, which read lists of headers, or the Arrow UDF, which reads both.
        By default the Arrow UDF if ``format`` is given, as the column may be binary.
    {limits}

    Returns
    -------
    Column
        The value: ``uint8`` as short, ``uint16`` as int, ``uint32`` as long, ``uint64`` as decimal(20,0), 128 bits as
        decimal(38,0), ``uuid`` and ``char`` as string, ``timestamp_ms`` as timestamp, all others as their own type.

    Raises
    ------
    TypeError
        If an argument is of the wrong Python type.
    ValueError
        If a name is misspelt, the format has other keys, Spark is too old, or ``engine="spark"`` is requested on Sail.

    Notes
    -----
    Spark may evaluate an Arrow UDF twice when a filter uses it, as the filter is pushed down with a copy. The result is
    the same; :func:`select_headers` reads once.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> amount = lhs.header("headers", "amount_cents", "int64")
    >>> orders.where(amount > 4_990_000).select("offset", amount).orderBy("offset").show(2)
    +------+------------+
    |offset|amount_cents|
    +------+------------+
    |   679|     4991187|
    |   749|     4992848|
    +------+------------+
    only showing top 2 rows

    An expression also reads headers with types and integer keys:

    >>> typed = fetched.transform(lhs.explode_batches("batch", "kip82-messages", columns=["headers"], keep=[]))
    >>> typed.select(lhs.header("headers", "n", "int8", format="kip82-typed", engine="spark")).first()
    Row(n=0)
    """
    field, _ = field_and_default(type, key, repeat, required, default, split, sql=True)
    if errors == "column":  # type: ignore[comparison-overlap]
        raise ValueError("errors='column' needs a second column, and this makes one: use select_headers")
    check_name("errors value", errors, ("raise", "null"))
    if engine is not None:
        check_name("engine", engine, ("spark", "arrow"))
    is_by_arrow = is_only_read(field.type) or (split is not None and not all(map(_is_text, field.type.split(" | "))))
    if is_by_arrow and engine == "spark":
        raise ValueError(f"type '{field.type}' is not read by Spark's expressions: omit engine=, or pass 'arrow'")
    on_sail = active_is_sail()
    by_spark = engine == "spark" or (engine is None and format is None and not is_by_arrow and not on_sail)
    if by_spark and limits is not None:
        raise ValueError("limits= applies to binary columns, and Spark's expressions read lists of headers: omit it")
    format = "kafka" if format is None else format
    # Rejects misspelt names, batch formats, and keys that the format does not have.
    Select(format, {"": field})
    name = text_of_key(key)
    if on_sail and by_spark:
        raise ValueError("engine='spark' does not run on Sail, whose expressions return other values: omit engine=")
    if by_spark:
        return _by_spark(column, name, field, errors, _header_list_type(format)).alias(name)
    select = Select(format, {name: field}, ReadOptions(errors=errors, limits=limits), dialect="spark")
    type_in_spark = declared(select).spark[0].dataType
    function = ArrowFunction("header", select.apply, first_field=True)
    return function.column(column, type_in_spark, remedy=": use select_headers").alias(name)


class _HeaderList(NamedTuple):
    """The structure of a format's list of headers."""

    format: str
    keys: Literal["text", "int", "typed"]
    types: bool

    @property
    def type(self) -> str:
        """The type of the list, as ``typeof`` of Spark SQL writes it."""
        key = {"text": "key:string", "int": "key:int", "typed": "key_type:string,key:binary"}[self.keys]
        return f"array<struct<{key},{'type:string,' if self.types else ''}value:binary>>"


def _header_list_type(format: str) -> _HeaderList:
    """Return the structure of a list of headers of a format."""
    info = format_table()[format]
    return _HeaderList(format, info.keys, info.types)


def _by_spark(
    column: str | Column, name: str, field: Field, errors: Literal["raise", "null"], header_list: _HeaderList
) -> Column:
    parse, strict = header_parser(field.type, header_list.types), errors == "raise"

    # Repeat the expression: Spark evaluates common subexpressions once, which is twice as fast as a lambda variable.
    matching = F.filter(column, _is_requested(field, header_list, strict))
    # The size of a null list is null, or -1 if ANSI mode is off.
    count = F.coalesce(F.size(matching), F.lit(0))
    checks = []
    if field.required and strict:
        # With errors="null" an absent header is null in any case.
        checks.append(Check(count <= 0, "missing_key", F.lit("the header is required and absent")))
    if field.repeat == "error":
        checks.append(Check(count > 1, "repeated_key", F.lit("the key occurs a second time")))

    def fail(check: Check) -> Column:
        return raised(f"header {name}: ", check) if strict else F.lit(None)

    if field.required and not strict and field.repeat == "all":
        # Otherwise an absent header would be an empty list.
        checks.append(Check(count <= 0, "missing_key", F.lit("")))
    if field.split is not None:
        matching = _elements(matching, field.split, header_list)
    if field.repeat != "all":
        parsed = parse(F.get(matching, 0) if field.repeat == "first" else F.try_element_at(matching, F.lit(-1)))
        value = guarded([*checks, *parsed.checks], parsed.value, fail)
        if field.default is not None:
            type, text = default_of(field.type, field.default)
            # A null list has no headers; its size is 0 or -1.
            value = F.when(count <= 0, parser(type)(F.lit(text.encode())).value).otherwise(value)
        return _check_column_type(column, header_list, value)

    def element(header: Column) -> Column:
        parsed = parse(header)
        return guarded(parsed.checks, parsed.value, fail)

    def is_bad(header: Column) -> Column:
        bad = guarded(parse(header).checks, F.lit(False), lambda _: F.lit(True))
        # These checks accept a null value, whose type may still be unknown.
        return bad | F.coalesce(~is_type(header["type"]), F.lit(False)) if header_list.types else bad

    # A message with null headers has none of any key.
    matching = F.coalesce(matching, F.array())
    values = F.transform(matching, element)
    if not strict:
        # A null element would look like a header with a null value, so one bad value makes the whole list null.
        values = F.when(F.exists(matching, is_bad), F.lit(None)).otherwise(values)
    return _check_column_type(column, header_list, guarded(checks, values, fail))


def _is_text(type: str) -> bool:
    """Return whether values of a type are text, which Spark can split."""
    name, _, suffix = type.partition(":")
    return name == "string" or is_text_suffix(suffix)


def _elements(matching: Column, separator: str, header_list: _HeaderList) -> Column:
    """Return a header for each element of the value of every header.

    Values that are not UTF-8 are not split; parsing rejects them.
    """
    pattern = "\\Q" + separator.replace("\\E", "\\E\\\\E\\Q") + "\\E"

    def elements(header: Column) -> Column:
        text = header["value"].cast("string")
        is_split = is_utf8(header["value"])
        if header_list.types:
            is_split = is_split & F.coalesce(header["type"].isin("string", "binary"), F.lit(True))
        parts = F.when(is_split, F.split(text, pattern, -1)).otherwise(F.array(text))
        return F.transform(
            parts, lambda part: _with_value(header, F.when(text.isNotNull(), part.cast("binary")), header_list)
        )

    return F.flatten(F.transform(matching, elements))


def _with_value(header: Column, value: Column, header_list: _HeaderList) -> Column:
    types = [header["type"].alias("type")] if header_list.types else []
    return F.struct(*types, value.alias("value"))


def _is_requested(field: Field, header_list: _HeaderList, strict: bool) -> Callable[[Column], Column]:
    """Return the predicate for headers. With ``strict``, a malformed header raises; otherwise only its key is compared."""
    key: Any = present(field.key, "the key")
    plain = plain_key(key)

    def is_requested(header: Column) -> Column:
        # Spark interprets this for every header: each step shows in the run time of a query.
        if header_list.keys == "typed":
            type, bits = plain if isinstance(plain, tuple) else ("string", str(plain).encode())
            same = (header["key_type"] == F.lit(type)) & (header["key"] == F.lit(bits))
        else:
            same = header["key"] == F.lit(plain)
        if not strict:
            # A header of an unknown type is kept, so that the column is null and not the value of another header.
            return same
        if header_list.keys != "typed" and not header_list.types:
            # Only a null key makes the comparison null.
            return F.coalesce(same, F.raise_error(F.lit(_NULL_KEY)))
        checks = _malformed(header, header_list)
        malformed, message = reduce(or_, (when for when, _ in checks)), chosen(checks[:-1], checks[-1][1])
        return F.when(malformed, F.raise_error(message)).otherwise(same)

    return is_requested


_NULL_KEY = "the key of a header is null (null_key)"


def _malformed(header: Column, header_list: _HeaderList) -> list[tuple[Column, Column]]:
    """Return the conditions that make a header malformed, in order, with messages.

    The type of a value may be null, the type of a key may not.
    """

    def unknown(name: str) -> tuple[Column, Column]:
        return ~is_type(header[name]), F.lit("the name of the type is unknown (unknown_type)")

    null_key, checks = header["key"].isNull(), []
    if header_list.keys == "typed":
        null_key = header["key_type"].isNull() | null_key
        checks.append(unknown("key_type"))
    if header_list.types:
        checks.append(unknown("type"))
    return [(null_key, F.lit(_NULL_KEY)), *checks]


def _check_column_type(column: str | Column, header_list: _HeaderList, value: Column) -> Column:
    """Reject columns of another type, whose values would be misread.

    Spark knows the type before a job runs, and removes the condition.
    """
    # Spark Connect writes out the default collation of strings.
    column_type = F.regexp_replace(F.typeof(column), r" collate UTF8_BINARY\b", "")
    others: dict[str, str] = {}
    for name, info in format_table().items():
        if info.is_ == "headers":
            others.setdefault(_header_list_type(name).type, name)
    remedies = [
        (column_type == type, F.lit(f": pass format='{name}', or another format of such headers"))
        for type, name in others.items()
    ]
    own_name = column if isinstance(column, str) else "headers"
    as_bytes = F.lit(f": {VALUES_AS_BYTES.format(own_name)} has the values as bytes")
    is_text = F.replace(column_type, F.lit("value:string"), F.lit("value:binary")) == header_list.type
    remedy = chosen([*remedies, (is_text, as_bytes)], F.lit(""))
    expected = F.lit(f", and a header of {header_list.format} is read from {header_list.type}")
    error = F.raise_error(F.concat(F.lit("the column is "), column_type, expected, remedy))
    return F.when(column_type != header_list.type, error).otherwise(value)
