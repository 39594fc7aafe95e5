"""Changelogs as Arrow tables, as a reader of a topic returns them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from letterhead.state import ChangelogRecord

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
TOPIC = "app-store-changelog"


def table(records: Iterable[ChangelogRecord], partition: int = 0, first: int = 0, topic: str = TOPIC) -> pa.Table:
    records = list(records)
    count = len(records)
    return pa.table(
        {
            "topic": pa.array([topic] * count, pa.string()),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(first, first + count), pa.int64()),
            "timestamp": pa.array([record.timestamp for record in records], pa.timestamp("ms", "UTC")),
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "headers": pa.array(
                [[{"key": key, "value": value} for key, value in record.headers] for record in records], HEADERS
            ),
        }
    )
