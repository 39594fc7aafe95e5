"""Names of formats as literal types, and names of the types of header values.

:func:`type_name` returns the canonical name of a value type, from that name, its name in Spark SQL, or an object of
``pyspark.sql.types`` or ``pyarrow``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from letterhead._names import shorten, unknown_name

__all__ = ["BatchFormat", "HeadersFormat", "MessageFormat", "ValueType"]


def __dir__() -> list[str]:
    return __all__


# Type checkers derive the type of a result from the name of the format, unless that is only known at run time. A test
# compares these names with the table of formats.
HeadersFormat: TypeAlias = Literal["kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023", "iggy-auto"]
MessageFormat: TypeAlias = Literal[
    "streams",
    "streams-timestamped",
    "kip82-wrapper",
    "kip82-message",
    "kip82-message-int",
    "kip82-message-wrapper",
    "iggy-message-2023",
    "iggy-message",
]
BatchFormat: TypeAlias = Literal[
    "kip82-messages", "kip82-messages-int", "kip82-messages-wrapper", "iggy-polled-2023", "iggy-batch", "record-batch"
]

SELECT_TYPES: tuple[str, ...] = (
    "string",
    "binary",
    "bool",
    "char",
    "int8",
    "int16",
    "int32",
    "int64",
    "int128",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint128",
    "float32",
    "float64",
    "uuid",
    "timestamp_ms",
)
"""Types that a value can be read as."""

ORDERS: tuple[str, ...] = ("be", "le", "text")
"""Suffixes of a type after a colon: big-endian, little-endian, text."""

UUID_ORDERS: tuple[str, ...] = ("guid", "reversed")
"""Suffixes of ``uuid`` instead of ``le``: the byte order of .NET's ``Guid``, and all sixteen bytes reversed."""

READ_SUFFIXES: tuple[str, ...] = ("json", "connect", "varlen", "amqp")
"""Suffixes of read-only encodings: JSON, JSON of Kafka Connect, integers of any length, AMQP primitives."""

TEXT_SUFFIXES: dict[str, str] = dict.fromkeys(("iso", "s", "ms", "us", "ns"), "timestamp")
"""Suffixes of text forms, with their type: RFC 3339, and digits since 1970."""

CHARSETS: tuple[str, ...] = ("utf-16le", "utf-16be", "latin-1")
"""Suffixes of ``string``: character sets other than UTF-8."""

BASE_ENCODINGS: tuple[str, ...] = ("base64", "hex")
"""Suffixes for any type whose bytes are written as text, as in ``int32:le:base64``."""

SUFFIXES: tuple[str, ...] = (*ORDERS, *UUID_ORDERS, *READ_SUFFIXES, *CHARSETS, *TEXT_SUFFIXES, *BASE_ENCODINGS)
"""All suffixes."""

_SPARK_NAMES = {
    "string": "string",
    "binary": "binary",
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "timestamp": "timestamp_ms",
}

_SQL_NAMES = _SPARK_NAMES | {"byte": "int8", "short": "int16", "integer": "int32", "long": "int64", "real": "float32"}

_ARROW_NAMES = {
    "large_string": "string",
    "string_view": "string",
    "large_binary": "binary",
    "binary_view": "binary",
    "timestamp[ms, tz=UTC]": "timestamp_ms",
}
"""Names that ``str`` returns for ``pyarrow`` types, if letterhead and Spark use other names."""

_FOREIGN_NAMES = {
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("str", "text", "varchar", "character"), "string"),
    **dict.fromkeys(("uint", "ulong", "ubigint"), "uint64"),
    "hugeint": "int128",
}
"""Rejected names of other systems, with the type to suggest."""

_NUMBER_WITH_ENCODING = re.compile(r"(u?int\d+|float\d+)[^a-z0-9]?(be|le|text|json)")
"""A name such as ``int32_le``, spelled ``int32:le`` in this package."""

_MAX_NAME = 40
"""Maximum length of a name for which a similar name is suggested."""

MAX_ALTERNATIVES = 16
"""Maximum number of alternative types of a value."""

_ARRAY = re.compile(r"array<(.*)>", re.IGNORECASE | re.DOTALL)

_ARROW_LIST = re.compile(r"(?:large_)?list(?:_view)?<[^:]*: (.*?)(?: not null)?>")

_DECIMAL = re.compile(r"decimal(?:128)?\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)", re.IGNORECASE)

