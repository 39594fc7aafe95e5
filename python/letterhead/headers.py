"""The headers of one message, as Python has them: a sequence that can also be asked by key.

Keys repeat, order matters, and null is not empty: nothing here loses any of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Self, SupportsIndex, TypeAlias, TypeVar, overload

from letterhead.values import Value, utf8

__all__ = ["FrozenHeaders", "Header", "Headers"]

HeaderValue: TypeAlias = bytes | Value | None
GivenValue: TypeAlias = bytes | bytearray | memoryview | str | Value | None
_Default = TypeVar("_Default")


class Header(NamedTuple):
    """A key and a value.

    Attributes
    ----------
    key : str
        The key.
    value : bytes, Value or None
        The value; ``None`` is null, which is not the same as empty.
    """

    key: str
    value: HeaderValue


class Headers(Sequence[Header]):
    """The headers of a message, in order, repeats included.

    Positions give headers, keys give values; where a key stands more than once, asking by key takes the last. Two
    objects are equal when their headers are, in order, by key, kind and bits.

    Parameters
    ----------
    headers : Headers, mapping, or iterable of (key, value), optional
        A value is ``None``, bytes-like, a :class:`~letterhead.values.Value`, or a str, which becomes its UTF-8 bytes.

    Raises
    ------
    TypeError
        If a key is not a str, or a value none of these.
    EncodeError
        If a str has no UTF-8 form (``value_not_utf8``).

    Examples
    --------
    >>> import letterhead as lh
    >>> h = lh.Headers([("tenant", b"acme"), ("route", "a"), ("route", "b"), ("retry", lh.Int32(3))])
    >>> h["tenant"], h["route"], h.all("route")
    (b'acme', b'b', [b'a', b'b'])
    >>> h[0]
    Header(key='tenant', value=b'acme')
    >>> dict(h)
    {'tenant': b'acme', 'route': b'b', 'retry': Int32(3)}
    """

    __slots__ = ("_items",)
    _items: list[Header]

    def __init__(self, headers: Headers | Mapping[str, GivenValue] | Iterable[tuple[str, GivenValue]] = ()) -> None:
        if isinstance(headers, Headers):
            self._items = headers._items.copy()
            return
        if isinstance(headers, str | bytes | bytearray | memoryview):
            raise TypeError(f"headers must be pairs of key and value, not {type(headers).__name__}")
        self._items = []
        for pair in headers.items() if isinstance(headers, Mapping) else headers:
            if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
                raise TypeError(f"a header must be a pair of key and value, not {_shape(pair)}")
            self._items.append(_header(pair[0], pair[1]))

    @overload
    def __getitem__(self, which: str) -> HeaderValue: ...
    @overload
    def __getitem__(self, which: SupportsIndex) -> Header: ...
    @overload
    def __getitem__(self, which: slice) -> Self: ...
    def __getitem__(self, which: str | SupportsIndex | slice) -> Any:
        if isinstance(which, str):
            return self.last(which)
        if isinstance(which, slice):
            return self._with(self._items[which])
        if not hasattr(which, "__index__"):
            raise TypeError(f"headers are asked by key or position, not by {type(which).__name__}")
        return self._items[which]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Header]:
        return iter(self._items)

    def __contains__(self, what: object) -> bool:
        if isinstance(what, str):
            return any(header.key == what for header in self._items)
        return what in self._items

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, Headers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({[tuple(header) for header in self._items]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ([tuple(header) for header in self._items],)

    def get(self, key: str, default: _Default | None = None) -> HeaderValue | _Default:
        """Give the last value of a key, or a default where there is none.

        Parameters
        ----------
        key : str
            The key.
        default : object, optional
            What to give when no header has the key.

        Returns
        -------
        bytes, Value, None or default
            The value.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("note", None)]).get("note", b"none"), lh.Headers().get("note", b"none")
        (None, b'none')
        """
        for header in reversed(self._items):
            if header.key == key:
                return header.value
        return default

    def last(self, key: str) -> HeaderValue:
        """Give the last value of a key.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        bytes, Value or None
            The value; ``None`` if it is null.

        Raises
        ------
        KeyError
            If no header has the key.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("route", b"b")]).last("route")
        b'b'
        """
        for header in reversed(self._items):
            if header.key == key:
                return header.value
        raise KeyError(key)

    def all(self, key: str) -> list[HeaderValue]:
        """Give all values of a key, in order.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        list of bytes, Value or None
            The values; empty if no header has the key.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", None)]).all("route")
        [b'a', None]
        """
        return [header.value for header in self._items if header.key == key]

    def keys(self) -> list[str]:
        """Give the distinct keys, in the order in which they first stand.

        Returns
        -------
        list of str
            The keys.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", b"b")]).keys()
        ['route', 'tenant']
        """
        return list(dict.fromkeys(header.key for header in self._items))

    def add(self, key: str, value: GivenValue) -> Self:
        """Add a header at the end; headers with the same key stay.

        Parameters
        ----------
        key : str
            The key.
        value : bytes-like, str, Value or None
            The value.

        Returns
        -------
        Headers
            This object, so that calls can be chained.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers().add("tenant", "acme").add("retry", lh.Int32(3))
        Headers([('tenant', b'acme'), ('retry', Int32(3))])
        """
        self._items.append(_header(key, value))
        return self

    def remove(self, key: str) -> int:
        """Remove every header with a key.

        Parameters
        ----------
        key : str
            The key.

        Returns
        -------
        int
            How many there were.

        Examples
        --------
        >>> import letterhead as lh
        >>> h = lh.Headers([("route", b"a"), ("tenant", b"x"), ("route", b"b")])
        >>> h.remove("route"), h
        (2, Headers([('tenant', b'x')]))
        """
        before = len(self._items)
        self._items = [header for header in self._items if header.key != key]
        return before - len(self._items)

    def to_list(self) -> list[Header]:
        """Give the headers as a list.

        Returns
        -------
        list of Header
            A new list.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Headers({"tenant": b"acme"}).to_list()
        [Header(key='tenant', value=b'acme')]
        """
        return self._items.copy()

    def frozen(self) -> FrozenHeaders:
        """Make a copy that is hashable and refuses change.

        Returns
        -------
        FrozenHeaders
            The copy; equal to this object as long as this one stays as it is.

        Examples
        --------
        >>> import letterhead as lh
        >>> seen = {lh.Headers({"tenant": b"acme"}).frozen()}
        >>> lh.Headers({"tenant": b"acme"}).frozen() in seen
        True
        """
        return FrozenHeaders(self)

    @classmethod
    def _with(cls, items: list[Header]) -> Self:
        made = cls.__new__(cls)
        made._items = items
        return made


class FrozenHeaders(Headers):
    """Headers that are hashable and refuse change; ``Headers(frozen)`` makes a copy that can be changed.

    Examples
    --------
    >>> import letterhead as lh
    >>> h = lh.Headers({"tenant": b"acme"}).frozen()
    >>> h == lh.Headers({"tenant": b"acme"})
    True
    >>> h.add("retry", b"1")
    Traceback (most recent call last):
        ...
    TypeError: these headers are frozen: Headers(...) of them makes a copy that can be changed
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self._items))

    def add(self, key: str, value: GivenValue) -> NoReturn:
        """Refuse."""
        raise TypeError(_FROZEN)

    def remove(self, key: str) -> NoReturn:
        """Refuse."""
        raise TypeError(_FROZEN)

    def frozen(self) -> FrozenHeaders:
        """Give this object."""
        return self


_FROZEN = "these headers are frozen: Headers(...) of them makes a copy that can be changed"


def _header(key: Any, value: Any) -> Header:
    if not isinstance(key, str):
        raise TypeError(f"the key of a header must be str, not {type(key).__name__}")
    if isinstance(value, str):
        value = utf8(value)
    elif isinstance(value, bytearray | memoryview):
        value = bytes(value)
    elif value is not None and not isinstance(value, bytes | Value):
        kind = type(value).__name__
        raise TypeError(f"the value of a header must be bytes, str, None or a Value such as Int64(3), not {kind}")
    return Header(key, value)


def _shape(pair: object) -> str:
    size = f" of {len(pair)}" if isinstance(pair, tuple | list) else ""
    return type(pair).__name__ + size
