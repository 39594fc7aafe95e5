"""One header as a column, for ``select``, ``where`` and ``join``: :func:`header`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyspark.sql import Column
from pyspark.sql.types import StructField

from letterhead._arrow_types import OnError
from letterhead._formats import format_table
from letterhead._names import check_name
from letterhead._value_text import text_of_key
from letterhead.fields import ColumnSpec, field_and_default, normalise
from letterhead.operations import DecodeOptions, Select
from letterhead.spark.checks import Check, Checked, case_when, error_expression, raise_expression, value_unless_failed
from letterhead.spark.engine import OTHER_ENGINE, Engine, NotReadBySparkError, check_engine, check_engine_on_sail
from letterhead.spark.expressions import Fields, header_parser, is_type, is_utf8, parser
from letterhead.spark.frame import VALUES_AS_BYTES, check_column
from letterhead.spark.runner import ArrowFunction
from letterhead.spark.sail import active_is_sail
from letterhead.spark.schemas import ddl, output_schema
from letterhead.spark.sql_text import F, Sql, attribute, bound
from letterhead.types import CHARSETS, ValueType, base_type, is_only_read, is_text_suffix, split_type

if TYPE_CHECKING:
    from letterhead.fields import Columns, Repeat
    from letterhead.headers import GivenKey
    from letterhead.limits import Limits

__all__ = [
    "HeaderLists",
    "check_column_type",
    "check_read_by_spark",
    "check_reported_by_spark",
    "header",
    "header_values",
    "is_read_by_spark",
    "join_errors",
]


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
    engine: Engine | None = None,
    limits: Limits | None = None,
) -> Column:
    """Read one header of every message as a column.

    From a column of headers, as Spark's Kafka source returns it with ``includeHeaders``, this is an expression of Spark
    SQL: it runs no Python, needs nothing installed on executors, and works in ``where`` and ``join``. From a binary
    column (with ``format``), and on Sail, an Arrow UDF reads them, which needs Spark 4.1. Both return the same values. For
    several headers use :func:`select_headers`, which reads the list once for all of them.

    Parameters
    ----------
    column : str or Column
        Headers, as returned by :func:`decode_headers` and by Spark's Kafka source
        (``array<struct<key:string,value:binary>>``), or with ``format`` their bytes (``binary``).
    key : str, int, bytes or Value
        Key of the header, and name of the new column. An int for formats with integer keys; a
        :class:`~letterhead.Value` for Iggy's typed keys, where bytes mean ``Binary(...)``.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        Type of the value, or several such as ``int32 | int32:text``, see :func:`letterhead.field`. If the headers have
        types, a value of another type is an error.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that occurs more than once; ``"all"`` returns an array, empty if the key is absent.
    required : bool, default False
        Whether a message without the header is an error. A header with a null value is present.
    default : object, optional
        The value if a message lacks the header. A header with a null value stays null.
    split : str, optional
        For ``array<type>``: the text between the elements of one value, as in ``"eu,us"``.
    errors : {"raise", "null"}, default "raise"
        What to do with a value of another type, and with malformed headers.
    format : str, optional
        Format of the bytes, or of the list of headers: whether it has types, and the type of its keys. By default
        a list of headers of ``kafka``.
    engine : {"spark", "arrow"}, optional
        Engine that evaluates it: Spark's own expressions, which read lists of headers, or the Arrow UDF, which reads
        lists and bytes. By default the Arrow UDF if ``format`` is given, because the column may be binary.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

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
    Spark may evaluate an Arrow UDF twice when a filter uses it, because Spark pushes down a copy of the filter. The
    result is the same; :func:`select_headers` reads once.

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

    >>> typed = lhs.explode_batches(fetched, "kip82-messages", column="batch", columns=["headers"], keep=[])
    >>> typed.select(lhs.header("headers", "n", "int8", format="kip82-typed", engine="spark")).first()
    Row(n=0)
    """
    check_column("column", column)
    field, _ = field_and_default(type, key, repeat, required, default, split, sql=True)
    if errors == "column":  # type: ignore[comparison-overlap]
        raise ValueError("errors='column' needs a second column, and this makes one: use select_headers")
    check_name("errors value", errors, ("raise", "null"))
    check_engine(engine)
    if engine == "spark":
        check_read_by_spark(field.type, split)
    on_sail = active_is_sail()
    by_default = engine is None and format is None and not on_sail and is_read_by_spark(field.type, split)
    by_spark = engine == "spark" or by_default
    if by_spark and limits is not None:
        raise ValueError("limits= applies to binary columns, and Spark's expressions read lists of headers: omit it")
    format = "kafka" if format is None else format
    name = text_of_key(key)
    # Rejects misspelt names, batch formats, and keys that the format does not support.
    select = Select(format, {name: field}, DecodeOptions(errors=errors, limits=limits), dialect="spark")
    check_engine_on_sail(engine, on_sail)
    if by_spark:
        [value] = header_values(column, format, {name: field}, errors, output_schema(select).spark).values()
        return check_column_type(column, format, value).column.alias(name)
    type_in_spark = output_schema(select).spark[0].dataType
    function = ArrowFunction("header", select.apply, first_field=True)
    return function.column(column, type_in_spark, remedy=": use select_headers").alias(name)


class _HeaderList(NamedTuple):
    """Structure of a format's list of headers."""

    format: str
    keys: Literal["text", "int", "typed"]
    types: bool

    @property
    def type(self) -> str:
        """Type of the list, as ``typeof`` of Spark SQL writes it."""
        key = {"text": "key:string", "int": "key:int", "typed": "key_type:string,key:binary"}[self.keys]
        return f"array<struct<{key},{'type:string,' if self.types else ''}value:binary>>"


