"""``record-batch``: what Kafka keeps in a log and sends in a fetch, message formats 0, 1 and 2 one behind the other.

::

    batch of magic 2
      0 ┌───────────────────┬──────────────┬──────────────────────────────┬──────────────┬─────────┐
        │ int64 base_offset │ int32 length │ int32 partition_leader_epoch │ int8 magic 2 │ u32 crc │
     21 ├──────────────────┬┴──────────────┴─────────┬────────────────────┴─┬────────────┴────────┬┘
        │ int16 attributes │ int32 last_offset_delta │ int64 base_timestamp │ int64 max_timestamp │
     43 ├──────────────────┴┬────────────────────────┴┬─────────────────────┼─────────────┬───────┘
        │ int64 producer_id │ int16 producer_epoch    │ int32 base_sequence │ int32 count │
     61 ├─────────┬─────────┼ ─ ─                     └─────────────────────┴─────────────┘
        │ record  │ record  │            all of them compressed together if the attributes say so
        └─────────┴─────────┴ ─ ─
    record
        ┌───────────────┬─────────────────┬─────────────────────────┬─────────────────────┬─ ─
        │ varint length │ int8 attributes │ varlong timestamp_delta │ varint offset_delta │
        └───────────────┴─────────────────┴─────────────────────────┴─────────────────────┴─ ─
        ┌─────────────────────────────┬─────┬────────────────────────────┬───────┬─────────────┐
        │ varint key_len, -1 for null │ key │ varint value_len, -1: null │ value │ kafka block │  its count always stands
        └─────────────────────────────┴─────┴────────────────────────────┴───────┴─────────────┘

Big-endian; varints are zig-zag; the length counts what stands behind it. The checksum is CRC-32C, from the attributes to
the end. Batches of magic 0 and 1 are messages as in ``kip82-messages``, compressed sets too, and have no headers field.

::

    attributes   bits 0–2  codec: none, gzip, snappy, lz4, zstd
                 bit 3     the timestamp of every record is max_timestamp, the log's; else base_timestamp + its delta
                 bit 4     transactional
                 bit 5     control: its records are marks of the transaction or of the log, no messages of a user
                 bit 6     base_timestamp is also the time from which on tombstones may go

    offset = base_offset + offset_delta
    sequence = base_sequence + offset_delta, which goes on with 0 after 2 147 483 647

No producer is -1, here null, and so is no sequence.

A batch that cannot be read leaves the next ones readable, unless it hides where they begin: a batch whose checksum does
not hold is one unreadable message. So does a record in its batch. Places inside compressed records mean nothing to who
has the message: their errors are said to be where the records begin.

Differences from the reference implementation (``MemoryRecords`` of Kafka 4.3.1): a batch that is cut off at the end is a
error, which a lenient cursor lets go; key and value lengths below -1 are errors, and so are bits that the varints of a
record cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from letterhead._formatting import count_noun
from tests.reference import codecs
from tests.reference.batches.kip82_messages import FLAGGED_SET, FRAME_LEN, is_cut_off, unreadable, wrapped
from tests.reference.crc32c import crc32c
from tests.reference.cursor import Broken, Cursor, DecodeOptions
from tests.reference.messages.kip82_message import CODEC_BITS, LOG_APPEND_BIT, take_frame
from tests.reference.protocols import Fields, Opened

MAGIC = 2
MAGIC_WITHIN = 4
"""Where the magic stands behind the frame, in every message format."""

TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

_LEGACY_ATTRIBUTES_WITHIN = FRAME_LEN + 5
"""Where the attributes of magic 0 and 1 stand: behind the frame, the checksum and the magic."""


def messages(cursor: Cursor) -> Iterator[Opened]:
    """Return every message up to the cursor's end; one that hides where the next batch begins is the last."""
    while cursor.left and not (cursor.options.lenient and is_cut_off(cursor)):
        cursor.details = []
        start = cursor.at
        try:
            base_offset, batch = take_frame(cursor)
        except Broken as end:
            yield unreadable(cursor, end)
            return
        try:
            magic = _magic(batch)
            if magic != MAGIC:
                yield from _legacy(Cursor(cursor.data, start, batch.end, options=cursor.options))
                continue
            header = _Header(batch, base_offset)
            records = header.records(batch)
        except Broken as end:
            yield unreadable(cursor, end)
        else:
            yield from _records(records, header, cursor.options)


def _magic(batch: Cursor) -> int:
    """Return the version of the message format of a batch."""
    magic = batch.peek(MAGIC_WITHIN)
    if magic is None:
        raise batch.hard("wrong_size", f"a batch of {count_noun(batch.left, 'byte')} has no magic", batch.at)
    if magic not in (0, 1, MAGIC):
        signed = magic - 256 if magic > 127 else magic
        raise batch.hard("bad_magic", f"magic {signed} is unknown: 0, 1 and 2 are known", batch.at + MAGIC_WITHIN)
    return magic


