"""Common base of headers with text keys and headers with integer keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

from letterhead import headers as core
from letterhead._invariants import instance
from letterhead._names import check_name
from letterhead.errors import DecodeError, HeaderError
from letterhead.kip82.serializers import HeaderSerializer
from letterhead.one_message import decode, encode

__all__ = ["DraftHeaders", "HeaderErrors", "HeadersInput"]

K = TypeVar("K", str, int)

HeadersInput: TypeAlias = (
    "DraftHeaders[Any] | core.Headers | bytes | bytearray | memoryview | Mapping[Any, Any] | Iterable[tuple[Any, Any]]"
)

HeaderErrors: TypeAlias = Literal["raise", "null"]
"""Behaviour for headers that cannot be parsed: raise, or treat the message as one without headers."""


class DraftHeaders(ABC, Generic[K]):
    """Headers of one message: bytes that are parsed on first access.

    Parsed headers, and headers created from pairs, are stored as a :class:`letterhead.Headers`. Keys may repeat, order
    matters, and null differs from empty. Unchanged headers are written with the bytes that were read.
    """

    __slots__ = ("_encoded", "_error", "_errors", "_frozen", "_serializers", "_stored")
    _format: ClassVar[str]
    _encoded: bytes | None
    _frozen: bool
    _stored: core.Headers | None

    def __init__(
        self,
        headers: HeadersInput | None = None,
        *,
        serializers: Mapping[K, HeaderSerializer] | None = None,
        errors: HeaderErrors = "raise",
    ) -> None:
        check_name("errors", errors, ("raise", "null"))
        self._errors: HeaderErrors = errors
        self._error: DecodeError | None = None
        self._frozen = False
        self._serializers: dict[K, HeaderSerializer] = dict(serializers or {})
        if isinstance(headers, bytes | bytearray | memoryview):
            self._encoded, self._stored = bytes(headers), None
            return
        self._encoded, self._stored = None, core.Headers()
        if isinstance(headers, DraftHeaders | core.Headers):
            # Values in these headers are already serialized.
            for key, value in headers._read() if isinstance(headers, DraftHeaders) else headers:
                with self._locate_errors(key):
                    self._add(self._check_key(key), None if value is None else self._check_value(value))
        elif headers is not None:
            pairs: Iterable[tuple[Any, Any]] = headers.items() if isinstance(headers, Mapping) else headers
            for key, value in pairs:
                self.put(key, value)

    @property
    def parsed(self) -> bool:
        """Whether the headers are parsed: after the first access, or if they were not created from bytes."""
        return self._stored is not None

    @property
    def error(self) -> DecodeError | None:
        """Error of parsing the bytes, or ``None``. Reading this attribute parses the bytes, and never raises."""
        try:
            self._read()
        except DecodeError as error:
            return error
        return self._error

    def put(self, key: K, value: Any) -> None:
        """Add a header at the end; headers with the same key stay.

        Parameters
        ----------
        key : str or int
            The key: text or an integer, depending on the class.
        value : object
            A value that the class or the key's serializer accepts; ``None`` is null.

        Raises
        ------
        TypeError
            If the key or the value has a wrong type, or these headers are immutable.
        EncodeError
            If the key or the value cannot be encoded.
        """
        self._check_mutable()
        with self._locate_errors(key):
            self._add(self._check_written_key(key), self._to_stored(key, value))

    def set(self, key: K, value: Any) -> None:
        """Replace all values of a key with one value. Parameters and errors are as for :meth:`put`."""
        self._check_mutable()
        with self._locate_errors(key):
            checked, stored = self._check_written_key(key), self._to_stored(key, value)
            self._change().remove(checked)
            self._add(checked, stored)

    def get(self, key: K, default: Any = None) -> Any:
        """Return the last value of a key, or a default if no header has it.

        Raises
        ------
        DecodeError
            If the bytes cannot be parsed, or a value has another type than the key's serializer (``wrong_type``).
        """
        values = self._values_of(key)
        return self._from_stored(key, values[-1]) if values else default

    def get_all(self, key: K) -> list[Any]:
        """Return all values of a key, in order. Errors are as for :meth:`get`."""
        return [self._from_stored(key, value) for value in self._values_of(key)]

    def keys(self) -> list[K]:
        """Return the keys of all headers, in order and with repeats; they correspond to :meth:`values`."""
        return [key for key, _ in self._pairs()]

    def values(self) -> list[Any]:
        """Return the values of all headers, in order."""
        return [value for _, value in self]

    def items(self) -> list[tuple[K, Any]]:
        """Return the keys and values of all headers, in order."""
        return [(key, value) for key, value in self]

    def remove(self, key: K) -> int:
        """Remove every header with a key, and return their number; raise ``TypeError`` if the headers are immutable."""
        self._check_mutable()
        with self._locate_errors(key):
            return self._change().remove(self._check_written_key(key))

    def as_bytes(self) -> bytes:
        """Return the encoded headers: the original bytes, unless the headers were changed."""
        return self._encoded if self._encoded is not None else encode(self._read(), self._format) or b""

    def to_headers(self) -> core.Headers:
        """Return a copy as :class:`letterhead.Headers`."""
        return core.Headers(self._read())

    def copy(self, *, serializers: Mapping[K, HeaderSerializer] | None = None) -> Self:
        """Return a mutable copy; copying does not parse the bytes.

        Parameters
        ----------
        serializers : mapping of key to HeaderSerializer, optional
            Serializers of the copy; by default the current ones.
        """
        copied = type(self).__new__(type(self))
        copied._encoded, copied._errors, copied._error, copied._frozen = self._encoded, self._errors, self._error, False
        copied._stored = None if self._stored is None else core.Headers(self._stored)
        copied._serializers = dict(self._serializers if serializers is None else serializers)
        copied._copy_options(self)
        return copied

    def frozen(self) -> Self:
        """Return an immutable copy, or the object itself if it is immutable."""
        if self._frozen:
            return self
        copied = self.copy()
        copied._frozen = True
        return copied

    def __iter__(self) -> Iterator[Any]:
        return (core.Header(key, self._from_stored(key, value)) for key, value in self._pairs())

    def __getitem__(self, key: K) -> Any:
        values = self._values_of(key)
        if not values:
            raise KeyError(key)
        return self._from_stored(key, values[-1])

    def __contains__(self, key: object) -> bool:
        return key in self._read()

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DraftHeaders) or self._format != other._format:
            return NotImplemented
        # Headers with equal bytes are equal, even if the bytes cannot be parsed.
        same_bytes = self._encoded is not None and self._encoded == other._encoded
        return same_bytes or self._read() == other._read()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self._stored is None:
            return f"{type(self).__name__}(<{len(self._encoded or b'')} bytes, not parsed yet>)"
        return f"{type(self).__name__}({[tuple(header) for header in self._stored]!r})"

    def _read(self) -> core.Headers:
        if self._stored is None:
            try:
                self._stored = self._parse(self._encoded or b"")
            except DecodeError as error:
                if self._errors == "raise":
                    raise
                self._stored, self._error = core.Headers(), error
        return self._stored

    def _parse(self, encoded: bytes) -> core.Headers:
        return instance(decode(encoded, self._format), core.Headers)

    def _values_of(self, key: K) -> list[core.HeaderValue]:
        return self._read().get_all(self._check_key(key))

    def _pairs(self) -> Iterator[tuple[K, core.HeaderValue]]:
        pairs: Iterator[Any] = iter(self._read())  # the format determines the type of keys
        return pairs

    def _check_mutable(self) -> None:
        if self._frozen:
            raise TypeError("these headers are immutable: change a copy(), and make a record with it")

    def _change(self) -> core.Headers:
        """Return the headers to be changed, and discard their encoded bytes."""
        stored = self._read()
        self._encoded = None
        return stored

    def _add(self, key: K, value: core.HeaderValue) -> None:
        self._change().add(key, value)

    def _to_stored(self, key: K, value: Any) -> core.HeaderValue:
        if value is None:
            return None
        serializer = self._serializers.get(key)
        return self._check_value(value) if serializer is None else self._serialize(serializer, key, value)

    def _from_stored(self, key: K, value: Any) -> Any:
        if value is None:
            return None
        serializer = self._serializers.get(key)
        try:
            return self._plain(value) if serializer is None else self._deserialize(serializer, key, value)
        except Exception as error:
            error.add_note(f"in a header with the key {key!r}")
            raise

    @contextmanager
    def _locate_errors(self, key: object) -> Iterator[None]:
        """Add the format, and the header's index and key, to errors without a format."""
        try:
            yield
        except HeaderError as error:
            if error.format is not None:
                raise
            where = {"format": self._format, "header": len(self._read()), "key": str(key)}
            raise type(error)(error.message, code=error.code, **where) from None  # type: ignore[arg-type]

    def _check_written_key(self, key: Any) -> K:
        """Return the key if its headers may be changed; raise otherwise."""
        return self._check_key(key)

    def _copy_options(self, source: Self) -> None:
        """Copy the attributes of the subclass."""

    @abstractmethod
    def _check_key(self, key: Any) -> K:
        """Return the key if it has the right type; raise otherwise."""

    @abstractmethod
    def _check_value(self, value: Any) -> core.HeaderValue:
        """Return a non-null value in its stored form; raise if it is invalid."""

    def _plain(self, value: Any) -> Any:
        """Convert a non-null stored value to a Python object."""
        return value

    def _serialize(self, serializer: HeaderSerializer, key: K, value: Any) -> core.HeaderValue:
        """Convert an object to its stored value with a serializer."""
        return serializer._to_bytes(key, value)

    def _deserialize(self, serializer: HeaderSerializer, key: K, value: Any) -> Any:
        """Convert a stored value to an object with a serializer."""
        return serializer.deserialize(value)
