"""Files of a database that are missing, are no regular files, or are larger than they can be; and copies that stay behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import ProcessorStateError, StoreNotFoundError
from letterhead.state import restore
from letterhead.state.rocksdb import RocksDBKeyValueStore
from letterhead.state.storage import files, temporary
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.temporary import LOCK, TemporaryDirectory
from tests.helpers.command import runner

pytestmark = pytest.mark.timeout(60)

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
Change = Callable[[Path], None]


def grown(path: Path) -> None:
    os.truncate(path, 20 << 30)  # a sparse file, which takes no room


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def replaced_by_a_device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with two stores, of which tests change the first."""
    for name in ("latest", "other"):
        store = RocksDBKeyValueStore(name)
        store.open(tmp_path / "0_0")
        store.put(b"k", bytes(9) + b"v")
        store.close()
    return tmp_path


def first(directory: Path, pattern: str) -> Path:
    return next(directory.glob(pattern), directory / pattern)


BAD = [
    *((grown, name) for name in ("CURRENT", "IDENTITY", "MANIFEST-*", "*.sst")),
    *((grown, name) for name in ("rocksdict-config.json",)),
    *(
        (change, name)
        for change in (replaced_by_a_pipe, replaced_by_a_device)
        for name in ("CURRENT", "IDENTITY", "MANIFEST-*", "LOCK", "*.sst", "rocksdict-config.json")
    ),
]


@pytest.mark.parametrize(("change", "name"), BAD)
def test_file_not_of_database_is_rejected_before_opening(state: Path, change: Change, name: str) -> None:
    directory = state / "0_0" / "rocksdb" / "latest"
    change(first(directory, name))
    with pytest.raises(ProcessorStateError, match="latest"):
        lh.read.state(state, store="latest").read_all()
    with pytest.raises(ProcessorStateError, match="latest"):
        StoredFamilies(directory)
    if name != "*.sst" or change is not grown:  # RocksDB compares the size of these when it reads them
        with pytest.raises(ProcessorStateError, match="latest"):
            RocksDBKeyValueStore("latest").open(state / "0_0")
    assert lh.read.state(state, store="other").read_all().num_rows == 1


def test_file_size_may_equal_limit(state: Path) -> None:
    directory = state / "0_0" / "rocksdb" / "latest"
    os.truncate(directory / "IDENTITY", 1024)
    files.check_files("latest", directory)
    os.truncate(directory / "IDENTITY", 1025)
    with pytest.raises(ProcessorStateError, match=r"IDENTITY has 1025 bytes, and can have 1024 at most"):
        files.check_files("latest", directory)


@pytest.mark.parametrize("missing", ["CURRENT", "CURRENT IDENTITY", "CURRENT MANIFEST-* OPTIONS-* IDENTITY"])
def test_store_without_current_file_is_reported_not_omitted(
    state: Path, missing: str, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = state / "0_0" / "rocksdb" / "latest"
    for pattern in missing.split():
        for path in directory.glob(pattern):
            path.unlink()
    run = runner(capfdbinary, monkeypatch)
    for command in ("ls", "verify"):
        result = run("state", command, state, "--json")
        assert result.code == 1
        assert sorted(store["store"] for store in json.loads(result.out)) == ["latest", "other"]
    with pytest.raises(ProcessorStateError, match="latest has no file CURRENT"):
        lh.read.state(state).read_all()
    before = sorted(path.name for path in directory.iterdir())
    with pytest.raises(ProcessorStateError, match="latest has no file CURRENT"):
        RocksDBKeyValueStore("latest").open(state / "0_0")
    assert sorted(path.name for path in directory.iterdir()) == before


def test_segment_without_current_file_is_reported(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "streams-state-0_0" / "hourly", tmp_path / "hourly")
    min(tmp_path.glob("hourly/*/CURRENT")).unlink()
    with pytest.raises(ProcessorStateError, match="has no file CURRENT"):
        lh.read.state(tmp_path).read_all()


def test_directory_of_unfinished_database_is_opened(tmp_path: Path) -> None:
    directory = tmp_path / "rocksdb" / "latest"
    directory.mkdir(parents=True)
    (directory / "IDENTITY").write_text("a process was killed before it wrote the other files")
    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path)
    store.close()
    with pytest.raises(StoreNotFoundError, match="there is no store in"):
        StoredFamilies(tmp_path)


