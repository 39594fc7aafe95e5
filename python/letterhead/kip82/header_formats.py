"""Header formats of the drafts, and the corresponding formats for headers, messages and batches."""

from __future__ import annotations

from typing import Literal, TypeAlias

from letterhead._names import check_name

__all__ = [
    "BATCH_FORMATS",
    "CODECS",
    "HEADERS_FORMATS",
    "MESSAGE_FORMATS",
    "WRAPPER_FORMAT",
    "Codec",
    "HeaderFormat",
    "check_header_format",
]

HeaderFormat: TypeAlias = Literal["typed", "int", "wrapper"]

HEADERS_FORMATS: dict[HeaderFormat, str] = {"typed": "kip82-typed", "int": "kip82-int", "wrapper": "kip82-int"}
"""Headers format of each header format."""

MESSAGE_FORMATS: dict[HeaderFormat, str] = {
    "typed": "kip82-message",
    "int": "kip82-message-int",
    "wrapper": "kip82-message-wrapper",
}
"""Message format of each header format."""

BATCH_FORMATS: dict[HeaderFormat, str] = {
    "typed": "kip82-messages",
    "int": "kip82-messages-int",
    "wrapper": "kip82-messages-wrapper",
}
"""Batch format of each header format: concatenated messages."""

Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4"]

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4")
"""Codecs of a compressed set; the index is the value of the three lowest attribute bits."""

WRAPPER_FORMAT = "kip82-wrapper"
"""Format of a value with its headers, in the header format ``wrapper``."""


def check_header_format(header_format: str) -> None:
    """Raise ``ValueError`` for an unknown header format."""
    check_name("header format", header_format, HEADERS_FORMATS)
