"""Keys of windows and sessions, and positions, as bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letterhead.errors import PrefixError
from letterhead.state.storage import keys
from letterhead.state.storage.keys import MAX_TIME, SessionKey, make_windowed
from letterhead.state.storage.position import Position

KEYS = st.binary(max_size=4).map(lambda key: bytes(byte % 3 * 0x7F for byte in key)) | st.binary(max_size=12)
TIMES = st.integers(0, 3) | st.integers(0, MAX_TIME) | st.just(MAX_TIME)


def test_stored_keys_have_layout_of_kafka_streams() -> None:
    assert keys.window_key(b"k", 5, 7).hex() == "6b000000000000000500000007"
    assert keys.session_key(b"k", 5, 9).hex() == "6b00000000000000090000000000000005"
    window, session = keys.window_key(b"k", 5, 7), keys.session_key(b"k", 5, 9)
    assert keys.TimeOrderedWindowKeys.row(window).hex() == "0000000000000000056b00000007"
    assert keys.TimeOrderedWindowKeys.index(window).hex() == "016b000000000000000500000007"
    assert keys.TimeOrderedSessionKeys.row(session).hex() == "00000000000000000900000000000000056b"
    assert keys.TimeOrderedSessionKeys.index(session).hex() == "016b00000000000000090000000000000005"


@given(KEYS, TIMES, TIMES, st.integers(0, keys.MAX_SEQUENCE))
def test_keys_survive_bytes(key: bytes, start: int, end: int, sequence: int) -> None:
    window, session = keys.window_key(key, start, sequence), keys.session_key(key, start, end)
    assert keys.window_parts(window) == (key, start, sequence)
    assert keys.window_start(window) == start
    assert keys.session_parts(session) == SessionKey(key, start, end)
    assert keys.session_end(session) == end
    assert keys.TimeOrderedWindowKeys.changelog_key(keys.TimeOrderedWindowKeys.row(window)) == window
    assert keys.TimeOrderedSessionKeys.changelog_key(keys.TimeOrderedSessionKeys.row(session)) == session


def three(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return three values in order, often equal ones: the second is within the bounds that the others are."""
    return st.lists(values, min_size=3, max_size=3).map(sorted) | values.map(lambda value: [value] * 3)


@given(three(KEYS), three(TIMES), st.integers(0, keys.MAX_SEQUENCE))
def test_every_window_is_inside_its_search_bounds(
    three_keys: list[bytes], three_times: list[int], sequence: int
) -> None:
    (key_from, key, key_to), (time_from, time, time_to) = three_keys, three_times
    stored, schema = keys.window_key(key, time, sequence), keys.WindowKeys
    for low, high, bounds in (
        (key, key, schema.bounds_of_key(key, time_from, time_to)),
        (key_from, key_to, schema.bounds_of_range(key_from, key_to, time_from, time_to)),
    ):
        assert schema.contains(stored, low, high, time_from, time_to)
        assert bounds.first <= stored <= bounds.last
    assert schema.contains(stored, None, None, time, time)
    assert schema.bounds_of_range(None, None, 0, 0) == (None, None)


@given(three(KEYS), TIMES, TIMES, st.just(0) | TIMES, st.just(0) | TIMES)
def test_every_session_is_inside_its_search_bounds(
    three_keys: list[bytes], start: int, length: int, before: int, after: int
) -> None:
    (key_from, key, key_to), end = three_keys, min(start + length, MAX_TIME)
    earliest_end, latest_start = max(0, end - before), min(start + after, MAX_TIME)
    stored, schema = keys.session_key(key, start, end), keys.SessionKeys
    for low, high, bounds in (
        (key, key, schema.bounds_of_key(key, earliest_end, latest_start)),
        (key_from, key_to, schema.bounds_of_range(key_from, key_to, earliest_end, latest_start)),
    ):
        assert schema.contains(stored, low, high, earliest_end, latest_start)
        assert bounds.first <= stored <= bounds.last


def test_stored_key_too_short_for_its_times_is_rejected() -> None:
    for read, size in (
        (keys.window_parts, 12),
        (keys.window_start, 12),
        (keys.session_parts, 16),
        (keys.session_end, 16),
    ):
        read(bytes(size))
        with pytest.raises(ValueError, match=f"{size} of it are the time"):
            read(bytes(size - 1))


