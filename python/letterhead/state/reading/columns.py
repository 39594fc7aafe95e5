"""Convert rows of stores to Arrow columns in bulk; :mod:`letterhead.state.reading.rows` parses single rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow as lha
from letterhead._error_policies import has_error_column
from letterhead._row_request import RowRequest
from letterhead._table_batches import split_batches
from letterhead.errors import DamagedRowError, DecodeError, ErrorDetail, StoreChoiceError, copy_error
from letterhead.offsets.output_columns import TIMES, Dialect, as_times, check_columns, time_error, times_outside
from letterhead.operations import DecodeOptions, Select
from letterhead.state.reading.directory import StoreSegment
from letterhead.state.reading.key_bounds import KeyBounds
from letterhead.state.reading.rows import SUFFIXES, StoredVersion, StoreReader
from letterhead.state.storage.database import StoredFamilies
from letterhead.state.storage.keys import MAX_TIME
from letterhead.where.row_filter import RowFilter, field_type

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import NativeKey

__all__ = ["StoreColumns"]

BATCH_ROWS = 10_000
BATCH_BYTES = 16 << 20
"""Size limit of a record batch in bytes; the number of rows is also limited."""


class StoreColumns:
    """Converter from rows of stores of one type to record batches with :attr:`schema`.

    Options and errors are as in :func:`letterhead.read.state`; ``dialect`` sets the types of timestamps and of header
    columns.
    """

    def __init__(
        self,
        stores: Sequence[StoreReader],
        request: RowRequest,
        *,
        window_size: int | None = None,
        dialect: Dialect = "arrow",
    ) -> None:
        columns, headers, where = request.columns, request.headers, request.where
        errors, error_column, limits = request.errors, request.error_column, request.limits
        # Validate the options here, because plain values are never decoded.
        checked = lha.decode(_EMPTY, "streams", errors=errors, error_column=error_column, limits=limits)
        self._type = stores[0].type
        self._format = stores[0].message_format
        self._headers = headers
        self._window_size = window_size
        self._errors: OnError = errors
        self._error_column = error_column
        self._dialect: Dialect = dialect
        self._limits = limits
        self._check(stores[0].files.name)
        fields = {"task": pa.string(), "store": pa.string(), **self._fields()}
        if columns is None:
            left_out = {name for name in ("task", "store") if len({_labels(store)[name] for store in stores}) == 1}
            columns = request.without_headers(name for name in fields if name not in left_out)
        check_columns(columns, fields, headers, errors, error_column)
        self.fields = tuple(fields)
        """Columns of stores of this type."""
        self._requested = frozenset(columns)
        typed = [] if headers is None else list(self._select(_EMPTY, "raise").type)
        errors_field = [(error_column, checked.type.field(error_column).type)] if has_error_column(errors) else []
        self.schema = pa.schema([*((name, fields[name]) for name in columns), *typed, *errors_field])
        if not self.schema.names:
            raise ValueError("no columns were asked for")
        # Times are stored in milliseconds.
        types = {name: "timestamp_ms" if pa.types.is_timestamp(of) else field_type(of) for name, of in fields.items()}
        self._where = (
            None if where is None else RowFilter(where, types, headers, self._format, errors=errors, limits=limits)
        )
        if self._where and self._where.has_headers and self._type.value_format != "headers":
            raise StoreChoiceError(f"store {stores[0].files.name} is {self._type}: it has no headers for where=")

    @property
    def unseen_headers(self) -> list[NativeKey]:
        """Header keys in the condition that occur in no row."""
        return [] if self._where is None else self._where.unseen_headers

    def batches(
        self, store: StoreReader, segment: StoreSegment, keys: KeyBounds | None = None, *, backward: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Read one database of a store, or the rows in a range of keys, in the order of stored keys or in reverse.

        The database stays open until the last batch is read.
        """
        with StoredFamilies(segment.directory) as families:
            if keys is None and not backward:
                rows = store.rows(families)
            else:
                rows = store.rows_between(families, keys or KeyBounds(), backward=backward)
            for stored_keys, values in _group_rows(rows):
                if backward:
                    stored_keys, values = stored_keys[::-1], values[::-1]
                batch = self._batch(_DatabaseRows(store, segment, families, self._errors, stored_keys, values))
                if backward:
                    batch = batch.take(pa.array(range(len(batch) - 1, -1, -1), pa.int64()))
                # A batch is empty if all versions of its rows are deleted.
                if len(batch):
                    yield from split_batches(batch, self._limits)

    def _check(self, name: str) -> None:
        """Check that the options for window size and headers apply to the type of store."""
        type, size = self._type, self._window_size
        missing = None
        if size is not None and type.key_format != "window":
            missing = "it has no windows"
        elif self._headers is not None and type.value_format != "headers":
            missing = "it has no headers to make columns of"
        if missing is not None:
            raise StoreChoiceError(f"store {name} is {type}: {missing}")

    def _fields(self) -> dict[str, pa.DataType]:
        """Return the columns of stores of this type, and their types."""
        type = self._type
        time = TIMES[self._dialect]
        fields = {name: time if name in _TIMES else _INTEGERS.get(name, pa.binary()) for name in _KEYS[type.name]}
        if type.key_format == "versioned":
            fields |= {"valid_from": time, "valid_to": time}
        if self._window_size is not None:
            fields["window_end"] = time
        if type.has_timestamps:
            fields["timestamp"] = time
        fields["value"] = pa.binary()
        if type.value_format == "headers":
            fields["headers"] = lha.decode(_EMPTY, self._format).type.field("headers").type
        return fields

    def _batch(self, rows: _DatabaseRows) -> pa.RecordBatch:
        columns = rows.split_versions() if self._type.key_format == "versioned" else {}
        columns |= self._keys(rows)
        if self._where is not None:
            kept = self._selected(self._where, rows, columns)
            columns = {name: column.filter(kept) for name, column in columns.items()}
            rows.keep(kept.to_pylist())
        columns |= self._values(rows)
        rows.add_condition_errors()
        for name, label in _labels(rows.store).items():
            if name in self._requested:
                columns[name] = pa.repeat(pa.scalar(label, pa.string()), len(rows.keys))
        for name in sorted(_TIMES & self._requested & columns.keys()):
            outside = times_outside(columns[name], self._dialect)
            if outside is not None:
                rows.add_error(outside, time_error(self._format, column=name))
            columns[name] = as_times(columns[name], self._dialect)
        if has_error_column(self._errors):
            columns[self._error_column] = rows.errors(self.schema.field(self._error_column).type)
        return pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)

    def _selected(self, where: RowFilter, rows: _DatabaseRows, columns: dict[str, pa.Array]) -> pa.BooleanArray:
        """Return a mask of the rows selected by a condition; with ``errors="column"``, also include rows with an error."""
        count = len(rows.keys)
        named = {name: columns[name] for name in where.fields & columns.keys()}
        labels = _labels(rows.store)
        named |= {name: pa.repeat(pa.scalar(labels[name], pa.string()), count) for name in where.fields & labels.keys()}
        unread: dict[int, DecodeError] = {}
        if where.fields & _STORED_FIELDS.keys() - {"headers"}:
            parts = [self._parts(rows, row, unread) for row in range(count)]
            named["timestamp"] = pa.array([timestamp for timestamp, _, _ in parts], pa.int64())
            named["value"] = pa.array([value for _, _, value in parts], pa.binary())
        # Treat unreadable values as null, so that each has one error and no headers.
        values = [None if row in unread else value for row, value in enumerate(rows.values)]
        try:
            examined = where.examine(named, pa.array(values, pa.binary()) if where.has_headers else None, count)
        except DecodeError as error:
            raise rows.damaged(error.row or 0, error) from error
        selected, errors = examined.selected, examined.errors
        if errors is not None:
            for row in pc.indices_nonzero(errors.is_valid()).to_pylist():
                rows.condition_errors[row] = errors[row].as_py()
        for row, damaged in unread.items():
            rows.condition_errors[row] = [_detail(copy_error(damaged, column="where"))]
        if has_error_column(self._errors):
            has_error = pa.array(
                [row in rows.condition_errors or rows.has_errors(row) for row in range(count)], pa.bool_()
            )
            return pc.or_(selected, has_error)
        return pc.and_not(selected, pa.array([row in unread for row in range(count)], pa.bool_()))

    def _parts(
        self, rows: _DatabaseRows, row: int, unread: dict[int, DecodeError]
    ) -> tuple[int | None, Any, bytes | None]:
        """Return timestamp, headers and payload of a value; nulls if it is unreadable, with its error added to ``unread``."""
        value = rows.values[row]
        try:
            return (None, None, None) if value is None else rows.store.value_parts(value)
        except DecodeError as error:
            if self._errors == "raise":
                raise rows.damaged(row, error) from error
            if has_error_column(self._errors):
                unread[row] = error
            return None, None, None

    def _keys(self, rows: _DatabaseRows) -> dict[str, pa.Array]:
        type, keys = self._type, pa.array(rows.keys, pa.binary())
        min_key_len = SUFFIXES[type.key_format] + type.time_ordered
        bad = pc.less(pc.binary_length(keys), min_key_len)
        if type.time_ordered:
            bad = pc.or_(bad, pc.not_equal(pc.binary_slice(keys, 0, 1), b"\0"))
        rows.find_errors(bad, lambda row: rows.store.key_parts(rows.keys[row]))
        columns = _slices(keys, bad, min_key_len, _KEYS[type.name])
        if self._window_size is not None:
            # As in Kafka Streams, limit the end of a window to the largest time.
            latest = pc.min_element_wise(columns["window_start"], MAX_TIME - self._window_size, skip_nulls=False)
            columns["window_end"] = pc.add(latest, self._window_size)
        return columns

    def _values(self, rows: _DatabaseRows) -> dict[str, pa.Array]:
        if self._headers is None and not self._requested & _STORED_FIELDS.keys():
            return {}
        values = pa.array(rows.values, pa.binary())
        if self._type.value_format == "plain":
            return {"value": values}
        if self._type.value_format == "timestamped":
            bad = pc.less(pc.binary_length(values), 8)
            rows.find_errors(bad, lambda row: rows.store.value_parts(rows.values[row] or b""))
            return _slices(values, bad, 8, _TIMESTAMPED)
        columns = {}
        try:
            if self._requested & _STORED_FIELDS.keys():
                messages = lha.decode(values, self._format, errors=self._errors, limits=self._limits)
                fields = dict(zip(messages.type.names, messages.flatten(), strict=True))
                columns = {name: fields[field] for name, field in _STORED_FIELDS.items() if name in self._requested}
                # With typed columns, which are added below, the same errors are reported there.
                if has_error_column(self._errors) and self._headers is None:
                    rows.add_errors(fields["error"])
            if self._headers is not None:
                typed = self._select(values, self._errors)
                selected = typed.flatten()
                if has_error_column(self._errors):
                    rows.add_errors(selected.pop())
                columns |= zip(typed.type.names, selected, strict=False)
        except DecodeError as error:
            raise rows.damaged(error.row or 0, error) from error
        return columns

    def _select(self, values: pa.Array, errors: OnError) -> pa.Array:
        error_column = self._error_column if has_error_column(errors) else "error"
        options = DecodeOptions(errors=errors, error_column=error_column, limits=self._limits)
        return Select(self._format, self._headers or {}, options, dialect=self._dialect)(values)


