"""Types of the records of ``letterhead.kip82``. Read by type checkers, and run once to see that the values agree."""

from __future__ import annotations

import json
from typing import Any, assert_type

from letterhead.kip82 import (
    Consumer,
    ConsumerRecord,
    FetchRequest,
    FetchResponse,
    HeaderSerializer,
    MessageWrapper,
    ProducerInterceptor,
    ProducerRecord,
    Serializer,
)
from letterhead.kip82.requests import FetchResult, TopicPartitions

text = Serializer(str.encode, bytes.decode)
as_json: Serializer[dict[str, int]] = Serializer(lambda value: json.dumps(value).encode(), json.loads)

# Without serializers, keys and values are bytes.
plain = assert_type(ProducerRecord("t", b"k", b"v"), ProducerRecord[bytes, bytes])
assert assert_type(plain.value, bytes | None) == b"v"
assert assert_type(ProducerRecord("t"), ProducerRecord[bytes, bytes]).value is None

# Serializers say what they are otherwise, and are kept on the way.
typed = assert_type(
    ProducerRecord("t", "k", {"n": 1}, key_serializer=text, value_serializer=as_json),
    ProducerRecord[str, dict[str, int]],
)
data = assert_type(typed.to_bytes(), bytes)
[read] = ConsumerRecord.read(data, topic="t", key_serializer=text, value_serializer=as_json)
assert type(assert_type(read, ConsumerRecord[str, dict[str, int]])) is ConsumerRecord
assert assert_type(read.key, str | None) == "k"
assert assert_type(read.with_header("h", "x").value, dict[str, int] | None) == {"n": 1}
assert assert_type(read.forward("u"), ProducerRecord[str, dict[str, int]]).serialized_key() == b"k"
[unread] = ConsumerRecord.read(data, topic="t")
assert assert_type(unread.value, bytes | None) == b'{"n": 1}'

# A wrapper brings its value, and the serializer of it.
wrapper = assert_type(MessageWrapper({5: b"x"}, "v", serializer=text), MessageWrapper[str])
wrapped = ProducerRecord("t", b"k", wrapper, header_format="wrapper")
assert assert_type(wrapped, ProducerRecord[bytes, str]).value == "v"
assert assert_type(wrapped.wrapper, MessageWrapper[str] | None) == wrapper
again = MessageWrapper.from_bytes(wrapper.to_bytes(), serializer=text)
assert assert_type(again, MessageWrapper[str]).value == "v"
assert (
    assert_type(ProducerRecord("t", b"k", MessageWrapper({}, None), header_format="wrapper").value, bytes | None)
    is None
)

# A serializer of headers serves for keys and values, too.
assert ProducerRecord("t", 3, key_serializer=HeaderSerializer.for_type("long")).serialized_key() == bytes(7) + b"\3"


class Upper(ProducerInterceptor):
    """Accept the records of a chain, whatever their keys and values."""

    def on_send(self, record: ProducerRecord[Any, str]) -> ProducerRecord[Any, str]:
        assert record.value is not None
        return record.replace(value=record.value.upper())


assert Upper().on_send(ProducerRecord("t", value="v", value_serializer=text)).value == "V"


def fetch(request: FetchRequest) -> FetchResponse:
    """Answer with the record that was written above."""
    return FetchResponse(version=request.version, topics=(TopicPartitions("t", (FetchResult(0, 0, 1, data),)),))


consumer = assert_type(Consumer(fetch, "t", key_serializer=text), Consumer[str, bytes])
assert [polled.key for polled in assert_type(consumer.poll(), list[ConsumerRecord[str, bytes]])] == ["k"]
