"""Encoders that write one value at a time: :class:`RowEncoder`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from letterhead.errors import EncodeError, as_error
from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry_encoder import RegistryEncoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowEncoder", "ValueWriter"]


class ValueWriter(NamedTuple):
    """Writes values of a type; raises :class:`RefusedValue` for an invalid one."""

    type: pa.DataType
    write: Callable[[Any], bytes]


class RowEncoder(RegistryEncoder):
    """Encodes values by a schema of a registry, one value at a time.

    A subclass reads the schemas of its type.
    """

    _format: ClassVar[str]

    @abstractmethod
    def _open(self, schema: RegisteredSchema) -> ValueWriter:
        """Return a writer of values; raise ValueError if the schema is unusable."""

    def _encode(self, writer: ValueWriter, values: pa.Array, rows: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        from letterhead.schemas.exact_types import exact_array

        written = []
        exact = exact_array(values, writer.type, rows, self._format, is_partial=True)
        for index, value in enumerate(exact.to_pylist()):
            try:
                written.append(writer.write(value))
            except RefusedValue as refused:
                raise as_error(refused.detail, EncodeError, self._format, row=rows[index].as_py()) from None
        return pa.array(written, pa.binary())