def test_prefix_end_is_next_number_of_same_length() -> None:
    assert keys.increment(b"a") == b"b"
    assert keys.increment(b"a\xff") == b"b\x00"
    for prefix in (b"", b"\xff", b"\xff\xff"):
        with pytest.raises(PrefixError):
            keys.increment(prefix)


def test_window_end_is_at_most_largest_time() -> None:
    assert make_windowed(b"k", 5, 10).end == 15
    assert make_windowed(b"k", MAX_TIME - 5, 10).end == MAX_TIME


# --- positions -------------------------------------------------------------------------------------------------------


def test_positions_match_kafka_streams_databases(vectors: Path) -> None:
    seen = 0
    for line in (vectors / "rocksdb_fixtures.jsonl").read_text().splitlines():
        for database in json.loads(line)["databases"]:
            [offsets] = [family["entries"] for family in database["column_families"] if family["name"] == "offsets"]
            data = bytes.fromhex(dict(offsets)[b"position".hex()])
            position = Position.deserialize(data)
            assert list(position.offsets) == ["in"]
            assert position.serialize() == data
            seen += 1
    assert seen == 10


def test_empty_position_has_zeros() -> None:
    assert Position().serialize() == bytes(40)
    assert Position.deserialize(bytes(40)) == Position.deserialize(b"") == Position.deserialize(None) == Position()


@given(st.dictionaries(st.text(max_size=5), st.dictionaries(st.integers(0, 9), st.integers(0, MAX_TIME), max_size=3)))
def test_positions_survive_bytes(offsets: dict[str, dict[int, int]]) -> None:
    data = Position(offsets).serialize()
    assert len(data) == 40 + sum(
        64 + len(topic.encode()) + 96 * len(partitions) for topic, partitions in offsets.items()
    )
    read = Position.deserialize(data)
    assert read.offsets == {topic: partitions for topic, partitions in offsets.items() if partitions}


def test_position_only_moves_forward() -> None:
    position = Position().update("in", 0, 5).update("in", 0, 3).update("in", 1, 2)
    assert position.offsets == {"in": {0: 5, 1: 2}}
    other = position.copy().merge(Position({"in": {0: 4, 1: 9}, "b": {0: 0}}))
    assert other.offsets == {"in": {0: 5, 1: 9}, "b": {0: 0}}
    assert position.offsets == {"in": {0: 5, 1: 2}}
    assert position != other


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("01" + "00" * 39, "Unknown version 1 when deserializing Position"),
        ("0000", "ends early"),
        ("00000000010000000961", "ends early"),
        ("000000000100000001610000000100000000", "ends early"),
    ],
)
def test_malformed_position_bytes_are_rejected(data: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Position.deserialize(bytes.fromhex(data))


def test_older_position_file_is_read() -> None:
    assert Position.from_checkpoint("0\n2\nin 0 5\nin 1 7\n") == Position({"in": {0: 5, 1: 7}})
    for text in ("", "1\n0\n", "0\n2\nin 0 5\n", "0\n1\nin 0\n", "0\n1\nin x 5\n", "0"):
        with pytest.raises(ValueError, match=r"position file|invalid literal"):
            Position.from_checkpoint(text)


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("00 00000001 ffffffff"),  # a negative length
        bytes.fromhex("00 00000001 ffffffff 00000000 00000000"),  # with bytes that would be read after it
        bytes.fromhex("00 00000001 00000002 61"),  # a name that is longer than the rest
        bytes.fromhex("00 00000001 00000001 61"),  # no partitions
        bytes.fromhex("00 00000001 00000001 61 00000001 00000000 0000000000000000")[:-1],
        bytes.fromhex("00 00000001 fffffffc 61616161 00000000"),  # would go back, and read the length as partitions
    ],
)
def test_position_out_of_range_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"position (ends early|has -)"):
        Position.deserialize(data)


def test_position_may_end_with_its_last_offset() -> None:
    data = bytes.fromhex("00 00000001 00000001 61 00000001 00000003 0000000000000007")
    assert Position.deserialize(data).offsets == {"a": {3: 7}}
