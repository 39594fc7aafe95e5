"""Decode values by the schemas of a registry: :class:`AvroDecoder`, for :func:`letterhead.arrow.decode_by_schema` and, in a stream, :func:`decode_values`.

:class:`Registry` fetches schemas by the API of Confluent's Schema Registry.

Apicurio has the same API under ``/apis/ccompat/v7``.
"""

from letterhead.schemas.avro import AvroDecoder
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry
from letterhead.schemas.streams import decode_values

__all__ = ["AvroDecoder", "RegisteredSchema", "Registry", "decode_values"]


def __dir__() -> list[str]:
    return __all__
