"""A batch of a kilobyte or so that claims gigabytes: an error each time, and no memory for what was claimed."""

from __future__ import annotations

import gzip
import resource
import struct
import subprocess
import sys
import zlib

import pytest
import zstandard

import letterhead as lh
from tests.helpers.log_bytes import batch, record
from tests.reference import varint

GIB = 1 << 30
MOST_MIB = 220
"""One batch may become 64 MiB; growing there takes half of that again, and what was freed may not be given back."""


def squeezed() -> dict[str, tuple[bytes, str]]:
    """Return batches by what they claim, and the code of what is wrong with them."""
    layers = zstandard.ZstdCompressor().compress(bytes(64 << 20))
    lz4_header = bytes.fromhex("04224d18 6c 70") + struct.pack("<Q", 4 * GIB)
    return {
        "records": (batch(record(), count=(1 << 31) - 1), "count_too_large"),
        "a record's length": (batch(varint.write((1 << 31) - 1) + b"\0"), "truncated"),
        "a key's length": (batch(_long_key()), "truncated"),
        "headers": (batch(record(block=varint.write((1 << 31) - 1) + b"\2k\2v")), "count_too_large"),
        "a snappy length": (batch(b"\xff\xff\xff\xff\x0f" + b"\xfe\1\0" * 300, attributes=2), "decompressed_too_large"),
        "an lz4 length": (batch(lz4_header + b"\0" * 900, attributes=3), "bad_compression"),
        "a zstd content": (batch(layers * 16, attributes=4), "decompressed_too_large"),
        "a gzip content": (batch(gzip.compress(bytes(65 << 20)), attributes=1), "decompressed_too_large"),
        "its own length": (b"\0" * 8 + struct.pack(">i", (1 << 31) - 1) + batch(record())[12:], "truncated"),
    }


def _long_key() -> bytes:
    body = b"\0\0\0" + varint.write((1 << 31) - 1) + b"k"
    return varint.write(len(body)) + body


@pytest.mark.parametrize("claim", squeezed())
def test_lengths_claimed_by_batch_are_not_trusted(claim):
    data, code = squeezed()[claim]
    with pytest.raises(lh.DecodeError) as caught:
        list(lh.messages(data, "record-batch"))
    assert caught.value.code == code


def test_claimed_lengths_take_no_memory():
    command = [sys.executable, __file__]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    grown = dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())
    assert grown.keys() == squeezed().keys()
    assert all(float(mib) < MOST_MIB for mib in grown.values()), grown


def compressed(records: bytes, count: int) -> bytes:
    """Return a batch of so many records, compressed a thousandfold or more."""
    return batch(zstandard.ZstdCompressor().compress(records), attributes=4, count=count)


EMPTY = record(key=None, value=None)
LARGE = record(value=bytes(60 << 20))


@pytest.mark.parametrize(
    ("data", "limit"),
    [
        (compressed(EMPTY * 4_000_000, 4_000_000) * 3, "LETTERHEAD_MAX_RECORDS"),
        (compressed(LARGE, 1) * 18, "LETTERHEAD_MAX_OUTPUT_BYTES"),
    ],
    ids=["records", "output_bytes"],
)
def test_small_batches_do_not_expand_to_unlimited_rows(data: bytes, limit: str) -> None:
    assert len(data) < 200_000
    [error] = lh.validate(data, "record-batch", limits=lh.Limits(decompressed_bytes=2 << 30))
    assert error.code == "limit_exceeded"
    assert limit in error.message


@pytest.mark.parametrize("format", ["record-batch", "kip82-messages"])
@pytest.mark.parametrize("errors", ["null", "column"])
def test_rows_of_value_are_bounded_by_limits(format: str, errors: str) -> None:
    import pyarrow as pa

    from letterhead import arrow as lha

    if format == "record-batch":
        data = compressed(record(value=bytes(1000)) * 1000, 1000) * 100
    else:
        data = _set(_message(0, bytes(1000)) * 1000) * 100
    for limits, rows in ((lh.Limits(records=2500), 2501), (lh.Limits(output_bytes=2_500_000), 2501)):
        result = lha.messages(pa.array([data]), format, errors=errors, limits=limits)
        assert rows - 50 <= len(result) <= rows
        assert result.nbytes < 3_000_000
        with pytest.raises(lh.DecodeError) as caught:
            list(lh.messages(data, format, limits=limits))
        assert caught.value.code == "limit_exceeded"


def _message(attributes: int, value: bytes) -> bytes:
    body = struct.pack(">bbi", 0, attributes, -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def _set(messages: bytes) -> bytes:
    """Return messages of format 0 as a compressed set."""
    return _message(1, gzip.compress(messages))


def main() -> None:
    """Print what each batch makes the peak of this process grow by, in MiB."""
    import pyarrow as pa

    from letterhead import arrow as lha

    for claim, (data, _) in squeezed().items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            result = lha.messages(pa.array([data]), "record-batch", errors="column")
            assert result.field("error").null_count < len(result)
        print(claim, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


if __name__ == "__main__":
    main()
