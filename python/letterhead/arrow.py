"""The verbs for columns: any Arrow array or stream in, pyarrow out where pyarrow went in.

A column is any object with ``__arrow_c_array__`` or ``__arrow_c_stream__``: of pyarrow, polars, DuckDB, nanoarrow. It is
read in place, without a copy, and the GIL is released while it is. An array gives an array; a stream gives a stream,
made chunk by chunk and cut where a result would pass the 2 GiB of an Arrow column.

What comes back is pyarrow where pyarrow was given (``Array`` for ``Array``, ``ChunkedArray`` for ``ChunkedArray``);
otherwise an object with the same methods, which every Arrow library takes.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from letterhead import _native
from letterhead.columns import Columns, normalise

__all__ = ["decode", "encode", "select", "validate"]


class ArrowArray(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """An Arrow stream of any library: a chunked array, a series, a reader."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Column: TypeAlias = ArrowArray | ArrowStream
OnError: TypeAlias = Literal["raise", "null", "column"]


def decode(column: Column, format: str, *, errors: OnError = "raise", lenient: bool = False) -> Any:
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
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.

    Returns
    -------
    Arrow array or stream
        Of a block: ``list<element: struct<key: string, value: binary>>``. Of an envelope: a struct of its fields. With
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
    """
    return _back(column, _native.decode_column(column, format, errors=errors, lenient=lenient))


def encode(
    column: Column,
    format: str,
    *,
    on_loss: Literal["raise", "drop", "report"] = "raise",
    kinds: Literal["be", "le", "text"] | None = None,
    null_headers: Literal["empty", "raise"] = "empty",
) -> Any:
    """Write a column of messages.

    Parameters
    ----------
    column : Arrow array or stream
        Of a block: a list of structs, as :func:`decode` gives and as Spark's Kafka source has. Of an envelope: a struct
        of the format's fields, in any order. The list is read in place.
    format : str
        Name of the format.
    on_loss : {"raise", "drop", "report"}, default "raise"
        What to do with what the format cannot carry: refuse it, leave it out, or leave it out and say so in a second
        field: the result is then ``struct<data: binary, losses: list<...>>``, with null losses where there are none.
    kinds : {"be", "le", "text"}, optional
        How a typed value is written where the format has no kinds: big-endian, little-endian, or spelt out.
    null_headers : {"empty", "raise"}, default "empty"
        Whether a null list is written as no headers or refused.

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
    made = _native.encode_column(column, format, on_loss=on_loss, kinds=kinds, null_headers=null_headers)
    return _back(column, made)


def select(
    column: Column,
    format: str,
    columns: Columns,
    *,
    errors: OnError = "raise",
    lenient: bool = False,
    dialect: Literal["arrow", "spark"] = "arrow",
) -> Any:
    """Read some headers into typed columns.

    Parameters
    ----------
    column : Arrow array or stream
        Bytes in ``format``, or a list of headers, told apart by their Arrow type.
    format : str
        Name of the format; of a list, it only says how values are typed.
    columns : mapping of str to str or Field
        Output column to a type ``name[:be|le|text]``, or to what :func:`letterhead.field` or :func:`letterhead.All`
        gives.
    errors : {"raise", "null", "column"}, default "raise"
        What becomes of a value that is not of its type, and of a message that does not decode. ``"null"``: the columns
        that failed are null; all of them where the structure is broken. ``"column"``: the same, but what was read
        before a break stays, and a last column ``error`` says what is wrong, null where the row is whole.
    lenient : bool, default False
        Read what Kafka's Java deserializers read, even where that loses data.
    dialect : {"arrow", "spark"}, default "arrow"
        Types of the result. Spark has no unsigned integers, and its times are microseconds.

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
    >>> lha.select(cells, "kafka", {"retry": "int32", "route": lh.All("string"), "tenant": "string"}).to_pylist()
    [{'retry': 2, 'route': ['a', 'b'], 'tenant': None}]
    """
    made = _native.select_column(column, format, normalise(columns), errors=errors, lenient=lenient, dialect=dialect)
    return _back(column, made)


def validate(column: Column, format: str, *, lenient: bool = False) -> Any:
    """Say what is wrong with each message of a column.

    Parameters
    ----------
    column : Arrow array or stream
        Bytes in ``format``, or a list of headers.
    format : str
        Name of the format.
    lenient : bool, default False
        Accept what Kafka's Java deserializers accept.

    Returns
    -------
    Arrow array or stream of list
        Null where the message is whole, else ``struct<code, message, byte, header, key, column>`` for everything found.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> found = lha.validate(pa.array([b"", b"\\x01"]), "kafka").to_pylist()
    >>> found[0], found[1][0]["code"]
    (None, 'negative_count')
    """
    return _back(column, _native.validate_column(column, format, lenient=lenient))


def _back(given: object, made: Any) -> Any:
    """Hand pyarrow back to whom pyarrow was given by; anything else as it is."""
    if type(given).__module__.partition(".")[0] != "pyarrow":
        return made
    import pyarrow as pa

    if isinstance(made, _native.Column):
        return pa.array(made)
    # Pulled chunk by chunk rather than as a C stream, so that an error keeps its class and attributes.
    return pa.chunked_array([pa.array(chunk) for chunk in made], type=pa.field(made).type)
