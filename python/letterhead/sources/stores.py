"""Stores of a state directory as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from letterhead._row_request import STORE_OPTIONS, RowRequest, StoreOptions
from letterhead._warnings import warn
from letterhead.errors import ProcessorStateError
from letterhead.sources.base import Findings, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.fields import NativeKey
    from letterhead.reader import Reader
    from letterhead.state.reading.columns import StoreColumns
    from letterhead.state.reading.rows import StoreReader

# Columns omitted on a terminal: Kafka Streams numbers the rows of a window only if it keeps duplicates.
NOT_ON_SCREEN = ("sequence",)


class StateStores(Source):
    """Stores of all tasks in a directory; with ``one_name``, they must have the same name, or the request selects one."""

    options = STORE_OPTIONS

    def __init__(self, directory: Path, *, one_name: bool = True) -> None:
        super().__init__(str(directory))
        self._one_name = one_name
        self._directory = directory
        self._stores: list[StoreReader] = []
        self._rows: StoreColumns | None = None
        self._unread: list[ProcessorStateError] = []

    @property
    def fields(self) -> Iterable[str]:
        """Field names for conditions."""
        return () if self._rows is None else [name for name in self._rows.fields if name != "headers"]

    def columns(self, request: RowRequest) -> Iterable[str]:
        """Return the names of all columns."""
        stores = self._opened(request, request.stores or StoreOptions())
        return _all_columns(stores, request).fields

    def default_columns(self, request: RowRequest) -> tuple[str, ...]:
        """Return all columns, with task and store if there are several."""
        stores = self._opened(request, request.stores or StoreOptions())
        columns = _all_columns(stores, request)
        names = columns.fields if request.among_others else columns.schema.names
        return request.without_headers(name for name in names if not (request.on_screen and name in NOT_ON_SCREEN))

    def unmatched_keys(self, request: RowRequest, *, has_selected: bool = False) -> list[NativeKey]:
        """Return the header keys in the condition that no row has."""
        return [] if self._rows is None else self._rows.unseen_headers

    def read_rows(self, request: RowRequest) -> Reader:
        """Return a stream of the rows."""
        from letterhead.offsets.reading import last_rows
        from letterhead.reader import Reader
        from letterhead.state.reading.columns import StoreColumns

        options = request.stores or StoreOptions()
        stores = self._opened(request, options)
        chosen = replace(request, columns=self.chosen_columns(request))
        rows = StoreColumns(stores, chosen, window_size=options.window_size)
        self._rows = rows

        def batches() -> Iterator[pa.RecordBatch]:
            for store in stores[::-1] if options.backward else stores:
                segments = store.files.segments
                for segment in segments[::-1] if options.backward else segments:
                    try:
                        yield from rows.batches(store, segment, options.keys, backward=options.backward)
                    except ProcessorStateError as error:
                        if request.errors == "raise" or not self.reports_findings:
                            raise
                        self._unread.append(error)

        last = request.last
        return Reader(rows.schema, batches if last is None else lambda: iter(last_rows(batches(), last)))

    def findings(self) -> Findings:
        """Return findings about databases that could not be read completely."""
        return Findings([f"{error}: the rows after it are not read" for error in self._unread], bool(self._unread))

    def _opened(self, request: RowRequest, options: StoreOptions) -> list[StoreReader]:
        """Open the stores; warn if a type is assumed, or if another process has a store open."""
        from letterhead.state.reading.directory import find_one_store
        from letterhead.state.reading.stores import open_stores, remarks

        if self._stores:
            return self._stores
        if self._one_name:
            find_one_store(self._directory, options.name)
        self._stores = open_stores(
            self._directory, options.name, options.store_type, options.value_format, request.limits
        )
        for remark in remarks(self._stores):
            warn(remark)
        return self._stores


def _all_columns(stores: list[StoreReader], request: RowRequest) -> StoreColumns:
    from letterhead.state.reading.columns import StoreColumns

    window_size = (request.stores or StoreOptions()).window_size
    return StoreColumns(stores, RowRequest(limits=request.limits), window_size=window_size)
