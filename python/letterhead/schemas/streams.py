"""Decode a column of serialized values in a stream: :func:`decode_values` replaces it by typed columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from letterhead._arrow_types import UNUSED_NAME, ArrowStream, OnError
from letterhead._names import check_name
from letterhead._optional_dependencies import install_hint
from letterhead._table_batches import split_batches
from letterhead.conventions.schema_group import ColumnsDecoder, known_columns
from letterhead.conventions.schemas import DecodeBySchema
from letterhead.errors import DecodeError, after_rows, copy_error
from letterhead.operations import DecodeOptions
from letterhead.reader import Reader

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["LOCATIONS", "SerializedColumn", "decode_stream", "decode_values"]

LOCATIONS = ("topic", "partition", "offset")
"""Columns by which errors identify a row."""


def decode_values(
    source: ArrowStream,
    decoder: ColumnsDecoder,
    *,
    column: str = "value",
    headers: str | None = "headers",
    format: str = "kafka",
    header: str = "__value_schema_id",
    id_bytes: Literal[4, 8] | None = None,
    where: Where | None = None,
    errors: OnError = "raise",
    error_column: str = "error",
) -> Reader:
    """Decode the serialized values of a stream, such as the result of :func:`letterhead.read.topic`, into a struct of columns.

    Parameters
    ----------
    source : Reader or Arrow stream
        Record batches with columns for the values and the headers. Closing the result closes the source.
    decoder : AvroDecoder
        Decoder with a schema or a subject, because the columns of a stream must be known before its values.
    column : str, default "value"
        Column of the values, or of the keys, with the matching ``header``.
    headers : str or None, default "headers"
        Column of the headers. With None, ids are expected only before values.
    format : str, default "kafka"
        Name of the format of the headers.
    header : str, default "__value_schema_id"
        Header with the id, as in :func:`letterhead.arrow.by_schema_id`.
    id_bytes : {4, 8}, optional
        Size of an id before a value, as in :func:`letterhead.arrow.by_schema_id`.
    where : Condition or str, optional
        Return only the rows for which a condition is true: on columns, on headers, and on fields of the values, which are
        named as in ``"value.amount" > 10``. A value that cannot be decoded, and leaves the condition undecided, is an error.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a value that has no valid id, or that cannot be decoded: raise the error, after the rows before
        it; return null; or also describe the error in a last column, or in the error column of the source, if it has
        one.
    error_column : str, default "error"
        Name of the error column.

    Returns
    -------
    Reader
        The columns of the source, in which ``column`` is a struct. For a topic read with ``commit_group``, it also
        has ``close_after``.

    Raises
    ------
    ValueError
        If the source lacks a column, or already has a column ``error_column``, or if the decoder has no columns.
    DecodeError
        If ``errors="raise"``; the error contains topic, partition and offset if the source has these columns.

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
    serialized = SerializedColumn(column, headers, format, header, id_bytes)
    return decode_stream(source, decoder, serialized, errors=errors, error_column=error_column, where=where)


class SerializedColumn(NamedTuple):
    """Column of serialized values, and the source of their schema ids."""

    name: str = "value"
    headers: str | None = "headers"
    format: str = "kafka"
    header: str = "__value_schema_id"
    id_bytes: Literal[4, 8] | None = None


