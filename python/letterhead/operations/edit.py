"""Change some headers of messages: :class:`Edit`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from letterhead import _native
from letterhead._arrow_types import ColumnT, as_header_lists, has_headers, import_column, is_binary, is_pyarrow, is_text
from letterhead._formats import format_info
from letterhead._header_edits import (
    ColumnValues,
    Constant,
    Function,
    HeaderEdit,
    HeaderKey,
    Hmac,
    Mask,
    NewValue,
    fold_key,
    header_key,
)
from letterhead._names import check_name
from letterhead._native import Decode, DecodeOptions, Encode
from letterhead._table_batches import with_header_types
from letterhead._warnings import warn
from letterhead.errors import HeaderError, UnseenHeaderWarning, after_rows
from letterhead.fields import NativeKey, native_key
from letterhead.operations.remedies import noting_remedy
from letterhead.values import Value, value_from_message

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Edit", "EditEntries", "EditEntry", "EditReport", "EntryValue"]


class EntryValue(NamedTuple):
    """New value of a header: a typed constant, a mask, or the index of a column of values."""

    source: str
    type: str | None = None
    bits: bytes | None = None
    column: int = 0


class EditEntry(NamedTuple):
    """Change of the headers with one key."""

    key: NativeKey
    renamed: NativeKey | None
    change: Literal["keep", "drop", "replace", "set"]
    value: EntryValue | None


class EditEntries(NamedTuple):
    """Edit in the form of the compiled core: changes by key, and headers to append."""

    entries: list[EditEntry]
    drops_others: bool
    appended: list[tuple[NativeKey, EntryValue]]
    skips_nulls: bool


@dataclass(frozen=True)
class Edit:
    """Change some headers of every message, from bytes to bytes of the same format.

    ``nulls`` defines the meaning of null in a column of values: a null value, or no value.
    """

    format: str
    edit: HeaderEdit
    options: DecodeOptions = field(default_factory=DecodeOptions)
    nulls: Literal["keep", "skip"] = "keep"

    def __post_init__(self) -> None:
        check_name("nulls value", self.nulls, ("keep", "skip"))
        # The core rejects keys and values that the format does not support.
        self._core()

    def _core(self, edited: _native.EditedKeys | None = None) -> _native.Edit:
        """Return the edit of the core; computed values are read from columns beside the messages."""
        edit, columns = self.edit, self._computed_values()
        renamed, replaced, set_values = dict(edit.rename), dict(edit.replace), dict(edit.set)
        info = format_info(self.format)
        has_types = info is not None and info.types
        numbers = {id(value): number for number, (_, value) in enumerate(columns)}

        def native(value: NewValue) -> EntryValue:
            return _native_value(value, has_types, numbers.get(id(value), 0))

        dropped = frozenset(edit.drop)

        def entry(key: HeaderKey) -> EditEntry:
            value, new_key = replaced.get(key) or set_values.get(key), renamed.get(key)
            return EditEntry(
                native_key(key),
                None if new_key is None else native_key(new_key),
                "drop" if key in dropped else "replace" if key in replaced else "set" if value else "keep",
                None if value is None else native(value),
            )

        entries = [entry(key) for key in edit.edited_keys()]
        appended = [(native_key(key), native(value)) for key, value in edit.append]
        changes = EditEntries(entries, edit.only is not None, appended, self.nulls == "skip")
        return _native.Edit(self.format, changes, self.options, edited)

    def __call__(self, column: ColumnT, *, threads: int = 1, report: EditReport | None = None) -> ColumnT:
        """Return the edited messages or lists of headers; functions receive the values of a chunk at a time.

        ``report`` is updated with the keys that occur.
        """
        with noting_remedy(self.options.errors):
            return self._run(column, threads, report or EditReport(self.edit))  # type: ignore[no-any-return]

    def _run(self, column: Any, threads: int, report: EditReport) -> Any:
        column = with_header_types(column)
        type: Any = getattr(column, "type", None)
        if is_pyarrow(column) and has_headers(type):
            return self._run_on_lists(as_header_lists(column), threads, report)
        if not (self._computed_values() or self.edit.ignore_case):
            return self._core(report.until_end())(column, threads=threads)
        import pyarrow as pa

        messages = import_column(column)
        is_stream = isinstance(messages, pa.ChunkedArray)
        if is_stream and any(isinstance(value, ColumnValues) for _, value in self._computed_values()):
            raise TypeError("a column of values needs an array of messages, not a stream: combine its chunks")
        chunks, rows = [], 0
        for chunk in messages.chunks if is_stream else [messages]:
            try:
                chunks.append(self._run_with_values(chunk, threads, report))
            except HeaderError as error:
                raise after_rows(error, rows) from None
            rows += len(chunk)
        report.end()
        return pa.chunked_array(chunks, type=self._core().result_type()) if is_stream else chunks[0]

    def _run_on_lists(self, lists: Any, threads: int, report: EditReport) -> Any:
        """Encode lists of headers, edit the messages, and decode them again.

        A null list is a message without headers, and stays null unless a header is added.
        """
        if self.options.errors != "raise":
            raise ValueError("errors= is for messages in bytes, not for lists of headers")
        import pyarrow as pa
        import pyarrow.compute as pc

        messages = self._run(Encode(self.format)(lists, threads=threads), threads, report)
        decoded = Decode(self.format, self.options)(messages, threads=threads).cast(lists.type)
        if not lists.null_count:
            return decoded
        is_kept = pc.or_(pc.is_valid(lists), pc.greater(pc.list_value_length(decoded), 0))
        return pc.if_else(is_kept, decoded, pa.scalar(None, lists.type))

    def _computed_values(self) -> list[tuple[HeaderKey, Function | ColumnValues]]:
        """Return the new values that come from columns."""
        pairs = [*self.edit.replace, *self.edit.set, *self.edit.append]
        return [(key, value) for key, value in pairs if isinstance(value, Function | ColumnValues)]

    def _run_with_values(self, messages: pa.Array, threads: int, report: EditReport) -> Any:
        import pyarrow as pa

        if self.edit.ignore_case:
            keys = self._keys_in(messages)
            report.note(keys, len(messages))
            exact = replace(self, edit=self.edit.exact(keys))
            return exact._run_with_values(messages, threads, EditReport(exact.edit))
        computed = self._computed_values()
        new_values = self._apply_functions(
            {key: value for key, value in computed if isinstance(value, Function)}, messages
        )
        values = [
            new_values[key] if isinstance(value, Function) else _check_new_values(key, value.column, len(messages))
            for key, value in computed
        ]
        names = [str(number) for number in range(len(values) + 1)]
        struct = pa.StructArray.from_arrays([messages, *values], names) if values else messages
        return self._core(report.keys)(struct, threads=threads)

    def _keys_in(self, messages: pa.Array) -> list[HeaderKey]:
        """Return the distinct keys of all headers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        options = DecodeOptions(errors="null", strict_types=self.options.strict_types, limits=self.options.limits)
        headers = self._headers_of(messages, options, views=True).flatten()
        keys = headers.field("key")
        if "key_type" not in headers.type.names:
            distinct = pc.unique(keys.cast(pa.binary()) if is_text(keys.type) else keys).drop_null().to_pylist()
            return [key.decode() if isinstance(key, bytes) else key for key in distinct]
        types = headers.field("key_type")
        typed: list[HeaderKey] = []
        for type in pc.unique(types).drop_null().to_pylist():
            bits = pc.unique(keys.filter(pc.equal(types, type)).cast(pa.binary())).drop_null().to_pylist()
            typed += [header_key(value_from_message(type, key)) for key in bits]
        return typed

    def _headers_of(self, messages: pa.Array, options: DecodeOptions, *, views: bool = False) -> pa.ListArray:
        """Return the headers of messages."""
        import pyarrow as pa

        decoded = Decode(self.format, options, views=views)(messages)
        return decoded.field("headers") if pa.types.is_struct(decoded.type) else decoded

    def _apply_functions(
        self, functions: dict[HeaderKey, Function], messages: pa.Array
    ) -> dict[HeaderKey, pa.ListArray]:
        """Return the new values of each key, as one list for each message."""
        if not functions:
            return {}
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        policy: Literal["raise", "null"] = "raise" if self.options.errors == "raise" else "null"
        options = DecodeOptions(errors=policy, strict_types=self.options.strict_types, limits=self.options.limits)
        lists = self._headers_of(messages, options)
        headers, rows = lists.flatten(), pc.list_parent_indices(lists).to_numpy()
        numbers = _numbers_of_keys(headers, list(functions))
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(functions) + 1))
        values, new_values = headers.field("value"), {}
        for (key, function), start, end in zip(functions.items(), bounds[:-1], bounds[1:], strict=True):
            indexes = order[start:end]
            counts = np.bincount(rows[indexes], minlength=len(messages))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            try:
                new = function.function(values.take(pa.array(indexes)))
            except Exception as error:
                error.add_note(
                    f"the function for header {key!r} is called with one pyarrow array of all values, as in "
                    "lambda values: pyarrow.compute.utf8_upper(values.cast('string'))"
                )
                raise
            new_values[key] = pa.ListArray.from_arrays(pa.array(offsets), _check_new_values(key, new, len(indexes)))
        return new_values


