"""Times as text with an offset, as in CloudEvents.

Source: RFC 3339, section 5.6. The offset is required: without it, the text does not specify a point in time. The core reads
``timestamp:iso`` into microseconds; digits of nanoseconds are added here.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.conventions.readers.column import Bools, find_value_error, present_rows, read_values
from letterhead.errors import ErrorDetail

__all__ = ["Rfc3339Reader"]

_TYPE = "timestamp:iso"

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Result units of at least a microsecond, with their microseconds."""

_NANOS = r"\.[0-9]{6}(?P<nanos>[0-9]{1,3})"
"""Up to three digits of nanoseconds, after the digits of microseconds."""


class Rfc3339Reader(NamedTuple):
    """Reader of RFC 3339 into timestamps of a unit: ``s``, ``ms``, ``us`` or ``ns``."""

    unit: str

    @property
    def name(self) -> str:
        """Format name in errors."""
        return "rfc3339"

    @property
    def type(self) -> pa.DataType:
        """Type of the result."""
        return pa.timestamp(self.unit, "UTC")

    def find_error(self, data: bytes) -> ErrorDetail | None:
        """Return the error of one value, or None."""
        error = find_value_error(data, _TYPE)
        if error is not None or self.read(pa.array([data], pa.binary()))[0].null_count == 0:
            return error
        return ErrorDetail("out_of_range", f"the time does not fit 64 bits of {self.unit}", byte_offset=0)

    def read(self, column: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column."""
        micros = read_values(column, _TYPE)[_TYPE].cast(pa.int64())
        ticks = _nanoseconds(micros, column) if self.unit == "ns" else _quotient(micros, _MICROS[self.unit])
        bad = ~present_rows(ticks) & present_rows(column)
        return ticks.cast(self.type), bad


def _quotient(numbers: pa.Int64Array, divisor: int) -> pa.Int64Array:
    """Return the quotients, rounded down; Arrow rounds towards zero."""
    quotients = pc.divide(numbers, divisor)
    is_below = pc.less(numbers, pc.multiply(quotients, divisor))
    return pc.subtract(quotients, is_below.cast(pa.int64()))


def _nanoseconds(micros: pa.Int64Array, column: pa.BinaryArray) -> pa.Int64Array:
    """Return microseconds with the digits of nanoseconds in the text; null for times that do not fit 64 bits."""
    digits = pc.struct_field(pc.extract_regex(column, _NANOS), "nanos").cast(pa.string())
    nanos = pc.fill_null(pc.utf8_rpad(digits, 3, "0").cast(pa.int64()), 0)
    (first, first_nanos), (last, last_nanos) = divmod(-1 << 63, 1000), divmod((1 << 63) - 1, 1000)
    after = pc.or_(pc.greater(micros, first), pc.and_(pc.equal(micros, first), pc.greater_equal(nanos, first_nanos)))
    before = pc.or_(pc.less(micros, last), pc.and_(pc.equal(micros, last), pc.less_equal(nanos, last_nanos)))
    # The product may wrap around in the first microsecond, and the sum wraps it back.
    return pc.add(pc.multiply(pc.if_else(pc.and_(after, before), micros, None), 1000), nanos)
