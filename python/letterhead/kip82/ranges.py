"""Ranges of integer keys, each reserved for a type of writer.

The drafts reserve four ranges without defining bounds. This package chooses the bounds: brokers have the lowest keys,
because these come first in sorted headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from letterhead._names import unknown_name
from letterhead.errors import EncodeError

__all__ = ["RESERVED", "KeyRange", "KeyRanges"]


@dataclass(frozen=True, order=True)
class KeyRange:
    """Range of integer keys from ``low`` to ``high``, both inclusive, and the ``name`` of its owner.

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

    def _check(self, key: int, header: int) -> None:
        """Raise ``EncodeError`` (``limit_exceeded``) if a key is outside the range; ``header`` is the header's index."""
        if key not in self:
            message = f"key {key} is outside the range of its writer, {self}"
            raise EncodeError(message, format="kip82-int", code="limit_exceeded", header=header, key=str(key))


class KeyRanges:
    """Key ranges by name; ``ValueError`` if two ranges overlap or have the same name.

    Examples
    --------
    >>> from letterhead.kip82 import RESERVED, KeyRange, KeyRanges
    >>> print(*RESERVED, sep="\\n")
    0 to 9999 (broker)
    10000 to 99999 (client)
    100000 to 999999999 (vendor)
    1000000000 to 2147483647 (in-house)
    >>> RESERVED.find(70_000).name, RESERVED.find(-1)
    ('client', None)
    >>> ours = KeyRanges([*RESERVED][:3] + [KeyRange(1_000_000_000, 1_999_999_999, "billing")])
    >>> ours["billing"].low
    1000000000
    """

    __slots__ = ("_by_name",)

    def __init__(self, ranges: Iterable[KeyRange]) -> None:
        self._by_name: dict[str, KeyRange] = {}
        last: KeyRange | None = None
        for key_range in sorted(ranges):
            if last is not None and key_range.low <= last.high:
                raise ValueError(f"the ranges {last} and {key_range} overlap")
            if key_range.name in self._by_name:
                raise ValueError(f"two ranges are named {key_range.name!r}")
            self._by_name[key_range.name] = last = key_range

    def find(self, key: int) -> KeyRange | None:
        """Return the range that contains a key, or ``None``."""
        return next((key_range for key_range in self if key in key_range), None)

    def __getitem__(self, name: str) -> KeyRange:
        if name not in self._by_name:
            raise unknown_name("range", name, self._by_name)
        return self._by_name[name]

    def __iter__(self) -> Iterator[KeyRange]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return self._by_name == other._by_name if isinstance(other, KeyRanges) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"KeyRanges({list(self)!r})"


RESERVED = KeyRanges([
    KeyRange(0, 9_999, "broker"),
    KeyRange(10_000, 99_999, "client"),
    KeyRange(100_000, 999_999_999, "vendor"),
    KeyRange(1_000_000_000, (1 << 31) - 1, "in-house"),
])  # fmt: skip
"""The four ranges reserved by the drafts, with the bounds of this package; use ``KeyRanges`` for other bounds."""
