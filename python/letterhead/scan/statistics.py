"""What is counted of each key, batch by batch; the parts add up, and their size is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead.scan.readings import READINGS, SHAPES, Tally, Values
from letterhead.scan.sketch import Histogram, Sample

__all__ = ["Key", "KeyStatistics", "Statistics"]

Key: TypeAlias = str | int | tuple[str, bytes]
"""A key as `select` takes it in its plain form: text, an int, or a type and bits."""

_MORE_KEYS = 256
"""Hashes of keys that were left out; so many of them are counted exactly."""


@dataclass
class KeyStatistics:
    """What was seen of one key.

    Attributes
    ----------
    headers, rows : int
        Headers with the key, and rows with at least one of them.
    nulls, empty : int
        Headers whose value is null, or of no bytes.
    repeated, most : int
        Rows in which the key stands more than once, and how often it stands in one row at most.
    sizes, positions : Histogram
        Bytes of the values that are not null, and places of the headers in their rows, from 0.
    types : dict of str to int
        Where the format has types: how often each stands beside a value.
    sample : Sample
        Distinct values.
    readings, shapes : dict of str to Tally
        What the values could be read as, and what they look like.
    exact : bool
        Whether nothing of the key was left out when there were too many keys.
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
        """How many distinct values there are, null not counted; above 127 with an error of about 9 %."""
        return min(self.sample.distinct, self.headers - self.nulls)

    @property
    def values(self) -> int:
        """How many values have bytes to go by."""
        return self.headers - self.nulls - self.empty

    def add(self, values: Any, rows: Any, positions: Any, types: Any | None) -> None:
        """Add headers of one batch that have the key, in their order.

        Parameters
        ----------
        values : pyarrow.BinaryArray
            Their values.
        rows, positions : numpy.ndarray of int64
            The row of each, and its place in the row.
        types : pyarrow.StringArray, optional
            The type of each.
        """
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        times = np.diff(starts, append=len(rows))
        self.headers += len(rows)
        self.rows += len(starts)
        self.nulls += values.null_count
        self.repeated += int((times > 1).sum())
        self.most = max(self.most, int(times.max(initial=0)))
        self.positions.add(_counted(positions))
        if types is not None:
            for each in pc.value_counts(types.drop_null()).to_pylist():
                self.types[each["values"]] = self.types.get(each["values"], 0) + each["counts"]
        distinct = pc.value_counts(values.drop_null())
        self._add_distinct(distinct.field("values"), distinct.field("counts").to_numpy())

    def merge(self, other: KeyStatistics) -> None:
        """Add what another one has counted of the same key."""
        self.headers += other.headers
        self.rows += other.rows
        self.nulls += other.nulls
        self.empty += other.empty
        self.repeated += other.repeated
        self.most = max(self.most, other.most)
        self.sizes.merge(other.sizes)
        self.positions.merge(other.positions)
        self.sample.merge(other.sample)
        for type, count in other.types.items():
            self.types[type] = self.types.get(type, 0) + count
        for mine, others in ((self.readings, other.readings), (self.shapes, other.shapes)):
            for name, tally in others.items():
                mine.setdefault(name, Tally()).merge(tally)
        self.exact = self.exact and other.exact

    def _add_distinct(self, distinct: Any, counts: Any) -> None:
        values = Values(distinct, counts)
        sizes, inverse = np.unique(values.sizes, return_inverse=True)
        totals = np.bincount(inverse, weights=counts, minlength=len(sizes)).astype(np.int64)
        self.sizes.add(dict(zip(sizes.tolist(), totals.tolist(), strict=True)))
        self.empty += int(counts[values.sizes == 0].sum())
        self.sample.add(zip(distinct.to_pylist(), counts.tolist(), strict=True))
        present = set(sizes.tolist())
        for mine, table in (
            (self.readings, READINGS),
            (self.shapes, [each for one in SHAPES.values() for each in one]),
        ):
            for reading in table:
                if reading.width is None or reading.width in present:
                    tally = reading.tally(values)
                    if tally.fits:
                        mine.setdefault(reading.type, Tally()).merge(tally)


