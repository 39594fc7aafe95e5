"""Schema ids in headers, which Confluent's serializers write to ``__key_schema_id`` and ``__value_schema_id``.

Source: Confluent's ``SchemaId`` and ``HeaderSchemaIdSerializer`` (``io.confluent.kafka.serializers.schema.id``, and the
same in ``confluent_kafka.schema_registry``). After the id, Protobuf adds the path to a message type as zig-zag
varints::

    +----+-----------------------+             +----+----------------+
    | 00 | int32 id, big-endian  | [indexes]   | 01 | guid, 16 bytes | [indexes]
    +----+-----------------------+             +----+----------------+

Registries count ids from 1. Apicurio's serializers write ids of 8 bytes that begin with zeros, which is not a valid id
of 4 bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead._formatting import count_noun
from letterhead.conventions.readers.column import Bools, read_values
from letterhead.errors import ErrorDetail

__all__ = ["END", "ID_WIDTHS", "LONG_ID_WIDTHS", "SchemaIdReader", "has_id", "wrong_id"]

ID_WIDTHS = {0: 4, 1: 16}
"""Size of the id after each magic byte."""

LONG_ID_WIDTHS = {0: 8}
"""Size of the id after the magic byte, as Apicurio's serializers write it."""

END = (1 << 31) - 1
"""Position after the end of any value."""


class SchemaIdReader:
    """Reader of schema ids into a struct."""

    name = "schema-id"
    type = pa.struct([
        ("id", pa.int32()), ("guid", pa.string()), pa.field("message_indexes", pa.list_(pa.field("element",
        pa.int32())))
    ])  # fmt: skip

    def find_error(self, data: bytes) -> ErrorDetail | None:
        """Return the error of one value, or None."""
        if not data:
            return ErrorDetail("truncated", "the value is empty, and an id has at least 5 bytes", byte_offset=0)
        if data[0] not in ID_WIDTHS:
            return ErrorDetail(
                "bad_magic", f"the magic byte is {data[0]}, neither 0 (an id) nor 1 (a guid)", byte_offset=0
            )
        end = 1 + ID_WIDTHS[data[0]]
        if len(data) < end:
            message = f"the value has {count_noun(len(data), 'byte')}, and the id needs {end}"
            return ErrorDetail("truncated", message, byte_offset=1)
        if (wrong := wrong_id(data[:end])) is not None:
            return wrong
        indexes = _indexes(data[end:]) if len(data) > end else None
        if isinstance(indexes, ErrorDetail):
            return indexes._replace(byte_offset=end + (indexes.byte_offset or 0))
        return None

    def read(self, column: pa.BinaryArray) -> tuple[pa.Array, Bools]:
        """Read a column."""
        has_number, has_guid = (has_id(column, magic, width) for magic, width in ID_WIDTHS.items())
        number, guid = (
            read_values(pc.if_else(is_known, pc.binary_slice(column, 1, 1 + width), None), type)[type]
            for is_known, width, type in zip((has_number, has_guid), ID_WIDTHS.values(), ("int32", "uuid"), strict=True)
        )
        after_number, after_guid = (pc.binary_slice(column, 1 + width, END) for width in ID_WIDTHS.values())
        rest = pc.if_else(has_number, after_number, pc.if_else(has_guid, after_guid, b""))
        indexes, broken = self._message_indexes(rest)
        valid = pc.and_(pc.fill_null(pc.or_(has_number, has_guid), False), pc.invert(broken))
        absent = pc.invert(valid)
        columns = [*(pc.if_else(valid, ids, None) for ids in (number, guid)), indexes]
        result = pa.StructArray.from_arrays(columns, fields=list(self.type), mask=absent)
        return result, np.asarray(pc.and_(absent, column.is_valid()).to_numpy(zero_copy_only=False), np.bool_)

    def _message_indexes(self, rest: pa.BinaryArray) -> tuple[pa.Array, pa.BooleanArray]:
        """Parse the indexes after the ids, each distinct path once, and return a mask of invalid ones."""
        paths = rest.dictionary_encode()
        parsed = [_indexes(path) if path else None for path in paths.dictionary.to_pylist()]
        wrong = pa.array([isinstance(path, ErrorDetail) for path in parsed], pa.bool_())
        indexes = pa.array(
            [None if isinstance(path, ErrorDetail) else path for path in parsed], self.type.field(2).type
        )
        return indexes.take(paths.indices), pc.fill_null(wrong.take(paths.indices), False)


def has_id(values: pa.BinaryArray, magic: int, width: int) -> pa.BooleanArray:
    """Return a mask of values that begin with a magic byte and an id of ``width`` bytes."""
    begins = pc.equal(pc.binary_slice(values, 0, 1), bytes([magic]))
    is_whole = pc.and_(begins, pc.greater(pc.binary_length(values), width))
    if magic != 0:
        return is_whole
    number = pc.binary_slice(values, 1, 1 + width)
    is_positive = pc.and_(pc.greater(number, bytes(width)), pc.less(number, b"\x80"))
    return pc.and_(is_whole, is_positive)


def wrong_id(prefix: bytes) -> ErrorDetail | None:
    """Return the error of an id that no registry assigns, or None."""
    number = int.from_bytes(prefix[1:], "big", signed=True)
    if prefix[0] != 0 or number > 0:
        return None
    is_short = len(prefix) == 1 + ID_WIDTHS[0]
    hint = ": 8 bytes of Apicurio are int64 in a header, and need id_bytes=8 in front of a value" if is_short else ""
    return ErrorDetail("out_of_range", f"the id is {number}, and registries count from 1{hint}", byte_offset=1)


def _indexes(data: bytes) -> list[int] | ErrorDetail:
    """Read a count and that number of indexes; a count of 0 stands for the first message type."""
    numbers, at = [], 0
    while at < len(data):
        begin, number, shift = at, 0, 0
        while True:
            if at == len(data):
                return ErrorDetail("truncated", "the bytes end inside a message index", byte_offset=begin)
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift == 35:
                return ErrorDetail("varint_too_long", "a message index goes on after its fifth byte", byte_offset=begin)
        if number >> 32:
            return ErrorDetail("varint_lost_bits", "a message index has more than 32 bits", byte_offset=begin)
        numbers.append(number >> 1 ^ -(number & 1))
        if len(numbers) == numbers[0] + 1:
            break
        if numbers[0] < 0:
            return ErrorDetail("negative_count", f"the number of message indexes is {numbers[0]}", byte_offset=0)
    if len(numbers) != numbers[0] + 1:
        message = f"the number of message indexes is {numbers[0]}, and {len(numbers) - 1} follow"
        return ErrorDetail("truncated", message, byte_offset=at)
    if at < len(data):
        return ErrorDetail(
            "trailing_bytes", f"{count_noun(len(data) - at, 'byte')} after the message indexes", byte_offset=at
        )
    return numbers[1:] or [0]
