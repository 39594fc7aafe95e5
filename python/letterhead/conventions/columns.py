"""Parse columns of convention values into typed columns.

:func:`letterhead.arrow.select` returns the values of a header as a column. If a convention puts several fields, or a type
and a value, into one header value, a function of this module parses the column. :func:`trace_links` reads columns of
headers. All functions return pyarrow arrays, and all but :func:`amqp` need numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload

from letterhead import _native
from letterhead._arrow_types import ArrowArray, ArrowStream, Column, Dialect, OnError, check_column, to_pyarrow
from letterhead._names import check_name
from letterhead._optional_dependencies import install_hint
from letterhead.conventions.amqp import check_amqp_type
from letterhead.conventions.trace_links import check_names_of_baggage
from letterhead.limits import Limits
from letterhead.operations import DecodeOptions, Select
from letterhead.operations.remedies import NULL_ROWS, noting_remedy
from letterhead.types import ValueType

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["amqp", "rfc3339", "schema_id", "trace_links", "traceparent"]

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]


class _LinkOptions(TypedDict, total=False):
    """Options of :func:`trace_links`, for its overloads."""

    baggage: Sequence[str] | None
    errors: Literal["raise", "null"]
    limits: Limits | None


_INSTALL = "letterhead[arrow]"


@overload
def amqp(column: ArrowArray, type: ValueType, *, errors: OnError = "raise") -> pa.Array[Any]: ...
@overload
def amqp(column: ArrowStream, type: ValueType, *, errors: OnError = "raise") -> pa.ChunkedArray[Any]: ...
def amqp(column: Column, type: ValueType, *, errors: OnError = "raise") -> Any:
    """Decode a column of AMQP 1.0 primitives, which Azure Event Hubs and IoT Hub write into headers.

    Values are parsed by their type code: a value of another type than requested is an error, but any encoding of
    a type is accepted (``55 07`` and ``81 00 … 07`` are the same long). AMQP's null becomes null.

    Parameters
    ----------
    column : Arrow array or stream of binary or string
        The values; null stays null. To decode header values without selecting them first, use a type such as
        ``"int64:amqp"`` in :func:`letterhead.arrow.select`.
    type : str, pyspark.sql.types.DataType or pyarrow.DataType
        The type of the values: ``bool`` (AMQP's boolean), ``int8`` … ``int64`` (byte, short, int, long), ``uint8`` …
        ``uint64`` (ubyte, ushort, uint, ulong), ``float32``, ``float64``, ``char``, ``timestamp_ms`` (timestamp),
        ``uuid``, ``string`` (string and symbol), ``binary``. AMQP is big-endian, so types need no byte-order suffix.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with invalid values: raise an error with row, byte and reason; return null; or return a struct
        ``value, error``, in which an invalid value is null.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray
        The values: an array for an array, a chunked array for a stream.

    Raises
    ------
    DecodeError
        If ``errors="raise"``, with the codes of :func:`letterhead.conventions.amqp.decode` and ``wrong_type``.
    TypeError, ValueError
        If the column has another Arrow type, or a name is unknown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> values = pa.array([bytes.fromhex("5507"), bytes.fromhex("810000000000000008"), b"\\x40", None])
    >>> lha.amqp(values, "int64").to_pylist()
    [7, 8, None, None]
    >>> lha.amqp(values, "timestamp_ms")
    Traceback (most recent call last):
    letterhead.errors.DecodeError: amqp: the value is long and timestamp_ms was requested (byte 0, row 0)
    errors="column" returns all rows, and the errors of each in a column
    >>> lha.amqp(pa.array([b"\\xa1\\x02hi", b"plain"]), "string", errors="null").to_pylist()
    ['hi', None]
    """
    return ParseAmqp(type, errors)(column)


@dataclass(frozen=True)
class ParseAmqp:
    """Parse AMQP 1.0 primitives into a column of ``type``, with the Arrow types of ``dialect``; see :func:`amqp`."""

    type: InitVar[ValueType]
    errors: OnError = "raise"
    dialect: Dialect = "arrow"
    type_name: str = field(init=False)

    def __post_init__(self, type: ValueType) -> None:
        object.__setattr__(self, "type_name", check_amqp_type(type, sql=self.dialect == "spark"))

    def __call__(self, column: Column) -> Any:
        """Return the values as a pyarrow Array or ChunkedArray."""
        with install_hint("lha.amqp", _INSTALL):
            import pyarrow  # noqa: F401
        check_column(column)
        with noting_remedy(self.errors):
            return to_pyarrow(_native.amqp_column(column, self.type_name, errors=self.errors, dialect=self.dialect))


@overload
def traceparent(column: ArrowArray, *, errors: OnError = "raise") -> pa.Array[Any]: ...
@overload
def traceparent(column: ArrowStream, *, errors: OnError = "raise") -> pa.ChunkedArray[Any]: ...
def traceparent(column: Column, *, errors: OnError = "raise") -> Any:
    """Parse and validate a column of W3C ``traceparent`` values.

    Parameters
    ----------
    column, errors
        As in :func:`letterhead.arrow.rfc3339`.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray of struct
        The texts ``version``, ``trace_id``, ``parent_id`` and ``flags``, and the bool ``sampled``.

    Raises
    ------
    DecodeError
        If ``errors="raise"``: ``bad_text`` for another form, version ff, or an id of only zeros.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> parents = lha.traceparent(pa.array(["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]))
    >>> parents.field("trace_id")[0].as_py(), parents.field("sampled")[0].as_py()
    ('0af7651916cd43dd8448eb211c80319c', True)
    """
    with install_hint("lha.traceparent", _INSTALL):
        from letterhead.conventions.readers.column import run
        from letterhead.conventions.readers.traceparent import TraceparentReader

    return run(column, TraceparentReader(), errors)


@overload
def trace_links(column: ArrowArray, format: str = "kafka", **options: Unpack[_LinkOptions]) -> pa.Array[Any]: ...
@overload
def trace_links(
    column: ArrowStream, format: str = "kafka", **options: Unpack[_LinkOptions]
) -> pa.ChunkedArray[Any]: ...
def trace_links(
    column: Column,
    format: str = "kafka",
    *,
    baggage: Sequence[str] | None = None,
    errors: Literal["raise", "null"] = "raise",
    limits: Limits | None = None,
) -> Any:
    """Return the span link of each message, from its headers ``traceparent``, ``tracestate`` and ``baggage``.

    OpenTelemetry describes by links which traces a batch of messages continues. An absent or invalid ``traceparent``
    makes the link null and is never an error. The rules are described for :func:`letterhead.conventions.trace_link`.

    Parameters
    ----------
    column : Arrow array or stream of binary or lists of headers
        The headers, as bytes of ``format``, or as lists as :func:`letterhead.arrow.decode` returns them.
    format : str, default "kafka"
        Name of a format with text keys.
    baggage : sequence of str, optional
        Keys of the baggage to return as attributes; by default all. Baggage may be confidential, and attributes are
        exported.
    errors : {"raise", "null"}, default "raise"
        What to do with a message whose headers are damaged: raise an error, or return null. An invalid ``traceparent``
        is always null.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray of struct
        ``trace_id`` and ``span_id``, hexadecimal text; ``trace_flags``, an int32; ``trace_state``, text, null if it is
        absent or invalid; ``attributes``, a list of ``key`` and ``value``.

    Raises
    ------
    DecodeError
        If ``errors="raise"`` and the headers of a message are damaged.
    ValueError
        If the format is unknown or has integer keys.

    Examples
    --------
    >>> import letterhead as lh
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> headers = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("baggage", "tenant=acme")]
    >>> column = pa.array([lh.encode(headers, "kafka"), lh.encode([("traceparent", "none")], "kafka")])
    >>> links = lha.trace_links(column)
    >>> links.field("span_id").to_pylist(), links.field("attributes").to_pylist()
    (['b7ad6b7169203331', None], [[{'key': 'tenant', 'value': 'acme'}], None])
    """
    check_names_of_baggage(baggage)
    check_name("errors value", errors, ("raise", "null"))
    with install_hint("lha.trace_links", _INSTALL):
        import pyarrow as pa

        from letterhead.conventions.readers.trace_links import LINK, columns_of_links, read_links

    select = Select(format, columns_of_links(format), DecodeOptions(errors="column", limits=limits))
    selected = to_pyarrow(select.apply(column))
    links, row = [], 0
    with noting_remedy(errors, NULL_ROWS):
        for chunk in [selected] if isinstance(selected, pa.Array) else selected.chunks:
            links.append(read_links(chunk, format, baggage, errors, row))
            row += len(chunk)
    if isinstance(selected, pa.Array):
        return links[0]
    return pa.chunked_array(links, LINK)


@overload
def schema_id(column: ArrowArray, *, errors: OnError = "raise") -> pa.Array[Any]: ...
@overload
def schema_id(column: ArrowStream, *, errors: OnError = "raise") -> pa.ChunkedArray[Any]: ...
def schema_id(column: Column, *, errors: OnError = "raise") -> Any:
    """Parse a column of Confluent's schema ids, from ``__key_schema_id`` or ``__value_schema_id``.

    Parameters
    ----------
    column, errors
        As in :func:`letterhead.arrow.rfc3339`.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray of struct
        ``id: int32`` (after magic byte 0) or ``guid: string`` (after 1), with null in the other, and
        ``message_indexes: list<int32>``, the path to the message type if Protobuf's serializer wrote one.

    Raises
    ------
    DecodeError
        If ``errors="raise"``: ``bad_magic``, ``truncated``, ``out_of_range`` (an id below 1), ``trailing_bytes``, and the codes of
        varints.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> values = pa.array([bytes.fromhex("000000002a"), bytes.fromhex("01 89791762 2336 4186 9674 299b90a802e2")])
    >>> for row in lha.schema_id(values).to_pylist():
    ...     print(row)
    {'id': 42, 'guid': None, 'message_indexes': None}
    {'id': None, 'guid': '89791762-2336-4186-9674-299b90a802e2', 'message_indexes': None}
    """
    with install_hint("lha.schema_id", _INSTALL):
        from letterhead.conventions.readers.column import run
        from letterhead.conventions.readers.schema_id import SchemaIdReader

    return run(column, SchemaIdReader(), errors)


@overload
def rfc3339(column: ArrowArray, *, unit: Unit = "ns", errors: OnError = "raise") -> pa.Array[Any]: ...
@overload
def rfc3339(column: ArrowStream, *, unit: Unit = "ns", errors: OnError = "raise") -> pa.ChunkedArray[Any]: ...
def rfc3339(column: Column, *, unit: Unit = "ns", errors: OnError = "raise") -> Any:
    """Parse a column of RFC 3339 times, such as ``ce_time`` of CloudEvents.

    Parameters
    ----------
    column : Arrow array or stream of binary or string
        The values; null stays null.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with invalid values: raise an error with row, byte and reason; return null; or return a struct
        ``value, error``, in which an invalid value is null.
    unit : {"s", "ms", "us", "ns"}, default "ns"
        Unit of the result. More precise digits are truncated. Spark's timestamps are ``us``.

    Returns
    -------
    pyarrow.Array or pyarrow.ChunkedArray of timestamp
        The times, in UTC.

    Raises
    ------
    DecodeError
        If ``errors="raise"``: ``bad_text``, also for a leap second; ``out_of_range``, for nanoseconds before 1677 and
        after 2262.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> lha.rfc3339(pa.array(["2026-01-31T09:00:00.5+01:00"]), unit="ms")[0].as_py().isoformat()
    '2026-01-31T08:00:00.500000+00:00'
    """
    check_name("unit", unit, ("s", "ms", "us", "ns"))
    with install_hint("lha.rfc3339", _INSTALL):
        from letterhead.conventions.readers.column import run
        from letterhead.conventions.readers.rfc3339 import Rfc3339Reader

    return run(column, Rfc3339Reader(unit), errors)
