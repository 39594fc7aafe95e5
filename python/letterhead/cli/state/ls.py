"""`letterhead state ls`: list stores, their contents, and how they were left."""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead._invariants import present
from letterhead.cli.exits import BAD_DATA, OK, Failure, usage_errors
from letterhead.cli.render import console, counted, moment, print_json, progress, table
from letterhead.cli.state.lag import end_offsets
from letterhead.cli.state.options import Selection
from letterhead.cli.state.rows import failures, opened
from letterhead.errors import DecodeError, ProcessorStateError, StoreChoiceError
from letterhead.state.reading.directory import Found, Segment, find_stores
from letterhead.state.reading.rows import Store
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.position import Position
from letterhead.state.storage.versioned_rows import bounds


@dataclass
class Part:
    """The contents of a segment, or of a store without segments; None where they were not counted.

    `older` counts rows that have not been moved to the newer family yet, `index` index entries beside the rows;
    `versions` are those in the rows of a versioned store; `first` and `last` are the earliest and the latest time.
    """

    name: str
    rows: int = 0
    older: int | None = 0
    index: int | None = 0
    versions: int | None = 0
    key_bytes: int | None = 0
    value_bytes: int | None = 0
    header_bytes: int | None = 0
    first: int | None = None
    last: int | None = None
    damaged: int = 0


@dataclass
class Listed:
    """One store: what it is and holds, or in `error` why it cannot be read."""

    found: Found
    store: Store | None = None
    error: str = ""
    families: list[str] = field(default_factory=list)
    older_families: list[str] = field(default_factory=list)
    segments: list[Part] = field(default_factory=list)
    open_or_not_closed: bool = False
    offsets: dict[str, int] = field(default_factory=dict)
    lag: dict[str, int] = field(default_factory=dict)
    position: Position = field(default_factory=Position)

    @property
    def type(self) -> str:
        """The store type and what values have; a ? if it cannot be read."""
        return "?" if self.store is None else str(self.store.type)

    def total(self, what: str) -> int | None:
        """Return the sum over all segments; None if it was not counted."""
        numbers = [getattr(part, what) for part in self.segments]
        return None if None in numbers else sum(numbers)


def run_ls(
    selection: Selection,
    *,
    quick: bool,
    everything: bool,
    json: bool,
    changelog: Path | None,
    bootstrap_server: str | None,
) -> int:
    """List the stores of a directory."""
    with failures():
        listed = [_examined(found, selection, quick) for found in find_stores(selection.directory, selection.name)]
        places = {place for each in listed for place in each.offsets}
        try:
            with usage_errors():
                ends = end_offsets(places, changelog, bootstrap_server)
        except FileNotFoundError as error:
            raise Failure(f"there is no file or directory {changelog}") from error
    for each in listed:
        # The offset is that of the last record in the store; a store without one lacks all records. One that is ahead of
        # an older copy of its changelog lacks none.
        each.lag = {place: max(ends[place] - 1 - max(at, -1), 0) for place, at in each.offsets.items() if place in ends}
    if json:
        print_json([_document(each, quick) for each in listed])
    else:
        _show_all(listed, quick, everything)
    return BAD_DATA if any(each.error or each.total("damaged") for each in listed) else OK


def _show_all(listed: list[Listed], quick: bool, everything: bool) -> None:
    screen = console()
    if len(listed) > 1:
        screen.print(_table(listed, quick))
        for each in listed:
            if each.error:
                screen.print(Text(f"! {printable(each.error)}", style="bold red"), soft_wrap=True)
    if len(listed) == 1 or everything:
        for each in listed:
            if len(listed) > 1:
                screen.print()
            _show(screen, each, quick)
    else:
        screen.print(Text("--all shows families, segments and offsets of each store", style="dim"))


def _examined(found: Found, selection: Selection, quick: bool) -> Listed:
    listed = Listed(found)
    try:
        listed.store = store = opened(found, selection)
        listed.families = sorted(set().union(*store.names))
        # A process that has just opened the store may not have written that yet.
        listed.open_or_not_closed = store.process is not None
        for segment, families in store.databases():
            listed.open_or_not_closed |= families.dirty
            listed.offsets |= families.offsets()
            listed.position.merge(families.position())
            listed.segments += (
                _estimated(store, segment, families) if quick else _counted(listed, store, segment, families)
            )
    except ProcessorStateError as error:
        listed.error = str(error)
    except StoreChoiceError:
        raise
    except ValueError as error:
        listed.error = f"store {found.label}: family offsets: {error}"
    return listed


