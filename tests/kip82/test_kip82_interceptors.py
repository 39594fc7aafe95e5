"""Chains of interceptors, and the three interceptors of the package, with real bytes and logs."""

from __future__ import annotations

import dataclasses
import gzip
import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DecodeError, EncodeError, LogClosedError, RequestError
from letterhead.kip82 import (
    RESERVED,
    Audit,
    AuditEntry,
    AuditKeys,
    Consumer,
    ConsumerInterceptor,
    ConsumerInterceptors,
    ConsumerRecord,
    FetchResponse,
    Headers,
    HeaderSerializer,
    IntHeaders,
    MessageLog,
    Producer,
    ProduceRequest,
    ProduceResponse,
    ProducerInterceptor,
    ProducerInterceptors,
    ProducerRecord,
    RecordMetadata,
    Routing,
    Serializer,
    TopicPartition,
    TransactionIds,
)
from letterhead.kip82.header_formats import CODECS, MESSAGE_FORMATS, Codec, HeaderFormat
from letterhead.kip82.requests import FetchResult, TopicPartitions
from tests.helpers.log_samples import samples

HEADER_FORMATS: list[HeaderFormat] = ["typed", "int", "wrapper"]
every_header_format = pytest.mark.parametrize("header_format", HEADER_FORMATS)
KEY: dict[HeaderFormat, Any] = {"typed": "step", "int": 10_005, "wrapper": 10_005}


class Step(ProducerInterceptor, ConsumerInterceptor):
    """Adds a header on sending, and removes it on consuming; records its calls."""

    def __init__(self, key: Any, name: bytes) -> None:
        self.key, self.name = key, name
        self.calls: list[Any] = []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.get_headers().put(self.key, self.name)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self.calls.append((metadata, error))

    def on_consume(self, records: Sequence[ConsumerRecord]) -> Sequence[ConsumerRecord]:
        self.calls.extend(record.get_headers().get_all(self.key) for record in records)
        return [record.without_headers(self.key) for record in records]

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.calls.append(dict(offsets))

    def close(self) -> None:
        self.calls.append("closed")


