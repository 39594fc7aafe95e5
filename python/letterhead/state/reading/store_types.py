"""Determine the type of a store from its column families, or from its rows if the families are ambiguous.

Key-value and window stores with timestamps or headers have their own families. Plain rows of every type are in
`default`: a store with one database is then plain key-value or versioned, and a store with segments contains windows or
sessions, ordered by key or by time. In this case, keys are parsed as keys of each type, and their times must fit the
segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from letterhead._names import unknown_name
from letterhead.errors import DecodeError, StoreChoiceError, UnexpectedColumnFamilyError
from letterhead.state.base import FORMATS
from letterhead.state.reading.directory import StoreFiles, StoreSegment
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.keys import (
    INDEX,
    MAX_TIME,
    TimeOrderedKeys,
    TimeOrderedSessionKeys,
    TimeOrderedWindowKeys,
    session_parts,
    window_parts,
)
from letterhead.state.storage.layouts import DEFAULT, LAYOUTS, OFFSETS, WITH_HEADERS, WITH_TIMESTAMP, Layout
from letterhead.state.storage.versioned_rows import LATEST, Latest, SegmentRow

__all__ = ["STORE_TYPES", "TIME_ORDERED_KEYS", "DetectedType", "check_store_type", "store_type_of", "value_format_of"]

TIME_ORDERED_KEYS: dict[str, type[TimeOrderedKeys]] = {
    "time-ordered-window": TimeOrderedWindowKeys,
    "time-ordered-session": TimeOrderedSessionKeys,
}
"""Key codec of each type of time-ordered store."""

STORE_TYPES = tuple(dict.fromkeys(name for name, _ in LAYOUTS))

ROWS_EXAMINED = 500
SEGMENTS_EXAMINED = 4


def value_format_of(store_type: str, layout: str) -> str:
    """Return the value format of a layout, one of FORMATS: the name of the layout, except for time-ordered sessions.

    For time-ordered sessions, Kafka Streams opens the family for headers, but writes aggregations without headers into it.
    """
    return "plain" if store_type == "time-ordered-session" else layout


@dataclass(frozen=True)
class DetectedType:
    """Detected type of a store."""

    name: str  # one of STORE_TYPES
    layout_name: str  # one of FORMATS
    assumed: str = ""  # reason why the type is uncertain; empty if it is certain

    @property
    def layout(self) -> Layout:
        """Column families of the rows."""
        return LAYOUTS[self.name, self.layout_name]

    @property
    def value_format(self) -> str:
        """Format of values, one of FORMATS."""
        return value_format_of(self.name, self.layout_name)

    @property
    def has_timestamps(self) -> bool:
        """Whether values have timestamps."""
        return self.value_format != "plain" and self.key_format in ("key-value", "window")

    @property
    def time_ordered(self) -> bool:
        """Whether rows are ordered by time, with an index by key."""
        return self.name.startswith("time-ordered")

    @property
    def key_format(self) -> str:
        """Format of keys: `key-value`, `window`, `session` or `versioned`."""
        return self.name.removeprefix("time-ordered-")

    def __str__(self) -> str:
        values = {"headers": "with headers", "timestamped": "with timestamps", "plain": "plain"}[self.value_format]
        return f"{self.name.replace('time-ordered-', 'time-ordered ')}, {values}"


def check_store_type(name: str) -> None:
    """Raise StoreChoiceError for an unknown type."""
    if name not in STORE_TYPES:
        raise StoreChoiceError(str(unknown_name("store type", name, STORE_TYPES)))


def store_type_of(
    store: StoreFiles,
    families_of_databases: list[list[str]],
    store_type: str | None = None,
    value_format: str | None = None,
) -> DetectedType:
    """Determine the type of a store from the names of the column families in its databases.

    ``store_type`` and ``value_format`` are the user's choices; StoreChoiceError is raised if they do not match the files,
    and UnexpectedColumnFamilyError if a family is unknown.
    """
    families = set().union(*families_of_databases)
    detected = _types_from_families(store, families)
    if store_type is not None:
        detected = _as_chosen(store, families, detected, store_type)
    elif len(candidates := _candidates(store, detected)) > 1:
        detected = _types_from_rows(store, detected, candidates)
    if value_format is not None:
        detected = _with_value_format(store, detected, value_format)
    elif detected.name == "time-ordered-window" and detected.value_format == "plain":
        reasons = [detected.assumed] if detected.assumed else []
        detected = DetectedType(
            detected.name, "timestamped", ", and ".join([*reasons, "its values may have no timestamps"])
        )
    for segment, families_of_segment in zip(store.segments, families_of_databases, strict=True):
        detected.layout.check(segment.directory.name, families_of_segment)
    return detected


def _types_from_families(store: StoreFiles, families: set[str]) -> DetectedType:
    own = families - {DEFAULT, OFFSETS}
    by_key = "window" if store.segmented else "key-value"
    if not own:
        return DetectedType(by_key, "plain")
    if own == {WITH_TIMESTAMP}:
        return DetectedType(by_key, "timestamped")
    if own in ({WITH_HEADERS}, {WITH_HEADERS, WITH_TIMESTAMP}):
        return DetectedType(by_key, "headers")
    for name in ("session", "time-ordered-window", "versioned"):
        if own == {LAYOUTS[name, "headers"].family}:
            return DetectedType(name, "headers")
    known = {layout.family for layout in LAYOUTS.values()}
    foreign = min(own - known or own)
    raise UnexpectedColumnFamilyError(
        f"store {store.label}: column family {foreign!r} in {store.directory} is of no store type known here"
        f"{' beside the others' if foreign in known else ''}. A newer version or another program wrote it: read it with "
        "that one; nothing was changed",
        store.name,
        foreign,
    )


def _candidates(store: StoreFiles, detected: DetectedType) -> list[str]:
    if detected.layout_name == "headers" and detected.name == "session":
        return ["session", "time-ordered-session"]
    if detected.layout_name != "plain":
        return [detected.name]
    if store.segmented:
        return ["window", "session", "time-ordered-window", "time-ordered-session"]
    return ["key-value", "versioned"]


def _types_from_rows(store: StoreFiles, detected: DetectedType, candidates: list[str]) -> DetectedType:
    examined = 0
    fits = dict.fromkeys(candidates, 0)
    ends = dict(itertools.zip_longest(store.segments, (segment.start for segment in store.segments[1:])))
    for segment, key, value in _first_rows(store):
        examined += 1
        for name in candidates:
            fits[name] += FITS[name](key, value, segment.start, ends[segment])
    if not examined:
        return DetectedType(candidates[0], detected.layout_name, "there are no rows to tell by")
    if "versioned" in candidates:
        # A plain row can have any key and value, but is unlikely to parse as a versioned row by chance.
        if fits["versioned"] * 2 <= examined:
            return DetectedType("key-value", detected.layout_name)
        return DetectedType(
            "versioned", detected.layout_name, "its rows look like versions, and could be plain key-value"
        )
    best = max(candidates, key=lambda name: fits[name])
    others = [name for name in candidates if name != best and fits[name] == examined]
    if fits[best] == examined and not others:
        return DetectedType(best, detected.layout_name)
    for name in (best, *others):
        if name in TIME_ORDERED_KEYS and _is_indexed(store, TIME_ORDERED_KEYS[name]):
            return DetectedType(name, detected.layout_name)
    why = f"its rows could be {' or '.join(others)}" if others else "not all of its rows look like that"
    return DetectedType(best, detected.layout_name, why)


def _first_rows(store: StoreFiles) -> Iterator[tuple[StoreSegment, bytes, bytes]]:
    """Yield the first rows of each column family."""
    for segment in store.segments[-SEGMENTS_EXAMINED:]:
        with StoredFamilies(segment.directory) as families:
            for family in families.names:
                if family != OFFSETS:
                    for key, value in itertools.islice(families.rows(family), ROWS_EXAMINED):
                        yield segment, key, value


def _is_indexed(store: StoreFiles, keys: type[TimeOrderedKeys]) -> bool:
    """Return whether the first row of a store has an index entry; only time-ordered stores have index entries."""
    for segment in store.segments[-SEGMENTS_EXAMINED:]:
        with StoredFamilies(segment.directory) as families:
            for family in families.names:
                first = next(families.rows(family), None) if family != OFFSETS else None
                if first is not None and first[0][:1] == b"\0":
                    return families.get(family, keys.index(keys.changelog_key(first[0]))) is not None
    return False


def _as_chosen(store: StoreFiles, families: set[str], detected: DetectedType, chosen: str) -> DetectedType:
    check_store_type(chosen)
    layout = LAYOUTS.get((chosen, detected.layout_name))
    if layout is None or (detected.layout_name == "headers" and layout.family not in families):
        own = ", ".join(sorted(families - {OFFSETS}))
        raise StoreChoiceError(f"store {store.label} is not {chosen}: its column families are {own}")
    return DetectedType(chosen, detected.layout_name)


def _with_value_format(store: StoreFiles, detected: DetectedType, chosen: str) -> DetectedType:
    if chosen not in FORMATS:
        raise StoreChoiceError(str(unknown_name("values", chosen, FORMATS)))
    for layout_name in FORMATS:
        if (
            LAYOUTS.get((detected.name, layout_name)) is detected.layout
            and value_format_of(detected.name, layout_name) == chosen
        ):
            return replace(detected, layout_name=layout_name)
    raise StoreChoiceError(f"store {store.label} is {detected}, by its column families: its values cannot be {chosen}")


Fits: TypeAlias = Callable[[bytes, bytes, int | None, int | None], bool]
"""Function that returns whether a key and a value can be a row of a type in a segment with a start and an end."""


def _window_fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
    if len(key) < 12:
        return False
    _, time, sequence = window_parts(key)
    return sequence >= 0 and _is_in_segment(time, start, end)


def _session_fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
    if len(key) < 16:
        return False
    session = session_parts(key)
    return 0 <= session.start <= session.end and _is_in_segment(session.end, start, end)


def _time_ordered_fits(store_type: str, plain_fits: Fits) -> Fits:
    """Return the function for a time-ordered type, based on the function for the type with the same changelog keys."""

    def fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
        if key[:1] == INDEX:
            # An index entry has an empty value; after an upgrade, it has empty headers.
            return value in (b"", b"\0") and plain_fits(key[1:], value, start, end)
        plain_key = TIME_ORDERED_KEYS[store_type].changelog_key
        return key[:1] == b"\0" and len(key) >= 13 and plain_fits(plain_key(key), value, start, end)

    return fits


def _version_fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
    try:
        if key.startswith(LATEST):
            return Latest.read(value).timestamp >= 0
        if len(key) >= 8 and key[0] < 0x80:
            SegmentRow.read(value)
            return True
    except DecodeError:
        pass
    return False


def _is_in_segment(time: int, start: int | None, end: int | None) -> bool:
    """Return whether a time can be in a segment. Segments after the first one are not longer than their start time."""
    if start is None:
        return time >= 0
    longest = 2 * start if start > 0 else MAX_TIME
    return max(start, 0) <= time < (longest if end is None else min(longest, end))


FITS: dict[str, Fits] = {
    "key-value": lambda key, value, start, end: True,
    "versioned": _version_fits,
    "window": _window_fits,
    "session": _session_fits,
    "time-ordered-window": _time_ordered_fits("time-ordered-window", _window_fits),
    "time-ordered-session": _time_ordered_fits("time-ordered-session", _session_fits),
}
