"""Map Kafka records to Iggy messages by version 1 of the mapping proposed for Iggy's Kafka gateway.

========================  =====================================================================
record                    message
========================  =====================================================================
value                     payload; null or empty: one zero byte, and ``kafka.value`` names which
key                       header ``kafka.key``, raw
header ``name``           header ``kafka.h.name``, raw
timestamp, milliseconds   origin timestamp in microseconds; 0: ``kafka.ts``, an int64
                          header ``kafka.v``, one byte, 1
========================  =====================================================================

Iggy supports neither headers without a value nor values of more than 255 bytes. A record with such headers is
stored as a whole in the payload, and is marked by a header ``kafka.envelope`` with the byte 1. The payload is::

    ┌──────────┬─────────────┬─────┬───────────────┬───────┬───────────┬─────────────────────────────────────────────┐
    │ u8 flags │ u32 key_len │ key │ u32 value_len │ value │ u32 count │ u32 name_len, name, u8 1, u32 value_len, …  │
    └──────────┴─────────────┴─────┴───────────────┴───────┴───────────┴─────────────────────────────────────────────┘

Little-endian. Bit 0 of the flags is set if there is a key, bit 1 if there is a value; the u8 of a header is 0 for a null
value.

``kafka-gateway`` is the proposal. Iggy's readers keep one header of each name, sorted by name, so this mapping rejects
repeated names and loses the order of headers. ``kafka-gateway-lossless`` stores a record as a whole unless its header
names are in ascending order, and writes a null timestamp as ``kafka.ts`` -1. The gateway can read these messages, too.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, NoReturn

from letterhead.errors import ConversionError, DecodeError
from letterhead.iggy.formats import MAX_FIELD_LEN, MAX_HEADER_BYTES

__all__ = ["MAPPINGS", "IggyMessage", "KafkaRecord", "to_message", "to_record"]

MAPPINGS = ("kafka-gateway", "kafka-gateway-lossless")

_RAW, _STRING, _INT64 = 1, 2, 7
_VERSION = b"\1"
_PREFIX = "kafka.h."
_VALUES_BY_MARKER = {"null": None, "empty": b""}
_KNOWN = ("kafka.v", "kafka.key", "kafka.value", "kafka.ts", "kafka.envelope")


class KafkaRecord(NamedTuple):
    """Kafka record, with its timestamp in milliseconds."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp: int | None


class IggyMessage(NamedTuple):
    """Iggy message, with its time in microseconds."""

    payload: bytes
    headers: bytes
    origin_timestamp: int


def to_message(record: KafkaRecord, *, lossless: bool) -> IggyMessage:
    """Return the message for a record.

    Raises
    ------
    ConversionError
        If the mapping would lose a repeated header, or the timestamp is negative.
    """
    names = [name.encode() for name, _ in record.headers]
    if not lossless and len(set(names)) < len(names):
        raise ConversionError(
            "the name of a header occurs again, and readers of Iggy keep one of each name: use "
            "mapping='kafka-gateway-lossless'",
            format="iggy", code="repeated_key",
        )  # fmt: skip
    fields: list[tuple[str, int, bytes]] = [("kafka.v", _RAW, _VERSION)]
    origin = 1000 * (record.timestamp or 0)
    if origin < 0 or origin >= 1 << 63:
        raise ConversionError("the timestamp is out of range", format="iggy", code="out_of_range")
    if record.timestamp == 0 or (record.timestamp is None and lossless):
        stored = -1 if record.timestamp is None else 0
        fields.append(("kafka.ts", _INT64, stored.to_bytes(8, "little", signed=True)))
    kept_in_headers = len(fields)
    if record.key is not None:
        fields.append(("kafka.key", _RAW, record.key))
    fields += [(_PREFIX + name, _RAW, b"" if value is None else value) for name, value in record.headers]
    fits = all(1 <= len(value) <= MAX_FIELD_LEN and len(name.encode()) <= MAX_FIELD_LEN for name, _, value in fields)
    is_sorted = all(before < after for before, after in pairwise(names))
    payload = record.value
    if not payload:
        fields.append(("kafka.value", _STRING, b"null" if payload is None else b"empty"))
        payload = b"\0"
    block = _encode(fields)
    if not fits or len(block) > MAX_HEADER_BYTES or (lossless and not is_sorted):
        payload = _record_as_payload(record, names)
        block = _encode([*fields[:kept_in_headers], ("kafka.envelope", _RAW, b"\1")])
    return IggyMessage(payload, block, origin)


