"""Columns that are requested by a variable: checkers infer a wider type for it than for an argument."""

from __future__ import annotations

from typing import Any, assert_type

import pyarrow as pa

import letterhead as lh
from letterhead import arrow as lha

columns = {
    "tenant": "string",
    "amount_cents": "bigint",
    "route": "array<string>",
    "event": lh.field("string", key="ce_type"),
}
fields = {"tenant": lh.field("string"), "retry": lh.field("int32", repeat="first")}
arrow_types = {"tenant": pa.string(), "retry": pa.int32()}
several = {"tenant": "string", "retry": pa.int32(), "event": lh.field(pa.string(), key="ce_type")}

data = lh.encode([("tenant", "acme")], "kafka")
assert assert_type(lh.select(data, columns), dict[str, Any]) == {
    "tenant": "acme", "amount_cents": None, "route": [], "event": None,
}  # fmt: skip
assert lh.select(data, fields)["tenant"] == "acme"
assert lh.select(data, arrow_types)["tenant"] == "acme"
assert lh.select(data, several)["tenant"] == "acme"
assert len(lha.select(pa.array([data]), columns)) == 1
assert lh.read.segments("tests/samples/orders-0", headers=columns).schema.names[-1] == "event"