class Broken(ProducerInterceptor, ConsumerInterceptor):
    """Changes the headers, and then fails."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.get_headers().remove("step")  # type: ignore[arg-type]
        raise RuntimeError("no")

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        raise RuntimeError("no")

    def on_consume(self, records: Sequence[ConsumerRecord]) -> Sequence[ConsumerRecord]:
        raise RuntimeError("no")

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        raise RuntimeError("no")

    def close(self) -> None:
        raise RuntimeError("no")


def consumed(*records: ProducerRecord) -> list[ConsumerRecord]:
    """Return the records that a consumer reads."""
    return [
        read
        for offset, record in enumerate(records)
        for read in ConsumerRecord.read(record.to_bytes(offset), topic=record.topic, header_format=record.header_format)
    ]


# Chains --------------------------------------------------------------------------------------------------------------


@every_header_format
def test_interceptors_run_in_order(header_format: HeaderFormat) -> None:
    first, second = Step(KEY[header_format], b"1"), Step(KEY[header_format], b"2")
    record = ProducerRecord("t", b"k", b"v", header_format=header_format)
    sent = ProducerInterceptors([first, second]).on_send(record)
    assert sent.get_headers().get_all(KEY[header_format]) == [b"1", b"2"]
    assert len(record.get_headers()) == 0, "the program's own record stays as it is"
    [seen] = ConsumerInterceptors([first, second]).on_consume(consumed(sent))
    assert (seen.value, len(seen.get_headers())) == (b"v", 0)
    assert (first.calls, second.calls) == ([[b"1", b"2"]], [[]])


def test_interceptors_handle_the_layout_wrapper() -> None:
    sent = ProducerInterceptors([Step(10_005, b"1")]).on_send(ProducerRecord("t", b"k", header_format="wrapper"))
    assert sent.wrapper is not None
    assert sent.wrapper.to_bytes().hex() == "0000000009000027150000000131ffffffff"
    assert consumed(sent)[0].tombstone is True


def test_all_interceptors_get_acknowledgements_commits_and_close() -> None:
    steps = [Step("a", b""), Step("b", b"")]
    metadata, failed = RecordMetadata("t", 0, 7, 5), OSError("full")
    producing, consuming = ProducerInterceptors(steps), ConsumerInterceptors(steps)
    producing.on_acknowledgement(metadata)
    producing.on_acknowledgement(None, failed)
    consuming.on_commit({TopicPartition("t", 0): 8})
    consuming.close()
    for step in steps:
        assert step.calls == [(metadata, None), (None, failed), {TopicPartition("t", 0): 8}, "closed"]


def test_errors_raise_adds_note_that_names_interceptor() -> None:
    with pytest.raises(RuntimeError, match="no") as caught:
        ProducerInterceptors([Broken()], errors="raise").on_send(ProducerRecord("t"))
    assert caught.value.__notes__ == ["in the interceptor Broken, on_send"]
    with pytest.raises(RuntimeError, match="no") as caught:
        ConsumerInterceptors([Broken()], errors="raise").on_consume(consumed(ProducerRecord("t")))
    assert caught.value.__notes__ == ["in the interceptor Broken, on_consume"]


def test_all_interceptors_are_called_after_one_failed() -> None:
    step = Step("a", b"")
    with pytest.raises(ExceptionGroup, match="interceptors failed in on_acknowledgement") as caught:
        ProducerInterceptors([Broken(), step, Broken()], errors="raise").on_acknowledgement(None, None)
    assert len(caught.value.exceptions) == 2
    assert step.calls == [(None, None)]


# Compared with ProducerInterceptors and ConsumerInterceptors of Kafka 4.3.1: each method logs what an interceptor throws,
# and the next one gets the last record that was returned.
def test_exception_is_logged_and_next_gets_last_good_record(caplog: pytest.LogCaptureFixture) -> None:
    chain = [Step("step", b"1"), Broken(), Step("step", b"2")]
    with caplog.at_level(logging.ERROR, "letterhead.kip82"):
        sent = ProducerInterceptors(chain).on_send(ProducerRecord("t", value=b"v"))
        assert sent.get_headers().get_all("step") == [b"1", b"2"]  # type: ignore[arg-type]
        seen = ConsumerInterceptors([Broken(), *chain]).on_consume(consumed(sent))
        assert [len(record.get_headers()) for record in seen] == [0]
        ProducerInterceptors(chain).on_acknowledgement(None)
        ConsumerInterceptors(chain).on_commit({})
        ConsumerInterceptors(chain).close()
    assert [record.message for record in caplog.records] == [
        "in the interceptor Broken, on_send: no",
        "in the interceptor Broken, on_consume: no",
        "in the interceptor Broken, on_consume: no",
        "in the interceptor Broken, on_acknowledgement: no",
        "in the interceptor Broken, on_commit: no",
        "in the interceptor Broken, close: no",
    ]
    assert all(record.exc_info for record in caplog.records)
    assert [step.calls for step in chain if isinstance(step, Step)] == [
        [[b"1", b"2"], (None, None), {}, "closed"],
        [[], (None, None), {}, "closed"],
    ]
    with pytest.raises(ValueError, match="unknown errors 'ignore'"):
        ProducerInterceptors([], errors="ignore")  # type: ignore[arg-type]


class Emptying(ConsumerInterceptor):
    """Empties the list of records, and then fails."""

    def on_consume(self, records: Any) -> Any:
        records.clear()
        raise RuntimeError("no")


def test_records_that_a_failed_interceptor_removed_are_kept() -> None:
    chain = ConsumerInterceptors([Emptying()])
    assert [record.value for record in chain.on_consume(consumed(ProducerRecord("t", value=b"v")))] == [b"v"]


class Required(Broken):
    """A required interceptor that fails."""

    required = True


def test_required_interceptor_stops_the_record() -> None:
    step = Step("a", b"")
    with pytest.raises(RuntimeError, match="no"):
        ProducerInterceptors([Required(), step]).on_send(ProducerRecord("t"))
    with pytest.raises(RuntimeError, match="no"):
        ConsumerInterceptors([Required(), step]).on_consume(consumed(ProducerRecord("t")))
    ProducerInterceptors([Required(), step]).on_acknowledgement(None)
    assert step.calls == [(None, None)]
    assert (Routing.required, Audit.required, TransactionIds.required) == (True, False, False)


class Forgetful(ProducerInterceptor, ConsumerInterceptor):
    """Returns None."""

    def on_send(self, record: ProducerRecord) -> Any:
        return None

    def on_consume(self, records: Sequence[ConsumerRecord]) -> Any:
        return [None for _ in records]


def test_interceptor_must_return_a_record() -> None:
    with pytest.raises(TypeError, match="on_send must return a ProducerRecord, not NoneType"):
        ProducerInterceptors([Forgetful()], errors="raise").on_send(ProducerRecord("t"))
    with pytest.raises(TypeError, match="on_consume must return ConsumerRecords, not NoneType"):
        ConsumerInterceptors([Forgetful()], errors="raise").on_consume(consumed(ProducerRecord("t")))


class Vendor(ProducerInterceptor):
    """Writes a key, inside or outside its range."""

    writes = RESERVED["vendor"]

    def __init__(self, key: int) -> None:
        self.key = key

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record.with_header(self.key, b"apm")


@pytest.mark.parametrize("header_format", ["int", "wrapper"])
def test_each_interceptor_may_write_only_its_range(header_format: HeaderFormat) -> None:
    mine = IntHeaders({1_000_000_001: b"mine"}, writes=RESERVED["in-house"])
    record = ProducerRecord("t", headers=mine, header_format=header_format)
    sent = ProducerInterceptors([Vendor(100_001)]).on_send(record)
    assert sent.get_headers().items() == [(1_000_000_001, b"mine"), (100_001, b"apm")]
    with pytest.raises(EncodeError, match=r"in-house"):
        sent.set_header(100_001, b"")
    with pytest.raises(EncodeError, match=r"100000 to 999999999 \(vendor\)") as caught:
        ProducerInterceptors([Vendor(7)], errors="raise").on_send(record)
    assert caught.value.code == "limit_exceeded"
    assert caught.value.__notes__ == ["in the interceptor Vendor, on_send"]


class Counted(ProducerInterceptor):
    """Counts the hops in a short."""

    def __init__(self, key: Any, type: str = "short") -> None:
        self.key = key
        self.serializers = {key: HeaderSerializer.for_type(type)}

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record.set_header(self.key, (record.get_header(self.key) or 0) + 1)
        return record


@every_header_format
def test_serializers_of_interceptors_apply_in_the_whole_chain(header_format: HeaderFormat) -> None:
    chain = ProducerInterceptors([Counted(KEY[header_format]), Counted(KEY[header_format])])
    sent = chain.on_send(ProducerRecord("t", value=b"v", header_format=header_format))
    assert sent.get_header(KEY[header_format]) == 2
    assert consumed(sent)[0].get_header(KEY[header_format]) == (2 if header_format == "typed" else b"\x00\x02")
    with pytest.raises(ValueError, match="two interceptors have different serializers for the key"):
        ProducerInterceptors([Counted(KEY[header_format]), Counted(KEY[header_format], "long")])


# Producer, consumer and log ------------------------------------------------------------------------------------------------

AS_JSON: Serializer[Any] = Serializer(lambda value: json.dumps(value).encode(), json.loads)


@every_header_format
def test_producer_and_consumer_call_their_interceptors(header_format: HeaderFormat, tmp_path: Path) -> None:
    sending, reading = Step(KEY[header_format], b"1"), Step(KEY[header_format], b"2")
    with MessageLog(tmp_path / "orders-0", header_format) as log:
        producer = Producer(log.produce, interceptors=[Broken(), sending])
        record = ProducerRecord("orders", b"k", b"v", timestamp=7, header_format=header_format)
        metadata = [producer.send(record) for _ in range(2)]
        assert metadata == [RecordMetadata("orders", 0, offset, 7) for offset in range(2)]
        assert sending.calls == [(place, None) for place in metadata]
        assert len(record.get_headers()) == 0
        consumer = Consumer(log.fetch, "orders", header_format=header_format, interceptors=[Broken(), reading])
        assert [(seen.offset, seen.value, len(seen.get_headers())) for seen in consumer.poll()] == [
            (0, b"v", 0),
            (1, b"v", 0),
        ]
        assert consumer.poll() == []
        assert reading.calls == [[b"1"], [b"1"]], "not called without records"
        consumer.commit()
        assert reading.calls[2:] == [{TopicPartition("orders", 0): 2}]
        for client, step in ((producer, sending), (consumer, reading)):
            client.close()
            client.close()
            assert (step.calls.count("closed"), step.calls[-1]) == (1, "closed")
    with pytest.raises(ValueError, match="the producer is closed"):
        producer.send(record)
    for use in (consumer.poll, consumer.commit):
        with pytest.raises(ValueError, match="the consumer is closed"):
            use()


class Seen(ProducerInterceptor, ConsumerInterceptor):
    """Records the values of records."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        self.values.append(record.value)
        return record

    def on_consume(self, records: Sequence[ConsumerRecord[Any, Any]]) -> Sequence[ConsumerRecord[Any, Any]]:
        self.values.extend(record.value for record in records)
        return records


