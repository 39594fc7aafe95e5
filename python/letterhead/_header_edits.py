"""Edit headers of one message, or of columns: :class:`HeaderEdit`; normalize the keys and values that users pass.

Functions with the parameters of an edit check their arguments with :meth:`HeaderEdit.of`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from letterhead._names import unknown_name
from letterhead.errors import EncodeError
from letterhead.values import Binary, String, Value, utf8

__all__ = [
    "MASKS", "ColumnValues", "Constant", "EditValues", "Function", "GivenKey", "GivenValue", "HeaderEdit", "HeaderKey", "HeaderValue",
    "Hmac", "Lit", "Mask", "NewValue", "Replacements", "fold_key", "hmac", "lit",
]  # fmt: skip

HeaderKey: TypeAlias = str | int | Value
GivenKey: TypeAlias = str | int | bytes | Value
HeaderValue: TypeAlias = bytes | Value | None
GivenValue: TypeAlias = bytes | bytearray | memoryview | str | Value | None

Replacements: TypeAlias = Mapping[Any, Any]
EditValues: TypeAlias = Mapping[Any, Any] | Sequence[tuple[GivenKey, Any]]

MASKS: tuple[str, ...] = ("hash", "redact", "last4")
"""Names of masks: functions that hide a value."""


class Lit(NamedTuple):
    """A constant value of headers, returned by :func:`lit`."""

    value: HeaderValue
    is_text: bool = False


def lit(value: GivenValue) -> Lit:
    """Mark a constant for edits of headers, where a plain str means a column or a mask.

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


class Hmac:
    """Mask with a secret key, returned by :func:`hmac`. Its representation hides the key."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    @property
    def key(self) -> bytes:
        """The secret key."""
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hmac) and self._key == other._key

    def __hash__(self) -> int:
        return hash((Hmac, self._key))

    def __repr__(self) -> str:
        return "hmac(...)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Hmac, (self._key,)


def hmac(key: str | bytes) -> Hmac:
    """Return a mask that replaces a value by its HMAC-SHA-256, in hexadecimal.

    Equal values have equal masks, so they can be counted and joined, but only someone who has the key can compute the
    mask of a guessed value. The mask ``"hash"`` has no key, so it does not hide values that can be enumerated, such as
    telephone numbers. The key appears in no plan, log or representation.

    Parameters
    ----------
    key : str or bytes
        The secret: at least 16 bytes, preferably 32 random bytes. Read it from a secret store, not from the code.

    Returns
    -------
    Hmac
        The mask, for ``replace=`` of all edits.

    Raises
    ------
    TypeError, ValueError
        If the key is not text or bytes, or too short.

    Examples
    --------
    >>> import letterhead as lh
    >>> mask = lh.hmac(b"sixteen bytes or more")
    >>> mask
    hmac(...)
    >>> lh.Headers({"ssn": b"078-05-1120"}).edit(replace={"ssn": mask})["ssn"][:16]
    b'b304b16042f0e093'
    """
    if isinstance(key, str):
        key = utf8(key)
    if not isinstance(key, bytes | bytearray | memoryview):
        raise TypeError(f"the key of hmac must be str or bytes, not {type(key).__name__}")
    if len(key) < _MIN_KEY_BYTES:
        raise ValueError(
            f"the key of hmac has fewer than {_MIN_KEY_BYTES} bytes, so that it can be guessed: secrets.token_bytes(32) makes one"
        )
    return Hmac(bytes(key))


_MIN_KEY_BYTES = 16


@dataclass(frozen=True)
class Constant:
    """Constant value for every header."""

    value: HeaderValue
    is_text: bool


@dataclass(frozen=True)
class Mask:
    """Masking function by its name in :data:`MASKS`."""

    name: str


@dataclass(frozen=True)
class Function:
    """Function of single values, or of whole columns."""

    function: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Column with one value for each message."""

    column: Any


NewValue: TypeAlias = Constant | Mask | Hmac | Function | ColumnValues


