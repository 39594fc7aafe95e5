"""``MessageLog`` after a crash, and with changed bytes: no acknowledged message is lost, and damage is reported."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead.errors import Damage, DamagedLogError, MessageLogError, TruncatedTailWarning
from letterhead.kip82 import MessageLog, ProduceRequest, segment
from letterhead.kip82.header_formats import BATCH_FORMATS, CODECS, MESSAGE_FORMATS
from letterhead.kip82.properties import Properties
from tests.helpers.log_samples import HEADER_FORMATS, encoded, frame, logs, sample, samples
from tests.helpers.strategies import few

COUNT = 6


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


@pytest.fixture(params=HEADER_FORMATS)
def header_format(request) -> str:
    return request.param


def written(path: Path, messages: list[lh.Message], header_format: str = "typed") -> Path:
    """Write a log, and return its only file."""
    with MessageLog(path, header_format) as log:
        log.append(messages)
    return path / "00000000000000000000.log"


def offsets(path: Path) -> list[int]:
    with MessageLog(path, readonly=True) as log:
        return [message.offset for message in log.scan()]


# Truncated tails --------------------------------------------------------------------------------------------------------


def test_truncated_tail_is_cut_at_every_byte(path, header_format):
    file = written(path, samples(COUNT, header_format), header_format)
    parts = encoded(samples(COUNT, header_format), header_format)
    data = b"".join(parts)
    ends = [sum(map(len, parts[:count])) for count in range(COUNT + 1)]
    for cut in range(ends[COUNT - 2], ends[COUNT] + 1):
        file.write_bytes(data[:cut])
        whole = max(count for count in range(COUNT + 1) if ends[count] <= cut)
        truncated = cut - ends[whole]
        assert offsets(path) == list(range(whole))
        assert file.read_bytes() == data[:cut]  # who only reads cuts nothing
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with MessageLog(path) as log:
                assert [message.offset for message in log.scan()] == list(range(whole))
                assert log.next_offset == whole
                if truncated:
                    assert log.truncated_tail == Damage(
                        str(file), ends[whole], cut, whole, log.truncated_tail.reason, "truncated"
                    )
                    assert [warning.category for warning in caught] == [TruncatedTailWarning]
                    assert f"bytes {ends[whole]} to {cut}: offset {whole}: the " in str(caught[0].message)
                else:
                    assert (log.truncated_tail, caught) == (None, [])
                assert file.read_bytes() == data[: ends[whole]]
                log.append([sample(whole, header_format)])
        assert file.read_bytes() == data[: ends[min(whole + 1, COUNT)]] or whole == COUNT
        assert offsets(path) == list(range(whole + 1))


@pytest.mark.parametrize("zeros", [1, 11, 12, 13, 500, 5000])
def test_zeros_at_the_end_are_a_truncated_tail(path, zeros):
    """After a power failure, some file systems have the new length and none of the bytes."""
    file = written(path, samples(COUNT))
    data = file.read_bytes()
    file.write_bytes(data + bytes(zeros))
    with pytest.warns(TruncatedTailWarning, match="cut off at the end") as warned:
        log = MessageLog(path)
    assert [warning.filename for warning in warned] == [__file__]
    with log:
        assert log.next_offset == COUNT
    assert file.read_bytes() == data


@pytest.mark.parametrize(
    ("size", "code"), [(-(2**31), "negative_length"), (-1, "negative_length"), (1, "truncated"), (13, "truncated")]
)
def test_size_that_no_message_has_is_damage(path, size, code):
    file = written(path, samples(COUNT))
    data = file.read_bytes()
    file.write_bytes(data + struct.pack(">qi", COUNT, size))
    with MessageLog(path, readonly=True) as log:
        found = []
        assert len([*log.scan(on_error=found.append)]) == COUNT
        [damage] = [log.truncated_tail] if log.truncated_tail else found
    assert (damage.code, damage.position) == (code, len(data))
    assert damage.reason == f"a size of {size} bytes is too small for a message"


@pytest.mark.parametrize("header_format", HEADER_FORMATS)
@few
@given(data=st.data())
def test_valid_messages_of_any_magic_and_codec_are_never_cut(header_format, data):
    """A truncated tail is cut, and every byte before it stays."""
    parts = data.draw(logs(header_format))
    whole = b"".join(part for _, part in parts)
    cut = data.draw(st.integers(0, len(whole))) if data.draw(st.booleans()) else len(whole)
    kept, end = b"", 0
    for offset, part in parts:
        if len(kept) + len(part) > cut:
            break
        kept, end = kept + part, offset
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "orders-0"
        path.mkdir()
        (path / "log.json").write_text(json.dumps(asdict(Properties(header_format, "orders", 0))))
        file = path / "00000000000000000000.log"
        file.write_bytes(whole[:cut])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with MessageLog(path, errors="move", sync="flush") as log:
                assert file.read_bytes() == kept
                assert (log.next_offset, bool(log.truncated_tail)) == (end, cut > len(kept))
                assert [warning.category for warning in caught] == [TruncatedTailWarning] * (cut > len(kept))
                assert list(log.scan()) == list(lh.messages(kept, BATCH_FORMATS[header_format]))
                for start in range(end + 1):
                    assert [message.offset for message in log.scan(start)] == list(range(start, end))
                assert log.append([sample(end, header_format)]) == range(end, end + 1)
                assert log.verify() == []
        assert offsets(path) == list(range(end + 1))
        assert not list(path.glob("*.damaged-*"))


@pytest.mark.parametrize(("magic", "size"), [(0, 14), (1, 22)])
def test_shortest_messages_are_accepted(path, magic, size):
    data = frame(0, 1, magic=magic, key=None, value=None)
    assert len(data) == 12 + size
    MessageLog(path).close()
    (path / "00000000000000000000.log").write_bytes(data)
    with MessageLog(path, errors="move") as log:
        assert (log.next_offset, log.truncated_tail) == (1, None)


UNREADABLE = {
    "codec": lambda: lh.encode({"offset": 1, "attributes": 4, "value": b"zstd"}, MESSAGE_FORMATS["typed"]),
    "header_format": lambda: lh.encode({"offset": 1, "headers": [(5, b"x")], "value": b"v"}, MESSAGE_FORMATS["int"]),
    "limit": lambda: frame(1, 1, codec="gzip", value=bytes(65 << 20)),
}


@pytest.fixture(scope="module", params=UNREADABLE)
def unreadable(request) -> bytes:
    return UNREADABLE[request.param]()


@pytest.mark.parametrize(
    "truncated", [b"", frame(2, 1)[:-1], frame(2, 3, codec="gzip")[:-1]], ids=["whole", "one", "set"]
)
def test_message_with_valid_checksum_is_never_cut(path, unreadable, truncated):
    """It cannot be decoded here (another codec, another header format, above the limits), but is not damaged."""
    MessageLog(path).close()
    file = path / "00000000000000000000.log"
    file.write_bytes(frame(0, 1) + unreadable + truncated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncatedTailWarning)
        log = MessageLog(path, errors="move")
    with log:
        assert file.read_bytes() == frame(0, 1) + unreadable
        log.append([sample(2)])
        damages = []
        assert [message.offset for message in log.scan(on_error=damages.append)] == [0, 2]
        (damage,) = damages
        assert (damage.offset, damage.position, damage.end - damage.position) == (1, len(frame(0, 1)), len(unreadable))


@pytest.mark.parametrize("codec", CODECS)
def test_valid_checksum_with_wrong_offset_is_not_cut(path, codec):
    """The checksum does not cover the offset, of which one bit changed."""
    MessageLog(path).close()
    file = path / "00000000000000000000.log"
    file.write_bytes(frame(0, 1) + frame(1 << 20, 1, codec=codec) + frame(2, 1))
    (path / "log.json").write_text(json.dumps(asdict(Properties("typed", "orders", 0, 1 << 30))))  # there may be gaps
    data = file.read_bytes()
    for options in ({}, {"errors": "move"}):
        with pytest.raises(DamagedLogError, match="nothing is cut, as it contains a message with a valid checksum"):
            MessageLog(path, **options)
    assert file.read_bytes() == data
    assert not list(path.glob("*.damaged-*"))


def test_messages_after_a_damaged_set_are_found(path):
    """A frame does not contain the number of messages in a set, and a few bytes can contain many."""
    first, lost, last = frame(0, 1), frame(1, 2000, codec="gzip", value=b"v", key=None), frame(2001, 3, codec="lz4")
    MessageLog(path).close()
    file = path / "00000000000000000000.log"
    for at in (16, len(lost) // 2, len(lost) - 1):
        damaged = lost[:at] + bytes([lost[at] ^ 1]) + lost[at + 1 :]
        file.write_bytes(first + damaged + last)
        with MessageLog(path, errors="move") as log:
            damages = []
            assert [message.offset for message in log.scan(on_error=damages.append)] == [0, 2001, 2002, 2003]
            assert [(damage.position, damage.end) for damage in damages] == [(len(first), len(first + lost))]
            assert log.next_offset == 2004


def test_any_changed_bit_of_set_is_reported(path):
    MessageLog(path).close()
    file = path / "00000000000000000000.log"
    first, middle, last = frame(0, 1), frame(1, 3, codec="snappy", value=b"v"), frame(4, 1)
    file.write_bytes(first + middle + last)
    for place in flips(file, len(first), len(first) + 45):
        with MessageLog(path, readonly=True) as log:
            damages = []
            read = [message.offset for message in log.scan(on_error=damages.append)]
            assert (read, log.next_offset) == ([0, 4], 5), place
            assert [(damage.position, damage.end) for damage in damages] == [(len(first), len(first + middle))], place


# Killed ------------------------------------------------------------------------------------------------------------

WRITER = """
import os, sys
from letterhead.kip82 import MessageLog

