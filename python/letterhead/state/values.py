"""Values of stores: values with a timestamp, with headers, or with a period of validity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from letterhead._invariants import instance
from letterhead.errors import DamagedRowError, DecodeError
from letterhead.headers import Header, Headers
from letterhead.limits import Limits
from letterhead.one_message import decode
from letterhead.state.storage.keys import RowKey, encode_key
from letterhead.state.storage.raw import shift_error

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
"""Name of the store and key of the row from which a value was read."""

EncodedHeaders: TypeAlias = tuple[bytes, int, int, Origin | None, Limits | None]
"""Stored value, start and end of its headers, its origin, and limits for reading the headers."""


class LazyHeaders(Headers):
    """Headers of a stored value that are parsed on first access.

    The headers are the bytes from ``start`` to ``end`` of a stored ``value``. If they are damaged, the first access raises
    :class:`DamagedRowError`, or :class:`~letterhead.errors.DecodeError` without an ``origin``.

    Examples
    --------
    >>> import letterhead as lh
    >>> headers = LazyHeaders(lh.encode([("tenant", "acme")], "kafka"), 0, 13)
    >>> headers.parsed, headers["tenant"], headers.parsed
    (False, b'acme', True)
    """

    __slots__ = ("_encoded",)
    _encoded: EncodedHeaders

    def __init__(
        self, value: bytes, start: int, end: int, origin: Origin | None = None, limits: Limits | None = None
    ) -> None:
        # Assign a single attribute, because this code runs for every row of a scan.
        self._encoded = value, start, end, origin, limits

    @property
    def parsed(self) -> bool:
        """Whether the headers have been parsed."""
        try:
            object.__getattribute__(self, "_items")
        except AttributeError:
            return False
        return True

    def unread(self) -> bytes | None:
        """Return the encoded headers, or ``None`` once they are parsed, because they may have been changed since."""
        if self.parsed:
            return None
        value, start, end, _, _ = self._encoded
        return value[start:end]

    def __getattr__(self, name: str) -> Any:
        # `_items` is used by all methods of Headers, and is unset until the first access. Later accesses do not call
        # this method, and cost the same as for other headers.
        if name != "_items":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        items = self._items = self._read()
        return items

    def __repr__(self) -> str:
        return f"Headers({[tuple(header) for header in self._list()]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Headers, ([tuple(header) for header in self._list()],)

    def _read(self) -> list[Header] | Packed:
        value, start, end, origin, limits = self._encoded
        if start == end:
            return []
        try:
            headers = decode(value[start:end], "kafka", limits=limits)
        except DecodeError as error:
            error = shift_error(error, start)
            if origin is None:
                raise error from None
            store, row = origin
            raise DamagedRowError(store, encode_key(row), error) from error
        return instance(headers, Headers)._items

    @classmethod
    def _with(cls, items: list[Header] | Packed) -> Any:
        # Return plain Headers, because the items are already parsed.
        return Headers._with(items)


class _WithHeaders:
    """Base class of values with lazily parsed headers; ``_fields`` are used for comparison and representation."""

    __slots__ = ("_headers",)
    _fields: ClassVar[tuple[str, ...]]
    _headers: Headers | EncodedHeaders

    @property
    def headers(self) -> Headers:
        """The headers; headers of a stored row are parsed on first access."""
        headers = self._headers
        if isinstance(headers, tuple):
            headers = self._headers = LazyHeaders(*headers)
        return headers

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(bool(getattr(self, name) == getattr(other, name)) for name in self._fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"


@dataclass(frozen=True, slots=True)
class ValueAndTimestamp(Generic[V]):
    """A value and its timestamp in milliseconds since 1970.

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
        """Return a value with its timestamp; ``None`` for a null value."""
        return None if value is None else cls(value, timestamp)

    @staticmethod
    def get_value_or_null(pair: ValueAndTimestamp[V] | None) -> V | None:
        """Return the value of the object, or ``None`` if the object is ``None``."""
        return None if pair is None else pair.value


