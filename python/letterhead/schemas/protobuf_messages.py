"""Convert rows to Protobuf messages: :func:`message_maker`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from letterhead.schemas.protobuf_schemas import is_map, is_wrapper
from letterhead.schemas.refused_values import RefusedValue, distinct_entries

__all__ = ["message_maker"]

_UNSIGNED_BITS = {FieldDescriptor.CPPTYPE_UINT32: 32, FieldDescriptor.CPPTYPE_UINT64: 64}

Make = Callable[[Any], Any]
"""Function that returns a message, or a value of a field; raises :class:`RefusedValue`."""


def message_maker(message: Descriptor, path: str = "") -> Make:
    """Return the function that converts rows, in the types of the columns, to messages; ``path`` ends with a dot."""
    type = GetMessageClass(message)
    makers = {field.name: _field(field, f"{path}{field.name}") for field in message.fields}
    choices = [[field.name for field in choice.fields] for choice in message.oneofs if len(choice.fields) > 1]

    def make(row: dict[str, Any]) -> Any:
        for names in choices:
            chosen = [f"{path}{name}" for name in names if row.get(name) is not None]
            if len(chosen) > 1:
                raise RefusedValue("field_not_carried", f"fields {' and '.join(chosen)} exclude each other")
        return type(**{name: makers[name](value) for name, value in row.items()})

    return make


def _field(field: FieldDescriptor, path: str) -> Make:
    if is_map(field):
        key, item = (_single(field.message_type.fields_by_name[name], f"{path}[]") for name in ("key", "value"))
        return lambda value: distinct_entries(
            [(key(each), item(member)) for each, member in _require(value, path)], path
        )
    single = _single(field, f"{path}[]" if field.is_repeated else path)
    if field.is_repeated:
        return lambda value: [single(each) for each in _require(value, path)]
    if field.has_presence:
        return lambda value: None if value is None else single(value)
    return single


def _single(field: FieldDescriptor, path: str) -> Make:
    make = _value(field, path)
    return lambda value: make(_require(value, path))


def _require(value: Any, path: str) -> Any:
    if value is None:
        raise RefusedValue("null_field", f"field {path} is null, which its type does not have")
    return value


def _value(field: FieldDescriptor, path: str) -> Make:
    if is_wrapper(field):
        type = GetMessageClass(field.message_type)
        inner = _value(field.message_type.fields_by_name["value"], path)
        return lambda value: type(value=inner(value))
    if field.message_type is not None:
        return message_maker(field.message_type, f"{path}.")
    if field.enum_type is not None:
        numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

        def number_of(name: str) -> int:
            if name not in numbers:
                raise RefusedValue("out_of_range", f"field {path} is none of the names of the enum")
            return int(numbers[name])

        return number_of
    bits = _UNSIGNED_BITS.get(field.cpp_type)
    if bits is None:
        return lambda value: value

    def unsigned(value: Any) -> int:
        if not 0 <= value < 1 << bits:
            raise RefusedValue("out_of_range", f"field {path} is not a value of uint{bits}")
        return int(value)

    return unsigned