def _header_list_type(format: str) -> _HeaderList:
    """Return the structure of a list of headers of a format."""
    info = format_table()[format]
    return _HeaderList(format, info.keys, info.types)


def check_read_by_spark(type: str, split: str | None, remedy: str = OTHER_ENGINE) -> None:
    """Raise ``ValueError`` for a type that Spark's expressions do not read, alone or with ``split``."""
    if not is_read_by_spark(type, split):
        raise NotReadBySparkError(f"type '{type}' is not read by Spark's expressions: {remedy}")


def header_values(
    column: str | Column,
    format: str,
    columns: Columns,
    errors: OnError,
    result: Sequence[StructField],
    remedy: str = OTHER_ENGINE,
) -> dict[str, Sql]:
    """Return the columns of a result; raise ``ValueError`` for options that Spark's expressions do not support."""
    specs = normalise(columns, sql=True)
    for spec in specs:
        check_read_by_spark(spec.type, spec.split, remedy)
    if errors == "column":
        check_reported_by_spark(format, remedy)
    return HeaderLists(attribute(column), format, errors).columns(specs, result)


def check_reported_by_spark(format: str, remedy: str = OTHER_ENGINE) -> None:
    """Raise ``ValueError`` for a format whose errors Spark's expressions do not report in a column."""
    header_list = _header_list_type(format)
    if header_list.keys != "text" or header_list.types:
        raise NotReadBySparkError(
            f"errors='column' is read by Spark's expressions where keys are text and values have no type, and {format} "
            f"has others: {remedy}"
        )


def is_read_by_spark(type: str, split: str | None) -> bool:
    """Return whether Spark's expressions read a type, whose values may be split."""
    return not is_only_read(type) and (split is None or all(map(_is_text, type.split(" | "))))


