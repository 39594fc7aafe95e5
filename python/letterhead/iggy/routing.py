"""Destination of messages: stream, topic, and the rule that chooses a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import letterhead.iggy.json_transport as transport
from letterhead.errors import EncodeError
from letterhead.iggy.errors import need_unsigned, refuse_value
from letterhead.iggy.formats import MAX_FIELD_LEN
from letterhead.iggy.wire import Cursor
from letterhead.message import bytes_of
from letterhead.values import utf8

__all__ = ["Identifier", "Partitioning", "as_identifier", "read_kind"]

PartitioningKind: TypeAlias = Literal["balanced", "partition_id", "messages_key"]
_Kind = TypeVar("_Kind", bound=str)

# Kinds of identifiers and partitionings. The code on the wire is the index, starting at 1.
_IDENTIFIERS = ("numeric", "named")
_PARTITIONINGS: tuple[PartitioningKind, ...] = ("balanced", "partition_id", "messages_key")


@dataclass(frozen=True)
class Identifier:
    """A stream, topic or consumer, identified by its number or its name.

    Parameters
    ----------
    value : int or str
        A number of 32 bits, or a name of 1 to 255 bytes.

    Raises
    ------
    EncodeError
        If the number does not fit (``out_of_range``), or the name is empty (``empty_value``) or too long (``too_long``).

    Examples
    --------
    >>> from letterhead.iggy import Identifier
    >>> Identifier.numeric(1), Identifier.named("sample")
    (Identifier(value=1), Identifier(value='sample'))
    >>> Identifier.named("sample").to_bytes().hex()
    '020673616d706c65'
    """

    value: int | str

    def __post_init__(self) -> None:
        if isinstance(self.value, str):
            size = len(utf8(self.value))
            if size == 0:
                refuse_value("empty_value", "the name has no bytes")
            if size > MAX_FIELD_LEN:
                refuse_value("too_long", f"name of {size} bytes is longer than {MAX_FIELD_LEN}")
        else:
            need_unsigned(self.value, 32, "the identifier")

    @classmethod
    def numeric(cls, value: int) -> Identifier:
        """Create an identifier from a number; 0 is valid since 0.7."""
        if not isinstance(value, int):
            raise TypeError(f"a numeric identifier is an int, not {type(value).__name__}")
        return cls(value)

    @classmethod
    def named(cls, value: str) -> Identifier:
        """Create an identifier from a name."""
        if not isinstance(value, str):
            raise TypeError(f"a named identifier is a str, not {type(value).__name__}")
        return cls(value)

    def to_bytes(self) -> bytes:
        """Return kind, length and value as bytes."""
        if isinstance(self.value, str):
            name = utf8(self.value)
            return bytes((2, len(name))) + name
        return bytes((1, 4)) + self.value.to_bytes(4, "little")

    def _check_2023(self, which: str, format: str) -> None:
        if self.value == 0:
            message = f"the identifier of the {which} is 0, which is not valid before 0.7"
            raise EncodeError(message, format=format, code="out_of_range")

    @classmethod
    def _read(cls, cursor: Cursor, which: str) -> Identifier:
        kind = read_kind(cursor, _IDENTIFIERS, "identifier", which)
        size = cursor.number(1, f"{which} length")
        if kind == "numeric" and size != 4:
            cursor.refuse("wrong_size", f"{size} bytes where a numeric identifier takes 4", back=1)
        if size == 0:
            cursor.refuse("empty_value", "the name has no bytes", back=1)
        value = cursor.take(size, which)
        if kind == "numeric":
            return cls(int.from_bytes(value, "little"))
        try:
            return cls(value.decode())
        except UnicodeDecodeError as error:
            cursor.refuse("value_not_utf8", "the name is not UTF-8", back=size - error.start)


def as_identifier(value: Identifier | int | str) -> Identifier:
    """Convert a number or name to an identifier."""
    return value if isinstance(value, Identifier) else Identifier(value)


def read_kind(cursor: Cursor, kinds: tuple[_Kind, ...], owner: str, field: str = "") -> _Kind:
    """Read the code of a kind, and return the kind."""
    code = cursor.number(1, f"{field or owner} kind")
    if not 1 <= code <= len(kinds):
        cursor.refuse("unknown_type", f"{owner} kind {code} is unknown", back=1)
    return kinds[code - 1]


@dataclass(frozen=True)
class Partitioning:
    """Rule that chooses the partition of messages.

    Parameters
    ----------
    kind : {"balanced", "partition_id", "messages_key"}
        The rule.
    value : bytes
        Empty, a partition number of four bytes, or a key, depending on the kind.

    Raises
    ------
    EncodeError
        If the value is not valid for the kind.

    Examples
    --------
    >>> from letterhead.iggy import Partitioning
    >>> Partitioning.partition_id(7).to_bytes().hex(), Partitioning.messages_key("key-7").to_bytes().hex()
    ('020407000000', '03056b65792d37')
    """

    kind: PartitioningKind
    value: bytes = b""

    def __post_init__(self) -> None:
        error = _partitioning_error(self.kind, self.value)
        if error is not None:
            refuse_value(*error)

    @classmethod
    def balanced(cls) -> Partitioning:
        """Use the partitions in turn."""
        return cls("balanced")

    @classmethod
    def partition_id(cls, value: int) -> Partitioning:
        """Use the partition with the given number."""
        return cls("partition_id", need_unsigned(value, 32, "the partition").to_bytes(4, "little"))

    @classmethod
    def messages_key(cls, value: bytes | str) -> Partitioning:
        """Choose the partition by the hash of a key of 1 to 255 bytes."""
        return cls("messages_key", utf8(value) if isinstance(value, str) else bytes_of(value, "the messages key"))

    def to_bytes(self) -> bytes:
        """Return kind, length and value as bytes."""
        return bytes((1 + _PARTITIONINGS.index(self.kind), len(self.value))) + self.value

    def _to_tree(self) -> dict[str, str]:
        return {"kind": self.kind, "value": transport.to_base64(self.value)}

    @classmethod
    def _from_tree(cls, tree: Any, format: str) -> Partitioning:
        fields = transport.fields_of(tree, "the partitioning", ("kind", "value"), format)
        kind = fields.one_of("kind", _PARTITIONINGS)
        value = fields.base64("value")
        error = _partitioning_error(kind, value)
        if error is not None:
            transport.refuse(error[1], format)
        return cls(kind, value)

    @classmethod
    def _read(cls, cursor: Cursor) -> Partitioning:
        kind = read_kind(cursor, _PARTITIONINGS, "partitioning")
        value = cursor.take(cursor.number(1, "partitioning length"), "partitioning")
        error = _partitioning_error(kind, value)
        if error is not None:
            cursor.refuse(*error, back=len(value) + 1)
        return cls(kind, value)


def _partitioning_error(kind: str, value: bytes) -> tuple[str, str] | None:
    """Return the error code and message for an invalid partitioning, or None if it is valid."""
    if kind not in _PARTITIONINGS:
        return "unknown_type", "partitioning of this name is unknown"
    if kind == "messages_key" and not value:
        return "empty_value", "the messages key has no bytes"
    if len(value) > MAX_FIELD_LEN:
        return "too_long", f"messages key of {len(value)} bytes is longer than {MAX_FIELD_LEN}"
    width = {"balanced": 0, "partition_id": 4}.get(kind, len(value))
    if len(value) != width:
        return "wrong_size", f"{len(value)} bytes where {kind} takes {width}"
    return None