class _DatabaseRows:
    """Rows of one database for a record batch, and their errors.

    ``keys`` are stored keys, and ``values`` are in the newer form; :meth:`split_versions` replaces both by one entry for
    each version.
    """

    def __init__(
        self,
        store: StoreReader,
        segment: StoreSegment,
        families: StoredFamilies,
        errors: OnError,
        keys: list[bytes],
        values: Sequence[bytes | None],
    ) -> None:
        self.store = store
        self.keys = keys
        self.values = values
        self._name = store.files.database(segment)
        self._families = families
        self._raises = errors == "raise"
        self._errors: dict[int, list[dict[str, Any]]] = {}
        self._value_offsets: list[int] | None = None
        # Errors in values read by the condition, by row. They are only reported here if no column reads the value.
        self.condition_errors: dict[int, list[dict[str, Any]]] = {}

    def keep(self, kept: Sequence[bool]) -> None:
        """Keep the rows where the mask is true."""
        rows = [row for row, is_kept in enumerate(kept) if is_kept]
        self.keys = [self.keys[row] for row in rows]
        self.values = [self.values[row] for row in rows]
        self._value_offsets = self._value_offsets and [self._value_offsets[row] for row in rows]
        self._errors = {new: self._errors[row] for new, row in enumerate(rows) if row in self._errors}
        self.condition_errors = {
            new: self.condition_errors[row] for new, row in enumerate(rows) if row in self.condition_errors
        }

    def has_errors(self, row: int) -> bool:
        """Return whether a row already has errors."""
        return row in self._errors

    def add_condition_errors(self) -> None:
        """Add the errors that left the condition undecided, and its other errors in rows without errors so far."""
        for row, errors in self.condition_errors.items():
            if any(error["column"] is not None for error in errors) or row not in self._errors:
                self._add_details(row, errors)

    def split_versions(self) -> dict[str, pa.Array]:
        """Replace each row by a row for each of its versions, oldest first."""
        keys: list[bytes] = []
        versions_of_rows: list[StoredVersion | None] = []
        for key, value in zip(self.keys, self.values, strict=True):
            try:
                versions: list[StoredVersion | None] = [*self.store.versions(key, value or b"")[::-1]]
            except DecodeError as error:
                self._add(len(keys), key, error)
                versions = [None]
            keys += [key] * len(versions)
            versions_of_rows += versions
        self.keys, self.values = keys, [version and version.value for version in versions_of_rows]
        self._value_offsets = [version.at if version else 0 for version in versions_of_rows]
        return {
            "valid_from": pa.array([version and version.valid_from for version in versions_of_rows], pa.int64()),
            "valid_to": pa.array([version and version.valid_to for version in versions_of_rows], pa.int64()),
        }

    def find_errors(self, bad: pa.BooleanArray, parse: Callable[[int], object]) -> None:
        """Parse the bad rows one by one, and add their errors."""
        for row in pc.indices_nonzero(bad).to_pylist():
            try:
                parse(row)
            except DecodeError as error:
                self._add(row, self.keys[row], error)

    def add_error(self, bad: pa.BooleanArray, error: DecodeError) -> None:
        """Add the same error to all bad rows."""
        for row in pc.indices_nonzero(bad).to_pylist():
            self._add(row, self.keys[row], error)

    def add_errors(self, errors: pa.Array) -> None:
        """Add the errors of decoded values, from an error column."""
        for row in pc.indices_nonzero(errors.is_valid()).to_pylist():
            self._add_details(row, errors[row].as_py())

    def _add_details(self, row: int, errors: list[dict[str, Any]]) -> None:
        """Add decoding errors of a value, whose byte positions are relative to the value."""
        value_offset = self._value_offset(row)
        for error in errors:
            byte_offset = None if error["byte_offset"] is None else error["byte_offset"] + value_offset
            self._errors.setdefault(row, []).append({**error, "byte_offset": byte_offset})

    def errors(self, type: pa.DataType) -> pa.Array:
        """Return an array with the errors of each row, or null for valid rows."""
        if not self._errors:
            return pa.nulls(len(self.keys), type)
        return pa.array([self._errors.get(row) for row in range(len(self.keys))], type)

    def damaged(self, row: int, error: DecodeError) -> DamagedRowError:
        """Return the error for a value that cannot be decoded."""
        byte_offset = None if error.byte_offset is None else error.byte_offset + self._value_offset(row)
        return DamagedRowError(self._name, self.keys[row], copy_error(error, byte_offset=byte_offset, row=None))

    def _add(self, row: int, key: bytes, error: DecodeError) -> None:
        if self._raises:
            raise DamagedRowError(self._name, key, error) from error
        self._errors.setdefault(row, []).append(_detail(error))

    def _value_offset(self, row: int) -> int:
        """Return the byte position of a value in the stored value."""
        if self._value_offsets is not None:
            return self._value_offsets[row]
        stored = self.store.find(self._families, self.keys[row])
        return 0 if stored is None else -stored.added