def _legacy(cursor: Cursor) -> Iterator[Opened]:
    """Return the messages of a batch of magic 0 or 1: one, or those of a compressed set."""
    outer_attributes = cursor.data[cursor.at + _LEGACY_ATTRIBUTES_WITHIN]
    for opened in FLAGGED_SET.messages(cursor):
        if opened.broken:
            yield opened
            continue
        has_time = opened.fields["magic"] > 0
        fields: Fields = {
            "offset": opened.fields["offset"],
            "timestamp": opened.fields["timestamp"],
            # Inside a compressed set it is that of the set.
            "timestamp_type": int(bool(outer_attributes & LOG_APPEND_BIT)) if has_time else None,
            "key": opened.fields["key"],
            "value": opened.fields["value"],
            "producer_id": None,
            "producer_epoch": None,
            "sequence": None,
            "transactional": False,
            "control": False,
        }
        yield opened._replace(fields=fields)


class _Header:
    """What the records of a batch of magic 2 have in common."""

    def __init__(self, batch: Cursor, base_offset: int) -> None:
        batch.take(4, "leader epoch")
        batch.take(1, "magic")
        crc_at = batch.at
        crc = int.from_bytes(batch.take(4, "crc"), "big")
        result = crc32c(batch.data[batch.at : batch.end])
        if crc != result:
            raise batch.hard("bad_crc", f"the checksum is {crc:08x} and the bytes give {result:08x}", crc_at)
        self.attributes_at = batch.at
        attributes = batch.big("attributes", 2)
        self.codec = attributes & CODEC_BITS
        self.appended = bool(attributes & LOG_APPEND_BIT)
        self.transactional = bool(attributes & TRANSACTIONAL_BIT)
        self.control = bool(attributes & CONTROL_BIT)
        self.base_offset = base_offset
        batch.big("last offset delta", 4)
        self.base_timestamp = batch.big("base timestamp", 8)
        self.max_timestamp = batch.big("largest timestamp", 8)
        self.producer_id = batch.big("producer id", 8)
        self.producer_epoch = batch.big("producer epoch", 2)
        self.base_sequence = batch.big("base sequence", 4)
        self.count_at = batch.at
        self.count = batch.big("record count", 4)
        if self.count < 0:
            raise batch.hard("negative_count", f"record count {self.count} is negative", self.count_at)

    def records(self, batch: Cursor) -> Cursor:
        """Return a cursor over the records, out of their codec."""
        is_empty = self.count == 0 and not batch.left
        if self.codec == 0 or is_empty:
            return Cursor(batch.data, batch.at, batch.end)
        if self.codec not in codecs.NAMES:
            raise batch.hard("unknown_codec", f"codec {self.codec} is unknown", self.attributes_at)
        start = batch.at
        try:
            data = batch.options.decompress(self.codec, batch.take_rest())
        except codecs.Undecodable as error:
            raise batch.hard(error.code, error.message, start) from None
        return Cursor(data, place=start)

    def fields(self, timestamp_delta: int, offset_delta: int) -> Fields:
        """Return what a record has from its batch."""
        return {
            "offset": wrapped(self.base_offset + offset_delta),
            "timestamp": self.max_timestamp if self.appended else wrapped(self.base_timestamp + timestamp_delta),
            "timestamp_type": int(self.appended),
            "producer_id": None if self.producer_id == -1 else self.producer_id,
            "producer_epoch": None if self.producer_epoch == -1 else self.producer_epoch,
            "sequence": None if self.base_sequence < 0 else self.base_sequence + offset_delta & 0x7FFFFFFF,
            "transactional": self.transactional,
            "control": self.control,
        }


def _records(records: Cursor, header: _Header, options: DecodeOptions) -> Iterator[Opened]:
    """Return the records of a batch, as many as it announces."""
    for number in range(header.count):
        records.details = []
        if not records.left:
            message = f"the batch announces {count_noun(header.count, 'record')} and has {number}"
            yield unreadable(records, records.hard("count_too_large", message, header.count_at))
            return
        try:
            record = records.split(records.varint_length("record length"), "record")
        except Broken as end:
            yield unreadable(records, end)
            return
        try:
            fields = _take_fields(record, header)
        except Broken as end:
            yield unreadable(records, end)
        else:
            block = Cursor(
                record.data, record.at, record.end, options=options, place=record.place, details=record.details
            )
            yield Opened(fields, block, record.details)
    if records.left:
        records.details = []
        message = f"{count_noun(records.left, 'byte')} left after the last record"
        yield unreadable(records, records.hard("trailing_bytes", message, records.at))


def _take_fields(record: Cursor, header: _Header) -> Fields:
    """Read a record up to its headers."""
    record.take(1, "record attributes")
    fields = header.fields(record.varint("timestamp delta", 64), record.varint("offset delta"))
    for name in ("key", "value"):
        size = record.nullable_varint_length(f"{name} length")
        fields[name] = None if size is None else record.take(size, name)
    if not record.left:
        raise record.hard("truncated", "the record ends before its header count", record.at)
    return fields
