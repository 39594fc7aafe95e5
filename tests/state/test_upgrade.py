"""Rows in two families during an upgrade: what a reader sees while they move, and what is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from letterhead.state.rocksdb import RocksDBKeyValueStore
from letterhead.state.storage.upgrade import UpgradingRows


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[UpgradingRows]:
    """The rows a, b and c of a plain store, which is now one with headers."""
    plain = RocksDBKeyValueStore("latest", format="plain")
    plain.open(tmp_path)
    for key in (b"a", b"b", b"c"):
        plain.put(key, b"v")
    plain.close()
    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path)
    assert isinstance(store._rows, UpgradingRows)
    yield store._rows
    store.close()


NEWER = b"\0" + b"\xff" * 8 + b"v"


def move_after_first(rows: UpgradingRows, operation: str) -> list[str]:
    """Let another thread move all rows after the first of the two families was read; return the order of the reads."""
    order: list[str] = []

    def wrapped(family: str, read: Any) -> Any:
        def then_move(*args: Any, **kwargs: Any) -> Any:
            result = read(*args, **kwargs)
            order.append(family)
            if len(order) == 1:
                rows.move_all()
            return result

        return then_move

    for family in ("_old", "_new"):
        part = getattr(rows, family)
        setattr(part, operation, wrapped(family, getattr(part, operation)))
    return order


def test_row_moving_between_reads_of_both_families_is_found(rows: UpgradingRows) -> None:
    order = move_after_first(rows, "get")
    assert rows.peek(b"a") == NEWER
    assert order[0] == "_old"


def test_rows_moving_while_scan_starts_are_found_once(rows: UpgradingRows) -> None:
    move_after_first(rows, "scan")
    assert list(rows.scan()) == [(key, NEWER) for key in (b"a", b"b", b"c")]


def test_deleted_range_is_gone_from_both_families(rows: UpgradingRows) -> None:
    rows.put(b"b", b"new")
    rows.delete_range(b"a", b"c")
    assert list(rows.scan()) == [(b"c", NEWER)]
    assert (rows.get(b"a"), rows.get(b"b")) == (None, None)
    assert rows.key_from(b"") == b"c"


def test_estimate_counts_older_rows(rows: UpgradingRows) -> None:
    assert rows.estimate() == 3