class ValueTimestampHeaders(_WithHeaders, Generic[V]):
    """A value with its timestamp and headers, as stored in key-value and window stores.

    Create it with :meth:`make`, or with :meth:`make_allow_nullable` if the value may be null. It is immutable, except that
    serializers may add to its headers.

    Parameters
    ----------
    value : object
        The value.
    timestamp : int
        Milliseconds since 1970.
    headers : Headers, optional
        The headers. A :class:`~letterhead.Headers` object is not copied; other arguments of its constructor are converted.

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
    _fields = ("value", "timestamp", "headers")

    def __init__(self, value: V, timestamp: int, headers: Any = None) -> None:
        self._value = value
        self._timestamp = timestamp
        self._headers = headers if isinstance(headers, Headers) else Headers(() if headers is None else headers)

    @classmethod
    def make(cls, value: V | None, timestamp: int, headers: Any = None) -> ValueTimestampHeaders[V] | None:
        """Return the value with its timestamp and headers, or ``None`` if the value is null."""
        return None if value is None else cls(value, timestamp, headers)

    @classmethod
    def make_allow_nullable(
        cls, value: V | None, timestamp: int, headers: Any = None
    ) -> ValueTimestampHeaders[V | None]:
        """Return the value with its timestamp and headers, even if it is null."""
        return ValueTimestampHeaders(value, timestamp, headers)

    @staticmethod
    def get_value_or_null(value: ValueTimestampHeaders[V] | None) -> V | None:
        """Return the value of the object, or ``None`` if the object is ``None``."""
        return None if value is None else value._value

    @property
    def value(self) -> V:
        """The value."""
        return self._value

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""
        return self._timestamp


class AggregationWithHeaders(_WithHeaders, Generic[V]):
    """An aggregation with its headers, as stored in session stores.

    Create it with :meth:`make`, or with :meth:`make_allow_nullable` if the aggregation may be null. The headers must not be
    null.

    Parameters
    ----------
    aggregation : object
        The aggregation.
    headers : Headers
        The headers, as in :class:`ValueTimestampHeaders`, but not ``None``.

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
    _fields = ("aggregation", "headers")

    def __init__(self, aggregation: V, headers: Any) -> None:
        if headers is None:
            raise TypeError("headers must not be null")
        self._aggregation = aggregation
        self._headers = headers if isinstance(headers, Headers) else Headers(headers)

    @classmethod
    def make(cls, aggregation: V | None, headers: Any) -> AggregationWithHeaders[V] | None:
        """Return the aggregation with its headers, or ``None`` if the aggregation is null."""
        return None if aggregation is None else cls(aggregation, headers)

    @classmethod
    def make_allow_nullable(cls, aggregation: V | None, headers: Any) -> AggregationWithHeaders[V | None]:
        """Return the aggregation with its headers, even if it is null."""
        return AggregationWithHeaders(aggregation, headers)

    @staticmethod
    def get_aggregation_or_null(value: AggregationWithHeaders[V] | None) -> V | None:
        """Return the aggregation of the object, or ``None`` if the object is ``None``."""
        return None if value is None else value._aggregation

    @property
    def aggregation(self) -> V:
        """The aggregation."""
        return self._aggregation


@dataclass(frozen=True, slots=True)
class VersionedRecord(Generic[V]):
    """A value with its period of validity, as returned by versioned stores.

    Parameters
    ----------
    value : object
        The value; not null.
    timestamp : int
        Start of the validity, in milliseconds since 1970.
    valid_to : int, optional
        End of the validity; unset for the latest version, and for versions returned by ``get`` and ``delete`` of a store
        without headers.
    """

    value: V
    timestamp: int
    valid_to: int | None = None

    def __post_init__(self) -> None:
        if self.value is None:
            raise TypeError("value cannot be null.")


@dataclass(frozen=True, slots=True, init=False)
class VersionedRecordWithHeaders(VersionedRecord[V]):
    """A value with its headers and period of validity, as returned by versioned stores with headers.

    Parameters
    ----------
    value, timestamp, valid_to
        As in :class:`VersionedRecord`.
    headers : Headers, optional
        The headers, as in :class:`ValueTimestampHeaders`.

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
