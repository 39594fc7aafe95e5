"""The bytes of a column, seen as numbers: what the readers of columns are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from letterhead.parts.policy import Bools, present_rows

__all__ = ["View", "masked", "strings", "uuid_texts"]


class View:
    """The bytes of a column, and where its cells lie in them.

    Attributes
    ----------
    count : int
        Cells.
    buffer : pyarrow.Buffer
        Bytes of all cells, and perhaps of others.
    starts, ends, lengths : numpy.ndarray of int32
        Where each cell is in them.
    null : numpy.ndarray of bool
        Whether a cell is null.
    firsts : numpy.ndarray of uint8
        The first byte of each cell; 0 of an empty one.
    """

    def __init__(self, cells: pa.BinaryArray) -> None:
        _, offsets, data = cells.buffers()
        self.count = len(cells)
        bounds = (
            np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + self.count + 1]
            if offsets is not None and self.count
            else np.zeros(1, np.int32)
        )
        self.buffer = pa.py_buffer(b"") if data is None else data
        self.starts, self.ends = bounds[:-1], bounds[1:]
        self.lengths = self.ends - self.starts
        self.null: Bools = ~present_rows(cells)
        # An empty cell has no first byte; its length says so.
        self.firsts = np.zeros(self.count, np.uint8)
        some = self.lengths > 0
        self.firsts[some] = np.frombuffer(self.buffer, np.uint8)[self.starts[some]]

    def gather(self, rows: npt.NDArray[np.intp], width: int) -> npt.NDArray[Any]:
        """Give the big-endian unsigned number of some bytes after the first one of every row."""
        dtype = np.dtype("V16") if width == 16 else np.dtype(f">u{width}")
        # A number at every byte; those at the rows are taken, whatever their alignment.
        everywhere = np.ndarray((self.buffer.size - width + 1,), dtype, buffer=self.buffer, strides=(1,))
        return everywhere[self.starts[rows] + 1]


def masked(numbers: npt.NDArray[Any], good: Bools) -> pa.Array:
    """Make a column of numbers; a row that is not good is null."""
    return pa.array(numbers, mask=None if good.all() else ~good)


_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
"""The two digits of every byte."""

_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
"""Where the digits of a uuid are parted by a dash."""


def uuid_texts(uuids: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Spell 16 bytes each as the 36 characters of a uuid."""
    digits = _HEX.take(uuids.view(np.uint8)).view(np.uint8).reshape(-1, 32)
    text = np.full((len(uuids), 36), ord("-"), np.uint8)
    for dashes, (begin, end) in enumerate(_GROUPS):
        text[:, begin + dashes : end + dashes] = digits[:, begin:end]
    return text.reshape(-1)


def strings(data: npt.NDArray[np.uint8], widths: npt.NDArray[Any], good: Bools) -> pa.Array:
    """Make a column of text; a row that is not good takes its width of the bytes, and is null."""
    offsets = np.zeros(len(widths) + 1, np.int64)
    np.cumsum(widths, out=offsets[1:])
    large = pa.LargeStringArray.from_buffers(
        len(widths), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data)), _validity(good), -1
    )
    return large.cast(pa.string())


def _validity(good: Bools) -> pa.Buffer | None:
    """Make Arrow's bitmap of what is not null; there is none where nothing is."""
    return None if good.all() else pa.py_buffer(np.packbits(good, bitorder="little"))
