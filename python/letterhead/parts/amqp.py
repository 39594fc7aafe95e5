"""Columns of AMQP primitives.

Nothing here loops over rows: values of one code are read together, by one gather from the bytes of the column. What is
wrong with a row that could not be read, :func:`letterhead.amqp.fault` says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import amqp
from letterhead.errors import Fault
from letterhead.parts.policy import Bools
from letterhead.parts.view import View, masked, strings, uuid_texts, validity

__all__ = ["AmqpReader"]

_NULL = 0x40

_FURTHEST = ((1 << 63) - 1) // 1000
"""The last millisecond that 64 bits of microseconds hold."""

_NUMPY: dict[str, Any] = {
    "bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "float32": np.float32, "float64": np.float64,
    "timestamp_ms": np.int64, "char": np.uint32, "uuid": np.dtype("V16"),
}  # fmt: skip

_ARROW = {"timestamp_ms": pa.timestamp("ms", "UTC"), "uuid": pa.string(), "char": pa.string(), "bool": pa.bool_(),
          "float32": pa.float32(), "float64": pa.float64(), "string": pa.string(), "binary": pa.binary()}  # fmt: skip

_SPARK = {
    "uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "uint64": pa.decimal128(20, 0),
    "timestamp_ms": pa.timestamp("us", "UTC"),
}  # fmt: skip
"""Spark has no unsigned integers, and its times are microseconds."""


_WANTED = {
    asked: [(code, made) for code, made in amqp.CONSTRUCTORS.items() if made.type in types]
    for asked, types in amqp.READ_AS.items()
}


class AmqpReader(NamedTuple):
    """Read AMQP primitives of one type.

    Attributes
    ----------
    asked : str
        One of :data:`letterhead.amqp.READ_AS`.
    dialect : {"arrow", "spark"}
        Types of the result.
    """

    asked: str
    dialect: str = "arrow"

    @property
    def name(self) -> str:
        """What errors name as the format."""
        return amqp.FORMAT

    @property
    def type(self) -> pa.DataType:
        """What the values become."""
        spark = _SPARK.get(self.asked) if self.dialect == "spark" else None
        return spark or _ARROW.get(self.asked) or pa.from_numpy_dtype(_NUMPY[self.asked])

    def fault(self, data: bytes) -> Fault | None:
        """Say what is wrong with one value."""
        return amqp.fault(data, self.asked, furthest=self._furthest)

    def read(self, cells: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column."""
        view = View(cells)
        wanted = _WANTED[self.asked]
        read = _payloads if self.asked in ("string", "binary") else _numbers
        values, good = read(self, view, wanted)
        null = view.null | ((view.firsts == _NULL) & (view.lengths == 1))
        return values, ~(good | null)

    @property
    def _furthest(self) -> int | None:
        return _FURTHEST if self.asked == "timestamp_ms" and self.dialect == "spark" else None


# Numbers ---------------------------------------------------------------------------------------------------------------


def _numbers(reader: AmqpReader, view: View, wanted: list[tuple[int, amqp.Constructor]]) -> tuple[pa.Array, Bools]:
    lengths, constants = _BY_CODE[reader.asked]
    # An empty cell has length 0, which no code has.
    if view.first is None:
        good = (lengths.take(view.firsts) == view.lengths) & ~view.null
        numbers = constants.take(view.firsts)
    else:
        good = (lengths[view.first] == view.lengths) & ~view.null
        numbers = np.full(view.count, constants[view.first])
    for code, made in wanted:
        rows = view.rows(code, good) if made.layout else None
        if rows is None:
            continue
        bits = view.gather(rows, made.width)
        numbers[rows] = _from_bits(bits, made)
        within = _in_range(reader, bits, numbers[rows])
        if within is not None:
            good[rows] = within
    return _as_arrow(reader, numbers, good), good