class EditReport:
    """Tracks headers that an edit should hide, by dropping or replacing them, but that no message has.

    With ``warns``, the end of a column without such a header emits :class:`~letterhead.errors.UnseenHeaderWarning`.
    """

    def __init__(self, edit: HeaderEdit, *, warns: bool = False) -> None:
        self._edit = edit
        self._keys = edit.edited_keys()
        self._seen: set[HeaderKey] = set()
        self._has_rows = False
        self._warns = warns
        self.keys = _native.EditedKeys(len(self._keys))
        """Keys found by the core."""

    def until_end(self) -> _native.EditedKeys:
        """Return the object in which the core notes the keys of a column; at its end, the core calls :meth:`end`."""
        if self._warns:
            self.keys = _native.EditedKeys(len(self._keys), lambda _: self.end())
        return self.keys

    def note(self, keys: Iterable[HeaderKey], rows: int) -> None:
        """Note the header keys of some messages."""
        self._has_rows |= rows > 0
        self._seen.update(fold_key(key) if self._edit.ignore_case else key for key in keys)

    def unmatched_keys(self) -> list[HeaderKey]:
        """Return the keys that are dropped or replaced, but have no header in any message."""
        hidden, unseen = {*self._edit.drop, *(key for key, _ in self._edit.replace)}, self._unseen_keys()
        return [key for key in self._keys if key in hidden and key in unseen]

    def kept_none(self) -> bool:
        """Return whether no message has a header named by ``only``, so that only set headers remain."""
        kept = {*(self._edit.only or ())} - {key for key, _ in self._edit.set}
        return bool(kept) and kept <= self._unseen_keys()

    def _unseen_keys(self) -> set[HeaderKey]:
        unseen = {self._keys[index] for index in self.keys.unmatched_keys()}
        return unseen | (set(self._keys) - self._seen) if self._has_rows else unseen

    def end(self) -> None:
        """Warn of keys that no message has."""
        if not self._warns:
            return
        if self.kept_none():
            warn("no message had a header that only= names: none was kept", UnseenHeaderWarning)
        unseen = self.unmatched_keys()
        if unseen:
            keys = ", ".join(map(repr, unseen[:_MAX_KEYS])) + (", …" if len(unseen) > _MAX_KEYS else "")
            case = (
                "" if self._edit.ignore_case else "; keys are compared with their case, which ignore_case=True ignores"
            )
            warn(
                f"no message had a header {keys}, so that nothing was hidden{case}; only= keeps the headers that it names and drops "
                "all others",
                UnseenHeaderWarning,
            )


