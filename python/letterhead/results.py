"""Results of operations: inspections, conversions and their losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from letterhead.errors import ErrorDetail
from letterhead.fields import NativeKey, check_key, native_key
from letterhead.headers import GivenKey, HeaderKey
from letterhead.types import ValueType, type_name

__all__ = ["Converted", "Inspection", "Label", "Loss", "Losses", "OnLoss", "Types", "to_native_types"]

OnLoss: TypeAlias = Literal["raise", "drop", "report"]
TypesOfKey: TypeAlias = ValueType | Sequence[ValueType]
Types: TypeAlias = Literal["be", "le", "text", "binary"] | Mapping[Any, TypesOfKey]


class Loss(NamedTuple):
    """One header or field that a target cannot hold; the ``losses`` column in Arrow and Spark has the same fields.

    Attributes
    ----------
    code : str
        One of :data:`letterhead.errors.CODES`.
    message : str
        Description of the loss.
    header : int or None
        Header in the message, counted from 0; ``None`` for a field of the message.
    key : str or None
        Key of that header, as text.
    type : str or None
        The type that restores the value, for ``types=``.
    written : str or None
        The value that was written instead; ``None`` if the header or field was dropped.
    """

    code: str
    message: str
    header: int | None = None
    key: str | None = None
    type: str | None = None
    written: str | None = None


class Losses(tuple[Loss, ...]):
    """The losses of one message, in the order of its headers, then its fields.

    Attributes
    ----------
    types : dict
        The lost types by key. Passed as ``types=``, they convert back without a difference. A list for a repeated key
        whose values have different types.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.encode([("retry", lh.Int32(3)), ("note", lh.String("x"))], "kip82-typed")
    >>> losses = lh.convert(data, "kip82-typed", "kafka", types="le", on_loss="report").losses
    >>> losses[0].message, losses[0].written
    ('the type int32 is not carried', 'little-endian')
    >>> losses.types
    {'retry': 'int32:le', 'note': 'string'}
    """

    types: dict[HeaderKey, str | list[str]]

    def __new__(cls, losses: Iterable[Loss] = (), types: Mapping[HeaderKey, str | list[str]] | None = None) -> Losses:
        """Create the losses of a message, with the types to convert back."""
        self = super().__new__(cls, losses)
        self.types = dict(types or {})
        return self


class Converted(NamedTuple):
    """A converted message and its losses.

    Attributes
    ----------
    data : bytes or None
        The message; ``None`` for a message that the target writes as null.
    losses : Losses
        Headers and fields that the target cannot hold; empty if nothing was lost.
    """

    data: bytes | None
    losses: Losses


class Label(NamedTuple):
    """The meaning of a range of bytes of a message.

    Attributes
    ----------
    start, end : int
        First byte, and the byte after the last.
    field : str
        Name of the field.
    header : int or None
        Header in the message, counted from 0.
    text : str
        The value of the bytes, as text.
    """

    start: int
    end: int
    field: str
    header: int | None
    text: str


class Inspection(TypedDict):
    """The result of :func:`letterhead.inspect`: labels that cover every byte exactly once, and all errors."""

    labels: list[Label]
    errors: list[ErrorDetail]


def to_native_types(types: Types | None, *, sql: bool = False) -> str | list[tuple[NativeKey, str | list[str]]] | None:
    """Return ``types=`` in the form of the compiled core; ``sql`` is as in :func:`letterhead.types.type_name`."""
    if types is None or isinstance(types, str):
        return types
    if not isinstance(types, Mapping):
        raise TypeError(f"types must be a word or a mapping of key to type, not {type(types).__name__}")
    for key in types:
        check_key("a key of types", key)
    return [(native_key(key), _type_names(key, key_types, sql)) for key, key_types in types.items()]


def _type_names(key: GivenKey, types: Any, sql: bool) -> str | list[str]:
    try:
        return [_name(type, sql) for type in types] if isinstance(types, list | tuple) else _name(types, sql)
    except TypeError:
        raise TypeError(f"types: key {key!r}: a type such as 'int32', or a list of them, is needed") from None


def _name(type: Any, sql: bool) -> str:
    # Types without a name occur only in Iggy's values; the core checks them.
    return type if isinstance(type, str) and type.startswith("type-") else type_name(type, sql=sql)