_WIDTH = re.compile(r"(int|uint|float)([0-9]+)")

_WITHOUT_ORDER = ("string", "binary")
"""Types with neither a byte order nor digits."""

_WITHOUT_AMQP = ("int128", "uint128")

_WITHOUT_ARROW_NAME = ("char", "int128", "uint128", "uuid", "timestamp_ms")

_NEVER_SUGGESTED = ("byte", "char")  # "byt" may mean bytes, and "charr" a text

VALUE_CLASSES: dict[type, str] = {}
"""Classes of typed values, such as ``letterhead.Int32``, with their types; filled by their module."""

_Class = type  # parameters in this module are called `type`
_Dialect: TypeAlias = Literal["ours", "sql", "arrow"]


class SparkType(Protocol):
    """Type of ``pyspark.sql.types``, such as ``LongType()``."""

    def simpleString(self) -> str:
        """Return the type's name in Spark SQL."""
        ...


class ArrowType(Protocol):
    """Type of ``pyarrow``, such as ``pa.int64()``."""

    @property
    def num_fields(self) -> int:
        """Number of child fields."""
        ...

    def to_pandas_dtype(self) -> Any:
        """Return the type's counterpart in NumPy."""


ValueType: TypeAlias = str | SparkType | ArrowType | type[Any]


def type_name(type: ValueType, *, sql: bool = False) -> str:
    """Return the canonical name of the type of one value.

    Parameters
    ----------
    type : str, class of a value, pyspark.sql.types.DataType or pyarrow.DataType
        The type; a str may have a suffix such as ``:le``.
    sql : bool, default False
        Whether the error for an unknown type always lists the names of Spark SQL.

    Returns
    -------
    str
        One of :data:`SELECT_TYPES`, ``timestamp``, ``date`` or ``decimal(p,s)``, and the suffix.

    Raises
    ------
    TypeError, ValueError
        If the type is unknown or an array.

    Examples
    --------
    >>> from letterhead.types import type_name
    >>> type_name("bigint"), type_name("long:le"), type_name("string")
    ('int64', 'int64:le', 'string')
    """
    name, is_array = parse(type, sql)
    if is_array:
        raise ValueError(f"type 'array<{name}>' is a list where one value is expected: pass '{name}'")
    return name


def parse(type: object, sql: bool) -> tuple[str, bool]:
    """Return the canonical name of a type with alternatives, or of an array's elements, and whether it is an array."""
    if isinstance(type, str):
        return _parse_text(type, "sql" if sql else "ours")
    if isinstance(type, _Class) and type in VALUE_CLASSES:
        return VALUE_CLASSES[type], False
    if type.__class__.__module__.partition(".")[0] == "pyarrow":
        element = _ARROW_LIST.fullmatch(str(type))
        return _parse_text(f"array<{element[1]}>" if element else str(type), "arrow", is_object=True)
    if callable(getattr(type, "simpleString", None)) and not isinstance(type, _Class):
        return _parse_text(type.simpleString(), "sql", is_object=True)  # type: ignore[attr-defined]
    type_of_type = f"the class {type.__name__}" if isinstance(type, _Class) else type.__class__.__name__
    raise TypeError(
        f"a type such as 'int64', 'bigint', lh.Int64, LongType() or pa.int64() is needed, not {type_of_type}"
    )


