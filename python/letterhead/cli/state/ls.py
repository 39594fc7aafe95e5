"""`letterhead state ls`: which stores there are, what is in them, and how they were left."""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.exits import FAULTS, OK
from letterhead.cli.progress import progress
from letterhead.cli.render import console, counted, json_text, moment, table
from letterhead.cli.state.rows import failures, opened
from letterhead.cli.state.shown import folded
from letterhead.errors import DecodeError, ProcessorStateError, StoreChoiceError
from letterhead.read.state_directory import Found, Segment, find_stores
from letterhead.read.state_rows import Store
from letterhead.storage.database import StoredFamilies
from letterhead.storage.position import Position
from letterhead.storage.versioned_rows import bounds


@dataclass
class Part:
    """What is in a segment, or in a store without segments; None where it was not counted.

    Attributes
    ----------
    name : str
        Its name.
    rows : int
        How many rows there are.
    older : int or None
        How many of them a store with newer values has not moved yet.
    index : int or None
        How many entries of an index there are beside the rows.
    key_bytes, value_bytes, header_bytes : int or None
        Bytes of the stored keys and values, and those of the values that are headers and their sizes.
    first, last : int or None
        The earliest and the latest time of the rows.
    damaged : int
        How many rows could not be read.
    """

    name: str
    rows: int = 0
    older: int | None = 0
    index: int | None = 0
    key_bytes: int | None = 0
    value_bytes: int | None = 0
    header_bytes: int | None = 0
    first: int | None = None
    last: int | None = None
    damaged: int = 0


@dataclass
class Listed:
    """What `ls` says of a store.

    Attributes
    ----------
    found : Found
        Where it is.
    kind : str
        What it is.
    error : str
        Why it cannot be read, if it cannot.
    families : list of str
        Names of its column families.
    older_families : list of str
        Those in which rows are that have not been moved.
    segments : list of Part
        What is in each segment, or in the store.
    open_or_not_closed : bool
        Whether it was not closed when it was last used.
    offsets : dict of str to int
        How far its changelog is.
    position : dict
        How far its inputs are.
    """

    found: Found
    store: Store | None = None
    error: str = ""
    families: list[str] = field(default_factory=list)
    older_families: list[str] = field(default_factory=list)
    segments: list[Part] = field(default_factory=list)
    open_or_not_closed: bool = False
    offsets: dict[str, int] = field(default_factory=dict)
    position: Position = field(default_factory=Position)

    def total(self, what: str) -> int | None:
        """Add up a number of all segments; None if it was not counted."""
        numbers = [getattr(part, what) for part in self.segments]
        return None if None in numbers else sum(numbers)


def run_ls(given: Path, *, name: str | None, said: str | None, quick: bool, everything: bool, json: bool) -> int:
    """List the stores of a directory."""
    with failures():
        listed = [_look_at(store, said, quick) for store in find_stores(given, name)]
    if json:
        print(json_text([_document(each, quick) for each in listed], indent=2))
    else:
        screen = console()
        if len(listed) > 1:
            screen.print(_table(listed, quick))
            for each in listed:
                if each.error:
                    screen.print(Text(f"! {printable(each.error)}", style="bold red"), soft_wrap=True)
        if len(listed) == 1 or everything:
            for each in listed:
                _show(screen, each, quick)
        else:
            screen.print(Text("--all shows the families, segments and offsets of each of them", style="dim"))
    return FAULTS if any(each.error or each.total("damaged") for each in listed) else OK


def _look_at(found: Found, said: str | None, quick: bool) -> Listed:
    listed = Listed(found)
    try:
        listed.store = store = opened(found, said)
        listed.families = sorted(set().union(*store.names))
        # The process that has it open may not have written yet that it has.
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
    return [Part(segment.directory.name, rows, None, None, None, None, None)]


def _counted(listed: Listed, store: Store, segment: Segment, families: StoredFamilies) -> list[Part]:
    """Count the rows of a database; a versioned store has its segments in one."""
    parts: dict[bytes, Part] = {}
    versioned = store.type.keys == "versioned"
    total = sum(families.estimate(family) for family, _ in store.sources(families))
    with progress(total, f"reading {segment.directory.name}") as advance:
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
                # What an older row would have for headers is not in the file.
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
    view = table(*(("task",) if tasks else ()), "store", "type", "rows", *sizes, "note", right=("rows", *sizes))
    for each in listed:
        cells = [printable(each.found.task)] if tasks else []
        cells += [printable(each.found.name), "?" if each.store is None else str(each.store.type)]
        numbers = [] if each.error else [_rows(each, quick), *([] if quick else _sizes(each))]
        cells += numbers or [""] * (1 + len(sizes))
        view.add_row(*cells, _notes(each))
    return folded(view)


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
    if each.total("damaged"):
        notes.append((f"{counted(each.total('damaged') or 0, 'damaged row')}: verify says which", "red"))
    if each.total("older"):
        notes.append((f"{counted(each.total('older') or 0, 'older row')} to upgrade", "yellow"))
    if each.open_or_not_closed:
        notes.append(("open, or not closed", "yellow"))
    return Text("\n").join(Text(printable(note), style=style) for note, style in notes)


def _show(screen: Console, each: Listed, quick: bool) -> None:
    kind = "?" if each.store is None else str(each.store.type)
    screen.print()
    screen.print(Text(f"{printable(each.found.label)}: {kind}", style="bold"))
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
    assert each.store is not None
    rows = f"about {each.total('rows') or 0:,} (an estimate)" if quick else f"{each.total('rows') or 0:,}"
    if each.store.type.time_ordered and not quick:
        rows += f", and {each.total('index') or 0:,} entries of the index"
    facts.append(("rows", Text(rows)))
    if not quick:
        keys, values, headers = _sizes(each)
        facts += [("keys", Text(f"{keys} bytes")), ("values", Text(f"{values} bytes"))]
        if headers:
            number, share = headers.split(" ", 1)
            facts.append(("headers", Text(f"{number} bytes {share} of the values")))
    facts.append(("families", Text(printable(", ".join(each.families)))))
    older = each.total("older")
    if older:
        where = ", ".join(each.older_families)
        facts.append(("upgrade", Text(f"not finished: {counted(older, 'row')} still in {where}", style="yellow")))
    if each.total("damaged"):
        damaged = counted(each.total("damaged") or 0, "row")
        facts.append(("damaged", Text(f"{damaged}: `letterhead state verify` says which", style="red")))
    closed = Text("no: it is open, or its process died", style="yellow") if each.open_or_not_closed else Text("yes")
    facts.append(("closed", closed))
    offsets = [
        f"{topic}: {'unknown' if offset < 0 else format(offset, ',')}" for topic, offset in sorted(each.offsets.items())
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
    """Give what `--json` prints of a store."""
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
    document |= {name: each.total(name) for name in ("key_bytes", "value_bytes", "header_bytes")}
    document |= {"damaged_rows": None if quick else each.total("damaged"), "closed": not each.open_or_not_closed}
    document |= {"offsets": each.offsets, "position": each.position.offsets}
    if each.found.segmented or kind.keys == "versioned":
        document["segments"] = [asdict(part) for part in each.segments]
    return document


_INT64 = struct.Struct(">q")
