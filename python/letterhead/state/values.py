"""What stores hold: a value beside its timestamp, its headers, or the time for which it is valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.headers import Header, Headers
from letterhead.limits import Limits
from letterhead.operations import decode
from letterhead.storage.keys import RowKey, stored_key
from letterhead.storage.raw import shifted

if TYPE_CHECKING:
    from letterhead._native import Packed

__all__ = [
    "AggregationWithHeaders",
    "LazyHeaders",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
    "VersionedRecord",
    "VersionedRecordWithHeaders",
]

V = TypeVar("V")

Origin: TypeAlias = tuple[str, RowKey]
"""Where a value comes from: the name of the store and the key of the row."""

Block: TypeAlias = tuple[bytes, int, int, Origin | None, Limits | None]
"""A stored value, where its block of headers starts and ends, where it comes from, and the most to read of it."""


class LazyHeaders(Headers):
    """Headers of a stored value, read when they are first asked for anything.

    Parameters
    ----------
    value : bytes
        The stored value.
    start, end : int
        Where its block of headers is.
    origin : tuple of str and bytes, WindowedKey or SessionKey, optional
        Name of the store and key of the row, for the error if the block is damaged.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Raises
    ------
    DamagedRowError
        When they are first asked for anything, if the block is not what it should be and the origin is known;
        :class:`~letterhead.errors.DecodeError` where it is not.

    Examples
    --------
    >>> import letterhead as lh
    >>> headers = LazyHeaders(lh.encode([("tenant", "acme")], "kafka"), 0, 13)
    >>> headers.parsed, headers["tenant"], headers.parsed
    (False, b'acme', True)
    """

    __slots__ = ("_block",)
    _block: Block

    def __init__(
        self, value: bytes, start: int, end: int, origin: Origin | None = None, limits: Limits | None = None
    ) -> None:
        self._block = (value, start, end, origin, limits)  # one attribute: this runs for every row of a scan

    @property
    def parsed(self) -> bool:
        """Whether the headers have been read."""
        try:
            object.__getattribute__(self, "_items")
        except AttributeError:
            return False
        return True

    def unread(self) -> bytes | None:
        """Give the block while it has not been read; ``None`` afterwards, when the headers may be others."""
        if self.parsed:
            return None
        value, start, end, _, _ = self._block
        return value[start:end]

    def __getattr__(self, name: str) -> Any:
        # What holds the headers is the one attribute that is not there from the beginning. Once it is, this method is
        # not called again, so that what comes after the first access costs what it costs with any other headers.
        if name != "_items":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        items = self._items = self._read()
        return items

    def __repr__(self) -> str:
        return f"Headers({[tuple(header) for header in self._list()]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Headers, ([tuple(header) for header in self._list()],)

    def _read(self) -> list[Header] | Packed:
        value, start, end, origin, limits = self._block
        if start == end:
            return []
        try:
            read = decode(value[start:end], "kafka", limits=limits)
        except DecodeError as error:
            error = shifted(error, start)
            if origin is None:
                raise error from None
            store, row = origin
            raise DamagedRowError(store, stored_key(row), error) from error
        assert isinstance(read, Headers)
        return read._items

    @classmethod
    def _with(cls, items: list[Header] | Packed) -> Any:
        # A part of these headers is read already.
        return Headers._with(items)


class _WithHeaders:
    """What is stored with headers, which may wait."""

    __slots__ = ("_headers",)
    _headers: Headers | Block

    @property
    def headers(self) -> Headers:
        """The headers; read from a store's bytes when they are first asked for anything."""
        headers = self._headers
        if isinstance(headers, tuple):  # of a row whose headers nobody has asked for
            headers = self._headers = LazyHeaders(*headers)
        return headers


@dataclass(frozen=True, slots=True)
class ValueAndTimestamp(Generic[V]):
    """A value and its timestamp.

    Parameters
    ----------
    value : object
        The value.
    timestamp : int
        Milliseconds since 1970.

    Examples
    --------
    >>> ValueAndTimestamp.make("v", 5)
    ValueAndTimestamp(value='v', timestamp=5)
    >>> ValueAndTimestamp.make(None, 5) is None
    True
    """

    value: V
    timestamp: int

    @classmethod
    def make(cls, value: V | None, timestamp: int) -> ValueAndTimestamp[V] | None:
        """Return a value with its timestamp, or ``None`` for a value that is null."""
        return None if value is None else cls(value, timestamp)

    @staticmethod
    def get_value_or_null(of: ValueAndTimestamp[V] | None) -> V | None:
        """Return the value, or ``None`` for ``None``."""
        return None if of is None else of.value


