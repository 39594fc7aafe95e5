"""Arrow's C structures made byte by byte, so that they can be wrong in every way."""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["Array", "Schema", "Stream", "Structure", "binary", "lists", "numbers", "view", "views"]


class Schema(ctypes.Structure):
    """``struct ArrowSchema``."""

    _fields_ = [
        ("format", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


class Array(ctypes.Structure):
    """``struct ArrowArray``."""

    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


_RELEASE = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
"""A function that does nothing: the memory is that of Python objects, which are never freed."""

_KEPT: list[object] = []


class Structure:
    """A column for ``letterhead.arrow``: a schema and an array, whose fields tests may change.

    The memory is never freed: what was imported from it may outlive this object.
    """

    def __init__(self, format: bytes, rows: int, buffers: list[bytes | None], children: list[Structure] | None = None):
        self.children = children or []
        self.buffers = [None if data is None else ctypes.create_string_buffer(data, len(data) or 1) for data in buffers]
        pointers = [None if data is None else ctypes.addressof(data) for data in self.buffers]
        self.format = ctypes.create_string_buffer(format)
        self.name = ctypes.create_string_buffer(b"name")
        self.buffer_pointers = (ctypes.c_void_p * max(len(buffers), 1))(*pointers)
        count = max(len(self.children), 1)
        self.child_schemas = (ctypes.c_void_p * count)(*(ctypes.addressof(child.schema) for child in self.children))
        self.child_arrays = (ctypes.c_void_p * count)(*(ctypes.addressof(child.array) for child in self.children))
        self.schema = Schema(
            format=ctypes.addressof(self.format),
            name=ctypes.addressof(self.name),
            n_children=len(self.children),
            children=ctypes.addressof(self.child_schemas),
            flags=2,
            release=_RELEASE,
        )
        self.array = Array(
            length=rows,
            n_buffers=len(buffers),
            buffers=ctypes.addressof(self.buffer_pointers),
            n_children=len(self.children),
            children=ctypes.addressof(self.child_arrays),
            release=_RELEASE,
        )
        _KEPT.append(self)

    def named(self, name: bytes) -> Structure:
        """Return the same column, as a field with a name."""
        self.name = ctypes.create_string_buffer(name)
        self.schema.name = ctypes.addressof(self.name)
        return self

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _capsule(self.schema, b"arrow_schema"), _capsule(self.array, b"arrow_array")


class Stream:
    """A stream of one array of a structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.rest = [structure.array]
        get_schema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        get_error = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
        self.functions = [get_schema(self._get_schema), get_schema(self._get_next), get_error(lambda _: None)]
        addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in self.functions]
        self.stream = (ctypes.c_void_p * 5)(*addresses, _RELEASE, None)
        _KEPT.append(self)

    def _get_schema(self, _: int, out: int) -> int:
        ctypes.memmove(out, ctypes.addressof(self.structure.schema), ctypes.sizeof(Schema))
        return 0

    def _get_next(self, _: int, out: int) -> int:
        array = self.rest.pop() if self.rest else Array()
        ctypes.memmove(out, ctypes.addressof(array), ctypes.sizeof(Array))
        return 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _capsule(self.stream, b"arrow_array_stream")


_NAMES: dict[bytes, Any] = {}


def _capsule(structure: Any, name: bytes) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    kept = _NAMES.setdefault(name, ctypes.create_string_buffer(name))
    return new(ctypes.addressof(structure), ctypes.addressof(kept), None)


def numbers(*values: int, width: int = 4) -> bytes:
    """Write numbers as a buffer."""
    return b"".join(value.to_bytes(width, "little", signed=True) for value in values)


def binary(offsets: list[int], data: bytes = b"\0" * 16, *, format: bytes = b"z") -> Structure:
    """Return a column of bytes, or of text, with these offsets."""
    width = 8 if format in (b"Z", b"U") else 4
    return Structure(format, len(offsets) - 1, [None, numbers(*offsets, width=width), data])


def view(length: int, buffer: int = 0, offset: int = 0) -> bytes:
    """Return a view of more than 12 bytes."""
    return numbers(length, 0, buffer, offset)


def views(*rows: bytes, data: bytes = b"\0" * 32, format: bytes = b"vz") -> Structure:
    """Return a column of views into one buffer."""
    return Structure(format, len(rows), [None, b"".join(rows), data, numbers(len(data), width=8)])


def lists(
    offsets: list[int], keys: Structure | None = None, values: Structure | None = None, *, elements: int = 2
) -> Structure:
    """Return a column of lists of headers."""
    keys = keys or binary([0, 1, 2], b"ab", format=b"u")
    values = values or binary([0, 1, 2], b"12")
    struct = Structure(b"+s", elements, [None], [keys.named(b"key"), values.named(b"value")])
    return Structure(b"+l", len(offsets) - 1, [None, numbers(*offsets)], [struct.named(b"element")])
