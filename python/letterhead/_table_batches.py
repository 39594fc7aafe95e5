"""Validate batches of untrusted files, decode their dictionaries and runs, and bound their size: :func:`check_batches`.

Lengths, offsets and counts in a file may be false, and a dictionary or a run can expand to many times its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from letterhead._arrow_types import convert_children, is_pyarrow, package_of, typed_headers
from letterhead._names import join_names, suggestion
from letterhead.errors import DamagedTableError
from letterhead.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BATCH_ROWS", "split_batches", "check_batches", "common_type", "damage", "empty_batch", "no_column", "rows_by_partition",
    "schema_without_encodings", "type_without_encodings", "with_header_types", "without_encodings",
]  # fmt: skip

ValueT = TypeVar("ValueT")

BATCH_ROWS = 10_000
"""Maximum number of rows of a batch."""


@contextmanager
def damage(label: str) -> Iterator[None]:
    """Convert errors from damaged data to an error that names the file, and errors of an object store to OSError."""
    import pyarrow as pa

    try:
        yield
    except DamagedTableError:
        raise
    except OSError as error:
        if "://" in label:
            raise OSError(f"cannot read {label}: {first_line(error)}") from error
        raise DamagedTableError(f"cannot read {label}: it is damaged: {first_line(error)}") from error
    except pa.ArrowException as error:
        raise DamagedTableError(f"cannot read {label}: it is damaged: {first_line(error)}") from error
    except (MemoryError, OverflowError) as error:
        raise MemoryError(f"cannot read {label}: a batch of it does not fit into memory") from error


def first_line(error: Exception) -> str:
    """Return the first line of a pyarrow error; the following lines quote its source code."""
    return str(error).partition("\n")[0].lower()


def no_column(name: str, names: Iterable[str]) -> ValueError:
    """Return the error for a missing column of a table."""
    names = [*names]
    known = f"there are {join_names(names)}" if names else "the table is empty"
    hint = suggestion(name, names)
    return ValueError(
        f"there is no column {name!r}{hint} ({known})" if hint else f"there is no column {name!r}: {known}"
    )


def schema_without_encodings(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the batches of :func:`check_batches`: without dictionaries and runs, and with types of headers."""
    import pyarrow as pa

    def decoded_type(field: pa.Field) -> pa.DataType:
        type = type_without_encodings(field.type)
        return typed_headers(type) if field.name == "headers" else type

    return pa.schema([field.with_type(decoded_type(field)) for field in schema], schema.metadata)


def with_header_types(column: ValueT) -> ValueT:
    """Return a column of headers with types for keys and values that pyarrow, polars or pandas inferred as null.

    Other columns are returned unchanged.
    """
    known: Any = column
    if package_of(known) == "polars" and "Null" in str(known.dtype):
        import pyarrow as pa

        # pyarrow ignores the buffer with which polars exports nulls; the core rejects it.
        known = pa.chunked_array(known)
    type = getattr(known, "type", None) if is_pyarrow(known) else None
    if type is None:
        return column
    decoded = type_without_encodings(type)
    typed = typed_headers(decoded)
    if typed == decoded:
        return column
    known.validate(full=True)
    if hasattr(known, "chunks"):
        import pyarrow as pa

        return pa.chunked_array([without_encodings(chunk, typed) for chunk in known.chunks], typed)  # type: ignore[no-any-return]
    return without_encodings(known, typed)  # type: ignore[no-any-return]


