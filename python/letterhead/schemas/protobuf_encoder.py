"""Encode rows as Protobuf values, by a schema of a registry: :class:`ProtobufEncoder`."""

from __future__ import annotations

from typing import Any

from letterhead._optional_dependencies import install_hint
from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.row_encoders import RowEncoder, ValueWriter

__all__ = ["ProtobufEncoder"]


class ProtobufEncoder(RowEncoder):
    """Encodes rows as values of Protobuf by a schema of a registry; an encoder for :func:`encode_values`.

    A row has fields of the first message type, each of the type that :class:`ProtobufDecoder` returns; integers may be
    ``uint64``, too. Fields that the rows lack are not written. A null is not written if its field has presence, and is an
    error otherwise.

    Parameters
    ----------
    registry, subject, schema, schema_id, register
        As in :class:`letterhead.schemas.AvroEncoder`.

    Raises
    ------
    ValueError
        If the schema is invalid. When values are encoded, if the registry does not have the subject or the schema, or
        rejects it.
    ImportError
        If protobuf, or grpcio-tools, which compiles schemas, is not installed.

    Examples
    --------
    >>> from letterhead import schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> schemas.ProtobufEncoder(registry, "orders-value", 'syntax = "proto3"; message Order { int64 id = 1; }')
    ProtobufEncoder(Registry('http://registry:8081'), 'orders-value')
    """

    _schema_type = "PROTOBUF"
    _format = "protobuf"
    # Path of the first message type, written as a count of 0.
    _type_suffix = b"\0"

    def _open(self, schema: RegisteredSchema) -> ValueWriter:
        with install_hint("letterhead.schemas.ProtobufEncoder", "letterhead[protobuf]"):
            import grpc_tools  # noqa: F401
            import pyarrow as pa

            from letterhead.schemas.protobuf_messages import message_maker
            from letterhead.schemas.protobuf_schemas import FIRST, message_columns, message_type

        type = message_type(schema, FIRST)
        # Types that contain themselves are rejected here.
        columns = pa.struct(message_columns(type))
        make = message_maker(type)

        def write(row: dict[str, Any]) -> bytes:
            message = make(row)
            if not message.IsInitialized():
                missing = ", ".join(message.FindInitializationErrors())
                raise RefusedValue("null_field", f"the schema requires {missing}")
            return message.SerializeToString(deterministic=True)  # type: ignore[no-any-return]

        return ValueWriter(columns, write)
