"""Serializers and deserializers of keys and values, with access to the headers."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from letterhead._native import join_value, split_value
from letterhead._warnings import warn
from letterhead.errors import DecodeError, SerdeError
from letterhead.headers import Headers
from letterhead.limits import Limits
from letterhead.state.values import (
    AggregationWithHeaders,
    LazyHeaders,
    Origin,
    ValueAndTimestamp,
    ValueTimestampHeaders,
)

__all__ = [
    "AggregationWithHeadersSerde",
    "BoolSerde",
    "BytesSerde",
    "Float32Serde",
    "Float64Serde",
    "Int16Serde",
    "Int32Serde",
    "Int64Serde",
    "Serde",
    "StateSerdes",
    "StringSerde",
    "UuidSerde",
    "ValueAndTimestampSerde",
    "ValueTimestampHeadersSerde",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Serde(Generic[T]):
    """A serializer and its deserializer. Subclass it and define both methods.

    Both can read the headers and add to them; headers that a serializer adds are stored with the value.

    Examples
    --------
    >>> class Versioned(Serde):
    ...     def serialize(self, topic, headers, data):
    ...         headers.add("version", b"1")
    ...         return None if data is None else data.encode()
    ...
    ...     def deserialize(self, topic, headers, data):
    ...         return None if data is None else f"{data.decode()} of version {headers['version'].decode()}"
    """

    def serialize(self, topic: str, headers: Headers, data: T | None) -> bytes | None:
        """Convert an object to bytes.

        Parameters
        ----------
        topic : str
            The topic; for a store, its changelog.
        headers : Headers
            The headers of the record or row.
        data : object
            The object; ``None`` is null.

        Returns
        -------
        bytes or None
            The bytes; ``None`` is null.

        Raises
        ------
        TypeError
            If the serializer does not support the type of the object.
        """
        raise NotImplementedError

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> T | None:
        """Convert bytes to an object; the topic and the headers are as in :meth:`serialize`, and ``None`` is null."""
        raise NotImplementedError


class _CheckedSerde(Serde[T]):
    """Base class that checks the type of objects; subclasses convert non-null objects."""

    _types: ClassVar[type | tuple[type, ...]]
    _write: Callable[..., bytes]
    _read: Callable[..., T]

    def serialize(self, topic: str, headers: Headers, data: T | None) -> bytes | None:
        """Serialize an object; ``None`` stays ``None``."""
        if data is None:
            return None
        if not isinstance(data, self._types) or (isinstance(data, bool) and self._types is not bool):
            raise TypeError(f"{type(self).__name__} does not write {type(data).__name__}")
        return self._write(data)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> T | None:
        """Deserialize bytes; ``None`` stays ``None``."""
        return None if data is None else self._read(data)


class BytesSerde(_CheckedSerde[bytes]):
    """Bytes, unchanged."""

    _types = (bytes, bytearray, memoryview)

    def serialize(self, topic: str, headers: Headers, data: bytes | None) -> bytes | None:
        """Return the bytes."""
        return data if type(data) is bytes else super().serialize(topic, headers, data)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> bytes | None:
        """Return the bytes."""
        return data

    _write = staticmethod(bytes)


class StringSerde(_CheckedSerde[str]):
    """Text as UTF-8."""

    _types = str
    _write = staticmethod(str.encode)
    _read = staticmethod(bytes.decode)


class UuidSerde(_CheckedSerde[uuid.UUID]):
    """A UUID as text of 36 characters, as in Kafka's serde."""

    _types = uuid.UUID

    def _write(self, data: uuid.UUID) -> bytes:
        return str(data).encode()

    def _read(self, data: bytes) -> uuid.UUID:
        return uuid.UUID(data.decode())


class _FixedSerde(_CheckedSerde[T]):
    """A number of fixed size, most significant byte first."""

    _struct: ClassVar[struct.Struct]

    def __init_subclass__(cls, format: str | None = None, types: type | tuple[type, ...] = int) -> None:
        if format is not None:
            cls._struct, cls._types = struct.Struct(format), types

    def _write(self, data: Any) -> bytes:
        try:
            return self._struct.pack(data)
        except (struct.error, OverflowError):
            raise ValueError(
                f"the number does not fit {type(self).__name__}, which has {8 * self._struct.size} bits"
            ) from None

    def _read(self, data: bytes) -> T:
        if len(data) != self._struct.size:
            raise ValueError(f"{len(data)} bytes where {type(self).__name__} takes {self._struct.size}")
        value: T = self._struct.unpack(data)[0]
        return value


class BoolSerde(_FixedSerde[bool], format=">?", types=bool):
    """A boolean in one byte."""

    def _read(self, data: bytes) -> bool:
        if data not in (b"\0", b"\1"):
            raise ValueError("a boolean is one byte, 0 or 1")
        return super()._read(data)