def decode_stream(
    source: ArrowStream,
    decoder: ColumnsDecoder,
    column: SerializedColumn,
    *,
    errors: OnError,
    error_column: str,
    limits: Limits | None = None,
    where: Where | None = None,
    typed_headers: Columns | None = None,
    leave_out: Collection[str] = (),
    is_portable: bool = False,
) -> Reader:
    """Read a stream like :func:`decode_values`, without some of its columns, and with portable types."""
    with install_hint("letterhead.schemas.decode_values", "letterhead[arrow]"):
        import pyarrow as pa

        from letterhead.schemas.row_selection import RowSelection

    # Errors of a reader of this package keep their class.
    stream = source if isinstance(source, Reader) else pa.RecordBatchReader.from_stream(source)
    operation = _DecodeColumn(stream.schema, decoder, column, errors, error_column, limits, is_portable=is_portable)
    names = [name for name in operation.schema.names if name not in leave_out]
    select = None
    if where is not None:
        reported = error_column if errors == "column" else None
        select = RowSelection(where, operation.schema, column, typed_headers, errors, reported, limits)

    def work(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return decoded rows, and the index of each in the batch unless all are selected."""
        decoded = operation.decode(batch)
        return (decoded, None) if select is None else select(decoded)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            rows = 0
            for batch in stream:
                error, end = None, len(batch)
                try:
                    decoded, kept = work(batch)
                except DecodeError as raised:
                    error, end = raised, raised.row or 0
                    decoded, kept = work(batch.slice(0, end))
                if len(decoded) or (error is None and select is None):
                    reader.begin(end, kept)
                    for part in split_batches(decoded.select(names), limits):
                        yield part
                        reader.note_part(len(part))
                if error is not None:
                    raise after_rows(_locate_error(error, batch), rows) from None
                rows += len(batch)
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    reader = _ValueReader(pa.schema([operation.schema.field(name) for name in names]), batches, source)
    return reader


class _ValueReader(Reader):
    """Stream of decoded values, which reports the number of used rows to a source that commits offsets."""

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], source: Any) -> None:
        super().__init__(schema, batches, getattr(source, "_progress", None))
        self._committing = source if hasattr(source, "close_after") else None
        self._rows_before = 0
        self._source_rows = 0
        self._kept: pa.Array | None = None

    def begin(self, source_rows: int, kept: pa.Array | None) -> None:
        """Begin a batch of the source; ``kept`` contains the indexes of selected rows, or is None for all rows."""
        self._rows_before, self._source_rows, self._kept = 0, source_rows, kept

    def note_part(self, rows: int) -> None:
        """Mark all rows of a part as used, before the next part of the batch."""
        self.note_used(rows)
        self._rows_before += rows

    def note_used(self, rows: int) -> None:
        """Note that the first rows of the last batch were used."""
        if self._committing is None:
            return
        used = self._rows_before + rows
        if self._kept is not None and used:
            used = self._source_rows if used >= len(self._kept) else self._kept[used].as_py()
        self._committing.note_used(used)

    def close_after(self, rows: int) -> None:
        """Commit the offsets of the first rows of the last batch, for a ``commit_group``, and close the source."""
        self.note_used(rows)
        self.close()


class _DecodeColumn:
    """Decodes a column of batches into a struct, and adds the errors."""

    def __init__(
        self,
        source: pa.Schema,
        decoder: ColumnsDecoder,
        column: SerializedColumn,
        errors: OnError,
        error_column: str,
        limits: Limits | None,
        *,
        is_portable: bool,
    ) -> None:
        import pyarrow as pa

        from letterhead.schemas.portable_types import portable_array, portable_type

        for name in (column.name, column.headers):
            if name is not None and source.names.count(name) != 1:
                remedy = ": pass headers=None if ids are in front of the values only" if name == column.headers else ""
                raise ValueError(
                    f"the source has {source.names.count(name)} columns {name!r}, and one is needed{remedy}"
                )
        self._column, self._fields = column, list(known_columns(decoder))
        # An error makes the whole value null, because fields that could not be read would look like nulls.
        policy: Any = {} if errors == "raise" else {"errors": "column", "error_column": UNUSED_NAME}
        options = DecodeOptions(**policy, limits=limits)
        self._decode = DecodeBySchema(decoder, None, column.format, column.header, options, column.id_bytes)
        self._index = source.get_field_index(column.name)
        type = pa.struct(self._fields)
        self._finish = portable_array if is_portable else None
        self.schema = source.set(self._index, pa.field(column.name, portable_type(type) if is_portable else type))
        self._error_index: int | None = None
        if errors == "column":
            type = self._decode.result_type(pa.struct([("value", pa.binary())]))[-1].type
            if error_column not in source.names:
                self.schema = self.schema.append(pa.field(error_column, type))
            elif source.names.count(error_column) > 1 or source.field(error_column).type != type:
                raise ValueError(f"the source has a column {error_column!r}: pass another error_column=")
            self._error_index = self.schema.get_field_index(error_column)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the decoded values; raise DecodeError for the first invalid value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = batch.column(self._index)
        headers = None if self._column.headers is None else batch.column(self._column.headers)
        decoded = self._decode(values, headers).flatten()
        fields, failed = decoded[: len(self._fields)], decoded[len(self._fields) :]
        is_null = values.is_null()
        for error in failed:
            is_null = pc.or_(is_null, error.is_valid())
        arrays = list(batch.columns)
        rows = pa.StructArray.from_arrays(fields, fields=self._fields, mask=is_null)
        arrays[self._index] = rows if self._finish is None else self._finish(rows)
        if self._error_index is not None:
            own = slice(self._error_index, self._error_index + 1)
            arrays[own] = [_join_errors(arrays[own], headers, failed[0])]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _join_errors(own: Sequence[pa.Array], headers: pa.Array | None, of_values: pa.Array) -> pa.Array:
    """Return the errors of values, merged with the errors of source rows if the source has an error column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not own:
        return of_values
    [errors] = own
    if headers is not None:
        # If a row has no headers, its error is also the error of the value.
        of_values = pc.if_else(pc.and_(errors.is_valid(), headers.is_null()), None, of_values)
    if not pc.any(pc.and_(errors.is_valid(), of_values.is_valid())).as_py():
        return pc.coalesce(errors, of_values)
    pairs = zip(errors.to_pylist(), of_values.to_pylist(), strict=True)
    return pa.array([[*(first or ()), *(second or ())] or None for first, second in pairs], errors.type)


def _locate_error(error: DecodeError, batch: pa.RecordBatch) -> DecodeError:
    """Return an error with the topic, partition and offset of its row, if the batch contains them."""
    position: dict[str, Any] = {
        name: batch.column(name)[error.row].as_py() for name in LOCATIONS if name in batch.schema.names
    }
    return copy_error(error, **position, row=None) if "offset" in position else error
