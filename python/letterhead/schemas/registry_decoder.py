"""What decoders by the schemas of a registry share: :class:`RegistryDecoder`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from letterhead.errors import ErrorDetail
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry

__all__ = ["RegistryDecoder"]


class RegistryDecoder:
    """Finds the schemas of values, and that of the columns: one of the caller, or the latest one of a subject."""

    _schema_type: ClassVar[str]

    def __init__(self, registry: Registry, schema: RegisteredSchema | None, subject: str | None) -> None:
        if schema is not None and subject is not None:
            raise ValueError("schema and subject exclude each other")
        self._registry, self._target, self._subject = registry, schema, subject
        self._written: dict[int | str, RegisteredSchema] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._registry!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # All executors of a job read by the schema that the driver has fetched.
        return type(self)._unpickle, (self._registry, self._target, self._subject)

    @classmethod
    def _unpickle(cls, registry: Registry, schema: RegisteredSchema | None, subject: str | None) -> Self:
        decoder = cls(registry, subject=None if schema is not None else subject)  # type: ignore[call-arg]
        decoder._target, decoder._subject = schema, subject
        return decoder

    def _find_target(self) -> RegisteredSchema | None:
        """Return the schema of the columns; None if they are those of the values."""
        if self._target is None and self._subject is not None:
            found = self._registry.latest(self._subject)
            if found is None:
                raise ValueError(f"the registry has no subject {self._subject!r}: pass subject= or schema=")
            self._target = self._check_type(found)
        return self._target

    def _find(self, schema_id: int | str) -> RegisteredSchema | ErrorDetail | None:
        """Return the schema of an id; None if it is unknown, an error if it cannot be used."""
        if schema_id not in self._written:
            try:
                found = self._registry.schema(schema_id)
                if found is None:
                    return None
                self._written[schema_id] = self._check_type(found)
            except ValueError as error:
                return ErrorDetail("wrong_type", str(error))
        return self._written[schema_id]

    def _check_type(self, schema: RegisteredSchema) -> RegisteredSchema:
        if schema.type != self._schema_type:
            raise ValueError(f"its type is {schema.type}, not {self._schema_type}")
        return schema
