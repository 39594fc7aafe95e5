"""A null value and a delete are two things in the header format ``wrapper``, and one in all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.kip82 import (
    ConsumerRecord,
    FetchRequest,
    IntHeaders,
    MessageLog,
    MessageWrapper,
    ProduceRequest,
    ProducerInterceptor,
    ProducerRecord,
    is_delete,
)
from letterhead.kip82.requests import ErrorCode
from letterhead.kip82.versions import convert_down, convert_up, set_format
from tests.reference import ops as reference

FORMAT = "kip82-message-wrapper"
WRAPPED_NULL = bytes.fromhex("00 00000000 ffffffff")
"""A wrapper without headers around a null value."""

every_implementation = pytest.mark.parametrize("ops", [lh, reference], ids=["native", "reference"])


def record(headers: Any = None, **fields: Any) -> ProducerRecord[Any, Any]:
    wrapper: MessageWrapper[Any] = MessageWrapper(headers or {}, None)
    return ProducerRecord("orders", b"k", wrapper, header_format="wrapper", timestamp=1, **fields)


def value_of(data: bytes) -> bytes | None:
    """Return the value of a message of magic 2, and its wrapper with it."""
    key_end = 30 + max(int.from_bytes(data[26:30], "big", signed=True), 0)
    length = int.from_bytes(data[key_end : key_end + 4], "big", signed=True)
    assert len(data) == key_end + 4 + max(length, 0)
    return None if length == -1 else data[key_end + 4 :]


KEPT = record(tombstone=False).to_bytes()
DELETED = record(tombstone=True).to_bytes()
BARE = lh.encode({"key": b"k", "timestamp": 1, "headers": None, "value": None, "tombstone": False}, FORMAT) or b""
KEPT_WITH_HEADERS = record({5: b"x"}, tombstone=False).to_bytes()


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with MessageLog(tmp_path / "orders-0", "wrapper") as log:
        yield log


def stored(log: MessageLog) -> bytes:
    """Return the bytes of all messages, with the offset 0."""
    data = b"".join(file.read_bytes() for file in sorted(log.path.glob("*.log")))
    messages = lh.messages(data, "kip82-messages-wrapper")
    return b"".join(lh.encode(message._replace(offset=0), FORMAT) or b"" for message in messages)


# One message ---------------------------------------------------------------------------------------------------------


def test_delete_is_bit_4_or_null_value_without_wrapper() -> None:
    assert (KEPT[17], value_of(KEPT)) == (0, WRAPPED_NULL)
    assert (DELETED[17], value_of(DELETED)) == (0x10, None)
    assert (BARE[17], value_of(BARE)) == (0, None)
    assert [is_delete(lh.decode(data, FORMAT)) for data in (KEPT, DELETED, BARE)] == [False, True, True]


@every_implementation
@pytest.mark.parametrize("data", [KEPT, DELETED, BARE, KEPT_WITH_HEADERS], ids=["kept", "deleted", "bare", "headers"])
def test_decoded_message_is_encoded_to_the_same_bytes(ops: Any, data: bytes) -> None:
    assert ops.encode(ops.decode(data, FORMAT), FORMAT) == data


def test_column_of_messages_is_encoded_to_the_same_bytes() -> None:
    messages = [KEPT, DELETED, BARE, KEPT_WITH_HEADERS]
    assert lha.encode(lha.decode(pa.array(messages), FORMAT), FORMAT).to_pylist() == messages


@every_implementation
def test_unmarked_message_without_a_list_of_headers_is_a_delete(ops: Any) -> None:
    bare = {"key": b"k", "value": None}
    for fields, value in (
        ({"headers": None}, None),
        ({"headers": []}, WRAPPED_NULL),
        ({"headers": [], "tombstone": False}, WRAPPED_NULL),
        ({"headers": [], "tombstone": True}, None),
    ):
        message = {"offset": 0, "crc": None, "magic": 2, "attributes": 0, "timestamp": 1, "tombstone": None, **bare}
        assert value_of(ops.encode({**message, **fields}, FORMAT)) == value


def test_null_value_with_tombstone_false_gets_wrapper() -> None:
    for message in ({"key": b"k", "tombstone": False}, lh.Message(key=b"k", value=None, tombstone=False)):
        assert value_of(lh.encode(message, FORMAT) or b"") == WRAPPED_NULL


def test_dropped_headers_leave_wrapper() -> None:
    message = {"key": b"k", "value": None, "headers": [("tenant", b"acme")], "tombstone": False}
    assert value_of(lh.encode(message, FORMAT, on_loss="drop") or b"") == WRAPPED_NULL


def test_removing_all_record_headers_makes_no_delete() -> None:
    [read] = ConsumerRecord.read(KEPT_WITH_HEADERS, topic="orders", header_format="wrapper")
    for changed in (read.without_headers(5), read.replace(headers=IntHeaders())):
        forwarded = changed.forward("copy")
        assert (changed.tombstone, forwarded.tombstone) == (False, False)
        assert value_of(forwarded.to_bytes()) == WRAPPED_NULL


# Conversion ----------------------------------------------------------------------------------------------------------


@every_implementation
@pytest.mark.parametrize("data", [KEPT, KEPT_WITH_HEADERS], ids=["kept", "headers"])
@pytest.mark.parametrize("target", ["kip82-message", "kip82-message-int", "streams", "streams-timestamped"])
def test_non_delete_null_is_lost_where_null_deletes(ops: Any, data: bytes, target: str) -> None:
    types = "binary" if target == "kip82-message" else None
    losses = ops.convert(data, FORMAT, target=target, on_loss="report", types=types).losses
    assert [loss.code for loss in losses if "tombstone" in loss.message] == ["field_not_carried"]
    with pytest.raises(lh.ConversionError):
        ops.convert(data, FORMAT, target=target, types=types)


@every_implementation
def test_non_delete_null_is_kept_where_null_does_not_delete(ops: Any) -> None:
    assert ops.convert(KEPT, FORMAT, target=FORMAT) == KEPT
    into_wrapper = ops.convert(KEPT, FORMAT, target="kip82-wrapper", on_loss="report")
    assert into_wrapper.data == WRAPPED_NULL
    assert not [loss for loss in into_wrapper.losses if "tombstone" in loss.message]
    assert value_of(ops.convert(WRAPPED_NULL, "kip82-wrapper", target=FORMAT)) == WRAPPED_NULL


@every_implementation
@pytest.mark.parametrize("data", [DELETED, BARE], ids=["deleted", "bare"])
def test_delete_stays_a_delete_without_a_loss(ops: Any, data: bytes) -> None:
    converted = ops.convert(data, FORMAT, target="kip82-message-int")
    assert lh.decode(converted, "kip82-message-int").value is None
    back = lh.decode(ops.convert(converted, "kip82-message-int", target=FORMAT), FORMAT)
    assert (back.tombstone, is_delete(back)) == (True, True)


def test_column_reports_the_same_losses() -> None:
    rows = lha.convert(pa.array([KEPT, DELETED, BARE]), FORMAT, target="kip82-message-int", on_loss="report")
    losses = [[loss["code"] for loss in row["losses"] or ()] for row in rows.to_pylist()]
    assert losses == [["field_not_carried"], [], []]


@pytest.mark.parametrize("magic", [0, 1])
def test_conversion_to_older_magic_rejects_non_delete_null(magic: int) -> None:
    for data in (KEPT, KEPT_WITH_HEADERS):
        with pytest.raises(lh.ConversionError, match="no null value that deletes nothing") as caught:
            convert_down(lh.decode(data, FORMAT), magic)
        assert caught.value.code == "field_not_carried"
        assert convert_down(lh.decode(data, FORMAT), magic, on_loss="drop").value is None
    for data in (DELETED, BARE):
        assert convert_down(lh.decode(data, FORMAT), magic).value is None


# A log ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [KEPT, DELETED, BARE, KEPT_WITH_HEADERS], ids=["kept", "deleted", "bare", "headers"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_log_stores_the_bytes_of_appended_and_produced_messages(tmp_path: Path, data: bytes, codec: Any) -> None:
    message = lh.decode(data, FORMAT)
    with MessageLog(tmp_path / "orders-0", "wrapper", codec=codec) as log:
        log.append([message])
        assert stored(log) == data
        log.produce(
            ProduceRequest.for_partition("orders", 0, [message], version=4, header_format="wrapper")
        ).raise_for_error()
        assert stored(log) == 2 * data
        response = log.fetch(FetchRequest.for_partition("orders", 0, 0, version=4))
        assert [read_back.tombstone for read_back in response.messages("wrapper")] == 2 * [message.tombstone]


def test_compaction_keeps_non_delete_null(log: MessageLog) -> None:
    log.append([lh.decode(KEPT, FORMAT)._replace(key=b"kept"), lh.decode(DELETED, FORMAT), record(tombstone=False)])
    log.append([{"key": b"said", "tombstone": False, "timestamp": 1}, {"key": b"gone", "timestamp": 1}])
    log.compact(now=10, delete_retention_ms=1)
    assert [message.key for message in log.scan()] == [b"kept", b"k", b"said"]


@pytest.mark.parametrize("interceptors", [(), (ProducerInterceptor(),)], ids=["without", "with"])
def test_mapping_without_value_is_delete_also_with_interceptors(tmp_path: Path, interceptors: Any) -> None:
    with MessageLog(tmp_path / "orders-0", "wrapper", interceptors=interceptors) as log:
        log.append([{"key": b"k"}, {"key": b"k", "tombstone": False}, lh.decode(BARE, FORMAT), lh.decode(KEPT, FORMAT)])
        assert [is_delete(message) for message in log.scan()] == [True, False, True, False]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_fetch_of_older_version_reports_non_delete_null(tmp_path: Path, version: int) -> None:
    request = FetchRequest.for_partition("orders", 0, 0, version=version)
    with MessageLog(tmp_path / "orders-0", "wrapper") as log:
        log.append([lh.decode(KEPT, FORMAT)])
        ((_, part),) = log.fetch(request).partitions()
        assert part.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    with MessageLog(tmp_path / "orders-0", on_loss="drop") as log:
        assert [message.value for message in log.fetch(request).messages("wrapper")] == [None]


@pytest.mark.parametrize("version", [0, 1])
def test_log_of_older_magic_rejects_non_delete_null(tmp_path: Path, version: Any) -> None:
    with MessageLog(tmp_path / "orders-0", "wrapper", message_format_version=version) as log:
        for message in (lh.decode(KEPT, FORMAT), record(tombstone=False)):
            with pytest.raises(lh.ConversionError, match="no null value that deletes nothing"):
                log.append([message])
        assert log.append([lh.decode(DELETED, FORMAT), lh.decode(BARE, FORMAT)]) == range(2)


def test_older_magic_keeps_only_timestamp_type_of_attributes() -> None:
    message = lh.decode(DELETED, FORMAT)
    for attributes, left in ((0x10, 0), (0x18, 8), (8, 8)):
        assert convert_down(message._replace(attributes=attributes), 1).attributes == left
        assert convert_down(message._replace(attributes=attributes), 0).attributes == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_compressed_set_of_each_magic_can_have_the_append_time(tmp_path: Path, version: Any) -> None:
    options: Any = {"message_format_version": version, "codec": "gzip", "timestamps": "append"}
    with MessageLog(tmp_path / "orders-0", **options) as log:
        log.append([{"key": b"k", "value": b"v"}, {"key": b"k", "value": b"w"}])
        assert [message.attributes & 8 for message in log.scan()] == [8 if version else 0] * 2
        assert [message.timestamp is None for message in log.scan()] == [version == 0] * 2


def test_conversions_reject_an_unknown_magic_and_layout() -> None:
    message = lh.decode(DELETED, FORMAT)
    for magic in (2, -1, 7):
        with pytest.raises(ValueError, match="unknown magic"):
            convert_down(message, magic)
    with pytest.raises(ValueError, match="did you mean 'wrapper'"):
        convert_up(message, "wraper")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did you mean 'wrapper'"):
        set_format(4, "wraper")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown on_loss value"):
        convert_down(message, 1, on_loss="report")  # type: ignore[arg-type]


def test_conversion_up_keeps_meaning_of_null_value() -> None:
    old = lh.decode(lh.encode({"magic": 1, "key": b"k", "value": None}, FORMAT) or b"", FORMAT)
    assert is_delete(convert_up(old, "wrapper"))
    assert not is_delete(convert_up(lh.decode(KEPT, FORMAT), "wrapper"))
