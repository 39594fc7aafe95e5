"""The rows of the stores that are measured, made with a fixed seed: a key, a payload of 100 bytes, a timestamp, headers.

A row of five headers has a tenant, a W3C `traceparent`, a retry count, an amount and a content type; one of ten has five
more of 12 bytes. The stored form of a row is written here by hand, so that every side is compared with bytes that none of
them wrote.
"""

from __future__ import annotations

import random
import struct
from functools import cache
from typing import NamedTuple

from benches.data import QUICK

ROWS = 300 if QUICK else 10_000
PAYLOAD_BYTES = 100
FIRST_TIMESTAMP = 1_767_225_600_000

FAMILY = "keyValueWithTimestampAndHeaders"
FIVE, TEN = 5, 10


class StoredRow(NamedTuple):
    """One row."""

    key: bytes
    payload: bytes
    timestamp: int
    headers: list[tuple[str, bytes]]

    def message(self) -> bytes:
        """Return what a store holds: `varint size, block, int64 timestamp, payload`."""
        block = varint(len(self.headers))
        for key, value in self.headers:
            block += varint(len(key)) + key.encode() + varint(len(value)) + value
        return varint(len(block)) + block + struct.pack(">q", self.timestamp) + self.payload


@cache
def rows(headers: int) -> list[StoredRow]:
    """Return the rows, in an order that is not that of their keys."""
    choose = random.Random(1271)
    keys = choose.sample(range(100_000_000), ROWS)
    return [
        StoredRow(
            b"customer-%08d" % key,
            choose.randbytes(PAYLOAD_BYTES),
            FIRST_TIMESTAMP + number,
            [
                ("tenant", b"acme-%04d" % choose.randrange(10_000)),
                ("traceparent", b"00-%032x-%016x-01" % (choose.getrandbits(128), choose.getrandbits(64))),
                ("retry", struct.pack(">i", choose.randrange(6))),
                ("amount_cents", struct.pack(">q", choose.randrange(1_000_000))),
                ("content-type", b"application/json"),
                *((f"extra-{extra}", choose.randbytes(12)) for extra in range(headers - FIVE)),
            ],
        )
        for number, key in enumerate(keys)
    ]


@cache
def messages(headers: int) -> dict[bytes, bytes]:
    """Return what a store holds of the rows, by key."""
    return {row.key: row.message() for row in rows(headers)}


def varint(value: int) -> bytes:
    """Write a length or a count as a zig-zag varint."""
    value <<= 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
