"""Consecutive batches of a partition in memory: :class:`StoredBatches`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

__all__ = ["StoredBatch", "StoredBatches", "batch_column", "next_pieces"]

_FEW = 16
"""Limit of selectivity: a condition is selective if it selects at most one record in this many."""

_MAX_PIECES = 8


class StoredBatch(Protocol):
    """Header of a batch."""

    @property
    def position(self) -> int:
        """Position of the first byte."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def end(self) -> int:
        """Position after the last byte."""

    @property
    def base_offset(self) -> int:
        """Smallest possible offset of the records."""

    @property
    def last_offset(self) -> int:
        """Largest possible offset of the records."""

    @property
    def records(self) -> int:
        """Number of records."""


BatchT = TypeVar("BatchT", bound=StoredBatch)


class StoredBatches(NamedTuple, Generic[BatchT]):
    """Consecutive batches with their bytes."""

    data: Any
    batches: Sequence[BatchT]
    origin: int = 0
    """Position of the first byte of ``data``, counted from the same origin as the positions of batches."""

    next_offset: int | None = None
    """Offset of the next batch in a file."""

    @property
    def last_offsets(self) -> list[int]:
        """Largest possible offset of a record in each batch, even if the header of the batch is damaged."""
        following = [batch.base_offset for batch in self.batches[1:]]
        following.append(0 if self.next_offset is None else self.next_offset)
        return [max(batch.last_offset, after - 1) for batch, after in zip(self.batches, following, strict=True)]


def next_pieces(pieces: int, batches: Iterable[StoredBatch], rows: int) -> int:
    """Return the number of pieces to read together, after a condition selected ``rows`` records from ``pieces``.

    The number doubles while the condition is selective, because each call of the compiled core has a fixed cost.
    """
    few = rows <= sum(batch.records for batch in batches) // _FEW
    return min(2 * pieces, _MAX_PIECES) if few else 1


def batch_column(stored: StoredBatches[Any], kept: Sequence[bool] | None = None) -> pa.BinaryArray:
    """Return a column with one batch in each row, without a copy; null if the batch is not ``kept``."""
    batches = stored.batches
    first = batches[0].position
    size = batches[-1].end - first
    if size >= 1 << 31:
        raise ValueError("more than 2 GiB of batches at a time")
    bounds = array("i", [*(batch.position - first for batch in batches), size])
    present = None if kept is None or all(kept) else pa.array(kept, pa.bool_()).buffers()[1]
    data = pa.py_buffer(stored.data).slice(first - stored.origin, size)
    return pa.BinaryArray.from_buffers(pa.binary(), len(batches), [present, pa.py_buffer(bounds), data])