def _detail(error: DecodeError) -> dict[str, Any]:
    return ErrorDetail(error.code, error.message, error.byte_offset, column=error.column)._asdict()


def _group_rows(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Group rows into the keys and values of record batches."""
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    for key, value in rows:
        keys.append(key)
        values.append(value)
        size += len(key) + len(value)
        if size >= BATCH_BYTES or len(keys) == BATCH_ROWS:
            yield keys, values
            keys, values, size = [], [], 0
    if keys:
        yield keys, values


def _slices(
    column: pa.BinaryArray, bad: pa.BooleanArray, min_key_len: int, slices: dict[str, tuple[int, int]]
) -> dict[str, pa.Array]:
    """Return slices of binary values as columns, with the types of :data:`_INTEGERS` or binary; bad rows are null."""
    any_bad = pc.any(bad).as_py()
    if any_bad:
        column = pc.if_else(bad, bytes(min_key_len), column)
    columns = {}
    for name, (start, stop) in slices.items():
        part = pc.binary_slice(column, start, stop)
        if name in _INTEGERS:
            # Stored integers are big-endian and fill their slice, so reversed bytes have Arrow's layout.
            part = pa.Array.from_buffers(_INTEGERS[name], len(part), [None, pc.binary_reverse(part).buffers()[2]])
        columns[name] = pc.if_else(bad, None, part) if any_bad else part
    return columns


def _labels(store: StoreReader) -> dict[str, str | None]:
    return {"task": store.files.task or None, "store": store.files.name}


_EMPTY = pa.array([], pa.binary())

_END = (1 << 31) - 1
"""Position after the end of any value. (Without an explicit end, pyarrow would allocate its default end times the
number of rows.)"""

_INTEGERS = {
    "window_start": pa.int64(),
    "sequence": pa.int32(),
    "session_start": pa.int64(),
    "session_end": pa.int64(),
    "timestamp": pa.int64(),
}
"""Types of the columns stored as integers."""

_TIMES = {"window_start", "window_end", "session_start", "session_end", "valid_from", "valid_to", "timestamp"}
"""Columns with times in milliseconds since 1970."""

_KEYS: dict[str, dict[str, tuple[int, int]]] = {
    "key-value": {"key": (0, _END)},
    "window": {"key": (0, -12), "window_start": (-12, -4), "sequence": (-4, _END)},
    "session": {"key": (0, -16), "session_start": (-8, _END), "session_end": (-16, -8)},
    "time-ordered-window": {"key": (9, -4), "window_start": (1, 9), "sequence": (-4, _END)},
    "time-ordered-session": {"key": (17, _END), "session_start": (9, 17), "session_end": (1, 9)},
    "versioned": {"key": (8, _END)},
}
"""Slices of the stored keys of each type; see the diagrams in :mod:`letterhead.state.storage.keys`."""

_TIMESTAMPED: dict[str, tuple[int, int]] = {"timestamp": (0, 8), "value": (8, _END)}
"""Slices of values with timestamps but without headers."""

_STORED_FIELDS = {"timestamp": "timestamp", "value": "payload", "headers": "headers"}
"""Field of a message for each column."""
