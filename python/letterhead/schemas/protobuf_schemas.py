"""Message types and columns of a registry's Protobuf schemas: :func:`message_type` and :func:`message_columns`."""

from __future__ import annotations

import base64
import binascii
import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import RegisteredSchema

__all__ = ["FIRST", "message_columns", "converter", "is_map", "is_wrapper", "message_type", "parse_indexes"]

FIRST = (0,)
"""Message indexes of the first message type."""

_MAIN = "letterhead-schema.proto"
_COMPILE_SECONDS = 60
_MAX_DEPTH = 32
_MAX_INDEXES = 64

_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_TYPES = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    # Spark also has these types, but no unsigned integers.
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}


def message_type(schema: RegisteredSchema, indexes: Sequence[int]) -> Descriptor:
    """Return the message type at a path in a schema: the index of a type in the file, then of a type nested in it.

    Raises
    ------
    ValueError
        If the schema cannot be compiled, or has no such type.
    """
    files = _files(_key(schema))
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()
    by_name = {file.name: file for file in files}

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        file = by_name.get(name) or _well_known(name)
        for dependency in file.dependency:
            add(dependency)
        pool.Add(file)

    try:
        add(_MAIN)
        file = pool.FindFileByName(_MAIN)
    except (TypeError, KeyError, ValueError) as error:
        raise _unusable(str(error).partition("\n")[0]) from None
    types: Sequence[Any] = [
        pool.FindMessageTypeByName(_full_name(file.package, each.name)) for each in by_name[_MAIN].message_type
    ]
    found: Any = None
    for index in indexes:
        if not 0 <= index < len(types):
            raise _unusable(f"it has no message type with the indexes {', '.join(map(str, indexes))}")
        found = types[index]
        types = found.nested_types
    return found


def parse_indexes(value: bytes) -> tuple[list[int], int]:
    """Return the path of a message type before a value, and the start of the message."""
    at = 0

    def number() -> int:
        nonlocal at
        result = shift = 0
        while True:
            if at == len(value):
                raise RefusedValue("truncated", "the bytes end inside a message index", at)
            byte = value[at]
            at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result >> 1 ^ -(result & 1)
            if shift == 35:
                raise RefusedValue("varint_too_long", "a message index goes on after its fifth byte", at)

    count = number()
    if not 0 <= count <= _MAX_INDEXES:
        raise RefusedValue(
            "negative_count" if count < 0 else "count_too_large", f"the number of message indexes is {count}", 0
        )
    return [number() for _ in range(count)] or [0], at


def message_columns(message: Descriptor, above: tuple[str, ...] = ()) -> list[pa.Field]:
    """Return the columns of the fields of a message."""
    if message.full_name in above or len(above) > _MAX_DEPTH:
        raise _unusable(f"{message.full_name} contains itself, and columns do not")
    above = (*above, message.full_name)
    return [pa.field(field.name, _type(field, above)) for field in message.fields]


def _type(field: Any, above: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_single_type(key, above), _single_type(value, above))
    single = _single_type(field, above)
    return pa.list_(single) if field.is_repeated else single


def _single_type(field: Any, above: tuple[str, ...]) -> pa.DataType:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string()
    if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
        return _TYPES[field.cpp_type]
    if is_wrapper(field):
        return _single_type(field.message_type.fields_by_name["value"], above)
    columns = message_columns(field.message_type, above)
    if not columns:
        raise _unusable(f"{field.message_type.full_name} has no fields, and columns need one")
    return pa.struct(columns)


def is_wrapper(field: Any) -> bool:
    """Return whether values of a field are wrapper messages, such as ``StringValue``."""
    return field.message_type is not None and field.message_type.full_name in _WRAPPERS


