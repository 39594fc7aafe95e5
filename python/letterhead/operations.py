"""Operations on one message: decode, encode, select, convert, validate, inspect; and on batches of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Literal, overload

from letterhead.errors import DecodeError, Fault, check_name
from letterhead.fields import Columns, PlainKey, normalise
from letterhead.headers import GivenHeaders, HeaderKey, Headers, pairs_of
from letterhead.limits import Limits
from letterhead.message import Data, Message, bytes_of, fields_of
from letterhead.results import Converted, Inspection, Label, Loss, Losses, Types, plain_types
from letterhead.types import BlockName, MessageName
from letterhead.values import of_message

__all__ = ["batch", "convert", "decode", "encode", "inspect", "messages", "select", "validate"]


@overload
def decode(
    data: Data, format: BlockName, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Headers: ...
@overload
def decode(
    data: Data, format: MessageName, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Message: ...
@overload
def decode(
    data: Data, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Headers | Message: ...
def decode(
    data: Data, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Headers | Message:
    """Read one message.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or a message format.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Headers or Message
        Headers if the format is a block, a message with the format's fields otherwise.

    Raises
    ------
    DecodeError
        If the bytes are not what the format says.
    ValueError
        If there is no such format.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.decode(bytes.fromhex("020c74656e616e740861636d65"), "kafka")
    Headers([('tenant', b'acme')])
    >>> lh.decode(bytes.fromhex("00" "0000019b76daa800" "3432"), "streams-timestamped")
    Message(headers=Headers([]), timestamp=1767225600000, payload=b'42')
    >>> lh.decode(b"\\x02\\x01\\x00", "kafka")
    Traceback (most recent call last):
        ...
    letterhead.errors.DecodeError: kafka: header 0: key length -1 is negative (byte 1)
    """
    read = (_loaded or _native()).decode(
        data if type(data) is bytes else bytes_of(data), format, lenient, strict_types, limits
    )
    return Message(**read) if type(read) is dict else read


def messages(
    data: Data, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Iterator[Message]:
    """Read the messages of a batch, one by one.

    Parameters
    ----------
    data : bytes-like
        The bytes of a batch.
    format : str
        Name of the format.
    lenient : bool, default False
        Let a message go that is cut off at the end, as in what a fetch gives.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Yields
    ------
    Message
        The messages, with the format's fields. Compressed sets are expanded.

    Raises
    ------
    DecodeError
        If a message is not what the format says, after the messages before it.
    ValueError
        If there is no such format, or it is of one message.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = b"".join(
    ...     lh.encode(lh.Message(offset=n, key=b"k", value=b"v", headers={"n": lh.Int8(n)}), "kip82-message")
    ...     for n in range(2)
    ... )
    >>> [(message.offset, message.headers["n"]) for message in lh.messages(data, "kip82-messages")]
    [(0, Int8(0)), (1, Int8(1))]
    """
    read, error = _native().messages(bytes_of(data), format, lenient=lenient, strict_types=strict_types, limits=limits)
    return _each(read, error)


def batch(
    messages: Iterable[Message | Mapping[str, Any]],
    format: str = "record-batch",
    *,
    codec: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none",
    on_loss: Literal["raise", "drop"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
) -> bytes:
    """Write messages as one batch, which :func:`messages` reads back.

    Parameters
    ----------
    messages : iterable of Message or mapping
        The messages, with the format's fields. Offsets must increase: a message without one gets the offset after the
        previous message, the first gets 0. A null timestamp is written as -1. In ``record-batch`` the timestamp type,
        the producer, ``transactional`` and ``control`` belong to the batch, so all messages must agree on them, and
        sequences follow the first one's. In a compressed set of ``kip82-messages*`` all messages must have the same
        magic and timestamp type.
    format : {"record-batch", "kip82-messages", "kip82-messages-int", "kip82-messages-wrapper"}, default "record-batch"
        Name of the format. Other batch formats cannot be written.
    codec : {"none", "gzip", "snappy", "lz4", "zstd"}, default "none"
        How the messages are compressed. ``kip82-messages*`` have no zstd; one compressed message holds them all, and
        carries the offset of the last one.
    on_loss : {"raise", "drop"}, default "raise"
        What to do with a header that the format cannot carry: refuse the batch, or write what is nearest.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        How a typed value is written, or which type an untyped one gets, as in :func:`encode`.
    null_headers : {"empty", "raise"}, default "empty"
        Whether headers that are null are written as none or refused.

    Returns
    -------
    bytes
        A batch as a log segment holds it, with its checksum: for ``record-batch`` one of message format 2, for
        ``kip82-messages*`` the messages one after another, or the compressed message that holds them.

    Raises
    ------
    EncodeError
        If a message cannot be written; the error names its place as the row. In ``record-batch`` offsets must stay
        within 31 bits of the first.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    ValueError
        If there is no message, or the format or the codec cannot be written.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.batch([{"offset": 7, "value": b"v", "headers": {"tenant": b"acme"}}], codec="lz4")
    >>> [(message.offset, message.headers["tenant"]) for message in lh.messages(data, "record-batch")]
    [(7, b'acme')]
    >>> data = lh.batch([{"offset": 7, "value": b"v"}, {"value": b"w"}], "kip82-messages", codec="gzip")
    >>> [(message.offset, message.value) for message in lh.messages(data, "kip82-messages")]
    [(7, b'v'), (8, b'w')]
    """
    check_name("on_loss", on_loss, ("raise", "drop"))
    native = _native()
    row = _format(native, format)
    if row["is_"] != "batch":
        raise ValueError(f"{format} is no batch but {_A[row['is_']]}: write it with encode")
    field_types = dict(row["fields"])
    if not isinstance(messages, Iterable):
        raise TypeError(f"messages must be an iterable of messages, not {type(messages).__name__}")
    given = [fields_of(message, format, field_types) for message in messages]
    written: bytes = native.batch(
        given, format, codec, on_loss=on_loss, types=plain_types(types), null_headers=null_headers
    )
    return written


_A = {"block": "a block", "message": "a message format"}


@overload
def convert(
    data: Data,
    format: str,
    *,
    target: BlockName,
    on_loss: Literal["raise", "drop"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> bytes: ...
@overload
def convert(
    data: Data,
    format: str,
    *,
    target: str,
    on_loss: Literal["raise", "drop"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> bytes | None: ...
@overload
def convert(
    data: Data,
    format: str,
    *,
    target: str,
    on_loss: Literal["report"],
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Converted: ...
def convert(
    data: Data,
    format: str,
    *,
    target: str,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> bytes | Converted | None:
    """Turn one message of a format into the bytes of another.

    Headers are carried by value: a typed number is written in the target's byte order, under the target's code for its
    type. Fields find their counterparts by what they mean; one that the source format does not have is written as the
    target's own none. What the target cannot carry is a loss.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or a message format.
    format : str
        Name of their format.
    target : str
        Name of the format to write.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the target cannot carry: refuse it; write what is nearest or leave it out; or do that and
        say so.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        For a target without types: how a typed value is written, big-endian, little-endian, or spelt out. For one with
        types: what values without a type are, ``"binary"`` or by key, ``{"retry": "int32", "at": "int64:le"}``, with a
        list where a key stands more than once. ``losses.types`` of a conversion can be handed back here.
    null_headers : {"empty", "raise"}, default "empty"
        Whether headers that are null are written as none or refused.
    canonical : bool, default False
        For ``iggy``: sort the headers as Iggy's own map does.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the source format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    bytes, None or Converted
        The message; ``None`` where the target says so by having no bytes at all. With ``on_loss="report"`` a
        ``Converted(data, losses)``.

    Raises
    ------
    DecodeError
        If the bytes are not what their format says.
    EncodeError
        If the target cannot write them at all.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    ValueError
        If a name is misspelt, or ``types`` makes no sense for the target.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.encode([("tenant", "acme"), ("retry", "3")], "kafka")
    >>> there = lh.convert(data, "kafka", target="iggy", types={"tenant": "string", "retry": "int32:text"})
    >>> lh.decode(there, "iggy")
    Headers([('tenant', String('acme')), ('retry', Int32(3))])
    >>> back = lh.convert(there, "iggy", target="kafka", types="text", on_loss="report")
    >>> back.data == data, back.losses.types
    (True, {'tenant': 'string', 'retry': 'int32:text'})
    """
    made: bytes | None
    made, losses, backs = _native().convert(
        bytes_of(data),
        format,
        target,
        on_loss=on_loss,
        types=plain_types(types),
        null_headers=null_headers,
        canonical=canonical,
        lenient=lenient,
        strict_types=strict_types,
        limits=limits,
    )
    if on_loss != "report":
        return made
    return Converted(made, Losses((Loss(*loss) for loss in losses), _types(backs)))


@overload
def encode(
    headers: GivenHeaders | None,
    format: BlockName,
    *,
    types: Types | None = None,
    on_loss: Literal["raise", "drop"] = "raise",
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
) -> bytes: ...
@overload
def encode(
    headers: GivenHeaders | Message | Mapping[str, Any] | None,
    format: str,
    *,
    types: Types | None = None,
    on_loss: Literal["raise", "drop"] = "raise",
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
) -> bytes | None: ...
def encode(
    headers: GivenHeaders | Message | Mapping[str, Any] | None,
    format: str,
    *,
    types: Types | None = None,
    on_loss: Literal["raise", "drop"] = "raise",
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
) -> bytes | None:
    """Write one message.

    Parameters
    ----------
    headers : Headers, iterable of (key, value), mapping, Message or None
        Headers for a block, where ``None`` is a message without any; a :class:`~letterhead.Message`, or a mapping
        of its fields, for a message format.
    format : str
        Name of the format.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        How a typed value is written where the format has no types: big-endian, little-endian, or spelt out. Where it
        has types: what values without one are, as in :func:`convert`.
    on_loss : {"raise", "drop"}, default "raise"
        What to do with what the format cannot carry: refuse it, or write what is nearest or leave it out.
    null_headers : {"empty", "raise"}, default "empty"
        Whether headers that are null are written as none or refused.
    canonical : bool, default False
        For ``iggy``: sort the headers as Iggy's own map does.

    Returns
    -------
    bytes or None
        The message; ``None`` where the format says so by having no bytes at all, as a tombstone in ``streams``.

    Raises
    ------
    EncodeError
        If the headers cannot be written.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    ValueError
        If there is no such format.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.encode([("tenant", "acme")], "kafka").hex()
    '020c74656e616e740861636d65'
    >>> lh.encode(lh.Headers().add("retry", lh.Int32(3)), "kafka", types="text").hex()
    '020a72657472790233'
    >>> lh.encode(lh.Message(headers=[], timestamp=1767225600000, payload=b"42"), "streams-timestamped").hex()
    '000000019b76daa8003432'
    """
    if on_loss != "raise":
        # The native module also knows "report", which needs a second column to report in.
        check_name("on_loss", on_loss, ("raise", "drop"))
    native = _loaded or _native()
    is_ = _format(native, format)["is_"]
    given: Any
    if is_ == "block":
        if type(headers) is dict:
            given = headers  # the core reads it as it is
        elif isinstance(headers, Message):
            raise TypeError(f"{format} is a block and takes headers, not a Message")
        else:
            given = None if headers is None else pairs_of(headers)
    elif is_ == "message":
        given = fields_of(headers, format, dict(_format(native, format)["fields"]))
    else:
        raise ValueError(f"{format} is a batch: its messages are written one by one")
    written: bytes | None = native.encode(
        given, format, on_loss, None if types is None else plain_types(types), null_headers, canonical
    )
    return written


def select(
    data: Data,
    format: str,
    columns: Columns,
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Read some headers of one message as typed values.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or a message format.
    format : str
        Name of the format.
    columns : mapping of str to str or Field
        Output name to a type, or to what :func:`~letterhead.field` or :func:`~letterhead.All` gave.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    dict of str to object
        A value for each name: ``None`` where there is no such header or its value is null. ``uuid`` is text and
        ``timestamp_ms`` a number of milliseconds since 1970.

    Raises
    ------
    DecodeError
        If the bytes are not what the format says, or a value not what its type says.
    ValueError
        If a format or a type is misspelt.

    Examples
    --------
    >>> import letterhead as lh
    >>> headers = [("tenant", "acme"), ("retry", lh.Int32(3)), ("route", "a"), ("route", "b")]
    >>> data = lh.encode(headers, "kafka", types="be")
    >>> lh.select(data, "kafka", {"tenant": "string", "n": lh.field("int32", key="retry"), "route": "array<string>"})
    {'tenant': 'acme', 'n': 3, 'route': ['a', 'b']}
    """
    values: dict[str, Any] = _native().select(
        bytes_of(data), format, normalise(columns), lenient=lenient, strict_types=strict_types, limits=limits
    )
    return values