def _estimated(store: Store, segment: Segment, families: StoredFamilies) -> list[Part]:
    rows = sum(families.estimate(family) for family, _ in store.sources(families))
    return [Part(segment.directory.name, rows, None, None, None, None, None, None)]


def _counted(listed: Listed, store: Store, segment: Segment, families: StoredFamilies) -> list[Part]:
    """Count the rows of a database; that of a versioned store holds all its segments."""
    parts: dict[bytes, Part] = {}
    versioned = store.type.keys == "versioned"
    total = sum(families.estimate(family) for family, _ in store.sources(families))
    with progress(total, f"reading {segment.directory.name}", prints=False) as advance:
        for number, row in enumerate(store.stored(families)):
            of = row.key[:8] if versioned else b""
            if of not in parts:
                parts[of] = Part(_segment_name(of) if versioned else segment.directory.name)
            part = parts[of]
            if store.is_index(row.key):
                part.index = (part.index or 0) + 1
                continue
            part.rows += 1
            if row.older is not None:
                part.older = (part.older or 0) + 1
                if row.family not in listed.older_families:
                    listed.older_families.append(row.family)
            part.key_bytes = (part.key_bytes or 0) + len(row.key)
            part.value_bytes = (part.value_bytes or 0) + len(row.value)
            try:
                if versioned:
                    part.versions = (part.versions or 0) + len(store.versions(row.key, row.newer()))
                # The file has no headers for an older row.
                headers = 0 if row.older is not None else store.header_bytes(row.key, row.value)
                part.header_bytes = (part.header_bytes or 0) + headers
                for time in _times(store, row.key, row.value):
                    part.first = time if part.first is None else min(part.first, time)
                    part.last = time if part.last is None else max(part.last, time)
            except DecodeError:
                part.damaged += 1
            if number % 1000 == 999:
                advance(1000)
    return list(parts.values()) or [Part(segment.directory.name)]


def _times(store: Store, key: bytes, value: bytes) -> list[int]:
    if store.type.keys == "versioned":
        if _INT64.unpack_from(key)[0] < 0:
            return [_INT64.unpack_from(value)[0]]
        return list(bounds(value))[::-1]
    _, times = store.key_parts(key)
    return [time for time in times.values() if time is not None]


def _segment_name(prefix: bytes) -> str:
    number = _INT64.unpack(prefix.ljust(8, b"\0"))[0]
    return "latest versions" if number < 0 else f"segment {number}"


def _table(listed: list[Listed], quick: bool) -> Table:
    tasks = any(each.found.task for each in listed)
    sizes = () if quick else ("keys", "values", "headers")
    view = table(
        *(("task",) if tasks else ()), "store", "type", "rows", *sizes, "note", right=("rows", *sizes), fold=True
    )
    for each in listed:
        numbers = [""] * (1 + len(sizes)) if each.error else [_rows(each, quick), *([] if quick else _sizes(each))]
        task = [printable(each.found.task)] if tasks else []
        view.add_row(*task, printable(each.found.name), each.type, *numbers, _notes(each))
    return view


def _rows(each: Listed, quick: bool) -> str:
    return f"{'~' if quick else ''}{each.total('rows') or 0:,}"


def _sizes(each: Listed) -> list[str]:
    keys, values, headers = (each.total(f"{what}_bytes") or 0 for what in ("key", "value", "header"))
    with_headers = each.store is not None and each.store.type.values == "headers"
    return [f"{keys:,}", f"{values:,}", f"{headers:,} ({_share(headers, values)})" if with_headers else ""]


def _share(part: int, of: int) -> str:
    return f"{100 * part / of:.0f} %" if of else "–"


def _notes(each: Listed) -> Text:
    notes = [("cannot be read", "red")] if each.error else []
    if damaged := each.total("damaged"):
        notes.append((f"{counted(damaged, 'damaged row')}: see `letterhead state verify`", "red"))
    if older := each.total("older"):
        notes.append((f"{counted(older, 'older row')} to upgrade", "yellow"))
    if behind := sum(each.lag.values()):
        notes.append((f"{counted(behind, 'record')} behind its changelog", "yellow"))
    if each.open_or_not_closed:
        notes.append(("open, or not closed", "yellow"))
    return Text("\n").join(Text(printable(note), style=style) for note, style in notes)


