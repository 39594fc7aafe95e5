"""Limits that whoever reads sets: what is at one is read, what is over one is an error, whichever way it is read."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead import limits as own
from letterhead.errors import DamagedRowError, DecodeError, ErrorDetail
from letterhead.limits import Limits
from tests.helpers import strategies
from tests.helpers.batch_bytes import MESSAGE_OF, batch, frame, message, polled, squeeze
from tests.helpers.implementations import detail_of
from tests.helpers.outcomes import decoded, outcome, same, selected
from tests.helpers.strategies import BATCHES, ONE, few
from tests.reference import ops, varint
from tests.reference.crc32c import crc32c
from tests.reference.cursor import Cursor
from tests.reference.formats import FORMATS
from tests.reference.reading import _output_bytes

HEADERS = 3
"""Headers of every message of these tests."""

LARGEST = 10
"""Bytes of the largest message of these tests that may be read."""

every_format = pytest.mark.parametrize("format", FORMATS)
every_one = pytest.mark.parametrize("format", ONE)
every_policy = pytest.mark.parametrize("errors", ["raise", "null", "column"])


def headers_of(format: str, count: int = HEADERS) -> list[tuple[Any, str | None, bytes]]:
    """Make headers that a format has."""
    traits = FORMATS[format].traits
    return [
        (n if traits.keys == "int" else f"k{n}", None if traits.types is None else "binary", b"v") for n in range(count)
    ]


def message_of(format: str, count: int = HEADERS) -> bytes:
    """Write a message with so many headers; for batch formats, a batch of two such messages."""
    headers = headers_of(format, count)
    if format in MESSAGE_OF:
        return 2 * message(MESSAGE_OF[format], headers=headers, value=b"x")
    if format == "iggy-batch":
        return batch(*(frame(place, block=ops.encode(headers, "iggy") or b"") for place in range(2)))
    if format == "iggy-polled-2023":
        fields = {
            "offset": 1,
            "timestamp": 2,
            "state": "available",
            "id": bytes(16),
            "payload": b"x",
            "headers": headers,
        }
        return 2 * polled(fields, later=False)
    if format == "record-batch":
        return lh.batch([{"value": b"x", "headers": [(key, value) for key, _, value in headers]} for _ in range(2)])
    if format == "iggy-auto":
        return message_of("iggy", count)
    if FORMATS[format].message is None:
        return ops.encode(headers, format) or b""
    fields = dict.fromkeys(name for name, _ in FORMATS[format].fields)
    known = {"timestamp": 5, "payload": b"p", "value": b"x", "headers": headers}
    return ops.encode({name: known.get(name) for name in fields}, format) or b""


def binary_columns(format: str) -> Any:
    """Ask for the first header."""
    return {"first": lh.field("binary", key=0 if FORMATS[format].traits.keys == "int" else "k0")}


def read(value: bytes, format: str, limits: Limits | None) -> list[Callable[[], Any]]:
    """Return every way to read a message, the reference first."""
    column = pa.array([value], pa.binary())
    if format in BATCHES:
        return [
            lambda: ops.messages(value, format, limits=limits),
            lambda: list(lh.messages(value, format, limits=limits)),
            lambda: lha.messages(column, format, limits=limits),
        ]
    return [
        lambda: ops.decode(value, format, limits=limits),
        lambda: lh.decode(value, format, limits=limits),
        lambda: lh.convert(value, format, target="kafka", types="be", on_loss="drop", limits=limits),
        lambda: ops.convert(value, format, target="kafka", types="be", on_loss="drop", limits=limits),
        lambda: ops.select(value, format, binary_columns(format), limits=limits),
        lambda: lh.select(value, binary_columns(format), format=format, limits=limits),
        lambda: lha.decode(column, format, limits=limits),
        lambda: lha.select(column, binary_columns(format), format=format, limits=limits),
        lambda: lha.convert(column, format, target="kafka", types="be", on_loss="drop", limits=limits),
    ]


def details(value: bytes, format: str, limits: Limits | None) -> list[ErrorDetail]:
    """Return the errors of a message, and check that all readers agree on them."""
    listed = ops.validate(value, format, limits=limits)
    assert [detail_of(error) for error in lh.validate(value, format, limits=limits)] == listed
    assert [ErrorDetail(*detail) for detail in lh.inspect(value, format, limits=limits)["errors"]] == listed
    [row] = lha.validate(pa.array([value], pa.binary()), format, limits=limits).to_pylist()
    assert [ErrorDetail(**detail) for detail in row or ()] == listed
    return listed


# --- every format ----------------------------------------------------------------------------------------------------


@every_format
def test_message_with_header_count_at_limit_is_read(format: str) -> None:
    value = message_of(format)
    assert details(value, format, Limits(headers=HEADERS)) == []
    for call in read(value, format, Limits(headers=HEADERS)):
        assert call() is not None


@every_format
def test_message_one_header_over_limit_is_rejected_everywhere(format: str) -> None:
    value = message_of(format)
    errors = details(value, format, Limits(headers=HEADERS - 1))
    assert [detail.code for detail in errors] == ["limit_exceeded"] * (2 if format in BATCHES else 1)
    first = errors[0]
    assert "limit of 2: raise headers in limits= or LETTERHEAD_MAX_HEADERS" in first.message
    for call in read(value, format, Limits(headers=HEADERS - 1)):
        with pytest.raises(DecodeError) as caught:
            call()
        assert caught.value.format == format
        assert detail_of(caught.value) == first


@every_format
def test_message_bytes_at_limit_are_read_and_above_rejected(format: str) -> None:
    value = message_of(format)
    at, under = Limits(message_bytes=len(value)), Limits(message_bytes=len(value) - 1)
    assert details(value, format, at) == []
    for call in read(value, format, at):
        assert call() is not None
    output = f"the input has {len(value)} bytes, over the limit of {len(value) - 1}: raise message_bytes in limits= or "
    output = ("message 0: " if format in BATCHES else "") + output + "LETTERHEAD_MAX_MESSAGE_BYTES"
    expected = ErrorDetail("limit_exceeded", output, len(value) - 1)
    assert details(value, format, under) == [expected]
    for call in read(value, format, under):
        with pytest.raises(DecodeError) as caught:
            call()
        assert detail_of(caught.value) == expected
        assert caught.value.format == format


@pytest.mark.parametrize(
    ("format", "byte", "header"),
    [
        ("kafka", 0, None),
        ("streams-timestamped", 1, None),
        # Behind two headers of an int32, an int32 and a byte.
        ("kip82-int", 18, 2),
        ("kip82-wrapper", 5 + 18, 2),
        ("iggy", 2 * 13, 2),
    ],
)
def test_error_has_byte_where_limit_is_exceeded(format: str, byte: int, header: int | None) -> None:
    [detail] = details(message_of(format), format, Limits(headers=2))
    assert (detail.byte_offset, detail.header) == (byte, header)


def test_impossible_count_is_reported_before_limit() -> None:
    [detail] = details(bytes.fromhex("c801"), "kafka", Limits(headers=2))
    assert detail.code == "count_too_large"


def test_limits_apply_to_lenient_readers_too() -> None:
    with pytest.raises(DecodeError) as caught:
        lh.decode(message_of("kafka"), "kafka", lenient=True, limits=Limits(headers=2))
    assert caught.value.code == "limit_exceeded"


def test_lists_of_headers_are_not_limited() -> None:
    lists = lha.decode(pa.array([message_of("kafka")]), "kafka")
    assert lha.select(lists, {"k2": "string"}, limits=Limits(headers=0, message_bytes=0)).to_pylist() == [{"k2": "v"}]


def test_messages_beside_one_over_limit_are_read() -> None:
    small, big = ({"value": b"x", "headers": [("a", b"1")] * count} for count in (1, 3))
    value = lh.batch([small, big, small])
    column = pa.array([value], pa.binary())
    rows = lha.messages(
        column, "record-batch", columns=["offset"], headers={"a": "string"}, errors="column", limits=Limits(headers=2)
    ).to_pylist()
    assert [(row["offset"], row["a"], row["error"] and row["error"][0]["code"]) for row in rows] == [
        (0, "1", None),
        (1, None, "limit_exceeded"),
        (2, "1", None),
    ]
    iterator = lh.messages(value, "record-batch", limits=Limits(headers=2))
    assert next(iterator).offset == 0
    with pytest.raises(DecodeError, match="message 1: 3 headers declared, over the limit of 2"):
        next(iterator)


# --- policies of columns, compared with the reference implementation -----------------------------------------------------------------------

ROWS: list[tuple[str, Limits]] = [
    (format, limits)
    for format in ("kafka", "kip82-int", "kip82-typed", "iggy", "iggy-2023", "streams-timestamped", "kip82-wrapper")
    for limits in (Limits(headers=2), Limits(message_bytes=len(message_of(format, 2))))
]


@every_policy
@pytest.mark.parametrize(("format", "limits"), ROWS)
def test_row_over_limit_is_handled_like_bad_row(format: str, limits: Limits, errors: Any) -> None:
    rows = [message_of(format, 2), message_of(format, 3), None, message_of(format, 1)]
    column = pa.array(rows, pa.binary())
    calls = [
        (
            lambda: decoded(lha.decode(column, format, errors=errors, limits=limits)),
            lambda: ops.decode_rows(rows, format, errors=errors, limits=limits),
        ),
        (
            lambda: selected(lha.select(column, binary_columns(format), format=format, errors=errors, limits=limits)),
            lambda: ops.select_rows(rows, format, binary_columns(format), errors=errors, limits=limits),
        ),
        (
            lambda: lha.convert(
                column, format, target="kafka", types="be", on_loss="drop", errors=errors, limits=limits
            ).to_pylist(),
            lambda: ops.convert_rows(
                rows, format, target="kafka", types="be", on_loss="drop", errors=errors, limits=limits
            ),
        ),
    ]
    for native, expected in calls:
        assert outcome(native) == outcome(expected)
    if errors == "raise":
        with pytest.raises(DecodeError) as caught:
            calls[0][0]()
        assert (caught.value.code, caught.value.row) == ("limit_exceeded", 1)
    if errors == "null":
        result = calls[0][0]()
        assert result[1] is None
        assert [row is not None for row in result] == [True, False, False, True]
    if errors == "column":
        result = lha.decode(column, format, errors=errors, limits=limits).field("error").to_pylist()
        assert [row and row[0]["code"] for row in result] == [None, "limit_exceeded", None, None]


@pytest.mark.parametrize("format", ["kafka", "streams", "streams-timestamped", "iggy"])
@pytest.mark.parametrize("limited", ["headers", "message_bytes"])
def test_row_over_limit_is_found_among_many(format: str, limited: str) -> None:
    # In the middle of many rows nearly all of a column is read by the fastest way there is.
    small, big = message_of(format, 2), message_of(format, 3)
    rows = [small] * 300
    limits = Limits(headers=2) if limited == "headers" else Limits(message_bytes=len(small))
    for place in (0, 129, 200, 299):
        column = pa.array([*rows[:place], big, *rows[place:]], pa.binary())
        for result in (
            lha.decode(column, format, errors="column", limits=limits).field("error"),
            lha.select(column, binary_columns(format), format=format, errors="column", limits=limits).field("error"),
            lha.convert(
                column, format, target="kafka", types="be", on_loss="drop", errors="column", limits=limits
            ).field("error"),
            lha.validate(column, format, limits=limits),
        ):
            bad_rows = [(row, details[0]["code"]) for row, details in enumerate(result.to_pylist()) if details]
            assert bad_rows == [(place, "limit_exceeded")]


@every_policy
@pytest.mark.parametrize("format", BATCHES)
def test_batch_over_limit_is_handled_like_bad_batch(format: str, errors: Any) -> None:
    rows = [message_of(format, 1), message_of(format, 2), None, message_of(format, 1)]
    column = pa.array(rows, pa.binary())
    for limits in (Limits(headers=1), Limits(message_bytes=len(rows[0] or b""))):

        def native(limits: Limits = limits) -> Any:
            result = lha.messages(column, format, errors=errors, limits=limits)
            return [{name: part[row] for name, part in selected_plain(result).items()} for row in range(len(result))]

        assert outcome(native) == outcome(
            lambda limits=limits: ops.messages_rows(rows, format, errors=errors, limits=limits)
        )


def selected_plain(result: Any) -> dict[str, list[Any]]:
    """Return the columns of messages, headers as the reference has them."""
    rows = decoded(result)
    return {name: [row[name] for row in rows] for name in result.type.names}


@every_one
@few
@given(st.data(), st.integers(0, 3), st.integers(0, 120))
def test_native_and_reference_report_same_limit_errors(
    format: str, data: st.DataObject, headers: int, length: int
) -> None:
    drawn = data.draw(strategies.any_bytes(format)) or b""
    limits = Limits(headers=headers, message_bytes=length)
    details = [detail_of(error) for error in lh.validate(drawn, format, limits=limits)]
    assert same(details) == same(ops.validate(drawn, format, limits=limits))


# --- what is compressed ----------------------------------------------------------------------------------------------

CONTENT_LEN = 100_000


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_decompressed_records_may_reach_limit(codec: Any) -> None:
    given_messages = [{"value": bytes(CONTENT_LEN), "headers": [("a", b"1")]}]
    become = len(lh.batch(given_messages)) - 61
    value = lh.batch(given_messages, codec=codec)
    assert len(value) < become / 10
    at, under = Limits(decompressed_bytes=become), Limits(decompressed_bytes=become - 1)
    [read_message] = lh.messages(value, "record-batch", limits=at)
    assert read_message.value == bytes(CONTENT_LEN)
    assert details(value, "record-batch", at) == []
    output = f"message 0: decompressed data would pass {become - 1} bytes"
    assert details(value, "record-batch", under) == [ErrorDetail("decompressed_too_large", output, 61)]
    for call in read(value, "record-batch", under):
        with pytest.raises(DecodeError, match=output):
            call()


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("magic", [0, 1])
def test_decompressed_set_may_reach_limit(codec: int, magic: int) -> None:
    inside = message("kip82-message", magic=magic, value=bytes(CONTENT_LEN))
    compressed = squeeze(codec, inside, legacy=magic == 0)
    value = message("kip82-message", magic=magic, attributes=codec, value=compressed)
    for format in ("kip82-messages", "record-batch"):
        assert details(value, format, Limits(decompressed_bytes=len(inside))) == []
        [detail] = details(value, format, Limits(decompressed_bytes=len(inside) - 1))
        assert detail.code == "decompressed_too_large"


@pytest.mark.parametrize("format", ["record-batch", "kip82-messages"])
def test_all_compressed_batches_of_value_count_together(format: Any) -> None:
    given_messages = [{"value": bytes(CONTENT_LEN), "headers": []}]
    [plain, squeezed] = [lh.batch(given_messages, format, codec=codec) for codec in ("none", "gzip")]
    become = len(plain) - (61 if format == "record-batch" else 0)
    value = squeezed * 5
    assert details(value, format, Limits(decompressed_bytes=5 * become)) == []
    for call in read(value, format, Limits(decompressed_bytes=5 * become)):
        assert len(call()) == 5
    errors = details(value, format, Limits(decompressed_bytes=3 * become))
    assert [detail.code for detail in errors] == ["decompressed_too_large"] * 2
    assert [detail.message.split(":")[0] for detail in errors] == ["message 3", "message 4"]
    messages = lh.messages(value, format, limits=Limits(decompressed_bytes=3 * become))
    assert [next(messages).value for _ in range(3)] == [bytes(CONTENT_LEN)] * 3
    with pytest.raises(DecodeError, match=f"would pass {3 * become} bytes"):
        next(messages)


# --- what one value becomes ------------------------------------------------------------------------------------------


def more_records(most: int) -> ErrorDetail:
    """Return the error of a value with more records than a limit."""
    output = f"the value has more records than the limit of {most}: raise records in limits= or LETTERHEAD_MAX_RECORDS"
    return ErrorDetail("limit_exceeded", f"message {most}: {output}")


def more_bytes(most: int, number: int) -> ErrorDetail:
    """Return the error of a value whose records take more bytes than a limit."""
    output = f"the records of the value take more bytes than the limit of {most}: raise output_bytes in limits= or "
    return ErrorDetail("limit_exceeded", f"message {number}: {output}LETTERHEAD_MAX_OUTPUT_BYTES")


@pytest.mark.parametrize("format", BATCHES)
def test_value_may_have_records_up_to_limit(format: str) -> None:
    value = message_of(format)
    assert details(value, format, Limits(records=2)) == []
    for call in read(value, format, Limits(records=2)):
        assert len(call()) == 2
    for most in (0, 1):
        assert details(value, format, Limits(records=most)) == [more_records(most)]
        for call in read(value, format, Limits(records=most)):
            with pytest.raises(DecodeError) as caught:
                call()
            assert (caught.value.format, detail_of(caught.value)) == (format, more_records(most))


@pytest.mark.parametrize("format", BATCHES)
def test_record_bytes_of_value_may_reach_limit_and_not_exceed_it(format: str) -> None:
    value = message_of(format)
    most = sum(_output_bytes(opened) for opened in FORMATS[format].batch.messages(Cursor(value)))
    assert len(b"x") * 2 < most < len(value)
    assert details(value, format, Limits(output_bytes=most)) == []
    for call in read(value, format, Limits(output_bytes=most)):
        assert len(call()) == 2
    assert details(value, format, Limits(output_bytes=most - 1)) == [more_bytes(most - 1, 1)]
    for call in read(value, format, Limits(output_bytes=0)):
        with pytest.raises(DecodeError) as caught:
            call()
        assert detail_of(caught.value) == more_bytes(0, 0)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_output_bytes_count_keys_values_and_headers(codec: Any) -> None:
    value = lh.batch([{"key": b"12", "value": b"345", "headers": [("a", b"b")]}] * 2, codec=codec)
    most = 2 * (2 + 3 + len(lh.encode([("a", b"b")], "kafka")))
    assert details(value, "record-batch", Limits(output_bytes=most)) == []
    assert details(value, "record-batch", Limits(output_bytes=most - 1)) == [more_bytes(most - 1, 1)]


def test_records_of_all_batches_and_sets_of_value_count() -> None:
    batches = lh.batch([{"value": b"x"}] * 3) + lh.batch([{"value": b"x"}] * 3, codec="zstd")
    inside = 3 * message("kip82-message", magic=1, value=b"x")
    one_set = message("kip82-message", magic=1, attributes=1, value=squeeze(1, inside))
    for format, value in (
        ("record-batch", batches),
        ("record-batch", one_set * 2),
        ("record-batch", batches[: len(lh.batch([{"value": b"x"}] * 3))] + one_set),
        ("kip82-messages", one_set * 2),
    ):
        sizes = [_output_bytes(opened) for opened in FORMATS[format].batch.messages(Cursor(value))]
        for most in (0, 2, 3, 4, 5):
            assert details(value, format, Limits(records=most)) == [more_records(most)]
            assert details(value, format, Limits(output_bytes=sum(sizes[:most]))) == [
                more_bytes(sum(sizes[:most]), most)
            ]
        assert details(value, format, Limits(records=6, output_bytes=sum(sizes))) == []


def test_unreadable_records_count_too() -> None:
    bad = bytearray(lh.batch([{"value": b"x"}]))
    bad[-1] ^= 1
    value = bytes(bad) * 3
    assert [detail.code for detail in details(value, "record-batch", Limits(records=3))] == ["bad_crc"] * 3
    errors = details(value, "record-batch", Limits(records=2))
    assert [detail.code for detail in errors] == ["bad_crc"] * 3 + ["limit_exceeded"]
    assert errors[-1] == more_records(2)


def test_empty_batch_is_not_a_record() -> None:
    empty = batch_of()
    assert details(lh.batch([{"value": b"x"}]) + empty, "record-batch", Limits(records=1)) == []


def batch_of() -> bytes:
    """Make a record batch without records."""
    covered = struct.pack(">hi2qqhii", 0, -1, 0, 0, -1, -1, -1, 0)
    return struct.pack(">qiibI", 1, len(covered) + 9, -1, 2, crc32c(covered)) + covered


@every_policy
@pytest.mark.parametrize("limits", [Limits(records=1), Limits(output_bytes=9)], ids=["records", "output_bytes"])
@pytest.mark.parametrize("format", BATCHES)
def test_value_over_limit_ends_with_one_bad_row(format: str, limits: Limits, errors: Any) -> None:
    rows = [message_of(format, 1), None, message_of(format, 1)]
    column = pa.array(rows, pa.binary())

    def native() -> Any:
        result = lha.messages(column, format, errors=errors, limits=limits)
        return [{name: part[row] for name, part in selected_plain(result).items()} for row in range(len(result))]

    assert outcome(native) == outcome(lambda: ops.messages_rows(rows, format, errors=errors, limits=limits))
    if errors == "column":
        codes_by_row = [(row["row"], row["error"] and row["error"][0]["code"]) for row in native()]
        assert codes_by_row[-1] == (2, "limit_exceeded")
        assert [row for row, code in codes_by_row if code] == [0, 2]


@pytest.mark.parametrize("format", BATCHES)
@few
@given(st.data(), st.integers(0, 4), st.integers(0, 60))
def test_native_and_reference_agree_over_value_limits(
    format: str, data: st.DataObject, records: int, output: int
) -> None:
    value = data.draw(strategies.any_bytes(format)) or b""
    for limits in (Limits(records=records), Limits(output_bytes=output), Limits(records=records, output_bytes=output)):
        details = [detail_of(error) for error in lh.validate(value, format, limits=limits)]
        assert same(details) == same(ops.validate(value, format, limits=limits))
        column = pa.array([value], pa.binary())
        assert outcome(
            lambda limits=limits, column=column: len(lha.messages(column, format, errors="null", limits=limits))
        ) == outcome(lambda limits=limits: len(ops.messages_rows([value], format, errors="null", limits=limits)))


def iggy_with_empty_batch() -> bytes:
    """Make a message with a wrong checksum, twice, and a batch without messages between them."""
    broken = bytearray(message_of("iggy-batch", 1))
    broken[-1] ^= 1
    return bytes(broken) + batch() + bytes(broken)


def kip82_with_empty_set() -> bytes:
    """Make a message with a wrong checksum, twice, and a compressed set without messages between them."""
    broken = bytes.fromhex("00000000000000000000002260910c39000100ffffff") + bytes(24)
    empty = gzip.compress(b"", mtime=0)
    covered = struct.pack(">bbqii", 2, 1, 0, -1, len(empty)) + empty
    framed = struct.pack(">qiI", 0, len(covered) + 4, zlib.crc32(covered)) + covered
    return broken + framed + broken


@pytest.mark.parametrize(
    ("format", "value"),
    [("iggy-batch", iggy_with_empty_batch()), ("kip82-messages-wrapper", kip82_with_empty_set())],
    ids=["iggy", "kip82"],
)
def test_set_without_messages_takes_no_number_after_errors(format: str, value: bytes) -> None:
    details = [detail_of(error) for error in lh.validate(value, format)]
    assert same(details) == same(ops.validate(value, format))
    numbers = {detail.message.partition(":")[0] for detail in details}
    count = len(lha.messages(pa.array([value], pa.binary()), format, errors="null"))
    assert f"message {count - 1}" in numbers


MEASURED = """
import sys
import letterhead as lh

