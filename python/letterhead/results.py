"""Results of operations: inspections, and what conversions could not carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from letterhead.errors import Fault
from letterhead.headers import GivenKey, HeaderKey
from letterhead.types import PlainKey, plain_key
from letterhead.values import Value

__all__ = ["Converted", "Inspection", "Kinds", "Label", "Loss", "Losses", "plain_kinds"]

Times: TypeAlias = str | list[str] | tuple[str, ...]
Kinds: TypeAlias = Literal["be", "le", "text", "binary"] | Mapping[Any, Times]


class Loss(NamedTuple):
    """One header or field that a target could not carry; the ``losses`` column in Arrow and Spark has the same fields.

    Attributes
    ----------
    code : str
        One of :data:`letterhead.errors.CODES`.
    message : str
        What could not be carried.
    header : int or None
        Header in the message, counted from 0; ``None`` for a field of the message.
    key : str or None
        Key of that header, as text.
    kind : str or None
        What gives the value its kind again, for ``kinds=``.
    written : str or None
        What was written instead; ``None`` if the header or field was left out.
    """

    code: str
    message: str
    header: int | None = None
    key: str | None = None
    kind: str | None = None
    written: str | None = None


class Losses(tuple[Loss, ...]):
    """The losses of one message, in the order of its headers, then its fields.

    Attributes
    ----------
    kinds : dict
        The kinds that were lost, by key: handed back as ``kinds=``, they make the way back equal. A list where a key
        stands more than once with kinds that differ.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.encode([("retry", lh.Int32(3)), ("note", lh.String("x"))], "kip82-typed")
    >>> losses = lh.convert(data, "kip82-typed", target="kafka", kinds="le", on_loss="report").losses
    >>> losses[0].message, losses[0].written
    ('the kind int32 is not carried', 'little-endian')
    >>> losses.kinds
    {'retry': 'int32:le', 'note': 'string'}
    """

    kinds: dict[HeaderKey, str | list[str]]

    def __new__(cls, losses: Iterable[Loss] = (), kinds: Mapping[HeaderKey, str | list[str]] | None = None) -> Losses:
        """Make one of losses, and of what gives their values their kinds again."""
        made = super().__new__(cls, losses)
        made.kinds = dict(kinds or {})
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), self.kinds)


class Converted(NamedTuple):
    """A converted message and what was lost on the way.

    Attributes
    ----------
    data : bytes or None
        The message; ``None`` where the target says so by having no bytes at all.
    losses : Losses
        Empty if all was carried.
    """

    data: bytes | None
    losses: Losses


class Label(NamedTuple):
    """The meaning of a range of bytes of a message.

    Attributes
    ----------
    start, end : int
        The bytes, from the first to the one after the last.
    field : str
        Name of the field.
    header : int or None
        The header they belong to, counted from 0.
    text : str
        Their value, as text.
    """

    start: int
    end: int
    field: str
    header: int | None
    text: str


class Inspection(TypedDict):
    """The result of :func:`letterhead.inspect`: every byte in exactly one label, and all errors."""

    labels: list[Label]
    faults: list[Fault]


def plain_kinds(kinds: Kinds | None) -> str | list[tuple[PlainKey, str | list[str]]] | None:
    """Return ``kinds=`` as the compiled core takes it."""
    if kinds is None or isinstance(kinds, str):
        return kinds
    if not isinstance(kinds, Mapping):
        raise TypeError(f"kinds must be a word or a mapping of key to type, not {type(kinds).__name__}")
    return [(_plain(key), _times(key, times)) for key, times in kinds.items()]


def _plain(key: GivenKey) -> PlainKey:
    if isinstance(key, bool) or not isinstance(key, str | int | bytes | Value):
        raise TypeError(f"a key of kinds must be str, int, bytes or a Value, not {type(key).__name__}")
    return plain_key(key)


def _times(key: GivenKey, times: Any) -> str | list[str]:
    if isinstance(times, str):
        return times
    if not isinstance(times, list | tuple) or not all(isinstance(each, str) for each in times):
        raise TypeError(f"kinds: key {key!r}: a type such as 'int32', or a list of them, is needed")
    return list(times)
