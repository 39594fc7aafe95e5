"""Serializers for the keys and values of records, and for the header values of a key."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from letterhead._names import check_name
from letterhead.kip82.typed import TYPES
from letterhead.values import Value

__all__ = ["UUID_BYTES", "A", "B", "HeaderSerializer", "K", "Serialized", "Serializer", "V"]

if TYPE_CHECKING:  # defaults of type variables need Python 3.13
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
    A = TypeVar("A", default=bytes)
    B = TypeVar("B", default=bytes)
    T = TypeVar("T")
else:
    from typing import TypeVar

    K, V, A, B, T = (TypeVar(name) for name in "KVABT")


class Serialized(bytes):
    """Serialized bytes of a record's key or value, before its serializer reads them.

    Interceptors that change the bytes, for example by decryption, return ``record.replace(value=Serialized(data))``.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Serializer(Generic[T]):
    """Pair of functions that convert objects to bytes and back.

    Null stays null in both directions, without a call. Exceptions of the functions are propagated.

    Parameters
    ----------
    serialize, deserialize : callable
        Functions that convert an object to bytes, and bytes to an object.

    Examples
    --------
    >>> import json
    >>> from letterhead.kip82 import ConsumerRecord, ProducerRecord, Serializer
    >>> as_json = Serializer(lambda value: json.dumps(value).encode(), json.loads)
    >>> sent = ProducerRecord("orders", b"k", {"qty": 42}, value_serializer=as_json)
    >>> [read] = ConsumerRecord.read(sent.to_bytes(), topic="orders", value_serializer=as_json)
    >>> read.value
    {'qty': 42}
    """

    serialize: Callable[[T], bytes]
    deserialize: Callable[[bytes], T]


@dataclass(frozen=True)
class HeaderSerializer(Serializer[Any]):
    """Serializer for the header values of a key.

    Parameters
    ----------
    serialize, deserialize : callable
        Functions that convert an object to bytes, and bytes to an object.
    type : str, default "byte[]"
        The draft's type to write before the bytes in the header format ``typed``. The bytes must have the form that the
        draft specifies for this type; numbers are big-endian.

    Raises
    ------
    ValueError
        If the type is unknown.

    Examples
    --------
    >>> import json
    >>> from letterhead.kip82 import Headers, HeaderSerializer
    >>> as_json = HeaderSerializer(lambda tags: json.dumps(tags).encode(), json.loads, type="string")
    >>> headers = Headers(serializers={"tags": as_json})
    >>> headers.put("tags", ["new", "eu"])
    >>> headers.get_all("tags"), headers.get_typed("tags")
    ([['new', 'eu']], [Typed('string', '["new", "eu"]')])
    """

    type: str = "byte[]"

    def __post_init__(self) -> None:
        check_name("type", self.type, TYPES)

    @staticmethod
    def for_type(type: str) -> HeaderSerializer:
        """Return a serializer between one of the draft's types and the corresponding Python type.

        Every call with the same type returns the same object. Raises ``ValueError`` if the type is unknown.

        Examples
        --------
        >>> from letterhead.kip82 import HeaderSerializer
        >>> HeaderSerializer.for_type("short").serialize(256)
        b'\\x01\\x00'
        >>> HeaderSerializer.for_type("string").deserialize(b"acme")
        'acme'
        """
        check_name("type", type, TYPES)
        return _BY_TYPE[type]

    def _to_bytes(self, key: object, value: Any) -> bytes:
        """Serialize the value of a key; raise ``TypeError`` if the result is not bytes."""
        data = self.serialize(value)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"the serializer of the key {key!r} must return bytes, not {data.__class__.__name__}")
        return bytes(data)


def _serializer_of_type(type: str) -> HeaderSerializer:
    value_type = TYPES[type]
    return HeaderSerializer(
        lambda value: Value(value_type, value).bits, lambda bits: Value.from_bits(value_type, bits).value, type
    )


_BY_TYPE = {type: _serializer_of_type(type) for type in TYPES}


UUID_BYTES = HeaderSerializer(lambda value: value.bytes, lambda data: uuid.UUID(bytes=data))
"""Serializer of a UUID as its 16 bytes."""
