"""Stored values without what surrounds the payload, conversions, and records of changelogs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DecodeError
from letterhead.state import converters
from letterhead.state.base import HeadersBytesStore
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.storage import raw

HELPERS = {
    "Utils.rawPlainValue": (raw.raw_plain_value, "streams-timestamped"),
    "Utils.rawTimestampedValue": (raw.raw_timestamped_value, "streams-timestamped"),
    "Utils.timestamp": (raw.timestamp, "streams-timestamped"),
    "Utils.rawAggregation": (raw.raw_aggregation, "streams"),
    "Utils.headers": (raw.headers, "streams"),
}
"""The helpers of Kafka Streams, ours, and the format of what each reads."""


def read_lines(vectors: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (vectors / f"{name}.jsonl").read_text().splitlines()]


def some_bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


def headers_of(line: list[dict[str, Any]]) -> lh.Headers:
    return lh.Headers([(header["key"], some_bytes(header["value"])) for header in line])


def test_value_payload_is_extracted_like_kafka_streams(vectors: Path) -> None:
    for line in read_lines(vectors, "value_timestamp_headers"):
        data = some_bytes(line["hex"])
        if data is None:
            continue
        assert raw.raw_timestamped_value(data) == bytes.fromhex(line["timestamped_hex"])
        assert raw.raw_plain_value(data) == bytes.fromhex(line["value"])
        assert raw.timestamp(data) == int(line["timestamp"])
        assert raw.headers(data) == headers_of(line.get("decoded_headers", line["headers"]))
    for line in read_lines(vectors, "aggregation_with_headers"):
        if line.get("hex") is not None:
            assert raw.raw_aggregation(bytes.fromhex(line["hex"])) == bytes.fromhex(line["aggregation"])


def test_null_value_reads_as_null() -> None:
    for read in (raw.headers, raw.raw_plain_value, raw.raw_timestamped_value, raw.raw_aggregation):
        assert read(None) is None
    assert HeadersBytesStore.convert_to_header_format(None) is None
    assert HeadersBytesStore.convert_from_plain_to_header_format(None) is None
    assert raw.convert_to_timestamped_format(None) is None


def test_malformed_values_are_rejected_and_never_misread(vectors: Path) -> None:
    refused: Counter[str] = Counter()
    for line in read_lines(vectors, "malformed"):
        data = bytes.fromhex(line["input"])
        for name, (read, format) in HELPERS.items():
            java = line["targets"][name]
            try:
                ours: Any = read(data)
            except DecodeError as error:
                if "ok" in java:
                    refused[f"{name}: {error.code}"] += 1
                with pytest.raises(DecodeError) as whole:
                    lh.decode(data, format)
                assert (error.code, error.byte_offset) == (whole.value.code, whole.value.byte_offset)
                continue
            assert "ok" in java, f"{name} throws for {line['id']}"
            if name == "Utils.headers":
                assert ours == headers_of(java["ok"]["headers"])
            elif name == "Utils.timestamp":
                assert ours == int(java["ok"]["timestamp"])
            else:
                assert ours == bytes.fromhex(java["ok"]["bytes"])
    # What Java's helpers give for the rest: bytes from somewhere else, or headers of which some are lost.
    assert {name.split(": ")[1] for name in refused} <= {
        "negative_length",
        "truncated",
        "negative_count",
        "trailing_bytes",
        "varint_lost_bits",
        "key_not_utf8",
    }


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("", "truncated"),
        ("80", "truncated"),
        ("8080808080", "varint_too_long"),
        ("8080808010", "varint_lost_bits"),
        ("01", "negative_length"),
        ("04ff", "truncated"),
    ],
)
def test_wrong_size_is_rejected(data: str, code: str) -> None:
    for read in (raw.raw_aggregation, raw.raw_plain_value, raw.raw_timestamped_value, raw.timestamp, raw.headers):
        with pytest.raises(DecodeError) as raised:
            read(bytes.fromhex(data))
        assert raised.value.code == code


@pytest.mark.parametrize("data", ["00", "0000000000000000", "0200" + "00" * 7])
def test_truncated_timestamp_is_rejected(data: str) -> None:
    for read in (raw.raw_plain_value, raw.raw_timestamped_value, raw.timestamp):
        with pytest.raises(DecodeError) as raised:
            read(bytes.fromhex(data))
        assert raised.value.code == "truncated"
    assert raw.raw_aggregation(bytes.fromhex(data)) is not None


def test_overlong_size_is_read() -> None:
    assert raw.raw_aggregation(bytes.fromhex("808000") + b"v") == b"v"
    assert raw.raw_aggregation(bytes.fromhex("8080808000") + b"v") == b"v"
    assert raw.raw_aggregation(bytes.fromhex("8001") + bytes(64) + b"v") == b"v"


def test_older_values_and_records_convert_like_kafka_streams(vectors: Path) -> None:
    for line in read_lines(vectors, "conversions"):
        if line["kind"] == "format":
            value = some_bytes(line["input"])
            for name, convert in (
                ("HeadersBytesStore.convertToHeaderFormat", HeadersBytesStore.convert_to_header_format),
                (
                    "HeadersBytesStore.convertFromPlainToHeaderFormat",
                    HeadersBytesStore.convert_from_plain_to_header_format,
                ),
                ("TimestampedBytesStore.convertToTimestampedFormat", raw.convert_to_timestamped_format),
            ):
                assert convert(value) == some_bytes(line[name])
            continue
        record = ChangelogRecord(b"k", some_bytes(line["value"]), int(line["timestamp"]), headers_of(line["headers"]))
        for name, converter in (
            ("identity", converters.identity),
            ("rawValueToTimestampedValue", converters.raw_value_to_timestamped_value),
            ("rawValueToHeadersValue", converters.raw_value_to_headers_value),
            ("rawValueToSessionHeadersValue", converters.raw_value_to_session_headers_value),
        ):
            converted = converter(record)
            assert converted == record._replace(value=some_bytes(line[name]))


def test_store_converter_depends_on_family_and_format() -> None:
    choose = converters.converter_for
    assert choose("key-value", "plain") is converters.identity
    assert choose("session", "plain") is converters.identity
    assert choose("window", "timestamped") is converters.raw_value_to_timestamped_value
    assert choose("versioned", "timestamped") is converters.identity
    assert choose("key-value", "headers") is converters.raw_value_to_headers_value
    assert choose("session", "headers") is converters.raw_value_to_session_headers_value
    assert choose("versioned", "headers") is converters.raw_value_to_session_headers_value
