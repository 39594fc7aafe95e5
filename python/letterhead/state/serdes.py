"""How keys and values become bytes and come back, headers at hand both ways."""

from __future__ import annotations

import struct
import uuid
import warnings
from typing import Any, Final, Generic, NoReturn, TypeVar

from letterhead._native import join_value, split_value
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
    """A serializer and its deserializer. Subclass it, and write both methods.

    Either may read the headers and add to them; what a serializer adds is stored with the value.

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
        """Make bytes of an object.

        Parameters
        ----------
        topic : str
            The topic; for a store, that of its changelog.
        headers : Headers
            The headers beside the object.
        data : object
            The object; ``None`` is null.

        Returns
        -------
        bytes or None
            The bytes; ``None`` is null.

        Raises
        ------
        TypeError
            If the object is of a type that the serializer does not write.
        """
        raise NotImplementedError

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> T | None:
        """Make an object of bytes.

        Parameters
        ----------
        topic : str
            The topic; for a store, that of its changelog.
        headers : Headers
            The headers beside the bytes.
        data : bytes or None
            The bytes; ``None`` is null.

        Returns
        -------
        object
            The object; ``None`` is null.
        """
        raise NotImplementedError


class BytesSerde(Serde[bytes]):
    """Bytes, as they are."""

    def serialize(self, topic: str, headers: Headers, data: bytes | None) -> bytes | None:
        """Give the bytes."""
        if data is None or type(data) is bytes:
            return data
        if not isinstance(data, bytes | bytearray | memoryview):
            _wrong_type(self, data)
        return bytes(data)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> bytes | None:
        """Give the bytes."""
        return data


class StringSerde(Serde[str]):
    """Text as UTF-8."""

    def serialize(self, topic: str, headers: Headers, data: str | None) -> bytes | None:
        """Give the UTF-8 form."""
        if data is None:
            return None
        if not isinstance(data, str):
            _wrong_type(self, data)
        return data.encode()

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> str | None:
        """Give the text."""
        return None if data is None else data.decode()


class _FixedSerde(Serde[T]):
    """A number in so many bytes, most significant byte first."""

    _struct: struct.Struct
    _takes: type | tuple[type, ...]

    def serialize(self, topic: str, headers: Headers, data: T | None) -> bytes | None:
        """Give the bytes, most significant first."""
        if data is None:
            return None
        if not isinstance(data, self._takes) or (isinstance(data, bool) and self._takes is not bool):
            _wrong_type(self, data)
        try:
            return self._struct.pack(data)
        except (struct.error, OverflowError):
            raise ValueError(f"{data!r} does not fit {8 * self._struct.size} bits") from None

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> T | None:
        """Give the number."""
        if data is None:
            return None
        if len(data) != self._struct.size:
            raise ValueError(f"{len(data)} bytes where {type(self).__name__} takes {self._struct.size}")
        read: T = self._struct.unpack(data)[0]
        return read


class BoolSerde(_FixedSerde[bool]):
    """A boolean in one byte."""

    _struct = struct.Struct(">?")
    _takes = bool

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> bool | None:
        """Give the boolean."""
        if data is not None and data not in (b"\0", b"\1"):
            raise ValueError("a boolean is one byte, 0 or 1")
        return super().deserialize(topic, headers, data)


class Int16Serde(_FixedSerde[int]):
    """An integer in two bytes."""

    _struct = struct.Struct(">h")
    _takes = int


class Int32Serde(_FixedSerde[int]):
    """An integer in four bytes."""

    _struct = struct.Struct(">i")
    _takes = int


class Int64Serde(_FixedSerde[int]):
    """An integer in eight bytes."""

    _struct = struct.Struct(">q")
    _takes = int


class Float32Serde(_FixedSerde[float]):
    """A float in four bytes."""

    _struct = struct.Struct(">f")
    _takes = (float, int)


class Float64Serde(_FixedSerde[float]):
    """A float in eight bytes."""

    _struct = struct.Struct(">d")
    _takes = (float, int)


class UuidSerde(Serde[uuid.UUID]):
    """A UUID as its text of 36 characters, which is what Kafka's serde writes."""

    def serialize(self, topic: str, headers: Headers, data: uuid.UUID | None) -> bytes | None:
        """Give the text."""
        if data is None:
            return None
        if not isinstance(data, uuid.UUID):
            _wrong_type(self, data)
        return str(data).encode()

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> uuid.UUID | None:
        """Give the UUID."""
        return None if data is None else uuid.UUID(data.decode())


