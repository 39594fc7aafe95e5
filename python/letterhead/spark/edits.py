"""Edits of the headers of every message, by Spark's own expressions: drop, keep, rename, insert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from letterhead.errors import check_name, unknown_name
from letterhead.spark.frame import Input, check_column, check_types, computed, fields_of, is_column, named, unused_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

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
    """Drop, keep, rename and insert headers; all others stay as they are.

    What Connect's transforms DropHeaders, InsertHeader and HeaderFrom do, and more. The steps are taken in the order of
    the parameters: ``only`` and ``drop`` look at the keys that messages came with, ``rename`` at what they left, and what
    is inserted comes last, at the end. So ``drop=["retry"], insert={"retry": …}`` replaces a header. Order, repeated
    headers and null values are kept. All of it is one expression of Spark SQL: no Python runs, nothing has to be
    installed on executors, and it takes streaming frames.

    Parameters
    ----------
    column : str or Column, default "headers"
        The column of headers, ``array<struct<key:string,value:binary>>``, as Spark's Kafka source gives it with
        ``includeHeaders`` and its sink takes it.
    into : str, optional
        Name of the column that is made; by default the one that is read, in its place. A Column needs it.
    only : sequence of str, or function of Column, optional
        Keys of the headers that stay, or what tells of a key whether it is one: ``lambda key: key.startswith("ce_")``.
    drop : sequence of str, or function of Column, optional
        Keys of the headers that go, or what tells of a key whether it is one. All headers of a key go.
    rename : mapping of str to str, or function of Column, optional
        Old key to new, all at once, so that two can be swapped; or what makes the new key of an old one. A header whose
        new key was there already is a further one of that key.
    insert : mapping or sequence of pairs, optional
        Key to value, in order; pairs can name a key twice. A value is text as a str, bytes, or ``None`` for a null value,
        the same for every message; or it is a column: ``(column, type)``, the column by name or as a Column, the type as
        in :func:`select_headers`, ``name[:be|le|text]``; a Column alone if it is a string or binary. Times are cut off at
        the millisecond.
    nulls : {"insert", "skip"}, default "insert"
        Whether null in a column makes a header with a null value, or none.

    Returns
    -------
    function from DataFrame to DataFrame
        For ``df.transform``. The column of headers stays in its place. Headers that are null, as the Kafka source gives
        them where a message has none, stay null unless something is inserted.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of these, or steps contradict each other; when it is called, if the frame does not have
        such columns, or a type cannot be written from its column.

    Notes
    -----
    A value that its type cannot hold (``out_of_range``, ``bad_text``, ``value_not_utf8``) ends the query with an error that
    names the key. Which it is can be asked before: ``where("retry between -128 and 127")``.

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
    check_column("column", column)
    if into is None and not isinstance(column, str):
        raise ValueError("into= names the column that is made, as a Column has no name to be replaced")
    made_name: Any = column if into is None else into
    check_name("nulls value", nulls, ("insert", "skip"))
    only, drop, rename = _keys("only", only), _keys("drop", drop), _renames(rename)
    news = _news(insert)
    if only is None and drop is None and rename is None and not news:
        raise ValueError("no edit was asked for: only, drop, rename or insert says which")
    _check_order(only, drop, rename)

    def edited(df: DataFrame) -> DataFrame:
        fields = fields_of(df)
        df, [read] = computed(df, [Input(column, "headers are edited in", (_HEADERS,))])
        check_types(fields_of(df), [read])
        # Columns of their own first: what is random is then drawn once, though it is looked at more than once.
        places = {n: unused_name(f"inserted_{n}", fields) for n, new in enumerate(news) if new.column is not None}
        wide = df.select("*", *(_column_of(news[n], fields).alias(place) for n, place in places.items()))
        given = {field.name: field.dataType for field in wide.schema.fields}
        made = [
            _header(new.key, _constant(new.value) if n not in places else _written(new, places[n], given[places[n]]))
            for n, new in enumerate(news)
        ]
        headers = _with(_without(named(read.name), only, drop, rename), made, nulls == "skip")
        names = dict.fromkeys([*fields, made_name])
        return wide.select(*(headers.alias(name) if name == made_name else named(name) for name in names))

    return edited


class _New(NamedTuple):
    """A header to insert: its value for every message, or the column it is written from."""

    key: str
    value: bytes | None = None
    column: Any = None
    type: str | None = None


_HEADERS = "array<struct<key:string,value:binary>>"


# What was asked for ---------------------------------------------------------------------------------------------------


def _keys(what: str, given: Any) -> Any:
    if given is None or callable(given):
        return given
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"{what} must be a list of keys or a function of a Column, not {_name_of(given)}")
    for key in given:
        if not isinstance(key, str):
            raise TypeError(f"a key of {what} must be str, not {_name_of(key)}")
    return list(given)


