"""`letterhead state ls`: list stores, their contents, and whether they were closed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from letterhead._formatting import printable
from letterhead._invariants import require
from letterhead.cli.exits import BAD_DATA, OK
from letterhead.cli.progress import progress
from letterhead.cli.render import count_text, print_json
from letterhead.cli.screen import console, table
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.formatting import store_json, time_field, times_json
from letterhead.cli.state.lag import end_offsets
from letterhead.cli.state.options import ChangelogSource, Selection
from letterhead.cli.state.rows import open_selected
from letterhead.errors import DecodeError, ProcessorStateError, StoreChoiceError
from letterhead.state.reading.directory import StoreFiles, StoreSegment, find_stores
from letterhead.state.reading.rows import StoreReader, latest_offsets
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.position import Position
from letterhead.state.storage.versioned_rows import segment_number


@dataclass
class SegmentContents:
    """Contents of a segment, or of a store without segments. With --quick, only `rows` are estimated.

    `older` counts rows that are not moved to the newer family yet, `index` counts index entries in addition to the
    rows; `versions` counts the versions in the rows of a versioned store; `first` and `last` are the earliest and the
    latest time.
    """

    name: str
    rows: int = 0
    older: int = 0
    index: int = 0
    versions: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    header_bytes: int = 0
    first: int | None = None
    last: int | None = None
    damaged: int = 0


NOT_ESTIMATED = ("older", "index", "versions", "key_bytes", "value_bytes", "header_bytes")
"""Fields of :class:`SegmentContents` that are null in JSON with --quick."""


@dataclass
class StoreListing:
    """Store with its type and contents, or in `error` the reason why it cannot be read."""

    files: StoreFiles
    store: StoreReader | None = None
    error: str = ""
    families: list[str] = field(default_factory=list)
    older_families: list[str] = field(default_factory=list)
    segments: list[SegmentContents] = field(default_factory=list)
    open_or_not_closed: bool = False
    offsets: dict[str, int] = field(default_factory=dict)
    lag: dict[str, int] = field(default_factory=dict)
    position: Position = field(default_factory=Position)

    @property
    def type(self) -> str:
        """Store type and format of values; a ? if the store cannot be read."""
        return "?" if self.store is None else str(self.store.type)

    def total(self, field: str) -> int:
        """Return the sum of a field over all segments."""
        return sum(getattr(segment, field) for segment in self.segments)


def run_ls(
    selection: Selection,
    *,
    quick: bool,
    everything: bool,
    json: bool,
    epoch_ms: bool,
    changelogs: ChangelogSource | None,
) -> int:
    """List the stores of a directory."""
    with reading_errors():
        listings = [_examine(files, selection, quick) for files in find_stores(selection.directory, selection.name)]
        partitions = {partition for listing in listings for partition in listing.offsets}
        ends = end_offsets(partitions, changelogs)
    for listing in listings:
        # The stored offset is the offset of the last record in the store; a store without one lacks all records. A
        # store that is ahead of an older copy of its changelog lacks none.
        listing.lag = {
            partition: max(ends[partition] - 1 - max(offset, -1), 0)
            for partition, offset in listing.offsets.items()
            if partition in ends
        }
    if json:
        print_json([_document(listing, quick, epoch_ms) for listing in listings])
    else:
        _show_all(listings, quick, everything, epoch_ms)
    return BAD_DATA if any(listing.error or listing.total("damaged") for listing in listings) else OK


def _show_all(listings: list[StoreListing], quick: bool, everything: bool, epoch_ms: bool) -> None:
    screen = console()
    if len(listings) > 1:
        screen.print(_table(listings, quick))
        for listing in listings:
            if listing.error:
                screen.print(Text(f"! {printable(listing.error)}", style="bold red"), soft_wrap=True)
    if len(listings) == 1 or everything:
        for listing in listings:
            if len(listings) > 1:
                screen.print()
            _show(screen, listing, quick, epoch_ms)
    else:
        screen.print(Text("--all shows families, segments and offsets of each store", style="dim"))


def _examine(files: StoreFiles, selection: Selection, quick: bool) -> StoreListing:
    listing = StoreListing(files)
    try:
        listing.store = store = open_selected(files, selection)
        listing.families = sorted(set().union(*store.families_of_databases))
        # A process that opened the store a moment ago may not have marked it as open yet.
        listing.open_or_not_closed = store.process is not None
        for segment, families in store.databases():
            listing.open_or_not_closed |= families.dirty
            listing.offsets = latest_offsets([listing.offsets, families.offsets()])
            listing.position.merge(families.position())
            listing.segments += (
                _estimate_rows(store, segment, families) if quick else _count_rows(listing, store, segment, families)
            )
    except ProcessorStateError as error:
        listing.error = str(error)
    except StoreChoiceError:
        raise
    except ValueError as error:
        listing.error = f"store {files.label}: family offsets: {error}"
    return listing


def _estimate_rows(store: StoreReader, segment: StoreSegment, families: StoredFamilies) -> list[SegmentContents]:
    rows = sum(families.estimate(family) for family, _ in store.row_families(families))
    return [SegmentContents(segment.directory.name, rows)]


def _count_rows(
    listing: StoreListing, store: StoreReader, segment: StoreSegment, families: StoredFamilies
) -> list[SegmentContents]:
    """Count the rows of a database; in a versioned store, one database has all segments."""
    contents_by_prefix: dict[bytes, SegmentContents] = {}
    versioned = store.type.key_format == "versioned"
    total = sum(families.estimate(family) for family, _ in store.row_families(families))
    with progress(total, f"reading {segment.directory.name}", prints=False) as advance:
        for number, row in enumerate(store.encoded_rows(families)):
            prefix = row.key[:8] if versioned else b""
            if prefix not in contents_by_prefix:
                name = _segment_name(prefix) if versioned else segment.directory.name
                contents_by_prefix[prefix] = SegmentContents(name)
            contents = contents_by_prefix[prefix]
            if store.is_index(row.key):
                contents.index += 1
                continue
            contents.rows += 1
            if row.legacy is not None:
                contents.older += 1
                if row.family not in listing.older_families:
                    listing.older_families.append(row.family)
            contents.key_bytes += len(row.key)
            contents.value_bytes += len(row.value)
            try:
                if versioned:
                    contents.versions += len(store.versions(row.key, row.newer()))
                # An older row has no headers in the file.
                contents.header_bytes += 0 if row.legacy is not None else store.header_bytes(row.key, row.value)
                for time in store.row_times(row.key, row.value):
                    contents.first = time if contents.first is None else min(contents.first, time)
                    contents.last = time if contents.last is None else max(contents.last, time)
            except DecodeError:
                contents.damaged += 1
            if number % 1000 == 999:
                advance(1000)
    return list(contents_by_prefix.values()) or [SegmentContents(segment.directory.name)]


def _segment_name(prefix: bytes) -> str:
    number = segment_number(prefix)
    return "latest versions" if number < 0 else f"segment {number}"


def _table(listings: list[StoreListing], quick: bool) -> Table:
    tasks = any(listing.files.task for listing in listings)
    sizes = () if quick else ("keys", "values", "headers")
    view = table(
        *(("task",) if tasks else ()), "store", "type", "rows", *sizes, "note", right=("rows", *sizes), fold=True
    )
    for listing in listings:
        numbers = (
            [""] * (1 + len(sizes)) if listing.error else [_rows(listing, quick), *([] if quick else _sizes(listing))]
        )
        task = [printable(listing.files.task)] if tasks else []
        view.add_row(*task, printable(listing.files.name), listing.type, *numbers, _notes(listing))
    return view


def _rows(listing: StoreListing, quick: bool) -> str:
    return f"{'~' if quick else ''}{listing.total('rows'):,}"


def _sizes(listing: StoreListing) -> list[str]:
    """Return the sizes of keys, values and headers, and the share of headers; empty for a store without headers."""
    keys, values, headers = (listing.total(f"{part}_bytes") for part in ("key", "value", "header"))
    with_headers = listing.store is not None and listing.store.type.value_format == "headers"
    return [f"{keys:,}", f"{values:,}", f"{headers:,} ({_share(headers, values)})" if with_headers else ""]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def _notes(listing: StoreListing) -> Text:
    notes = [("cannot be read", "red")] if listing.error else []
    if damaged := listing.total("damaged"):
        notes.append((f"{count_text(damaged, 'damaged row')}: see `letterhead state verify`", "red"))
    if older := listing.total("older"):
        notes.append((f"{count_text(older, 'older row')} to upgrade", "yellow"))
    if behind := sum(listing.lag.values()):
        notes.append((f"{count_text(behind, 'record')} behind its changelog", "yellow"))
    if listing.open_or_not_closed:
        notes.append(("open, or not closed", "yellow"))
    return Text("\n").join(Text(printable(note), style=style) for note, style in notes)


def _show(screen: Console, listing: StoreListing, quick: bool, epoch_ms: bool) -> None:
    screen.print(Text(f"{printable(listing.files.label)}: {listing.type}", style="bold"))
    view = Table.grid(padding=(0, 2))
    for name, text in _facts(listing, quick):
        view.add_row(Text(f"  {name}", style="dim"), text)
    screen.print(view)
    if not listing.error and (len(listing.segments) > 1 or listing.files.segmented):
        screen.print(_segments(listing, quick, epoch_ms))


def _facts(listing: StoreListing, quick: bool) -> list[tuple[str, Text]]:
    facts = [("directory", Text(printable(str(listing.files.path))))]
    if listing.error:
        return [*facts, ("error", Text(printable(listing.error), style="red"))]
    store = require(listing.store, "the store")
    rows = f"about {listing.total('rows'):,} (an estimate)" if quick else f"{listing.total('rows'):,}"
    if store.type.time_ordered and not quick:
        rows += f", and {listing.total('index'):,} entries of the index"
    if store.type.key_format == "versioned" and not quick:
        rows += f", with {count_text(listing.total('versions'), 'version')}"
    facts.append(("rows", Text(rows)))
    if not quick:
        keys, values, headers = (listing.total(f"{part}_bytes") for part in ("key", "value", "header"))
        facts += [("keys", Text(f"{keys:,} bytes")), ("values", Text(f"{values:,} bytes"))]
        if store.type.value_format == "headers":
            facts.append(("headers", Text(f"{headers:,} bytes ({_share(headers, values)}) of the values")))
    facts.append(("families", Text(printable(", ".join(listing.families)))))
    if older := listing.total("older"):
        where = ", ".join(listing.older_families)
        facts.append(("upgrade", Text(f"not finished: {count_text(older, 'row')} still in {where}", style="yellow")))
    if damaged := listing.total("damaged"):
        facts.append(("damaged", Text(f"{count_text(damaged, 'row')}: see `letterhead state verify`", style="red")))
    closed = Text("no: it is open, or its process died", style="yellow") if listing.open_or_not_closed else Text("yes")
    facts.append(("closed", closed))
    offsets = [
        f"{topic}: {'unknown' if offset < 0 else format(offset, ',')}"
        + (f" ({count_text(listing.lag[topic], 'record')} behind)" if topic in listing.lag else "")
        for topic, offset in sorted(listing.offsets.items())
    ]
    position = [
        f"{topic}-{partition}: {offset:,}"
        for topic, partitions in sorted(listing.position.offsets.items())
        for partition, offset in sorted(partitions.items())
    ]
    facts.append(("changelog", Text(printable(", ".join(offsets)) or "no offset")))
    facts.append(("inputs", Text(printable(", ".join(position)) or "no position")))
    return facts


def _segments(listing: StoreListing, quick: bool, epoch_ms: bool) -> Table:
    sizes = () if quick else ("first time", "last time")
    view = table("  segment", "rows", *sizes, right=("rows",))
    for part in listing.segments:
        times = () if quick else (time_field(time, epoch_ms=epoch_ms) for time in (part.first, part.last))
        view.add_row(f"  {printable(part.name)}", f"{'~' if quick else ''}{part.rows:,}", *times)
    return view


def _document(listing: StoreListing, quick: bool, epoch_ms: bool) -> dict[str, Any]:
    """Return a store as JSON values."""
    document = store_json(listing.files)
    if listing.error or listing.store is None:
        return document | {"error": listing.error}
    store_type = listing.store.type

    def counted_total(field: str) -> int | None:
        return None if quick else listing.total(field)

    document |= {
        "store_type": store_type.name,
        "values": store_type.value_format,
        "assumed": store_type.assumed or None,
        "families": listing.families,
        "rows": listing.total("rows"),
        "rows_are_estimated": quick,
        "older_rows": counted_total("older"),
        "older_families": listing.older_families,
    }
    if store_type.time_ordered:
        document["index_entries"] = counted_total("index")
    if store_type.key_format == "versioned":
        document["versions"] = counted_total("versions")
    document |= {name: counted_total(name) for name in ("key_bytes", "value_bytes", "header_bytes")}
    document |= {"damaged_rows": counted_total("damaged"), "closed": not listing.open_or_not_closed}
    document |= {"offsets": listing.offsets, "position": listing.position.offsets}
    if listing.lag:
        document["lag"] = listing.lag
    if listing.files.segmented or store_type.key_format == "versioned":
        document["segments"] = [
            asdict(segment)
            | times_json({"first": segment.first, "last": segment.last}, epoch_ms=epoch_ms)
            | (dict.fromkeys(NOT_ESTIMATED) if quick else {})
            for segment in listing.segments
        ]
    return document
