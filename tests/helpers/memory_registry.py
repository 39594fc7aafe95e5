"""A registry without a server, and values as Confluent's serializers write them."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa

import letterhead as lh
from letterhead.schemas import RegisteredSchema, Registry, SchemaVersion


class MemoryRegistry(Registry):
    """Has the schemas of a dict, by id, GUID or subject."""

    def __init__(
        self, schemas: dict[int | str, Any], references: dict[int | str, dict[str, Any]] | None = None
    ) -> None:
        super().__init__("http://memory")
        self.schemas = schemas
        self.references = references or {}
        self.requests: list[int | str] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryRegistry, (self.schemas, self.references)

    def schema(self, schema_id: int | str) -> RegisteredSchema | None:
        self.requests.append(schema_id)
        found = self.schemas.get(schema_id)
        if found is None or isinstance(found, RegisteredSchema):
            return found
        references = {
            name: RegisteredSchema("AVRO", json.dumps(text), {})
            for name, text in self.references.get(schema_id, {}).items()
        }
        return RegisteredSchema("AVRO", json.dumps(found), references)

    def latest(self, subject: str) -> RegisteredSchema | None:
        return self.schema(subject)

    def find_version(
        self, subject: str, schema: str | None = None, *, schema_type: str = "AVRO", register: bool = False
    ) -> SchemaVersion | None:
        found = self.latest(subject)
        if found is None or schema not in (None, found.text):
            return None
        ids = [key for key, each in self.schemas.items() if each == self.schemas[subject] and key != subject]
        return SchemaVersion(
            found,
            next(key for key in ids if isinstance(key, int)),
            next((key for key in ids if isinstance(key, str)), None),
        )


def avro(schema: Any, record: Any) -> bytes:
    import fastavro  # not everywhere where the registry is needed

    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def prefixed(number: int, schema: Any, record: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + avro(schema, record)


def headers(*ids: bytes | None) -> pa.Array:
    """Headers with ids, each after a magic byte."""
    return pa.array([lh.encode([] if each is None else [("__value_schema_id", each)], "kafka") for each in ids])
