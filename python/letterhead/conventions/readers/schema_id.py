"""Ids of schemas in headers, as Confluent's serializers write them to ``__key_schema_id`` and ``__value_schema_id``.

Source: Confluent's ``SchemaId`` and ``HeaderSchemaIdSerializer`` (``io.confluent.kafka.serializers.schema.id``, and the
same in ``confluent_kafka.schema_registry``). After the id, Protobuf has the path to a message type, as zig-zag varints::

    +----+-----------------------+             +----+----------------+
    | 00 | int32 id, big-endian  | [indexes]   | 01 | guid, 16 bytes | [indexes]
    +----+-----------------------+             +----+----------------+
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from letterhead.conventions.readers.column import Bools, present_rows
from letterhead.errors import Fault, counted

__all__ = ["SchemaIdReader"]

_WIDTHS = {0: 4, 1: 16}
"""Bytes of the id after each magic byte."""


class SchemaIdReader:
    """Read ids of schemas."""

    name = "schema-id"
    type = pa.struct([
        ("id", pa.int32()), ("guid", pa.string()), pa.field("message_indexes", pa.list_(pa.field("element", pa.int32())))
    ])  # fmt: skip

    def fault(self, data: bytes) -> Fault | None:
        """Say what is wrong with one value."""
        if not data:
            return Fault("truncated", "no bytes where an id has at least five", byte=0)
        if data[0] not in _WIDTHS:
            return Fault("bad_magic", f"the magic byte is {data[0]}, neither 0 (an id) nor 1 (a guid)", byte=0)
        end = 1 + _WIDTHS[data[0]]
        if len(data) < end:
            return Fault("truncated", f"{counted(len(data), 'byte')} where the id takes {end}", byte=1)
        found = _indexes(data[end:]) if len(data) > end else None
        return found._replace(byte=end + (found.byte or 0)) if isinstance(found, Fault) else None

    def read(self, cells: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column."""
        view = View(cells)
        numbers, guids = np.zeros(view.count, np.int32), np.zeros(view.count, np.dtype("V16"))
        has = {magic: np.zeros(view.count, np.bool_) for magic in _WIDTHS}
        for magic, width in _WIDTHS.items():
            rows = np.flatnonzero(~view.null & (view.firsts == magic) & (view.lengths > width))
            has[magic][rows] = True
            if not len(rows):
                continue
            bits = view.gather(rows, width)
            if magic == 0:
                numbers[rows] = bits.astype(np.uint32).view(np.int32)
            else:
                guids[rows] = bits
        indexes, broken = self._message_indexes(view, has)
        whole = (has[0] | has[1]) & ~broken
        columns = [
            masked(numbers, has[0] & whole),
            strings(uuid_texts(guids), np.full(view.count, 36), has[1] & whole),
            indexes,
        ]
        return (pa.StructArray.from_arrays(columns, fields=list(self.type), mask=pa.array(~whole)), ~whole & ~view.null)

    def _message_indexes(self, view: View, has: dict[int, Bools]) -> tuple[pa.Array, Bools]:
        """Read what follows the ids; a topic has a handful of paths, so each is read once."""
        widths = np.where(has[0], 1 + _WIDTHS[0], 1 + _WIDTHS[1])
        rows = np.flatnonzero((has[0] | has[1]) & (view.lengths > widths))
        broken, places = np.zeros(view.count, np.bool_), np.full(view.count, -1, np.int64)
        known: dict[bytes, int] = {}
        paths: list[list[int] | None] = []
        for row in rows:
            rest = memoryview(view.buffer)[view.starts[row] + widths[row] : view.ends[row]].tobytes()
            if rest not in known:
                known[rest] = len(paths)
                found = _indexes(rest)
                paths.append(None if isinstance(found, Fault) else found)
            places[row] = known[rest]
            broken[row] = paths[places[row]] is None
        return pa.array(paths, self.type.field("message_indexes").type).take(pa.array(places, mask=places < 0)), broken


def _indexes(data: bytes) -> list[int] | Fault:
    """Read a count and that many indexes; a count of 0 is short for the first message type."""
    numbers, at = [], 0
    while at < len(data):
        begin, number, shift = at, 0, 0
        while True:
            if at == len(data):
                return Fault("truncated", "the bytes end inside a message index", byte=begin)
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift == 35:
                return Fault("varint_too_long", "a message index goes on after its fifth byte", byte=begin)
        if number >> 32:
            return Fault("varint_lost_bits", "a message index has more than 32 bits", byte=begin)
        numbers.append(number >> 1 ^ -(number & 1))
        if len(numbers) == numbers[0] + 1:
            break
        if numbers[0] < 0:
            return Fault("negative_count", f"the number of message indexes is {numbers[0]}", byte=0)
    if len(numbers) != numbers[0] + 1:
        return Fault("truncated", f"{numbers[0]} message indexes announced and {len(numbers) - 1} there", byte=at)
    if at < len(data):
        return Fault("trailing_bytes", f"{counted(len(data) - at, 'byte')} after the message indexes", byte=at)
    return numbers[1:] or [0]


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
