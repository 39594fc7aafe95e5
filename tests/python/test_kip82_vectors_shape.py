"""The cases of the KIP-82 drafts are well-formed and agree with themselves: no reader is needed to see that."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Line = dict[str, Any]

MESSAGE = ["offset", "crc", "magic", "attributes", "timestamp", "key", "headers", "value", "tombstone"]
FIELDS = {
    "kip82-typed": ["headers"],
    "kip82-int": ["headers"],
    "kip82-wrapper": ["headers", "value"],
    "kip82-message": MESSAGE,
    "kip82-message-int": MESSAGE,
    "kip82-message-wrapper": MESSAGE,
    "kip82-messages": MESSAGE,
    "kip82-messages-int": MESSAGE,
    "kip82-messages-wrapper": MESSAGE,
}
"""The formats of the drafts, and the fields of a message in each."""

TYPED = {"kip82-typed", "kip82-message", "kip82-messages"}
WIDTHS = {"bool": 1, "int8": 1, "char": 2, "int16": 2, "int32": 4, "int64": 8, "float32": 4, "float64": 8}
KINDS = {*WIDTHS, "string", "binary"}
OUTCOMES = {"both": {"message"}, "decode": {"message", "error"}, "messages": {"messages", "error"}}
"""What may be said of bytes: a case has one of these. `errors` counts as `error`."""

every_format = pytest.mark.parametrize("format", FIELDS)


def read(vectors: Path, format: str) -> list[Line]:
    text = (vectors / f"{format.replace('-', '_')}.jsonl").read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


def errors(line: Line) -> list[Line]:
    found: list[Line] = line.get("errors", [line["error"]] if "error" in line else [])
    return found


def messages(line: Line) -> list[Line]:
    found: list[Line] = line.get("messages", [line["message"]] if "message" in line else [])
    return found


def groups(layout: list[str]) -> list[tuple[bytes, str]]:
    split = [group.split(" ", 1) for group in layout]
    return [(bytes.fromhex(digits), name) for digits, name in split]


def layouts(line: Line) -> Iterator[list[tuple[bytes, str]]]:
    for name in ("layout", "inner_layout"):
        if name in line:
            yield groups(line[name])


def checksums(layout: list[tuple[bytes, str]]) -> Iterator[tuple[int, int]]:
    """Give each CRC of a message that is whole, and the CRC-32 of the bytes it covers."""
    data = b"".join(part for part, _ in layout)
    at, size = 0, 0
    for part, name in layout:
        if name == "message size":
            size = int.from_bytes(part, "big", signed=True)
        if name == "crc" and size >= 4 and at + size <= len(data):
            yield int.from_bytes(part, "big"), zlib.crc32(data[at + 4 : at + size])
        at += len(part)


def test_ids_are_unique(vectors: Path) -> None:
    ids = [line["id"] for format in FIELDS for line in read(vectors, format)]
    assert len(ids) == len(set(ids))


@every_format
def test_there_are_at_least_forty_cases(vectors: Path, format: str) -> None:
    assert len(read(vectors, format)) >= 40


@every_format
def test_every_line_is_well_formed(vectors: Path, format: str) -> None:
    optional = {"bytes", "layout", "inner_layout", "lenient", "message", "messages", "error", "errors"}
    batch = format.startswith("kip82-messages")
    for line in read(vectors, format):
        assert set(line) - optional == {"id", "op", "format", "why"}, line["id"]
        assert line["format"] == format
        assert re.fullmatch(rf"{format}/[a-z0-9]+(-[a-z0-9]+)*", line["id"]), line["id"]
        assert line["why"].endswith((".", "!")), line["id"]
        assert line["op"] in (("messages",) if batch else ("both", "decode", "encode")), line["id"]
        outcome = set(line) & {"message", "messages", "error", "errors"}
        if line["op"] == "encode":
            assert outcome == {"message", "error"}, line["id"]
            assert not {"bytes", "layout"} & set(line), line["id"]
        else:
            assert len(outcome) == 1, line["id"]
            assert {name.replace("errors", "error") for name in outcome} <= OUTCOMES[line["op"]], line["id"]
            assert {"bytes", "layout"} <= set(line), line["id"]


@every_format
def test_the_groups_of_a_layout_are_the_bytes(vectors: Path, format: str) -> None:
    for line in read(vectors, format):
        if line["op"] == "encode":
            continue
        parts = groups(line["layout"])
        assert all(part and name for part, name in parts), line["id"]
        assert b"".join(part for part, _ in parts).hex() == line["bytes"], line["id"]


@every_format
def test_every_error_has_a_code_and_a_place_in_the_bytes(vectors: Path, format: str) -> None:
    for line in read(vectors, format):
        assert len(line.get("errors", [None, None])) > 1, line["id"]
        for error in errors(line):
            assert set(error) | {"message"} == {"code", "byte", "header", "message"}, line["id"]
            assert re.fullmatch("[a-z0-9_]+", error["code"]), line["id"]
            assert error["header"] is None or error["header"] >= 0, line["id"]
            if line["op"] == "encode":
                assert error["byte"] is None, line["id"]
            else:
                assert 0 <= error["byte"] <= len(line["bytes"]) // 2, line["id"]


@every_format
def test_every_message_has_the_fields_of_its_format(vectors: Path, format: str) -> None:
    for line in read(vectors, format):
        for message in messages(line):
            assert list(message) == FIELDS[format], line["id"]
            for name in {"key", "value"} & set(message):
                assert message[name] is None or bytes.fromhex(message[name]).hex() == message[name], line["id"]
            computed = {message.get("crc"), message.get("tombstone")}
            if line["op"] == "encode":
                assert computed == {None}, line["id"]
            elif "crc" in message:
                assert type(message["crc"]) is int, line["id"]
                assert type(message["tombstone"]) is bool, line["id"]


@every_format
def test_every_header_read_is_one_of_its_format(vectors: Path, format: str) -> None:
    for line in read(vectors, format):
        for message in messages(line):
            for header in message["headers"] or []:
                assert list(header) == ["key", "kind", "value"], line["id"]
                value = None if header["value"] is None else bytes.fromhex(header["value"])
                if line["op"] == "encode":
                    continue
                assert type(header["key"]) is (str if format in TYPED else int), line["id"]
                if format not in TYPED or value is None:
                    assert header["kind"] is None, line["id"]
                    continue
                assert header["kind"] in KINDS, line["id"]
                assert WIDTHS.get(header["kind"], len(value)) == len(value), line["id"]


@every_format
def test_a_checksum_holds_unless_the_case_is_that_it_does_not(vectors: Path, format: str) -> None:
    for line in read(vectors, format):
        wrong = [pair for layout in layouts(line) for pair in checksums(layout) if pair[0] != pair[1]]
        expected = [error for error in errors(line) if error["code"] == "bad_crc"]
        assert len(wrong) == len(expected), line["id"]
        for (given, made), error in zip(wrong, expected, strict=True):
            text = f"the checksum is {given:08x} and the bytes give {made:08x}"
            assert error["message"].endswith(text), line["id"]


@every_format
def test_the_checksum_of_a_message_is_one_in_the_layout(vectors: Path, format: str) -> None:
    for line in read(vectors, format):
        if "crc" not in FIELDS[format] or line["op"] == "encode":
            continue
        known = {given for layout in layouts(line) for given, _ in checksums(layout)}
        assert {message["crc"] for message in messages(line)} <= known, line["id"]


def test_an_inner_layout_is_what_the_compressed_bytes_hold(vectors: Path) -> None:
    seen = 0
    for format in FIELDS:
        for line in read(vectors, format):
            packed = [part for part, name in groups(line.get("layout", [])) if name == "gzip of the set"]
            assert bool(packed) == ("inner_layout" in line), line["id"]
            if packed:
                inner = b"".join(part for part, _ in groups(line["inner_layout"]))
                assert [gzip.decompress(part) for part in packed] == [inner], line["id"]
                seen += 1
    assert seen == 3
