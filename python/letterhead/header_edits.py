"""Edits of headers, :class:`HeaderEdit`, for one message in Python and for columns; and keys and values as users pass them.

The functions that take the parameters of an edit check them by :meth:`HeaderEdit.of`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from letterhead._names import unknown_name
from letterhead.errors import EncodeError
from letterhead.values import Binary, String, Value, utf8

__all__ = [
    "MASKS", "Constant", "EditValues", "Function", "GivenKey", "GivenValue", "HeaderEdit", "HeaderKey", "HeaderValue", "Lit",
    "Mask", "NewValue", "Replacements", "ColumnValues", "lit",
]  # fmt: skip

HeaderKey: TypeAlias = str | int | Value
GivenKey: TypeAlias = str | int | bytes | Value
HeaderValue: TypeAlias = bytes | Value | None
GivenValue: TypeAlias = bytes | bytearray | memoryview | str | Value | None

Replacements: TypeAlias = Mapping[Any, Any]
EditValues: TypeAlias = Mapping[Any, Any] | Sequence[tuple[GivenKey, Any]]

MASKS: tuple[str, ...] = ("hash", "redact", "last4")
"""The names of masks: functions that hide a value."""


class Lit(NamedTuple):
    """A constant value of headers, returned by :func:`lit`."""

    value: HeaderValue
    is_text: bool = False


def lit(value: GivenValue) -> Lit:
    """Return a constant for edits of headers, where a str alone names a column or a mask.

    Parameters
    ----------
    value : str, bytes-like, Value or None
        The value; ``None`` is null.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.Headers({"ssn": b"078-05-1120"}).edit(replace={"ssn": lh.lit("hidden")})
    Headers([('ssn', b'hidden')])
    """
    return Lit(header_value(value), isinstance(value, str))


@dataclass(frozen=True)
class Constant:
    """The same value for every header."""

    value: HeaderValue
    is_text: bool


@dataclass(frozen=True)
class Mask:
    """A function by name; see :data:`MASKS`."""

    name: str


@dataclass(frozen=True)
class Function:
    """A function of values, or of columns of them."""

    function: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """A column of values, one for each message."""

    column: Any


NewValue: TypeAlias = Constant | Mask | Function | ColumnValues


@dataclass(frozen=True)
class HeaderEdit:
    """Changes of headers by their keys: those that they have before the edit, except in ``append``."""

    only: tuple[HeaderKey, ...] | None = None
    drop: tuple[HeaderKey, ...] = ()
    rename: tuple[tuple[HeaderKey, HeaderKey], ...] = ()
    replace: tuple[tuple[HeaderKey, NewValue], ...] = ()
    set: tuple[tuple[HeaderKey, NewValue], ...] = ()
    append: tuple[tuple[HeaderKey, NewValue], ...] = ()

    @classmethod
    def of(
        cls,
        *,
        only: Any = None,
        drop: Any = (),
        rename: Any = None,
        replace: Any = None,
        set: Any = None,
        append: Any = None,
        is_column: Callable[[object], bool] = lambda value: False,
    ) -> HeaderEdit:
        """Return an edit for arguments as users pass them; ``is_column`` tells columns of values from other objects."""
        edit = cls(
            None if only is None else _keys("only", only),
            _keys("drop", drop),
            tuple((old, header_key(new)) for old, new in _pairs("rename", rename, only_mapping=True)),
            tuple((key, _replacement(key, value)) for key, value in _pairs("replace", replace, only_mapping=True)),
            tuple((key, _new_value(key, value, is_column)) for key, value in _pairs("set", set, only_mapping=True)),
            tuple((key, _new_value(key, value, is_column)) for key, value in _pairs("append", append)),
        )
        if edit == cls():
            raise ValueError("no edit was requested: pass only, drop, rename, replace, set or append")
        edit._check()
        return edit

    def _check(self) -> None:
        """Reject changes of which one would undo another."""
        changes = {
            "drop": self.drop,
            "rename": [old for old, _ in self.rename],
            "replace": [key for key, _ in self.replace],
            "set": [key for key, _ in self.set],
        }
        for first, second in (
            ("drop", "rename"),
            ("drop", "replace"),
            ("drop", "set"),
            ("rename", "set"),
            ("replace", "set"),
        ):
            for key in changes[first]:
                if key in changes[second]:
                    raise ValueError(f"{first} and {second} both name {key!r}: leave it out of one of them")
        new_keys = [new for _, new in self.rename]
        for key in changes["set"]:
            if key in new_keys:
                raise ValueError(f"rename makes headers {key!r}, which set would have to replace: edit in two steps")
        if self.only is not None:
            for key in self.drop:
                if key in self.only:
                    raise ValueError(f"only and drop both name {key!r}: leave it out of one of them")
            for name in ("rename", "replace"):
                for key in changes[name]:
                    if key not in self.only:
                        raise ValueError(f"{name} names {key!r}, which only does not keep: add it to only")

    def edited_keys(self) -> list[HeaderKey]:
        """Return the keys of headers that may be changed or kept, each once."""
        pairs = [*self.rename, *self.replace, *self.set]
        return [*dict.fromkeys([*(self.only or ()), *self.drop, *(key for key, _ in pairs)])]

    def apply(self, headers: Iterable[tuple[HeaderKey, HeaderValue]]) -> list[tuple[HeaderKey, HeaderValue]]:
        """Return the edited headers of one message."""
        renamed, replaced, unset = dict(self.rename), dict(self.replace), dict(self.set)
        set_keys, result = frozenset(unset), []
        for key, value in headers:
            if key in set_keys:
                if key in unset:
                    result.append((key, _value_of(unset.pop(key), None)))
                continue
            if key in self.drop or (self.only is not None and key not in self.only):
                continue
            if value is not None and key in replaced:
                value = _value_of(replaced[key], value)
            result.append((renamed.get(key, key), value))
        added = [*unset.items(), *self.append]
        return [*result, *((key, _value_of(value, None)) for key, value in added)]


def header_key(key: Any) -> HeaderKey:
    """Return a key as headers have it."""
    if isinstance(key, str):
        return key
    if isinstance(key, bytes | bytearray | memoryview):
        return Binary(key)
    if isinstance(key, Value):
        # Text keys are always str, whether or not their format has other types of keys.
        return text_or_value(key)
    if isinstance(key, bool) or not isinstance(key, int):
        raise TypeError(f"the key of a header must be str, int, bytes or a Value, not {type(key).__name__}")
    if not -(1 << 31) <= key < 1 << 31:
        raise EncodeError("an integer key has 32 bits", format=None, code="out_of_range")
    return int(key)


def text_or_value(key: Value) -> str | Value:
    """Return a key that is UTF-8 text as str."""
    try:
        return key.bits.decode() if isinstance(key, String) else key
    except UnicodeDecodeError:
        return key


def header_value(value: Any) -> HeaderValue:
    """Return a value as headers have it."""
    if value is None or isinstance(value, bytes | Value):
        return value
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    type_name = type(value).__name__
    raise TypeError(f"the value of a header must be bytes, str, None or a Value such as Int64(3), not {type_name}")


def masked(name: str, value: bytes | Value) -> bytes | String:
    """Return the text that hides a value."""
    bits = value.bits if isinstance(value, Value) else value
    if name == "hash":
        text = hashlib.sha256(bits).hexdigest().encode()
    elif name == "redact":
        text = b"***"
    else:
        is_text = not isinstance(value, Value) or value.type in ("string", "binary")
        is_shown = is_text and len(bits) >= 8 and all(0x20 <= byte <= 0x7E for byte in bits[-4:])
        text = b"****" + (bits[-4:] if is_shown else b"")
    return String(text.decode()) if isinstance(value, Value) else text


def _value_of(new: NewValue, value: Any) -> HeaderValue:
    match new:
        case Constant():
            return new.value
        case Mask():
            return masked(new.name, value)
        case Function():
            return header_value(new.function(value))
        case ColumnValues():
            raise TypeError("a column of values edits a column of messages")


def _keys(parameter: str, keys: Any) -> tuple[HeaderKey, ...]:
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise TypeError(f"{parameter} must be a list of keys, not {keys.__class__.__name__}")
    return tuple(dict.fromkeys(map(header_key, keys)))


def _pairs(parameter: str, pairs: Any, *, only_mapping: bool = False) -> list[tuple[HeaderKey, Any]]:
    if pairs is None:
        return []
    if isinstance(pairs, Mapping):
        return [(header_key(key), value) for key, value in pairs.items()]
    if only_mapping or isinstance(pairs, str | bytes) or not isinstance(pairs, Sequence):
        alternative = "" if only_mapping else " or a list of pairs"
        raise TypeError(f"{parameter} must be a mapping of keys{alternative}, not {pairs.__class__.__name__}")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{parameter} takes pairs of a key and a value, not {pair.__class__.__name__}")
    return [(header_key(key), value) for key, value in pairs]


def _replacement(key: HeaderKey, value: Any) -> NewValue:
    if isinstance(value, str):
        if value not in MASKS:
            raise ValueError(f"{unknown_name('mask', value, MASKS)}; pass lh.lit({value!r}) for a constant")
        return Mask(value)
    if value is None:
        raise TypeError(f"replace: {key!r} has no new value: pass lh.lit(None) to make it null")
    if callable(value) and not isinstance(value, Value):
        return Function(value)
    return _new_value(key, value, lambda value: False)


def _new_value(key: HeaderKey, value: Any, is_column: Callable[[object], bool]) -> NewValue:
    if is_column(value):
        return ColumnValues(value)
    if not isinstance(value, Lit):
        try:
            value = lit(value)
        except TypeError as error:
            raise TypeError(f"header {key!r}: {error}") from None
    return Constant(value.value, value.is_text)
