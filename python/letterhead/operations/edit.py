"""The operation that changes some headers of messages: :class:`Edit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from letterhead import _native
from letterhead._arrow_types import Column, ColumnT, is_list
from letterhead._formats import format_info
from letterhead._names import check_name
from letterhead.fields import plain_key
from letterhead.header_edits import ColumnValues, Constant, Function, HeaderEdit, HeaderKey, Mask, NewValue
from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.decode import Decode
from letterhead.operations.encode import Encode
from letterhead.operations.options import READ_DEFAULTS, ReadOptions
from letterhead.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Edit"]

NativeValue = tuple[str, str | None, bytes | None, int]


@dataclass(frozen=True)
class Edit(ColumnOperation):
    """Change some headers of every message, from bytes to bytes of the same format.

    ``nulls`` says what a null in a column of values is: a null value, or no value.
    """

    native_name: ClassVar[_native._Operation] = "edit"

    format: str
    edit: HeaderEdit
    options: ReadOptions = READ_DEFAULTS
    nulls: Literal["keep", "skip"] = "keep"

    def __post_init__(self) -> None:
        check_name("nulls value", self.nulls, ("keep", "skip"))
        # The core rejects keys and values that the format cannot have.
        _native.schema("edit", self.format, **self.arguments())

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        edit, columns = self.edit, self._computed_values()
        renamed, replaced, set_values = dict(edit.rename), dict(edit.replace), dict(edit.set)
        info = format_info(self.format)
        has_types = info is not None and info.types
        numbers = {id(value): number for number, (_, value) in enumerate(columns)}

        def native(value: NewValue) -> NativeValue:
            return _native_value(value, has_types, numbers.get(id(value), 0))

        def entry(key: HeaderKey) -> tuple[Any, ...]:
            value = replaced.get(key) or set_values.get(key)
            change = "drop" if key in edit.drop else "replace" if key in replaced else "set" if value else "keep"
            new_key = renamed.get(key)
            return (
                plain_key(key), None if new_key is None else plain_key(new_key), change, None if value is None else native(value)
            )  # fmt: skip

        entries = [entry(key) for key in edit.edited_keys()]
        appended = [(plain_key(key), native(value)) for key, value in edit.append]
        return {**self.options.arguments(), "edit": (entries, edit.only is not None, appended, self.nulls == "skip")}

    def run(self, column: ColumnT, *, threads: int = 1) -> ColumnT:
        """Return the edited messages, or lists of headers; functions get the values of a chunk at a time."""
        type: Any = getattr(column, "type", None)
        if type is not None and is_list(type):
            return self._run_on_lists(column, type, threads)  # type: ignore[no-any-return]
        if not self._computed_values():
            return super().run(column, threads=threads)
        import pyarrow as pa

        stream: Any = column
        if not hasattr(column, "__arrow_c_stream__"):
            edited: ColumnT = self._run_with_values(pa.array(stream), threads)
            return edited
        if any(isinstance(value, ColumnValues) for _, value in self._computed_values()):
            raise TypeError("a column of values needs an array of messages, not a stream: combine its chunks")
        chunks = [self._run_with_values(chunk, threads) for chunk in pa.chunked_array(stream).chunks]
        result: Any = pa.chunked_array(chunks, type=self.result_type(pa.binary()))
        return result  # type: ignore[no-any-return]

    def run_native(self, column: Column, threads: int = 1) -> _native.Column | _native.Stream:
        """Return the edited messages as an object of the core, for edits without functions and columns of values."""
        if self._computed_values():
            raise TypeError("functions and columns of values are applied by run()")
        return super().run_native(column, threads)

    def result_type(self, input: pa.DataType) -> pa.DataType:
        """Return the type of the result."""
        import pyarrow as pa

        return pa.field(_native.schema("edit", self.format, **self.arguments())).type

    def _run_on_lists(self, lists: Any, type: pa.DataType, threads: int) -> Any:
        """Encode the lists, edit the messages, and decode them again."""
        if self.options.errors != "raise":
            raise ValueError("errors= is for messages in bytes, not for lists of headers")
        import pyarrow as pa
        import pyarrow.compute as pc

        encoded = Encode(self.format).run(lists, threads=threads)
        # `Encode` writes null as an empty message.
        messages = self.run(pc.if_else(pc.is_valid(lists), encoded, pa.scalar(None, pa.binary())), threads=threads)
        return Decode(self.format, self.options).run(messages, threads=threads).cast(type)

    def _computed_values(self) -> list[tuple[HeaderKey, Function | ColumnValues]]:
        """Return the new values that are columns beside the messages."""
        pairs = [*self.edit.replace, *self.edit.set, *self.edit.append]
        return [(key, value) for key, value in pairs if isinstance(value, Function | ColumnValues)]

    def _run_with_values(self, messages: pa.Array, threads: int) -> Any:
        import pyarrow as pa

        values = [
            self._apply_function(key, value, messages)
            if isinstance(value, Function)
            else _check_new_values(key, value.column, len(messages))
            for key, value in self._computed_values()
        ]
        names = [str(number) for number in range(len(values) + 1)]
        struct = pa.StructArray.from_arrays([messages, *values], names)
        return pa.array(super().run_native(struct, threads))

    def _apply_function(self, key: HeaderKey, function: Function, messages: pa.Array) -> pa.ListArray:
        """Return the new values of a key, a list for each message."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        policy: Literal["raise", "null"] = "raise" if self.options.errors == "raise" else "null"
        options = ReadOptions(errors=policy, strict_types=self.options.strict_types, limits=self.options.limits)
        decoded = Decode(self.format, options).run(messages)
        lists = decoded.field("headers") if pa.types.is_struct(decoded.type) else decoded
        headers, rows = lists.flatten(), pc.list_parent_indices(lists)
        is_replaced = _has_key(headers, key)
        old = headers.field("value").filter(is_replaced)
        counts = np.bincount(rows.filter(is_replaced).to_numpy(zero_copy_only=False), minlength=len(messages))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        new = function.function(old)
        return pa.ListArray.from_arrays(pa.array(offsets), _check_new_values(key, new, len(old)))


