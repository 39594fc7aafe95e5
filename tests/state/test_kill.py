"""Processes that are killed in the middle of their work: what they said was done is there when their store is opened.

The work is done by `killed.py`, in a process of its own; this process keeps what that one says, and what a store would
hold that nobody killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from letterhead.state import ChangelogRecord, SessionKey, Stores, ValueAndTimestamp
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.layers.base import chain
from letterhead.state.storage.versioned_rows import with_headers
from tests.state import killed
from tests.state.killed import BUFFERED, CACHED_KEYS, COMMIT_EVERY, PLACE, Operation, operations
from tests.state.undisturbed import Row, Undisturbed, check, stored, versions

# A second each: LETTERHEAD_KILLS=100 is for an evening, and then also holds the tests to what only chance brings about.
KILLS = int(os.environ.get("LETTERHEAD_KILLS", "25"))

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


class Left(NamedTuple):
    """What a process that was killed had said."""

    logged: list[ChangelogRecord]
    done: int
    flushed: int
    finished: bool


def kill(task: Path, after: int, wait: float, **source: Any) -> Left:
    """Let the program work, and kill it some seconds after the line of a number; keep all that it said."""
    command = [sys.executable, killed.__file__, json.dumps({"task": str(task), **source})]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = list(islice(process.stdout, after))
        time.sleep(wait)
        process.kill()
        lines += process.stdout.readlines()
        errors = process.stderr.read()
    assert process.returncode in (-signal.SIGKILL, 0), errors
    if lines and not lines[-1].endswith("\n"):
        lines.pop()  # it was killed while it spoke
    return Left(
        [killed.read(line) for line in lines if line.startswith("logged")],
        lines.count("done\n"),
        lines.count("flushed\n"),
        process.returncode == 0,
    )


def reopened(store_type: str, task: Path, **options: Any) -> tuple[Any, int]:
    """The store, opened again, and the offset to which its changelog is in it; -1 if that is not known."""
    store = killed.opened(store_type, task, ChangelogList(), **options)
    assert not list(task.glob(".*.removed"))
    return store, max(-1, chain(store)[-1].committed_offsets().get(f"{PLACE[0]}-{PLACE[1]}", -1))


# --- writes ----------------------------------------------------------------------------------------------------------


def test_killed_store_with_log_keeps_acknowledged_writes(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    in_flight = 0
    for run in range(KILLS):
        store_type = list(killed.STORE_TYPES)[run % len(killed.STORE_TYPES)]
        task, seed = tmp_path / str(run), run
        after, wait = chance.randrange(1, 900), chance.random() * 0.003
        left = kill(task, after, wait, operation="write", store_type=store_type, seed=seed, log=True)
        assert not left.finished
        work = list(islice(operations(store_type, seed), left.done + 1))
        assert left.done <= len(left.logged) <= left.done + 1
        undisturbed = Undisturbed(store_type, tmp_path / f"undisturbed {run}")
        before, then = undisturbed.after(work[:-1]), undisturbed.after(work)
        applied = check(stored(task), before, then, store_type)
        assert applied or len(left.logged) == left.done or before == then  # the store first, then the changelog
        in_flight += applied
        store, offset = reopened(store_type, task, write_ahead_log=True)
        assert offset < len(left.logged)
        if store_type in ("key-value", "versioned"):  # a new segment knows of no offset before the next commit
            assert offset + 1 >= left.done // COMMIT_EVERY * COMMIT_EVERY - COMMIT_EVERY
        killed.perform(store_type, store, work[-1], left.done)
        store.close()
        check(stored(task), then, then, store_type)
        shutil.rmtree(task)
        shutil.rmtree(undisturbed.task)
    assert in_flight or KILLS < 100  # some were killed between a write and its acknowledgement


def test_killed_store_without_log_restores_from_changelog(tmp_path: Path) -> None:
    chance = random.Random(-KILLS)
    lost = ahead = 0
    for run in range(KILLS):
        store_type = list(killed.STORE_TYPES)[(run + 1) % len(killed.STORE_TYPES)]
        task, seed = tmp_path / str(run), 1000 + run
        after, wait = chance.randrange(1, 2500), chance.random() * 0.003
        left = kill(task, after, wait, operation="write", store_type=store_type, seed=seed, log=False)
        assert not left.finished
        work = list(islice(operations(store_type, seed), len(left.logged)))
        undisturbed = Undisturbed(store_type, tmp_path / f"undisturbed {run}")
        expected = undisturbed.after(work)
        lost += stored(task) != expected
        # What is in the files, and the records after the offset that the files know of.
        store, offset = reopened(store_type, task)
        ahead += offset >= 0
        store.restore(left.logged[offset + 1 :])
        if store_type == "versioned":
            # What the files had beyond the offset was put again: the same versions, in rows that may be cut otherwise.
            assert versions(store) == undisturbed.versions(chain(store)[-1]._observed)
        store.close()
        assert store_type == "versioned" or stored(task) == expected
        # All of the changelog, into an empty directory.
        store, offset = reopened(store_type, tmp_path / f"restored {run}")
        assert offset == -1
        store.restore(left.logged)
        store.close()
        assert stored(tmp_path / f"restored {run}") == expected
        for directory in (task, undisturbed.task, tmp_path / f"restored {run}"):
            shutil.rmtree(directory)
    assert lost >= KILLS / 2
    assert ahead or KILLS < 100  # some had files that knew of an offset


# --- a flush of the cache --------------------------------------------------------------------------------------------


def leaving(store_type: str, seed: int) -> Iterator[Operation]:
    """What leaves the cache: the last write of each row, in the order of these, at each flush."""
    work = operations(store_type, seed, keys=CACHED_KEYS)
    while True:
        kept: dict[Any, Operation] = {}
        for operation in islice(work, BUFFERED):
            kept.pop(operation.row, None)
            kept[operation.row] = operation
        yield from kept.values()


def test_killed_cache_flush_leaves_complete_rows(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    unfinished = 0
    for run in range(KILLS):
        store_type = ("key-value", "window", "session", "window by time")[run % 4]
        task, seed = tmp_path / str(run), 2000 + run
        # In the first half of one of the first flushes; what is held back before that makes no line.
        sizes = [len(rows) for rows in islice(rounds(store_type, seed), 3)]
        which = chance.randrange(3)
        after = sum(sizes[:which]) + which + chance.randrange(1, sizes[which] // 2)
        wait = chance.random() * 0.002
        left = kill(task, after, wait, operation="flush", store_type=store_type, seed=seed)
        assert not left.finished
        work = list(islice(leaving(store_type, seed), len(left.logged) + 1))
        undisturbed = Undisturbed(store_type, tmp_path / f"undisturbed {run}")
        before, then = undisturbed.after(work[:-1]), undisturbed.after(work)
        check(stored(task), before, then, store_type)
        flushed = sum(len(kept) for kept in islice(rounds(store_type, seed), left.flushed))
        assert flushed <= len(left.logged)
        unfinished += flushed < len(left.logged)
        store, offset = reopened(store_type, task, write_ahead_log=True)
        assert offset < len(left.logged)
        store.close()
        shutil.rmtree(task)
        shutil.rmtree(undisturbed.task)
    assert unfinished >= KILLS / 2


def rounds(store_type: str, seed: int) -> Iterator[set[Any]]:
    """The rows that each flush writes."""
    work = operations(store_type, seed, keys=CACHED_KEYS)
    while True:
        yield {operation.row for operation in islice(work, BUFFERED)}


# --- an upgrade ------------------------------------------------------------------------------------------------------


class Older(NamedTuple):
    """A store of an older format, and what its rows become."""

    store_type: str
    builder: Callable[[], Any]
    put: Callable[[Any, bytes, int], object]
    newer: Callable[[bytes, bytes], bytes]


HEADERS, TIMESTAMP = b"\0", b"\xff" * 8
OLDER = {
    "key-value": Older(
        "key-value",
        lambda: Stores.key_value_store_builder(Stores.persistent_key_value_store("s")),
        lambda store, key, n: store.put(key, b"v%d" % n),
        lambda key, old: HEADERS + TIMESTAMP + old,
    ),
    "key-value with timestamps": Older(
        "key-value",
        lambda: Stores.timestamped_key_value_store_builder(Stores.persistent_timestamped_key_value_store("s")),
        lambda store, key, n: store.put(key, ValueAndTimestamp.make(b"v%d" % n, n)),
        lambda key, old: HEADERS + old,
    ),
    "window": Older(
        "window",
        lambda: Stores.timestamped_window_store_builder(
            Stores.persistent_timestamped_window_store("s", killed.RETENTION, killed.WINDOW)
        ),
        lambda store, key, n: store.put(key, ValueAndTimestamp.make(b"v%d" % n, n), n),
        lambda key, old: HEADERS + old,
    ),
    "session": Older(
        "session",
        lambda: Stores.session_store_builder(Stores.persistent_session_store("s", killed.RETENTION)),
        lambda store, key, n: store.put(SessionKey(key, n, n + 5), b"v%d" % n),
        lambda key, old: HEADERS + old,
    ),
    "versioned": Older(
        "versioned",
        lambda: Stores.versioned_key_value_store_builder(
            Stores.persistent_versioned_key_value_store("s", killed.RETENTION)
        ),
        lambda store, key, n: store.put(key, b"v%d" % n, n),
        with_headers,
    ),
}
NEWER = ("keyValueWithTimestampAndHeaders", "sessionKeyValueWithHeaders", "versionedKeyValueWithHeaders")
OLD_ROWS = 6000


def older(name: str, task: Path) -> dict[Row, bytes]:
    """Make the store of an older format; gives its rows."""
    store = OLDER[name].builder().build()
    store.open(task, StoreContext("app", changelog=ChangelogList()))
    names = []
    for n in range(OLD_ROWS):
        key, time = b"k%05d" % n, n * 15
        OLDER[name].put(store, key, time)
        times = {"window": [time], "session": [time, time + 5]}.get(name, [])
        names.append([key.hex(), *times])
    store.close()
    (task / "rows.json").write_text(json.dumps(names))
    return stored(task)


@pytest.mark.parametrize("eager", [False, True], ids=["lazy", "eager"])
def test_killed_upgrade_loses_no_row(tmp_path: Path, eager: bool) -> None:
    chance = random.Random(KILLS)
    result: dict[str, dict[Row, bytes]] = {}
    takes: dict[str, float] = {}
    begun = 0
    for run in range(KILLS):
        name = list(OLDER)[(run + 3 * eager) % len(OLDER)]
        store_type, task, log = OLDER[name].store_type, tmp_path / f"task {run}", run % 3 > 0 or KILLS < 100
        if name not in result:
            result[name] = older(name, tmp_path / name)
            takes[name] = upgrading(store_type, tmp_path / name) if eager else 0.0
        old = result[name]
        shutil.copytree(tmp_path / name, task)
        after, wait = chance.randrange(1, OLD_ROWS), 0.0
        if eager and log:
            after, wait = chance.randrange(1, 5), chance.random() * 0.002  # a thousand rows move at once
        elif eager:
            # What is moved reaches the files when the store is closed, or forgotten: there too it is killed.
            after, wait = 1, chance.uniform(0.2, 1.4) * takes[name]
        left = kill(task, after, wait, operation="upgrade", store_type=store_type, seed=run, log=log, eager=eager)
        rows = stored(task)
        # No row is missing: each is as it was, or as it is to be. In both families are only rows that reached the files
        # without the log, family by family, the newer one first.
        newer = {(place, key): value for (place, family, key), value in rows.items() if family in NEWER}
        left_older = {row: value for row, value in rows.items() if row[1] not in NEWER}
        assert newer.items() <= {(row[0], row[2]): OLDER[name].newer(row[2], old[row]) for row in old}.items()
        assert left_older.items() <= old.items()
        assert {(place, key) for place, _, key in left_older} | newer.keys() == {(row[0], row[2]) for row in old}
        moved = len(old) - len(left_older)
        assert len(newer) == moved or (len(newer) > moved and not log)
        if log and not eager:
            assert left.done - 1 <= moved <= left.done
        begun += 0 < moved < len(old)
        # Whoever opens the store goes on.
        store = killed.opened(store_type, task, ChangelogList(), write_ahead_log=True)
        assert chain(store)[-1].upgrade() == len(old) - moved
        store.close()
        whole = {(place, key): value for (place, _, key), value in stored(task).items()}
        assert whole == {(place, key): OLDER[name].newer(key, value) for (place, _, key), value in old.items()}
        shutil.rmtree(task)
    assert begun >= KILLS / 2


def upgrading(store_type: str, task: Path) -> float:
    """How many seconds it takes to move all rows at once."""
    copy = task.with_name(f"copy of {task.name}")
    shutil.copytree(task, copy)
    store = killed.opened(store_type, copy, ChangelogList(), write_ahead_log=True)
    began = time.perf_counter()
    assert chain(store)[-1].upgrade() == OLD_ROWS
    took = time.perf_counter() - began
    store.close()
    return took
