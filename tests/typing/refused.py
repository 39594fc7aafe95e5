"""What a type checker refuses. Each line has a comment that is an error itself where there is nothing to refuse."""

# pyright: reportUnnecessaryTypeIgnoreComment=true
from __future__ import annotations

import letterhead as lh
from letterhead import arrow as lha
from letterhead.kip82 import ConsumerRecord, MessageWrapper, ProducerRecord, Serializer


def refused(headers: lh.Headers, data: bytes) -> None:
    """Never called: a mistake here is one of types."""
    lh.decode("text", "kafka")  # type: ignore[call-overload]
    lh.decode(data, "streams")["tenant"]  # type: ignore[index]
    lh.encode(3, "kafka")  # type: ignore[call-overload]
    lh.encode([("k", 3)], "kafka")  # type: ignore[list-item]
    lh.encode(headers, "kafka", on_loss="report")  # type: ignore[call-overload]
    lh.convert(data, "kafka", target="iggy", on_loss="ignore")  # type: ignore[call-overload]
    lh.convert(data, "iggy")  # type: ignore[call-overload]
    lh.open("orders", lst=2)  # type: ignore[call-arg]
    lh.open("orders", last="2")  # type: ignore[arg-type]
    lh.batch([], codec="brotli")  # type: ignore[arg-type]
    lh.field("int64", repeat="any")  # type: ignore[arg-type]
    headers.add("k", 3)  # type: ignore[arg-type]
    headers.get(None)  # type: ignore[arg-type]
    headers["k"] = b"v"  # type: ignore[index]
    lh.Int32("3")  # type: ignore[arg-type]
    lha.decode([data], "kafka")  # type: ignore[type-var]
    lha.decode(lha, "kafka")  # type: ignore[type-var]
    lha.validate(lha.validate, "kafka", errors="skip")  # type: ignore[call-arg, type-var]
    text = Serializer(str.encode, bytes.decode)
    ProducerRecord("t", value=3, value_serializer=text)  # type: ignore[misc]
    ProducerRecord("t", header_format="text")  # type: ignore[call-overload]
    ConsumerRecord.read(data, topic="t", errors="column")  # type: ignore[arg-type]
    MessageWrapper({}, 3, serializer=text)  # type: ignore[misc]
