"""Drop, keep, rename and insert headers in a frame, with Spark's own expressions: :func:`edit_headers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType

from letterhead.errors import check_name, unknown_name
from letterhead.spark.expressions import guarded, raised
from letterhead.spark.frame import (
    HEADERS,
    Input,
    check_replaced,
    check_str,
    check_types,
    computed,
    fields_of,
    is_column,
    name_of_result,
    named,
    unused_name,
)
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import is_sail, unfiltered, written_values
from letterhead.spark.schemas import spelled
from letterhead.spark.writing import writer, written_from
from letterhead.types import is_only_read, type_name

if TYPE_CHECKING:
    Keys: TypeAlias = Sequence[str] | Callable[[Column], Column]
    Renames: TypeAlias = Mapping[str, str] | Callable[[Column], Column]
    Inserted: TypeAlias = str | bytes | Column | tuple[str | Column, str] | None

__all__ = ["edit_headers"]


def edit_headers(
    column: str | Column = "headers",
    *,
    into: str | None = None,
    only: Keys | None = None,
    drop: Keys | None = None,
    rename: Renames | None = None,
    insert: Mapping[str, Inserted] | Sequence[tuple[str, Inserted]] | None = None,
    nulls: Literal["insert", "skip"] = "insert",
) -> Callable[[DataFrame], DataFrame]:
    """Drop, keep, rename and insert headers; all others are unchanged.

    It covers Connect's transforms DropHeaders, InsertHeader and HeaderFrom. The steps run in the order of the parameters:
    ``only`` and ``drop`` select by the original keys, ``rename`` applies to the headers left, and ``insert`` appends. So
    ``drop=["retry"], insert={"retry": …}`` replaces a header. Order, repeated headers and null values are kept. It is one
    expression of Spark SQL: it runs no Python, needs nothing installed on executors, and accepts streaming frames. On Sail
    Arrow UDFs write the values of columns.

    Parameters
    ----------
    column : str or Column, default "headers"
        The column of headers, ``array<struct<key:string,value:binary>>``, as Spark's Kafka source returns it with
        ``includeHeaders`` and its sink takes it.
    into : str, optional
        Name of the new column; by default it replaces ``column``. Required if ``column`` is a Column.
    only : sequence of str, or function of Column, optional
        Keys of the headers to keep, or a predicate of a key: ``lambda key: key.startswith("ce_")``.
    drop : sequence of str, or function of Column, optional
        Keys of the headers to drop, or a predicate of a key. All headers of a key are dropped.
    rename : mapping of str to str, or function of Column, optional
        Old key to new, all at once, so that two can be swapped; or a function from old key to new. A header renamed to
        an existing key becomes another header of that key.
    insert : mapping or sequence of pairs, optional
        Key to value, in order; pairs can repeat a key. A value that is a str, bytes or ``None`` (a null value) is the
        same for every message. A value from a column is ``(column, type)``: the column by name or as a Column, and the
        type as in :func:`select_headers`, ``name[:be|le|text]``. A string or binary Column needs no type. Times are
        truncated to the millisecond.
    nulls : {"insert", "skip"}, default "insert"
        Whether null in a column becomes a header with a null value, or no header.

    Returns
    -------
    function from DataFrame to DataFrame
        For ``df.transform``. The column of headers keeps its position. Null headers, as the Kafka source returns them
        for a message without headers, stay null unless something is inserted.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or steps contradict each other; when called, if the frame lacks a column, or a
        type cannot be written from its column.

    Notes
    -----
    A value that its type cannot represent (``out_of_range``, ``bad_text``, ``value_not_utf8``) ends the query with an
    error that names the key. Filter such rows before: ``where("retry between -128 and 127")``.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from letterhead import spark as lhs
    >>> edited = orders.transform(
    ...     lhs.edit_headers(
    ...         drop=lambda key: key.startswith("ce_"),
    ...         rename={"retry": "attempt"},
    ...         insert={"source_offset": ("offset", "int64"), "via": "spark"},
    ...     )
    ... )
    >>> edited.selectExpr("transform(headers, h -> h.key) as keys").first().keys
    ['traceparent', 'tracestate', '__value_schema_id', 'tenant', 'attempt', 'amount_cents', 'weight_kg', 'source_offset', 'via']
    >>> edited.where(lhs.header("headers", "source_offset", "int64") == F.col("offset")).count()
    10000
    """
    made_name = name_of_result(column, into)
    check_name("nulls value", nulls, ("insert", "skip"))
    only, drop, rename = _keys("only", only), _keys("drop", drop), _renames(rename)
    news = _news(insert)
    if only is None and drop is None and rename is None and not news:
        raise ValueError("no edit was requested: pass only, drop, rename or insert")
    _check_order(only, drop, rename)

    def edited(df: DataFrame) -> DataFrame:
        fields, on_sail = fields_of(df), is_sail(df.sparkSession)
        check_replaced(df, made_name)
        df, [read] = computed(df, [Input(column, "headers are edited in", (HEADERS,))])
        check_types(fields_of(df), [read])
        # Inserted values become columns first: a random expression, which is used several times, is drawn once.
        places = {unused_name(f"inserted_{n}", fields): new for n, new in enumerate(news)}
        wide = df.select("*", *(_column_of(new, fields).alias(place) for place, new in places.items()))
        given = {field.name: field.dataType for field in wide.schema.fields}
        made = [
            F.struct(F.lit(new.key).alias("key"), _written(new, place, given[place], on_sail).alias("value"))
            for place, new in places.items()
        ]
        headers = _without(named(read.name), only, drop, rename)
        if made:
            headers = _with(headers, F.array(*made), nulls == "skip", on_sail)
        if on_sail:
            headers = unfiltered(headers)
        names = dict.fromkeys([*fields, made_name])
        return wide.select(*(headers.alias(name) if name == made_name else named(name) for name in names))

    return edited


class _New(NamedTuple):
    """A header to insert: its key, the name of a column, a Column or constant bytes, and the type to write."""

    key: str
    column: Any
    type: str | None = None


# Arguments ------------------------------------------------------------------------------------------------------------


def _keys(what: str, given: Any) -> Any:
    if given is None or callable(given):
        return given
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"{what} must be a list of keys or a function of a Column, not {given.__class__.__name__}")
    return [_checked_key(what, key) for key in given]


def _renames(given: Any) -> Any:
    if given is None or callable(given):
        return given
    if not isinstance(given, Mapping):
        what = given.__class__.__name__
        raise TypeError(f"rename must be a mapping of old key to new or a function of a Column, not {what}")
    return {_checked_key("rename", old): _checked_key("rename", new) for old, new in given.items()}


def _checked_key(what: str, key: Any) -> Any:
    check_str(f"a key of {what}", key)
    return key


def _check_order(only: Any, drop: Any, rename: Any) -> None:
    """Reject steps that could have no effect in the order in which they run."""
    for key in rename if isinstance(rename, dict) else ():
        if isinstance(drop, list) and key in drop:
            raise ValueError(f"rename names {key!r}, which drop removes before: leave it out of one of them")
        if isinstance(only, list) and key not in only:
            raise ValueError(f"rename names {key!r}, which only does not keep: add the old key to only")
    for key in drop if isinstance(drop, list) else ():
        if isinstance(only, list) and key in only:
            raise ValueError(f"only and drop both name {key!r}: leave it out of one of them")


def _news(given: Any) -> list[_New]:
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Mapping | Sequence):
        raise TypeError(f"insert must be a mapping of key to value or a list of pairs, not {given.__class__.__name__}")
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"insert takes pairs of a key, which is str, and a value, not {pair.__class__.__name__}")
    return [_new(key, value) for key, value in pairs]


def _new(key: str, given: Any) -> _New:
    if given is None or isinstance(given, bytes):
        return _New(key, given, "binary")
    if isinstance(given, str):
        return _New(key, given.encode(), "binary")
    if is_column(given):
        return _New(key, given)
    if not isinstance(given, tuple) or len(given) != 2 or not (isinstance(given[0], str) or is_column(given[0])):
        raise TypeError(f"header {key!r}: str, bytes, None, a Column or a pair (column, type) is inserted, "
                        f"not {given.__class__.__name__}: a number is (F.lit(3), 'int32')")  # fmt: skip
    try:
        type = type_name(given[1], sql=True)
    except (TypeError, ValueError) as error:
        raise error.__class__(f"header {key!r}: {error}") from None
    if is_only_read(type):
        name, suffix = type.split(":")
        raise ValueError(
            f"header {key!r}: type '{type}' can be read, but not written: pass '{name}' without ':{suffix}'"
        )
    return _New(key, given[0], type)


# Expressions ----------------------------------------------------------------------------------------------------------


def _without(headers: Column, only: Any, drop: Any, rename: Any) -> Column:
    """Return the remaining headers, under their new keys."""

    def stays(header: Column) -> Column:
        key, stays = header["key"], F.lit(True)
        if only is not None:
            stays = F.coalesce(_is_one(key, only, "only"), F.lit(False))
        if drop is not None:
            stays = stays & ~F.coalesce(_is_one(key, drop, "drop"), F.lit(False))
        return stays

    def renamed(header: Column) -> Column:
        return F.struct(_renamed(header["key"], rename).alias("key"), header["value"].alias("value"))

    if only is not None or drop is not None:
        headers = F.filter(headers, stays)
    return headers if rename is None or rename == {} else F.transform(headers, renamed)


def _is_one(key: Column, keys: Any, what: str) -> Column:
    return _made(what, keys(key)) if callable(keys) else key.isin(*keys)


def _renamed(key: Column, rename: Any) -> Column:
    if callable(rename):
        # A header without a key could not be written.
        no_key = F.raise_error(F.lit("rename makes the key of a header null (null_key)"))
        return F.coalesce(_made("rename", rename(key)), F.when(key.isNotNull(), no_key).cast("string"))
    new = key
    for old, to in rename.items():
        new = F.when(key == old, F.lit(to)).otherwise(new)
    return new


def _made(what: str, made: Any) -> Column:
    if not is_column(made):
        raise TypeError(f"the function of {what} must return a Column, not {made.__class__.__name__}")
    column: Column = made
    return column


def _with(headers: Column, new: Column, skip: bool, on_sail: bool) -> Column:
    """Append new headers."""
    if on_sail:
        # Sail concatenates only arrays that agree in what may be null.
        headers, new = headers.cast(HEADERS), new.cast(HEADERS)
    if skip:
        new = F.filter(new, lambda header: header["value"].isNotNull())
    all = F.concat(F.coalesce(headers, F.array()), new)
    return F.when(headers.isNotNull() | (F.size(new) > 0), all) if skip else all


def _column_of(new: _New, fields: dict[str, Any]) -> Column:
    if not isinstance(new.column, str):
        return new.column if is_column(new.column) else F.lit(new.column).cast("binary")
    if new.column not in fields:
        raise ValueError(f"header {new.key!r}: {unknown_name('column', new.column, fields)}")
    return named(new.column)


def _written(new: _New, place: str, given: DataType, on_sail: bool) -> Column:
    """Return the bytes that a column is written as."""
    what = f"header {new.key!r}: " + (f"column {new.column!r}" if isinstance(new.column, str) else "the column")
    type = new.type
    if type is None:
        type = spelled(given)
        if type not in ("string", "binary"):
            raise TypeError(
                f"{what} is {type}, which needs a type to be written: pass a pair such as (column, 'int64')"
            )
    needed = written_from(type, given)
    if needed is not None:
        raise TypeError(f"{what} is {spelled(given)}, and {type} is written from {needed}")
    if on_sail:
        if type in ("string", "binary"):
            return named(place).cast("binary")
        return ArrowFunction(written_values, {"key": new.key, "type": type}).of(named(place), BinaryType())
    written = writer(type)(named(place))
    return guarded(written.checks, written.value, lambda check: raised(f"header {new.key}: ", check))