def _show(screen: Console, each: Listed, quick: bool) -> None:
    screen.print(Text(f"{printable(each.found.label)}: {each.type}", style="bold"))
    view = Table.grid(padding=(0, 2))
    for name, text in _facts(each, quick):
        view.add_row(Text(f"  {name}", style="dim"), text)
    screen.print(view)
    if not each.error and (len(each.segments) > 1 or each.found.segmented):
        screen.print(_segments(each, quick))


def _facts(each: Listed, quick: bool) -> list[tuple[str, Text]]:
    facts = [("directory", Text(printable(str(each.found.shown))))]
    if each.error:
        return [*facts, ("error", Text(printable(each.error), style="red"))]
    store = present(each.store, "the store")
    rows = f"about {each.total('rows') or 0:,} (an estimate)" if quick else f"{each.total('rows') or 0:,}"
    if store.type.time_ordered and not quick:
        rows += f", and {each.total('index') or 0:,} entries of the index"
    if store.type.keys == "versioned" and not quick:
        rows += f", with {counted(each.total('versions') or 0, 'version')}"
    facts.append(("rows", Text(rows)))
    if not quick:
        keys, values, headers = _sizes(each)
        facts += [("keys", Text(f"{keys} bytes")), ("values", Text(f"{values} bytes"))]
        if headers:
            number, share = headers.split(" ", 1)
            facts.append(("headers", Text(f"{number} bytes {share} of the values")))
    facts.append(("families", Text(printable(", ".join(each.families)))))
    if older := each.total("older"):
        where = ", ".join(each.older_families)
        facts.append(("upgrade", Text(f"not finished: {counted(older, 'row')} still in {where}", style="yellow")))
    if damaged := each.total("damaged"):
        facts.append(("damaged", Text(f"{counted(damaged, 'row')}: see `letterhead state verify`", style="red")))
    closed = Text("no: it is open, or its process died", style="yellow") if each.open_or_not_closed else Text("yes")
    facts.append(("closed", closed))
    offsets = [
        f"{topic}: {'unknown' if offset < 0 else format(offset, ',')}"
        + (f" ({counted(each.lag[topic], 'record')} behind)" if topic in each.lag else "")
        for topic, offset in sorted(each.offsets.items())
    ]
    position = [
        f"{topic}-{partition}: {offset:,}"
        for topic, partitions in sorted(each.position.offsets.items())
        for partition, offset in sorted(partitions.items())
    ]
    facts.append(("changelog", Text(printable(", ".join(offsets)) or "no offset")))
    facts.append(("inputs", Text(printable(", ".join(position)) or "no position")))
    return facts


def _segments(each: Listed, quick: bool) -> Table:
    sizes = () if quick else ("first time", "last time")
    view = table("  segment", "rows", *sizes, right=("rows",))
    for part in each.segments:
        times = () if quick else (_time(part.first), _time(part.last))
        view.add_row(f"  {printable(part.name)}", f"{'~' if quick else ''}{part.rows:,}", *times)
    return view


def _time(time: int | None) -> str:
    return "" if time is None else moment(time).removesuffix(" UTC") or str(time)


def _document(each: Listed, quick: bool) -> dict[str, Any]:
    """Return a store as JSON values."""
    document: dict[str, Any] = {
        "store": each.found.name,
        "task": each.found.task or None,
        "directory": str(each.found.directory),
    }
    if each.error or each.store is None:
        return document | {"error": each.error}
    kind = each.store.type
    document |= {
        "store_type": kind.name,
        "values": kind.values,
        "assumed": kind.assumed or None,
        "families": each.families,
        "rows": each.total("rows"),
        "rows_are_estimated": quick,
        "older_rows": each.total("older"),
        "older_families": each.older_families,
    }
    if kind.time_ordered:
        document["index_entries"] = each.total("index")
    if kind.keys == "versioned":
        document["versions"] = each.total("versions")
    document |= {name: each.total(name) for name in ("key_bytes", "value_bytes", "header_bytes")}
    document |= {"damaged_rows": None if quick else each.total("damaged"), "closed": not each.open_or_not_closed}
    document |= {"offsets": each.offsets, "position": each.position.offsets}
    if each.lag:
        document["lag"] = each.lag
    if each.found.segmented or kind.keys == "versioned":
        document["segments"] = [asdict(part) for part in each.segments]
    return document


_INT64 = struct.Struct(">q")
