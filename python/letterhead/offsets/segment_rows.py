"""Convert batches of segment files to rows, and damaged batches to error rows: :class:`SegmentRowReader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic

import pyarrow as pa

from letterhead.errors import HeaderError, copy_error
from letterhead.offsets.damage import BatchError, DamagedRange, Invalid
from letterhead.offsets.partition_log import OffsetRange
from letterhead.offsets.reading import rows_up_to_error
from letterhead.offsets.rows import RowReader
from letterhead.offsets.segment_file import SegmentFile
from letterhead.offsets.stored_batches import BatchT

__all__ = ["SegmentRowReader"]


class SegmentRowReader(Generic[BatchT]):
    """Converter from batches of segment files to record batches by the options of a :class:`RowReader`."""

    def __init__(self, reader: RowReader) -> None:
        self.schema = reader.schema
        self.errors = reader.errors
        self.where = reader.where
        self.limits = reader.limits
        self.message_bytes = reader.message_bytes
        # Read each piece with the strict reader; after an error, use the lax reader, which applies `errors`.
        self._lax: Any = reader
        self._strict: Any = reader.strict()

    def rows(
        self, file: SegmentFile[Any, BatchT], batches: Sequence[BatchT], bounds: OffsetRange, context: Any = None
    ) -> Iterator[pa.RecordBatch | Invalid]:
        """Yield the rows of batches with valid headers; at the end, the first invalid batch, if any."""
        if not batches:
            return
        results = rows_up_to_error(
            lambda end: self._read(file, batches, bounds._replace(end=end), context), bounds.start, bounds.end
        )
        try:
            for rows, invalid in results:
                if rows is not None and len(rows):
                    yield rows
                if invalid is not None:
                    yield invalid
        except HeaderError as error:
            if error.code != "too_large" or len(batches) == 1:
                raise
            # Halve the batches, because an Arrow column cannot hold their decompressed bytes.
            half = len(batches) // 2
            for first, part in ((0, batches[:half]), (half, batches[half:])):
                for result in self.rows(file, part, bounds, context):
                    if isinstance(result, Invalid):
                        yield result._replace(number=first + result.number)
                        return
                    yield result

    def keeps_error_rows(self, file: SegmentFile[Any, BatchT]) -> bool:
        """Return whether the result includes a row for each damaged batch."""
        return bool(self._lax.keeps_error_rows(file.segment.partition_values))

    def error_row(self, file: SegmentFile[Any, BatchT], error: BatchError, damage: DamagedRange) -> pa.RecordBatch:
        """Return the row for a damaged batch; its error message begins with the reason."""
        values, text = file.segment.partition_values, file.error_text(error, damage)
        row: pa.RecordBatch = self._lax.error_row(values, error.code, text, damage.position)
        return row

    def _without_rows(self, batches: Sequence[BatchT]) -> list[int]:
        """Return the indexes of batches without rows; their checksums need a separate check."""
        return []

    def _arguments(self, batches: Sequence[BatchT], context: Any) -> Mapping[str, Any]:
        """Return additional arguments of the reader."""
        return {}

    def _read(
        self, file: SegmentFile[Any, BatchT], batches: Sequence[BatchT], bounds: OffsetRange, context: Any
    ) -> tuple[pa.RecordBatch | None, Invalid | None]:
        options: Any = {"start": bounds.start, "end": bounds.end, "partition_values": file.segment.partition_values}
        arguments = self._arguments(batches, context)
        without_rows = self._without_rows(batches)
        invalid = file.first_invalid(batches, without_rows) if without_rows else None
        if invalid is not None:
            batches = batches[: invalid.number]
        if not batches:
            return None, invalid
        try:
            rows = self._strict(file.stored(batches), **options, **arguments)
        except HeaderError as error:
            if error.code == "too_large":
                raise
            last_offsets = file.stored(batches).last_offsets
            requested = [index for index, last_offset in enumerate(last_offsets) if last_offset >= bounds.start]
            invalid = file.first_invalid(batches, requested) or invalid
            valid = batches if invalid is None else batches[: invalid.number]
            if self.errors == "raise" and error.row is not None and error.row < len(valid):
                located = self._strict.located(error, file.stored(batches), **options)
                raise _locate_error(file, valid[error.row], located) from None
            return self._lax(file.stored(valid), **options, **arguments) if valid else None, invalid
        return (rows if rows is None else self._lax.with_no_errors(rows)), invalid


def _locate_error(file: SegmentFile[Any, BatchT], batch: BatchT, error: HeaderError) -> HeaderError:
    """Return the error of a batch with its location in the file."""
    message = f"{file.segment.path}: the batch at offset {batch.base_offset}: {error.message}"
    return copy_error(error, message, byte_offset=batch.position + (error.byte_offset or 0), row=None)
