"""One header as a column, for ``select``, ``where`` and ``join``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from letterhead.errors import DecodeError, check_name
from letterhead.fields import Field, field, field_of, normalise, plain_key
from letterhead.types import ValueType

if TYPE_CHECKING:
    from pyspark.sql import Column

    from letterhead.fields import Repeat
    from letterhead.headers import GivenKey
    from letterhead.limits import Limits

__all__ = ["header"]

_ENGINES = ("spark", "arrow")


def header(
    column: str | Column,
    key: GivenKey,
    type: ValueType,
    *,
    repeat: Repeat = "last",
    required: bool = False,
    errors: Literal["raise", "null"] = "raise",
    format: str | None = None,
    engine: Literal["spark", "arrow"] | None = None,
    limits: Limits | None = None,
) -> Column:
    """Read one header of every message as a column.

    From a column of headers, such as Spark's Kafka source gives with ``includeHeaders``, this is an expression of Spark
    SQL: no Python runs, nothing has to be installed on executors, and it can stand in ``where`` and ``join``. From a
    column of bytes (``format`` is given) an Arrow UDF reads them, for which Spark 4.1 is needed. Both give the same.
    For several headers at once :func:`select_headers` is the faster way.

    Parameters
    ----------
    column : str or Column
        Headers, as :func:`decode_headers` gives and as Spark's Kafka source does
        (``array<struct<key:string,value:binary>>``), or with ``format`` their bytes (``binary``).
    key : str, int, bytes or Value
        Key of the header, and the name of the column that is made. An int for formats with integer keys; a
        :class:`~letterhead.Value` for Iggy's typed keys, where bytes stand for ``Binary(...)``.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        What the value is read as: ``name[:be|le|text|amqp]``, see :func:`letterhead.field`. Where the headers have types,
        the type decides: a value of another one than the type's is an error.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that stands more than once; ``"all"`` gives an array, empty where there is none.
    required : bool, default False
        Whether a message without the header is an error. A null value is a header all the same.
    errors : {"raise", "null"}, default "raise"
        What to do with a value that is not of the type, and with bytes that are no headers.
    format : str, optional
        Format of the bytes, or of the headers in a list: whether they have types, and what their keys are. By default
        the column has headers of ``kafka``.
    engine : {"spark", "arrow"}, optional
        What evaluates it: Spark's own expressions, which read columns of headers, or the Arrow UDF, which reads either.
        By default the Arrow UDF where ``format`` is given, as the column may be bytes.
    limits : Limits, optional
        The most to read of bytes; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Column
        The value: ``uint8`` as short, ``uint16`` as int, ``uint32`` as long, ``uint64`` as decimal(20,0), 128 bits as
        decimal(38,0), ``uuid`` and ``char`` as string, ``timestamp_ms`` as timestamp, the others as themselves.

    Raises
    ------
    TypeError
        If an argument is of the wrong Python type.
    ValueError
        If a name is misspelt, the format has other keys, or Spark is too old for it.

    Notes
    -----
    Spark may evaluate an Arrow UDF twice when a filter uses it: the filter is pushed down with a copy. The answer is the
    same; where it costs too much, :func:`select_headers` reads once.

    Each call looks through the headers of its own. For several headers :func:`select_headers` is the faster way: for three
    of ten, an expression each took more than four times as long (``make bench``).

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

    Headers with types, and keys that are integers, are read by an expression, too:

    >>> typed = fetched.transform(lhs.explode_batches("cell", "kip82-messages", columns=["headers"], keep=[]))
    >>> typed.select(lhs.header("headers", "n", "int8", format="kip82-typed", engine="spark")).show(1)
    +---+
    |  n|
    +---+
    |  0|
    +---+
    only showing top 1 row
    """
    wanted = field_of(type, key, repeat, required, sql=True)
    _check_errors(errors)
    if engine is not None:
        check_name("engine", engine, _ENGINES)
    is_amqp = wanted.type.endswith(":amqp")
    if is_amqp and engine == "spark":
        raise ValueError(f"type '{wanted.type}' is not read by Spark's expressions: leave engine out, or say 'arrow'")
    by_spark = engine == "spark" or (engine is None and format is None and not is_amqp)
    if by_spark and limits is not None:
        raise ValueError("limits bound the bytes that are read, and Spark's expressions read none: leave limits out")
    format = "kafka" if format is None else format
    layout = _layout(format, wanted)
    name = _text(key)
    if by_spark:
        return _by_spark(column, name, wanted, errors, layout).alias(name)
    return _by_arrow(column, name, wanted, errors, format, limits).alias(name)


class _Layout(NamedTuple):
    """How the headers of a format lie in a list."""

    format: str
    keys: Literal["text", "int", "typed"]
    types: bool

    @property
    def type(self) -> str:
        """The type of the list, as ``typeof`` of Spark SQL spells it."""
        key = {"text": "key:string", "int": "key:int", "typed": "key_type:string,key:binary"}[self.keys]
        return f"array<struct<{key},{'type:string,' if self.types else ''}value:binary>>"


def _layout(format: str, wanted: Field) -> _Layout:
    from letterhead import _native

    # What it refuses are misspelt names, batches, and keys that the format does not have.
    _native.schema("select", format, columns=normalise({"": wanted}))
    row = next(row for row in _native.formats() if row["name"] == format)
    return _Layout(format, row["keys"], row["types"])


def _text(key: GivenKey) -> str:
    """Give a key as errors do."""
    if isinstance(key, str | int):
        return str(key)
    from letterhead.operations import select

    try:
        # Headers of which there are none: the error says which one is absent.
        select(b"", "iggy", {"": field("binary", key=key, required=True)})
    except DecodeError as error:
        return str(error.key)
    raise AssertionError("a header was found where there is none")


def _check_errors(errors: str) -> None:
    if errors == "column":
        raise ValueError("errors='column' needs a second column, and this makes one: use select_headers")
    check_name("errors value", errors, ("raise", "null"))


def _by_spark(
    column: str | Column, name: str, wanted: Field, errors: Literal["raise", "null"], layout: _Layout
) -> Column:
    from pyspark.sql import functions as F

    from letterhead.spark.expressions import Fault, header_reading

    read, strict = header_reading(wanted.type, layout.types), errors == "raise"

    # Written out where it is used: Spark computes a repeated part once, and that is twice as fast as binding it.
    named = F.filter(column, _is_wanted(wanted, layout, strict))
    # Of a null list the size is null, or -1 where ANSI mode is off.
    count = F.coalesce(F.size(named), F.lit(0))
    faults = []
    if wanted.required and strict:
        # Otherwise a header that is absent is what it always is: null, or an empty list.
        faults.append(Fault(count <= 0, "missing_key", F.lit("the header is required and absent")))
    if wanted.repeat == "error":
        faults.append(Fault(count > 1, "repeated_key", F.lit("the key stands a second time")))

    def fail(fault: Fault) -> Column:
        if not strict:
            return F.lit(None)
        return F.raise_error(F.concat(F.lit(f"header {name}: "), fault.message, F.lit(f" ({fault.code})")))

    def checked(faults: list[Fault], value: Column) -> Column:
        # From the last to the first: the first that holds is the one that counts.
        for fault in reversed(faults):
            value = F.when(fault.when, fail(fault)).otherwise(value)
        return value

    if wanted.repeat != "all":
        found = read(F.get(named, 0) if wanted.repeat == "first" else F.try_element_at(named, F.lit(-1)))
        return _of_type(column, layout, checked([*faults, *found.faults], found.value))

    def element(header: Column) -> Column:
        found = read(header)
        return checked([*found.faults], found.value)

    def is_bad(header: Column) -> Column:
        bad = F.lit(False)
        for fault in reversed(read(header).faults):
            bad = F.when(fault.when, F.lit(True)).otherwise(bad)
        return bad

    # A message without headers has none of any key.
    named = F.coalesce(named, F.array())
    values = F.transform(named, element)
    if not strict:
        # A list with a hole could not be told from one with a null value.
        values = F.when(F.exists(named, is_bad), F.lit(None)).otherwise(values)
    return _of_type(column, layout, checked(faults, values))


def _is_wanted(wanted: Field, layout: _Layout, strict: bool) -> Callable[[Column], Column]:
    """Make the predicate for headers; one that is broken ends the query, or is passed over."""
    from functools import reduce
    from operator import or_

    from pyspark.sql import functions as F

    assert wanted.key is not None
    plain = plain_key(wanted.key)

    def is_wanted(header: Column) -> Column:
        # Spark interprets this, for every header there is: each step shows in the time that a query takes.
        if layout.keys == "typed":
            type, bits = plain if isinstance(plain, tuple) else ("string", str(plain).encode())
            same = (header["key_type"] == F.lit(type)) & (header["key"] == F.lit(bits))
        else:
            same = header["key"] == F.lit(plain)
        if layout.keys != "typed" and not layout.types:
            # Only a null key makes the comparison null.
            return F.coalesce(same, F.raise_error(F.lit(_NO_KEY))) if strict else same
        checks = _broken(header, layout)
        broken, message = reduce(or_, (when for when, _ in checks)), checks[-1][1]
        for when, said in reversed(checks[:-1]):
            message = F.when(when, said).otherwise(message)
        return F.when(broken, F.raise_error(message) if strict else F.lit(False)).otherwise(same)

    return is_wanted


_NO_KEY = "the key of a header is null (null_key)"


def _broken(header: Column, layout: _Layout) -> list[tuple[Column, Column]]:
    """Give what makes a header none, in order, and what is said of it. A type may be null; a key's may not."""
    from pyspark.sql import functions as F

    from letterhead.spark.expressions import is_type

    def unknown(name: str) -> tuple[Column, Column]:
        return ~is_type(header[name]), F.concat(F.lit("unknown type '"), header[name], F.lit("' (unknown_type)"))

    no_key, checks = header["key"].isNull(), []
    if layout.keys == "typed":
        no_key = header["key_type"].isNull() | no_key
        checks.append(unknown("key_type"))
    if layout.types:
        checks.append(unknown("type"))
    return [(no_key, F.lit(_NO_KEY)), *checks]


