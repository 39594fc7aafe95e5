"""Decode values by the schemas of a registry: :class:`Registry` fetches them, by the API of Confluent's Schema Registry.

Apicurio has the same API under ``/apis/ccompat/v7``.
"""

from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry

__all__ = ["RegisteredSchema", "Registry"]
