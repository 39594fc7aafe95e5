"""Decode values by the schemas of a registry: :class:`AvroDecoder`, for :func:`letterhead.arrow.decode_by_schema`.

:class:`Registry` fetches schemas by the API of Confluent's Schema Registry.

Apicurio has the same API under ``/apis/ccompat/v7``.
"""

from letterhead.schemas.avro import AvroDecoder
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry

__all__ = ["AvroDecoder", "RegisteredSchema", "Registry"]


def __dir__() -> list[str]:
    return __all__