def _renames(given: Any) -> Any:
    if given is None or callable(given):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"rename must be a mapping of old key to new or a function of a Column, not {_name_of(given)}")
    for key in (*given, *given.values()):
        if not isinstance(key, str):
            raise TypeError(f"a key of rename must be str, not {_name_of(key)}")
    return dict(given)


def _check_order(only: Any, drop: Any, rename: Any) -> None:
    """Refuse steps that could do nothing: they were meant for another order."""
    for key in rename if isinstance(rename, dict) else ():
        if isinstance(drop, list) and key in drop:
            raise ValueError(f"rename names {key!r}, and drop takes it away before")
        if isinstance(only, list) and key not in only:
            raise ValueError(f"rename names {key!r}, and only does not let it stay: it is asked for the old key")
    for key in drop if isinstance(drop, list) else ():
        if isinstance(only, list) and key in only:
            raise ValueError(f"only and drop both name {key!r}")


def _news(given: Any) -> list[_New]:
    if given is None:
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Mapping | Sequence):
        raise TypeError(f"insert must be a mapping of key to value or a list of pairs, not {_name_of(given)}")
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"insert takes pairs of a key, which is str, and a value, not {pair!r:.60}")
    return [_new(key, value) for key, value in pairs]


def _new(key: str, given: Any) -> _New:
    from letterhead.types import type_name

    if given is None or isinstance(given, bytes):
        return _New(key, given)
    if isinstance(given, str):
        return _New(key, given.encode())
    if is_column(given):
        return _New(key, column=given)
    if not isinstance(given, tuple) or len(given) != 2 or not (isinstance(given[0], str) or is_column(given[0])):
        raise TypeError(f"header {key!r}: str, bytes, None, a Column or a pair (column, type) is inserted, "
                        f"not {_name_of(given)}: a number is (F.lit(3), 'int32')")  # fmt: skip
    try:
        type = type_name(given[1], sql=True)
    except (TypeError, ValueError) as error:
        raise error.__class__(f"header {key!r}: {error}") from None
    if type.endswith(":amqp"):
        raise ValueError(f"header {key!r}: type '{type}' is read, and not written")
    return _New(key, column=given[0], type=type)


# Expressions ----------------------------------------------------------------------------------------------------------


def _without(headers: Column, only: Any, drop: Any, rename: Any) -> Column:
    """Give the headers that stay, under their new keys."""
    from pyspark.sql import functions as F

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
    from pyspark.sql import functions as F

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
        raise TypeError(f"the function of {what} must give a Column, not {_name_of(made)}")
    column: Column = made
    return column


def _with(headers: Column, made: list[Column], skip: bool) -> Column:
    """Put new headers behind the others."""
    from pyspark.sql import functions as F

    if not made:
        return headers
    new = F.array(*made)
    if skip:
        new = F.filter(new, lambda header: header["value"].isNotNull())
    all = F.concat(F.coalesce(headers, F.array()), new)
    return F.when(headers.isNotNull() | (F.size(new) > 0), all) if skip else all


def _header(key: str, value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.struct(F.lit(key).alias("key"), value.alias("value"))


def _constant(value: bytes | None) -> Column:
    from pyspark.sql import functions as F

    return F.lit(value).cast("binary")


def _column_of(new: _New, fields: dict[str, Any]) -> Column:
    if not isinstance(new.column, str):
        column: Column = new.column
        return column
    if new.column not in fields:
        raise ValueError(f"header {new.key!r}: {unknown_name('column', new.column, fields)}")
    return named(new.column)


def _written(new: _New, place: str, given: DataType) -> Column:
    """Give the bytes that a column is written as."""
    from pyspark.sql import functions as F

    from letterhead.spark.schemas import spelled
    from letterhead.spark.writing import writing, written_from

    what = f"header {new.key!r}: " + (f"column {new.column!r}" if isinstance(new.column, str) else "the column")
    type = new.type
    if type is None:
        type = spelled(given)
        if type not in ("string", "binary"):
            raise TypeError(f"{what} is {type}, and a type says how that is written: (column, 'int64'), for one")
    needed = written_from(type, given)
    if needed is not None:
        raise TypeError(f"{what} is {spelled(given)}, and {type} is written from {needed}")
    faults, value = writing(type)(named(place))
    for fault in reversed(faults):
        said = F.concat(F.lit(f"header {new.key}: "), fault.message, F.lit(f" ({fault.code})"))
        value = F.when(fault.when, F.raise_error(said)).otherwise(value)
    return value


def _name_of(given: object) -> str:
    return given.__class__.__name__
