"""What every byte of one message is, and everything that is wrong with it."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from letterhead.errors import Fault
from letterhead.given import Data, bytes_of
from letterhead.limits import Limits

__all__ = ["Inspection", "Label", "inspect"]


def inspect(
    data: Data, format: str, *, lenient: bool = False, strict_kinds: bool = False, limits: Limits | None = None
) -> Inspection:
    """Say what every byte of one message is.

    Parameters
    ----------
    data : bytes-like
        The bytes of a block or an envelope, good or bad.
    format : str
        Name of the format.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_kinds : bool, default False
        Refuse kind codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    dict
        ``labels``, a list of :class:`Label` in which every byte is exactly once, and ``faults``, a list of
        :class:`~letterhead.errors.Fault`.

    Raises
    ------
    ValueError
        If there is no such format.

    Examples
    --------
    >>> import letterhead as lh
    >>> data = bytes.fromhex("020c74656e616e740861636d65")
    >>> seen = lh.inspect(data, "kafka")
    >>> b"".join(data[label.start : label.end] for label in seen["labels"]) == data, seen["faults"]
    (True, [])
    """
    # Loaded by the first call, as by that of the other verbs.
    from letterhead import _native

    seen = _native.inspect(bytes_of(data), format, lenient=lenient, strict_kinds=strict_kinds, limits=limits)
    return {
        "labels": [Label(*label) for label in seen["labels"]],
        "faults": [Fault(*fault) for fault in seen["faults"]],
    }


class Label(NamedTuple):
    """What some bytes of a message are.

    Attributes
    ----------
    start, end : int
        The bytes, from the first to the one after the last.
    field : str
        What they are.
    header : int or None
        The header they belong to, counted from 0.
    text : str
        What they say.
    """

    start: int
    end: int
    field: str
    header: int | None
    text: str


class Inspection(TypedDict):
    """What :func:`inspect` gives: every byte in exactly one label, and everything that is wrong."""

    labels: list[Label]
    faults: list[Fault]
