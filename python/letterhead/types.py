"""Names of formats as types, and the types of header values as users name them.

:func:`type_name` turns whatever names a value type (our names, Spark SQL's, ``pyspark.sql.types`` and ``pyarrow`` objects)
into the name that the compiled core takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from letterhead.errors import unknown_name

__all__ = [
    "ORDERS",
    "SELECT_TYPES",
    "SUFFIXES",
    "BatchName",
    "BlockName",
    "ArrowType",
    "MessageName",
    "SparkType",
    "ValueType",
    "type_name",
]

# Names of formats as types, so that a type checker derives the result from the name. A name that is not known before the
# program runs is a `str`. A test compares them with the table of formats.
BlockName: TypeAlias = Literal["kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023", "iggy-auto"]
MessageName: TypeAlias = Literal[
    "streams",
    "streams-timestamped",
    "kip82-wrapper",
    "kip82-message",
    "kip82-message-int",
    "kip82-message-wrapper",
    "iggy-message-2023",
    "iggy-message",
]
BatchName: TypeAlias = Literal[
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
"""The types a value can be read as."""

ORDERS: tuple[str, ...] = ("be", "le", "text")
"""What may follow a type after a colon: big-endian, little-endian, spelt out."""

SUFFIXES: tuple[str, ...] = (*ORDERS, "amqp")
"""The same, and an AMQP primitive, which says how it is written."""

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

_SPARK_SYNONYMS = {"byte": "int8", "short": "int16", "integer": "int32", "long": "int64", "real": "float32"}

_ARROW_NAMES = {
    "large_string": "string",
    "string_view": "string",
    "large_binary": "binary",
    "binary_view": "binary",
    "timestamp[ms, tz=UTC]": "timestamp_ms",
}
"""What ``str`` of a ``pyarrow`` type is, where it is neither our name nor Spark's."""

_ARRAY = re.compile(r"array<(.*)>", re.IGNORECASE | re.DOTALL)

_ARROW_LIST = re.compile(r"(?:large_)?list(?:_view)?<[^:]*: (.*?)(?: not null)?>")

_WIDTH = re.compile(r"(int|uint|float)([0-9]+)")

_WITHOUT_ORDER = ("string", "binary")

_WITHOUT_AMQP = ("int128", "uint128")

_Class = type  # parameters here are called `type`


class SparkType(Protocol):
    """A type of ``pyspark.sql.types``, such as ``LongType()``."""

    def simpleString(self) -> str:
        """Return the type's name in Spark SQL."""


class ArrowType(Protocol):
    """A type of ``pyarrow``, such as ``pa.int64()``."""

    @property
    def num_fields(self) -> int:
        """The number of child fields."""

    def to_pandas_dtype(self) -> Any:
        """Return the type's counterpart in NumPy."""


ValueType: TypeAlias = str | SparkType | ArrowType


def type_name(type: ValueType, *, sql: bool = False) -> str:
    """Return the name that the compiled core has for the type of one value.

    Parameters
    ----------
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        What names the type, with a suffix such as ``:le`` if it is a str.
    sql : bool, default False
        Whether the error for an unknown type lists the names of Spark SQL, whatever the type looks like.

    Returns
    -------
    str
        One of :data:`SELECT_TYPES`, and the suffix.

    Raises
    ------
    TypeError, ValueError
        If it names no type, or an array.

    Examples
    --------
    >>> from letterhead.types import type_name
    >>> type_name("bigint"), type_name("long:le"), type_name("string")
    ('int64', 'int64:le', 'string')
    """
    name, is_array = parse(type, sql)
    if is_array:
        raise ValueError(f"type 'array<{name}>' is a list, and one value is meant: pass '{name}'")
    return name


def parse(type: object, sql: bool) -> tuple[str, bool]:
    """Return our name of a type, and whether an array of it is meant."""
    if isinstance(type, str):
        return _parse_text(type, sql)
    if type.__class__.__module__.partition(".")[0] == "pyarrow":
        text = str(type)
        element = _ARROW_LIST.fullmatch(text)
        return _parse_text(f"array<{element[1]}>" if element else text, False)
    if callable(getattr(type, "simpleString", None)) and not isinstance(type, _Class):
        return _parse_text(type.simpleString(), True)  # type: ignore[attr-defined]
    raise TypeError(f"a type such as 'int64', 'bigint', LongType() or pa.int64() is needed, not {_name_of(type)}")


@lru_cache(maxsize=1024)
def _parse_text(text: str, sql: bool) -> tuple[str, bool]:
    array = _ARRAY.fullmatch(text)
    if array:
        name, is_nested = _parse_text(array[1], sql)
        if is_nested:
            raise ValueError(f"type {text!r}: a column is a list of values, and no list of lists")
        return name, True
    given, colon, suffix = text.partition(":")
    name = _canonical(given, sql)
    if suffix == "amqp":
        if name in _WITHOUT_AMQP:
            raise ValueError(f"type '{text}': AMQP has no {name}")
    elif colon and name in _WITHOUT_ORDER:
        raise ValueError(f"type '{name}' takes no suffix but amqp")
    elif colon and suffix not in SUFFIXES:
        raise unknown_name("suffix", suffix, SUFFIXES)
    return name + colon + suffix, False


def _canonical(name: str, sql: bool) -> str:
    if name in SELECT_TYPES:
        return name
    lower = name.lower()  # SQL does not distinguish capitals
    found = _SPARK_NAMES.get(lower) or _SPARK_SYNONYMS.get(lower) or _ARROW_NAMES.get(name)
    if found is None:
        raise _unknown_type(name, sql)
    return found


def _unknown_type(name: str, sql: bool) -> ValueError:
    """Return the error for an unknown type, in the words of whoever named it: ours, or Spark SQL's."""
    of_sql = (*_SPARK_NAMES, *_SPARK_SYNONYMS)
    near = _nearest(name, (*SELECT_TYPES, *of_sql))
    looks_like_sql = name.isupper() or "(" in name or (near in of_sql and near not in SELECT_TYPES)
    others = (each for each in SELECT_TYPES if each not in _SPARK_NAMES.values())
    names = (*_SPARK_NAMES, *others) if sql or looks_like_sql else SELECT_TYPES
    hint = f": did you mean '{near}'?" if near else ""
    return ValueError(f"unknown type {name!r}{hint} (types: {', '.join(names)}, array<...>)")


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is most like a misspelt one; among those that are nearly as like it, the widest number."""
    from difflib import SequenceMatcher  # only a mistake needs it

    lower = name.lower()
    # Digits are seldom forgotten or added: what has some is one of our names.
    has_digits = any(letter.isdigit() for letter in lower)
    likeness = {
        each: SequenceMatcher(None, each, lower).ratio() for each in names if not _WIDTH.fullmatch(each) or has_digits
    }
    best = max(likeness, key=lambda each: likeness[each])
    if likeness[best] < 0.6:
        return None
    family = _family(best)
    if family is None:
        return best
    close = [each for each, like in likeness.items() if like >= likeness[best] - 0.15 and _family(each) == family]
    return max(close, key=lambda each: (_bits(each), likeness[each]))


def _ours(name: str) -> str:
    return _SPARK_NAMES.get(name) or _SPARK_SYNONYMS.get(name) or name


def _family(name: str) -> str | None:
    """Return what kind of number a type is, signed or not."""
    number = _WIDTH.fullmatch(_ours(name))
    return None if number is None else number[1].removeprefix("u")


def _bits(name: str) -> int:
    number = _WIDTH.fullmatch(_ours(name))
    return int(number[2]) if number else 0


def _name_of(thing: object) -> str:
    return thing.__class__.__name__