@dataclass(frozen=True)
class HeaderEdit:
    """Changes of headers by key. Keys refer to the headers before the edit, except in ``append``.

    With ``ignore_case``, keys in ``only``, ``drop``, ``rename`` and ``replace`` are compared by :func:`fold_key`.
    """

    only: tuple[HeaderKey, ...] | None = None
    drop: tuple[HeaderKey, ...] = ()
    rename: tuple[tuple[HeaderKey, HeaderKey], ...] = ()
    replace: tuple[tuple[HeaderKey, NewValue], ...] = ()
    set: tuple[tuple[HeaderKey, NewValue], ...] = ()
    append: tuple[tuple[HeaderKey, NewValue], ...] = ()
    ignore_case: bool = False

    @classmethod
    def of(
        cls,
        *,
        only: Any = None,
        drop: Any = None,
        rename: Any = None,
        replace: Any = None,
        set: Any = None,
        append: Any = None,
        ignore_case: bool = False,
        is_column: Callable[[object], bool] = lambda value: False,
    ) -> HeaderEdit:
        """Return an edit for the arguments that users pass; ``is_column`` recognizes columns of values."""
        if all(argument is None for argument in (only, drop, rename, replace, set, append)):
            raise ValueError("no edit was requested: pass only, drop, rename, replace, set or append")
        if not isinstance(ignore_case, bool):
            raise TypeError(f"ignore_case must be bool, not {type(ignore_case).__name__}")
        edit = cls(
            None if only is None else _keys("only", only),
            () if drop is None else _keys("drop", drop),
            tuple((old, header_key(new)) for old, new in _pairs("rename", rename, only_mapping=True)),
            tuple((key, _replacement(key, value)) for key, value in _pairs("replace", replace, only_mapping=True)),
            tuple((key, _new_value(key, value, is_column)) for key, value in _pairs("set", set, only_mapping=True)),
            tuple((key, _new_value(key, value, is_column)) for key, value in _pairs("append", append)),
        )
        if ignore_case:
            edit = edit._folded()
        edit._check()
        return edit

    def _folded(self) -> HeaderEdit:
        """Return the edit with folded keys, for comparisons that ignore case."""
        if self.set:
            raise ValueError("set= has exact keys: with ignore_case=True, pass the header in drop= and append= instead")
        for name in ("rename", "replace"):
            seen: dict[HeaderKey, HeaderKey] = {}
            for key, _ in getattr(self, name):
                earlier = seen.setdefault(fold_key(key), key)
                if earlier != key:
                    raise ValueError(
                        f"{name} names {earlier!r} and {key!r}, which ignore_case=True makes one: leave one out"
                    )
        return dataclasses.replace(
            self,
            only=None if self.only is None else tuple(map(fold_key, self.only)),
            drop=tuple(map(fold_key, self.drop)),
            rename=tuple((fold_key(old), new) for old, new in self.rename),
            replace=tuple((fold_key(key), value) for key, value in self.replace),
            ignore_case=True,
        )

    def exact(self, keys: Iterable[HeaderKey]) -> HeaderEdit:
        """Return an equivalent case-sensitive edit for messages whose keys are all in ``keys``."""
        if not self.ignore_case:
            return self
        spellings: dict[HeaderKey, list[HeaderKey]] = {}
        for key in dict.fromkeys(keys):
            spellings.setdefault(fold_key(key), []).append(key)

        def spelled(key: HeaderKey) -> list[HeaderKey]:
            return spellings.get(key, [key])

        return dataclasses.replace(
            self,
            only=None if self.only is None else tuple(exact for key in self.only for exact in spelled(key)),
            drop=tuple(exact for key in self.drop for exact in spelled(key)),
            rename=tuple((exact, new) for old, new in self.rename for exact in spelled(old)),
            replace=tuple((exact, value) for key, value in self.replace for exact in spelled(key)),
            ignore_case=False,
        )

    def _check(self) -> None:
        """Reject contradictory changes."""
        # Dictionaries preserve the order, which makes errors reproducible.
        changes = {
            "drop": dict.fromkeys(self.drop),
            "rename": dict.fromkeys(old for old, _ in self.rename),
            "replace": dict.fromkeys(key for key, _ in self.replace),
            "set": dict.fromkeys(key for key, _ in self.set),
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
        new_keys = {new for _, new in self.rename}
        for key in changes["set"]:
            if key in new_keys:
                raise ValueError(f"rename makes headers {key!r}, which set would have to replace: edit in two steps")
        if self.only is not None:
            only = dict.fromkeys(self.only)
            for key in self.drop:
                if key in only:
                    raise ValueError(f"only and drop both name {key!r}: leave it out of one of them")
            for name in ("rename", "replace"):
                for key in changes[name]:
                    if key not in only:
                        raise ValueError(f"{name} names {key!r}, which only does not keep: add it to only")

    def edited_keys(self) -> list[HeaderKey]:
        """Return the distinct keys that the edit names: keys to change, drop or keep, then keys to set."""
        set_keys = dict.fromkeys(key for key, _ in self.set)
        others = [*(self.only or ()), *self.drop, *(key for key, _ in [*self.rename, *self.replace])]
        return [*(key for key in dict.fromkeys(others) if key not in set_keys), *set_keys]

    def apply(self, headers: Iterable[tuple[HeaderKey, HeaderValue]]) -> list[tuple[HeaderKey, HeaderValue]]:
        """Return the edited headers of one message."""
        renamed, replaced, unset = dict(self.rename), dict(self.replace), dict(self.set)
        dropped, only = frozenset(self.drop), None if self.only is None else frozenset(self.only)
        set_keys, result = frozenset(unset), []
        for key, value in headers:
            name = fold_key(key) if self.ignore_case else key
            if key in set_keys:
                if key in unset:
                    result.append((key, _value_of(unset.pop(key), None)))
                continue
            if name in dropped or (only is not None and name not in only):
                continue
            if value is not None and name in replaced:
                value = _value_of(replaced[name], value)
            result.append((renamed.get(name, key), value))
        added = [*unset.items(), *self.append]
        return [*result, *((key, _value_of(value, None)) for key, value in added)]


def header_key(key: Any) -> HeaderKey:
    """Normalize a key of a header."""
    if isinstance(key, str):
        return key
    if isinstance(key, bytes | bytearray | memoryview):
        return Binary(key)
    if isinstance(key, Value):
        # Text keys are always str, even in formats with typed keys.
        return text_or_value(key)
    if isinstance(key, bool) or not isinstance(key, int):
        raise TypeError(f"the key of a header must be str, int, bytes or a Value, not {type(key).__name__}")
    if not -(1 << 31) <= key < 1 << 31:
        raise EncodeError("an integer key has 32 bits", format=None, code="out_of_range")
    return int(key)


def fold_key(key: HeaderKey) -> HeaderKey:
    """Return a text key with A to Z in lower case; other letters and typed keys are unchanged.

    Examples
    --------
    >>> fold_key("Content-Type"), fold_key(3)
    ('content-type', 3)
    """
    return key.translate(_LOWER) if isinstance(key, str) else key


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def text_or_value(key: Value) -> str | Value:
    """Return a key as str if it is UTF-8 text."""
    try:
        return key.bits.decode() if isinstance(key, String) else key
    except UnicodeDecodeError:
        return key


def header_value(value: Any) -> HeaderValue:
    """Normalize a value of a header."""
    if value is None or isinstance(value, bytes | Value):
        return value
    if isinstance(value, str):
        return utf8(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(
        f"the value of a header must be bytes, str, None or a Value, not {type(value).__name__}: {_hint(value)}"
    )


def _hint(value: Any) -> str:
    """Return a hint on how to pass a value of an unsupported type."""
    if isinstance(value, date):
        return "a time is text, as value.isoformat() returns it"
    if isinstance(value, UUID):
        return "a UUID is value.bytes, or text, as str(value) returns it"
    if isinstance(value, list | tuple):
        return "a key with several values is in several headers, as in [(key, value) for value in values]"
    return "a number is lh.Int32(3) in a format with types, and lh.Int32(3).bits or '3' in one without"


def mask(mask: Mask | Hmac, value: bytes | Value) -> bytes | String:
    """Return the masked text of a value."""
    bits = value.bits if isinstance(value, Value) else value
    name = "hmac" if isinstance(mask, Hmac) else mask.name
    if isinstance(mask, Hmac):
        import hmac as codes  # only needed here, and this package should be fast to import

        text = codes.digest(mask.key, bits, "sha256").hex().encode()
    elif name == "hash":
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
        case Mask() | Hmac():
            return mask(new, value)
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
    if isinstance(value, Hmac):
        return value
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
