"""Records of producers and consumers: :class:`ProducerRecord` and :class:`ConsumerRecord`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NoReturn, Self, TypeAlias, overload

from letterhead import _native
from letterhead._names import check_name
from letterhead._read_once import ReadOnce
from letterhead.errors import EncodeError
from letterhead.kip82.compaction import is_delete
from letterhead.kip82.draft_headers import HeaderErrors, HeadersInput
from letterhead.kip82.header_formats import BATCH_FORMATS, MESSAGE_FORMATS, HeaderFormat, check_header_format
from letterhead.kip82.headers import Headers
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.serializers import A, B, HeaderSerializer, K, Serialized, Serializer, V
from letterhead.kip82.wrapper import MessageWrapper
from letterhead.message import Data, Message, bytes_of
from letterhead.one_message import encode

__all__ = ["AnyHeaders", "ConsumerRecord", "ProducerRecord", "RecordMetadata"]

AnyHeaders: TypeAlias = Headers | IntHeaders

_HEADERS: dict[HeaderFormat, type[AnyHeaders]] = {"typed": Headers, "int": IntHeaders, "wrapper": IntHeaders}
"""Class of the headers of each header format."""


class RecordMetadata(NamedTuple):
    """Position of a written record; the timestamp is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None = None


class _Lazy:
    """Descriptor of a record's key or value; it deserializes :class:`Serialized` bytes on first access.

    It is a data descriptor and also the default of a dataclass field; the record stores the value in its ``__dict__``.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._cached_name = f"_{name}"

    def __get__(self, record: Any, owner: type) -> Any:
        if record is None:
            return None  # default of the field, for the dataclass
        value = record.__dict__[self._name]
        if not isinstance(value, Serialized):
            return value
        if self._cached_name not in record.__dict__:
            try:
                record.__dict__[self._cached_name] = record._serializer(self._name).deserialize(value)
            except Exception as error:
                error.add_note(f"in the {self._name} of a record of {record.topic}")
                raise
        return record.__dict__[self._cached_name]

    def __set__(self, record: Any, value: Any) -> None:
        record.__dict__[self._name] = value


def _lazy() -> Any:
    """Return a lazy field; the return type is Any, so that type checkers use the annotation of the field."""
    return _Lazy()


@dataclass(frozen=True, repr=False)
class _DraftRecord(Generic[K, V]):
    """Common base of both classes of records.

    In the header format ``wrapper``, ``value`` is the value inside the wrapper, so that code for headers and values does
    not depend on the header format.
    """

    topic: str
    key: K | None = _lazy()  # noqa: RUF009
    value: V | None = _lazy()  # noqa: RUF009
    timestamp: int | None = field(default=None, kw_only=True)
    headers: Any = field(default=None, kw_only=True)
    header_format: HeaderFormat = field(default="typed", kw_only=True)
    tombstone: bool | None = field(default=None, kw_only=True)
    key_serializer: Serializer[K] | None = field(default=None, kw_only=True, compare=False, repr=False)
    value_serializer: Serializer[V] | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_header_format(self.header_format)
        value: Any = self.__dict__["value"]
        headers = self.headers
        if isinstance(value, MessageWrapper):
            if self.header_format != "wrapper":
                raise TypeError(f"a MessageWrapper needs header_format='wrapper', not {self.header_format!r}")
            if headers is not None:
                raise TypeError("a MessageWrapper has headers of its own: pass them to the wrapper")
            if self.value_serializer is None:
                self._set("value_serializer", value._serializer)
            value, headers = value.value, value.headers
        headers_class = _HEADERS[self.header_format]
        if self.key_serializer is None:
            self._set("key", _bytes_or_none(self.__dict__["key"], "key"))
        self._set("value", value if self.value_serializer is not None else _bytes_or_none(value, "value"))
        self._set("headers", headers if isinstance(headers, headers_class) else headers_class(headers))
        self._set("tombstone", self._is_tombstone())

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # as the frozen dataclass itself does

    def _is_tombstone(self) -> bool:
        deletes = self.__dict__["value"] is None
        if self.header_format != "wrapper" and self.tombstone not in (None, deletes):
            rule = f"in the header format {self.header_format} a tombstone is a message without a value"
            message = f"{rule}: leave out tombstone=, or use header_format='wrapper'"
            raise EncodeError(message, format=MESSAGE_FORMATS[self.header_format], code="field_not_carried")
        return deletes if self.tombstone is None else self.tombstone

    def _serializer(self, name: str) -> Any:
        return getattr(self, f"{name}_serializer")

    def __repr__(self) -> str:
        # The key and the value are not deserialized, because that may fail.
        fields = (f"{field.name}={self.__dict__[field.name]!r}" for field in dataclasses.fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(fields)})"

    def serialized_key(self) -> bytes | None:
        """Return the serialized key; ``None`` is null."""
        return self._serialized("key")

    def serialized_value(self) -> bytes | None:
        """Return the serialized value; ``None`` is null."""
        return self._serialized("value")

    def _serialized(self, name: str) -> bytes | None:
        value = self.__dict__[name]
        if value is None or (type(value) is bytes and self._serializer(name) is None):
            return value
        serialized = value if isinstance(value, Serialized) else self._serializer(name).serialize(value)
        if not isinstance(serialized, bytes | bytearray | memoryview):
            raise TypeError(f"the {name} serializer must return bytes, not {type(serialized).__name__}")
        return bytes(serialized)

    @property
    def wrapper(self) -> MessageWrapper[V] | None:
        """The value with its headers in the header format ``wrapper``, otherwise ``None``."""
        if self.header_format != "wrapper":
            return None
        return MessageWrapper[V](self.headers, self.value, serializer=self.value_serializer)

    def get_headers(self) -> AnyHeaders:
        """Return the headers: :class:`Headers` in the header format ``typed``, :class:`IntHeaders` in the others."""
        headers: AnyHeaders = self.headers
        return headers

    def get_header(self, key: int | str) -> Any:
        """Return the last value of a key; raise ``DecodeError`` if the headers are damaged.

        Returns
        -------
        object
            Bytes in the header formats with integer keys, a Python object of the value's type in ``typed``, or the object of
            the key's serializer. ``None`` is a null value or a missing header; ``key in record.headers`` distinguishes them.
        """
        return self.headers.get(key)

    def with_header(self, key: int | str, value: Any) -> Self:
        """Return a copy of the record in which one value replaces all values of a key."""
        headers = self.headers.copy()
        headers.set(key, value)
        return self.replace(headers=headers)

    def without_headers(self, *keys: int | str) -> Self:
        """Return a copy of the record without the headers with the given keys."""
        headers = self.headers.copy()
        for key in keys:
            headers.remove(key)
        return self.replace(headers=headers)

    def _with_serializers(self, serializers: Mapping[Any, HeaderSerializer]) -> Self:
        """Return a copy of the record with additional header serializers; they replace existing ones of the same keys."""
        headers = self.headers.copy(serializers={**self.headers._serializers, **serializers})
        return self.replace(headers=headers)

    def replace(self, **fields: Any) -> Self:
        """Return a copy of the record with some fields replaced; headers that are not replaced are shared.

        A new value determines whether the record is a tombstone, except in the header format ``wrapper``, where the mark
        stays.
        """
        if "value" in fields and self.header_format != "wrapper":
            fields.setdefault("tombstone", None)
        stored = {name: self.__dict__[name] for name in ("key", "value")}  # not deserialized
        return dataclasses.replace(self, **{**stored, **fields})


@dataclass(frozen=True, repr=False)
class ProducerRecord(_DraftRecord[K, V]):
    """A record to be produced. Its headers can be changed, but its fields cannot.

    Parameters
    ----------
    topic : str
        The topic.
    key : bytes or object, optional
        The key: bytes, or an object for ``key_serializer``.
    value : bytes, object or MessageWrapper, optional
        The value: bytes, or an object for ``value_serializer``; ``None`` is null. A :class:`MessageWrapper` contains the
        headers, and requires the header format ``wrapper``.
    partition : int, optional
        The partition of the topic.
    timestamp : int, optional
        Milliseconds since 1970; written as -1 if missing.
    headers : Headers, IntHeaders, mapping, pairs or bytes, optional
        The headers. A headers object of the header format is stored without a copy; bytes are encoded headers.
    header_format : {"typed", "int", "wrapper"}, default "typed"
        The draft: text keys and typed values, integer keys, or integer keys inside the value.
    tombstone : bool, optional
        Whether the record deletes its key; by default if it has no value. Only ``wrapper`` has a separate mark, which
        allows a tombstone with a value, and a null value that is not a tombstone.
    key_serializer, value_serializer : Serializer, optional
        Serializers for keys and values that are not bytes, called after the interceptors.

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    EncodeError
        If a key has the type of another header format (``key_not_carried``), or ``tombstone`` contradicts the value in a
        header format without a mark (``field_not_carried``).

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.kip82 import MessageWrapper, ProducerRecord
    >>> record = ProducerRecord("orders", b"k", b"42", headers={"tenant": "acme"})
    >>> record.get_headers().put_integer("retry", 3)
    >>> lh.decode(record.to_bytes(), "kip82-message").headers
    Headers([('tenant', String('acme')), ('retry', Int32(3))])
    >>> delete = ProducerRecord("orders", b"k", MessageWrapper({7: b"cluster-a"}, None), header_format="wrapper")
    >>> delete.set_header(10_001, b"client-1")
    >>> lh.decode(delete.to_bytes(), "kip82-message-wrapper").tombstone, delete.get_header(7)
    (True, b'cluster-a')
    """

    partition: int | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # the arguments accept more types than the fields

        @overload
        def __init__(
            self,
            topic: str,
            key: K | Serialized | None,
            value: MessageWrapper[V],
            *,
            partition: int | None = None,
            timestamp: int | None = None,
            header_format: Literal["wrapper"],
            tombstone: bool | None = None,
            key_serializer: Serializer[K] | None = None,
            value_serializer: Serializer[V] | None = None,
        ) -> None: ...
        @overload
        def __init__(
            self,
            topic: str,
            key: K | Serialized | None = None,
            value: V | Serialized | None = None,
            *,
            partition: int | None = None,
            timestamp: int | None = None,
            headers: HeadersInput | None = None,
            header_format: HeaderFormat = "typed",
            tombstone: bool | None = None,
            key_serializer: Serializer[K] | None = None,
            value_serializer: Serializer[V] | None = None,
        ) -> None: ...
        def __init__(self, *arguments: Any, **fields: Any) -> None: ...

    def set_header(self, key: int | str, value: Any) -> None:
        """Replace all values of a key with one value.

        Parameters
        ----------
        key : int or str
            The key: text in ``typed``, otherwise an integer.
        value : object
            Bytes or ``None`` in the header formats with integer keys, a value of :class:`Headers` in ``typed``, or an object
            for the key's serializer.

        Raises
        ------
        TypeError
            If the value has a wrong type.
        EncodeError
            If the key has the type of another header format (``key_not_carried``) or is outside the range of its writer
            (``limit_exceeded``), or the value does not fit.
        """
        self.headers.set(key, value)

    def to_message(self, offset: int = 0) -> Message:
        """Return the record as a message with an offset, for :func:`letterhead.encode`."""
        marked = {"tombstone": self.tombstone} if self.header_format == "wrapper" else {}
        return Message(
            offset=offset,
            timestamp=self.timestamp,
            key=self.serialized_key(),
            headers=self.headers._read(),
            value=self.serialized_value(),
            **marked,
        )

    def to_bytes(self, offset: int = 0) -> bytes:
        """Encode the record as a message with an offset: ``kip82-message``, or ``-int`` or ``-wrapper`` by the header format.

        Raises
        ------
        EncodeError
            If a field cannot be encoded.
        """
        return encode(self.to_message(offset), MESSAGE_FORMATS[self.header_format]) or b""


@dataclass(frozen=True, repr=False)
class ConsumerRecord(_DraftRecord[K, V]):
    """A consumed record. The record and its headers are immutable; interceptors return changed copies.

    Parameters
    ----------
    topic : str
        The topic.
    key : bytes or object, optional
        The key: bytes, or an object for ``key_serializer``. The key of a record that was read is deserialized on first
        access.
    value : bytes, object or MessageWrapper, optional
        The value: bytes, or an object for ``value_serializer``, deserialized like the key; ``None`` is null.
    partition, offset : int, default 0
        The partition and the offset.
    timestamp : int, optional
        Milliseconds since 1970. Messages of magic 0 have none.
    header_format : {"typed", "int", "wrapper"}, default "typed"
        The draft: text keys and typed values, integer keys, or integer keys inside the value.
    tombstone : bool, optional
        Whether the record deletes its key; by default if it has no value.
    key_serializer, value_serializer : Serializer, optional
        Serializers for keys and values that are not bytes.
    headers : Headers, IntHeaders, mapping, pairs or bytes, optional
        The headers, of the type of the header format. Bytes are encoded headers, parsed on first access.

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    EncodeError
        If a key has the type of another header format, or ``tombstone`` contradicts the value.

    Examples
    --------
    >>> from letterhead.kip82 import ConsumerRecord, ProducerRecord
    >>> data = ProducerRecord("orders", b"k", b"42", headers={10_001: b"client-1"}, header_format="int").to_bytes(7)
    >>> [record] = ConsumerRecord.read(data, topic="orders", header_format="int")
    >>> record.offset, record.value, record.get_header(10_001)
    (7, b'42', b'client-1')
    >>> record.without_headers(10_001).get_headers().keys(), record.get_headers().keys()
    ([], [10001])
    """

    partition: int = field(default=0, kw_only=True)
    offset: int = field(default=0, kw_only=True)

    if TYPE_CHECKING:  # the arguments accept more types than the fields

        def __init__(
            self,
            topic: str,
            key: K | Serialized | None = None,
            value: V | Serialized | None = None,
            *,
            partition: int = 0,
            offset: int = 0,
            timestamp: int | None = None,
            headers: HeadersInput | None = None,
            header_format: HeaderFormat = "typed",
            tombstone: bool | None = None,
            key_serializer: Serializer[K] | None = None,
            value_serializer: Serializer[V] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("headers", self.headers.frozen())

    @classmethod
    def from_message(
        cls,
        message: Message,
        *,
        topic: str,
        partition: int = 0,
        header_format: HeaderFormat = "typed",
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        key_serializer: Serializer[A] | None = None,
        value_serializer: Serializer[B] | None = None,
    ) -> ConsumerRecord[A, B]:
        """Make a record from a message of a log.

        Parameters
        ----------
        message : Message
            A message from :func:`letterhead.messages`. Records from messages of magic 0 or 1 have no headers.
        topic, partition : str and int
            The topic and the partition of the log.
        header_format : {"typed", "int", "wrapper"}, default "typed"
            The draft: text keys and typed values, integer keys, or integer keys inside the value.
        serializers : mapping of key to HeaderSerializer, optional
            Serializers for header values, by key.
        key_serializer, value_serializer : Serializer, optional
            Serializers for keys and values that are not bytes.
        """
        check_header_format(header_format)
        headers = _HEADERS[header_format](message.headers, serializers=serializers)
        fields: dict[str, Any] = {"key_serializer": key_serializer, "value_serializer": value_serializer}
        return cls._from_fields(
            message, topic=topic, partition=partition, header_format=header_format, headers=headers, **fields
        )

    @classmethod
    def _from_fields(cls, message: Message, **fields: Any) -> ConsumerRecord[Any, Any]:
        """Build a record from a message and the fields that a message does not contain."""
        key = None if message.key is None else Serialized(message.key)
        value = None if message.value is None else Serialized(message.value)
        fields |= {"offset": message.offset, "timestamp": message.timestamp, "tombstone": is_delete(message)}
        return cls(key=key, value=value, **fields)

    @classmethod
    def read(
        cls,
        data: Data,
        *,
        topic: str,
        partition: int = 0,
        header_format: HeaderFormat = "typed",
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        key_serializer: Serializer[A] | None = None,
        value_serializer: Serializer[B] | None = None,
        errors: HeaderErrors = "raise",
    ) -> Iterator[ConsumerRecord[A, B]]:
        """Read the records of concatenated messages, as in a log or a fetch response.

        Headers are parsed on first access, so damaged headers do not prevent reading the key, the value and later records.

        Parameters
        ----------
        data : bytes-like
            Messages of magic 0, 1 or 2; compressed sets are decompressed.
        topic, partition : str and int
            The topic and the partition of the messages.
        header_format : {"typed", "int", "wrapper"}, default "typed"
            The draft: text keys and typed values, integer keys, or integer keys inside the value.
        serializers : mapping of key to HeaderSerializer, optional
            Serializers for header values, by key.
        key_serializer, value_serializer : Serializer, optional
            Serializers for keys and values that are not bytes.
        errors : {"raise", "null"}, default "raise"
            What to do if the headers of a record are accessed but cannot be parsed: raise, or return no headers.
            ``record.headers.error`` then contains the reason.

        Yields
        ------
        ConsumerRecord
            The records.

        Raises
        ------
        DecodeError
            If a message is damaged outside of its headers; raised after the preceding records.

        Examples
        --------
        >>> from letterhead.kip82 import ConsumerRecord, ProducerRecord
        >>> good = ProducerRecord("orders", b"k", b"42", headers={10_001: b"client-1"}, header_format="int").to_bytes()
        >>> [record] = ConsumerRecord.read(good, topic="orders", header_format="int", errors="null")
        >>> record.headers.parsed, record.get_header(10_001), record.headers.parsed
        (False, b'client-1', True)
        """
        check_header_format(header_format)
        check_name("errors", errors, ("raise", "null"))
        fields: dict[str, Any] = {
            "topic": topic,
            "partition": partition,
            "header_format": header_format,
            "key_serializer": key_serializer,
            "value_serializer": value_serializer,
        }

        def records() -> Iterator[ConsumerRecord[A, B]]:
            batches = _native.messages(bytes_of(data), BATCH_FORMATS[header_format], parse_headers=False)
            for batch, error in batches:
                for message in batch:
                    encoded = message["headers"]
                    headers = _HEADERS[header_format](encoded, serializers=serializers, errors=errors)
                    unparsed = Message(**{**message, "headers": None if encoded is None else ()})
                    yield cls._from_fields(unparsed, headers=headers, **fields)
                if error is not None:
                    raise error

        return ReadOnce(records(), "the iterator of records")

    def set_header(self, key: int | str, value: Any) -> NoReturn:
        """Raise ``TypeError``: the headers of a consumed record are immutable."""
        raise TypeError("a consumed record is immutable: use with_header(...), which returns a changed copy")

    def forward(self, topic: str) -> ProducerRecord[K, V]:
        """Make a record for another topic with the same key, value and timestamp, and a copy of the headers."""
        names = ("key_serializer", "value_serializer", "timestamp", "header_format", "tombstone")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        key, value = self.__dict__["key"], self.__dict__["value"]  # not deserialized
        return ProducerRecord(topic, key, value, headers=self.headers.copy(), **fields)


def _bytes_or_none(value: Any, name: str) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if not isinstance(value, bytes | bytearray | memoryview):
        value = type(value).__name__
        raise TypeError(f"the {name} must be bytes or None, not {value}: pass {name}_serializer= for other objects")
    return bytes(value)