class HeaderLists:
    """Column of header lists, whose type is not checked, with expressions that the columns of a result share.

    With ``is_tested``, values have the form that conditions compare: times of ``timestamp_ms`` are numbers.
    """

    def __init__(
        self, column: Sql, format: str, errors: OnError, row: Sequence[Sql] = (), *, is_tested: bool = False
    ) -> None:
        self.is_tested = is_tested
        self.column, self.errors, self.is_strict, self.row = column, errors, errors == "raise", row
        self.type = _header_list_type(format)
        # The cast does not change text keys; lists with other keys are rejected elsewhere. Spark checks the types of the
        # first branch first, although it is never taken, so the error for a map names only the column.
        keys = F.when(F.lit(False), column.cast("array<string>")).otherwise(column["key"].cast("array<string>"))
        self.keys, self.reversed_keys = bound(keys), bound(F.reverse(keys))

    @cached_property
    def size(self) -> Sql:
        """Number of headers; in strict mode, a null key raises an error.

        The condition is part of this expression and does not precede the value, because Spark evaluates a common
        expression a single time only if no condition precedes it.
        """
        size = F.size(self.column)
        if not self.is_strict:
            return size
        null_key = F.raise_error(F.concat(F.lit(f"{self.type.format}: {_NULL_KEY}"), *self.row))
        return bound(F.when(self.has_null_key(), null_key).otherwise(size))

    def has_null_key(self) -> Sql:
        """Return whether a header of a list has no key."""
        return F.mapped("exists", self.reversed_keys, "key", lambda key: key.is_null())

    def columns(self, specs: Sequence[ColumnSpec], result: Sequence[StructField]) -> dict[str, Sql]:
        """Return the values of headers by name; with ``errors="column"``, the last is the list of errors."""
        if self.errors != "column":
            return {spec.name: self.value(spec) for spec in specs}
        values, errors = {}, [self.null_keys]
        for spec in specs:
            errors_of_column, values[spec.name] = self.reported(spec)
            errors.append(errors_of_column)
        return {**values, result[-1].name: join_errors(errors).cast(ddl(result[-1].dataType))}

    def value(self, spec: ColumnSpec) -> Sql:
        """Return the value of a header in each list; error messages end with ``row``."""
        checked, found = self._read(spec)
        column = f"{self.type.format}: column {spec.name}: "

        def fail(check: Check) -> Sql:
            if not self.is_strict:
                return F.lit(None)
            position = found.position_of(check)
            header = [] if position is None else [F.lit(", header "), position.cast("string")]
            text = F.concat(F.lit(column), check.message, F.lit(f" ({check.code}"), *header, F.lit(")"), *self.row)
            return F.raise_error(text)

        # Without projections, a single combined error would be evaluated twice for each check.
        return value_unless_failed(checked.checks, checked.value, fail)

    def _read(self, spec: ColumnSpec) -> tuple[Checked, _Found]:
        """Return the value of a header in each list with its checks, and the headers with the key."""
        found = _find(self, spec)
        checks: list[Check] = []
        is_list = spec.repeat == "all"
        if spec.required and (self.errors != "null" or is_list):
            # With errors="null" an absent header is null anyway, but a list would be empty.
            checks.append(Check(found.is_absent, "missing_key", F.lit("the header is required and absent")))
        if spec.repeat == "error":
            checks.append(Check(found.is_repeated, "repeated_key", F.lit("the key occurs a second time")))
        in_millis = self._in_millis(spec)
        parse = header_parser(spec.type, self.type.types, in_millis=in_millis)
        if is_list:
            return Checked(checks, self._values(spec, found.matching, parse)), found
        parsed = parse(_bound_header(found.header, self.type))
        if spec.default is not None:
            type, default_text = spec.default
            # If the key is absent, the header is null, and so are its checks.
            default = parser(type, in_millis=in_millis)(F.lit(default_text.encode())).value
            parsed = Checked(parsed.checks, F.when(found.is_absent, default).otherwise(parsed.value))
        return Checked([*checks, *parsed.checks], parsed.value), found

    def _in_millis(self, spec: ColumnSpec) -> bool:
        return self.is_tested and base_type(spec.type) == "timestamp_ms"

    def is_present(self, spec: ColumnSpec) -> Sql:
        """Return whether a list has the header."""
        return ~_find(self, spec).is_absent

    def reported(self, spec: ColumnSpec) -> tuple[Sql, Sql]:
        """Return the errors of a column, null if there are none, and its value, null if there are errors."""
        errors, value = self._reported(spec)
        return errors, F.when(errors.is_null(), value).otherwise(None)

    def _reported(self, spec: ColumnSpec) -> tuple[Sql, Sql]:
        checked, found = self._read(spec)

        def report(check: Check, header: Sql | None) -> Sql:
            return error_expression(check.code, check.message, header=header, key=str(spec.key), column=spec.name)

        def first_error(otherwise: Sql) -> Sql:
            position = found.position_of
            return bound(
                value_unless_failed(checked.checks, otherwise, lambda check: F.array(report(check, position(check))))
            )

        if spec.repeat != "all":
            return first_error(F.lit(None)), checked.value
        values = bound(checked.value)
        parse = header_parser(spec.type, self.type.types, in_millis=self._in_millis(spec))
        numbered = F.numbered(
            self.column, lambda header, index: F.struct(key=header["key"], value=header["value"], index=index)
        )
        matching = F.mapped("filter", numbered, "h", _is_requested(spec, self.type, False))
        if spec.split is not None:
            matching = _elements(matching, spec.split, self.type, ("index",))

        def errors_of(header: Sql) -> Sql:
            return value_unless_failed(parse(header).checks, F.lit(None), lambda check: report(check, header["index"]))

        bad = F.mapped("transform", matching, "h", errors_of)
        bad = F.mapped("filter", bad, "error", lambda error: error.is_not_null())
        # The list is null if one of its values is invalid.
        return first_error(F.when(values.is_null(), bad).otherwise(None)), values

    @cached_property
    def null_keys(self) -> Sql:
        """Errors of headers without a key, null if there are none."""
        message = F.lit("the key is null")
        errors = F.numbered(
            self.keys,
            lambda key, index: F.when(key.is_null(), error_expression("null_key", message, header=index)).otherwise(
                None
            ),
        )
        errors = F.mapped("filter", errors, "error", lambda error: error.is_not_null())
        return bound(F.when(self.has_null_key(), errors).otherwise(None))

    def _values(self, spec: ColumnSpec, matching: Sql, parse: Callable[[Fields], Checked]) -> Sql:
        """Return the values of all matching headers, as a list."""
        strict, column = self.is_strict, f"{self.type.format}: column {spec.name}: "
        if spec.split is not None:
            matching = bound(_elements(matching, spec.split, self.type))

        def element(header: Sql) -> Sql:
            parsed = parse(header)
            return value_unless_failed(
                parsed.checks, parsed.value, lambda check: raise_expression(column, check) if strict else F.lit(None)
            )

        def is_bad(header: Sql) -> Sql:
            bad = value_unless_failed(parse(header).checks, F.lit(False), lambda _: F.lit(True))
            # These checks accept a null value, but its type may be unknown.
            return bad | F.coalesce(~is_type(header["type"]), F.lit(False)) if self.type.types else bad

        # A message with null headers has no header of any key.
        matching = F.coalesce(matching, F.array())
        values = F.mapped("transform", matching, "h", element)
        if strict:
            return values
        # A null element would look like a header with a null value, so one bad value makes the whole list null.
        return F.when(F.mapped("exists", matching, "h", is_bad), F.lit(None)).otherwise(values)


