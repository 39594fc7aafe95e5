"""What kind of store a directory holds: by its column families, and by its rows where those leave it open.

Key-value and window stores with timestamps or headers have families of their own. Plain rows of every kind are in
`default`: there a store in one database is plain key-value or versioned, one in segments has windows or sessions, by key
or by time. The rows say which: the times that the keys of a kind would hold have to fit the segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from letterhead.errors import DecodeError, StoreChoiceError, UnexpectedColumnFamilyError, unknown_name
from letterhead.read.state_directory import Found, Segment
from letterhead.storage.database import StoredFamilies
from letterhead.storage.keys import MAX_TIME, TimeOrderedSessionKeys, TimeOrderedWindowKeys, session_parts, window_parts
from letterhead.storage.layouts import (
    DEFAULT,
    HEADERS,
    OFFSETS,
    PLAIN,
    SESSION_HEADERS,
    TIME_ORDERED_HEADERS,
    TIMESTAMPED,
    VERSIONED_HEADERS,
    WITH_HEADERS,
    WITH_TIMESTAMP,
    Layout,
)
from letterhead.storage.versioned_rows import LATEST, Latest, SegmentRow

__all__ = ["KINDS", "LAYOUTS", "VALUES", "Kind", "kind_of"]

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("key-value", "plain"): PLAIN,
    ("key-value", "timestamped"): TIMESTAMPED,
    ("key-value", "headers"): HEADERS,
    ("window", "plain"): PLAIN,
    ("window", "timestamped"): TIMESTAMPED,
    ("window", "headers"): HEADERS,
    ("session", "plain"): PLAIN,
    ("session", "headers"): SESSION_HEADERS,
    ("time-ordered-window", "plain"): PLAIN,
    ("time-ordered-window", "timestamped"): PLAIN,
    ("time-ordered-window", "headers"): TIME_ORDERED_HEADERS,
    ("time-ordered-session", "plain"): PLAIN,
    ("time-ordered-session", "headers"): SESSION_HEADERS,
    ("versioned", "plain"): PLAIN,
    ("versioned", "headers"): VERSIONED_HEADERS,
}
"""Kinds of stores and of their values, and where their rows are."""

KINDS = tuple(dict.fromkeys(kind for kind, _ in LAYOUTS))
VALUES = ("plain", "timestamped", "headers")

ROWS_LOOKED_AT = 500
SEGMENTS_LOOKED_AT = 4


@dataclass(frozen=True)
class Kind:
    """What kind of store it is.

    Attributes
    ----------
    name : str
        One of KINDS.
    values : str
        What its values have: one of VALUES.
    assumed : str
        Why it may be another, if it may.
    """

    name: str
    values: str
    assumed: str = ""

    @property
    def layout(self) -> Layout:
        """Where its rows are."""
        return LAYOUTS[self.name, self.values]

    @property
    def time_ordered(self) -> bool:
        """Whether its rows are in the order of time, and it has an index."""
        return self.name.startswith("time-ordered")

    @property
    def keys(self) -> str:
        """What its keys hold beside the key: `window`, `session`, or a name of KINDS."""
        return self.name.removeprefix("time-ordered-")

    def __str__(self) -> str:
        said = {"headers": "with headers", "timestamped": "with timestamps", "plain": "plain"}[self.values]
        return f"{self.name.replace('time-ordered-', 'time-ordered ')}, {said}"


def kind_of(store: Found, names: list[list[str]], said: str | None = None, values: str | None = None) -> Kind:
    """Tell the kind of a store.

    Parameters
    ----------
    store : Found
        The store.
    names : list of list of str
        Names of the column families of each of its databases.
    said : str, optional
        The kind, if the user says it.
    values : str, optional
        What its values have, if the user says it.

    Raises
    ------
    UnexpectedColumnFamilyError
        If there is a family that no store has.
    StoreChoiceError
        If the user says what cannot be.
    """
    families = set().union(*names)
    found = _by_families(store, families)
    if said is not None:
        found = _as_said(store, families, found, said)
    elif len(candidates := _candidates(store, found)) > 1:
        found = _by_rows(store, found, candidates)
    if values is not None:
        found = _with_values(store, found, values)
    elif found.name == "time-ordered-window" and found.values == "plain":
        why = [found.assumed] if found.assumed else []
        found = Kind(found.name, "timestamped", ", and ".join([*why, "its values may have no timestamps"]))
    for segment, of_segment in zip(store.segments, names, strict=True):
        found.layout.check(segment.directory.name, of_segment)
    return found


def first_rows(store: Found) -> Iterator[tuple[Segment, bytes, bytes]]:
    """Read some rows of a store, whatever family they are in, to look at them."""
    for segment in store.segments[-SEGMENTS_LOOKED_AT:]:
        with StoredFamilies(segment.directory) as families:
            for family in families.names:
                if family != OFFSETS:
                    for key, value in itertools.islice(families.rows(family), ROWS_LOOKED_AT):
                        yield segment, key, value


def _by_families(store: Found, families: set[str]) -> Kind:
    own = families - {DEFAULT, OFFSETS}
    by_key = "window" if store.segmented else "key-value"
    if not own:
        return Kind(by_key, "plain")
    if own == {WITH_TIMESTAMP}:
        return Kind(by_key, "timestamped")
    if own in ({WITH_HEADERS}, {WITH_HEADERS, WITH_TIMESTAMP}):
        return Kind(by_key, "headers")
    if len(own) == 1:
        [family] = own
        for name in ("session", "time-ordered-window", "versioned"):
            if family == LAYOUTS[name, "headers"].family:
                return Kind(name, "headers")
    known = {layout.family for layout in LAYOUTS.values()}
    foreign = min(own - known or own)
    raise UnexpectedColumnFamilyError(
        f"store {store.label}: column family {foreign!r} in {store.directory} is of no store that is known here"
        f"{' beside the others' if foreign in known else ''}. A newer version or another program wrote it: look at it with "
        "that one; nothing was changed",
        store.name,
        foreign,
    )


def _candidates(store: Found, found: Kind) -> list[str]:
    if found.values == "headers" and found.name == "session":
        return ["session", "time-ordered-session"]
    if found.values != "plain":
        return [found.name]
    if store.segmented:
        return ["window", "session", "time-ordered-window", "time-ordered-session"]
    return ["key-value", "versioned"]


def _by_rows(store: Found, found: Kind, candidates: list[str]) -> Kind:
    looked_at = 0
    fits = dict.fromkeys(candidates, 0)
    latest = {segment: index for index, segment in enumerate(store.segments)}
    for segment, key, value in first_rows(store):
        looked_at += 1
        after = store.segments[latest[segment] + 1 :]
        for name in candidates:
            fits[name] += FITS[name](key, value, segment.start, after[0].start if after else None)
    if not looked_at:
        return Kind(candidates[0], found.values, "there are no rows that would say")
    if "versioned" in candidates:
        # Any bytes can be the key and the value of a plain row; hardly any are by chance those of a version.
        if fits["versioned"] * 2 <= looked_at:
            return Kind("key-value", found.values)
        return Kind("versioned", found.values, "its rows look like versions, and could be plain key-value")
    best = max(candidates, key=lambda name: fits[name])
    others = [name for name in candidates if name != best and fits[name] == looked_at]
    if fits[best] == looked_at and not others:
        return Kind(best, found.values)
    why = f"its rows could be {' or '.join(others)}" if others else "not all of its rows look like that"
    return Kind(best, found.values, why)


def _as_said(store: Found, families: set[str], found: Kind, said: str) -> Kind:
    if said not in KINDS:
        raise StoreChoiceError(str(unknown_name("store type", said, KINDS)))
    layout = LAYOUTS.get((said, found.values))
    if layout is None or (found.values == "headers" and layout.family not in families):
        own = ", ".join(sorted(families - {OFFSETS}))
        raise StoreChoiceError(f"store {store.label} is not {said}: its column families are {own}")
    return Kind(said, found.values)


def _with_values(store: Found, found: Kind, said: str) -> Kind:
    if said not in VALUES:
        raise StoreChoiceError(str(unknown_name("values", said, VALUES)))
    if LAYOUTS.get((found.name, said)) is not found.layout:
        raise StoreChoiceError(f"store {store.label} is {found}, by its column families: its values cannot be {said}")
    return Kind(found.name, said, found.assumed)


# Whether a row could be one of a kind, in a segment from `start` to before `end`.


def _window_fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
    if len(key) < 12:
        return False
    _, time, sequence = window_parts(key)
    return sequence >= 0 and _in_segment(time, start, end)


def _session_fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
    if len(key) < 16:
        return False
    session = session_parts(key)
    return 0 <= session.start <= session.end and _in_segment(session.end, start, end)


def _by_time(
    undo: Callable[[bytes], bytes], fits: Callable[[bytes, bytes, int | None, int | None], bool]
) -> Callable[[bytes, bytes, int | None, int | None], bool]:
    def by_time_fits(key: bytes, value: bytes, start: int | None, end: int | None) -> bool:
        if key[:1] == b"\1":
            # An entry of the index has no value; one that was brought up to date has no headers.
            return value in (b"", b"\0") and fits(key[1:], value, start, end)
        return key[:1] == b"\0" and len(key) >= 13 and fits(undo(key), value, start, end)

    return by_time_fits


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


def _in_segment(time: int, start: int | None, end: int | None) -> bool:
    """Say whether a time can be one of a segment: a segment is never longer than the time before it, but the first."""
    if start is None:
        return time >= 0
    longest = 2 * start if start > 0 else MAX_TIME
    return max(start, 0) <= time < (longest if end is None else min(longest, end))


FITS: dict[str, Callable[[bytes, bytes, int | None, int | None], bool]] = {
    "key-value": lambda key, value, start, end: True,
    "versioned": _version_fits,
    "window": _window_fits,
    "session": _session_fits,
    "time-ordered-window": _by_time(TimeOrderedWindowKeys.of_row, _window_fits),
    "time-ordered-session": _by_time(TimeOrderedSessionKeys.of_row, _session_fits),
}
