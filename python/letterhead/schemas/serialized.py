"""Options for decoding keys or values by the schemas of a registry: :class:`SerializedValues`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from letterhead.conventions.schema_group import ColumnsDecoder
from letterhead.schemas.avro import AvroDecoder
from letterhead.schemas.json_decoder import JsonDecoder
from letterhead.schemas.protobuf_decoder import ProtobufDecoder
from letterhead.schemas.registry import Registry

__all__ = ["DECODERS", "SerializedValues"]

DECODERS: Mapping[str, Callable[..., ColumnsDecoder]] = {
    "avro": AvroDecoder,
    "json": JsonDecoder,
    "protobuf": ProtobufDecoder,
}
"""Decoders by format name."""


@dataclass(frozen=True)
class SerializedValues:
    """Options for decoding values or keys: a schema, or a subject (by default of the topic) with its latest schema."""

    format: str
    registry: Registry
    subject: str | None = None
    schema: str | None = None
    part: Literal["value", "key"] = "value"

    def __post_init__(self) -> None:
        if self.schema is not None:
            self.decoder(None)

    def decoder(self, topic: str | None) -> ColumnsDecoder:
        """Return the decoder for values of a topic; raise ValueError if the topic determines no subject."""
        subject = None
        if self.schema is None:
            subject = self.subject if topic is None or self.subject is not None else f"{topic}-{self.part}"
            if subject is None:
                raise ValueError(f"the subject of the schema is not known: name it by {self.part}_subject=")
        return DECODERS[self.format](self.registry, self.schema, subject=subject)
