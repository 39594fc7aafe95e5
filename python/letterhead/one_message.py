"""Operations on one message: decode, encode, select, convert, validate, inspect; and on batches of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from letterhead._names import check_name
from letterhead._parse_options import MessageOptions
from letterhead._read_once import ReadOnce
from letterhead.errors import DecodeError, ErrorDetail, as_error
from letterhead.fields import Columns, NativeKey, normalise
from letterhead.headers import GivenHeaders, HeaderKey, Headers, pairs_of
from letterhead.limits import Limits
from letterhead.message import Data, Message, bytes_of, fields_of
from letterhead.results import Converted, Inspection, Label, Loss, Losses, OnLoss, Types, to_native_types
from letterhead.types import HeadersFormat, MessageFormat
from letterhead.values import value_from_message

if TYPE_CHECKING:
    from letterhead._native import MessageReader

__all__ = ["batch", "convert", "decode", "encode", "inspect", "messages", "select", "validate"]


class WriteKeywords(TypedDict, total=False):
    """Keyword arguments of functions that write a message, except ``on_loss``; :func:`encode` documents them."""

    types: Types | None
    nulls: Literal["skip", "raise"]
    canonical: bool


class ConvertKeywords(MessageOptions, WriteKeywords, total=False):
    """Keyword arguments of :func:`convert`, except ``on_loss``."""


@overload
def decode(data: Data, format: HeadersFormat = "kafka", **options: Unpack[MessageOptions]) -> Headers: ...
@overload
def decode(data: Data, format: MessageFormat, **options: Unpack[MessageOptions]) -> Message: ...
@overload
def decode(data: Data, format: str, **options: Unpack[MessageOptions]) -> Headers | Message: ...
def decode(
    data: Data,
    format: str = "kafka",
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Headers | Message:
    """Decode one message.

    Parameters
    ----------
    data : bytes-like
        The message.
    format : str, default "kafka"
        Name of a headers format or a message format.
    lenient : bool, default False
        Accept everything that Kafka's Java deserializers accept, even if data is lost.
    strict_types : bool, default False
        Reject unnamed type codes, if the format allows them, and values whose type is not exactly the requested type.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

    Returns
    -------
    Headers or Message
        Headers for a headers format, otherwise a message with the fields of the format.

    Raises
    ------
    DecodeError
        If the bytes are not a message in this format.
    ValueError
        If the format is unknown.

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
    letterhead.errors.DecodeError: kafka: key length -1 is negative (header 0, byte 1)
    """
    decoded = (_loaded or _native()).decode(
        data if type(data) is bytes else bytes_of(data), format, lenient, strict_types, limits
    )
    return Message(**decoded) if type(decoded) is dict else decoded


def messages(
    data: Data, format: str, *, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Iterator[Message]:
    """Read the messages of a batch one by one, with a small read-ahead.

    Parameters
    ----------
    data : bytes-like
        The batch.
    format : str
        Name of a batch format.
    lenient : bool, default False
        Ignore a truncated message at the end, as brokers return in a fetch.
    strict_types, limits
        As in :func:`letterhead.decode`.

    Yields
    ------
    Message
        The messages, with the fields of the format. Compressed sets are expanded.

    Raises
    ------
    DecodeError
        If a message is invalid, after the messages before it.
    ValueError
        If the format is unknown, or is not a batch format.

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
    messages = _messages_of(_native().messages(bytes_of(data), format, (lenient, strict_types, limits)))
    return ReadOnce(messages, "the iterator of messages")