def validate(
    data: Data, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> list[DecodeError]:
    """Find everything that is wrong with one message.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or a message format.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    list of DecodeError
        The errors, not raised, in the order in which they were met; empty if the message is whole.

    Raises
    ------
    ValueError
        If there is no such format.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.validate(bytes.fromhex("020c74656e616e740861636d65"), "kafka")
    []
    >>> [(error.code, error.byte_offset) for error in lh.validate(b"\\x02\\x02", "kafka")]
    [('count_too_large', 0)]
    """
    return [
        Fault(*fault).as_error(DecodeError, format)
        for fault in _native().validate(
            bytes_of(data), format, lenient=lenient, strict_types=strict_types, limits=limits
        )
    ]


def inspect(
    data: Data, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Inspection:
    """Describe every byte of one message, and list all its errors.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or a message format, good or bad.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    dict
        ``labels``, a list of :class:`Label` in which every byte is exactly once, and ``faults``, a list of
        :class:`~letterhead.errors.Fault`.

    Raises
    ------
    ValueError
        If there is no such format.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = bytes.fromhex("020c74656e616e740861636d65")
    >>> seen = lh.inspect(data, "kafka")
    >>> b"".join(data[label.start : label.end] for label in seen["labels"]) == data, seen["faults"]
    (True, [])
    """
    seen = _native().inspect(bytes_of(data), format, lenient=lenient, strict_types=strict_types, limits=limits)
    return {
        "labels": [Label(*label) for label in seen["labels"]],
        "faults": [Fault(*fault) for fault in seen["faults"]],
    }


_loaded: ModuleType | None = None


def _native() -> ModuleType:
    # Loaded by the first verb: the types of this package work, and are tested, without it.
    global _loaded
    from letterhead import _native

    _loaded = _native
    return _native


_formats: dict[str, dict[str, Any]] | None = None


def _format(native: ModuleType, name: str) -> dict[str, Any]:
    global _formats
    if _formats is None:
        _formats = {row["name"]: row for row in native.formats()}
    if type(name) is not str or name not in _formats:
        check_name("format", name, _formats)
    return _formats[name]


def _each(read: list[dict[str, Any]], error: Exception | None) -> Iterator[Message]:
    for message in read:
        yield Message(**message)
    if error is not None:
        raise error


def _types(backs: list[tuple[PlainKey, str, bool]]) -> dict[HeaderKey, str | list[str]]:
    """Give, for every key of which some value lost its type, the types of all its values."""
    lost = {key for key, _, was_lost in backs if was_lost}
    types: dict[HeaderKey, list[str]] = {}
    for key, type, _ in backs:
        if key in lost:
            types.setdefault(_key(key), []).append(type)
    return {key: each if len(set(each)) > 1 else each[0] for key, each in types.items()}


def _key(key: PlainKey) -> HeaderKey:
    return of_message(*key) if isinstance(key, tuple) else key