@lru_cache(maxsize=1024)
def _parse_text(text: str, dialect: _Dialect, is_object: bool = False) -> tuple[str, bool]:
    array = _ARRAY.fullmatch(text)
    # In a choice of two lists, the first and the last bracket belong to different types.
    if array and not ("|" in text and ">" in array[1].partition("<")[0]):
        element, is_nested = _parse_text(array[1], dialect, is_object)
        if is_nested:
            raise ValueError(f"type {text!r} is a list of lists: only a list of values can be selected")
        return element, True
    if "|" in text and not is_object:
        return _parse_alternatives(text, dialect), False
    bytes_type, _, base = text.rpartition(":")
    if base in BASE_ENCODINGS and not is_object:
        return f"{_base_encoded(text, bytes_type, dialect)}:{base}", False
    written, colon, suffix = (text, "", "") if is_object else text.partition(":")
    if suffix == "text" and written.lower() == "timestamp":
        # Text may be a date, or digits in any unit, and the result would not show which.
        raise ValueError(
            f"type '{text}' does not say which text: pass 'timestamp:s', ':ms', ':us' or ':ns' for digits since 1970, "
            "and 'timestamp:iso' for text such as '2026-01-31T08:30:00Z'"
        )
    if TEXT_SUFFIXES.get(suffix) == written.lower():
        return f"{written.lower()}:{suffix}", False
    decimal = _DECIMAL.fullmatch(written)
    if decimal or written.lower() in ("date", "date32[day]"):
        return _date_or_decimal(f"decimal({decimal[1]},{decimal[2]})" if decimal else "date", suffix), False
    # SQL names are not case-sensitive.
    name = written if written in SELECT_TYPES else _SQL_NAMES.get(written.lower()) or _ARROW_NAMES.get(written)
    if name is None:
        raise _unknown_type(written, dialect, is_object)
    if colon and suffix not in SUFFIXES:
        raise unknown_name("suffix", suffix, SUFFIXES)
    if suffix in TEXT_SUFFIXES:
        raise ValueError(f"type '{text}': only {TEXT_SUFFIXES[suffix]} has the suffix ':{suffix}'")
    if suffix in CHARSETS and name != "string":
        raise ValueError(f"type '{text}': only string has the suffix ':{suffix}'")
    if suffix in UUID_ORDERS and name != "uuid":
        raise ValueError(f"type '{text}': only uuid has the suffix ':{suffix}'")
    if name == "uuid" and suffix == "le":
        raise ValueError(
            f"type '{text}' does not say which order: pass 'uuid:guid' for that of .NET's Guid, whose first three groups are "
            "little-endian, or 'uuid:reversed' for all sixteen bytes reversed"
        )
    if suffix == "amqp" and name in _WITHOUT_AMQP:
        raise ValueError(f"type '{text}': AMQP has no {name}")
    if suffix == "varlen" and not name.startswith(("int", "uint", "timestamp")):
        raise ValueError(f"type '{text}': only integers and times have a variable length")
    if suffix in ORDERS and name in _WITHOUT_ORDER:
        raise ValueError(f"type '{text}': {name} has neither byte order nor digits: leave out ':{suffix}'")
    return name + colon + suffix, False


def _base_encoded(text: str, bytes_type: str, dialect: _Dialect) -> str:
    """Return the canonical name of a type whose bytes are written as text."""
    name, is_array = _parse_text(bytes_type, dialect)
    if is_array:
        raise ValueError(f"type {text!r}: write the suffix of the elements, as in array<int32:base64>")
    if split_type(name)[2]:
        raise ValueError(f"type {text!r}: bytes are written as text only once")
    return name


def _parse_alternatives(text: str, dialect: _Dialect) -> str:
    """Return the canonical names of types separated by `` | ``, which must have the same values."""
    from letterhead import _native  # lists of types do not need the core

    types = [_parse_text(type.strip(), dialect) for type in text.split("|")]
    if len(types) > MAX_ALTERNATIVES:
        raise ValueError(f"type {shorten(text)} has {len(types)} alternatives, and {MAX_ALTERNATIVES} are the most")
    if any(is_array for _, is_array in types):
        raise ValueError(f"type {text!r} is a choice of lists: write array<... | ...>")
    name = " | ".join(type for type, _ in types)
    _native.check_type(name)
    return name


def split_type(type: str) -> tuple[str, str, str]:
    """Return the name of a type, the suffix of its encoding, and that of its text encoding; each may be empty.

    Examples
    --------
    >>> from letterhead.types import split_type
    >>> split_type("int32:le:base64"), split_type("string:latin-1"), split_type("uuid:hex")
    (('int32', 'le', 'base64'), ('string', 'latin-1', ''), ('uuid', '', 'hex'))
    """
    bytes_type, _, base = type.rpartition(":")
    if base not in BASE_ENCODINGS:
        bytes_type, base = type, ""
    name, _, encoding = bytes_type.partition(":")
    return name, encoding, base


def base_type(type: str) -> str:
    """Return the name, without a suffix, of the type of a column's values, for a single type or for alternatives.

    Examples
    --------
    >>> from letterhead.types import base_type
    >>> base_type("int32:le"), base_type("int64 | int32:text"), base_type("timestamp_ms | timestamp:iso")
    ('int32', 'int64', 'timestamp')
    """
    if " | " not in type:
        return type.partition(":")[0]
    from letterhead import _native  # lists of types do not need the core

    bases = {alternative.partition(":")[0] for alternative in type.split(" | ")}
    return "timestamp" if "timestamp" in bases else _native.check_type(type)[0]


