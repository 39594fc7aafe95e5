"""The three corpora of header blocks (`kafka`) that Rust, Java and Python are measured on, and what they hold.

`A`
    The blocks of the store's sample, a row without headers as an empty message, each 150 times, in an order that is always
    the same. Some 1,400 layouts, which repeat: kinder to branch predictors than traffic.
`B`
    Regular: the same five headers in the same order in every row. `traceparent` (55 bytes), `schema-id` (4), `tenant`
    (4), `amount` (8), `n` (null).
`C`
    Adversarial: 0 to 10 headers a row, keys and values of 0 to 40 random bytes, one key in ten of characters of two
    bytes, one value in twenty null. No row is like another one.

A corpus is one file that a few lines of any language read: an int32 count of blocks, the int32 length of each, then the
bytes of all, the int32s big-endian as `DataInputStream` reads them. `corpora.json` beside them says what each holds from
its beginning up to some number of rows. Those answers come from the plain decoder (A) and from the generators (B and C),
never from letterhead. Every side is compared with them before it is timed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benches import data, plain

COPIES = 150  # of the sample, in A
ROWS = 1_000_000  # of B and of C
QUICK_ROWS = 2_000
ANSWERED = (500, 4_000, 16_000, 64_000)  # rows of which the answers are known, beside all of them
SEED = 82
VERSION = 2  # of what is written: files of another one are written anew

CHUNK = 50_000  # rows of C that are made at once
MOST_HEADERS, MOST_BYTES = 10, 40
TWO_BYTE_KEYS, NULL_VALUES = 0.10, 0.05
LONG_ENOUGH = 16  # bytes of a random key that no other one has

# The three headers that are selected from each corpus, with their types. Those of C are random, and found when it is made.
SELECTED = {
    "A": {"tenant": "string", "retry": "int32", "amount_cents": "int64"},
    "B": {"tenant": "string", "schema-id": "int32", "amount": "int64"},
}


@dataclass(frozen=True)
class UnwrittenCorpus:
    """A corpus before it is written.

    Parameters
    ----------
    lengths
        Of its blocks, in bytes.
    parts
        The bytes of all blocks, in pieces.
    select
        The keys and types of three headers.
    answer
        Says what the first rows hold.
    """

    lengths: np.ndarray
    parts: Iterable[bytes]
    select: dict[str, str]
    answer: Callable[[int], dict[str, Any]]


def write(folder: Path, *, quick: bool = False) -> dict[str, Any]:
    """Write the corpora and `corpora.json`, unless they are there; give what is in that."""
    index = folder / "corpora.json"
    if index.exists():
        known = json.loads(index.read_text())
        if (known["version"], known["quick"]) == (VERSION, quick):
            return known
    folder.mkdir(parents=True, exist_ok=True)
    corpora = {}
    for name, make in {"A": replayed, "B": regular, "C": adversarial}.items():
        result = make(QUICK_ROWS if quick else None)
        file = folder / f"{name}.bin"
        write_blocks(file, result.lengths, result.parts)
        rows = len(result.lengths)
        answers = {str(first): result.answer(first) for first in sorted({*(n for n in ANSWERED if n < rows), rows})}
        corpora[name] = {"file": file.name, "rows": rows, "select": list(result.select.items()), "holds": answers}
    known = {"version": VERSION, "quick": quick, "corpora": corpora}
    index.write_text(json.dumps(known, indent=1) + "\n")
    return known


def write_blocks(file: Path, lengths: Sequence[int] | np.ndarray, parts: Iterable[bytes]) -> None:
    """Write blocks so that Rust and Java can read them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        out.write(struct.pack(">i", len(lengths)))
        out.write(np.asarray(lengths, ">i4").tobytes())
        out.writelines(parts)


