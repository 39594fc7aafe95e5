"""The files of a table are closed when its reader is closed, ends or fails, and not by the garbage collector."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead._table_writers import table_writer
from letterhead.errors import DamagedTableError


def _open_files(directory: Path) -> list[str]:
    names = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # of the listing
            names.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [name for name in names if str(directory) in name or name.endswith("(deleted)")]


@pytest.mark.skipif(sys.platform != "linux", reason="lists /proc/self/fd")
@pytest.mark.parametrize("form", ["parquet", "arrow", "arrow_stream", "json"])
@pytest.mark.parametrize("shape", ["file", "compressed", "directory"])
def test_files_are_closed_with_reader(form: str, shape: str, tmp_path: Path) -> None:
    if shape == "directory" and form != "parquet":
        pytest.skip("directories have Parquet files")
    table = pa.table({"offset": range(30_000)})
    buffer = io.BytesIO()
    writer = table_writer(form, buffer, table.schema)
    writer.write_table(table)
    writer.close()
    path = tmp_path / "table.parquet" if form == "parquet" else tmp_path / "table"
    data = gzip.compress(buffer.getvalue(), 1) if shape == "compressed" else buffer.getvalue()
    path.write_bytes(data)
    before = _open_files(tmp_path)
    source = tmp_path if shape == "directory" else path
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unread, left, whole, exported = (lh.open(source) for _ in range(4))
        unread.close()
        next(left)
        left.close()
        assert whole.read_all().num_rows == pa.table(exported).num_rows == 30_000
        with pytest.raises(ValueError, match="there is no column 'other'") as refused:
            lh.open(source, columns=["other"])
        path.write_bytes(data[: len(data) * 2 // 3] + b"{" * 100)
        with pytest.raises(DamagedTableError) as damaged:
            lh.open(source).read_all()
        errors = [refused, damaged]
        # Readers and errors are still referred to.
        assert _open_files(tmp_path) == before
        assert len(errors) == 2