def peak():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1])

data = open(sys.argv[1], "rb").read()
lh.decode(b"", "kafka")
before = peak()
try:
    list(lh.messages(data, "record-batch", limits=lh.Limits(decompressed_bytes=int(sys.argv[2]))))
except lh.DecodeError as error:
    print(error.code, peak() - before)
else:
    print("read", peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is in /proc")
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_decompression_bomb_is_rejected(codec: Any, tmp_path: Path) -> None:
    content = 48 << 20
    (tmp_path / "bomb").write_bytes(lh.batch([{"value": bytes(content)}], codec=codec))
    code, grown = measured(tmp_path / "bomb", 1 << 20)
    assert code == "decompressed_too_large"
    assert grown < 16 << 10
    code, grown = measured(tmp_path / "bomb", content + 100)
    assert code == "read"
    assert grown > content >> 10


def measured(bomb: Path, most: int) -> tuple[str, int]:
    """Read a bomb in a process of its own: what became of it, and by how many KiB the process grew."""
    command = [sys.executable, "-c", MEASURED, str(bomb), str(most)]
    code, grown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    return code, int(grown)


# --- defaults --------------------------------------------------------------------------------------------------------


def test_default_limit_is_one_million_headers() -> None:
    def announcing(count: int) -> bytes:
        return varint.write(count) + b"\0\0" * count

    assert len(lh.decode(announcing(own.HEADERS), "kafka")) == 1_000_000
    with pytest.raises(DecodeError, match="1000001 headers declared, over the limit of 1000000"):
        lh.decode(announcing(own.HEADERS + 1), "kafka")
    assert len(lh.decode(announcing(own.HEADERS + 1), "kafka", limits=Limits(headers=own.HEADERS + 1))) == 1_000_001


def test_process_defaults_match_documentation() -> None:
    values = in_process({}, "print(lh.Limits().filled())")
    expected = Limits(
        message_bytes=2_147_483_647,
        headers=1_000_000,
        decompressed_bytes=67_108_864,
        records=10_000_000,
        output_bytes=1_073_741_824,
        reports=10_000,
        arrow_batch_bytes=67_108_864,
    )
    assert values == str(expected)
    assert expected == Limits(
        message_bytes=own.MESSAGE_BYTES,
        headers=own.HEADERS,
        decompressed_bytes=own.DECOMPRESSED_BYTES,
        records=own.RECORDS,
        output_bytes=own.OUTPUT_BYTES,
        reports=own.REPORTS,
        arrow_batch_bytes=own.ARROW_BATCH_BYTES,
    )


def test_environment_sets_process_limits_and_call_overrides_them() -> None:
    variables = {"LETTERHEAD_MAX_HEADERS": "1", "LETTERHEAD_MAX_MESSAGE_BYTES": "100"}
    code = """
two = bytes.fromhex("04026100026200")
try:
    lh.decode(two, "kafka")
except lh.DecodeError as error:
    print(error.code, error)
print(len(lh.decode(two, "kafka", limits=lh.Limits(headers=2))))
print(lh.Limits(headers=2).filled()[:3])
"""
    assert in_process(variables, code).splitlines() == [
        "limit_exceeded kafka: 2 headers declared, over the limit of 1: "
        "raise headers in limits= or LETTERHEAD_MAX_HEADERS (byte 0)",
        "2",
        "(100, 2, 67108864)",
    ]


def test_compressed_data_obeys_its_environment_variable() -> None:
    value = lh.batch([{"value": bytes(2000)}], codec="gzip").hex()
    code = f"print([error.code for error in lh.validate(bytes.fromhex({value!r}), 'record-batch')])"
    assert in_process({"LETTERHEAD_MAX_DECOMPRESSED_BYTES": "2000"}, code) == "['decompressed_too_large']"
    assert in_process({"LETTERHEAD_MAX_DECOMPRESSED_BYTES": "3000"}, code) == "[]"


@pytest.mark.parametrize("value", ["", "-1", "1e6", "1 MiB", "ten", str(1 << 64)])
@pytest.mark.parametrize(
    ("variable", "counts"),
    [
        ("LETTERHEAD_MAX_MESSAGE_BYTES", "bytes"),
        ("LETTERHEAD_MAX_HEADERS", "headers"),
        ("LETTERHEAD_MAX_DECOMPRESSED_BYTES", "bytes"),
        ("LETTERHEAD_MAX_RECORDS", "records"),
        ("LETTERHEAD_MAX_OUTPUT_BYTES", "bytes"),
        ("LETTERHEAD_MAX_ARROW_BATCH_BYTES", "bytes"),
    ],
)
def test_malformed_variable_raises_and_names_it(variable: str, counts: str, value: str) -> None:
    code = """
for call in (lambda: lh.decode(b"", "kafka"), lambda: lh.Limits(headers=1).filled()):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    output = f"{variable} is '{value}', not a whole number of {counts}"
    assert in_process({variable: value}, code).splitlines() == [output, output]


def in_process(variables: dict[str, str], code: str) -> str:
    """Run code in a process with these limits in its environment, and give what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LETTERHEAD_MAX_")}
    command = [sys.executable, "-c", f"import letterhead as lh\n{code}"]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


# --- the value -------------------------------------------------------------------------------------------------------


def test_limits_compare_and_hash_as_value() -> None:
    limits = Limits(headers=5)
    assert limits == Limits(headers=5, message_bytes=None) != Limits(headers=6)
    assert pickle.loads(pickle.dumps(limits)) == limits
    assert {limits: 1}[Limits(headers=5)] == 1
    with pytest.raises(AttributeError):
        limits.headers = 7  # type: ignore[misc]
    assert lh.Limits is Limits


@pytest.mark.parametrize("name", Limits._fields)
def test_invalid_limit_is_rejected(name: str) -> None:
    for wrong in (True, 1.0, "1"):
        with pytest.raises(TypeError, match=f"{name} must be int, not {type(wrong).__name__}"):
            Limits(**{name: wrong})
    for wrong in (-1, 1 << 63):
        with pytest.raises(ValueError, match=f"{name} must be between 0 and [0-9]+, not {wrong}"):
            Limits(**{name: wrong})
    assert getattr(Limits(**{name: (1 << 63) - 1}).filled(), name) == (1 << 63) - 1
    assert getattr(Limits(**{name: 0}).filled(), name) == 0


def test_non_limits_argument_is_rejected() -> None:
    wrong: Any = 5
    for call in (
        lambda: lh.decode(b"", "kafka", limits=wrong),
        lambda: lha.decode(pa.array([b""]), "kafka", limits=wrong),
        lambda: lh.messages(b"", "record-batch", limits=wrong),
    ):
        with pytest.raises(TypeError, match=r"limits must be letterhead\.Limits, not int"):
            call()


# --- scan and readers ------------------------------------------------------------------------------------------------


def test_scan_counts_rows_over_limit() -> None:
    column = pa.array([message_of("kafka", count) for count in (1, 2, 3)])
    statistics = lha.scan(column, "kafka", limits=Limits(headers=2)).statistics
    assert (statistics.rows, statistics.bad_rows, statistics.errors) == (3, 1, {"limit_exceeded": 1})


def test_limits_apply_to_segments(samples: Path) -> None:
    def reader(errors: Any, **limits: int) -> Any:
        columns = ["offset", "headers"]
        return lh.read.segments(samples / "orders-0", columns=columns, errors=errors, limits=Limits(**limits))

    with reader("raise") as rows:
        free = rows.read_all().to_pylist()
    counts = [len(row["headers"]) for row in free]
    most = max(counts) - 1
    with reader("column", headers=most) as rows:
        kept = rows.read_all().to_pylist()
    assert [row["offset"] for row in kept] == [row["offset"] for row in free]
    for row, count in zip(kept, counts, strict=True):
        assert [detail["code"] for detail in row["error"] or ()] == ["limit_exceeded"] * (count > most)
    for limits, code in (({"headers": most}, "limit_exceeded"), ({"message_bytes": 100}, "limit_exceeded")):
        with reader("raise", **limits) as rows, pytest.raises(DecodeError) as caught:
            rows.read_all()
        assert caught.value.code == code


def test_limits_apply_to_state_directories(samples: Path) -> None:
    def rows(errors: Any, **limits: int) -> list[Any]:
        path = samples / "streams-state-0_0"
        with lh.read.state(path, store="latest", errors=errors, limits=Limits(**limits)) as reader:
            result: list[Any] = reader.read_all().to_pylist()
        return result

    free = rows("raise")
    counts = [len(row["headers"]) for row in free]
    most = max(counts) - 1
    kept = rows("column", headers=most)
    assert [row["error"] is None for row in kept] == [count <= most for count in counts]
    assert {row["error"][0]["code"] for row in kept if row["error"]} == {"limit_exceeded"}
    with pytest.raises(DamagedRowError, match="over the limit of 20"):
        rows("raise", message_bytes=20)


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "-f", "kafka"],
        ["decode", "-f", "kafka"],
        ["convert", "-f", "kafka", "--to", "iggy", "--types", "binary"],
    ],
)
def test_commands_have_limits_as_options(command: list[str], run: Any) -> None:
    value = message_of("kafka")
    assert run(*command, "--hex", value.hex(), "--limits", "headers=3").code == 0
    for name, most, output in (
        ("headers", 2, "3 headers declared, over the limit of 2"),
        ("message_bytes", LARGEST, f"the input has {len(value)} bytes, over the limit of {LARGEST}"),
    ):
        done = run(*command, "--hex", value.hex(), "--limits", f"{name}={most}")
        assert done.code == 1
        assert output in " ".join((done.out + done.err).replace("│", " ").split())


