"""How the value of one header becomes bytes and comes back: each key can have a way of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from letterhead.errors import check_name
from letterhead.kip82.typed import TYPES
from letterhead.values import Value

__all__ = ["HeaderSerializer"]


@dataclass(frozen=True)
class HeaderSerializer:
    """Two functions, from an object to the bytes of a header's value and back.

    Null does not go through them: it is null in both directions. What they raise is raised.

    Parameters
    ----------
    serialize : callable
        Makes bytes of an object.
    deserialize : callable
        Makes the object of the bytes again.
    kind : str, default "byte[]"
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
    >>> as_json = HeaderSerializer(lambda tags: json.dumps(tags).encode(), json.loads, kind="string")
    >>> headers = Headers(serializers={"tags": as_json})
    >>> headers.put("tags", ["new", "eu"])
    >>> headers.get("tags"), headers.get_typed("tags")
    ([['new', 'eu']], [Typed('string', '["new", "eu"]')])
    """

    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]
    kind: str = "byte[]"

    def __post_init__(self) -> None:
        check_name("kind", self.kind, TYPES)

    @staticmethod
    def of(kind: str) -> HeaderSerializer:
        """Give the one that writes a type as the draft does.

        Parameters
        ----------
        kind : str
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
        check_name("kind", kind, TYPES)
        return _OF[kind]

    def to_bytes(self, key: object, value: Any) -> bytes:
        """Serialize the value of a key, and see that it has become bytes."""
        made = self.serialize(value)
        if not isinstance(made, bytes | bytearray | memoryview):
            raise TypeError(f"the serializer of the key {key!r} must give bytes, not {type(made).__name__}")
        return bytes(made)


def _of(kind: str) -> HeaderSerializer:
    ours = TYPES[kind]
    return HeaderSerializer(lambda value: Value(ours, value).bits, lambda bits: Value.from_bits(ours, bits).value, kind)


_OF = {kind: _of(kind) for kind in TYPES}
