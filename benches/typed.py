"""Messages with five typed headers, made with a fixed seed, in formats whose values have types or whose keys are ids.

The five: a tenant (string), a retry count (int32), an amount (int64), a W3C `traceparent` (string of 55 bytes) and a
flag (bool). They are in the order of their keys, which is how `iggy` since 0.10 writes them, the same in every
message: that flatters branch predictors, on all sides. `iggy-2023-shuffled` has each message in an order of its own, as
the hash maps of the old releases wrote them.

The blocks are written here by hand, so every reader is compared with bytes that none of them wrote.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from benches.data import QUICK

# The whole corpus, of which a slow side reads the first rows only. The crates read the same (benches/iggy/export.py).
ROWS = 500 if QUICK else 200_000

FORMATS = ("iggy", "iggy-2023", "kip82-typed", "kip82-int")
SHUFFLED = "iggy-2023-shuffled"
HEADERS_A_ROW = 5

# Ids of the keys in `kip82-int`.
IDS = {"amount": 1, "flag": 2, "retry": 3, "tenant": 4, "traceparent": 5}
KIP82_CODES = {"bool": 0, "int32": 4, "int64": 5, "string": 8}
IGGY_CODES = {"bool": 3, "int32": 6, "int64": 7, "string": 2}

SELECTED_SCHEMA = pa.schema([("tenant", pa.utf8()), ("retry", pa.int32()), ("amount", pa.int64())])
COLUMNS = {"tenant": "string", "retry": "int32", "amount": "int64"}


class Message(NamedTuple):
    """What the headers of one message say."""

    amount: int
    flag: bool
    retry: int
    tenant: str
    traceparent: str


class Header(NamedTuple):
    """A header with its value in the two byte orders."""

    key: str
    type: str
    big: bytes
    little: bytes


def format_of(corpus: str) -> str:
    """Return the format that a corpus is in."""
    return "iggy-2023" if corpus == SHUFFLED else corpus


def source(corpus: str) -> str:
    """Name a corpus in the table of results."""
    shuffled = ", in a hash map's order" if corpus == SHUFFLED else ""
    return f"five typed headers ({format_of(corpus)}){shuffled}"


@cache
def messages(rows: int) -> list[Message]:
    """Return the first messages of the corpus."""
    choose = random.Random(82)
    tenants = [
        f"{name}-{region}" for name in ("acme", "globex", "initech", "hooli") for region in ("eu", "us-east", "ap")
    ]
    return [
        Message(
            amount=choose.randrange(-10_000, 10_000_000),
            flag=choose.random() < 0.5,
            retry=choose.choice((0, 0, 0, 1, 2, 5)),
            tenant=choose.choice(tenants),
            traceparent=f"00-{choose.getrandbits(128):032x}-{choose.getrandbits(64):016x}-01",
        )
        for _ in range(rows)
    ]


def headers_of(message: Message) -> list[Header]:
    """Return the headers of a message, by key."""
    amount, flag, retry, tenant, trace = message
    return [
        Header("amount", "int64", struct.pack(">q", amount), struct.pack("<q", amount)),
        Header("flag", "bool", bytes((flag,)), bytes((flag,))),
        Header("retry", "int32", struct.pack(">i", retry), struct.pack("<i", retry)),
        Header("tenant", "string", tenant.encode(), tenant.encode()),
        Header("traceparent", "string", trace.encode(), trace.encode()),
    ]


def rows_of(corpus: str, rows: int) -> Iterator[list[Header]]:
    """Return the headers of the first messages, in the order in which they are written."""
    order = random.Random(2023)
    for message in messages(rows):
        headers = headers_of(message)
        if corpus == SHUFFLED:
            order.shuffle(headers)
        yield headers


@cache
def blocks(corpus: str, rows: int) -> pa.Array:
    """Return the first messages' headers as a binary column."""
    write = WRITERS[format_of(corpus)]
    return pa.array([b"".join(map(write, headers)) for headers in rows_of(corpus, rows)], pa.binary())


def write_iggy(header: Header) -> bytes:
    """Write a header as Iggy has since 0.8.2."""
    return b"\x02" + write_iggy_2023(header)


def write_iggy_2023(header: Header) -> bytes:
    """Write a header as the first releases of Iggy did."""
    key, type, value = header.key.encode(), IGGY_CODES[header.type], header.little
    return struct.pack("<I", len(key)) + key + struct.pack("<BI", type, len(value)) + value


def write_kip82_typed(header: Header) -> bytes:
    """Write a header as the draft with typed values has it."""
    key, type, value = header.key.encode(), KIP82_CODES[header.type], header.big
    return struct.pack(">i", len(key)) + key + struct.pack(">iB", len(value) + 1, type) + value


def write_kip82_int(header: Header) -> bytes:
    """Write a header as the draft with integer keys has it."""
    return struct.pack(">ii", IDS[header.key], len(header.big)) + header.big


WRITERS = {
    "iggy": write_iggy,
    "iggy-2023": write_iggy_2023,
    "kip82-typed": write_kip82_typed,
    "kip82-int": write_kip82_int,
}


@cache
def headers(corpus: str, rows: int) -> pa.Array:
    """Return what decoding `blocks(corpus, rows)` must give: a list column."""
    flat = [header for row in rows_of(corpus, rows) for header in row]
    keys, types, values = ([header[place] for header in flat] for place in range(3))
    key_types = pa.array(["string"] * len(flat))
    columns: dict[str, pa.Array] = {
        "iggy": {"key_type": key_types, "key": pa.array(keys, pa.utf8()).cast(pa.binary()), "type": pa.array(types)},
        "kip82-int": {"key": pa.array([IDS[key] for key in keys], pa.int32())},
    }.get(format_of(corpus), {"key": pa.array(keys), "type": pa.array(types)})
    columns = {**columns, "value": pa.array(values, pa.binary())}
    structs = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    offsets = pa.array(range(0, len(flat) + 1, HEADERS_A_ROW), pa.int32())
    return pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", structs.type)))


def selected(rows: int) -> pa.RecordBatch:
    """Return what selecting `COLUMNS` must give, of any corpus."""
    decoded = messages(rows)
    columns = [pa.array([getattr(message, field.name) for message in decoded], field.type) for field in SELECTED_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=SELECTED_SCHEMA)


def triples(corpus: str, rows: int) -> list[list[tuple[Any, str | None, bytes]]]:
    """Return the headers as the reference has them: key, type, and the value with its most significant byte first."""
    if format_of(corpus) == "kip82-int":
        return [[(IDS[header.key], None, header.big) for header in row] for row in rows_of(corpus, rows)]
    return [[(header.key, header.type, header.big) for header in row] for row in rows_of(corpus, rows)]


def checksum(rows: Iterable[list[Header]]) -> int:
    """Add up keys, types and values of Iggy headers, whatever their order in a message; 64 bits."""
    total = 0
    for number, row in enumerate(rows, 1):
        for key, type, _, little in row:
            total += number * zlib.crc32(key.encode() + bytes((IGGY_CODES[type],)) + little)
    return total % (1 << 64)
