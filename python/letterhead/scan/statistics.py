"""Mergeable statistics of headers, with bounded memory for each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead import _native
from letterhead.fields import native_key
from letterhead.scan.readings import Tally, Values
from letterhead.scan.sketch import Histogram, Sample
from letterhead.values import value_from_message

Key: TypeAlias = str | int | tuple[str, bytes]
"""Key as in `select`: text, an int, or a type and bytes."""

_MORE_KEYS = 256
"""Maximum number of dropped keys that are counted exactly."""


@dataclass
class KeyStatistics:
    """Counts for one key.

    Attributes
    ----------
    headers, rows : int
        Number of headers with the key, and of rows with at least one such header.
    nulls, empty : int
        Number of headers with a null value, or with an empty value.
    repeated, most : int
        Number of rows that repeat the key, and maximum number of its headers in one row.
    sizes, positions : Histogram
        Sizes of non-null values in bytes, and positions of the headers in their rows, from 0.
    types : dict of str to int
        Number of values of each type, in formats that store types.
    sample : Sample
        A sample of the distinct values.
    readings, shapes : dict of str to Tally
        Tallies of the types that the values can be read as, and of their shapes.
    exact : bool
        Whether all headers of the key are counted; false if the key was dropped temporarily because of too many keys.
    """

    headers: int = 0
    rows: int = 0
    nulls: int = 0
    empty: int = 0
    repeated: int = 0
    most: int = 0
    sizes: Histogram = field(default_factory=Histogram)
    positions: Histogram = field(default_factory=Histogram)
    types: dict[str, int] = field(default_factory=dict)
    sample: Sample = field(default_factory=Sample)
    readings: dict[str, Tally] = field(default_factory=dict)
    shapes: dict[str, Tally] = field(default_factory=dict)
    exact: bool = True

    @property
    def distinct(self) -> int:
        """Number of distinct non-null values; above 127, with an error of about 9 %."""
        return min(self.sample.distinct, self.headers - self.nulls)

    @property
    def values(self) -> int:
        """Number of values that are neither null nor empty."""
        return self.headers - self.nulls - self.empty

    def add(self, values: Any, rows: Any, positions: Any, types: Any | None) -> None:
        """Add the headers of a batch with this key, in order: their values, rows, positions in the row, and types."""
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        times = np.diff(starts, append=len(rows))
        self.headers += len(rows)
        self.rows += len(starts)
        self.nulls += values.null_count
        self.repeated += int((times > 1).sum())
        self.most = max(self.most, int(times.max(initial=0)))
        self.positions.add(_count_numbers(positions))
        if types is not None:
            counted = pc.value_counts(types.drop_null()).to_pylist()
            _add_counts(self.types, {entry["values"]: entry["counts"] for entry in counted})
        distinct = pc.value_counts(values.drop_null())
        self._add_distinct(distinct.field("values"), distinct.field("counts").to_numpy())

    def merge(self, other: KeyStatistics) -> None:
        """Add the counts of another object for the same key."""
        for name in ("headers", "rows", "nulls", "empty", "repeated"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.most = max(self.most, other.most)
        self.sizes.merge(other.sizes)
        self.positions.merge(other.positions)
        self.sample.merge(other.sample)
        _add_counts(self.types, other.types)
        _add_tallies(self.readings, other.readings)
        _add_tallies(self.shapes, other.shapes)
        self.exact = self.exact and other.exact

    def _add_distinct(self, distinct: Any, counts: Any) -> None:
        values = Values(distinct, counts)
        sizes, inverse = np.unique(values.sizes, return_inverse=True)
        totals = np.bincount(inverse, weights=counts, minlength=len(sizes)).astype(np.int64)
        self.sizes.add(dict(zip(sizes.tolist(), totals.tolist(), strict=True)))
        self.empty += int(counts[values.sizes == 0].sum())
        self.sample.add(distinct, counts)
        _add_tallies(self.readings, values.tally())
        _add_tallies(self.shapes, values.shapes())


@dataclass
class Statistics:
    """Counts for many messages, and for each of their keys.

    Attributes
    ----------
    max_keys : int
        Maximum number of keys to keep; those with the most headers are kept.
    rows : int
        Number of scanned messages.
    null_rows, empty_rows : int
        Number of messages with null headers, or with empty headers.
    bad_rows : int
        Number of messages with errors.
    errors : dict of str to int
        Number of errors by code.
    keys : dict of Key to KeyStatistics
        Counts by key.
    more : Sample
        Sample of the keys that have been dropped at any time.
    more_headers : int
        Number of headers of dropped keys, which are not included in ``keys``.
    """

    max_keys: int = 1000
    rows: int = 0
    null_rows: int = 0
    empty_rows: int = 0
    bad_rows: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    keys: dict[Key, KeyStatistics] = field(default_factory=dict)
    more: Sample = field(default_factory=lambda: Sample(_MORE_KEYS))
    more_headers: int = 0

    def add(self, headers: Any) -> None:
        """Add messages, given their headers as a pyarrow array of lists, as returned by ``decode``."""
        self.rows += len(headers)
        self.null_rows += headers.null_count
        counts = pc.list_value_length(headers).fill_null(0).to_numpy().astype(np.int64)
        self.empty_rows += int((counts == 0).sum()) - headers.null_count
        rows = np.repeat(np.arange(len(headers)), counts)
        positions = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        # flatten() omits the elements of null lists, and so do the counts.
        parts = _fields(headers.flatten())
        has_key = parts["key"].is_valid().to_numpy(zero_copy_only=False)
        if not has_key.all():
            # Skip headers without a key, whose error is counted for the row.
            rows, positions = rows[has_key], positions[has_key]
            parts = {name: part.filter(pa.array(has_key)) for name, part in parts.items()}
        known = not self.more_headers
        for key, indexes in _group_by_key(parts, self._drop, self.max_keys):
            statistics = self.keys.setdefault(key, KeyStatistics(exact=known))
            chosen = pa.array(indexes)
            types = parts["type"].take(chosen) if "type" in parts else None
            statistics.add(parts["value"].take(chosen), rows[indexes], positions[indexes], types)
        self._shrink()

    def add_errors(self, codes: dict[str, int], rows: int) -> None:
        """Add errors of ``rows`` messages by code."""
        self.bad_rows += rows
        _add_counts(self.errors, codes)

    def merge(self, other: Statistics) -> None:
        """Add the counts of other messages."""
        mine_dropped, others_dropped = self.more_headers, other.more_headers
        for key in {**self.keys, **other.keys}:
            was_known = key in self.keys
            statistics = self.keys.setdefault(key, KeyStatistics())
            if key in other.keys:
                statistics.merge(other.keys[key])
            # If a side does not have the key, it may have dropped it.
            missing = (key not in other.keys and others_dropped) or (not was_known and mine_dropped)
            statistics.exact = statistics.exact and not missing
        self.rows += other.rows
        self.null_rows += other.null_rows
        self.empty_rows += other.empty_rows
        self.add_errors(other.errors, other.bad_rows)
        self.more.merge(other.more)
        self.more_headers += other.more_headers
        self._shrink()

    @property
    def more_keys(self) -> int:
        """Number of dropped keys; exact up to 255."""
        if not self.more.is_all:
            return self.more.distinct
        back = sum(_native.xxh3_64(_key_bytes(key)) in self.more.values for key in self.keys)
        return self.more.distinct - back

    def _drop(self, headers: Iterable[tuple[Key, int]]) -> None:
        """Count keys as dropped, together with their headers."""
        dropped = [(_key_bytes(key), count) for key, count in headers]
        self.more.add(pa.array([key for key, _ in dropped], pa.binary()), [count for _, count in dropped])
        self.more_headers += sum(count for _, count in dropped)

    def _shrink(self) -> None:
        if len(self.keys) <= self.max_keys:
            return
        ranked = sorted(
            self.keys.items(),
            key=lambda key_and_statistics: (-key_and_statistics[1].headers, _key_bytes(key_and_statistics[0])),
        )
        dropped = ranked[self.max_keys :]
        self._drop((key, statistics.headers) for key, statistics in dropped)
        for key, _ in dropped:
            del self.keys[key]


def _fields(structs: Any) -> dict[str, Any]:
    """Return the fields of headers with the Arrow types used for statistics."""
    # flatten() also applies the nulls of the struct to its fields.
    fields = dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))
    key = fields["key"]
    if "key_type" in fields:
        columns = {"key_type": fields["key_type"].cast(pa.string()), "key": key.cast(pa.binary())}
    else:
        columns = {"key": key if pa.types.is_integer(key.type) else key.cast(pa.string())}
    columns["value"] = fields["value"].cast(pa.binary())
    if "type" in fields:
        columns["type"] = fields["type"].cast(pa.string())
    return columns


def _group_by_key(parts: dict[str, Any], drop: Any, max_keys: int) -> Iterator[tuple[Key, Any]]:
    """Yield each key and the indexes of its headers; above the limit of keys, drop those with the fewest headers."""
    keys = parts["key"].dictionary_encode()
    codes, names = keys.indices.to_numpy().astype(np.int64), keys.dictionary.to_pylist()
    if "key_type" in parts:
        types = parts["key_type"].dictionary_encode()
        type_names = types.dictionary.to_pylist()
        codes = types.indices.to_numpy().astype(np.int64) * max(len(names), 1) + codes
    # Use the smallest integer type, because 16-bit numbers are sorted in linear time.
    order = np.argsort(codes.astype(np.min_scalar_type(int(codes.max(initial=0)))), kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    groups = list(zip(ordered[starts].tolist(), np.split(order, starts[1:]), strict=True)) if len(starts) else []

    def key_of(code: int) -> Key:
        if "key_type" not in parts:
            key: Key = names[code]
            return key
        type, bits = divmod(code, len(names))
        return native_key(value_from_message(type_names[type], names[bits]))

    if len(groups) > max_keys:
        groups.sort(key=lambda group: (-len(group[1]), _key_bytes(key_of(group[0]))))
        drop((key_of(code), len(indexes)) for code, indexes in groups[max_keys:])
    for code, indexes in groups[:max_keys]:
        yield key_of(code), indexes


def _key_bytes(key: Key) -> bytes:
    return repr(key).encode(errors="surrogatepass")


def _add_counts(mine: dict[str, int], others: dict[str, int]) -> None:
    for name, count in others.items():
        mine[name] = mine.get(name, 0) + count


def _add_tallies(mine: dict[str, Tally], others: dict[str, Tally]) -> None:
    for name, tally in others.items():
        mine.setdefault(name, Tally()).merge(tally)


def _count_numbers(numbers: Any) -> dict[int, int]:
    distinct, counts = np.unique(numbers, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))
