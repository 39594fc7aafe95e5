"""The reference implementation against all recorded results of the real Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from implementations import REFERENCE
from reference import varint
from vector_checks import (
    CHECKS,
    DRAFTS,
    IGGY,
    STATE,
    check_file,
    count_differences,
    listed_differences,
    listed_lines,
    read_lines,
)


@pytest.mark.parametrize("name", CHECKS)
def test_every_line_of_the_vectors_holds(vectors: Path, name: str) -> None:
    check_file(vectors, name, REFERENCE)


def test_every_file_of_vectors_has_a_check(vectors: Path) -> None:
    files = {path.stem for path in vectors.glob("*.jsonl")}
    checked = {*CHECKS, *DRAFTS, *IGGY, *STATE, "record_batches"}
    assert checked == files == set(listed_lines(vectors))


def test_the_listed_differences_from_java_are_all_there_are(vectors: Path) -> None:
    counts = count_differences(REFERENCE, read_lines(vectors, "malformed"))
    assert counts == listed_differences(vectors)


def test_every_number_is_spelled_as_java_spells_it(vectors: Path) -> None:
    lines = [line for line in read_lines(vectors, "varints") if "hex" in line]
    assert len(lines) == 2 * 352 + 2 * 429
    for line in lines:
        width = 64 if line["kind"].endswith("varlong") else 32
        number = int(line["value"])
        unsigned = line["kind"].startswith("unsigned")
        written = varint.write_unsigned(number) if unsigned else varint.write(number, width)
        assert written == bytes.fromhex(line["hex"]), line
        assert len(written) == line["size"], line
        read = varint.read_unsigned(written, width)
        assert (read.bits if unsigned else varint.unzigzag(read.bits)) == number, line
        assert read == (read.bits, len(written), False), line


def test_every_spelling_is_read_as_java_reads_it(vectors: Path) -> None:
    lines = [line for line in read_lines(vectors, "varints") if "decode_hex" in line]
    assert len(lines) == 183
    lost = 0
    for line in lines:
        width = 64 if line["kind"].endswith("varlong") else 32
        data = bytes.fromhex(line["decode_hex"])
        if "error" in line:
            with pytest.raises(varint.TooLong if line["error"]["message"] else varint.Truncated):
                varint.read_unsigned(data, width)
            continue
        read = varint.read_unsigned(data, width)
        value = read.bits if line["kind"].startswith("unsigned") else varint.unzigzag(read.bits)
        signed = value - (1 << 32) if line["kind"] == "unsigned_varint" and value >= 1 << 31 else value
        assert signed == int(line["value"]) or value == int(line["value"]), line
        assert read.size == line["consumed"], line
        lost += read.lost
    assert lost == 12
