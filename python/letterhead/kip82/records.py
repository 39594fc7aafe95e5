"""Records as clients have them: what is produced, and what was consumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NoReturn, Self, TypeAlias, overload

from letterhead import _native
from letterhead.errors import EncodeError, check_name
from letterhead.kip82.block import GivenHeaders, HeaderErrors
from letterhead.kip82.compaction import is_delete
from letterhead.kip82.headers import Headers
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.layouts import MESSAGES, SETS, Layout, check_layout
from letterhead.kip82.serializers import A, B, HeaderSerializer, K, Serialized, Serializer, V
from letterhead.kip82.wrapper import MessageWrapper
from letterhead.message import Data, Message, bytes_of
from letterhead.operations import encode

__all__ = ["AnyHeaders", "ConsumerRecord", "ProducerRecord", "RecordMetadata", "TopicPartition"]

AnyHeaders: TypeAlias = Headers | IntHeaders

_HEADERS: dict[Layout, type[AnyHeaders]] = {"typed": Headers, "int": IntHeaders, "wrapper": IntHeaders}
"""What holds the headers of a layout."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where a record was written.

    Attributes
    ----------
    topic : str
        The topic.
    partition : int
        The partition.
    offset : int
        The offset.
    timestamp : int or None
        Milliseconds since 1970.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None = None