def batch(
    messages: Iterable[Message | Mapping[str, Any]],
    format: str = "record-batch",
    *,
    codec: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none",
    on_loss: Literal["raise", "drop"] = "raise",
    types: Types | None = None,
    nulls: Literal["skip", "raise"] = "skip",
) -> bytes:
    """Write messages as one batch, which :func:`messages` reads back.

    Parameters
    ----------
    messages : iterable of Message or mapping
        The messages, with the fields of the format. Offsets must increase: a message without one gets the offset after the
        previous message, the first gets 0. A null timestamp is written as -1. In ``record-batch`` the timestamp type,
        the producer, ``transactional`` and ``control`` belong to the batch, so all messages must agree on them, and
        sequences are counted from the first message's. In a compressed set of ``kip82-messages*`` all messages
        must have the same magic and timestamp type.
    format : {"record-batch", "kip82-messages", "kip82-messages-int", "kip82-messages-wrapper"}, default "record-batch"
        Name of the format. Other batch formats cannot be written.
    codec : {"none", "gzip", "snappy", "lz4", "zstd"}, default "none"
        How the messages are compressed. ``kip82-messages*`` have no zstd; one compressed message contains them all, and
        has the offset of the last one.
    on_loss : {"raise", "drop"}, default "raise"
        What to do if the format cannot carry something: raise; or write the nearest value, or leave it out.
    types, nulls
        As in :func:`letterhead.encode`.

    Returns
    -------
    bytes
        A batch with its checksum, as a log segment stores it. For ``record-batch`` a batch of message format 2, for
        ``kip82-messages*`` the messages one after another, or the compressed message that contains them.

    Raises
    ------
    EncodeError
        If a message cannot be written; ``row`` of the error is its index. In ``record-batch`` the first and last
        offset must differ by less than 2^31.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    ValueError
        If there are no messages, or the format or the codec cannot be written.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.batch([{"offset": 7, "value": b"v", "headers": {"tenant": b"acme"}}], codec="lz4")
    >>> [(message.offset, message.headers["tenant"]) for message in lh.messages(data, "record-batch")]
    [(7, b'acme')]
    """
    check_name("on_loss", on_loss, ("raise", "drop"))
    native = _native()
    row = _format(native, format)
    if row["is_"] != "batch":
        raise ValueError(f"{format} is not a batch format but a {row['is_']} format: write it with encode")
    field_types = dict(row["fields"])
    if not isinstance(messages, Iterable):
        raise TypeError(f"messages must be an iterable of messages, not {type(messages).__name__}")
    fields = [fields_of(message, format, field_types) for message in messages]
    written: bytes = native.batch(fields, format, codec, (on_loss, to_native_types(types), nulls, False))
    return written


