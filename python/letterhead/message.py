"""The verbs for one message: bytes in, headers out, and back."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from letterhead.columns import Columns, normalise
from letterhead.envelope import Envelope
from letterhead.errors import DecodeError, EncodeError, Fault, check_name, unknown_name
from letterhead.headers import GivenValue, Header, Headers
from letterhead.values import Value

__all__ = ["Inspection", "Label", "decode", "encode", "inspect", "select", "validate"]

Data: TypeAlias = bytes | bytearray | memoryview
GivenHeaders: TypeAlias = Headers | Mapping[str, GivenValue] | Iterable[tuple[str, GivenValue]]


class Label(NamedTuple):
    """What some bytes of a message are.

    Attributes
    ----------
    start, end : int
        The bytes, from the first to the one after the last.
    field : str
        What they are.
    header : int or None
        The header they belong to, counted from 0.
    text : str
        What they say.
    """

    start: int
    end: int
    field: str
    header: int | None
    text: str


class Inspection(TypedDict):
    """What :func:`inspect` gives: every byte in exactly one label, and everything that is wrong."""

    labels: list[Label]
    faults: list[Fault]


def decode(data: Data, format: str, *, lenient: bool = False) -> Headers | Envelope:
    """Read one message.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or an envelope.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.

    Returns
    -------
    Headers or Envelope
        Headers if the format is a block, an envelope with the format's fields otherwise.

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
    Envelope(headers=Headers([]), timestamp=1767225600000, payload=b'42')
    >>> lh.decode(b"\\x02\\x01\\x00", "kafka")
    Traceback (most recent call last):
        ...
    letterhead.errors.DecodeError: kafka: header 0: key length -1 is negative (byte 1)
    """
    read = _native().decode(_bytes(data), format, lenient=lenient)
    if not isinstance(read, dict):
        return _headers(read)
    # The headers of an envelope can be null: some formats have a way to say that a message has no such field.
    headers = None if read["headers"] is None else _headers(read["headers"])
    return Envelope(**{**read, "headers": headers})


def encode(
    headers: GivenHeaders | Envelope | Mapping[str, Any] | None,
    format: str,
    *,
    kinds: Literal["be", "le", "text"] | None = None,
    on_loss: Literal["raise", "drop"] = "raise",
    null_headers: Literal["empty", "raise"] = "empty",
) -> bytes | None:
    """Write one message.

    Parameters
    ----------
    headers : Headers, iterable of (key, value), mapping, Envelope or None
        Headers for a block, where ``None`` is a message without any; an :class:`~letterhead.Envelope`, or a mapping
        of its fields, for an envelope.
    format : str
        Name of the format.
    kinds : {"be", "le", "text"}, optional
        How a typed value is written where the format has no kinds: big-endian, little-endian, or spelt out.
    on_loss : {"raise", "drop"}, default "raise"
        What to do with what the format cannot carry: refuse, or leave it out.
    null_headers : {"empty", "raise"}, default "empty"
        Whether headers that are null are written as none or refused.

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
    >>> lh.encode(lh.Headers().add("retry", lh.Int32(3)), "kafka", kinds="text").hex()
    '020a72657472790233'
    >>> lh.encode(lh.Envelope(headers=[], timestamp=1767225600000, payload=b"42"), "streams-timestamped").hex()
    '000000019b76daa8003432'
    """
    # The native module also knows "report", which needs a second column to report in.
    check_name("on_loss", on_loss, ("raise", "drop"))
    native = _native()
    row = _format(native, format)
    if row["is_"] == "block":
        if isinstance(headers, Envelope):
            raise TypeError(f"{format} is a block and takes headers, not an Envelope")
        given: Any = None if headers is None else _triples(headers, format)
    else:
        given = _fields(headers, format, dict(row["fields"]))
    written: bytes | None = native.encode(given, format, kinds=kinds, on_loss=on_loss, null_headers=null_headers)
    return written


def select(data: Data, format: str, columns: Columns, *, lenient: bool = False) -> dict[str, Any]:
    """Read some headers of one message as typed values.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or an envelope.
    format : str
        Name of the format.
    columns : mapping of str to str or Field
        Output name to a type, or to what :func:`~letterhead.field` or :func:`~letterhead.All` gave.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.

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
    >>> data = lh.encode(headers, "kafka", kinds="be")
    >>> lh.select(data, "kafka", {"tenant": "string", "n": lh.field("int32", key="retry"), "route": lh.All("string")})
    {'tenant': 'acme', 'n': 3, 'route': ['a', 'b']}
    """
    values: dict[str, Any] = _native().select(_bytes(data), format, normalise(columns), lenient=lenient)
    return values


def validate(data: Data, format: str, *, lenient: bool = False) -> list[DecodeError]:
    """Find everything that is wrong with one message.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or an envelope.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.

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
    >>> [(error.code, error.offset) for error in lh.validate(b"\\x02\\x02", "kafka")]
    [('count_too_large', 0)]
    """
    return [
        Fault(*fault).as_error(DecodeError, format)
        for fault in _native().validate(_bytes(data), format, lenient=lenient)
    ]


def inspect(data: Data, format: str, *, lenient: bool = False) -> Inspection:
    """Say what every byte of one message is.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or an envelope, good or bad.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.

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
    seen = _native().inspect(_bytes(data), format, lenient=lenient)
    return {
        "labels": [Label(*label) for label in seen["labels"]],
        "faults": [Fault(*fault) for fault in seen["faults"]],
    }


@functools.cache
def _native() -> ModuleType:
    # Loaded by the first verb: the types of this package work, and are tested, without it.
    from letterhead import _native

    return _native


@functools.cache
def _formats(native: ModuleType) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in native.formats()}


def _format(native: ModuleType, name: str) -> dict[str, Any]:
    formats = _formats(native)
    check_name("format", name, formats)
    return formats[name]


def _headers(triples: list[tuple[str, str | None, bytes | None]]) -> Headers:
    return Headers._with([
        Header(key, value if kind is None or value is None else Value.from_bits(kind, value))
        for key, kind, value in triples
    ])  # fmt: skip


def _triples(headers: GivenHeaders, format: str) -> list[tuple[str, str | None, bytes | None]]:
    triples: list[tuple[str, str | None, bytes | None]] = []
    for index, (key, value) in enumerate(headers if isinstance(headers, Headers) else Headers(headers)):
        if not key.isascii() and not _is_utf8(key):
            message = "a key with half of a surrogate pair has no UTF-8 form"
            raise EncodeError(message, format=format, code="key_not_utf8", header=index)
        triples.append((key, value.kind, value.bits) if isinstance(value, Value) else (key, None, value))
    return triples


def _fields(given: object, format: str, types: dict[str, str]) -> dict[str, Any]:
    if isinstance(given, Envelope):
        fields = given._asdict()
    elif isinstance(given, Mapping) and not isinstance(given, Headers):
        fields = dict(given)
    else:
        takes = "is an envelope and takes an Envelope or a mapping of its fields"
        raise TypeError(f"{format} {takes}, not {type(given).__name__}")
    for name in fields:
        if name not in types:
            raise unknown_name(f"{format} field", name, types)
    return {name: _field(name, fields.get(name), of, format) for name, of in types.items()}


def _field(name: str, value: Any, of: str, format: str) -> Any:
    if value is None:
        return None
    if name == "headers":
        return _triples(value, format)
    if of == "binary":
        return _bytes(value, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    if not -(1 << 63) <= value < 1 << 63:
        raise EncodeError(f"{name} does not fit {of}", format=format, code="out_of_range")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes(data: object, name: str = "data") -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"{name} must be bytes, not {type(data).__name__}")