def test_interceptors_get_deserialized_objects(tmp_path: Path) -> None:
    sent, read = Seen(), Seen()
    with MessageLog(tmp_path / "orders-0") as log:
        Producer(log.produce, interceptors=[sent]).send(
            ProducerRecord("orders", value={"n": 1}, value_serializer=AS_JSON)
        )
        [record] = Consumer(log.fetch, "orders", interceptors=[read], value_serializer=AS_JSON).poll()
        assert [message.value for message in log.scan()] == [b'{"n": 1}']
    assert (sent.values, read.values, record.value) == ([{"n": 1}], [{"n": 1}], {"n": 1})


# As KafkaProducer 4.3.1: for a record that was not sent the metadata has topic and partition, and the offset -1.
def test_failure_is_acknowledged_and_raised(tmp_path: Path) -> None:
    step = Step("step", b"1")
    with MessageLog(tmp_path / "orders-0", max_message_bytes=100) as log:
        producer = Producer(log.produce, interceptors=[step])
        for record, error in (
            (ProducerRecord("elsewhere", partition=3), RequestError),
            (ProducerRecord("orders", value=b"x" * 100, partition=0), RequestError),
            (ProducerRecord("orders", value=object(), value_serializer=AS_JSON), TypeError),
        ):
            with pytest.raises(error) as caught:
                producer.send(record)
            partition = -1 if record.partition is None else record.partition
            assert step.calls == [(RecordMetadata(record.topic, partition, -1), caught.value)]
            step.calls.clear()
        with pytest.raises(RuntimeError, match="no") as stopped:
            Producer(log.produce, interceptors=[step, Required()]).send(ProducerRecord("orders"))
        assert step.calls == [(RecordMetadata("orders", -1, -1), stopped.value)]
        assert log.next_offset == 0


