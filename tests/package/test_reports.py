"""Errors, losses and labels of one call are bounded, and so is the memory of a call."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import ErrorDetail
from letterhead.limits import Limits
from tests.helpers.batch_bytes import message
from tests.helpers.implementations import detail_of
from tests.helpers.outcomes import decoded, same, selected
from tests.helpers.strategies import few
from tests.reference import ops, varint
from tests.reference.crc32c import crc32c

MORE_ERRORS = "there are more errors than the limit of {}: raise reports in limits= or LETTERHEAD_MAX_REPORTS"
MORE_LOSSES = "there are more losses than the limit of {}: raise reports in limits= or LETTERHEAD_MAX_REPORTS"
MORE_LABELS = "there are more labels than the limit of {}: raise reports in limits= or LETTERHEAD_MAX_REPORTS"


def bad_keys(count: int) -> bytes:
    """Return headers, each of which has an error."""
    return varint.write(count) + b"\x02\xff\x01" * count


def nulls(count: int) -> bytes:
    """Return headers that Iggy cannot carry."""
    return varint.write(count) + b"\x02a\x01" * count


@pytest.mark.parametrize("limit", [2, 3, 10])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 10, 11, 50])
def test_errors_are_listed_up_to_limit_and_last_one_notes_more(count: int, limit: int) -> None:
    limits = Limits(reports=limit)
    details = [detail_of(error) for error in lh.validate(bad_keys(count), "kafka", limits=limits)]
    assert details == ops.validate(bad_keys(count), "kafka", limits=limits)
    assert details == lh.inspect(bad_keys(count), "kafka", limits=limits)["errors"]
    assert len(details) == min(count, limit)
    assert details[0].code == "key_not_utf8"
    if count > limit:
        assert details[-1] == ErrorDetail("limit_exceeded", MORE_ERRORS.format(limit))


@pytest.mark.parametrize("limit", [0, 1])
def test_first_error_is_always_listed(limit: int) -> None:
    errors = lh.validate(bad_keys(5), "kafka", limits=Limits(reports=limit))
    assert [error.code for error in errors] == ["key_not_utf8", "limit_exceeded"]


def test_default_limit_is_ten_thousand() -> None:
    assert len(lh.validate(bad_keys(10_000), "kafka")) == 10_000
    errors = lh.validate(bad_keys(30_000), "kafka")
    assert len(errors) == 10_000
    assert errors[-1].code == "limit_exceeded"
    assert len(lh.validate(bad_keys(30_000), "kafka", limits=Limits(reports=30_000))) == 30_000


def test_environment_sets_limit() -> None:
    code = f"import letterhead as lh; print(len(lh.validate(bytes.fromhex('{bad_keys(9).hex()}'), 'kafka')))"
    variables = {**os.environ, "LETTERHEAD_MAX_REPORTS": "4"}
    ended = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert ended.stdout == "4\n"


@pytest.mark.parametrize("format", ["record-batch", "kip82-messages-int"])
def test_errors_of_all_batch_messages_count_together(format: Any) -> None:
    data = b""
    if format == "kip82-messages-int":
        data = (message("kip82-message-int", headers=[(1, None, b"v")], value=b"x")[:-1] + b"?") * 30
    if format == "record-batch":
        data = lh.batch([{"value": b"x", "headers": []}]).replace(b"x", b"y") * 30
    whole = ops.validate(data, format)
    assert len(whole) >= 20
    details = [detail_of(error) for error in lh.validate(data, format, limits=Limits(reports=7))]
    assert details == ops.validate(data, format, limits=Limits(reports=7))
    assert details[:6] == whole[:6]
    assert len(details) == 7


@pytest.mark.parametrize("limit", [2, 5, 1000])
def test_labels_cover_every_byte_whatever_their_limit(limit: int) -> None:
    data = lh.encode([("a", b"1")] * 100, "kafka")
    labels = lh.inspect(data, "kafka", limits=Limits(reports=limit))["labels"]
    assert len(labels) == min(limit, len(lh.inspect(data, "kafka")["labels"]))
    at = 0
    for label in labels:
        assert label.start == at < label.end
        at = label.end
    assert at == len(data)
    if limit < 1000:
        assert (labels[-1].field, labels[-1].text) == ("not shown", MORE_LABELS.format(limit))
        assert labels[:-1] == lh.inspect(data, "kafka")["labels"][: limit - 1]


@pytest.mark.parametrize("limit", [2, 5, 100])
def test_losses_are_listed_up_to_the_limit(limit: int) -> None:
    data, options = nulls(20), {"target": "iggy", "on_loss": "report", "limits": Limits(reports=limit)}
    converted = lh.convert(data, "kafka", types="binary", **options)
    assert list(converted.losses) == list(ops.convert(data, "kafka", types="binary", **options).losses)
    assert len(converted.losses) == min(20, limit)
    if limit < 20:
        assert (converted.losses[-1].code, converted.losses[-1].message) == (
            "limit_exceeded",
            MORE_LOSSES.format(limit),
        )


def test_restoring_types_are_as_many_as_losses() -> None:
    data = lh.encode([(f"k{n}", lh.Int8(1)) for n in range(20)], "iggy")
    options = {"target": "kafka", "types": "be", "on_loss": "report", "limits": Limits(reports=5)}
    converted, expected = lh.convert(data, "iggy", **options), ops.convert(data, "iggy", **options)
    assert converted.losses.types == expected.losses.types == {f"k{n}": "int8" for n in range(5)}
    assert converted.losses[-1].code == "limit_exceeded"
    assert lh.decode(converted.data, "kafka") == lh.Headers([(f"k{n}", b"\1") for n in range(20)])


@few
@given(st.lists(st.integers(0, 90), max_size=12), st.integers(0, 120), st.integers(1, 3))
def test_rows_of_column_share_limit_beyond_first_64(counts: list[int], limit: int, threads: int) -> None:
    limits = Limits(reports=limit)
    rows = [bad_keys(count) for count in counts]
    column = pa.array(rows, pa.binary())
    details = [
        row and [ErrorDetail(**detail) for detail in row]
        for row in lha.validate(column, "kafka", limits=limits, threads=threads).to_pylist()
    ]
    assert details == ops.validate_rows(rows, "kafka", limits=limits)
    assert [row is not None for row in details] == [count > 0 for count in counts]
    assert sum(max(len(row) - 64, 0) for row in details if row) <= limit + len(rows)
    assert all(len(row) >= min(count, limit, 64) for row, count in zip(details, counts, strict=True) if row)
    columns = {"first": lh.field("binary", key="k")}
    options: dict[str, Any] = {"errors": "column", "limits": limits}
    assert same(decoded(lha.decode(column, "kafka", **options))) == same(ops.decode_rows(rows, "kafka", **options))
    chosen = selected(lha.select(column, columns, **options))
    assert same(chosen) == same(ops.select_rows(rows, "kafka", columns, **options))
    lost = [nulls(count) for count in counts]
    reported = {"target": "iggy", "types": "binary", "on_loss": "report", "limits": limits}
    assert lha.convert(pa.array(lost, pa.binary()), "kafka", **reported).field("losses").to_pylist() == [
        row["losses"] and [loss._asdict() for loss in row["losses"]]
        for row in ops.convert_rows(lost, "kafka", **reported)
    ]


def test_threaded_rows_have_same_errors_as_single_thread() -> None:
    rows = [bad_keys(60 + number % 20) for number in range(3000)]
    column = pa.array(rows, pa.binary())
    by_one_thread, two = (lha.validate(column, "kafka", threads=threads) for threads in (1, 2))
    assert by_one_thread.equals(two)
    kept = [len(row) for row in by_one_thread.to_pylist()]
    assert sum(max(count - 64, 0) for count in kept) > 9000
    assert max(kept[-100:]) == 64


# --- messages one by one ---------------------------------------------------------------------------------------------


def in_process(code: str, mib: int) -> str:
    """Run code that has `grown()`, the MiB that the peak of memory has grown by, with an upper bound of memory."""
    prelude = f"""
