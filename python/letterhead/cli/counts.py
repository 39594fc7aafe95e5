"""Count rows by the values of columns or headers: :class:`Counts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from letterhead.cli.exits import Failure
from letterhead.cli.render import counted
from letterhead.sources.base import RowRequest, Source

if TYPE_CHECKING:
    import pyarrow as pa

COUNT = "count"
_OFFSETS = ("partition", "offset")


class Counts:
    """Counts rows by the values of columns. A name that is not a column of any source is read as a header of type string."""

    def __init__(self, names: str, request: RowRequest, sources: Sequence[Source], *, locates: bool = False) -> None:
        self._names = [*filter(None, map(str.strip, names.split(",")))]
        if not self._names or len(set(self._names)) < len(self._names) or COUNT in self._names:
            raise Failure("--count-by needs names of columns or headers, and each once")
        typed: dict[str, Any] = dict(request.headers or {})  # type: ignore[arg-type]
        common = set[str].intersection(*({*source.columns(request)} for source in sources))
        columns = [name for name in self._names if name in common and name not in typed]
        headers = {name: typed.get(name, "string") for name in self._names if name not in columns}
        places = [name for name in _OFFSETS if locates and name in common and name not in columns]
        self.request = replace(request, columns=(*columns, *places), headers=headers or None)
        """The request for the columns that are counted, and with ``locates`` for those that name a row in an error."""
        self._counts: Counter[tuple[Any, ...]] = Counter()
        self._types: dict[str, pa.DataType] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch]).select(self._names)
        self._types = {field.name: field.type for field in table.schema}
        grouped = table.group_by(self._names).aggregate([([], "count_all")])
        *keys, counts = (grouped.column(name).to_pylist() for name in (*self._names, "count_all"))
        for *key, count in zip(*keys, counts, strict=True):
            self._counts[tuple(key)] += count

    def result(self, limit: int | None) -> pa.RecordBatch:
        """Return the values and their counts, largest counts first."""
        import pyarrow as pa

        rows = sorted(self._counts.items(), key=lambda item: (-item[1], tuple(map(_order, item[0]))))[:limit]
        columns = [
            pa.array([key[at] for key, _ in rows], self._types.get(name, pa.string()))
            for at, name in enumerate(self._names)
        ]
        counts = pa.array([count for _, count in rows], pa.int64())
        return pa.RecordBatch.from_arrays([*columns, counts], names=[*self._names, COUNT])

    def summary(self, noun: str) -> str:
        """Return how many rows and values there are."""
        return f"{counted(self._counts.total(), noun)} with {counted(len(self._counts), 'value')}"


def _order(value: Any) -> tuple[bool, str]:
    """Sort null last, and other values as text."""
    return value is None, str(value)