def _date_or_decimal(name: str, suffix: str) -> str:
    """Return the type of dates or decimals; they are text, because Kafka defines no binary form for them."""
    if suffix != "text":
        raise ValueError(
            f"type '{name}{suffix and ':' + suffix}': a {name.partition('(')[0]} is text: pass '{name}:text'"
        )
    decimal = _DECIMAL.fullmatch(name)
    if decimal and not (1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1])):
        raise ValueError(f"type '{name}:text': a decimal has 1 to 38 digits, and no more decimals than digits")
    return f"{name}:text"


def is_text_suffix(suffix: str) -> bool:
    """Return whether a suffix of a type, without its colon, is a text encoding."""
    return suffix == "text" or suffix in TEXT_SUFFIXES or suffix in BASE_ENCODINGS


def is_only_read(type: str) -> bool:
    """Return whether a type, as :func:`type_name` writes it, has a read-only encoding."""
    return any(split_type(alternative)[1] in READ_SUFFIXES for alternative in type.split(" | "))


def _unknown_type(name: str, dialect: _Dialect, is_object: bool) -> ValueError:
    """Return the error for an unknown type, with the accepted names of its dialect."""
    near = None if is_object or len(name) > _MAX_NAME else _nearest(name.lower())
    ours = [name for name in SELECT_TYPES if name not in _SPARK_NAMES.values()]
    if dialect == "arrow":
        names = [name for name in SELECT_TYPES if name not in _WITHOUT_ARROW_NAME]
        names += ["timestamp[ms, tz=UTC]", "list<...>"]
    elif dialect == "sql" or name.isupper() or "(" in name or (near in _SQL_NAMES and near not in SELECT_TYPES):
        names = [*_SPARK_NAMES, *ours, "array<...>"]
    else:
        names = [*SELECT_TYPES, "array<...>"]
    hint = f": did you mean '{near}'?" if near else ""
    return ValueError(f"unknown type {shorten(name)}{hint} (types: {', '.join(names)})")


def is_type(name: str) -> bool:
    """Return whether a text is the name of a type."""
    try:
        parse(name, sql=False)
    except ValueError:
        return False
    return True


def type_or_nearest(name: str) -> str | None:
    """Return a text that is the name of a type; otherwise the closest type, or None."""
    if is_type(name):
        return name
    return None if len(name) > _MAX_NAME else _nearest(name.lower())


def _nearest(name: str) -> str | None:
    """Return the name to suggest for an unknown name, but never a narrower type than may be meant."""
    from difflib import SequenceMatcher  # only needed for errors

    number = _NUMBER_WITH_ENCODING.fullmatch(name)
    if number and number[1] in SELECT_TYPES:
        return f"{number[1]}:{number[2]}"
    foreign = _FOREIGN_NAMES.get(name.partition("(")[0])
    # A suffix changes the meaning of a correct name: char(3) is not a char, and timestamp_ns is not in milliseconds.
    if foreign or "(" in name or name.startswith("timestamp"):
        return foreign
    # Digits are seldom missing or added; the same is true of the first letter of an unsigned type.
    digits = "".join(filter(str.isdigit, name))
    ratios = {
        candidate: SequenceMatcher(None, candidate, name).ratio()
        for candidate in (*SELECT_TYPES, *_SQL_NAMES)
        if candidate not in _NEVER_SUGGESTED
        and bool(_WIDTH.fullmatch(candidate)) == bool(digits)
        and candidate.startswith("u") == name.startswith("u")
    }
    best = max(ratios, key=lambda candidate: ratios[candidate])
    if ratios[best] < 0.6:
        return None
    # Among number types of nearly equal similarity, the widest is suggested.
    close = [
        candidate
        for candidate in ratios
        if ratios[candidate] >= ratios[best] - 0.15 and _number(candidate)[0] == _number(best)[0]
    ]
    best = max(close, key=lambda candidate: (_number(candidate)[1], ratios[candidate])) if _number(best)[0] else best
    is_width = bool(digits) and int(digits) % 8 == 0
    return None if is_width and int(digits) > _number(best)[1] else best


def _number(name: str) -> tuple[str, int]:
    """Return whether a type is an int or a float, and its number of bits; empty and 0 for other types."""
    number = _WIDTH.fullmatch(_SQL_NAMES.get(name, name))
    return (number[1].removeprefix("u"), int(number[2])) if number else ("", 0)
