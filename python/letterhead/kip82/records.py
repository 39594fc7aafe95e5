"""Records as clients have them: what is produced, and what was consumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias

from letterhead import _native
from letterhead.envelope import Envelope
from letterhead.errors import EncodeError, check_name
from letterhead.given import Data, bytes_of
from letterhead.kip82.block import HeaderErrors
from letterhead.kip82.compaction import is_delete
from letterhead.kip82.headers import Headers
from letterhead.kip82.int_headers import IntHeaders
from letterhead.kip82.layouts import MESSAGES, SETS, Layout, check_layout
from letterhead.kip82.serializers import HeaderSerializer
from letterhead.kip82.wrapper import MessageWrapper
from letterhead.message import encode

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


@dataclass(frozen=True)
class _Record:
    """What both kinds of records have.

    The value is the payload in every layout. In ``wrapper`` it is what the wrapper holds, so that what handles headers
    and values need not know which layout they have.
    """

    topic: str
    key: bytes | None = None
    value: Any = None
    timestamp: int | None = field(default=None, kw_only=True)
    headers: Any = field(default=None, kw_only=True)
    layout: Layout = field(default="typed", kw_only=True)
    tombstone: bool | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_layout(self.layout)
        value, headers = self.value, self.headers
        if isinstance(value, MessageWrapper):
            if self.layout != "wrapper":
                raise TypeError(f"a MessageWrapper goes into layout='wrapper', not {self.layout!r}")
            if headers is not None:
                raise TypeError("a MessageWrapper brings its headers: give them to the wrapper")
            value, headers = value.value, value.headers
        of = _HEADERS[self.layout]
        self._hold("key", _bytes_or_none(self.key, "the key"))
        self._hold("value", _bytes_or_none(value, "the value"))
        self._hold("headers", headers if isinstance(headers, of) else of(headers))
        self._hold("tombstone", self._is_tombstone())

    def _hold(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # as the frozen dataclass itself does

    def _is_tombstone(self) -> bool:
        deletes = self.value is None
        if self.layout != "wrapper" and self.tombstone not in (None, deletes):
            message = f"a tombstone of the layout {self.layout} is a message without a value: it has no mark of its own"
            raise EncodeError(message, format=MESSAGES[self.layout], code="field_not_carried")
        return deletes if self.tombstone is None else self.tombstone

    @property
    def wrapper(self) -> MessageWrapper[bytes | None] | None:
        """The value with its headers, in the layout ``wrapper``; ``None`` in the others."""
        return MessageWrapper(self.headers, self.value) if self.layout == "wrapper" else None

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
        return self.headers.last(key)

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
        return dataclasses.replace(self, **fields)


@dataclass(frozen=True)
class ProducerRecord(_Record):
    """A record to be produced. Its headers can be changed, its fields cannot.

    Parameters
    ----------
    topic : str
        Where it goes.
    key : bytes, optional
        The key.
    value : bytes or MessageWrapper, optional
        The payload; ``None`` is null. A wrapper, whose headers are the record's then, goes into the layout ``wrapper``.
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

    def to_message(self, offset: int = 0) -> Envelope:
        """Give the fields of the message in a log.

        Parameters
        ----------
        offset : int, default 0
            Its offset.

        Returns
        -------
        Envelope
            What :func:`letterhead.encode` takes for the layout's format.
        """
        marked = {"tombstone": self.tombstone} if self.layout == "wrapper" else {}
        return Envelope(
            offset=offset,
            timestamp=self.timestamp,
            key=self.key,
            headers=self.headers._read(),
            value=self.value,
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


@dataclass(frozen=True)
class ConsumerRecord(_Record):
    """A record that was consumed. It is immutable, and so are its headers: an interceptor gives another one.

    Parameters
    ----------
    topic : str
        Where it was.
    key, value : bytes, optional
        The key and the payload; ``None`` is null.
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
    tombstone : bool, optional
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hold("headers", self.headers.frozen())

    @classmethod
    def from_message(
        cls,
        message: Envelope,
        *,
        topic: str,
        partition: int = 0,
        layout: Layout = "typed",
        serializers: Mapping[Any, HeaderSerializer] | None = None,
    ) -> Self:
        """Make a record of a message in a log.

        Parameters
        ----------
        message : Envelope
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

        Returns
        -------
        ConsumerRecord
            The record.
        """
        check_layout(layout)
        headers = _HEADERS[layout](message.headers, serializers=serializers)
        return cls._of(message, headers, topic, partition, layout)

    @classmethod
    def _of(cls, message: Envelope, headers: AnyHeaders, topic: str, partition: int, layout: Layout) -> Self:
        return cls(
            topic,
            message.key,
            message.value,
            partition=partition,
            offset=message.offset,
            timestamp=message.timestamp,
            headers=headers,
            layout=layout,
            tombstone=is_delete(message),
        )

    @classmethod
    def read(
        cls,
        data: Data,
        *,
        topic: str,
        partition: int = 0,
        layout: Layout = "typed",
        serializers: Mapping[Any, HeaderSerializer] | None = None,
        errors: HeaderErrors = "raise",
    ) -> Iterator[Self]:
        """Read the records of messages one after another, as in a log or a fetch.

        Headers are parsed on first access. Where they cannot be, the record's key and value and all later records are
        read nevertheless.

        Parameters
        ----------
        data : bytes-like
            The messages, of magic 0, 1 or 2; compressed sets are opened.
        topic, partition, layout, serializers
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
            message = Envelope(**{**fields, "headers": None if block is None else ()})
            yield cls._of(message, headers, topic, partition, layout)
        if error is not None:
            raise error

    def set_header(self, key: int | str, value: Any) -> NoReturn:
        """Refuse: a consumer sees headers as they were sent."""
        raise TypeError("a consumed record is immutable: with_header(...) gives another one")

    def forward(self, topic: str) -> ProducerRecord:
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
            self.key,
            self.value,
            timestamp=self.timestamp,
            headers=self.headers.copy(),
            layout=self.layout,
            tombstone=self.tombstone,
        )


def _bytes_or_none(given: Any, what: str) -> bytes | None:
    if given is None or type(given) is bytes:
        return given
    if not isinstance(given, bytes | bytearray | memoryview):
        raise TypeError(f"{what} must be bytes or None, not {type(given).__name__}")
    return bytes(given)