def read_blocks(file: Path, rows: int) -> pa.Array:
    """Read the first blocks of a file as a binary column."""
    with file.open("rb") as opened:
        (count,) = struct.unpack(">i", opened.read(4))
        offsets = np.zeros(rows + 1, np.int32)
        np.cumsum(np.frombuffer(opened.read(4 * rows), ">i4"), out=offsets[1:])
        opened.seek(4 + 4 * count)
        blocks = opened.read(int(offsets[-1]))
    return pa.BinaryArray.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(blocks)])


def held(
    headers: int, key_bytes: int, value_bytes: int, nulls: int, selected: Iterable[tuple[int, int]]
) -> dict[str, Any]:
    """Return the answer for some rows: for each selected column the number of values and their sum, or that of their lengths."""
    return {
        "headers": int(headers),
        "key_bytes": int(key_bytes),
        "value_bytes": int(value_bytes),
        "nulls": int(nulls),
        "selected": [[int(count), int(total)] for count, total in selected],
    }


def replayed(rows: int | None) -> UnwrittenCorpus:
    """Make A of the store's sample."""
    blocks = [plain.split_message(message)[0] for message in data.store_sample()]
    drawn = np.array(data.draw(len(blocks), rows or COPIES * len(blocks)))
    row_counts = np.array([counts_of_row(plain.decode_block(block)) for block in blocks])

    def answer(first: int) -> dict[str, Any]:
        total = row_counts[drawn[:first]].sum(axis=0)
        return held(*total[:4], zip(total[4::2], total[5::2], strict=True))

    return UnwrittenCorpus(
        lengths=np.array([len(block) for block in blocks])[drawn],
        parts=(blocks[row] for row in drawn),
        select=SELECTED["A"],
        answer=answer,
    )


def counts_of_row(headers: plain.HeaderList) -> list[int]:
    """Count what one row of A holds: four numbers, and two of each selected column."""
    tenant, retry, amount = plain.select_three(headers)
    values = [value for _, value in headers if value is not None]
    return [
        len(headers), sum(len(key.encode()) for key, _ in headers), sum(map(len, values)), len(headers) - len(values),
        tenant is not None, len((tenant or "").encode()),
        retry is not None, retry or 0,
        amount is not None, amount or 0,
    ]  # fmt: skip


def regular(rows: int | None) -> UnwrittenCorpus:
    """Make B: all blocks have the same bytes but for a trace, an id, a tenant and an amount."""
    rows = rows or ROWS
    random = np.random.default_rng(SEED)
    keys = ["traceparent", "schema-id", "tenant", "amount", "n"]
    sizes = [55, 4, 4, 8, None]
    row = plain.encode_block(
        [(key, None if size is None else bytes(size)) for key, size in zip(keys, sizes, strict=True)]
    )
    ids = random.integers(1, 500, rows, dtype=np.int32)
    tenants = random.integers(ord("a"), ord("z") + 1, (rows, 4), dtype=np.uint8)
    amounts = random.integers(-1_000_000, 1_000_000, rows)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)

    blocks = np.tile(np.frombuffer(row, np.uint8), (rows, 1))
    trace = blocks[:, start_of(row, keys[0]) :][:, : sizes[0]]
    trace[:] = digits[random.integers(0, 16, (rows, 55), dtype=np.uint8)]
    trace[:, :3] = np.frombuffer(b"00-", np.uint8)
    trace[:, 35] = trace[:, 52] = ord("-")
    trace[:, 53:] = np.frombuffer(b"01", np.uint8)
    blocks[:, start_of(row, keys[1]) :][:, :4] = ids.astype(">i4").view(np.uint8).reshape(rows, 4)
    blocks[:, start_of(row, keys[2]) :][:, :4] = tenants
    blocks[:, start_of(row, keys[3]) :][:, :8] = amounts.astype(">i8").view(np.uint8).reshape(rows, 8)

    def answer(first: int) -> dict[str, Any]:
        selected = [(first, 4 * first), (first, ids[:first].sum(dtype=np.int64)), (first, amounts[:first].sum())]
        return held(5 * first, first * sum(map(len, keys)), first * (55 + 4 + 4 + 8), first, selected)

    return UnwrittenCorpus(np.full(rows, len(row)), [blocks.tobytes()], SELECTED["B"], answer)


