"""W3C's ``traceparent``.

Source: W3C, Trace Context, sections 3.2.2 and 3.2.2.1, and 4.3 for future versions::

    version "-" trace-id "-" parent-id "-" trace-flags      2, 32, 16 and 2 hexadecimal digits in lower case
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead.conventions.readers.column import Bools, present_rows
from letterhead.conventions.trace_links import PARENT_FORM, find_parent_error
from letterhead.errors import ErrorDetail

__all__ = ["TraceparentReader"]

_FIELDS = ("version", "trace_id", "parent_id", "flags")


class TraceparentReader:
    """Reader of ``traceparent`` into a struct."""

    name = "traceparent"
    type = pa.struct([*((part, pa.string()) for part in _FIELDS), ("sampled", pa.bool_())])

    def find_error(self, data: bytes) -> ErrorDetail | None:
        """Return the error of one value, or None."""
        match = re.fullmatch(PARENT_FORM.encode(), data, re.DOTALL)
        if match is None:
            return _bad("the text is not of the form version-traceid-parentid-flags", 0)
        error = find_parent_error(match)
        return None if error is None else _bad(*error)

    def read(self, column: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column."""
        matches = pc.extract_regex(column, rf"(?s)\A{PARENT_FORM}\z")
        # The matched parts are ASCII, except for the rest after the flags, which is not returned.
        part = {name: pc.struct_field(matches, name) for name in (*_FIELDS, "more")}
        version = part["version"]
        unknown = pc.equal(version, b"ff")
        longer = pc.and_(pc.equal(version, b"00"), pc.not_equal(part["more"], b""))
        zeros = pc.or_(pc.equal(part["trace_id"], b"0" * 32), pc.equal(part["parent_id"], b"0" * 16))
        broken = pc.or_(pc.is_null(matches), pc.or_(unknown, pc.or_(longer, zeros)))
        # Comparisons of unmatched rows are null.
        bad = np.asarray(pc.fill_null(broken, True).to_numpy(zero_copy_only=False), np.bool_)
        bad &= present_rows(column)
        whole = pc.and_(pc.is_valid(column), pa.array(~bad))
        texts = [pc.if_else(whole, part[name], None).cast(pa.string()) for name in _FIELDS]
        sampled = pc.match_substring_regex(texts[-1], "[13579bdf]$")
        return pa.StructArray.from_arrays([*texts, sampled], fields=list(self.type), mask=pc.invert(whole)), bad


def _bad(message: str, byte: int) -> ErrorDetail:
    return ErrorDetail("bad_text", message, byte_offset=byte)