class ValueTimestampHeaders(_WithHeaders, Generic[V]):
    """A value, its timestamp and its headers: what key-value and window stores hold.

    Made by :meth:`make`, or by :meth:`make_allow_nullable` where the value may be null. It cannot be changed, but its
    headers can: a serializer adds to them.

    Parameters
    ----------
    value : object
        The value.
    timestamp : int
        Milliseconds since 1970.
    headers : Headers, optional
        The headers, kept as the very object; anything else that :class:`~letterhead.Headers` takes becomes one.

    Examples
    --------
    >>> ValueTimestampHeaders.make("v", 5, {"tenant": b"acme"})
    ValueTimestampHeaders(value='v', timestamp=5, headers=Headers([('tenant', b'acme')]))
    >>> ValueTimestampHeaders.make(None, 5, {"tenant": b"acme"}) is None
    True
    >>> ValueTimestampHeaders.make_allow_nullable(None, 5, None).value is None
    True
    """

    __slots__ = ("_timestamp", "_value")

    def __init__(self, value: V, timestamp: int, headers: Any = None) -> None:
        self._value = value
        self._timestamp = timestamp
        self._headers = headers if isinstance(headers, Headers) else Headers(() if headers is None else headers)

    @classmethod
    def make(cls, value: V | None, timestamp: int, headers: Any = None) -> ValueTimestampHeaders[V] | None:
        """Return the value with what belongs to it, or ``None`` for a value that is null."""
        return None if value is None else cls(value, timestamp, headers)

    @classmethod
    def make_allow_nullable(
        cls, value: V | None, timestamp: int, headers: Any = None
    ) -> ValueTimestampHeaders[V | None]:
        """Return the value with what belongs to it, also if it is null."""
        return ValueTimestampHeaders(value, timestamp, headers)

    @staticmethod
    def get_value_or_null(of: ValueTimestampHeaders[V] | None) -> V | None:
        """Give the value, or ``None`` for ``None``."""
        return None if of is None else of._value

    @property
    def value(self) -> V:
        """The value."""
        return self._value

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""
        return self._timestamp

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValueTimestampHeaders):
            return NotImplemented
        return (
            self._timestamp == other._timestamp and bool(self._value == other._value) and self.headers == other.headers
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ValueTimestampHeaders(value={self._value!r}, timestamp={self._timestamp}, headers={self.headers!r})"


class AggregationWithHeaders(_WithHeaders, Generic[V]):
    """An aggregation and its headers: what session stores hold.

    Made by :meth:`make`, or by :meth:`make_allow_nullable` where the aggregation may be null. The headers may not.

    Parameters
    ----------
    aggregation : object
        The aggregation.
    headers : Headers
        The headers, kept as the very object; anything else that :class:`~letterhead.Headers` takes becomes one.

    Raises
    ------
    TypeError
        If the headers are ``None``.

    Examples
    --------
    >>> AggregationWithHeaders.make(3, {"tenant": b"acme"})
    AggregationWithHeaders(aggregation=3, headers=Headers([('tenant', b'acme')]))
    >>> AggregationWithHeaders.make(3, None)
    Traceback (most recent call last):
        ...
    TypeError: headers must not be null
    """

    __slots__ = ("_aggregation",)

    def __init__(self, aggregation: V, headers: Any) -> None:
        if headers is None:
            raise TypeError("headers must not be null")
        self._aggregation = aggregation
        self._headers = headers if isinstance(headers, Headers) else Headers(headers)

    @classmethod
    def make(cls, aggregation: V | None, headers: Any) -> AggregationWithHeaders[V] | None:
        """Return the aggregation with what belongs to it, or ``None`` for an aggregation that is null."""
        return None if aggregation is None else cls(aggregation, headers)

    @classmethod
    def make_allow_nullable(cls, aggregation: V | None, headers: Any) -> AggregationWithHeaders[V | None]:
        """Return the aggregation with what belongs to it, also if it is null."""
        return AggregationWithHeaders(aggregation, headers)

    @staticmethod
    def get_aggregation_or_null(of: AggregationWithHeaders[V] | None) -> V | None:
        """Give the aggregation, or ``None`` for ``None``."""
        return None if of is None else of._aggregation

    @property
    def aggregation(self) -> V:
        """The aggregation."""
        return self._aggregation

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AggregationWithHeaders):
            return NotImplemented
        return bool(self._aggregation == other._aggregation) and self.headers == other.headers

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AggregationWithHeaders(aggregation={self._aggregation!r}, headers={self.headers!r})"


@dataclass(frozen=True, slots=True)
class VersionedRecord(Generic[V]):
    """A value and the time for which it is valid.

    Parameters
    ----------
    value : object
        The value, which is not null.
    timestamp : int
        When it begins to be valid.
    valid_to : int, optional
        When it ends to be valid; not given for the latest version, nor for a version returned by ``get`` or ``delete`` of
        a store without headers.

    Raises
    ------
    TypeError
        If the value is ``None``.
    """

    value: V
    timestamp: int
    valid_to: int | None = None

    def __post_init__(self) -> None:
        if self.value is None:
            raise TypeError("value cannot be null.")


@dataclass(frozen=True, slots=True, init=False)
class VersionedRecordWithHeaders(VersionedRecord[V]):
    """A value, its headers and the time for which both are valid, as versioned stores return them.

    Parameters
    ----------
    value : object
        The value, which is not null.
    timestamp : int
        When it begins to be valid.
    headers : Headers, optional
        The headers, kept as the very object; anything else that :class:`~letterhead.Headers` takes becomes one.
    valid_to : int, optional
        When both end to be valid; not given for the latest version.

    Raises
    ------
    TypeError
        If the value is ``None``.

    Examples
    --------
    >>> VersionedRecordWithHeaders("v", 5, {"tenant": b"acme"}, valid_to=9)
    VersionedRecordWithHeaders(value='v', timestamp=5, valid_to=9, headers=Headers([('tenant', b'acme')]))
    """

    headers: Headers = field(init=False)

    def __init__(self, value: V, timestamp: int, headers: Any = None, valid_to: int | None = None) -> None:
        VersionedRecord.__init__(self, value, timestamp, valid_to)
        kept = headers if isinstance(headers, Headers) else Headers(() if headers is None else headers)
        object.__setattr__(self, "headers", kept)

    __hash__ = None  # type: ignore[assignment]
