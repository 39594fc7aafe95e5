"""Mergeable summaries of fixed size: a histogram, and a sample of distinct values.

Both depend only on the added values, not on their order or partition. So many machines can scan parts of a topic, and
the merged result equals the result of a single pass over all values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from letterhead import _native

EXACT = 64
"""Numbers below this limit are counted exactly, and others in buckets with a width of about 6 %."""

_STEPS = 16


@dataclass
class Histogram:
    """Counts of non-negative numbers in at most 64 + 16 × 26 buckets, keyed by their start; other fields are exact."""

    counts: dict[int, int] = field(default_factory=dict)
    low: int | None = None
    high: int | None = None
    total: int = 0

    @property
    def count(self) -> int:
        """Number of added numbers."""
        return sum(self.counts.values())

    def add(self, numbers: Mapping[int, int]) -> None:
        """Add numbers with their counts."""
        for number, times in numbers.items():
            bucket = _bucket(number)
            self.counts[bucket] = self.counts.get(bucket, 0) + times
            self.total += number * times
        self._widen(min(numbers, default=None), max(numbers, default=None))

    def merge(self, other: Histogram) -> None:
        """Add another histogram."""
        for bucket, times in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + times
        self.total += other.total
        self._widen(other.low, other.high)

    def median(self) -> int | None:
        """Return the median: exact below 64, otherwise the start of its bucket."""
        left = (self.count + 1) // 2
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                # The bucket may start below the smallest number.
                return bucket if self.low is None else max(bucket, self.low)
        return None

    def most_frequent(self) -> tuple[int, int]:
        """Return the most frequent bucket and its count; in a tie, the lowest bucket."""
        return max(sorted(self.counts.items()), key=lambda bucket_and_count: bucket_and_count[1], default=(0, 0))

    def _widen(self, low: int | None, high: int | None) -> None:
        self.low = min((number for number in (self.low, low) if number is not None), default=None)
        self.high = max((number for number in (self.high, high) if number is not None), default=None)


def _bucket(number: int) -> int:
    if number < EXACT:
        return number
    step = 1 << (number.bit_length() - _STEPS.bit_length())
    return number // step * step


@dataclass
class Sampled:
    """Distinct value (at most its first 64 bytes), its size in bytes, and its number of occurrences."""

    head: bytes
    size: int
    count: int

    @property
    def whole(self) -> bool:
        """Whether `head` is the complete value."""
        return len(self.head) == self.size


@dataclass
class Sample:
    """Sample of distinct values: at most `max_values` values, those with the smallest hashes.

    A value in the sample has never been removed, so its count is exact. The number of distinct values is estimated from the
    largest hash in the sample.
    """

    max_values: int = 128
    values: dict[int, Sampled] = field(default_factory=dict)

    HEAD = 64
    """Maximum number of bytes stored of each value."""

    def add(self, values: Any, counts: Any) -> None:
        """Add a binary array of distinct values, and an array of their counts."""
        hashes = np.frombuffer(_native.value_hashes(values), np.uint64)
        rows = np.arange(len(hashes))
        if len(hashes) > self.max_values:
            # At most `max_values` of these values can be kept.
            rows = np.argpartition(hashes, self.max_values)[: self.max_values]
        # Skip values with larger hashes than a full sample, which would be removed again.
        last = 1 << 64 if self.is_all else max(self.values)
        for row in rows.tolist():
            digest = int(hashes[row])
            if digest <= last:
                self._add(digest, values[row].as_py(), int(counts[row]))
        self._shrink()

    def merge(self, other: Sample) -> None:
        """Add another sample."""
        for digest, value in other.values.items():
            kept = self.values.setdefault(digest, Sampled(value.head, value.size, 0))
            kept.count += value.count
        self._shrink()

    @property
    def is_all(self) -> bool:
        """Whether all distinct values are kept."""
        return len(self.values) < self.max_values

    @property
    def distinct(self) -> int:
        """Number of distinct values: exact below `max_values`, otherwise with an error of about 1/√max_values."""
        if self.is_all:
            return len(self.values)
        # Hashes are uniform, so the density below the largest kept hash is the density of all hashes.
        return round((self.max_values - 1) * 2**64 / (max(self.values) + 1))

    def commonest(self) -> list[Sampled]:
        """Return the kept values, the most frequent first."""
        return sorted(self.values.values(), key=lambda value: (-value.count, value.head))

    def _add(self, digest: int, value: bytes, count: int) -> None:
        kept = self.values.setdefault(digest, Sampled(value[: self.HEAD], len(value), 0))
        kept.count += count

    def _shrink(self) -> None:
        if len(self.values) > self.max_values:
            self.values = {digest: self.values[digest] for digest in sorted(self.values)[: self.max_values]}
