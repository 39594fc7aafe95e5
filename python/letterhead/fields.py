"""Output columns of ``select``: their headers and types.

:func:`letterhead.field` describes a column; :func:`normalise` converts ``headers=`` to the arguments of the compiled core.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from letterhead._ddl import parse_ddl
from letterhead._default_values import Default, default_of
from letterhead._error_policies import has_error_column
from letterhead._header_edits import text_or_value
from letterhead._names import check_name, first_repeated
from letterhead.headers import GivenKey
from letterhead.types import ValueType, is_type, parse, type_or_nearest
from letterhead.values import Value

__all__ = ["Columns", "Repeat"]


def __dir__() -> list[str]:
    return __all__


Repeat: TypeAlias = Literal["last", "first", "all", "error"]

REPEATS: tuple[str, ...] = ("last", "first", "all", "error")
"""Policies for keys that occur more than once."""

NativeKey: TypeAlias = str | int | tuple[str, bytes]


class ColumnSpec(NamedTuple):
    """Output column in the form of the compiled core; see :class:`Field`."""

    name: str
    key: NativeKey
    type: str
    repeat: str = "last"
    required: bool = False
    default: Default | None = None
    split: str | None = None


class Field(NamedTuple):
    """One output column, returned by :func:`field`, which documents the attributes.

    Attributes
    ----------
    type, key, repeat, required, default, split
        Type, key, what to do with repeated keys, whether the header is required, the value of a message without it, and
        the text between the elements of one value.
    """

    type: str
    key: GivenKey | None = None
    repeat: Repeat = "last"
    required: bool = False
    default: object = None
    split: str | None = None

    def __repr__(self) -> str:
        parts = {name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name)}
        return f"Field({', '.join(f'{name}={value!r}' for name, value in parts.items())})"


class SchemaLike(Protocol):
    """``StructType`` of PySpark, or a schema of pyarrow."""

    @property
    def names(self) -> Any:
        """Names of the columns."""


Columns: TypeAlias = Mapping[str, object] | str | SchemaLike | type
"""Names of output columns, and a :data:`ValueType` or a :class:`Field` for each; or a schema.