def to_record(headers: Sequence[tuple[bytes, bytes]], payload: bytes, origin: int, stored: int) -> KafkaRecord:
    """Return the record for a message, given its headers as stored bytes and its times in microseconds.

    A message without ``kafka.v`` was not written by the mapping. It becomes a record with the message's headers and without
    a key.

    Raises
    ------
    DecodeError
        If a key is not UTF-8, or the message has another version of the mapping, or is invalid in version 1.
    """
    try:
        named = [(key.decode(), value) for key, value in headers]
    except UnicodeDecodeError:
        raise DecodeError("the key of a header is not UTF-8", format="iggy", code="key_not_utf8") from None
    fields = dict(named)
    time = (origin or stored) // 1000
    version = fields.get("kafka.v")
    if version is None:
        return KafkaRecord(None, payload, named, time)
    if version != _VERSION:
        _refuse(f"version {version[0]} of the mapping is unknown")
    for name in fields:
        if name.startswith("kafka.") and not name.startswith(_PREFIX) and name not in _KNOWN:
            _refuse("the message has an unknown header that begins with kafka.")
    timestamp = _timestamp(fields.get("kafka.ts"), time)
    if "kafka.envelope" in fields:
        if fields["kafka.envelope"] != b"\1":
            _refuse("the version of `kafka.envelope` is unknown")
        return _record_in_payload(payload, timestamp)
    value: bytes | None = payload
    if "kafka.value" in fields:
        marker = fields["kafka.value"].decode(errors="replace")
        if marker not in _VALUES_BY_MARKER:
            _refuse("kafka.value is neither null nor empty")
        value = _VALUES_BY_MARKER[marker]
    kept = [(name.removeprefix(_PREFIX), value) for name, value in named if name.startswith(_PREFIX)]
    return KafkaRecord(fields.get("kafka.key"), value, kept, timestamp)


def _timestamp(marker: bytes | None, time: int) -> int | None:
    if marker is None:
        return time
    if marker == b"epoch":  # marker of an earlier draft
        return 0
    if len(marker) != 8:
        _refuse("kafka.ts is not an int64")
    timestamp = int.from_bytes(marker, "little", signed=True)
    return None if timestamp == -1 else timestamp


def _encode(fields: Sequence[tuple[str, int, bytes]]) -> bytes:
    """Encode headers in the order of Iggy's map."""
    parts: list[bytes] = []
    for name, kind, value in sorted((name.encode(), kind, value) for name, kind, value in fields):
        parts += (struct.pack("<BI", _STRING, len(name)), name, struct.pack("<BI", kind, len(value)), value)
    return b"".join(parts)


def _record_as_payload(record: KafkaRecord, names: Sequence[bytes]) -> bytes:
    flags = (record.key is not None) | (record.value is not None) << 1
    parts = [bytes((flags,)), *_with_length(record.key), *_with_length(record.value), struct.pack("<I", len(names))]
    for name, (_, value) in zip(names, record.headers, strict=True):
        parts += (*_with_length(name), bytes((value is not None,)), *_with_length(value))
    return b"".join(parts)


def _with_length(data: bytes | None) -> tuple[bytes, bytes]:
    return struct.pack("<I", len(data or b"")), data or b""


def _record_in_payload(payload: bytes, timestamp: int | None) -> KafkaRecord:
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        if size > len(payload) - at:
            _refuse("the stored record is truncated")
        at += size
        return payload[at - size : at]

    def number() -> int:
        return int.from_bytes(take(4), "little")

    flags = take(1)[0]
    key, value = take(number()), take(number())
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(number()):
        name, present = take(number()), take(1)[0]
        data = take(number())
        try:
            headers.append((name.decode(), data if present else None))
        except UnicodeDecodeError:
            _refuse("the name of a header in the stored record is not UTF-8")
    if at < len(payload):
        _refuse("bytes follow the last header of the stored record")
    return KafkaRecord(key if flags & 1 else None, value if flags & 2 else None, headers, timestamp)


def _refuse(message: str) -> NoReturn:
    raise DecodeError(f"kafka-gateway: {message}", format="iggy", code="bad_attributes")