def start_of(row: bytes, key: str) -> int:
    """Return the place of a value that is shorter than 64 bytes: behind its key and its length."""
    return row.index(key.encode()) + len(key) + 1


def adversarial(rows: int | None) -> UnwrittenCorpus:
    """Make C, some rows at a time; every count and length in it is a varint of one byte."""
    random = np.random.default_rng(SEED)
    chunks = list(random_chunks(random, rows or ROWS))
    lengths, counts, keys, values, nulls = (np.concatenate([chunk[part] for chunk in chunks]) for part in range(1, 6))
    ends = np.concatenate([[0], np.cumsum(counts)])
    longest = first_long_ones(chunks[0][0], keys, values, nulls, counts)

    def answer(first: int) -> dict[str, Any]:
        upto = ends[first]
        selected = [(1, size) for size in longest.values()]
        return held(upto, keys[:upto].sum(), values[:upto].sum(), nulls[:upto].sum(), selected)

    return UnwrittenCorpus(lengths, (chunk[0] for chunk in chunks), dict.fromkeys(longest, "binary"), answer)


def random_chunks(random: np.random.Generator, rows: int) -> Iterator[tuple[Any, ...]]:
    """Return bytes, and the lengths and header counts of rows, and key and value lengths and nulls of headers."""
    for done in range(0, rows, CHUNK):
        counts = random.integers(0, MOST_HEADERS + 1, min(CHUNK, rows - done))
        headers = int(counts.sum())
        keys, values = random.integers(0, MOST_BYTES + 1, (2, headers))
        wide = random.random(headers) < TWO_BYTE_KEYS
        keys[wide] &= ~1
        nulls = random.random(headers) < NULL_VALUES
        values[nulls] = 0

        sizes = 2 + keys + values
        row_of = np.repeat(np.arange(len(counts)), counts)
        lengths = (counts > 0) + np.bincount(row_of, weights=sizes, minlength=len(counts)).astype(np.int64)
        # A header stands behind those before it and behind the counts of the rows up to its own.
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) + np.cumsum(counts > 0)[row_of]
        block = random.integers(0, 256, int(lengths.sum()), dtype=np.uint8)
        block[(np.cumsum(lengths) - lengths)[counts > 0]] = 2 * counts[counts > 0]
        block[starts] = 2 * keys
        block[starts + 1 + keys] = np.where(nulls, 1, 2 * values)

        within = np.arange(int(keys.sum())) - np.repeat(np.cumsum(keys) - keys, keys)
        at = np.repeat(starts + 1, keys) + within
        drawn, two = block[at], np.repeat(wide, keys)
        letters = ord("a") + drawn % 26
        pairs = np.where(within % 2 == 0, 0xC4 + drawn % 8, 0x80 + drawn % 64)
        block[at] = np.where(two, pairs, letters)
        yield block.tobytes(), lengths, counts, keys, values, nulls


def first_long_ones(
    block: bytes, keys: np.ndarray, values: np.ndarray, nulls: np.ndarray, counts: np.ndarray
) -> dict[str, int]:
    """Return three keys of the first rows that no other row will have, with the lengths of their values."""
    longest: dict[str, int] = {}
    position = header = 0
    for count in counts:
        position += count > 0
        for _ in range(count):
            key = block[position + 1 : position + 1 + keys[header]].decode()
            if len(key) >= LONG_ENOUGH and not nulls[header]:
                longest[key] = int(values[header])
                if len(longest) == 3:
                    return longest
            position += int(2 + keys[header] + values[header])
            header += 1
    raise ValueError("these rows have no three long keys")
