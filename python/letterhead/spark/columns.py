"""One header as a column, for ``select``, ``where`` and ``join``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from letterhead.columns import Field, field, normalise
from letterhead.errors import check_name

if TYPE_CHECKING:
    from pyspark.sql import Column

    from letterhead.columns import Repeat

__all__ = ["header"]

_ENGINES = ("spark", "arrow")


def header(
    column: str | Column,
    key: str,
    type: str,
    *,
    repeat: Repeat = "last",
    required: bool = False,
    errors: Literal["raise", "null"] = "raise",
    format: str | None = None,
    engine: Literal["spark", "arrow"] | None = None,
) -> Column:
    """Read one header of every message as a column.

    From a column of headers, such as Spark's Kafka source gives with ``includeHeaders``, this is an expression of Spark
    SQL: no Python runs, nothing has to be installed on executors, and it can stand in ``where`` and ``join``. From a
    column of bytes (``format`` is given) an Arrow UDF reads them, for which Spark 4.1 is needed. Both give the same.
    For several headers at once :func:`select_headers` is the faster way.

    Parameters
    ----------
    column : str or Column
        Headers (``array<struct<key:string,value:binary>>``), or with ``format`` their bytes (``binary``).
    key : str
        Key of the header, and the name of the column that is made.
    type : str
        What the value is read as: ``name[:be|le|text]``, see :func:`letterhead.field`.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that stands more than once; ``"all"`` gives an array, empty where there is none.
    required : bool, default False
        Whether a message without the header is an error. A null value is a header all the same.
    errors : {"raise", "null"}, default "raise"
        What to do with a value that is not of the type, and with bytes that are no headers.
    format : str, optional
        Format of the bytes.
    engine : {"spark", "arrow"}, optional
        What evaluates it: Spark's own expressions or the Arrow UDF. By default the first where there is a choice.

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
        If a name is misspelt, or the engine cannot do what is asked for, or Spark is too old for it.

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
    """
    if not isinstance(key, str):
        raise TypeError(f"key must be str, not {key.__class__.__name__}")
    wanted = field(type, key=key, repeat=repeat, required=required)
    _check_errors(errors)
    if engine is not None:
        check_name("engine", engine, _ENGINES)
    if engine == "spark" and format is not None:
        raise ValueError(
            f"engine='spark' reads columns of headers, and format={format!r} says that the column is bytes: "
            "decode_headers makes headers of them"
        )
    if engine == "arrow" or format is not None:
        return _by_arrow(column, wanted, errors, format).alias(key)
    return _by_spark(column, wanted, errors).alias(key)


def _check_errors(errors: str) -> None:
    if errors == "column":
        raise ValueError("errors='column' needs a second column, and this makes one: use select_headers")
    check_name("errors value", errors, ("raise", "null"))


def _by_spark(column: str | Column, wanted: Field, errors: Literal["raise", "null"]) -> Column:
    from pyspark.sql import functions as F

    from letterhead.spark.expressions import Fault, reading

    read, strict = reading(wanted.type), errors == "raise"

    def is_wanted(header: Column) -> Column:
        same = header["key"] == F.lit(wanted.key)
        # Only a null key makes the comparison null, and that is an error whichever header is asked for.
        return F.coalesce(same, F.raise_error(F.lit("the key of a header is null (null_key)"))) if strict else same

    # Written out where it is used: Spark computes a repeated part once, and that is twice as fast as binding it.
    named = F.filter(column, is_wanted)
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
        return F.raise_error(F.concat(F.lit(f"header {wanted.key}: "), fault.message, F.lit(f" ({fault.code})")))

    def checked(faults: list[Fault], value: Column) -> Column:
        # From the last to the first: the first that holds is the one that counts.
        for fault in reversed(faults):
            value = F.when(fault.when, fail(fault)).otherwise(value)
        return value

    if wanted.repeat != "all":
        value = F.get(named, 0) if wanted.repeat == "first" else F.try_element_at(named, F.lit(-1))
        found = read(value["value"])
        return checked([*faults, *found.faults], found.value)

    def element(header: Column) -> Column:
        found = read(header["value"])
        return checked([*found.faults], found.value)

    def is_bad(header: Column) -> Column:
        bad = F.lit(False)
        for fault in reversed(read(header["value"]).faults):
            bad = F.when(fault.when, F.lit(True)).otherwise(bad)
        return bad

    # A message without headers has none of any key.
    named = F.coalesce(named, F.array())
    values = F.transform(named, element)
    if not strict:
        # A list with a hole could not be told from one with a null value.
        values = F.when(F.exists(named, is_bad), F.lit(None)).otherwise(values)
    return checked(faults, values)


def _by_arrow(column: str | Column, wanted: Field, errors: Literal["raise", "null"], format: str | None) -> Column:
    import pyspark
    from pyspark.sql import functions as F

    from letterhead.spark.runner import HeaderKernel
    from letterhead.spark.schemas import declared

    if not hasattr(F, "arrow_udf"):
        raise ValueError(f"this needs Arrow UDFs, which came with Spark 4.1, and this is {pyspark.__version__}: "
                         "use select_headers")  # fmt: skip
    # Headers in a list are read the same in every format without kinds.
    format = "kafka" if format is None else format
    columns = {str(wanted.key): wanted}
    schema = declared("select", format, columns=normalise(columns), errors=errors, dialect="spark")
    kernel = HeaderKernel(format, columns, errors)
    return F.arrow_udf(kernel.header, schema.spark[0].dataType)(column)
