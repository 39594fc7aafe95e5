"""Split messages into batches in the form that an Apache Iggy server stores: :func:`batches_of`.

::

    batch   ┌─────────────────────┬──────────────────────┬────────────┬──────────────┬───────────┬───────────┐
            │ u64, u64, u64       │ u64 origin timestamp │ u64 length │ u64 checksum │ u32 count │ 204 zeros │
            └─────────────────────┴──────────────────────┴────────────┴──────────────┴───────────┴───────────┘
    frame   ┌──────────────┬─────────┬──────────────────┬─────────────────────┬───────────┬───────────┬───────┐
            │ u64 checksum │ u128 id │ u32 offset delta │ u32 timestamp delta │ u32 bytes │ u32 bytes │ u64 0 │
            │              │         │                  │                     │ headers   │ payload   │       │
            ├──────────────┴─────────┴──┬───────────────┴─────────────────────┴───────────┴───────────┴───────┘
            │ payload, headers          │
            └───────────────────────────┘

Little-endian. Checksums are XXH3. The checksum of a frame covers the rest of the frame; the checksum of a batch covers
its header and the checksums of its frames. The first three fields of a batch are partition, base offset and base
timestamp: 0 in a request, set by the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from letterhead._native import xxh3_64
from letterhead.iggy.batch_header import BATCH_HEADER_LEN, CHECKSUM_LEN, FRAME, IggyBatchHeader

__all__ = ["BATCH_BYTES", "BATCH_ROWS", "MAX_DELTA", "EncodedBatch", "MessageFields", "batch_of", "batches_of"]

BATCH_ROWS = 1000
BATCH_BYTES = 1 << 20

MAX_DELTA = (1 << 32) - 1
"""Maximum time span of a batch in microseconds."""


class MessageFields(NamedTuple):
    """Fields of a message to be appended."""

    id: bytes  # 16 bytes, most significant first
    origin: int  # microseconds since 1970
    headers: bytes
    payload: bytes


class EncodedBatch(NamedTuple):
    """Bytes of a batch, and the checksums of its messages."""

    data: bytes
    checksums: list[int]


def batches_of(messages: Sequence[MessageFields]) -> Iterator[EncodedBatch]:
    """Yield batches of consecutive messages, each with at most about 1 MiB and a time span of at most 71 minutes."""
    part: list[MessageFields] = []
    size = low = high = 0
    for message in messages:
        earliest, latest = min(low, message.origin), max(high, message.origin)
        if part and (len(part) == BATCH_ROWS or size >= BATCH_BYTES or latest - earliest > MAX_DELTA):
            yield batch_of(part, low)
            part, size = [], 0
        low, high = (earliest, latest) if part else (message.origin, message.origin)
        part.append(message)
        size += len(message.headers) + len(message.payload)
    if part:
        yield batch_of(part, low)


def batch_of(
    messages: Sequence[MessageFields], origin: int, *, partition: int = 0, offset: int = 0, timestamp: int = 0
) -> EncodedBatch:
    """Return a batch of messages; ``origin`` is the time of the earliest message in microseconds."""
    frames: list[bytes] = []
    checksums = []
    for index, (id, time, headers, payload) in enumerate(messages):
        fields = (id[::-1], index, time - origin, len(headers), len(payload), 0)
        frame = FRAME.pack(0, *fields)[CHECKSUM_LEN:] + payload + headers
        checksum = xxh3_64(frame)
        checksums.append(checksum)
        frames += (checksum.to_bytes(CHECKSUM_LEN, "little"), frame)
    length = BATCH_HEADER_LEN + sum(len(frame) for frame in frames)
    header = IggyBatchHeader(partition, offset, timestamp, origin, length, 0, len(messages))
    header = header._replace(checksum=xxh3_64(header.checked() + b"".join(frames[::2])))
    return EncodedBatch(header.pack() + b"".join(frames), checksums)
