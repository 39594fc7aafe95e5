"""Result of a scan, and its output as text, JSON, HTML and code."""

from __future__ import annotations

from typing import Any

from letterhead._formats import format_table
from letterhead._formatting import printable
from letterhead._names import check_name
from letterhead.conventions.profiles import profiles_of
from letterhead.fields import native_key
from letterhead.headers import GivenKey
from letterhead.scan.code import Surface, select_code
from letterhead.scan.key import KeyScan, summary
from letterhead.scan.page import page
from letterhead.scan.statistics import Statistics


class Scan:
    """Result of a scan by :func:`letterhead.arrow.scan` or `lhs.scan_headers`.

    Scans of parts of a topic can be combined with :meth:`merge`, in any order, into the scan of the whole topic. The memory
    for each key is fixed, and at most `max_keys` keys are kept.

    Parameters
    ----------
    format : str
        Name of the format.
    statistics : letterhead.scan.statistics.Statistics
        Counts: ``rows``, of which ``null_rows`` and ``empty_rows`` have no headers and ``bad_rows`` have ``errors``; and
        counts for each of the ``keys``.
    column : str, default "headers"
        Name of the column in the generated code.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> messages = [lh.encode([("tenant", name), ("retry", n.to_bytes(4, "big"))], "kafka")
    ...             for n, name in enumerate(["acme", "globex", "initech"])]
    >>> lha.scan(pa.array(messages), "kafka")
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
        """Result for each key, ordered by the usual position of the key in a message."""
        totals = self.statistics
        keys = [KeyScan(key, statistics, totals.rows) for key, statistics in totals.keys.items()]
        return sorted(keys, key=lambda key: (key.statistics.positions.median() or 0, -key.statistics.rows, key.name))

    @property
    def more_keys(self) -> int:
        """Number of keys not included in :attr:`keys`; exact up to 255."""
        return self.statistics.more_keys

    @property
    def profiles(self) -> tuple[str, ...]:
        """Names of conventions that the headers follow, for :func:`letterhead.profile`."""
        return profiles_of(self.statistics.keys)

    def __getitem__(self, key: GivenKey) -> KeyScan:
        name = native_key(key)
        return KeyScan(name, self.statistics.keys[name], self.statistics.rows)

    def merge(self, other: Scan) -> Scan:
        """Return the combined scan of the messages of both scans; neither scan is modified.

        Raises
        ------
        ValueError
            If the formats differ.
        """
        if other.format != self.format:
            raise ValueError(f"a scan of {self.format} and one of {other.format} do not add up: keep them apart")
        both = Statistics(max_keys=max(self.statistics.max_keys, other.statistics.max_keys))
        both.merge(self.statistics)
        both.merge(other.statistics)
        return Scan(self.format, both, self.column)

    def code(self, surface: Surface = "spark") -> str:
        """Return code that selects the headers, each with its first suggested type.

        Parameters
        ----------
        surface : {"spark", "arrow", "python"}, default "spark"
            API to use: `lhs.select_headers`, `lha.select` or `lh.select`; for batch formats, the corresponding functions that
            read messages.

        Returns
        -------
        str
            Python code, with a comment about the confidence in the type of each key.
        """
        check_name("surface", surface, ("spark", "arrow", "python"))
        is_batch = format_table()[self.format].is_ == "batch"
        return select_code(self.keys, self.more_keys, self.format, self.column, surface, is_batch=is_batch)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        totals = self.statistics
        return {
            "format": self.format,
            "rows": totals.rows,
            "null_rows": totals.null_rows,
            "empty_rows": totals.empty_rows,
            "bad_rows": totals.bad_rows,
            "errors": dict(sorted(totals.errors.items())),
            "keys": [key.to_dict() for key in self.keys],
            "profiles": [*self.profiles],
            "more_keys": self.more_keys,
            "more_headers": totals.more_headers,
            "code": self.code(),
        }

    def html(self, *, title: str = "Headers") -> str:
        """Return an HTML page with plots, without scripts or external resources.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed (``letterhead[plots]``).
        """
        return page(title, headline(self), remarks(self), self.keys, self.code())

    def __repr__(self) -> str:
        rows = [[printable(field) for field in summary(key).values()] for key in self.keys]
        lines = [headline(self)]
        if rows:
            rows.insert(0, list(summary(self.keys[0])))
            widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
            lines += [
                "  ".join(f"{field:{width}}" for field, width in zip(row, widths, strict=True)).rstrip() for row in rows
            ]
        return "\n".join([*lines, *remarks(self)])


def headline(scan: Scan) -> str:
    """Return a one-line summary: number of rows, format, number of keys."""
    counts = {"row": scan.statistics.rows, "key": len(scan.statistics.keys)}
    rows, keys = (f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())
    return f"Scan of {rows} in {scan.format}: {keys}"


def remarks(scan: Scan) -> list[str]:
    """Return remarks about rows and keys that are not in the table: rows without headers, damaged rows, dropped keys."""
    totals = scan.statistics
    lines = []
    if totals.null_rows or totals.empty_rows:
        lines.append(f"{totals.null_rows + totals.empty_rows:,} of {totals.rows:,} rows have no headers")
    if totals.bad_rows:
        codes = ", ".join(f"{code} {count:,}" for code, count in sorted(totals.errors.items()))
        lines.append(
            f"{totals.bad_rows:,} of {totals.rows:,} rows are damaged (their readable headers are counted): {codes}"
        )
    if totals.more_headers:
        keys = f"{'' if totals.more.is_all else 'about '}{scan.more_keys:,} more keys"
        lines.append(f"and {keys}, whose {totals.more_headers:,} headers are not in the table")
    if scan.profiles:
        names = ", ".join(scan.profiles)
        lines.append(f"some follow a convention, whose columns lh.profile or --profile has: {names}")
    if any(not key.exact for key in totals.keys.values()):
        lines.append("keys marked + may have more headers among those: their numbers are lower bounds")
    return lines
