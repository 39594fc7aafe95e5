"""Read records together with the control records that end transactions: :class:`ControlRowReader`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from letterhead._row_request import RowRequest
from letterhead.errors import HeaderError, after_rows
from letterhead.kafka.batch_attributes import ControlType, control_type
from letterhead.kafka.record_sets import COLUMNS, FIELDS, PARTITION_COLUMNS, BatchHeader, KafkaRowReader
from letterhead.offsets.partition_log import LAST_OFFSET
from letterhead.offsets.stored_batches import StoredBatches

__all__ = ["CONTROL_COLUMNS", "ControlRowReader"]

CONTROL_COLUMNS = (*COLUMNS, "control", "aborted")
"""Default columns."""


class ControlRowReader(KafkaRowReader):
    """Converts all records of record sets to rows, including control records, with two more columns.

    ``control`` is the type of a control record, null for other records; ``aborted`` tells whether the transaction of a
    record was aborted.
    """

    columns = CONTROL_COLUMNS
    fields = (*FIELDS, "control")
    partition_columns: ClassVar[dict[str, pa.DataType]] = {**PARTITION_COLUMNS, "aborted": pa.bool_()}
    left_out_attributes = 0

    def __init__(self, request: RowRequest, **options: Any) -> None:
        super().__init__(request, **options)
        # The key of a control record contains its type.
        self._fields += [name for name in ("key", "control") if name not in self._fields]
        if "control" in self._columns:
            self.schema = self.schema.set(self.schema.get_field_index("control"), pa.field("control", pa.string()))

    def __call__(
        self,
        stored: StoredBatches[BatchHeader],
        *,
        start: int = 0,
        end: int = LAST_OFFSET,
        skipped: Collection[int] = (),
        partition_values: Mapping[str, Any],
    ) -> pa.RecordBatch | None:
        """Read the records of consecutive batches; ``skipped`` contains the base offsets of aborted batches."""
        parts, before = [], 0
        for aborted, group in groupby(stored.batches, key=lambda batch: batch.base_offset in skipped):
            part = [*group]
            values = {**partition_values, "aborted": aborted}
            try:
                rows = super().__call__(stored._replace(batches=part), start=start, end=end, partition_values=values)
            except HeaderError as error:
                raise after_rows(error, before) from None
            before += len(part)
            parts += [] if rows is None else [rows]
        if len(parts) < 2:
            return parts[0] if parts else None
        [whole] = pa.Table.from_batches(parts).combine_chunks().to_batches()
        return whole

    def _column(self, rows: pa.RecordBatch, field: pa.Field, partition_values: Mapping[str, Any]) -> pa.Array:
        if field.name != "control" or "control" not in self._columns:
            return super()._column(rows, field, partition_values)
        types: list[str | None] = [None] * len(rows)
        for row in pc.indices_nonzero(pc.fill_null(rows.column("control"), False)).to_pylist():
            types[row] = _type_name(rows.column("key")[row].as_py())
        return pa.array(types, pa.string())


def _type_name(key: bytes | None) -> str:
    number = control_type(key)
    if number is None:
        return "UNKNOWN"
    return ControlType(number).name if number in _KNOWN_TYPES else f"UNKNOWN ({number})"


_KNOWN_TYPES = frozenset(ControlType)
