"""Read, write and convert columns of messages: the functions of :mod:`letterhead` for Arrow arrays and streams.

A column is any object with ``__arrow_c_array__`` or ``__arrow_c_stream__``, for example of pyarrow, polars, DuckDB or
nanoarrow. It is read in place, with the GIL released. An array returns an array. A stream returns a stream, one chunk for
each chunk read; a chunk is split where a result would exceed the 2 GiB of an Arrow column.

A pyarrow column returns a pyarrow ``Array`` or ``ChunkedArray``. Any other column returns an object with the same two
methods, which every Arrow library accepts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from letterhead._arrow_types import ArrowArray as ArrowArray
from letterhead._arrow_types import ArrowStream as ArrowStream
from letterhead._arrow_types import Column as Column
from letterhead._arrow_types import ColumnT, is_arrow_data
from letterhead._arrow_types import OnError as OnError
from letterhead._header_edits import EditValues, GivenKey, HeaderEdit, Replacements
from letterhead._parse_options import ParseOptions as ParseOptions
from letterhead._table_batches import with_header_types
from letterhead.conventions.columns import amqp, rfc3339, schema_id, trace_links, traceparent
from letterhead.conventions.schema_group import SchemaDecoder as SchemaDecoder
from letterhead.conventions.schema_group import SchemaGroup
from letterhead.conventions.schemas import by_schema_id, decode_by_schema
from letterhead.fields import Columns
from letterhead.limits import Limits
from letterhead.operations import (
    Convert,
    Decode,
    DecodeOptions,
    Edit,
    EditReport,
    Encode,
    ExplodeBatches,
    Pack,
    Select,
    Validate,
    WriteOptions,
)
from letterhead.operations.options import decode_options
from letterhead.results import OnLoss, Types
from letterhead.where.conditions import Where

if TYPE_CHECKING:
    from letterhead.scan.report import Scan

__all__ = [
    "SchemaGroup",
    "amqp",
    "by_schema_id",
    "convert",
    "decode",
    "decode_by_schema",
    "edit",
    "encode",
    "messages",
    "pack",
    "rfc3339",
    "scan",
    "schema_id",
    "select",
    "trace_links",
    "traceparent",
    "validate",
]


def __dir__() -> list[str]:
    return __all__


def decode(
    column: ColumnT,
    format: str = "kafka",
    *,
    errors: OnError = "raise",
    text_keys: bool = False,
    where: Where | None = None,
    threads: int = 1,
    views: bool = False,
    **options: Unpack[ParseOptions],
) -> ColumnT:
    """Decode a column of messages.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view
        One message per row. Null stays null.
    format : str, default "kafka"
        Name of a headers format or a message format.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read. ``"raise"`` raises the first error. ``"null"`` sets the row, or the
        columns that failed, to null; in a batch, a message with broken headers keeps its other fields, and a message
        with a wrong checksum keeps none. ``"column"`` keeps the readable parts, and adds a last column with a list of
        the row's errors, which is null for a row without errors. A value that unreadable headers might override has an
        error ``incomplete``.
        The result is then always a struct; for a headers format it has the fields ``headers`` and ``error``.
    text_keys : bool, default False
        For formats with typed keys: return keys as text, and reject keys of other types.
    where : Condition or str, optional
        Return only messages for which a condition on headers and fields is true, written with :func:`letterhead.col`
        and operators, or as SQL text. ``row``, and the row of an error, count all messages. Of the other messages, only
        headers in the condition are copied. A missing header is null, and a null condition selects nothing. A value
        that does not fit its type, or a message with broken headers, is an error unless fields alone exclude the
        message: it is raised, set to null with ``errors="null"``, or returned with its error with ``errors="column"``.
    threads : int, default 1
        Number of threads, which affects neither the result, its chunks nor errors. One chunk of a stream per thread is
        read ahead. If chunks have similar sizes, each thread processes a whole chunk, and nothing is copied between
        threads. The rows of an array, and of chunks of different sizes, are divided among the threads, and the results
        are copied into one: ``decode``, ``encode`` and ``convert`` then gain less. Fewer than 2,048 rows are processed
        by one thread. Use it for large columns on idle processors; in a Spark task, processors are not idle.
    views : bool, default False
        Return text and bytes as ``string_view`` and ``binary_view``. Values of more than 12 bytes are not copied: they
        refer to the buffers of ``column``, which the result keeps in memory. Header keys and the error column are never
        views. Use it for long values in polars, DuckDB or DataFusion; Spark cannot read views, and for short values
        copying is faster.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Returns
    -------
    Arrow array or stream
        For a headers format ``list<element: struct<key: string, value: binary>>``. A format with types adds
        ``type: string`` before the value, integer keys are ``key: int32``, and typed keys are ``key_type: string, key:
        binary``. A typed value is its bits, most significant byte first. For a message format a struct of its fields.

    Raises
    ------
    DecodeError
        If a message is invalid and ``errors="raise"``; it names row, byte and header.
    TypeError
        If the column is not binary.
    ValueError
        If a format or option is unknown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> column = pa.array([bytes.fromhex("02066b65790261"), None, b""])
    >>> lha.decode(column, "kafka").to_pylist()
    [[{'key': 'key', 'value': b'a'}], None, []]

    Long values that are not copied:

    >>> lha.decode(column, "kafka", views=True).type
    ListType(list<element: struct<key: string, value: binary_view>>)
    """
    parsing = decode_options(decode, options, errors=errors, text_keys=text_keys)
    return Decode(format, parsing, where, views)(column, threads=threads)


def encode(
    column: ColumnT,
    format: str = "kafka",
    *,
    on_loss: OnLoss = "raise",
    types: Types | None = None,
    nulls: Literal["skip", "raise"] = "skip",
    canonical: bool = False,
    threads: int = 1,
) -> ColumnT:
    """Encode a column of messages.

    Parameters
    ----------
    column : Arrow array or stream
        For a headers format a list of structs, as :func:`decode` and Spark's Kafka source return it. For a message
        format a struct of the format's fields, in any order. Lists are read in place.
    format : str, default "kafka"
        Name of a headers format or a message format.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with data that the format cannot hold: raise; drop it, or write the nearest value; or do the same and
        report the losses.
    types, nulls, canonical
        As in :func:`letterhead.encode`.
    threads : int, default 1
        Number of threads, as in :func:`letterhead.arrow.decode`.

    Returns
    -------
    Arrow array or stream of binary
        One message per row; null for a null struct, and for a message that the format writes as null (a tombstone). With
        ``on_loss="report"`` a ``struct<data: binary, losses: list<struct<code, message, header, key, type, written>>>``, in
        which ``losses`` is null for a row without losses.

    Raises
    ------
    EncodeError
        If a message cannot be written, for example because a key or a timestamp is null.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    TypeError
        If the column has another type; the error names both types.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> headers = pa.array(
    ...     [[{"key": "key", "value": b"a"}], []],
    ...     pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    ... )
    >>> [message.hex() for message in lha.encode(headers, "kafka").to_pylist()]
    ['02066b65790261', '']
    """
    options = WriteOptions(on_loss=on_loss, types=types, nulls=nulls, canonical=canonical)
    return Encode(format, options)(with_header_types(column), threads=threads)


def convert(
    column: ColumnT,
    format: str,
    target: str,
    *,
    on_loss: OnLoss = "raise",
    types: Types | None = None,
    nulls: Literal["skip", "raise"] = "skip",
    canonical: bool = False,
    errors: OnError = "raise",
    threads: int = 1,
    **options: Unpack[ParseOptions],
) -> ColumnT:
    """Convert a column of messages from one format to another.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view
        One message per row. Null stays null.
    format, target : str
        Names of the formats to read and to write, each a headers format or a message format.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with data that the format cannot hold: raise; drop it, or write the nearest value; or do the same and
        report the losses.
    types, nulls, canonical
        As in :func:`letterhead.encode`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
        Messages that cannot be written are errors, too.
    threads : int, default 1
        Number of threads, as in :func:`letterhead.arrow.decode`.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Returns
    -------
    Arrow array or stream of binary
        One message per row; null for a message that the target writes as null. With ``on_loss="report"`` or
        ``errors="column"`` a struct of ``data`` and, as requested, ``losses`` and ``error``.

    Raises
    ------
    DecodeError, EncodeError, ConversionError
        If a message cannot be read, cannot be written, or would lose something; each names the row.
    TypeError, ValueError
        If the column has another type, a name is unknown, or ``types`` does not apply to the target.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> column = pa.array([lh.encode([("retry", lh.Int32(3))], "iggy"), None])
    >>> converted = lha.convert(column, "iggy", "kafka", types="text")
    >>> [message and lh.decode(message, "kafka") for message in converted.to_pylist()]
    [Headers([('retry', b'3')]), None]
    """
    parsing = decode_options(convert, options, errors=errors)
    writing = WriteOptions(on_loss=on_loss, types=types, nulls=nulls, canonical=canonical)
    return Convert(format, target, parsing, writing)(column, threads=threads)


def edit(
    column: ColumnT,
    format: str = "kafka",
    *,
    only: Sequence[GivenKey] | None = None,
    drop: Sequence[GivenKey] | None = None,
    rename: Mapping[Any, GivenKey] | None = None,
    replace: Replacements | None = None,
    set: EditValues | None = None,
    append: EditValues | None = None,
    ignore_case: bool = False,
    nulls: Literal["keep", "skip"] = "keep",
    errors: OnError = "raise",
    error_column: str = "error",
    strict_types: bool = False,
    limits: Limits | None = None,
    threads: int = 1,
) -> ColumnT:
    """Change some headers of a column of messages; all others keep their bytes, order, repeats and nulls.

    Use it to mask or remove confidential values before messages leave a system. A message without any of the headers is
    copied as it is.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view; pyarrow array of lists
        One message per row, or a list of its headers as :func:`decode` returns them. A null message stays null. A null list
        is a message without headers, and stays null unless a header is added.
    format : str, default "kafka"
        Name of a headers format or a message format.
    only : sequence of keys, optional
        Keys of the headers to keep; by default all.
    drop : sequence of keys, optional
        Keys of the headers to drop, including repeated ones.
    rename : mapping of key to key, optional
        New keys by old keys, applied at once, so that two keys can be swapped. Existing headers with a new key stay.
    replace : mapping of key to mask or function, optional
        New values for all headers with a key, at their positions: a mask, a constant or a function, as in
        :meth:`letterhead.Headers.edit`.
        A function receives the values of a chunk as a binary array, and returns as many strings or bytes. In a format with
        types, strings have the type string, and bytes keep the type of the value that they replace.
    set : mapping of key to value, optional
        Values of headers that occur once in the result, as in :meth:`letterhead.Headers.edit`.
        A string or binary array contains a value for each message.
    append : mapping of key to value, or sequence of pairs, optional
        Headers to append, as in :meth:`letterhead.Headers.edit`.
    ignore_case : bool, default False
        Whether ``only``, ``drop``, ``rename`` and ``replace`` ignore the case of the letters A to Z in keys.
    nulls : {"keep", "skip"}, default "keep"
        Whether null in an array becomes a header with a null value, or no header.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
    error_column : str, default "error"
        Name of the error column.
    strict_types : bool, default False
        Reject unnamed type codes, if the format allows them, and values whose type is not exactly the requested type.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.
    threads : int, default 1
        Number of threads, as in :func:`letterhead.arrow.decode`.

    Returns
    -------
    Arrow array or stream of binary
        One message per row. With ``errors="column"`` a struct of ``data`` and ``error``. Lists remain lists.

    Raises
    ------
    DecodeError, EncodeError
        If a message is invalid, or a new value cannot be written, and ``errors="raise"``.
    TypeError, ValueError
        If an argument is not valid, two of them contradict each other, or the format cannot have a key or value.

    Warns
    -----
    UnseenHeaderWarning
        If no message of the column had a header that ``drop`` or ``replace`` names.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> column = pa.array([lh.encode([("ssn", b"078-05-1120"), ("route", b"a")], "kafka"), None])
    >>> edited = lha.edit(column, "kafka", replace={"ssn": "last4"}, append={"via": "etl"})
    >>> lh.decode(edited[0].as_py(), "kafka")
    Headers([('ssn', b'****1120'), ('route', b'a'), ('via', b'etl')])
    """
    options = DecodeOptions(errors=errors, error_column=error_column, strict_types=strict_types, limits=limits)
    header_edit = HeaderEdit.of(
        only=only, drop=drop, rename=rename, replace=replace, set=set, append=append, ignore_case=ignore_case,
        is_column=is_arrow_data,
    )  # fmt: skip
    report = EditReport(header_edit, warns=True)
    return Edit(format, header_edit, options, nulls)(column, threads=threads, report=report)


def messages(
    column: ColumnT,
    format: str,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    errors: OnError = "raise",
    text_keys: bool = False,
    where: Where | None = None,
    threads: int = 1,
    **options: Unpack[ParseOptions],
) -> ColumnT:
    """Read a column of batches into one row per message.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view
        One batch per row. Null has no messages.
    format : str
        Name of a batch format.
    columns : sequence of str, optional
        Fields of the result, in order. ``row`` is the input row of a message, counted from 0 over the whole stream. The
        default is ``row`` and all fields of the format.
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
        If the framing of a batch is broken, one row represents the rest of it.
    text_keys : bool, default False
        For formats with typed keys: return keys as text, and reject keys of other types.
    where : Condition or str, optional
        Return only messages for which a condition is true, as in :func:`letterhead.arrow.decode`.
    threads : int, default 1
        Number of threads, as in :func:`letterhead.arrow.decode`.
        Threads share whole batches: an array of one batch is read by one thread.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Returns
    -------
    Arrow array or stream of struct
        One row per message.

    Raises
    ------
    DecodeError
        If a message is invalid and ``errors="raise"``; it names the input row and the message in it.
    TypeError, ValueError
        If the column has another type, or a name is unknown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> message = lh.encode(lh.Message(offset=7, value=b"v", headers={"retry": lh.Int32(3)}), "kip82-message")
    >>> column = pa.array([message + message, None, message])
    >>> lha.messages(column, "kip82-messages", columns=["row", "offset"], headers={"retry": "int32"}).to_pylist()[1:]
    [{'row': 0, 'offset': 7, 'retry': 3}, {'row': 2, 'offset': 7, 'retry': 3}]
    """
    parsing = decode_options(messages, options, errors=errors, text_keys=text_keys)
    return ExplodeBatches(format, columns, headers, parsing, where)(column, threads=threads)


def pack(
    table: Any,
    columns: Columns | Sequence[str] | None = None,
    format: str = "kafka",
    *,
    nulls: Literal["keep", "skip"] = "skip",
    truncate: bool = False,
) -> Any:
    """Make lists of headers from columns: the inverse of :func:`select`.

    Use it to send columns as headers: :func:`encode` writes the lists as bytes, and :mod:`letterhead.write` takes them.

    Parameters
    ----------
    table : pyarrow Table, RecordBatch or StructArray, or any Arrow stream of structs
        The columns, one message per row.
    columns : mapping of str to type or Field, or sequence of str, optional
        The type to write, or a :func:`letterhead.field` with another key, by column, in the order
        of the headers. ``array<type>`` writes each element as a header. The type ``"headers"`` copies a column of lists of
        headers. A sequence, and by default all columns, takes the types of the columns; times are ``timestamp_ms``.
    format : str, default "kafka"
        Name of the target format, which determines whether headers have types.
    nulls : {"keep", "skip"}, default "skip"
        Whether a null becomes a header with a null value, or no header.
    truncate : bool, default False
        Whether to cut off digits of times and decimals that a type cannot hold: times are rounded toward the past,
        decimals toward zero. By default, such a value is an error.

    Returns
    -------
    pyarrow.Array, pyarrow.ChunkedArray or Arrow stream
        Lists of headers, as :func:`decode` returns them for the format: chunks for a table. For any other stream a stream,
        which reads one chunk at a time.

    Raises
    ------
    EncodeError
        If its type cannot represent a value exactly (``out_of_range``, ``bad_text``), or the format does not support it.
    TypeError, ValueError
        If a type cannot be written from its column, or a name is unknown. Times without a time zone are rejected.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> table = pa.table({"tenant": ["acme", None], "retry": [1, 2], "route": [["a", "b"], []]})
    >>> headers = lha.pack(table, {"tenant": "string", "retry": "int32", "route": "array<string>"})
    >>> lha.select(headers, {"retry": "int32", "route": "array<string>"}).to_pylist()
    [{'retry': 1, 'route': ['a', 'b']}, {'retry': 2, 'route': []}]
    >>> [message.hex() for message in lha.encode(headers, "kafka").to_pylist()]
    ['080c74656e616e740861636d650a726574727908000000010a726f75746502610a726f7574650262', '020a72657472790800000002']
    """
    return Pack(format, columns, nulls, truncate)(table)


def select(
    column: ColumnT,
    headers: Columns,
    format: str = "kafka",
    *,
    errors: OnError = "raise",
    where: Where | None = None,
    threads: int = 1,
    views: bool = False,
    **options: Unpack[ParseOptions],
) -> ColumnT:
    """Read some headers into typed columns.

    Parameters
    ----------
    column : Arrow array or stream
        Bytes in ``format``, or a list of headers, distinguished by their Arrow type.
    headers : mapping of str to type or Field
        A type ``name[:be|le|text|json|connect|varlen|amqp]``, or a :func:`letterhead.field`, by output column.
    format : str, default "kafka"
        Name of the format; for a list it only determines how values are typed.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a row that cannot be read, as in :func:`letterhead.arrow.decode`.
        With ``"null"``, a value that does not fit its type is null; all columns are null if the structure is broken.
        ``"column"`` keeps the values before the break.
    where : Condition or str, optional
        Return only messages for which a condition is true, as in :func:`letterhead.arrow.decode`.
    threads : int, default 1
        Number of threads, as in :func:`letterhead.arrow.decode`.
    views : bool, default False
        Return text and bytes as views, as in :func:`letterhead.arrow.decode`.
    options : items of ParseOptions
        Other options by name: ``lenient``, ``strict_types``, ``limits`` and ``error_column``, see
        :class:`letterhead.ParseOptions`.

    Returns
    -------
    Arrow array or stream of struct
        One field per output column, in the order requested. An absent header is null; with ``repeat="all"`` an empty list.

    Raises
    ------
    DecodeError
        If ``errors="raise"``; it names row, byte, header, key and column.
    TypeError, ValueError
        If the column has another type, or a name is unknown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> column = pa.array([lh.encode([("retry", b"\\x00\\x00\\x00\\x02"), ("route", "a"), ("route", "b")], "kafka")])
    >>> lha.select(column, {"retry": "int32", "route": "array<string>", "tenant": "string"}).to_pylist()
    [{'retry': 2, 'route': ['a', 'b'], 'tenant': None}]
    """
    parsing = decode_options(select, options, errors=errors)
    return Select(format, headers, parsing, where, views)(with_header_types(column), threads=threads)


def scan(
    column: Column | Iterator[Column],
    format: str = "kafka",
    *,
    errors: Literal["raise", "null"] = "null",
    max_keys: int = 1000,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Scan:
    """Report which headers a column of messages has, and which types their values may have.

    Parameters
    ----------
    column : Arrow array or stream, or iterator of them
        Bytes in ``format``, or a list of headers, distinguished by their Arrow type. An iterator is read array by array,
        short ones are scanned together, up to 10,000 rows or 16 MiB, and all are released afterwards: memory is bounded by
        the size of the arrays and ``max_keys``. This includes streams that are iterators, such as those that the functions of this module return.
    format : str, default "kafka"
        Name of a headers format, a message format, or a batch format, whose messages are the rows.
    errors : {"raise", "null"}, default "null"
        What to do with invalid messages: raise the first error; or count them by error code, together with the headers that
        could be read.
    max_keys : int, default 1000
        Maximum number of keys with statistics. If there are more, those with the fewest headers are only counted.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.

    Returns
    -------
    Scan
        Counts, sizes, positions and examples of every key; the types its values may have, with the evidence for each; and
        code that selects them. Nothing is converted.

    Raises
    ------
    DecodeError
        If a message is invalid and ``errors="raise"``.
    TypeError, ValueError
        If the column has another type, or a name is unknown.
    ImportError
        If pyarrow or numpy is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> column = pa.array([lh.encode([("retry", n.to_bytes(4, "big"))], "kafka") for n in range(5)] + [b"\\x02"])
    >>> report = lha.scan(column, "kafka")
    >>> report["retry"].guesses[0][:4]
    ('int32', 'strong', 5, 5)
    >>> report.statistics.rows, report.statistics.bad_rows, report.statistics.errors
    (6, 1, {'count_too_large': 1})

    Arrays that are never in memory together:

    >>> arrays = (pa.array([lh.encode([("retry", n.to_bytes(4, "big"))], "kafka")]) for n in range(5))
    >>> lha.scan(arrays, "kafka")["retry"].statistics.rows
    5
    """
    from letterhead.scan.column import scan_column

    options = DecodeOptions(errors="column", lenient=lenient, strict_types=strict_types, limits=limits)
    return scan_column(column, format, errors=errors, max_keys=max_keys, options=options)


def validate(
    column: ColumnT,
    format: str = "kafka",
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
    threads: int = 1,
) -> ColumnT:
    """List all errors of each message of a column.

    Parameters
    ----------
    column : Arrow array or stream
        Bytes in ``format``, or a list of headers.
    format : str, default "kafka"
        Name of the format.
    lenient, strict_types, limits
        As in :func:`letterhead.decode`.
    threads : int, default 1
        Number of threads, as in :func:`letterhead.arrow.decode`.

    Returns
    -------
    Arrow array or stream of list
        Null for a valid message, else a list of ``struct<code, message, byte_offset, header, key, column>``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> errors = lha.validate(pa.array([b"", b"\\x01"]), "kafka").to_pylist()
    >>> errors[0], errors[1][0]["code"]
    (None, 'negative_count')
    """
    options = DecodeOptions(lenient=lenient, strict_types=strict_types, limits=limits)
    return Validate(format, options)(with_header_types(column), threads=threads)
