"""``last=`` reads the last rows: errors of rows before them are not raised, and errors of these name the first."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh

Row = tuple[int, bytes, bytes]
"""An offset, and the values of the headers ``kind`` and ``retry``."""

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BATCH = 4


def drawn(draw: random.Random) -> list[Row]:
    """Return rows with gaps in their offsets, some with a value that is not an int32."""
    offsets = sorted(draw.sample(range(60), draw.randrange(1, 25)))
    retries = [b"\0\0\0\1"] * 6 + [b"\0\1"]
    return [
        (offset, draw.choice([b"a", b"b", b"\xff"][: draw.choice([2, 2, 3])]), draw.choice(retries))
        for offset in offsets
    ]


def as_table(rows: Sequence[Row]) -> pa.Table:
    headers = [[("kind", kind), ("retry", retry)] for _, kind, retry in rows]
    return pa.table({
        "offset": pa.array([offset for offset, _, _ in rows], pa.int64()),
        "headers": pa.array([[{"key": key, "value": value} for key, value in row] for row in headers], HEADERS),
    })  # fmt: skip


def write_segments(path: Path, rows: Sequence[Row]) -> Path:
    directory = path / "t-0"
    directory.mkdir()
    messages = [lh.Message(offset=offset, headers=[("kind", kind), ("retry", retry)]) for offset, kind, retry in rows]
    batches = [lh.batch(messages[at : at + BATCH], "record-batch") for at in range(0, len(messages), BATCH)]
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    return directory


def write_parquet(path: Path, rows: Sequence[Row]) -> Path:
    pq.write_table(as_table(rows), path / "t.parquet", row_group_size=BATCH)
    return path / "t.parquet"


def write_arrow(path: Path, rows: Sequence[Row]) -> Path:
    table = as_table(rows)
    with pa.ipc.new_file(path / "t.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=BATCH)
    return path / "t.arrow"


def write_json_lines(path: Path, rows: Sequence[Row]) -> Path:
    lines = []
    for offset, *values in rows:
        headers = [
            {"key": key, "value": _document(value)} for key, value in zip(("kind", "retry"), values, strict=True)
        ]
        lines.append(json.dumps({"offset": offset, "headers": headers}))
    (path / "t.json").write_text("\n".join(lines))
    return path / "t.json"


def _document(value: bytes) -> Any:
    return {"base64": base64.b64encode(value).decode()}


@pytest.mark.parametrize("where", [None, "kind = 'a'", "offset > 20", "kind = 'a' and offset > 20"])
@pytest.mark.parametrize("write", [write_segments, write_parquet, write_arrow, write_json_lines])
def test_only_errors_of_last_rows_are_raised(
    write: Callable[[Path, Sequence[Row]], Path], where: str | None, tmp_path: Path
) -> None:
    draw = random.Random(7)
    raised = 0
    for case in range(60):
        rows, last = drawn(draw), draw.randrange(8)
        (tmp_path / str(case)).mkdir()
        path = write(tmp_path / str(case), rows)
        candidates = [
            row for row in rows
            if where is None or ((row[0] > 20 or "offset" not in where) and (row[1] != b"b" or "kind" not in where))
        ]  # fmt: skip
        expected = candidates[-last:] if last else []
        is_undecided = lambda row: where is not None and "kind" in where and row[1] == b"\xff"  # noqa: E731
        is_wrong = any(is_undecided(row) or len(row[2]) != 4 for row in expected)
        reader = lh.open(path, columns=["offset"], headers={"retry": "int32"}, where=where, last=last)
        if is_wrong:
            raised += 1
            with reader, pytest.raises(lh.DecodeError, match=r"is not UTF-8|int32"):
                reader.read_all()
        else:
            with reader:
                assert reader.read_all()["offset"].to_pylist() == [offset for offset, _, _ in expected]
    assert 10 < raised < 50
