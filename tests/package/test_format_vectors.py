"""Every implementation against the vectors of the drafts and of Iggy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from letterhead import _native
from letterhead import arrow as lha
from letterhead.errors import ErrorDetail, HeaderError
from tests.helpers.implementations import NATIVE, REFERENCE, Implementation, from_row
from tests.helpers.vector_checks import DRAFTS, IGGY_BYTES, Line, in_our_words, listed_lines, read_lines
from tests.reference import ops

BYTES = {"key", "value", "payload", "id"}

every_implementation = pytest.mark.parametrize("implementation", [REFERENCE, *NATIVE], ids=lambda way: way.name)


@every_implementation
@pytest.mark.parametrize("name", DRAFTS)
def test_draft_cases_match(vectors: Path, name: str, implementation: Implementation) -> None:
    lines = read_lines(vectors, name)
    assert len(lines) == listed_lines(vectors)[name]
    failures = []
    for line in lines:
        try:
            check(implementation, line)
        except (AssertionError, HeaderError) as error:
            failures.append(f"{line['id']}: {error!r}")
    assert not failures, f"{len(failures)} of {len(lines)}:\n" + "\n".join(failures[:20])


def check(implementation: Implementation, line: Line) -> None:
    format, op = line["format"], line["op"]
    if op == "encode":
        message = plain(line["message"])
        if implementation.name == "columns" and has_types(message) and not carries_types(format):
            return  # A column of this format has no place for a type.
        # A column of integer keys refuses text before any operation sees it.
        arrow = (pa.ArrowInvalid, pa.ArrowTypeError) if implementation.name == "columns" else ()
        refused = (HeaderError, *arrow)
        with pytest.raises(refused) as raised:
            implementation.write(message, format)
        if isinstance(raised.value, HeaderError):
            assert (raised.value.code, raised.value.header) == (
                in_our_words(line["error"])["code"],
                line["error"]["header"],
            )
        return
    data, lenient = bytes.fromhex(line["bytes"]), bool(line.get("lenient"))
    expected = line.get("errors") or ([line["error"]] if line.get("error") else [])
    details = implementation.validate(data, format, lenient=lenient)
    assert [place(detail) for detail in details] == [placed(in_our_words(detail)) for detail in expected]
    if expected:
        return
    if op == "messages":
        read = implementation.messages(data, format, lenient=lenient)
        assert read == [plain(message) for message in line["messages"]]
        return
    assert implementation.read(data, format, lenient=lenient) == plain(line["message"])
    if op == "both":
        assert implementation.write(plain(line["message"]), format) == data


def has_types(message: Any) -> bool:
    headers = message["headers"] if isinstance(message, dict) else message
    return any(type is not None for _, type, _ in headers or ())


def carries_types(format: str) -> bool:
    return next(row["types"] for row in _native.formats() if row["name"] == format)


def place(detail: ErrorDetail) -> tuple[Any, ...]:
    return detail.code, detail.message, detail.byte_offset, detail.header


def placed(error: dict[str, Any]) -> tuple[Any, ...]:
    """Return what `place` does, of an error as the vectors have it."""
    return error["code"], error["message"], error["byte"], error["header"]


def plain(message: dict[str, Any]) -> Any:
    """Turn what a case says of a message into plain values; of a block, into its headers."""
    fields = {name: bytes.fromhex(value) if name in BYTES and value else value for name, value in message.items()}
    fields = {name: b"" if name in BYTES and value == "" else value for name, value in fields.items()}
    if fields["headers"] is not None:
        fields["headers"] = [
            (
                header["key"],
                (header["kind"] or "").replace("kind-", "type-") or None,
                None if header["value"] is None else bytes.fromhex(header["value"]),
            )
            for header in fields["headers"]
        ]
    return fields if len(fields) > 1 else fields["headers"]


@pytest.mark.parametrize(("name", "formats"), IGGY_BYTES.items())
def test_columns_and_reference_read_iggy_vectors_equally(vectors: Path, name: str, formats: tuple[str, ...]) -> None:
    messages = [bytes.fromhex(line["bytes"]) for line in read_lines(vectors, name)]
    column = pa.array(messages, pa.binary())
    for format in formats:
        validated = [
            None if details is None else [ErrorDetail(**detail) for detail in details]
            for details in lha.validate(column, format).to_pylist()
        ]
        assert validated == ops.validate_rows(messages, format)
        assert any(details is None for details in validated)
        read = [from_row(row["headers"]) for row in lha.decode(column, format, errors="column").to_pylist()]
        assert read == [row["headers"] for row in ops.decode_rows(messages, format, errors="column")]


@pytest.mark.parametrize("implementation", NATIVE, ids=lambda way: way.name)
def test_kafka_message_sets_are_read(vectors: Path, implementation: Implementation) -> None:
    read = 0
    for line in read_lines(vectors, "record_batches"):
        batches = [batch for batch in line["batches"] if batch["magic"] < 2]
        if not batches:
            continue
        expected = [record for batch in batches for record in batch["records"]]
        messages = implementation.messages(bytes.fromhex(line["hex"]), "kip82-messages", lenient=True)
        for message, record in zip(messages, expected, strict=True):
            assert message["offset"] == int(record["offset"]), line["id"]
            if batches[0]["magic"] > 0:
                assert message["timestamp"] == int(record["timestamp"]), line["id"]
            for name in ("key", "value"):
                assert message[name] == (None if record[name] is None else bytes.fromhex(record[name])), line["id"]
            assert message["headers"] is None
            read += 1
    assert read > 40
