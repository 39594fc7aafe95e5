"""Limits that whoever reads can set, so that the bytes of a stranger cannot ask for any amount of memory.

What is not said in a call is as the process has it: the defaults, or what these variables of the environment say. They
are read once, by the first call that reads.

====================================  =====================  ==============
variable                              limit                  default
====================================  =====================  ==============
``LETTERHEAD_MAX_CELL_BYTES``         ``cell_bytes``         2 147 483 647
``LETTERHEAD_MAX_HEADERS``            ``headers``            1 000 000
``LETTERHEAD_MAX_DECOMPRESSED_BYTES`` ``decompressed_bytes`` 67 108 864
====================================  =====================  ==============
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CELL_BYTES", "DECOMPRESSED_BYTES", "HEADERS", "Limits", "how_to_raise"]

CELL_BYTES = (1 << 31) - 1
HEADERS = 1_000_000
DECOMPRESSED_BYTES = 64 << 20
"""The defaults of a process whose environment says nothing."""


class _Given(NamedTuple):
    """What a call is given; a dataclass would be a third of the time that the package takes to import."""

    cell_bytes: int | None = None
    headers: int | None = None
    decompressed_bytes: int | None = None


class Limits(_Given):
    """The most that is read; ``None`` is what the process has.

    A cell or a message over a limit is an error like any other: of code ``limit_exceeded``, or of what is compressed
    ``decompressed_too_large``, for which nothing was set aside.

    Attributes
    ----------
    cell_bytes : int, optional
        Bytes of a cell, that is of one message, of one batch where a cell holds many, or of one value of a store.
    headers : int, optional
        Headers of a message.
    decompressed_bytes : int, optional
        Bytes that the records of one batch, or one compressed set, become.

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
        cls, *, cell_bytes: int | None = None, headers: int | None = None, decompressed_bytes: int | None = None
    ) -> Limits:
        """Check what is given."""
        made = super().__new__(cls, cell_bytes, headers, decompressed_bytes)
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
        """Say what a call is held to that is given these limits.

        Returns
        -------
        Limits
            The same, with those of this process in the place of each ``None``.

        Raises
        ------
        ValueError
            If a variable of the environment is no whole number.

        Examples
        --------
        >>> import letterhead as lh
        >>> lh.Limits(headers=100).filled()
        Limits(cell_bytes=2147483647, headers=100, decompressed_bytes=67108864)
        """
        from letterhead import _native

        cell_bytes, headers, decompressed_bytes = _native.limits(self)
        return Limits(cell_bytes=cell_bytes, headers=headers, decompressed_bytes=decompressed_bytes)


_MOST = (1 << 63) - 1


def how_to_raise(limit: str) -> str:
    """Say what to do about a limit that is too low."""
    return f"raise {limit} in limits= or LETTERHEAD_MAX_{limit.upper()}"
