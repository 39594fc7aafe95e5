"""Map offsets of a topic to offsets of its copy: :class:`OffsetMap`, a file of JSON lines that a copy appends to.

Each line is a run of records whose offsets are consecutive in both topics::

    {"partition": 0, "offset": 1000, "target_offset": 950, "records": 500}
"""

from __future__ import annotations

import bisect
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from letterhead._context_managers import Closing
from letterhead._durable_files import replace_file
from letterhead._table_batches import rows_by_partition
from letterhead.written import Appended

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OffsetMap", "Run", "read_runs", "translate"]


class Run(NamedTuple):
    """Run of records whose offsets are consecutive in a topic and in its copy."""

    offset: int
    target_offset: int
    records: int

    @property
    def end(self) -> int:
        """Offset after the last record."""
        return self.offset + self.records

    @property
    def target_end(self) -> int:
        """Offset after the last record in the copy."""
        return self.target_offset + self.records


def read_runs(path: Path) -> dict[int, list[Run]]:
    """Return the runs of each partition; an incomplete last line, left by a killed copy, is ignored.

    Raises
    ------
    ValueError
        If a line was not written by a copy.
    """
    runs: dict[int, list[Run]] = {}
    *lines, _ = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            partition, run = row["partition"], Run(row["offset"], row["target_offset"], row["records"])
            own = runs.setdefault(partition, [])
            is_valid = all(type(value) is int and value >= 0 for value in (partition, *run)) and run.records > 0
            if not is_valid or (own and (run.offset < own[-1].end or run.target_offset < own[-1].target_end)):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"line {number} of {path} is no run of offsets of a copy: name another file") from None
        _append(own, run)
    return runs


def translate(runs: Sequence[Run], offset: int) -> int:
    """Return the offset at which a reader of the original continues in the copy without skipping a record.

    It is the offset of the first copied record at or after the original offset, or the end of the copy.
    """
    after = bisect.bisect_right(runs, offset, key=lambda run: run.end)
    if after == len(runs):
        return runs[-1].target_end if runs else 0
    return runs[after].target_offset + max(0, offset - runs[after].offset)


class OffsetMap(Closing):
    """Offset map in a file, opened for appending. Opening rewrites the file, to join adjacent runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = read_runs(path) if path.exists() else {}
        replace_file(path, "".join(_line(number, run) for number, own in sorted(self.runs.items()) for run in own))
        self._file = path.open("a")

    def target_end(self, partition: int) -> int:
        """Return the offset after the last record of a partition in the copy."""
        runs = self.runs.get(partition)
        return runs[-1].target_end if runs else 0

    def note_rows(self, rows: pa.Table | pa.RecordBatch, appended: Iterable[Appended]) -> None:
        """Note source records in the order in which they were appended."""
        import pyarrow as pa

        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        table = table.select(["partition", "offset"]).combine_chunks()
        ranges: dict[int, list[Appended]] = {}
        for batch in appended:
            ranges.setdefault(batch.partition, []).append(batch)
        for number, own in rows_by_partition(table.to_batches()[0]):
            start = 0
            for batch in ranges.get(number, ()):
                # A broker may omit the offset of a repeated request, whose records follow the previous ones.
                offset = self.target_end(number) if batch.offset < 0 else batch.offset
                self.note(number, own.column("offset").slice(start, batch.rows), offset)
                start += batch.rows
        self._file.flush()
        os.fsync(self._file.fileno())

    def note(self, partition: int, offsets: pa.Array, target_offset: int) -> None:
        """Note records of one partition that have consecutive offsets in the copy, from ``target_offset``."""
        import pyarrow.compute as pc

        known = max(0, self.target_end(partition) - target_offset)
        offsets, target_offset = offsets.slice(known), target_offset + known
        if not len(offsets):
            return
        breaks = pc.indices_nonzero(pc.not_equal(pc.subtract(offsets[1:], offsets[:-1]), 1)).to_pylist()
        starts = [0, *(index + 1 for index in breaks)]
        for start, end in zip(starts, [*starts[1:], len(offsets)], strict=True):
            run = Run(offsets[start].as_py(), target_offset + start, end - start)
            _append(self.runs.setdefault(partition, []), run)
            self._file.write(_line(partition, run))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _append(runs: list[Run], run: Run) -> None:
    """Append a run, or extend the last one."""
    if runs and (runs[-1].end, runs[-1].target_end) == run[:2]:
        run = Run(runs[-1].offset, runs[-1].target_offset, runs.pop().records + run.records)
    runs.append(run)


def _line(partition: int, run: Run) -> str:
    return json.dumps({"partition": partition, **run._asdict()}) + "\n"