def test_failed_acknowledgement_does_not_hide_record_error(tmp_path: Path) -> None:
    class Deaf(ProducerInterceptor):
        def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
            raise RuntimeError("no")

    with MessageLog(tmp_path / "orders-0") as log:
        chain = ProducerInterceptors([Deaf()], errors="raise")
        with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            Producer(log.produce, interceptors=chain).send(ProducerRecord("elsewhere"))


def test_producer_sends_to_the_topic_of_its_interceptors(tmp_path: Path) -> None:
    with MessageLog(tmp_path / "orders-0") as orders, MessageLog(tmp_path / "eu-0") as eu:
        logs = {log.topic: log for log in (orders, eu)}
        producer = Producer(
            lambda request: logs[request.topics[0].topic].produce(request),
            interceptors=[Routing("region", {"eu": "eu"}, default="orders")],
        )
        sent = [producer.send(ProducerRecord("orders", headers={"region": region})) for region in ("eu", "us")]
        assert [(place.topic, place.offset) for place in sent] == [("eu", 0), ("orders", 0)]


@every_header_format
@pytest.mark.parametrize("codec", CODECS)
def test_producer_compresses_its_messages(codec: Codec, header_format: HeaderFormat, tmp_path: Path) -> None:
    value, requests = b"v" * 1000, []
    with MessageLog(tmp_path / "orders-0", header_format) as log:

        def produce(request: ProduceRequest) -> ProduceResponse:
            requests.append(request)
            return log.produce(request)

        Producer(produce, codec=codec).send(ProducerRecord("orders", b"k", value, header_format=header_format))
        [(_, sent)] = requests[0].partitions()
        assert (len(sent.message_set) > len(value)) == (codec == "none")
        assert [record.value for record in Consumer(log.fetch, "orders", header_format=header_format).poll()] == [value]
        with pytest.raises(ValueError, match="unknown codec 'zip'"):
            Producer(produce, codec="zip")  # type: ignore[arg-type]


