"""Decode records of Kafka's internal topics into columns: :func:`internal_reader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from letterhead._table_batches import no_column
from letterhead.kafka.internal_topics import InternalTopic
from letterhead.kafka.record_sets import COLUMNS, WHERE_FIELDS
from letterhead.offsets.reading import last_rows
from letterhead.reader import Reader
from letterhead.where.row_filter import RowFilter, field_type

if TYPE_CHECKING:
    from letterhead._row_request import RowRequest

__all__ = ["PLACE", "internal_reader"]

ReaderT = TypeVar("ReaderT", bound=Reader)

PLACE = ("topic", "partition", "offset", "timestamp")
"""Columns that precede the columns of a decoded record."""


def internal_reader(
    topic: InternalTopic, request: RowRequest, open_records: Callable[[RowRequest], ReaderT]
) -> ReaderT:
    """Return a stream of decoded records; ``open_records`` reads them undecoded."""
    if request.commit_group is not None:
        raise ValueError("commit_group= is not for internal topics")
    names = (*COLUMNS, *topic.schema.names)
    for name in request.columns or ():
        if name not in names:
            raise no_column(name, names)
    fields: dict[str, str] = {**WHERE_FIELDS}
    fields |= {field.name: field_type(field.type) for field in topic.schema}
    condition = None
    if request.where is not None:
        condition = RowFilter(request.where, fields, request.headers, "kafka", errors=request.errors)
        if condition.has_headers:
            raise ValueError(
                f"where= names a header, which internal topics lack: names of fields are {', '.join(fields)}"
            )
    requested = [*(request.columns or ()), *(condition.fields if condition is not None else ())]
    read = dict.fromkeys(["partition", "key", "value", *(name for name in requested if name in COLUMNS)])
    last = request.last if condition is not None else None
    records = open_records(
        replace(request, columns=tuple(read), where=None, last=None if last is not None else request.last)
    )

    def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        parts = topic.columns_of(batch.column("key"), batch.column("value"))
        columns |= dict(zip(topic.schema.names, parts.flatten(), strict=True))
        whole = pa.RecordBatch.from_arrays([*columns.values()], [*columns])
        if condition is not None:
            whole, _ = condition(whole)
        others = [name for name in batch.schema.names if name not in read]  # typed headers, and errors
        return whole.select([*(request.columns or ()), *others])

    def batches() -> Iterator[pa.RecordBatch]:
        with records:
            if last is None:
                yield from map(decoded, records)
                return
            for _, group in groupby(records, key=lambda batch: batch.column("partition")[0].as_py()):
                yield from last_rows(map(decoded, group), last)

    empty = records.schema.empty_table().to_batches()
    schema = decoded(empty[0] if empty else pa.RecordBatch.from_pylist([], records.schema)).schema
    return records._converted(schema, batches)
