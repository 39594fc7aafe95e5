"""Find the batch of a log of Kafka that has an offset: :func:`batch_at`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import letterhead as lh
from letterhead.cli.exits import BAD_DATA, Failure
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import open_reader, open_sources, report_findings
from letterhead.limits import Limits
from letterhead.sources.base import RowRequest

__all__ = ["FORMAT", "StoredRecord", "batch_at"]

FORMAT = "record-batch"
"""The format of the batches."""


class StoredRecord(NamedTuple):
    """A batch, and which of its records has the offset, counted from 0."""

    batch: bytes
    number: int


def batch_at(text: str, offset: int, request: RowRequest, limits: Limits) -> StoredRecord:
    """Return the batch of a topic, or of log segments, that has an offset; raise Failure if there is none."""
    [source] = open_sources([text])
    # All partitions use a point, as far as they reach: a mapping would require that the offset exists.
    request = replace(
        request, view="batches", columns=("topic", "partition", "data"), start=str(offset), end=str(offset + 1),
        limits=limits,
    )  # fmt: skip
    rows = []
    with open_reader(source, request) as reader, reading_errors():
        for batch in reader:
            rows += batch.to_pylist()
            if len({row["partition"] for row in rows}) > 1:
                raise Failure(f"{source.name} has several partitions with offset {offset}: choose one by --partition")
    report_findings(source)
    for row in rows:
        offsets = [message.offset for message in lh.messages(row["data"], FORMAT, limits=limits)]
        if offset in offsets:
            return StoredRecord(row["data"], offsets.index(offset))
    raise Failure(f"offset {offset} is not in {source.name}", BAD_DATA)