def _by_code(asked: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Make tables of all 256 codes: the bytes of a cell that begins with it, and the value of one that is a value."""
    lengths = np.full(256, -1, np.int32)
    constants = np.zeros(256, _NUMPY[asked])
    for code, made in _WANTED[asked]:
        lengths[code] = 1 + made.width
        if not made.layout:
            constants[code] = made.value
    return lengths, constants


_BY_CODE = {asked: _by_code(asked) for asked in _NUMPY}


def _from_bits(bits: npt.NDArray[Any], made: amqp.Constructor) -> npt.NDArray[Any]:
    if made.width == 16:
        return bits
    # Bits stay bits: as a float, a NaN might lose its payload on the way.
    return bits.astype(bits.dtype.newbyteorder("=")).view(np.dtype("=" + made.layout[1:]))


def _in_range(reader: AmqpReader, bits: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> Bools | None:
    """Say which numbers are values of the type; ``None`` where all are."""
    if reader.asked == "bool":
        return bits <= 1
    if reader.asked == "char":
        return (numbers < 0xD800) | ((numbers > 0xDFFF) & (numbers <= 0x10FFFF))
    if reader._furthest is not None:
        return (numbers >= -_FURTHEST) & (numbers <= _FURTHEST)
    return None


def _as_arrow(reader: AmqpReader, numbers: npt.NDArray[Any], good: Bools) -> pa.Array:
    if reader.asked == "uuid":
        return strings(uuid_texts(numbers), np.full(len(numbers), 36), good)
    if reader.asked == "char":
        points = np.where(good, numbers, 0)
        text = points.astype("<u4").tobytes().decode("utf-32-le").encode()
        widths = 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)
        return strings(np.frombuffer(text, np.uint8), widths, good)
    if reader.asked == "timestamp_ms":
        numbers = numbers if good.all() else np.where(good, numbers, 0)
        return masked(numbers, good).cast(_ARROW["timestamp_ms"]).cast(reader.type)
    return masked(numbers, good).cast(reader.type)


# Payloads --------------------------------------------------------------------------------------------------------------


def _payloads(reader: AmqpReader, view: View, wanted: list[tuple[int, amqp.Constructor]]) -> tuple[pa.Array, Bools]:
    good = np.zeros(view.count, np.bool_)
    begins = view.ends.copy()
    # Cells that have room for a length of 1 byte, and of 4.
    among = {length: (view.lengths > length) & ~view.null for length in (1, 4)}
    for code, made in wanted:
        rows = view.rows(code, among[made.length])
        if rows is None:
            continue
        begins[rows] = view.starts[rows] + (1 + made.length)
        good[rows] = view.gather(rows, made.length) == view.lengths[rows] - (1 + made.length)
    payloads = _cut(view, begins, good)
    if reader.asked == "binary":
        return payloads, good
    bytes = np.frombuffer(payloads.buffers()[2] or b"", np.uint8)
    if bytes.max(initial=0) <= 0x7F:
        # ASCII is UTF-8, and one look at all bytes is much less work than Arrow's at each value.
        return pa.Array.from_buffers(pa.string(), len(payloads), payloads.buffers()), good
    try:
        return payloads.cast(pa.string()), good
    except pa.ArrowInvalid:
        good &= _utf8_rows(payloads)
        return _cut(view, begins, good).cast(pa.string()), good


def _cut(view: View, begins: npt.NDArray[np.int32], good: Bools) -> pa.BinaryArray:
    """Give what each cell has from a byte on."""
    if not view.count:
        return pa.array([], pa.binary())
    begins = begins if good.all() else np.where(good, begins, view.ends)
    # Every cell becomes two, of what is left out and of what is taken; Arrow then copies the second ones at once.
    bounds = np.empty(2 * view.count + 1, np.int32)
    bounds[0:-1:2], bounds[1::2], bounds[-1] = view.starts, begins, view.ends[-1]
    halves = pa.Array.from_buffers(pa.binary(), 2 * view.count, [None, pa.py_buffer(bounds), view.buffer])
    taken = pc.take(halves, pa.array(np.arange(1, 2 * view.count, 2, dtype=np.int32)), boundscheck=False)
    return pa.Array.from_buffers(pa.binary(), view.count, [validity(good), *taken.buffers()[1:]])


def _utf8_rows(payloads: pa.BinaryArray) -> Bools:
    """Say which cells are UTF-8; those of ASCII alone, and there are most, are not looked at one by one."""
    view = View(payloads)
    beyond = np.concatenate([[0], np.cumsum(np.frombuffer(view.buffer, np.uint8) > 0x7F)])
    whole = np.ones(view.count, np.bool_)
    for row in np.flatnonzero(beyond[view.ends] > beyond[view.starts]):
        try:
            payloads[int(row)].as_buffer().to_pybytes().decode()
        except UnicodeDecodeError:
            whole[row] = False
    return whole
