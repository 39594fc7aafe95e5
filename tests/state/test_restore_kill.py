"""Restores that are killed, and repeated: the directory is that of a restore that nobody killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from letterhead.state import restore
from letterhead.state.context import ChangelogList
from tests.state import changelogs, killed, traces
from tests.state.killed import RETENTION, operations

PROGRAM = Path(__file__).with_name("killed_restore.py")
# A second each; more are for an evening.
KILLS = int(os.environ.get("LETTERHEAD_KILLS", "40"))
RECORDS = 4000
BATCHES = RECORDS // 40

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]


def changelog_of(store_type: str, task: Path, parquet: Path) -> None:
    """Write the changelog of a store that does some work, half of it in the last segments."""
    changelog = ChangelogList()
    store = killed.opened(store_type, task, changelog)
    for n, operation in enumerate(islice(operations(store_type, 1), RECORDS)):
        killed.perform(store_type, store, operation, n)
    store.close()
    pq.write_table(changelogs.table(changelog.records(killed.PLACE[0]), topic=killed.PLACE[0]), parquet)


def options_of(store_type: str) -> dict[str, Any]:
    name = {"window by time": "time-ordered-window"}.get(store_type, store_type)
    return {"store_type": name, **({} if name == "key-value" else {"retention": RETENTION})}


def run(parquet: Path, task: Path, options: dict[str, Any], lines: int | None, wait: float = 0) -> int | None:
    """Restore, and kill the process some seconds after a number of lines; return how many records it wrote, if it ended."""
    command = [sys.executable, str(PROGRAM), str(parquet), str(task), json.dumps(options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if lines is not None:
            list(islice(process.stdout, lines))
            time.sleep(wait)
            process.kill()
        printed, errors = process.stdout.readlines(), process.stderr.read()
    assert process.returncode in (-signal.SIGKILL, 0), errors
    return None if process.returncode else int(printed[-1])


def test_killed_restore_resumes_to_same_directory(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    done = resumed = continued = 0
    types = list(killed.STORE_TYPES)
    expected: dict[str, dict[str, traces.Families]] = {}
    while done < KILLS:
        store_type = types[(done + resumed) % len(types)]
        parquet, options = tmp_path / f"{store_type}.parquet", options_of(store_type)
        if store_type not in expected:
            changelog_of(store_type, tmp_path / f"worked {store_type}", parquet)
            # The program reads a stream, which is restored from its first record.
            restore(parquet, tmp_path / f"whole {store_type}", "s", start="earliest", **options)
            expected[store_type] = traces.databases(tmp_path / f"whole {store_type}")
        task = tmp_path / f"{done} {resumed}"
        # Twice or once the same directory, before it is left to complete.
        for _ in range(chance.choice((1, 2))):
            if run(parquet, task, options, chance.randrange(BATCHES), chance.random() * 0.02) is not None:
                break
            done += 1
        else:
            written = run(parquet, task, options, None)
            assert written is not None
            continued += written < RECORDS
        resumed += 1
        assert traces.databases(task) == expected[store_type], store_type
        assert not list(task.glob(".*"))
    assert continued or KILLS < 40  # some began after records that were in files
