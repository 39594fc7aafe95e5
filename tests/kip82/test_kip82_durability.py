"""The order of writes, flushes and changes of names of a log: what a power failure must not reorder.

A killed process loses nothing that it wrote, so that only the order of the operations shows a missing flush. The functions
of :mod:`os` are recorded and run.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from letterhead._durable_files import replace_file
from letterhead.kip82 import MessageLog
from tests.helpers.log_samples import encoded, frame, samples

LOG = "00000000000000000000.log"


class Recorder:
    """The operations on files below a directory, as tuples of an operation and names below it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root.resolve()
        self.events: list[tuple[Any, ...]] = []
        self.monkeypatch = monkeypatch
        for name, record in {
            "open": self._open,
            "write": lambda descriptor, data: ("write", self._name(descriptor)),
            "ftruncate": lambda descriptor, size: ("truncate", self._name(descriptor)),
            "fsync": lambda descriptor: ("sync", self._name(descriptor), os.fstat(descriptor).st_size),
            "replace": lambda source, target: ("replace", self._name(source), self._name(target)),
            "rename": lambda source, target: ("replace", self._name(source), self._name(target)),
            "unlink": lambda path: ("unlink", self._name(path)),
            "mkdir": lambda path, *_: ("mkdir", self._name(path)),
        }.items():
            self._wrap(name, record)

    def _wrap(self, name: str, record: Any) -> None:
        run = getattr(os, name)

        def recorded(*arguments: Any, **options: Any) -> Any:
            existed = name != "mkdir" or not os.path.exists(arguments[0])
            event = record(*arguments)
            result = run(*arguments, **options)
            if event is not None and event[1] is not None and existed:
                self.events.append(event)
            return result

        self.monkeypatch.setattr(os, name, recorded)

    def _open(self, path: Any, flags: int, *_: Any) -> tuple[Any, ...] | None:
        return ("create", self._name(path)) if flags & os.O_CREAT and not os.path.exists(path) else None

    def _name(self, where: Any) -> str | None:
        path = Path(os.readlink(f"/proc/self/fd/{where}") if isinstance(where, int) else os.path.abspath(where))
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else None

    def take(self) -> list[tuple[Any, ...]]:
        """Return the operations since the last call, without the size of a directory."""
        events, self.events = self.events, []
        return [
            event[:2] if event[0] == "sync" and (self.root / event[1]).is_dir() else event
            for event in events
            if ".lock" not in event[1]
        ]


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors have no names here")
    yield Recorder(tmp_path, monkeypatch)
    monkeypatch.undo()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "topics" / "orders-0"


def replaced(name: str, size: int) -> list[tuple[Any, ...]]:
    """Return the operations that replace a file safely: its content, its name, and the name on disk."""
    directory = str(Path(name).parent)
    return [("sync", f"{name}.new", size), ("replace", f"{name}.new", name), ("sync", directory)]


def size(path: Path) -> int:
    return path.stat().st_size


def test_replaced_file_is_synced_before_rename(tmp_path: Path, recorder: Recorder) -> None:
    replace_file(tmp_path / "file", "content")
    assert recorder.take() == replaced("file", 7)


def test_new_log_names_are_synced_before_first_message(path: Path, recorder: Recorder) -> None:
    with MessageLog(path) as log:
        created = recorder.take()
        log.append(samples(1))
        appended = recorder.take()
    name = f"topics/orders-0/{LOG}"
    assert {("sync", "."), ("sync", "topics")} < set(created[: created.index(("create", name))])
    assert created[-2:] == [("create", name), ("sync", "topics/orders-0")]
    assert created[-5:-2] == replaced("topics/orders-0/log.json", size(path / "log.json"))
    assert appended == [("write", name), ("sync", name, size(path / LOG))]


def test_append_is_flushed_as_sync_option_selects(path: Path, recorder: Recorder) -> None:
    name = f"topics/orders-0/{LOG}"
    with MessageLog(path, sync="flush") as log:
        recorder.take()
        log.append(samples(3))
        assert recorder.take() == [("write", name)]
        log.flush()
        assert recorder.take() == [("sync", name, size(path / LOG))]
        log.flush()
        assert recorder.take() == []
        log.append(samples(1))
    assert recorder.take() == [("write", name), ("sync", name, size(path / LOG))]


