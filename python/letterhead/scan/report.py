"""A scan: statistics with their guesses, as text, as a document, as a page and as code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from letterhead.columns import plain_key
from letterhead.errors import DecodeError, check_name
from letterhead.headers import GivenKey
from letterhead.message import encode, select
from letterhead.scan.code import Surface, select_code
from letterhead.scan.guesses import Guess, guesses_of, moment
from letterhead.scan.sketch import EXACT, Histogram, Sampled
from letterhead.scan.statistics import Key, KeyStatistics, Statistics
from letterhead.values import of_message

__all__ = ["KeyScan", "Scan", "percent", "share", "spread", "summary"]

_EXAMPLES = 5


@dataclass(frozen=True)
class KeyScan:
    """What a scan found of one key.

    Attributes
    ----------
    key : str, int or (str, bytes)
        The key; of a format with typed keys its kind and bits, unless it is a string.
    statistics : KeyStatistics
        What was counted.
    of_rows : int
        Messages that were looked at.
    """

    key: Key
    statistics: KeyStatistics
    of_rows: int

    @property
    def name(self) -> str:
        """The key as text."""
        if isinstance(self.key, tuple):
            kind, bits = self.key
            try:
                value = of_message(kind, bits).value
            except ValueError:
                value = bits
            return f"{kind}:{value.hex() if isinstance(value, bytes) else value}"
        return str(self.key)

    @cached_property
    def guesses(self) -> list[Guess]:
        """What the values may be, the likeliest first."""
        return guesses_of(self.statistics)

    @property
    def examples(self) -> list[Sampled]:
        """Some values, the commonest of the sample."""
        return self.statistics.sample.commonest()[:_EXAMPLES]

    def read(self, value: Sampled) -> str | None:
        """Spell a value as the first guess reads it; None where that is bytes, or it is not of that type.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import letterhead as lh
        >>> from letterhead import arrow as lha
        >>> found = lha.scan(pa.array([lh.encode([("n", bytes([0, 0, 1, n]))], "kafka") for n in range(9)]), "kafka")["n"]
        >>> found.guesses[0].type, [found.read(value) for value in found.examples[:2]]
        ('int32', ['256', '257'])
        """
        type = self.guesses[0].type
        if not value.whole or type in ("binary", "string"):
            return None
        try:
            made = select(encode([("", value.head)], "kafka") or b"", "kafka", {"": type})[""]
        except DecodeError:
            return None
        if type.startswith("timestamp_ms"):
            return moment(int(made))
        return str(made).lower() if isinstance(made, bool) else f"{made:,}" if isinstance(made, int) else str(made)

    def to_dict(self) -> dict[str, Any]:
        """Give what was found as plain values, for JSON."""
        found = self.statistics
        headers = found.headers
        return {
            "key": self.key if isinstance(self.key, str | int) else {"kind": self.key[0], "hex": self.key[1].hex()},
            "headers": headers,
            "rows": found.rows,
            "share_of_rows": share(found.rows, self.of_rows),
            "nulls": found.nulls,
            "share_null": share(found.nulls, headers),
            "empty": found.empty,
            "repeated_rows": found.repeated,
            "share_repeated": share(found.repeated, found.rows),
            "most_in_a_row": found.most,
            "exact": found.exact,
            "bytes": _spread(found.sizes) | {"total": found.sizes.total},
            "position": _spread(found.positions) | {"most": found.positions.most()[0]},
            "distinct": {"count": found.distinct, "exact": found.sample.is_all},
            "examples": [
                {
                    "hex": value.head.hex(),
                    "text": _text(value.head),
                    "read": self.read(value),
                    "bytes": value.size,
                    "count": value.count,
                }
                for value in self.examples
            ],
            "kinds": dict(sorted(found.kinds.items())),
            "guesses": [guess._asdict() for guess in self.guesses],
        }


class Scan:
    """What headers some messages carry: made by :func:`letterhead.arrow.scan`, and by `lhs.scan_headers` in Spark.

    Scans of the parts of a topic add up with :meth:`merge`, in any order, to the scan of the whole. What is kept has a
    fixed size for each key, and there are no more than `max_keys` of them.

    Parameters
    ----------
    format : str
        Name of the format.
    statistics : Statistics
        What was counted.
    column : str, default "headers"
        Name of the column, for the code.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> cells = [lh.encode([("tenant", name), ("retry", n.to_bytes(4, "big"))], "kafka")
    ...          for n, name in enumerate(["acme", "globex", "initech"])]
    >>> lha.scan(pa.array(cells), "kafka")
    Scan of 3 rows in kafka: 2 keys
    key     rows   null  repeated  bytes  position  type
    tenant  100 %  0 %   0 %       4-7    0         string, strong
    retry   100 %  0 %   0 %       4      1         int32, strong
    """

    def __init__(self, format: str, statistics: Statistics, column: str = "headers") -> None:
        self.format = format
        self.statistics = statistics
        self.column = column

    @property
    def keys(self) -> list[KeyScan]:
        """What was found of each key, in the order in which keys usually stand in a message."""
        found = self.statistics
        keys = [KeyScan(key, statistics, found.rows) for key, statistics in found.keys.items()]
        return sorted(keys, key=lambda key: (key.statistics.positions.median() or 0, -key.statistics.rows, key.name))

    @property
    def more_keys(self) -> int:
        """How many keys there were beside those, exactly up to 255."""
        return self.statistics.more_keys

    def __getitem__(self, key: GivenKey) -> KeyScan:
        plain = plain_key(key)
        return KeyScan(plain, self.statistics.keys[plain], self.statistics.rows)

    def merge(self, other: Scan) -> Scan:
        """Add up two scans; neither is changed.

        Parameters
        ----------
        other : Scan
            Of other messages in the same format.

        Returns
        -------
        Scan
            Of the messages of both.

        Raises
        ------
        ValueError
            If they are of different formats.
        """
        if other.format != self.format:
            raise ValueError(f"a scan of {self.format} and one of {other.format} do not add up: scan them apart")
        both = Statistics(max_keys=max(self.statistics.max_keys, other.statistics.max_keys))
        both.merge(self.statistics)
        both.merge(other.statistics)
        return Scan(self.format, both, self.column)

    def code(self, surface: Surface = "spark") -> str:
        """Write the code that selects these headers with the first guess of each.

        Parameters
        ----------
        surface : {"spark", "arrow"}, default "spark"
            For `lhs.select_headers` or for `lha.select`.

        Returns
        -------
        str
            Python, with a comment on each key that says how sure its type is.
        """
        check_name("surface", surface, ("spark", "arrow"))
        return select_code(self.keys, self.more_keys, self.format, self.column, surface)

    def to_dict(self) -> dict[str, Any]:
        """Give all of it as plain values, for JSON."""
        found = self.statistics
        return {
            "format": self.format,
            "rows": found.rows,
            "null_rows": found.null_rows,
            "empty_rows": found.empty_rows,
            "bad_rows": found.bad_rows,
            "faults": dict(sorted(found.faults.items())),
            "keys": [key.to_dict() for key in self.keys],
            "more_keys": self.more_keys,
            "more_headers": found.more_headers,
            "code": self.code(),
        }

    def html(self, *, title: str = "Headers") -> str:
        """Write a page for a browser, with plots; it asks no other host for anything.

        Parameters
        ----------
        title : str, default "Headers"
            What stands at its top.

        Returns
        -------
        str
            HTML.
        """
        from letterhead.scan.page import page

        return page(self, title)

    def __repr__(self) -> str:
        rows = [list(summary(key).values()) for key in self.keys]
        lines = [self.headline()]
        if rows:
            rows.insert(0, list(summary(self.keys[0])))
            widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
            lines += [
                "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
            ]
        return "\n".join([*lines, *self.remarks()])

    def headline(self) -> str:
        """Say in a line what was scanned."""
        rows, keys = self.statistics.rows, len(self.statistics.keys)
        return (
            f"Scan of {rows:,} row{'' if rows == 1 else 's'} in {self.format}: {keys:,} key{'' if keys == 1 else 's'}"
        )

    def remarks(self) -> list[str]:
        """Say what the table of keys does not."""
        found = self.statistics
        lines = []
        if found.null_rows or found.empty_rows:
            lines.append(f"{found.null_rows + found.empty_rows:,} of {found.rows:,} rows have no headers")
        if found.bad_rows:
            codes = ", ".join(f"{code} {count:,}" for code, count in sorted(found.faults.items()))
            lines.append(
                f"{found.bad_rows:,} of {found.rows:,} rows are damaged, and what can be read of them counts: {codes}"
            )
        if found.more_headers:
            about = "" if found.more.is_all else "about "
            lines.append(
                f"and {about}{self.more_keys:,} more keys, whose {found.more_headers:,} headers are not in the table"
            )
        if any(not each.exact for each in found.keys.values()):
            lines.append("of keys marked + some headers may be among those: their numbers are the least they can be")
        return lines


def share(part: int, whole: int) -> float | None:
    """Give a share of 1, or None of nothing."""
    return None if not whole else round(part / whole, 6)


def percent(part: int, whole: int) -> str:
    """Write a share in percent, so that what is there is never 0 % and what is not all never 100 %."""
    if not whole:
        return "-"
    rounded = f"{100 * part / whole:.0f}"
    if 0 < part < whole and rounded in ("0", "100"):
        rounded = f"{100 * part / whole:.1f}"
        if rounded in ("0.0", "100.0"):
            return "<0.1 %" if rounded == "0.0" else ">99.9 %"
    return f"{rounded} %"


def summary(key: KeyScan) -> Mapping[str, str]:
    """Give the cells of a table about a key."""
    found = key.statistics
    first, *others = key.guesses
    ties = [guess.type for guess in others if guess.confidence == first.confidence == "tie"]
    types = " or ".join([first.type, *ties[:2]]) + (" or …" if len(ties) > 2 else "")
    return {
        "key": key.name + ("" if found.exact else "+"),
        "rows": percent(found.rows, key.of_rows),
        "null": percent(found.nulls, found.headers),
        "repeated": percent(found.repeated, found.rows),
        "bytes": spread(found.sizes),
        "position": spread(found.positions, most=True),
        "type": f"{types}, {first.confidence}",
    }


def spread(histogram: Histogram, *, most: bool = False) -> str:
    """Write the least and the greatest number, or the commonest one where others are rare."""
    low, high = histogram.low, histogram.high
    if low is None or high is None:
        return "-"
    number, count = histogram.most()
    if most and number < EXACT and count > histogram.count / 2:
        return f"{number}"
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _spread(histogram: Histogram) -> dict[str, int | None]:
    return {"min": histogram.low, "median": histogram.median(), "max": histogram.high}


def _text(head: bytes) -> str | None:
    try:
        return head.decode()
    except UnicodeDecodeError:
        return None
