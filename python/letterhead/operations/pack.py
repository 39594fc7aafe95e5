"""The operation that makes lists of headers from columns: :class:`Pack`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from letterhead import _native
from letterhead._arrow_types import is_binary, is_list, to_pyarrow
from letterhead._names import check_name, unknown_name
from letterhead.fields import Columns, Field, PlainKey, columns_of, field_and_default, plain_key

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADERS", "Pack"]

HEADERS = "headers"
"""The type of a column of lists of headers."""

PackedColumn: TypeAlias = tuple[PlainKey | None, str | None, bool, str | None]


@dataclass(frozen=True)
class Pack:
    """Make a list of headers from the columns of each row; see :func:`letterhead.arrow.pack`.

    ``columns`` has the columns in order, with a type or field, or ``None`` for the type of the column itself.
    """

    format: str
    columns: Columns | Sequence[str] | None = None
    nulls: Literal["keep", "skip"] = "skip"

    def __post_init__(self) -> None:
        check_name("nulls value", self.nulls, ("keep", "skip"))
        columns: Any = self.columns
        if columns is not None:
            is_sequence = isinstance(columns, Sequence) and not isinstance(columns, str)
            columns = dict.fromkeys(columns) if is_sequence else dict(columns_of(columns))
            if not columns:
                raise ValueError("no columns were asked for")
            object.__setattr__(self, "columns", columns)
            known = {name: type for name, type in columns.items() if type is not None}
            specs = [_column_spec(name, type) for name, type in known.items()]
            _native.schema("pack", self.format, pack=(specs, self.nulls == "skip"))

    def run(self, table: Any) -> Any:
        """Return the lists: an array for a record batch or struct array, and chunks for a table or stream."""
        import pyarrow as pa

        if isinstance(table, pa.RecordBatch):
            return self._pack_batch(table)
        if isinstance(table, pa.StructArray):
            return self._pack_batch(pa.RecordBatch.from_struct_array(table))
        if isinstance(table, pa.ChunkedArray):
            table = pa.Table.from_struct_array(table)
        elif not isinstance(table, pa.Table):
            if not hasattr(table, "__arrow_c_stream__"):
                raise TypeError(
                    f"columns are packed from a table, a record batch or structs, not {type(table).__name__}"
                )
            table = pa.table(table)
        chunks = [self._pack_batch(batch) for batch in table.to_batches()]
        return pa.chunked_array(chunks, type=pa.field(_native.schema("pack", self.format, pack=([], True))).type)

    def chunks(self, stream: Any) -> Iterator[Any]:
        """Yield the lists of each chunk of a stream of structs."""
        import pyarrow as pa

        for chunk in pa.chunked_array(stream).chunks:
            yield self._pack_batch(pa.RecordBatch.from_struct_array(chunk))

    def _pack_batch(self, batch: pa.RecordBatch) -> Any:
        import pyarrow as pa

        columns: Mapping[str, Any] = self.columns or dict.fromkeys(batch.schema.names)  # type: ignore[assignment]
        for name in columns:
            if name not in batch.schema.names:
                raise unknown_name("column", name, batch.schema.names)
        arrays = [_plain(batch.column(name)) for name in columns]
        types = [
            _type_of(name, array.type) if type is None else type
            for (name, type), array in zip(columns.items(), arrays, strict=True)
        ]
        specs = [_column_spec(name, type) for name, type in zip(columns, types, strict=True)]
        struct = pa.StructArray.from_arrays(arrays, [str(number) for number in range(len(arrays))])
        return to_pyarrow(_native.apply("pack", struct, self.format, pack=(specs, self.nulls == "skip")))


def _column_spec(name: str, type: object) -> PackedColumn:
    """Return how a column is packed, as the compiled core takes it."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a column must be str, not {name.__class__.__name__}")
    if isinstance(type, str) and type == HEADERS:
        return None, None, False, None
    try:
        field, _ = field_and_default(*(type if isinstance(type, Field) else (type,)))
    except (TypeError, ValueError) as error:
        raise error.__class__(f"column {name!r}: {error}") from None
    return plain_key(name if field.key is None else field.key), field.type, field.repeat == "all", field.split


def _plain(array: Any) -> Any:
    """Return a column without a dictionary."""
    return array.dictionary_decode() if hasattr(array, "dictionary_decode") else array


def _type_of(name: str, type: pa.DataType) -> str:
    """Return the type in which the values of a column are written."""
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
        "bool": pa.types.is_boolean, "string": _is_text, "binary": is_binary, "float32": pa.types.is_float32,
        "float64": pa.types.is_float64,
    }  # fmt: skip
    if pa.types.is_integer(type):
        return str(type)
    for known, is_of in names.items():
        if is_of(type):
            return known
    raise TypeError(f"column {name!r}: {type} has no type of headers: cast it, or pass columns= with a type")


def _is_text(type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))
