"""Serialize a column of rows in a stream: :func:`encode_values` replaces it by values of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from letterhead._arrow_types import ArrowStream, has_headers, read_table, typed_headers
from letterhead._header_edits import HeaderEdit
from letterhead._optional_dependencies import install_hint
from letterhead._table_batches import split_batches, with_header_types
from letterhead.errors import EncodeError, after_rows
from letterhead.operations import Edit
from letterhead.reader import Reader
from letterhead.schemas.registry_encoder import RegistryEncoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["encode_values"]

_ROWS = 1 << 16
"""Number of rows that are encoded at once."""


def encode_values(
    data: ArrowStream,
    encoder: RegistryEncoder,
    *,
    column: str = "value",
    headers: str = "headers",
    header: str = "__value_schema_id",
) -> Reader:
    """Serialize a column by a schema, for :func:`letterhead.write.topic`.

    Parameters
    ----------
    data : Reader, Arrow table or stream
        Rows with a column of structs with the fields of the schema, or of plain values if the schema is not a record or
        an object.
    encoder : AvroEncoder, JsonEncoder or ProtobufEncoder
        The schema, and the position of its id.
    column : str, default "value"
        Column of the values, or of the keys, with the matching ``header``. A null stays null, and has no id.
    headers : str, default "headers"
        Lists of headers, for ids in headers; created if absent.
    header : str, default "__value_schema_id"
        Header for the id; for keys ``"__key_schema_id"``. A header of this name is replaced.

    Returns
    -------
    Reader
        The columns of the data, in which ``column`` is binary.

    Raises
    ------
    TypeError, ValueError
        If a column is missing or has another type than the schema, or the registry does not have the schema.
    EncodeError
        If a row cannot be written; ``row`` is its index.
    ConnectionError, PermissionError
        If the registry does not respond, or rejects the request.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import letterhead as lh
    >>> from letterhead import schemas
    >>> encoder = schemas.AvroEncoder(schemas.Registry("http://registry:8081"), "orders-value")
    >>> orders = pa.table({"key": ["k1"], "value": [{"id": 7}]})
    >>> lh.write.topic(schemas.encode_values(orders, encoder), "orders", "127.0.0.1:9092")  # doctest: +SKIP
    Written(rows=1, batches=[Appended(partition=0, offset=0, rows=1)])
    """
    with install_hint("letterhead.schemas.encode_values", "letterhead[arrow]"):
        import pyarrow as pa

    from letterhead.offsets.output_columns import KAFKA_HEADERS

    stream = read_table(data)
    names = stream.schema.names
    if names.count(column) != 1:
        raise ValueError(f"the data has {names.count(column)} columns {column!r}, and one is needed")
    schema = stream.schema.set(names.index(column), pa.field(column, pa.binary()))
    in_header = encoder.schema_id == "header"
    if in_header and headers not in names:
        schema = schema.append(pa.field(headers, KAFKA_HEADERS))
    elif in_header:
        type = typed_headers(schema.field(headers).type)
        if not has_headers(type):
            raise TypeError(f"column {headers!r} is {type}, and ids need lists of headers")
        schema = schema.set(names.index(headers), pa.field(headers, type))

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for whole in stream:
            for start in range(0, len(whole), _ROWS):
                batch = whole.slice(start, _ROWS)
                try:
                    encoded = _encode(batch, encoder, schema, column, headers if in_header else None, header)
                except EncodeError as error:
                    raise after_rows(error, rows) from None
                rows += len(batch)
                yield from split_batches(encoded, None)

    return Reader(schema, batches)


def _encode(
    batch: pa.RecordBatch, encoder: RegistryEncoder, schema: pa.Schema, column: str, headers: str | None, header: str
) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    values, prefix = encoder.encode(batch.column(column)), encoder.id_prefix
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    if headers is None:
        values = pc.binary_join_element_wise(prefix, values, b"")
    else:
        type = schema.field(headers).type
        lists = with_header_types(columns.get(headers, pa.array([[]] * len(batch), type)))
        lists = pc.if_else(lists.is_null(), pa.scalar([], type), lists)
        with_id = Edit("kafka", HeaderEdit.of(set={header: prefix}))(lists)
        columns[headers] = pc.if_else(values.is_null(), lists, with_id)
    columns[column] = values
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
