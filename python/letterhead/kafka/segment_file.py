"""Batches in a segment file of Kafka: :class:`KafkaSegmentFile`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from letterhead._formatting import count_noun
from letterhead.errors import without_message_number
from letterhead.kafka.indexes import position_before
from letterhead.kafka.log_directory import LogSegment
from letterhead.kafka.record_sets import BatchHeader, find_batches
from letterhead.offsets.damage import BatchError, DamagedRange
from letterhead.offsets.segment_file import SegmentFile
from letterhead.offsets.stored_batches import StoredBatches

__all__ = ["MAX_OFFSETS", "KafkaSegmentFile"]

_FRAME_LEN = 12
_MAGIC_AT = 16
_MIN_BATCH_LEN = 26
"""Length of a message of magic 0 without key and value, the shortest batch."""

_HEADER_LEN = 61
"""Length of the header of a batch of magic 2; older formats have shorter ones."""

_CRC_AT = 17
_COMPUTED = re.compile(r"the bytes give ([0-9a-f]{8})$")
"""Computed checksum in the message of a checksum error."""

_MIN_RECORD_LEN = 6
"""Length of a record without key, value and headers, excluding its length field."""

_MIN_ZEROS = 16
"""Number of trailing zeros that suggest an incompletely written batch."""

MAX_OFFSETS = (1 << 31) - 1
"""Maximum number of offsets in a segment, whose index stores them as int32."""

MAX_BATCH_BYTES = (1 << 31) - 1
"""Maximum batch size in bytes that fits the size field of a header."""

_BATCH_ERRORS = ("bad_crc", "bad_magic", "wrong_size")
"""Codes of errors of a whole batch; other errors concern one record."""


class KafkaSegmentFile(SegmentFile[LogSegment, BatchHeader]):
    """A segment of Kafka."""

    format = "record-batch"
    header_len = _HEADER_LEN
    min_batch_len = _MIN_BATCH_LEN
    candidate_len = _MAGIC_AT
    max_offsets = MAX_OFFSETS

    def __init__(self, segment: LogSegment, message_bytes: int = MAX_BATCH_BYTES) -> None:
        super().__init__(segment, message_bytes)

    @property
    def partition_in_errors(self) -> Mapping[str, Any]:
        """Topic and partition, as errors show them."""
        return self.segment.partition_values

    def headers(self, data: Any, origin: int, beyond: int, *, first: bool = False) -> tuple[list[BatchHeader], int]:
        """Read the headers of complete batches, or of the first one; also return the byte after them."""
        return find_batches(data, 0, 1 if first else None, beyond, origin=origin)

    def indexed_position(self, offset: int) -> int:
        """Return the position of a batch at or before an offset, from the index; 0 without an index entry."""
        return position_before(self.segment, offset)

    def with_known_offsets(self, batch: BatchHeader, after: int) -> BatchHeader:
        """Return a compressed message set that starts at the offset after the previous batch.

        Its header contains only its last offset.
        """
        is_set = batch.magic < 2 and batch.codec and batch.base_offset >= after
        return batch._replace(base_offset=after) if is_set else batch

    def batch_error(self, data: bytes, errors: Sequence[Mapping[str, Any]]) -> BatchError | None:
        """Return the first error that concerns a whole batch, not one record; None if there is none."""
        return next((BatchError(error["code"], without_message_number(error["message"])) for error in errors
                     if error["code"] in _BATCH_ERRORS), None)  # fmt: skip

    def with_length(self, data: bytes) -> bytes:
        """Return a batch whose header contains its actual length."""
        return data[:8] + (len(data) - _FRAME_LEN).to_bytes(4, "big") + data[_FRAME_LEN:]

    def candidates_in(self, window: Any, left: int) -> Any:
        """Return the positions in a byte array where length and magic of a batch are plausible."""
        import numpy as np

        candidates = np.flatnonzero(window[_MAGIC_AT:] <= 2)
        lengths: Any = sum(window[candidates + 8 + byte].astype(np.int64) << 8 * (3 - byte) for byte in range(4))
        lengths += _FRAME_LEN
        return candidates[(lengths >= _MIN_BATCH_LEN) & (lengths <= left - candidates)]

    def ends_in_zeros(self, position: int) -> bool:
        """Return whether the damaged batch at a position may be an incomplete write to a preallocated file."""
        batch = self.batch_at(position)
        end = self.size if batch is None else batch.end
        if self.zeros_from() > max(end - _MIN_ZEROS, position):
            return False
        return batch is None or _records_end_in_zeros(batch, self.peek(position, batch.end))

    def with_checksum(self, error: BatchError, damage: DamagedRange) -> StoredBatches[BatchHeader] | None:
        """Return a damaged batch with its checksum corrected; None if there is other damage."""
        batch = self.batch_at(damage.position)
        computed = _COMPUTED.search(error.reason)
        if error.code != "bad_crc" or computed is None or batch is None or batch.end != damage.end or batch.magic < 2:
            return None
        data = bytearray(self.peek(batch.position, batch.end))
        data[_CRC_AT : _CRC_AT + 4] = bytes.fromhex(computed[1])
        return StoredBatches(bytes(data), [batch], batch.position)

    def error_at(self, position: int, min_offset: int) -> BatchError:
        """Return the reason why no batch begins at a position."""
        left = self.size - position
        if position == 0 and left <= _MAGIC_AT:
            reason = f"not a log segment: its {count_noun(left, 'byte')} end before the magic byte of a batch"
            return BatchError("truncated", reason, is_not_a_segment=True)
        if position == 0 and not self._begins_as_a_batch():
            reason = "not a log segment: it does not begin with a batch of magic 0, 1 or 2"
            return BatchError("bad_magic", reason, is_not_a_segment=True)
        if self.zeros_from() <= position:
            return BatchError("truncated", f"{count_noun(left, 'byte')} of zeros are left")
        begin = self.peek(position, position + _MAGIC_AT + 1)
        if len(begin) > _MAGIC_AT and begin[_MAGIC_AT] > 2:
            return BatchError("bad_magic", "no batch of magic 0, 1 or 2 begins here")
        offset = int.from_bytes(begin[:8], "big", signed=True)
        if len(begin) >= 8 and not min_offset <= offset <= self.max_offset():
            reason = (
                f"it begins at offset {offset}, but the least possible is {min_offset}, the largest {self.max_offset()}"
            )
            return BatchError("not_in_order", reason)
        if left < _FRAME_LEN:
            return BatchError("truncated", f"{count_noun(left, 'byte')} of a batch are left")
        length = int.from_bytes(begin[8:_FRAME_LEN], "big", signed=True)
        if length > left - _FRAME_LEN:
            return BatchError(
                "truncated", f"the batch takes {count_noun(length + _FRAME_LEN, 'byte')} and {left} are left"
            )
        return BatchError(
            "wrong_size", f"a batch of {count_noun(length + _FRAME_LEN, 'byte')} is too short for its header"
        )

    def _begins_as_a_batch(self) -> bool:
        """Return whether the file begins with a batch, even an incomplete one."""
        begin = self.peek(0, _MAGIC_AT + 1)
        if not any(begin):
            return True  # preallocated and never written
        offset = int.from_bytes(begin[:8], "big", signed=True)
        length = int.from_bytes(begin[8:_FRAME_LEN], "big", signed=True)
        return (
            0 <= offset - self.segment.base_offset <= MAX_OFFSETS
            and length >= _MIN_BATCH_LEN - _FRAME_LEN
            and begin[_MAGIC_AT] <= 2
        )


def _records_end_in_zeros(batch: BatchHeader, data: bytes) -> bool:
    """Return whether the lengths of a batch's records place the start of a record in the trailing zeros."""
    if batch.magic < 2 or batch.codec:
        return True
    at, zeros = _HEADER_LEN, len(data.rstrip(b"\0"))
    for _ in range(batch.records):
        if at >= zeros:
            return True
        length, at = _varint(data, at)
        if length < _MIN_RECORD_LEN or at + length > len(data):
            return False
        at += length
    # Zeros begin inside the batch header.
    return zeros <= _HEADER_LEN


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag varint and the position after it; -1 if the data is truncated."""
    number = 0
    for shift in range(0, 35, 7):
        if at == len(data):
            break
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at
    return -1, at