class _Wrapping(Serde[T], Generic[T, V]):
    def __init__(self, inner: Serde[V]) -> None:
        self.inner = inner
        self._is_bytes = type(inner) is BytesSerde  # bytes that stay as they are need not be handed to anyone

    def _payload(self, topic: str, headers: Headers, value: V | None) -> bytes | None:
        raw = None if value is None else serialize(self.inner, topic, headers, value, "value")
        if raw is None or type(raw) is bytes:
            return raw
        if not isinstance(raw, bytes | bytearray | memoryview):
            raise SerdeError(f"a serializer gives bytes, and {_name(type(self.inner))} gave {_name(type(raw))}")
        return bytes(raw)


class ValueAndTimestampSerde(_Wrapping[ValueAndTimestamp[V], V]):
    """A value with its timestamp, as stores without headers hold them: ``int64 timestamp ‖ payload``.

    Parameters
    ----------
    inner : Serde
        Serde of the value.
    """

    def serialize(self, topic: str, headers: Headers, data: ValueAndTimestamp[V] | None) -> bytes | None:
        """Give the bytes; null if the value or its bytes are."""
        if data is None or data.value is None:
            return None
        payload = serialize(self.inner, topic, headers, data.value, "value")
        return None if payload is None else _INT64.pack(data.timestamp) + payload

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> ValueAndTimestamp[V] | None:
        """Give the value and its timestamp; null if the value is."""
        if data is None:
            return None
        if len(data) < 8:
            raise DecodeError("the bytes end inside the timestamp", format=None, code="truncated", byte_offset=0)
        return ValueAndTimestamp.make(self.inner.deserialize(topic, headers, data[8:]), _INT64.unpack_from(data)[0])


class _WrappingHeaders(_Wrapping[T, V], Generic[T, V]):
    def __init__(self, inner: Serde[V], limits: Limits | None = None) -> None:
        super().__init__(inner)
        self._limits = (limits or Limits()).filled()
        self._message_bytes = self._limits.message_bytes


