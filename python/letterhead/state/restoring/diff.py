"""Compare the rows of a store with those in another directory, or with its changelog: :func:`diff`."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import letterhead as lh
from letterhead.errors import DamagedRowError, StoreChoiceError, StoreNotFoundError
from letterhead.offsets.partition_log import TopicPartition
from letterhead.state.durations import Milliseconds
from letterhead.state.reading.directory import StoreFiles, StoreSegment, find_stores
from letterhead.state.reading.rows import EncodedRow, StoreReader, StoreRow, open_store
from letterhead.state.restoring.restore import restore
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.temporary import TemporaryDirectory

if TYPE_CHECKING:
    from letterhead.limits import Limits
    from letterhead.state.restoring.changelog_records import Source

__all__ = ["RowDifference", "StoredRow", "diff"]

ErrorCallback: TypeAlias = Callable[[DamagedRowError], object] | None

RowId: TypeAlias = tuple[bytes, tuple[tuple[str, int | None], ...]]
"""Key and times of a row or version."""


class StoredRow(NamedTuple):
    """Row on one side of a comparison.

    Attributes
    ----------
    value : bytes or None
        The value; None for a version that deletes the key.
    timestamp : int or None
        Timestamp; None if the store keeps no timestamps.
    headers : Headers or None
        Headers; None if the store keeps no headers.
    """

    value: bytes | None
    timestamp: int | None
    headers: lh.Headers | None


class RowDifference(NamedTuple):
    """A difference between the rows with the same key on two sides.

    Attributes
    ----------
    store : str
        Name of the store, preceded by its task if there are several tasks.
    key : bytes
        The key.
    times : dict of str to int
        The times of a window, a session or a version, by the names of their columns in :func:`letterhead.read.state`.
    differs : tuple of str
        Parts that differ: ``value``, ``timestamp``, ``headers``; or ``row`` if the row is missing on one side.
    first, second : StoredRow or None
        The row on each side.
    """

    store: str
    key: bytes
    times: dict[str, int | None]
    differs: tuple[str, ...]
    first: StoredRow | None
    second: StoredRow | None


def diff(
    first: str | Path,
    second: Source,
    *,
    store: str | None = None,
    store_type: str | None = None,
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
    on_error: Callable[[DamagedRowError], object] | None = None,
    limits: Limits | None = None,
) -> Iterator[RowDifference]:
    """Compare the stores of two directories, or a store with its changelog.

    Use it after an upgrade, a restore or a copy. Only parts kept by both sides are compared: if one store has headers and
    the other has none, value and timestamp. A row before its upgrade is equal to the upgraded row.

    Parameters
    ----------
    first : path
        A state, application, task or store directory.
    second : path or Arrow stream
        Another such directory, or the changelog in a form accepted by :func:`restore`. The changelog is restored into a
        temporary directory, from its first record up to the offset stored in the first directory. A window or session
        store that was restored may lack rows of its oldest segments; see ``start`` of :func:`restore`.
    store : str, optional
        The store to compare. By default, all stores are compared, and must exist on both sides; for comparison with a
        changelog, the directory must contain exactly one store.
    store_type : str, optional
        Type of the store, if the files do not determine it.
    retention, segment_interval : int or timedelta, optional
        As in :func:`restore`, for comparison of a store with its changelog if rows expire.
    on_error : callable, optional
        Called with the error of a row that differs and cannot be read, for example ``errors.append``; the comparison
        continues with the next row. By default the first error is raised.
    limits : Limits, optional
        Limits for reading values and headers.

    Yields
    ------
    RowDifference
        Differences, sorted by store and then in the order of the store.

    Raises
    ------
    StoreNotFoundError
        If a store is missing on one side.
    FileNotFoundError, NotADirectoryError
        If a side does not exist, or the first side is not a directory.
    StoreChoiceError
        If two stores have different types, or several stores are compared with one changelog.
    DamagedRowError
        If a row that differs cannot be read, and there is no ``on_error``.

    Examples
    --------
    >>> import letterhead as lh
    >>> state = "tests/samples/streams-state-0_0/rocksdb/latest"
    >>> list(lh.state.diff(state, "tests/samples/orders-app-latest-changelog-0"))
    []
    """
    first_stores = find_stores(Path(first), store)
    if isinstance(second, str | Path) and not Path(second).exists():
        raise FileNotFoundError(errno.ENOENT, "no such file or directory", str(second))
    if isinstance(second, str | Path) and _has_stores(Path(second)):
        yield from _compare_directories(first_stores, find_stores(Path(second), store), store_type, on_error, limits)
        return
    if len(first_stores) > 1:
        names = ", ".join(files.label for files in first_stores)
        raise StoreChoiceError(f"a changelog belongs to one store: choose one with store=: {names}")
    opened = open_store(first_stores[0], store_type, None, limits)
    with _restore(opened, second, retention, segment_interval) as directory:
        yield from _compare_stores(
            opened, open_store(find_stores(directory)[0], opened.type.name, None, limits), on_error
        )


def _has_stores(path: Path) -> bool:
    try:
        return path.is_dir() and bool(find_stores(path))
    except StoreNotFoundError:
        return False


def _compare_directories(
    first: list[StoreFiles],
    second: list[StoreFiles],
    store_type: str | None,
    on_error: ErrorCallback,
    limits: Limits | None,
) -> Iterator[RowDifference]:
    if len(first) == len(second) == 1:
        pairs = [(first[0], second[0])]
    else:
        # If each side has only one task, their names may differ, for example because the directory was copied.
        one_task = all(len({files.task for files in side}) == 1 for side in (first, second))
        first_by_name, second_by_name = (
            {files.name if one_task else files.label: files for files in side} for side in (first, second)
        )
        if missing := first_by_name.keys() ^ second_by_name.keys():
            names = ", ".join(sorted(missing))
            raise StoreNotFoundError(
                f"only one of the directories has {names}: name a store that both have (store=, --store)"
            )
        pairs = [(files, second_by_name[name]) for name, files in first_by_name.items()]
    for first_files, second_files in pairs:
        first_store, second_store = (
            open_store(files, store_type, None, limits) for files in (first_files, second_files)
        )
        yield from _compare_stores(first_store, second_store, on_error)


@contextmanager
def _restore(
    store: StoreReader, source: Source, retention: Milliseconds | None, segment_interval: Milliseconds | None
) -> Iterator[Path]:
    """Restore the changelog of a store up to the offset stored in the store."""
    known = {name: offset for name, offset in store.changelog_offsets().items() if offset >= 0}
    if len(known) != 1:
        raise StoreChoiceError(
            f"store {store.files.label} has no changelog offset: it was not closed, or has no changelog. Restore the "
            "changelog into a directory, and compare with that"
        )
    ((name, offset),) = known.items()
    topic, partition = TopicPartition.parse(name)
    with TemporaryDirectory("diff") as temporary:
        restore(
            source,
            temporary.path,
            store.files.name,
            store_type=store.type.name,  # type: ignore[arg-type]
            layout=store.type.layout_name,  # type: ignore[arg-type]
            retention=retention,
            segment_interval=segment_interval,
            topic=topic,
            partition=partition,
            start="earliest",  # a store that was never restored also has rows older than its retention
            end=offset + 1,
            force=True,  # names need no check, because the topic is read from the store
        )
        yield temporary.path


def _compare_stores(
    first_store: StoreReader, second_store: StoreReader, on_error: ErrorCallback
) -> Iterator[RowDifference]:
    if first_store.type.name != second_store.type.name:
        raise StoreChoiceError(
            f"store {first_store.files.label} is {first_store.type}, and the other {second_store.type}: choose the type "
            "with store_type="
        )
    compared = ["value"]
    compared += ["timestamp"] * all(store.type.value_format != "plain" for store in (first_store, second_store))
    compared += ["headers"] * all(store.type.value_format == "headers" for store in (first_store, second_store))
    first_segments, second_segments = (
        {segment.start: segment for segment in store.files.segments} for store in (first_store, second_store)
    )
    same = first_store.type.value_format == second_store.type.value_format
    for start in sorted({*first_segments, *second_segments}, key=lambda start: start or 0):
        for stored, first_value, second_value in _merge_segments(
            first_store, first_segments.get(start), second_store, second_segments.get(start)
        ):
            if same and first_value == second_value:
                continue
            errors: list[DamagedRowError] = []
            first_parsed = _parse(first_store, first_segments.get(start), stored, first_value, errors)
            second_parsed = _parse(second_store, second_segments.get(start), stored, second_value, errors)
            for error in errors:
                if on_error is None:
                    raise error
                on_error(error)
            if errors:
                continue
            for row_id in dict.fromkeys([*first_parsed, *second_parsed]):
                yield from _compare_rows(
                    first_store.files.label, row_id, first_parsed.get(row_id), second_parsed.get(row_id), compared
                )


def _compare_rows(
    store: str, row_id: RowId, first: StoreRow | None, second: StoreRow | None, compared: list[str]
) -> Iterator[RowDifference]:
    differs = ["row"]
    if first is not None and second is not None:
        differs = [name for name in compared if getattr(first, name) != getattr(second, name)]
    if differs:
        rows = (None if row is None else StoredRow(row.value, row.timestamp, row.headers) for row in (first, second))
        yield RowDifference(store, row_id[0], dict(row_id[1]), tuple(differs), *rows)


def _merge_segments(
    first_store: StoreReader,
    first_segment: StoreSegment | None,
    second_store: StoreReader,
    second_segment: StoreSegment | None,
) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
    """Yield each key of a segment with its value on each side in the newer form, in order of key."""
    first_rows, second_rows = _rows(first_store, first_segment), _rows(second_store, second_segment)
    first, second = next(first_rows, None), next(second_rows, None)
    while first is not None or second is not None:
        if first is not None and (second is None or first[0] < second[0]):
            yield first[0], first[1], None
            first = next(first_rows, None)
        elif second is not None and (first is None or second[0] < first[0]):
            yield second[0], None, second[1]
            second = next(second_rows, None)
        elif first is not None and second is not None:
            yield first[0], first[1], second[1]
            first, second = next(first_rows, None), next(second_rows, None)


def _rows(store: StoreReader, segment: StoreSegment | None) -> Iterator[tuple[bytes, bytes]]:
    if segment is not None:
        with StoredFamilies(segment.directory) as families:
            yield from store.rows(families)


def _parse(
    store: StoreReader, segment: StoreSegment | None, stored: bytes, value: bytes | None, errors: list[DamagedRowError]
) -> dict[RowId, StoreRow]:
    """Return the parsed row or its versions by key and times; append an error to ``errors`` if it is unreadable."""
    if segment is None or value is None:
        return {}
    try:
        rows = store.parse_row(segment, EncodedRow(stored, value, store.type.layout.family, None))
    except DamagedRowError as error:
        errors.append(error)
        return {}
    return {(row.key, tuple(row.times.items())): row for row in rows}
