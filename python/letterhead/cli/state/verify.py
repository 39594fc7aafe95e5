"""`letterhead state verify`: every row of every family, read as strictly as there is."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.document import value_json
from letterhead.cli.exits import FAULTS, OK
from letterhead.cli.progress import progress
from letterhead.cli.render import console, counted, json_text
from letterhead.cli.state.rows import failures, opened
from letterhead.errors import DamagedRowError, DecodeError, ProcessorStateError
from letterhead.limits import Limits
from letterhead.read.state_directory import Found, Segment, find_stores
from letterhead.read.state_rows import Store, Stored
from letterhead.storage.database import POSITION, StoredFamilies
from letterhead.storage.layouts import OFFSETS
from letterhead.storage.position import Position


class Fault(NamedTuple):
    """What is wrong, and where.

    Attributes
    ----------
    segment, family : str
        Where the row is; empty where it is not one row.
    key : bytes or None
        The key of the row, as it is stored.
    byte_offset : int or None
        Byte in the value, counted from 0.
    code : str or None
        One of `letterhead.errors.CODES`; None for a file that RocksDB cannot read.
    reason : str
        What is wrong.
    """

    segment: str
    family: str
    key: bytes | None
    byte_offset: int | None
    code: str | None
    reason: str


class Verified:
    """What was found in a store."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.store_type = "?"
        self.rows: dict[str, int] = {}
        self.faults: list[Fault] = []
        # Kafka Streams leaves such entries behind: they are no damage.
        self.entries_without_row = 0


def run_verify(
    given: Path, *, name: str | None, said: str | None, values: str | None, limits: Limits, json: bool
) -> int:
    """Read all rows, say what is wrong with which, and count."""
    screen = console()
    results = []
    with failures():
        for found in find_stores(given, name):
            result = Verified(found)
            results.append(result)
            for fault in _verify(result, said, values, limits):
                result.faults.append(fault)
                if not json:
                    screen.print(_line(found, fault), soft_wrap=True)
            if not json:
                _show(result)
    faults = any(result.faults for result in results)
    if json:
        print(json_text([_document(result) for result in results], indent=2))
    elif faults:
        hint = "a store with a changelog restores itself from it when its directory is not there"
        screen.print(Text(hint, style="dim"), soft_wrap=True)
    return FAULTS if faults else OK


def _verify(result: Verified, said: str | None, values: str | None, limits: Limits) -> Iterator[Fault]:
    found = result.found
    try:
        store = opened(found, said, values, limits)
        result.store_type = str(store.type)
        for index, (segment, families) in enumerate(store.databases()):
            after = found.segments[index + 1].start if index + 1 < len(found.segments) else None
            for family in sorted(families.names):
                result.rows.setdefault(family, 0)
                try:
                    yield from _family(result, store, segment, families, family, after)
                except ProcessorStateError as error:
                    yield Fault(segment.directory.name, family, None, None, None, str(error))
    except ProcessorStateError as error:
        yield Fault("", "", None, None, None, str(error))


def _family(
    result: Verified, store: Store, segment: Segment, families: StoredFamilies, family: str, after: int | None
) -> Iterator[Fault]:
    where = (segment.directory.name, family)
    olders = dict(store.sources(families))
    total = families.estimate(family)
    with progress(total, f"reading {family} of {segment.directory.name}") as advance:
        for number, (key, value) in enumerate(families.rows(family)):
            result.rows[family] += 1
            if number % 1000 == 999:
                advance(1000)
            try:
                if family == OFFSETS:
                    _check_offset(key, value)
                elif family not in olders:
                    # Only `default`, which every database has, can be there beside those of the store.
                    raise _wrong(f"a store of this type has no rows in family {family}")
                else:
                    row = Stored(key, value, family, olders[family])
                    _check_time(store, segment, after, row)
                    store.take_apart(segment, row)
                    _check_index(result, store, families, row)
            except DamagedRowError as error:
                yield Fault(*where, key, error.byte_offset, error.code, error.reason)
            except DecodeError as error:
                yield Fault(*where, key, error.byte_offset, error.code, error.message)


def _check_offset(key: bytes, value: bytes) -> None:
    if key == POSITION:
        try:
            Position.deserialize(value)
        except ValueError as error:
            raise _wrong(str(error)) from error
    elif len(value) != _INT64.size:
        raise _wrong(f"{counted(len(value), 'byte')} where an offset or a status takes {_INT64.size}", "wrong_size")


def _check_time(store: Store, segment: Segment, after: int | None, row: Stored) -> None:
    """Make sure that a row is where it is looked for."""
    if segment.start is None:
        return
    _, times = store.key_parts(row.key)
    time = times.get("end", times.get("start"))
    if time is not None and (time < segment.start or (after is not None and time >= after)):
        raise _wrong(f"the time {time} of its key is not in segment {segment.directory.name}")


def _check_index(result: Verified, store: Store, families: StoredFamilies, row: Stored) -> None:
    """Make sure that a row of a time-ordered store can be found by its key."""
    if not store.type.time_ordered:
        return
    if store.is_index(row.key):
        result.entries_without_row += store.get(families, store.row_key(row.key)) is None
    elif store.get(families, b"\1" + store.plain_key(row.key)) is None:
        raise _wrong("the index has no entry for it: no search by key finds it")


def _wrong(message: str, code: str = "out_of_range") -> DecodeError:
    return DecodeError(message, format=None, code=code)


def _line(found: Found, fault: Fault) -> Text:
    if not fault.segment:
        return Text(printable(f"! {fault.reason}"), style="bold red")
    words = [f"store {found.label}"]
    if fault.segment != found.name:
        words.append(f"segment {fault.segment}")
    if fault.family:
        words.append(f"family {fault.family}")
    if fault.key is not None:
        words.append(f"key {fault.key.hex()}")
    place = ", ".join(
        word for word in (fault.code, f"byte {fault.byte_offset}" if fault.byte_offset is not None else None) if word
    )
    reason = f"{fault.reason} ({place})" if place else fault.reason
    return Text(printable(f"! {', '.join(words)}: {reason}"), style="bold red")


def _show(result: Verified) -> None:
    rows = ", ".join(f"{count:,} in {family}" for family, count in result.rows.items() if count) or "none"
    damaged = counted(len(result.faults), "fault") if result.faults else "no faults"
    text = Text(
        f"{printable(result.found.label)}: {result.store_type}: {damaged}; rows: {printable(rows)}", style="bold"
    )
    if result.entries_without_row:
        text.append(f"; {counted(result.entries_without_row, 'entry', 'entries')} of the index without a row")
    console().print(text, soft_wrap=True)


def _document(result: Verified) -> dict[str, Any]:
    return {
        "store": result.found.name,
        "task": result.found.task or None,
        "directory": str(result.found.directory),
        "store_type": result.store_type,
        "rows": result.rows,
        "index_entries_without_row": result.entries_without_row,
        "faults": [{**fault._asdict(), "key": value_json(fault.key)} for fault in result.faults],
    }


_INT64 = struct.Struct(">q")