@dataclass
class Statistics:
    """What was seen of the keys of many messages.

    Attributes
    ----------
    max_keys : int
        Of how many keys statistics are kept; those with the most headers stay.
    rows : int
        Messages that were looked at.
    null_rows, empty_rows : int
        Messages without a headers field, and with an empty one.
    bad_rows : int
        Messages in which something is wrong.
    faults : dict of str to int
        What is wrong, by its code.
    keys : dict of Key to KeyStatistics
        By key.
    more : Sample
        Keys that were left out at one time or another.
    more_headers : int
        Headers that are in no statistics, as their keys were left out.
    """

    max_keys: int = 1000
    rows: int = 0
    null_rows: int = 0
    empty_rows: int = 0
    bad_rows: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    keys: dict[Key, KeyStatistics] = field(default_factory=dict)
    more: Sample = field(default_factory=lambda: Sample(_MORE_KEYS))
    more_headers: int = 0

    def add(self, headers: Any) -> None:
        """Add messages.

        Parameters
        ----------
        headers : pyarrow.ListArray or LargeListArray of struct
            The headers of each message, as ``decode`` gives them.
        """
        self.rows += len(headers)
        self.null_rows += headers.null_count
        counts = pc.list_value_length(headers).fill_null(0).to_numpy().astype(np.int64)
        self.empty_rows += int((counts == 0).sum()) - headers.null_count
        rows = np.repeat(np.arange(len(headers)), counts)
        positions = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        # flatten() leaves out what lies behind nulls, as the counts do.
        parts = _fields(headers.flatten())
        sound = parts["key"].is_valid().to_numpy(zero_copy_only=False)
        if not sound.all():
            # The fault is counted with the row; a header without a key has nowhere else to go.
            rows, positions = rows[sound], positions[sound]
            parts = {name: part.filter(pa.array(sound)) for name, part in parts.items()}
        known = not self.more_headers
        for key, places in _by_key(parts, self._left_out, self.max_keys):
            statistics = self.keys.setdefault(key, KeyStatistics(exact=known))
            chosen = pa.array(places)
            types = parts["type"].take(chosen) if "type" in parts else None
            statistics.add(parts["value"].take(chosen), rows[places], positions[places], types)
        self._shrink()

    def add_faults(self, codes: dict[str, int], rows: int) -> None:
        """Add what is wrong, by its code, in so many messages."""
        self.bad_rows += rows
        for code, count in codes.items():
            self.faults[code] = self.faults.get(code, 0) + count

    def merge(self, other: Statistics) -> None:
        """Add what another one has seen."""
        mine_left_out, others_left_out = self.more_headers, other.more_headers
        for key in {**self.keys, **other.keys}:
            found = key in self.keys
            statistics = self.keys.setdefault(key, KeyStatistics())
            if key in other.keys:
                statistics.merge(other.keys[key])
            # The side that does not have it may have left it out.
            missing = (key not in other.keys and others_left_out) or (not found and mine_left_out)
            statistics.exact = statistics.exact and not missing
        self.rows += other.rows
        self.null_rows += other.null_rows
        self.empty_rows += other.empty_rows
        self.add_faults(other.faults, other.bad_rows)
        self.more.merge(other.more)
        self.more_headers += other.more_headers
        self._shrink()

    @property
    def more_keys(self) -> int:
        """How many keys were left out; exactly where they are few."""
        if not self.more.is_all:
            return self.more.distinct
        back = sum(1 for key in self.keys if _hashed(key) in self.more.values)
        return self.more.distinct - back

    def _left_out(self, key: Key, headers: int) -> None:
        self.more.add([(_spelt(key), headers)])
        self.more_headers += headers

    def _shrink(self) -> None:
        if len(self.keys) <= self.max_keys:
            return
        ranked = sorted(self.keys.items(), key=lambda each: (-each[1].headers, _spelt(each[0])))
        for key, statistics in ranked[self.max_keys :]:
            self._left_out(key, statistics.headers)
            del self.keys[key]


def _fields(structs: Any) -> dict[str, Any]:
    """Take headers apart into arrays of the types that the statistics know."""
    # flatten() carries nulls of the struct into its fields.
    fields = dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))
    key = fields["key"]
    if "key_type" in fields:
        made = {"key_type": fields["key_type"].cast(pa.string()), "key": key.cast(pa.binary())}
    else:
        made = {"key": key if pa.types.is_integer(key.type) else key.cast(pa.string())}
    made["value"] = fields["value"].cast(pa.binary())
    if "type" in fields:
        made["type"] = fields["type"].cast(pa.string())
    return made


def _by_key(parts: dict[str, Any], left_out: Any, most: int) -> Iterator[tuple[Key, Any]]:
    """Give each key and the places of its headers; of too many keys, the ones with the most headers."""
    keys = parts["key"].dictionary_encode()
    codes, names = keys.indices.to_numpy().astype(np.int64), keys.dictionary.to_pylist()
    if "key_type" in parts:
        types = parts["key_type"].dictionary_encode()
        spelt = types.dictionary.to_pylist()
        codes = types.indices.to_numpy().astype(np.int64) * max(len(names), 1) + codes
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    groups = list(zip(found.tolist(), np.split(order, starts[1:]), strict=True)) if len(found) else []

    def key_of(code: int) -> Key:
        if "key_type" not in parts:
            key: Key = names[code]
            return key
        type, bits = divmod(code, len(names))
        return plain(spelt[type], names[bits])

    if len(groups) > most:
        groups.sort(key=lambda each: (-len(each[1]), _spelt(key_of(each[0]))))
        for code, places in groups[most:]:
            left_out(key_of(code), len(places))
    for code, places in groups[:most]:
        yield key_of(code), places


def plain(type: str, bits: bytes) -> Key:
    """Give a typed key in its plain form: text where it is a string that is UTF-8."""
    if type == "string":
        try:
            return bits.decode()
        except UnicodeDecodeError:
            pass
    return type, bits


def _spelt(key: Key) -> bytes:
    return repr(key).encode(errors="surrogatepass")


def _hashed(key: Key) -> int:
    alone = Sample()
    alone.add([(_spelt(key), 1)])
    return next(iter(alone.values))


def _counted(numbers: Any) -> dict[int, int]:
    found, counts = np.unique(numbers, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
