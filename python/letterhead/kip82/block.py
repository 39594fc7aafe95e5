"""What headers with text keys and headers with integer keys have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

from letterhead import headers as core
from letterhead.errors import DecodeError, HeaderError, check_name
from letterhead.kip82.serializers import HeaderSerializer
from letterhead.operations import decode, encode

__all__ = ["DraftHeaders", "GivenHeaders", "HeaderErrors"]

K = TypeVar("K", str, int)

GivenHeaders: TypeAlias = (
    "DraftHeaders[Any] | core.Headers | bytes | bytearray | memoryview | Mapping[Any, Any] | Iterable[tuple[Any, Any]]"
)

HeaderErrors: TypeAlias = Literal["raise", "null"]
"""What accessing headers does if their bytes cannot be parsed."""

_FROZEN = "these headers are immutable: copy() of them gives some that can be changed"


class DraftHeaders(ABC, Generic[K]):
    """Headers of one message: bytes that are parsed on first access.

    Once parsed, or made of something else than bytes, they hold a :class:`letterhead.Headers`. Keys repeat, order
    matters, and null is not empty. Bytes that were not changed are written as they came.
    """

    __slots__ = ("_block", "_error", "_errors", "_frozen", "_held", "_serializers")
    _format: ClassVar[str]
    _block: bytes | None
    _held: core.Headers | None

    def __init__(
        self,
        headers: GivenHeaders | None = None,
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
            self._block, self._held = bytes(headers), None
            return
        self._block, self._held = None, core.Headers()
        if isinstance(headers, DraftHeaders | core.Headers):
            # Values that were read, or are as they would be: no serializer has to see them.
            self._adopt(headers._read() if isinstance(headers, DraftHeaders) else headers)
        elif headers is not None:
            pairs: Iterable[tuple[Any, Any]] = headers.items() if isinstance(headers, Mapping) else headers
            for key, value in pairs:
                self.put(key, value)

    @property
    def parsed(self) -> bool:
        """Whether the headers have been read from their bytes, or were never bytes."""
        return self._held is not None

    @property
    def error(self) -> DecodeError | None:
        """Why the bytes could not be parsed, or ``None``; parses them, and never raises."""
        try:
            self._read()
        except DecodeError as error:
            return error
        return self._error

    @property
    def serializers(self) -> Mapping[K, HeaderSerializer]:
        """The serializers of the keys that have one."""
        return dict(self._serializers)

    def put(self, key: K, value: Any) -> None:
        """Add a header at the end; headers with the same key stay.

        Parameters
        ----------
        key : str or int
            The key, in the form of these headers.
        value : object
            What the key's serializer takes, if it has one; ``None`` is null.

        Raises
        ------
        TypeError
            If the key or the value is not of the right type, or these headers are immutable.
        EncodeError
            If either does not fit.
        """
        with self._placed(key):
            self._add(self._checked(key), self._given(key, value))

    def set(self, key: K, value: Any) -> None:
        """Give a key one value, in place of all that it has.

        Parameters
        ----------
        key : str or int
            The key, in the form of these headers.
        value : object
            As :meth:`put` takes it.

        Raises
        ------
        TypeError, EncodeError
            As from :meth:`put`.
        """
        with self._placed(key):
            checked, given = self._checked(key), self._given(key, value)
            self._changing().remove(checked)
            self._add(checked, given)

    def get(self, key: K, default: Any = None) -> Any:
        """Return the last value of a key, or a default if no header has it.

        Parameters
        ----------
        key : str or int
            The key, in the form of these headers.
        default : object, optional
            Returned if no header has the key.

        Returns
        -------
        object
            The value; ``None`` is null.

        Raises
        ------
        DecodeError
            If the bytes are not headers, or a value is not of the type that the key's serializer writes
            (``wrong_type``).
        EncodeError
            If the key is not of the form of these headers (``key_not_carried``).
        """
        values = self._all(key)
        return self._taken(key, values[-1]) if values else default

    def get_all(self, key: K) -> list[Any]:
        """Return all values of a key, in order; none if no header has it.

        Raises
        ------
        DecodeError, EncodeError
            As from :meth:`get`.
        """
        return [self._taken(key, value) for value in self._all(key)]

    def keys(self) -> list[K]:
        """Return the distinct keys, in the order in which they first occur."""
        return list(dict.fromkeys(key for key, _ in self._pairs()))

    def values(self) -> list[Any]:
        """Return the values of all headers, in order."""
        return [value for _, value in self]

    def items(self) -> list[tuple[K, Any]]:
        """Return the keys and values of all headers, in order."""
        return [(key, value) for key, value in self]

    def remove(self, key: K) -> int:
        """Remove every header with a key.

        Parameters
        ----------
        key : str or int
            The key.

        Returns
        -------
        int
            How many there were.

        Raises
        ------
        TypeError
            If these headers are immutable.
        """
        with self._placed(key):
            return self._changing().remove(self._checked(key))

    def as_bytes(self) -> bytes:
        """Give the headers as they are on the wire: the very bytes they were made of, if nothing was changed."""
        return self._block if self._block is not None else encode(self._read(), self._format) or b""

    def to_headers(self) -> core.Headers:
        """Give the headers as every other part of this package has them; a copy."""
        return core.Headers(self._read())

    def copy(self, *, serializers: Mapping[K, HeaderSerializer] | None = None) -> Self:
        """Make a copy that can be changed; it is not read yet if these are not.

        Parameters
        ----------
        serializers : mapping of key to HeaderSerializer, optional
            What the copy has instead of the same serializers.

        Returns
        -------
        Headers or IntHeaders
            The copy, of the same class.
        """
        made = type(self).__new__(type(self))
        made._block = self._block
        made._held = None if self._held is None else core.Headers(self._held)
        made._errors, made._error = self._errors, self._error
        made._frozen = False
        made._serializers = dict(self._serializers if serializers is None else serializers)
        made._take_from(self)
        return made

    def frozen(self) -> Self:
        """Make a copy that refuses change; of headers that do so already, these."""
        if self._frozen:
            return self
        made = self.copy()
        made._frozen = True
        return made

    def __iter__(self) -> Iterator[Any]:
        return (core.Header(key, self._taken(key, value)) for key, value in self._pairs())

    def __getitem__(self, key: K) -> Any:
        values = self._all(key)
        if not values:
            raise KeyError(key)
        return self._taken(key, values[-1])

    def __contains__(self, key: object) -> bool:
        return key in self._read()

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DraftHeaders) or self._format != other._format:
            return NotImplemented
        # Equal bytes are equal headers, also where they cannot be parsed.
        same_bytes = self._block is not None and self._block == other._block
        return same_bytes or self._read() == other._read()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self._held is None:
            return f"{type(self).__name__}(<{len(self._block or b'')} bytes, not read yet>)"
        return f"{type(self).__name__}({[tuple(header) for header in self._held]!r})"

    def _read(self) -> core.Headers:
        if self._held is None:
            try:
                self._held = self._parse(self._block or b"")
            except DecodeError as error:
                if self._errors == "raise":
                    raise
                self._held, self._error = core.Headers(), error
        return self._held

    def _all(self, key: K) -> list[core.HeaderValue]:
        """Give all values of a key as they are held."""
        return self._read().get_all(self._of_form(key))

    def _pairs(self) -> Iterator[tuple[K, core.HeaderValue]]:
        held: Iterator[Any] = iter(self._read())  # their keys are of the form of these headers
        return held

    def _parse(self, block: bytes) -> core.Headers:
        read = decode(block, self._format)
        assert isinstance(read, core.Headers), "a block gives headers"
        return read

    def _adopt(self, headers: core.Headers) -> None:
        """Hold headers that are there already, if they can be some of this layout."""
        for key, value in headers:
            with self._placed(key):
                self._read().add(self._of_form(key), None if value is None else self._held_as(value))

    def _changing(self) -> core.Headers:
        """Give the headers to be changed; the bytes that they were read from are out of date then."""
        if self._frozen:
            raise TypeError(_FROZEN)
        held = self._read()
        self._block = None
        return held

    def _add(self, key: K, value: core.HeaderValue) -> None:
        self._changing().add(key, value)

    def _given(self, key: K, value: Any) -> core.HeaderValue:
        if self._frozen:
            raise TypeError(_FROZEN)
        return None if value is None else self._to_held(key, value)

    def _taken(self, key: K, value: core.HeaderValue) -> Any:
        if value is None:
            return None
        try:
            return self._from_held(key, value)
        except Exception as error:
            error.add_note(f"in a header with the key {key!r}")
            raise

    @contextmanager
    def _placed(self, key: object) -> Iterator[None]:
        """Say of an error in which format and which header it is."""
        try:
            yield
        except HeaderError as error:
            if error.format is not None:
                raise
            where = {"format": self._format, "header": len(self._read()), "key": str(key)}
            raise type(error)(error.message, code=error.code, **where) from None  # type: ignore[arg-type]

    def _checked(self, key: Any) -> K:
        """Refuse a key that may not be put here."""
        return self._of_form(key)

    def _take_from(self, other: Self) -> None:
        """Take what only headers of this layout have from those that these are a copy of."""

    @abstractmethod
    def _of_form(self, key: Any) -> K:
        """Refuse a key that no headers of this layout have."""

    @abstractmethod
    def _held_as(self, value: Any) -> core.HeaderValue:
        """Refuse a value that no headers of this layout have; it is not null."""

    @abstractmethod
    def _to_held(self, key: K, value: Any) -> core.HeaderValue:
        """Make what is held of a value that is not null."""

    @abstractmethod
    def _from_held(self, key: K, value: Any) -> Any:
        """Make what a user gets of a value that is not null."""
