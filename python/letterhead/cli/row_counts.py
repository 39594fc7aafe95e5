"""Count rows, bad rows and error codes: :class:`RowCounts`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from letterhead.cli.exits import BAD_DATA, OK
from letterhead.cli.render import count_text, warn

__all__ = ["RowCounts"]

PLURALS = {"batch": "batches"}


class RowCounts:
    """Counts of input values, rows, dropped rows, bad rows and error codes; ``noun`` describes the counted items.

    Each of the ``unreadable`` batches has a row of its own, which represents an unknown number of source rows.
    """

    def __init__(self, noun: str = "row") -> None:
        self.noun = noun
        self.more = False
        self.values = 0
        self.rows = 0
        self.left_out = 0
        self.bad = 0
        self.unreadable = 0
        self.codes: Counter[str] = Counter()

    @property
    def counted(self) -> str:
        """Number of rows, with the noun."""
        return self._counted(self.rows)

    def add(self, rows: int, errors: Any) -> None:
        """Count some rows."""
        self.rows += rows
        if errors is not None:
            self.add_errors(errors)

    def add_errors(self, errors: Any) -> None:
        """Count a column of errors. An error of a condition and a column, or of two columns, counts once."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self.bad += len(errors) - errors.null_count
        details = errors.flatten()
        found = {"row": pc.list_parent_indices(errors)}
        found |= {name: details.field(name) for name in ("code", "byte_offset", "header", "key")}
        self.codes.update(pa.table(found).group_by([*found]).aggregate([])["code"].to_pylist())

    def summary(self, total: int | None) -> str:
        """Return the number of rows read, and the number of rows of the source if known, as text."""
        if total is None:
            unreadable = f" and {count_text(self.unreadable, 'unreadable batch', 'unreadable batches')}"
            more = ", and there are more" if self.more else ""
            return f"{self.counted}{unreadable if self.unreadable else ''}{more}"
        if self.noun == "row":
            return f"{self.rows:,} of {count_text(total, 'row')}"
        return f"{self.counted} from {self.values:,} of {count_text(total, 'row')}"

    def report(self, operation: str, *, is_null: bool = False) -> int:
        """Print the errors to stderr and return the exit code. ``is_null``: rows were dropped by --errors null."""
        if is_null and self.left_out:
            warn(f"{self._counted(self.left_out)} left out, as --where is null where a header or value cannot be read")
        if not self.bad:
            return OK
        codes = ", ".join(f"{code} {count:,}" for code, count in self.codes.most_common())
        bad = self.bad - self.unreadable
        subjects = [count_text(self.unreadable, "batch", "batches")] if self.unreadable else []
        subjects += [f"{bad:,} of {self._counted(self.rows + self.left_out)}"] if bad else []
        warn(f"{' and '.join(subjects)} did not {operation}: {codes}")
        return BAD_DATA

    def _counted(self, number: int) -> str:
        return count_text(number, self.noun, PLURALS.get(self.noun))
