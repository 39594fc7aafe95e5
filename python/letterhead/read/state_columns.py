"""Rows of stores as Arrow columns, made for many rows at once; :mod:`letterhead.read.state_rows` takes one apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow as lha
from letterhead.errors import DamagedRowError, DecodeError, Fault, StoreChoiceError, check_name, unknown_name
from letterhead.read.state_directory import Segment
from letterhead.read.state_rows import SUFFIXES, Store, StoredVersion
from letterhead.read.times import TIMES, as_times
from letterhead.storage.database import StoredFamilies
from letterhead.storage.keys import MAX_TIME

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["StoreColumns"]

BATCH_ROWS = 10_000
BATCH_BYTES = 16 << 20
"""What a record batch is made of: no more rows than this, and bytes until this is reached."""


class StoreColumns:
    """What becomes of the rows of some stores.

    Parameters
    ----------
    stores : sequence of Store
        The stores, all of one kind.
    columns : sequence of str, optional
        Names of the columns, in order; by default ``task`` and ``store`` where there are several, and what the kind has.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`letterhead.arrow.select`; they come after the columns.
    window_size : int, optional
        Of windows: how many milliseconds they last, which is not in the files.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a row that is not whole, as in :func:`letterhead.arrow.decode`.
    dialect : {"arrow", "spark"}, default "arrow"
        Types of times, and of the columns that ``headers`` asks for.
    limits : Limits, optional
        The most to read of a value.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every record batch.

    Raises
    ------
    StoreChoiceError
        If stores of this kind do not have what is asked for.
    ValueError
        If a name is misspelt or stands twice.
    """

    def __init__(
        self,
        stores: Sequence[Store],
        columns: Sequence[str] | None = None,
        headers: Columns | None = None,
        *,
        window_size: int | None = None,
        errors: OnError = "raise",
        dialect: Literal["arrow", "spark"] = "arrow",
        limits: Limits | None = None,
    ) -> None:
        if isinstance(columns, str):
            raise TypeError("columns must be a list of column names, not str")
        check_name("errors value", errors, ("raise", "null", "column"))
        self._kind = kind = stores[0].kind
        self._format = stores[0].value_format
        self._headers = headers
        self._window_size = window_size
        self._errors: OnError = errors
        self._dialect: Literal["arrow", "spark"] = dialect
        self._limits = limits
        if window_size is not None and (kind.keys != "window" or window_size <= 0):
            what = "it has no windows" if kind.keys != "window" else f"{window_size} is no length of a window"
            raise StoreChoiceError(f"store {stores[0].found.name} is {kind}: {what}")
        if headers is not None and kind.values != "headers":
            raise StoreChoiceError(f"store {stores[0].found.name} is {kind}: it has no headers to make columns of")
        fields = {"task": pa.string(), "store": pa.string(), **self._fields()}
        if columns is None:
            left_out = {name for name in ("task", "store") if len({_labels(store)[name] for store in stores}) == 1}
            columns = [name for name in fields if name not in left_out]
        for name in columns:
            if name not in fields:
                raise unknown_name("column", name, fields)
        self._wanted = frozenset(columns)
        made = {name: fields[name] for name in columns}
        typed = [] if headers is None else list(self._select(_EMPTY, "raise").type)
        names = [*columns, *(field.name for field in typed), *(["error"] if errors == "column" else [])]
        if not names:
            raise ValueError("no columns were asked for")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two columns would be named {name!r}: name one of them differently")
        self.schema = pa.schema([*made.items(), *typed, *([("error", _ERRORS)] if errors == "column" else [])])

    def batches(self, store: Store, segment: Segment) -> Iterator[pa.RecordBatch]:
        """Read one database of a store.

        Parameters
        ----------
        store : Store
            One of the stores.
        segment : Segment
            One of its databases.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            The rows, in the order of their stored keys. The database is open until the last batch was taken.

        Raises
        ------
        DamagedRowError
            If ``errors="raise"`` and a row is not whole.
        ProcessorStateError
            If the files cannot be read.
        """
        with StoredFamilies(segment.directory) as families:
            for keys, values in _cut(store.rows(families)):
                batch = self._batch(_Rows(store, segment, families, self._errors, keys, values))
                # Rows of versions that were all deleted hold none.
                if len(batch):
                    yield batch

    def _fields(self) -> dict[str, pa.DataType]:
        """Give the columns that stores of the kind have, and their types."""
        kind = self._kind
        time = TIMES[self._dialect]
        fields = {name: time if name in _TIMES else _INTEGERS.get(name, pa.binary()) for name in _KEYS[kind.name]}
        if kind.keys == "versioned":
            fields |= {"valid_from": time, "valid_to": time}
        if self._window_size is not None:
            fields["window_end"] = time
        if kind.values != "plain" and kind.keys in ("key-value", "window"):
            fields["timestamp"] = time
        fields["value"] = pa.binary()
        if kind.values == "headers":
            fields["headers"] = lha.decode(_EMPTY, self._format).type.field("headers").type
        return fields

    def _batch(self, rows: _Rows) -> pa.RecordBatch:
        made = rows.take_versions() if self._kind.keys == "versioned" else {}
        made |= self._keys(rows)
        made |= self._values(rows)
        for name, label in _labels(rows.store).items():
            if name in self._wanted:
                made[name] = pa.repeat(pa.scalar(label, pa.string()), len(rows.keys))
        for name in _TIMES & self._wanted & made.keys():
            made[name] = as_times(made[name], TIMES[self._dialect], strict=self._errors == "raise")
        if self._errors == "column":
            made["error"] = rows.faults()
        return pa.RecordBatch.from_arrays([made[name] for name in self.schema.names], schema=self.schema)

    def _keys(self, rows: _Rows) -> dict[str, pa.Array]:
        kind, cells = self._kind, pa.array(rows.keys, pa.binary())
        least = SUFFIXES[kind.keys] + kind.time_ordered
        bad = pc.less(pc.binary_length(cells), least)
        if kind.time_ordered:
            bad = pc.or_(bad, pc.not_equal(pc.binary_slice(cells, 0, 1), b"\0"))
        rows.look_at(bad, lambda row: rows.store.key_parts(rows.keys[row]))
        made = _cut_up(cells, bad, least, _KEYS[kind.name])
        if self._window_size is not None:
            # As in Kafka Streams, a window that would end after all time ends with it.
            latest = pc.min_element_wise(made["window_start"], MAX_TIME - self._window_size, skip_nulls=False)
            made["window_end"] = pc.add(latest, self._window_size)
        return made

    def _values(self, rows: _Rows) -> dict[str, pa.Array]:
        if self._headers is None and not self._wanted & _STORED_FIELDS.keys():
            return {}
        cells = pa.array(rows.values, pa.binary())
        if self._kind.values == "plain":
            return {"value": cells}
        if self._kind.values == "timestamped":
            bad = pc.less(pc.binary_length(cells), 8)
            rows.look_at(bad, lambda row: rows.store.value_parts(rows.values[row] or b""))
            return _cut_up(cells, bad, 8, _TIMESTAMPED)
        made = {}
        try:
            if self._wanted & _STORED_FIELDS.keys():
                messages = lha.decode(cells, self._format, errors=self._errors, limits=self._limits)
                named = dict(zip(messages.type.names, messages.flatten(), strict=True))
                made = {name: named[field] for name, field in _STORED_FIELDS.items() if name in self._wanted}
                # Those of the typed columns have these, and come below.
                if self._errors == "column" and self._headers is None:
                    rows.add_faults(named["error"])
            if self._headers is not None:
                typed = self._select(cells, self._errors)
                columns = typed.flatten()
                if self._errors == "column":
                    rows.add_faults(columns.pop())
                made |= zip(typed.type.names, columns, strict=False)
        except DecodeError as error:
            raise rows.damaged(error.row or 0, error) from error
        return made

    def _select(self, cells: pa.Array, errors: OnError) -> pa.Array:
        return lha.select(
            cells, self._format, self._headers or {}, errors=errors, _dialect=self._dialect, limits=self._limits
        )


class _Rows:
    """Rows of one database that become a record batch, and what is wrong with them.

    Attributes
    ----------
    keys : list of bytes
        Keys as they are stored.
    values : list of bytes or None
        Values in the newer form; of versions, which may have none, one for each.
    """

    def __init__(
        self,
        store: Store,
        segment: Segment,
        families: StoredFamilies,
        errors: OnError,
        keys: list[bytes],
        values: Sequence[bytes | None],
    ) -> None:
        self.store = store
        self.keys = keys
        self.values = values
        self._name = store.found.database(segment)
        self._families = families
        self._raises = errors == "raise"
        self._faults: dict[int, list[dict[str, Any]]] = {}
        self._at: list[int] | None = None

    def take_versions(self) -> dict[str, pa.Array]:
        """Take rows of versions apart: each version becomes a row, the oldest first."""
        keys: list[bytes] = []
        made: list[StoredVersion | None] = []
        for key, value in zip(self.keys, self.values, strict=True):
            try:
                versions: list[StoredVersion | None] = [*self.store.versions(key, value or b"")[::-1]]
            except DecodeError as error:
                self._add(len(keys), key, error)
                versions = [None]
            keys += [key] * len(versions)
            made += versions
        self.keys, self.values = keys, [version and version.value for version in made]
        self._at = [version.at if version else 0 for version in made]
        return {
            "valid_from": pa.array([version and version.valid_from for version in made], pa.int64()),
            "valid_to": pa.array([version and version.valid_to for version in made], pa.int64()),
        }

    def look_at(self, bad: pa.BooleanArray, take_apart: Callable[[int], object]) -> None:
        """Find out what is wrong with some rows, by what takes one of them apart."""
        for row in pc.indices_nonzero(bad).to_pylist():
            try:
                take_apart(row)
            except DecodeError as error:
                self._add(row, self.keys[row], error)

    def add_faults(self, found: pa.Array) -> None:
        """Add what a kernel found wrong with the values."""
        for row in pc.indices_nonzero(found.is_valid()).to_pylist():
            moved = self._moved(row)
            for fault in found[row].as_py():
                byte = None if fault["byte_offset"] is None else fault["byte_offset"] + moved
                self._faults.setdefault(row, []).append({**fault, "byte_offset": byte})

    def faults(self) -> pa.Array:
        """Give what is wrong with each row, null where it is whole."""
        if not self._faults:
            return pa.nulls(len(self.keys), _ERRORS)
        return pa.array([self._faults.get(row) for row in range(len(self.keys))], _ERRORS)

    def damaged(self, row: int, error: DecodeError) -> DamagedRowError:
        """Make the error for a value that a kernel refuses."""
        where = {name: getattr(error, name) for name in ("code", "header", "key", "column")}
        offset = None if error.byte_offset is None else error.byte_offset + self._moved(row)
        # The column and the header, which the error of a kernel knows, come before the reason.
        reason = str(DecodeError(error.message, format=None, **where))
        return DamagedRowError(
            self._name, self.keys[row], DecodeError(reason, format=error.format, byte_offset=offset, **where)
        )

    def _add(self, row: int, key: bytes, error: DecodeError) -> None:
        if self._raises:
            raise DamagedRowError(self._name, key, error) from error
        fault = Fault(error.code, error.message, error.byte_offset)
        self._faults.setdefault(row, []).append(fault._asdict())

    def _moved(self, row: int) -> int:
        """Say how many bytes further a byte of a value is in the value as it is stored."""
        if self._at is not None:
            return self._at[row]
        stored = self.store.find(self._families, self.keys[row])
        return 0 if stored is None else -stored.added


def _cut(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Put rows together for record batches."""
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


