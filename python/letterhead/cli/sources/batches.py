"""Find the batch with an offset in a Kafka log: :func:`batch_at`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from letterhead import _native
from letterhead._row_request import RowRequest
from letterhead.cli.exits import BAD_DATA, Failure
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.sources.opening import check_request, open_reader, open_sources, report_findings
from letterhead.limits import Limits
from letterhead.offsets.specs import OffsetRangeError

__all__ = ["FORMAT", "StoredRecord", "batch_at", "with_checksums"]

FORMAT = "record-batch"
"""The format of the batches."""


class StoredRecord(NamedTuple):
    """Batch with the record, index of the record in the batch, and the exit code of the findings."""

    batch: bytes
    number: int | None  # None if the batch is damaged before the record
    code: int


def batch_at(text: str, offset: int, request: RowRequest, limits: Limits) -> StoredRecord:
    """Return the batch with an offset in a topic or log segments; raise Failure if there is none."""
    [source] = open_sources([text], request)
    if "view" not in source.options:
        raise Failure(f"--offset is for topics and log segments of Kafka, not for {source.name}")
    # A mapping would raise an error for a partition without the offset.
    request = replace(
        request, view="batches", columns=("topic", "partition", "last_offset", "data"), start=str(offset), end=str(offset + 1),
        limits=limits,
    )  # fmt: skip
    check_request([source], request)
    rows = []
    with open_reader(source, request) as reader, reading_errors():
        try:
            for batch in reader:
                rows += batch.to_pylist()
                if len({row["partition"] for row in rows}) > 1:
                    raise Failure(
                        f"{source.name} has several partitions with offset {offset}: choose one by --partition"
                    )
        except OffsetRangeError as error:
            # The message begins with bounds that the user did not pass.
            where = str(error).partition(": ")[2]
            raise Failure(f"offset {offset} is not in {source.name}: {where}", BAD_DATA) from error
    code = report_findings(source)
    for row in rows:
        number, is_damaged = _number_of(offset, row["data"], limits)
        if number is not None or (is_damaged and offset <= row["last_offset"]):
            return StoredRecord(row["data"], number, code)
    raise Failure(f"offset {offset} is not in {source.name}", BAD_DATA)


def with_checksums(data: bytes) -> bytes:
    """Return batches with recomputed checksums, which makes damaged batches readable."""
    heads, end = _native.record_batches(data, 0, None, 0)
    parts = [_native.with_checksum(data[position : position + size]) for position, size, *_ in heads]
    return b"".join([*parts, data[end:]])


def _number_of(offset: int, data: bytes, limits: Limits) -> tuple[int | None, bool]:
    """Return the index of the record with an offset, or None, and whether some records cannot be read."""
    import pyarrow as pa

    from letterhead import arrow as lha

    column = pa.array([with_checksums(data)], pa.binary())
    read = lha.messages(column, FORMAT, columns=["offset"], errors="column", limits=limits)
    offsets = read.field("offset").to_pylist()
    return (offsets.index(offset), False) if offset in offsets else (None, None in offsets)
