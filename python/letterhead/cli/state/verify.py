"""`letterhead state verify`: read every row of every column family strictly."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.text import Text

from letterhead._formatting import printable
from letterhead.cli.document import value_json
from letterhead.cli.exits import BAD_DATA, OK
from letterhead.cli.progress import progress
from letterhead.cli.render import count_text, json_text
from letterhead.cli.screen import console
from letterhead.cli.sources.errors import reading_errors
from letterhead.cli.state.formatting import store_json
from letterhead.cli.state.options import Selection
from letterhead.cli.state.rows import open_selected
from letterhead.errors import DamagedRowError, DecodeError, ProcessorStateError
from letterhead.state.reading.directory import StoreFiles, StoreSegment, find_stores
from letterhead.state.reading.rows import EncodedRow, StoreReader
from letterhead.state.reading.store_types import DetectedType
from letterhead.state.storage.database import POSITION, StoredFamilies
from letterhead.state.storage.keys import INDEX
from letterhead.state.storage.layouts import OFFSETS
from letterhead.state.storage.position import Position
from letterhead.state.storage.rows import row_error


class RowError(NamedTuple):
    """Error and its location; if it concerns a whole store, `segment` and `family` are empty, `key` and `code` None."""

    segment: str
    family: str
    key: bytes | None
    byte_offset: int | None
    code: str | None
    reason: str


class StoreResult:
    """Result for one store."""

    def __init__(self, files: StoreFiles) -> None:
        self.files = files
        self.store_type: DetectedType | None = None
        self.rows: dict[str, int] = {}
        self.errors = 0
        # Kafka Streams leaves such entries behind; they are not damage.
        self.entries_without_row = 0
        self.has_index = False


def run_verify(selection: Selection, *, json: bool) -> int:
    """Read all rows, and report errors as they occur, at most one for each row."""
    with reading_errors():
        results = [StoreResult(files) for files in find_stores(selection.directory, selection.name)]
        if json:
            _print_documents(results, selection)
        else:
            _show(results, selection)
    return BAD_DATA if any(result.errors for result in results) else OK


def _show(results: list[StoreResult], selection: Selection) -> None:
    screen = console()
    for result in results:
        for error in _verify(result, selection):
            screen.print(_line(result.files, error), soft_wrap=True)
        screen.print(_summary(result), soft_wrap=True)
    if any(result.errors for result in results):
        hint = "a store with a changelog restores itself from it when its directory is missing"
        screen.print(Text(hint, style="dim"), soft_wrap=True)


def _print_documents(results: list[StoreResult], selection: Selection) -> None:
    """Print a list with one object for each store, whose errors come first."""
    separator = "["
    for result in results:
        errors = _verify(result, selection)
        first = next(errors, None)  # a store that cannot be opened raises before anything is printed
        print(separator, '  {"errors": [', sep="\n", end="")
        for number, error in enumerate(errors if first is None else itertools.chain([first], errors)):
            document = {**error._asdict(), "key": value_json(error.key)}
            print("," if number else "", f"    {json_text(document)}", sep="\n", end="")
        print(f"], {json_text(_document(result)).removeprefix('{')}", end="")
        separator = ","
    print("\n]")


def _verify(result: StoreResult, selection: Selection) -> Iterator[RowError]:
    """Yield the errors of a store, and count them."""
    for error in _errors(result, selection):
        result.errors += 1
        yield error


def _errors(result: StoreResult, selection: Selection) -> Iterator[RowError]:
    files = result.files
    try:
        store = open_selected(files, selection)
        result.store_type = store.type
        result.has_index = any(store.has_index(families) for _, families in store.databases())
        for index, (segment, families) in enumerate(store.databases()):
            after = files.segments[index + 1].start if index + 1 < len(files.segments) else None
            for family in sorted(families.names):
                result.rows.setdefault(family, 0)
                try:
                    yield from _family(result, store, segment, families, family, after)
                except ProcessorStateError as error:
                    yield RowError(segment.directory.name, family, None, None, None, str(error))
    except ProcessorStateError as error:
        yield RowError("", "", None, None, None, str(error))


def _family(
    result: StoreResult,
    store: StoreReader,
    segment: StoreSegment,
    families: StoredFamilies,
    family: str,
    after: int | None,
) -> Iterator[RowError]:
    where = (segment.directory.name, family)
    legacy_by_family = dict(store.row_families(families))
    total = families.estimate(family)
    with progress(total, f"reading {family} of {segment.directory.name}", prints=True) as advance:
        for number, (key, value) in enumerate(families.rows(family)):
            result.rows[family] += 1
            if number % 1000 == 999:
                advance(1000)
            try:
                if family == OFFSETS:
                    _check_offset(key, value)
                elif family not in legacy_by_family:
                    # Every database has the family `default`, even if the store does not use it.
                    raise row_error("out_of_range", f"a store of this type has no rows in family {family}")
                else:
                    row = EncodedRow(key, value, family, legacy_by_family[family])
                    _check_time(store, segment, after, row)
                    store.parse_row(segment, row)
                    _check_index(result, store, families, row)
            except DamagedRowError as error:
                yield RowError(*where, key, error.byte_offset, error.code, error.reason)
            except DecodeError as error:
                yield RowError(*where, key, error.byte_offset, error.code, error.message)


def _check_offset(key: bytes, value: bytes) -> None:
    if key == POSITION:
        try:
            Position.deserialize(value)
        except ValueError as error:
            raise row_error("out_of_range", str(error)) from error
    elif len(value) != _INT64.size:
        raise row_error(
            "wrong_size", f"{count_text(len(value), 'byte')} where an offset or a status takes {_INT64.size}"
        )


def _check_time(store: StoreReader, segment: StoreSegment, after: int | None, row: EncodedRow) -> None:
    """Check that a row is in the segment for its time."""
    if segment.start is None:
        return
    times = store.key_parts(row.key).times
    time = times.get("session_end", times.get("window_start"))
    if time is not None and (time < segment.start or (after is not None and time >= after)):
        raise row_error("out_of_range", f"the time {time} of its key is not in segment {segment.directory.name}")


def _check_index(result: StoreResult, store: StoreReader, families: StoredFamilies, row: EncodedRow) -> None:
    """Check that a row has an index entry, if the time-ordered store has an index."""
    if not result.has_index:
        return
    if store.is_index(row.key):
        result.entries_without_row += store.get(families, store.row_key(row.key)) is None
    elif store.get(families, INDEX + store.plain_key(row.key)) is None:
        raise row_error("out_of_range", "the index has no entry for it, so that no search by key finds it")


def _line(files: StoreFiles, error: RowError) -> Text:
    if not error.segment:
        return Text(printable(f"! {error.reason}"), style="bold red")
    words = [
        f"store {files.label}",
        f"segment {error.segment}" if error.segment != files.name else "",
        f"family {error.family}" if error.family else "",
        f"key {error.key.hex()}" if error.key is not None else "",
    ]
    details = [error.code or "", f"byte {error.byte_offset}" if error.byte_offset is not None else ""]
    position, detail = (", ".join(filter(None, parts)) for parts in (words, details))
    return Text(printable(f"! {position}: {error.reason}" + (f" ({detail})" if detail else "")), style="bold red")


def _summary(result: StoreResult) -> Text:
    rows = ", ".join(f"{count:,} in {family}" for family, count in result.rows.items() if count) or "none"
    errors = count_text(result.errors, "error") if result.errors else "no errors"
    line = f"{result.files.label}: {result.store_type or '?'}: {errors}; rows: {rows}"
    if result.entries_without_row:
        line += f"; {count_text(result.entries_without_row, 'index entry', 'index entries')} without a row"
    return Text(printable(line), style="bold")


def _document(result: StoreResult) -> dict[str, Any]:
    return store_json(result.files) | {
        "store_type": None if result.store_type is None else result.store_type.name,
        "values": None if result.store_type is None else result.store_type.value_format,
        "rows": result.rows,
        "index_entries_without_row": result.entries_without_row,
    }


_INT64 = struct.Struct(">q")
