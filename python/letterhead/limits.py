"""Limits on what is read, so that untrusted bytes cannot take any amount of memory.

A limit that a call does not set is that of the process: the default, or the value of one of these environment variables.
They are read once, by the first call that reads.

====================================  =====================  ==============
variable                              limit                  default
====================================  =====================  ==============
``LETTERHEAD_MAX_MESSAGE_BYTES``      ``message_bytes``      2 147 483 647
``LETTERHEAD_MAX_HEADERS``            ``headers``            1 000 000
``LETTERHEAD_MAX_DECOMPRESSED_BYTES`` ``decompressed_bytes`` 67 108 864
``LETTERHEAD_MAX_RECORDS``            ``records``            10 000 000
``LETTERHEAD_MAX_OUTPUT_BYTES``       ``output_bytes``       1 073 741 824
====================================  =====================  ==============
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MESSAGE_BYTES", "DECOMPRESSED_BYTES", "HEADERS", "OUTPUT_BYTES", "RECORDS", "Limits", "how_to_raise"]

MESSAGE_BYTES = (1 << 31) - 1
HEADERS = 1_000_000
DECOMPRESSED_BYTES = 64 << 20
RECORDS = 10_000_000
OUTPUT_BYTES = 1 << 30
"""The defaults of a process whose environment sets no limit."""


class _Given(NamedTuple):
    """What a call is given; a dataclass would be a third of the time that the package takes to import."""

    message_bytes: int | None = None
    headers: int | None = None
    decompressed_bytes: int | None = None
    records: int | None = None
    output_bytes: int | None = None


class Limits(_Given):
    """The most that is read; ``None`` is the limit of the process.

    A value or a message over a limit is an error like any other. Its code is ``limit_exceeded``, or
    ``decompressed_too_large`` for compressed data. No memory is allocated for what is over a limit.

    Attributes
    ----------
    message_bytes : int, optional
        Bytes of one message, of one value that holds a batch or several, or of one value of a store.
    headers : int, optional
        Headers of a message.
    decompressed_bytes : int, optional
        Bytes that the records of one batch, or one compressed set, become.
    records : int, optional
        Records of one value that holds many: a batch, or several batches one after another.
    output_bytes : int, optional
        Bytes of keys, values and headers of all records of one value, after decompression.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.decode(bytes.fromhex("04026100026200"), "kafka", limits=lh.Limits(headers=1))
    Traceback (most recent call last):
        ...
    letterhead.errors.DecodeError: kafka: the block announces 2 headers, over the limit of 1: raise headers in limits= or LETTERHEAD_MAX_HEADERS (byte 0)
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
    ) -> Limits:
        """Check the limits."""
        made = super().__new__(cls, message_bytes, headers, decompressed_bytes, records, output_bytes)
        for name, given in made._asdict().items():
            if given is None:
                continue
            if isinstance(given, bool) or not isinstance(given, int):
                raise TypeError(f"{name} must be int, not {type(given).__name__}")
            if not 0 <= given <= _MOST:
                raise ValueError(f"{name} is {given}, and a limit is a number from 0 to {_MOST}")
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, int | None]]:
        return (), self._asdict()

    def filled(self) -> Limits:
        """Return the limits that apply to a call with these limits.

        Returns
        -------
        Limits
            The same, with the limit of this process in the place of each ``None``.

        Raises
        ------
        ValueError
            If an environment variable is not a whole number.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Limits(headers=100).filled().decompressed_bytes
        67108864
        """
        from letterhead import _native

        return Limits(**dict(zip(self._fields, _native.limits(self), strict=True)))


_MOST = (1 << 63) - 1


def how_to_raise(limit: str) -> str:
    """Say what to do about a limit that is too low."""
    return f"raise {limit} in limits= or LETTERHEAD_MAX_{limit.upper()}"