def test_command_error_names_option(run: Any) -> None:
    done = run("decode", "-f", "kafka", "--hex", message_of("kafka").hex(), "--limits", "headers=2")
    assert "over the limit of 2: raise headers in --limits or LETTERHEAD_MAX_HEADERS" in done.err


def test_command_rejects_decompression_bomb(run: Any, tmp_path: Path) -> None:
    (tmp_path / "value").write_bytes(lh.batch([{"value": bytes(5000)}], codec="zstd"))
    command = ["decode", tmp_path / "value", "-f", "record-batch", "--limits"]
    assert run(*command, "decompressed_bytes=6000").code == 0
    done = run(*command, "decompressed_bytes=5000")
    assert done.code == 1
    assert "decompressed data would pass 5000 bytes" in done.err


def test_command_rejects_value_with_too_many_records(run: Any, tmp_path: Path) -> None:
    (tmp_path / "value").write_bytes(message_of("record-batch"))
    for command in ("decode", "inspect"):
        source = [command, tmp_path / "value", "-f", "record-batch"]
        assert run(*source, "--limits", "records=2,output_bytes=100").code == 0
        for limit, output in (
            ("records=1", "the value has more records than the limit of 1"),
            ("output_bytes=20", "the records of the value take more bytes than the limit of 20"),
        ):
            done = run(*source, "--limits", limit)
            assert done.code == 1
            assert output in " ".join((done.out + done.err).replace("│", " ").split())