def test_file_is_synced_before_next_one_begins(path: Path, recorder: Recorder) -> None:
    with MessageLog(path, sync="flush", segment_bytes=size_of_one() + 1) as log:
        log.append(samples(1))
        recorder.take()
        log.append(samples(1))
        second = "topics/orders-0/00000000000000000001.log"
        assert recorder.take() == [
            ("sync", f"topics/orders-0/{LOG}", size(path / LOG)),
            ("create", second),
            ("sync", "topics/orders-0"),
            ("write", second),
        ]


def size_of_one() -> int:
    return len(encoded(samples(1))[0])


def test_compaction_syncs_progress_and_file_before_replacing(path: Path, recorder: Recorder) -> None:
    messages = [{"key": key, "value": b"v", "timestamp": 1} for key in (b"k", b"k", b"k", b"a", b"k", b"b")]
    with MessageLog(path, segment_bytes=size_of_one()) as log:
        for first in range(0, 6, 2):
            log.append(messages[first : first + 2])
        recorder.take()
        before = [file.name for file in sorted(path.glob("*.log"))]
        log.compact(now=10, delete_retention_ms=1)
        events = recorder.take()
        left = {file.name: size(file) for file in path.glob("*.log")}
    saved = events.index(("replace", "topics/orders-0/log.json.new", "topics/orders-0/log.json"))
    assert events[saved - 1][:2] == ("sync", "topics/orders-0/log.json.new")
    assert events[saved + 1] == ("sync", "topics/orders-0")
    events = events[saved + 2 :]
    expected: list[tuple[Any, ...]] = []
    outcomes = set()
    for name in before:
        segment, cleaned = f"topics/orders-0/{name}", f"topics/orders-0/{name}.cleaned"
        sync = next(event for event in events if event[:2] == ("sync", cleaned))
        if ("replace", cleaned, segment) in events:
            outcomes.add("replaced")
            assert sync[2] == left[name]
            changes = [("replace", cleaned, segment)]
        elif name in left:
            outcomes.add("kept")
            changes = [("unlink", cleaned)]
        else:
            outcomes.add("removed")
            assert sync[2] == 0
            changes = [("unlink", segment), ("unlink", cleaned)]
        expected += [sync, *changes, ("sync", "topics/orders-0")]
    assert events == expected
    assert outcomes == {"removed", "replaced", "kept"}


def test_interrupted_append_is_truncated_on_disk(path: Path, recorder: Recorder) -> None:
    with MessageLog(path) as log:
        log.append(samples(2))
    whole = size(path / LOG)
    with (path / LOG).open("ab") as file:
        file.write(encoded(samples(3))[2][:-1])
    recorder.take()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = MessageLog(path)
    assert recorder.take() == [("sync", f"topics/orders-0/{LOG}", whole)]
    log.close()


def test_damaged_end_is_saved_before_truncation(path: Path, recorder: Recorder) -> None:
    with MessageLog(path) as log:
        log.append(samples(2))
    whole, damage = size(path / LOG), b"\xff" * 100
    with (path / LOG).open("ab") as file:
        file.write(damage)
    recorder.take()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = MessageLog(path, errors="move")
    saved = replaced(f"topics/orders-0/{LOG}.damaged-{whole}", len(damage))
    assert recorder.take() == [*saved, ("sync", f"topics/orders-0/{LOG}", whole)]
    log.close()


@pytest.mark.parametrize("truncated", [b"", b"\0" * 20])
def test_kafka_indexes_are_deleted_before_their_file_changes(path: Path, recorder: Recorder, truncated: bytes) -> None:
    path.mkdir(parents=True)
    (path / LOG).write_bytes(frame(0, 3, magic=1) + truncated)
    for suffix in (".index", ".timeindex"):
        (path / LOG).with_suffix(suffix).write_bytes(b"\0" * 8)
    recorder.take()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MessageLog(path) as log:
            log.append([{"key": b"k", "value": b"v"}])
    events = recorder.take()
    names = [f"topics/orders-0/{LOG[:-4]}{suffix}" for suffix in (".index", ".timeindex")]
    last = max(events.index(("unlink", name)) for name in names)
    assert events[last + 1] == ("sync", "topics/orders-0")
    changes = [at for at, event in enumerate(events) if event[:2] == ("write", f"topics/orders-0/{LOG}")]
    cuts = [at for at, event in enumerate(events) if event[0] == "sync" and event[1].endswith(".log")]
    assert last + 1 < min(changes + cuts)
