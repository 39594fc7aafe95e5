"""Drop, keep, rename and insert headers in a frame, with Spark's own expressions: :func:`edit_headers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StructField

from letterhead.errors import check_name, unknown_name
from letterhead.spark.expressions import guarded, raised
from letterhead.spark.frame import (
    HEADERS,
    Input,
    check_replaced,
    check_str,
    is_column,
    name_of_result,
    named,
    unused_name,
)
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import is_sail, unfiltered, written_values
from letterhead.spark.schemas import spelled
from letterhead.spark.transform import Transform
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
) -> Transform:
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
    Transform
        A function from DataFrame to DataFrame, for ``df.transform``. The column of headers keeps its position. Null
        headers, as the Kafka source returns them for a message without headers, stay null unless something is inserted.

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
    result_name = name_of_result(column, into)
    check_name("nulls value", nulls, ("insert", "skip"))
    only, drop, rename = _keys("only", only), _keys("drop", drop), _renames(rename)
    inserted = _inserted_headers(insert)
    if only is None and drop is None and rename is None and not inserted:
        raise ValueError("no edit was requested: pass only, drop, rename or insert")
    _check_order(only, drop, rename)
    step = _EditStep(result_name, only, drop, rename, inserted, nulls == "skip")
    return Transform((Input(column, "headers are edited in", (HEADERS,)),), step)


@dataclass(frozen=True)
class _EditStep:
    """An edit of headers by expressions of Spark SQL, with the arguments of :func:`edit_headers`."""

    result_name: str
    only: Keys | None
    drop: Keys | None
    rename: Renames | None
    inserted: tuple[_InsertedHeader, ...]
    skip_nulls: bool

    def apply(self, df: DataFrame, fields: Mapping[str, StructField], inputs: tuple[Input, ...]) -> DataFrame:
        """Return the frame with the edited headers in the column ``result_name``."""
        check_replaced(df, fields, self.result_name)
        on_sail = is_sail(df.sparkSession)
        # Inserted values become columns first: a random expression, which is used several times, is drawn once.
        columns = {unused_name(f"inserted_{n}", fields): header for n, header in enumerate(self.inserted)}
        wide = df.select("*", *(_column_of(header, fields).alias(name) for name, header in columns.items()))
        types = {field.name: field.dataType for field in wide.schema.fields}
        new = [
            F.struct(F.lit(header.key).alias("key"), _written(header, name, types[name], on_sail).alias("value"))
            for name, header in columns.items()
        ]
        headers = _remaining(named(inputs[0].name), self.only, self.drop, self.rename)
        if new:
            headers = _with_appended(headers, F.array(*new), self.skip_nulls, on_sail)
        if on_sail:
            headers = unfiltered(headers)
        names = dict.fromkeys([*fields, self.result_name])
        return wide.select(*(headers.alias(name) if name == self.result_name else named(name) for name in names))


class _InsertedHeader(NamedTuple):
    """A header to insert: its key, the name of a column, a Column or constant bytes, and the type to write."""

    key: str
    column: Any
    type: str | None = None


# Arguments ------------------------------------------------------------------------------------------------------------


def _keys(parameter: str, keys: Any) -> Any:
    if keys is None or callable(keys):
        return keys
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise TypeError(f"{parameter} must be a list of keys or a function of a Column, not {keys.__class__.__name__}")
    return [_checked_key(parameter, key) for key in keys]


def _renames(rename: Any) -> Any:
    if rename is None or callable(rename):
        return rename
    if not isinstance(rename, Mapping):
        name = rename.__class__.__name__
        raise TypeError(f"rename must be a mapping of old key to new or a function of a Column, not {name}")
    return {_checked_key("rename", old): _checked_key("rename", new) for old, new in rename.items()}


def _checked_key(parameter: str, key: Any) -> Any:
    check_str(f"a key of {parameter}", key)
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


def _inserted_headers(insert: Any) -> tuple[_InsertedHeader, ...]:
    if insert is None:
        return ()
    if isinstance(insert, str | bytes) or not isinstance(insert, Mapping | Sequence):
        raise TypeError(f"insert must be a mapping of key to value or a list of pairs, not {insert.__class__.__name__}")
    pairs = list(insert.items()) if isinstance(insert, Mapping) else list(insert)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"insert takes pairs of a key, which is str, and a value, not {pair.__class__.__name__}")
    return tuple(_inserted_header(key, value) for key, value in pairs)


def _inserted_header(key: str, value: Any) -> _InsertedHeader:
    if value is None or isinstance(value, bytes):
        return _InsertedHeader(key, value, "binary")
    if isinstance(value, str):
        return _InsertedHeader(key, value.encode(), "binary")
    if is_column(value):
        return _InsertedHeader(key, value)
    if not isinstance(value, tuple) or len(value) != 2 or not (isinstance(value[0], str) or is_column(value[0])):
        raise TypeError(f"header {key!r}: str, bytes, None, a Column or a pair (column, type) is inserted, "
                        f"not {value.__class__.__name__}: a number is (F.lit(3), 'int32')")  # fmt: skip
    try:
        type = type_name(value[1], sql=True)
    except (TypeError, ValueError) as error:
        raise error.__class__(f"header {key!r}: {error}") from None
    if is_only_read(type):
        name, suffix = type.split(":")
        raise ValueError(
            f"header {key!r}: type '{type}' can be read, but not written: pass '{name}' without ':{suffix}'"
        )
    return _InsertedHeader(key, value[0], type)


# Expressions ----------------------------------------------------------------------------------------------------------


def _remaining(headers: Column, only: Any, drop: Any, rename: Any) -> Column:
    """Return the remaining headers, under their new keys."""

    def stays(header: Column) -> Column:
        key, stays = header["key"], F.lit(True)
        if only is not None:
            stays = F.coalesce(_matches(key, only, "only"), F.lit(False))
        if drop is not None:
            stays = stays & ~F.coalesce(_matches(key, drop, "drop"), F.lit(False))
        return stays

    def renamed(header: Column) -> Column:
        return F.struct(_renamed(header["key"], rename).alias("key"), header["value"].alias("value"))

    if only is not None or drop is not None:
        headers = F.filter(headers, stays)
    return headers if rename is None or rename == {} else F.transform(headers, renamed)


def _matches(key: Column, keys: Any, parameter: str) -> Column:
    return _checked_column(parameter, keys(key)) if callable(keys) else key.isin(*keys)


def _renamed(key: Column, rename: Any) -> Column:
    if callable(rename):
        # A header without a key could not be written.
        no_key = F.raise_error(F.lit("rename makes the key of a header null (null_key)"))
        return F.coalesce(_checked_column("rename", rename(key)), F.when(key.isNotNull(), no_key).cast("string"))
    new = key
    for old_key, new_key in rename.items():
        new = F.when(key == old_key, F.lit(new_key)).otherwise(new)
    return new


def _checked_column(parameter: str, result: Any) -> Column:
    if not is_column(result):
        raise TypeError(f"the function of {parameter} must return a Column, not {result.__class__.__name__}")
    column: Column = result
    return column


def _with_appended(headers: Column, new: Column, skip: bool, on_sail: bool) -> Column:
    """Append new headers."""
    if on_sail:
        # Sail concatenates only arrays that agree in what may be null.
        headers, new = headers.cast(HEADERS), new.cast(HEADERS)
    if skip:
        new = F.filter(new, lambda header: header["value"].isNotNull())
    joined = F.concat(F.coalesce(headers, F.array()), new)
    return F.when(headers.isNotNull() | (F.size(new) > 0), joined) if skip else joined


def _column_of(header: _InsertedHeader, fields: Mapping[str, StructField]) -> Column:
    if not isinstance(header.column, str):
        return header.column if is_column(header.column) else F.lit(header.column).cast("binary")
    if header.column not in fields:
        raise ValueError(f"header {header.key!r}: {unknown_name('column', header.column, fields)}")
    return named(header.column)


def _written(header: _InsertedHeader, name: str, column_type: DataType, on_sail: bool) -> Column:
    """Return the bytes of a header, whose value is in the column ``name``."""
    column = f"column {header.column!r}" if isinstance(header.column, str) else "the column"
    where = f"header {header.key!r}: {column}"
    type = header.type
    if type is None:
        type = spelled(column_type)
        if type not in ("string", "binary"):
            raise TypeError(
                f"{where} is {type}, which needs a type to be written: pass a pair such as (column, 'int64')"
            )
    accepted = written_from(type, column_type)
    if accepted is not None:
        raise TypeError(f"{where} is {spelled(column_type)}, and {type} is written from {accepted}")
    if on_sail:
        if type in ("string", "binary"):
            return named(name).cast("binary")
        write = partial(written_values, key=header.key, type=type)
        return ArrowFunction(write).column(named(name), BinaryType())
    written = writer(type)(named(name))
    return guarded(written.checks, written.value, lambda check: raised(f"header {header.key}: ", check))