def is_map(field: Any) -> bool:
    """Return whether a field is a map, whose entries are messages."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def converter(message: Descriptor, columns: Sequence[pa.Field], path: str = "") -> Callable[[Any], dict[str, Any]]:
    """Return the function that converts messages to columns; missing fields are null.

    Raises
    ------
    ValueError
        If a field has another type than its column.
    """
    makers = []
    for column in columns:
        field = message.fields_by_name.get(column.name)
        name = f"{path}{column.name}"
        makers.append((column.name, (lambda value: None) if field is None else _field(field, column.type, name)))
    return lambda value: {name: make(value) for name, make in makers}


def _field(field: Any, type: pa.DataType, path: str) -> Callable[[Any], Any]:
    name = field.name
    if is_map(field):
        if not pa.types.is_map(type):
            raise _other_type(path, type)
        entries = field.message_type.fields_by_name
        key, item = _single(entries["key"], type.key_type, path), _single(entries["value"], type.item_type, path)
        return lambda value: [(key(each), item(member)) for each, member in getattr(value, name).items()]
    if field.is_repeated:
        if not pa.types.is_list(type):
            raise _other_type(path, type)
        element = _single(field, type.value_type, path)
        return lambda value: [element(each) for each in getattr(value, name)]
    single = _single(field, type, path)
    if field.has_presence:
        return lambda value: single(getattr(value, name)) if value.HasField(name) else None
    return lambda value: single(getattr(value, name))


def _single(field: Any, type: pa.DataType, path: str) -> Callable[[Any], Any]:
    if field.message_type is not None and not is_wrapper(field):
        if not pa.types.is_struct(type):
            raise _other_type(path, type)
        return converter(field.message_type, list(type), f"{path}.")
    if is_wrapper(field):
        inner = _single(field.message_type.fields_by_name["value"], type, path)
        return lambda value: inner(value.value)
    own = _single_type(field, ())
    is_wider = (pa.types.is_integer(own), type) == (True, pa.int64()) or (own, type) == (pa.float32(), pa.float64())
    if own != type and not is_wider:
        raise _other_type(path, type)
    if field.cpp_type != FieldDescriptor.CPPTYPE_ENUM:
        return lambda value: value
    names = {number: value.name for number, value in field.enum_type.values_by_number.items()}

    def name_of(number: int) -> str:
        if number not in names:
            raise RefusedValue("out_of_range", f"{path} is {number}, for which the enum has no name")
        return str(names[number])

    return name_of


def _other_type(path: str, type: pa.DataType) -> ValueError:
    return ValueError(f"field {path} is not {type}, which its column is")


def _key(schema: RegisteredSchema) -> tuple[Any, ...]:
    return schema.text, tuple((name, _key(reference)) for name, reference in schema.references.items())


@lru_cache(256)
def _files(key: tuple[Any, ...]) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the file of a schema, and the files that it refers to."""
    sources = _sources(key)
    files = {name: file for name, text in sources.items() if (file := _serialized(text)) is not None}
    if len(files) < len(sources):
        if files:
            raise _unusable("it refers to schemas as text and in serialized form")
        return _compile(sources)
    for name, file in files.items():
        file.name = name
    return [*files.values()]


def _sources(key: tuple[Any, ...]) -> dict[str, str]:
    text, references = key
    sources = {_MAIN: text}
    for name, reference in references:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name or name == _MAIN:
            raise _unusable("the name of a reference is no path of a file")
        below = _sources(reference)
        sources |= {name: below.pop(_MAIN), **below}
    return sources


def _serialized(text: str) -> descriptor_pb2.FileDescriptorProto | None:
    """Return a file that was registered in serialized form, as by Confluent's client for Python; None for text."""
    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def _compile(sources: dict[str, str]) -> list[descriptor_pb2.FileDescriptorProto]:
    import grpc_tools

    included = Path(grpc_tools.__file__).parent / "_proto"
    with TemporaryDirectory(prefix="letterhead-") as directory:
        for name, text in sources.items():
            path = Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        out = Path(directory, "descriptors")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{directory}", f"-I{included}", "--include_imports"]
        try:
            # The compiler runs in a separate process, because it prints errors.
            done = subprocess.run(
                [*command, f"--descriptor_set_out={out}", _MAIN],
                capture_output=True,
                timeout=_COMPILE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _unusable("it is not compiled in time") from None
        if done.returncode or not out.exists():
            reason = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise _unusable(reason.replace(directory, "").removeprefix(f"{_MAIN}:"))
        return [*descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file]


def _well_known(name: str) -> descriptor_pb2.FileDescriptorProto:
    """Return one of Protobuf's own files."""
    module = name.removeprefix("google/protobuf/").removesuffix(".proto")
    file = descriptor_pb2.FileDescriptorProto()
    if f"google/protobuf/{module}.proto" != name or not module.isidentifier():
        raise _unusable(f"it imports {name}, which is none of its references")
    try:
        importlib.import_module(f"google.protobuf.{module}_pb2").DESCRIPTOR.CopyToProto(file)
    except ImportError:
        raise _unusable(f"it imports {name}, which is none of its references") from None
    return file


def _full_name(package: str, name: str) -> str:
    return f"{package}.{name}" if package else name


def _unusable(reason: str) -> ValueError:
    return ValueError(f"the Protobuf schema cannot be used: {reason}")
