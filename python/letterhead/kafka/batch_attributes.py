"""Constants of record batches: bits of their attributes, codecs, and types of control records."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["CODECS", "CODEC_BITS", "CONTROL_BIT", "TRANSACTIONAL_BIT", "ControlType", "codec_name", "control_type"]

CODEC_BITS = 0x07
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names of the codecs, by their numbers."""


def codec_name(code: int) -> str:
    """Return the name of the codec with a number."""
    return CODECS[code] if code < len(CODECS) else f"unknown ({code})"


class ControlType(IntEnum):
    """Type of a control record: the end of a transaction, or an event in Kafka's metadata log."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_type(key: bytes | None) -> int | None:
    """Return the type of a control record, which follows a version in its key; None if the key is too short."""
    return int.from_bytes(key[2:4], "big") if key is not None and len(key) >= 4 else None
