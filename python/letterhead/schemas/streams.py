"""Streams with a column of serialized values: :func:`decode_values` replaces it by typed columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from letterhead._arrow_types import UNUSED_NAME, ArrowStream, OnError
from letterhead._names import check_name
from letterhead._optional_dependencies import install_hint
from letterhead._shared_parameters import documented
from letterhead._table_batches import split_batches
from letterhead.conventions.schema_group import known_columns
from letterhead.conventions.schemas import DecodeBySchema
from letterhead.errors import DecodeError, after_rows, copy_error
from letterhead.operations import DecodeOptions
from letterhead.reader import Reader
from letterhead.schemas.avro import AvroDecoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["decode_values"]

_LOCATIONS = ("topic", "partition", "offset")


@documented
def decode_values(
    source: ArrowStream,
    decoder: AvroDecoder,
    *,
    column: str = "value",
    headers: str | None = "headers",
    format: str = "kafka",
    header: str = "__value_schema_id",
    id_bytes: Literal[4, 8] | None = None,
    errors: OnError = "raise",
    error_column: str = "error",
) -> Reader:
    """Read a stream whose serialized values become a struct of typed columns, such as that of :func:`letterhead.read.topic`.

    Parameters
    ----------
    source : Reader or Arrow stream
        Record batches, of which the values and headers are columns. Closing the result closes it.
    decoder : AvroDecoder
        With a schema or a subject: the columns of a stream are known before its values.
    column : str, default "value"
        The values, or the keys, with the matching ``header``.
    headers : str or None, default "headers"
        Column of the headers. With None, ids are in front of the values only.
    {headers_format} {id_header} {id_bytes}
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a value that has no valid id, or that cannot be decoded: raise the error, after the rows before it;
        return null; or also describe the error in a last column.
    {error_column}

    Returns
    -------
    Reader
        The columns of the source, in which ``column`` is a struct.

    Raises
    ------
    ValueError
        If the source lacks a column, or has one of the name ``error_column``, or if the decoder has no columns.
    DecodeError
        If ``errors="raise"``; it has topic, partition and offset if the source has these columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import schemas
    >>> decoder = schemas.AvroDecoder(
    ...     schemas.Registry("http://registry:8081"),
    ...     {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]},
    ... )
    >>> orders = pa.table({"offset": [7], "value": pa.array([None], pa.binary())})
    >>> schemas.decode_values(orders, decoder, headers=None).read_all().to_pylist()
    [{'offset': 7, 'value': None}]
    """
    check_name("errors value", errors, ("raise", "null", "column"))
    with install_hint("letterhead.schemas.decode_values", "'letterhead[arrow]'"):
        import pyarrow as pa
        import pyarrow.compute as pc

    stream = pa.RecordBatchReader.from_stream(source)
    names = stream.schema.names
    for name in (column, headers):
        if name is not None and names.count(name) != 1:
            remedy = ": pass headers=None if ids are in front of the values only" if name == headers else ""
            raise ValueError(f"the source has {names.count(name)} columns {name!r}, and one is needed{remedy}")
    if errors == "column" and error_column in names:
        raise ValueError(f"the source has a column {error_column!r}: pass another error_column=")
    columns = known_columns(decoder)
    # An error makes the value null, so that its fields are not taken for nulls.
    options = DecodeOptions() if errors == "raise" else DecodeOptions(errors="column", error_column=UNUSED_NAME)
    decode = DecodeBySchema(decoder, None, format, header, options, id_bytes)
    schema = stream.schema.set(names.index(column), pa.field(column, pa.struct(list(columns))))
    if errors == "column":
        result = decode.result_type(pa.struct([("value", pa.binary())]))
        schema = schema.append(pa.field(error_column, result[-1].type))

    def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = decode(batch.column(column), None if headers is None else batch.column(headers))
        fields, failed = values.flatten()[: len(columns)], values.flatten()[len(columns) :]
        is_null = batch.column(column).is_null()
        for error in failed:
            is_null = pc.or_(is_null, error.is_valid())
        arrays = list(batch.columns)
        arrays[names.index(column)] = pa.StructArray.from_arrays(fields, fields=list(columns), mask=is_null)
        return pa.RecordBatch.from_arrays([*arrays, *(failed if errors == "column" else [])], schema=schema)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            rows = 0
            for batch in stream:
                try:
                    result = decoded(batch)
                except DecodeError as error:
                    if error.row:
                        yield from split_batches(decoded(batch.slice(0, error.row)), None)
                    raise after_rows(_locate_error(error, batch), rows) from None
                yield from split_batches(result, None)
                rows += len(batch)
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    return Reader(schema, batches)


def _locate_error(error: DecodeError, batch: pa.RecordBatch) -> DecodeError:
    """Return an error with the topic, partition and offset of its row, if the batch has them."""
    places: dict[str, Any] = {
        name: batch.column(name)[error.row].as_py() for name in _LOCATIONS if name in batch.schema.names
    }
    return copy_error(error, **places, row=None) if "offset" in places else error