def check_batches(
    batches: Iterable[pa.RecordBatch],
    label: str,
    max_rows: int = BATCH_ROWS,
    last: int | None = None,
    limits: Limits | None = None,
) -> Iterator[pa.RecordBatch]:
    """Validate batches, and split them at ``max_rows`` rows and at the limit of bytes.

    Results have the schema of :func:`schema_without_encodings`.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Batches of a file; errors of reading the next one are reported as damage of the file.
    label : str
        Name of the file in errors.
    max_rows : int
        Maximum number of rows of a batch.
    last : int, optional
        Rows at the end of each batch that are needed; by default all.
    limits : Limits, optional
        ``arrow_batch_bytes`` is the maximum number of bytes of a batch.

    Raises
    ------
    DamagedTableError
        If a buffer is too short, an offset or an index lies outside of its data, or text is not UTF-8.
    MemoryError
        If the system cannot allocate the memory of a batch.
    """
    remaining = iter(batches)
    while True:
        with damage(label):
            batch = next(remaining, None)
            if batch is not None:
                batch.validate(full=True)
        if batch is None:
            return
        schema = schema_without_encodings(batch.schema)
        if last is not None:
            batch = batch.slice(max(0, len(batch) - last))
        for start in range(0, max(len(batch), 1), max_rows):
            for part in split_batches(batch.slice(start, max_rows), limits):
                with damage(label):
                    decoded = _batch_without_encodings(part, schema)
                yield decoded


