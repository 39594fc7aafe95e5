"""Ranges of integer keys, and who may write in them.

The drafts reserve four ranges and give no bounds. Those here are ours: the lowest numbers are a broker's, because a
reader of sorted headers comes to them first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from letterhead.errors import EncodeError, unknown_name

__all__ = ["RESERVED", "KeyRange", "KeyRanges"]


@dataclass(frozen=True, order=True)
class KeyRange:
    """Keys from one number to another, and whose they are.

    Parameters
    ----------
    low, high : int
        The first and the last key.
    name : str
        Whose they are.

    Raises
    ------
    ValueError
        If the last key is less than the first.

    Examples
    --------
    >>> from letterhead.kip82 import KeyRange
    >>> billing = KeyRange(1_000_000_100, 1_000_000_199, "billing")
    >>> 1_000_000_150 in billing, 5 in billing
    (True, False)
    """

    low: int
    high: int
    name: str

    def __post_init__(self) -> None:
        if self.high < self.low:
            raise ValueError(f"the keys of {self.name} go from {self.low} to {self.high}: put the lower bound first")

    def __contains__(self, key: int) -> bool:
        return self.low <= key <= self.high

    def __str__(self) -> str:
        return f"{self.low} to {self.high} ({self.name})"

    def check(self, key: int, header: int | None = None) -> None:
        """Refuse a key outside this range.

        Parameters
        ----------
        key : int
            The key.
        header : int, optional
            Which header has it, for the error.

        Raises
        ------
        EncodeError
            If the key is outside (``limit_exceeded``).
        """
        if key not in self:
            message = f"key {key} is outside the range of its writer, {self}"
            raise EncodeError(message, format="kip82-int", code="limit_exceeded", header=header, key=str(key))


class KeyRanges:
    """Ranges by their names, none of which overlap.

    Parameters
    ----------
    ranges : iterable of KeyRange
        The ranges, in any order.

    Raises
    ------
    ValueError
        If two have a key or a name in common.

    Examples
    --------
    >>> from letterhead.kip82 import RESERVED, KeyRange, KeyRanges
    >>> print(*RESERVED, sep="\\n")
    0 to 9999 (broker)
    10000 to 99999 (client)
    100000 to 999999999 (vendor)
    1000000000 to 2147483647 (in-house)
    >>> RESERVED.of(70_000).name, RESERVED.of(-1)
    ('client', None)
    >>> ours = KeyRanges([*RESERVED][:3] + [KeyRange(1_000_000_000, 1_999_999_999, "billing")])
    >>> ours["billing"].low
    1000000000
    """

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Iterable[KeyRange]) -> None:
        self._ranges = tuple(sorted(ranges))
        for lower, upper in zip(self._ranges, self._ranges[1:], strict=False):
            if upper.low <= lower.high:
                raise ValueError(f"the ranges {lower} and {upper} overlap")
        names = [each.name for each in self._ranges]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two ranges are named {twice!r}")

    def of(self, key: int) -> KeyRange | None:
        """Give the range that a key is in, or ``None``."""
        return next((each for each in self._ranges if key in each), None)

    def __getitem__(self, name: str) -> KeyRange:
        for each in self._ranges:
            if each.name == name:
                return each
        raise unknown_name("range", name, [each.name for each in self._ranges])

    def __iter__(self) -> Iterator[KeyRange]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __eq__(self, other: object) -> bool:
        return self._ranges == other._ranges if isinstance(other, KeyRanges) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._ranges)

    def __repr__(self) -> str:
        return f"KeyRanges({list(self._ranges)!r})"


RESERVED = KeyRanges([
    KeyRange(0, 9_999, "broker"),
    KeyRange(10_000, 99_999, "client"),
    KeyRange(100_000, 999_999_999, "vendor"),
    KeyRange(1_000_000_000, (1 << 31) - 1, "in-house"),
])  # fmt: skip
"""The four ranges that the drafts reserve, with bounds of ours: make other ``KeyRanges`` where others are agreed on."""
