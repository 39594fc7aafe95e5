"""Names that no topic of Kafka can have are errors before a broker is asked."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh

ROWS = pa.table({"value": [b"v"]})
CALLS: dict[str, Any] = {
    "read": lambda topic: lh.read.topic(topic, "unreachable.invalid:9092"),
    "write": lambda topic: lh.write.topic(ROWS, topic, "unreachable.invalid:9092"),
    "open": lambda topic: lh.open(f"kafka://unreachable.invalid:9092/{topic}"),
    "copy": lambda topic: lh.copy(ROWS, f"kafka://unreachable.invalid:9092/{topic}"),
}


@pytest.mark.parametrize("topic", ["a b", "a" * 250, "käse", "a:1", ".."])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_invalid_topic_name_is_rejected(call: Any, topic: str) -> None:
    with pytest.raises(ValueError, match="must have 1 to 249 letters, digits, dots, underscores and hyphens"):
        call(topic)


@pytest.mark.parametrize("call", [CALLS["read"], CALLS["write"]], ids=["read", "write"])
def test_swapped_broker_and_topic_are_told_apart(call: Any) -> None:
    with pytest.raises(ValueError, match="the topic precedes the brokers, as in topic, bootstrap_servers"):
        call("localhost:9092")


@pytest.mark.parametrize("topic", [None, 5])
def test_topic_that_is_no_text_is_rejected(topic: Any) -> None:
    with pytest.raises(TypeError, match=f"topic must be str, not {type(topic).__name__}"):
        lh.read.topic(topic, "unreachable.invalid:9092")
