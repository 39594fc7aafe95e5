"""Limits on reading and reporting, which bound the memory that untrusted bytes can use.

Limits that a call does not set use the process-wide defaults. Environment variables change these, and are read once, by
the first call that reads a message.

====================================  =====================  ==============
variable                              limit                  default
====================================  =====================  ==============
``LETTERHEAD_MAX_MESSAGE_BYTES``      ``message_bytes``      2 147 483 647
``LETTERHEAD_MAX_HEADERS``            ``headers``            1 000 000
``LETTERHEAD_MAX_DECOMPRESSED_BYTES`` ``decompressed_bytes`` 67 108 864
``LETTERHEAD_MAX_RECORDS``            ``records``            10 000 000
``LETTERHEAD_MAX_OUTPUT_BYTES``       ``output_bytes``       1 073 741 824
``LETTERHEAD_MAX_REPORTS``            ``reports``            10 000
``LETTERHEAD_MAX_ARROW_BATCH_BYTES``  ``arrow_batch_bytes``  67 108 864
====================================  =====================  ==============
"""

from __future__ import annotations

from typing import NamedTuple

from letterhead._names import check_name

__all__ = [
    "ARROW_BATCH_BYTES",
    "DECOMPRESSED_BYTES",
    "HEADERS",
    "MESSAGE_BYTES",
    "OUTPUT_BYTES",
    "RECORDS",
    "REPORTS",
    "Limits",
    "how_to_raise",
    "parse_limits",
]

MESSAGE_BYTES = (1 << 31) - 1
HEADERS = 1_000_000
DECOMPRESSED_BYTES = 64 << 20
RECORDS = 10_000_000
OUTPUT_BYTES = 1 << 30
REPORTS = 10_000
ARROW_BATCH_BYTES = 64 << 20
"""The default limits."""


class _Fields(NamedTuple):
    """Fields of :class:`Limits`; not a dataclass, which would take a third of the import time of the package."""

    message_bytes: int | None = None
    headers: int | None = None
    decompressed_bytes: int | None = None
    records: int | None = None
    output_bytes: int | None = None
    reports: int | None = None
    arrow_batch_bytes: int | None = None


class Limits(_Fields):
    """Limits on reading; ``None`` uses the process-wide limit.

    A value or a message over a limit is an error like any other, with the code ``limit_exceeded``, or
    ``decompressed_too_large`` for compressed data. No memory is allocated for it.

    Attributes
    ----------
    message_bytes : int, optional
        Bytes of one message, of one value that contains one or several batches, or of one value of a store.
    headers : int, optional
        Headers of a message.
    decompressed_bytes : int, optional
        Decompressed bytes of one value: all its batches, or compressed message sets, together.
    records : int, optional
        Records of one value that contains a batch, or several batches one after another.
    output_bytes : int, optional
        Bytes of keys, values and headers of all records of one value, after decompression.
    reports : int, optional
        Errors, losses or labels that one call lists; the last one then reports that more were dropped. In a column,
        each row keeps its first 64 (or fewer, if the limit is lower), and the limit counts the others. Values below 2
        count as 2.
    arrow_batch_bytes : int, optional
        Bytes of an Arrow batch that a reader returns, or Spark gets from a data source or a function of ``letterhead.spark``, unless one row has more.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.decode(bytes.fromhex("04026100026200"), "kafka", limits=lh.Limits(headers=1))
    Traceback (most recent call last):
        ...
    letterhead.errors.DecodeError: kafka: 2 headers declared, over the limit of 1: raise headers in limits= or LETTERHEAD_MAX_HEADERS (byte 0)
    """

    __slots__ = ()

    def __new__(
        cls,
        *,
        message_bytes: int | None = None,
        headers: int | None = None,
        decompressed_bytes: int | None = None,
        records: int | None = None,
        output_bytes: int | None = None,
        reports: int | None = None,
        arrow_batch_bytes: int | None = None,
    ) -> Limits:
        """Validate the limits."""
        self = super().__new__(
            cls, message_bytes, headers, decompressed_bytes, records, output_bytes, reports, arrow_batch_bytes
        )
        for name, limit in self._asdict().items():
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int):
                raise TypeError(f"{name} must be int, not {type(limit).__name__}")
            if not 0 <= limit <= _MAX_LIMIT:
                raise ValueError(f"{name} must be between 0 and {_MAX_LIMIT}, not {limit}")
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | None]]:
        return (), self._asdict()

    def filled(self) -> Limits:
        """Return these limits with each ``None`` replaced by the process-wide limit.

        It raises ValueError if an environment variable is not an integer.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Limits(headers=100).filled().decompressed_bytes
        67108864
        """
        from letterhead import _native

        return Limits(**dict(zip(self._fields, _native.limits(self), strict=True)))


_MAX_LIMIT = (1 << 63) - 1


def how_to_raise(limit: str) -> str:
    """Return instructions for raising a limit, for error messages."""
    return f"raise {limit} in limits= or LETTERHEAD_MAX_{limit.upper()}"


def parse_limits(text: str) -> Limits:
    """Parse limits written as text, as in ``headers=1000,records=5``.

    Raises
    ------
    ValueError
        If the text has another form, or a limit does not exist or is out of range.
    """
    limits: dict[str, int] = {}
    for part in text.split(","):
        name, equals, number = part.partition("=")
        if not equals or not number.strip().isdecimal():
            raise ValueError(f"limits must be NAME=NUMBER,..., as in headers=1000,records=5, not {text!r}")
        check_name("limit", name.strip(), Limits._fields)
        limits[name.strip()] = int(number)
    return Limits(**limits)