import resource, sys
import letterhead as lh
from letterhead import arrow as lha
import pyarrow as pa
from tests.package.test_reports import bad_keys, bomb, nulls, squeezed
lh.validate(b"", "kafka")
sizes = [int(part) for part in open("/proc/self/statm").read().split()]
resource.setrlimit(resource.RLIMIT_AS, ((sizes[0] * resource.getpagesize()) + ({mib} << 20),) * 2)
"""
    command = [sys.executable, "-c", prelude + code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def bomb(format: str = "record-batch") -> bytes:
    """Return a batch of few bytes with millions of messages."""
    if format == "record-batch":
        count = 8_000_000
        return squeezed(b"\x0c\x00\x00\x00\x01\x01\x00" * count, count)
    return _old(1, gzip.compress(_old(0, b"") * 2_000_000))


def squeezed(records: bytes, count: int) -> bytes:
    """Return a record batch with these bytes for records, compressed."""
    body = struct.pack(">hiqqqhii", 1, count - 1, 0, 0, -1, -1, -1, count) + gzip.compress(records)
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


def _old(attributes: int, value: bytes) -> bytes:
    """Return a message of format 0."""
    body = struct.pack(">bbii", 0, attributes, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


attack = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@attack
@pytest.mark.parametrize("format", ["record-batch", "kip82-messages"])
def test_first_of_millions_of_messages_takes_no_memory_for_rest(format: str) -> None:
    code = f"""
