"""Tables with columns of every Arrow type: each command reads them, or refuses the type in one line."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.helpers.command import Result

Run = Callable[..., Result]

DAY = datetime.date(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 8, 30)
COLUMNS: dict[str, pa.Array] = {
    str(array.type): array
    for array in (
        pa.nulls(2),
        pa.array([True, None]),
        *(pa.array([1, None], type) for type in (pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32())),
        *(pa.array(["a", None], type) for type in (pa.string(), pa.large_string(), pa.string_view())),
        *(pa.array([b"\xff", None], type) for type in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))),
        *(pa.array([DAY, None], type) for type in (pa.date32(), pa.date64())),
        *(
            pa.array([MOMENT, None], pa.timestamp(unit, zone))
            for unit in ("s", "ms", "us", "ns")
            for zone in ("UTC", None)
        ),
        pa.array([MOMENT, None], pa.timestamp("us", "Europe/Berlin")),
        *(pa.array([datetime.time(8, 30), None], type) for type in (pa.time32("s"), pa.time64("us"))),
        pa.array([datetime.timedelta(hours=1), None], pa.duration("ms")),
        pa.array([pa.MonthDayNano([1, 2, 3]), None], pa.month_day_nano_interval()),
        *(pa.array([decimal.Decimal("1.50"), None], type) for type in (pa.decimal128(5, 2), pa.decimal256(50, 2))),
        pa.array([decimal.Decimal("1.5"), None], pa.decimal128(5, 2)).cast(pa.decimal32(5, 2)),
        pa.array(["a", None]).dictionary_encode(),
        pa.array([1, None]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int16()), pa.array(["a", None])),
        pa.array([[1, 2], None]),
        pa.array([[1, 2], None], pa.large_list(pa.int8())),
        pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
        pa.array([[1, 2], None], pa.list_view(pa.int64())),
        pa.array([["a"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([{"x": 1}, None]),
        pa.array([{}, None], pa.struct([])),
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([[("k", "v")], None], pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.string()))),
        pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
        pa.UnionArray.from_dense(
            pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["b"])]
        ),
    )
}
OPTIONS: dict[str, list[str]] = {
    "table": [],
    "json": ["--json"],
    "csv": ["--csv"],
    "where": ["--where", "n = 1", "--json"],
    "null": ["--where", "a is null", "--json"],
    "count": ["--count-by", "a", "--json"],
    "least": ["--count-by", "n,min(a),max(a)", "--json"],
    "last": ["--last", "1", "--json"],
    **{f"out {ending}": ["-o", f"out.{ending}"] for ending in ("parquet", "arrow", "jsonl", "csv")},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("type", COLUMNS)
def test_column_type_is_read_or_rejected_in_one_line(type: str, options: str, run: Run, tmp_path: Path) -> None:
    batch = pa.record_batch({"a": COLUMNS[type], "n": pa.array([1, 2])})
    with pa.ipc.new_file(tmp_path / "t", batch.schema) as file:
        file.write_batch(batch)
    arguments: list[Any] = [tmp_path / option if option.startswith("out.") else option for option in OPTIONS[options]]
    result = run("read", tmp_path / "t", *arguments)
    assert result.code in (0, 2), result.err
    assert "Traceback" not in result.err
    if result.code:
        assert result.err.count("\n") == 1
        assert "column" in result.err