@pytest.mark.parametrize("change", [grown, replaced_by_a_pipe, replaced_by_a_device])
def test_position_file_of_older_versions_must_be_small_file(state: Path, change: Change) -> None:
    path = state / "0_0" / "latest.position"
    path.write_text("0\n1\nin 0 7\n")
    change(path)
    with pytest.raises(ProcessorStateError, match=r"Error reading .*latest\.position"):
        RocksDBKeyValueStore("latest").open(state / "0_0")


def test_options_of_interrupted_restore_must_be_file(tmp_path: Path) -> None:
    hidden = tmp_path / ".latest.restoring"
    hidden.mkdir()
    os.mkfifo(hidden / "options.json")
    with pytest.raises(OSError, match="not a regular file"):
        restore(SAMPLES / "orders-app-latest-changelog-0", tmp_path, "latest")


# Copies.


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of temporary files, in which nothing was swept yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_swept", set())
    return tmp_path


HOLD = """
import signal, sys
from letterhead.state.storage.temporary import TemporaryDirectory
directory = TemporaryDirectory("store")
(directory.path / "copy").write_bytes(b"rows")
print(directory.path, flush=True)
signal.pause()
"""


def another_process_with_a_copy(place: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)}
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_next_process_removes_only_copies_of_killed_process(place: Path) -> None:
    killed, of_killed = another_process_with_a_copy(place)
    alive, of_alive = another_process_with_a_copy(place)
    foreign = place / "letterhead-notes"
    foreign.mkdir()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert (of_killed / "copy").exists()
    try:
        with TemporaryDirectory("store") as own:
            assert sorted(place.iterdir()) == sorted([of_alive, foreign, own.path])
            assert (of_alive / "copy").exists()
    finally:
        alive.kill()
        alive.wait()
    assert sorted(place.iterdir()) == sorted([of_alive, foreign])


def test_directories_are_kept_if_files_cannot_be_locked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed, of_killed = another_process_with_a_copy(place)
    killed.kill()
    killed.wait()
    monkeypatch.setattr(temporary, "fcntl", None)
    with TemporaryDirectory("store") as own:
        assert sorted(place.iterdir()) == sorted([of_killed, own.path])
        assert (of_killed / LOCK).exists()
    assert [*place.iterdir()] == [of_killed]


def test_links_to_directories_and_locks_are_not_followed(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / LOCK).touch()
    (place / "letterhead-link").symlink_to(outside)
    linked = place / "letterhead-lock"
    linked.mkdir()
    (linked / LOCK).symlink_to(outside / LOCK)
    TemporaryDirectory("store").close()
    assert sorted(path.name for path in place.iterdir()) == ["letterhead-link", "letterhead-lock"]
    assert (outside / LOCK).exists()


def test_directory_is_removed_when_owner_closes_or_is_collected(place: Path) -> None:
    TemporaryDirectory("store").close()
    forgotten = TemporaryDirectory("store")
    assert len(list(place.iterdir())) == 1
    del forgotten
    assert list(place.iterdir()) == []


def test_every_store_copy_is_in_locked_temporary_directory(place: Path) -> None:
    reader = StoredFamilies(SAMPLES / "streams-state-0_0" / "rocksdb" / "latest")
    [directory] = place.iterdir()
    assert (directory / LOCK).is_file()
    reader.close()
    differences = lh.state.diff(
        SAMPLES / "streams-state-0_0" / "rocksdb" / "latest", SAMPLES / "orders-app-latest-changelog-0"
    )
    assert list(differences) == []
    driver = lh.state.TopologyTestDriver(lh.state.Topology().add_source("source", "in"))
    [directory] = place.iterdir()
    assert (directory / LOCK).is_file()
    driver.close()
    assert list(place.iterdir()) == []