data = bomb("{format}")
print(len(data))
messages = lh.messages(data, "{format}")
for _ in range(5000):
    next(messages)
"""
    assert int(in_process(code, 400)) < 300_000


@attack
@pytest.mark.parametrize(
    "call",
    [
        "lh.validate(bad_keys(900_000), 'kafka')",
        "lh.inspect(bad_keys(900_000), 'kafka')",
        "lha.validate(pa.array([bad_keys(9000)] * 100), 'kafka')",
        "lha.decode(pa.array([bad_keys(9000)] * 100), 'kafka', errors='column')",
        "lha.select(pa.array([bad_keys(9000)] * 100), {'a': 'string'}, errors='column')",
    ],
)
def test_reports_of_many_errors_take_little_memory(call: str) -> None:
    in_process(call, 140)


@attack
def test_reports_of_many_losses_take_little_memory() -> None:
    in_process("lh.convert(nulls(600_000), 'kafka', target='iggy', on_loss='report')", 250)
    in_process("lha.convert(pa.array([nulls(9000)] * 100), 'kafka', target='iggy', on_loss='report')", 140)


@attack
def test_compressed_batch_errors_take_little_memory() -> None:
    in_process("lh.validate(squeezed(bytes(60 << 20), 60 << 20), 'record-batch')", 400)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("format", ["record-batch", "kip82-messages"])
def test_messages_beyond_one_chunk_are_all_read(format: Any, codec: Any) -> None:
    batches = [
        lh.batch([{"offset": start + n, "value": b"v%d" % n, "headers": []} for n in range(count)], format, codec=codec)
        for start, count in ((0, 5000), (5000, 1), (5001, 2048), (7049, 2047), (9096, 4096))
    ]
    messages = list(lh.messages(b"".join(batches), format))
    assert [message.offset for message in messages] == list(range(13_192))
    assert messages[4999].value == b"v4999"
    broken = b"".join(batches) + batches[0][:-1]
    reader = lh.messages(broken, format)
    read = []
    with pytest.raises(lh.DecodeError, match=r"are left|is left"):
        read.extend(iter(lambda: next(reader), None))
    with pytest.raises(ValueError, match="the iterator of messages failed"):
        next(reader)


def test_limits_count_over_all_chunks() -> None:
    data = lh.batch([{"value": b"v", "headers": []}] * 5000, codec="zstd")
    for limits in (Limits(records=4000), Limits(output_bytes=8000)):
        reader = lh.messages(data, "record-batch", limits=limits)
        for _ in range(4000):
            next(reader)
        with pytest.raises(lh.DecodeError, match="message 4000: ") as caught:
            next(reader)
        assert caught.value.code == "limit_exceeded"
