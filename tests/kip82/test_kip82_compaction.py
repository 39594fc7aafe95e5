"""Compaction: the rule, and the files of a compacted log."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import DamagedLogError, MessageLogError
from letterhead.kip82 import FetchRequest, MessageLog, is_delete
from letterhead.kip82 import compaction as rule
from letterhead.kip82.compaction import delete_horizon, latest_offsets, should_retain
from letterhead.kip82.header_formats import MESSAGE_FORMATS
from tests.helpers.log_samples import HEADER_FORMATS, encoded, samples

HEADERS = {"typed": [("by", lh.String("gdpr"))], "int": [(5, b"gdpr")], "wrapper": [(5, b"gdpr")]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def read_back(header_format: str, **fields) -> lh.Message:
    data = lh.encode({"offset": 7, "key": b"k", "timestamp": 1000, **fields}, MESSAGE_FORMATS[header_format])
    return lh.decode(data, MESSAGE_FORMATS[header_format])


# The rule ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header_format", "fields", "deletes"),
    [
        ("typed", {"value": None}, True),
        ("typed", {"value": None, "headers": HEADERS["typed"]}, True),
        ("typed", {"value": b""}, False),
        ("int", {"value": None, "headers": HEADERS["int"]}, True),
        ("int", {"value": b"v", "headers": HEADERS["int"]}, False),
        ("wrapper", {"value": b"v"}, False),
        ("wrapper", {"value": b"v", "tombstone": True}, True),
        ("wrapper", {"value": None, "headers": HEADERS["wrapper"], "tombstone": True}, True),
        ("wrapper", {"value": None, "headers": HEADERS["wrapper"]}, False),  # what the draft needs bit 4 for
        ("wrapper", {"value": None}, True),
        *(
            (header_format, {"value": None, "magic": magic}, True)
            for header_format in HEADER_FORMATS
            for magic in (0, 1)
        ),
        *(
            (header_format, {"value": b"", "magic": magic}, False)
            for header_format in HEADER_FORMATS
            for magic in (0, 1)
        ),
    ],
)
def test_is_delete_follows_the_layout(header_format, fields, deletes):
    message = read_back(header_format, **fields)
    assert is_delete(message) is deletes
    # A delete goes when its time is over, and nothing else does.
    has_time = message.timestamp is not None
    assert should_retain(message, {b"k": 7}, 1000) is (not deletes or not has_time)
    assert should_retain(message, {b"k": 7}, 999) is True
    assert should_retain(message, {b"k": 8}, 0) is False


def test_delete_without_a_timestamp_is_retained():
    for timestamp in (None, -1):
        message = read_back("typed", value=None, timestamp=timestamp)
        assert should_retain(message, {b"k": 7}, 1 << 62)
        assert not should_retain(message, {b"k": 8}, 0)


def test_delete_at_first_millisecond_has_age():
    message = read_back("typed", value=None, timestamp=0)
    assert should_retain(message, {b"k": 7}, -1)
    assert not should_retain(message, {b"k": 7}, 0)


def test_messages_without_a_key_follow_the_option_keyless():
    message = read_back("typed", key=None, value=None)
    assert should_retain(message, {}, 1 << 62)
    assert not should_retain(message, {}, 0, keyless="drop")
    with pytest.raises(ValueError, match="unknown keyless value 'raise'"):
        should_retain(message, {}, 0, keyless="raise")


def test_unknown_keyless_option_raises_even_for_empty_log(tmp_path):
    with MessageLog(tmp_path / "orders-0") as log, pytest.raises(ValueError, match="unknown keyless value 'raise'"):
        log.compact(keyless="raise")


def test_delete_horizon_is_now_minus_the_retention(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 90_000_000 * 1_000_000)
    assert (delete_horizon(), delete_horizon(50, 20), delete_horizon(delete_retention_ms=0)) == (
        3_600_000,
        30,
        90_000_000,
    )
    with pytest.raises(ValueError, match="delete_retention_ms is -5"):
        delete_horizon(delete_retention_ms=-5)
    assert rule.DELETE_RETENTION_MS == 24 * 60 * 60 * 1000


@given(st.lists(st.tuples(st.sampled_from([None, b"", b"a", b"b"]), st.integers(0, 50))))
def test_latest_offsets_do_not_depend_on_order(pairs):
    messages = [lh.Message(key=key, offset=offset) for key, offset in pairs]
    expected = {key: max(o for k, o in pairs if k == key) for key, _ in pairs if key is not None}
    assert latest_offsets(messages) == latest_offsets(reversed(messages)) == expected


# Files -------------------------------------------------------------------------------------------------------------


def history(header_format: str, seed: int, count: int) -> list[dict]:
    chance = random.Random(seed)
    source = []
    for number in range(count):
        message = {
            "key": chance.choice([None, b"", *(b"k%d" % key for key in range(8))]),
            "value": chance.choice([None, b"", b"v%d" % number]),
            "headers": chance.choice([[], HEADERS[header_format]]),
            "timestamp": chance.choice([-1, number, number]),
        }
        if header_format == "wrapper":
            message["tombstone"] = chance.random() < 0.3
        source.append(message)
    return source


def kept(messages: list[lh.Message], header_format: str, horizon: int) -> list[lh.Message]:
    """Apply the rule in plain Python."""
    last = {message.key: message.offset for message in messages}
    deletes = []
    for message in messages:
        bit_4 = header_format == "wrapper" and message.attributes & 0x10
        null = message.value is None and (header_format != "wrapper" or message.headers is None)
        if message.key is None or (
            last[message.key] == message.offset and not ((bit_4 or null) and 0 <= message.timestamp <= horizon)
        ):
            deletes.append(message)
    return deletes


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("header_format", HEADER_FORMATS)
def test_repeated_compaction_agrees_with_the_rule(path, header_format, seed):
    """Several times, with appends and reopening in between."""
    there: list[lh.Message] = []
    total = 0
    for step in range(4):
        with MessageLog(path, header_format, segment_bytes=600, sync="flush") as log:
            for message in history(header_format, seed * 10 + step, 60):
                log.append([message])
            total += 60
            before = list(log.scan())
            assert before[: len(there)] == there
            there = kept(before, header_format, horizon=30)
            done = log.compact(now=40, delete_retention_ms=10)
            assert (done.kept, done.removed) == (len(there), len(before) - len(there))
            assert done.bytes_after == sum(file.stat().st_size for file in path.glob("*.log")) < done.bytes_before
            assert list(log.scan()) == there
            assert log.next_offset == total
            assert log.verify() == []
            again = log.compact(now=40, delete_retention_ms=10)
            assert (again.kept, again.removed, again.bytes_after) == (len(there), 0, done.bytes_after)
        with MessageLog(path) as log:
            assert (list(log.scan()), log.next_offset) == (there, total)
            for start in range(0, total + 1, 7):
                assert list(log.scan(start)) == [message for message in there if message.offset >= start]
                # In the header format `wrapper` older versions cannot have a null value that is not a delete.
                version = 4 if header_format == "wrapper" else 2
                (part,) = [
                    part
                    for _, part in log.fetch(
                        FetchRequest.for_partition("orders", 0, start, version=version)
                    ).partitions()
                ]
                assert (part.error_code, part.high_watermark) == (0, total)


def test_append_works_after_compaction_removed_everything(path):
    with MessageLog(path, segment_bytes=100) as log:
        log.append([{"key": b"k%d" % number, "value": None, "timestamp": 1} for number in range(10)])
        assert log.compact(now=2, delete_retention_ms=0)[:2] == (0, 10)
        assert list(log.scan()) == []
    assert [file.name for file in path.glob("*.log")] == ["00000000000000000010.log"]
    with MessageLog(path) as log:
        assert log.next_offset == 10
        assert log.append(samples(1)) == range(10, 11)
        assert [message.offset for message in log.scan()] == [10]
        assert [
            message.offset for message in log.fetch(FetchRequest.for_partition("orders", 0, 0, version=4)).messages()
        ] == [10]


def test_damaged_log_is_not_compacted(path):
    with MessageLog(path) as log:
        log.append(samples(9))
    file = path / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    data[len(encoded(samples(1))[0]) + 40] ^= 1
    file.write_bytes(data)
    with MessageLog(path) as log:
        with pytest.raises(DamagedLogError, match="offset 1: the checksum is"):
            log.compact()
        assert {segment.name: segment.read_bytes() for segment in path.glob("*.log")} == {file.name: bytes(data)}


def test_any_changed_bit_of_compacted_file_is_reported(path):
    """Offsets have gaps there: a changed one is found where offsets no longer increase."""
    with MessageLog(path) as log:
        log.append([{"key": b"k%d" % (number % 3), "value": b"v", "timestamp": 1} for number in range(9)])
        log.append([{"key": None, "value": b"w", "timestamp": 1} for number in range(3)])
        log.compact()
        assert [message.offset for message in log.scan()] == [6, 7, 8, 9, 10, 11]
    file = path / "00000000000000000000.log"
    data = file.read_bytes()
    size = 12 + int.from_bytes(data[8:12], "big")
    for position in range(size, 2 * size):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            file.write_bytes(changed)
            with MessageLog(path, readonly=True) as log:
                damages = log.verify()
            if damages:
                assert all(size <= damage.position < 3 * size for damage in damages)
                assert sum(damage.end - damage.position for damage in damages) <= 2 * size
            else:
                assert position < size + 8, "only an offset that fits in its gap goes unseen"
    file.write_bytes(data)


# Crashes -----------------------------------------------------------------------------------------------------------


class PowerCut(BaseException):
    """A simulated crash of the machine."""


def state(path: Path) -> list[lh.Message]:
    with MessageLog(path) as log:
        assert log.verify() == []
        assert not list(path.glob("*.cleaned"))
        return list(log.scan())


def test_crash_at_any_compaction_step_loses_no_key(tmp_path, monkeypatch):
    """Stop after every change of a file that compaction makes: the value of each key is the same as before."""
    real = {name: getattr(os, name) for name in ("replace", "fsync", "ftruncate")}
    unlink = Path.unlink
    for stop in range(1, 200):
        path = tmp_path / f"{stop}" / "orders-0"
        with MessageLog(path, segment_bytes=300, sync="flush") as log:
            for message in history("typed", 7, 40):
                log.append([message])
            before = list(log.scan())
        expected = kept(before, "typed", horizon=30)
        steps = iter(range(1, stop + 1))

        def step(function, steps=steps, stop=stop):
            def stepped(*arguments, **options):
                if next(steps) == stop:
                    raise PowerCut
                return function(*arguments, **options)

            return stepped

        log = MessageLog(path, segment_bytes=300, sync="flush")
        try:
            with monkeypatch.context() as patch:
                for name, function in real.items():
                    patch.setattr(os, name, step(function))
                patch.setattr(Path, "unlink", step(unlink))
                log.compact(now=40, delete_retention_ms=10)
        except PowerCut:
            log._files.release()
        else:
            log.close()
            assert state(path) == expected
            break
        after = state(path)
        assert {message.offset for message in expected} <= {message.offset for message in after}
        assert all(message in before for message in after)
        # What a reader makes of it: the last word on every key, or a delete of it that is gone with all it deleted.
        for key in {message.key for message in before} - {None}:
            last = [message for message in before if message.key == key][-1]
            now = [message for message in after if message.key == key]
            assert now[-1:] == [last] or (not now and last not in expected)
        with MessageLog(path, segment_bytes=300) as log:
            log.compact(now=40, delete_retention_ms=10)
            assert list(log.scan()) == expected
            assert log.next_offset == 40
    else:
        raise AssertionError("the compaction never came to its end")
    assert stop > 10


def test_reader_continues_during_compaction(path):
    with MessageLog(path, segment_bytes=200) as log:
        for number in range(20):
            log.append([{"key": b"k", "value": b"v%d" % number, "timestamp": 1}])
        reading = log.scan()
        first = next(reading).offset
        with MessageLog(path, readonly=True) as reader:
            log.compact()
            rest = [message.offset for message in reading]
            assert first == 0
            assert rest[-1] == 19
            assert rest == sorted(rest)
            with pytest.raises((MessageLogError, FileNotFoundError)):
                list(reader.scan())
        with MessageLog(path, readonly=True) as reader:
            assert [message.offset for message in reader.scan()] == [19]