path, sync, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
sizes = [10, 300, 5_000, 200_000, 700_000]
with MessageLog(path, sync=sync, segment_bytes=8 << 20) as log:
    os.write(1, b"open\\n")
    step = seed
    while True:
        step += 1
        first = log.next_offset
        size = sizes[step % len(sizes)]
        log.append([
            {"key": b"k%d" % (offset % 7), "value": b"%d:" % offset + bytes([offset % 251]) * size}
            for offset in range(first, first + 1 + step % 4)
        ])
        os.write(1, b"%d\\n" % log.next_offset)
"""


def killed(path: Path, sync: str, seed: int) -> int:
    """Append in another process, kill it, and return the offset up to which appends were acknowledged."""
    moment = random.Random(seed)
    command = [sys.executable, "-W", "ignore", "-c", WRITER, str(path), sync, str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
        output = process.stdout.readline()
        assert output == b"open\n"
        for _ in range(moment.randrange(6)):
            output = process.stdout.readline()
        time.sleep(moment.random() * 0.004)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
        assert process.wait(30) == -signal.SIGKILL
    lines = [line for line in (output + rest).split(b"\n")[:-1] if line.isdigit()]
    return int(lines[-1]) if lines else 0


def check_after_kills(path: Path, sync: str, kills: int) -> int:
    truncated = acknowledged = 0
    for seed in range(kills):
        acknowledged = max(acknowledged, killed(path, sync, seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncatedTailWarning)
            with MessageLog(path) as log:
                truncated += log.truncated_tail is not None
                assert log.next_offset >= acknowledged
                assert log.verify() == []
                there = 0
                for message in log.scan():
                    assert message.offset == there
                    assert message.value.startswith(b"%d:" % there)
                    assert not message.value.partition(b":")[2].strip(bytes([there % 251]))
                    there += 1
                assert there == log.next_offset
        if sum(file.stat().st_size for file in path.iterdir()) > 200 << 20:
            for file in path.iterdir():
                file.unlink()
            acknowledged = 0
    return truncated


@pytest.mark.full
@pytest.mark.parametrize("sync", ["append", "flush"])
def test_100_kills_during_append_lose_no_acknowledged_message(path, sync):
    truncated = check_after_kills(path, sync, 100)
    print(f"{truncated} of 100 kills left a truncated tail")


# Bytes that changed ------------------------------------------------------------------------------------------------


def flips(file: Path, start: int, end: int):
    """Write the file with one bit changed, for every bit of some bytes."""
    data = file.read_bytes()
    for position in range(start, end):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            file.write_bytes(changed)
            yield position, bit
    file.write_bytes(data)


def alike(header_format: str = "typed") -> list[lh.Message]:
    """Make messages of the same length, so that a changed size can point to the end of another message."""
    return [sample(0, header_format, value=b"%d" % number * 9, headers=[]) for number in range(COUNT)]


@pytest.mark.slow
def test_any_changed_bit_inside_log_is_reported(path, header_format):
    file = written(path, alike(header_format), header_format)
    size = len(encoded(alike(header_format), header_format)[0])
    at = 2
    for position, bit in flips(file, at * size, (at + 1) * size):
        before = file.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            log = MessageLog(path)
        with log, pytest.raises(DamagedLogError) as raised:
            list(log.scan())
        assert file.read_bytes() == before, "opening changes nothing"
        damage = raised.value.damage
        assert (damage.file, damage.position, damage.offset) == (str(file), at * size, at), (position, bit)
        assert f"{file}: bytes {at * size} to {damage.end}: offset {at}: " in str(raised.value)
        assert damage.code in lh.errors.CODES
        with MessageLog(path) as log:
            damages = []
            read = list(log.scan(on_error=damages.append))
            assert log.next_offset == COUNT
            assert log.append([sample(0, header_format)]) == range(COUNT, COUNT + 1)
        assert [damage] == damages
        assert damage.end == (at + 1) * size, (position, bit)
        assert [message.offset for message in read] == [0, 1, 3, 4, 5], (position, bit)
        assert [message.value for message in read] == [b"%d" % number * 9 for number in (0, 1, 3, 4, 5)]


def test_changed_bits_of_last_message_are_not_cut_silently(path):
    file = written(path, alike())
    size = len(encoded(alike())[0])
    last = COUNT - 1
    for place in flips(file, last * size, COUNT * size):
        before = file.read_bytes()
        with pytest.raises(DamagedLogError, match="no crash leaves a file like that") as raised:
            MessageLog(path)
        damage = raised.value.damage
        assert (damage.position, damage.end, damage.offset) == (last * size, COUNT * size, last), place
        assert file.read_bytes() == before
        with MessageLog(path, readonly=True) as log:
            assert log.truncated_tail is None
            assert log.verify() == [damage], place
            damages = []
            assert [message.offset for message in log.scan(on_error=damages.append)] == list(range(last))


def test_damaged_tail_cut_moves_damaged_end_to_file(path):
    file = written(path, alike())
    data = file.read_bytes()
    size = len(data) // COUNT
    file.write_bytes(data[:-1] + b"?")
    with pytest.warns(TruncatedTailWarning, match="the checksum is"):
        log = MessageLog(path, errors="move")
    with log:
        assert log.next_offset == COUNT - 1
        assert log.truncated_tail.position == len(data) - size
    assert (path / f"{file.name}.damaged-{len(data) - size}").read_bytes() == data[-size:-1] + b"?"
    assert file.read_bytes() == data[:-size]


def test_reading_continues_after_damage(path):
    """A damaged range that is larger than a message, in a file of several chunks."""
    source = [{"key": b"%d" % number, "value": bytes(1000), "timestamp": 0} for number in range(4000)]
    with MessageLog(path) as log:
        log.append(source)
    file = path / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    hole = slice(100_001, 100_001 + (3 << 20))
    noise = random.Random(7)
    data[hole] = noise.randbytes(3 << 20)
    file.write_bytes(data)
    with MessageLog(path) as log:
        damages = []
        read = [message.offset for message in log.scan(on_error=damages.append)]
        assert log.next_offset == 4000
        assert len(damages) == 1
        assert damages[0].position <= hole.start
        assert damages[0].end >= hole.stop
        assert damages[0].end - damages[0].position < (3 << 20) + 2200, "no more than the two messages at its ends"
        assert read == [*range(damages[0].offset), *range(read[damages[0].offset], 4000)]
        assert len(list(log.scan(3990))) == 10


def test_message_inside_a_damaged_value_is_not_read(path):
    """A damaged message whose value is a message set: these messages were never appended to this log."""
    inner = b"".join(encoded([lh.Message(key=b"inner", value=b"x") for _ in range(3)]))
    inner_from_2 = inner[len(inner) // 3 * 2 :]
    for value in (inner, inner_from_2):
        for at in (1, 2):
            directory = path.with_name(f"{path.name}{at}{len(value)}-0")
            file = written(directory, [sample(0), *[sample(0, value=value) for _ in range(2)]])
            data = bytearray(file.read_bytes())
            sizes = [len(written) for written in encoded([sample(0), *[sample(0, value=value) for _ in range(2)]])]
            data[sum(sizes[:at]) + 30] ^= 1  # in the key
            file.write_bytes(data)
            with MessageLog(directory, readonly=True) as log:
                damages = []
                read = [message.offset for message in log.scan(on_error=damages.append)]
            assert read == [offset for offset in range(3) if offset != at]
            assert [(damage.position, damage.end) for damage in damages] == [(sum(sizes[:at]), sum(sizes[: at + 1]))]


def test_messages_missing_between_files_are_reported(path):
    with MessageLog(path, segment_bytes=100) as log:
        for message in samples(COUNT):
            log.append([message])
        files = [segment.path for segment in log._files.segments]
    last_of_first = files[0].read_bytes()
    cut = len(encoded(samples(1))[0])
    files[0].write_bytes(last_of_first[:-1])
    with MessageLog(path) as log:
        (damage,) = log.verify()
    assert (damage.file, damage.position) == (str(files[0]), len(last_of_first) - cut)
    files[0].write_bytes(last_of_first)
    files[1].unlink()
    with MessageLog(path) as log:
        (damage,) = log.verify()
        assert "the file ends, and the next one begins with offset" in damage.reason
    files[0].unlink()
    with pytest.raises(DamagedLogError, match=r"00000000000000000000.log: byte 0: offset 0: the file is missing"):
        MessageLog(path)


def test_sizes_from_the_file_are_not_allocated(path):
    """Sizes of 2 GiB in every size field."""
    import tracemalloc

    file = written(path, alike())
    data = file.read_bytes()
    size = len(data) // COUNT
    for number in range(COUNT):
        for claimed in (b"\x7f\xff\xff\xff", b"\x00\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00"):
            changed = bytearray(data)
            changed[number * size + 8 : number * size + 12] = claimed
            file.write_bytes(changed)
            tracemalloc.start()
            with MessageLog(path, readonly=True) as log:
                damages = log.verify()
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert [damage.position for damage in damages] == [number * size]
            assert most < 4 << 20


def test_random_changes_are_reported_as_damage(path):
    noise = random.Random(82)
    file = written(path, alike())
    data = file.read_bytes()
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(noise.randrange(1, 6)):
            start = noise.randrange(len(changed))
            changed[start : start + noise.randrange(20)] = noise.randbytes(noise.randrange(20))
        file.write_bytes(changed)
        with MessageLog(path, readonly=True) as log:
            damages = []
            read = list(log.scan(on_error=damages.append))
            for message in read:
                rewritten = lh.encode(message._replace(crc=None), MESSAGE_FORMATS["typed"])
                assert rewritten in bytes(changed), "messages are read only where they are"
            assert [message.offset for message in read] == sorted({message.offset for message in read})
            spans = [(damage.position, damage.end) for damage in damages]
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
            reported = sum(end - start for start, end in spans)
            if log.truncated_tail is not None:
                reported += log.truncated_tail.end - log.truncated_tail.position
            assert reported + sum(
                len(lh.encode(message._replace(crc=None), MESSAGE_FORMATS["typed"])) for message in read
            ) == len(changed), "every byte is a message or reported"


def test_only_an_incomplete_message_counts_as_truncated(path):
    """The same bytes as a part of an append, and with a changed size."""
    file = written(path, [sample(0), sample(1, value=os.urandom(50))])
    data = file.read_bytes()
    first = len(encoded([sample(0)])[0])
    file.write_bytes(data[:-1])
    with MessageLog(path, readonly=True) as log:
        assert log.truncated_tail == Damage(
            str(file), first, len(data) - 1, 1, "the message has 104 bytes, and 103 are left in the file", "truncated"
        )
    size = int.from_bytes(data[first + 8 : first + 12], "big")
    file.write_bytes(data[: first + 8] + (size + 1).to_bytes(4, "big") + data[first + 12 :])
    with pytest.raises(DamagedLogError, match="104 are left in the file: no crash"):
        MessageLog(path)


# Bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1, 2, 3, 127])
def test_only_incomplete_message_of_known_magic_is_cut(path, magic):
    file = written(path, samples(2))
    whole = file.read_bytes()
    rest = bytearray(encoded(samples(3))[2][:-1])
    rest[16] = magic
    file.write_bytes(whole + rest)
    if magic > 2:
        with pytest.raises(DamagedLogError):
            MessageLog(path)
        assert file.read_bytes() == whole + rest
        return
    with pytest.warns(TruncatedTailWarning):
        MessageLog(path).close()
    assert file.read_bytes() == whole


def test_whole_message_is_found_wherever_the_search_window_ends(path, monkeypatch):
    monkeypatch.setattr(segment, "CHUNK", 64)
    first, second, third = encoded(samples(3))
    file = written(path, samples(1))
    for damaged in range(130, 200):
        data = first + b"\xff" * damaged + third
        file.write_bytes(data)
        with MessageLog(path, readonly=True) as log:
            [damage] = log.verify()
            assert (damage.position, damage.end) == (len(first), len(first) + damaged)
            assert [message.offset for message in log.scan(on_error=lambda _: None)] == [0, 2]
    assert second


@pytest.mark.parametrize("timestamps", ["create", "append"])
def test_timestamp_type_follows_log(path, header_format, timestamps):
    source = [{**sample(0, header_format)._asdict(), "attributes": attributes} for attributes in (0, 8)]
    with MessageLog(path, header_format, timestamps=timestamps) as log:
        log.append(source)
        log.produce(
            ProduceRequest.for_partition(
                "orders", 0, source, version=3 if header_format == "int" else 4, header_format=header_format
            )
        )
        assert {message.attributes & 8 for message in log.scan()} == {8 if timestamps == "append" else 0}
        assert [message.timestamp == 1_000_000 for message in log.scan()] == 4 * [timestamps == "create"]


@pytest.mark.parametrize("option", ["segment_bytes", "max_message_bytes"])
def test_log_sizes_are_at_least_one_byte(path, option):
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"{option} must be 1 or more, not {size}"):
            MessageLog(path, **{option: size})
    assert not path.exists()
    with MessageLog(path, segment_bytes=1) as log:
        log.append(samples(2))
        log.append(samples(1))
    assert len(list(path.glob("*.log"))) == 2


@pytest.mark.parametrize(("offset", "damaged"), [(1, False), (2, False), (3, True), (4, True)])
def test_compacted_file_offset_is_below_first_of_next_file(path, offset, damaged):
    with MessageLog(path, segment_bytes=1) as log:
        log.append([{"key": b"a", "value": b"v"}, {"key": b"b", "value": b"v"}, {"key": b"a", "value": b"v"}])
        log.append([{"key": b"c", "value": b"v"}])
        log.compact(now=1, delete_retention_ms=0)
    file = path / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    last = len(data) // 2
    assert int.from_bytes(data[last : last + 8], "big") == 2
    data[last : last + 8] = offset.to_bytes(8, "big")  # no checksum covers it
    data[:8] = bytes(8)
    file.write_bytes(data)
    with MessageLog(path, readonly=True) as log:
        assert [damage.code for damage in log.verify()] == (["out_of_range"] if damaged else [])


@pytest.mark.parametrize("count", [1, 2])
def test_record_batch_up_to_file_end_is_named(path, count):
    file = written(path, samples(2))
    whole = file.read_bytes()
    batches = b"".join(lh.batch([{"offset": 2 + number, "value": b"v"}]) for number in range(count))
    file.write_bytes(whole + batches)
    for errors in ("raise", "move"):
        with pytest.raises(MessageLogError, match="has record batches of Kafka"):
            MessageLog(path, errors=errors)
    assert file.read_bytes() == whole + batches
