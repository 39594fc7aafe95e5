"""Types of what the verbs for columns take and give: any Arrow column in, and out what the library of the column has."""

from __future__ import annotations

from typing import Any, assert_type

import nanoarrow as na

import letterhead as lh
from letterhead import arrow as lha
from letterhead import fields as columns_module
from letterhead.scan import Scan


class Shared:
    """An array of no library in particular: it has what the protocol asks for."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Hand the array over."""
        given: tuple[object, object] = self._array.__arrow_c_array__()
        return given


block = lh.encode([("tenant", "acme"), ("route", "a")], "kafka")
cells = Shared(na.c_array([block, None], na.binary()))

# No type can be said: it is that of the library whose column was given.
decoded = assert_type(lha.decode(cells, "kafka"), Any)
assert len(decoded) == 2
wanted: columns_module.Columns = {"tenant": "string", "route": "array<string>", "n": lh.field("int64", key="retry")}
assert len(assert_type(lha.select(cells, "kafka", wanted, errors="column"), Any)) == 2
assert len(assert_type(lha.encode(decoded, "kafka"), Any)) == 2
assert len(assert_type(lha.convert(cells, "kafka", target="iggy", types="binary"), Any)) == 2
assert len(assert_type(lha.validate(cells, "kafka"), Any)) == 2
assert assert_type(lha.scan(cells, "kafka"), Scan).statistics.rows == 2

assert assert_type(lh.field("int64", key="retry", repeat="first"), lh.Field).type == "int64"
assert assert_type(lh.field("array<string>"), lh.Field).repeat == "all"
