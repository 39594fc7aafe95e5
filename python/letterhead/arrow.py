"""The verbs for columns: any Arrow array or stream in, pyarrow out where pyarrow went in.

A column is any object with ``__arrow_c_array__`` or ``__arrow_c_stream__``: of pyarrow, polars, DuckDB, nanoarrow. It is
read in place, without a copy, and the GIL is released while it is. An array gives an array; a stream gives a stream,
made chunk by chunk and cut where a result would pass the 2 GiB of an Arrow column.

What comes back is pyarrow where pyarrow was given (``Array`` for ``Array``, ``ChunkedArray`` for ``ChunkedArray``);
otherwise an object with the same methods, which every Arrow library takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from letterhead import _native
from letterhead._arrow_types import ArrowArray as ArrowArray
from letterhead._arrow_types import ArrowStream as ArrowStream
from letterhead._arrow_types import Column as Column
from letterhead._arrow_types import OnError as OnError
from letterhead._arrow_types import to_pyarrow
from letterhead.conventions.columns import amqp, rfc3339, schema_id, traceparent
from letterhead.fields import Columns, check_distinct, normalise
from letterhead.limits import Limits
from letterhead.results import Types, plain_types

if TYPE_CHECKING:
    from letterhead.scan.report import Scan

__all__ = [
    "amqp",
    "convert",
    "decode",
    "encode",
    "messages",
    "rfc3339",
    "scan",
    "schema_id",
    "select",
    "traceparent",
    "validate",
]


def decode(
    column: Column,
    format: str,
    *,
    errors: OnError = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
    threads: int = 1,
    views: bool = False,
) -> Any:
    """Read a column of messages.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view
        One message a cell. A null cell stays null.
    format : str
        Name of the format.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a cell that does not decode. ``"raise"`` raises the first one; ``"null"`` gives a null cell;
        ``"column"`` gives a struct whose last field ``error`` lists what is wrong with the cell, null where it is whole.
        What could be read stays, only the fields that failed are null.
    error_column : str, default "error"
        Name of that last field.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    text_keys : bool, default False
        Of a format with typed keys: give text, and refuse keys of another type.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.
    threads : int, default 1
        How many threads read the rows of an array, or of each chunk of a stream. The result and the error are those of
        one thread.
    views : bool, default False
        Return text and bytes as ``string_view`` and ``binary_view``. Values of more than 12 bytes refer to the buffers of
        ``column``, which the result keeps in memory, and are not copied. The keys of headers and the ``error`` column
        are not views. For long values that go to polars, DuckDB or DataFusion: Spark does not read views, and short
        values are read faster without.

    Returns
    -------
    Arrow array or stream
        Of a block: ``list<element: struct<key: string, value: binary>>``, with ``type: string`` before the value where
        the format has types, ``key: int32`` where its keys are integers, and ``key_type: string, key: binary`` where they
        are typed. A value with a type is its bits, most significant byte first. Of a message format: a struct of its fields. With
        ``errors="column"``: always a struct, of a block with the field ``headers``.

    Raises
    ------
    DecodeError
        If a cell is bad and ``errors="raise"``; it names row, byte and header.
    TypeError
        If the column is not of bytes.
    ValueError
        If there is no such format or option.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> cells = pa.array([bytes.fromhex("02066b65790261"), None, b""])
    >>> lha.decode(cells, "kafka").to_pylist()
    [[{'key': 'key', 'value': b'a'}], None, []]

    Long values that are not copied:

    >>> lha.decode(cells, "kafka", views=True).type
    ListType(list<element: struct<key: string, value: binary_view>>)
    """
    made = _native.apply(
        "decode",
        column,
        format,
        errors=errors,
        error_column=error_column,
        lenient=lenient,
        strict_types=strict_types,
        text_keys=text_keys,
        limits=limits,
        threads=threads,
        views=views,
    )
    return _back(column, made)


def encode(
    column: Column,
    format: str,
    *,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    threads: int = 1,
) -> Any:
    """Write a column of messages.

    Parameters
    ----------
    column : Arrow array or stream
        Of a block: a list of structs, as :func:`decode` gives and as Spark's Kafka source has. Of a message format: a struct
        of the format's fields, in any order. The list is read in place.
    format : str
        Name of the format.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the format cannot carry: refuse it; write what is nearest or leave it out; or do that and
        say so in a second field: the result is then ``struct<data: binary, losses: list<struct<code, message, header,
        key, type, written>>>``, with null losses where there are none.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        How a typed value is written where the format has no types: big-endian, little-endian, or spelt out. Where it
        has types: what values without one are, as in :func:`letterhead.convert`.
    null_headers : {"empty", "raise"}, default "empty"
        Whether a null list is written as no headers or refused.
    canonical : bool, default False
        For ``iggy``: sort the headers as Iggy's own map does.
    threads : int, default 1
        How many threads read the rows of an array, or of each chunk of a stream. The result and the error are those of
        one thread.

    Returns
    -------
    Arrow array or stream of binary
        One message a cell; null for a null struct and where the format says so by having no cell (a tombstone).

    Raises
    ------
    EncodeError
        If a message cannot be written: a null key, a null timestamp.
    ConversionError
        If something would be lost and ``on_loss="raise"``.
    TypeError
        If the column does not fit; the error names both types.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> headers = pa.array(
    ...     [[{"key": "key", "value": b"a"}], []],
    ...     pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    ... )
    >>> [cell.hex() for cell in lha.encode(headers, "kafka").to_pylist()]
    ['02066b65790261', '']
    """
    made = _native.apply(
        "encode",
        column,
        format,
        on_loss=on_loss,
        types=plain_types(types),
        null_headers=null_headers,
        canonical=canonical,
        threads=threads,
    )
    return _back(column, made)


def convert(
    column: Column,
    format: str,
    *,
    target: str,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    types: Types | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
    canonical: bool = False,
    errors: OnError = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
    threads: int = 1,
) -> Any:
    """Turn a column of messages of one format into bytes of another.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view
        One message a cell. A null cell stays null.
    format : str
        Name of its format, a block or a message format.
    target : str
        Name of the format to write, a block or a message format.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the target cannot carry: refuse it; write what is nearest or leave it out; or do that and
        say so in a field ``losses``.
    types : {"be", "le", "text", "binary"} or mapping of key to type, optional
        What becomes of types, as in :func:`letterhead.convert`.
    null_headers : {"empty", "raise"}, default "empty"
        Whether headers that are null are written as none or refused.
    canonical : bool, default False
        For ``iggy``: sort the headers as Iggy's own map does.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a cell that cannot be read or written: the first one is raised, it is null, or it is null and a
        last field ``error`` says why.
    error_column : str, default "error"
        Name of that last field.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the source format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.
    threads : int, default 1
        How many threads read the rows of an array, or of each chunk of a stream. The result and the error are those of
        one thread.

    Returns
    -------
    Arrow array or stream of binary
        One message a cell; null where the target has no cell for it. With ``on_loss="report"`` or ``errors="column"`` a
        struct: ``data``, then ``losses``, then ``error``, those that were asked for.

    Raises
    ------
    DecodeError, EncodeError, ConversionError
        If a cell cannot be read, cannot be written, or would lose something; each names the row.
    TypeError, ValueError
        If the column does not fit, a name is misspelt, or ``types`` makes no sense for the target.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> cells = pa.array([lh.encode([("retry", lh.Int32(3))], "iggy"), None])
    >>> made = lha.convert(cells, "iggy", target="kafka", types="text")
    >>> [cell and lh.decode(cell, "kafka") for cell in made.to_pylist()]
    [Headers([('retry', b'3')]), None]
    """
    made = _native.apply(
        "convert",
        column,
        format,
        target=target,
        on_loss=on_loss,
        types=plain_types(types),
        null_headers=null_headers,
        canonical=canonical,
        errors=errors,
        error_column=error_column,
        lenient=lenient,
        strict_types=strict_types,
        limits=limits,
        threads=threads,
    )
    return _back(column, made)


def messages(
    column: Column,
    format: str,
    *,
    columns: Sequence[str] | None = None,
    headers: Columns | None = None,
    errors: OnError = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    text_keys: bool = False,
    limits: Limits | None = None,
    _dialect: Literal["arrow", "spark"] = "arrow",
) -> Any:
    """Read a column of batches into a row a message.

    Parameters
    ----------
    column : Arrow array or stream of binary, large_binary or binary_view
        One batch a cell. A null cell has no messages.
    format : str
        Name of the format, a batch.
    columns : sequence of str, optional
        Fields of the result, in order; ``row`` is the cell that a message came from, counted from 0 over the whole
        stream. By default ``row`` and all fields of the format.
    headers : mapping of str to str or Field, optional
        Headers as typed columns, as in :func:`select`; they come after the fields.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a message that is not whole. ``"null"``: its fields are null, or the columns that failed.
        ``"column"``: what was read stays, and a last field ``error`` says what is wrong, null where the message is whole.
        Where the framing breaks, one row stands for the rest of the cell.
    error_column : str, default "error"
        Name of that last field.
    lenient : bool, default False
        Let a message go that is cut off at the end of a cell, as in what a fetch gives.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    text_keys : bool, default False
        Of a format with typed keys: give text, and refuse keys of another type.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Arrow array or stream of struct
        One row a message.

    Raises
    ------
    DecodeError
        If ``errors="raise"``; it names the row of the cell and the message in it.
    TypeError, ValueError
        If the column does not fit, or a name is misspelt.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> one = lh.encode(lh.Message(offset=7, value=b"v", headers={"retry": lh.Int32(3)}), "kip82-message")
    >>> cells = pa.array([one + one, None, one])
    >>> lha.messages(cells, "kip82-messages", columns=["row", "offset"], headers={"retry": "int32"}).to_pylist()[1:]
    [{'row': 0, 'offset': 7, 'retry': 3}, {'row': 2, 'offset': 7, 'retry': 3}]
    """
    if isinstance(columns, str):
        raise TypeError("columns must be a list of column names, not str")
    fields = None if columns is None else list(columns)
    wanted = [] if headers is None else normalise(headers, sql=_dialect == "spark")
    # A field that is asked for twice is given twice.
    check_distinct([*dict.fromkeys(fields or ()), *(name for name, *_ in wanted)], errors, error_column)
    made = _native.apply(
        "messages",
        column,
        format,
        fields=fields,
        columns=wanted,
        errors=errors,
        error_column=error_column,
        lenient=lenient,
        strict_types=strict_types,
        text_keys=text_keys,
        dialect=_dialect,
        limits=limits,
    )
    return _back(column, made)


def select(
    column: Column,
    format: str,
    columns: Columns,
    *,
    errors: OnError = "raise",
    error_column: str = "error",
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
    threads: int = 1,
    views: bool = False,
    _dialect: Literal["arrow", "spark"] = "arrow",
) -> Any:
    """Read some headers into typed columns.

    Parameters
    ----------
    column : Arrow array or stream
        Bytes in ``format``, or a list of headers, told apart by their Arrow type.
    format : str
        Name of the format; of a list, it only says how values are typed.
    columns : mapping of str to str or Field
        Output column to a type ``name[:be|le|text|amqp]``, or to what :func:`letterhead.field` or :func:`letterhead.All`
        gives.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a value that is not of its type, and of a message that does not decode. ``"null"``: the columns
        that failed are null; all of them where the structure is broken. ``"column"``: the same, but what was read
        before a break stays, and a last field ``error`` says what is wrong, null where the row is whole.
    error_column : str, default "error"
        Name of that last field.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.
    threads : int, default 1
        How many threads read the rows of an array, or of each chunk of a stream. The result and the error are those of
        one thread.
    views : bool, default False
        Return text and bytes as ``string_view`` and ``binary_view``. Values of more than 12 bytes refer to the buffers of
        ``column``, which the result keeps in memory, and are not copied. The keys of headers and the ``error`` column
        are not views. For long values that go to polars, DuckDB or DataFusion: Spark does not read views, and short
        values are read faster without.

    Returns
    -------
    Arrow array or stream of struct
        One field an output column, in the order asked for. A header that is absent is null; of ``repeat="all"``, an
        empty list.

    Raises
    ------
    DecodeError
        If ``errors="raise"``; it names row, byte, header, key and column.
    TypeError, ValueError
        If the column does not fit, or a name is misspelt.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> cells = pa.array([lh.encode([("retry", b"\\x00\\x00\\x00\\x02"), ("route", "a"), ("route", "b")], "kafka")])
    >>> lha.select(cells, "kafka", {"retry": "int32", "route": "array<string>", "tenant": "string"}).to_pylist()
    [{'retry': 2, 'route': ['a', 'b'], 'tenant': None}]
    """
    wanted = normalise(columns, sql=_dialect == "spark")
    check_distinct([name for name, *_ in wanted], errors, error_column)
    made = _native.apply(
        "select",
        column,
        format,
        columns=wanted,
        errors=errors,
        error_column=error_column,
        lenient=lenient,
        strict_types=strict_types,
        dialect=_dialect,
        limits=limits,
        threads=threads,
        views=views,
    )
    return _back(column, made)


def scan(
    column: Column | Iterator[Column],
    format: str,
    *,
    errors: Literal["count", "raise"] = "count",
    max_keys: int = 1000,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
) -> Scan:
    """Find out what headers a column of messages carries.

    Parameters
    ----------
    column : Arrow array or stream, or iterator of them
        Bytes in ``format``, or a list of headers, told apart by their Arrow type. An iterator is read array by array, and
        an array that has been read is let go: what is kept is bounded by the arrays' size and ``max_keys``. Streams that
        are iterators, such as what the verbs here make of a stream outside pyarrow, are read so, too.
    format : str
        Name of the format: a block, a message format, or a batch, of which every message is a row.
    errors : {"count", "raise"}, default "count"
        What becomes of a message in which something is wrong: it is counted, by what that is, and the headers that
        could be read count as well; or the first one is raised.
    max_keys : int, default 1000
        Of how many keys statistics are kept. Of more, the ones with the most headers stay, and the others are counted.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.

    Returns
    -------
    Scan
        Counts, sizes, positions and examples of every key; what its values may be, with what speaks for it; and code
        that selects them. Nothing is converted: a guess is shown, and never applied.

    Raises
    ------
    DecodeError
        If a message is bad and ``errors="raise"``.
    TypeError, ValueError
        If the column does not fit, or a name is misspelt.
    ImportError
        If there is no pyarrow or no numpy.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import arrow as lha
    >>> cells = pa.array([lh.encode([("retry", n.to_bytes(4, "big"))], "kafka") for n in range(5)] + [b"\\x02"])
    >>> found = lha.scan(cells, "kafka")
    >>> found["retry"].guesses[0][:4]
    ('int32', 'strong', 5, 5)
    >>> found.statistics.rows, found.statistics.bad_rows, found.statistics.faults
    (6, 1, {'count_too_large': 1})

    Arrays that are never in memory together:

    >>> arrays = (pa.array([lh.encode([("retry", n.to_bytes(4, "big"))], "kafka")]) for n in range(5))
    >>> lha.scan(arrays, "kafka")["retry"].statistics.rows
    5
    """
    from letterhead.scan.column import scan_column

    return scan_column(
        column, format, errors=errors, max_keys=max_keys, lenient=lenient, strict_types=strict_types, limits=limits
    )


def validate(
    column: Column,
    format: str,
    *,
    lenient: bool = False,
    strict_types: bool = False,
    limits: Limits | None = None,
    threads: int = 1,
) -> Any:
    """Say what is wrong with each message of a column.

    Parameters
    ----------
    column : Arrow array or stream
        Bytes in ``format``, or a list of headers.
    format : str
        Name of the format.
    lenient : bool, default False
        Accept what Kafka's Java deserializers accept.
    strict_types : bool, default False
        Refuse type codes without a name where the format lets them pass.
    limits : Limits, optional
        The most to read; what is not said is as the process has it, see :class:`letterhead.Limits`.
    threads : int, default 1
        How many threads read the rows of an array, or of each chunk of a stream. The result and the error are those of
        one thread.

    Returns
    -------
    Arrow array or stream of list
        Null where the message is whole, else ``struct<code, message, byte_offset, header, key, column>`` for everything found.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> found = lha.validate(pa.array([b"", b"\\x01"]), "kafka").to_pylist()
    >>> found[0], found[1][0]["code"]
    (None, 'negative_count')
    """
    made = _native.apply(
        "validate", column, format, lenient=lenient, strict_types=strict_types, limits=limits, threads=threads
    )
    return _back(column, made)


def _back(given: object, made: _native.Column | _native.Stream) -> Any:
    """Hand pyarrow back to whom pyarrow was given by; anything else as it is."""
    return to_pyarrow(made) if type(given).__module__.partition(".")[0] == "pyarrow" else made