def join_errors(errors: Sequence[Sql]) -> Sql:
    """Return the elements of lists of errors as one list, null if all lists are null."""
    lists = F.mapped("filter", F.array(*errors), "list", lambda list: list.is_not_null())
    return F.when(F.coalesce(*errors).is_not_null(), F.flatten(lists)).otherwise(None)


def _bound_header(header: Sql, type: _HeaderList) -> dict[str, Sql]:
    """Bind the fields of a header for a parser."""
    return {name: bound(header[name]) for name in ("type", "value")[not type.types :]}


def _is_text(type: str) -> bool:
    """Return whether values of a type are text, which Spark can split."""
    name, encoding, base = split_type(type)
    return bool(base) or is_text_suffix(encoding) or (name == "string" and encoding not in CHARSETS)


def _elements(matching: Sql, separator: str, header_list: _HeaderList, others: Sequence[str] = ()) -> Sql:
    """Split the value of every header into elements, each as a header with the same type and other fields.

    Values that are not UTF-8 are split by bytes, because parsing must reject as many elements as the core does.
    """

    def split(text: Sql, separator: str) -> Sql:
        return F.split(text, "\\Q" + separator.replace("\\E", "\\E\\\\E\\Q") + "\\E", -1)

    def elements(header: Sql) -> Sql:
        value, is_text = header["value"], F.lit(True)
        if header_list.types:
            is_text = F.coalesce(header["type"].isin("string", "binary"), F.lit(True))
        in_latin = split(F.decode(value, "ISO-8859-1"), separator.encode().decode("latin-1"))
        by_text = F.mapped(
            "transform", split(value.cast("string"), separator), "part", lambda part: part.cast("binary")
        )
        by_byte = F.mapped("transform", in_latin, "part", lambda part: F.encode(part, "ISO-8859-1"))
        parts = F.when(is_utf8(value) & is_text, by_text).when(value.is_not_null() & is_text, by_byte)

        def element(part: Sql) -> Sql:
            return F.struct(**{name: header[name] for name in ("type", *others)[not header_list.types :]}, value=part)

        return F.mapped("transform", parts.otherwise(F.array(value)), "part", element)

    return F.flatten(F.mapped("transform", matching, "h", elements))


class _Found(NamedTuple):
    """Headers with a key in a list: all headers, the selected one, its position from 0, and conditions on their number.

    ``second`` is the position of the second header, if any.
    """

    matching: Sql
    header: Sql
    position: Sql | None
    is_absent: Sql
    is_repeated: Sql
    second: Sql | None = None

    def position_of(self, check: Check) -> Sql | None:
        """Return the position of the header that fails a check, if known."""
        return {"missing_key": None, "repeated_key": self.second}.get(check.code, self.position)


