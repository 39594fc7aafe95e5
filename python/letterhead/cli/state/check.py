"""`letterhead state check`: predict how another version of Kafka Streams, or another layout, opens stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from letterhead._formatting import printable
from letterhead.cli.exits import BAD_DATA, OK, Failure, as_options
from letterhead.cli.render import count_text, print_json, warn, zoned_time
from letterhead.cli.screen import console, table
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.formatting import store_json
from letterhead.cli.state.options import ChangelogSource, Selection
from letterhead.cli.state.restore import first_offsets, open_changelog
from letterhead.cli.state.rows import open_selected
from letterhead.cli.state.upgrade import upgrade_all_rows
from letterhead.errors import StateStoreError, UnexpectedColumnFamilyError
from letterhead.offsets.partition_log import TopicPartition
from letterhead.state.base import FORMATS
from letterhead.state.reading.directory import StoreFiles, find_stores
from letterhead.state.reading.rows import StoreReader, latest_offsets
from letterhead.state.reading.store_types import DetectedType
from letterhead.state.restoring.diff import diff
from letterhead.state.restoring.restore import restore
from letterhead.state.storage.database import Database, RocksDBOptions
from letterhead.state.storage.files import copy_database
from letterhead.state.storage.layouts import LAYOUTS
from letterhead.state.storage.temporary import TemporaryDirectory

VERSIONS = ("4.3", "4.4")
"""Versions of Kafka Streams whose behaviour the tests verify."""

KEPT, CONVERTED, DAMAGED, REFUSED = "kept", "converted", "damaged", "refused"
REBUILT, LOST = "rebuilt", "lost"
"""Outcomes of a rejected store, with and without a changelog."""

_MEANINGS = {
    KEPT: "opened as it is",
    CONVERTED: "rows move to the new column family when they are read by key or written; only the changelog restores the old store",
    DAMAGED: "Kafka Streams reads values with a byte 00 in front: delete the directory before, so that it is restored instead",
    REBUILT: "refused: delete the directory, and the store is restored from its changelog",
    LOST: "refused, and the store has no changelog",
}


@dataclass(frozen=True)
class Outcome:
    """Predicted outcome for a store.

    `trial_result` describes a trial on a copy of the store; `failed` tells whether the trial contradicts the
    prediction.
    """

    store: StoreReader
    target: DetectedType
    result: str
    changelog: tuple[str, int, int] | None
    """Topic and partition of the changelog, and the offset up to which the store contains its records."""
    notes: tuple[str, ...] = ()
    trial_result: str = ""
    failed: bool = False


def predict_outcome(stored: DetectedType, layout: str) -> str:
    """Return the outcome when Kafka Streams opens a store with a layout: kept, converted, damaged or refused."""
    if stored.key_format == "versioned" and "headers" in (stored.layout_name, layout):
        return REFUSED  # there is no such store in Kafka Streams
    if LAYOUTS[stored.name, layout].family == stored.layout.family:
        return KEPT
    if FORMATS.index(layout) < FORMATS.index(stored.layout_name):
        return REFUSED
    return DAMAGED if stored.name == "time-ordered-session" else CONVERTED


def run_check(
    selection: Selection,
    *,
    to: str,
    from_version: str | None,
    layout: str | None,
    run_trial: bool,
    source: ChangelogSource | None,
    json: bool,
) -> int:
    """Print the outcome for every store; on a broker, the changelogs are the topics of the stores."""
    from_version = from_version or next(version for version in VERSIONS if version != to)
    for name, version in (("--to", to), ("--from", from_version)):
        if version not in VERSIONS:
            raise Failure(f"{name} is one of {', '.join(VERSIONS)}")
    if layout is not None and layout not in FORMATS:
        raise Failure(f"--layout is one of {', '.join(FORMATS)}")
    with reading_errors():
        stores = find_stores(selection.directory, selection.name)
        if source is not None and source.brokers is None and len(stores) > 1:
            raise Failure(f"--changelog is of one store, and there are {len(stores)}: choose one with --store")
        outcomes = [_predict(open_selected(files, selection), to, from_version, layout) for files in stores]
        if run_trial:
            outcomes = [_try_on_copy(outcome, selection, source, to) for outcome in outcomes]
    if json:
        print_json([_document(outcome) for outcome in outcomes])
    else:
        console().print(_table(outcomes, run_trial=run_trial))
        for note in dict.fromkeys(note for outcome in outcomes for note in outcome.notes):
            warn(note)
    return BAD_DATA if any(outcome.failed or outcome.result in (DAMAGED, LOST) for outcome in outcomes) else OK


def _predict(store: StoreReader, to: str, from_version: str, layout: str | None) -> Outcome:
    store_type = store.type
    target = replace(store_type, layout_name=_layout_of(store_type, layout or store_type.layout_name))
    databases = [(families.dirty, families.offsets()) for _, families in store.databases()]
    open_or_not_closed = store.process is not None or any(dirty for dirty, _ in databases)
    offsets = latest_offsets(offsets for _, offsets in databases)
    changelog = None
    if len(offsets) == 1:
        ((name, offset),) = offsets.items()
        changelog = *TopicPartition.parse(name), offset
    result = predict_outcome(store_type, target.layout_name)
    if result == REFUSED:
        result = REBUILT if offsets else LOST
    notes = []
    if open_or_not_closed:
        notes.append(
            f"store {store.files.label} was not closed: with exactly-once, Kafka Streams restores it from its changelog"
        )
    if result == REBUILT and to == "4.4" and store.files.segmented:
        notes.append(
            f"store {store.files.label}: Kafka Streams 4.4 restores the records inside the retention; rows of its oldest "
            "segments are left out"
        )
    if (from_version, to) == ("4.4", "4.3"):
        notes.append(
            "buffers of suppress() are in changelogs alone: 4.3 ignores the headers of old values that 4.4 wrote there"
        )
    return Outcome(store, target, result, changelog, tuple(notes))


def _layout_of(store_type: DetectedType, layout: str) -> str:
    """Return the layout that Kafka Streams uses for a store: sessions have no timestamps, versions no headers."""
    if store_type.key_format == "versioned" or (store_type.name, layout) not in LAYOUTS:
        return "plain"
    return layout


def _try_on_copy(outcome: Outcome, selection: Selection, source: ChangelogSource | None, to: str) -> Outcome:
    """Perform the steps of Kafka Streams on a copy, and compare the rows."""
    if outcome.result == DAMAGED:
        return replace(outcome, trial_result="not tried: letterhead converts these rows without the defect")
    with _copy_of(outcome.store.files) as copy:
        try:
            if outcome.result == CONVERTED:
                moved = upgrade_all_rows(open_selected(copy, selection), outcome.target.layout_name)
                return _compare(outcome, copy.directory, f"{count_text(moved, 'row')} converted")
            _open_and_close(copy, outcome.target)
        except UnexpectedColumnFamilyError:
            if outcome.result == KEPT:
                return replace(outcome, trial_result="a copy is refused", failed=True)
            return _try_restore(outcome, source, to)
        if outcome.result == KEPT:
            return _compare(outcome, copy.directory, "opened")
        return replace(outcome, trial_result="a copy is opened", failed=True)


@contextmanager
def _copy_of(files: StoreFiles) -> Iterator[StoreFiles]:
    """Copy a store into a temporary directory."""
    with TemporaryDirectory("check") as temporary:
        path = temporary.path / "app" / "0_0"
        if not files.segmented:
            path /= "rocksdb"
        for segment in files.segments:
            within = segment.directory.relative_to(files.directory)
            copy_database(files.name, segment.directory, path / files.name / within)
        (copy,) = find_stores(temporary.path / "app" / "0_0")
        yield copy


def _open_and_close(files: StoreFiles, target: DetectedType) -> None:
    for segment in files.segments:
        database = Database(segment.directory.name, segment.directory, target.layout, RocksDBOptions())
        database.close(clean=not database.dirty)


def _try_restore(outcome: Outcome, source: ChangelogSource | None, to: str) -> Outcome:
    store_type = outcome.target
    if source is None:
        return replace(outcome, trial_result="refused; pass --changelog or --bootstrap-server to restore it")
    if outcome.changelog is None:
        return replace(outcome, trial_result="refused; its changelog is not known")
    if store_type.name != "key-value" and source.retention is None:
        return replace(outcome, trial_result="refused; pass --retention to restore it")
    topic, partition, offset = outcome.changelog
    if source.brokers is not None:
        source = source._replace(path=topic)
    if store_type.name == "key-value":  # only rows of the other stores expire
        source = source._replace(retention=None, segment_interval=None)
    end = offset + 1  # later records are not in the store
    with TemporaryDirectory("check") as temporary:
        try:
            done = restore(
                open_changelog(source, partition),
                temporary.path,
                outcome.store.files.name,
                store_type=store_type.name,  # type: ignore[arg-type]
                layout=store_type.layout_name,  # type: ignore[arg-type]
                retention=source.retention,
                segment_interval=source.segment_interval,
                topic=topic,
                partition=partition,
                start=first_offsets(source, partition, store_type.name, end) if to == "4.4" else "earliest",
                end=end,
                force=True,  # the topic comes from the store itself
            )
        except ValueError as error:  # for example, the topic does not exist
            return replace(outcome, trial_result=f"refused, and not restored: {as_options(str(error))}", failed=True)
        if not done.directories:
            return replace(outcome, trial_result="refused, and not restored: the changelog has no records", failed=True)
        restored = f"{count_text(done.records, 'record')} restored"
        return _compare(outcome, temporary.path, restored, lacks_oldest=to == "4.4" and outcome.store.files.segmented)


def _compare(outcome: Outcome, directory: Path, done: str, *, lacks_oldest: bool = False) -> Outcome:
    """Compare a copy with the store, in the parts of values that both have; a copy may lack rows of the oldest segments."""
    store_type = outcome.store.type
    differing = left_out = last = 0
    try:
        for difference in diff(outcome.store.files.directory, directory, store_type=store_type.name):
            if lacks_oldest and difference.second is None:
                left_out += 1
                last = max(last, *(time for time in difference.times.values() if time is not None))
            else:
                differing += 1
    except StateStoreError as error:
        return replace(outcome, trial_result=f"{done}; {error}", failed=True)
    if left_out:
        done += f"; {count_text(left_out, 'row')} up to {zoned_time(last)} left out"
    if differing:
        differ = "row differs" if differing == 1 else "rows differ"
        return replace(outcome, trial_result=f"{done}; {differing:,} {differ}", failed=True)
    return replace(outcome, trial_result=f"{done}; no {'other ' if left_out else ''}row differs")


def _table(outcomes: list[Outcome], *, run_trial: bool) -> Table:
    view = table("store", "type", "opened as", "outcome", *(["on a copy"] if run_trial else ["because"]), fold=True)
    for outcome in outcomes:
        last = outcome.trial_result if run_trial else _MEANINGS[outcome.result]
        view.add_row(
            printable(outcome.store.files.label),
            str(outcome.store.type),
            outcome.target.layout_name,
            outcome.result,
            printable(last),
        )
    return view


def _document(outcome: Outcome) -> dict[str, Any]:
    return store_json(outcome.store.files) | {
        "store_type": outcome.store.type.name,
        "layout": outcome.store.type.layout_name,
        "opened_as": outcome.target.layout_name,
        "outcome": outcome.result,
        "meaning": _MEANINGS[outcome.result],
        "changelog": outcome.changelog and f"{outcome.changelog[0]}-{outcome.changelog[1]}",
        "notes": list(outcome.notes),
        "tried": outcome.trial_result or None,
        "agrees": not outcome.failed if outcome.trial_result else None,
    }