def _has_key(headers: pa.StructArray, key: HeaderKey) -> pa.Array:
    """Return which headers have a key."""
    import pyarrow.compute as pc

    keys = headers.field("key")
    if "key_type" not in headers.type.names:
        return pc.equal(keys, key)
    type, bits = (key.type, key.bits) if isinstance(key, Value) else ("string", str(key).encode())
    return pc.and_(pc.equal(keys, bits), pc.equal(headers.field("key_type"), type))


def _check_new_values(key: HeaderKey, values: Any, rows: int) -> Any:
    """Return new values of text or bytes; raise if their number is not ``rows``."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not hasattr(values, "__arrow_c_array__"):
        raise TypeError(f"header {key!r}: new values must be an Arrow array, not {type(values).__name__}")
    values = pa.array(values)
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if not is_text and not pa.types.is_binary(values.type) and not pa.types.is_large_binary(values.type):
        raise TypeError(f"header {key!r}: new values must be string or binary, not {values.type}")
    if len(values) != rows:
        raise ValueError(f"header {key!r}: {len(values)} new values for {rows}")
    return values


def _native_value(value: NewValue, typed: bool, number: int) -> NativeValue:
    if isinstance(value, Mask):
        return value.name, None, None, 0
    if not isinstance(value, Constant):
        return "column", None, None, number
    constant = value.value
    if constant is None:
        return "constant", None, None, 0
    if isinstance(constant, Value):
        is_plain = not typed and constant.type in ("string", "binary")
        return "constant", None if is_plain else constant.type, constant.bits, 0
    return "constant", ("string" if value.is_text else "binary") if typed else None, constant, 0
