"""Convert rows of Kafka records to messages of Apache Iggy by a mapping: :func:`map_rows`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from letterhead import arrow as lha
from letterhead._binary_columns import binary_column, exact_column
from letterhead.errors import HeaderError, copy_error
from letterhead.iggy.kafka_gateway import IggyMessage, KafkaRecord, to_message

__all__ = ["COLUMNS", "map_rows"]

COLUMNS = ("key", "value", "headers", "timestamp", "id")
"""Columns to write for each record."""


def map_rows(batch: pa.RecordBatch, *, lossless: bool, before: int) -> list[IggyMessage]:
    """Return the message for each row; ``before`` is the number of rows of the table before the batch."""
    names = batch.schema.names
    nulls: list[Any] = [None] * len(batch)
    keys = binary_column(batch, "key").to_pylist() if "key" in names else nulls
    values = binary_column(batch, "value").to_pylist() if "value" in names else nulls
    times = headers = nulls
    if "timestamp" in names:
        exact = exact_column(batch, "timestamp", pa.timestamp("ms", "UTC"), before, "kafka")
        times = exact.cast(pa.int64()).to_pylist()
    if "headers" in names:
        headers = lha.decode(lha.encode(batch.column("headers"), "kafka"), "kafka").to_pylist()
    messages = []
    for row, (key, value, time, pairs) in enumerate(zip(keys, values, times, headers, strict=True), before):
        record = KafkaRecord(key, value, [(pair["key"], pair["value"]) for pair in pairs or ()], time)
        try:
            messages.append(to_message(record, lossless=lossless))
        except HeaderError as error:
            raise copy_error(error, error.message, row=row) from None
    return messages
