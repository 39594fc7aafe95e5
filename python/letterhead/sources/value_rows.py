"""Rows of a log whose values are decoded by the schemas of a registry: :func:`value_reader`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from letterhead.schemas.serialized import SerializedValues
from letterhead.schemas.streams import LOCATIONS, SerializedColumn, decode_stream

if TYPE_CHECKING:
    from letterhead._row_request import RowRequest
    from letterhead.reader import Reader

__all__ = ["value_reader"]


def value_reader(
    serialized: SerializedValues,
    topic: str | None,
    column: SerializedColumn,
    request: RowRequest,
    open_records: Callable[[RowRequest], Reader],
) -> Reader:
    """Return a stream in which the values are typed; ``open_records`` reads them, and their headers, as they are stored."""
    decoder = serialized.decoder(topic)
    columns = tuple(request.columns or ())
    # Errors that are raised name the record.
    needed = [column.name, column.headers, *(LOCATIONS if request.errors == "raise" else ())]
    hidden = [name for name in needed if name is not None and name not in columns]
    records = open_records(replace(request, columns=(*columns, *hidden), serialized=None))
    return decode_stream(
        records,
        decoder,
        column._replace(header=serialized.registry.id_header),
        errors="raise" if request.errors == "raise" else "column",
        error_column=request.error_column,
        limits=request.limits,
        leave_out=hidden,
        is_plain=True,
    )