@overload
def convert(
    data: Data,
    format: str,
    target: HeadersFormat,
    *,
    on_loss: Literal["raise", "drop"] = "raise",
    **options: Unpack[ConvertKeywords],
) -> bytes: ...
@overload
def convert(
    data: Data,
    format: str,
    target: str,
    *,
    on_loss: Literal["raise", "drop"] = "raise",
    **options: Unpack[ConvertKeywords],
) -> bytes | None: ...
@overload
def convert(
    data: Data, format: str, target: str, *, on_loss: Literal["report"], **options: Unpack[ConvertKeywords]
) -> Converted: ...
def convert(
    data: Data,
    format: str,
    target: str,
    *,
    on_loss: OnLoss = "raise",
    types: Types | None = None,
    nulls: Literal["skip", "raise"] = "skip",
    canonical: bool = False,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> bytes | Converted | None:
    """Convert one message from one format to another.

    A typed number is written in the target's byte order, with the target's code for its type. Fields are matched by
    meaning; a field that the source format does not have is written as the target's null. What the target cannot carry
    is a loss.

    Parameters
    ----------
    data : bytes-like
        The message.
    format, target : str
        Names of the formats to read and to write, each a headers format or a message format.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with data that the format cannot hold: raise; drop it, or write the nearest value; or do the same and
        report the losses.
    types, nulls, canonical
        As in :func:`letterhead.encode`.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.

    Returns
    -------
    bytes, None or Converted
        The message; ``None`` for a message that the target writes as null. With ``on_loss="report"`` a
        ``Converted(data, losses)``.

    Raises
    ------
    DecodeError
        If the bytes are not a message in their format.
    EncodeError
        If the target cannot write the message at all.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    ValueError
        If a name is unknown, or ``types`` does not apply to the target.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = lh.encode([("tenant", "acme"), ("retry", "3")], "kafka")
    >>> there = lh.convert(data, "kafka", "iggy", types={"tenant": "string", "retry": "int32:text"})
    >>> lh.decode(there, "iggy")
    Headers([('tenant', String('acme')), ('retry', Int32(3))])
    >>> back = lh.convert(there, "iggy", "kafka", types="text", on_loss="report")
    >>> back.data == data, back.losses.types
    (True, {'tenant': 'string', 'retry': 'int32:text'})
    """
    converted: bytes | None
    read, write = (lenient, strict_types, limits), (on_loss, to_native_types(types), nulls, canonical)
    converted, losses, value_types = _native().convert(bytes_of(data), format, target, read, write)
    if on_loss != "report":
        return converted
    return Converted(converted, Losses((Loss(*loss) for loss in losses), _types_by_key(value_types)))


@overload
def encode(
    headers: GivenHeaders | None,
    format: HeadersFormat = "kafka",
    *,
    on_loss: Literal["raise", "drop"] = "raise",
    **options: Unpack[WriteKeywords],
) -> bytes: ...
@overload
def encode(
    headers: GivenHeaders | Message | Mapping[str, Any] | None,
    format: str,
    *,
    on_loss: Literal["raise", "drop"] = "raise",
    **options: Unpack[WriteKeywords],
) -> bytes | None: ...
def encode(
    headers: GivenHeaders | Message | Mapping[str, Any] | None,
    format: str = "kafka",
    *,
    types: Types | None = None,
    on_loss: Literal["raise", "drop"] = "raise",
    nulls: Literal["skip", "raise"] = "skip",
    canonical: bool = False,
) -> bytes | None:
    """Encode one message.

    Parameters
    ----------
    headers : Headers, iterable of (key, value), mapping, Message or None
        For a headers format the headers; ``None`` means no headers. For a message format a
        :class:`~letterhead.Message`, or a mapping of its fields.
    format : str, default "kafka"
        Name of a headers format or a message format.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        For a format without types: how to write typed values, big-endian, little-endian or as text. For a format with
        types: the types of untyped values, ``"binary"`` or by key, such as ``{"retry": "int32", "at": "int64:le"}``,
        with a list for a repeated key. ``losses.types`` of a conversion converts back.
    on_loss : {"raise", "drop"}, default "raise"
        What to do if the format cannot carry something: raise; or write the nearest value, or leave it out.
    nulls : {"skip", "raise"}, default "skip"
        What to do with a null list of headers: write a message without headers, or raise.
    canonical : bool, default False
        For ``iggy``: sort the headers like Iggy's own map.

    Returns
    -------
    bytes or None
        The message; ``None`` for a message that the format writes as null, as a tombstone in ``streams``.

    Raises
    ------
    EncodeError
        If the message cannot be written.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    ValueError
        If the format is unknown.

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
        # The core also supports "report", which needs a second column.
        check_name("on_loss", on_loss, ("raise", "drop"))
    native = _loaded or _native()
    row = _format(native, format)
    fields: Any
    if row["is_"] == "headers":
        if type(headers) is dict:
            fields = headers  # read by the core without a copy
        elif isinstance(headers, Message):
            raise TypeError(f"{format} is a headers format and takes headers, not a Message")
        else:
            fields = None if headers is None else pairs_of(headers)
    elif row["is_"] == "message":
        fields = fields_of(headers, format, dict(row["fields"]))
    else:
        raise ValueError(f"{format} is a batch: encode its messages one by one")
    written: bytes | None = native.encode(
        fields, format, on_loss, None if types is None else to_native_types(types), nulls, canonical
    )
    return written


def select(
    data: Data,
    headers: Columns,
    format: str = "kafka",
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Read some headers of one message as typed values.

    Parameters
    ----------
    data : bytes-like
        The message.
    headers : mapping of str to type or Field
        Output name to a type, or to a :func:`~letterhead.field`.
    format : str, default "kafka"
        Name of a headers format or a message format.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.

    Returns
    -------
    dict of str to object
        A value for each name: ``None`` if the header is absent or its value is null, and for an array an empty list if the
        header is absent. ``uuid`` is text and ``timestamp_ms`` a number of milliseconds since 1970.

    Raises
    ------
    DecodeError
        If the bytes are not a message in this format, or a value is not of its type.
    ValueError
        If a format or a type is unknown.

    Examples
    --------
    >>> import letterhead as lh
    >>> headers = [("tenant", "acme"), ("retry", lh.Int32(3)), ("route", "a"), ("route", "b")]
    >>> data = lh.encode(headers, "kafka", types="be")
    >>> lh.select(data, {"tenant": "string", "n": lh.field("int32", key="retry"), "route": "array<string>"})
    {'tenant': 'acme', 'n': 3, 'route': ['a', 'b']}
    """
    read = (lenient, strict_types, limits)
    values: dict[str, Any] = _native().select(bytes_of(data), format, normalise(headers), read)
    return values


def validate(
    data: Data,
    format: str = "kafka",
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> list[DecodeError]:
    """List all errors of one message.

    Parameters
    ----------
    data : bytes-like
        The message.
    format : str, default "kafka"
        Name of a headers format or a message format.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.

    Returns
    -------
    list of DecodeError
        The errors, not raised, in the order in which they occur; empty for a valid message.

    Raises
    ------
    ValueError
        If the format is unknown.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.validate(bytes.fromhex("020c74656e616e740861636d65"), "kafka")
    []
    >>> [(error.code, error.byte_offset) for error in lh.validate(b"\\x02\\x02", "kafka")]
    [('count_too_large', 0)]
    """
    return [
        as_error(ErrorDetail(*error), DecodeError, format)
        for error in _native().validate(bytes_of(data), format, (lenient, strict_types, limits))
    ]


def inspect(
    data: Data,
    format: str = "kafka",
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Inspection:
    """Describe every byte of one message, and list all its errors.

    Parameters
    ----------
    data : bytes-like
        The message, valid or not.
    format : str, default "kafka"
        Name of a headers format or a message format.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.

    Returns
    -------
    dict
        ``labels``, a list of :class:`Label` that cover every byte exactly once, and ``errors``, a list of
        :class:`~letterhead.errors.ErrorDetail`.

    Raises
    ------
    ValueError
        If the format is unknown.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = bytes.fromhex("020c74656e616e740861636d65")
    >>> seen = lh.inspect(data, "kafka")
    >>> b"".join(data[label.start : label.end] for label in seen["labels"]) == data, seen["errors"]
    (True, [])
    """
    inspection = _native().inspect(bytes_of(data), format, (lenient, strict_types, limits))
    return {
        "labels": [Label(*label) for label in inspection["labels"]],
        "errors": [ErrorDetail(*error) for error in inspection["errors"]],
    }


_loaded: ModuleType | None = None


def _native() -> ModuleType:
    # Loaded by the first operation: the types of this package also work, and are tested, without it.
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


def _messages_of(reader: MessageReader) -> Iterator[Message]:
    for messages, error in reader:
        for message in messages:
            yield Message(**message)
        if error is not None:
            raise error


def _types_by_key(value_types: list[tuple[NativeKey, str, bool]]) -> dict[HeaderKey, str | list[str]]:
    """Return the types of all values of each key with a value that lost its type."""
    lost = {key for key, _, was_lost in value_types if was_lost}
    by_key: dict[HeaderKey, list[str]] = {}
    for key, type, _ in value_types:
        if key in lost:
            by_key.setdefault(value_from_message(*key) if isinstance(key, tuple) else key, []).append(type)
    return {key: types if len(set(types)) > 1 else types[0] for key, types in by_key.items()}
