"""Headers of one message in Python: a sequence of headers with lookup by key.

:class:`letterhead.Headers` preserves repeated keys, order, and the difference between null and empty values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, SupportsIndex, TypeAlias, TypeVar, overload

from letterhead._header_edits import (
    EditValues,
    GivenKey,
    GivenValue,
    HeaderEdit,
    HeaderKey,
    HeaderValue,
    Replacements,
    header_key,
    header_value,
)
from letterhead.values import Value

if TYPE_CHECKING:
    from letterhead._native import Packed

__all__ = ["GivenKey", "GivenValue", "HeaderKey", "HeaderValue"]


def __dir__() -> list[str]:
    return __all__


GivenHeaders: TypeAlias = "Headers | Mapping[Any, GivenValue] | Iterable[tuple[GivenKey, GivenValue]]"
_Default = TypeVar("_Default")


class Header(NamedTuple):
    """A key and a value.

    Attributes
    ----------
    key : str, int or Value
        The key: text; a number in formats with integer keys; a value for typed keys of Iggy that are not text.
    value : bytes, Value or None
        The value; ``None`` is null, which differs from empty.
    """

    key: HeaderKey
    value: HeaderValue


class _Index:
    """Index of the headers of each key in a long list, with the removed headers that are still in the list."""

    __slots__ = ("indexes", "removed")

    def __init__(self, headers: list[Header]) -> None:
        self.indexes: dict[HeaderKey, list[int]] = {}
        self.removed: set[int] = set()
        for position, header in enumerate(headers):
            self.indexes.setdefault(header.key, []).append(position)


_FEW_HEADERS = 32
"""Number of headers up to which comparing keys one by one is faster than an index."""


class _IntegerKey(int):
    """Integer key, as opposed to a position."""

    __slots__ = ()


class Headers(Sequence[Header]):
    """The headers of a message, in order, with repeated keys.

    A position in brackets returns a header, a key its value; for a repeated key the last one. An integer in brackets is a
    position: use :meth:`get` and :meth:`get_all` for integer keys. Two objects are equal if their headers have the same
    keys, types and bits in the same order.

    Parameters
    ----------
    headers : Headers, mapping, or iterable of (key, value), optional
        A key is a str; an int of 32 bits for formats with integer keys; or, for Iggy's typed keys, a
        :class:`~letterhead.values.Value`, where bytes mean ``Binary(...)``. A value is ``None``, bytes-like, a
        :class:`~letterhead.values.Value`, or a str, which is encoded as UTF-8.

    Raises
    ------
    TypeError
        If a key or a value has another type.
    EncodeError
        If a str has no UTF-8 form (``value_not_utf8``), or an integer key does not fit 32 bits (``out_of_range``).

    Examples
    --------
    >>> import letterhead as lh
    >>> h = lh.Headers([("tenant", b"acme"), ("route", "a"), ("route", "b"), ("retry", lh.Int32(3))])
    >>> h["tenant"], h["route"], h.get_all("route")
    (b'acme', b'b', [b'a', b'b'])
    >>> h[0]
    Header(key='tenant', value=b'acme')
    >>> dict(h)
    {'tenant': b'acme', 'route': b'b', 'retry': Int32(3)}
    """

    __slots__ = ("_index", "_items")
    # Decoded headers stay packed until an operation needs more than a key. A list then replaces them, and is changed in
    # place, so that all threads see the same list. A long list gets an index at the first lookup.
    _items: list[Header] | Packed
    _index: _Index

    def __init__(
        self, headers: Headers | Mapping[Any, GivenValue] | Iterable[tuple[GivenKey, GivenValue]] = ()
    ) -> None:
        if isinstance(headers, Headers):
            self._items = headers._list().copy()
            return
        if isinstance(headers, str | bytes | bytearray | memoryview) or not isinstance(headers, Iterable):
            raise TypeError(f"headers must be pairs of key and value, not {type(headers).__name__}")
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        self._items = [_header(*(pair if type(pair) is tuple and len(pair) == 2 else _pair(pair))) for pair in pairs]

    @overload
    def __getitem__(self, which: SupportsIndex) -> Header: ...
    @overload
    def __getitem__(self, which: slice) -> Self: ...
    @overload
    def __getitem__(self, which: str | bytes | Value) -> HeaderValue: ...
    def __getitem__(self, which: str | bytes | Value | SupportsIndex | slice) -> Any:
        if isinstance(which, str | bytes | Value | _IntegerKey):
            return self._last(which)
        if isinstance(which, slice):
            return self._with(self._list()[which])
        if not hasattr(which, "__index__"):
            raise TypeError(f"headers are indexed by key or position, not by {type(which).__name__}")
        return self._list()[which]

    def __len__(self) -> int:
        index = getattr(self, "_index", None)
        return len(self._items) - (0 if index is None else len(index.removed))

    def __iter__(self) -> Iterator[Header]:
        return iter(self._list())

    def __contains__(self, item: object) -> bool:
        items: Any = self._items
        if type(item) is str and type(items) is not list:
            return item in items
        if isinstance(item, tuple):
            return item in self._list()
        if not isinstance(item, str | int | bytes | Value):
            return False
        return next(self._of_key(item), None) is not None

    def __eq__(self, other: object) -> bool:
        return self._list() == other._list() if isinstance(other, Headers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({[tuple(header) for header in self._list()]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ([tuple(header) for header in self._list()],)

    def get(self, key: GivenKey, default: _Default | None = None) -> HeaderValue | _Default:
        """Return the last value of a key, or a default if no header has the key.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("note", None)]).get("note", b"none"), lh.Headers().get("note", b"none")
        (None, b'none')
        """
        items: Any = self._items
        if type(key) is str and type(items) is not list:
            value: HeaderValue | _Default = items.get(key, default)
            return value
        try:
            return self._last(key)
        except KeyError:
            return default

    def get_all(self, key: GivenKey) -> list[HeaderValue]:
        """Return all values of a key, in order; an empty list if no header has the key.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", None)]).get_all("route")
        [b'a', None]
        """
        items: Any = self._items
        if type(key) is str and type(items) is not list:
            values: list[HeaderValue] = items.all(key)
            return values
        return [header.value for header in self._of_key(key)]

    def keys(self) -> list[HeaderKey]:
        """Return the keys of all headers, in order and with repeats, as :meth:`values` returns their values.

        ``list(dict.fromkeys(headers.keys()))`` has every key once.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", b"b")]).keys()
        ['route', 'tenant', 'route']
        """
        # An int in brackets is a position. These integers are looked up as keys, which `dict(h)` relies on.
        items: Any = self._items
        keys = [header.key for header in self._list()] if type(items) is list else items.keys()
        return [_IntegerKey(key) if isinstance(key, int) else key for key in keys]

    def values(self) -> list[HeaderValue]:
        """Return the values of all headers, in order.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("route", None)]).values()
        [b'a', None]
        """
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[HeaderKey, HeaderValue]]:
        """Return the keys and values of all headers in a new list, in order: the fastest way to read decoded headers.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("route", None)]).items()
        [('route', b'a'), ('route', None)]
        """
        items: Any = self._items
        return [(key, value) for key, value in self._list()] if type(items) is list else items.pairs()

    def unique(self) -> Self:
        """Return a copy with every key once: its last value, at its first position, as in libraries that use a map.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", b"b")]).unique()
        Headers([('route', b'b'), ('tenant', b'x')])
        """
        return self._with([Header(key, value) for key, value in dict(self._list()).items()])

    def add(self, key: GivenKey, value: GivenValue) -> Self:
        """Append a header, keep others with the same key, and return this object.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers().add("tenant", "acme").add("retry", lh.Int32(3))
        Headers([('tenant', b'acme'), ('retry', Int32(3))])
        """
        held: Any = self._items
        items, header = held if type(held) is list else self._list(), _header(key, value)
        items.append(header)
        index = getattr(self, "_index", None)
        if index is not None:
            index.indexes.setdefault(header.key, []).append(len(items) - 1)
        return self

    def remove(self, key: GivenKey) -> int:
        """Remove all headers with a key, and return their number.

        Examples
        --------
        >>> import letterhead as lh
        >>> h = lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", b"b")])
        >>> h.remove("route"), h
        (2, Headers([('tenant', b'x')]))
        """
        items: Any = self._items
        unwanted = header_key(key)
        if type(items) is not list:
            items = self._list()
        if len(items) > _FEW_HEADERS:
            # Removed headers stay in the list until it is read: many keys are then removed in one pass.
            index = self._indexed(items)
            indexes = index.indexes.pop(unwanted, ())
            index.removed.update(indexes)
            if len(index.removed) > len(items) // 2:
                self._list()
            return len(indexes)
        before = len(items)
        items[:] = [header for header in items if header.key != unwanted]
        return before - len(items)

    def edit(
        self,
        *,
        only: Sequence[GivenKey] | None = None,
        drop: Sequence[GivenKey] | None = None,
        rename: Mapping[Any, GivenKey] | None = None,
        replace: Replacements | None = None,
        set: EditValues | None = None,
        append: EditValues | None = None,
        ignore_case: bool = False,
    ) -> Self:
        """Return a copy with some headers changed; all others keep their order, repeats and nulls.

        Parameters
        ----------
        only : sequence of keys, optional
            Keys of the headers to keep; by default all.
        drop : sequence of keys, optional
            Keys of the headers to drop, including repeated ones.
        rename : mapping of key to key, optional
            New keys by old keys, applied at once, so that two keys can be swapped. Existing headers with a new key
            stay.
        replace : mapping of key to mask or function, optional
            New values for all headers with a key, at their positions. Null stays null, and no header is added.
            ``"hash"`` is the SHA-256 of the value in hexadecimal; ``"redact"`` is ``***``; ``"last4"`` is ``****`` and
            the last four characters, or only ``****`` if the value has fewer than eight bytes or does not end in ASCII;
            :func:`letterhead.hmac` is a hash with a secret key. bytes, a :class:`~letterhead.Value` and
            :func:`letterhead.lit` are constants.
            A function receives a value and returns the new value.
        set : mapping of key to value, optional
            Values of headers that occur once in the result: the first header with the key gets the value, and the
            others are dropped. If no header has the key, one is appended.
        append : mapping of key to value, or sequence of pairs, optional
            Headers to append, even if the key exists; pairs can repeat a key. New headers from ``set`` precede new
            headers from ``append``, each in the order of its mapping.
        ignore_case : bool, default False
            Whether ``only``, ``drop``, ``rename`` and ``replace`` ignore the case of the letters A to Z in keys.

        Raises
        ------
        TypeError, ValueError
            If an argument is not valid, or two of them contradict each other.

        Examples
        --------
        >>> import letterhead as lh
        >>> h = lh.Headers([("ssn", b"078-05-1120"), ("route", b"a"), ("route", b"b")])
        >>> h.edit(replace={"ssn": "last4"}, set={"route": "c"}, append={"via": "etl"})
        Headers([('ssn', b'****1120'), ('route', b'c'), ('via', b'etl')])
        """
        edit = HeaderEdit.of(
            only=only, drop=drop, rename=rename, replace=replace, set=set, append=append, ignore_case=ignore_case
        )
        return type(self)._with([Header(key, value) for key, value in edit.apply(self.items())])

    def frozen(self) -> FrozenHeaders:
        """Return an immutable, hashable copy.

        Examples
        --------
        >>> import letterhead as lh
        >>> seen = {lh.Headers({"tenant": b"acme"}).frozen()}
        >>> lh.Headers({"tenant": b"acme"}).frozen() in seen
        True
        """
        return FrozenHeaders(self)

    def _last(self, key: GivenKey) -> HeaderValue:
        items: Any = self._items
        if type(key) is str and type(items) is not list:
            value: HeaderValue = items.last(key)
            return value
        for header in self._of_key(key, last_first=True):
            return header.value
        raise KeyError(key)

    def _of_key(self, key: GivenKey, *, last_first: bool = False) -> Iterator[Header]:
        """Return the headers with a key."""
        items: Any = self._items
        stored_key = header_key(key)
        headers: list[Header] = items if type(items) is list else self._list()
        if len(headers) > _FEW_HEADERS:
            indexes = self._indexed(headers).indexes.get(stored_key, [])
            return (headers[position] for position in (reversed(indexes) if last_first else indexes))
        return (header for header in (reversed(headers) if last_first else headers) if header.key == stored_key)

    def _indexed(self, headers: list[Header]) -> _Index:
        index = getattr(self, "_index", None)
        if index is None:
            index = self._index = _Index(headers)
        return index

    def _list(self) -> list[Header]:
        items: Any = self._items
        headers: list[Header] = items if type(items) is list else items.list()
        if headers is not items:
            self._items = headers
        index = getattr(self, "_index", None) if len(headers) > _FEW_HEADERS else None
        if index is not None and index.removed:
            removed = index.removed
            del self._index
            headers[:] = [header for position, header in enumerate(headers) if position not in removed]
        return headers

    @classmethod
    def _with(cls, items: list[Header] | Packed) -> Self:
        headers = cls.__new__(cls)
        headers._items = items
        return headers


class FrozenHeaders(Headers):
    """Immutable, hashable headers; ``Headers(frozen)`` makes a mutable copy.

    Examples
    --------
    >>> import letterhead as lh
    >>> h = lh.Headers({"tenant": b"acme"}).frozen()
    >>> h == lh.Headers({"tenant": b"acme"})
    True
    >>> h.add("retry", b"1")
    Traceback (most recent call last):
        ...
    TypeError: these headers are frozen: change a copy, Headers(headers)
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self._list()))

    def add(self, key: GivenKey, value: GivenValue) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(_FROZEN)

    def remove(self, key: GivenKey) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(_FROZEN)

    def frozen(self) -> FrozenHeaders:
        """Return this object."""
        return self


def pairs_of(headers: GivenHeaders) -> list[Header]:
    """Return headers in any accepted form as a list, for the compiled core."""
    return (headers if isinstance(headers, Headers) else Headers(headers))._list()


_FROZEN = "these headers are frozen: change a copy, Headers(headers)"


def _header(key: Any, value: Any) -> Header:
    if type(key) is not str:
        key = header_key(key)
    # Exact types are checked first: nearly every value has one of them, and a check against a union of types is slow.
    if type(value) is not bytes and value is not None and not isinstance(value, Value):
        value = header_value(value)
    return _new_header(Header, (key, value))


_new_header = tuple.__new__  # same result as calling the named tuple's class, with one call less


def _pair(pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
        raise TypeError(f"a header must be a pair of key and value, not {_shape(pair)}")
    return pair[0], pair[1]


def _shape(pair: object) -> str:
    size = f" of {len(pair)}" if isinstance(pair, tuple | list) else ""
    return type(pair).__name__ + size
