"""Values of a topic by schema: :func:`by_schema_id` groups them, :func:`decode_by_schema` runs a decoder on each group.

Serializers of Confluent and Apicurio write the id of a schema either before the value or into a header. A decoder
receives the values of one schema at a time, without the id: a decoder of :mod:`letterhead.schemas`, or a function of
the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from letterhead._arrow_types import ArrowStream, Column, OnError, import_column
from letterhead._names import check_name
from letterhead._optional_dependencies import install_hint
from letterhead.conventions.schema_group import ColumnsDecoder, SchemaDecoder, SchemaGroup
from letterhead.fields import check_distinct
from letterhead.operations import DecodeOptions
from letterhead.operations.remedies import noting_remedy

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.limits import Limits

__all__ = ["DecodeBySchema", "by_schema_id", "decode_by_schema"]

_INSTALL = "letterhead[arrow]"


def by_schema_id(
    values: Column,
    headers: Column | None = None,
    *,
    format: str = "kafka",
    header: str = "__value_schema_id",
    id_bytes: Literal[4, 8] | None = None,
    errors: Literal["raise", "null"] = "raise",
    limits: Limits | None = None,
) -> list[SchemaGroup]:
    """Group serialized values by the id of their schema, to pass contiguous values of one schema to a decoder.

    Parameters
    ----------
    values : Arrow array or stream of binary
        The values, or the keys of messages.
        Nulls are in no group.
    headers : Arrow array or stream of binary or lists of headers, optional
        The headers of the same messages. If a message lacks the header, the id precedes its value, as for Confluent's
        deserializers.
    format : str, default "kafka"
        Name of the format of the headers.
    header : str, default "__value_schema_id"
        Header with the id: ``"__key_schema_id"`` for keys; for Apicurio ``"apicurio.value.globalId"``,
        ``"apicurio.value.contentId"``, and the same with ``key``.
    id_bytes : {4, 8}, optional
        Size of an id before a value: 4 as written by Confluent, or 8 as written by default by Apicurio up to version 2.
        The default is 4, or 8 if ``header`` is Apicurio's.
    errors : {"raise", "null"}, default "raise"
        What to do with a value that has no valid id: raise an error, or leave it out of all groups.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

    Returns
    -------
    list of SchemaGroup
        Groups in the order in which their ids first occur. Their ``rows`` restore the order, as
        :func:`decode_by_schema` does.

    Raises
    ------
    DecodeError
        If ``errors="raise"``: ``bad_magic``, ``truncated``, the other codes of :func:`letterhead.arrow.schema_id`, and
        the codes of damaged headers.
    ValueError
        If the columns have different lengths.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> values = pa.array([bytes.fromhex("00 00000007 02"), bytes.fromhex("00 00000009 04"), bytes.fromhex("00 00000007 06")])
    >>> for group in lha.by_schema_id(values):
    ...     print(group.schema_id, group.rows.to_pylist(), group.values.to_pylist())
    7 [0, 2] [b'\\x02', b'\\x06']
    9 [1] [b'\\x04']
    """
    check_name("errors value", errors, ("raise", "null"))
    with install_hint("lha.by_schema_id", _INSTALL):
        from letterhead.conventions.readers.schema_groups import IdSource, as_binary, group_by_schema

    options, source = DecodeOptions(limits=limits), IdSource(format, header, id_bytes)
    with noting_remedy(errors, 'errors="null" leaves such a value out of all groups'):
        groups, _ = group_by_schema(as_binary(values), headers, source, errors, options.limits)
    return groups


def decode_by_schema(
    values: Column,
    decode: SchemaDecoder | ColumnsDecoder,
    schema: pa.Schema | None = None,
    *,
    headers: Column | None = None,
    format: str = "kafka",
    header: str = "__value_schema_id",
    id_bytes: Literal[4, 8] | None = None,
    errors: OnError = "raise",
    error_column: str = "error",
    limits: Limits | None = None,
) -> pa.StructArray:
    """Decode serialized values with a decoder that gets the values of one schema at a time.

    Parameters
    ----------
    values : Arrow array or stream of binary
        The values, or the keys of messages.
    decode : callable or AvroDecoder
        Gets a :class:`SchemaGroup` and returns a row for each of its values: a record batch, table, struct array or list
        of dicts. It returns ``None`` for an unknown schema. A :class:`letterhead.schemas.AvroDecoder` fetches schemas
        from a registry.
    schema : pyarrow.Schema, optional
        The columns of the result. Columns of another type that the decoder returns are cast. An ``AvroDecoder``
        determines its columns itself.
    headers : Arrow array or stream of binary or lists of headers, optional
        The headers of the same messages. If a message lacks the header, the id precedes its value, as for Confluent's
        deserializers.
    format : str, default "kafka"
        Name of the format of the headers.
    header : str, default "__value_schema_id"
        Header with the id, as in :func:`letterhead.arrow.by_schema_id`.
    id_bytes : {4, 8}, optional
        Size of an id before a value, as in :func:`letterhead.arrow.by_schema_id`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a value that has no valid id, or that cannot be decoded: raise the error; return null columns; or
        also describe the error in a last field.
    error_column : str, default "error"
        Name of the error column.
    limits : Limits, optional
        Limits on reading. Unset limits use the process-wide limits, see :class:`letterhead.Limits`.

    Returns
    -------
    pyarrow.StructArray
        The columns of each value, in the order of the values. They are null for a null value.

    Raises
    ------
    DecodeError
        If a value has no valid id, or its schema is unknown (``unknown_type``), and ``errors="raise"``.
    ValueError
        If the decoder returns another number of rows.
    Exception
        Any exception of the decoder, with a note that names the schema and the rows: an ``OSError``, ``ImportError`` or
        ``MemoryError`` always, others if ``errors="raise"``.

    Notes
    -----
    With ``"null"`` and ``"column"``, after an exception the decoder is called again with each half of the group, until the
    values that it cannot decode are found. Their code is ``wrong_type``, and their error has the class of the exception,
    not its text, which may contain data. A decoder that uses a registry should therefore raise a ``ConnectionError``,
    which is an ``OSError``, if the registry does not respond: otherwise all values would count as invalid.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha
    >>> names = {7: "degrees", 9: "percent"}
    >>> def decode(group):
    ...     unit = names.get(group.schema_id)
    ...     return unit and [{"number": value[0], "unit": unit} for value in group.values.to_pylist()]
    >>> values = pa.array([bytes.fromhex("00 00000007 02"), bytes.fromhex("00 00000009 04"), bytes.fromhex("00 00000008 06")])
    >>> schema = pa.schema([("number", pa.int32()), ("unit", pa.string())])
    >>> decoded = lha.decode_by_schema(values, decode, schema, errors="column")
    >>> decoded.field("unit").to_pylist(), decoded.field("error")[2].as_py()[0]["message"]
    (['degrees', 'percent', None], 'the decoder does not know schema 8')
    """
    options = DecodeOptions(errors=errors, error_column=error_column, limits=limits)
    return DecodeBySchema(decode, schema, format, header, options, id_bytes)(values, headers)


@dataclass(frozen=True)
class DecodeBySchema:
    """Decode serialized values with a decoder that gets the values of one schema at a time; see :func:`decode_by_schema`.

    It has the methods of :class:`letterhead.operations.ColumnOperation`, but reads two columns. As one column, they are a struct of
    ``value`` and, if headers may contain the ids, ``headers``.
    """

    decode: SchemaDecoder | ColumnsDecoder
    schema: pa.Schema | None = None
    format: str = "kafka"
    header: str = "__value_schema_id"
    options: DecodeOptions = field(default_factory=DecodeOptions)
    id_bytes: Literal[4, 8] | None = None

    @property
    def limits(self) -> Limits | None:
        """Limits in the options."""
        return self.options.limits

    def __post_init__(self) -> None:
        if not callable(self.decode) and not isinstance(self.decode, ColumnsDecoder):
            raise TypeError(f"decode must be a function, not {type(self.decode).__name__}")
        if self.schema is not None:
            check_distinct(self.schema.names, self.options.errors, self.options.error_column)
        elif not isinstance(self.decode, ColumnsDecoder):
            raise TypeError("schema= is missing: a function does not name its columns")

    def __call__(self, values: Column, headers: Column | None = None) -> pa.StructArray:
        """Return the columns of each value."""
        with install_hint("lha.decode_by_schema", _INSTALL):
            from letterhead.conventions.readers.schema_groups import IdSource, decode_groups

        source = IdSource(self.format, self.header, self.id_bytes)
        with noting_remedy(self.options.errors):
            return decode_groups(values, headers, self.decode, self.schema, source, self.options)

    def chunks(self, stream: ArrowStream) -> Iterator[pa.StructArray]:
        """Yield the result for each chunk of a stream of structs."""
        for chunk in import_column(stream).chunks:
            yield self(chunk.field("value"), chunk.field("headers") if "headers" in chunk.type.names else None)

    def result_type(self, source: pa.StructType) -> pa.DataType:
        """Return the type of the result for structs of a type, without calling the decoder."""
        import pyarrow as pa

        return next(self.chunks(pa.chunked_array([pa.array([], source)]))).type
