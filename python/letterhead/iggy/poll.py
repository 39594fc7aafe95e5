"""Request to read messages of a topic: :class:`PollMessages`, with its consumer and its start position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import letterhead.iggy.json_transport as transport
from letterhead.errors import ConversionError, EncodeError
from letterhead.iggy.errors import need_unsigned, refuse_value
from letterhead.iggy.formats import Format, ReadFormat, check_format
from letterhead.iggy.routing import Identifier, as_identifier, read_kind
from letterhead.iggy.wire import Cursor
from letterhead.message import bytes_of

__all__ = ["Consumer", "PollMessages", "PollingStrategy"]

ConsumerKind: TypeAlias = Literal["consumer", "consumer_group"]
PollingKind: TypeAlias = Literal["offset", "timestamp", "first", "last", "next"]

# Kinds of consumers and strategies. The code on the wire is the index, starting at 1.
_CONSUMERS: tuple[ConsumerKind, ...] = ("consumer", "consumer_group")
_STRATEGIES: tuple[PollingKind, ...] = ("offset", "timestamp", "first", "last", "next")

_FIRST_PARTITION = {"iggy-2023": 1, "iggy": 0}
_CONSUMER_FIELD = {"iggy-2023": "id", "iggy": "consumer_id"}


@dataclass(frozen=True)
class Consumer:
    """Consumer of a poll: a single consumer or a consumer group.

    Parameters
    ----------
    kind : {"consumer", "consumer_group"}
        Whether it is a single consumer or a group.
    id : Identifier
        Number or name; the server stores offsets under this id.

    Examples
    --------
    >>> from letterhead.iggy import Consumer
    >>> Consumer.new(1).to_bytes().hex(), Consumer.group("billing").to_bytes().hex()
    ('01010401000000', '02020762696c6c696e67')
    """

    kind: ConsumerKind
    id: Identifier

    def __post_init__(self) -> None:
        if self.kind not in _CONSUMERS:
            refuse_value("unknown_type", "consumer of this kind is unknown")

    @classmethod
    def new(cls, id: Identifier | int | str) -> Consumer:
        """Identify a single consumer."""
        return cls("consumer", as_identifier(id))

    @classmethod
    def group(cls, id: Identifier | int | str) -> Consumer:
        """Identify a consumer group."""
        return cls("consumer_group", as_identifier(id))

    def to_bytes(self) -> bytes:
        """Return the kind and the identifier as bytes."""
        return bytes((1 + _CONSUMERS.index(self.kind),)) + self.id.to_bytes()

    @classmethod
    def _read(cls, cursor: Cursor) -> Consumer:
        return cls(read_kind(cursor, _CONSUMERS, "consumer"), Identifier._read(cursor, "consumer id"))


@dataclass(frozen=True)
class PollingStrategy:
    """Start position of a poll in a partition.

    Parameters
    ----------
    kind : {"offset", "timestamp", "first", "last", "next"}
        Rule that determines the first message.
    value : int, default 0
        The offset, or the time in microseconds since 1970; unused for other kinds.

    Raises
    ------
    EncodeError
        If the kind is unknown (``unknown_type``), or the value does not fit in 64 bits (``out_of_range``).

    Examples
    --------
    >>> from letterhead.iggy import PollingStrategy
    >>> PollingStrategy.offset(5).to_bytes().hex(), PollingStrategy.next().to_bytes().hex()
    ('010500000000000000', '050000000000000000')
    """

    kind: PollingKind
    value: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _STRATEGIES:
            refuse_value("unknown_type", "polling strategy of this kind is unknown")
        need_unsigned(self.value, 64, "the value of the polling strategy")

    @classmethod
    def offset(cls, value: int) -> PollingStrategy:
        """Begin at an offset."""
        return cls("offset", value)

    @classmethod
    def timestamp(cls, value: int) -> PollingStrategy:
        """Begin at a time, in microseconds since 1970."""
        return cls("timestamp", value)

    @classmethod
    def first(cls) -> PollingStrategy:
        """Begin at the first message of the partition."""
        return cls("first")

    @classmethod
    def last(cls) -> PollingStrategy:
        """Read the last messages of the partition."""
        return cls("last")

    @classmethod
    def next(cls) -> PollingStrategy:
        """Begin after the offset that the server has stored for the consumer."""
        return cls("next")

    def to_bytes(self) -> bytes:
        """Return the kind and the value as bytes."""
        return bytes((1 + _STRATEGIES.index(self.kind),)) + self.value.to_bytes(8, "little")

    @classmethod
    def _read(cls, cursor: Cursor) -> PollingStrategy:
        return cls(read_kind(cursor, _STRATEGIES, "polling"), cursor.number(8, "polling value"))


@dataclass(init=False)
class PollMessages:
    """A request to read messages of a topic; the reply is :class:`PolledMessages`.

    Parameters
    ----------
    consumer : Consumer, Identifier, int or str
        The consumer; an identifier, number or name means a single consumer.
    stream_id, topic_id : Identifier, int or str
        The topic.
    partition_id : int, optional
        The partition. If None, the server uses the first partition for a single consumer. For a consumer group, most
        releases use an assigned partition of the member; server 0.9.0-edge.5 returns no messages.
    strategy : PollingStrategy, optional
        Start position; by default offset 0.
    count : int, default 10
        Maximum number of messages to read.
    auto_commit : bool, default False
        Whether the server stores the offset of the last message for the consumer.

    Raises
    ------
    EncodeError
        If a number does not fit its field (``out_of_range``).

    Examples
    --------
    >>> from letterhead.iggy import Consumer, PollingStrategy, PollMessages
    >>> request = PollMessages(Consumer.new(1), "orders", "placed", 1, PollingStrategy.next(), 100, auto_commit=True)
    >>> PollMessages.from_bytes(request.to_bytes("iggy"), "iggy") == request
    True
    >>> print(request.to_json())
    {"id":"1","partition_id":1,"kind":"next","value":"0","count":100,"auto_commit":true}
    """

    consumer: Consumer
    stream_id: Identifier
    topic_id: Identifier
    partition_id: int | None
    strategy: PollingStrategy
    count: int
    auto_commit: bool

    def __init__(
        self,
        consumer: Consumer | Identifier | int | str,
        stream_id: Identifier | int | str,
        topic_id: Identifier | int | str,
        partition_id: int | None = None,
        strategy: PollingStrategy | None = None,
        count: int = 10,
        *,
        auto_commit: bool = False,
    ) -> None:
        self.consumer = consumer if isinstance(consumer, Consumer) else Consumer.new(consumer)
        self.stream_id = as_identifier(stream_id)
        self.topic_id = as_identifier(topic_id)
        self.partition_id = None if partition_id is None else need_unsigned(partition_id, 32, "the partition")
        self.strategy = PollingStrategy.offset(0) if strategy is None else strategy
        self.count = need_unsigned(count, 32, "the count")
        self.auto_commit = auto_commit

    @classmethod
    def from_bytes(cls, data: bytes, format: Format = "iggy-2023") -> PollMessages:
        """Read the body of a request, without the protocol frame; ``format`` is as in :mod:`letterhead.iggy`.

        Raises
        ------
        DecodeError
            If the bytes are not a request in this format.
        """
        check_format(format)
        cursor = Cursor(bytes_of(data, "a request"), format)
        consumer = Consumer._read(cursor)
        stream, topic = Identifier._read(cursor, "stream id"), Identifier._read(cursor, "topic id")
        flag = _read_flag(cursor, "partition flag") if format == "iggy" else True
        partition = cursor.number(4, "partition id")
        if partition and not flag:
            cursor.refuse("bad_attributes", f"partition {partition} has the flag for no partition", back=5)
        is_none = not flag or (format == "iggy-2023" and partition == 0)
        strategy, count = PollingStrategy._read(cursor), cursor.number(4, "count")
        auto_commit = _read_flag(cursor, "auto-commit flag")
        cursor.end("auto-commit flag")
        return cls(consumer, stream, topic, None if is_none else partition, strategy, count, auto_commit=auto_commit)

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        stream_id: Identifier | int | str,
        topic_id: Identifier | int | str,
        format: ReadFormat = "iggy-auto",
    ) -> PollMessages:
        """Read the fields of a request of the HTTP interface, which supports single consumers only.

        Parameters
        ----------
        text : str or bytes
            An object. All fields are optional: ``id`` (``iggy-2023``) or ``consumer_id`` (``iggy``), by default 1;
            ``partition_id``, by default the first partition (1 in ``iggy-2023``, 0 in ``iggy``); ``kind`` and ``value`` of
            the strategy, by default offset 0; ``count``, by default 10; ``auto_commit``, by default false.
        stream_id, topic_id : Identifier, int or str
            The topic, from the path of the request.
        format : {"iggy-auto", "iggy-2023", "iggy"}, default "iggy-auto"
            The format of the fields; ``iggy-auto`` means ``iggy`` if there is a ``consumer_id``.

        Raises
        ------
        DecodeError
            If the text is not such an object (``bad_text``), or a number does not fit its field (``out_of_range``).
        """
        check_format(format, read=True)
        names = ("id", "consumer_id", "partition_id", "kind", "value", "count", "auto_commit")
        fields = transport.fields_of(transport.load(text), "the request", names, format)
        is_auto_iggy = format == "iggy-auto" and "consumer_id" in fields
        detected: Format = "iggy" if format == "iggy" or is_auto_iggy else "iggy-2023"
        if set(fields) & set(_CONSUMER_FIELD.values()) - {_CONSUMER_FIELD[detected]}:
            transport.refuse(f"in this format the consumer is the field {_CONSUMER_FIELD[detected]}", format)
        consumer = Consumer.new(_read_identifier(fields, _CONSUMER_FIELD[detected]))
        partition = fields.get("partition_id", _FIRST_PARTITION[detected])
        if partition is not None:
            partition = fields.number("partition_id", 32, _FIRST_PARTITION[detected])
        kinds = {name: kind for kind in _STRATEGIES for name in (kind, kind[0])}
        kind = kinds[fields.one_of("kind", kinds) if "kind" in fields else "offset"]
        strategy = PollingStrategy(kind, fields.digits("value", 64, 0))
        auto_commit = fields.get("auto_commit", False)
        if not isinstance(auto_commit, bool):
            transport.refuse("the field auto_commit of the request is not a boolean", format)
        count = fields.number("count", 32, 10)
        return cls(consumer, stream_id, topic_id, partition, strategy, count, auto_commit=auto_commit)

    def to_bytes(self, format: Format = "iggy-2023") -> bytes:
        """Return the body of the request, without the protocol frame.

        Raises
        ------
        EncodeError
            If a stream, topic, consumer or partition is 0 in ``iggy-2023``, where numbers start at 1 (``out_of_range``).
        """
        check_format(format)
        self._check(format)
        partition = (self.partition_id or 0).to_bytes(4, "little")
        if format == "iggy":
            partition = bytes((self.partition_id is not None,)) + partition
        topic = self.consumer.to_bytes() + self.stream_id.to_bytes() + self.topic_id.to_bytes() + partition
        return topic + self.strategy.to_bytes() + self.count.to_bytes(4, "little") + bytes((self.auto_commit,))

    def to_json(self, format: Format = "iggy-2023") -> str:
        """Return the fields of the request as JSON; the HTTP interface expects them in the query of a GET request.

        Stream and topic are part of the path. Omit null fields from the query.

        Raises
        ------
        EncodeError
            If a stream, topic, consumer or partition is 0 in ``iggy-2023`` (``out_of_range``).
        ConversionError
            If the consumer is a group, or its name would be read as a number (``field_not_carried``).

        Examples
        --------
        >>> from urllib.parse import urlencode
        >>> import json
        >>> from letterhead.iggy import PollMessages
        >>> request = PollMessages(1, "orders", "placed", 0)
        >>> urlencode(json.loads(request.to_json("iggy")) | {"auto_commit": "false"})
        'consumer_id=1&partition_id=0&kind=offset&value=0&count=10&auto_commit=false'
        """
        check_format(format)
        self._check(format)
        identifier = self.consumer.id.value
        if self.consumer.kind != "consumer":
            message = "a consumer group is not carried: the HTTP interface reads for single consumers"
            raise ConversionError(message, format=format, code="field_not_carried")
        if isinstance(identifier, str) and transport.read_digits(identifier, 32) is not None:
            message = "the name of the consumer is not carried: it would be read as a number"
            raise ConversionError(message, format=format, code="field_not_carried")
        tree = {
            _CONSUMER_FIELD[format]: str(identifier),
            "partition_id": self.partition_id,
            "kind": self.strategy.kind,
            "value": str(self.strategy.value),
            "count": self.count,
            "auto_commit": self.auto_commit,
        }
        return transport.dump(tree)

    def _check(self, format: Format) -> None:
        if format == "iggy-2023":
            self.consumer.id._check_2023("consumer", "iggy-2023")
            self.stream_id._check_2023("stream", "iggy-2023")
            self.topic_id._check_2023("topic", "iggy-2023")
            if self.partition_id == 0:
                message = (
                    "partition 0 does not exist before 0.8: pass 1 for the first, or None to let the server choose"
                )
                raise EncodeError(message, format="iggy-2023", code="out_of_range")


def _read_flag(cursor: Cursor, field: str) -> bool:
    code = cursor.number(1, field)
    if code > 1:
        cursor.refuse("bad_attributes", f"{field} {code} is neither 0 nor 1", back=1)
    return code == 1


def _read_identifier(fields: transport.Fields, name: str) -> Identifier:
    identifier = fields.get(name, "1")
    if not isinstance(identifier, str):
        if name == "id":
            transport.refuse(f"the field {name} of {fields.owner} is not text", fields.format)
        return Identifier(fields.number(name, 32))
    number = transport.read_digits(identifier, 32)
    try:
        return Identifier(identifier if number is None else number)
    except EncodeError as error:
        transport.refuse(f"the field {name} of {fields.owner}: {error.message}", fields.format)
