"""Times as text with an offset, as in CloudEvents.

Source: RFC 3339, section 5.6. The offset is required: without it, the text does not specify a point in time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.conventions.readers.column import Bools, present_rows
from letterhead.errors import ErrorDetail

__all__ = ["Rfc3339Reader"]

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Units of the result, and the number of decimal digits of each."""

_SECONDS_OF_400_YEARS = 146_097 * 86_400

_FORM = (
    r"(?P<date>[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))[Tt ](?P<time>(?:[01][0-9]|2[0-3]):[0-5][0-9]"
    r":[0-5][0-9])(?P<fraction>(?:\.[0-9]+)?)(?P<offset>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


class Rfc3339Reader(NamedTuple):
    """Read RFC 3339 into timestamps of a unit: ``s``, ``ms``, ``us`` or ``ns``."""

    unit: str

    @property
    def name(self) -> str:
        """The format in errors."""
        return "rfc3339"

    @property
    def type(self) -> pa.DataType:
        """Type of the result."""
        return pa.timestamp(self.unit, "UTC")

    def find_error(self, data: bytes) -> ErrorDetail | None:
        """Return the error of one value, or None."""
        match = re.fullmatch(_FORM.encode(), data)
        if match is None:
            message = "the text is not a time with an offset, such as 2026-01-31T09:00:00Z"
            return ErrorDetail("bad_text", message, byte_offset=0)
        date, shift = match["date"].decode(), 0
        if date.startswith("0000"):
            # Python has no year 0; the calendar repeats after 400 years.
            date, shift = f"0400{date[4:]}", _SECONDS_OF_400_YEARS
        try:
            moment = datetime.fromisoformat(f"{date}T{match['time'].decode()}").replace(tzinfo=UTC)
        except ValueError:
            return ErrorDetail("bad_text", "the date does not exist", byte_offset=0)
        offset = match["offset"].decode()
        seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1) - shift
        if offset not in "Zz":
            seconds -= int(offset[0] + "1") * (int(offset[1:3]) * 3600 + int(offset[4:]) * 60)
        digits = match["fraction"].decode()[1 : 1 + self._digits]
        first, last = self._range
        if first <= (seconds, int(digits.ljust(self._digits, "0") or "0")) <= last:
            return None
        return ErrorDetail("out_of_range", f"the time does not fit 64 bits of {self.unit}", byte_offset=0)

    def read(self, column: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column."""
        matches = pc.extract_regex(column, rf"\A{_FORM}\z")
        part = {
            name: pc.struct_field(matches, name).cast(pa.string()) for name in ("date", "time", "fraction", "offset")
        }
        moment = pc.binary_join_element_wise(part["date"], part["time"], "T")
        seconds = pc.strptime(moment, format="%Y-%m-%dT%H:%M:%S", unit="s", error_is_null=True).cast(pa.int64())
        # Arrow's parser turns February 30 into a day in March: such a day differs when it is formatted again.
        again = pc.strftime(seconds.cast(pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
        seconds = pc.if_else(pc.equal(again, moment), seconds, None)
        hours, minutes = (pc.utf8_slice_codeunits(part["offset"], at, at + 2) for at in (1, 4))
        ahead = pc.add(_number(hours, 3600), _number(minutes, 60))
        sign = pc.if_else(pc.equal(pc.utf8_slice_codeunits(part["offset"], 0, 1), "-"), -1, 1)
        seconds = pc.subtract(seconds, pc.multiply(ahead, sign))
        digits = pc.utf8_slice_codeunits(part["fraction"], 1, 1 + self._digits)
        fraction = _number(pc.utf8_rpad(digits, self._digits, "0"), 1)
        scale = 10**self._digits
        (first, first_fraction), (last, last_fraction) = self._range
        after = pc.or_(pc.greater(seconds, first), _both(seconds, first, pc.greater_equal(fraction, first_fraction)))
        before = pc.or_(pc.less(seconds, last), _both(seconds, last, pc.less_equal(fraction, last_fraction)))
        # The product may wrap around in the first second, and the sum wraps it back.
        ticks = pc.add(pc.multiply(pc.if_else(pc.and_(after, before), seconds, None), scale), fraction)
        bad = ~present_rows(ticks) & present_rows(column)
        return ticks.cast(self.type), bad

    @property
    def _range(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The seconds and the fractions, in the unit, of the first and the last time that fit 64 bits."""
        scale = int(10**self._digits)
        return divmod(-1 << 63, scale), divmod((1 << 63) - 1, scale)

    @property
    def _digits(self) -> int:
        return _DIGITS[self.unit]


def _both(seconds: pa.Int64Array, second: int, condition: pa.BooleanArray) -> pa.BooleanArray:
    return pc.and_(pc.equal(seconds, second), condition)


def _number(text: pa.StringArray, times: int) -> pa.Int64Array:
    """Convert digits to numbers; empty text is zero."""
    some = pc.if_else(pc.equal(text, ""), "0", text)
    return pc.multiply(some.cast(pa.int64()), times)