def _batch_without_encodings(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    if batch.schema.equals(schema):
        return batch
    return pa.RecordBatch.from_arrays([*map(without_encodings, batch.columns, schema.types)], schema=schema)


def split_batches(batch: pa.RecordBatch, limits: Limits | None) -> Iterator[pa.RecordBatch]:
    """Halve a batch until each part fits the limit ``arrow_batch_bytes`` or has one row."""
    most = (limits or Limits()).filled().arrow_batch_bytes or 0
    parts = [batch]
    while parts:
        part = parts.pop()
        if len(part) > 1 and sum(map(_decoded_bytes, part.columns)) > most:
            half = len(part) // 2
            parts += (part.slice(half), part.slice(0, half))
        else:
            yield part


def type_without_encodings(type: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, runs and views, which pyarrow cannot filter."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(type):
        return type_without_encodings(type.value_type)
    if types.is_run_end_encoded(type):
        return type_without_encodings(type.value_type)
    for is_view, make in ((types.is_list_view, pa.list_), (types.is_large_list_view, pa.large_list)):
        if is_view(type):
            return make(type.value_field.with_type(type_without_encodings(type.value_type)))
    if types.is_nested(type):
        return convert_children(type, type_without_encodings)
    return pa.string() if types.is_string_view(type) else pa.binary() if types.is_binary_view(type) else type


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type for the values of two columns; None if there is none, or decimals would be rounded to floats."""
    import pyarrow as pa

    if first.equals(second):
        return first
    try:
        merged = pa.unify_schemas([pa.schema([("", first)]), pa.schema([("", second)])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    type: pa.DataType = merged.field(0).type
    if pa.types.is_decimal(type) and (pa.types.is_integer(first) or pa.types.is_integer(second)):
        # pyarrow casts integers only to decimals that can hold every value of the integer type.
        precision = max(type.precision, _MAX_WHOLE_DIGITS + max(type.scale, 0))
        type = pa.decimal128(precision, type.scale) if precision <= 38 else pa.decimal256(precision, type.scale)
    return None if _rounds_decimals(first, type) or _rounds_decimals(second, type) else type


_MAX_WHOLE_DIGITS = 20
"""Digits of the largest 64-bit integer."""


def _rounds_decimals(type: pa.DataType, target: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(type):
        return any(_rounds_decimals(field.type, target.field(field.name).type) for field in type)
    if pa.types.is_map(type):
        return _rounds_decimals(type.key_type, target.key_type) or _rounds_decimals(type.item_type, target.item_type)
    if pa.types.is_nested(type):
        return any(
            _rounds_decimals(type.field(index).type, target.field(index).type) for index in range(type.num_fields)
        )
    return bool(pa.types.is_decimal(type) and pa.types.is_floating(target))


def without_encodings(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Convert an array to its :func:`type_without_encodings`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if array.type == type:
        return array
    types = pa.types
    if types.is_null(array.type):
        return pa.nulls(len(array), type)
    if types.is_run_end_encoded(array.type):
        return without_encodings(pc.run_end_decode(array), type)
    if types.is_dictionary(array.type):
        # pyarrow cannot decode dictionaries of views.
        values = without_encodings(array.dictionary, type_without_encodings(array.dictionary.type))
        return without_encodings(pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode(), type)
    if types.is_string_view(array.type) or types.is_binary_view(array.type):
        return array.cast(type)
    missing = array.is_null() if array.null_count else None
    if types.is_struct(array.type):
        children = [without_encodings(array.field(index), type.field(index).type) for index in range(type.num_fields)]
        if not children:
            return array
        return pa.StructArray.from_arrays(children, fields=list(type), mask=missing)
    # Elements of null lists and elements outside the slice are omitted.
    if types.is_fixed_size_list(array.type) and type.list_size == 0:
        # pyarrow would divide by the list size of 0.
        validity = None if missing is None else array.is_valid().buffers()[1]
        return pa.Array.from_buffers(type, len(array), [validity], children=[pa.nulls(0, type.value_type)])
    if types.is_fixed_size_list(array.type):
        elements = array.values.slice(array.offset * type.list_size, len(array) * type.list_size)
        return pa.FixedSizeListArray.from_arrays(without_encodings(elements, type.value_type), type=type, mask=missing)
    if types.is_map(array.type):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys, items = array.keys.slice(start, end - start), array.items.slice(start, end - start)
        offsets = pc.subtract(array.offsets, array.offsets[0])
        return pa.MapArray.from_arrays(
            offsets,
            without_encodings(keys, type.key_type),
            without_encodings(items, type.item_type),
            type,
            mask=missing,
        )
    is_large = types.is_large_list(type)
    offset = pa.int64() if is_large else pa.int32()
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(offset)
    offsets = pa.concat_arrays([pa.array([0], offset), pc.cumulative_sum(lengths)])
    lists = pa.LargeListArray if is_large else pa.ListArray
    return lists.from_arrays(offsets, without_encodings(array.flatten(), type.value_type), type=type, mask=missing)


def _decoded_bytes(array: pa.Array) -> int:
    """Estimate the bytes of a column after dictionaries and runs are decoded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_run_end_encoded(array.type):
        return _value_bytes(array.values, len(array))
    if types.is_dictionary(array.type):
        dictionary = array.dictionary
        if _has_varying_size(dictionary.type):
            lengths = pc.binary_length(dictionary).take(array.indices)
            return int(pc.sum(lengths).as_py() or 0) + 4 * len(array)
        return _value_bytes(dictionary, len(array))
    if types.is_struct(array.type):
        return sum(_decoded_bytes(array.field(index)) for index in range(array.type.num_fields))
    if types.is_map(array.type):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return sum(_decoded_bytes(part.slice(start, end - start)) for part in (array.keys, array.items))
    if types.is_nested(array.type) and hasattr(array, "flatten"):
        return _decoded_bytes(array.flatten()) + 4 * len(array)
    return int(array.nbytes)


def _has_varying_size(type: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_string(type) or types.is_large_string(type) or types.is_binary(type) or types.is_large_binary(type)
    )


def _value_bytes(values: pa.Array, count: int) -> int:
    """Return an upper bound of the size in bytes of ``count`` elements taken from ``values``."""
    import pyarrow.compute as pc

    if _has_varying_size(values.type):
        return count * ((pc.max(pc.binary_length(values)).as_py() or 0) + 4)
    return count * (_decoded_bytes(values) // max(len(values), 1) + 1)


def rows_by_partition(batch: pa.RecordBatch) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """Split a batch by its column ``partition``, in the order of first occurrence."""
    import pyarrow.compute as pc

    partitions = batch.column("partition")
    numbers = partitions.unique().to_pylist()
    for number in numbers:
        mask = partitions.is_null() if number is None else pc.equal(partitions, number)
        yield number, batch if len(numbers) == 1 else batch.filter(mask)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows; the schema may have any types."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.nulls(0, type) for type in schema.types], schema=schema)