_MAX_KEYS = 10


def _numbers_of_keys(headers: pa.StructArray, keys: list[HeaderKey]) -> Any:
    """Return the index of each header's key in ``keys``, or ``len(keys)`` for other keys."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    of_headers = headers.field("key")
    if "key_type" not in headers.type.names:
        found = pc.index_in(of_headers, pa.array(keys, of_headers.type))
        return found.fill_null(len(keys)).to_numpy()
    numbers = np.full(len(headers), len(keys))
    typed = [(key.type, key.bits) if isinstance(key, Value) else ("string", str(key).encode()) for key in keys]
    bits = of_headers.cast(pa.binary())
    for type in {type for type, _ in typed}:
        of_type = {key: number for number, (type_of_key, key) in enumerate(typed) if type_of_key == type}
        found = pc.index_in(bits, pa.array(list(of_type), pa.binary()))
        is_found = pc.and_(found.is_valid(), pc.equal(headers.field("key_type"), type)).fill_null(False)
        mask = is_found.to_numpy(zero_copy_only=False)
        numbers[mask] = np.array(list(of_type.values()))[found.filter(is_found).to_numpy()]
    return numbers


def _check_new_values(key: HeaderKey, values: Any, rows: int) -> Any:
    """Return new values if they are text or bytes and their number is ``rows``; raise otherwise."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not hasattr(values, "__arrow_c_array__"):
        raise TypeError(f"header {key!r}: new values must be an Arrow array, not {type(values).__name__}")
    values = import_column(values)
    if not is_text(values.type) and not is_binary(values.type):
        raise TypeError(f"header {key!r}: new values must be string or binary, not {values.type}")
    if len(values) != rows:
        raise ValueError(f"header {key!r}: {len(values)} new values for {rows}")
    return values


def _native_value(value: NewValue, typed: bool, number: int) -> EntryValue:
    if isinstance(value, Mask):
        return EntryValue(value.name)
    if isinstance(value, Hmac):
        return EntryValue("hmac", bits=value.key)
    if not isinstance(value, Constant):
        return EntryValue("column", column=number)
    constant = value.value
    if constant is None:
        return EntryValue("constant")
    if isinstance(constant, Value):
        is_plain = not typed and constant.type in ("string", "binary")
        return EntryValue("constant", None if is_plain else constant.type, constant.bits)
    return EntryValue("constant", ("string" if value.is_text else "binary") if typed else None, constant)
