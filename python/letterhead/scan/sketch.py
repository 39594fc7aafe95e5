"""Summaries of a fixed size that can be added to one another: a histogram, and a sample of distinct values.

Both depend on what was added and not on the order or on how it was split, so that parts of a topic can be looked at on
many machines: the sum of the parts is what one pass over all would have made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

__all__ = ["EXACT", "Histogram", "Sample", "Sampled"]

EXACT = 64
"""Numbers below this one are counted one by one; from here on, in steps of about 6 %."""

_STEPS = 16


@dataclass
class Histogram:
    """How often each of some numbers was seen, none of them negative.

    Attributes
    ----------
    counts : dict of int to int
        Of each bucket, by the least number in it: no more than 64 + 16 × 26 of them.
    low, high : int or None
        The least and the greatest number, exactly.
    total : int
        Their sum.
    """

    counts: dict[int, int] = field(default_factory=dict)
    low: int | None = None
    high: int | None = None
    total: int = 0

    @property
    def count(self) -> int:
        """How many numbers were added."""
        return sum(self.counts.values())

    def add(self, numbers: Mapping[int, int]) -> None:
        """Add numbers, each with how often it was seen."""
        for number, times in numbers.items():
            bucket = _bucket(number)
            self.counts[bucket] = self.counts.get(bucket, 0) + times
            self.total += number * times
        self._widen(min(numbers, default=None), max(numbers, default=None))

    def merge(self, other: Histogram) -> None:
        """Add what another one has seen."""
        for bucket, times in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + times
        self.total += other.total
        self._widen(other.low, other.high)

    def median(self) -> int | None:
        """Give the number in the middle: exactly below 64, else the least one of its bucket."""
        left = (self.count + 1) // 2
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                # A bucket may begin below the least number that was seen.
                return bucket if self.low is None else max(bucket, self.low)
        return None

    def most(self) -> tuple[int, int]:
        """Give the commonest bucket and its count; the lower one of two."""
        return max(sorted(self.counts.items()), key=lambda each: each[1], default=(0, 0))

    def _widen(self, low: int | None, high: int | None) -> None:
        if low is not None and (self.low is None or low < self.low):
            self.low = low
        if high is not None and (self.high is None or high > self.high):
            self.high = high


def _bucket(number: int) -> int:
    if number < EXACT:
        return number
    step = 1 << (number.bit_length() - _STEPS.bit_length())
    return number // step * step


@dataclass
class Sampled:
    """One distinct value of a sample.

    Attributes
    ----------
    head : bytes
        The value, or its first 64 bytes.
    size : int
        Bytes that it has.
    count : int
        How often it was seen, exactly.
    """

    head: bytes
    size: int
    count: int

    @property
    def whole(self) -> bool:
        """Whether all of the value is kept."""
        return len(self.head) == self.size


@dataclass
class Sample:
    """Distinct values, chosen by their hashes: the ones with the smallest, whatever was seen first or most often.

    A value that is still here was never sent away, so its count is exact; and how small the hashes are tells how many
    distinct values there were.

    Attributes
    ----------
    most : int
        How many values are kept.
    values : dict of int to Sampled
        The kept values by their hashes.
    """

    most: int = 128
    values: dict[int, Sampled] = field(default_factory=dict)

    HEAD = 64
    """Bytes of a value that are kept."""

    def add(self, values: Iterable[tuple[bytes, int]]) -> None:
        """Add distinct values, each with how often it was seen."""
        # Whatever is beyond the last of a full sample will not stay.
        last = max(self.values) if len(self.values) >= self.most else 1 << 64
        for value, count in values:
            hash = int.from_bytes(blake2b(value, digest_size=8).digest(), "big")
            kept = self.values.get(hash)
            if kept is not None:
                kept.count += count
            elif hash < last:
                self.values[hash] = Sampled(value[: self.HEAD], len(value), count)
                if len(self.values) >= 2 * self.most:
                    self._shrink()
                    last = max(self.values)
        self._shrink()

    def merge(self, other: Sample) -> None:
        """Add what another one has."""
        for hash, value in other.values.items():
            kept = self.values.get(hash)
            if kept is not None:
                kept.count += value.count
            else:
                self.values[hash] = Sampled(value.head, value.size, value.count)
        self._shrink()

    @property
    def is_all(self) -> bool:
        """Whether no distinct value was sent away."""
        return len(self.values) < self.most

    @property
    def distinct(self) -> int:
        """How many distinct values there were: exactly below `most`, else with an error of about 1/√most."""
        if self.is_all:
            return len(self.values)
        # Uniform hashes lie as densely below the largest kept one as everywhere else.
        return round((self.most - 1) * 2**64 / (max(self.values) + 1))

    def commonest(self) -> list[Sampled]:
        """Give the kept values, the commonest first."""
        return sorted(self.values.values(), key=lambda value: (-value.count, value.head))

    def _shrink(self) -> None:
        if len(self.values) > self.most:
            self.values = {hash: self.values[hash] for hash in sorted(self.values)[: self.most]}
