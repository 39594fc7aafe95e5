"""Struct fields as columns of a table: for example ``redpanda.partition`` and ``headers`` in Redpanda's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from letterhead._arrow_types import has_headers

if TYPE_CHECKING:
    import pyarrow as pa


def find_nested_columns(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Return the path of each struct field, keyed by its dotted name.

    Names that are also columns, or that belong to two fields, are omitted. ``headers`` without a prefix is included if
    exactly one field has this name.
    """
    import pyarrow as pa

    def paths(fields: Iterable[pa.Field], root: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
        for field in fields:
            path = (*root, field.name)
            if root:
                yield path, field.type
            if pa.types.is_struct(field.type):
                yield from paths(field.type, path)

    found = [*paths(schema, ())]
    headers = [path for path, type in found if path[-1] == "headers" and has_headers(type, drops_fields=True)]
    named = [(".".join(path), path) for path, _ in found] + [("headers", path) for path in headers]
    counts = Counter([*schema.names, *(name for name, _ in named)])
    return {name: path for name, path in named if counts[name] == 1}


def with_nested_columns(schema: pa.Schema, paths: Mapping[str, tuple[str, ...]]) -> pa.Schema:
    """Return a schema with struct fields appended as columns."""
    for name, (root, *names) in paths.items():
        field = schema.field(root)
        for inner in names:
            field = field.type.field(inner)
        schema = schema.append(field.with_name(name))
    return schema


def append_nested_columns(batch: pa.RecordBatch, paths: Mapping[str, tuple[str, ...]]) -> pa.RecordBatch:
    """Return a batch with struct fields appended as columns; they are null in rows where the struct is null."""
    import pyarrow.compute as pc

    for name, (root, *names) in paths.items():
        column = batch.column(root)
        for inner in names:
            column = pc.struct_field(column, column.type.get_field_index(inner))
        batch = batch.append_column(name, column)
    return batch