def _cut_up(
    cells: pa.BinaryArray, bad: pa.BooleanArray, least: int, places: dict[str, tuple[int, int]]
) -> dict[str, pa.Array]:
    """Take parts of bytes as columns: all that are no integers of :data:`_INTEGERS` are bytes. What is bad is null."""
    any_bad = pc.any(bad).as_py()
    if any_bad:
        cells = pc.if_else(bad, bytes(least), cells)
    made = {}
    for name, (start, stop) in places.items():
        part = pc.binary_slice(cells, start, stop)
        if name in _INTEGERS:
            # Stored integers are big-endian, and fill their part: back to front they are Arrow's.
            part = pa.Array.from_buffers(_INTEGERS[name], len(part), [None, pc.binary_reverse(part).buffers()[2]])
        made[name] = pc.if_else(bad, None, part) if any_bad else part
    return made


def _labels(store: Store) -> dict[str, str | None]:
    return {"task": store.found.task or None, "store": store.found.name}


_EMPTY = pa.array([], pa.binary())
_ERRORS = lha.decode(_EMPTY, "streams", errors="column").type.field("error").type

_END = (1 << 31) - 1
"""The end of any bytes. (With no end at all, pyarrow takes the product of it and the rows for what to allocate.)"""

_INTEGERS = {
    "window_start": pa.int64(),
    "sequence": pa.int32(),
    "session_start": pa.int64(),
    "session_end": pa.int64(),
    "timestamp": pa.int64(),
}
"""Columns that are stored as integers, and their types."""

_TIMES = {"window_start", "window_end", "session_start", "session_end", "valid_from", "valid_to", "timestamp"}
"""Columns of milliseconds since 1970, which become times."""

_KEYS: dict[str, dict[str, tuple[int, int]]] = {
    "key-value": {"key": (0, _END)},
    "window": {"key": (0, -12), "window_start": (-12, -4), "sequence": (-4, _END)},
    "session": {"key": (0, -16), "session_start": (-8, _END), "session_end": (-16, -8)},
    "time-ordered-window": {"key": (9, -4), "window_start": (1, 9), "sequence": (-4, _END)},
    "time-ordered-session": {"key": (17, _END), "session_start": (9, 17), "session_end": (1, 9)},
    "versioned": {"key": (8, _END)},
}
"""Parts of the stored keys of each kind, as :mod:`letterhead.storage.keys` draws them."""

_TIMESTAMPED: dict[str, tuple[int, int]] = {"timestamp": (0, 8), "value": (8, _END)}
"""Parts of the values of stores with timestamps and without headers."""

_STORED_FIELDS = {"timestamp": "timestamp", "value": "payload", "headers": "headers"}
"""Columns, and the fields of the message that they are."""
