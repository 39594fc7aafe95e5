"""Rows of a log whose values are decoded by the schemas of a registry: :func:`value_reader`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from letterhead.schemas.serialized import SerializedValues
from letterhead.schemas.streams import LOCATIONS, SerializedColumn, decode_stream

if TYPE_CHECKING:
    from letterhead._row_request import RowRequest
    from letterhead.reader import Reader

__all__ = ["value_reader"]


def value_reader(
    parts: Sequence[tuple[SerializedValues, SerializedColumn]],
    topic: str | None,
    request: RowRequest,
    open_records: Callable[[RowRequest], Reader],
) -> Reader:
    """Return a stream in which values, or keys, are typed; ``open_records`` reads them, and their headers, as they are stored."""
    decoders = [serialized.decoder(topic) for serialized, _ in parts]
    columns = tuple(request.columns or ())
    needed = [name for _, column in parts for name in (column.name, column.headers) if name is not None]
    # Errors that are raised name the record.
    needed += LOCATIONS if request.errors == "raise" else ()
    hidden = [name for name in dict.fromkeys(needed) if name not in columns]
    reader = open_records(replace(request, columns=(*columns, *hidden), serialized=None))
    for number, ((serialized, column), decoder) in enumerate(zip(parts, decoders, strict=True), 1):
        reader = decode_stream(
            reader,
            decoder,
            column._replace(header=serialized.registry.id_header(serialized.part)),
            errors="raise" if request.errors == "raise" else "column",
            error_column=request.error_column,
            limits=request.limits,
            leave_out=hidden if number == len(parts) else (),
            is_plain=True,
        )
    return reader