def test_command_applies_limits_to_columns_and_segments(run: Any, tmp_path: Path, samples: Path) -> None:
    pq.write_table(
        pa.table({"headers": [message_of("kafka", 1), message_of("kafka", 3)]}), tmp_path / "messages.parquet"
    )
    decode = [
        "decode",
        tmp_path / "messages.parquet",
        "--column",
        "headers",
        "-f",
        "kafka",
        "--json",
        "--errors",
        "column",
    ]
    done = run(*decode, "--limits", "headers=2")
    assert done.code == 1
    assert done.out.count("limit_exceeded") == 1
    scan = ["scan", tmp_path / "messages.parquet", "--json"]
    assert run(*scan, "--limits", "headers=3").code == 0
    done = run(*scan, "--limits", "headers=2")
    assert done.code == 1
    assert "limit_exceeded" in done.out
    read = ["read", samples / "orders-0", "--json", "--limit", "5"]
    assert run(*read).code == 0
    done = run(*read, "--limits", "headers=0")
    assert done.code == 1
    assert "over the limit of 0" in done.err


STATE = [["get", "order-03", "--json"], ["read", "--json"], ["verify"]]


@pytest.mark.parametrize("command", STATE, ids=lambda command: command[0])
def test_command_applies_limits_to_store_rows(command: list[str], run: Any, tmp_path: Path) -> None:
    from letterhead.state.rocksdb import RocksDBKeyValueStore

    value = lh.encode(lh.Message(headers=headers_of_store(), timestamp=5, payload=b"p"), "streams-timestamped") or b""
    store = RocksDBKeyValueStore("orders")
    store.open(tmp_path)
    store.put(b"order-03", value)
    store.close()
    name, *rest = command
    state = [*(["read"] if name == "read" else ["state", name]), tmp_path, *rest]
    assert run(*state, "--limits", f"headers={HEADERS},message_bytes={len(value)}").code == 0
    for name, most, output in (
        ("headers", HEADERS - 1, f"{HEADERS} headers declared, over the limit of {HEADERS - 1}"),
        ("message_bytes", len(value) - 1, f"the input has {len(value)} bytes, over the limit of {len(value) - 1}"),
    ):
        done = run(*state, "--limits", f"{name}={most}")
        assert done.code == 1
        assert output in done.out + done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("headers=-1", "limits must be NAME=NUMBER"),
        ("headers", "limits must be NAME=NUMBER"),
        ("header=1", "did you mean 'headers'"),
        ("headers=1e3", "limits must be NAME=NUMBER"),
        (f"headers={1 << 63}", "headers must be between 0 and"),
    ],
)
def test_misspelt_limit_is_wrong_usage(text: str, message: str, run: Any) -> None:
    done = run("decode", "-f", "kafka", "--hex", "00", "--limits", text)
    assert done.code == 2
    assert message in done.err


def headers_of_store() -> list[tuple[str, bytes]]:
    return [(key, value) for key, _, value in headers_of("kafka")]


def test_malformed_variable_ends_command() -> None:
    code = "import sys; from letterhead.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "decode", "-f", "kafka", "--hex", "00"]
    environment = os.environ | {"LETTERHEAD_MAX_HEADERS": "many"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2
    assert done.stderr == "letterhead: LETTERHEAD_MAX_HEADERS is 'many', not a whole number of headers\n"
