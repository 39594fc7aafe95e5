"""Types of what the operations for one message give. Read by type checkers, and run once to see that the values agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import letterhead as lh
from letterhead.errors import ErrorDetail
from letterhead.headers import HeaderKey, HeaderValue
from letterhead.results import Inspection, Label

pairs = [("tenant", "acme"), ("retry", "3")]
a_name = str("kafka")  # noqa: UP018  # no literal: only known when the program runs

# A block is bytes, whatever the headers; a message format has messages without any bytes.
block = assert_type(lh.encode(pairs, "kafka"), bytes)
assert type(block) is bytes
assert type(assert_type(lh.encode(None, "iggy"), bytes)) is bytes
stored = assert_type(lh.encode({"headers": pairs, "payload": b"42"}, "streams"), bytes | None)
assert assert_type(lh.encode({"headers": [], "payload": None}, "streams", on_loss="drop"), bytes | None) is None
assert type(assert_type(lh.encode(pairs, a_name), bytes | None)) is bytes
assert stored is not None

# The name says whether there are headers or a message.
headers = assert_type(lh.decode(block, "kafka"), lh.Headers)
assert type(headers) is lh.Headers
assert type(assert_type(lh.decode(stored, "streams"), lh.Message)) is lh.Message
assert type(assert_type(lh.decode(block, a_name), lh.Headers | lh.Message)) is lh.Headers

# Headers by key, by position, and cut.
assert assert_type(headers["tenant"], HeaderValue) == b"acme"
assert type(assert_type(headers[0], lh.Header)) is lh.Header
assert type(assert_type(headers[:1], lh.Headers)) is lh.Headers
assert assert_type(headers.get("none"), HeaderValue) is None
assert assert_type(headers.get("none", 0), HeaderValue | int) == 0
assert assert_type(headers["retry"], HeaderValue) == b"3"
assert assert_type(headers.get_all("retry"), list[HeaderValue]) == [b"3"]
assert assert_type(headers.keys(), list[HeaderKey]) == ["tenant", "retry"]
assert assert_type(headers.items(), list[tuple[HeaderKey, HeaderValue]])[0] == ("tenant", b"acme")
assert assert_type(list(headers), list[lh.Header])[0].value == b"acme"
assert assert_type(headers.remove("retry"), int) == 1
assert assert_type(headers.add("n", lh.Int32(3)), lh.Headers) is headers
assert type(assert_type(headers.unique(), lh.Headers)) is lh.Headers
assert type(assert_type(headers.frozen(), lh.FrozenHeaders)) is lh.FrozenHeaders
key, value = assert_type(headers[0], lh.Header)
assert (assert_type(key, HeaderKey), assert_type(value, HeaderValue)) == ("tenant", b"acme")

# Fields of a message format are what the format says, and what follows one is still checked.
record = lh.decode(stored, "streams")
assert assert_type(record.payload, Any) == b"42"
assert type(assert_type(record._replace(payload=b"43"), lh.Message)) is lh.Message

# A batch gives messages.
batch = assert_type(lh.batch([{"value": b"v"}]), bytes)
messages = assert_type(lh.messages(batch, "record-batch"), Iterator[lh.Message])
assert [message.value for message in messages] == [b"v"]

# What is reported is a pair; a block as target is always bytes.
assert type(assert_type(lh.convert(block, "kafka", target="iggy", types="binary"), bytes)) is bytes
assert type(assert_type(lh.convert(block, "kafka", target="streams", on_loss="drop"), bytes | None)) is bytes
converted = assert_type(lh.convert(block, "kafka", target="iggy", types="binary", on_loss="report"), lh.Converted)
data, losses = converted
assert type(assert_type(data, bytes | None)) is bytes
assert type(assert_type(losses, lh.Losses)) is lh.Losses
assert assert_type(losses.types, dict[HeaderKey, str | list[str]]) == {}

# What is asked for by name, and what is wrong.
assert assert_type(lh.select(block, {"tenant": "string"}), dict[str, Any]) == {"tenant": "acme"}
assert assert_type(lh.validate(block, "kafka"), list[lh.DecodeError]) == []
inspection = assert_type(lh.inspect(block, "kafka"), Inspection)
assert type(assert_type(inspection["labels"], list[Label])[0]) is Label
assert assert_type(inspection["errors"], list[ErrorDetail]) == []

# Errors say where.
try:
    lh.decode(b"\x02\x01\x00", "kafka")
except lh.HeaderError as error:
    assert assert_type(error.code, str) == "negative_length"
    assert assert_type(error.byte_offset, int | None) == 1
    assert assert_type(error.header, int | None) == 0