class Int16Serde(_FixedSerde[int], format=">h"):
    """An integer in two bytes."""


class Int32Serde(_FixedSerde[int], format=">i"):
    """An integer in four bytes."""


class Int64Serde(_FixedSerde[int], format=">q"):
    """An integer in eight bytes."""


class Float32Serde(_FixedSerde[float], format=">f", types=(float, int)):
    """A float in four bytes."""


class Float64Serde(_FixedSerde[float], format=">d", types=(float, int)):
    """A float in eight bytes."""


class ValueAndTimestampSerde(Serde[ValueAndTimestamp[V]], Generic[V]):
    """A value with its timestamp, in the format of stores without headers: ``int64 timestamp ‖ payload``."""

    def __init__(self, inner: Serde[V]) -> None:
        self.inner = inner

    def serialize(self, topic: str, headers: Headers, data: ValueAndTimestamp[V] | None) -> bytes | None:
        """Return the bytes; null if the value or its bytes are null."""
        if data is None or data.value is None:
            return None
        payload = serialize(self.inner, topic, headers, data.value, "value")
        return None if payload is None else _INT64.pack(data.timestamp) + payload

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> ValueAndTimestamp[V] | None:
        """Return the value and its timestamp; null if the value is null."""
        if data is None:
            return None
        if len(data) < 8:
            raise DecodeError("the bytes end inside the timestamp", format=None, code="truncated", byte_offset=0)
        return ValueAndTimestamp.make(self.inner.deserialize(topic, headers, data[8:]), _INT64.unpack_from(data)[0])


class _WithHeadersSerde(Serde[T], Generic[T, V]):
    def __init__(self, inner: Serde[V], limits: Limits | None = None) -> None:
        self.inner = inner
        self._is_bytes = type(inner) is BytesSerde  # no serde call is needed
        self._limits = (limits or Limits()).filled()
        self._message_bytes = self._limits.message_bytes

    def serialize(self, topic: str, headers: Headers, data: T | None) -> bytes | None:
        """Return the bytes; null if the value or its bytes are null."""
        return None if data is None else self._encode(topic, data)

    def _encode(self, topic: str, data: T) -> bytes | None:
        """Return the bytes of a row."""
        raise NotImplementedError

    def _payload(self, topic: str, headers: Headers, value: V | None) -> bytes | None:
        raw = None if value is None else serialize(self.inner, topic, headers, value, "value")
        if raw is None or type(raw) is bytes:
            return raw
        if not isinstance(raw, bytes | bytearray | memoryview):
            raise SerdeError(f"a serializer must return bytes: {_name(type(self.inner))} returned {_name(type(raw))}")
        return bytes(raw)


class ValueTimestampHeadersSerde(_WithHeadersSerde[ValueTimestampHeaders[V], V]):
    """A value with its timestamp and headers: ``varint size ‖ headers ‖ int64 timestamp ‖ payload``.

    Parameters
    ----------
    inner : Serde
        Serde of the value. It receives the headers of the value; headers added by the serde are stored.
    limits : Limits, optional
        Limits for reading values and headers. Unset fields use the process-wide defaults.

    Examples
    --------
    >>> import letterhead as lh
    >>> serde = ValueTimestampHeadersSerde(StringSerde())
    >>> data = serde.serialize("t", lh.Headers(), ValueTimestampHeaders.make("v", 5, {"tenant": b"acme"}))
    >>> data.hex()
    '1a020c74656e616e740861636d65000000000000000576'
    >>> serde.deserialize("t", lh.Headers(), data)
    ValueTimestampHeaders(value='v', timestamp=5, headers=Headers([('tenant', b'acme')]))
    """

    def _encode(self, topic: str, data: ValueTimestampHeaders[V]) -> bytes | None:
        """Return the bytes of a row."""
        return self._encode_parts(topic, data)[0]

    def _encode_parts(self, topic: str, data: ValueTimestampHeaders[V]) -> tuple[bytes | None, bytes | None, Headers]:
        """Return the bytes of a row, its payload and its headers."""
        value: Any = data._value
        own: Any = data._headers
        if isinstance(own, tuple):
            own = data.headers
        raw = value if self._is_bytes and type(value) is bytes else self._payload(topic, own, value)
        return None if raw is None else join_value(own._list(), data._timestamp, raw), raw, own

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> ValueTimestampHeaders[V] | None:
        """Return the value with its timestamp and headers; null if the value is null."""
        return None if data is None else self._decode(topic, data)

    def _decode(self, topic: str, data: bytes, origin: Origin | None = None) -> ValueTimestampHeaders[V] | None:
        """Decode the value of a row; ``origin`` identifies the row in errors for damaged headers."""
        payload, timestamp, start, end = split_value(data, True, self._message_bytes)
        if self._is_bytes:
            # Headers are created on first access, and __init__ is skipped, because this code runs for every row.
            lazy: ValueTimestampHeaders[Any] = _new(ValueTimestampHeaders)
            lazy._value, lazy._timestamp, lazy._headers = payload, timestamp, (data, start, end, origin, self._limits)
            return lazy
        own = LazyHeaders(data, start, end, origin, self._limits)
        value = self.inner.deserialize(topic, own, payload)
        return None if value is None else ValueTimestampHeaders(value, timestamp, own)


