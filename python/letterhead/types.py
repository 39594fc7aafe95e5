"""Types as users name them: formats by their names, and the columns that ``select`` reads, with their keys and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from letterhead.errors import check_name, unknown_name
from letterhead.headers import GivenKey
from letterhead.values import Value

__all__ = [
    "ORDERS",
    "REPEATS",
    "SELECT_TYPES",
    "SUFFIXES",
    "All",
    "BatchName",
    "BlockName",
    "ColumnSpec",
    "Columns",
    "EnvelopeName",
    "Field",
    "check_distinct",
    "field",
    "normalise",
]

# Names of formats as types, so that a type checker derives the result from the name. A name that is not known before the
# program runs is a `str`. A test compares them with the table of formats.
BlockName: TypeAlias = Literal["kafka", "kip82-typed", "kip82-int", "iggy", "iggy-2023", "iggy-auto"]
EnvelopeName: TypeAlias = Literal[
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

Repeat: TypeAlias = Literal["last", "first", "all", "error"]

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

REPEATS: tuple[str, ...] = ("last", "first", "all", "error")
"""What to do with a key that stands more than once."""

_WITHOUT_ORDER = ("string", "binary")

_WITHOUT_AMQP = ("int128", "uint128")

PlainKey: TypeAlias = str | int | tuple[str, bytes]
ColumnSpec: TypeAlias = tuple[str, PlainKey, str, str, bool]


class Field(NamedTuple):
    """One output column; made by :func:`field` and :func:`All`.

    Attributes
    ----------
    type : str
        What the value is read as.
    key : str, int, bytes, Value or None
        Key of the header; ``None`` for the name of the column.
    repeat : {"last", "first", "all", "error"}
        What to do with a key that stands more than once.
    required : bool
        Whether a message without the header is an error.
    """

    type: str
    key: GivenKey | None = None
    repeat: Repeat = "last"
    required: bool = False


Columns: TypeAlias = Mapping[str, str | Field]


def field(type: str, *, key: GivenKey | None = None, repeat: Repeat = "last", required: bool = False) -> Field:
    """Describe an output column of ``select`` where a type alone does not say enough.

    Parameters
    ----------
    type : str
        ``name[:be|le|text|amqp]``, the name being one of ``string binary bool char int8 int16 int32 int64 int128 uint8
        uint16 uint32 uint64 uint128 float32 float64 uuid timestamp_ms``. Numbers are big-endian where no suffix is
        given. ``amqp`` is an AMQP 1.0 primitive, as :func:`letterhead.arrow.amqp` reads it, of any type but the integers
        of 128 bits; it is the only suffix that ``string`` and ``binary`` take.
    key : str, int, bytes or Value, optional
        Key of the header; the name of the column by default. An int for formats with integer keys; a
        :class:`~letterhead.Value` for Iggy's typed keys, where bytes stand for ``Binary(...)``.
    repeat : {"last", "first", "all", "error"}, default "last"
        What to do with a key that stands more than once; ``"all"`` gives a list.
    required : bool, default False
        Whether a message without the header is an error (``missing_key``). A null value is a header all the same.

    Returns
    -------
    Field
        The description.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of these.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.field("int32:le", key="retry", required=True)
    Field(type='int32:le', key='retry', repeat='last', required=True)
    """
    _check_type(type)
    if isinstance(key, bool) or not isinstance(key, str | int | bytes | Value | None):
        raise TypeError(f"key must be str, int, bytes or a Value, not {_name_of(key)}")
    if isinstance(key, int) and not -(1 << 31) <= key < 1 << 31:
        raise ValueError(f"an integer key has 32 bits, and {key} does not fit them")
    check_name("repeat", repeat, REPEATS)
    if not isinstance(required, bool):
        raise TypeError(f"required must be bool, not {_name_of(required)}")
    return Field(type, key, repeat, required)


def All(type: str, *, key: GivenKey | None = None, required: bool = False) -> Field:
    """Describe an output column that lists every value of its key, in order.

    Short for ``field(type, repeat="all")``. A message without the header gives an empty list.

    Parameters
    ----------
    type : str
        What each value is read as.
    key : str, int, bytes or Value, optional
        Key of the headers; the name of the column by default.
    required : bool, default False
        Whether a message without the header is an error.

    Returns
    -------
    Field
        The description.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.All("string")
    Field(type='string', key=None, repeat='all', required=False)
    """
    return field(type, key=key, repeat="all", required=required)


def normalise(columns: Columns) -> list[ColumnSpec]:
    """Return the requested columns as the compiled core takes them."""
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a mapping of output column to type, not {_name_of(columns)}")
    if not columns:
        raise ValueError("no columns were asked for")
    return [_spec(name, wanted) for name, wanted in columns.items()]


def check_distinct(names: Sequence[str], errors: str = "raise") -> None:
    """Raise if two output columns have the same name."""
    if errors == "column" and "error" in names:
        raise ValueError("two columns 'error' would be made, one by errors='column': rename yours")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two columns {name!r} would be made: rename one of them")


def _spec(name: object, wanted: object) -> ColumnSpec:
    if not isinstance(name, str):
        raise TypeError(f"the name of a column must be str, not {_name_of(name)}")
    if not isinstance(wanted, str | Field):
        raise TypeError(f"column {name!r}: a type such as 'int64', field(...) or All(...) is needed, "
                        f"not {_name_of(wanted)}")  # fmt: skip
    try:
        # A Field can be made without `field`, so it is checked here too.
        made = field(wanted) if isinstance(wanted, str) else field(
            wanted.type, key=wanted.key, repeat=wanted.repeat, required=wanted.required
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r}: {error}") from None
    return name, plain_key(name if made.key is None else made.key), made.type, made.repeat, made.required


def plain_key(key: GivenKey) -> PlainKey:
    """Return a key as the compiled core takes it; a typed string that is UTF-8 is a str."""
    if isinstance(key, bytes):
        return "binary", key
    if not isinstance(key, Value):
        return key
    if key.type == "string":
        try:
            return key.bits.decode()
        except UnicodeDecodeError:
            pass
    return key.type, key.bits


def _check_type(type: object) -> None:
    if not isinstance(type, str):
        raise TypeError(f"type must be str, not {_name_of(type)}")
    name, colon, order = type.partition(":")
    if name not in SELECT_TYPES:
        raise unknown_name("type", name, SELECT_TYPES)
    if order == "amqp":
        if name in _WITHOUT_AMQP:
            raise ValueError(f"type '{type}': AMQP has no {name}")
        return
    if colon and name in _WITHOUT_ORDER:
        raise ValueError(f"type '{name}' takes no suffix but amqp")
    if colon and order not in SUFFIXES:
        raise unknown_name("suffix", order, SUFFIXES)


def _name_of(thing: object) -> str:
    return thing.__class__.__name__