def _find(lists: HeaderLists, spec: ColumnSpec) -> _Found:
    """Return the headers with the key of a spec.

    Text keys are searched without a lambda, which Spark would interpret for each header.
    """
    column, header_list = lists.column, lists.type
    matching = bound(F.mapped("filter", column, "h", _is_requested(spec, header_list, lists.is_strict)))
    if spec.repeat == "all" or header_list.keys != "text" or header_list.types:
        # The size of a null list is null, or -1 if ANSI mode is off.
        count = bound(F.coalesce(F.size(matching), F.lit(0)))
        header = bound(F.get(matching, F.lit(0) if spec.repeat == "first" else count - 1))
        return _Found(matching, header, None, count <= 0, count > 1)
    key, size = str(spec.key), lists.size
    # Positions are counted from 1; 0 means absent. `get` is not used for headers, because Spark 4.3 loses the column in
    # a join whose condition has both a field of all headers and one of a single header.
    from_last = F.array_position(lists.reversed_keys, key).cast("int")
    last = bound(size - from_last)
    if spec.repeat == "last":
        is_absent = F.coalesce(last == size, F.lit(True))
        return _Found(matching, F.try_element_at(column, last + 1), last, is_absent, F.lit(False))
    # The condition is true for every list, and raises the error for a null key.
    first = bound(F.when(size >= 0, F.array_position(lists.keys, key).cast("int")))
    is_absent = F.coalesce(first, F.lit(0)) == 0
    header = F.try_element_at(column, F.when(first > 0, first))
    is_repeated, second = F.lit(False), None
    if spec.repeat == "error":
        is_repeated = (first > 0) & (first <= last)
        second = F.array_position(F.slice(lists.keys, first + 1, size), key).cast("int") + first - 1
    return _Found(matching, header, first - 1, is_absent, is_repeated, second)


def _is_requested(spec: ColumnSpec, header_list: _HeaderList, strict: bool) -> Callable[[Sql], Sql]:
    """Return the predicate for headers. With ``strict``, malformed headers raise; otherwise only keys are compared."""
    plain = spec.key

    def is_requested(header: Sql) -> Sql:
        # Spark interprets this for every header, so each step adds to the run time of a query.
        if header_list.keys == "typed":
            type, bits = plain if isinstance(plain, tuple) else ("string", str(plain).encode())
            same = (header["key_type"] == F.lit(type)) & (header["key"] == F.lit(bits))
        else:
            same = header["key"] == F.lit(plain)
        if not strict:
            # A header of an unknown type matches, because the column must be null, not the value of another header.
            return same
        if header_list.keys != "typed" and not header_list.types:
            # Only a null key makes the comparison null.
            return F.coalesce(same, F.raise_error(F.lit(f"{header_list.format}: {_NULL_KEY}")))
        errors = [
            (when, F.raise_error(F.lit(f"{header_list.format}: {text}")))
            for when, text in _malformed(header, header_list)
        ]
        return case_when(errors, same)

    return is_requested


_NULL_KEY = "the key is null (null_key)"


def _malformed(header: Sql, header_list: _HeaderList) -> list[tuple[Sql, str]]:
    """Return the conditions that make a header malformed, in order, with their error messages.

    The type of a value may be null, the type of a key may not.
    """

    def unknown(name: str) -> tuple[Sql, str]:
        return ~is_type(header[name]), "the name of the type is unknown (unknown_type)"

    null_key, checks = header["key"].is_null(), []
    if header_list.keys == "typed":
        null_key = header["key_type"].is_null() | null_key
        checks.append(unknown("key_type"))
    if header_list.types:
        checks.append(unknown("type"))
    return [(null_key, _NULL_KEY), *checks]


def check_column_type(column: str | Column, format: str, value: Sql) -> Sql:
    """Reject columns of another type, whose values would be misread.

    Spark resolves the type before a job runs, and removes the condition.
    """
    # Spark Connect includes the default collation of strings.
    header_list = _header_list_type(format)
    column_type = F.regexp_replace(F.typeof(attribute(column)), " collate UTF8_BINARY(?![A-Za-z_])", "")
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
    remedy = case_when([*remedies, (is_text, as_bytes)], F.lit(""))
    expected = F.lit(f", and a header of {header_list.format} is read from {header_list.type}")
    error = F.raise_error(F.concat(F.lit("the column is "), column_type, expected, remedy))
    return F.when(column_type != header_list.type, error).otherwise(value)