class AggregationWithHeadersSerde(_WithHeadersSerde[AggregationWithHeaders[V], V]):
    """An aggregation with its headers: ``varint size ‖ headers ‖ payload``.

    Parameters
    ----------
    inner, limits
        As in :class:`ValueTimestampHeadersSerde`.
    """

    def _encode(self, topic: str, data: AggregationWithHeaders[V]) -> bytes | None:
        """Return the bytes of a row."""
        own = data.headers
        raw = self._payload(topic, own, data._aggregation)
        return None if raw is None else join_value(own._list(), None, raw)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> AggregationWithHeaders[Any] | None:
        """Return the aggregation with its headers, even if the aggregation is null."""
        return None if data is None else self._decode(topic, data)

    def _decode(self, topic: str, data: bytes, origin: Origin | None = None) -> AggregationWithHeaders[Any]:
        """Decode the aggregation of a row; ``origin`` identifies the row in errors for damaged headers."""
        payload, _, start, end = split_value(data, False, self._message_bytes)
        own = LazyHeaders(data, start, end, origin, self._limits)
        return AggregationWithHeaders(self.inner.deserialize(topic, own, payload), own)


class StateSerdes(Generic[K, V]):
    """Serdes of a store with the topic to pass to them; available as the attribute ``serdes`` of a store.

    The methods expect the headers of the row. Calls without headers emit a warning and use empty headers; Kafka Streams
    will remove these variants.

    Parameters
    ----------
    topic : str
        Changelog topic of the store.
    key_serde, value_serde : Serde
        The serdes.

    Raises
    ------
    TypeError
        If one of the three is ``None``.

    Examples
    --------
    >>> import letterhead as lh
    >>> serdes = StateSerdes("app-latest-changelog", StringSerde(), Int64Serde())
    >>> serdes.raw_key("k", lh.Headers()), serdes.value_from(bytes(7) + b"\\x05", lh.Headers())
    (b'k', 5)
    """

    def __init__(self, topic: str, key_serde: Serde[K], value_serde: Serde[V]) -> None:
        for name, argument in (("topic", topic), ("key serde", key_serde), ("value serde", value_serde)):
            if argument is None:
                raise TypeError(f"{name} cannot be null")
        self.topic = topic
        self.key_serde = key_serde
        self.value_serde = value_serde

    def key_from(self, raw_key: bytes | None, headers: Headers | None = None) -> K | None:
        """Deserialize a key."""
        return self.key_serde.deserialize(self.topic, _or_empty(headers, "key_from"), raw_key)

    def value_from(self, raw_value: bytes | None, headers: Headers | None = None) -> V | None:
        """Deserialize a value."""
        return self.value_serde.deserialize(self.topic, _or_empty(headers, "value_from"), raw_value)

    def raw_key(self, key: K | None, headers: Headers | None = None) -> bytes | None:
        """Serialize a key; raise :class:`SerdeError` if its serializer does not support its type."""
        return serialize(self.key_serde, self.topic, _or_empty(headers, "raw_key"), key, "key")

    def raw_value(self, value: V | None, headers: Headers | None = None) -> bytes | None:
        """Serialize a value; raise :class:`SerdeError` if its serializer does not support its type."""
        return serialize(self.value_serde, self.topic, _or_empty(headers, "raw_value"), value, "value")


def serialize(serde: Serde[T], topic: str, headers: Headers, data: T | None, part: str) -> bytes | None:
    """Serialize a key or a value; ``part`` is "key" or "value", for errors.

    Raises
    ------
    SerdeError
        If the serializer does not support the type of the object.
    """
    try:
        return serde.serialize(topic, headers, data)
    except SerdeError:
        raise
    except TypeError as error:
        raise SerdeError(
            f"A serializer ({_name(type(serde))}) is not compatible to the actual {part} type ({part} type: "
            f"{'unknown because ' + part + ' is null' if data is None else _name(type(data))}). Change the default "
            "Serdes in StreamConfig or provide correct Serdes via method parameters."
        ) from error


_INT64 = struct.Struct(">q")
_new = object.__new__


def _or_empty(headers: Headers | None, method: str) -> Headers:
    if headers is None:
        warn(f"StateSerdes.{method} without headers is deprecated", DeprecationWarning)
        return Headers()
    return headers


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
