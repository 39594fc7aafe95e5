"""Convert messages of Apache Iggy that contain mapped Kafka records to record batches of these records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from letterhead._row_request import RowRequest
from letterhead.errors import DecodeError, HeaderError, copy_error
from letterhead.iggy.kafka_gateway import to_record
from letterhead.iggy.rows import PARTITION_COLUMNS, IggyRowReader, topic_in_errors
from letterhead.offsets.output_columns import (
    KAFKA_HEADERS,
    TIMES,
    Dialect,
    as_times,
    check_columns,
    time_error,
    times_outside,
)
from letterhead.offsets.partition_log import LAST_OFFSET
from letterhead.operations import Select
from letterhead.where.row_filter import RowFilter, field_type

__all__ = ["COLUMNS", "WHERE_FIELDS", "MappedRowReader"]

_FIELDS = {
    **PARTITION_COLUMNS, "offset": pa.int64(), "timestamp": TIMES["arrow"], "key": pa.binary(), "value": pa.binary(),
    "headers": KAFKA_HEADERS,
}  # fmt: skip

COLUMNS = tuple(_FIELDS)
"""Columns of a record; all are returned by default."""

WHERE_FIELDS = {name: field_type(type) for name, type in _FIELDS.items()}

_READ = (*PARTITION_COLUMNS, "offset", "timestamp", "origin_timestamp", "headers", "payload")
_AS_STORED = ("string", "binary")


class MappedRowReader:
    """Converter from stored batches to record batches of Kafka records, with the interface of :class:`IggyRowReader`."""

    where = None
    """Condition that restricts the poll: None, because the timestamps of a record and its message differ."""

    def __init__(self, request: RowRequest, *, dialect: Dialect = "arrow") -> None:
        if request.errors != "raise":
            raise ValueError("mapping needs errors='raise'")
        columns, headers, where = request.chosen_columns(COLUMNS), request.headers, request.where
        check_columns(columns, COLUMNS, headers, "raise", "error")
        limits = self.limits = request.limits
        self._messages = IggyRowReader(RowRequest(_READ, limits=limits))
        self._columns = columns
        self._headers = headers
        self._dialect = dialect
        self._filter = None if where is None else RowFilter(where, WHERE_FIELDS, headers, "kafka", limits=limits)
        selected = list(self._selected(pa.array([], KAFKA_HEADERS)).type) if headers else []
        types = _FIELDS | {"timestamp": TIMES[dialect]}
        self.schema = pa.schema([*((name, types[name]) for name in columns), *selected])

    def __call__(
        self, data: Any, *, start: int = 0, end: int = LAST_OFFSET, partition_values: Mapping[str, Any]
    ) -> pa.RecordBatch | None:
        """Read the messages with offsets in [``start``, ``end``); return None if there are none."""
        rows = self._messages(data, start=start, end=end, partition_values=partition_values)
        if rows is None:
            return None
        records = []
        micros = [rows.column(name).cast(pa.int64()).to_pylist() for name in ("origin_timestamp", "timestamp")]
        messages = zip(rows.column("headers").to_pylist(), rows.column("payload").to_pylist(), *micros, strict=True)
        for row, (headers, payload, origin, stored) in enumerate(messages):
            try:
                records.append(to_record([_as_stored(header) for header in headers or ()], payload, origin, stored))
            except DecodeError as error:
                raise _locate_error(error, rows, row, partition_values) from None
        lists = [[{"key": name, "value": value} for name, value in record.headers] for record in records]
        times = pa.array([record.timestamp for record in records], pa.int64())
        outside = times_outside(times, self._dialect)
        if outside is not None:
            row = pc.indices_nonzero(outside)[0].as_py()
            raise _locate_error(time_error("iggy"), rows, row, partition_values)
        record_columns = {
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "timestamp": as_times(times, self._dialect),
            "headers": pa.array(lists, KAFKA_HEADERS),
        }
        if self._filter is not None:
            mask = self._selected_rows(self._filter, record_columns, rows)
            if not mask.true_count:
                return None
            rows = rows.filter(mask)
            record_columns = {name: column.filter(mask) for name, column in record_columns.items()}
        columns = [record_columns[name] if name in record_columns else rows.column(name) for name in self._columns]
        if self._headers:
            columns += self._selected(record_columns["headers"]).flatten()
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def located(
        self, error: HeaderError, data: Any, *, start: int, end: int, partition_values: Mapping[str, Any]
    ) -> HeaderError:
        """Return the error of a call with these arguments, with the topic, partition and offset of the message added."""
        if error.offset is not None:
            return error
        return self._messages.located(error, data, start=start, end=end, partition_values=partition_values)

    def _selected_rows(
        self, condition: RowFilter, record_columns: Mapping[str, pa.Array], rows: pa.RecordBatch
    ) -> pa.BooleanArray:
        """Evaluate the condition on each record."""
        columns = {
            name: record_columns[name] if name in record_columns else rows.column(name) for name in condition.fields
        }
        if "timestamp" in columns:
            # Conditions use milliseconds, but timestamp columns for Spark have microseconds.
            columns["timestamp"] = columns["timestamp"].cast(TIMES["arrow"])
        return condition.examine(
            columns, record_columns["headers"] if condition.has_headers else None, len(rows)
        ).selected

    def _selected(self, headers: pa.Array) -> pa.StructArray:
        return Select("kafka", self._headers or {}, dialect=self._dialect)(headers)


def _locate_error(
    error: DecodeError, rows: pa.RecordBatch, row: int, partition_values: Mapping[str, Any]
) -> DecodeError:
    offset = rows.column("offset")[row].as_py()
    return copy_error(
        error, topic=topic_in_errors(partition_values), partition=partition_values["partition"], offset=offset
    )


def _as_stored(header: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return key and value as stored: little-endian numbers, which are big-endian in columns."""
    key, value = header["key"], header["value"]
    return (
        key if header["key_type"] in _AS_STORED else key[::-1],
        value if header["type"] in _AS_STORED else value[::-1],
    )
