"""Serializers: for the key and the value of a record, and for the header values of a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from letterhead.errors import check_name
from letterhead.kip82.typed import TYPES
from letterhead.values import Value

__all__ = ["A", "B", "HeaderSerializer", "K", "Serialized", "Serializer", "V"]

if TYPE_CHECKING:  # defaults of type variables come with Python 3.13
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
    """The bytes of a record's key or value that its serializer has not read yet.

    For interceptors that change the bytes, as decryption does: ``record.replace(value=Serialized(data))``.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Serializer(Generic[T]):
    """Two functions: from an object to bytes, and back.

    They are not called for null, which is null in both directions. Their exceptions are passed on.

    Parameters
    ----------
    serialize : callable
        Turns an object into bytes.
    deserialize : callable
        Turns the bytes into the object again.

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
    """Two functions for the header values of a key: from an object to bytes, and back.

    They are not called for null, which is null in both directions. Their exceptions are passed on.

    Parameters
    ----------
    serialize : callable
        Turns an object into bytes.
    deserialize : callable
        Turns the bytes into the object again.
    type : str, default "byte[]"
        The type that stands before the bytes where values have one: the bytes are then what the draft says of it, a
        number most significant byte first.

    Raises
    ------
    ValueError
        If there is no such type.

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
    def of(type: str) -> HeaderSerializer:
        """Give the one that writes a type as the draft does.

        Parameters
        ----------
        type : str
            The type, by the draft's name.

        Returns
        -------
        HeaderSerializer
            From and to what Python has for the type; the same one in every call.

        Raises
        ------
        ValueError
            If there is no such type.

        Examples
        --------
        >>> from letterhead.kip82 import HeaderSerializer
        >>> HeaderSerializer.of("short").serialize(256)
        b'\\x01\\x00'
        >>> HeaderSerializer.of("string").deserialize(b"acme")
        'acme'
        """
        check_name("type", type, TYPES)
        return _OF[type]

    def to_bytes(self, key: object, value: Any) -> bytes:
        """Serialize the value of a key, and see that it has become bytes."""
        made = self.serialize(value)
        if not isinstance(made, bytes | bytearray | memoryview):
            raise TypeError(f"the serializer of the key {key!r} must give bytes, not {type(made).__name__}")
        return bytes(made)


def _of(type: str) -> HeaderSerializer:
    ours = TYPES[type]
    return HeaderSerializer(lambda value: Value(ours, value).bits, lambda bits: Value.from_bits(ours, bits).value, type)


_OF = {type: _of(type) for type in TYPES}