def test_consumer_continues_at_the_committed_offset(tmp_path: Path) -> None:
    offsets: dict[TopicPartition, int] = {}
    with MessageLog(tmp_path / "orders-0") as log:
        log.append([{"value": b"%d" % number} for number in range(5)])
        with Consumer(log.fetch, "orders", offsets=offsets, max_bytes=1) as consumer:
            assert [[record.value for record in consumer.poll()] for _ in range(3)] == [[b"0"], [b"1"], [b"2"]]
            consumer.commit()
            consumer.poll()
        again = Consumer(log.fetch, "orders", offsets=offsets)
        assert [record.value for record in again.poll()] == [b"3", b"4"]
        again.position = 1
        assert again.poll()[0].value == b"1"
        lost = Consumer(log.fetch, "orders", offsets={TopicPartition("orders", 0): 9})
        with pytest.raises(RequestError, match="OFFSET_OUT_OF_RANGE"):
            lost.poll()


def test_failed_required_interceptor_does_not_move_the_position(tmp_path: Path) -> None:
    with MessageLog(tmp_path / "orders-0") as log:
        log.append([{"value": b"v"}])
        consumer = Consumer(log.fetch, "orders", interceptors=[Required()])
        with pytest.raises(RuntimeError, match="no"):
            consumer.poll()
        assert consumer.position == 0


@every_header_format
def test_consumer_skips_set_messages_before_its_position(header_format: HeaderFormat) -> None:
    sent = [
        ProducerRecord("orders", b"k", b"%d" % number, header_format=header_format).to_bytes(number)
        for number in range(3)
    ]
    outer = lh.Message(offset=2, magic=2, attributes=1, value=gzip.compress(b"".join(sent)))
    data = lh.encode(outer, MESSAGE_FORMATS["typed"]) or b""
    answer = FetchResponse(version=4, topics=(TopicPartitions("orders", (FetchResult(0, 0, 3, data),)),))
    consumer = Consumer(
        lambda _: answer, "orders", header_format=header_format, offsets={TopicPartition("orders", 0): 1}
    )
    assert [(record.offset, record.value) for record in consumer.poll()] == [(1, b"1"), (2, b"2")]