def _of_type(column: str | Column, layout: _Layout, value: Column) -> Column:
    """Refuse columns of another type: a type that is not looked at would let a value be misread.

    Spark knows the type before a job runs, and takes the condition away.
    """
    from pyspark.sql import functions as F

    # Spark Connect names the collation that every string has which has no other.
    given = F.regexp_replace(F.typeof(column), r" collate UTF8_BINARY\b", "")
    said = f", and a header of {layout.format} is read from {layout.type}: format= says which headers they are"
    fault = F.raise_error(F.concat(F.lit("the column is "), given, F.lit(said)))
    return F.when(given != layout.type, fault).otherwise(value)


def _by_arrow(
    column: str | Column, name: str, wanted: Field, errors: Literal["raise", "null"], format: str, limits: Limits | None
) -> Column:
    import pyspark
    from pyspark.sql import functions as F

    from letterhead import arrow as lha
    from letterhead.spark.runner import ArrowFunction
    from letterhead.spark.schemas import declared

    if not hasattr(F, "arrow_udf"):
        raise ValueError(f"this needs Arrow UDFs, which came with Spark 4.1, and this is {pyspark.__version__}: "
                         "use select_headers")  # fmt: skip
    columns = {name: wanted}
    options: dict[str, Any] = {"columns": columns, "errors": errors, "_dialect": "spark", "limits": limits}
    schema = declared("select", format, **options)
    kernel = ArrowFunction(lha.select, {"format": format, **options}, only=True)
    return F.arrow_udf(kernel.read, schema.spark[0].dataType)(column)
