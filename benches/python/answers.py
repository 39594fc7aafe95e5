"""Read the answer out of a result, whichever side made it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benches import data, plain


def counts_of_list(column: pa.Array) -> data.HeaderCounts:
    """Count what a list column of headers holds."""
    headers = column.flatten()
    keys, values = headers.flatten()
    return data.HeaderCounts(
        headers=len(headers),
        key_bytes=total(pc.binary_length(keys)),
        value_bytes=total(pc.binary_length(values)),
        nulls=values.null_count,
    )


def counts_of_rows(rows: list[plain.HeaderList]) -> data.HeaderCounts:
    """Count what lists of (key, value) hold."""
    headers = [header for row in rows for header in row]
    values = [value for _, value in headers if value is not None]
    return data.HeaderCounts(
        headers=len(headers),
        key_bytes=sum(len(key.encode()) for key, _ in headers),
        value_bytes=sum(len(value) for value in values),
        nulls=len(headers) - len(values),
    )


def selected_in(result: Any) -> data.Selected:
    """Add up the three selected columns."""
    batch = pa.RecordBatch.from_struct_array(result) if isinstance(result, pa.StructArray) else result
    assert batch.schema.equals(data.SELECTED_SCHEMA), batch.schema
    tenant, retry, amount = batch.columns
    return data.Selected(
        tenants=len(tenant) - tenant.null_count,
        tenant_bytes=total(pc.binary_length(tenant)),
        retries=len(retry) - retry.null_count,
        retry_sum=total(retry),
        amounts=len(amount) - amount.null_count,
        amount_sum=total(amount),
    )


def total(column: pa.Array) -> int:
    """Sum a column of integers, in 64 bits; nothing adds up to 0."""
    return pc.sum(column.cast(pa.int64())).as_py() or 0