def test_consumer_returns_the_records_before_a_damaged_message() -> None:
    data = bytearray(ProducerRecord("orders", value=b"v").to_bytes(0) + ProducerRecord("orders").to_bytes(1))
    data[-1] ^= 1
    answer = FetchResponse(version=4, topics=(TopicPartitions("orders", (FetchResult(0, 0, 2, bytes(data)),)),))
    consumer = Consumer(lambda _: answer, "orders")
    assert ([record.value for record in consumer.poll()], consumer.position) == ([b"v"], 1)
    damaged = FetchResult(0, 0, 2, bytes(data[len(data) // 2 :]))
    consumer = Consumer(
        lambda _: dataclasses.replace(answer, topics=(TopicPartitions("orders", (damaged,)),)), "orders"
    )
    with pytest.raises(DecodeError):
        consumer.poll()


@every_header_format
def test_log_calls_its_interceptors_on_append(header_format: HeaderFormat, tmp_path: Path) -> None:
    step = Step(KEY[header_format], b"1")
    log = MessageLog(tmp_path / "orders-0", header_format, interceptors=[Broken(), step])
    source = [
        ProducerRecord("orders", b"a", b"1", timestamp=7, header_format=header_format),
        {
            "key": b"b",
            "value": None,
            "headers": {KEY[header_format]: b"0" if header_format != "typed" else lh.Binary(b"0")},
        },
        lh.Message(key=b"c", value=b"3", timestamp=9, magic=1),
        {"key": b"d", "value": b"4", "magic": 0},
    ]
    assert log.append(source) == range(4)
    messages = list(log.scan())
    assert [message.key for message in messages] == [b"a", b"b", b"c", b"d"]
    headers = [IntHeaders(m.headers) if header_format != "typed" else Headers(m.headers) for m in messages]
    assert [block.get_all(KEY[header_format]) for block in headers] == [[b"1"], [b"0", b"1"], [b"1"], [b"1"]]  # type: ignore[arg-type]
    assert [message.timestamp for message in (messages[0], *messages[2:])] == [7, 9, -1]
    assert step.calls == [(RecordMetadata("orders", 0, m.offset, m.timestamp), None) for m in messages]
    # A request comes from a producer with interceptors of its own.
    Producer(log.produce).send(ProducerRecord("orders", b"e", header_format=header_format))
    assert len(step.calls) == 4
    log.close()
    log.close()
    assert step.calls[4:] == ["closed"]
    with pytest.raises(LogClosedError):
        log.append(source)


@every_header_format
@pytest.mark.parametrize(
    ("version", "codec"), [(0, "none"), (0, "gzip"), (1, "none"), (1, "lz4"), (2, "none"), (2, "snappy")]
)
def test_unchanging_interceptors_leave_log_bytes_unchanged(
    header_format: HeaderFormat, version: Any, codec: Codec, tmp_path: Path
) -> None:
    source = [*samples(40, header_format), {"key": b"k"}, {"key": b"k", "value": None, "headers": {}, "timestamp": 1}]
    source = [{**(message if isinstance(message, dict) else message._asdict()), "timestamp": 5} for message in source]
    options = {"message_format_version": version, "codec": codec, "on_loss": "drop"}
    for name, interceptors in (("plain-0", []), ("seen-0", [Seen()])):
        with MessageLog(tmp_path / name, header_format, interceptors=interceptors, **options) as log:
            log.append(source)
    [plain], [seen] = ([*(tmp_path / name).glob("*.log")] for name in ("plain-0", "seen-0"))
    assert plain.read_bytes() == seen.read_bytes()


def test_failed_append_is_acknowledged_with_its_error(tmp_path: Path) -> None:
    step = Step("step", b"1")
    with MessageLog(tmp_path / "orders-0", max_message_bytes=100, interceptors=[step]) as log:
        with pytest.raises(EncodeError) as caught:
            log.append([{"key": b"a"}, {"key": b"b", "value": b"x" * 100}])
        assert step.calls == [(RecordMetadata("orders", -1, -1), caught.value)] * 2
        assert log.append([]) == range(0)
        with pytest.raises(ValueError, match="unknown field 'vaule': did you mean 'value'"):
            log.append([{"vaule": b"x"}])
        assert log.next_offset == 0


def test_acknowledgement_has_the_append_time(tmp_path: Path) -> None:
    step = Step("step", b"1")
    with MessageLog(tmp_path / "orders-0", timestamps="append", interceptors=[step]) as log:
        log.append([{"timestamp": 7}])
        [message] = log.scan()
    assert step.calls[0] == (RecordMetadata("orders", 0, 0, message.timestamp), None)
    assert message.timestamp > 7


# Routing -------------------------------------------------------------------------------------------------------------


@every_header_format
def test_routing_moves_messages_between_logs_by_a_header(header_format: HeaderFormat, tmp_path: Path) -> None:
    key, text = KEY[header_format], {KEY[header_format]: HeaderSerializer.for_type("string")}
    chain = ProducerInterceptors([Routing(key, {"eu": "orders-eu", "us": "orders-us"})])
    with (
        MessageLog(tmp_path / "orders-0", header_format) as source,
        MessageLog(tmp_path / "orders-eu-0", header_format) as eu,
        MessageLog(tmp_path / "orders-us-0", header_format) as us,
    ):
        for number, region in enumerate(["eu", "us", "eu"]):
            record = ProducerRecord(
                "orders", b"k%d" % number, b"\x00sealed", header_format=header_format
            )._with_serializers(text)
            record.set_header(key, region)
            source.append([record.to_message()])
        targets = {log.topic: log for log in (eu, us)}
        for message in source.scan():
            read = ConsumerRecord.from_message(message, topic="orders", header_format=header_format, serializers=text)
            routed = chain.on_send(read.forward("orders"))
            targets[routed.topic].append([routed.to_message()])
        assert {topic: [m.key for m in log.scan()] for topic, log in targets.items()} == {
            "orders-eu": [b"k0", b"k2"],
            "orders-us": [b"k1"],
        }
        assert [message.value for message in us.scan()] == [b"\x00sealed"]


def test_record_without_a_route_is_rejected() -> None:
    chain = ProducerInterceptors([Routing("region", {"eu": "orders-eu"})])
    with pytest.raises(EncodeError, match="the header 'region' is missing") as caught:
        chain.on_send(ProducerRecord("orders"))
    assert (caught.value.code, caught.value.key) == ("missing_key", "region")
    with pytest.raises(EncodeError, match="the header 'region' has a value without a route"):
        chain.on_send(ProducerRecord("orders", headers={"region": "us"}))
    default = ProducerInterceptors([Routing("region", {}, default="lost")])
    assert default.on_send(ProducerRecord("orders")).topic == "lost"


# Transaction ids -----------------------------------------------------------------------------------------------------


@every_header_format
def test_transaction_id_passes_through_all_services(header_format: HeaderFormat) -> None:
    ids = TransactionIds({"typed": "transaction-id"}.get(header_format, 100_001), writes=RESERVED["vendor"])
    chain = ProducerInterceptors([ids])
    orders = consumed(*(chain.on_send(ProducerRecord("orders", header_format=header_format)) for _ in range(2)))
    transaction_ids = [ids.id_of(order) for order in orders]
    assert len(set(transaction_ids)) == 2
    assert all(isinstance(transaction_id, uuid.UUID) for transaction_id in transaction_ids)
    for order in orders:
        with ids.handling(order) as current:
            [invoice] = consumed(chain.on_send(ProducerRecord("invoices", header_format=header_format)))
            with ids.handling(invoice) as inner:
                parcel = chain.on_send(ProducerRecord("parcels", header_format=header_format))
        assert {current, inner, ids.id_of(invoice), ids.id_of(parcel)} == {ids.id_of(order)}
    assert ids.id_of(chain.on_send(ProducerRecord("orders", header_format=header_format))) not in transaction_ids


def test_record_keeps_its_transaction_id() -> None:
    ids = TransactionIds()
    chain = ProducerInterceptors([ids])
    sent = chain.on_send(ProducerRecord("orders"))
    with ids.handling(consumed(chain.on_send(ProducerRecord("other")))[0]):
        assert ids.id_of(chain.on_send(sent)) == ids.id_of(sent)
    with ids.handling(consumed(ProducerRecord("old"))[0]) as begun:
        assert ids.id_of(chain.on_send(ProducerRecord("orders"))) == begun


# Audit ---------------------------------------------------------------------------------------------------------------


@every_header_format
def test_mirror_audit_keeps_message_id_and_origin(header_format: HeaderFormat) -> None:
    keys = None if header_format == "typed" else AuditKeys(10_001, 10_002, 7)
    entries: list[AuditEntry] = []
    shop = Audit("shop-1", "cluster-a", keys=keys)
    mirror = Audit("mirror-1", "cluster-b", keys=keys, report=entries.append)
    sent = consumed(
        ProducerInterceptors([shop]).on_send(ProducerRecord("orders", b"k", b"v", header_format=header_format))
    )
    seen = ConsumerInterceptors([mirror]).on_consume(sent)
    again = ProducerInterceptors([mirror]).on_send(seen[0].forward("orders"))
    ConsumerInterceptors([mirror]).on_consume(consumed(again))
    first, second = entries
    assert first == ("orders", 0, 0, "shop-1", first.message_id, "cluster-a")
    assert second == ("orders", 0, 0, "mirror-1", first.message_id, "cluster-a")
    assert isinstance(first.message_id, uuid.UUID)


def test_audit_reports_unaudited_records_and_unique_message_ids() -> None:
    entries: list[AuditEntry] = []
    audit = Audit("c", "a", report=entries.append)
    sent = [ProducerInterceptors([audit]).on_send(ProducerRecord("t")) for _ in range(100)]
    ConsumerInterceptors([audit]).on_consume(consumed(ProducerRecord("t"), *sent))
    assert entries[0] == ("t", 0, 0, None, None, None)
    assert len({entry.message_id for entry in entries[1:]}) == 100