@dataclass(frozen=True, repr=False)
class _Record(Generic[K, V]):
    """What both kinds of records have.

    The value is the payload in every layout. In ``wrapper`` it is the value in the wrapper, so that code that handles
    headers and values need not know the layout.
    """

    topic: str
    key: K | None = None
    value: V | None = None
    timestamp: int | None = field(default=None, kw_only=True)
    headers: Any = field(default=None, kw_only=True)
    layout: Layout = field(default="typed", kw_only=True)
    tombstone: bool | None = field(default=None, kw_only=True)
    key_serializer: Serializer[K] | None = field(default=None, kw_only=True, compare=False, repr=False)
    value_serializer: Serializer[V] | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_layout(self.layout)
        value: Any = self.__dict__["value"]
        headers = self.headers
        if isinstance(value, MessageWrapper):
            if self.layout != "wrapper":
                raise TypeError(f"a MessageWrapper goes into layout='wrapper', not {self.layout!r}")
            if headers is not None:
                raise TypeError("a MessageWrapper brings its headers: give them to the wrapper")
            if self.value_serializer is None:
                self._hold("value_serializer", value.serializer)
            value, headers = value.value, value.headers
        of = _HEADERS[self.layout]
        if self.key_serializer is None:
            self._hold("key", _bytes_or_none(self.__dict__["key"], "key"))
        self._hold("value", value if self.value_serializer is not None else _bytes_or_none(value, "value"))
        self._hold("headers", headers if isinstance(headers, of) else of(headers))
        self._hold("tombstone", self._is_tombstone())

    def _hold(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # as the frozen dataclass itself does

    def _is_tombstone(self) -> bool:
        deletes = self.__dict__["value"] is None
        if self.layout != "wrapper" and self.tombstone not in (None, deletes):
            message = f"a tombstone of the layout {self.layout} is a message without a value: it has no mark of its own"
            raise EncodeError(message, format=MESSAGES[self.layout], code="field_not_carried")
        return deletes if self.tombstone is None else self.tombstone

    def _serializer(self, name: str) -> Serializer[Any]:
        serializer: Any = self.key_serializer if name == "key" else self.value_serializer
        return serializer  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        # The key and the value as they are held: bytes that cannot be deserialized can be shown.
        fields = ((each.name, self.__dict__[each.name]) for each in dataclasses.fields(self) if each.repr)
        return f"{type(self).__name__}({', '.join(f'{name}={held!r}' for name, held in fields)})"

    def serialized_key(self) -> bytes | None:
        """Return the bytes of the key, as they are in a message; ``None`` is null."""
        return self._serialized("key")

    def serialized_value(self) -> bytes | None:
        """Return the bytes of the value, as they are in a message; ``None`` is null."""
        return self._serialized("value")

    def _serialized(self, name: str) -> bytes | None:
        held = self.__dict__[name]
        if held is None or (type(held) is bytes and self._serializer(name) is None):
            return held
        made = held if isinstance(held, Serialized) else self._serializer(name).serialize(held)
        if not isinstance(made, bytes | bytearray | memoryview):
            raise TypeError(f"the {name} serializer must return bytes, not {type(made).__name__}")
        return bytes(made)

    @property
    def wrapper(self) -> MessageWrapper[V] | None:
        """The value with its headers, in the layout ``wrapper``; ``None`` in the others."""
        if self.layout != "wrapper":
            return None
        return MessageWrapper[V](self.headers, self.value, serializer=self.value_serializer)

    def get_headers(self) -> AnyHeaders:
        """Give the headers: :class:`Headers` in the layout ``typed``, :class:`IntHeaders` in the others."""
        headers: AnyHeaders = self.headers
        return headers

    def get_header(self, key: int | str) -> Any:
        """Give the last value of a key.

        Parameters
        ----------
        key : int or str
            The key, in the form of the layout.

        Returns
        -------
        object
            Bytes in the layouts with integer keys, what Python has for the type in ``typed``, an object where the key
            has a serializer. ``None`` if the value is null or there is none: ``key in record.headers`` tells which.

        Raises
        ------
        DecodeError
            If the headers are damaged.
        """
        return self.headers.get(key)

    def with_header(self, key: int | str, value: Any) -> Self:
        """Give a record in which a key has one value, in place of all that it had.

        Parameters
        ----------
        key : int or str
            The key, in the form of the layout.
        value : object
            The value, as the headers take it.

        Returns
        -------
        ProducerRecord or ConsumerRecord
            Another record; this one stays as it is.
        """
        headers = self.headers.copy()
        headers.set(key, value)
        return self.replace(headers=headers)

    def without_headers(self, *keys: int | str) -> Self:
        """Give a record without any header that has one of some keys.

        Parameters
        ----------
        *keys : int or str
            The keys, in the form of the layout.

        Returns
        -------
        ProducerRecord or ConsumerRecord
            Another record; this one stays as it is.
        """
        headers = self.headers.copy()
        for key in keys:
            headers.remove(key)
        return self.replace(headers=headers)

    def with_serializers(self, serializers: Mapping[Any, HeaderSerializer]) -> Self:
        """Give a record whose headers have serializers beside those that they have.

        Parameters
        ----------
        serializers : mapping of key to HeaderSerializer
            The serializers; keys that have one already get this one.

        Returns
        -------
        ProducerRecord or ConsumerRecord
            Another record; this one stays as it is.
        """
        headers = self.headers.copy(serializers={**self.headers.serializers, **serializers})
        return self.replace(headers=headers)

    def replace(self, **fields: Any) -> Self:
        """Give a record with other values for some fields.

        Parameters
        ----------
        **fields : object
            The fields. Whether the record is a tombstone follows from a new value, but in the layout ``wrapper``, where
            it is a mark of its own and stays.

        Returns
        -------
        ProducerRecord or ConsumerRecord
            Another record; this one stays as it is, and has the same headers unless others are given.
        """
        if "value" in fields and self.layout != "wrapper":
            fields.setdefault("tombstone", None)
        held = {name: self.__dict__[name] for name in ("key", "value")}  # not deserialized
        return dataclasses.replace(self, **{**held, **fields})


class _Lazy:
    """The key or the value of a record: :class:`Serialized` bytes are deserialized on first access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, record: _Record[Any, Any] | None, owner: type) -> Any:
        if record is None:
            return self
        held = record.__dict__[self._name]
        if not isinstance(held, Serialized):
            return held
        read = f"_{self._name}"
        if read not in record.__dict__:
            try:
                record.__dict__[read] = record._serializer(self._name).deserialize(held)
            except Exception as error:
                error.add_note(f"in the {self._name} of a record of {record.topic}")
                raise
        return record.__dict__[read]

    def __set__(self, record: _Record[Any, Any], held: Any) -> None:
        record.__dict__[self._name] = held


# The dataclass was made with fields of their plain types, which is what they are to a type checker.
_Record.key = _Lazy("key")  # type: ignore[misc]
_Record.value = _Lazy("value")  # type: ignore[misc]


@dataclass(frozen=True, repr=False)
class ProducerRecord(_Record[K, V]):
    """A record to be produced. Its headers can be changed, its fields cannot.

    Parameters
    ----------
    topic : str
        Where it goes.
    key : bytes or object, optional
        The key: bytes, or with ``key_serializer`` what that takes.
    value : bytes, object or MessageWrapper, optional
        The payload: bytes, or with ``value_serializer`` what that takes; ``None`` is null. A wrapper goes into the layout
        ``wrapper``, and brings the headers.
    partition : int, optional
        Which partition of the topic.
    timestamp : int, optional
        Milliseconds since 1970; -1 is written where there is none.
    headers : Headers, IntHeaders, mapping, pairs or bytes, optional
        The headers, in the form of the layout: kept as the very object where they are its class. Bytes are a block as
        it is on the wire.
    layout : {"typed", "int", "wrapper"}, default "typed"
        Which of the drafts: text keys and typed values; integer keys; or integer keys inside the value.
    tombstone : bool, optional
        Whether the record deletes its key: where it is not given, if it has no value. Only ``wrapper`` has a mark for
        it, so that a record with a value can delete, and one without need not.
    key_serializer, value_serializer : Serializer, optional
        For keys and values that are not bytes. They are called when the record is written, after interceptors.

    Raises
    ------
    TypeError
        If something is not of the right type.
    EncodeError
        If a key is not of the layout's form (``key_not_carried``), or the layout has no mark for a tombstone that has a
        value (``field_not_carried``).

    Examples
    --------
    >>> import letterhead as lh
    >>> from letterhead.kip82 import MessageWrapper, ProducerRecord
    >>> record = ProducerRecord("orders", b"k", b"42", headers={"tenant": "acme"})
    >>> record.get_headers().put_integer("retry", 3)
    >>> lh.decode(record.to_bytes(), "kip82-message").headers
    Headers([('tenant', String('acme')), ('retry', Int32(3))])
    >>> delete = ProducerRecord("orders", b"k", MessageWrapper({7: b"cluster-a"}, None), layout="wrapper")
    >>> delete.set_header(10_001, b"client-1")
    >>> lh.decode(delete.to_bytes(), "kip82-message-wrapper").tombstone, delete.get_header(7)
    (True, b'cluster-a')
    """

    partition: int | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # more is accepted than the fields hold

        @overload
        def __init__(
            self,
            topic: str,
            key: K | Serialized | None,
            value: MessageWrapper[V],
            *,
            partition: int | None = None,
            timestamp: int | None = None,
            layout: Literal["wrapper"],
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
            headers: GivenHeaders | None = None,
            layout: Layout = "typed",
            tombstone: bool | None = None,
            key_serializer: Serializer[K] | None = None,
            value_serializer: Serializer[V] | None = None,
        ) -> None: ...
        def __init__(self, *given: Any, **fields: Any) -> None: ...

    def set_header(self, key: int | str, value: Any) -> None:
        """Give a key one value, in place of all that it has.

        Parameters
        ----------
        key : int or str
            The key, in the form of the layout.
        value : object
            Bytes or ``None`` in the layouts with integer keys, what :meth:`Headers.put` takes in ``typed``, what the
            serializer takes where the key has one.

        Raises
        ------
        TypeError
            If the value is none of these.
        EncodeError
            If the key is not of the layout's form (``key_not_carried``) or outside the range of its writer
            (``limit_exceeded``), or the value does not fit.
        """
        self.headers.set(key, value)

    def to_message(self, offset: int = 0) -> Message:
        """Give the fields of the message in a log.

        Parameters
        ----------
        offset : int, default 0
            Its offset.

        Returns
        -------
        Message
            What :func:`letterhead.encode` takes for the layout's format.
        """
        marked = {"tombstone": self.tombstone} if self.layout == "wrapper" else {}
        return Message(
            offset=offset,
            timestamp=self.timestamp,
            key=self.serialized_key(),
            headers=self.headers._read(),
            value=self.serialized_value(),
            **marked,
        )

    def to_bytes(self, offset: int = 0) -> bytes:
        """Write the message as it is in a log.

        Parameters
        ----------
        offset : int, default 0
            Its offset.

        Returns
        -------
        bytes
            Format ``kip82-message``, ``-int`` or ``-wrapper``, by the layout.

        Raises
        ------
        EncodeError
            If something does not fit.
        """
        return encode(self.to_message(offset), MESSAGES[self.layout]) or b""


@dataclass(frozen=True, repr=False)
class ConsumerRecord(_Record[K, V]):
    """A record that was consumed. It is immutable, and so are its headers: an interceptor returns another one.

    Parameters
    ----------
    topic : str
        Where it was.
    key, value : bytes or object, optional
        The key and the payload, as in :class:`ProducerRecord`. Of a record that was read they are deserialized on first
        access.
    partition : int, default 0
        The partition.
    offset : int, default 0
        The offset.
    timestamp : int, optional
        Milliseconds since 1970; magic 0 has none.
    headers : Headers, IntHeaders, mapping, pairs or bytes, optional
        The headers, in the form of the layout. Bytes are a block, which is read when it is first asked for anything.
    layout : {"typed", "int", "wrapper"}, default "typed"
        Which of the drafts.
    tombstone, key_serializer, value_serializer : optional
        As in :class:`ProducerRecord`.

    Raises
    ------
    TypeError, EncodeError
        As from :class:`ProducerRecord`.

    Examples
    --------
    >>> from letterhead.kip82 import ConsumerRecord, ProducerRecord
    >>> data = ProducerRecord("orders", b"k", b"42", headers={10_001: b"client-1"}, layout="int").to_bytes(7)
    >>> [record] = ConsumerRecord.read(data, topic="orders", layout="int")
    >>> record.offset, record.value, record.get_header(10_001)
    (7, b'42', b'client-1')
    >>> record.without_headers(10_001).get_headers().keys(), record.get_headers().keys()
    ([], [10001])
    """

    partition: int = field(default=0, kw_only=True)
    offset: int = field(default=0, kw_only=True)

    if TYPE_CHECKING:  # more is accepted than the fields hold

        def __init__(
            self,
            topic: str,
            key: K | Serialized | None = None,
            value: V | Serialized | None = None,
            *,
            partition: int = 0,
            offset: int = 0,
            timestamp: int | None = None,
            headers: GivenHeaders | None = None,
            layout: Layout = "typed",
            tombstone: bool | None = None,
            key_serializer: Serializer[K] | None = None,
            value_serializer: Serializer[V] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hold("headers", self.headers.frozen())

    @classmethod
    def from_message(
        cls,
        message: Message,
        *,
        topic: str,
        partition: int = 0,
        layout: Layout = "typed",
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        key_serializer: Serializer[A] | None = None,
        value_serializer: Serializer[B] | None = None,
    ) -> ConsumerRecord[A, B]:
        """Make a record of a message in a log.

        Parameters
        ----------
        message : Message
            What :func:`letterhead.messages` gives for the layout's format. Magic 0 and 1 have no headers: the record's
            are empty then.
        topic : str
            Where it was.
        partition : int, default 0
            The partition.
        layout : {"typed", "int", "wrapper"}, default "typed"
            Which of the drafts.
        serializers : mapping of key to HeaderSerializer, optional
            For the keys whose values are to be other objects.
        key_serializer, value_serializer : Serializer, optional
            For the key and the value of the record, which are deserialized on first access.

        Returns
        -------
        ConsumerRecord
            The record.
        """
        check_layout(layout)
        headers = _HEADERS[layout](message.headers, serializers=serializers)
        return cls._of(message, headers, topic, partition, layout, key_serializer, value_serializer)

    @classmethod
    def _of(
        cls,
        message: Message,
        headers: AnyHeaders,
        topic: str,
        partition: int,
        layout: Layout,
        key_serializer: Serializer[A] | None,
        value_serializer: Serializer[B] | None,
    ) -> ConsumerRecord[A, B]:
        made: Any = cls  # whose type has the type variables of the class, not those of the serializers
        record: ConsumerRecord[A, B] = made(
            topic,
            None if message.key is None else Serialized(message.key),
            None if message.value is None else Serialized(message.value),
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            partition=partition,
            offset=message.offset,
            timestamp=message.timestamp,
            headers=headers,
            layout=layout,
            tombstone=is_delete(message),
        )
        return record

    @classmethod
    def read(
        cls,
        data: Data,
        *,
        topic: str,
        partition: int = 0,
        layout: Layout = "typed",
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        key_serializer: Serializer[A] | None = None,
        value_serializer: Serializer[B] | None = None,
        errors: HeaderErrors = "raise",
    ) -> Iterator[ConsumerRecord[A, B]]:
        """Read the records of messages one after another, as in a log or a fetch.

        Headers are parsed on first access. Where they cannot be, the record's key and value and all later records are
        read nevertheless.

        Parameters
        ----------
        data : bytes-like
            The messages, of magic 0, 1 or 2; compressed sets are opened.
        topic, partition, layout, serializers, key_serializer, value_serializer
            As :meth:`from_message` takes them.
        errors : {"raise", "null"}, default "raise"
            What accessing the headers of a record does if they cannot be parsed: raise, or read them as no headers.
            ``record.headers.error`` tells why.

        Yields
        ------
        ConsumerRecord
            The records.

        Raises
        ------
        DecodeError
            If a message is damaged outside of its headers, after the records before it.

        Examples
        --------
        >>> from letterhead.kip82 import ConsumerRecord, ProducerRecord
        >>> good = ProducerRecord("orders", b"k", b"42", headers={10_001: b"client-1"}, layout="int").to_bytes()
        >>> [record] = ConsumerRecord.read(good, topic="orders", layout="int", errors="null")
        >>> record.headers.parsed, record.get_header(10_001), record.headers.parsed
        (False, b'client-1', True)
        """
        check_layout(layout)
        check_name("errors", errors, ("raise", "null"))
        read, error = _native.messages(bytes_of(data), SETS[layout], parse_headers=False)
        for fields in read:
            block = fields["headers"]
            headers = _HEADERS[layout](block, serializers=serializers, errors=errors)
            message = Message(**{**fields, "headers": None if block is None else ()})
            yield cls._of(message, headers, topic, partition, layout, key_serializer, value_serializer)
        if error is not None:
            raise error

    def set_header(self, key: int | str, value: Any) -> NoReturn:
        """Refuse: a consumer sees headers as they were sent."""
        raise TypeError("a consumed record is immutable: with_header(...) gives another one")

    def forward(self, topic: str) -> ProducerRecord[K, V]:
        """Make a record to be produced elsewhere, with the same key, value, headers and timestamp.

        Parameters
        ----------
        topic : str
            Where it goes.

        Returns
        -------
        ProducerRecord
            The record; its headers are a copy.
        """
        return ProducerRecord(
            topic,
            self.__dict__["key"],
            self.__dict__["value"],
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            timestamp=self.timestamp,
            headers=self.headers.copy(),
            layout=self.layout,
            tombstone=self.tombstone,
        )


def _bytes_or_none(given: Any, what: str) -> bytes | None:
    if given is None or type(given) is bytes:
        return given
    if not isinstance(given, bytes | bytearray | memoryview):
        given = type(given).__name__
        raise TypeError(f"the {what} must be bytes or None, not {given}: pass {what}_serializer= for other objects")
    return bytes(given)
