"""Less common options of parsing, which functions of columns accept by name: :class:`ParseOptions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from letterhead.limits import Limits

__all__ = ["MessageOptions", "ParseOptions"]


class MessageOptions(TypedDict, total=False):
    """Options for parsing one message."""

    lenient: bool
    strict_types: bool
    limits: Limits | None


class ParseOptions(MessageOptions, total=False):
    """Options of how messages are parsed, and how much of them.

    Functions of :mod:`letterhead.arrow` and :mod:`letterhead.spark` with ``**options`` accept each by name; other
    functions have some of them as parameters.

    Attributes
    ----------
    lenient : bool, default False
        Accept everything that Kafka's Java deserializers accept, even if data is lost. In a batch, this also ignores a
        truncated message at the end, as brokers return in a fetch.
    strict_types : bool, default False
        Reject unnamed type codes, if the format allows them, and values whose type is not exactly the requested type. By
        default, a type reads all values that it can represent without loss; ``int64`` also reads ``uint8``.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.
    error_column : str, default "error"
        Name of the error column with ``errors="column"``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> column = pa.array([b"", b"\\x01"])
    >>> lha.select(column, {"retry": "int32"}, errors="column", error_column="damage").type.names
    ['retry', 'damage']
    """

    error_column: str
