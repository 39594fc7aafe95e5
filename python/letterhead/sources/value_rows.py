"""Decode values of a log by the schemas of a registry: :func:`value_reader`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from letterhead.offsets.reading import last_rows
from letterhead.reader import Reader
from letterhead.schemas.serialized import SerializedValues
from letterhead.schemas.streams import LOCATIONS, SerializedColumn, decode_stream
from letterhead.where.conditions import Predicate, Where, all_of, parts_of, predicates_in
from letterhead.where.parsing import as_condition

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._row_request import RowRequest
    from letterhead.where.conditions import Condition

__all__ = ["stored_tests", "value_reader"]

_PARTITION = "partition"


def value_reader(
    parts: Sequence[tuple[SerializedValues, SerializedColumn]],
    topic: str | None,
    request: RowRequest,
    fields: Collection[str],
    open_records: Callable[[RowRequest], Reader],
) -> Reader:
    """Return a stream with decoded values or keys; ``open_records`` reads the stored records and their headers.

    Parts of the condition on headers and stored ``fields`` are tested before values are decoded.
    """
    decoders = [serialized.decoder(topic) for serialized, _ in parts]
    columns = tuple(request.columns or ())
    stored, decoded = _split_condition(request.where, [column.name for _, column in parts])
    needed = [name for _, column in parts for name in (column.name, column.headers) if name is not None]
    # Raised errors name the location of the record.
    needed += LOCATIONS if request.errors == "raise" else ()
    last = None if decoded is None else request.last
    if decoded is not None:
        tested = {test.operand._name for test in predicates_in(decoded) if test.operand._field is None}
        needed += [_PARTITION, *(name for name in fields if name in tested)]
    hidden = [name for name in dict.fromkeys(needed) if name not in columns]
    reader = open_records(
        replace(
            request,
            columns=(*columns, *hidden),
            serialized=None,
            where=stored,
            last=None if last is not None else request.last,
        )
    )
    for number, ((serialized, column), decoder) in enumerate(zip(parts, decoders, strict=True), 1):
        is_final = number == len(parts)
        reader = decode_stream(
            reader,
            decoder,
            column._replace(header=serialized.registry.id_header(serialized.part)),
            errors="raise" if request.errors == "raise" else "column",
            error_column=request.error_column,
            limits=request.limits,
            where=decoded if is_final else None,
            typed_headers=request.headers,
            leave_out=hidden if is_final and last is None else (),
            is_portable=True,
        )
    return reader if last is None else _last_of_partitions(reader, last, hidden)


def stored_tests(where: Where, columns: Sequence[str]) -> Condition | None:
    """Return all tests of a condition except tests of decoded columns."""
    return all_of(test for test in predicates_in(as_condition(where)) if not _is_decoded(test, columns))


def _split_condition(where: Where | None, columns: Sequence[str]) -> tuple[Condition | None, Condition | None]:
    """Return the parts of a condition to test before and after columns are decoded."""
    parts = [] if where is None else parts_of(as_condition(where))
    later = [any(_is_decoded(test, columns) for test in predicates_in(part)) for part in parts]
    before = all_of(part for part, is_later in zip(parts, later, strict=True) if not is_later)
    return before, all_of(part for part, is_later in zip(parts, later, strict=True) if is_later)


def _is_decoded(test: Predicate, columns: Sequence[str]) -> bool:
    name = test.operand._name
    return (
        test.operand._field is None and isinstance(name, str) and name.startswith(tuple(f"{each}." for each in columns))
    )


def _last_of_partitions(reader: Reader, last: int, leave_out: Sequence[str]) -> Reader:
    import pyarrow as pa

    names = [name for name in reader.schema.names if name not in leave_out]

    def batches() -> Iterator[pa.RecordBatch]:
        with reader:
            for _, group in groupby(reader, key=lambda batch: batch.column(_PARTITION)[0].as_py()):
                for batch in last_rows(group, last):
                    yield batch.select(names)

    return Reader(pa.schema([reader.schema.field(name) for name in names]), batches, reader._progress)
