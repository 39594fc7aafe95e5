"""Make lists of headers from columns: :class:`Pack`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from letterhead import _native
from letterhead._arrow_types import is_binary, is_list, is_text, read_table, to_pyarrow
from letterhead._names import check_name, first_repeated, unknown_name
from letterhead._table_batches import type_without_encodings, without_encodings
from letterhead.fields import Columns, ColumnSpec, column_spec, columns_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADERS", "Pack"]

HEADERS = "headers"
"""Type name of columns with lists of headers."""


@dataclass(frozen=True)
class Pack:
    """Make a list of headers from the columns of each row; see :func:`letterhead.arrow.pack`.

    ``columns`` maps the columns, in order, to a type or field, or to ``None`` for the column's own type.
    """

    format: str
    columns: Columns | Sequence[str] | None = None
    nulls: Literal["keep", "skip"] = "skip"
    truncate: bool = False

    def __post_init__(self) -> None:
        check_name("nulls value", self.nulls, ("keep", "skip"))
        if not isinstance(self.truncate, bool):
            raise TypeError(f"truncate must be bool, not {type(self.truncate).__name__}")
        columns: Any = self.columns
        if columns is not None:
            is_sequence = isinstance(columns, Sequence) and not isinstance(columns, str)
            columns = dict.fromkeys(columns) if is_sequence else dict(columns_of(columns, "columns"))
            if not columns:
                raise ValueError("no columns were asked for")
            object.__setattr__(self, "columns", columns)
            known = {name: type for name, type in columns.items() if type is not None}
            specs = [_column_spec(name, type) for name, type in known.items()]
            self._core(specs)

    def __call__(self, table: Any) -> Any:
        """Return the lists: an array for a batch or struct array, chunks for a table, else a stream of the core."""
        import pyarrow as pa

        if isinstance(table, pa.StructArray):
            table = pa.RecordBatch.from_struct_array(table)
        if isinstance(table, pa.RecordBatch):
            specs = self._specs(table.schema)
            return to_pyarrow(self._core(specs).apply(self._structs(table)))
        if isinstance(table, pa.ChunkedArray):
            table = pa.Table.from_struct_array(table)
        if isinstance(table, pa.Table):
            return to_pyarrow(self._packed(table.to_reader()))
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(f"columns are packed from a table, a record batch or structs, not {type(table).__name__}")
        return self._packed(read_table(table))

    def chunks(self, stream: Any) -> Iterator[Any]:
        """Yield the lists of each chunk of a stream of structs."""
        for chunk in self._packed(read_table(stream)):
            yield to_pyarrow(chunk)

    def _packed(self, reader: pa.RecordBatchReader) -> _native.Stream:
        """Return the lists of batches, which are read lazily."""
        import pyarrow as pa

        specs = self._specs(reader.schema)
        batches = (pa.RecordBatch.from_struct_array(self._structs(batch)) for batch in reader)
        structs = pa.RecordBatchReader.from_batches(self._structs_schema(reader.schema), batches)
        packed = self._core(specs).apply(structs)
        if not isinstance(packed, _native.Stream):
            raise TypeError("a stream is packed into a stream")
        return packed

    def _names(self, schema: pa.Schema) -> Mapping[str, Any]:
        """Return the columns to pack, with the requested types."""
        return self.columns or dict.fromkeys(schema.names)  # type: ignore[return-value]

    def _specs(self, schema: pa.Schema) -> list[ColumnSpec | None]:
        """Return how the columns of a schema are packed; raise for a missing column."""
        types = dict(zip(schema.names, schema.types, strict=True))
        if len(types) < len(schema.names):
            raise ValueError(f"two columns have the name {first_repeated(schema.names)!r}: rename one of them")
        specs = []
        for name, type in self._names(schema).items():
            if name not in types:
                raise unknown_name("column", name, types)
            specs.append(_column_spec(name, _type_of(name, _decoded_type(types[name])) if type is None else type))
        return specs

    def _structs(self, batch: pa.RecordBatch) -> pa.StructArray:
        """Return the columns to pack, in order, as structs whose fields are numbered."""
        import pyarrow as pa

        arrays = [_decoded(batch.column(name)) for name in self._names(batch.schema)]
        return pa.StructArray.from_arrays(arrays, [str(number) for number in range(len(arrays))])

    def _structs_schema(self, schema: pa.Schema) -> pa.Schema:
        import pyarrow as pa

        types = [_decoded_type(schema.field(name).type) for name in self._names(schema)]
        return pa.schema([(str(number), type) for number, type in enumerate(types)])

    def _core(self, specs: list[ColumnSpec | None]) -> _native.Pack:
        """Return the core's pack of structs; raise for a column that the format does not support."""
        return _native.Pack(self.format, specs, self.nulls == "skip", self.truncate)


def _column_spec(name: str, type: object) -> ColumnSpec | None:
    """Return how a column is packed; None for lists of headers."""
    return None if isinstance(type, str) and type == HEADERS else column_spec(name, type)


def _decoded(array: pa.Array) -> pa.Array:
    """Return a column in its :func:`_decoded_type`."""
    type = _decoded_type(array.type)
    if type != array.type:
        array.validate(full=True)  # an index outside of the dictionary would read invalid memory
    return without_encodings(array, type)


def _decoded_type(type: pa.DataType) -> pa.DataType:
    """Return a type without dictionary or run encoding; the core reads views directly."""
    import pyarrow as pa

    is_encoded = pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type)
    return type_without_encodings(type) if is_encoded else type


def _type_of(name: str, type: pa.DataType) -> str:
    """Return the header type for the values of a column."""
    import pyarrow as pa

    if is_list(type):
        if pa.types.is_struct(type.value_type):
            return HEADERS
        return f"array<{_type_of(name, type.value_type)}>"
    if pa.types.is_timestamp(type):
        return "timestamp_ms"
    if pa.types.is_decimal(type):
        return "int128" if type.scale == 0 else f"decimal({type.precision},{type.scale}):text"
    if pa.types.is_date32(type):
        return "date:text"
    names = {
        "bool": pa.types.is_boolean, "string": is_text, "binary": is_binary, "float32": pa.types.is_float32,
        "float64": pa.types.is_float64,
    }  # fmt: skip
    if pa.types.is_integer(type):
        return str(type)
    for known, is_of in names.items():
        if is_of(type):
            return known
    raise TypeError(f"column {name!r}: {type} has no type of headers: cast it, or pass columns= with a type")