A schema is Spark's DDL (``"tenant string not null, retry int"``), a ``StructType``, a schema of pyarrow, or a dataclass. The
header of a column that is not nullable is required. Annotations of a dataclass are ``str int float bool bytes datetime UUID``
and lists of these, possibly with ``| None``, or with another type, as in ``Annotated[int, "int32"]``; a default is the value of
a message without the header. Values are ``object``, because type checkers infer ``dict[str, object]`` for a variable
with types of several classes, and do not accept it as a mapping to their union. Values of other classes raise
``TypeError``.
"""


def field(
    type: ValueType,
    key: GivenKey | None = None,
    *,
    repeat: Repeat = "last",
    required: bool = False,
    default: object = None,
    split: str | None = None,
) -> Field:
    """Describe an output column of ``select`` that needs more than a type.

    Parameters
    ----------
    type : str, class of a value, pyspark.sql.types.DataType or pyarrow.DataType
        ``name[:be|le|text|json|connect|varlen|amqp]``, with a name of ``string binary bool char int8 int16 int32 int64 int128
        uint8 uint16 uint32 uint64 uint128 float32 float64 uuid timestamp_ms``. Numbers without a suffix are big-endian.
        ``json`` is JSON with or without quotes, as Spring Kafka reads it; text that is not a JSON string is itself a
        ``string:json``. ``connect`` is JSON with its schema, as Kafka Connect's ``JsonConverter`` writes it. ``varlen`` is a
        big-endian integer of any length. ``amqp`` is an AMQP 1.0 primitive, as :func:`letterhead.arrow.amqp` reads it, of
        any type but the integers of 128 bits. ``array<type>`` lists all values of the key, in order. Spark SQL names
        (``bigint``, ``long``, ``int``, ``smallint``, ``tinyint``, ``double``, ``float``, ``boolean``, ``timestamp`` and so
        on), ``lh.Int64``, ``LongType()`` and ``pa.int64()`` are accepted too.
        Text with a form of its own is ``timestamp:iso`` (RFC 3339), ``timestamp:s``, ``:ms``, ``:us`` or ``:ns`` (digits
        since 1970), ``date:text`` and ``decimal(p, s):text``. ``string:utf-16le``, ``string:utf-16be`` and
        ``string:latin-1`` are other character sets. The bytes of any type may be text: ``int32:le:base64``, ``uuid:hex``.
        ``"int32 | int32:text"`` is the first of several types that reads a value.
    key : str, int, bytes or Value, optional
        Key of the header; by default the name of the column. An int for formats with integer keys; a
        :class:`~letterhead.Value` for Iggy's typed keys, where bytes mean ``Binary(...)``.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that occurs more than once; ``"all"`` is the same as ``array<type>``. An absent header is null,
        and with ``"all"`` an empty list.
    required : bool, default False
        Whether a message without the header is an error (``missing_key``). A header with a null value is present.
    default : object, optional
        The value if a message lacks the header. A header with a null value stays null.
    split : str, optional
        For ``array<type>``: the text between the elements of one value, as in ``"eu,us"``.

    Returns
    -------
    Field
        The description.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.field("int32:le", key="retry", required=True)
    Field(type='int32:le', key='retry', required=True)
    >>> lh.field("array<string>", key="route", split=",")
    Field(type='string', key='route', repeat='all', split=',')
    """
    return field_and_default(type, key, repeat, required, default, split)[0]


def field_and_default(
    type: object,
    key: GivenKey | None = None,
    repeat: Repeat = "last",
    required: bool = False,
    default: object = None,
    split: str | None = None,
    *,
    sql: bool = False,
) -> tuple[Field, Default | None]:
    """Return a field, and its default in the form of the compiled core.

    With ``sql``, the error for an unknown type lists the names of Spark SQL.
    """
    if isinstance(type, str) and isinstance(key, str) and not is_type(type) and (right := type_or_nearest(key)):
        raise ValueError(f"the type comes first: field({right!r}, {type!r})")
    name, is_array = parse(type, sql)
    if key is not None:
        check_key("key", key)
    if isinstance(key, int) and not -(1 << 31) <= key < 1 << 31:
        raise ValueError(f"an integer key has 32 bits, and {key} does not fit them")
    check_name("repeat", repeat, REPEATS)
    if is_array and repeat not in ("last", "all"):
        raise ValueError(f"type 'array<{name}>' lists all values: leave out repeat={repeat!r}, or pass '{name}'")
    if not isinstance(required, bool):
        raise TypeError(f"required must be bool, not {required.__class__.__name__}")
    repeat = "all" if is_array else repeat
    default_spec = None
    if default is not None:
        if repeat == "all" or required:
            raise ValueError("default= is the value of a message without the header, which " + (
                "has an empty list here" if repeat == "all" else "is an error with required=True"))  # fmt: skip
        default_spec = default_of(name, default)
    if split is not None:
        if repeat != "all":
            raise ValueError(f"split= makes a list of a value: pass 'array<{name}>'")
        if not isinstance(split, str) or not split:
            raise TypeError("split must be text, such as ','")
    return Field(name, key, repeat, required, default, split), default_spec


def normalise(columns: Columns, *, sql: bool = False) -> list[ColumnSpec]:
    """Return columns in the form of the compiled core; ``sql`` is as in :func:`letterhead.types.type_name`."""
    types = columns_of(columns)
    if not types:
        raise ValueError("no columns were asked for")
    return [column_spec(name, column, sql=sql) for name, column in types.items()]


def columns_of(columns: Columns, parameter: str = "headers") -> Mapping[str, object]:
    """Return a type or field for each output column, for any form of columns; errors name the parameter."""
    if isinstance(columns, Mapping):
        return columns
    pairs: list[tuple[str, object]]
    if isinstance(columns, str):
        pairs = [
            (name, Field(type, required=True) if required else type) for name, type, required in parse_ddl(columns)
        ]
        check_distinct([name for name, _ in pairs])
        return dict(pairs)
    if dataclasses.is_dataclass(columns) and isinstance(columns, type):
        hints = get_type_hints(columns, include_extras=True)
        return {field.name: _column_of_attribute(field, hints[field.name]) for field in dataclasses.fields(columns)}
    module = type(columns).__module__.partition(".")[0]
    schema: Any = columns
    if module == "pyspark" and hasattr(schema, "fields"):
        pairs = [(field.name, _column_of_schema(field.dataType, field.nullable)) for field in schema.fields]
    elif module == "pyarrow" and hasattr(schema, "names"):
        pairs = [(field.name, _column_of_schema(field.type, field.nullable)) for field in schema]
    else:
        raise TypeError(
            f"{parameter} must be a mapping of output column to type such as {{'tenant': 'string'}}, Spark's DDL, a "
            f"StructType, a schema of pyarrow or a dataclass, not {columns.__class__.__name__}"
        )
    check_distinct([name for name, _ in pairs])
    return dict(pairs)


def _column_of_schema(type: Any, nullable: bool) -> object:
    """Return the type of a column of a schema, or a field whose header is required."""
    # A list is never null, but empty for a message without the header.
    is_list = "list" in str(type).partition("<")[0].lower() or type.__class__.__name__ == "ArrayType"
    return type if nullable or is_list else Field(type, required=True)


def _column_of_attribute(attribute: dataclasses.Field[Any], hint: Any) -> object:
    """Return the type of an attribute of a dataclass, or a field with its default."""
    column = _type_of_hint(attribute.name, hint)
    default = attribute.default
    if attribute.default_factory is not dataclasses.MISSING:
        default = attribute.default_factory()
    if default is dataclasses.MISSING or default is None or (isinstance(default, list | tuple) and not default):
        return column
    field = column if isinstance(column, Field) else Field(str(column))
    if field.default is not None:
        raise ValueError(f"column {attribute.name!r} has two defaults: leave one out")
    return field._replace(default=default)


_TYPES_OF_HINTS: dict[object, str] = {
    str: "string", int: "int64", float: "float64", bool: "bool", bytes: "binary", datetime: "timestamp_ms",
    UUID: "uuid",
}  # fmt: skip


def _type_of_hint(name: str, hint: Any) -> object:
    """Return the type of an attribute of a dataclass, or a field."""
    if isinstance(hint, Field):
        return hint
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        # If the annotation has a field or a type, additional text probably belongs to another library.
        types = [extra for extra in arguments[1:] if isinstance(extra, Field) or _is_type_object(extra)]
        types = types or [extra for extra in arguments[1:] if isinstance(extra, str)]
        if len(types) > 1:
            raise TypeError(f"column {name!r} is annotated with {len(types)} types: leave one")
        return types[0] if types else _type_of_hint(name, arguments[0])
    if origin in (Union, UnionType):
        others = [argument for argument in arguments if argument is not type(None)]
        if len(others) == 1:
            return _type_of_hint(name, others[0])
    if origin is list and len(arguments) == 1:
        element = _type_of_hint(name, arguments[0])
        if not isinstance(element, str):
            raise TypeError(f"column {name!r}: the elements of a list need a type such as Annotated[int, 'int32']")
        return f"array<{element}>"
    if hint not in _TYPES_OF_HINTS:
        known = ", ".join(getattr(type, "__name__", str(type)) for type in _TYPES_OF_HINTS)
        raise TypeError(
            f"column {name!r}: {hint!r} has no type of headers (annotations: {known}, list of one, and None)"
        )
    return _TYPES_OF_HINTS[hint]


def _is_type_object(extra: object) -> bool:
    return extra.__class__.__module__.partition(".")[0] in ("pyarrow", "pyspark")


class RepeatedColumnError(ValueError):
    """Two output columns have the same name.

    Attributes
    ----------
    column : str
        The name.
    """

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column

    def __str__(self) -> str:
        return f"two columns {self.column!r} would be made: rename one of them"


def check_distinct(names: Sequence[str], errors: str = "raise", error_column: str = "error") -> None:
    """Raise if two output columns have the same name."""
    if has_error_column(errors) and error_column in names:
        raise ValueError(f"two columns {error_column!r} would be made: give error_column= another name")
    name = first_repeated(names)
    if name is not None:
        raise RepeatedColumnError(name)


def column_spec(name: object, column: object, *, sql: bool = False) -> ColumnSpec:
    """Return the column for a name and a type or field, in the form of the compiled core."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a column must be str, not {name.__class__.__name__}")
    check_utf8("the name of a column", name)
    try:
        # A Field may be constructed without `field`, so it is also checked here.
        field, default = field_and_default(*(column if isinstance(column, Field) else (column,)), sql=sql)
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r}: {error}") from None
    key = native_key(name if field.key is None else field.key)
    return ColumnSpec(name, key, field.type, field.repeat, field.required, default, field.split)


def check_key(argument: str, key: object) -> None:
    """Raise TypeError or ValueError if an argument, named in the error, is not a valid header key."""
    if isinstance(key, bool) or not isinstance(key, str | int | bytes | Value):
        raise TypeError(f"{argument} must be str, int, bytes or a Value, not {key.__class__.__name__}")
    if isinstance(key, str):
        check_utf8(argument, key)


def check_utf8(argument: str, text: str) -> None:
    """Raise ValueError if text contains half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        start = max(0, error.start - 20)
        raise ValueError(
            f"{argument} {text[start : error.start + 20]!r} has half a surrogate pair, which is not UTF-8"
        ) from None


def native_key(key: GivenKey) -> NativeKey:
    """Return a key in the form of the compiled core; a typed string that is UTF-8 becomes a str."""
    if isinstance(key, bytes):
        return "binary", key
    key = text_or_value(key) if isinstance(key, Value) else key
    return (key.type, key.bits) if isinstance(key, Value) else key
