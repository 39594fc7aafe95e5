"""The classes of KIP-82, with the test vectors that were derived from the drafts by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from letterhead.errors import DecodeError
from letterhead.kip82 import ConsumerRecord, Headers, IntHeaders, MessageWrapper
from letterhead.kip82.header_formats import MESSAGE_FORMATS, HeaderFormat
from tests.helpers.vector_checks import in_our_words

Line = dict[str, Any]


def errors(line: Line) -> list[Line]:
    return [in_our_words(error) for error in line.get("errors", [line["error"]] if "error" in line else [])]


VECTORS = Path(__file__).parents[1] / "vectors"


def again(data: bytes, header_format: HeaderFormat) -> bytes:
    """Read a message as a consumer, and write it as a producer."""
    [record] = ConsumerRecord.read(data, topic="t", header_format=header_format)
    return record.forward("t").to_bytes(record.offset)


def of_block(cls: type[Headers] | type[IntHeaders]) -> Callable[[bytes], bytes]:
    # Headers made of headers do not have the bytes any more: they are written again.
    return lambda data: cls(cls(data)).as_bytes()


CLASSES: dict[str, Callable[[bytes], bytes]] = {
    "kip82-typed": of_block(Headers),
    "kip82-int": of_block(IntHeaders),
    "kip82-wrapper": lambda data: MessageWrapper.from_bytes(data).to_bytes(),
    **{
        format: lambda data, header_format=header_format: again(data, header_format)
        for header_format, format in MESSAGE_FORMATS.items()
    },  # type: ignore[misc]
}


OTHERWISE = {
    "null-value-without-bit-4": "a null value without a wrapper is a delete, and is written with the mark of one",
    "no-bytes": "records are read from sets, and an empty one has none",
    "bytes-after-the-message": "records are read from sets, in which another message begins there",
}
"""Cases that a client represents differently, with the reason."""


def cases(operation: str) -> list[Any]:
    keys = []
    for format in CLASSES:
        for text in (VECTORS / f"{format.replace('-', '_')}.jsonl").read_text(encoding="ascii").splitlines():
            line: Line = json.loads(text)
            _, name = line["id"].split("/")
            another = format in MESSAGE_FORMATS.values() and name in OTHERWISE
            if line["op"] == operation and not line.get("lenient") and not another:
                keys.append(pytest.param(line, id=line["id"]))
    return keys


def is_ordinary(line: Line) -> bool:
    """Return whether a client of its draft can write a message: no older magic, no attribute of a log."""
    message = line["message"]
    return message.get("magic", 2) == 2 and (message.get("attributes") or 0) & ~0x10 == 0


@pytest.mark.parametrize("line", [case for case in cases("both") if is_ordinary(case.values[0])])
def test_classes_rewrite_the_bytes_they_read(line: Line) -> None:
    data = bytes.fromhex(line["bytes"])
    assert CLASSES[line["format"]](data) == data


@pytest.mark.parametrize("line", [case for case in cases("decode") if errors(case.values[0])])
def test_damaged_bytes_are_rejected_with_expected_code(line: Line) -> None:
    with pytest.raises(DecodeError) as caught:
        CLASSES[line["format"]](bytes.fromhex(line["bytes"]))
    assert caught.value.code == errors(line)[0]["code"]
