"""Decode and encode values with schemas from a schema registry.

:class:`AvroDecoder`, :class:`JsonDecoder` and :class:`ProtobufDecoder` decode values, for
:func:`letterhead.arrow.decode_by_schema` and, in a stream, :func:`decode_values`;
:class:`AvroEncoder`, :class:`JsonEncoder` and :class:`ProtobufEncoder` encode them, for :func:`encode_values`.

:class:`Registry` fetches schemas by the API of Confluent's Schema Registry.

Apicurio has the same API under ``/apis/ccompat/v7``.
"""

from letterhead.schemas.avro import AvroDecoder
from letterhead.schemas.avro_encoder import AvroEncoder
from letterhead.schemas.encoded_streams import encode_values
from letterhead.schemas.json_decoder import JsonDecoder
from letterhead.schemas.json_encoder import JsonEncoder
from letterhead.schemas.protobuf_decoder import ProtobufDecoder
from letterhead.schemas.protobuf_encoder import ProtobufEncoder
from letterhead.schemas.registered import RegisteredSchema, SchemaVersion
from letterhead.schemas.registry import Registry
from letterhead.schemas.streams import decode_values

__all__ = [
    "AvroDecoder", "AvroEncoder", "JsonDecoder", "JsonEncoder", "ProtobufDecoder", "ProtobufEncoder", "RegisteredSchema", "Registry",
    "SchemaVersion", "decode_values", "encode_values",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