class ValueTimestampHeadersSerde(_WrappingHeaders[ValueTimestampHeaders[V], V]):
    """A value with its timestamp and headers: ``varint size ‖ block ‖ int64 timestamp ‖ payload``.

    Parameters
    ----------
    inner : Serde
        Serde of the value. It is given the value's own headers, and what it adds to them is stored.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

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

    def serialize(self, topic: str, headers: Headers, data: ValueTimestampHeaders[V] | None) -> bytes | None:
        """Give the bytes; null if the value or its bytes are."""
        return None if data is None else self.write(topic, data)

    def write(self, topic: str, data: ValueTimestampHeaders[V]) -> bytes | None:
        """Give the bytes of a row."""
        return self.join(topic, data)[0]

    def join(self, topic: str, data: ValueTimestampHeaders[V]) -> tuple[bytes | None, bytes | None, Headers]:
        """Give the bytes of a row, with the payload and the headers that they were made of."""
        value: Any = data._value
        own: Any = data._headers
        if isinstance(own, tuple):
            own = data.headers
        raw = value if self._is_bytes and type(value) is bytes else self._payload(topic, own, value)
        return None if raw is None else join_value(own._list(), data._timestamp, raw), raw, own

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> ValueTimestampHeaders[V] | None:
        """Give the value with its timestamp and headers; null if the value is."""
        if data is None:
            return None
        return self.read(topic, data)

    def read(self, topic: str, data: bytes, origin: Origin | None = None) -> ValueTimestampHeaders[V] | None:
        """Give the value of a row, which the error for damaged headers will name."""
        payload, timestamp, start, end = split_value(data, True, self._message_bytes)
        if self._is_bytes:
            # The headers come into being when they are asked for. All this runs for every row that is read.
            made: ValueTimestampHeaders[Any] = _new(ValueTimestampHeaders)
            made._value, made._timestamp, made._headers = payload, timestamp, (data, start, end, origin, self._limits)
            return made
        own = LazyHeaders(data, start, end, origin, self._limits)
        value = self.inner.deserialize(topic, own, payload)
        return None if value is None else ValueTimestampHeaders(value, timestamp, own)


class AggregationWithHeadersSerde(_WrappingHeaders[AggregationWithHeaders[V], V]):
    """An aggregation with its headers: ``varint size ‖ block ‖ payload``.

    Parameters
    ----------
    inner : Serde
        Serde of the aggregation. It is given the aggregation's own headers, and what it adds to them is stored.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.
    """

    def serialize(self, topic: str, headers: Headers, data: AggregationWithHeaders[V] | None) -> bytes | None:
        """Give the bytes; null if the aggregation or its bytes are."""
        return None if data is None else self.write(topic, data)

    def write(self, topic: str, data: AggregationWithHeaders[V]) -> bytes | None:
        """Give the bytes of a row."""
        value: Any = data._aggregation
        own = data.headers
        raw = value if self._is_bytes and type(value) is bytes else self._payload(topic, own, value)
        return None if raw is None else join_value(own._list(), None, raw)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> AggregationWithHeaders[Any] | None:
        """Give the aggregation with its headers, which there is even if the aggregation is null."""
        if data is None:
            return None
        return self.read(topic, data)

    def read(self, topic: str, data: bytes, origin: Origin | None = None) -> AggregationWithHeaders[Any]:
        """Give the aggregation of a row, which the error for damaged headers will name."""
        payload, _, start, end = split_value(data, False, self._message_bytes)
        own = LazyHeaders(data, start, end, origin, self._limits)
        return AggregationWithHeaders(self.inner.deserialize(topic, own, payload), own)


class _NotGiven:
    pass


_NOT_GIVEN: Final = _NotGiven()


class StateSerdes(Generic[K, V]):
    """The serdes of a store with the topic that is passed to them.

    A store serializes its keys and values with one of these, its attribute ``serdes``. The methods take the headers of
    the row. Called without headers they warn and pass empty ones; Kafka Streams is going to remove those variants.

    Parameters
    ----------
    topic : str
        The topic of the store's changelog.
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
        for what, given in (("topic", topic), ("key serde", key_serde), ("value serde", value_serde)):
            if given is None:
                raise TypeError(f"{what} cannot be null")
        self.topic = topic
        self.key_serde = key_serde
        self.value_serde = value_serde

    def key_from(self, raw_key: bytes | None, headers: Headers | _NotGiven = _NOT_GIVEN) -> K | None:
        """Return the key of bytes and the headers beside them."""
        return self.key_serde.deserialize(self.topic, _given(headers, "key_from"), raw_key)

    def value_from(self, raw_value: bytes | None, headers: Headers | _NotGiven = _NOT_GIVEN) -> V | None:
        """Return the value of bytes and the headers beside them."""
        return self.value_serde.deserialize(self.topic, _given(headers, "value_from"), raw_value)

    def raw_key(self, key: K | None, headers: Headers | _NotGiven = _NOT_GIVEN) -> bytes | None:
        """Return the bytes of a key; the serializer may add to the headers.

        Raises
        ------
        SerdeError
            If the serializer does not write keys of this type.
        """
        return serialize(self.key_serde, self.topic, _given(headers, "raw_key"), key, "key")

    def raw_value(self, value: V | None, headers: Headers | _NotGiven = _NOT_GIVEN) -> bytes | None:
        """Return the bytes of a value; the serializer may add to the headers.

        Raises
        ------
        SerdeError
            If the serializer does not write values of this type.
        """
        return serialize(self.value_serde, self.topic, _given(headers, "raw_value"), value, "value")


def serialize(serde: Serde[T], topic: str, headers: Headers, data: T | None, what: str) -> bytes | None:
    """Return the bytes of a key or a value, which ``what`` says.

    Raises
    ------
    SerdeError
        If the serializer does not write objects of this type.
    """
    try:
        return serde.serialize(topic, headers, data)
    except SerdeError:
        raise
    except TypeError as error:
        raise SerdeError(
            f"A serializer ({_name(type(serde))}) is not compatible to the actual {what} type ({what} type: "
            f"{'unknown because ' + what + ' is null' if data is None else _name(type(data))}). Change the default "
            "Serdes in StreamConfig or provide correct Serdes via method parameters."
        ) from error


_INT64 = struct.Struct(">q")
_new = object.__new__


def _given(headers: Headers | _NotGiven, method: str) -> Headers:
    if isinstance(headers, _NotGiven):
        warnings.warn(f"StateSerdes.{method} without headers is deprecated", DeprecationWarning, stacklevel=3)
        return Headers()
    return headers


def _name(of: type) -> str:
    return of.__qualname__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__qualname__}"


def _wrong_type(serde: Serde[Any], data: object) -> NoReturn:
    raise TypeError(f"{type(serde).__name__} does not write {type(data).__name__}")
