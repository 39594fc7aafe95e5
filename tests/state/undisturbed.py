"""Rows as they stand in the files, and a store to compare with that nothing happens to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from letterhead.state.context import ChangelogList
from letterhead.state.layers.base import chain
from letterhead.state.storage.database import StoredFamilies
from tests.state import killed
from tests.state.killed import Operation

Row = tuple[str, str, bytes]
"""A database, a family of it, and a key."""


def stored(task: Path) -> dict[Row, bytes]:
    """Every row of every database of a task, by the families that it is in."""
    rows = {}
    for current in task.rglob("CURRENT"):
        with StoredFamilies(current.parent) as database:
            for family in database.names:
                if family != "offsets" and not current.parent.name.endswith(".removed"):
                    place = str(current.parent.relative_to(task))
                    rows |= {(place, family, key): value for key, value in database.rows(family)}
    return rows


class Undisturbed:
    """A store on which the same work is done, and that nobody kills."""

    def __init__(self, store_type: str, task: Path) -> None:
        self.store_type, self.task, self.count = store_type, task, 0

    def after(self, work: list[Operation]) -> dict[Row, bytes]:
        """Do what is new of some work, and give the rows."""
        store = killed.opened(self.store_type, self.task, ChangelogList())
        observed = chain(store)[-1]
        # How far time is does not stand in the files: it is what it was.
        observed._observed = self.observed if self.count else -1
        for operation in work[self.count :]:
            killed.perform(self.store_type, store, operation, self.count)
            self.count += 1
        self.observed = observed._observed
        store.close()
        return stored(self.task)

    def versions(self, observed: int) -> list[Any]:
        """The versions that are not past the retention at a time."""
        store = killed.opened(self.store_type, self.task, ChangelogList())
        chain(store)[-1]._observed = observed
        rows = versions(store)
        store.close()
        return rows


def versions(store: Any) -> list[Any]:
    """All versions of all keys of a versioned store."""
    return [
        (key, version.value, version.timestamp, version.valid_to, list(version.headers))
        for n in range(40)
        for key, version in store.versions(b"k%02d" % n)
    ]


def check(rows_after: dict[Row, bytes], before: dict[Row, bytes], after: dict[Row, bytes], store_type: str) -> bool:
    """Make sure that the operation at hand is done or not, and nothing else; say whether it is.

    Segments that it removes because they are too old go before, and in no order.
    """

    def segment(row: Row) -> tuple[str, bytes]:
        return row[0], row[2][:8] if store_type == "versioned" else b""

    here = {segment(row) for row in after}
    kept_before = {row: value for row, value in before.items() if segment(row) in here}
    kept = {row: value for row, value in rows_after.items() if segment(row) in here}
    assert all(before[row] == value for row, value in rows_after.items() if segment(row) not in here)
    assert kept in (kept_before, after)
    return kept == after != kept_before
